"""Assumption 2 with an explicit theta(eps): a population that zero initialisation separates.

At zero every head attends uniformly, so that a class direction shared by all heads is a linear
classifier of the mean token with margin gamma, and Corollaries 3 and 4 have something to run on.
Instances are those of `jaxbounds.multihead.runs` with fresh data, `slack` and theta = theta(1/K).
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxbounds.multihead.data import SparseContext
from jaxbounds.multihead.descent import PRINTED_WEIGHT, reach, rho, rho_sharp
from jaxbounds.multihead.model import Params
from jaxbounds.multihead.runs import certified_roots, setting
from jaxbounds.statements import Instance, Size

REALIZABLE = SparseContext(
    tokens=3, dimension=2, relevant=2, distractors=0, signal=1.0, noise_mu=0.2, noise_nu=0.0
)
"""A population with R = 1 that the class direction separates at zero initialisation."""
REALIZABLE_MARGIN = (2 - 0.4) / math.sqrt(6)
"""gamma = sqrt(T / 2) (relevant - 2 noise irrelevant) / T, sure for every sequence of it."""


def realizer(instance: Instance, level: Array, /) -> Params:
    """theta(eps) of Assumption 2: margin log(1 + 1/eps), so that every loss is at most eps."""
    direction = jnp.stack([jnp.ones(3), -jnp.ones(3)], axis=1) / math.sqrt(6)
    length = jnp.log1p(1 / level) / (REALIZABLE_MARGIN * jnp.sqrt(jnp.sum(instance["copies"])))
    outer = jnp.broadcast_to(length * direction, (2, 3, 2))
    return {"U": outer, "W": jnp.zeros((2, 2, 2))}


def distance_function(instance: Instance, level: Array, /) -> Array:
    """g_0(eps); strictly more than ||theta(eps) - theta_0|| where the instance has slack."""
    return instance["slack"] * jnp.log1p(1 / level) / REALIZABLE_MARGIN


def realizable(key: jax.Array, size: Size) -> Instance:
    """DM1 from zero initialisation with the target theta(1/K), H and eta of Corollaries 3 and 4.

    H is that of (81) or (95), or of the sharpened constants; g(eps) = g_0(eps) / sqrt(H). There
    are as many fresh sequences {"X_test", "y_test"} as would make sixteen training sets.
    """
    data_key, test_key, number_key, kind_key = jax.random.split(key, 4)
    data, fresh = (
        REALIZABLE.sample(data_key, size["n"]),
        REALIZABLE.sample(test_key, 16 * size["n"]),
    )
    kind = jax.random.randint(kind_key, (), 0, 4)
    numbers = jax.random.uniform(number_key, (2,))
    K = jnp.floor(4.0 * 15.0 ** numbers[0]).astype(int)
    time = K.astype(numbers.dtype)
    slack = jnp.maximum(1.0, 0.7 + 0.8 * numbers[1])
    partial = {"slack": slack, "copies": jnp.ones(2)}
    distance = distance_function(partial, 1 / time)
    zero = {"U": jnp.zeros((2, 3, 2)), "W": jnp.zeros((2, 2, 2))}
    no = jnp.bool_(False)
    roots = certified_roots(zero, jnp.ones(()), distance, no, PRINTED_WEIGHT, {"T": 3, "d": 2})
    heads = 2 * jnp.ceil(roots[kind] ** 2 / 2)
    size_target = distance / jnp.sqrt(heads)
    printed = rho(distance, size_target, 1.0, heads, T=3, d=2)
    sharp = rho_sharp(
        distance, size_target, size_target**2, 1.0, heads, T=3, far=reach(PRINTED_WEIGHT)
    )
    certified = jnp.where(kind % 2 == 0, jnp.minimum(1 / printed, 1.0), 1 / sharp)
    largest = jnp.minimum(certified, distance_function(partial, jnp.ones(())) ** 2)
    instance = {
        **data,
        "X_test": fresh["X"],
        "y_test": fresh["y"],
        "U0": zero["U"],
        "W0": zero["W"],
        "copies": jnp.stack([heads / 2, heads / 2]),
        "step": (1 - 1e-12) * largest,
        "K": K,
        "slack": slack,
    }
    return instance | realizer(instance, 1 / time)


@jax.jit
def realized(instance: Instance) -> dict:
    """Assumption 2 at eps = 1/K: L(theta) <= 1/K, ||theta - theta_0|| <= g_0, ||theta|| <= g."""
    s = setting(instance)
    K = instance["K"].astype(s.heads.dtype)
    allowed = distance_function(instance, 1 / K) * (1 + 1e-12)
    return {
        "L(theta(1/K)) <= 1/K": s.loss_target <= 1 / K,
        "||theta(1/K) - theta_0|| <= g_0(1/K)": s.distance <= allowed,
        "||theta(1/K)||_{2,inf} <= g(1/K)": s.size <= allowed / jnp.sqrt(s.heads),
    }


REALIZABLE_RUNS = {"DM1 from zero": realizable}
