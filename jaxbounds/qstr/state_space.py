"""A linear state-space model, an example of how to add an architecture that the paper lacks."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.qstr.layers import TorchMLP


def diagonal_recurrence(
    decay: Float[Array, "h"], inputs: Float[Array, "*batch N h"], /, *, reverse: bool = False
) -> Float[Array, "*batch N h"]:
    """Compute h_i = decay * h_{i-1} + inputs_i for all i in parallel.

    The scan combines the pairs (decay, inputs_i) by the associative operation (a, b)(a', b') = (a
    a', a' b + b').
    """

    def combine(earlier: tuple, later: tuple) -> tuple:
        return earlier[0] * later[0], later[0] * earlier[1] + later[1]

    decays = jnp.broadcast_to(decay, inputs.shape)
    axis = inputs.ndim - 2
    return jax.lax.associative_scan(combine, (decays, inputs), axis=axis, reverse=reverse)[1]


class LinearStateSpace(nn.Module):
    """A model with diagonal linear recurrences in both directions and a ReLU readout.

    Attributes:
        hidden: the dimension of the state of each direction.
        readout_widths: the hidden widths of the readout; the readout's input is both states and the
            token itself.
    """

    hidden: int = 64
    readout_widths: tuple[int, ...] = (100,)

    @nn.compact
    def __call__(self, z: Float[Array, "*batch N De"]) -> Float[Array, "*batch N"]:
        """Return the predictions at every position."""
        states = []
        for name, reverse in (("forward", False), ("backward", True)):
            # sigmoid keeps every |decay| below one; the start spreads the decays over time scales.
            spread = lambda key, shape: jnp.linspace(-1.0, 4.0, shape[0])
            decay = jax.nn.sigmoid(self.param(f"{name}_decay", spread, (self.hidden,)))
            driven = TorchMLP((self.hidden,), name=name)(z)
            states.append(diagonal_recurrence(decay, driven, reverse=reverse))
        features = jnp.concatenate([*states, z], axis=-1)
        return TorchMLP((*self.readout_widths, 1), name="readout")(features)[..., 0]
