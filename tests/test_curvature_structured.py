"""Certified extremes of block-diagonal plus low rank matrices against numpy."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.networks import curvature


@pytest.mark.slow_cases("0.0-1-6-10", *(f"{scale}-16-6-12" for scale in (0.0, 0.1, 10.0)))
@pytest.mark.parametrize("heads, p, n", [(1, 6, 10), (5, 4, 3), (3, 7, 1), (16, 6, 12)])
@pytest.mark.parametrize("scale", [0.0, 0.1, 10.0])
def test_structured_extremes_against_numpy(heads, p, n, scale, x64):
    rng = np.random.default_rng(heads)
    blocks = rng.normal(size=(heads, p, p))
    blocks = blocks + blocks.transpose(0, 2, 1)
    blocks[0, :2] = blocks[0, :, :2] = 0  # repeated zero eigenvalues
    factor = scale * rng.normal(size=(heads, p, n))
    matrix = np.zeros((heads * p, heads * p))
    for h in range(heads):
        matrix[h * p : h * p + p, h * p : h * p + p] = blocks[h]
    matrix += factor.reshape(heads * p, n) @ factor.reshape(heads * p, n).T
    values = np.linalg.eigvalsh(matrix)
    ends = curvature.structured_extremes(jnp.asarray(blocks), jnp.asarray(factor))
    assert ends.certified
    norm = np.max(np.abs(values))
    assert abs(ends.minimum - values[0]) <= 1e-9 * abs(values[0]) + 1e-12 * norm
    assert abs(ends.maximum - values[-1]) <= 1e-9 * abs(values[-1]) + 1e-12 * norm
    slack = 1e-13 * norm
    assert ends.bracket_minimum[0] - slack <= values[0] <= ends.bracket_minimum[1] + slack
    assert ends.bracket_maximum[0] - slack <= values[-1] <= ends.bracket_maximum[1] + slack


def test_structured_extremes_bisects_when_lanczos_is_cut_short(x64):
    rng = np.random.default_rng(0)
    blocks = np.stack([np.diag(rng.normal(size=8)) for _ in range(6)])
    factor = rng.normal(size=(6, 8, 4))
    flat = factor.reshape(48, 4)
    poles = np.concatenate([np.diag(block) for block in blocks])
    values = np.linalg.eigvalsh(np.diag(poles) + flat @ flat.T)
    ends = curvature.structured_extremes(jnp.asarray(blocks), jnp.asarray(factor), iterations=2)
    assert ends.certified and ends.bisections > 0
    np.testing.assert_allclose([ends.minimum, ends.maximum], values[[0, -1]], rtol=1e-8)


def test_count_below_is_the_inertia(x64):
    from jaxbounds.networks.curvature.structured import count_below

    rng = np.random.default_rng(3)
    poles, factor = rng.normal(size=10), rng.normal(size=(10, 3))
    values = np.linalg.eigvalsh(np.diag(poles) + factor @ factor.T)
    for shift in np.linspace(-3, 12, 40):
        count = count_below(jnp.asarray(poles), jnp.asarray(factor), jnp.asarray(shift))
        assert count == np.sum(values < shift)


def test_structured_extremes_names_the_shapes(unannotated):
    with pytest.raises(ValueError, match=r"blocks must have shape"):
        curvature.structured_extremes(jnp.zeros((2, 3, 3)), jnp.zeros((2, 4, 1)))
