"""The network of the sparse majority experiment, and a fast formula for its output.

The public code's network is multi-head attention with all biases, a ReLU and a dense layer, and a
linear map on the CLS token to two logits. The paper does not mention the ReLU and the dense layer.

The fast formula uses that the CLS row's query is equal for all sequences, and that a token is
base[t] + bits[t] difference. One vector u therefore gives a head's scores base @ u + bits
(difference . u). The average token is a @ base + (a . bits) difference, where a are the attention
weights.
"""

import math
from collections.abc import Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxbounds.seqlength.masking import cross_entropy
from jaxbounds.seqlength.sparse_majority import Task

Parameters = Mapping[str, Any]


def _uniform(limit: float) -> nn.initializers.Initializer:
    return lambda key, shape, dtype=jnp.float32: jax.random.uniform(
        key, shape, dtype, -limit, limit
    )


def glorot_limit(shape: tuple[int, ...], /) -> float:
    """Compute sqrt(6 / (fan_in + fan_out)), the limit of uniform initial weights.

    Here fan_in is the product of all axes but the last, and fan_out the product of all axes but the
    second-last.
    """
    field = math.prod(shape[:-2])
    return math.sqrt(6.0 / (field * (shape[-2] + shape[-1])))


class MajorityTransformer(nn.Module):
    """Multi-head attention, an optional ReLU with a dense layer, and two logits at the last token.

    The weights are initialised as in the public code's Keras layers.

    Attributes:
        hidden: the width of the dense layer. 0 omits the dense layer and the ReLU, as in the
            paper's text.
    """

    heads: int = 2
    d_k: int = 64
    hidden: int = 64

    @nn.compact
    def __call__(self, X: Float[Array, "n tokens d"]) -> Float[Array, "n 2"]:
        """Compute the two logits of each sequence, with attention at every token."""
        d = X.shape[-1]
        into = glorot_limit((d, self.heads, self.d_k))
        # Flax's layer has one initialiser for query, key and value; the output map follows.
        Y = nn.MultiHeadDotProductAttention(
            num_heads=self.heads,
            qkv_features=self.heads * self.d_k,
            out_features=d,
            kernel_init=_uniform(into),
            out_kernel_init=_uniform(glorot_limit((self.heads, self.d_k, d))),
            name="attention",
        )(X, X)
        y = Y[:, -1]
        if self.hidden:
            limit = glorot_limit((d, self.hidden))
            y = nn.Dense(self.hidden, kernel_init=_uniform(limit), name="hidden")(nn.relu(y))
        return nn.Dense(2, kernel_init=nn.initializers.normal(0.05), name="readout")(y)


def reduced_logits(params: Parameters, task: Task, bits: Bool[Array, "n T"], /) -> Array:
    """Compute the logits of `MajorityTransformer` on `embed(task, bits)`, without the embedding.

    The argument `params` is the model's `variables["params"]`.
    """
    attention = params["attention"]
    kernel = lambda name: attention[name]["kernel"]
    d_k = kernel("query").shape[-1]
    n = bits.shape[0]
    query = jnp.einsum("d,dhk->hk", task.base[-1], kernel("query")) + attention["query"]["bias"]
    # The key bias shifts all scores of a head equally, which does not change the softmax.
    u = jnp.einsum("hk,dhk->hd", query, kernel("key")) / math.sqrt(d_k)
    ones = jnp.concatenate([bits, jnp.zeros((n, 1), bool)], axis=1).astype(task.base.dtype)
    scores = (u @ task.base.T)[None] + ones[:, None, :] * (u @ task.difference)[None, :, None]
    weights = jax.nn.softmax(scores, axis=-1)
    mixed = weights @ task.base
    mixed += jnp.sum(weights * ones[:, None, :], axis=-1)[..., None] * task.difference[None, None]
    values = jnp.einsum("nhd,dhk->nhk", mixed, kernel("value")) + attention["value"]["bias"][None]
    y = jnp.einsum("nhk,hko->no", values, kernel("out")) + attention["out"]["bias"][None]
    if "hidden" in params:
        y = jax.nn.relu(y) @ params["hidden"]["kernel"] + params["hidden"]["bias"][None]
    return y @ params["readout"]["kernel"] + params["readout"]["bias"][None]


def softmax_loss(logits: Float[Array, "n 2"], labels: Int[Array, "n"], /) -> Float[Array, "n"]:
    """Compute the paper's loss function: the cross entropy of the softmax of the logits."""
    return jax.vmap(cross_entropy)(logits, labels)


def sigmoid_loss(logits: Float[Array, "n 2"], labels: Int[Array, "n"], /) -> Float[Array, "n"]:
    """Compute the public code's loss: the mean binary cross entropy against the one-hot label.

    The loss is 1-Lipschitz in the l_infinity norm.
    """
    target = jax.nn.one_hot(labels, 2, dtype=logits.dtype)
    return jnp.mean(jax.nn.softplus(logits) - target * logits, axis=1)


def total_l1(params: Parameters, /) -> Float[Array, ""]:
    """Sum |weight| over all parameters, biases included (Figure 1)."""
    return jnp.sum(jnp.stack([jnp.sum(jnp.abs(leaf)) for leaf in jax.tree.leaves(params)]))
