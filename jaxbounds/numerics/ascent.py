"""Estimate a supremum from below: the largest function value along a projected gradient ascent."""

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
    """Return the largest value that the ascent found, a lower estimate of a supremum over a set.

    The ascent takes `steps` steps from each start, along the normalised gradient, and projects the
    point onto the set after each step. The step length falls linearly from `rate` towards zero.

    Args:
        objective: the function to maximise; it maps a point to a scalar.
        project: a function that projects a point onto the set.
        starts: the points of the set at which the ascent starts, of shape (n, ...).
        steps: the number of steps from each start.
        rate: the length of the first step.
    """

    def step(point: Array, length: Array) -> tuple[Array, Array]:
        value, slope = jax.value_and_grad(objective)(point)
        steepness = vector_norm(slope.ravel())
        unit = slope / jnp.where(steepness > 0, steepness, 1.0)
        return project(point + length * unit), value

    lengths = rate * (1.0 - jnp.arange(steps).astype(starts.dtype) / steps)
    ends, met = jax.vmap(lambda start: jax.lax.scan(step, start, lengths))(starts)
    return jnp.maximum(jnp.max(met), jnp.max(jax.vmap(objective)(ends)))
