"""Each stored witness is confirmed, and rejected once anything that matters in it is altered.

The checker is the oracle: interval arithmetic written from the papers, that imports neither the
library nor jax, while the witnesses were written by the library. The alterations are judged by a
rule, not by hand: every entry of the instance with its sign turned, and raised by one. Stored
enclosures are tight, so that a value that moves is a rejection; what may be altered is listed with
the reason, and is confirmed, so that the list cannot hide anything.
"""

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import checker
import pytest
from free import FREE

HERE = Path(__file__).parent
FILES = sorted((HERE / "files").glob("*.json"))

NOT_RECOMPUTED = {
    ("smapprox.lemma3.3", "printed"): "its left side is a margin that the library certifies for "
    "a network of its own; the paper has 1/poly(s) with no constant",
}

SLOW = {"multihead.eq14", "qstr.thm1.heads"}
"""With these, altering every entry takes longer than a second."""


def load(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def key(document: dict[str, Any]) -> tuple[str, str]:
    return document["statement"], document["form"]


WITNESSES = [pytest.param(load(path), id=path.stem) for path in FILES]
KNOWN = [p for p in WITNESSES if key(p.values[0]) not in NOT_RECOMPUTED]
ALTERED = [
    pytest.param(p.values[0], id=p.id, marks=[pytest.mark.slow] * (key(p.values[0])[0] in SLOW))
    for p in KNOWN
]


def signed(document: dict[str, Any]) -> dict[str, Any]:
    """With the digest of its content: an alteration is not told by its digest."""
    return {**document, "digest": checker.digest(document)}


def with_entry(document: dict[str, Any], name: str, index: int, value: Fraction) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    changed["instance"][name]["exact"][index] = str(value)
    return signed(changed)


def alterations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every entry with its sign turned, if it has one, and raised by one."""
    for name, leaf in document["instance"].items():
        for index, text in enumerate(leaf["exact"]):
            value = Fraction(text)
            if value:
                yield f"{name}[{index}] -", with_entry(document, name, index, -value)
            yield f"{name}[{index}] +1", with_entry(document, name, index, value + 1)


def listed(document: dict[str, Any]) -> dict[str, str]:
    """The alterations that are free, of the form or of all forms of its statement."""
    return FREE.get(key(document)) or FREE.get(document["statement"], {})


def names(change: str) -> set[str]:
    """How the list may call a change: by its entry, or by its field."""
    place, kind = change.split(" ")
    return {change, f"{place.partition('[')[0]} {kind}"}


def test_every_form_is_known():
    found = {key(load(path)) for path in FILES}
    assert found == set(checker.CHECKS) | set(NOT_RECOMPUTED)
    assert not set(checker.CHECKS) & set(NOT_RECOMPUTED)


@pytest.mark.parametrize("document", KNOWN)
def test_confirmed(document):
    verdict = checker.check(document)
    assert verdict.confirmed, verdict.reason


@pytest.mark.parametrize("document", [p for p in WITNESSES if p not in KNOWN])
def test_what_is_not_recomputed_is_not_confirmed(document):
    assert "no recomputation" in checker.check(document).reason


@pytest.mark.parametrize("document", ALTERED)
def test_altered_instances_are_rejected(document):
    unused = set(listed(document))
    for change, altered in alterations(document):
        free = names(change) & set(listed(document))
        unused -= free
        verdict = checker.check(altered)
        assert verdict.confirmed == bool(free), (change, verdict)
    assert not unused


@pytest.mark.parametrize("document", KNOWN)
def test_swapped_sides_are_rejected(document):
    swapped = signed({**document, "lhs": document["rhs"], "rhs": document["lhs"]})
    assert "outside of the witness's enclosure" in checker.check(swapped).reason


@pytest.mark.parametrize("side", ["lhs", "rhs"])
@pytest.mark.parametrize("document", KNOWN)
def test_moved_and_wide_enclosures_are_rejected(document, side):
    ends = [Fraction(text) for text in document[side]]
    unit = max(map(abs, ends)) or 1
    for share in (Fraction(1, 10**6), Fraction(-1, 10**6)):
        moved = signed({**document, side: [str(end + share * unit) for end in ends]})
        assert "outside of the witness's enclosure" in checker.check(moved).reason
    wide = signed({**document, side: [str(ends[0] - unit), str(ends[1] + unit)]})
    assert "too wide" in checker.check(wide).reason


def test_other_content_needs_another_digest():
    document = load(FILES[0])
    for name in ("note", "formula", "label", "digest"):
        changed = {**document, name: document[name] + " "}
        assert "digest does not match" in checker.check(changed).reason


def test_only_importing_numpy_and_mpmath():
    code = "import sys, checker; print({name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=True
    )
    assert "'mpmath'" in done.stdout
    for name in ("jax", "jaxlib", "jaxbounds", "flint", "flax", "scipy"):
        assert f"'{name}'" not in done.stdout
