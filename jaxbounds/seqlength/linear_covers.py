"""Covers of bounded linear maps that are built (Lemmas 3.3, 3.4, 3.6 and Appendix A).

Each lemma has a map onto its cover, `cover_*(W, ...)`, that finds a member near W at any size, and
where it is small enough the cover itself, `*_cover(...)`, as an array. All are internal: a member
meets the norm bound that W meets.
"""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.seqlength.counting import LARGEST_LIST, count_signed, signed_vectors
from jaxbounds.seqlength.norms import column_norm, require_norm, row_norm
from jaxbounds.seqlength.sparsification import shrinkage, sparsify

Matrix = Float[Array, "k d"]


def cover_l1_ball(
    v: Float[Array, "n"], B: float | Float[Array, ""], K: int, /
) -> Float[Array, "n"]:
    """A member {s B z / K : z integer, ||z||_1 <= K} within B / (1 + sqrt K) of v in l_2.

    K = 0 gives the zero vector.

    Raises:
        ValueError: if ||v||_1 is known and above B.
    """
    require_norm(jnp.sum(jnp.abs(v)), B, of="||v||_1")
    if K == 0:
        return jnp.zeros_like(v)
    n = v.shape[0]
    vertices = B * jnp.concatenate([jnp.eye(n, dtype=v.dtype), -jnp.eye(n, dtype=v.dtype)])
    weights = jnp.concatenate([jnp.maximum(v, 0.0), jnp.maximum(-v, 0.0)]) / B
    return sparsify(vertices, weights, K, scale=shrinkage(K)).approximation


def l1_ball_cover(n: int, B: float, K: int, /) -> Float[np.ndarray, "count n"]:
    """All members of the cover that `cover_l1_ball` maps onto; there are `count_signed(n, K)`.

    Raises:
        ValueError: if there are more than 200000.
    """
    scale = 0.0 if K == 0 else shrinkage(K) * B / K
    return scale * signed_vectors(n, K)


def cover_columns(W: Matrix, B: float | Float[Array, ""], K: int, /) -> Matrix:
    """Lemma 3.3: every column of W replaced by a member of the l_1 ball's cover.

    For ||W||_{1,infinity} <= B; every column moves by at most B / (1 + sqrt K).

    Raises:
        ValueError: if the norm is known and above B; so for the maps below.
    """
    require_norm(column_norm(W, 1, math.inf), B, of="||W||_{1,infinity}")
    return jax.vmap(cover_l1_ball, (1, None, None), 1)(W, B, K)


def cover_entries(W: Matrix, B: float | Float[Array, ""], K: int, /) -> Matrix:
    """Lemma 3.6: the flattened W replaced by a member of the l_1 ball's cover.

    For ||W||_{1,1} <= B; ||W - What||_F is at most B / (1 + sqrt K).
    """
    require_norm(column_norm(W, 1, 1), B, of="||W||_{1,1}")
    return cover_l1_ball(W.ravel(), B, K).reshape(W.shape)


def cover_each_row(W: Matrix, B: float | Float[Array, ""], K: int, /) -> Matrix:
    """Appendix A: every row of W replaced by a member of a cover of scalar linear functions.

    For rows with ||W_j||_1 <= B; for ||x||_2 <= B_x every output moves by at most
    B_x B / (1 + sqrt K), so the l_q norm of all k by k^(1/q) times that.
    """
    require_norm(row_norm(W, 1, math.inf), B, of="the largest l_1 norm of a row")
    return jax.vmap(cover_l1_ball, (0, None, None))(W, B, K)


def cover_by_truncation(
    W: Matrix, B: float | Float[Array, ""], radius: float | Float[Array, ""], /
) -> tuple[Matrix, Float[Array, "k d"]]:
    """Lemma 3.4 for row norms, elementary: What and its integer code Z, with What = eta Z.

    For ||W^T||_{2,1} <= B every column moves by less than `radius`. Row j of norm r_j has level
    l_j = ceil(log2(B / r_j)) and step eta_j = radius 2^(-l_j / 2); its entries are truncated
    towards zero. Then sum_j eta_j^2 <= radius^2 and
    sum |Z| <= sum r_j^2 / eta_j^2 <= 2 (B / radius)^2.
    """
    require_norm(row_norm(W, 2, 1), B, of="||W^T||_{2,1}")
    lengths = jnp.linalg.norm(W, axis=1)
    present = lengths > 0
    # A row of length B 2^-l must get level l although its logarithm is rounded.
    exact = jnp.log2(B / jnp.where(present, lengths, 1.0))
    nearest = jnp.round(exact)
    level = jnp.where(jnp.abs(exact - nearest) < 1e-12, nearest, jnp.ceil(exact))
    eta = radius * 2.0 ** (-level / 2.0)
    code = jnp.where(present[:, None], jnp.trunc(W / eta[:, None]), 0.0)
    return code * eta[:, None], code


def columns_cover(k: int, d: int, B: float, K: int, /) -> Float[np.ndarray, "count k d"]:
    """The whole cover of Lemma 3.3: `count_signed(k, K)**d` matrices.

    Raises:
        ValueError: if there are more than 200000.
    """
    count = count_signed(k, K) ** d
    if count > LARGEST_LIST:
        raise ValueError(
            f"k={k}, d={d}, K={K} give {count} matrices, expected at most {LARGEST_LIST}. Try"
            " `cover_columns`, which finds a member without the list"
        )
    columns = l1_ball_cover(k, B, K)
    chosen = np.array(list(itertools.product(range(len(columns)), repeat=d)))
    return np.swapaxes(columns[chosen], 1, 2)


def entries_cover(k: int, d: int, B: float, K: int, /) -> Float[np.ndarray, "count k d"]:
    """The whole cover of Lemma 3.6: `count_signed(k * d, K)` matrices.

    Raises:
        ValueError: if there are more than 200000.
    """
    return l1_ball_cover(k * d, B, K).reshape(-1, k, d)


def error_on_l1_ball(W: Matrix, What: Matrix, B_x: float, /) -> Float[Array, ""]:
    """The sup over ||x||_1 <= B_x of ||(W - What) x||_2, attained at a B_x e_i."""
    return B_x * jnp.max(jnp.linalg.norm(W - What, axis=0))


def error_on_l2_ball(W: Matrix, What: Matrix, B_x: float, /) -> Float[Array, ""]:
    """The sup over ||x||_2 <= B_x of ||(W - What) x||_2, at the top right singular vector."""
    return B_x * jnp.max(jnp.linalg.svd(W - What, compute_uv=False))
