"""Softmax attention in place of hard-max, and the inverse temperature that makes rounding exact.

All values are binary, so the error of an output coordinate is at most the attention mass outside
the maximisers (the off-mass). If a key matches the query, the null key's score is 1 less, and all
others are at least 2 less. The off-mass is then at most e^-b + T e^-2b at inverse temperature b. If
no key matches, the null key is best, and up to T keys have a score 1 less. The off-mass is then at
most T e^-b / (1 + T e^-b), which is tight. A correction of radius s restores the state exactly if
the off-mass is below s.
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.smapprox.correction import Correction
from jaxbounds.smapprox.straight_through import hard_attention, soft_max


def inverse_temperature(T: int, correction: Correction, /) -> float:
    """Compute ln((T + 1)(1 - radius)/radius), an inverse temperature with an exact correction.

    It is ln(2T + 2) for the correction `THIRDS` and ln(3T + 3) for `DYADIC`.
    """
    return math.log((T + 1) * (1.0 - correction.radius) / correction.radius)


def least_inverse_temperature(T: int, correction: Correction, /) -> float:
    """Compute ln(T (1 - s)/s), the least inverse temperature for corrections of radius s.

    At any lower inverse temperature, there is a memory of T keys for which the correction fails.
    """
    return math.log(T * (1.0 - correction.radius) / correction.radius)


def off_mass(
    gaps: Float[Array, "n"], inverse_temperature: float | Float[Array, ""], /
) -> Float[Array, ""]:
    """Compute the softmax mass of all keys except the best, from their score gaps to the best."""
    weights = jnp.exp(-inverse_temperature * gaps)
    return weights.sum() / (1.0 + weights.sum())


def off_mass_bound(
    T: int, inverse_temperature: float | Float[Array, ""], /, *, match: bool
) -> Float[Array, ""]:
    """Compute the largest softmax mass outside the best keys; `match` tells if a key matches."""
    unit = jnp.exp(-jnp.asarray(inverse_temperature))
    rest = unit + T * unit**2 if match else T * unit
    return rest / (1.0 + rest)


def attention_error(
    scores: Float[Array, "n"],
    values: Float[Array, "n d"],
    inverse_temperature: float | Float[Array, ""],
    /,
) -> Float[Array, ""]:
    """Compute the largest difference, over coordinates, of softmax and hard-max attention."""
    soft = soft_max(scores, jnp.ones(scores.shape, bool), inverse_temperature) @ values
    return jnp.abs(soft - hard_attention(scores, values)).max()
