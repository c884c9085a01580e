"""Attention that retrieves the relevant tokens: construction (A.2) of Lemma 11 and its error.

The matrix W_QK of head h has one nonzero block, alpha I. The block's rows belong to the query's
w_{t_h}, and its columns belong to the key's w_j. So head h has the logit alpha (d/q) <w_{t_ih},
w_j> for query i and key j.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.arrays import array_module, number
from jaxbounds.numerics.norms import vector_norm
from jaxbounds.qstr.links import TwoLayer

ROUNDING = 1e-6
"""Two encodings count as equal if their inner product (signed coherence) exceeds 1 - ROUNDING. A
larger value refuses more encodings; float32 cannot resolve smaller differences.
"""


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
    """Return Lemma 11's alpha, with which attention changes the prediction by at most sqrt(eps).

    The formula is alpha = q / ((1 - mu) d) log(2 r_a r_w r_x N sqrt(q) / sqrt(eps)), with the
    signed coherence mu of the encodings. The paper has mu = 1/2. If eps is so large that alpha = 0
    suffices, the result is 0.

    Raises:
        Refused: if the signed coherence mu is not below 1 by more than rounding (two encodings
            coincide), or eps is not positive.
    """
    if not coherence < 1 - ROUNDING:
        raise Refused(
            f"coherence={coherence}, expected a signed coherence below 1: two encodings"
            " coincide, so no temperature separates them. Try new encodings, or a larger"
            " dimension for them"
        )
    if not eps > 0:
        raise Refused(
            f"eps={eps}, expected a positive number, because retrieval is exact only in the limit."
            " Try eps=0.01"
        )
    inside = 2 * r_a * r_w * r_x * N * math.sqrt(q) / math.sqrt(eps)
    xp = array_module(inside)
    return number(xp.maximum(q / ((1 - coherence) * d) * xp.log(inside), 0.0))


def retrieval_weights(alpha: ArrayLike, /, *, q: int, d: int, de: int) -> Float[Array, "q De De"]:
    """Return the matrices W_QK of the q heads of (A.2)."""
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
    """Return Lemma 11's construction as parameters of `SparseTransformer(heads=q, width=m_g)`."""
    m, De = network.a.shape[0], d + (q + 1) * de
    W = jnp.zeros((m, q, De), network.W.dtype).at[:, :, :d].set(network.W.reshape(m, q, d))
    weights = retrieval_weights(alpha, q=q, d=d, de=de).astype(network.W.dtype)
    return {"params": {"W_QK": weights, "W": W.reshape(m, q * De), "b": network.b, "a": network.a}}


def _attend(omega: Float[Array, "N de"], sharpness: ArrayLike) -> Float[Array, "N N"]:
    return jax.nn.softmax(sharpness * (omega @ omega.T), axis=-1)


def retrieve(
    x: Float[Array, "N d"],
    t: Int[Array, "N q"],
    omega: Float[Array, "N de"],
    alpha: float | Float[Array, ""],
    /,
) -> Float[Array, "N q d"]:
    """Return the tokens that the q heads retrieve at every position.

    The function computes the attention without the De x De matrix W_QK.
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
    """Return the largest distance in R^{qd} between the q retrieved and the q relevant tokens.

    The maximum is over the positions of the prompt.
    """
    (N, d), q = x.shape, t.shape[1]
    # The average of differences avoids cancellation.
    differences = x[None, :, :] - x[:, None, :]
    each = jnp.einsum("ij,ijd->id", _attend(omega, alpha * (d / q)), differences)
    return jnp.max(vector_norm(each[t].reshape(N, q * d)))


def _below_own(omega: Float[Array, "N de"]) -> Float[Array, "N N"]:
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
    """Return Lemma 11's bound on the distance of the retrieved from the relevant tokens.

    The bound is 2 sqrt(q) r (N - 1) exp(-alpha (1 - mu) d / q) with r = max |x_i|.

    `coherence` is an upper bound mu on the coherence of encodings of unit norm (1/2 in the paper),
    which the function does not check. The default replaces 1 - mu by the measured minimum of
    |w_t|^2 - <w_t, w_j>, which is valid for any encodings.

    Raises:
        Refused: if the number of encodings differs from the number of tokens.
    """
    N, d = omega.shape[0], x.shape[1]
    if x.shape[0] != N:
        raise Refused(
            f"x has {x.shape[0]} tokens, expected one for each of N={N} encodings. Try x of shape"
            " (N, d)"
        )
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
    """Bound the retrieval error by sum_j e^{alpha (d/q)(<w_t, w_j> - |w_t|^2)} |x_j - x_t|.

    Unlike `retrieval_error_bound`, the sum uses every inner product instead of the largest one, and
    distances between tokens instead of norms. The sum never exceeds the result of
    `retrieval_error_bound` with its default `coherence`. The sum over j is a valid bound for any
    encodings, up to rounding.
    """
    q, d = t.shape[1], x.shape[1]
    distance = vector_norm(x[:, None, :] - x[None, :, :])
    tail = jnp.exp(alpha * (d / q) * _below_own(omega))
    # The term j = t has distance 0.
    each = jnp.sum(tail * distance, axis=1)
    return jnp.max(vector_norm(each[t]))
