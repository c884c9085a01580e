"""Which word a column of measurements gets, at each border of each rule.

The tolerances are powers of two, so that 1 + tolerance and the differences here are exact.
"""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest
from stubs import TENTH, column, statement

import jaxbounds as jb
from jaxbounds.claims.sets import Signs
from jaxbounds.claims.statements import ON_AVERAGE, Form
from jaxbounds.falsification import decide as module
from jaxbounds.falsification.decide import Decision, decide, edge, violation

PLAIN = Form(name="printed")
SHARP = Form(name="printed", equality="x = y")
TINY = 2.0**-30
BOUND = statement(tolerance=TENTH, estimates={"rhs": "below"})
EQUAL = statement(kind="identity", tolerance=2.0**-20)
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("relation, found", [
    ("<=", 1 + TENTH), (">=", 1 + TENTH), ("=", 1000 * TENTH),
])  # fmt: skip
def test_an_edge_is_a_tolerance_above_one_or_a_thousand_above_nothing(relation, found):
    assert edge(statement(relation=relation, tolerance=TENTH)) == found


def test_what_does_not_count_or_has_no_least_value_violates_nothing():
    found = violation(
        BOUND, column([2, 2, 2, 1], counted=[1, 0, 1, 1], low=[2, 2, -INF, 1]).measured
    )
    np.testing.assert_array_equal(found, [1 - TENTH, -INF, -INF, -TENTH])
    infinite = violation(BOUND, column([INF, NAN]).measured)
    np.testing.assert_array_equal(infinite, [INF, -INF])


def test_each_kind_that_no_instance_refutes_has_a_rule_of_its_own(monkeypatch):
    rules = {name: rule for name, rule in vars(module).items() if name.startswith("judged_")}
    for name in rules:
        monkeypatch.setattr(module, name, lambda *given, name=name: Decision("holds", 0.5, name))
    form, found = Form(name="printed", sense="at most"), []
    for kind in ON_AVERAGE:
        claim = SimpleNamespace(kind=kind, level=0.1, tolerance=TENTH, is_bound=True, relation="<=")
        found.append(decide(claim, form, column([2.0])).reason)
    assert sorted(found) == sorted(rules), dict(zip(ON_AVERAGE, found))


def test_a_kind_without_a_rule_is_refused():
    with pytest.raises(NotImplementedError, match=r"kind='no kind' has no rule .*Try"):
        decide(SimpleNamespace(kind="no kind"), PLAIN, column([2.0]))


@pytest.mark.parametrize("form, given, status, ratio", [
    # Beyond the edge by the smallest amount, and on it.
    (SHARP, {"value": [0.5, 1 + TENTH + TINY]}, "fails", 1 + TENTH + TINY),
    (SHARP, {"value": [0.5, 1 + TENTH]}, "holds", 1 + TENTH),
    (PLAIN, {"value": [0.5, 1 + TENTH]}, "inconclusive", 1 + TENTH),
    (None, {"value": [0.5, 1 + TENTH]}, "inconclusive", 1 + TENTH),
    # One that fails is enough, and the ratio is the largest, whatever else is not known.
    (PLAIN, {"value": [3, NAN, 2, 0.5]}, "fails", 3.0),
    (PLAIN, {"value": [NAN], "low": 3, "high": 3}, "fails", NAN),
    (PLAIN, {"value": [3, 2], "low": [0.1, 1.5], "high": [9, 2]}, "fails", 3.0),
    # Each number of a measurement that is none decides nothing.
    (PLAIN, {"value": [0.5, NAN], "low": 0.5, "high": 0.5}, "inconclusive", NAN),
    (PLAIN, {"value": 0.5, "low": [0.5, NAN], "high": 0.5}, "inconclusive", NAN),
    (PLAIN, {"value": 0.5, "low": 0.5, "high": [NAN, 0.5]}, "inconclusive", NAN),
    (PLAIN, {"value": 0.5, "low": 0.5, "high": 0.5, "error": [NAN, 0]}, "inconclusive", NAN),
    # Below one by more than the tolerance, of the greatest value that the error allows.
    (PLAIN, {"value": [0.5, 1 - TENTH - TINY]}, "holds", 1 - TENTH - TINY),
    (PLAIN, {"value": [0.5, 1 - TENTH]}, "inconclusive", 1 - TENTH),
    (PLAIN, {"value": [0.5, 0.25], "high": [1, 0.25]}, "inconclusive", 0.5),
    # Where the value is more than the edge and its least value is not, it may be an equality.
    (SHARP, {"value": 1 + TENTH + TINY, "low": [1.0], "high": 1 + TENTH + TINY}, "holds",
     1 + TENTH + TINY),
    # Vacuous only where no instance says more than the trivial bound.
    (PLAIN, {"value": [0.5, 0.25], "trivial": [1, 1]}, "vacuous", 0.5),
    (PLAIN, {"value": [0.5, 0.25], "trivial": [1, 0]}, "holds", 0.5),
    (PLAIN, {"value": [0.5, 2], "trivial": [1, 1]}, "fails", 2.0),
    # An error bar wider than a thousandth that reaches beyond the edge cannot be an equality.
    (SHARP, {"value": [1, 0.5], "low": [0.9995, 0.5], "high": [1.00055, 0.5]}, "holds", 1.0),
    (SHARP, {"value": 1, "low": [1 + TENTH - 0.00095], "high": [1 + TENTH + TINY]}, "holds", 1.0),
    (SHARP, {"value": 1, "low": [1 + TENTH - 0.00105], "high": [1 + TENTH + TINY]},
     "inconclusive", 1.0),
    (SHARP, {"value": 1, "low": [0.9, 1], "high": [1 + TENTH + TINY, 1]}, "inconclusive", 1.0),
    (SHARP, {"value": 1, "low": [0.99], "high": [1 + TENTH]}, "holds", 1.0),
    (SHARP, {"value": [1, 1], "low": [0.5, 1], "high": [1, 1 + TENTH + TINY]}, "holds", 1.0),
    # What a search cannot support as a violation: not for the control, which has no search.
    (SHARP, {"value": [2, 0.5], "low": [-INF, 0.5], "high": [2, 0.5]}, "inconclusive", 2.0),
    (SHARP, {"value": [1 + TENTH, 0.5], "low": [-INF, 0.5], "high": [1 + TENTH, 0.5]}, "holds",
     1 + TENTH),
])  # fmt: skip
def test_the_word_of_an_inequality(form, given, status, ratio):
    found = decide(BOUND, form, column(**given))
    assert found.status == status
    assert found.ratio == ratio or (math.isnan(ratio) and math.isnan(found.ratio))


@pytest.mark.parametrize("there_is, estimates, says", [
    (True, {}, ("the search found no s for 2 of 3 instances", "does not prove")),
    (False, {"rhs": "below"},
     ("2 of 3 instances seem to violate the claim", "estimates the rhs from below")),
])  # fmt: skip
def test_what_a_search_cannot_support_is_said(there_is, estimates, says):
    signs = {"there_is": {"s": Signs(2)}} if there_is else {}
    claim = statement(host=False, estimates=estimates, tolerance=TENTH, **signs)
    found = decide(claim, PLAIN, column([2, 3, 0.5], low=-INF))
    assert found.status == "inconclusive" and all(word in found.reason for word in says)


def test_which_numbers_are_none_is_counted():
    found = decide(BOUND, PLAIN, column([NAN, 0.5, NAN]))
    assert found.reason.startswith("evaluate gave NaN on 2 of 3 instances")
    # The value is there, but what was stated of its error is not.
    found = decide(BOUND, PLAIN, column([0.5, 0.5, NAN, NAN], error=[NAN, 0, NAN, NAN]))
    assert found.reason.startswith("the stated error of 1 instances")
    assert "project" not in found.reason


@pytest.mark.parametrize("search, told", [("none", False), ("random", True)])
def test_a_projection_is_advised_where_there_is_a_search(search, told):
    found = decide(statement(search=search), PLAIN, column([NAN]))
    assert ("`project`" in found.reason) == told


@pytest.mark.parametrize("given, status, ratio", [
    ({"value": [0, 2.0**-20]}, "holds", 2.0**-20),
    ({"value": [0, 2.0**-20], "high": [0, 2.0**-20 + TINY]}, "inconclusive", 2.0**-20),
    ({"value": [0, 1000 * 2.0**-20]}, "inconclusive", 1000 * 2.0**-20),
    ({"value": [0, 1000 * 2.0**-20 + TINY]}, "fails", 1000 * 2.0**-20 + TINY),
    ({"value": [0, NAN]}, "inconclusive", NAN),
])  # fmt: skip
def test_the_word_of_an_identity(given, status, ratio):
    found = decide(EQUAL, PLAIN, column(**given))
    assert found.status == status
    assert found.ratio == ratio or (math.isnan(ratio) and math.isnan(found.ratio))


@pytest.mark.parametrize("kind", ["inequality", "identity", "probability", "expectation"])
def test_without_an_instance_there_is_no_word(kind):
    level = {"level": 0.5} if kind == "probability" else {}
    found = decide(statement(kind=kind, **level), PLAIN, column([0.5, 2], counted=False))
    assert found.status == "vacuous" and math.isnan(found.ratio)
    # Of one that counts all is said, and of the others nothing.
    found = decide(statement(), PLAIN, column([0.5, 2, NAN], counted=[1, 0, 0]))
    assert (found.status, found.ratio) == ("holds", 0.5)
    # What meets the hypotheses and is below the error is of no weight where one instance decides.
    found = decide(statement(), PLAIN, column([0.5, 2], counted=[1, 0], met=True))
    assert (found.status, found.ratio) == ("holds", 0.5)


def _frequency(value, form=PLAIN, **given):
    level, tolerance = given.pop("level", 0.05), given.pop("tolerance", 1e-9)
    claim = statement(
        kind="probability", level=level, tolerance=tolerance, sizes=({"d": 1}, {"d": 2})
    )
    return decide(claim, form, column(value, **given))


ROWS = 1000
"""None of them fails: at most .0076 = 1 - .0005^(1/1000) at 99.9%, in two tails."""


def test_a_frequency_is_held_against_its_level():
    assert _frequency(np.zeros(ROWS), level=0.0077).status == "holds"
    assert _frequency(np.zeros(ROWS), level=0.0075).status == "inconclusive"
    assert _frequency(np.full(ROWS, 2.0)).status == "fails"
    # On the edge nothing fails.
    assert _frequency(np.full(ROWS, 1 + TENTH), tolerance=TENTH).status == "holds"
    assert _frequency(np.full(ROWS, 1 + TENTH), tolerance=2.0**-11).status == "fails"


def test_sizes_are_judged_by_themselves():
    # Together 5% fail; at one size 10% do, of which the interval starts at .07.
    late = np.repeat([0.0, 2.0], [1900, 100])
    assert _frequency(late, level=0.069, sizes=np.repeat([0, 1], 1000)).status == "fails"
    assert _frequency(late, level=0.069, sizes=0).status == "holds"


def test_what_the_error_leaves_open_counts_in_a_frequency():
    # A tenth meet the hypotheses and are below the error: they may fail.
    kept = np.arange(ROWS) >= 100
    given = {"counted": kept, "met": np.ones(ROWS, bool), "level": 0.05}
    assert _frequency(np.zeros(ROWS), **given).status == "inconclusive"
    assert _frequency(np.zeros(ROWS), **(given | {"met": kept})).status == "holds"


def test_repeated_draws_are_one():
    few = np.arange(ROWS) % 5
    assert _frequency(np.zeros(ROWS), labels=few).status == "inconclusive"
    # And of each size those that are drawn there.
    again = np.where(np.arange(ROWS) < 5, 0, np.arange(ROWS))
    both = {"sizes": (np.arange(ROWS) < 5).astype(int), "labels": again}
    assert _frequency(np.zeros(ROWS), **both).status == "inconclusive"
    both["labels"] = np.arange(ROWS)
    assert "5 draws are" not in _frequency(np.zeros(ROWS), **both).reason


@pytest.mark.parametrize("trivial, status", [([True] * ROWS, "vacuous"),
                                             ([True] * (ROWS - 1) + [False], "holds")])  # fmt: skip
def test_a_frequency_that_a_trivial_bound_keeps_is_vacuous(trivial, status):
    assert _frequency(np.zeros(ROWS), trivial=trivial).status == status
    # What fails is not vacuous.
    assert _frequency(np.full(ROWS, 2.0), trivial=trivial).status == "fails"


def test_a_mean_is_of_the_difference_and_as_far_as_was_seen():
    claim = statement(kind="expectation", sizes=({"d": 1}, {"d": 2}))
    lhs = np.linspace(0.0, 1.0, ROWS)
    assert decide(claim, PLAIN, column(lhs, lhs=lhs, rhs=0.7)).status == "holds"
    assert decide(claim, PLAIN, column(lhs, lhs=lhs, rhs=0.3)).status == "fails"
    # Beside the draws it may be a thousand: nothing is known of the mean.
    far = decide(claim, PLAIN, column(lhs, lhs=lhs, rhs=0.7, reach=(0.0, 1e3)))
    assert far.status == "inconclusive"
    apart = column(lhs, lhs=lhs, rhs=0.7, sizes=np.repeat([0, 1], ROWS // 2))
    assert decide(claim, PLAIN, apart).status == "fails"  # 3/4 of the upper half
    late = decide(claim, PLAIN, column(lhs, lhs=lhs, rhs=0.7, trivial=True))
    assert late.status == "vacuous"


def _rate(lhs, form=0, senses=("exactly",), **given):
    n = 2.0 ** np.arange(len(lhs))
    names = ("printed", "derived")
    forms = tuple(Form(name=name, sense=sense) for name, sense in zip(names, senses))
    sizes = tuple({"d": 2**k} for k in range(len(lhs)))
    claim = statement(kind="rate", forms=forms, sizes=sizes)
    one = column(lhs, lhs=lhs, rhs=n, sizes=np.arange(len(lhs)), **given)
    return decide(claim, None if form is None else claim.forms[form], one)


def test_a_rate_is_judged_by_its_sense_the_control_too():
    n = 2.0 ** np.arange(6)
    assert _rate(3 * n).status == "consistent" and _rate(n**2).status == "inconsistent"
    assert _rate(n**2).ratio == pytest.approx(2.0)
    for form, senses, word in (
        (0, ("at least", "at most"), "consistent"),
        (1, ("at least", "at most"), "inconsistent"),
        (1, ("at most", "at least"), "consistent"),
        (None, ("at least", "at most"), "consistent"),  # the control: by that of the first
        (None, ("at most", "at least"), "inconsistent"),
    ):
        assert _rate(n**2, form, senses).status == word


def test_a_rate_of_which_an_instance_is_lost_is_not_told():
    n = 2.0 ** np.arange(6)
    kept = np.arange(6) != 2
    found = _rate(3 * n, counted=kept, met=True)
    assert found.status == "inconclusive" and "both sides on 1 instances" in found.reason
    # One outside the hypotheses is no loss: the others stand at their own sizes.
    assert _rate(np.where(kept, n, 99.0), counted=kept).status == "consistent"


def test_a_limit_is_judged_at_the_sizes_that_count():
    sizes = tuple({"n": 2**k} for k in range(3, 8))
    claim = statement(kind="limit", towards={"n": math.inf}, sizes=sizes)
    n = 2.0 ** np.arange(3, 8)
    one = lambda value: column(value, rhs=0.0, sizes=np.arange(5))
    assert decide(claim, PLAIN, one(3 / n)).status == "consistent"
    assert decide(claim, PLAIN, one(0.3 + 0 / n)).status == "inconsistent"
    # The order of the columns is not that of the sizes, and what does not count is not read.
    back = np.append(np.arange(5)[::-1], 0)
    mixed = column(np.append(3 / n[::-1], 77), sizes=back, counted=np.arange(6) < 5, rhs=0.0)
    assert decide(claim, PLAIN, mixed).status == "consistent"


def test_hypotheses_that_no_tried_entry_meets_decide_nothing():
    sets = {"over": {"a": jb.Box(0, 1)}, "there_is": {"s": jb.Box(-1, 1)}}
    made = jb.claim("mine.there", lambda a: a, "<=", lambda s: s, **sets)
    found = decide(made, PLAIN, column([NAN], counted=False))
    assert found.status == "inconclusive" and "with any tried s" in found.reason
    assert "Try witness= with a function that returns a point" in found.reason


def test_sides_that_cancel_name_a_tolerance_with_which_the_claim_holds():
    own = decide(EQUAL, PLAIN, column([2.0**-15])).reason
    assert own.endswith(
        "If rounding causes the difference, try tolerance=7e-05, or sides without terms that cancel"
    )
    made = jb.claim("mine.eq", lambda x: x, "=", lambda x: x, over={"x": jb.Reals(())})
    said = decide(made, PLAIN, column([3.8e-8])).reason
    assert said.endswith("try tolerance=8e-08, or smaller sets in over=")
    held = dataclasses.replace(made, tolerance=8e-08)
    assert decide(held, PLAIN, column([3.8e-8])).status == "holds"
    hides = column([3.8e-8], high=[2e-6], counted=False, met=True)
    assert decide(made, PLAIN, hides).reason.endswith(
        "Try tolerance=4e-06, or tolerance=8e-08 and no error="
    )
    wide = column([3.8e-8], high=[1e-5], counted=False, met=True)
    assert decide(made, PLAIN, wide).reason.endswith("Try tolerance=8e-08 and no error=")
