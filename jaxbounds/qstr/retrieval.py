"""Attention that retrieves the relevant tokens: the construction (A.2) of Lemma 11 and its error.

Head h has W_QK zero except alpha I in rows of the query's w_{t_h} and columns of the key's w_j, so
its logits are alpha (d/q) <w_{t_ih}, w_j>.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from jaxbounds.numerics.arrays import array_module, number
from jaxbounds.numerics.norms import vector_norm
from jaxbounds.qstr.links import TwoLayer

ROUNDING = 1e-6
"""Encodings with a coherence this close to 1 coincide, as far as float32 can tell."""


def inverse_temperature(
    *,
    N: int,
    q: int,
    d: int,
    r_a: ArrayLike,
    r_w: ArrayLike,
    r_x: ArrayLike,
    eps: float,
    coherence: float = 0.5,
) -> Any:
    """The alpha of Lemma 11, for which the prediction errs by at most sqrt(eps) through attention.

    alpha = q / ((1 - mu) d) log(2 r_a r_w r_x N sqrt(q) / sqrt(eps)); the paper has mu = 1/2.

    Never negative: where eps asks for nothing, zero serves.

    Raises:
        ValueError: if the signed coherence mu is not below 1 by more than rounding (two encodings
            coincide), or eps is not positive.
    """
    if not coherence < 1 - ROUNDING:
        raise ValueError(
            f"retrieval needs signed coherence < 1, got {coherence}: two encodings coincide, so "
            "no temperature separates them; draw encodings again or raise their dimension"
        )
    if not eps > 0:
        raise ValueError(f"eps must be positive, got {eps}: retrieval is exact only in the limit")
    inside = 2 * r_a * r_w * r_x * N * math.sqrt(q) / math.sqrt(eps)
    xp = array_module(inside)
    return number(xp.maximum(q / ((1 - coherence) * d) * xp.log(inside), 0.0))


def retrieval_weights(alpha: ArrayLike, /, *, q: int, d: int, de: int) -> Float[Array, "q De De"]:
    """W_QK of the q heads of (A.2): block (query's w_{t_h}, key's w_j) is alpha I."""
    De = d + (q + 1) * de
    eye = alpha * jnp.eye(de)
    heads = [
        jnp.zeros((De, De)).at[d + (h + 1) * de : d + (h + 2) * de, d : d + de].set(eye)
        for h in range(q)
    ]
    return jnp.stack(heads)


def transformer_parameters(
    network: TwoLayer, alpha: ArrayLike, /, *, q: int, d: int, de: int
) -> dict[str, dict[str, Array]]:
    """Parameters of `SparseTransformer(heads=q, width=m_g)` for the construction of Lemma 11."""
    m, De = network.a.shape[0], d + (q + 1) * de
    W = jnp.zeros((m, q, De), network.W.dtype).at[:, :, :d].set(network.W.reshape(m, q, d))
    weights = retrieval_weights(alpha, q=q, d=d, de=de).astype(network.W.dtype)
    return {"params": {"W_QK": weights, "W": W.reshape(m, q * De), "b": network.b, "a": network.a}}


def _attend(omega: Float[Array, "N de"], sharpness: ArrayLike) -> Float[Array, "N N"]:
    """Only the N distinct queries w_1, .., w_N occur, so one softmax serves all positions."""
    return jax.nn.softmax(sharpness * (omega @ omega.T), axis=-1)


def retrieve(
    x: Float[Array, "N d"],
    t: Int[Array, "N q"],
    omega: Float[Array, "N de"],
    alpha: float | Float[Array, ""],
    /,
) -> Float[Array, "N q d"]:
    """Return the tokens that the q heads retrieve at every position.

    No De x De matrix is formed.
    """
    q, d = t.shape[1], x.shape[1]
    return (_attend(omega, alpha * (d / q)) @ x)[t]


def retrieval_error(
    x: Float[Array, "N d"],
    t: Int[Array, "N q"],
    omega: Float[Array, "N de"],
    alpha: float | Float[Array, ""],
    /,
) -> Float[Array, ""]:
    """The largest, over positions, joint distance of the q retrieved tokens from the wanted."""
    (N, d), q = x.shape, t.shape[1]
    # An average of differences, so that nothing cancels.
    differences = x[None, :, :] - x[:, None, :]
    each = jnp.einsum("ij,ijd->id", _attend(omega, alpha * (d / q)), differences)
    return jnp.max(vector_norm(each[t].reshape(N, q * d)))


def _below_own(omega: Float[Array, "N de"]) -> Float[Array, "N N"]:
    """<w_t, w_j> - |w_t|^2: how far each logit is above the wanted one (below, if negative)."""
    gram = omega @ omega.T
    return gram - jnp.diagonal(gram)[:, None]


def retrieval_error_bound(
    x: Float[Array, "N d"],
    omega: Float[Array, "N de"],
    alpha: float | Float[Array, ""],
    /,
    *,
    q: int,
    coherence: float | Float[Array, ""] | None = None,
) -> Float[Array, ""]:
    """2 sqrt(q) r (N - 1) exp(-alpha (1 - mu) d / q), r = max |x_i|: Lemma 11's tail, explicit.

    Args:
        x: tokens.
        omega: encodings.
        alpha: inverse temperature.
        q: sparsity.
        coherence: mu, taken on trust for encodings of unit norm that are no more coherent; the
            paper's is 1/2. Without it 1 - mu is measured, as the least |w_t|^2 - <w_t, w_j>, which
            is valid for any encodings.

    Raises:
        ValueError: if there is not one encoding per token.
    """
    N, d = omega.shape[0], x.shape[1]
    if x.shape[0] != N:
        raise ValueError(f"{x.shape[0]} tokens need as many encodings, got {N}")
    radius = jnp.max(vector_norm(x))
    gap: float | Array
    if coherence is None:
        below = _below_own(omega)
        gap = -jnp.max(jnp.where(jnp.eye(N, dtype=bool), jnp.full_like(below, -jnp.inf), below))
    else:
        gap = 1.0 - coherence
    tail = jnp.exp(-alpha * gap * (d / q))
    return 2.0 * math.sqrt(q) * radius * (N - 1) * tail


def retrieval_error_bound_by_row(
    x: Float[Array, "N d"],
    t: Int[Array, "N q"],
    omega: Float[Array, "N de"],
    alpha: float | Float[Array, ""],
    /,
) -> Float[Array, ""]:
    """The tail summed by row: sum_j e^{alpha (d/q)(<w_t, w_j> - |w_t|^2)} |x_j - x_t|, jointly.

    It uses every inner product instead of the largest, and distances instead of norms; never more
    than `retrieval_error_bound` without a coherence. Valid for any encodings, up to rounding.
    """
    q, d = t.shape[1], x.shape[1]
    distance = vector_norm(x[:, None, :] - x[None, :, :])
    tail = jnp.exp(alpha * (d / q) * _below_own(omega))
    each = jnp.sum(tail * distance, axis=1)  # the term j = t has distance 0
    return jnp.max(vector_norm(each[t]))
