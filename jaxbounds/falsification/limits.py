"""Decide limits: a trend over sizes shows whether the distance between the sides tends to zero."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy

from jaxbounds.claims.statements import Size, Statement, Status
from jaxbounds.falsification.evaluation import Reals
from jaxbounds.falsification.measure import Measured

SETTLES = 0.75
"""The engine extrapolates a distance whose changes decay at least as fast as parameter^(-SETTLES).
A larger exponent decides fewer limits."""
STAYS, GOES = 0.5, 0.1
"""Thresholds of the share: the extrapolated limit of the distance, divided by the last distance. A
share of at least STAYS counts against convergence, and a share of at most GOES for convergence. A
larger STAYS leaves more limits undecided; a larger GOES accepts more limits. An extrapolated limit
below zero may be as low as -GOES times the last distance but one."""
SAME = 0.98
"""The engine extrapolates the distance with and without the largest size. If the limit with the
largest size is below SAME times the limit without it, the distance may decay like a logarithm, and
the test decides nothing. A larger SAME leaves more claims undecided."""
STEADY, FALLS = 0.97, 0.05
"""Criteria for a slow power law: three local exponents of at least FALLS, with successive ratios
between STEADY and 1 / STEADY. Larger values accept fewer power laws. Two exponents do not
suffice, because they look like a power law before the sides cross."""


ENDS, TAIL, FASTER = 0.8, 0.1, 1.01
"""Criteria for a distance that falls to a positive limit. A drop is the decrease of the log
distance from one size to the next. The ratio of successive drops is at most ENDS, and grows at
most by FASTER. Later drops add up to at most TAIL. Larger values find a positive limit more
often."""


def _stands_still(x: Reals, slopes: Reals) -> bool:
    falls = -slopes[-3:] * np.diff(x)[-3:]
    if len(falls) < 3 or np.any(falls <= 0):
        return False
    before, after = map(float, falls[1:] / falls[:-1])
    ratio = max(before, after)
    ends = ratio <= ENDS and after <= FASTER * before
    return ends and float(falls[-1]) * ratio / (1 - ratio) <= TAIL


def _rises_to_a_limit(distance: Reals) -> bool:
    changes = np.diff(distance)[-3:]
    if len(changes) < 3 or np.any(changes <= 0):
        return False
    before, after = map(float, changes[1:] / changes[:-1])
    alike = before / ALIKE <= after <= before * ALIKE
    return alike and max(before, after) <= RISES and changes[-1] <= SMALL * distance[-1]


def _steady(slopes: Reals) -> bool:
    if len(slopes) < 3 or np.any(slopes[-3:] > -FALLS):
        return False
    ratios = slopes[-2:] / slopes[-3:-1]
    return bool(np.all((ratios >= STEADY) & (ratios <= 1 / STEADY)))


RISES, ALIKE, SMALL = 0.6, 1.1, 0.01
"""Criteria for a distance that rises to a positive limit. The ratio of successive changes is at
most RISES, and varies at most by the factor ALIKE. The last change is at most the share SMALL of
the distance. Larger values find a positive limit more often."""
FLAT = {4: 1e-3, 3: 1e-5}
"""A distance is constant if its last values differ relatively by at most this value, by the number
of last values. A larger value mistakes more slow decays for constants."""
LEAST_SIZES = 3
"""A limit needs at least this many sizes whose distance rounding does not dominate (see NOISY). A
larger number leaves more limits undecided."""
NOISY = 0.1
"""The engine ignores a size if rounding may cause this share of its distance. A larger share
ignores fewer sizes."""
PAIRS = 3
"""The model distance = c + a / log(n) gives a limit c for each pair of neighbouring sizes n. PAIRS
pairs must agree on c. A larger number requires more sizes."""
NOTHING, LEAST, EXACTLY = 0.01, 0.05, 1e-5
"""Criteria for the limit c in c + a / log(n), as fractions of the last distance. The limit is zero
up to NOTHING, and positive from LEAST on. Estimates of c from pairs of sizes must agree up to
EXACTLY. A larger EXACTLY could call a decay slower than 1 / log(n) "inconsistent" (a false
claim)."""


AGREE, PART = {2: 1e-6, 3: 1e-4}, 1e-3
"""Criteria for a power law whose limit is not zero. Each three neighbouring sizes give one estimate
of the limit of lhs - rhs. AGREE maps the number of last estimates to their largest relative spread,
for sizes that differ by the factor e. PART is the least ratio of the limit to the last difference.
A larger AGREE or a smaller PART could call a slow decay to zero "inconsistent".
"""
CROSSED, ALIKE_POWERS, STOPPED, POWER, SHRINKS, WIDE = 0.01, 0.05, 0.1, 0.4, 0.2, 1e3
"""Criteria for a limit that is not zero if the difference of the sides changes its sign once, and
then moves away from zero. The last two estimates of the limit agree up to CROSSED, and their
exponents up to ALIKE_POWERS. The exponent is at least POWER. The last difference deviates from the
limit by at most the share STOPPED of the limit. The last change of the estimate is at most the
share SHRINKS of the preceding change. The parameter grows at least by the factor WIDE. A smaller
POWER, SHRINKS or WIDE, or a larger other value, could call a slow decay to zero "inconsistent".
"""


SAME_GAP = 1e-9
"""The sign of a difference of the sides is known if |lhs - rhs| equals the distance up to this
relative amount. A larger amount could give a sign to the distance of two arrays.
"""


class Trend(NamedTuple):
    """The status of a claim about a limit, the sides' distance at the last size, and the reason."""

    status: Status
    distance: float
    reason: str


def _left(x: Reals, distance: Reals) -> float:
    """Extrapolate the limit of the sides' distance, divided by their distance at the last size.

    The function fits c + a exp(-p x) to the distances at the last three sizes x; the limit is c.
    The result is NaN if the distance does not fall, or falls without a visible limit.
    """
    change = -np.diff(distance)
    if len(change) < 2 or not np.all(change[-2:] > 0):
        return float("nan")
    before, after = np.diff(x)[-2:]
    fall = np.log(change[-1] / change[-2])
    excess = lambda p: np.log(np.expm1(-p * after) / np.expm1(-p * before)) - p * before - fall
    if excess(SETTLES) < 0:
        return float("nan")
    fastest = 700 / max(before, after)
    p = scipy.optimize.brentq(excess, SETTLES, fastest) if excess(fastest) < 0 else fastest
    return float(1 - change[-1] / np.expm1(p * after) / distance[-1])


def _fitted(x: Reals, y: Reals) -> tuple[float, float]:
    """Fit c + a exp(-p x) to three points, and return (c, p); NaN if no positive p fits."""
    (first, change), (before, after) = np.diff(y), np.diff(x)
    none = float("nan"), float("nan")
    if first * change <= 0 or abs(change) * before >= abs(first) * after:
        return none
    fall = np.log(change / first)
    excess = lambda p: np.log(np.expm1(-p * after) / np.expm1(-p * before)) - p * before - fall
    slowest, fastest = 1e-6, 700 / max(before, after)
    if excess(slowest) <= 0:
        return none
    p = scipy.optimize.brentq(excess, slowest, fastest) if excess(fastest) < 0 else fastest
    return float(y[-1] + change / np.expm1(p * after)), float(p)


def _other_limit(x: Reals, y: Reals) -> float:
    """Return the limit of the difference of the sides if it certainly is not zero, else NaN.

    Args:
        x: the logarithms of the parameter.
        y: the difference of the sides, with its sign if the sign is known.
    """
    fits = [_fitted(x[i : i + 3], y[i : i + 3]) for i in range(len(y) - 2)]
    limits, powers = np.array(fits)[-3:].T
    if len(limits) < 2 or np.any(np.isnan(limits)):
        return float("nan")
    size, step = abs(limits[-1]), min(1.0, float(np.min(np.diff(x))))
    if np.ptp(limits) <= AGREE[len(limits)] * step * size and size >= PART * abs(y[-1]):
        return float(limits[-1])
    away = np.sign(y[-1]) * np.diff(y) > 0
    if len(limits) < 3 or not np.all(away) or y[0] * y[-1] >= 0 or y[-2] * y[-1] <= 0:
        return float("nan")
    changes = np.abs(np.diff(limits))
    settled = changes[-1] <= min(CROSSED * step * size, SHRINKS * changes[-2])
    alike = abs(np.log(powers[-1] / powers[-2])) <= ALIKE_POWERS * step
    stopped = abs(limits[-1] - y[-1]) <= STOPPED * size and x[-1] - x[0] >= np.log(WIDE)
    certain = settled and alike and stopped and powers[-1] >= POWER
    return float(limits[-1]) if certain else float("nan")


def trend(x: Reals, distance: Reals, floor: float, signed: Reals | None = None, /) -> Trend:
    """Decide from distances at growing values of a parameter whether the distances tend to zero.

    Args:
        x: the logarithms of the parameter in increasing order, or of 1 / parameter if the parameter
            tends to zero.
        distance: the distance between the sides at each of at least three values of the parameter.
        floor: the distance up to which a difference of the sides is rounding.
        signed: lhs - rhs at each value of the parameter; None if the sign is unknown.
    """
    last, signed = float(distance[-1]), distance if signed is None else signed
    if last <= floor:
        return Trend("consistent", last, f"the sides agree to {last:.1g} at the last size")
    slopes = np.diff(np.log(np.maximum(distance, 1e-300))) / np.diff(x)
    exponents = ", ".join(f"{slope:.2f}" for slope in slopes[-3:])
    ends = f"{distance[0]:.3g} to {last:.3g}"
    words = f"the distance goes from {ends}, with the last local exponents {exponents}"
    if np.isfinite(other := _other_limit(x, signed)):
        amount = f"{abs(other):.3g}" if signed is distance else f"{other:.3g}"
        said = f"the difference of the sides tends to {amount}"
        return Trend("inconsistent", last, f"{words}: {said}")
    left = _left(x, distance)
    goes = -GOES * distance[-2] / last <= left <= GOES
    if goes or (np.isnan(left) and _steady(slopes)):
        return Trend("consistent", last, words)
    if left >= STAYS and left * last >= SAME * _left(x[:-1], distance[:-1]) * distance[-2]:
        return Trend("inconsistent", last, f"{words}: {left:.0%} of it remains in the limit")
    if _stands_still(x, slopes):
        return Trend("inconsistent", last, f"{words}: the decay ends, and most of it remains")
    if np.all(slopes[-2:] >= -1e-3) and last >= 0.9 * float(distance[0]):
        return Trend("inconsistent", last, f"{words}: the distance does not fall")
    if any(len(distance) > n and np.ptp(distance[-n:]) <= flat * last for n, flat in FLAT.items()):
        return Trend("inconsistent", last, f"{words}: the distance stays at {last:.3g}")
    if _rises_to_a_limit(distance):
        return Trend("inconsistent", last, f"{words}: the distance rises to a positive limit")
    parts = _as_logarithm(x, distance)
    clear = len(parts) and np.ptp(parts) <= EXACTLY * abs(parts[-1]) and parts[-1] >= PART
    if len(parts) and np.max(np.abs(parts)) <= NOTHING and not clear:
        return Trend("consistent", last, f"{words}: the distance falls like 1 / log to zero")
    if clear or (len(parts) and np.ptp(parts) <= EXACTLY and parts[-1] >= LEAST):
        said = f"the distance falls like 1 / log to {parts[-1]:.2g} of its last value"
        return Trend("inconsistent", last, f"{words}: {said}")
    return Trend(
        "inconclusive",
        last,
        f"{words}: the decay is no power law. Try more sizes, closer to the limit",
    )


def _as_logarithm(x: Reals, distance: Reals) -> Reals:
    """Extrapolate the distance's limit, relative to the last distance, by the model c + a / x.

    The result has an estimate from each of the last `PAIRS` pairs of successive sizes; it is empty
    if there are fewer pairs.
    """
    far = np.flatnonzero(x > 0)[-PAIRS - 1 :]
    if len(far) <= PAIRS:
        return np.zeros(0)
    return np.diff((distance * x)[far]) / np.diff(x[far]) / float(distance[-1])


def judged_limit(
    statement: Statement, m: Measured, sizes: np.ndarray, rounding: np.ndarray | None = None, /
) -> Trend:
    """Decide a limit for each group of sizes that differ only in the limit's parameter.

    The result is the worst status of all groups. The distance at a size is the largest |lhs - rhs|
    of the instances that count as evidence.

    Args:
        statement: a statement about a limit of its left side.
        m: the measurements on all instances.
        sizes: for each instance the index of its size in `statement.sizes`.
        rounding: the absolute amount by which rounding may change the distance at each instance;
            NaN where it is unknown.
    """
    (axis, end), *_ = statement.towards.items()
    if np.any(np.isnan(m.value)):
        lost = np.isnan(m.value)
        there = Size(statement.sizes[int(sizes[np.argmax(lost)])])
        words = (
            f"evaluate gave NaN on {int(np.sum(lost))} of {len(m.value)} instances, first at "
            f"{there!r}. Try sizes at which floats hold both sides, or hypotheses that exclude the "
            "instances"
        )
        return Trend("inconclusive", float("nan"), words)
    groups: dict[tuple, list[tuple[float, ...]]] = {}
    for index, size in enumerate(map(Size, statement.sizes)):
        rows = sizes == index
        if not np.any(rows):
            return Trend("inconclusive", float("nan"), f"no instance counts at {size!r}")
        x = float(np.log(size[axis])) * (1 if end else -1)
        scale = max(1.0, float(np.max(np.abs(m.rhs[rows]))))
        floor = max(statement.tolerance * scale, float(np.max(m.error[rows])))
        rest = tuple((name, value) for name, value in size.items() if name != axis)
        noise = 0.0 if rounding is None else float(np.nanmax(rounding[rows], initial=0.0))
        distance, sign = float(np.max(m.value[rows])), _sign(m, rows)
        groups.setdefault(rest, []).append((x, distance, floor, noise, sign))
    found = [_of_group(rest, rows) for rest, rows in groups.items()]
    order: Mapping[str, int] = {"inconsistent": 0, "inconclusive": 1, "consistent": 2}
    return min(found, key=lambda one: (order[one.status], -one.distance))


def _sign(m: Measured, rows: np.ndarray) -> float:
    """Return the common sign of lhs - rhs at some instances; 0 if it differs or is unknown."""
    gap, value = (m.lhs - m.rhs)[rows], m.value[rows]
    if not np.allclose(np.abs(gap), value, rtol=SAME_GAP, atol=0.0) or np.ptp(np.sign(gap)) > 0:
        return 0.0
    return float(np.sign(gap[0]))


def _of_group(rest: tuple, rows: list[tuple[float, ...]]) -> Trend:
    x, distance, floor, noise, sign = np.array(sorted(rows)).T
    noisy = (distance > floor) & (noise > NOISY * distance)
    kept = int(np.argmax(noisy)) if np.any(noisy) else len(x)
    if kept < min(len(x), LEAST_SIZES):
        reason = (
            f"rounding may explain the distance {distance[kept]:.3g} at size {kept + 1} of "
            f"{len(x)}, since the sides sum terms that nearly cancel. Try sizes farther from the "
            "limit, or a formula without cancellation"
        )
        one = Trend("inconclusive", float(distance[-1]), reason)
    else:
        known = (sign != 0) | (distance == 0)
        signed = (sign * distance)[:kept] if np.all(known[:kept]) else None
        one = trend(x[:kept], distance[:kept], float(floor[kept - 1]), signed)
        if kept < len(x):
            left = f"; rounding may explain the distance at the last {len(x) - kept} sizes"
            one = one._replace(reason=f"{one.reason}{left}")
    return one._replace(reason=f"at {Size(dict(rest))!r} {one.reason}") if rest else one
