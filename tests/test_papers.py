"""Every statement of every paper: its verdicts are as expected and its control is rejected."""

import dataclasses
import re
from pathlib import Path

import pytest

from jaxbounds import falsify
from jaxbounds.claims.records import RATIOS, read_records
from jaxbounds.claims.statements.kinds import BY_INSTANCE
from jaxbounds.falsification.hypothesis_coverage import never_missed
from jaxbounds.falsification.judging import REJECTED
from jaxbounds.papers import load_papers
from jaxbounds.report import closeness
from jaxbounds.report.worst import worst_known

PAPERS = load_papers()
STATEMENTS = [statement for paper in PAPERS for statement in paper.statements]
ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "jaxbounds/guide/verdicts.md"]


@pytest.fixture(autouse=True)
def without_types(request):
    """As users run it: what takes a fifth of the time here is checked where functions are tested.

    With `--jaxtyping-packages`, once a week, here as well.
    """
    if not request.config.getoption("jaxtyping_packages"):
        request.getfixturevalue("unannotated")


def _readme_table():
    """{id: {form: (verdict, how close)}} of the tables in the README and in the guide."""
    found = {}
    for line in "\n".join(page.read_text(encoding="utf8") for page in PAGES).splitlines():
        if not (row := re.match(r"(.{32})(.{20,24}?) +(holds|fails) +(\S.*?) +[a-z]+$", line)):
            continue
        if name := re.match(r"multihead\.\S+", row[1]):
            rows = found.setdefault(name[0], {})
        rows[row[2].strip()] = row[3], row[4]
    return found


def _number(words):
    """The factor in "x3.92 loose"."""
    return float(words.split()[0].removeprefix("x"))


SHOWN = _readme_table()


FEW = 4
"""Draws up to which a statement gets its whole budget at once; a quarter of so few draws decides
nothing, and each try compiles again."""


def _budgets(statement):
    """The budgets of a statement, cheapest first: compiling the searches takes most of the time.

    A statement that needs statistics gets the budget of `verify`.
    """
    statistics = statement.kind in ("probability", "expectation", "rate")
    if not statistics and statement.budget.samples > FEW:
        quarter = statement.budget.scaled(0.25)
        if statement.search != "none" and quarter.restarts:
            yield dataclasses.replace(quarter, restarts=0)
        yield quarter
    yield statement.budget


def _judged(statement):
    """Verdicts of the least budget that decides: more is tried for want of evidence only."""
    for budget in _budgets(statement):
        verdicts = falsify(statement, budget=budget)
        missed = {v.status for v in verdicts if not v.as_expected}
        if not missed or missed - {"inconclusive", "vacuous"}:
            break
    return verdicts


RECORDED = {
    id: forms for paper in load_papers() for id, forms in read_records(paper, RATIOS).items()
}
ABOVE = 1.5
"""A short run may find a ratio this many times as large as the ratio on record."""
HEAVY = {
    "multihead.cor1.1", "multihead.cor1.2", "multihead.cor1.sizes", "multihead.cor4",
    "multihead.cor5", "multihead.eq113", "multihead.eq116", "multihead.eq129", "multihead.eq14",
    "multihead.eq15", "multihead.eq20", "multihead.eq21", "multihead.eq22", "multihead.eq42",
    "multihead.eq49", "multihead.eq51", "multihead.eq65", "multihead.eq65.ends", "multihead.eq9",
    "multihead.footnote1.pooling.w", "multihead.footnote2", "multihead.kappa3", "multihead.lem11",
    "multihead.lem12", "multihead.lem13", "multihead.lem14", "multihead.lem16", "multihead.lem17",
    "multihead.lem18", "multihead.lem3", "multihead.lem7", "multihead.lem8",
    "multihead.lemma5.sizes", "multihead.prop1.1", "multihead.prop1.sizes",
    "multihead.prop3.margin", "multihead.prop3.mass", "multihead.prop4", "multihead.prop5.2",
    "multihead.prop5.a1", "multihead.prop7.distance", "multihead.runs.sizes",
    "multihead.sec5.2.phi0", "multihead.sec6.1.smoothness", "multihead.sec7.global",
    "multihead.selfbounded.model", "multihead.selfbounded.network", "multihead.stability.sizes",
    "multihead.thm3", "multihead.thm4", "qstr.asm2", "qstr.cor19", "qstr.fig1.networks",
    "qstr.lem11.norms", "qstr.lem13.pointwise", "qstr.lem18", "qstr.lem30", "qstr.lem36.order",
    "qstr.prop17.lipschitz", "qstr.prop8", "qstr.sec3.limit", "qstr.thm1.heads", "qstr.thm9",
    "seqlength.appe.chain", "seqlength.appe.cover", "seqlength.lemmae.2",
    "seqlength.lemmae.2.first", "seqlength.onset", "seqlength.sec2.1.norm",
    "seqlength.sec2.1.operator", "seqlength.thm4.1", "seqlength.thm4.2", "smapprox.appc.norms",
    "smapprox.claimc.4.gap", "smapprox.claimc.5", "smapprox.claimc.6.maps", "smapprox.condd.3.ties",
    "smapprox.lemma3.2", "smapprox.lemma3.3", "smapprox.lemmac.3", "smapprox.lemmad.7",
    "smapprox.lemmad.8", "smapprox.prop2.3", "smapprox.thm4.1", "smapprox.thm4.1.margin",
    "smapprox.thm4.1.margin.rate", "smapprox.thm4.1.norms", "smapprox.thm4.1.positions",
    "smapprox.thm4.1.size",
}  # fmt: skip
"""Statements that take 1 to 130 CPU seconds each; a longer list leaves more to other commands.

The default tests leave these statements to `jaxbounds verify`, which judges every statement with
its whole budget, and to `pytest -m slow`. A statement that README shows is none of them."""


@pytest.mark.slow
@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.id)
def test_statement_in_full(statement):
    """With all draws and searches, another seed than `verify` has."""
    for verdict in falsify(statement, seed=1):
        assert verdict.as_expected, f"{verdict.form}: {verdict.status}: {verdict.reason}"


@pytest.mark.slow
@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: s.id)
def test_every_hypothesis_excludes_something(statement):
    """Some instance beside a drawn one, one leaf moved, misses each of them."""
    assert not never_missed(statement)


def test_rates_say_which_exponent_is_expected():
    """A claim "at most" is met by every formula that is too small by a power."""
    rates = [(s.id, f) for s in STATEMENTS if s.kind == "rate" for f in s.forms]
    assert rates and all(form.exponent for _, form in rates)


def test_the_heavy_statements_are_statements_and_few():
    assert {statement.id for statement in STATEMENTS} > HEAVY and len(HEAVY) < len(STATEMENTS) / 4
    assert not HEAVY & set(SHOWN)


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(one, id=one.id, marks=[pytest.mark.slow] if one.id in HEAVY else [])
        for one in STATEMENTS
    ],
)
def test_statement(statement):
    verdicts = _judged(statement)
    for verdict in verdicts:
        assert verdict.control["status"] in REJECTED, verdict.control
        assert verdict.as_expected, f"{verdict.form}: {verdict.status}: {verdict.reason}"
        if statement.is_bound and statement.kind in BY_INSTANCE and verdict.status == "holds":
            known = RECORDED[statement.id][verdict.form]["worst"]
            assert verdict.worst_ratio <= ABOVE * max(known, 1e-9), verdict.form
        # A left side that is zero on every draw checks nothing.
        assert statement.relation == "=" or any(verdict.quantiles) or not verdict.quantiles


@pytest.mark.default_cases("multihead.eq24.loss")
@pytest.mark.parametrize("name", SHOWN)
def test_the_readme_shows_what_a_run_finds(name):
    found = {verdict.form: verdict for verdict in falsify(name)}
    for form, (status, words) in SHOWN[name].items():
        now = closeness(found[form])
        assert found[form].status == status and now.split()[-1] == words.split()[-1]
        if words.endswith("loose"):
            assert _number(now) == pytest.approx(_number(words), rel=0.03)


def test_the_readme_shows_the_ratios_on_record():
    known, compared = worst_known(PAPERS), 0
    for name, forms in SHOWN.items():
        for form, (status, words) in forms.items():
            assert (known[name, form] > 1 + 1e-6) == (status == "fails")
            if words.endswith("loose"):
                assert 1 / known[name, form] == pytest.approx(_number(words), rel=0.03)
                compared += 1
    assert compared >= 4


def test_the_readme_shows_a_table():
    assert len(SHOWN) >= 3 and all(len(forms) >= 2 for forms in SHOWN.values())
