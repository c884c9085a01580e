"""Gradients and Hessians in closed form, all from one identity.

With K(a) = log sum_s exp(x_s . a) and a_t = W^T x_t, softmax attention is a gradient:

    Phi(X; W, U) = sum_t u_t . grad K(a_t).

The derivatives of K are the cumulants of the tokens under the attention weights: mean, covariance,
third central moment. Every formula of Lemma 1 / Lemma 4 is one of them.
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
"""Heads whose blocks `loss_hessian_parts` makes at once; more take more memory, n numbers each."""


def softmax_derivative(weights: Float[Array, " T"], /) -> Float[Array, "T T"]:
    """phi'(g) = diag(phi) - phi phi^T at the attention weights phi = phi(g), eq. (25)."""
    return jnp.diag(weights) - jnp.outer(weights, weights)


class Cumulants(NamedTuple):
    """For each query t, moments of the tokens under the attention weights of t.

    Attributes:
        weights: phi(g_t), shape (T, T).
        mean: grad K(a_t), shape (T, d).
        covariance: Hess K(a_t) = X^T phi'(g_t) X, shape (T, d, d).
        centred: x_s - mean_t, shape (T, T, d).
    """

    weights: Float[Array, "T T"]
    mean: Float[Array, "T d"]
    covariance: Float[Array, "T d d"]
    centred: Float[Array, "T T d"]


def cumulants(weights: Float[Array, "d d"], tokens: Float[Array, "T d"], /) -> Cumulants:
    """The first two cumulants at every a_t = W^T x_t."""
    attention = jax.nn.softmax(tokens @ weights @ tokens.T, axis=-1)
    mean = attention @ tokens
    centred = tokens[None, :, :] - mean[:, None, :]
    covariance = jnp.einsum("ts,tsi,tsj->tij", attention, centred, centred)
    return Cumulants(attention, mean, covariance, centred)


def third_cumulant(moments: Cumulants, directions: Float[Array, "T d"], /) -> Float[Array, "T d d"]:
    """For each t the matrix kappa_3(u_t . x, x, x): the third central moment, contracted once."""
    along = jnp.einsum("tsi,ti->ts", moments.centred, directions)
    return jnp.einsum("ts,tsi,tsj->tij", moments.weights * along, moments.centred, moments.centred)


def head_gradient(
    projection: Float[Array, "T d"], weights: Float[Array, "d d"], tokens: Float[Array, "T d"], /
) -> tuple[Float[Array, "T d"], Float[Array, "d d"]]:
    """The gradients of Phi in U and W (Lemma 4 (1), (2)): mean_t, and sum_t x_t (Cov_t u_t)^T."""
    moments = cumulants(weights, tokens)
    pulled = jnp.einsum("tij,tj->ti", moments.covariance, projection)
    return moments.mean, tokens.T @ pulled


def head_hessian_blocks(
    projection: Float[Array, "T d"], weights: Float[Array, "d d"], tokens: Float[Array, "T d"], /
) -> tuple[Float[Array, "T d d d"], Float[Array, "d d d d"]]:
    """The blocks of Hess Phi: d^2/dU_ti dW_jk, and d^2/dW_ij dW_kl (Lemma 4 (3), (4)).

    The block in U, U is zero: Phi is linear in U.
    """
    moments = cumulants(weights, tokens)
    third = third_cumulant(moments, projection)
    mixed = jnp.einsum("tj,tik->tijk", tokens, moments.covariance)
    return mixed, jnp.einsum("ti,tk,tjl->ijkl", tokens, tokens, third)


def head_hessian(
    projection: Float[Array, "T d"], weights: Float[Array, "d d"], tokens: Float[Array, "T d"], /
) -> Float[Array, "p p"]:
    """Hess Phi as a matrix of size p = T d + d^2: U row-major, then W row-major."""
    return _assemble(*head_hessian_blocks(projection, weights, tokens))


def hessian_certificate(
    projection: Float[Array, "T d"], weights: Float[Array, "d d"], tokens: Float[Array, "T d"], /
) -> Float[Array, ""]:
    """A bound on ||Hess Phi|| in T^2 d^2 operations, between it and S5 (sharpening S11).

    ||Hess_UW||^2 <= sum_t ||x_t||^2 ||Cov_t||^2 and ||Hess_WW|| <= sum_t ||x_t||^2 ||K3_t(u_t)||.
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
    """Eq. (65): the Hessian of the loss is blockdiag(blocks) + F F^T with n columns.

    Block h is (1/n) sum_i l'_i y_i Hess Phi(X_i; theta_h) / sqrt(H); column i of F is the gradient
    of the model at X_i times sqrt(l''_i / n).
    """
    tokens, labels = data["X"], data["y"]
    n, heads = tokens.shape[0], params["U"].shape[0]
    margin = margins(params, data)
    root = jnp.sqrt(jnp.asarray(heads, margin.dtype))
    slope = -logistic_slope(margin) * labels.astype(margin.dtype) / (n * root)
    stretch = jnp.sqrt(logistic_curvature(margin) / n) / root

    def of_head(projection, weights):
        per_sample = jax.vmap(head_hessian_blocks, in_axes=(None, None, 0))
        # Summed over the samples before the matrix with its zero block exists.
        summed = [jnp.tensordot(slope, b, 1) for b in per_sample(projection, weights, tokens)]
        outer, inner = jax.vmap(head_gradient, in_axes=(None, None, 0))(projection, weights, tokens)
        gradient = jnp.concatenate([outer.reshape(n, -1), inner.reshape(n, -1)], axis=1)
        return _assemble(*summed), (stretch[:, None] * gradient).T

    if heads <= AT_ONCE:
        return jax.vmap(of_head)(params["U"], params["W"])
    some = lambda head: of_head(*head)
    return jax.lax.map(some, (params["U"], params["W"]), batch_size=AT_ONCE)


def loss_hessian(params: Params, data: Data, /) -> Float[Array, "P P"]:
    """The Hessian of the loss as a matrix, head by head (each head: U, then W)."""
    blocks, factor = loss_hessian_parts(params, data)
    heads, p, n = factor.shape
    flat = factor.reshape(heads * p, n)
    diagonal = jnp.einsum("hij,hk->hikj", blocks, jnp.eye(heads, dtype=blocks.dtype))
    return diagonal.reshape(heads * p, heads * p) + flat @ flat.T


def loss_hessian_extremes(params: Params, data: Data, /) -> CertifiedExtremes:
    """The least and greatest eigenvalue of the loss Hessian, certified, in time linear in H."""
    return structured_extremes(*loss_hessian_parts(params, data))
