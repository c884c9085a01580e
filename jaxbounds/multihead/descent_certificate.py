"""Theorem 3 as a certificate: how many heads, which step size, what loss bound it guarantees."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbounds.multihead.descent import (
    PRINTED_WEIGHT,
    averaged_loss,
    largest_step,
    reach,
    rho,
    rho_sharp,
    rho_sharp_largest,
    root_heads,
    root_heads_sharp,
    root_heads_spread,
    sharp_weight,
    theorem3_loss,
)

CONSTANTS = ("printed", "sharpened", "sharpened S8")
"""The constant sets of `descent_certificate`."""


class Certificate(NamedTuple):
    """What gradient descent is guaranteed with one constant set.

    Attributes:
        heads: the least H that is certified, as a float (it can exceed every integer type).
        size: ||theta||_{2,infinity} at that H.
        smoothness: rho, an upper bound on ||Hess L|| along the run.
        step_size: the largest certified eta.
        loss_bound: on L(theta_K) and on (1/K) sum_{k=1}^K L(theta_k).
        distance_bound: on ||theta_k - theta_0|| for k <= K.
    """

    heads: float
    size: float
    smoothness: float
    step_size: float
    loss_bound: float
    distance_bound: float


def descent_certificate(
    *,
    T: int,
    d: int,
    radius: float,
    distance: float,
    K: int,
    loss_target: float,
    loss_start: float,
    size: float = 0.0,
    spread: float = 0.0,
    heads: float | None = None,
) -> dict[str, Certificate]:
    """Theorem 3 as a certificate, for each constant set of `CONSTANTS`. All constants are explicit.

    "printed" is Theorem 3; "sharpened" is S6, S7, S9 and S10 with the factor 4/3; "sharpened S8"
    takes the factor sec(sqrt(kappa) / 2) = 1.0659 and the root mean square of S2. The target has
    ||theta||_{2,infinity} <= size + spread / sqrt(H): a target D away from zero, spread evenly over
    the heads, has size 0 and spread D; one of fixed norm in each head has spread 0.

    Args:
        T: tokens.
        d: dimension.
        radius: R >= max ||x_t||, at least 1 (Assumption 1).
        distance: D = ||theta - theta_0||, positive.
        K: steps.
        loss_target: L(theta), positive.
        loss_start: L(theta_0), positive.
        size: the part of ||theta||_{2,infinity} that does not shrink with H.
        spread: the part that shrinks as 1 / sqrt(H).
        heads: H, if the model is given; it is replaced by the least certified one if too small.

    Raises:
        ValueError: if R < 1, or a quantity that must be positive is not.
    """
    positive = {"T": T, "d": d, "distance": distance, "K": K}
    positive |= {"loss_target": loss_target, "loss_start": loss_start}
    wrong = [f"{name} = {value:g}" for name, value in positive.items() if not value > 0]
    if wrong:
        raise ValueError(f"Theorem 3 needs positive quantities, got {', '.join(wrong)}")
    if not radius >= 1:
        raise ValueError(f"Assumption 1 needs R >= 1, got {radius:g}: use R = 1, it is a bound")
    with jax.enable_x64(True):
        return {
            name: _certificate(
                name, T, d, radius, distance, K, loss_target, loss_start, size, spread, heads
            )
            for name in CONSTANTS
        }


def _certificate(name, T, d, R, D, K, loss_target, loss_start, size, spread, heads) -> Certificate:
    printed = name == "printed"
    weight = sharp_weight(0.5) if name == "sharpened S8" else jnp.asarray(PRINTED_WEIGHT)
    far = 3.0 if printed else reach(weight)

    def threshold(extra):
        if printed:
            return root_heads(D, size + extra, R, T=T, d=d)
        return root_heads_sharp(D, size + extra, R, T=T, weight=weight)

    least = jnp.ceil(root_heads_spread(threshold, jnp.asarray(spread)) ** 2)
    heads = least if heads is None else jnp.maximum(least, heads)
    total = size + spread / jnp.sqrt(heads)
    if printed:
        smoothness = rho(D, total, R, heads, T=T, d=d)
    elif name == "sharpened":
        smoothness = rho_sharp_largest(D, total, R, heads, T=T, far=far)
    else:
        smoothness = rho_sharp(D, total, total**2, R, heads, T=T, far=far)
    cap = 1.0 if printed else math.inf
    step = largest_step(smoothness, D, loss_target, loss_start, K, cap=cap)
    if printed:
        bound = theorem3_loss(loss_target, D, step, K)
    else:
        bound = averaged_loss(loss_target, loss_start, D, step, K, weight=weight)
    values = (heads, total, smoothness, step, bound, (1 + far) * D)
    return Certificate(*(float(value) for value in values))
