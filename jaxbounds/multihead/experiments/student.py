"""H equal heads with samples last, and what Figures 2 to 5 measure on them.

The arrangement (tokens, coordinates, samples) makes the tiny matrices of these models fast on a
CPU; `margins` equals `tied_margins` with one group of H copies. Parameters are those of one head
with a leading axis of length one.
"""

import functools
import operator
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.multihead.loss import logistic

Lane = dict
Params = dict


def attention_logits(
    weights: Float[Array, "d d"], tokens: Float[Array, "T d n"], /
) -> Float[Array, "T T n"]:
    """X_i W X_i^T for all samples: query, key, sample."""
    axes = range(tokens.shape[1])
    add = functools.partial(functools.reduce, operator.add)
    queries = [add(weights[i, j] * tokens[:, i] for i in axes) for j in axes]
    return add(queries[j][:, None] * tokens[None, :, j] for j in axes)


def _shifted_scores(weights: Array, tokens: Array) -> Float[Array, "T T n"]:
    """The softmax over keys up to its normaliser, safe from overflow."""
    logits = attention_logits(weights, tokens)
    return jnp.exp(logits - jax.lax.stop_gradient(jnp.max(logits, axis=1, keepdims=True)))


def attention_mass(
    weights: Float[Array, "d d"], tokens: Float[Array, "T d n"], mask: Float[Array, "T n"], /
) -> Float[Array, ""]:
    """The attention on the masked tokens, averaged over queries and samples."""
    scores = _shifted_scores(weights, tokens)
    return jnp.mean(jnp.sum(scores * mask[None], axis=1) / jnp.sum(scores, axis=1))


def margins(
    params: Params, heads: Float[Array, ""], data: dict[str, Array], /
) -> Float[Array, " n"]:
    """y_i Phi(X_i; theta) of H equal heads; equals `tied_margins` on data with samples first."""
    U, tokens = params["U"][0], data["X"]
    scores = _shifted_scores(params["W"][0], tokens)
    values = sum(U[:, j, None, None] * tokens[None, :, j] for j in range(U.shape[1]))
    output = jnp.sum(jnp.sum(scores * values, axis=1) / jnp.sum(scores, axis=1), axis=0)
    return data["y"] * jnp.sqrt(heads) * output


def log10_risk(margin: Float[Array, " n"], /) -> Float[Array, ""]:
    """log10 of the mean logistic loss, also where the loss itself underflows."""
    far = margin > 15
    near = jnp.log(logistic(jnp.where(far, jnp.zeros_like(margin), margin)))
    # log(log(1 + e^-z)) = -z - e^-z / 2 + O(e^-2z)
    logs = jnp.where(far, -margin - jnp.exp(-margin) / 2, near)
    return (jax.nn.logsumexp(logs) - np.log(len(margin))) / np.log(10.0)


def _norm(leaf: Array) -> Array:
    return jnp.sqrt(jnp.sum(leaf**2))


def measurements(lane: Lane, params: Params, /) -> dict[str, Array]:
    """The quantities that Figures 2 to 5 share.

    The captions' averages (1/H) sum_h ||W_h|| and H^{-1/2} sum_h ||U_h||; the margin
    min_i y_i Phi(X_i) over the latter, which is what compares with gamma_attn.
    """
    heads = lane["heads"]
    train, test = (margins(params, heads, lane[part]) for part in ("train", "test"))
    norm_U = jnp.sqrt(heads) * _norm(params["U"])
    least = jnp.min(train)
    return {
        "log10_train_loss": log10_risk(train),
        "log10_test_loss": log10_risk(test),
        "test_accuracy": jnp.mean((test > 0).astype(test.dtype)),
        "norm_W": _norm(params["W"]),
        "norm_U": norm_U,
        "least_output": least,
        "margin": least / jnp.where(norm_U > 0, norm_U, 1.0),
    }


def last_axis(data: Mapping[str, Array], /) -> dict[str, Array]:
    """{"X": (n, T, d), "y": (n,)} with samples last and labels as floats."""
    return {"X": jnp.moveaxis(data["X"], 0, -1), "y": data["y"].astype(data["X"].dtype)}
