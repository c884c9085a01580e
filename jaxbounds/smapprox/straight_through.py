"""Activations with their true values, and a surrogate derivative that does not vanish.

The true gradient of a compiled network vanishes: rounding is constant outside a short interval,
hard-max is piecewise constant, and many pre-activations are exactly 0.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def relu(z: Float[Array, "*s"], /, *, straight_through: bool) -> Float[Array, "*s"]:
    """Compute the ReLU of z; if `straight_through` is true, the derivative is 1 everywhere."""
    value = jnp.maximum(z, 0.0)
    return z + jax.lax.stop_gradient(value - z) if straight_through else value


def maximisers(
    scores: Float[Array, "n"], allowed: Bool[Array, "n"], /, *, tie_tolerance: float = 0.0
) -> Bool[Array, "n"]:
    """Return a mask of the allowed scores that are within `tie_tolerance` of their maximum."""
    masked = jnp.where(allowed, scores, -jnp.inf)
    return allowed & (masked >= masked.max() - tie_tolerance)


def hard_max(
    scores: Float[Array, "n"],
    allowed: Bool[Array, "n"],
    /,
    *,
    straight_through: bool = False,
    tie_tolerance: float = 0.0,
) -> tuple[Float[Array, "n"], Float[Array, ""]]:
    """Return an array (1 at each largest allowed score, 0 elsewhere) and the number of its ones.

    The array is not divided by the number of ones k, because rounding makes k (1/k) differ from 1
    for k = 41, 49, .... `straight_through` gives the derivative of softmax.
    """
    best = maximisers(scores, allowed, tie_tolerance=tie_tolerance).astype(scores.dtype)
    best, count = jax.lax.stop_gradient((best, best.sum()))
    if straight_through:
        soft = soft_max(scores, allowed, 1.0)
        best = best + count * (soft - jax.lax.stop_gradient(soft))
    return best, count


def hard_attention(scores: Float[Array, "n"], values: Float[Array, "n *d"], /) -> Array:
    """Compute the mean of the values over the maximisers of the scores (Section 4)."""
    best, count = hard_max(scores, jnp.ones(scores.shape, bool))
    return best @ values / count


def soft_max(
    scores: Float[Array, "n"], allowed: Bool[Array, "n"], inverse_temperature: float | Array, /
) -> Float[Array, "n"]:
    """Compute softmax(inverse_temperature * scores) over allowed entries, exactly 0 elsewhere."""
    return jax.nn.softmax(inverse_temperature * scores, where=allowed)
