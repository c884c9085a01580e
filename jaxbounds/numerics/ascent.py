"""Suprema from below: the largest value that projected gradient ascent meets."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.numerics.norms import vector_norm


def projected_ascent(
    objective: Callable[[Array], Array],
    project: Callable[[Array], Array],
    starts: Float[Array, "n ..."],
    /,
    *,
    steps: int,
    rate: float,
) -> Float[Array, ""]:
    """A lower estimate of the supremum of a function over a set: the largest value met anywhere.

    From each start `steps` steps along the normalised gradient, each projected back; their length
    falls linearly from `rate` to zero.

    Args:
        objective: a point to a number.
        project: onto the set.
        starts: points of the set.
        steps: from each start.
        rate: the length of the first.
    """

    def step(point: Array, length: Array) -> tuple[Array, Array]:
        value, slope = jax.value_and_grad(objective)(point)
        steepness = vector_norm(slope.ravel())
        unit = slope / jnp.where(steepness > 0, steepness, 1.0)
        return project(point + length * unit), value

    lengths = rate * (1.0 - jnp.arange(steps).astype(starts.dtype) / steps)
    ends, met = jax.vmap(lambda start: jax.lax.scan(step, start, lengths))(starts)
    return jnp.maximum(jnp.max(met), jnp.max(jax.vmap(objective)(ends)))
