"""Each stored witness is confirmed, and rejected once anything that matters in it is altered.

The checker is the oracle: interval arithmetic written from the papers, that imports neither the
library nor jax, while the witnesses were written by the library. The alterations are judged by a
rule, not by hand: every entry of the instance with its sign turned, and raised by one. Stored
enclosures are tight, so that a value that moves is a rejection; what may be altered is listed with
the reason, and is confirmed, so that the list cannot hide anything. Alterations of all that is not
an entry are in `test_claims`, what is no witness at all in `test_malformed`.
"""

import subprocess
import sys
from fractions import Fraction
from typing import Any

import checker
import pytest
from free import FREE
from stored import (
    ALTERED,
    FILES,
    HERE,
    KNOWN,
    NOT_RECOMPUTED,
    WITNESSES,
    decimals,
    entries_altered,
    key,
    load,
    signed,
)


def listed(document: dict[str, Any]) -> dict[str, str]:
    """The alterations that are free, of the form or of all forms of its statement."""
    return FREE.get(key(document)) or FREE.get(document["statement"], {})


def names(change: str) -> set[str]:
    """How the list may call a change: by its entry, or by its field."""
    place, kind = change.split(" ")
    return {change, f"{place.partition('[')[0]} {kind}"}


def test_every_form_is_known():
    found = {key(load(path)) for path in FILES}
    assert found == set(checker.CLAIMS) | set(NOT_RECOMPUTED)
    assert not set(checker.CLAIMS) & set(NOT_RECOMPUTED)


@pytest.mark.parametrize("document", KNOWN)
def test_confirmed(document):
    verdict = checker.check(document)
    assert verdict.confirmed, verdict.reason


@pytest.mark.parametrize("document", [p for p in WITNESSES if p not in KNOWN])
def test_what_is_not_recomputed_is_not_confirmed(document):
    assert "no recomputation" in checker.check(document).reason


@pytest.mark.slow_cases("multihead.footnote1.pooling.w.printed", "multihead.eq49.printed")
@pytest.mark.parametrize("document", ALTERED)
def test_altered_instances_are_rejected(document):
    unused = set(listed(document))
    for change, altered in entries_altered(document):
        free = names(change) & set(listed(document))
        unused -= free
        verdict = checker.check(altered)
        assert verdict.confirmed == bool(free), (change, verdict)
    assert not unused


@pytest.mark.parametrize("document", KNOWN)
def test_swapped_sides_are_rejected(document):
    swapped = signed({**document, "lhs": document["rhs"], "rhs": document["lhs"]})
    assert "outside of the witness's enclosure" in checker.check(swapped).reason


@pytest.mark.slow_cases(
    "multihead.eq14.printed-early-version-lhs", "multihead.eq14.printed-early-version-rhs"
)
@pytest.mark.parametrize("side", ["lhs", "rhs"])
@pytest.mark.parametrize("document", KNOWN)
def test_moved_and_wide_enclosures_are_rejected(document, side):
    ends = [Fraction(text) for text in document[side]]
    unit = max(map(abs, ends)) or 1
    for share in (Fraction(1, 10**6), Fraction(-1, 10**6)):
        moved = signed({**document, side: decimals(*(end + share * unit for end in ends))})
        assert "outside of the witness's enclosure" in checker.check(moved).reason
    wide = signed({**document, side: decimals(ends[0] - unit, ends[1] + unit)})
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
