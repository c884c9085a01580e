"""Which instances there are: those that meet the hypotheses; without any, those of `project`.

The claim is 1 <= 1 + x, of ratio 1/(1 + x), and `project` puts x between 1/10 and 10.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb

from jaxbounds.claims.statements import Budget, Sides
from jaxbounds.constants.constant import sharp_constant
from jaxbounds.constants.enclosure import BITS, Ratio
from jaxbounds.constants.polish import at, best_neighbour
from jaxbounds.constants.problem import Problem
from jaxbounds.falsification import float64_on_cpu
from jaxbounds.programs.balls.interpreter import precision


@pytest.fixture
def clipped(claim):
    def make(**more):
        def evaluate(instance, size):
            rhs = 1 + instance["x"][0]
            return Sides(lhs=jnp.ones(()), rhs={"printed": rhs, "control": rhs / 9})

        given = {
            "evaluate": evaluate, "budget": Budget(samples=48, restarts=4, steps=40),
            "project": lambda i, size: {"x": jnp.clip(i["x"], 0.1, 10.0)},
            "sample": lambda key, size: {"x": jax.random.uniform(key, (1,), minval=0.2, maxval=5)},
        }  # fmt: skip
        return claim(**given | more)

    with float64_on_cpu():
        yield make


POSITIVE = {"hypotheses": lambda i, size: {"x > 0": i["x"][0] > 0}}
x = lambda value: {"x": np.array([value])}


def test_without_hypotheses_what_project_gives_is_meant(clipped):
    problem = Problem(clipped(), "printed", {})
    assert problem.put(x(0.01))["x"] == 0.1 and not problem.outside(x(0.01))
    np.testing.assert_allclose(problem.ratios([x(0.01), x(1.0)]), [1 / 1.1, 1 / 2], rtol=1e-15)
    assert at(problem, x(0.01), 0.0).instance["x"] == 0.1
    assert best_neighbour(problem, x(0.1), 0)[1] == pytest.approx(1 / 1.1, rel=1e-15)


def test_with_hypotheses_what_meets_them_counts(clipped):
    problem = Problem(clipped(**POSITIVE), "printed", {})
    assert problem.put(x(0.01))["x"] == 0.01
    assert problem.outside(x(0.01)) and not problem.outside(x(0.5)) and not problem.outside(x(0.1))
    # Less than a millionth is a projection's rounding.
    assert not problem.outside(x(0.1 - 0.9e-7)) and problem.outside(x(0.1 - 1.1e-7))
    np.testing.assert_allclose(problem.ratios([x(0.01), x(-1.0)]), [1 / 1.01, -np.inf])
    found, ratio = best_neighbour(problem, x(0.1), 0)
    assert ratio > 1 / 1.1 and found["x"] < 0.1


def test_constants_of_a_projection_cost_no_digits(clipped):
    """1/10 in `project` says where, and may be any number; 1 + x is what is enclosed."""
    problem = Problem(clipped(), "printed", {})
    ratio = Ratio(problem, x(0.01), seconds=20, project=True)
    with precision(BITS):
        there = 1 / (1 + arb(0.1))
        for reading in ("exact", "ulp"):
            found = ratio(x(0.01), reading)
            assert found.overlaps(there) and found.rad() < 1e-100
    # A constant of the claim itself may be any number that is written so.
    tenth = lambda i, size: Sides(
        lhs=i["x"][0] * 0 + 0.1, rhs={"printed": 1 + i["x"][0], "control": jnp.ones(())}
    )
    ratio = Ratio(
        Problem(clipped(evaluate=tenth), "printed", {}), x(0.01), seconds=20, project=True
    )
    with precision(BITS):
        assert ratio(x(0.01), "exact").rad() < 1e-100 < 1e-19 < ratio(x(0.01), "ulp").rad()


def test_nothing_is_attained_at_the_end_of_a_projection_within_the_hypotheses(clipped):
    (found,) = sharp_constant(clipped(**POSITIVE), seconds=10).sizes
    assert found.where == "limit" and found.along == "x -> 0"
    assert found.ratio == pytest.approx(1, rel=1e-12)


@pytest.mark.slow
def test_at_the_end_of_a_set_it_is_attained(clipped):
    (found,) = sharp_constant(clipped(), seconds=10).sizes
    assert found.where == "attained" and found.ratio == pytest.approx(1 / 1.1, rel=1e-12)
    assert found.instance["x"] == [0.1]
