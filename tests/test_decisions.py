"""Which word a claim gets, on instances of which the answer is worked out by hand.

Values are listed as cases, so that every mean, frequency and ratio is exact and stands in a
comment: no draw decides, and no formula of the engine is used to say what it should find.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds import falsify
from jaxbounds.claims.statements import Budget, Form, Sides, Statement
from jaxbounds.falsification import load_instance, replay

ROWS = 100


def _statement(evaluate, **options):
    defaults = {
        "id": "mine.decision",
        "label": "1",
        "formula": "lhs <= rhs",
        "kind": "inequality",
        "evaluate": evaluate,
        "forms": (Form(name="printed"),),
        "control": "far off",
        "sizes": ({"d": 1},),
        "search": "none",
    }
    return Statement(**(defaults | options))


def _status(statement, **options):
    (verdict,) = falsify(statement, **options)
    return verdict.status


def _mean_one(size):
    """Half zeros and half twos: mean 1, variance 100/99, range 2, a risk of .001/4 for each floor.

    So sqrt(2 (100/99) ln 8000 / 100) + 7 * 2 ln 8000 / (3 * 99) = .42609 + .42364 = .84973.
    """
    return {"x": np.repeat([0.0, 2.0], ROWS // 2), "number": np.arange(ROWS)}


def _expectation(bounds):
    """E x <= bound, with a bound for each size d = 1, 2, ..."""

    def evaluate(instance, size):
        return Sides(lhs=instance["x"], rhs={"printed": bounds[size["d"] - 1], "control": 0.1})

    sizes = tuple({"d": d + 1} for d in range(len(bounds)))
    options = {"kind": "expectation", "cases": _mean_one, "sizes": sizes, "host": True}
    return _statement(evaluate, **options)


@pytest.mark.parametrize(
    "bounds, status",
    [
        ((1.8499,), "holds"),  # .8499 above the mean: more than .84973
        ((1.8495,), "inconclusive"),
        ((0.1505,), "inconclusive"),
        ((0.1501,), "fails"),
        ((1.9, 1.9, 1.8499), "holds"),
        # Every size is needed, wherever it stands, and one is enough to fail.
        ((1.9, 1.9, 1.8495), "inconclusive"),
        ((1.8495, 1.9, 1.9), "inconclusive"),
        ((1.9, 0.1501, 1.9), "fails"),
        ((1.9, 0.1501, 1.8495), "fails"),
    ],
)
def test_an_expectation_is_decided_by_its_bound_at_every_size(bounds, status):
    (verdict,) = falsify(_expectation(bounds))
    assert verdict.status == status
    # The largest mean over mean.
    assert verdict.worst_ratio == pytest.approx(1 / min(bounds), rel=1e-12)


def test_an_expectation_of_draws_is_known_to_its_standard_error():
    # Uniform draws: sqrt(2 ln 8000 / (12 * 2000)) + 7 ln 8000 / (3 * 1999) = .0274 + .0105, and
    # the mean is within .0129 of 1/2 in 95 of 100 samples, as in this one.
    def claim(bound):
        return _statement(
            lambda i, size: Sides(lhs=i["u"], rhs={"printed": bound, "control": 0.3}),
            kind="expectation",
            sample=lambda key, size: {"u": jax.random.uniform(key)},
            budget=Budget(samples=2000),
        )

    found = [_status(claim(b)) for b in (0.551, 0.51, 0.49, 0.449)]
    assert found == ["holds", "inconclusive", "inconclusive", "fails"]


@pytest.mark.parametrize(
    "level, failing, status",
    [
        # None of 100 fails: the interval ends at 1 - .0005^(1/100) = .07319.
        (0.0733, (0,), "holds"),
        (0.0731, (0,), "inconclusive"),
        (0.0733, (0, 0, 1), "inconclusive"),
        # All of them fail: it starts at .92681.
        (0.926, (100,), "fails"),
        (0.928, (100,), "inconclusive"),
        (0.926, (0, 100, 0), "fails"),
    ],
)
def test_a_frequency_is_decided_by_the_exact_interval_at_every_size(level, failing, status):
    def cases(size):
        late = np.arange(ROWS) < failing[size["d"] - 1]
        return {"x": np.where(late, 2.0, 0.0), "number": np.arange(ROWS)}

    def evaluate(instance, size):
        return Sides(lhs=instance["x"], rhs={"printed": 1.0, "control": -1.0})

    sizes = tuple({"d": d + 1} for d in range(len(failing)))
    options = {"kind": "probability", "level": level, "cases": cases, "sizes": sizes, "host": True}
    (verdict,) = falsify(_statement(evaluate, **options))
    assert verdict.status == status
    assert verdict.worst_ratio == pytest.approx(max(failing) / ROWS / level)


def _listed(**leaves):
    return lambda size: {name: np.asarray(leaf, float) for name, leaf in leaves.items()}


def _ratio(instance, size):
    """lhs <= 1 with the error given; ratios are the numbers listed."""
    rhs = {"printed": jnp.asarray(1.0), "control": jnp.asarray(0.25)}
    return Sides(lhs=instance["lhs"], rhs=rhs, error=instance["error"])


@pytest.mark.parametrize(
    "ratios, error, equality, status",
    [
        ((0.5, 1 - 2e-9), 0.0, "", "holds"),
        ((0.5, 1 - 5e-10), 0.0, "", "holds"),  # within the tolerance; balls tell the sides apart
        ((0.5, 1.0), 0.0, "", "holds"),  # balls find both sides equal
        ((0.5, 1.0), 0.0, "lhs = 1", "holds"),
        ((0.5, 1 + 5e-10), 0.0, "lhs = 1", "inconclusive"),  # balls confirm the violation
        ((0.5, 1 + 2e-9), 0.0, "lhs = 1", "fails"),
        ((1 + 2e-9,) + 63 * (0.5,), 0.0, "", "fails"),  # one of many, the first or the last
        (63 * (0.5,) + (1 + 2e-9,), 0.0, "", "fails"),
        ((0.5, math.nan), 0.0, "lhs = 1", "inconclusive"),
        ((0.5, 0.9), 0.09, "", "holds"),
        ((0.5, 0.9), 0.11, "", "inconclusive"),
        ((0.5, 1.1), 0.11, "", "inconclusive"),
        ((0.5, 1.1), 0.09, "", "fails"),
    ],
)
def test_an_inequality_at_its_borders(ratios, error, equality, status):
    cases = _listed(lhs=ratios, error=np.full(len(ratios), error))
    form = Form(name="printed", equality=equality)
    assert _status(_statement(_ratio, cases=cases, forms=(form,))) == status


@pytest.mark.parametrize("bad", [0, 23, 46])
@pytest.mark.parametrize(
    "off, status",
    [
        (0.0, "holds"),
        (1e-14, "holds"),  # rounding
        (5e-11, "inconclusive"),  # below the tolerance, 1e-10 of the entry, but no rounding
        (2e-10, "inconclusive"),
        (9e-8, "inconclusive"),
        (2e-7, "fails"),  # above a thousand tolerances
        (math.nan, "inconclusive"),
    ],
)
def test_one_bad_entry_of_one_instance_decides_an_identity(bad, off, status):
    # 47 instances of seven entries; one entry of one of them is off, relative to itself.
    x = np.tile([1.0, -2.0, 3.0, -8.0, 5.0, 0.0, 7.0], (47, 1))
    moved = np.zeros_like(x)
    moved[bad, bad % 7] = x[bad, bad % 7] * off

    def evaluate(instance, size):
        x = instance["x"]
        return Sides(lhs=x + instance["off"], rhs={"printed": x, "control": 2 * x})

    cases = lambda size: {"x": x, "off": np.nan_to_num(moved, nan=0.0), "number": np.arange(47)}
    if math.isnan(off):  # of the formula: an instance must be finite
        at = (bad, bad % 7)

        def evaluate(instance, size):
            wrong = (instance["number"] == at[0]) & (jnp.arange(7) == at[1])
            x = instance["x"]
            rhs = {"printed": x, "control": 2 * x}
            return Sides(lhs=jnp.where(wrong, jnp.nan, x), rhs=rhs)

    assert _status(_statement(evaluate, kind="identity", cases=cases)) == status


INSIDE = 0.8
"""The supremum of |x|^2 / 1.25 where |x| <= 1; outside there is none."""


@pytest.mark.parametrize("search, host", [("gradient", False), ("random", False), ("random", True)])
def test_a_search_keeps_nothing_that_misses_a_hypothesis(search, host, tmp_path):
    # The ratio grows with |x| without end, so a search that looks at nothing else leaves the ball
    # where the claim is made, and comes back with nothing that counts. Draws reach .072.
    def sample(key, size):
        x = jax.random.uniform(key, (size["d"],), minval=-1.0)
        return {"x": 0.3 * x / jnp.sqrt(1e-9 + x @ x)}

    def evaluate(instance, size):
        square = instance["x"] @ instance["x"]
        return Sides(lhs=square, rhs={"printed": 1.25 + 0 * square, "control": 0.3 + 0 * square})

    statement = _statement(
        evaluate,
        sample=sample,
        search=search,
        host=host,
        hypotheses=lambda i, size: {"|x| <= 1": i["x"] @ i["x"] <= 1},
        sizes=({"d": 3},),
        budget=Budget(samples=16, restarts=4, steps=120, batch=16),
    )
    (verdict,) = falsify(statement, store=tmp_path)
    found = verdict.sources["search"]
    # Each search starts inside, so it has something to show.
    assert found["instances"] >= 4
    assert 0.6 < found["worst_ratio"] <= INSIDE * (1 + 1e-12)
    assert verdict.status == "holds" and verdict.worst_ratio == pytest.approx(found["worst_ratio"])
    assert verdict.control["status"] == "fails"
    stored = load_instance(tmp_path / verdict.worst_file)
    square = np.sum(stored.instance["x"] ** 2)
    assert square <= 1 + 1e-12
    again = replay(lambda name: statement, stored)[1]["printed"]
    assert again == pytest.approx(verdict.worst_ratio) == square / 1.25
