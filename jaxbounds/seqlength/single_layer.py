"""The Rademacher complexity of a single attention layer: Theorem 4.1, Appendices C and D.

The class consists of the functions X -> w . W_c^T sigma(W_v^T X^T softmax(X W_QK^T x_cls)). The
weights satisfy ||w||_1 <= B_w, ||W_c||_{1,infinity} <= B_Wc and ||W_v||_{1,infinity} <= B_Wv over
*columns*. The theorem is false with the paper's norms of W_c^T and W_v^T (erratum E4). Tokens have
||x||_2 <= B_x, and the maps x -> W_QK^T x have covers with ln N <= C / epsilon^2.

The proof of Appendix C removes w, W_c, sigma and W_v from the complexity (peeling). It leaves E,
the Rademacher complexity of the attention class {X -> s e_j^T X^T softmax(X W_QK^T x_cls)}, with
signs s and coordinates j.
"""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.renamed import renamed
from jaxbounds.numerics.arrays import array_module
from jaxbounds.seqlength.dudley import CERTIFIED, best_certified, interior_value, with_offset
from jaxbounds.seqlength.linear_bounds import LogCovering, Values


@dataclass(frozen=True, kw_only=True)
class OuterNorms:
    """The norms of all matrices except W_QK.

    Attributes:
        B_w: ||w||_1, the l_1 norm of the read-out.
        B_Wc: ||W_c||_{1,infinity}, the largest l_1 norm of a column of W_c in R^{k x d}.
        B_Wv: ||W_v||_{1,infinity}, the largest l_1 norm of a column of W_v in R^{d x k}.
        L_sigma: the Lipschitz constant of the activation.
        odd: whether sigma(-z) = -sigma(z). The proof's factor 2 is unnecessary for an odd sigma.
    """

    B_w: float = 1.0
    B_Wc: float = 1.0
    B_Wv: float = 1.0
    L_sigma: float = 1.0
    odd: bool = False

    def __post_init__(self) -> None:
        for name in ("B_w", "B_Wc", "B_Wv", "L_sigma"):
            if not 0 <= getattr(self, name) < math.inf:
                raise Refused(
                    f"{name}={getattr(self, name)}, expected a finite number that is not"
                    f" negative. Try {name}=1"
                )

    @property
    def product(self) -> float:
        """The product B = B_w B_Wc L_sigma B_Wv."""
        return self.B_w * self.B_Wc * self.L_sigma * self.B_Wv

    @property
    def peeled(self) -> float:
        """The factor of E, the attention class's complexity: B if sigma is odd, else 2 B."""
        return self.product * (1.0 if self.odd else 2.0)


def attention_lipschitz(
    B_x: ArrayLike, B_inf: ArrayLike | None = None, /, *, softmax_constant: float = 2.0
) -> Any:
    """Compute softmax_constant B_inf B_x, the Lipschitz constant of the attention in W x_cls.

    For f_W = e_j^T X^T softmax(X W x_cls), |f_W - f_What| is at most this constant times ||(W -
    What) x_cls||_2. Tokens have l_2 norm at most B_x, and entries of absolute value at most B_inf.
    The paper uses `softmax_constant` 2 and B_inf = B_x; the constant 1 is enough.
    """
    return softmax_constant * (B_x if B_inf is None else B_inf) * B_x


def entropy_terms(
    B_x: ArrayLike,
    C: ArrayLike,
    m: ArrayLike,
    d: ArrayLike,
    /,
    *,
    softmax_constant: float = 2.0,
    B_inf: ArrayLike | None = None,
) -> tuple[Any, Any, Any]:
    """Return (a, b, range) of Appendix C's bracket delta + (range - delta) a + b ln(range / delta).

    Here a = sqrt(ln 2d / m) comes from the 2d choices of a sign and a coordinate. The summand b =
    `attention_lipschitz` sqrt(C / m) comes from the cover of W_QK, and range is B_inf.
    """
    xp = array_module(B_x, C, m, d, B_inf, softmax_constant)
    C, m, d = (xp.asarray(value, float) for value in (C, m, d))
    factor = attention_lipschitz(B_x, B_inf, softmax_constant=softmax_constant)
    largest = xp.asarray(B_x if B_inf is None else B_inf, float)
    return xp.sqrt(xp.log(2.0 * d) / m), factor * xp.sqrt(C / m), largest


def attention_expectation_corrected(
    B_x: ArrayLike,
    C: ArrayLike,
    m: ArrayLike,
    d: ArrayLike,
    /,
    *,
    softmax_constant: float = 2.0,
    B_inf: ArrayLike | None = None,
) -> Values | Array:
    """Compute the corrected bound on E in closed form, without the constant c of Dudley's integral.

    The complexity E of the attention class is at most 12 times the result, which is at most B_inf.
    """
    return with_offset(*entropy_terms(B_x, C, m, d, softmax_constant=softmax_constant, B_inf=B_inf))


def attention_expectation(
    B_x: ArrayLike, C: ArrayLike, m: ArrayLike, d: ArrayLike, /
) -> Values | Array:
    """Compute Appendix C's last display, b + B_x a + b ln((sqrt m - sqrt ln 2d) / (2 B_x sqrt C)).

    The value can be negative or NaN if the minimiser delta is not in (0, B_x) (erratum E5).

    Earlier versions of the library gave this name to
    `attention_expectation_corrected`.
    """
    return interior_value(*entropy_terms(B_x, C, m, d))


@np.errstate(divide="ignore", invalid="ignore")
def theorem_4_1(
    product: ArrayLike, B_x: ArrayLike, C: ArrayLike, m: ArrayLike, d: ArrayLike, /
) -> Values | Array:
    """Compute the printed bound B (b (1 + ln(sqrt m / (2 B_x sqrt C))) + B_x sqrt(ln 2d / m)).

    The argument `product` is B = B_w B_Wc L_sigma B_Wv. The constant that the paper's O(.) hides is
    1 here. The value may be negative (erratum E5).

    Earlier versions of the library gave this name to
    `theorem_4_1_corrected`.
    """
    (a, b, B), xp = entropy_terms(B_x, C, m, d), array_module(product, B_x, C, m, d)
    return xp.asarray(product, float) * (b * (1.0 + xp.log(B / b)) + B * a)


def theorem_4_1_corrected(
    product: ArrayLike,
    B_x: ArrayLike,
    C: ArrayLike,
    m: ArrayLike,
    d: ArrayLike,
    /,
    *,
    softmax_constant: float = 2.0,
    B_inf: ArrayLike | None = None,
) -> Values | Array:
    """Compute 2 B min(B_inf, 12 E), the proved correction of Theorem 4.1 with every constant.

    Here E is `attention_expectation_corrected`, and `product` is B = B_w B_Wc L_sigma B_Wv.
    The arguments `softmax_constant=1.0` and B_inf = max |X_tj| make the bound smaller.
    """
    E = attention_expectation_corrected(
        B_x, C, m, d, softmax_constant=softmax_constant, B_inf=B_inf
    )
    xp = array_module(product, B_x, E, B_inf)
    largest = xp.asarray(B_x if B_inf is None else B_inf, float)
    return 2.0 * xp.asarray(product, float) * xp.minimum(largest, CERTIFIED * E)


def alpha_4_1_1(B_QK: ArrayLike, d: ArrayLike, /) -> Values | Array:
    """Compute Corollary 4.1.1's printed alpha, B_QK sqrt(2 ln(2 d^2 + 1)).

    The printed alpha is too small by the factor sqrt 2 (erratum E7).

    Earlier versions of the library gave this name to
    `alpha_4_1_1_corrected`.
    """
    xp = array_module(B_QK, d)
    B_QK, d = xp.asarray(B_QK, float), xp.asarray(d, float)
    return B_QK * xp.sqrt(2.0 * xp.log(2.0 * d**2 + 1.0))


def alpha_4_1_1_corrected(B_QK: ArrayLike, d: ArrayLike, /) -> Values | Array:
    """Compute the corrected alpha = 2 B_QK sqrt(ln(2 d^2 + 1)) of Corollary 4.1.1.

    The class has W_QK with entrywise norm ||W_QK||_{1,1} <= B_QK.
    """
    xp = array_module(B_QK, d)
    B_QK, d = xp.asarray(B_QK, float), xp.asarray(d, float)
    return 2.0 * B_QK * xp.sqrt(xp.log(2.0 * d**2 + 1.0))


def alpha_D_0_1(B_QK: ArrayLike, d: ArrayLike, /) -> Values | Array:
    """Compute alpha = 2 B_QK sqrt(d ln(2d + 1)) of Corollary D.0.1.

    B_QK bounds the l_1 norms of columns, and tokens have ||x||_1 <= B_x.
    """
    xp = array_module(B_QK, d)
    B_QK, d = xp.asarray(B_QK, float), xp.asarray(d, float)
    return 2.0 * B_QK * xp.sqrt(d * xp.log(2.0 * d + 1.0))


def alpha_D_0_2_leading(B_QK: ArrayLike, d: ArrayLike, /) -> Values | Array:
    """Compute the leading term 2 B_QK sqrt(2 ln d) of Corollary D.0.2's alpha.

    The number B_QK bounds the sum of the l_2 norms of the rows of the map x -> W_QK^T x.
    """
    xp = array_module(B_QK, d)
    return 2.0 * xp.asarray(B_QK, float) * xp.sqrt(2.0 * xp.log(xp.asarray(d, float)))


@np.errstate(divide="ignore", invalid="ignore")
def corollary(
    product: ArrayLike,
    B_x: ArrayLike,
    alpha: ArrayLike,
    m: ArrayLike,
    d: ArrayLike,
    /,
    *,
    exact_argument: bool,
) -> Values | Array:
    """Compute the bound of Corollaries 4.1.1, D.0.1 and D.0.2, with the constant 1 for O(.).

    The bound is B (B_x^3 alpha / sqrt m (1 + ln(r / (B_x^2 alpha))) + B_x sqrt(ln 2d / m)). Each
    corollary has its own formula for alpha. Here r = sqrt m, or sqrt m - sqrt ln 2d, as in the
    proof, if `exact_argument` is true. The bound may exceed the largest output of the class.
    """
    xp = array_module(product, B_x, alpha, m, d)
    product, B_x, alpha, m, d = (xp.asarray(v, float) for v in (product, B_x, alpha, m, d))
    signs = xp.sqrt(xp.log(2.0 * d))
    root = xp.sqrt(m) - (signs if exact_argument else 0.0)
    first = B_x**3 * alpha / xp.sqrt(m) * (1.0 + xp.log(root / (B_x**2 * alpha)))
    return product * (first + B_x * signs / xp.sqrt(m))


def attention_log_covering(map_covering: LogCovering, factor: float, d: int, /) -> LogCovering:
    """Return epsilon -> ln 2d + ln N(epsilon / factor), the log size of Appendix C's cover S.

    There are 2d choices of a sign and a coordinate. `map_covering` is ln N, the log size of a cover
    of x -> W_QK^T x at the CLS tokens in l_2. `factor` is `attention_lipschitz`.

    Raises:
        Refused: if `factor` is not positive.
    """
    if not factor > 0:
        raise Refused(
            f"factor={factor}, expected a positive Lipschitz factor, but all tokens are zero. Try "
            f"a sample with nonzero tokens"
        )
    return lambda epsilon: math.log(2 * d) + map_covering(np.asarray(epsilon) / factor)


def attention_bound(
    map_covering: LogCovering,
    m: int,
    d: int,
    /,
    *,
    B_x: float,
    B_inf: float | None = None,
    softmax_constant: float = 1.0,
    residual: float | None = None,
) -> float:
    """Compute the smallest proved bound on E, the Rademacher complexity of the attention class.

    `map_covering` is the log size of a cover of x -> W_QK^T x.

    The bound is the minimum of the range B_inf and three bounds: 12 times Dudley's minimum,
    chaining, and a single cover with Massart's lemma. If `residual` bounds |f_W - f_0| (see
    `residual_range`), another bound is Massart's bound for uniform attention f_0 plus the least of
    the three bounds for f_W - f_0.

    Raises:
        Refused: if m < 1 or a norm is negative or not finite.
    """
    B_inf = B_x if B_inf is None else B_inf
    if not (0 <= B_x < math.inf and 0 <= B_inf < math.inf):
        raise Refused(
            f"B_x={B_x} and B_inf={B_inf}, expected finite token norms that are not negative. Try"
            " B_x=1"
        )
    if B_inf == 0 or B_x == 0:
        return 0.0
    factor = attention_lipschitz(B_x, B_inf, softmax_constant=softmax_constant)
    covering = attention_log_covering(map_covering, factor, d)
    best = best_certified(covering, m, B_inf)
    if residual is not None:
        uniform = B_inf * math.sqrt(2.0 * math.log(2 * d) / m)
        best = min(best, uniform + best_certified(covering, m, min(residual, 2.0 * B_inf)))
    return best


def residual_range(B_inf: ArrayLike, B_x: ArrayLike, B_u: ArrayLike, /) -> Any:
    """Compute 2 B_inf tanh(B_x B_u / 2) >= |f_W - f_0|, where ||W_QK^T x_cls||_2 <= B_u.

    The function f_0 is attention with W_QK = 0, which has equal weights on all tokens.
    """
    half: Any = B_x * B_u / 2.0
    return 2.0 * B_inf * (jnp.tanh(half) if isinstance(half, jax.Array) else math.tanh(half))


def single_layer_bound(
    map_covering: LogCovering,
    m: int,
    d: int,
    /,
    *,
    outer: OuterNorms,
    B_x: float,
    B_inf: float | None = None,
    heads: int = 1,
    softmax_constant: float = 1.0,
    residual: float | None = None,
) -> float:
    """Bound the complexity of a single layer with H heads of equal norms (Section 4.2).

    The bound is H times the bound of one head, and at most H B_w B_Wc L_sigma B_Wv B_inf.

    Raises:
        Refused: if m < 1, heads < 1 or a norm is negative or not finite.
    """
    if heads < 1:
        raise Refused(f"heads={heads}, expected at least 1. Try heads=1")
    trivial = outer.product * (B_x if B_inf is None else B_inf)
    E = attention_bound(
        map_covering,
        m,
        d,
        B_x=B_x,
        B_inf=B_inf,
        softmax_constant=softmax_constant,
        residual=residual,
    )
    return heads * min(trivial, outer.peeled * E)


__getattr__ = renamed(
    __name__,
    {
        "theorem_4_1_printed": "theorem_4_1",
        "alpha_4_1_1_printed": "alpha_4_1_1",
        "attention_expectation_printed": "attention_expectation",
    },
)
