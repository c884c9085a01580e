"""Covering numbers of the multi-layer Transformer: Lemma E.1, Theorem 4.2 and its corollaries.

Matrix i of the network has a cover at scale epsilon_i, with log size C_i / epsilon_i^2. An error
epsilon_i of matrix i changes the network's output by at most beta_i epsilon_i. Every bound in this
module is a list of pairs (C_i, beta_i), from which Lemma E.1 chooses the scales.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.renamed import renamed
from jaxbounds.numerics.arrays import Count, array_module
from jaxbounds.seqlength.dudley import CERTIFIED, inverse_square
from jaxbounds.seqlength.linear_bounds import Values, lemma_3_3, lemma_3_4_leading, lemma_3_6

PerTerm = Float[Array | np.ndarray, "terms"]


class Budget(NamedTuple):
    """The scales that Lemma E.1 gives to the covers of the matrices.

    Attributes:
        log_covering: the logarithm of the size of the product cover of all matrices.
        shares: for each matrix, beta_i epsilon_i as a fraction of epsilon.
    """

    log_covering: Values | Array
    scales: PerTerm
    shares: PerTerm


class Terms(NamedTuple):
    """The numbers (C_i, beta_i) of each matrix.

    Attributes:
        names: the name of each matrix.
        C: C_i, the log size of the cover of matrix i times epsilon_i^2.
        beta: the factor beta_i by which an error of matrix i changes the output.
    """

    names: tuple[str, ...]
    C: PerTerm
    beta: PerTerm


class NetworkNorms(NamedTuple):
    """The norms of Theorem 4.2, equal in every layer.

    Attributes:
        B_w: ||w||_2, the norm of the read-out.
        B_c: the spectral norm ||W_c^T||_2.
        B_v: the spectral norm ||W_v^T||_2.
        B_QK: the spectral norm ||W_QK||_2.
        L_sigma: the activation's Lipschitz constant.
        B_x: the largest l_2 norm of a token.
    """

    B_w: ArrayLike
    B_c: ArrayLike
    B_v: ArrayLike
    B_QK: ArrayLike
    L_sigma: ArrayLike
    B_x: ArrayLike


class Constants(NamedTuple):
    """The constant C of the covers of each kind of weight matrix, for inputs of l_2 norm 1.

    A cover for inputs of l_2 norm at most r has the constant r^2 C. The paper has one constant C_1
    and one C_{B_x} for all matrices.
    """

    w: ArrayLike
    c: ArrayLike
    v: ArrayLike
    QK: ArrayLike


def _weights(C: Any, beta: Any) -> Any:
    xp = array_module(C, beta)
    present = (C > 0) & (beta > 0)
    safe = lambda a: xp.where(present, a, 1.0)
    return xp.where(present, xp.cbrt(safe(C)) * xp.cbrt(safe(beta)) ** 2, 0.0)


def covering_constant(C: PerTerm, beta: PerTerm, /) -> Values | Array:
    """Compute (sum C_i^{1/3} beta_i^{2/3})^3, the constant of Lemma E.1.

    The constant is the minimum of sum C_i / epsilon_i^2 over positive epsilon_i with sum beta_i
    epsilon_i = 1. The paper omits "positive" (erratum E8).
    """
    return _weights(C, beta).sum() ** 3


def divide_scale(
    C: PerTerm,
    beta: PerTerm,
    epsilon: ArrayLike,
    /,
) -> Budget:
    """Choose the scales epsilon_i at which the covers' total log size is least (Lemma E.1).

    The minimum of the total log size is gamma^3 / epsilon^2 with gamma = sum C_i^{1/3}
    beta_i^{2/3}. The minimiser is epsilon_i = (epsilon / gamma) (C_i / beta_i)^{1/3}. C_i = 0 gives
    epsilon_i = 0, and beta_i = 0 gives epsilon_i = infinity. The share of matrix i is C_i^{1/3}
    beta_i^{2/3} / gamma.
    """
    xp = array_module(C, beta, epsilon)
    epsilon = xp.asarray(epsilon, C.dtype)
    weights = _weights(C, beta)
    gamma = weights.sum()
    ratio = xp.where(beta > 0, C / xp.where(beta > 0, beta, 1.0), xp.inf)
    scale = xp.where(gamma > 0, epsilon / xp.where(gamma > 0, gamma, 1.0), 0.0)
    scales = xp.where(ratio == 0, 0.0, scale * xp.cbrt(ratio))
    return Budget(gamma**3 / epsilon**2, scales, weights / xp.where(gamma > 0, gamma, 1.0))


def _layers_after(layers: int, xp: Any) -> Float[Array | np.ndarray, "layers"]:
    return xp.arange(layers - 1, -1, -1).astype(float)


def _names(layers: int, heads: int) -> tuple[str, ...]:
    tags = [
        f"{i + 1}" if heads == 1 else f"{i + 1}.{h + 1}"
        for i in range(layers)
        for h in range(heads)
    ]
    return ("w", *(f"{matrix} {tag}" for tag in tags for matrix in ("W_c", "W_v", "W_QK")))


def downstream_factors(
    norms: NetworkNorms, layers: int, /, *, softmax_constant: float = 2.0
) -> Float[Array | np.ndarray, "layers"]:
    """Compute alpha_i, the factor by which the layers after layer i multiply a perturbation.

    alpha_i = prod_{j > i} L_sigma B_c B_v (1 + 2 softmax_constant B_QK) for i = 1..L; alpha_L = 1.

    Raises:
        Refused: if there is no layer.
    """
    if layers < 1:
        raise Refused(f"layers={layers}, expected at least 1. Try layers=1")
    xp = array_module(norms)
    one = xp.asarray(norms.L_sigma, float) * norms.B_c * norms.B_v
    factor = one * (1.0 + 2.0 * softmax_constant * norms.B_QK)
    return factor ** _layers_after(layers, xp)


def theorem_4_2(
    norms: NetworkNorms, C_1: ArrayLike, C_Bx: ArrayLike, layers: int, /
) -> Values | Array:
    """Compute (gamma + eta)^3, Theorem 4.2's printed value of epsilon^2 ln N.

    The paper's proof gives another value, which may be larger or smaller (erratum E10).
    """
    xp = array_module(norms, C_1, C_Bx)
    B_w, B_c, B_v, _, L, _ = (xp.asarray(v, float) for v in norms)
    alpha = downstream_factors(norms, layers)
    power = lambda v: xp.cbrt(v) ** 2  # v^{2/3}, with no exponent that is rounded
    tau = power(alpha) + power(2 * alpha * L * B_c * B_v) + power(alpha * L * B_v)
    C_1, C_Bx = (xp.asarray(C, float) for C in (C_1, C_Bx))
    gamma = xp.cbrt(C_Bx) * power(2 * L * B_c * B_v * alpha[0] * B_w)
    gamma += xp.cbrt(C_1) * (1.0 + power(B_w * L * B_v))
    eta = xp.cbrt(C_1) * power(B_w) * xp.sum(tau[1:])
    return (gamma + eta) ** 3


def terms_derived(norms: NetworkNorms, C_1: ArrayLike, C_Bx: ArrayLike, layers: int, /) -> Terms:
    """List the pairs (C_i, beta_i) of the last display in the proof of Theorem 4.2.

    The proof has two faults. Lemma E.2 is false at i = 1 (erratum E9). The covers of W_c and of the
    first W_v are for inputs of norm 1 (erratum E10).
    """
    xp = array_module(norms, C_1, C_Bx)
    B_w, B_c, B_v, _, L, _ = (xp.asarray(v, float) for v in norms)
    alpha = downstream_factors(norms, layers)
    C_1, C_Bx = (xp.asarray(C, float) for C in (C_1, C_Bx))
    C = xp.where(xp.arange(3 * layers) == 2, C_Bx, C_1)
    each = xp.stack([xp.ones_like(B_w), L * B_c, 2.0 * L * B_c * B_v])
    beta = B_w * xp.outer(alpha, each)
    with_w = lambda first, rest: xp.concatenate([first[None], rest.ravel()])
    return Terms(_names(layers, 1), with_w(C_1, C), with_w(xp.ones_like(B_w), beta))


def terms_corrected(
    norms: NetworkNorms,
    constants: Constants,
    layers: int,
    /,
    *,
    softmax_constant: ArrayLike = 2.0,
    heads: int = 1,
) -> Terms:
    """List the pairs (C_i, beta_i) that a correct proof of Theorem 4.2 gives.

    The inputs of layer i have norm at most r_i, with r_1 = B_x and r_i = 1 for later layers. The
    inputs of W_c have norm at most L_sigma. The beta_i of W_QK has the factor r_i^2, because the
    keys and the values each have norm at most r_i. A layer with H heads has H copies of each
    matrix.

    Raises:
        Refused: if there is no layer or no head.
    """
    if heads < 1:
        raise Refused(f"heads={heads}, expected at least 1. Try heads=1")
    xp = array_module(norms, constants, softmax_constant)
    B_w, B_c, B_v, B_QK, L, B_x = (xp.asarray(v, float) for v in norms)
    passed = heads * L * B_c * B_v * (1.0 + 2.0 * softmax_constant * B_QK)
    C_w, C_c, C_v, C_QK = (xp.asarray(C, float) for C in constants)
    if layers < 1:
        raise Refused(f"layers={layers}, expected at least 1. Try layers=1")
    r = xp.where(xp.arange(layers) == 0, B_x, 1.0)
    C = xp.stack([xp.full(layers, L**2 * C_c), r**2 * C_v, r**2 * C_QK], axis=1)
    each = xp.stack(
        [xp.ones(layers), xp.full(layers, L * B_c), softmax_constant * L * B_c * B_v * r**2],
        axis=1,
    )
    beta = B_w * passed ** _layers_after(layers, xp)[:, None] * each
    with_w = lambda first, rest: xp.concatenate(
        [first[None], xp.repeat(rest[:, None], heads, axis=1).ravel()]
    )
    return Terms(_names(layers, heads), with_w(C_w, C), with_w(xp.ones_like(C_w), beta))


def _per_matrix(log_size: Callable[..., ArrayLike], B: ArrayLike, d: Count, k: Count) -> Constants:
    shapes = ((1, d), (d, k), (k, d), (d, d))
    return Constants(*(log_size(B, k=outputs, d=inputs) for outputs, inputs in shapes))


def constants_4_2_1_corrected(
    B: ArrayLike, d: Count, k: Count, /, *, B_w_1: ArrayLike | None = None
) -> Constants:
    """Compute the constants C of Corollary 4.2.1 for inputs of l_2 norm 1, corrected.

    Every matrix has entrywise norm ||.||_{1,1} at most B (Lemma 3.6). The paper uses ln(2dk + 1)
    for every matrix; W_QK needs ln(2d^2 + 1) (erratum E11). The number `B_w_1` bounds ||w||_1, by
    default by B.
    """
    constants = _per_matrix(lemma_3_6, B, d, k)
    return constants if B_w_1 is None else constants._replace(w=lemma_3_6(B_w_1, k=1, d=d))


def constants_F_0_1_corrected(B: ArrayLike, d: Count, k: Count, /) -> Constants:
    """Compute the constants C of Corollary F.0.1, corrected.

    Every linear map of the network has ||.||_{1,infinity} at most B (Lemma 3.3). The paper uses d
    B^2 ln(2k + 1) for every matrix; W_c needs k B^2 ln(2d + 1) (erratum E11). Tokens must have l_1
    norm at most 1 in every layer. For Theorem 4.2's tokens in the l_2 ball, the printed C is too
    small (erratum E18).
    """
    return _per_matrix(lemma_3_3, B, d, k)


def constants_F_0_2_corrected_leading(B: ArrayLike, d: Count, k: Count, /) -> Constants:
    """Compute the constants C of the corrected Corollary F.0.2, to leading order.

    The row norms of each map sum to at most B (Lemma 3.4). Tokens must have l_1 norm at most 1 in
    every layer.
    """
    return _per_matrix(lemma_3_4_leading, B, d, k)


def rademacher_multi_layer(A: ArrayLike, m: ArrayLike, B_w: ArrayLike, /) -> Values | Array:
    """Bound a network's complexity by 12 times Dudley's minimum for ln N = A / epsilon^2.

    B_w bounds ||w||_2. The tokens after the last layer are in the l_2 unit ball, so the bound is at
    most B_w.
    """
    xp = array_module(A, m, B_w)
    B_w = xp.asarray(B_w, float)
    return xp.minimum(B_w, CERTIFIED * inverse_square(A, m, B_w))


__getattr__ = renamed(
    __name__,
    {
        "theorem_4_2_printed": "theorem_4_2",
        "constants_4_2_1": "constants_4_2_1_corrected",
        "constants_F_0_1": "constants_F_0_1_corrected",
        "constants_F_0_2_leading": "constants_F_0_2_corrected_leading",
    },
)
