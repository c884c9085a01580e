"""The number of heads that a task needs, from the exact least risks behind Propositions 3 and 21.

In the proofs of both propositions, the first N/2 - 1 tokens are normal and the other N/2 + 1 tokens
are zero. The labels at the positions of the zero tokens are all equal to one function of x_1, ..,
x_q, with q < N/2. H heads may attend to any tokens, but their outputs depend only on H (q + d)
linear images of (x_1; ..; x_q).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.qstr.data import Prompts


class RiskBound(NamedTuple):
    """A lower bound on the risk of networks with a given number of heads.

    If the bound is not above zero, it is `vacuous`, and `reason` explains why.
    """

    value: float
    vacuous: bool
    reason: str


def _check(N: int, q: int, d: int, H: int) -> None:
    if min(q, d, H) < 1 or N < 2:
        raise Refused(
            f"N={N}, q={q}, d={d}, H={H}: expected N >= 2 and q, d, H >= 1. Try"
            f" N={max(2 * q + 2, 4)}"
        )
    if N % 2:
        raise Refused(
            f"N={N}, expected an even number, because the proof treats the two halves of a prompt "
            f"differently. Try N={N + 1}"
        )
    if q > N // 2 - 1:
        raise Refused(f"q={q} and N={N}, expected q <= N/2 - 1. Try N={2 * q + 2}")


def _bound(revealed: int, total: int, scale: float, H: int) -> RiskBound:
    value = max(0.0, scale * (1.0 - revealed / total))
    if value > 0:
        return RiskBound(value, False, "")
    words = (
        f"the outputs of H={H} heads depend on {revealed} linear images of the tokens, enough to "
        f"determine all {total} coordinates"
    )
    return RiskBound(value, True, words)


def coupled_head_bound(*, N: int, q: int, d: int, H: int, exact: bool = False) -> RiskBound:
    """Return Proposition 3's bound: all networks of H heads have risk >= 1 - H (q + d) / (q d).

    The bound counts N/2 positions of zero tokens. If `exact` is set, the bound counts all N/2 + 1
    positions.

    Raises:
        Refused: if N is odd, q > N/2 - 1, or a size is not positive.
    """
    _check(N, q, d, H)
    return _bound(H * (q + d), q * d, 1.0 + 2.0 / N if exact else 1.0, H)


def sharpened_head_bound(*, N: int, q: int, d: int, H: int, exact: bool = False) -> RiskBound:
    """Return Proposition 3's sharpened bound: risk >= (1 - H/q)(1 - H/d) for H < min(q, d).

    At a position whose own token is zero, head h has a slope in R^d and attention weights in R^q.
    The slope is the derivative of a logit with respect to the attended token. Let S be the span of
    the H slopes, and A the span of the H vectors of attention weights. The logits determine the
    projection of the tokens on S x R^q, and the outputs determine the projection on R^d x A. Both
    subspaces contain S x A, which the paper counts twice. The outputs do not depend on the
    component of the tokens in a subspace of dimension (d - H)(q - H), so at least min(q, d) heads
    are necessary. The number min(q, d) is also enough: Lemma 11 constructs q heads, and
    `jaxbounds.qstr.few_heads` constructs d heads.

    Raises:
        Refused: if N is odd, q > N/2 - 1, or a size is not positive.
    """
    _check(N, q, d, H)
    few = min(H, q, d)
    return _bound(few * (q + d - few), q * d, 1.0 + 2.0 / N if exact else 1.0, H)


def decoupled_head_bound(*, N: int, q: int, H: int, exact: bool = False) -> RiskBound:
    """Return Proposition 21's bound for block-diagonal W_QK and d = 1: risk >= 1 - H/q.

    The two blocks of W_QK act on the token and on the positional encodings. If W_QK is not
    block-diagonal, the bound is false: see `jaxbounds.qstr.few_heads`.

    Raises:
        Refused: if N is odd, q > N/2 - 1, or a size is not positive.
    """
    _check(N, q, 1, H)
    return _bound(H, q, 1.0 + 2.0 / N if exact else 1.0, H)


def hidden_variance(V: Float[Array | np.ndarray, "k n"], /) -> Float[Array, ""]:
    """Return Var(|x|^2 given V x) = 2 (n - rank V) for x ~ N(0, I_n), from V's singular values."""
    V = jnp.asarray(V)  # before the code reads its precision
    singular = jnp.linalg.svd(V, compute_uv=False)
    cutoff = jnp.finfo(V.dtype).eps * max(V.shape) * singular[0]
    return 2.0 * (V.shape[1] - jnp.sum((singular > cutoff).astype(V.dtype)))


def oracle_risk(V: Float[Array | np.ndarray, "k n"], /, *, N: int) -> Float[Array, ""]:
    """Return the least averaged risk of predictors that use only V x, for x = (x_1; ..; x_q).

    At N/2 + 1 of the N positions, the label is (|x|^2 - n) / sqrt(n), with n = q d. The least risk
    is therefore (1/2 + 1/N) Var(|x|^2 given V x) / n. The conditional mean of the label given V x
    attains this risk at the N/2 + 1 positions. For the heads of a Transformer, the function
    `revealed_images` returns V.
    """
    return (0.5 + 1.0 / N) * hidden_variance(V) / V.shape[1]


def square_norm_variance(
    mean: Float[Array, "n"], covariance: Float[Array, "n n"], /
) -> Float[Array, ""]:
    """Return Var |x|^2 = 2 tr(S^2) + 4 mu^T S mu for x ~ N(mu, S), as in Lemma 40."""
    return 2.0 * jnp.sum(covariance * covariance.T) + 4.0 * mean @ covariance @ mean


def lower_bound_prompts(
    key: Array, /, *, shape: tuple[int, ...], N: int, q: int, d: int
) -> Prompts:
    """Draw prompts from the distribution in the proofs of Propositions 3 and 21.

    The first N/2 - 1 tokens are standard normal, and the other N/2 + 1 tokens are zero. The first
    N/2 - 1 positions have random t, and the other N/2 + 1 positions have t = (1, .., q). The label
    is (|x|^2 - q d) / sqrt(q d), where x joins the q relevant tokens.

    Raises:
        Refused: if N is odd or q > N/2 - 1.
    """
    _check(N, q, d, 1)
    key_x, key_t = jax.random.split(key)
    varies = jnp.arange(N) < N // 2 - 1
    x = jax.random.normal(key_x, (*shape, N, d))
    x = jnp.where(jnp.broadcast_to(varies[:, None], x.shape), x, jnp.zeros_like(x))
    t = jax.random.randint(key_t, (*shape, N, q), 0, N, dtype=jnp.int32)
    first = jnp.broadcast_to(jnp.arange(q, dtype=jnp.int32), t.shape)
    t = jnp.where(jnp.broadcast_to(varies[:, None], t.shape), t, first)
    squares = jnp.sum(x**2, axis=-1)
    expected = jnp.broadcast_to(d * varies.astype(x.dtype), squares.shape)
    flat = t.reshape(*shape, N * q)
    centred = jnp.take_along_axis(squares - expected, flat, axis=-1).reshape(t.shape)
    return Prompts(x, t, jnp.sum(centred, axis=-1) / jnp.sqrt(jnp.asarray(q * d, x.dtype)))


def revealed_images(
    W_QK: Float[Array, "H De De"],
    query: Float[Array, "De"],
    keys: Float[Array, "q De"],
    /,
    *,
    d: int,
) -> Float[Array, "k qd"]:
    """Return H (q + d) linear forms of (x_1; ..; x_q) that determine the output of H heads.

    Consider a position whose own token is zero. The logits of head h are q linear forms <A_h, x_j>,
    where A_h does not depend on x. The logits determine the attention weights. Given the attention
    weights, the output of the head consists of d more linear forms. Given the values of all H (q +
    d) linear forms, x is still normal in the directions orthogonal to them. The rank of all linear
    forms is H (q + d - H) for H <= min(q, d), see `sharpened_head_bound`.

    `query` is the encoded token z_i of such a position, and `keys` are the encoded tokens z_j of
    the q relevant tokens.
    """
    H, q = W_QK.shape[0], keys.shape[0]
    slopes = jnp.einsum("d,hde->he", query, W_QK)
    weights = jax.nn.softmax(slopes @ keys.T, axis=-1)
    logits = jnp.einsum("hd,qp->hqpd", slopes[:, :d], jnp.eye(q)).reshape(H * q, q * d)
    outputs = jnp.einsum("hp,de->hdpe", weights, jnp.eye(d)).reshape(H * d, q * d)
    return jnp.concatenate([logits, outputs])
