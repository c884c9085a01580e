"""The feedforward networks: the public code's, and the class that Theorem 6 is about."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.qstr.initialisers import uniform_fan_in
from jaxbounds.qstr.transformer import TorchMLP


class FeedForward(nn.Module):
    """A ReLU network on the flattened encoded prompt, with one output per position.

    Attributes:
        widths: of the hidden layers; the public code uses (N d, 1000), which grows with N.
    """

    widths: tuple[int, ...]

    @nn.compact
    def __call__(self, z: Float[Array, "*batch N De"]) -> Float[Array, "*batch N"]:
        """Predictions at every position."""
        flat = z.reshape(*z.shape[:-2], -1)
        return TorchMLP((*self.widths, z.shape[-2]), name="mlp")(flat)


class FirstLayerNetwork(nn.Module):
    """A predictor f(t, W x) of Theorem 6: the tokens enter only through the first layer W.

    Attributes:
        width: of the first layer W, whose rows live in R^{N d}.
        readout: widths of the hidden layers after it, which also see the one-hot position.
    """

    width: int
    readout: tuple[int, ...] = ()

    @nn.compact
    def __call__(
        self, x: Float[Array, "*batch Nd"], position: Float[Array, "*batch N"]
    ) -> Float[Array, "*batch"]:
        """Predictions for flattened tokens and a one-hot position."""
        W = self.param("W", uniform_fan_in(x.shape[-1]), (self.width, x.shape[-1]))
        b = self.param("b", uniform_fan_in(x.shape[-1]), (self.width, position.shape[-1]))
        hidden = jnp.einsum("...i,oi->...o", x, W) + jnp.einsum("...n,on->...o", position, b)
        hidden = jnp.concatenate([jax.nn.relu(hidden), position], axis=-1)
        return TorchMLP((*self.readout, 1), name="readout")(hidden)[..., 0]
