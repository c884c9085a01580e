"""Covers of bounded linear maps, built explicitly (Lemmas 3.3, 3.4, 3.6 and Appendix A).

A function `cover_*(W, ...)` returns a member of a cover that is close to W. A function
`*_cover(...)` returns the whole cover as an array. Every member satisfies the norm bound that W
satisfies.
"""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.seqlength.counting import LARGEST_LIST, count_signed, signed_vectors
from jaxbounds.seqlength.norms import column_norm, require_norm, row_norm
from jaxbounds.seqlength.sparsification import shrinkage, sparsify

Matrix = Float[Array, "k d"]


def cover_l1_ball(
    v: Float[Array, "n"], B: float | Float[Array, ""], K: int, /
) -> Float[Array, "n"]:
    """Map v to a nearby member of {s B z / K : z integer, ||z||_1 <= K}.

    The scale s is `shrinkage(K)`. The l_2 distance of the member from v is at most B / (1 + sqrt
    K). For K = 0 the member is 0.

    Raises:
        Refused: if v is not traced and ||v||_1 is above B.
    """
    require_norm(jnp.sum(jnp.abs(v)), B, of="||v||_1")
    if K == 0:
        return jnp.zeros_like(v)
    n = v.shape[0]
    vertices = B * jnp.concatenate([jnp.eye(n, dtype=v.dtype), -jnp.eye(n, dtype=v.dtype)])
    weights = jnp.concatenate([jnp.maximum(v, 0.0), jnp.maximum(-v, 0.0)]) / B
    return sparsify(vertices, weights, K, scale=shrinkage(K)).approximation


def l1_ball_cover(n: int, B: float, K: int, /) -> Float[np.ndarray, "count n"]:
    """List all `count_signed(n, K)` members of the cover that `cover_l1_ball` uses.

    Raises:
        Refused: if there are more than 200000 members.
    """
    scale = 0.0 if K == 0 else shrinkage(K) * B / K
    return scale * signed_vectors(n, K)


def cover_columns(W: Matrix, B: float | Float[Array, ""], K: int, /) -> Matrix:
    """Replace every column of W by a member of the l_1 ball's cover (Lemma 3.3).

    For ||W||_{1,infinity} <= B, every column moves by at most B / (1 + sqrt K) in l_2.

    Raises:
        Refused: if W is not traced and its norm is above B.
    """
    require_norm(column_norm(W, 1, math.inf), B, of="||W||_{1,infinity}")
    return jax.vmap(cover_l1_ball, (1, None, None), 1)(W, B, K)


def cover_entries(W: Matrix, B: float | Float[Array, ""], K: int, /) -> Matrix:
    """Replace the flattened W by a member of the l_1 ball's cover (Lemma 3.6).

    For ||W||_{1,1} <= B, the result differs from W by at most B / (1 + sqrt K) in the Frobenius
    norm.
    """
    require_norm(column_norm(W, 1, 1), B, of="||W||_{1,1}")
    return cover_l1_ball(W.ravel(), B, K).reshape(W.shape)


def cover_each_row(W: Matrix, B: float | Float[Array, ""], K: int, /) -> Matrix:
    """Replace every row of W by a member of a cover of scalar linear functions (Appendix A).

    Every row has l_1 norm ||W_j||_1 <= B. For ||x||_2 <= B_x, every output changes by at most B_x B
    / (1 + sqrt K). The l_q norm of all k changes is at most k^(1/q) times as large.
    """
    require_norm(row_norm(W, 1, math.inf), B, of="the largest l_1 norm of a row")
    return jax.vmap(cover_l1_ball, (0, None, None))(W, B, K)


def cover_by_truncation(
    W: Matrix, B: float | Float[Array, ""], radius: float | Float[Array, ""], /
) -> tuple[Matrix, Float[Array, "k d"]]:
    """Truncate the entries of W; return the truncated What and its integer code Z (Lemma 3.4).

    If the row norm ||W^T||_{2,1} is at most B, each column of What has an l_2 distance below
    `radius` from the same column of W. Row j of norm r_j has level l_j = ceil(log2(B / r_j)) and
    step eta_j = radius 2^(-l_j / 2). Truncation rounds the entries of row j towards zero to
    multiples of eta_j, so row j of What is eta_j times row j of the integer matrix Z. These steps
    satisfy sum_j eta_j^2 <= radius^2 and sum |Z| <= sum r_j^2 / eta_j^2 <= 2 (B / radius)^2.
    """
    require_norm(row_norm(W, 2, 1), B, of="||W^T||_{2,1}")
    lengths = jnp.linalg.norm(W, axis=1)
    present = lengths > 0
    # A row of norm B 2^-l must get level l although the computed logarithm is rounded.
    exact = jnp.log2(B / jnp.where(present, lengths, 1.0))
    nearest = jnp.round(exact)
    level = jnp.where(jnp.abs(exact - nearest) < 1e-12, nearest, jnp.ceil(exact))
    eta = radius * 2.0 ** (-level / 2.0)
    code = jnp.where(present[:, None], jnp.trunc(W / eta[:, None]), 0.0)
    return code * eta[:, None], code


def columns_cover(k: int, d: int, B: float, K: int, /) -> Float[np.ndarray, "count k d"]:
    """List the whole cover of Lemma 3.3: `count_signed(k, K)**d` matrices.

    Raises:
        Refused: if there are more than 200000 matrices.
    """
    count = count_signed(k, K) ** d
    if count > LARGEST_LIST:
        raise Refused(
            f"k={k}, d={d}, K={K} give {count} matrices, expected at most {LARGEST_LIST}. Try"
            " `cover_columns`, which finds a member near a given matrix without the list"
        )
    columns = l1_ball_cover(k, B, K)
    chosen = np.array(list(itertools.product(range(len(columns)), repeat=d)))
    return np.swapaxes(columns[chosen], 1, 2)


def entries_cover(k: int, d: int, B: float, K: int, /) -> Float[np.ndarray, "count k d"]:
    """List the whole cover of Lemma 3.6: `count_signed(k * d, K)` matrices.

    Raises:
        Refused: if there are more than 200000 matrices.
    """
    return l1_ball_cover(k * d, B, K).reshape(-1, k, d)


def error_on_l1_ball(W: Matrix, What: Matrix, B_x: float, /) -> Float[Array, ""]:
    """Compute the sup over ||x||_1 <= B_x of ||(W - What) x||_2; some B_x e_i attains it."""
    return B_x * jnp.max(jnp.linalg.norm(W - What, axis=0))


def error_on_l2_ball(W: Matrix, What: Matrix, B_x: float, /) -> Float[Array, ""]:
    """Compute the sup over ||x||_2 <= B_x of ||(W - What) x||_2 from the largest singular value."""
    return B_x * jnp.max(jnp.linalg.svd(W - What, compute_uv=False))
