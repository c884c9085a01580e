"""Softmax attention in place of hard-max: how cold it must be for rounding to be exact.

All values are binary, so an output coordinate is off by at most the attention mass outside the
maximisers. The best score beats the next by 1. With a match, the null key is one below it and all
other keys two: off-mass at most e^-b + T e^-2b. Without, up to T keys are one below the null key:
off-mass at most T e^-b / (1 + T e^-b), which is tight. A correction of radius s restores the state
exactly when the off-mass is below s.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.smapprox.correction import Correction
from jaxbounds.smapprox.straight_through import hard_attention, soft_max


def inverse_temperature(T: int, correction: Correction, /) -> float:
    """An inverse temperature at which rounding is exact: ln(2T + 2) for thirds, ln(3T + 3) dyadic.

    In general ln((T + 1)(1 - radius)/radius).
    """
    return math.log((T + 1) * (1.0 - correction.radius) / correction.radius)


def least_inverse_temperature(T: int, correction: Correction, /) -> float:
    """The value below which some memory of T keys defeats the correction: ln(T (1 - s)/s)."""
    return math.log(T * (1.0 - correction.radius) / correction.radius)


def off_mass(
    gaps: Float[Array, "n"], inverse_temperature: float | Float[Array, ""], /
) -> Float[Array, ""]:
    """Softmax mass outside the best score, from the gaps (at least 1) of the others to it."""
    weights = jnp.exp(-inverse_temperature * gaps)
    return weights.sum() / (1.0 + weights.sum())


def off_mass_bound(
    T: int, inverse_temperature: float | Float[Array, ""], /, *, match: bool
) -> Float[Array, ""]:
    """The largest off-mass with T keys in memory, with or without a matching key."""
    unit = jnp.exp(-jnp.asarray(inverse_temperature))
    rest = unit + T * unit**2 if match else T * unit
    return rest / (1.0 + rest)


def attention_error(
    scores: Float[Array, "n"],
    values: Float[Array, "n d"],
    inverse_temperature: float | Float[Array, ""],
    /,
) -> Float[Array, ""]:
    """The largest coordinate error of softmax against hard-max on given scores and values."""
    soft = soft_max(scores, jnp.ones(scores.shape, bool), inverse_temperature) @ values
    return jnp.abs(soft - hard_attention(scores, values)).max()
