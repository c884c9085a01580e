"""How many heads, which step size, what bound: the constants of Section 4 and Appendices B, C.

All constants are explicit. D = ||theta - theta_0||, `size` stands for ||theta||_{2,infinity} (for
max_h ||U_h||_F in the sharpened forms) and R bounds the token norms. Both constant sets rest on one
computation. Let kappa bound beta_3 ||theta - theta_k||^2 / sqrt(H), let q = kappa times the
quasi-convexity factor. Then, if gradient descent descends and q < 2,

    ||theta_k - theta||^2 <= D^2 + (2 + q) eta k L(theta) + q eta L(theta_0) <= (3 + 2 q) D^2,
    (1 - q/2) mean_k L(theta_k) <= (1 + q/2) L(theta) + D^2 / (2 eta K) + q L(theta_0) / (2 K).

The paper has kappa = 1/2 and the factor 4/3, so q = 2/3, and rounds 3 + 2 q = 13/3 up to 9.
"""

import math

import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbounds.multihead.bounds import (
    beta1,
    beta1_sharp,
    beta3,
    beta3_sharp,
    convexity_horizon,
)

PRINTED_WEIGHT = 2 / 3
"""q of the paper: kappa = 1/2 times the factor 4/3 of Proposition 4."""

TRAINING, STABILITY = 36.0, 256.0
"""The factors of (74), (81) and of (84), (95)."""


def sharp_weight(curvature: ArrayLike, /) -> ArrayLike:
    """The q = kappa sec(sqrt(kappa) / 2) of sharpening S8; the regret bound needs q < 2."""
    return curvature * convexity_horizon(jnp.asarray(curvature))


def reach(weight: ArrayLike, /) -> ArrayLike:
    """||theta_k - theta|| <= reach D with reach = sqrt(3 + 2 q): sharpening S9; printed: 3."""
    return jnp.sqrt(3 + 2 * jnp.asarray(weight))


def root_heads(
    distance: ArrayLike,
    size: ArrayLike,
    radius: ArrayLike,
    *,
    T: int,
    d: int,
    factor: float = TRAINING,
) -> ArrayLike:
    """The least sqrt(H) of (74), or of (84) with `factor=STABILITY`."""
    return factor / 2 * beta3(3 * distance + size, radius, T=T, d=d) * distance**2


def root_heads_sharp(
    distance: ArrayLike,
    size: ArrayLike,
    radius: ArrayLike,
    *,
    T: int,
    curvature: ArrayLike = 0.5,
    weight: ArrayLike | None = None,
    stability: bool = False,
) -> ArrayLike:
    """The least sqrt(H) with beta_3# ||theta - theta_k||^2 <= kappa sqrt(H) for all k (S6, S9).

    Args:
        distance: D.
        size: max_h ||U_h||_F of the target.
        radius: R.
        T: tokens.
        curvature: kappa.
        weight: q; the one of S8 unless given.
        stability: two runs are compared, which are twice as far apart.
    """
    weight = sharp_weight(curvature) if weight is None else weight
    far = reach(weight) * distance
    apart = 4.0 if stability else 1.0
    return apart * far**2 / curvature * beta3_sharp(far + size, radius, T=T)


def root_heads_spread(threshold, spread: ArrayLike, /) -> ArrayLike:
    """The least root x with x >= threshold(spread / x), for a threshold affine in its argument.

    A target spread evenly over the heads has ||theta||_{2,infinity} = spread / sqrt(H), so that
    (74) holds from x^2 >= a x + b spread on.
    """
    constant = threshold(0.0)
    slope = threshold(1.0) - constant
    return (constant + jnp.sqrt(constant**2 + 4 * slope * spread)) / 2


def alpha(distance: ArrayLike, size: ArrayLike, radius: ArrayLike, *, T: int, d: int) -> ArrayLike:
    """3 sqrt(d) R^2 [3 sqrt(T) R^3 (3 D + size) + 2 sqrt(T) R], Theorem 3."""
    inner = 3 * math.sqrt(T) * radius**3 * (3 * distance + size) + 2 * math.sqrt(T) * radius
    return 3 * math.sqrt(d) * radius**2 * inner


def rho(
    distance: ArrayLike, size: ArrayLike, radius: ArrayLike, heads: ArrayLike, *, T: int, d: int
) -> ArrayLike:
    """(2 sqrt(T d) R^3 / sqrt(H) + T R^2 / 4) alpha^2, Theorem 3."""
    factor = 2 * math.sqrt(T * d) * radius**3 / jnp.sqrt(heads) + T * radius**2 / 4
    return factor * alpha(distance, size, radius, T=T, d=d) ** 2


def rho_sharp(
    distance: ArrayLike,
    size: ArrayLike,
    squares: ArrayLike,
    radius: ArrayLike,
    heads: ArrayLike,
    *,
    T: int,
    far: ArrayLike = 3.0,
) -> ArrayLike:
    """A smoothness bound that holds along the run if eta <= 1 / rho# (sharpening S10).

    eta <= 4 / beta_1#^2 moves an iterate by eta ||grad L|| <= 4 / beta_1# <= 4 / (sqrt(T) R), so
    beta_2# is needed only within B = far D + 4 / (sqrt(T) R) of the target. A single head moves by
    at most B, the root mean square over heads by at most B / sqrt(H).

    Args:
        distance: D.
        size: max_h ||U_h||_F of the target.
        squares: mean_h ||U_h||_F^2 of the target; size^2 is always allowed.
        radius: R.
        heads: H.
        T: tokens.
        far: iterates stay within far D of the target.
    """
    ball, root = far * distance + 4 / (radius * math.sqrt(T)), jnp.sqrt(heads)
    mean = (jnp.sqrt(squares) + ball / root) ** 2
    return beta3_sharp(size + ball, radius, T=T) / root + beta1_sharp(mean, radius, T=T) ** 2 / 4


def rho_sharp_largest(
    distance: ArrayLike,
    size: ArrayLike,
    radius: ArrayLike,
    heads: ArrayLike,
    *,
    T: int,
    far: ArrayLike = 3.0,
) -> ArrayLike:
    """S10 with the largest head in place of the root mean square: beta_1# = sqrt(T) R (R^2 B + 1).

    This one loses nothing by ||theta||_{2,infinity} but grows with D however many heads there are.
    """
    ball = size + far * distance + 4 / (radius * math.sqrt(T))
    gradient = math.sqrt(T) * radius * (radius**2 * ball + 1)
    return beta3_sharp(ball, radius, T=T) / jnp.sqrt(heads) + gradient**2 / 4


def largest_step(
    smoothness: ArrayLike,
    distance: ArrayLike,
    loss_target: ArrayLike,
    loss_start: ArrayLike,
    K: ArrayLike,
    *,
    cap: float = math.inf,
) -> ArrayLike:
    """1 / rho ^ D^2 / (K L(theta)) ^ D^2 / L(theta_0) ^ cap; Theorem 3 has cap 1."""
    by_loss = jnp.minimum(distance**2 / (K * loss_target), distance**2 / loss_start)
    return jnp.minimum(jnp.minimum(1 / smoothness, by_loss), cap)


def averaged_loss(
    loss_target: ArrayLike,
    loss_start: ArrayLike,
    distance: ArrayLike,
    step: ArrayLike,
    K: ArrayLike,
    *,
    weight: ArrayLike = PRINTED_WEIGHT,
) -> ArrayLike:
    """Lemma 9: 2 L(theta) + 3 D^2 / (4 eta K) + L(theta_0) / (2 K) at the printed q = 2/3."""
    half = weight / 2
    total = (1 + half) * loss_target + distance**2 / (2 * step * K) + half * loss_start / K
    return total / (1 - half)


def theorem3_loss(
    loss_target: ArrayLike, distance: ArrayLike, step: ArrayLike, K: ArrayLike
) -> ArrayLike:
    """2 L(theta) + 5 D^2 / (4 eta K), eq. (79)."""
    return 2 * loss_target + 5 * distance**2 / (4 * step * K)


def stability(
    loss_target: ArrayLike,
    distance: ArrayLike,
    size: ArrayLike,
    radius: ArrayLike,
    step: ArrayLike,
    K: ArrayLike,
    n: int,
    *,
    T: int,
) -> ArrayLike:
    """Lemma 11: (2 eta beta~_1 / n) (2 K L(theta) + 9 D^2 / (4 eta)); beta~_1 is that of (90)."""
    gradient = beta1(3 * distance + size, radius, T=T)
    return 2 * step * gradient / n * (2 * K * loss_target + 9 * distance**2 / (4 * step))


def gradient_sharp(
    distance: ArrayLike,
    squares: ArrayLike,
    radius: ArrayLike,
    heads: ArrayLike,
    *,
    T: int,
    far: ArrayLike,
) -> ArrayLike:
    """beta_1# on the ball of radius far D around the target, a Lipschitz constant of l_i there."""
    mean = (jnp.sqrt(squares) + far * distance / jnp.sqrt(heads)) ** 2
    return beta1_sharp(mean, radius, T=T)


def stability_sharp(
    loss_target: ArrayLike,
    loss_start: ArrayLike,
    distance: ArrayLike,
    size: ArrayLike,
    squares: ArrayLike,
    radius: ArrayLike,
    heads: ArrayLike,
    step: ArrayLike,
    K: ArrayLike,
    n: int,
    *,
    T: int,
) -> ArrayLike:
    """Lemma 11 with S2, S6, S9: exp(sum_k alpha_k) eta beta_1# / n (K averaged_loss + L(theta_0)).

    sum_{k=1}^{K-1} alpha_k <= (8/3) eta beta_3# / sqrt(H) K times `averaged_loss`, at most 1/4 at
    the least certified H, in place of log 2.
    """
    far = reach(PRINTED_WEIGHT)
    average = averaged_loss(loss_target, loss_start, distance, step, K)
    weak = beta3_sharp(far * distance + size, radius, T=T) / jnp.sqrt(heads)
    gradient = gradient_sharp(distance, squares, radius, heads, T=T, far=far)
    grown = jnp.exp(8 / 3 * step * weak * K * average)
    return grown * step * gradient / n * (K * average + loss_start)


def generalization_gap(
    loss_target: ArrayLike, distance: ArrayLike, step: ArrayLike, K: ArrayLike, n: int
) -> ArrayLike:
    """(4 / n) (2 K L(theta) + 9 D^2 / (4 eta)), eq. (93)."""
    return 4 / n * (2 * K * loss_target + 9 * distance**2 / (4 * step))
