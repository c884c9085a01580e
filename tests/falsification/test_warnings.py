"""Sides that are infinite or NaN: the verdict speaks of them, and NumPy does not."""

import warnings

import jax.numpy as jnp
import pytest

import jaxbounds as jb

FEW = jb.Budget(samples=32, restarts=2, steps=5)
SIDES = {
    "overflow": lambda x: jnp.exp(1e3 * jnp.sum(x)),
    "infinite": lambda x: 1 / (0 * jnp.sum(x)),
    "NaN": lambda x: jnp.nan * jnp.sum(x),
    "the logarithm of negative numbers": lambda x: jnp.log(jnp.sum(x)),
    "the largest floats": lambda x: 1e308 + 1e300 * x[0],
}


@pytest.mark.default_cases(
    "overflow-=", "infinite->=", "NaN-=", "the logarithm of negative numbers-<=",
    "the largest floats-<=",
)  # fmt: skip
@pytest.mark.parametrize("relation", ["<=", ">=", "="])
@pytest.mark.parametrize("name", SIDES)
def test_no_warning_of_numpy_reaches_the_user(name, relation):
    claim = jb.claim(
        "t.warns", SIDES[name], relation, lambda x: 1 + jnp.sum(jnp.abs(x)),
        over={"x": jb.Reals("d")}, sizes={"d": (1, 2)}, false=[0.0], budget=FEW,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        printed, _ = jb.falsify(claim)
    assert printed.status != "holds" and printed.reason
