"""The stored witnesses, and how a test alters one."""

import copy
import json
from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import checker
import pytest

HERE = Path(__file__).parent
FILES = sorted((HERE / "files").glob("*.json"))

NOT_RECOMPUTED = {
    ("smapprox.lemma3.3", "printed"): "its left side is a margin that the library certifies for "
    "a network of its own; the paper has 1/poly(s) with no constant",
}

SLOW = {"multihead.eq14", "qstr.thm1.heads"}
"""With these, a recomputation takes a tenth of a second or longer."""


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
QUICK = [p for p in KNOWN if key(p.values[0])[0] not in SLOW]


def signed(document: dict[str, Any]) -> dict[str, Any]:
    """With the digest of its content: an alteration is not told by its digest."""
    return {**document, "digest": checker.digest(document)}


def with_entry(document: dict[str, Any], name: str, index: int, value: Fraction) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    changed["instance"][name]["exact"][index] = str(value)
    return signed(changed)


def entries_altered(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every entry with its sign turned, if it has one, and raised by one, as a float."""
    for name, leaf in document["instance"].items():
        for index, text in enumerate(leaf["exact"]):
            value = Fraction(text)
            raised = value + 1 if leaf["type"] != "f" else Fraction(float(value + 1))
            if value:
                yield f"{name}[{index}] -", with_entry(document, name, index, -value)
            yield f"{name}[{index}] +1", with_entry(document, name, index, raised)


def decimals(lower: Fraction, upper: Fraction) -> list[str]:
    """Two decimals of 30 digits about both, as witnesses have them."""
    found = []
    for end, rounding in ((lower, ROUND_FLOOR), (upper, ROUND_CEILING)):
        with localcontext(prec=30, rounding=rounding):
            found.append(str(Decimal(end.numerator) / Decimal(end.denominator)))
    return found
