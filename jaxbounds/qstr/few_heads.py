"""A construction whose d heads determine all q relevant tokens, so that min(q, d) heads suffice.

Proposition 21 assumes block-diagonal logits; other logits may mix token and position. Consider a
head that attends only to the q relevant tokens, whose logit for token j contains the term beta
x_jk. If the encodings are linearly independent, the head's output sum_j alpha_j w_j determines the
attention weights alpha. The logarithm log alpha_j is beta x_jk plus a constant that does not depend
on j, and the output sum_j alpha_j x_j determines this constant. So head k determines the k-th
coordinate of every relevant token, and d heads determine all coordinates, for any q and any link.
Lemma 11's construction has q heads, and `jaxbounds.qstr.heads.sharpened_head_bound` shows that at
least min(q, d) heads are necessary.

All positions have the same fixed list t = (t_1, ..., t_q) of relevant tokens with distinct entries,
as in the proofs of Propositions 3 and 21. The encodings w_{t_1}, ..., w_{t_q} must be linearly
independent (q <= de) and linearly separable from the other encodings. The readout is not a
two-layer network, but two-layer networks of growing width approximate the readout in mean square.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxbounds.qstr.data import encode
from jaxbounds.qstr.transformer import attention


def least_direction(
    omega: Float[Array, "N de"], q: int, /
) -> tuple[Float[Array, "de"], Float[Array, ""]]:
    """Return the shortest v with <v, w_j> = 1 for the first q encodings w_j, and the margin of v.

    The margin is 1 - max_{j >= q} <v, w_j>. If the margin is positive, v separates the first q
    encodings from the others. If the margin is not positive,
    `jaxbounds.qstr.two_heads.separating_direction` may still find a v that separates them.
    """
    v = jnp.sum(jnp.linalg.pinv(omega[:q]), axis=1)
    return v, 1.0 - jnp.max(omega[q:] @ v)


def revealing_weights(
    omega: Float[Array, "N de"],
    direction: Float[Array, "de"],
    /,
    *,
    q: int,
    d: int,
    beta: float | Float[Array, ""],
    selectivity: float | Float[Array, ""],
) -> Float[Array, "d De De"]:
    """Return the W_QK of d heads, for prompts whose queries all have x_1 as first relevant token.

    The logit of head k for token j is `selectivity` <direction, w_j> + `beta` x_jk. Both terms of
    the logit come from rows of W_QK that act on the query's encoding w_{t_1}, so W_QK is not
    block-diagonal.
    """
    de, scale = omega.shape[1], jnp.sqrt(jnp.asarray(d / q, omega.dtype))
    De = d + (q + 1) * de
    rows = slice(d + de, d + 2 * de)
    select = (selectivity / scale**2) * jnp.outer(omega[0], direction)
    shared = jnp.zeros((De, De), omega.dtype).at[rows, d : d + de].set(select)
    return jnp.stack([shared.at[rows, k].set((beta / scale) * omega[0]) for k in range(d)])


def decode_tokens(
    attended: Float[Array, "d De"],
    omega: Float[Array, "N de"],
    /,
    *,
    q: int,
    beta: float | Float[Array, ""],
) -> Float[Array, "q d"]:
    """Decode the tokens x_1, .., x_q from the outputs of the d heads at one position.

    Each head outputs the attention-weighted mean of the tokens' own encodings. Least squares
    recovers the attention weights alpha from this mean. Then x_jk = m_k + l_j - sum_i alpha_i l_i
    with l = log(alpha) / beta, where m_k is the k-th coordinate of head k's output.
    """
    d, de = attended.shape[0], omega.shape[1]
    scale = jnp.sqrt(jnp.asarray(d / q, omega.dtype))
    alpha = (attended[:, d : d + de] / scale) @ jnp.linalg.pinv(omega[:q])
    level = jnp.log(alpha) / beta
    mean = jnp.diagonal(attended[:, :d])
    return (level + (mean - jnp.sum(alpha * level, axis=1))[:, None]).T


def revealed_tokens(
    x: Float[Array, "N d"],
    t: Int[Array, "N q"],
    omega: Float[Array, "N de"],
    direction: Float[Array, "de"],
    /,
    *,
    beta: float | Float[Array, ""],
    selectivity: float | Float[Array, ""],
) -> Float[Array, "q d"]:
    """Compute the paper's attention on one prompt, and decode the tokens at the last position."""
    d, q = x.shape[1], t.shape[1]
    z = encode(x, t, omega)
    weights = revealing_weights(omega, direction, q=q, d=d, beta=beta, selectivity=selectivity)
    attended = jnp.stack([attention(z, W)[-1] for W in weights])
    return decode_tokens(attended, omega, q=q, beta=beta)


def averaging_weights(
    alpha: float | Float[Array, ""], /, *, q: int, d: int, de: int
) -> Float[Array, "De De"]:
    """Return W_QK of one head that averages the q relevant tokens (the remark after Proposition 3).

    The head's logits are alpha (d/q) sum_l <w_{t_l}, w_j>. The logits are equal on the relevant
    tokens if the encodings are orthonormal and t has distinct entries.
    """
    De = d + (q + 1) * de
    blocks = jnp.tile(alpha * jnp.eye(de), (q, 1))
    return jnp.zeros((De, De)).at[d + de :, d : d + de].set(blocks)


def averaging_error_bound(
    x: Float[Array, "N d"], alpha: float | Float[Array, ""], /, *, q: int
) -> Float[Array, ""]:
    """Bound the distance of the averaging head's output from the relevant tokens' mean.

    The bound is 2 max|x_j| (N - q)/q exp(-alpha d/q).

    The attention weights of the N - q irrelevant tokens have the sum (N - q) exp(-alpha d/q) / q at
    most.
    """
    N, d = x.shape
    radius = jnp.max(jnp.sqrt(jnp.sum(x**2, axis=1)))
    return 2.0 * radius * ((N - q) / q) * jnp.exp(-alpha * (d / q))
