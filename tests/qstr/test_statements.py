"""The paper's errata, items and statements cite each other; the verdicts are in test_papers.py."""

import importlib

import pytest

from jaxbounds.qstr.statements import PAPER

KNOWN = {s.id for s in PAPER.statements} | {erratum.id for erratum in PAPER.errata}


def test_every_erratum_that_names_a_statement_finds_it():
    cited = {form.erratum for s in PAPER.statements for form in s.forms if form.erratum}
    assert cited <= {erratum.id for erratum in PAPER.errata}
    for erratum in PAPER.errata:
        if erratum.evidence.startswith("qstr."):
            assert erratum.evidence in KNOWN


def test_errata_come_by_weight():
    order = ["false", "gap", "reading", "typo", "undecidable"]
    ranks = [order.index(erratum.kind) for erratum in PAPER.errata]
    assert ranks == sorted(ranks) and all(erratum.quote for erratum in PAPER.errata)


@pytest.mark.parametrize("place", PAPER.items)
def test_items_name_what_exists(place):
    entry = PAPER.items[place]
    if entry.startswith("code: "):
        module, name = entry.removeprefix("code: ").rsplit(".", 1)
        assert hasattr(importlib.import_module(module), name)
    elif not entry.startswith("none: "):
        assert set(entry.split(", ")) <= KNOWN


def test_every_numbered_item_is_listed():
    """Counted in the text: 42 numbered results and definitions, 3 assumptions, 24 displays."""
    numbered = {name.split()[-1] for name in PAPER.items if name.split()[-1].isdigit()}
    assert {str(k) for k in range(1, 43)} <= numbered
    displays = [("2", 4), ("A", 4), ("C", 16)]
    assert all(f"({s}.{k})" in PAPER.items for s, last in displays for k in range(1, last + 1))


def test_the_hypotheses_of_counterexamples_hold():
    stored = [form for s in PAPER.statements for form in s.forms if form.counterexample]
    assert len(stored) == 4
    for form in stored:
        found = form.counterexample.meets(form.counterexample.instance, form.counterexample.size)
        assert len(found) >= 3 and all(bool(value) for value in found.values())
