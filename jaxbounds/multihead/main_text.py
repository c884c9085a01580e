"""Theorems 1 and 2 and Corollary 2 of the main text, with constants in place of >~ and <~.

The bounds follow from Theorems 3 and 4 and Corollary 5 if T <= d R^2, and if R, D and s are at
least 1. Here D = ||theta - theta_0|| and s = ||theta||_{2,infinity}. For Corollary 2, R, B_2 and
g_0 >= B_2 must be at least 1. The printed orders are wrong if one of these conditions fails
(erratum E11). If R, D and s are at least 1, then

    3 sqrt(d) R^2 (3 D + s) + 1 <= sqrt(d) R^2 (9 D + 3 s + 1) <= 13 sqrt(d) R^2 s D

and

    alpha = 3 sqrt(d T) R^3 (3 R^2 (3 D + s) + 2) <= 42 sqrt(d T) R^5 s D.

Therefore, if sqrt(H) >= 36 * 13 d sqrt(T) R^5 s D^3, the condition (74) of Theorem 3 holds. The
factor 256 * 13 in place of 36 * 13 gives an H that satisfies the condition (84) of Theorem 4. For
this number of heads

    rho <= (2 sqrt(T d) R^3 / sqrt(H) + T R^2 / 4) 42^2 d T R^10 s^2 D^2,

where sqrt(H) >= 468 and T R^2 <= sqrt(T d) R^3. For Corollary 2, the corresponding inequalities are
12 g_0 + 3 B_2 + 1 <= 16 B_2 g_0 and 12 g_0 + 3 B_2 + 2 <= 17 g_0.
"""

import math

from jax.typing import ArrayLike

from jaxbounds.multihead.certificate import GoodInitialisation, realized_distance
from jaxbounds.multihead.descent import STABILITY, TRAINING, Setting

HEADS, ALPHA = 13.0, 42.0
"""Theorem 1's constants, with s = ||theta||_{2,infinity}. HEADS bounds (9 D + 3 s + 1) / (s D), and
ALPHA bounds 3 (9 D + 3 s + 2) / (s D)."""
GOOD_HEADS, GOOD_ALPHA = 16.0, 51.0
"""Corollary 2's constants, which bound (12 g_0 + 3 B_2 + 1) / (B_2 g_0) and 3 (12 g_0 + 3 B_2 + 2)
/ g_0.
"""


def _smoothness(alpha: float, root: float, radius: ArrayLike, T: int, d: int) -> ArrayLike:
    """Return the factor (2 / root + 1/4) alpha^2 (d T)^{3/2} R^13 of a bound on rho.

    `root` is a lower bound on sqrt(H), and `radius` is R.
    """
    return (2.0 / root + 0.25) * alpha**2 * math.sqrt(d * T) ** 3 * radius**13


def theorem1_root_heads(s: Setting, /, *, stability: bool = False) -> ArrayLike:
    """Return 468 d sqrt(T) R^5 ||theta||_{2,infinity} D^3, the sqrt(H) of equation (3).

    If `stability` is set, the factor is 3328 (Theorem 2) in place of 468.
    """
    factor = HEADS * (STABILITY if stability else TRAINING)
    return factor * s.d * math.sqrt(s.T) * s.radius**5 * s.size * s.distance**3


def theorem1_rho(s: Setting, /) -> ArrayLike:
    """Return 448.6 (d T)^{3/2} R^13 ||theta||_{2,infinity}^2 D^2, a bound on rho under (3)."""
    leading = _smoothness(ALPHA, HEADS * TRAINING, s.radius, s.T, s.d)
    return leading * s.size**2 * s.distance**2


def corollary2_root_heads(
    good: GoodInitialisation, radius: ArrayLike, K: ArrayLike, /, *, T: int, d: int, corrected: bool
) -> ArrayLike:
    """Return Corollary 2's sqrt(H): 4096 d sqrt(T) R^5 B_2^2 g_0(1/K)^3.

    In this formula g_0 = G as printed, or g_0 = sqrt(2) G if `corrected` is true (erratum E5).
    """
    distance = realized_distance(good, 1 / K, corrected=corrected)
    shape = d * math.sqrt(T) * radius**5
    return GOOD_HEADS * STABILITY * shape * good.head_bound**2 * distance**3


def corollary2_rho(
    good: GoodInitialisation, radius: ArrayLike, K: ArrayLike, /, *, T: int, d: int, corrected: bool
) -> ArrayLike:
    """Return 651.6 (d T)^{3/2} R^13 g_0(1/K)^4, a bound on rho(K) for `corollary2_root_heads`."""
    distance = realized_distance(good, 1 / K, corrected=corrected)
    return _smoothness(GOOD_ALPHA, GOOD_HEADS * STABILITY, radius, T, d) * distance**4
