"""Assumption 2 with an explicit theta(eps): a population that zero initialisation separates.

At zero initialisation, every head attends uniformly to all tokens. If the rows of every head's U
have the direction mu_+ - mu_-, the model therefore classifies by a linear function of the mean
token, with margin gamma.
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
"""A population with R = 1 that `class_direction` separates at zero initialisation."""
REALIZABLE_MARGIN = (2 - 0.4) / math.sqrt(6)
"""The margin gamma = sqrt(T / 2) (relevant - 2 noise irrelevant) / T of the population.

Every sequence has at least this margin at zero initialisation. The distances g_0 and g are
proportional to 1 / gamma.
"""


def class_direction() -> Params:
    """Return Definition 1's theta*, of norm sqrt(2), for two heads.

    The rows of each head's U are (1, -1) / sqrt(6), the class direction mu_+ - mu_- scaled; W is 0.
    """
    outer = jnp.stack([jnp.ones(3), -jnp.ones(3)], axis=1) / math.sqrt(6)
    return {"U": jnp.broadcast_to(outer, (2, 3, 2)), "W": jnp.zeros((2, 2, 2))}


def realizer(level: ArrayLike, copies: Float[Array, " G"], /) -> Params:
    """Return theta(eps) of Assumption 2: margin log(1 + 1/eps), so every loss is at most eps."""
    length = jnp.log1p(1 / level) / (REALIZABLE_MARGIN * jnp.sqrt(jnp.sum(copies)))
    direction = class_direction()
    return {**direction, "U": length * direction["U"]}


def realizing_distance(
    level: ArrayLike, slack: ArrayLike = 1.0, /, *, margin: ArrayLike = REALIZABLE_MARGIN
) -> Any:
    """Return g_0(eps) = slack log(1 + 1/eps) / gamma, at least ||theta(eps) - theta_0||.

    `slack` is at least 1; if it exceeds 1, g_0 is strictly larger than ||theta(eps) - theta_0||.
    The formula is valid if a direction of norm one separates the population at zero with margin
    gamma.
    """
    xp = array_module(level, slack, margin)
    return xp.asarray(slack) * xp.log1p(1 / xp.asarray(level)) / margin


def realizing_size(level: ArrayLike, heads: ArrayLike, slack: ArrayLike = 1.0, /) -> Any:
    """Return g(eps) = g_0(eps) / sqrt(H) >= ||theta(eps)||_{2,infinity}."""
    return realizing_distance(level, slack) / array_module(level, heads, slack).sqrt(heads)
