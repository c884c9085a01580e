"""The model of Figures 2 to 5 (H equal heads) and its measurements.

Heads with equal start parameters stay equal in training. `EqualHeads` therefore stores the
parameters of one head, in arrays whose leading axis has length one; `tie` and `untie` convert
between one head and H equal heads. The order (tokens, coordinates, samples) makes the tiny matrices
of these models fast on a CPU.
"""

import functools
import operator
from collections.abc import Mapping
from typing import cast

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.multihead.loss import logistic
from jaxbounds.multihead.model import entries

Lane = dict
Params = dict


def attention_logits(
    weights: Float[Array, "d d"], tokens: Float[Array, "T d n"], /
) -> Float[Array, "T T n"]:
    """Compute X_i W X_i^T for all samples i, with the axes (query, key, sample)."""
    axes = range(tokens.shape[1])
    add = functools.partial(functools.reduce, operator.add)
    queries = [add(weights[i, j] * tokens[:, i] for i in axes) for j in axes]
    return add(queries[j][:, None] * tokens[None, :, j] for j in axes)


def _shifted_scores(weights: Array, tokens: Array) -> Float[Array, "T T n"]:
    logits = attention_logits(weights, tokens)
    return jnp.exp(logits - jax.lax.stop_gradient(jnp.max(logits, axis=1, keepdims=True)))


def attention_mass(
    weights: Float[Array, "d d"], tokens: Float[Array, "T d n"], mask: Float[Array, "T n"], /
) -> Float[Array, ""]:
    """Compute the attention on the masked tokens, averaged over queries and samples.

    Raises:
        AssertionError: if the mask does not have shape (T, n).
    """
    import chex  # slow to import

    chex.assert_shape(mask, (tokens.shape[0], tokens.shape[2]))
    scores = _shifted_scores(weights, tokens)
    return jnp.mean(jnp.sum(scores * mask[None], axis=1) / jnp.sum(scores, axis=1))


class EqualHeads(nn.Module):
    """The model (2) with H equal heads, over n sequences; H is an input, and no shape depends on H.

    Attributes:
        scale: the standard deviation of the initial parameters; 0 gives the paper's theta^(0).
    """

    scale: float = 0.0

    @nn.compact
    def parameters(self, tokens: Float[Array, "T d n"]) -> Params:
        """Return the parameters U and W.

        If Flax's `init` calls this method instead of `__call__`, `init` needs no forward pass.
        """
        length, d, _ = tokens.shape
        drawn = entries(self.scale)
        W = self.param("W", drawn, (1, d, d), tokens.dtype)
        U = self.param("U", drawn, (1, length, d), tokens.dtype)
        return {"U": U, "W": W}

    def __call__(
        self, tokens: Float[Array, "T d n"], heads: Float[Array, ""]
    ) -> Float[Array, " n"]:
        """Compute Phi(X_i; theta), equal to `MultiHeadAttention(heads=H)` at H copies of the head.

        Args:
            tokens: the tokens, with the sample axis last.
            heads: the number of heads H, as a float.
        """
        params = self.parameters(tokens)
        U, scores = params["U"][0], _shifted_scores(params["W"][0], tokens)
        values = sum(U[:, j, None, None] * tokens[None, :, j] for j in range(U.shape[1]))
        output = jnp.sum(jnp.sum(scores * values, axis=1) / jnp.sum(scores, axis=1), axis=0)
        return jnp.sqrt(heads) * output


def margins(
    params: Params, heads: Float[Array, ""], data: dict[str, Array], /
) -> Float[Array, " n"]:
    """Compute y_i Phi(X_i; theta) of H equal heads on data with the sample axis last.

    Raises:
        AssertionError: if y does not have shape (n,).
    """
    import chex  # slow to import

    chex.assert_shape(data["y"], (data["X"].shape[-1],))
    outputs = cast(Array, EqualHeads().apply({"params": params}, data["X"], heads))
    return data["y"] * outputs


def log10_risk(margin: Float[Array, " n"], /) -> Float[Array, ""]:
    """Compute log10 of the mean logistic loss, even if the loss itself underflows."""
    far = margin > 15
    near = jnp.log(logistic(jnp.where(far, jnp.zeros_like(margin), margin)))
    # log(log(1 + e^-z)) = -z - e^-z / 2 + O(e^-2z)
    logs = jnp.where(far, -margin - jnp.exp(-margin) / 2, near)
    return (jax.nn.logsumexp(logs) - np.log(len(margin))) / np.log(10.0)


def _norm(leaf: Array) -> Array:
    return jnp.sqrt(jnp.sum(leaf**2))


def risks(train: Float[Array, " n"], test: Float[Array, " m"], /) -> dict[str, Array]:
    """Compute a network's losses, accuracy and least margin from all its margins y_i f(X_i)."""
    return {
        "log10_train_loss": log10_risk(train),
        "log10_test_loss": log10_risk(test),
        "test_accuracy": jnp.mean((test > 0).astype(test.dtype)),
        "least_output": jnp.min(train),
    }


def measurements(lane: Lane, params: Params, /) -> dict[str, Array]:
    """Compute the quantities that Figures 2 to 5 share.

    The result also contains the averages (1/H) sum_h ||W_h|| and H^{-1/2} sum_h ||U_h||, which the
    captions name. The recorded margin is min_i y_i Phi(X_i) divided by H^{-1/2} sum_h ||U_h||,
    which makes it comparable to gamma_attn.
    """
    heads = lane["heads"]
    found = risks(*(margins(params, heads, lane[part]) for part in ("train", "test")))
    norm_U = jnp.sqrt(heads) * _norm(params["U"])
    margin = found["least_output"] / jnp.where(norm_U > 0, norm_U, 1.0)
    return found | {"norm_W": _norm(params["W"]), "norm_U": norm_U, "margin": margin}


def last_axis(data: Mapping[str, Array], /) -> dict[str, Array]:
    """Return data {"X": (n, T, d), "y": (n,)} with the sample axis last and with float labels."""
    return {"X": jnp.moveaxis(data["X"], 0, -1), "y": data["y"].astype(data["X"].dtype)}
