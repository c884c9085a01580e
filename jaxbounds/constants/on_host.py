"""Search for the largest ratio lhs/rhs of a statement in plain Python, without gradients.

The search calls its result "rising" if a larger ratio lhs/rhs may exist. Reasons are a nearby
instance with a larger ratio, and entries that can grow or shrink without end at an equal ratio.
Other reasons are an integer with a value that is rare among random instances, and a ratio that
depends on the last digits of the entries.
"""

import time
from collections.abc import Callable, Iterator, Sequence

import jax
import numpy as np

from jaxbounds.claims.statements import Instance
from jaxbounds.constants.host_climb import HostClimber, Place, TimeIsOver, Whole, scales
from jaxbounds.constants.polish import SAME, Point
from jaxbounds.constants.problem import Problem, flat, floats_of, unflat
from jaxbounds.constants.snapping import tied
from jaxbounds.constants.starts import Start, further
from jaxbounds.falsification.examples import SOURCE

OTHERS = 40
"""The number of instances other than random draws from which the search starts, if time allows.
A search from more instances misses fewer optima.
"""
LEAST, DRAWN, AGREEING = 6, 1, 3
"""A constant counts as settled (found with confidence) only if the search begins from LEAST
instances that are not random draws. Ascents of lhs/rhs from DRAWN random draws, and from AGREEING
starts of any kind, must reach the largest ratio. If LEAST, DRAWN or AGREEING is larger, fewer
constants count as settled.
"""
SHARE, CLIMBS = 1 / 12, 0.75
"""SHARE is the part of the search's time that one ascent of lhs/rhs may take, and CLIMBS is the
part for all ascents.

The search for objections (reasons why another instance may have a larger ratio lhs/rhs) gets the
time that the ascents leave. If SHARE and CLIMBS are larger, the search for objections has less
time.
"""
AT_A_JUMP = "the ratio is the largest only for exactly these last digits of the entries"
OVER = "the time was over before the search had tried all moves that could give a larger ratio"
ROUNDS = 100
"""The search climbs from new starting instances at most this many times; more times take longer."""
NEARBY = (0.3, 1e-2, 1e-4, 1e-6, 1e-9)
"""The lengths of test moves, relative to the moved entry. A constant is settled only if no test
move leads to a larger ratio lhs/rhs.
"""
COORDINATES = 64
"""For each length of a move, `_neighbours` changes at most this many coordinates of the instance.

A larger number of coordinates makes the search longer."""
DENSE = 16
"""The number of random directions for each length of a move; more directions take longer."""
LAST = 1e-12
"""The length, relative to the moved entries, of tiny test moves of all coordinates at once. A
constant counts as settled only if lhs/rhs stays as large under the tiny moves. If this length is
larger, fewer constants count as settled."""
SHIFTS, TRIES = 32, 12
FAR = (10, 20, 40)
"""The binary logarithms of the factors by which `_far_out` scales entries."""
ONCE = 0.05
"""An integer may have further, undrawn values if more than this share of random instances (draws)
has a value that no other draw has. If this share is larger, the search more often takes the drawn
values for complete."""
MANY = 256
"""The number of random draws that only show which values integers take; the search does not measure
lhs/rhs at these draws.

A larger number of draws shows rarer values of the integers.
"""
LOOKED_AT = 4
"""The search examines at most this many instances with the largest ratios lhs/rhs; an objection
says why another instance may have a larger ratio. Tests of more instances take longer."""


@np.errstate(all="ignore")  # ignore overflows: an instance whose sides overflow does not count
def settled_on_host(
    problem: Problem,
    draws: Instance,
    starts: Sequence[Start],
    fresh: Callable[[], list[Instance]],
    /,
    *,
    seed: int,
    until: float,
) -> tuple[list[Point], str]:
    """Search for large lhs/rhs; return the best points, and a reason to expect larger ratios.

    The search stops when `time.process_time()` reaches `until`.

    Returns:
        The points, largest ratio lhs/rhs first, and a reason why another instance may have a larger
        ratio; the reason is empty if the search finds none.
    """
    climber, rng = HostClimber(problem, draws), np.random.default_rng([seed, 11])
    left, points, words = until - time.process_time(), list[Point](), ""
    each, climbs_until = left * SHARE, until - left * (1 - CLIMBS)
    reach = np.inf
    queue: Iterator[Start] = iter(starts)
    for number in range(ROUNDS):
        for start in queue:
            if points and time.process_time() > climbs_until:
                break
            slice_ = min(climbs_until, time.process_time() + each)
            there = climber.climbed(start.instance, rng, until=slice_, reach=reach)
            if there.ratio > 0:
                points.append(
                    Point(there.instance, *tied(there.instance, 0.0), there.ratio, start.kind)
                )
        points.sort(key=lambda p: -p.ratio)
        # The first climbs go as high as possible; later climbs stop at the largest ratio so far,
        # because they only test whether another start leads to a larger ratio.
        reach, words = (points[0].ratio if points else np.inf), _few(points)
        over = time.process_time() > climbs_until
        if over or (not words and _others(points) >= OTHERS):
            break
        known = [p.instance for p in points[:2]]
        queue = further(problem, known, fresh(), seed=seed + 1000 * (number + 1))
    if not points or words:
        return points, words or "no start meets the hypotheses"
    return _without_objection(climber, points, rng, until)


def unmeasured(problem: Problem, seed: int, /) -> list[Instance]:
    """Draw more instances from each sampler, only to see which integers they hold."""
    found = list[Instance]()
    for sampler in problem.statement.samplers.values():
        keys = jax.random.split(jax.random.key(seed), MANY)
        batch = jax.vmap(lambda key, sampler=sampler: sampler(key, problem.size))(keys)
        found.append(jax.tree.map(np.asarray, batch))
    return found


def _others(points: Sequence[Point]) -> int:
    return sum(p.kind not in ("drawn", "searched", SOURCE) for p in points)


def _few(points: Sequence[Point]) -> str:
    if not points:
        return "no start meets the hypotheses"
    agreeing = [p for p in points if p.ratio >= points[0].ratio * (1 - SAME) and p.kind != SOURCE]
    drawn = sum(p.kind in ("drawn", "searched") for p in agreeing)
    if len(agreeing) < AGREEING or drawn < DRAWN:
        return (
            f"only {len(agreeing)} of {len(points)} starts led to this ratio; {drawn} of them are "
            "draws"
        )
    if _others(points) < LEAST:
        return f"the time was over after {_others(points)} starts that are not draws"
    return ""


def _without_objection(
    climber: HostClimber, points: list[Point], rng: np.random.Generator, until: float
) -> tuple[list[Point], str]:
    value, words, climber.until = points[0].ratio, "", until
    try:
        for point in [p for p in points if p.ratio >= value * (1 - SAME)][:LOOKED_AT]:
            there = steady(climber, Place(point.instance, point.ratio), value, rng)
            doubts = objection(climber, there, rng) if there else AT_A_JUMP
            if not doubts and there:
                first = Point(there.instance, *tied(there.instance, 0.0), there.ratio, point.kind)
                return [first, *(p for p in points if p is not point)], ""
            words = words or doubts
    except TimeIsOver:
        return points, words or OVER
    return points, words


def steady(
    climber: HostClimber, place: Place, value: float, rng: np.random.Generator, /
) -> Place | None:
    """Return `place`, or an instance with other last digits, at which tiny moves keep lhs/rhs.

    At a jump of the ratio lhs/rhs, rounding may give the value on the wrong side of the jump. The
    function looks for an instance next to the jump, at which rounding does not change lhs/rhs. The
    result is None if the function finds no such instance.
    """
    x, scale = flat(place.instance), scales(place.instance)
    side = lambda: rng.choice([-1.0, 1.0], size=len(x))
    good = lambda there: there.ratio >= value * (1 - SAME)
    shifts = [
        np.zeros(len(x)),
        *(4 * LAST * scale * side() for _ in range(SHIFTS if len(x) else 0)),
    ]
    for shift in shifts:
        there = climber.at(unflat(place.instance, x + shift)) if np.any(shift) else place
        if not good(there):
            continue
        own = flat(there.instance)
        moves = (LAST * scale * side() for _ in range(TRIES if len(x) else 0))
        if all(good(climber.at(unflat(there.instance, own + move))) for move in moves):
            return there
    return None


def objection(climber: HostClimber, place: Place, rng: np.random.Generator, /) -> str:
    """Return a reason why another instance may have a larger lhs/rhs than `place`; else ""."""
    larger = lambda there: there.ratio > place.ratio * (1 + SAME)
    if any(larger(climber.at(moved)) for moved in _neighbours(place.instance, rng)):
        return "a neighbour has a larger ratio"
    return _unseen(climber, place, larger) or _far_out(climber, place)


def _neighbours(instance: Instance, rng: np.random.Generator) -> Iterator[Instance]:
    x, scale = flat(instance), scales(instance)
    for length in NEARBY if len(x) else ():
        for i in rng.permutation(len(x))[:COORDINATES]:
            for sign in (-1, 1):
                yield unflat(instance, x + sign * length * scale * (np.arange(len(x)) == i))
        for _ in range(DENSE):
            yield unflat(instance, x + length * scale * rng.normal(size=len(x)))


def _unseen(climber: HostClimber, place: Place, larger: Callable[[Place], bool]) -> str:
    for whole in climber.wholes(place.instance):
        declared = climber.declared(place.instance, whole)
        if not declared and whole.once > ONCE:
            return (
                "many values of whole numbers occur in only one draw, so further values may exist"
            )
        own = climber.number(place.instance, whole)
        if own.dtype == bool:
            continue
        beyond = {int(own) - 1, int(own) + 1} - set(whole.seen.tolist())
        for value in beyond:
            there = climber.tried(place.instance, whole, value)
            if larger(there):
                return f"the ratio is larger with the whole number {value} in place of {own}"
            last = not declared and own in (whole.seen[0], whole.seen[-1])
            if last and there.ratio > -np.inf and _depends(climber, place, whole):
                return (
                    f"the whole number {own} is the largest or least drawn value, but further "
                    "values may exist"
                )
    return ""


def _depends(climber: HostClimber, place: Place, whole: Whole) -> bool:
    others = climber.values_of(place.instance, whole)
    worst = place.ratio * (1 - SAME)
    return any(climber.tried(place.instance, whole, v).ratio < worst for v in others)


def _far_out(climber: HostClimber, place: Place) -> str:
    x, worst = flat(place.instance), place.ratio * (1 - SAME)
    sizes = [leaf.size for leaf in floats_of(place.instance)]

    def moved(mine: np.ndarray, factor: float) -> Place:
        return climber.at(unflat(place.instance, np.where(mine, x * factor, x)))

    def ends(mine: np.ndarray, there: Place) -> bool:
        return bool(np.allclose(flat(there.instance)[mine], x[mine], rtol=1e-6, atol=0))

    for i, way in enumerate(climber.out(place.instance)):
        mine = np.arange(len(x)) == i
        if way and not ends(mine, moved(mine, 2.0**way)):
            return f"an entry is {x[i]:.1g}, far from all draws, so the ratio may be a limit"
    for mine in _groups(x, sizes):
        for way in (1, -1):
            out = [moved(mine, 2.0 ** (way * m)) for m in FAR]
            if any(there.ratio < worst for there in out) or ends(mine, out[-1]):
                continue
            back = [moved(mine, 2.0 ** (-way * m)).ratio for m in FAR]
            reached = way < 0 and moved(mine, 0.0).ratio >= worst
            if not reached and any(0 < ratio < worst for ratio in back):
                return "along a scale without end the ratio stays as large, so it may be a limit"
    return ""


def _groups(x: np.ndarray, sizes: Sequence[int]) -> Iterator[np.ndarray]:
    index, start = np.arange(len(x)), 0
    groups = [index == i for i in index[:COORDINATES]]
    for size in sizes:
        groups.append((index >= start) & (index < start + size))
        start += size
    groups.append(index >= 0)
    yield from (mine & (x != 0) for mine in groups if np.any(mine & (x != 0)))
