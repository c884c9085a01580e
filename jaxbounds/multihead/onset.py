"""The least numbers of heads and samples at which the main theorems give a useful bound.

At zero initialisation, the loss is log 2, and one direction in parameter space, spread over the
heads, separates all data. The target theta has L(theta) <= 1/K. A bound on the generalization gap
is useful if it is below log 2. The default population is `realizable.REALIZABLE`, with T = 3, d = 2
and R = 1.
"""

import math
from collections.abc import Sequence
from typing import Any

from jaxbounds.ground.jax_internals import enable_x64
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
from jaxbounds.numerics.arrays import number


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
    """Return 17 g_0(1/K)^2 / (eta n) of (101), at Corollary 5's least even H and largest eta.

    In this bound g_0 = sqrt(2) G, or g_0 = G as printed if `corrected` is False (erratum E5).
    """
    with enable_x64(True):
        found = corollary5(good, radius, K, T=T, d=d, corrected=corrected)
        distance = realized_distance(good, 1 / K, corrected=corrected)
        gap = descent.corollary4_gap(distance, found.step_size, n)
        return GapCertificate(2.0 * math.ceil(found.heads / 2), found.step_size, number(gap))


def smallest_counts(
    K: int = 3,
    constants: Sequence[float] = (1.0, 1.0, math.sqrt(2) * REALIZABLE_MARGIN),
    /,
    *,
    T: int = 3,
    d: int = 2,
    radius: float = 1.0,
) -> dict[str, tuple[float, float]]:
    """Return, for each theorem, the certified number of heads and the number of samples needed.

    The result contains each theorem as printed and as sharpened. The number of samples is the least
    n at which the bound on the generalization gap, proportional to 1 / n, is below log 2. Theorems
    3 and 4 are about runs from zero, with margin gamma / sqrt(2). Corollary 5 is about runs that
    start after a first phase.

    Args:
        K: the number of steps.
        constants: the constants B_2, B_Phi and gamma of Definition 1, which must hold after the
            first phase on every training set.
        T: the number of tokens.
        d: the dimension of a token.
        radius: R, the largest norm of a token.
    """
    start = math.log(2.0)
    good = GoodInitialisation(*constants)
    distance = number(realizing_distance(1 / K, margin=good.margin / math.sqrt(2)))
    away = number(realized_distance(good, 1 / K))
    setting: dict[str, Any] = {"T": T, "d": d, "radius": radius, "K": K}
    setting |= {"loss_target": 1 / K, "loss_start": start}
    least = lambda found: math.floor(found.gap_bound / start) + 1.0
    heads = descent_certificate(**setting, distance=distance, spread=distance)
    gaps = [
        gap_certificate(1, form, **setting, distance=distance, spread=distance)
        for form in (descent.PRINTED, descent.MEAN_SQUARE)
    ]
    after = (
        corollary5_gap(good, radius, K, 1, T=T, d=d, corrected=False),
        gap_certificate(1, **setting, distance=away, spread=away, size=constants[0]),
    )
    return {
        "Theorem 3, heads": (heads["printed"].heads, heads["sharpened S8"].heads),
        "Theorem 4, heads": (gaps[0].heads, gaps[1].heads),
        "Theorem 4, samples": (least(gaps[0]), least(gaps[1])),
        "Corollary 5, heads": (after[0].heads, after[1].heads),
        "Corollary 5, samples": (least(after[0]), least(after[1])),
    }
