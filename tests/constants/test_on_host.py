"""What moves settle on the host: suprema that are known by hand, and twins where the word is wrong.

Each claim is f(x) <= 1 with f in NumPy, so that nothing can trace it.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.claims.sets import Box, Integers
from jaxbounds.claims.statements import Budget, Sides
from jaxbounds.constants.constant import sharp_constant
from jaxbounds.constants.host_climb import HostClimber, Place
from jaxbounds.constants.on_host import _without_objection, objection, steady
from jaxbounds.constants.polish import Point
from jaxbounds.constants.problem import Problem
from jaxbounds.constants.snapping import tied
from jaxbounds.falsification import float64_on_cpu


@pytest.fixture
def on_the_host(claim):
    """f <= 1 on the host; x is positive and log-normal, unless it is said where it is."""

    def make(f, **more):
        def evaluate(instance, size):
            with np.errstate(all="ignore"):
                value = float(f({k: np.asarray(v) for k, v in instance.items()}))
            return Sides(lhs=value, rhs={"printed": 1.0, "control": 0.5})

        usual = {"sample": lambda key, size: {"x": jnp.exp(jax.random.normal(key, ()))}}
        if "over" in more:
            usual = {"sample": {}}
        given = usual | {"budget": Budget(samples=32, restarts=2, steps=5)} | more
        return claim(evaluate=evaluate, host=True, search="random", **given)

    return make


@pytest.fixture
def constant_of(on_the_host):
    def run(f, seconds=4.0, **more):
        return sharp_constant(on_the_host(f, **more), seconds=seconds).sizes[0]

    return run


PAIR = {"sample": lambda key, size: {"x": jax.random.normal(key, (2,))}}
SEGMENT = {"over": {"x": Box(0.5, 3)}}


@pytest.mark.parametrize(
    "f, value, more",
    [
        # Inside, along a valley, at a kink, at zero, at the end of a set.
        (lambda i: 2 - (i["x"] - 3) ** 2, 2.0, {}),
        pytest.param(
            lambda i: 3 / (1 + (i["x"][0] - 1) ** 2 + 9 * (i["x"][1] - i["x"][0]) ** 2), 3.0, PAIR,
            marks=pytest.mark.slow,
        ),
        pytest.param(lambda i: 2 - abs(i["x"] - 3), 2.0, {}, marks=pytest.mark.slow),
        (lambda i: 1 / (1 + np.abs(i["x"]).sum()), 1.0, PAIR),
        pytest.param(lambda i: i["x"] ** 2, 9.0, SEGMENT, marks=pytest.mark.slow),
        (lambda i: 1 / i["x"], 2.0, SEGMENT),
        # Just after a jump: ceil(x)/x comes to 2 behind x = 1.
        (lambda i: np.ceil(i["x"]) / i["x"], 2.0, SEGMENT),
        # It does not depend on one of the two.
        pytest.param(lambda i: 2 - (i["x"][0] - 1) ** 2, 2.0, PAIR, marks=pytest.mark.slow),
        # A whole number of a declared set, of which hardly a value is drawn twice.
        pytest.param(
            lambda i: 5 / (1 + abs(int(i["k"]) - 123_456)), 5.0,
            {"over": {"k": Integers(1, 10**6), "x": Box(0, 1)}, "seconds": 8.0},
            marks=pytest.mark.slow,
        ),
        # One of few whole numbers, all of them drawn: 2 - cos(3), with 1 and 2 - cos(6).
        (lambda i: 2 - np.cos(3 * int(i["k"])), 2 - math.cos(3),
         {"sample": lambda key, size: {"k": jax.random.randint(key, (), 0, 3),
                                       "x": jnp.ones(())},
          "hypotheses": lambda i, size: {"few": (i["k"] >= 0) & (i["k"] < 3)}}),
    ],
)  # fmt: skip
def test_what_is_attained(f, value, more, constant_of):
    found = constant_of(f, **more)
    assert found.where == "attained", found.reason
    # What floats say is never below, nor above, the supremum by more than their last digits.
    assert value * (1 - 2e-9) <= found.ratio <= value * (1 + 1e-11)
    # Nothing is enclosed, and there is no closed form.
    assert not found.low and found.digits == 0 and found.closed is None


@pytest.mark.parametrize(
    "f, supremum, more",
    [
        # Limits, fast and slow, above and below.
        (lambda i: abs(i["x"]) / (1 + abs(i["x"])), 1.0, {}),
        pytest.param(lambda i: 1 - np.exp(-i["x"]), 1.0, {}, marks=pytest.mark.slow),
        pytest.param(lambda i: 1 - 1 / np.log(4 + i["x"]), 1.0, {}, marks=pytest.mark.slow),
        pytest.param(
            lambda i: 1 / (1 + i["x"]) if i["x"] > 0 else 0.0, 1.0, {}, marks=pytest.mark.slow
        ),
        pytest.param(lambda i: np.sin(i["x"]) / i["x"], 1.0, {}, marks=pytest.mark.slow),
        # No bound at all.
        (lambda i: i["x"] ** 0.3, math.inf, {"seconds": 1.0}),
        # Worst only where one entry is exactly another, which jumps.
        (lambda i: 2.0 if i["x"] == 1.0 else 1 / (1 + abs(i["x"] - 1)), 2.0, {}),
        # Whole numbers: more of them than were drawn; one beyond those in a list; a hash.
        (lambda i: 1 - 1 / (2 + int(i["k"])), 1.0,
         {"sample": {}, "cases": lambda size: {"k": np.repeat([1, 5, 9], 4), "x": np.ones(12)}}),
        pytest.param(
            lambda i: (int(i["k"]) * 7919 % 10_007) / 10_007, 1.0,
            {"sample": lambda key, size: {"k": jax.random.randint(key, (), 0, 10**9),
                                          "x": jnp.ones(())}}, marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_what_is_not_attained(f, supremum, more, constant_of):
    found = constant_of(f, **more)
    assert found.where == "rising" and found.reason
    assert found.ratio <= supremum * (1 + 1e-9)


def test_two_hills_are_told_apart(constant_of):
    """The lower is wide, of height 1; the higher, of height 1.5, takes a tenth of the draws."""
    hills = lambda x: max(1 - (x - 2) ** 2 / 4, 1.5 - 30 * (x - 0.3) ** 2)
    found = constant_of(lambda i: hills(float(i["x"])))
    assert found.where == "attained" and found.ratio == pytest.approx(1.5, rel=1e-12)


@pytest.fixture
def climber(on_the_host):
    def make(f, draws, **more):
        return HostClimber(Problem(on_the_host(f, **more), "printed", {}), draws)

    with float64_on_cpu():
        yield make


DRAWS = {"x": np.linspace(0.5, 2, 20)}


@pytest.mark.parametrize(
    "f, x, words",
    [
        (lambda i: 2 - (i["x"] - 1) ** 2, 1.0, ""),
        (lambda i: 2 - (i["x"] - 1) ** 2, 1.001, "neighbour"),
        (lambda i: i["x"] if i["x"] < 1e4 else 0.0, 9999.999999999, "far from all draws"),
        (lambda i: min(i["x"], 1.0), 1.5, "without end"),
        (lambda i: 1.0, 1.5, ""),
    ],
)
def test_doubts(f, x, words, climber):
    w = climber(f, DRAWS)
    place = w.at({"x": np.array(x)})
    found = objection(w, place, np.random.default_rng(0))
    assert words in found and bool(words) == bool(found)


def test_whole_numbers_that_were_not_drawn(climber):
    rng = np.random.default_rng(0)
    rises, few = (lambda i: 1.0 + int(i["k"])), np.repeat([0, 4, 8], 5)
    slow = lambda i: 1.0 + int(i["k"]) // 4
    hill = lambda i: 9 - (int(i["k"]) - 4) ** 2
    for f, seen, k, words in (
        (rises, few, 8, "whole number 9 in place of 8"),
        (rises, np.arange(15), 14, "only one draw"),
        # At the next number it is as large; further on it would be larger.
        (slow, few, 8, "further values may exist"),
        (hill, few, 4, ""), (lambda i: 1.0, few, 8, ""),
    ):  # fmt: skip
        w = climber(f, {"k": seen, "x": np.ones(15)})
        found = objection(w, w.at({"k": np.array(k), "x": np.array(1.0)}), rng)
        assert words in found and bool(words) == bool(found)
    # What raises there is no value.
    w = climber(lambda i: [1.0, 2.0, 3.0][int(i["k"])], {"k": np.repeat([0, 1, 2], 5),
                                                          "x": np.ones(15)})  # fmt: skip
    assert objection(w, w.at({"k": np.array(2), "x": np.array(1.0)}), rng) == ""


def test_at_a_jump_a_place_beside_it_is_taken(climber):
    rng = np.random.default_rng(0)
    w = climber(lambda i: np.ceil(i["x"]) / i["x"], DRAWS)
    edge = np.nextafter(1.0, 2.0)
    there = steady(w, w.at({"x": np.array(edge)}), 2.0, rng)
    assert 1 + 1e-12 < there.instance["x"] < 1 + 1e-11 and 2 - 1e-10 < there.ratio < 2
    spike = climber(lambda i: 2.0 if i["x"] == 1.0 else 1.0, DRAWS)
    assert steady(spike, spike.at({"x": np.array(1.0)}), 2.0, rng) is None
    flat = climber(lambda i: 1.0, DRAWS)
    assert steady(flat, Place({"x": np.array(1.0)}, 1.0), 1.0, rng).instance["x"] == 1.0


def test_doubts_end_with_the_time(climber):
    w = climber(lambda i: 2 - (i["x"] - 1) ** 2, DRAWS)
    top = {"x": np.array(1.0)}
    found = [Point(top, *tied(top, 0.0), 2.0, "drawn")]
    assert _without_objection(w, found, np.random.default_rng(0), np.inf)[1] == ""
    assert "time was over" in _without_objection(w, found, np.random.default_rng(0), 0.0)[1]
