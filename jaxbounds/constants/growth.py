"""The growth of a ratio along a scale that grows without end, from certified values far out.

The scales are 2^m, and ball arithmetic follows m up to 2^120. A ratio that converges as slowly as
1/log(scale), or its root, settles on this way. A ratio that still moves at the end counts neither
as a limit nor as unbounded.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

from flint import arb

from jaxbounds.programs.balls.values import NotSupported, Undecided

STEPS = (0, 1, 3, 6, 12, 24, 50, 80, 100)
"""Binary logarithms of the scales to which every family is followed."""
FARTHER = tuple(2**k for k in (8, 10, 12, 14, 17, 20, 30, 40, 50, 60, 80, 100, 120))
"""Binary logarithms of the scales to which a family is followed while its balls stay narrow."""
STILL = arb("1e-12")
"""Relative change below which a ratio counts as settled."""
ENOUGH = arb("1e-30")
"""Relative change below which no larger scale is tried."""
NARROW = 60
"""Accuracy in bits that a ball far out must have to count; a larger number stops earlier."""
ROUNDING = 1e-12
"""Exponent of the scale up to which growth counts as the rounding of a constant in the program. A
larger value calls fewer ratios unbounded.
"""
FAINT = 1e-9
"""Relative rise up to which coordinates that missed their optimum may explain the rise. A larger
value tests more rises for a power law.
"""
BEFORE = (-16, -8, 0, 8)
"""Binary logarithms of the scales around the start at which `_lawful` measures."""
STEADY, STEADY_FAR = 0.98, 0.9
"""Shares of an earlier local exponent that the last one must keep to count as not decaying: up to
2^100, and farther out. A larger share calls fewer ratios unbounded.
"""


class Growth(NamedTuple):
    """The rise of a ratio along a scale.

    Attributes:
        ratio: the ratio at the farthest scale that counts: a lower estimate of the supremum.
        certain: the ratio with the program's constants as balls.
        left: the relative change between the last two scales.
        settled: whether that change is below 1e-12.
        endless: whether the ratio has no bound: the local exponents d log(ratio)/d log(scale), or
            the exponents against the scale's logarithm, do not decay.
        rise: the relative rise on the way.
        lawful: whether the distance to the end is one power of the scale around the start. Even the
            smallest rise is then no rounding.
    """

    ratio: arb
    certain: arb
    left: float
    settled: bool
    endless: bool
    rise: float
    lawful: bool = False


def _steady(logs: list[tuple[int, arb]], keeps: float) -> bool:
    """Tell whether the last local exponent is positive and keeps its share of the two before."""
    slopes = [float((b[1] - a[1]).mid()) / (b[0] - a[0]) for a, b in itertools.pairwise(logs)]
    return slopes[-1] > ROUNDING and all(slopes[-1] >= keeps * s for s in slopes[-3:-1])


def _steady_in_logs(logs: list[tuple[int, arb]]) -> bool:
    """Tell whether the exponents against log m do not decay: growth as a power of log(scale)."""
    far = [(m, v) for m, v in logs if m >= FARTHER[4]]
    if len(far) < 4:
        return False
    slopes = [
        float((b[1] - a[1]).mid()) / (b[0].bit_length() - a[0].bit_length())
        for a, b in itertools.pairwise(far)
    ]
    return slopes[-1] > 1e-6 and all(slopes[-1] >= STEADY_FAR * s for s in slopes)


def growth(value: Callable[[int, str], arb], /) -> Growth | None:
    """Describe a ratio along a scale; return None if the ratio is not largest at the end.

    Args:
        value: a function of m and of the reading of constants ("exact", "ulp") that returns the
            ratio at the scale 2^m. It raises `Undecided` or `NotSupported` if the ratio has no
            value.
    """
    start = [(0, value(0, "exact"))]
    reached = list(start)
    for m in STEPS[1:]:
        try:
            reached.append((m, value(m, "exact")))
        except Undecided:
            break  # the scale misses a hypothesis, or exceeds the exponents of balls
    values = [v for _, v in reached]
    end = values[-1]
    # A ratio that was larger before the end has no supremum at the end.
    if len(reached) < 6 or not end > values[0] or any(v > end for v in values):
        return None
    logs = [(m, (v / values[0]).log()) for m, v in reached]
    if reached[-1][0] < STEPS[-1]:
        explodes = _steady(logs, 1.0) and end > values[0] * arb(2) ** 100
        return Growth(end, end, float("inf"), False, True, float("inf")) if explodes else None
    if float(logs[-1][1].mid()) < ROUNDING * STEPS[-1] and _steady(
        [(m, v * arb(2) ** 40) for m, v in logs], 0.5
    ):
        return None  # the ratio is homogeneous, except for the rounding of a constant
    try:
        before, certain = value(80, "ulp"), value(100, "ulp")
    except Undecided:
        return None
    if certain < values[0] * (1 - STILL) or certain < before * (1 - STILL):
        return None
    return _farther(value, logs, (reached[-2][1], end, certain))


def _farther(
    value: Callable[[int, str], arb], logs: list[tuple[int, arb]], ends: tuple[arb, arb, arb]
) -> Growth | None:
    """Continue with scales above 2^100 while the enclosures are still informative."""
    before, here, certain = ends
    first, left, origin = certain, abs(1 - before / here), here / logs[-1][1].exp()
    for m in FARTHER:
        if left < ENOUGH:
            break
        try:
            exact, there = value(m, "exact"), value(m, "ulp")
        except (Undecided, NotSupported):
            break
        # Once the ratio has settled, a wide ball must not show a change again.
        narrow = there.is_finite() and there.rel_accuracy_bits() >= NARROW
        if not exact.is_finite() or (left < STILL and not narrow):
            break
        if exact < here * (1 - STILL):
            return None  # the ratio falls again
        left = abs(1 - here / exact)
        here, certain = exact, there if there.is_finite() else certain
        logs = [*logs, (m, (exact / origin).log())]
    settled = bool(left < STILL)
    keeps = STEADY if logs[-1][0] == STEPS[-1] else STEADY_FAR
    endless = not settled and (_steady(logs, keeps) or _steady_in_logs(logs))
    if endless:
        return Growth(ends[1], first, float(left.upper()), False, True, float("inf"))
    rise = float((here / origin - 1).upper())
    lawful = settled and rise < FAINT and _lawful(value, here)
    return Growth(here, certain, float(left.upper()), settled, False, rise, lawful)


def _lawful(value: Callable[[int, str], arb], end: arb) -> bool:
    """Tell whether end - ratio is a power of the scale around the start."""
    try:
        lacks = [end - value(m, "exact") for m in BEFORE]
        if not all(lack > 0 for lack in lacks):
            return False
        powers = [float((a / b).log().mid()) for a, b in itertools.pairwise(lacks)]
    except (Undecided, NotSupported):
        return False
    return powers[0] > 0.01 and max(powers) < 1.05 * min(powers)
