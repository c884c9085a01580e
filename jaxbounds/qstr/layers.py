"""Layers with PyTorch's initialisation, as in the paper's public code, and a ReLU network."""

import math
from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Initialiser = Callable[..., Array]


def uniform(bound: float, /) -> Initialiser:
    """Return an initialiser that draws from U(-bound, bound)."""
    return lambda key, shape, dtype=float: jax.random.uniform(
        key, shape, dtype, minval=-bound, maxval=bound
    )


def uniform_fan_in(fan_in: int, /) -> Initialiser:
    """Return an initialiser that draws from U(-1/sqrt(fan_in), 1/sqrt(fan_in)), as PyTorch does."""
    return uniform(1.0 / math.sqrt(fan_in))


def dense(
    x: Float[Array, "*batch i"], W: Float[Array, "o i"], b: Float[Array, "o"], /
) -> Float[Array, "*batch o"]:
    """Apply the affine map x W^T + b."""
    out = jnp.einsum("...i,oi->...o", x, W)
    return out + jnp.broadcast_to(b, out.shape)


class TorchMLP(nn.Module):
    """A ReLU network whose layers are initialised like PyTorch's Linear.

    Attributes:
        widths: the widths of the hidden layers, followed by the width of the output.
    """

    widths: tuple[int, ...]

    @nn.compact
    def __call__(self, x: Float[Array, "*batch i"]) -> Float[Array, "*batch o"]:
        """Return the network's output."""
        for layer, width in enumerate(self.widths):
            start = uniform_fan_in(x.shape[-1])
            W = self.param(f"W{layer}", start, (width, x.shape[-1]))
            b = self.param(f"b{layer}", start, (width,))
            x = dense(x, W, b)
            x = x if layer == len(self.widths) - 1 else jax.nn.relu(x)
        return x


class FeedForward(nn.Module):
    """A ReLU network on the flattened encoded prompt, with one output per position.

    Attributes:
        widths: the hidden widths; the paper's public code uses (N d, 1000), where N d grows with N.
    """

    widths: tuple[int, ...]

    @nn.compact
    def __call__(self, z: Float[Array, "*batch N De"]) -> Float[Array, "*batch N"]:
        """Return the predictions at every position of each prompt."""
        flat = z.reshape(*z.shape[:-2], -1)
        return TorchMLP((*self.widths, z.shape[-2]), name="mlp")(flat)
