"""How many heads and samples the main theorems need before they say anything, on one population.

It is that of `realizable`, from zero: T = 3, d = 2, R = 1, L(theta_0) = log 2 and the class
direction for the target, spread over the heads, with L(theta) <= 1/K. A bound on the generalization
gap says something below log 2.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp

from jaxbounds.multihead import descent
from jaxbounds.multihead.certificate import (
    GoodInitialisation,
    corollary5,
    realized_distance,
)
from jaxbounds.multihead.descent_certificate import (
    GapCertificate,
    descent_certificate,
    gap_certificate,
)
from jaxbounds.multihead.realizable import REALIZABLE_MARGIN, realizing_distance


def corollary5_gap(
    good: GoodInitialisation,
    radius: float,
    K: int,
    n: int,
    /,
    *,
    T: int,
    d: int,
    corrected: bool = True,
) -> GapCertificate:
    """17 g_0(1/K)^2 / (eta n), eq. (101), at Corollary 5's own least even H and largest eta.

    With g_0 = sqrt(2) G, or G as printed (erratum E5). All constants are explicit.
    """
    with jax.enable_x64(True):
        found = corollary5(good, radius, K, T=T, d=d, corrected=corrected)
        distance = realized_distance(good, 1 / K, corrected=corrected)
        gap = descent.corollary4_gap(distance, found.step_size, n)
        return GapCertificate(
            2.0 * math.ceil(found.heads / 2), found.step_size, float(jnp.asarray(gap))
        )


def smallest_counts(K: int = 3, /) -> dict[str, tuple[float, float]]:
    """Heads certified and samples from which the gap's bound is below log 2: printed, sharpened.

    Both gap bounds are proportional to 1 / n.
    """
    start = math.log(2.0)
    with jax.enable_x64(True):
        distance = float(jnp.asarray(realizing_distance(1 / K)))
        one = GoodInitialisation(*map(jnp.asarray, (1.0, 1.0, math.sqrt(2) * REALIZABLE_MARGIN)))
        away = float(jnp.asarray(realized_distance(one, 1 / K)))
    setting: dict[str, Any] = {"T": 3, "d": 2, "radius": 1.0, "K": K}
    setting |= {"loss_target": 1 / K, "loss_start": start}
    least = lambda found: math.floor(found.gap_bound / start) + 1.0
    heads = descent_certificate(**setting, distance=distance, spread=distance)
    gaps = [
        gap_certificate(1, constants, **setting, distance=distance, spread=distance)
        for constants in (descent.PRINTED, descent.MEAN_SQUARE)
    ]
    good = (
        corollary5_gap(one, 1.0, K, 1, T=3, d=2, corrected=False),
        gap_certificate(1, **setting, distance=away, spread=away, size=1.0),
    )
    return {
        "Theorem 3, heads": (heads["printed"].heads, heads["sharpened S8"].heads),
        "Theorem 4, heads": (gaps[0].heads, gaps[1].heads),
        "Theorem 4, samples": (least(gaps[0]), least(gaps[1])),
        "Corollary 5, heads": (good[0].heads, good[1].heads),
        "Corollary 5, samples": (least(good[0]), least(good[1])),
    }
