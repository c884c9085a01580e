"""Decide whether a ratio lhs/rhs grows without bound along a scale, from certified values.

The scales are 2^m, and ball arithmetic (interval arithmetic) measures the ratio lhs/rhs up to m =
2^120. If the distance of lhs/rhs to a limit is 1/log(scale), or the root of 1/log(scale), lhs/rhs
hardly changes at the largest scales. A ratio lhs/rhs that still changes at these scales counts
neither as convergent nor as unbounded.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

from flint import arb

from jaxbounds.programs.balls.values import NotSupported, Undecided

STEPS = (0, 1, 3, 6, 12, 24, 50, 80, 100)
"""The binary logarithms of the scales at which ball arithmetic measures the ratio lhs/rhs of every
family (path of scaled instances).
"""
FARTHER = tuple(2**k for k in (8, 10, 12, 14, 17, 20, 30, 40, 50, 60, 80, 100, 120))
"""The binary logarithms of further scales, larger than the scales of `STEPS`. Ball arithmetic
measures lhs/rhs at these scales too, as long as the intervals stay narrow."""
STILL = arb("1e-12")
"""A ratio lhs/rhs counts as settled (converged) if the ratio changes by less than this share
between the last two scales. If this share is larger, more ratios count as settled.
"""
ENOUGH = arb("1e-30")
"""The search stops measuring larger scales if the relative change of lhs/rhs between two scales is
below this value. A larger value makes the search measure fewer scales."""
NARROW = 60
"""The walk over growing scales stops when the ball (interval that contains lhs/rhs) has fewer
accurate bits than this number.

A larger number of bits stops the walk over the scales earlier.
"""
ROUNDING = 1e-12
"""If the ratio lhs/rhs grows as scale^a with a up to this value, the growth counts as an effect of
a rounded constant. A larger limit on a makes fewer ratios count as unbounded."""
FAINT = 1e-9
"""A relative rise of lhs/rhs up to this value may mean only that the coordinates are not exactly
optimal.

The search tests whether a rise up to this value follows a power of the scale. If this value is
larger, the search tests larger rises.
"""
BEFORE = (-16, -8, 0, 8)
"""The binary logarithms of the scales near 1 at which `_lawful` measures the ratio lhs/rhs."""
STEADY, STEADY_FAR = 0.98, 0.9
"""The ratio lhs/rhs counts as unbounded if its last local exponent is at least this fraction of
each earlier local exponent. The fraction is STEADY up to scale 2^100, and STEADY_FAR for larger
scales. If the fraction is larger, fewer ratios count as unbounded.
"""


class Growth(NamedTuple):
    """The growth of the ratio lhs/rhs along instances of growing scale.

    Attributes:
        ratio: the ratio lhs/rhs at the largest accepted scale: a lower estimate of the supremum.
        certain: the ratio lhs/rhs at the largest accepted scale, with balls (intervals) for the
            program's constants.
        left: the relative change of the ratio lhs/rhs between the last two scales.
        settled: whether `left` is below 1e-12.
        endless: whether the ratio lhs/rhs grows without bound along the scale. The ratio counts as
            unbounded if its local exponents d log(ratio)/d log(scale), or d log(ratio)/d
            log(log(scale)), do not decay.
        rise: the relative rise of the ratio lhs/rhs from the first scale to the last scale.
        lawful: whether, at scales near 1, the distance of the ratio lhs/rhs from the last ratio is
            a power of the scale. A rise by a power of the scale is not an effect of rounding, even
            if the rise is small.
    """

    ratio: arb
    certain: arb
    left: float
    settled: bool
    endless: bool
    rise: float
    lawful: bool = False


def _steady(logs: list[tuple[int, arb]], keeps: float) -> bool:
    slopes = [float((b[1] - a[1]).mid()) / (b[0] - a[0]) for a, b in itertools.pairwise(logs)]
    return slopes[-1] > ROUNDING and all(slopes[-1] >= keeps * s for s in slopes[-3:-1])


def _steady_in_logs(logs: list[tuple[int, arb]]) -> bool:
    """Tell whether lhs/rhs grows like a power of log(scale) whose exponent does not fall."""
    far = [(m, v) for m, v in logs if m >= FARTHER[4]]
    if len(far) < 4:
        return False
    slopes = [
        float((b[1] - a[1]).mid()) / (b[0].bit_length() - a[0].bit_length())
        for a, b in itertools.pairwise(far)
    ]
    return slopes[-1] > 1e-6 and all(slopes[-1] >= STEADY_FAR * s for s in slopes)


def growth(value: Callable[[int, str], arb], /) -> Growth | None:
    """Describe lhs/rhs along a scale; return None unless the ratio is largest at the last scale.

    The call `value(m, reading)` returns lhs/rhs at the scale 2^m. It raises `Undecided` or
    `NotSupported` if ball arithmetic gives no ratio.
    """
    start = [(0, value(0, "exact"))]
    reached = list(start)
    for m in STEPS[1:]:
        try:
            reached.append((m, value(m, "exact")))
        except Undecided:
            break  # the scale violates a hypothesis, or is too large for balls
    values = [v for _, v in reached]
    end = values[-1]
    # If the ratio was larger at an earlier scale, its supremum is not at the end.
    if len(reached) < 6 or not end > values[0] or any(v > end for v in values):
        return None
    logs = [(m, (v / values[0]).log()) for m, v in reached]
    if reached[-1][0] < STEPS[-1]:
        explodes = _steady(logs, 1.0) and end > values[0] * arb(2) ** 100
        return Growth(end, end, float("inf"), False, True, float("inf")) if explodes else None
    if float(logs[-1][1].mid()) < ROUNDING * STEPS[-1] and _steady(
        [(m, v * arb(2) ** 40) for m, v in logs], 0.5
    ):
        return None  # the ratio is constant, except for the rounding of a constant in the program
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
    before, here, certain = ends
    first, left, origin = certain, abs(1 - before / here), here / logs[-1][1].exp()
    for m in FARTHER:
        if left < ENOUGH:
            break
        try:
            exact, there = value(m, "exact"), value(m, "ulp")
        except (Undecided, NotSupported):
            break
        # After the ratio has settled, a wide ball must not count as a new change.
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
    """Tell whether, at scales near 1, the difference `end` - lhs/rhs is a power of the scale."""
    try:
        lacks = [end - value(m, "exact") for m in BEFORE]
        if not all(lack > 0 for lack in lacks):
            return False
        powers = [float((a / b).log().mid()) for a, b in itertools.pairwise(lacks)]
    except (Undecided, NotSupported):
        return False
    return powers[0] > 0.01 and max(powers) < 1.05 * min(powers)
