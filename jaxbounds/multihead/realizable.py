"""Assumption 2 with an explicit theta(eps): a population that zero initialisation separates.

At zero every head attends uniformly, so that a class direction shared by all heads is a linear
classifier of the mean token with margin gamma, and Corollaries 3 and 4 have something to run on.
"""

import math
from typing import Any

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxbounds.multihead.data import SparseContext
from jaxbounds.multihead.model import Params
from jaxbounds.numerics.arrays import array_module

REALIZABLE = SparseContext(
    tokens=3, dimension=2, relevant=2, distractors=0, signal=1.0, noise_mu=0.2, noise_nu=0.0
)
"""A population with R = 1 that the class direction separates at zero initialisation."""
REALIZABLE_MARGIN = (2 - 0.4) / math.sqrt(6)
"""gamma = sqrt(T / 2) (relevant - 2 noise irrelevant) / T, sure for every sequence of it."""


def class_direction() -> Params:
    """theta* of Definition 1 for two heads: the class direction in U, of norm sqrt(2) in all."""
    outer = jnp.stack([jnp.ones(3), -jnp.ones(3)], axis=1) / math.sqrt(6)
    return {"U": jnp.broadcast_to(outer, (2, 3, 2)), "W": jnp.zeros((2, 2, 2))}


def realizer(level: ArrayLike, copies: Float[Array, " G"], /) -> Params:
    """theta(eps) of Assumption 2: margin log(1 + 1/eps), so that every loss is at most eps."""
    length = jnp.log1p(1 / level) / (REALIZABLE_MARGIN * jnp.sqrt(jnp.sum(copies)))
    direction = class_direction()
    return {**direction, "U": length * direction["U"]}


def realizing_distance(
    level: ArrayLike, slack: ArrayLike = 1.0, /, *, margin: ArrayLike = REALIZABLE_MARGIN
) -> Any:
    """g_0(eps) = slack log(1 + 1/eps) / gamma; with slack more than ||theta(eps) - theta_0||.

    Of any population that a direction of norm one separates at zero with that margin.
    """
    xp = array_module(level, slack, margin)
    return xp.asarray(slack) * xp.log1p(1 / xp.asarray(level)) / margin


def realizing_size(level: ArrayLike, heads: ArrayLike, slack: ArrayLike = 1.0, /) -> Any:
    """g(eps) = g_0(eps) / sqrt(H) >= ||theta(eps)||_{2,infinity}."""
    return realizing_distance(level, slack) / array_module(level, heads, slack).sqrt(heads)
