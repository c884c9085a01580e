"""How a decision becomes a word: what must be so besides, each condition by itself."""

import sys

import numpy as np
import pytest
from stubs import statement

from jaxbounds.claims.statements import Budget, Counterexample, Form, Sides, Size
from jaxbounds.falsification.bench import Bench, Pool
from jaxbounds.falsification.decide import Decision
from jaxbounds.falsification.doubted import looked_again
from jaxbounds.falsification.fitness import unfit
from jaxbounds.falsification.form_judging import with_stored
from jaxbounds.falsification.judging import judge
from jaxbounds.falsification.programs import UNKEPT
from jaxbounds.falsification.second_opinion import TRUE, Referee, no_referee
from jaxbounds.falsification.trace_watch import TraceWatch

MODULE = sys.modules[judge.__module__]
pytestmark = pytest.mark.usefixtures("x64")
EDGE = 1 + 1e-9
NONE = Budget(samples=8, restarts=0, steps=0, batch=8)


def used(x):
    """A judged function."""
    return x


def other(x):
    """Another one."""
    return x


# Stored counterexamples


def _stored(x, ratio):
    return Form(name="printed", expected="holds", counterexample=Counterexample(
        instance={"x": x}, size={"d": 1}, ratio=ratio))  # fmt: skip


HOLDS, FAILS = Decision("holds", 0.25, "it is so"), Decision("fails", 7.0, "it is not so")


@pytest.mark.parametrize("x, ratio, before, after, value", [
    (6.0, 3.0, HOLDS, Decision("fails", 3.0, "the stored counterexample violates the form"), 3.0),
    (6.0, 3.0, FAILS, FAILS, 3.0), (2.0, 1.0, HOLDS, "inconclusive", 1.0),
    (3.0, 1.5, FAILS, FAILS, 1.5), (2 * EDGE, EDGE, HOLDS, "inconclusive", EDGE),
    (2.0, 1.0, FAILS, "inconclusive", 1.0),
    # To a millionth of the ratio that is recorded.
    (6.0, 3 * (1 + 0.95e-6), FAILS, FAILS, 3.0), (6.0, 3 * (1 - 0.95e-6), FAILS, FAILS, 3.0),
    (6.0, 3 * (1 + 1.05e-6), FAILS, "inconclusive", 3.0),
    (6.0, 3 * (1 - 1.05e-6), FAILS, "inconclusive", 3.0),
])  # fmt: skip
def test_a_stored_counterexample_must_violate_with_its_ratio(x, ratio, before, after, value):
    form = _stored(x, ratio)
    bench = Bench(statement(forms=(form,)), 8, UNKEPT)
    found, told = with_stored(bench, form, 0, before)
    assert told == value
    if isinstance(after, Decision):
        assert found == after
    else:
        assert (found.status, found.ratio) == (after, before.ratio)
        assert f"without the counterexample: {before.status}, {before.reason}" in found.reason
        assert ("satisfies the form" in found.reason) == (value <= EDGE)


def test_without_a_stored_counterexample_nothing_changes():
    form = Form(name="printed")
    assert with_stored(Bench(statement(), 8, UNKEPT), form, 0, HOLDS) == (HOLDS, None)


def test_a_stored_counterexample_is_one_of_its_own_form():
    two = lambda i, s: Sides(i["x"], {"derived": 100.0, "printed": 2.0, "control": -9.0})
    form = _stored(6.0, 3.0)
    bench = Bench(statement(two, forms=(Form(name="derived"), form)), 8, UNKEPT)
    assert with_stored(bench, form, 1, HOLDS)[0].status == "fails"
    assert with_stored(bench, form, 0, HOLDS)[0].status == "inconclusive"


# What was measured, and who saw it


@pytest.mark.parametrize("narrow, fixed, called, says", [
    ((), None, (used, other), []), ((), True, (used, other), []),
    (("float32 in a",), True, (used, other), ["rounds in float32 in a"]),
    (("float32 in a", "b"), None, (used, other), ["rounds in float32 in a and 1 more"]),
    (("float32 in a", "b", "c"), None, (used, other), ["rounds in float32 in a and 2 more"]),
    ((), False, (used, other), ["returns different values"]),
    ((), True, (used,), ["judges names", "other, which evaluate never calls"]),
    (("b",), False, (), ["rounds in b", "different values", "judges names"]),
])  # fmt: skip
def test_why_a_program_is_not_the_one_meant(narrow, fixed, called, says):
    watch = TraceWatch(statement(judges=(used, other)))
    watch.narrow, watch.fixed = narrow, fixed
    watch.called = {f"{f.__module__}.{f.__qualname__}" for f in called}
    found = "; ".join(unfit(watch))
    assert all(one in found for one in says) and bool(found) == bool(says)
    if len(narrow) == 1:
        assert " more" not in found


def test_a_program_in_narrow_floats_says_why_and_what_to_try():
    watch = TraceWatch(statement(judges=()))
    watch.narrow = ("reduce_sum in float32 (a.py:1)", "mul in float32 (a.py:1)")
    assert next(unfit(watch)).endswith("and 1 more. Try to leave out astype and dtype= there")
    watch.narrow = ("reduce_sum in float32 (a.py:1)", "div in float32 (a.py:1)")
    assert "Try jnp.mean(jnp.where(x, 1.0, 0.0))" in next(unfit(watch))
    watch.constants = ("float32 of shape (4, 3)",)
    (found,) = unfit(watch)
    assert "A constant is float32 of shape (4, 3), as jnp.array makes it while a file" in found
    assert found.endswith(
        "Try np.array for the constant, and jnp.asarray of it inside the function"
    )


# A violation is looked at again


def _again(*args, **kwargs):
    return _both(*args, **kwargs)[0]


def _both(x, referee=no_referee, narrow=(), form=None, decision=FAILS, asked=None):
    form = form or Form(name="printed")
    two = lambda i, s: Sides(i["x"], {"derived": 1e9, "printed": 2.0, "control": -9.0})
    claim = statement(two, forms=(Form(name="derived"), form), sizes=({"d": 1}, {"d": 2}))
    bench, pool = Bench(claim, 8, UNKEPT), Pool()
    bench.watch.narrow = narrow
    for size, part in enumerate((x[:2], x[2:])):
        batch = {"x": np.array(part)}
        pool.add("draws", size, batch, bench(batch, Size(claim.sizes[size])))

    def asking(claim, form, instance, size):
        if asked is not None:
            asked.append((form.name, float(instance["x"]), size["d"]))
        return referee(claim, form, instance, size)

    return looked_again(bench, pool, pool.columns()[1], form, decision, asking)


def test_the_worst_violation_is_looked_at_where_it_stands():
    asked = []
    doubt = lambda *_: Referee("undecided", "nobody knows")
    small = 2 * (1 + 1e-9) * (1 + 5e-7)
    found = _again([0.0, 1.0, small, 0.5], doubt, asked=asked)
    assert (found.status, found.ratio) == ("inconclusive", 7.0) and "nobody knows" in found.reason
    assert set(asked) == {("printed", small, 2)}
    asked.clear()
    assert _again([small, 3.0, small, 0.5], doubt, asked=asked) is FAILS
    assert [about[:2] for about in asked] == [("printed", 3.0)]
    assert _again([0.0, small, 1.0, 0.5], lambda *_: Referee("disproved", "so")) is FAILS


def test_where_no_draw_violates_the_stored_counterexample_is_looked_at():
    asked = []
    small = 2 * (1 + 1e-9) * (1 + 5e-7)
    doubt = lambda *_: Referee("undecided", "nobody knows")
    found = _again([0.0, 1.0, 1.0, 0.5], doubt, form=_stored(small, 1.0), asked=asked)
    assert found.status == "inconclusive" and asked == [("printed", small, 1)]
    assert _again([0.0, 1.0, 1.0, 0.5], doubt, form=_stored(6.0, 3.0)) is FAILS
    # On the edge a draw does not violate.
    assert _again([0.0, 2 * EDGE, 1.0, 0.5], doubt, form=_stored(6.0, 3.0)) is FAILS


# The whole


PRINTED = (Form(name="printed"),)


def _judged(sides, x=(0.25, 0.5, 0.75), forms=PRINTED, **options):
    cases = options.pop("cases", lambda size: {"x": np.array(x)})
    found = judge(statement(sides, cases=cases, forms=forms, **options), budget=NONE, seed=0,
                  programs=UNKEPT)  # fmt: skip
    return [decision for decision, _ in found.decisions], found


def _over(rhs, control=-9.0):
    return lambda i, s: Sides(i["x"], {"printed": rhs, "control": control})


@pytest.mark.parametrize("rhs, control, status, says", [
    (2.0, -9.0, "holds", ""), (2.0, 0.5, "holds", ""),
    (2.0, 3.0, "inconclusive", "variant, was not rejected (holds: "),
    (2.0, 0.75, "inconclusive", "variant, was not rejected (inconclusive: "),
    (0.5, 3.0, "fails", "violate it"), (0.75, 3.0, "inconclusive", "up to rounding"),
])  # fmt: skip
def test_nothing_holds_unless_the_control_is_rejected(rhs, control, status, says):
    (decision,), _ = _judged(_over(rhs, control))
    assert decision.status == status and says in decision.reason


SHARP = Form(name="printed", equality="x = y")


@pytest.mark.parametrize("rhs, form, kind, status", [
    (2.0, SHARP, "inequality", "inconclusive"), (2.0, Form(name="printed"), "inequality", "holds"),
    (0.7501, SHARP, "inequality", "holds"), (0.76, SHARP, "inequality", "inconclusive"),
    (2.0, SHARP, "trajectory", "inconclusive"),
])  # fmt: skip
def test_a_named_equality_case_must_be_found(rhs, form, kind, status):
    (decision,), found = _judged(_over(rhs), forms=(form,), kind=kind)
    assert decision.status == status and found.near == [rhs < 0.757]
    assert ("the named equality case: x = y" in decision.reason) == (status != "holds")


def test_an_average_has_no_equality_case_to_be_found():
    many = np.linspace(0.0, 1.0, 200)  # none of 200: at most .037
    (decision,), _ = _judged(_over(2.0, 0.1), many, forms=(SHARP,), kind="expectation")
    assert decision.status == "holds"
    (decision,), _ = _judged(_over(2.0, 0.1), many, forms=(SHARP,), kind="probability", level=0.1)
    assert decision.status == "holds"


def test_a_fit_is_as_strict():
    sizes, cases = tuple({"n": 2.0**k} for k in range(2, 8)), lambda size: {"x": np.zeros(1)}
    form = (Form(name="printed", sense="at most"),)
    for power, word in ((2.0, "consistent"), (0.5, "inconclusive")):
        sides = lambda i, s, p=power: Sides(
            s["n"], {"printed": s["n"], "control": s["n"] ** (1 / p)}
        )
        (decision,), _ = _judged(sides, cases=cases, forms=form, sizes=sizes, kind="rate")
        assert decision.status == word
    assert "variant, was not rejected (consistent: " in decision.reason


def test_a_vacuous_claim_says_what_was_missed():
    flags = lambda i, s: {"x > 9": i["x"] > 9, "x > 0.3": i["x"] > 0.3}
    (decision,), found = _judged(_over(2.0), hypotheses=flags)
    assert decision.status == "vacuous" and found.left_out == {"x > 9": 3, "x > 0.3": 1}
    assert ": 1 missed 'x > 0.3', 3 missed 'x > 9'. Try sets" in decision.reason
    trivial = lambda i, s: Sides(i["x"], {"printed": 2.0, "control": -9.0}, trivial=1.0)
    (decision,), _ = _judged(trivial)
    assert (
        decision.status == "vacuous"
        and decision.reason == "the bound never beats the trivial bound"
    )
    (decision,), _ = _judged(trivial, hypotheses=lambda i, s: {"x > 0.3": i["x"] > 0.3})
    assert decision.reason == "the bound never beats the trivial bound: 1 missed 'x > 0.3'"
    # What is not vacuous has its own reason, and what is vacuous stays so.
    (decision,), _ = _judged(_over(2.0), hypotheses=lambda i, s: {"x > 0.3": i["x"] > 0.3})
    assert (decision.status, decision.reason) == ("holds", "every ratio stays below one")
    (decision,), _ = _judged(_over(2.0), hypotheses=flags, forms=(SHARP,))
    assert decision.status == "vacuous"


@pytest.mark.parametrize("kind, asked", [("expectation", True), ("inequality", False)])
def test_what_lies_beside_the_draws_is_looked_at_for_means_alone(kind, asked, monkeypatch):
    seen = []
    beside = lambda bench, pool: seen.append(1) or [(-9.0, 1e6)] * 2
    monkeypatch.setattr(MODULE, "reach", beside)
    (decision,), found = _judged(_over(2.0, 0.1), np.linspace(0.0, 1.0, 200), kind=kind)
    assert decision.status == ("inconclusive" if asked else "holds") and bool(seen) == asked
    assert (found.columns[0].reach == (-9.0, 1e6)) == asked


@pytest.mark.parametrize("restarts", [0, 3])
def test_far_places_are_looked_at_where_there_is_a_search(restarts, monkeypatch):
    seen = []
    monkeypatch.setattr(MODULE, "extrapolate", lambda bench, pool, referee, seed: seen.append(seed))
    claim = statement(_over(2.0))
    judge(claim, budget=Budget(restarts=restarts, steps=1, batch=8), seed=5, programs=UNKEPT)
    assert seen == ([5] if restarts else [])


def test_each_form_has_its_own_decision():
    forms = (
        Form(name="printed"),
        SHARP.__class__(name="derived", equality="x = y"),
        Form(name="corrected"),
    )
    sides = lambda i, s: Sides(
        i["x"], {"printed": 2.0, "derived": 2.0, "corrected": 0.5, "control": -9.0}
    )
    decisions, found = _judged(sides, forms=forms)
    assert [one.status for one in decisions] == ["holds", "inconclusive", "fails"]
    assert found.near == [False, False, True] and len(found.columns) == 4
    assert found.controls[0].status == "fails" and found.left_out == {}


@pytest.mark.parametrize(
    "drift, status", [(0.95e-9, "holds"), (1.05e-9, "inconclusive"), (0.0, "holds")]
)
def test_on_the_host_another_call_gives_the_same(drift, status):
    calls = []

    def drifting(instance, size):
        calls.append(1)
        return Sides(
            instance["x"] * (1 + drift * (len(calls) > 3)), {"printed": 2.0, "control": -9.0}
        )

    (decision,), found = _judged(drifting)
    assert decision.status == status and found.bench.watch.fixed == (status == "holds")


def test_a_first_instance_that_is_no_number_is_the_same_again():
    gone = lambda i, s: Sides(
        np.where(i["x"] < 0.3, np.nan, i["x"]), {"printed": 2.0, "control": -9.0}
    )
    (decision,), found = _judged(gone)
    assert found.bench.watch.fixed and "gave NaN" in decision.reason


def test_rounding_is_doubted_where_one_instance_decides_and_not_in_a_frequency():
    small = 2 * (1 + 1e-9) * (1 + 5e-7)
    (decision,), _ = _judged(_over(2.0), [0.1, small, 0.3])
    assert decision.status == "inconclusive" and "may be rounding of terms" in decision.reason
    many = small + np.linspace(0, 1e-9, 200)
    (decision,), _ = _judged(_over(2.0), many, kind="probability", level=0.1)
    assert decision.status == "fails"


def test_an_artefact_hides_no_violation():
    """The largest is of the size of rounding, twice as large as what stands: that is judged."""
    large = lambda claim, form, instance, size: Referee(
        "undecided", TRUE if float(instance["x"]) > 5 else "nobody knows"
    )
    found, column = _both([0.0, 9.0, 4.0, 3.0, 1.0], large)
    assert found.status == "fails" and found.ratio == 2.0
    assert np.asarray(column.measured.counted).tolist() == [True, False, True, True, True]
