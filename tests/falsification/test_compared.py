"""Claims that are wrong only where an entry, or a sum of entries, equals a constant."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds.falsification.jumps import jumps

LINE, SMALL = {"x": jb.Reals(())}, {"x": jb.Box(-2, 2, 3)}
TWO = {"x": jb.Reals(()), "y": jb.Reals(())}
BUDGET = jb.Budget(samples=64, restarts=4, steps=20)
real = lambda x: jnp.asarray(x, float)
soft = lambda x, t: jnp.sign(x) * jnp.maximum(jnp.abs(x) - t, 0.0)
slope = lambda function: lambda x: jax.grad(lambda z: jnp.sum(function(z)))(x)
inner = jax.jit(lambda x: jnp.where(x == 0.37, 1.0, 0 * x))
FALSE = {
    "a spike": (jnp.abs, "<=", lambda x: jnp.where(x == 2.3, 0.5, jnp.abs(x)), LINE),
    "a spike below": (lambda x: x, ">=", lambda x: jnp.where(x == -0.77, 0.0, x), LINE),
    "a closed set": (
        lambda x: real(jnp.abs(x) >= 1 / 3), "<=", lambda x: real(soft(x, 1 / 3) != 0), LINE,
    ),
    "an open set": (
        lambda x: real(jnp.abs(x) <= 0.7), "=", lambda x: real(jnp.abs(x) < 0.7), LINE,
    ),
    "a hole": (lambda x: x * real(x != 0.3), "=", lambda x: x, LINE),
    "slope of a kink": (slope(lambda x: jnp.maximum(x, 0.4)), "=", lambda x: real(x > 0.4), LINE),
    "slopes of hinges": (
        slope(lambda x: jnp.maximum(0.0, 1.1 - x)), "=", lambda x: -real(x < 1.1), SMALL,
    ),
    "a clip": (
        lambda x: real(jnp.clip(x, -0.6, 0.6) == x), "=", lambda x: real(jnp.abs(x) < 0.6), LINE,
    ),
    "a sum": (lambda x, y: jnp.where(x + y == 1.5, 0.0, x + y), "=", lambda x, y: x + y, TWO),
    "a sum of entries": (
        lambda x: real(jnp.sum(x) <= 1.2), "<=", lambda x: real(jnp.sum(x) < 1.2), SMALL,
    ),
    "a ratio": (lambda x, y: real(x >= 2 * y), "<=", lambda x, y: real(x > 2 * y), TWO),
    "two constants": (
        lambda x, y: x + real((x == 0.3) & (y == 0.7)), "=", lambda x, y: x + 0 * y, TWO,
    ),
    "inside jit": (lambda x: x + inner(x), "=", lambda x: x, LINE),
    "a table": (
        lambda x: x + real(jnp.any(x == jnp.array([0.21, 0.43]))), "=", lambda x: x, LINE,
    ),
    "a simplex": (
        lambda x: real(jnp.max(x) > 0.6), "=", lambda x: real(jnp.max(x) >= 0.6),
        {"x": jb.Simplex(3)},
    ),
    "strict": (lambda x: jnp.abs(x - 0.3), ">", 0.0, LINE),
    "whole numbers": (lambda x: jnp.floor(128 * x), "<", lambda x: 128 * x,
                      {"x": jb.Box(0.501, 0.514)}),
    "opposite floors": (lambda x: jnp.floor(128 * x) + jnp.floor(-128 * x), "=", -1.0,
                        {"x": jb.Box(0.501, 0.514)}),
}  # fmt: skip
TRUE = {
    "the same step": (
        lambda x: real(jnp.abs(x) >= 0.7), "<=", lambda x: real(jnp.abs(x) >= 0.7), LINE,
    ),
    "a step, told twice": (lambda x: real(x >= 0.7), "=", lambda x: 1 - real(x < 0.7), LINE),
    "slope at a kink": (slope(lambda x: jnp.abs(x - 1.3)), "=", lambda x: jnp.where(
        x >= 1.3, 1.0, -1.0), LINE),
    "threshold": (
        lambda x: real(soft(x, 0.7) != 0), "<=", lambda x: real(jnp.abs(x) >= 0.7), LINE,
    ),
    "Huber": (lambda x: jnp.where(jnp.abs(x) <= 1.35, x**2 / 2, 1.35 * (jnp.abs(x) - 0.675)),
              "<=", lambda x: x**2 / 2, LINE),
}  # fmt: skip
ROUNDING = {
    "thirds": (lambda x: real(x / 3 * 3 == x), "=", lambda x: real(x == x), LINE),
    "a shifted step": (lambda x: real(x - 0.1 >= 0.2), "=", lambda x: real(x >= 0.3), LINE),
    "squares": (lambda x: real(x * x >= 0.49), ">=", lambda x: real(jnp.abs(x) >= 0.7), LINE),
    "a sum of constants": (lambda x: real(x >= 0.1 + 0.2), "=", lambda x: real(x >= 0.3), LINE),
}


def judged(lhs, relation, rhs, over, **more):
    claim = jb.claim("t.compared", lhs, relation, rhs, over=over, budget=BUDGET, **more)
    return jb.falsify(claim)[0]


@pytest.mark.parametrize("name", FALSE)
def test_a_claim_that_is_false_only_at_a_jump_fails(name):
    assert judged(*FALSE[name]).status == "fails"


@pytest.mark.parametrize("name", TRUE)
def test_a_true_claim_with_jumps_holds(name):
    assert judged(*TRUE[name]).status == "holds"


@pytest.mark.parametrize("name", ROUNDING)
def test_a_jump_that_rounding_decides_refutes_nothing(name):
    assert judged(*ROUNDING[name]).status == "inconclusive"


def test_a_size_is_a_constant_and_the_counterexample_is_readable():
    found = jb.find_violation(
        lambda x, t: real(jnp.abs(x) >= t), lambda x, t: real(soft(x, t) != 0), over=LINE,
        sizes={"t": 0.7}, budget=BUDGET,
    )  # fmt: skip
    assert abs(found.instance["x"]) == 0.7


def test_constants_of_comparisons_come_first():
    closed = jax.make_jaxpr(lambda x: jnp.sum(jnp.where(3.0 * x >= 0.7, x + 5.0, 1e-9)))(np.ones(2))
    found = jumps(closed, [4.0])  # the constant 1e-9 only guards
    assert np.allclose(found.constants, [0.7, 5.0, 3.0, 4.0]) and len(found.pairs) == 1


@pytest.mark.parametrize("mapped", [False, True])
def test_the_numbers_of_a_program_are_its_constants(mapped):
    """Versions of JAX hold the number of a mapped program in types of their own."""
    function = lambda x: 1 / (x - 0.3)
    given = jnp.ones(3) if mapped else jnp.ones(())
    program = jax.make_jaxpr(jax.vmap(function) if mapped else function)(given)
    assert 0.3 in np.round(jumps(program, []).constants, 6)
