"""A two-head Transformer with a polynomial readout that solves the quadratic task at d = 1.

Proposition 21 assumes logits that are block-diagonal in token and position. In this construction,
the logits mix token and position. Each head outputs a softmax-weighted average of the q relevant
tokens. The logit of token x contains +beta x in one head, and -beta x in the other head. Up to
O(beta^2), half the sum of the two averages is the mean of the relevant tokens. The difference of
the two averages, divided by 2 beta, is their variance, and mean and variance determine the sum of
x^2. For d = 1, the network of `jaxbounds.qstr.few_heads` needs one head for any link, but the
readout of that network computes logarithms.
"""

import math

import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float, Int

from jaxbounds.ground.exceptions import Refused
from jaxbounds.qstr.data import encode
from jaxbounds.qstr.transformer import attention

MARGIN_SLACK = 1e-9
"""To be safe from rounding, `separating_direction` reduces the largest possible margin by this
share. A larger share is safer, and makes the margin smaller.
"""


def separating_direction(
    omega: Float[Array | np.ndarray, "N de"], q: int, /
) -> tuple[Array, float]:
    """Find the v with <v, w_j> = 1 for j < q that has the largest margin to the other encodings.

    The margin is the largest number with <v, w_j> <= 1 - margin for all j >= q, capped at 1. A
    linear program (on the host, outside JAX) finds the largest margin. The function returns the
    shortest direction that has this margin.

    Raises:
        Refused: if no direction separates the first q encodings from the rest.
    """
    w = np.asarray(omega, dtype=np.float64)
    N, de = w.shape
    equal = np.concatenate([w[:q], np.zeros((q, 1))], axis=1)
    below = np.concatenate([w[q:], np.ones((N - q, 1))], axis=1)
    found = scipy.optimize.linprog(
        np.append(np.zeros(de), -1.0),
        A_ub=below,
        b_ub=np.ones(N - q),
        A_eq=equal,
        b_eq=np.ones(q),
        bounds=[(None, None)] * de + [(None, 1.0)],
    )
    margin = -found.fun if found.status == 0 else -1.0
    if not margin > 1e-9:
        raise Refused(
            f"no direction separates the first q={q} of N={N} encodings with de={de}. Try a"
            " larger de or a smaller q"
        )
    # The slack keeps the second problem feasible.
    margin *= 1 - MARGIN_SLACK
    least = np.concatenate([np.ones(q), -np.ones(q), np.full(N - q, margin - 1.0)])
    shortest = _shortest_point(np.concatenate([w[:q], -w[:q], -w[q:]]), least)
    return jnp.asarray(shortest, omega.dtype), margin


def _shortest_point(rows: np.ndarray, least: np.ndarray, /) -> np.ndarray:
    """Return the shortest v with rows @ v >= least, from nonnegative least squares.

    Source: Lawson and Hanson, Solving Least Squares Problems, chapter 23 (LDP).
    """
    system = np.concatenate([rows.T, least[None]])
    goal = np.append(np.zeros(rows.shape[1]), 1.0)
    residual = system @ scipy.optimize.nnls(system, goal)[0] - goal
    return -residual[:-1] / residual[-1]


def two_head_weights(
    omega: Float[Array, "N de"],
    direction: Float[Array, "de"],
    /,
    *,
    q: int,
    beta: float | Float[Array, ""],
    selectivity: float,
) -> Float[Array, "2 De De"]:
    """Return both heads' matrices W_QK, for d = 1 and prompts in which t_1 is the first token.

    All non-zero rows act on the query's encoding w_{t_1}. The column for the key's token x adds
    +-beta x to the logit. The columns for the key's own encoding w select the tokens with
    <direction, w> = 1. For other tokens, the logit is smaller by `selectivity` (1 - <direction,
    w>).

    The rows of `omega` are unit vectors, and `direction` is the result of `separating_direction`.
    The prediction errs by O(beta^2). Choose `selectivity` of order log(N / error) / margin.
    """
    de = omega.shape[1]
    scale = math.sqrt(1.0 / q)
    De = 1 + (q + 1) * de
    rows = slice(1 + de, 1 + 2 * de)
    select = (selectivity / scale**2) * jnp.outer(omega[0], direction)
    heads = []
    for tilt in (beta, -beta):
        W = jnp.zeros((De, De), omega.dtype).at[rows, 1 : 1 + de].set(select)
        heads.append(W.at[rows, 0].set((tilt / scale) * omega[0]))
    return jnp.stack(heads)


def decode_sum_of_squares(
    plus: Float[Array, "*batch"],
    minus: Float[Array, "*batch"],
    /,
    *,
    q: int,
    beta: float | Float[Array, ""],
) -> Float[Array, "*batch"]:
    """Return q^{-1/2} sum_j (x_j^2 - 1) = sqrt(q) (var + mean^2 - 1) from the heads' averages."""
    mean, variance = (plus + minus) / 2, (plus - minus) / (2 * beta)
    return math.sqrt(q) * (variance + mean**2 - 1.0)


def two_head_prediction(
    x: Float[Array, "*batch N d"],
    t: Int[Array, "*batch N q"],
    omega: Float[Array, "N de"],
    direction: Float[Array, "de"],
    /,
    *,
    beta: float | Float[Array, ""],
    selectivity: float,
) -> Float[Array, "*batch N"]:
    """Return the predictions of the two-head Transformer on scalar tokens.

    The attention is the paper's softmax attention.

    Raises:
        Refused: if the tokens are not scalars.
    """
    if x.shape[-1] != 1:
        raise Refused(
            f"x.shape={x.shape}, expected tokens of dimension d = 1 for the two-head network. Try"
            " `few_heads`"
        )
    q = t.shape[-1]
    z = encode(x, t, omega)
    weights = two_head_weights(omega, direction, q=q, beta=beta, selectivity=selectivity)
    plus, minus = (attention(z, W)[..., 0] for W in weights)
    return decode_sum_of_squares(plus, minus, q=q, beta=beta)
