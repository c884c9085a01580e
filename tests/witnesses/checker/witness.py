"""A witness as it is written: JSON with exact numbers, enclosures of both sides, and a digest.

Only its form is looked at here: each field of its type, each number written in one way. What a
witness may say is in `claims`.
"""

import hashlib
import json
import math
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from .intervals import FIELD, interval

FORMAT = "jaxbounds witness 1"

TEXT = ("paper", "citation", "label", "note", "cites", "assumptions", "word")
"""Fields that are text, and are compared with the registered text; `hypotheses` is a list of it."""

NAMES = ("format", "statement", "form", "formula", "relation", "digest", *TEXT)
"""All fields that are text."""

FIELDS = {*NAMES, "hypotheses", "size", "instance", "entry", "lhs", "rhs"}
"""A witness has these and no other."""

BYTES = 10**6
"""Of a file that is read."""

ENTRIES, AXES = 100, 8
"""Of an array, at most: intervals of more take too long."""

KINDS = {"f": "float64", "i": "int64", "b": "truth value"}
"""What the numbers of an array are, by the letter that a witness has as its type."""

FRACTION = re.compile(r"-?[0-9]{1,400}(/[0-9]{1,400})?")
DECIMAL = re.compile(r"-?[0-9]{1,60}(\.[0-9]{1,60})?(E[+-][0-9]{1,4})?")


class BadWitness(ValueError):
    """What is no witness of a registered claim: malformed, altered, or of another claim."""


def need(condition: bool, what: str) -> None:
    """Goes on only where the condition holds.

    Raises:
        BadWitness: with what is the matter.
    """
    if not condition:
        raise BadWitness(what)


def said(value: Any) -> str:
    """A value of a file in few characters, on one line, whatever it is."""
    if isinstance(value, str):
        return ascii(value if len(value) <= 60 else f"{value[:60]}...")
    if value is None or isinstance(value, bool):
        return str(value)
    if type(value) is int:
        return str(value) if abs(value) < 10**9 else "a huge number"
    kinds = {float: "a number with a point", list: "a list", tuple: "a tuple", dict: "an object"}
    return kinds.get(type(value), "something else")


def digest(document: dict[str, Any]) -> str:
    """SHA-256 of the document without its digest: sorted keys, no spaces, ASCII."""
    content = {key: value for key, value in document.items() if key != "digest"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Witness:
    """What a certificate says, with exact numbers.

    Attributes:
        statement: its id.
        form: the name of the failing form.
        formula: the statement's.
        relation: "<=" or "=", as the witness has it.
        text: the other fields of text by name, with the hypotheses.
        size: static integers.
        instance: Fractions and arrays of Fractions, by name.
        kinds: of each of them, a letter of `KINDS`.
        entry: of an identity, the entry of the flattened sides that differs most.
        lhs, rhs: intervals that contain the sides (at `entry`).
    """

    statement: str
    form: str
    formula: str
    relation: str
    text: dict[str, Any]
    size: dict[str, int]
    instance: dict[str, Any]
    kinds: dict[str, str]
    entry: int | None
    lhs: Any
    rhs: Any

    def __getitem__(self, name: str) -> Any:
        return self.instance[name]

    def whole(self, name: str) -> int:
        """A number of the instance that has to be an integer.

        Raises:
            ValueError: if it is none.
        """
        value = self.instance[name]
        if value.denominator != 1:
            raise ValueError(f"'{name}' is a fraction, and an integer is expected")
        return int(value)


def parse(path: Path) -> Any:
    """What a file says: JSON without floats, NaN or a key that comes twice.

    Raises:
        BadWitness: with why there is none.
    """
    try:
        need(path.is_file(), "there is no such file")
        with path.open("rb") as file:
            data = file.read(BYTES + 1)
        need(len(data) <= BYTES, f"more than {BYTES} bytes are no witness")
        return json.loads(
            data.decode("utf8"),
            object_pairs_hook=_object,
            parse_float=_no_number,
            parse_constant=_no_number,
        )
    except BadWitness:
        raise
    except OSError as error:
        raise BadWitness(f"the file cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadWitness(f"this is no text in UTF-8: see byte {error.start}") from error
    except RecursionError as error:
        raise BadWitness("this is no witness: it is nested too deeply") from error
    except ValueError as error:
        raise BadWitness(f"this is no JSON: {str(error).splitlines()[0]}") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        need(name not in found, f"the key {said(name)} comes twice")
        found[name] = value
    return found


def _no_number(text: str) -> Any:
    raise BadWitness(f"{text[:20]} is no number of a witness: integers and strings are")


def read(document: Any) -> Witness:
    """The witness of a parsed file.

    Raises:
        BadWitness: another format, a field that is missing, malformed or one too many, or a digest
            that does not match.
    """
    _typed(document)
    need(
        document["digest"] == digest(document),
        "the digest does not match the content: the file was changed; write anew",
    )
    leaves = document["instance"]
    return Witness(
        statement=document["statement"],
        form=document["form"],
        formula=document["formula"],
        relation=document["relation"],
        text={name: document[name] for name in (*TEXT, "hypotheses")},
        size=document["size"],
        instance={name: exact(leaf, name) for name, leaf in leaves.items()},
        kinds={name: leaf["type"] for name, leaf in leaves.items()},
        entry=document["entry"],
        lhs=enclosure(document["lhs"], "lhs"),
        rhs=enclosure(document["rhs"], "rhs"),
    )


def _typed(document: Any) -> None:
    """Every field there, of its type."""
    _keys(document, FIELDS, "a witness")
    form = document["format"]
    need(form == FORMAT, f"the format {said(FORMAT)} is expected, {said(form)} came")
    for name in NAMES:
        value = document[name]
        need(isinstance(value, str), f"'{name}' is {said(value)}, and text is expected")
    _list(document["hypotheses"], str, "'hypotheses'")
    for name, value in _items(document["size"], "'size'"):
        need(_count(value), f"size {said(name)} is {said(value)}, and a count is expected")
    entry = document["entry"]
    need(
        entry is None or _count(entry, 0), f"'entry' is {said(entry)}; an index or null is expected"
    )
    for side in ("lhs", "rhs"):
        _list(document[side], str, f"'{side}'")
        need(len(document[side]) == 2, f"'{side}' has two ends, {len(document[side])} came")
    for name, leaf in _items(document["instance"], "'instance'"):
        _keys(leaf, {"shape", "exact", "type"}, f"leaf {said(name)}")
        _list(leaf["shape"], int, f"the shape of {said(name)}")
        _list(leaf["exact"], str, f"the numbers of {said(name)}")
        kind = leaf["type"]
        need(
            isinstance(kind, str) and kind in KINDS,
            f"the type of {said(name)} is {said(kind)}; one of {', '.join(KINDS)} is expected",
        )


def _items(value: Any, what: str) -> Any:
    need(isinstance(value, dict), f"{what} is {said(value)}, and an object is expected")
    return value.items()


def _keys(value: Any, names: set[str], what: str) -> None:
    found = dict(_items(value, what))
    missing, other = sorted(names - set(found)), [name for name in found if name not in names]
    need(not missing, f"{what} lacks {', '.join(map(said, missing))}")
    need(not other, f"{what} has no {', '.join(map(said, other[:3]))}")


def _list(value: Any, kind: type, what: str) -> None:
    name = {str: "text", int: "counts"}[kind]
    need(isinstance(value, list), f"{what} is {said(value)}, and a list is expected")
    for entry in value:
        good = _count(entry) if kind is int else isinstance(entry, str)
        need(good, f"{what} has {said(entry)}, and {name} alone is expected")


def _count(value: Any, least: int = 1) -> bool:
    """Whether this is an integer (True is none) from `least` on, and not huge."""
    return type(value) is int and least <= value < 10**9


def exact(leaf: dict[str, Any], name: str) -> Any:
    """A Fraction, or an array of them in the stated shape: numbers of the stated type."""
    shape, texts = tuple(leaf["shape"]), leaf["exact"]
    need(len(shape) <= AXES, f"{said(name)} has {len(shape)} axes, and {AXES} are the most")
    size = math.prod(shape)
    need(size <= ENTRIES, f"{said(name)} has {said(size)} numbers, and {ENTRIES} are the most")
    need(
        len(texts) == size,
        f"{said(name)} says shape {shape} and lists {len(texts)} numbers: write as many as the "
        "shape has entries",
    )
    entries = [_number(text, leaf["type"], name) for text in texts]
    if not shape:
        return entries[0]
    found = np.empty(size, object)
    found[:] = entries
    return found.reshape(shape)


def _number(text: str, kind: str, name: str) -> Fraction:
    """A fraction in lowest terms that is a number of this kind."""
    if FRACTION.fullmatch(text) and (value := _fraction(text)) is not None and str(value) == text:
        if kind == "f" and _is_float(value):
            return value
        if kind == "i" and value.denominator == 1 and -(2**63) <= value < 2**63:
            return value
        if kind == "b" and value in (0, 1):
            return value
    raise BadWitness(
        f"{said(name)} has {said(text)}: a {KINDS[kind]} as a fraction in lowest terms is expected"
    )


def _fraction(text: str) -> Fraction | None:
    try:
        return Fraction(text)
    except ZeroDivisionError:
        return None


def _is_float(value: Fraction) -> bool:
    try:
        return Fraction(float(value)) == value
    except OverflowError:
        return False


def enclosure(ends: list[str], name: str) -> Any:
    """The interval between two decimals."""
    for text in ends:
        need(DECIMAL.fullmatch(text) is not None, f"'{name}' has {said(text)}, which is no decimal")
    lower, upper = (Fraction(text) for text in ends)
    need(
        lower <= upper, f"'{name}' from {said(ends[0])} to {said(ends[1])} is empty: swap its ends"
    )
    return FIELD.mpf([interval(lower).a, interval(upper).b])
