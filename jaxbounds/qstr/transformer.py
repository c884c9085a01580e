"""The paper's one-layer Transformer (Section 3) and the Transformer of its public code.

Both Transformers map encoded tokens z (..., N, De) to predictions (..., N), at all positions in
parallel.
"""

import math
from collections.abc import Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.qstr.layers import TorchMLP, dense, uniform, uniform_fan_in


def attention(
    z: Float[Array, "*batch N De"], W_QK: Float[Array, "De De"], /
) -> Float[Array, "*batch N De"]:
    """Return f_Attn(p; W_QK)_i = sum_j softmax_j(z_i^T W_QK z_j) z_j for every i.

    The logits are not scaled, and there is no value matrix.
    """
    logits = jnp.einsum("...id,de,...je->...ij", z, W_QK, z)
    return jax.nn.softmax(logits, axis=-1) @ z


class SparseTransformer(nn.Module):
    """The paper's Transformer: H heads of `attention`, then a two-layer ReLU network.

    The prediction at i is a^T relu(W (f^(1)_i; ..; f^(H)_i) + b), without a residual connection.

    Attributes:
        heads: the number H of heads.
        width: the width m of the two-layer network.
    """

    heads: int
    width: int

    @nn.compact
    def __call__(self, z: Float[Array, "*batch N De"]) -> Float[Array, "*batch N"]:
        """Return the predictions at every position."""
        De = z.shape[-1]
        W_QK = self.param("W_QK", nn.initializers.normal(1.0 / De), (self.heads, De, De))
        W = self.param("W", uniform_fan_in(self.heads * De), (self.width, self.heads * De))
        b = self.param("b", uniform_fan_in(self.heads * De), (self.width,))
        a = self.param("a", uniform_fan_in(self.width), (self.width,))
        attended = [attention(z, W_QK[h]) for h in range(self.heads)]
        hidden = jnp.einsum("...k,mk->...m", jnp.concatenate(attended, axis=-1), W)
        hidden = jax.nn.relu(hidden + jnp.broadcast_to(b, hidden.shape))
        return jnp.einsum("...m,m->...", hidden, a)


class PublishedTransformer(nn.Module):
    """The public code's Transformer: PyTorch's multi-head attention, then an MLP De -> width -> 1.

    The attention has separate query, key, value and output maps with biases. Logits are divided by
    sqrt(De / heads). The network has no residual connection and no normalisation. Weight matrices
    have the shape (out, in), as in PyTorch.

    Attributes:
        heads: the number of heads; De must be a multiple of this number.
        width: the width of the MLP's hidden layer.
    """

    heads: int = 1
    width: int = 100

    @nn.compact
    def __call__(self, z: Float[Array, "*batch N De"]) -> Float[Array, "*batch N"]:
        """Return the predictions at every position.

        Raises:
            Refused: if De is not a multiple of the number of heads.
        """
        De = z.shape[-1]
        if De % self.heads:
            raise Refused(
                f"De={De} does not split into heads={self.heads}, expected a divisor. Try heads=1"
            )
        # Xavier-uniform over the stacked map.
        xavier = uniform(math.sqrt(6.0 / (4 * De)))
        W_in = self.param("in_proj_weight", xavier, (3 * De, De))
        b_in = self.param("in_proj_bias", nn.initializers.zeros, (3 * De,))
        W_out = self.param("out_proj_weight", uniform_fan_in(De), (De, De))
        b_out = self.param("out_proj_bias", nn.initializers.zeros, (De,))
        mixed = multi_head_attention(z, W_in, b_in, W_out, b_out, heads=self.heads)
        return TorchMLP((self.width, 1), name="mlp")(mixed)[..., 0]


def multi_head_attention(
    z: Float[Array, "*batch N De"],
    W_in: Float[Array, "3*De De"],
    b_in: Float[Array, "3*De"],
    W_out: Float[Array, "De De"],
    b_out: Float[Array, "De"],
    /,
    *,
    heads: int,
) -> Float[Array, "*batch N De"]:
    """Apply scaled dot-product self-attention with PyTorch's stacked (q, k, v) weights."""
    De = z.shape[-1]
    stacked = dense(z, W_in, b_in)
    split = lambda part: part.reshape(*part.shape[:-1], heads, De // heads)
    query, key, value = (split(part) for part in jnp.split(stacked, 3, axis=-1))
    logits = jnp.einsum("...ihk,...jhk->...hij", query, key) / math.sqrt(De // heads)
    mixed = jnp.einsum("...hij,...jhk->...ihk", jax.nn.softmax(logits, axis=-1), value)
    return dense(mixed.reshape(z.shape), W_out, b_out)


def attention_map(params: Mapping[str, Any], /) -> Float[Array, "De De"]:
    """Return W_Q^T W_K of a one-head `PublishedTransformer`, the matrix that Figure 2 shows."""
    W_in = params["params"]["in_proj_weight"]
    De = W_in.shape[1]
    return W_in[:De].T @ W_in[De : 2 * De]
