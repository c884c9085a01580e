"""A pre-LN Transformer classifier whose heads split its width or have a fixed width."""

from typing import Literal, get_args

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused

Arm = Literal["split", "fixed"]


class HeadSum(nn.Module):
    """Self-attention as a sum over heads.

    Attributes:
        arm: the way to vary the number of heads. "split": heads of width d / H, summed (this equals
            the standard layer, which concatenates the heads' outputs and projects them). "fixed":
            heads of width `width`, summed and divided by sqrt(H), as in equation (2) of the paper.
        width: the width of each head if `arm` is "fixed".
    """

    heads: int
    arm: Arm
    width: int = 8

    @nn.compact
    def __call__(self, x: Float[Array, "*n T d"]) -> Float[Array, "*n T d"]:
        """Compute the sum of the outputs of the H attention heads on the input x.

        Raises:
            Refused: if `arm` is not a known way to vary the number of heads, or if H does not
                divide d for arm="split".
        """
        d = x.shape[-1]
        if self.arm not in get_args(Arm):
            raise Refused(
                f"arm={self.arm!r} is no way to vary the number of heads, expected one of"
                f" {', '.join(get_args(Arm))}. Try arm='split'"
            )
        if self.arm == "split" and d % self.heads:
            raise Refused(
                f"heads={self.heads} do not divide the width d={d}, expected a divisor. Try heads=1"
            )
        width = self.width if self.arm == "fixed" else d // self.heads
        inner = nn.initializers.variance_scaling(
            1.0, "fan_in", "normal", in_axis=0, out_axis=(1, 2)
        )
        shape = (d, self.heads, width)
        query, key, value = (
            jnp.einsum("...td,dhk->...htk", x, self.param(name, inner, shape))
            for name in ("query", "key", "value")
        )
        # The output has unit variance for unit values in both arms: in "split", all heads feed each
        # output; in "fixed", the sum over heads is divided by sqrt(H).
        fan_in = width if self.arm == "fixed" else d
        outer = nn.initializers.normal(fan_in**-0.5)
        out = self.param("out", outer, (self.heads, width, d))
        scores = jnp.einsum("...htk,...hsk->...hts", query, key) / width**0.5
        mixed = jnp.einsum("...hts,...hsk->...htk", jax.nn.softmax(scores, axis=-1), value)
        total = jnp.einsum("...htk,hkd->...td", mixed, out)
        return total / self.heads**0.5 if self.arm == "fixed" else total


class Encoder(nn.Module):
    """Embedding, pre-LN blocks with residuals and a GELU layer, mean over tokens, one output.

    Attributes:
        arm: the way to vary the number of heads, "split" or "fixed" (see `HeadSum`).
        width: the width of each head if `arm` is "fixed".
        nonlinear: whether the network has GELU layers, and a final layer norm after the attention.
            Without GELU layers and the final norm, and with one block, the output is linear in the
            heads, as in the paper's model.
    """

    heads: int
    arm: Arm
    dimension: int = 64
    layers: int = 1
    width: int = 8
    nonlinear: bool = True

    @nn.compact
    def __call__(self, tokens: Float[Array, "*n T c"]) -> Float[Array, "*n"]:
        """Compute the classifier's output; its sign is the label."""
        d = self.dimension
        place = self.param("place", nn.initializers.normal(0.1), (tokens.shape[-2], d))
        embedded = nn.Dense(d, name="embed")(tokens)
        x = embedded + jnp.broadcast_to(place, embedded.shape)
        for i in range(self.layers):
            normed = nn.LayerNorm(name=f"norm_{i}")(x)
            x = x + HeadSum(self.heads, self.arm, self.width, name=f"attention_{i}")(normed)
            if self.nonlinear:
                hidden = nn.Dense(2 * d, name=f"wide_{i}")(nn.LayerNorm(name=f"norm_wide_{i}")(x))
                x = x + nn.Dense(d, name=f"narrow_{i}")(nn.gelu(hidden))
        if self.nonlinear:
            x = nn.LayerNorm(name="norm_out")(x)
        return nn.Dense(1, name="readout")(jnp.mean(x, axis=-2))[..., 0]
