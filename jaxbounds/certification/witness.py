"""Write and read witnesses: JSON files with an instance on which a claim fails.

Any program can check a witness. The file writes the instance's numbers as fractions ("-3/8"), and
the bounds on each side as two decimal numbers.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbounds.claims.statements import Instance, Statement
from jaxbounds.falsification.storage import flatten, unflatten
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import write_text
from jaxbounds.programs.balls.certificate import Certificate

FORMAT = "jaxbounds witness 1"
LIMIT = 10**6
"""`load_witness` reads a file of at most this many bytes. A larger limit admits larger files."""


def _exact(x: Any) -> dict[str, Any]:
    x = np.asarray(x)
    numbers = (Fraction(v) if isinstance(v, float) else int(v) for v in x.ravel().tolist())
    return {"shape": list(x.shape), "exact": list(map(str, numbers)), "type": x.dtype.kind}


def digest_of(witness: Mapping[str, Any], /) -> str:
    """Return the SHA-256 of a witness's JSON (without digest, sorted keys, no spaces)."""
    rest = {name: value for name, value in witness.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def witness_of(
    statement: Statement, instance: Instance, certificate: Certificate, /, citation: str = ""
) -> dict[str, Any]:
    """Return a certificate's witness (its instance, sides and hypotheses) as a dict for JSON."""
    form = statement.form(certificate.form)
    leaf = lambda x: not isinstance(x, Mapping)
    arrays = jax.tree.map(np.asarray, dict(instance), is_leaf=leaf)
    witness = {
        "format": FORMAT,
        "paper": statement.paper,
        "citation": citation,
        "statement": statement.id,
        "label": statement.label,
        "form": form.name,
        "formula": statement.formula,
        "note": form.note,
        "cites": form.cites,
        "relation": statement.relation,
        "assumptions": statement.assumptions,
        "hypotheses": sorted(certificate.hypotheses),
        "size": dict(certificate.size),
        "instance": {n.replace("/", "."): _exact(x) for n, x in flatten(arrays).items()},
        "entry": certificate.entry,
        "lhs": list(certificate.lhs or ()),
        "rhs": list(certificate.rhs or ()),
        "word": certificate.word,
    }
    return witness | {"digest": digest_of(witness)}


def save_witness(path: str | Path, witness: Mapping[str, Any], /) -> Path:
    """Write a witness to a file; if the write fails, no partial file remains."""
    write_text(Path(path), json.dumps(witness, indent=1) + "\n")
    return Path(path)


def _number(text: str) -> Fraction:
    if not re.fullmatch(r"-?\d+(/\d+)?", text):
        raise Refused(f'number={text[:20]!r} is not a fraction. Try "-3/8"')
    return Fraction(text)


def _shape(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise Refused(f"shape={shape!r}, expected a list of nonnegative integers. Try [2, 3]")
    return tuple(shape)


def _array(name: str, entry: Any) -> np.ndarray:
    try:
        kinds = {"f": np.float64, "i": np.int64, "u": np.int64, "b": np.bool_}
        numbers = [_number(text) for text in entry["exact"]]
        kind = entry["type"]
        values = [float(v) if kind == "f" else int(v) for v in numbers]
        array: np.ndarray = np.array(values, kinds[kind])
        if any(Fraction(a) != b for a, b in zip(array.tolist(), numbers)):
            raise Refused(
                f"a number of entry={name!r} does not fit dtype={array.dtype}. Try a number of "
                "this type"
            )
        return array.reshape(_shape(entry["shape"]))
    except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError) as problem:
        raise Refused(
            f"entry {name!r} of the instance is unreadable, type={type(entry).__name__}: "
            f"{problem}. Try `jaxbounds certify` again"
        ) from problem


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise Refused(
                f"an object of the file has the key={name[:20]!r} twice, expected distinct keys. "
                f"Try one entry for each key"
            )
        found[name] = value
    return found


def load_witness(path: str | Path, /) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a witness file; return its contents, and its instance as arrays.

    Raises:
        Refused: if the file is missing, too large or not a witness, if its digest does not match
            its contents, or if an entry of the instance is not a number.
    """
    path = Path(path)
    if not path.is_file():
        raise Refused(
            f"path={str(path)!r} is not a file. Try a witness that `jaxbounds certify` wrote"
        )
    if path.stat().st_size > LIMIT:
        raise Refused(
            f"{path} has size={path.stat().st_size}, and a witness has at most {LIMIT} bytes. "
            "Try a file that `jaxbounds certify` wrote"
        )
    try:
        witness = json.loads(path.read_text(encoding="utf8"), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as problem:
        raise Refused(
            f"{path} is no JSON, problem={str(problem).splitlines()[0]!r}. Try a file "
            "that `jaxbounds certify` wrote"
        ) from problem
    if not isinstance(witness, dict) or witness.get("format") != FORMAT:
        raise Refused(
            f"{path} is not a witness of format={FORMAT!r}. Try a file that `jaxbounds certify` "
            "wrote"
        )
    if witness.get("digest") != digest_of(witness):
        raise Refused(
            f"{path} was altered: its digest does not match, digest={witness.get('digest')!r}. "
            "Try `jaxbounds certify` to write it again"
        )
    named = ("statement", "form", "size", "instance")
    missing = [name for name in named if name not in witness]
    if missing:
        raise Refused(
            f"{path} lacks {', '.join(missing)}, and has keys={sorted(witness)}. Try "
            "`jaxbounds certify` to write it again"
        )
    size = witness["size"]
    if not isinstance(size, dict) or not all(type(n) is int for n in size.values()):
        raise Refused(
            f'{path} has size={size!r}, expected a JSON object of integers. Try {{"n": 2}}'
        )
    try:
        entries = witness["instance"].items()
        flat = {name.replace(".", "/"): _array(name, entry) for name, entry in entries}
        return witness, unflatten(flat)
    except (AttributeError, ValueError) as problem:
        raise Refused(
            f"{path} is damaged, format={FORMAT!r}: {problem}. Try `jaxbounds certify` again"
        ) from problem
