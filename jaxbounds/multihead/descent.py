"""Bounds for gradient descent: heads, step size, loss and gap of Section 4, Appendices B and C.

Let kappa = 1/2 be an upper bound on beta_3 ||theta - theta_k||^2 / sqrt(H). Let q be kappa times
the factor in Proposition 4's quasi-convexity bound (4/3 as printed). If q < 2 and every step lowers
the loss as in (68), then

    ||theta_k - theta||^2 <= D^2 + (2 + q) eta k L(theta) + q eta L(theta_0) <= (3 + 2 q) D^2,
    (1 - q/2) mean_k L(theta_k) <= (1 + q/2) L(theta) + D^2 / (2 eta K) + q L(theta_0) / (2 K).

The paper has the factor 4/3, so q = 2/3, and rounds 3 + 2 q = 13/3 up to 9.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbounds.ground.jax_internals import enable_x64, ensure_compile_time_eval
from jaxbounds.multihead.bounds import (
    beta1,
    beta1_sharp,
    beta2_sharp,
    beta3,
    beta3_sharp,
    convexity_horizon,
)
from jaxbounds.numerics.arrays import array_module, traced

PRINTED_WEIGHT = 2 / 3
"""The factor q = kappa * 4/3 = 2/3 of the paper's loss bounds, with kappa = 1/2 and Proposition 4's
factor 4/3.

`Constants.weight` and `averaged_loss` use the factor q. A larger q gives a larger bound on the
loss.
"""

TRAINING, STABILITY = 36.0, 256.0
"""The factors of the numbers of heads that the theorems print: 36 in (74) and (81) for training,
256 in (84) and (95) for stability.

`root_heads` reads the factors; a larger factor requires more heads.
"""


class Setting(NamedTuple):
    """The quantities of a target and of a run that determine the constants of Section 4.

    Attributes:
        distance: D = ||theta - theta_0||.
        size: ||theta||_{2,infinity}, the largest norm of a head.
        largest: max_h ||U_h||_F of theta; the caller may pass the upper bound `size` instead.
        squares: mean_h ||U_h||_F^2 of theta; the caller may pass the upper bound `size`^2 instead.
        radius: R, an upper bound on the token norms.
        loss_target: L(theta), the loss at the target.
        loss_start: L(theta_0), the loss at the start.
    """

    distance: ArrayLike
    size: ArrayLike
    largest: ArrayLike
    squares: ArrayLike
    radius: ArrayLike
    heads: ArrayLike
    loss_target: ArrayLike
    loss_start: ArrayLike
    T: int
    d: int

    @classmethod
    def bounded(
        cls,
        *,
        distance: ArrayLike,
        size: ArrayLike,
        radius: ArrayLike,
        T: int,
        d: int,
        heads: ArrayLike = math.inf,
        loss_target: ArrayLike = math.nan,
        loss_start: ArrayLike = math.nan,
    ) -> "Setting":
        """Return a `Setting` for a target theta known only by ||theta||_{2,infinity} <= size."""
        return cls(distance, size, size, size**2, radius, heads, loss_target, loss_start, T, d)

    def of_size(self, size: ArrayLike, /, **changed: Any) -> "Setting":
        """Return this `Setting` for a target theta known only by ||theta||_{2,infinity} <= size."""
        return self._replace(size=size, largest=size, squares=size**2, **changed)


@dataclass(frozen=True, kw_only=True)
class Constants:
    """The choice between the paper's constants and those of sharpenings S6, S7, S9 and S10.

    Attributes:
        printed: whether to use the paper's own constants of Theorem 3, Lemma 11 and Theorem 4.
        mean_square: whether to use beta_1# with the root mean square over heads (S2) instead of the
            largest head.
        sturm: whether to use the factor sec(sqrt(kappa) / 2) = 1.0659 of sharpening S8 instead of
            the factor 4/3.
    """

    printed: bool = False
    mean_square: bool = False
    sturm: bool = False

    @property
    def weight(self) -> ArrayLike:
        """The factor q of the loss bounds: .533 if the attribute `sturm` is set, else 2/3."""
        return sharp_weight(0.5) if self.sturm else PRINTED_WEIGHT

    @property
    def reach(self) -> ArrayLike:
        """The factor of D = ||theta - theta_0|| in the bound on ||theta_k - theta|| for every k."""
        return 3.0 if self.printed else reach(self.weight)


PRINTED = Constants(printed=True)
LARGEST_HEAD = Constants()
MEAN_SQUARE = Constants(mean_square=True)
SHARPEST = Constants(mean_square=True, sturm=True)


def sharp_weight(curvature: ArrayLike, /) -> ArrayLike:
    """Return q = kappa sec(sqrt(kappa) / 2) of sharpening S8; the regret bound needs q < 2."""
    return curvature * convexity_horizon(jnp.asarray(curvature))


def reach(weight: ArrayLike, /) -> ArrayLike:
    """Return the factor sqrt(3 + 2 q) of the bound ||theta_k - theta|| <= sqrt(3 + 2 q) D.

    The paper prints the factor 3 in place of sqrt(3 + 2 q) (sharpening S9).
    """
    return jnp.sqrt(3 + 2 * jnp.asarray(weight))


@functools.cache
def _known(constants: Constants) -> tuple[float, float]:
    with enable_x64(True), ensure_compile_time_eval():
        weight, reach = map(float, map(jnp.asarray, (constants.weight, constants.reach)))
        return weight, reach


def _weight_and_reach(constants: Constants, s: Setting) -> tuple[ArrayLike, ArrayLike]:
    return (constants.weight, constants.reach) if traced(s) else _known(constants)


def root_heads(
    s: Setting, constants: Constants = PRINTED, /, *, stability: bool = False
) -> ArrayLike:
    """Return the least sqrt(H) that satisfies (74), or (84) if `stability` is set.

    The sharpened bound comes from the condition beta_3# ||theta - theta_k||^2 <= sqrt(H) / 2 for
    all k. The proof for stability bounds the distance of two runs, which can be twice the distance
    ||theta - theta_k||.
    """
    far = _weight_and_reach(constants, s)[1] * s.distance
    if constants.printed:
        factor = STABILITY if stability else TRAINING
        return factor / 2 * beta3(far + s.size, s.radius, T=s.T, d=s.d) * s.distance**2
    apart = 4.0 if stability else 1.0
    return 2 * apart * far**2 * beta3_sharp(far + s.largest, s.radius, T=s.T)


def root_heads_spread(threshold: Callable[[ArrayLike], Any], spread: ArrayLike, /) -> ArrayLike:
    """Return the least x = sqrt(H) with x >= threshold(spread / x), where threshold(s) = a + b s.

    `threshold(s)` returns the least sqrt(H) that satisfies a condition if every head of the target
    has norm s. A target spread evenly over the heads has s = ||theta||_{2,infinity} = spread /
    sqrt(H). Condition (74) then holds for all x = sqrt(H) with x^2 >= a x + b spread.
    """
    constant = threshold(0.0)
    slope = threshold(1.0) - constant
    xp = array_module(constant, slope, spread)
    return (constant + xp.sqrt(constant**2 + 4 * slope * spread)) / 2


def alpha(s: Setting, /) -> ArrayLike:
    """Return alpha = 3 sqrt(d) R^2 [3 sqrt(T) R^3 (3 D + size) + 2 sqrt(T) R], Theorem 3.

    If `s.distance` is g_0(1/K) and `s.size` is g(1/K), the function returns the alpha(K) of
    Corollaries 3 and 5.
    """
    inner = 3 * math.sqrt(s.T) * s.radius**3 * (3 * s.distance + s.size)
    return 3 * math.sqrt(s.d) * s.radius**2 * (inner + 2 * math.sqrt(s.T) * s.radius)


def rho(s: Setting, constants: Constants = PRINTED, /) -> ArrayLike:
    """Return rho, a bound on the smoothness along the run for step sizes eta <= 1 / rho.

    Theorem 3 prints rho = (2 sqrt(T d) R^3 / sqrt(H) + T R^2 / 4) alpha^2. Sharpening S10 uses eta
    <= 4 / beta_1#^2: an iterate then moves by eta ||grad L|| <= 4 / (sqrt(T) R). Therefore the
    bound beta_2# is needed only within the distance B = reach D + 4 / (sqrt(T) R) of the target.
    Within B, the root mean square of ||U_h||_F over the heads differs from the target's by at most
    B / sqrt(H), and the largest ||U_h||_F by at most B. Without `constants.mean_square`, the bound
    grows with D for any number of heads.
    """
    xp = array_module(s)
    root = xp.sqrt(s.heads)
    if constants.printed:
        factor = 2 * math.sqrt(s.T * s.d) * s.radius**3 / root + s.T * s.radius**2 / 4
        return factor * alpha(s) ** 2
    ball = _weight_and_reach(constants, s)[1] * s.distance + 4 / (s.radius * math.sqrt(s.T))
    if constants.mean_square:
        mean = (xp.sqrt(s.squares) + ball / root) ** 2
        return beta2_sharp(s.largest + ball, mean, s.radius, T=s.T, H=s.heads)
    size = s.largest + ball
    gradient = math.sqrt(s.T) * s.radius * (s.radius**2 * size + 1)
    return beta3_sharp(size, s.radius, T=s.T) / root + gradient**2 / 4


def largest_step(s: Setting, K: ArrayLike, constants: Constants = PRINTED, /) -> ArrayLike:
    """Return the largest step size, min(1 / rho, D^2 / (K L(theta)), D^2 / L(theta_0)).

    The printed Theorem 3 also requires a step size of at most 1.
    """
    squared, xp = s.distance**2, array_module(s, K)
    by_loss = xp.minimum(squared / (K * s.loss_target), squared / s.loss_start)
    step = xp.minimum(1 / rho(s, constants), by_loss)
    return xp.minimum(step, 1.0) if constants.printed else step


def short_steps(s: Setting, step: ArrayLike, K: ArrayLike, /) -> ArrayLike:
    """Return whether equation (73) holds: D^2 >= max(eta K L(theta), eta L(theta_0))."""
    return step * jnp.maximum(K * s.loss_target, s.loss_start) <= s.distance**2


def regret(s: Setting, step: ArrayLike, K: ArrayLike, penalties: ArrayLike = 0.0, /) -> ArrayLike:
    """Return L(theta) + D^2 / (2 eta K) + (1/2K) sum_k tau_k ||theta - theta_k||^2, Lemma 8.

    `penalties` is sum_k tau_k ||theta - theta_k||^2, where tau_k is Lemma 8's bound on
    -lambda_min(Hess L) between theta and theta_k.
    """
    return s.loss_target + s.distance**2 / (2 * step * K) + penalties / (2 * K)


def averaged_loss(
    s: Setting, step: ArrayLike, K: ArrayLike, /, *, weight: ArrayLike = PRINTED_WEIGHT
) -> ArrayLike:
    """Return Lemma 9's bound on the mean loss: 2 L(theta) + 3 D^2 / (4 eta K) + L(theta_0) / (2 K).

    For the printed q = 2/3, the sharpened formula has the factors 2, 3/4 and 1/2.
    """
    half = weight / 2
    return (regret(s, step, K) + half * (s.loss_target + s.loss_start / K)) / (1 - half)


def loss_bound(
    s: Setting, step: ArrayLike, K: ArrayLike, constants: Constants = PRINTED, /
) -> ArrayLike:
    """Return the loss bound 2 L(theta) + 5 D^2 / (4 eta K) of equation (79).

    For sharpened constants, the function returns the bound of Lemma 9, computed by `averaged_loss`.
    """
    if constants.printed:
        return 2 * s.loss_target + 5 * s.distance**2 / (4 * step * K)
    return averaged_loss(s, step, K, weight=_weight_and_reach(constants, s)[0])


def distance_bound(s: Setting, constants: Constants = PRINTED, /) -> ArrayLike:
    """Return (1 + reach) D, a bound on ||theta_k - theta_0||; the paper prints 4 D."""
    return (1 + _weight_and_reach(constants, s)[1]) * s.distance


def ball_constants(s: Setting, constants: Constants = PRINTED, /) -> tuple[Any, Any]:
    """Return the constants beta~_1 and beta~_3 / sqrt(H) of equations (87) and (90).

    The constants bound the derivatives at all points whose distance from theta is at most D times
    the factor reach.
    """
    xp = array_module(s)
    far, root = _weight_and_reach(constants, s)[1] * s.distance, xp.sqrt(s.heads)
    if constants.printed:
        size = far + s.size
        gradient, weak = beta1(size, s.radius, T=s.T), beta3(size, s.radius, T=s.T, d=s.d)
    else:
        mean = (xp.sqrt(s.squares) + far / root) ** 2
        gradient = beta1_sharp(mean, s.radius, T=s.T)
        weak = beta3_sharp(far + s.largest, s.radius, T=s.T)
    return xp.asarray(gradient), xp.asarray(weak / root)


@np.errstate(over="ignore")
def stability(
    s: Setting, step: ArrayLike, K: ArrayLike, n: int, constants: Constants = PRINTED, /
) -> ArrayLike:
    """Return the stability bound (2 eta beta~_1 / n) (2 K L(theta) + 9 D^2 / (4 eta)), Lemma 11.

    The sharpened bound is exp(sum_k alpha_k) (eta beta_1# / n) (K averaged_loss + L(theta_0)), by
    sharpenings S2, S6 and S9. In this bound, sum_{k=1}^{K-1} alpha_k <= (8/3) (eta beta_3# /
    sqrt(H)) K times `averaged_loss`. At the least certified H, the sum of the alpha_k is at most
    1/4; the paper states the bound log 2.
    """
    gradient, weak = ball_constants(s, constants)
    if constants.printed:
        return 2 * step * gradient / n * (2 * K * s.loss_target + 9 * s.distance**2 / (4 * step))
    average = averaged_loss(s, step, K)
    grown = array_module(s, step, K).exp(8 / 3 * step * weak * K * average)
    return grown * step * gradient / n * (K * average + s.loss_start)


def gap_from_stability(gradient: ArrayLike, stable: ArrayLike, /) -> ArrayLike:
    """Return the gap bound 2 G E[(1/n) sum_i ||theta_K - theta_K^{-i}||] of Lemma 3.

    The argument `gradient` is G, a Lipschitz constant of every l_i. The argument `stable` is the
    expectation E[(1/n) sum_i ||theta_K - theta_K^{-i}||].
    """
    return 2 * gradient * stable


def generalization_gap(
    s: Setting, step: ArrayLike, K: ArrayLike, n: int, constants: Constants = PRINTED, /
) -> ArrayLike:
    """Return the gap bound (4 / n) (2 K L(theta) + 9 D^2 / (4 eta)) of equation (93).

    The sharpened bound on the gap is 2 beta_1# times the bound that `stability` returns.
    """
    if constants.printed:
        return 4 / n * (2 * K * s.loss_target + 9 * s.distance**2 / (4 * step))
    gradient, _ = ball_constants(s, constants)
    return gap_from_stability(gradient, stability(s, step, K, n, constants))


def corollary4_gap(distance: ArrayLike, step: ArrayLike, n: ArrayLike, /) -> ArrayLike:
    """Return the gap bound 17 g_0(1/K)^2 / (eta n) of equation (96).

    If `distance` is sqrt(2) G, the function returns the bound of Corollary 5.
    """
    return 17 * distance**2 / (step * n)
