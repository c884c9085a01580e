"""One pure training step, scanned."""

from collections.abc import Callable
from typing import Any

import jax
import optax
from jaxtyping import Array, Float

Params = Any
Loss = Callable[[Params], Float[Array, ""]]


def trajectory(
    loss: Loss, params: Params, optimizer: optax.GradientTransformation, steps: int, /
) -> Params:
    """The iterates of an optimiser from `params` on, stacked: leaves of length `steps + 1`."""

    def step(carry, _):
        params, state = carry
        updates, state = optimizer.update(jax.grad(loss)(params), state, params)
        return (optax.apply_updates(params, updates), state), params

    (last, _), earlier = jax.lax.scan(step, (params, optimizer.init(params)), length=steps)
    join = lambda rows, row: jax.numpy.concatenate([rows, row[None]])
    return jax.tree.map(join, earlier, last)
