"""Gradients and Hessians of the attention model in closed form, derived from one identity.

Softmax attention is the gradient of a log-sum-exp, K(a) = log sum_s exp(x_s . a). The attention
model is Phi(X; W, U) = sum_t u_t . grad K(a_t), where a_t = W^T x_t.

The derivatives of K are the cumulants of the tokens under the attention weights: the mean, the
covariance and the third central moment.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.multihead.bounds import two_block_norm
from jaxbounds.multihead.loss import Data, logistic_curvature, logistic_slope, margins
from jaxbounds.multihead.model import Params
from jaxbounds.networks.curvature import CertifiedExtremes, structured_extremes

AT_ONCE = 64
"""The number of heads whose Hessian blocks `loss_hessian_parts` computes at the same time.

A larger number takes more memory: n numbers for each head and each entry of its block.
"""


def softmax_derivative(weights: Float[Array, " T"], /) -> Float[Array, "T T"]:
    """Return the softmax derivative phi'(g) = diag(phi) - phi phi^T, equation (25).

    Args:
        weights: the attention weights phi = phi(g), shape (T,).
    """
    return jnp.diag(weights) - jnp.outer(weights, weights)


class Cumulants(NamedTuple):
    """Moments of the tokens under the attention weights of each query t.

    Attributes:
        weights: the attention weights phi(g_t), shape (T, T).
        mean: the mean token grad K(a_t) under the weights of each query, shape (T, d).
        covariance: the covariance Hess K(a_t) = X^T phi'(g_t) X of the tokens, shape (T, d, d).
        centred: the tokens minus their mean, x_s - mean_t, shape (T, T, d).
    """

    weights: Float[Array, "T T"]
    mean: Float[Array, "T d"]
    covariance: Float[Array, "T d d"]
    centred: Float[Array, "T T d"]


def cumulants(weights: Float[Array, "d d"], tokens: Float[Array, "T d"], /) -> Cumulants:
    """Return the attention-weighted mean and covariance of the tokens at each a_t = W^T x_t."""
    attention = jax.nn.softmax(tokens @ weights @ tokens.T, axis=-1)
    mean = attention @ tokens
    centred = tokens[None, :, :] - mean[:, None, :]
    covariance = jnp.einsum("ts,tsi,tsj->tij", attention, centred, centred)
    return Cumulants(attention, mean, covariance, centred)


def third_cumulant(moments: Cumulants, directions: Float[Array, "T d"], /) -> Float[Array, "T d d"]:
    """Return the third central moment kappa_3(u_t . x, x, x) of the tokens for each query t."""
    along = jnp.einsum("tsi,ti->ts", moments.centred, directions)
    return jnp.einsum("ts,tsi,tsj->tij", moments.weights * along, moments.centred, moments.centred)


def head_gradient(
    projection: Float[Array, "T d"], weights: Float[Array, "d d"], tokens: Float[Array, "T d"], /
) -> tuple[Float[Array, "T d"], Float[Array, "d d"]]:
    """Return the gradients of Phi in U and in W (Lemma 4 (1), (2)).

    Row t of the gradient in U is mean_t, the mean token under the attention weights of query t. The
    gradient in W is sum_t x_t (Cov_t u_t)^T, where Cov_t is the tokens' covariance under these
    weights.
    """
    moments = cumulants(weights, tokens)
    pulled = jnp.einsum("tij,tj->ti", moments.covariance, projection)
    return moments.mean, tokens.T @ pulled


def head_hessian_blocks(
    projection: Float[Array, "T d"], weights: Float[Array, "d d"], tokens: Float[Array, "T d"], /
) -> tuple[Float[Array, "T d d d"], Float[Array, "d d d d"]]:
    """Return the blocks of Hess Phi in (U_ti, W_jk) and in (W_ij, W_kl), from Lemma 4 (3), (4).

    The Hessian's block in (U, U) is zero, because Phi is linear in U.
    """
    moments = cumulants(weights, tokens)
    third = third_cumulant(moments, projection)
    mixed = jnp.einsum("tj,tik->tijk", tokens, moments.covariance)
    return mixed, jnp.einsum("ti,tk,tjl->ijkl", tokens, tokens, third)


def head_hessian(
    projection: Float[Array, "T d"], weights: Float[Array, "d d"], tokens: Float[Array, "T d"], /
) -> Float[Array, "p p"]:
    """Return Hess Phi as a matrix of T d + d^2 rows: U row by row, then W row by row."""
    return _assemble(*head_hessian_blocks(projection, weights, tokens))


def hessian_certificate(
    projection: Float[Array, "T d"], weights: Float[Array, "d d"], tokens: Float[Array, "T d"], /
) -> Float[Array, ""]:
    """Return sharpening S11's bound on ||Hess Phi||; it is at most the bound of sharpening S5.

    The bound combines ||Hess_UW||^2 <= sum_t ||x_t||^2 ||Cov_t||^2 and ||Hess_WW|| <= sum_t
    ||x_t||^2 ||K3_t(u_t)||. Cov_t is the tokens' covariance under the attention weights of query t,
    and K3_t(u_t) is the result of `third_cumulant`. The cost is of the order T^2 d^2 operations.
    """
    moments = cumulants(weights, tokens)
    squares = jnp.sum(tokens**2, axis=1)
    spectral = lambda blocks: jnp.max(jnp.abs(jnp.linalg.eigvalsh(blocks)), axis=-1)
    mixed = jnp.sqrt(jnp.sum(squares * spectral(moments.covariance) ** 2))
    return two_block_norm(squares @ spectral(third_cumulant(moments, projection)), mixed)


def _assemble(
    mixed: Float[Array, "T d d d"], inner: Float[Array, "d d d d"]
) -> Float[Array, "p p"]:
    outer, square = mixed.shape[0] * mixed.shape[1], inner.shape[0] ** 2
    mixed = mixed.reshape(outer, square)
    zero = jnp.zeros((outer, outer), mixed.dtype)
    return jnp.block([[zero, mixed], [mixed.T, inner.reshape(square, square)]])


def loss_hessian_parts(
    params: Params, data: Data, /
) -> tuple[Float[Array, "H p p"], Float[Array, "H p n"]]:
    """Return the two parts of the loss Hessian blockdiag(blocks) + F F^T, equation (65).

    Block h is (1/n) sum_i l'_i y_i Hess Phi(X_i; theta_h) / sqrt(H). Column i of F is the gradient
    of the model at X_i times sqrt(l''_i / n).
    """
    tokens, labels = data["X"], data["y"]
    n, heads = tokens.shape[0], params["U"].shape[0]
    margin = margins(params, data)
    root = jnp.sqrt(jnp.asarray(heads, margin.dtype))
    slope = -logistic_slope(margin) * labels.astype(margin.dtype) / (n * root)
    stretch = jnp.sqrt(logistic_curvature(margin) / n) / root

    def of_head(projection: Array, weights: Array) -> tuple[Array, Array]:
        per_sample = jax.vmap(head_hessian_blocks, in_axes=(None, None, 0))
        # The sum over the samples comes first, so the matrix with the zero block is made only once.
        summed = [jnp.tensordot(slope, b, 1) for b in per_sample(projection, weights, tokens)]
        outer, inner = jax.vmap(head_gradient, in_axes=(None, None, 0))(projection, weights, tokens)
        gradient = jnp.concatenate([outer.reshape(n, -1), inner.reshape(n, -1)], axis=1)
        return _assemble(*summed), (stretch[:, None] * gradient).T

    if heads <= AT_ONCE:
        return jax.vmap(of_head)(params["U"], params["W"])
    some = lambda head: of_head(*head)
    return jax.lax.map(some, (params["U"], params["W"]), batch_size=AT_ONCE)


def loss_hessian(params: Params, data: Data, /) -> Float[Array, "P P"]:
    """Return the loss Hessian as a matrix; the rows of a head are its entries of U, then of W."""
    blocks, factor = loss_hessian_parts(params, data)
    heads, p, n = factor.shape
    flat = factor.reshape(heads * p, n)
    diagonal = jnp.einsum("hij,hk->hikj", blocks, jnp.eye(heads, dtype=blocks.dtype))
    return diagonal.reshape(heads * p, heads * p) + flat @ flat.T


def loss_hessian_extremes(params: Params, data: Data, /) -> CertifiedExtremes:
    """Return certified least and greatest eigenvalues of the loss Hessian, in time linear in H."""
    return structured_extremes(*loss_hessian_parts(params, data))
