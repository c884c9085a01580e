"""Certify the best instance found, and classify the supremum by a word such as "attained"."""

import time
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import jax
import numpy as np
from flint import arb

from jaxbounds.claims.statements import Instance
from jaxbounds.constants.closed_form import ClosedForm, closed_form
from jaxbounds.constants.enclosure import BITS, Ratio, ascent, digits_of
from jaxbounds.constants.kinks import met
from jaxbounds.constants.limits import FARTHEST, NEAR, Limit, limit, looks
from jaxbounds.constants.polish import SAME, Point, at, best_neighbour, curvature, polished
from jaxbounds.constants.problem import Problem, flat, is_float, unflat
from jaxbounds.constants.result import AtSize, Where
from jaxbounds.constants.starts import Start
from jaxbounds.falsification.examples import SOURCE
from jaxbounds.falsification.shrink import shrink
from jaxbounds.programs.balls.certificate import decimal_bounds
from jaxbounds.programs.balls.interpreter import precision
from jaxbounds.programs.balls.values import NotSupported, Undecided

BEYOND = 1e3
"""If lhs/rhs rises along a scale by less than this multiple of the rise that slopes predict, the
rise counts as real.

A larger factor counts more small rises as real.
"""
TINY = 1e-20
"""If a limit of the ratio lhs/rhs exceeds the best instance's ratio by more than this relative gap,
the supremum counts as not attained. A larger gap makes more suprema count as attained.
"""
STATIONARY = 1e-11
"""An instance counts as stationary if the predicted relative gain of the ratio lhs/rhs is below
this value.

If this limit on the gain is larger, more suprema count as attained.
"""
EXACT, READABLE = 2e-14, 1e-3
"""The largest relative loss of the ratio lhs/rhs when the search rounds an instance.

EXACT limits the loss of the ratio for the instance that ball arithmetic certifies, and READABLE
limits the loss for the displayed instance. A larger allowed loss of the ratio lhs/rhs gives rounder
numbers.
"""
BY_FLOATS = 1e-14
"""At very large scales, float64 cannot resolve a relative rise of the ratio lhs/rhs up to this
value. If this value is larger, the search accepts more limits of the ratio.
"""
AS_COMPUTED = 2.0**-46
"""The largest relative distance between a closed form and the ratio lhs/rhs that the program's
rounded constants give. If this distance is larger, the search accepts closed forms that fit less
well.
"""
ULPS = 16
"""If a float64 ratio lhs/rhs misses its ball (enclosing interval) by at most this many units in the
last place, the ball's nearer end replaces the ratio. Else the ball's middle replaces the ratio. A
larger number makes the nearer end replace more ratios."""
MISLED = 12
"""The search stops certifying instances once this many instances had a float ratio lhs/rhs that was
only rounding error. A larger number makes the search longer.
"""
ROUNDS, ROUNDED = 12, 256
"""The largest number of rounds in which the search rounds an instance, and the largest number of
entries of a rounded instance. The time of a round grows with the square of the number of entries.
More rounds give rounder instances."""
MOST = 256
"""The number of instances that the search measures between two checks of its time limit.

If this number of instances is larger, the search may exceed its time limit by more.
"""
LARGEST = 1e300
"""If an entry exceeds this number, float64 cannot follow a rise of lhs/rhs to larger entries.

If this number is larger, the search blames the range of float64 for fewer rises.
"""
ROUGHLY = 1e-2
"""A climb (ascent of the ratio lhs/rhs) counts as having reached a limit if its last ratio is
within this relative distance of the limit.

If this distance is larger, more climbs count as having reached a limit.
"""


class Best(NamedTuple):
    """The point with the largest ratio lhs/rhs, and the certified facts about this point.

    Attributes:
        ball: an interval around lhs/rhs at the point; None if ball arithmetic could not run.
        reason: the reason why the ball (enclosing interval) or the slopes of lhs/rhs are missing.
        gain: the further relative gain of the ratio lhs/rhs that slopes predict; None if it is
            unknown.
        far: a path of scaled instances on which lhs/rhs rises further; None if no path is known.
        promise: the relative amount by which the supremum may exceed the ratio's ball (interval).
        near: the largest ratio lhs/rhs, in floats, of the point's neighbours and of points without
            a ball.
    """

    point: Point
    ball: Any
    reason: str
    gain: float | None
    far: Limit | None
    promise: float | None
    near: float


def moves(problem: Problem, /) -> bool:
    """Tell whether the search uses slopes; False for statements in Python and for search="none"."""
    return not problem.statement.host and problem.statement.search != "none"


def examined(
    problem: Problem, points: Sequence[Point], /, *, until: float, seed: int = 0, snap: bool = True
) -> AtSize:
    """Certify the best of the points that `polished` returned, and describe the supremum.

    The function certifies no point after `time.process_time()` reaches `until`.
    """
    return said(problem, best_of(problem, points, until=until, seed=seed, snap=snap), points)


def best_of(
    problem: Problem, points: Sequence[Point], /, *, until: float, seed: int = 0, snap: bool = True
) -> Best:
    """Return the point with the largest certified ratio lhs/rhs, its slopes, and the ratio's limit.

    The function prefers a point at moderate scale that has the same ratio as the limit, if lhs/rhs
    does not rise from this point.
    """
    best = _best_of(problem, points, until=until, seed=seed, snap=snap)
    far, out = best.far, best.point
    alike = [p for p in points if p.ratio >= out.ratio * (1 - SAME) and _extent(p) < _extent(out)]
    if far is None or not far.settled or far.endless or not alike or time.process_time() > until:
        return best
    there = _best_of(problem, [min(alike, key=_extent)], until=until, seed=seed, snap=snap)
    with precision(BITS):
        less = there.ball is None or there.ball < far.certain * (1 - arb(far.left) - TINY)
    stays = there.far is None and there.gain is not None and there.gain < STATIONARY
    return there if stays and not less else best


def _extent(point: Point) -> float:
    size = np.abs(flat(point.instance))
    return float(np.max(np.abs(np.log(size[size > 0])), initial=0.0))


def _best_of(
    problem: Problem, points: Sequence[Point], /, *, until: float, seed: int, snap: bool
) -> Best:
    # If points have equal ratios, points whose float ratios are reliable come first.
    less = lambda p: EXACT if _key(p) in problem.rounding else 0.0
    ordered = sorted(corrected(problem, points), key=lambda p: -p.ratio * (1 - less(p)))
    point, ratio, ball, reason, beyond = _confirmed(problem, ordered, until)
    climbs = moves(problem)
    near = best_neighbour(problem, point.instance, seed) if climbs else (point.instance, 0.0)
    if snap and near[1] > point.ratio * (1 + SAME) and time.process_time() < until:
        again = polished(problem, [Start(point.kind, near[0])], until=until)[0]
        if again.ratio > point.ratio * (1 + SAME):
            point, ratio, ball, reason, beyond = _confirmed(problem, [again, point], until)
            near = best_neighbour(problem, point.instance, seed)
    if ball is not None:
        point = point._replace(ratio=_within(point.ratio, ball))
    gain, far, promise, start = None, None, None, point
    if climbs and ratio:
        start = point = _rounder(problem, point, EXACT, until) if snap else point
        before = ball
        try:
            ball, gain, values = ascent(ratio, point, *curvature(problem, point))
            promise = gain = float(gain)
            start = _moved(problem, point, values) if values and ball > before else point
            if gain > STATIONARY and (kink := _at_kink(problem, ratio, point, ball)):
                ball, gain = kink
                promise = gain
        except (Undecided, NotSupported) as refused:
            reason = f"no certified slopes: {refused}"
        # Slopes vanish at an optimum, but only shrink on the way to a limit. Far from an optimum
        # the ratio may rise again.
        certain = start._replace(ratio=_within(start.ratio, ball))
        far = limit(problem, ratio, certain, until=until)
        far = far if far and _is_real(far, gain) else None
        if far and _passed(far, ball):
            reason = (
                f"along {far.words} the ratio rises, but stays below the ratio of the climb in "
                "balls"
            )
            far, gain, promise = None, None, None
        elif far is None and time.process_time() > until:
            reason = "the time was over before the search had followed all scales"
            gain = promise = None
    if far:
        point, (ball, promise) = start, _at_the_end(problem, ratio, start, far, gain)
        near = best_neighbour(problem, far.instance, seed)
    return Best(point, ball, reason, gain, far, promise, max(near[1], beyond))


def said(
    problem: Problem, best: Best, points: Sequence[Point], /, where: Where | None = None
) -> AtSize:
    """Describe the supremum of lhs/rhs at one size, from the point with the largest ratio.

    The argument `where` is a key of `MEANING`; if it is None, the best point decides.
    """
    point, far, ball = best.point, best.far, best.ball
    top = (far.ratio if far else ball) if ball is not None else None
    value = point.ratio if top is None else _within(point.ratio, top)
    # Float64 is too narrow to come near a slow limit, so a start that reaches `point` agrees.
    least = min(value, point.ratio) * (1 - ROUGHLY) if far else value * (1 - SAME)
    near = lambda p: p.ratio >= least
    agreeing = [p for p in points if near(p)]
    # The result of an earlier run does not count as a second finding.
    found = sum(p.kind != SOURCE for p in agreeing)
    where = where or _where(best, value, found)
    with precision(BITS):
        wider = ball if ball is None or not best.promise else ball * (1 + arb(best.promise))
        low, high = (_end(ball, 0), _end(wider, 1)) if ball is not None else ("", "")
    return AtSize(
        size=dict(problem.size),
        ratio=value,
        where=where,
        along=far.words if far else "",
        low=low,
        high=high,
        digits=digits_of(ball) if ball is not None else 0,
        gain=best.gain,
        reason=_still(best) or _out_of_floats(best, where) or best.reason,
        starts=len(points),
        agreeing=len(agreeing),
        kinds=dict(Counter(p.kind for p in points if p.kind)),
        agreed=dict(Counter(p.kind for p in agreeing if p.kind)),
        closed=_closed(problem, best, (low, high), where, found),
        instance=_plain(problem, point),
        instance_ratio=point.ratio,
    )


def _end(ball: Any, which: int) -> str:
    end = decimal_bounds(ball)[which]
    try:
        return str(end) if Decimal(end).is_finite() else ("-inf", "inf")[which]
    except InvalidOperation:
        return ("-inf", "inf")[which]


def readable(problem: Problem, best: Best, /, *, until: float) -> dict[str, Any]:
    """Return the best instance, rounded for display, and its lhs/rhs as fields of `AtSize`."""
    shown = _rounder(problem, best.point, READABLE, until)
    return {"instance": _plain(problem, shown), "instance_ratio": shown.ratio}


def _plain(problem: Problem, point: Point) -> dict[str, Any]:
    given = dict(problem.put(point.instance))
    return jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), given)


class _Confirmed(NamedTuple):
    point: Point
    ratio: Any
    ball: Any
    reason: str
    beyond: float


def _confirmed(problem: Problem, points: Sequence[Point], until: float) -> _Confirmed:
    projects = problem.statement.search != "none" and problem.statement.project is not None
    seconds = max(until - time.process_time(), 1.0)
    known: list[tuple[Point, Ratio, Any]] = []
    clear = lambda: [k for k in known if _key(k[0]) not in problem.rounding]
    reason, beyond = "", 0.0
    for point in points:
        # After one float ratio is certified, clearly smaller ratios need no certificate.
        if known and point.ratio < float(known[0][2].lower()) * (1 - SAME):
            break
        if len(clear()) > 2 or len(known) - len(clear()) > MISLED:
            break
        try:
            project = projects and not problem.outside(point.instance)
            ratio = Ratio(problem, point.instance, seconds=seconds, project=project)
            ball = ratio(point.instance, "ulp")
            known.append((point, ratio, ball))
            if point.ratio > float(ball.upper()) * (1 + SAME):
                problem.rounding[_key(point)] = float(ball.mid())
        except (Undecided, NotSupported) as refused:
            reason, beyond = str(refused), max(beyond, point.ratio)
        known.sort(key=lambda k: -k[2].lower())
    if not known:
        return _Confirmed(points[0], None, None, reason, beyond)
    as_good = [k for k in clear() if k[2].upper() > known[0][2].lower() * (1 - EXACT)]
    known = as_good or known
    first = known[0][2]
    # The order of the ends of overlapping small balls is random, so the middles decide.
    alike = [k for k in known if k[2].overlaps(first) and k[2].rad() <= 2 * first.rad()]
    best = max(alike, key=lambda k: k[2].mid())
    if not beyond > float(first.lower()) * (1 + SAME):
        return _Confirmed(*best, "", 0.0)
    words = f"floats give the ratio {beyond:.6g}, which ball arithmetic cannot confirm: {reason}"
    return _Confirmed(*best, words, beyond)


def _key(point: Point) -> bytes:
    rest = [str(leaf) for leaf in jax.tree.leaves(point.instance) if not is_float(leaf)]
    return flat(point.instance).tobytes() + repr(rest).encode()


def corrected(problem: Problem, points: Sequence[Point], /) -> list[Point]:
    """Replace float ratios that proved to be rounding errors by ratios from ball arithmetic.

    If both sides are near zero, an ascent of lhs/rhs follows rounding errors, and its float ratio
    is meaningless.
    """
    return [p._replace(ratio=problem.rounding.get(_key(p), p.ratio)) for p in points]


def _within(ratio: float, ball: Any) -> float:
    middle = float(ball.mid())
    if not np.isfinite(middle) or ball.contains(ratio):
        return ratio
    end = float(ball.upper() if ratio > middle else ball.lower())
    return end if abs(ratio - end) <= ULPS * np.spacing(abs(end)) else middle


def _moved(problem: Problem, point: Point, values: list[arb]) -> Point:
    there = np.array([float(v) for v in values])
    instance = unflat(point.instance, point.ties.expand(there))
    ratio = float(problem.ratios([instance])[0])
    moved = point._replace(values=there, instance=instance, ratio=ratio)
    return moved if ratio > 0 else point


def _at_kink(problem: Problem, ratio: Ratio, point: Point, ball: Any) -> tuple[Any, float] | None:
    found = met(problem, ratio, point)
    with precision(BITS):
        return found if found and not found[0] < ball * (1 - SAME) else None


def _passed(far: Limit, ball: Any) -> bool:
    with precision(BITS):
        return not far.endless and bool(far.certain < ball * (1 - arb(TINY)))


def _is_real(far: Limit, gain: float | None) -> bool:
    large = far.endless or far.rise > SAME or far.lawful
    return large or (gain is not None and far.rise < BEYOND * gain)


def _at_the_end(
    problem: Problem, ratio: Ratio, point: Point, far: Limit, own: float | None
) -> tuple[Any, float]:
    """Enclose lhs/rhs at the end of a scale, and bound how far the supremum lies above this value.

    Far along the scale, float64 may not resolve the gain of lhs/rhs from other coordinates. If the
    ratio at `point` is near the limit, the function instead uses `own`, the gain of lhs/rhs that
    other coordinates allow at `point`.
    """
    if not far.settled:
        return far.certain, far.left
    left = 2 * far.left
    if len(point.values) < 2:
        return far.certain, left  # the point has no coordinate but the scale
    try:
        out = at(problem, far.family(FARTHEST), 0.0, point.ties.basis)
        ball, gain, _ = ascent(ratio, out, *curvature(problem, out))
        with precision(BITS):
            if gain < BY_FLOATS and not ball < far.certain * (1 - arb(left)):
                return ball, left + gain
    except (Undecided, NotSupported, ValueError, ArithmeticError, np.linalg.LinAlgError):
        pass
    others = own if own is not None and far.rise < SAME else 0.0
    return far.certain, left + max(BY_FLOATS, others)


def _out_of_floats(best: Best, where: Where) -> str:
    largest = np.max(np.abs(flat(best.point.instance)), initial=0.0)
    if where != "rising" or not largest > LARGEST:
        return ""
    return (
        f"the ratio still rises at entries of size {largest:.1g}, where the range of float64 ends"
    )


def _still(best: Best) -> str:
    if best.far is None or best.far.endless:
        return ""
    if best.far.settled:
        open_ = best.promise is not None and not best.promise < STATIONARY
        words = f"far along {best.far.words} other coordinates may still raise the ratio"
        return f"{words} by a share of {best.promise:.1g}" if open_ else ""
    return (
        f"along {best.far.words} the ratio still rises: by a share of {best.far.left:.1g} at the "
        "last scale that balls reach"
    )


def _where(best: Best, value: float, agreeing: int) -> Where:
    far, gain = best.far, best.gain
    if far is not None and far.endless:
        return "unbounded"
    highest = best.near <= value * (1 + (NEAR if far else SAME))
    if not highest or agreeing < 2 or (far is not None and not far.settled):
        return "rising"
    if far is not None:
        return "limit" if best.promise is not None and best.promise < STATIONARY else "rising"
    return "attained" if gain is not None and gain < STATIONARY else "rising"


def _closed(
    problem: Problem, best: Best, between: tuple[str, str], where: Where, agreeing: int
) -> ClosedForm | None:
    every = where in ("enumerated", "every instance")
    if best.ball is None or not (every or (agreeing > 1 and where in ("attained", "limit"))):
        return None
    promise = 0.0 if where == "enumerated" else best.promise
    if promise is None:
        return None
    with precision(BITS):
        decimals, certain = best.ball.mid().str(70, radius=False), digits_of(best.ball)
        # A wide ball of a constant must not accept a formula far from the computed ratio.
        slack = AS_COMPUTED + promise
        middle = [decimal_bounds(best.ball.mid() * (1 + s * slack))[0] for s in (-1, 1)]
    narrower = max(between[0], middle[0], key=Decimal), min(between[1], middle[1], key=Decimal)
    known = min(certain, int(-np.log10(max(promise, 1e-60))))
    return closed_form(decimals, known, axes=problem.size, between=narrower)


def _rounder(problem: Problem, point: Point, cost: float, until: float) -> Point:
    at_once = 1 if problem.statement.host else MOST

    def judge(instances: list[Instance]) -> np.ndarray:
        found = np.full(len(instances), -np.inf)
        for start in range(0, len(instances), at_once):
            if time.process_time() > until:
                break
            some = slice(start, start + at_once)
            found[some] = problem.ratios(instances[some])
        return found / point.ratio - 1 + 2 * cost

    if time.process_time() > until or len(flat(point.instance)) > ROUNDED:
        return point
    rounder = at(problem, shrink(point.instance, judge, rounds=ROUNDS), 1e-9, point.ties.basis)
    return rounder._replace(kind=point.kind, stalled=point.stalled)


def farther(
    problem: Problem, points: Sequence[Point], best: float, /, *, until: float
) -> list[Start]:
    """Return new starts: instances with extreme entries, and with ratios lhs/rhs above `best`.

    At extreme entries, differences may cancel in float64. The function therefore returns an
    instance only if ball arithmetic confirms its ratio lhs/rhs, or cannot compute the ratio.
    """
    found = list[Start]()
    for point in points:
        if time.process_time() > until or len(found) > 1:
            break
        for look in looks(problem, point, until=until)[:2]:
            if look.high > best * (1 + SAME):
                there = at(problem, look.first, 0.0)
                alone = _confirmed(problem, [there], until)
                if alone.ball is None or alone.ball.lower() > best * (1 + SAME):
                    found.append(Start("far", look.first))
    return found
