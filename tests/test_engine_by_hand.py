"""Parts of the engine that decide words, each against values computed by hand on paper.

Independent of the engine: the expected numbers stand here, and come from no function of it.
"""

import io
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

import jaxbounds as jb
from jaxbounds.claims.statements import Size
from jaxbounds.constants import sizes as constant_sizes
from jaxbounds.constants.limits import _families
from jaxbounds.constants.polish import Point
from jaxbounds.constants.snapping import tied
from jaxbounds.experiments.sweeps import reporting
from jaxbounds.falsification import Programs
from jaxbounds.falsification.averages import Group, judged_expectation, judged_probability
from jaxbounds.falsification.bench import Bench, Column, Pool
from jaxbounds.falsification.decide import _worst
from jaxbounds.falsification.evidence import by_size
from jaxbounds.falsification.measure import Measured
from jaxbounds.falsification.programs import UNKEPT
from jaxbounds.falsification.rates import SETTLES, _decays
from jaxbounds.falsification.reach import _beyond, reach
from jaxbounds.falsification.shrink import _complexity
from jaxbounds.falsification.trace_watch import TraceWatch
from jaxbounds.ground.to_json import to_json
from jaxbounds.networks.curvature.lanczos import Extremes


def measured(value, *, lhs=None, rhs=None, error=None, low=None, high=None, counted=True):
    value = np.asarray(value, float)
    like = lambda given, otherwise: np.asarray(otherwise if given is None else given, float)
    flags = np.full(value.shape, counted)
    return Measured(
        value=value, low=like(low, value), high=like(high, value), counted=flags,
        lhs=like(lhs, value), rhs=like(rhs, np.ones(value.shape)), trivial=~flags, met=flags,
        error=like(error, np.zeros(value.shape)),
    )  # fmt: skip


def statement(evaluate, *, kind="inequality", forms=("printed",), sizes=({"d": 2},), **more):
    sample = lambda key, size: {"x": jax.random.normal(key, (size["d"],))}
    return jb.Statement(
        id="mine.one", label="1", formula="f <= g", kind=kind, evaluate=evaluate, sizes=sizes,
        judges=(length,), sample=sample, forms=tuple(jb.Form(name=n) for n in forms),
        control="half", **more,
    )  # fmt: skip


def length(x):
    """For the statements here."""
    return jnp.sqrt(x @ x)


# Curvature


@pytest.mark.parametrize("low", [True, False])
@pytest.mark.parametrize("high", [True, False])
def test_converged_means_both_ends(low, high):
    one = jnp.asarray(1.0)
    ends = Extremes(one, one, one, one, one, jnp.asarray(low), jnp.asarray(high), one, one, one)
    assert bool(ends.converged) == (low and high)


def test_a_trace_of_few_parameters_takes_no_sketch():
    """A third of 30 products would be a sketch of ten vectors in three dimensions."""
    found = jb.trace(lambda p: jnp.sum(p**2), jnp.ones(3), products=30)
    assert found.method == "hutchinson" and float(found.estimate) == pytest.approx(6.0)


# Rates, frequencies, means


def test_what_falls_too_slowly_does_not_end():
    """Of log(lhs / rhs), at right sides that grow fourfold: the change per doubling is its root."""
    x = np.log(4.0) * np.arange(4)  # three changes: too few to see that they fall slowly
    for per_doubling, ends in ((SETTLES - 0.02, True), (SETTLES + 0.02, False)):
        changes = 0.1 * (per_doubling**2) ** np.arange(3)
        assert _decays(x, np.concatenate([[0.0], np.cumsum(changes)])) == ends


def test_a_step_without_change_is_no_decay():
    assert not _decays(np.arange(5.0), np.array([0.0, 0.0, 0.5, 0.7, 0.75]))


def test_a_draw_on_the_edge_meets_the_claim():
    edge = Group(measured(np.full(4000, 1.0)), 4000)
    found = judged_probability([edge], 0.01, 1.0)
    assert found.status == "holds" and found.ratio == 0.0
    assert "different instances" not in found.reason
    few = judged_probability([edge._replace(distinct=7)], 0.01, 1.0)
    assert few.status == "inconclusive" and "4000 draws have only 7 different" in few.reason


def test_heavy_tails_are_said_where_a_few_draws_decide_the_mean():
    """Pareto of index 1.1 has a mean of 11: far above what its quantiles show."""
    tail = (1 - (np.arange(4000) + 0.5) / 4000) ** (-1 / 1.1)
    lhs = 1e-4 * tail
    found = judged_expectation([Group(measured(lhs, lhs=lhs, rhs=np.ones(4000)), 4000)])
    assert found.status == "inconclusive" and "heavy tails (index 1." in found.reason
    light = np.linspace(0, 0.5, 4000)
    assert judged_expectation([Group(measured(light, lhs=light), 4000)]).status == "holds"


def test_the_worst_of_what_is_a_number():
    assert _worst(np.array([np.nan, 2.0, 1.0])) == 2.0 and math.isnan(_worst(np.array([np.nan])))


def test_the_worst_at_each_size_is_of_that_size():
    column = Column(
        measured([0.5, 0.9, 0.1, 0.3]), np.array([0, 0, 1, 1]), np.array(["s"] * 4), np.arange(4)
    )
    two = statement(lambda i, s: None, sizes=({"d": 2}, {"d": 3}))
    assert by_size(two, column) == {"d=2": 0.9, "d=3": 0.3}


# Instances beside the draws, rounder ones, tied ones


def test_the_extremes_of_a_coordinate_and_what_lies_beyond():
    """The gaps between the fourth and the last draw on each side: 8 - 1 and 32 - 4."""
    wanted = [1, 32, 1 - 7, 32 + 28, 1 - 7 / 3, 32 + 28 / 3, 0]
    np.testing.assert_allclose(_beyond(np.array([32.0, 1, 16, 2, 8, 4])), wanted)
    assert 0.0 not in _beyond(np.array([100.0, 101, 102, 103, 104]))


def test_what_was_seen_beside_the_draws_is_by_form():
    def evaluate(instance, size):
        x = instance["x"][0]
        return jb.Sides(x, {"printed": x + 1, "corrected": x + 5, "control": x - 1})

    two = statement(evaluate, kind="expectation", forms=("printed", "corrected"))
    with jb.float64_on_cpu():
        bench, pool = Bench(two, 8, UNKEPT), Pool()
        drawn = {"x": np.arange(16.0).reshape(8, 2)}
        pool.add("draws", 0, drawn, bench(drawn, bench.statement.sizes[0]))
        ends = reach(bench, pool)
    assert ends == [(-1.0, -1.0), (-5.0, -5.0), (1.0, 1.0)]


@pytest.mark.parametrize(
    "entry, complexity", [(0.0, 0), (3.0, 1), (-2.5, 2), (0.25, 3), (0.123, 9)]
)
def test_how_round_a_number_is(entry, complexity):
    assert _complexity(entry) == complexity


def test_entries_are_tied_within_their_leaf():
    instance = {"a": np.array([1.0, -1.0]), "b": np.array([1.0, 2.0, 2.0]), "c": np.array([5.0])}
    ties, values = tied(instance, 0.0)
    np.testing.assert_array_equal(values, [1, 1, 2, 5])
    np.testing.assert_array_equal(ties.labels, [0, 0, 1, 2, 2, 3])
    np.testing.assert_array_equal(ties.signs, [1, -1, 1, 1, 1, 1])


def test_two_leaves_come_together_around_their_middle():
    instance = {"a": np.array([3.0]), "b": np.array([1.0])}
    point = Point(instance, *tied(instance, 0.0), 0.5)
    families = dict(_families(point, False))
    near = families["a - b -> 0"](4.0)
    assert near == {"a": np.array([2.25]), "b": np.array([1.75])}
    assert families["a -> 0"](4.0)["a"] == 0.75 and families["a, b -> infinity"](2.0)["b"] == 2.0


# Sizes


def test_numbers_take_eight_bytes(monkeypatch):
    """A batch of 64 draws of 1,000 numbers: 512,000 bytes, of which half a machine may be taken."""

    def evaluate(instance, size):
        return jb.Sides(0.0, {"printed": instance["x"][0] ** 2, "control": -1.0})

    one = statement(evaluate, budget=jb.Budget(batch=64))
    size = Size({"d": 1000})
    monkeypatch.setattr(constant_sizes, "_memory", lambda: 1_024_000)
    constant_sizes.check(one, "printed", size)
    monkeypatch.setattr(constant_sizes, "_memory", lambda: 1_023_998)
    with pytest.raises(ValueError, match="does not fit"):
        constant_sizes.check(one, "printed", size)


def test_statements_that_are_not_searched_by_slopes_keep_their_sizes():
    declared = statement(lambda i, s: None, search="none", sizes=({"d": 2}, {"d": 3}))
    assert [dict(size) for size in constant_sizes.grown(declared, "printed")] == [
        {"d": 2},
        {"d": 3},
    ]


# What is kept, written and shown


def test_what_a_kept_trace_shows_is_kept_with_it(tmp_path):
    """A program that was traced before rounds as coarsely as when it was traced."""

    def evaluate(instance, size):
        x = instance["x"].astype(jnp.float32)
        return jb.Sides(length(x), {"printed": 2 * length(x), "control": 0.0})

    for _ in range(2):
        one = statement(evaluate)
        watch = TraceWatch(one)
        with jb.float64_on_cpu():
            run = Programs(tmp_path)(lambda i: evaluate(i, None).lhs, "one", watch=watch)
            run({"x": np.ones((1, 2))})
        assert watch.narrow and "float32" in watch.narrow[0]
        assert watch.never == ()


def test_infinities_are_words():
    assert to_json({"a": math.inf, "b": [-math.inf, math.nan]}) == {"a": "inf", "b": ["-inf", None]}


def test_a_bound_equal_to_the_trivial_one_says_nothing():
    def evaluate(instance, size):
        return jb.Sides(0.5, {"printed": 1.0, "control": 0.1}, trivial=1.0)

    (verdict,) = jb.falsify(statement(evaluate), budget=jb.Budget(samples=8, restarts=0))
    assert verdict.status == "vacuous"


def test_progress_starts_without_a_speed(monkeypatch):
    page = io.StringIO()
    terminal = lambda **_: Console(file=page, force_terminal=True, width=80)
    monkeypatch.setattr(reporting, "Console", terminal)
    with reporting.progress(10, "steps") as report:
        report(0, "begun")
        report(5, "half")
    assert "steps" in page.getvalue()


@pytest.mark.parametrize("host", [False, True])
def test_an_evaluate_that_draws_by_itself_is_no_claim(host):
    """Each trace freezes another draw: nothing that was measured is about one function."""
    draws = np.random.default_rng(0)

    def evaluate(instance, size):
        x = instance["x"]
        norm = (x @ x) ** 0.5 if host else length(x)
        return jb.Sides(norm, {"printed": norm * (2 + draws.uniform()), "control": 0.0})

    def steady(instance, size):
        x = instance["x"]
        norm = (x @ x) ** 0.5 if host else length(x)
        return jb.Sides(norm, {"printed": norm * 2.5, "control": 0.0})

    few = jb.Budget(samples=8, restarts=0)
    about = {"host": host, "search": "none"}
    (loose,) = jb.falsify(statement(evaluate, **about), budget=few)
    assert loose.status == "inconclusive" and "returns different values" in loose.reason
    (fixed,) = jb.falsify(statement(steady, **about), budget=few)
    assert "different values" not in fixed.reason
