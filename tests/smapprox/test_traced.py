"""Sample sizes can be traced, with every number."""

import math

import jax
import numpy as np
import pytest

from jaxbounds.smapprox.sample_complexity import sample_complexity, unseen_difference


def test_traced_sample_sizes_by_hand(x64):
    # alpha = 2, p = 3, gamma = 1/2: 16 ln 3; epsilon = 1/10: the logarithm's power is of 1600 ln 3.
    core = 16 * math.log(3)
    expected = 5 * (core + 1) * math.log(100 * core) ** 1.5 * 100
    size = lambda a, p, g, e, c, power: sample_complexity(a, p, g, e, constant=c, log_power=power)
    given = (2.0, 3, 0.5, 0.1, 5.0, 1.5)
    assert size(*given) == pytest.approx(expected, rel=1e-13)
    assert jax.jit(size)(*map(np.asarray, given)) == pytest.approx(expected, rel=1e-13)
    assert sample_complexity(1.0, 10**400, 1.0, 1.0) == pytest.approx(1 + 400 * math.log(10))
    with pytest.raises(ValueError, match=r"gamma=0, expected positive"):
        sample_complexity(1.0, 2, 0, 0.5)
    with pytest.raises(ValueError, match=r"gamma=0, expected positive"):
        jax.make_jaxpr(lambda e: sample_complexity(1.0, 2, 0, e))(0.5)


def test_traced_misses_by_hand(x64):
    assert jax.jit(unseen_difference)(np.asarray(0.5), np.asarray(3.0)) == 0.5**4
    with pytest.raises(ValueError, match=r"difference=1\.5, expected a number in \[0, 1\],"):
        unseen_difference(1.5, 3.0)
