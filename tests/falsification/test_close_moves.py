"""Difference quotients, tiny scales and spikes on a line: claims that only these moves refute.

Each comment names a point at which the claim is false.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds.falsification.close_moves import beside, closer, decades, one_step, pairs_of

size = lambda x: jnp.sqrt(jnp.sum(x**2))


def quotient(function, rate):
    """The sides of the claim that a function expands no distance by more than a rate."""
    return (
        lambda x, y: size(function(x) - function(y)),
        lambda x, y: rate * size(x - y),
    )


attention = lambda x: jax.nn.softmax(x @ x.T) @ x
spike = lambda x: jnp.maximum(1 - x**2, 2 / (1 + ((x - 0.618) / 1e-3) ** 2))
FALSE = {
    # x = (60, -60, 0), y beside it in the third entry: 2400.
    "attention": (quotient(attention, 1e3), dict.fromkeys("xy", jb.Reals((3, 1)))),
    # 1/2 at constant vectors.
    "softmax": (quotient(jax.nn.softmax, 0.4999), dict.fromkeys("xy", jb.Reals(3))),
    # 1/2 where two of five entries share the weight.
    "softmax of five": (quotient(jax.nn.softmax, 0.4999), dict.fromkeys("xy", jb.Reals(5))),
    # x = 2.5e-11.
    "a tiny scale": ((lambda x: jnp.sqrt(x), lambda x: 1e5 * x + 2.4e-6), {"x": jb.Box(0, 1)}),
    # x = 0.618.
    "a spike": ((spike, 1.001), {"x": jb.Box(-1, 1)}),
}


@pytest.mark.default_cases("0-softmax", "1-attention", "0-a tiny scale")
@pytest.mark.parametrize("name", FALSE)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_false_claim_is_refuted(name, seed):
    (lhs, rhs), over = FALSE[name]
    assert jb.find_violation(lhs, rhs, over=over, seed=seed)


def test_points_come_closer_or_stay_as_far():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 9, 4))
    far = lambda a, b: np.sqrt(np.sum((a - b) ** 2, axis=1))
    assert np.all(far(x, closer(x, y, rng)) < far(x, y))
    assert np.all(far(x, beside(x, y, rng)) <= 2.1 * far(x, y))
    assert np.all(np.isfinite(decades(x, rng)))


def test_a_step_moves_pairs_and_keeps_types_and_other_leaves():
    rng = np.random.default_rng(1)
    leaves = [rng.normal(size=(5, 3)), rng.integers(9, size=(5, 3)), rng.normal(size=(5, 3))]
    assert pairs_of(leaves) == [(0, 2), (2, 0)]
    for _ in range(30):
        moved = one_step(leaves, rng)
        assert [m.dtype for m in moved] == [leaf.dtype for leaf in leaves]
        np.testing.assert_array_equal(moved[1], leaves[1])
