"""The loss at which the eigenvalue benchmarks are run: DM1-like data, H random heads."""

import jax
import jax.numpy as jnp

from jaxbounds.multihead.data import SparseContext
from jaxbounds.multihead.loss import empirical_risk


def problem(heads: int, *, n: int = 100):
    """Parameters of `heads` heads and data with T = 10, d = 4 in float64."""
    model = SparseContext(tokens=10, dimension=4, relevant=1, distractors=2)
    keys = jax.random.split(jax.random.key(0), 3)
    params = {
        "U": 0.5 * jax.random.normal(keys[0], (heads, 10, 4)),
        "W": 0.5 * jax.random.normal(keys[1], (heads, 4, 4)),
    }
    return params, model.sample(keys[2], n)


def flat_risk(heads: int, data):
    """The loss as a function of one vector, head by head, U then W."""

    def risk(flat):
        rows = flat.reshape(heads, 56)
        params = {"U": rows[:, :40].reshape(heads, 10, 4), "W": rows[:, 40:].reshape(heads, 4, 4)}
        return empirical_risk(params, data)

    return risk


def flatten(params):
    """The vector at which `flat_risk` equals the loss at `params`."""
    heads = params["U"].shape[0]
    return jnp.concatenate(
        [params["U"].reshape(heads, -1), params["W"].reshape(heads, -1)], axis=1
    ).ravel()
