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
        slope = jax.grad(loss)(params)
        # Optax mixes floats with integer counts, which strict promotion refuses.
        with jax.numpy_dtype_promotion("standard"):
            updates, state = optimizer.update(slope, state, params)
        return (optax.apply_updates(params, updates), state), params

    (last, _), earlier = jax.lax.scan(step, (params, optimizer.init(params)), length=steps)
    join = lambda rows, row: jax.numpy.concatenate([rows, row[None]])
    return jax.tree.map(join, earlier, last)
