"""The attention models (1) and (2), with a full projection, pooling or last-token read-out."""

from collections.abc import Mapping
from typing import Literal

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused

Params = Mapping[str, Array]
Readout = Literal["full", "pooling", "last"]


def attention_scores(
    weights: Float[Array, "d d"], tokens: Float[Array, "T d"], /
) -> Float[Array, "T T"]:
    """Return phi(X W X^T), whose row t is the attention of query x_t over the tokens."""
    return jax.nn.softmax(tokens @ weights @ tokens.T, axis=-1)


def head_output(
    projection: Float[Array, "T d"], weights: Float[Array, "d d"], tokens: Float[Array, "T d"], /
) -> Float[Array, ""]:
    """Return the output of one head, Phi(X; W, U) = <U, phi(X W X^T) X>, equation (1)."""
    return jnp.sum(projection * (attention_scores(weights, tokens) @ tokens))


def model_output(params: Params, tokens: Float[Array, "T d"], /) -> Float[Array, ""]:
    """Return the output of the multi-head model, equation (2): the sum of the heads over sqrt(H).

    Raises:
        AssertionError: if `params["U"]` does not have shape (H, T, d), or `params["W"]` does not
            have shape (H, d, d).
    """
    import chex  # slow to import

    projections, weights = params["U"], params["W"]
    heads = weights.shape[0]
    chex.assert_shape(projections, (heads, *tokens.shape))
    chex.assert_shape(weights, (heads, tokens.shape[1], tokens.shape[1]))
    outputs = jax.vmap(head_output, in_axes=(0, 0, None))(projections, weights, tokens)
    return jnp.sum(outputs) / jnp.sqrt(jnp.asarray(heads, outputs.dtype))


def combine_query_key(
    query: Float[Array, "*H d dq"], key: Float[Array, "*H d dk"], /
) -> Float[Array, "*H d d"]:
    """Return W = W_Q W_K^T; query and key weights enter the model only through W (Section 2).

    Raises:
        Refused: if query and key map to different dimensions d_k.
    """
    if query.shape != key.shape:
        raise Refused(
            f"W_Q.shape={query.shape} and W_K.shape={key.shape}, expected equal shapes (d,"
            " d_k), because the logits are x^T W_Q W_K^T x'. Try equal inner dimensions d_k"
        )
    return query @ jnp.swapaxes(key, -1, -2)


def expand_readout(
    vector: Float[Array, "*H d"], length: int, readout: Readout, /
) -> Float[Array, "*H T d"]:
    """Return the T x d matrix U of a read-out u, 1_T u^T for "pooling" or e_T u^T for "last".

    The footnote to equation (1) defines both read-outs.

    Raises:
        Refused: if `readout` is neither "pooling" nor "last".
    """
    if readout == "pooling":
        mask = jnp.ones(length)
    elif readout == "last":
        mask = (jnp.arange(length) == length - 1).astype(vector.dtype)
    else:
        raise Refused(
            f"readout={readout!r} cannot be expanded, expected 'pooling' or 'last'. Try"
            " readout='last'"
        )
    column = mask.astype(vector.dtype).reshape((1,) * (vector.ndim - 1) + (length, 1))
    return column * vector[..., None, :]


def entries(scale: float, /) -> nn.initializers.Initializer:
    """Return an initializer of normal entries with standard deviation `scale`.

    For `scale` 0 the initializer returns zeros and draws no random numbers.
    """
    return nn.initializers.normal(scale) if scale else nn.initializers.zeros


class MultiHeadAttention(nn.Module):
    """The model (2) as a Flax module over one sequence; `vmap` its `apply` for a batch.

    Attributes:
        heads: H, number of heads.
        readout: "full" (trainable U of shape (T, d) per head), "pooling" or "last" (trainable u of
            shape (d,) per head).
        scale: the standard deviation of the initial parameters; 0 gives the paper's theta^(0).
    """

    heads: int
    readout: Readout = "full"
    scale: float = 0.0

    @nn.compact
    def __call__(self, tokens: Float[Array, "T d"]) -> Float[Array, ""]:
        """Return the scalar output, whose sign is the predicted label."""
        length, dimension = tokens.shape
        drawn = entries(self.scale)
        weights = self.param("W", drawn, (self.heads, dimension, dimension), tokens.dtype)
        shape = (length, dimension) if self.readout == "full" else (dimension,)
        projection = self.param("U", drawn, (self.heads, *shape), tokens.dtype)
        if self.readout != "full":
            projection = expand_readout(projection, length, self.readout)
        return model_output({"U": projection, "W": weights}, tokens)


def head_norm(params: Params, /) -> Float[Array, ""]:
    """Return ||theta||_{2,infinity}, the largest Euclidean norm of a head's parameters."""
    squares = jnp.sum(params["U"] ** 2, (1, 2)) + jnp.sum(params["W"] ** 2, (1, 2))
    largest = jnp.max(squares)
    return jnp.where(largest > 0, jnp.sqrt(jnp.where(largest > 0, largest, 1.0)), 0.0)
