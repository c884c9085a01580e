"""Find suprema that no instance attains: lhs/rhs rises as a scale tends to infinity or zero.

A family is a path of instances through a point. A family multiplies one array, several arrays, or
all entries of equal size by a scale or its reciprocal. Some paths move two arrays of equal shape
towards each other, as a difference quotient does. The search first selects paths by their ratios
lhs/rhs in float64. Ball arithmetic, which encloses rounding errors, then distinguishes a ratio
lhs/rhs that still rises from a constant ratio.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from flint import arb

from jaxbounds.claims.statements import Instance
from jaxbounds.constants.enclosure import BITS, Ratio
from jaxbounds.constants.growth import growth
from jaxbounds.constants.polish import SAME, Point
from jaxbounds.constants.problem import Problem, flat, is_float, unflat
from jaxbounds.programs.balls.interpreter import precision
from jaxbounds.programs.balls.values import NotSupported, Undecided

NEAR = 1e-6
"""Ball arithmetic computes the limits of lhs/rhs only for promising families (paths of scaled
instances). A family is promising if its float64 ratio lhs/rhs at the largest scale is at most this
relative distance below the ratio at its start. A larger distance makes more families promising."""
LOOKS = (2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 500)
"""The binary logarithms of the scales at which the search measures lhs/rhs of a family (path of
scaled instances) in float64.
"""
JOINTLY = 3
"""If an instance has at most this many arrays, the search tries every combination of growing and
shrinking arrays. If an instance has more arrays, only pairs of arrays, or all arrays, change
together. If this number of arrays is larger, the search tries more combinations."""
ENTRIES = 24
"""The largest number of distinct sizes |x| of entries that the search scales.

For each size |x| the search tries a family (path of instances) that scales all entries of this
size. If this number of sizes is larger, the search tries more families.
"""
MOST = 24
"""Ball arithmetic computes the limits of lhs/rhs for at most this many families (paths of scaled
instances). The limits of more families take longer to compute.
"""
FARTHEST = 2.0**100
"""For a family (path of scaled instances), the search computes the slopes in the unscaled
coordinates at this scale, in float64.

A larger scale loses more digits of the slopes.
"""
Family = Callable[[Any], Instance]
"""A function that takes a scale and returns an instance; the scale 1 gives the point's instance."""


class Limit(NamedTuple):
    """A family (path of scaled instances) along which the ratio lhs/rhs still rises.

    The class `Growth` explains the fields `certain`, `settled`, `left`, `rise` and `lawful`.

    Attributes:
        words: the name of the limit, such as "W -> infinity" (an entry grows) or "a - b -> 0" (two
            entries meet).
        instance: an instance far along the family, in float64.
        ratio: the ratio lhs/rhs at the largest accepted scale: a lower estimate of the supremum.
        endless: whether the ratio lhs/rhs grows without bound along the scale. If `settled` and
            `endless` are both False, the search does not know the limit of the ratio.
        family: the function from a scale to the family's instance, in float64.
    """

    words: str
    instance: Instance
    ratio: arb
    certain: arb
    settled: bool
    endless: bool
    left: float
    rise: float
    lawful: bool
    family: Family


_ball = np.frompyfunc(lambda x: arb(float(x)), 1, 1)


def _families(point: Point, exact: bool) -> Iterator[tuple[str, Family]]:
    leaves, structure = jax.tree.flatten_with_path(point.instance)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]
    given = [np.asarray(leaf) for _, leaf in leaves]
    floats = [i for i, leaf in enumerate(given) if is_float(leaf) and np.any(leaf)]
    balls = lambda leaf: np.asarray(_ball(leaf), object).reshape(leaf.shape)
    # Balls keep scales beyond the range of floats exact.
    values = [balls(leaf) if exact and is_float(leaf) else leaf for leaf in given]

    def rebuilt(changed: dict[int, Any]) -> Instance:
        return jax.tree.unflatten(structure, [changed.get(i, v) for i, v in enumerate(values)])

    def scaled(ways: tuple[int, ...], scale: Any) -> Instance:
        up_or_down = {1: scale, -1: 1 / scale}
        return rebuilt({i: values[i] * up_or_down[way] for i, way in zip(floats, ways) if way})

    def closer(i: int, j: int, scale: Any) -> Instance:
        middle, half = (values[i] + values[j]) / 2, (values[i] - values[j]) / 2 * (1 / scale)
        return rebuilt({i: middle + half, j: middle - half})

    def larger(mine: np.ndarray, scale: Any) -> Instance:
        moved = np.where(mine, flat(rebuilt({})) * scale, flat(rebuilt({})))
        return unflat(point.instance, moved)

    def smaller(mine: np.ndarray, scale: Any) -> Instance:
        return larger(mine, 1 / scale)

    for ways in _ways(len(floats)):
        words = [
            f"{', '.join(names[i] for i, way in zip(floats, ways) if way == sign)} -> {where}"
            for sign, where in ((1, "infinity"), (-1, "0"))
            if sign in ways
        ]
        yield ", ".join(words), partial(scaled, ways)
    for i, j in itertools.combinations(floats, 2):
        if values[i].shape == values[j].shape and values[i].shape:
            yield f"{names[i]} - {names[j]} -> 0", partial(closer, i, j)
    sizes = np.abs(flat(point.instance))
    for value in np.unique(sizes[sizes > 0])[::-1][:ENTRIES]:
        yield f"entries of size {value:.2g} -> infinity", partial(larger, sizes == value)
        yield f"entries of size {value:.2g} -> 0", partial(smaller, sizes == value)


def _ways(arrays: int) -> Iterator[tuple[int, ...]]:
    every: Iterable[tuple[int, ...]]
    if arrays <= JOINTLY:
        every = itertools.product((1, -1, 0), repeat=arrays)
    else:
        alone = np.eye(arrays, dtype=int)
        pairs = itertools.combinations(range(arrays), 2)
        together = [alone[i] + sign * alone[j] for i, j in pairs for sign in (1, -1)]
        rows = [*alone, *together, *(-row for row in together), np.ones(arrays, int)]
        every = (tuple(map(int, row)) for row in [*rows, *(-row for row in [*alone, rows[-1]])])
    yield from sorted((w for w in every if any(w)), key=lambda w: sum(map(abs, w)))


class Look(NamedTuple):
    """The float64 ratios lhs/rhs of one family (path of scaled instances) at the scales `LOOKS`.

    Attributes:
        high: the largest ratio lhs/rhs at the measured scales.
        first: the instance at the smallest scale with the ratio `high`.
        last: the ratio at the largest scale; `high` if float64 overflows before the largest scale.
        rises: whether the ratio lhs/rhs still rises at the largest scale.
    """

    family: int
    high: float
    first: Instance
    last: float
    rises: bool


def looks(problem: Problem, point: Point, /, *, until: float) -> list[Look]:
    """Measure lhs/rhs at large scales along each family (path of instances) through the point.

    The family with the largest lhs/rhs comes first.
    """
    families = list(_families(point, False))
    found = list[Look]()
    for index, (_, family) in enumerate(families):
        if time.process_time() > until:
            break
        with np.errstate(all="ignore"):
            far = [family(2.0**m) for m in LOOKS]
            ratios = problem.ratios(far)
        there = np.flatnonzero(ratios > 0)
        if not len(there):  # every scale violates a hypothesis or overflows: balls decide
            found.append(Look(index, 0.0, point.instance, 0.0, True))
            continue
        high = float(np.max(ratios))
        first = next(i for i in there if ratios[i] >= high * (1 - SAME / 10))
        tail = ratios[there][-3:]
        # If differences cancel at a large scale, earlier float ratios are rounding: balls decide.
        last = high if len(there) < len(LOOKS) else float(tail[-1])
        found.append(Look(index, high, far[first], last, bool(np.all(np.diff(tail) > 0))))
    return sorted(found, key=lambda look: -look.high)


def limit(
    problem: Problem, ratio: Ratio, point: Point, /, *, until: float = np.inf
) -> Limit | None:
    """Return the path of scaled instances on which lhs/rhs certainly rises highest, or None."""
    families, exact = list(_families(point, False)), list(_families(point, True))
    seen = looks(problem, point, until=until)
    near = [k for k in seen if k.last >= point.ratio * (1 - NEAR)]
    rising = [k for k in seen if k.rises and k not in near]
    found: list[Limit] = []
    for look in [*near[:MOST], *rising[:MOST]]:
        words, family = exact[look.family]
        at = lambda m, reading, family=family: ratio(family(arb((1, m))), reading)
        with precision(BITS):
            try:
                grown = growth(at)
            except (Undecided, NotSupported):
                continue
        if grown is not None:
            with np.errstate(all="ignore"):
                there = families[look.family][1](2.0 ** LOOKS[2])
            given = {**grown._asdict(), "family": families[look.family][1]}
            found.append(Limit(words=words, instance=there, **given))
    # A family with an unbounded ratio comes first, because it shows that no constant exists.
    return max(found, key=lambda f: (f.endless, float(f.ratio.lower())), default=None)
