"""What a ratio does along a scale without end, from certified values far out.

Scales are 2^m. Ball arithmetic takes m itself as far as 2^120, so that what converges as slowly as
1/log(scale), or its root, has settled there; what still moves then is called neither a limit nor
unbounded.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

from flint import arb

from jaxbounds.programs.balls.values import NotSupported, Undecided

STEPS = (0, 1, 3, 6, 12, 24, 50, 80, 100)
"""Binary logarithms of scales that every family is followed to."""
FARTHER = tuple(2**k for k in (8, 10, 12, 14, 17, 20, 30, 40, 50, 60, 80, 100, 120))
"""And of those that it is followed to as long as balls stay narrow."""
STILL = arb("1e-12")
"""A relative change below this is that of a ratio that has settled."""
ENOUGH = arb("1e-30")
"""Below this nobody looks farther."""
NARROW = 60
"""Bits that a ball far out must have, to say anything."""
ROUNDING = 1e-12
"""A power of the scale below this is the rounding of an exponent (1/1.5 for 2/3)."""
FAINT = 1e-9
"""A rise below this may be that of coordinates that are short of their optimum."""
BEFORE = (-16, -8, 0, 8)
"""Binary logarithms of scales around the start."""
STEADY, STEADY_FAR = 0.98, 0.9
"""Local exponents that keep this part of the one before do not decay."""


class Growth(NamedTuple):
    """How a ratio rises along a scale.

    Attributes:
        ratio: at the farthest scale that tells something: a lower estimate of the supremum.
        certain: the same with the program's constants as balls.
        left: the relative change between the last two of the scales.
        settled: whether that is below 1e-12.
        endless: whether the local exponents, d log(ratio)/d log(scale) or the same against the
            scale's logarithm, do not decay: it has no bound.
        rise: on the way, relatively.
        lawful: whether what lacks to the end is one power of the scale, before the start too: then
            even the smallest rise is none of rounding.
    """

    ratio: arb
    certain: arb
    left: float
    settled: bool
    endless: bool
    rise: float
    lawful: bool = False


def _steady(logs: list[tuple[int, arb]], keeps: float) -> bool:
    """Whether the last of the local exponents is positive and as large as those before."""
    slopes = [float((b[1] - a[1]).mid()) / (b[0] - a[0]) for a, b in itertools.pairwise(logs)]
    return slopes[-1] > ROUNDING and all(slopes[-1] >= keeps * s for s in slopes[-3:-1])


def _steady_in_logs(logs: list[tuple[int, arb]]) -> bool:
    """The same against the logarithm of m: what grows as a power of log(scale)."""
    far = [(m, v) for m, v in logs if m >= FARTHER[4]]
    if len(far) < 4:
        return False
    slopes = [
        float((b[1] - a[1]).mid()) / (b[0].bit_length() - a[0].bit_length())
        for a, b in itertools.pairwise(far)
    ]
    return slopes[-1] > 1e-6 and all(slopes[-1] >= STEADY_FAR * s for s in slopes)


def growth(value: Callable[[int, str], arb], /) -> Growth | None:
    """What is known of a ratio along a scale; None where it does not rise to its end.

    Args:
        value: the ratio at the scale 2^m, from m and how constants are read ("exact", "ulp"); it
            raises `Undecided` or `NotSupported` where there is none.
    """
    start = [(0, value(0, "exact"))]
    reached = list(start)
    for m in STEPS[1:]:
        try:
            reached.append((m, value(m, "exact")))
        except Undecided:
            break  # beyond a hypothesis, or beyond the exponents of balls
    values = [v for _, v in reached]
    end = values[-1]
    # What was larger before it came to the end is no supremum at the end.
    if len(reached) < 6 or not end > values[0] or any(v > end for v in values):
        return None
    logs = [(m, (v / values[0]).log()) for m, v in reached]
    if reached[-1][0] < STEPS[-1]:
        explodes = _steady(logs, 1.0) and end > values[0] * arb(2) ** 100
        return Growth(end, end, float("inf"), False, True, float("inf")) if explodes else None
    if float(logs[-1][1].mid()) < ROUNDING * STEPS[-1] and _steady(
        [(m, v * arb(2) ** 40) for m, v in logs], 0.5
    ):
        return None  # homogeneous, but for the rounding of a constant
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
    """On from 2^100, as far as balls tell something."""
    before, here, certain = ends
    first, left, origin = certain, abs(1 - before / here), here / logs[-1][1].exp()
    for m in FARTHER:
        if left < ENOUGH:
            break
        try:
            exact, there = value(m, "exact"), value(m, "ulp")
        except (Undecided, NotSupported):
            break
        # Once it has settled, an exponent's rounding must not set it in motion again.
        narrow = there.is_finite() and there.rel_accuracy_bits() >= NARROW
        if not exact.is_finite() or (left < STILL and not narrow):
            break
        if exact < here * (1 - STILL):
            return None  # it comes down again
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
    """Whether end - ratio is a power of the scale around where it starts."""
    try:
        lacks = [end - value(m, "exact") for m in BEFORE]
        if not all(lack > 0 for lack in lacks):
            return False
        powers = [float((a / b).log().mid()) for a, b in itertools.pairwise(lacks)]
    except (Undecided, NotSupported):
        return False
    return powers[0] > 0.01 and max(powers) < 1.05 * min(powers)
