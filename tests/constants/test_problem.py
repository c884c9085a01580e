"""A form as a function of coordinates: what counts, its logarithm, its slope, and flat vectors.

The claim is x y <= 2 (x^2 + y^2), so that the ratio and its slope are written down at once.
"""

import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.claims.statements import Form, Sides, Size, Statement
from jaxbounds.constants.problem import (
    UNCOUNTED,
    Problem,
    filled,
    flat,
    floats_of,
    is_float,
    unflat,
    with_one_form,
)
from jaxbounds.constants.snapping import tied
from jaxbounds.falsification import float64_on_cpu


@pytest.mark.parametrize(
    "leaf, moved",
    [
        (np.ones(1), True), (np.ones(1, np.float32), True), (np.ones(1, object), True),
        (np.ones(1, int), False), (np.ones(1, bool), False),
    ],
)  # fmt: skip
def test_floats_and_balls_are_moved(leaf, moved):
    assert is_float(leaf) is moved


MIXED = {"a": np.array([[1.0, 2.0, 3.0]]), "n": np.array([7, 8]), "z": np.array(4.0)}


def test_flat_and_back():
    assert [leaf.shape for leaf in floats_of(MIXED)] == [(1, 3), ()]
    np.testing.assert_array_equal(flat(MIXED), [1, 2, 3, 4])
    back = unflat(MIXED, np.array([5.0, 6.0, 7.0, 8.0]))
    np.testing.assert_array_equal(back["a"], [[5, 6, 7]])
    assert back["z"] == 8 and back["z"].shape == () and back["n"] is MIXED["n"]
    other = filled(MIXED, ["first", "second"])
    assert (other["a"], other["z"]) == ("first", "second")
    assert flat({"n": np.array([1])}).shape == (0,)


def sides(instance, size):
    x, y = instance["x"]
    lhs, rhs = x * y, 2 * (x * x + y * y) - size["less"]
    printed = {"printed": rhs, "derived": 2 * rhs, "control": rhs / 9}
    return Sides(lhs=lhs, rhs=printed)


def positive(instance, size):
    return {"x_1 > 0": instance["x"][0] > 0}


STATEMENT = Statement(
    id="own.two", label="two", formula="x y <= 2 (x^2 + y^2)", kind="inequality", evaluate=sides,
    forms=(Form(name="printed"), Form(name="derived")), control="a ninth", hypotheses=positive,
    project=lambda instance, size: {"x": jnp.abs(instance["x"])},
    sample=lambda key, size: {"x": jax.random.normal(key, (2,))}, sizes=({"less": 4.0},),
)  # fmt: skip


@pytest.fixture(scope="module")
def problem():
    with float64_on_cpu():
        yield Problem(STATEMENT, "derived", {"less": 4.0})


def test_ratios_of_the_form_that_is_meant(problem):
    # x y / (4 (x^2 + y^2) - 8): of (1, 2) 2/12. On the border and within, the right side is none.
    at = [(1, 2), (2, 1), (-1, -2), (1, 1), (0.5, 0.5), (1, -2)]
    found = problem.ratios([{"x": np.array(x, float)} for x in at])
    np.testing.assert_allclose(found[:2], 1 / 6)
    assert np.all(found[2:5] == -np.inf)  # a hypothesis; 0/0 or 1/0; below zero
    assert found[5] == pytest.approx(-1 / 6)


def test_the_logarithm_and_its_slope(problem):
    instance = {"x": np.array([1.0, 2.0])}
    ties, values = tied(instance, 0.0)
    score, slope = problem.slope(values, ties, instance)
    # d log: 1/x - 8 x / (4 (x^2 + y^2) - 8) = 1 - 8/12 and 1/2 - 16/12.
    assert score == pytest.approx(math.log(1 / 6))
    np.testing.assert_allclose(slope, [1 / 3, -5 / 6])
    # Both tied: in t (1, 1), t^2 / (8 t^2 - 8) at t = 2: 1/6 once more, slope 2/t - 16 t/24.
    both, _ = tied({"x": np.array([2.0, 2.0])}, 0.0)
    score, slope = problem.slope(np.array([2.0]), both, instance)
    assert score == pytest.approx(math.log(1 / 6)) and slope.shape == (1,)
    np.testing.assert_allclose(slope, [1 - 4 / 3])
    # Back onto the hypotheses first.
    assert problem.slope(-values, ties, instance)[0] == pytest.approx(math.log(1 / 6))
    np.testing.assert_array_equal(problem.back({"x": -np.ones(2)})["x"], [1, 1])


def test_far_below_where_nothing_counts(problem):
    instance = {"x": np.array([1.0, 2.0])}
    ties, _ = tied(instance, 0.0)
    for at in ([0.5, 0.5], [1.0, 1.0], [2.0, 0.0]):
        score, slope = problem.slope(np.array(at), ties, instance)
        assert score == -UNCOUNTED and slope.tolist() == [0, 0]
    # On the border, where the right side is zero; and where the left one is.
    many = np.array([[1.0, 2.0], [0.5, 0.5], [1.0, 1.0], [2.0, 0.0], [2.0, 1.0]])
    found = problem.scores(many, ties, instance)
    np.testing.assert_allclose(found, [math.log(1 / 6), *3 * [-UNCOUNTED], math.log(1 / 6)])


def test_slopes_next_to_a_point_that_has_none(problem, monkeypatch):
    instance = {"x": np.array([1.0, 2.0])}
    ties, values = tied(instance, 0.0)
    missing, moved = np.array([0.5, 1.0, np.nan, 1.0]), []  # score, whether it counts, slope

    def careful(at, *_):
        moved.append(at / values - 1)
        return missing if len(moved) < 3 else np.array([0.5, 1.0, 5.0, 6.0])

    monkeypatch.setattr(problem, "_slope", lambda *_: missing)
    monkeypatch.setattr(problem, "_careful", careful)
    score, slope = problem.slope(values, ties, instance)
    assert score == 0.5 and slope.tolist() == [5, 6]
    # At the point itself, then 1e-15 and 1e-13 beside it, each coordinate by another part.
    assert moved[0].tolist() == [0, 0]
    np.testing.assert_allclose(moved[2], 1e-13 * np.cos([0, 1]), atol=3e-16)
    moved.clear()
    monkeypatch.setattr(problem, "_careful", lambda at, *_: missing)
    assert problem.slope(values, ties, instance)[1].tolist() == [0, 1]


def test_a_bound_from_below_is_turned():
    above = replace(STATEMENT, relation=">=", evaluate=lambda i, size: Sides(
        lhs=i["x"][0], rhs={"printed": i["x"][1], "derived": 2 * i["x"][1], "control": 1.0},
        error=0.25,
    ))  # fmt: skip
    one = with_one_form(above, "derived", Size({"less": 1.0}))
    assert one.relation == "<=" and [f.name for f in one.forms] == ["derived"]
    assert one.sizes == ({"less": 1.0},)
    found = one.evaluate({"x": np.array([3.0, 5.0])}, one.sizes[0])
    # The smaller side is what was the right one.
    assert (found.lhs, found.rhs["derived"], found.rhs["control"]) == (10, 3, 3)
    assert found.error == 0.25
