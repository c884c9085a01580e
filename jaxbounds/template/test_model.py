"""Tests of the formulas against numbers that were computed by hand."""

import jax.numpy as jnp
import numpy as np

from . import model


def test_attention_of_two_tokens():
    """The scores log 3 and 0 have the softmax weights 3/4 and 1/4."""
    output = model.attend(jnp.log(jnp.array([3.0, 1.0])), jnp.array([[4.0], [0.0]]))
    np.testing.assert_allclose(output, [3.0], rtol=1e-6)


def test_jacobian_of_two_tokens():
    """For the weights p = (3/4, 1/4) all entries of the Jacobian are +-3/16."""
    jacobian = model.softmax_jacobian(jnp.log(jnp.array([3.0, 1.0])))
    np.testing.assert_allclose(jacobian, 3 / 16 * np.array([[1, -1], [-1, 1]]), rtol=1e-6)
