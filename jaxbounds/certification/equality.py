"""Find points of equality: points at which the two sides of a claim are equal.

A search in floats finds an approximate point; the module then tries exact numbers as its
coordinates. `contact.touching` proves the claim in a region around an exact point, or returns no
region.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.falsification.evaluation import NO_SLOPES
from jaxbounds.falsification.programs import compiled
from jaxbounds.ground.jax_internals import ClosedJaxpr
from jaxbounds.programs.balls.boxes import Box
from jaxbounds.programs.balls.contact import Number, Place, Region, candidates, rational, touching
from jaxbounds.programs.balls.factors import holds_on
from jaxbounds.programs.balls.interpreter import traced
from jaxbounds.programs.balls.values import NotSupported, Reading, Undecided

SAMPLE, ROUNDS = 512, 24
NEAR = 1e-7
"""The search tries to prove equality at a point if its margin (rhs - lhs), relative to the larger
side, is below this value. A larger value makes the search try more points."""
SMALL = 1e-6
"""The search divides a margin (rhs - lhs) by at least this share of the largest side found so far.
A larger share makes the search try more points."""
EQUAL = 1e-11
"""The search tries to prove equality at a point with exact coordinates if its margin, relative to
the larger side, is below this value. A larger value makes the search try more points."""
MOST, LOOKS = 48, 96
"""The search tries at most MOST points, and starts from at most LOOKS boxes of instances. Larger
numbers find more equalities and take longer."""
SPELLINGS, FAILURES = 12, 32
"""The search tries at most SPELLINGS ways to write a point's coordinates exactly. After FAILURES
boxes without a proof in a row, `settles` returns False. Larger numbers find more equalities and
take longer."""


def point_program(margin: Callable[[jax.Array], Any], count: int, /) -> ClosedJaxpr:
    """Trace the program that maps a point to its margin, and to whether it meets the hypotheses."""
    return traced(lambda point: margin(point)[::3], jnp.zeros(count))[0]


class Equalities:
    """Regions around points of equality, in which a Taylor polynomial proves a claim.

    The search for regions may use half of the time that remains until the deadline `until`.

    Attributes:
        regions: the regions in which a Taylor polynomial proves the claim.
        points: the centres of the proved regions, as floats.
    """

    def __init__(
        self, margin: Callable[[jax.Array], Any], domain: Box, program: ClosedJaxpr,
        reading: Reading, until: float,
    ) -> None:  # fmt: skip
        self._margin, self._domain, self._program = margin, domain, program
        self._reading: Reading = reading
        self._until = time.process_time() / 2 + until / 2
        self._batch: Callable | None = None
        self._newton: Callable | None = None
        self._tried: set[tuple] = set()
        self._looks = self._failures = 0
        self._scale = 0.0
        self._rng = np.random.default_rng(0)
        self.regions: list[Region] = []
        self.points: list[tuple[float, ...]] = []

    @property
    def spent(self) -> bool:
        """Whether the search has reached its largest number of tries or its time limit."""
        late = time.process_time() > self._until
        return late or len(self._tried) >= MOST or self._looks >= LOOKS

    def _measured(self, points: np.ndarray, masked: bool = True) -> np.ndarray:
        """Return, for each point, the margin rhs - lhs divided by the larger side.

        Both sides may vanish at a point of equality. The divisor is therefore at least the share
        `SMALL` of the largest side measured so far.
        """
        if self._batch is None:
            self._batch = compiled(jax.vmap(self._margin))
        value, scale, _, needed = map(np.asarray, self._batch(points))
        with np.errstate(all="ignore"):
            self._scale = max(self._scale, float(np.max(scale, initial=0.0, where=scale < 1e300)))
            beside = np.maximum(scale, max(SMALL * self._scale, 1e-300))
            share = np.where(needed & np.isfinite(value), value / beside, np.inf)
        for region in self.regions if masked else []:  # the search skips proved regions
            inside = (points >= np.array(region.lower)) & (points <= np.array(region.upper))
            share = np.where(inside.all(axis=1), np.inf, share)
        return np.where(np.isnan(share), 0.0, share)

    def _lowest(self, box: Box) -> np.ndarray:
        low, high = np.array(box.lower), np.array(box.upper)
        corners = np.array(list(itertools.islice(itertools.product(*zip(low, high)), 64)))
        spread = self._rng.uniform(size=(SAMPLE, len(low)))
        points = low + (high - low) * spread
        points[: len(corners)] = corners
        points[len(corners)] = low / 2 + high / 2
        best, least = points[0], np.inf
        for k in range(ROUNDS):
            share = self._measured(points)
            i = int(np.argmin(share))
            if share[i] < least:
                best, least = points[i], share[i]
            if k == 2:  # later rounds leave the box, except in fixed coordinates
                fixed = low == high
                low = np.where(fixed, low, self._domain.lower)
                high = np.where(fixed, high, self._domain.upper)
            size = (high - low) * 10.0 ** self._rng.uniform(-1 - k / 2, -k / 4, (SAMPLE, 1))
            moves = size * self._rng.normal(size=points.shape)
            moves *= self._rng.random(moves.shape) < max(0.6, 1 / len(low))
            points = np.clip(best + moves, low, high)
        return best

    def _polished(self, point: np.ndarray, free: list[int]) -> np.ndarray:
        if self._newton is None:
            value = lambda p: self._margin(p)[0]
            self._newton = compiled(lambda p: (jax.grad(value)(p), jax.hessian(value)(p)))
        x = point.copy()
        for _ in range(12):
            try:
                slope, curve = map(np.asarray, self._newton(x))
            except NO_SLOPES:
                return point
            part = curve[np.ix_(free, free)]
            if not (np.all(np.isfinite(part)) and np.all(np.isfinite(slope))):
                return point
            step = np.linalg.lstsq(part, -slope[free], rcond=1e-6)[0]
            if np.max(np.abs(step), initial=0.0) > 1e-2 * (1 + np.max(np.abs(x))):
                return point
            x[free] += step
        return x

    def find_region(self, box: Box) -> bool:
        """Search a box for a point with equal sides; return whether a proof around it succeeded."""
        if self.spent:
            return False
        self._looks += 1
        best = self._lowest(box)
        if not self._measured(np.repeat(best[None], SAMPLE, axis=0))[0] < NEAR:
            return False
        low, high = np.array(self._domain.lower), np.array(self._domain.upper)
        free = [j for j in range(len(best)) if box.lower[j] < box.upper[j]]
        found, shapes = False, list[list[int]]()
        for share in (1e-5, 3e-2, 0.0):  # snap coordinates to a very near end, a near end, no end
            sides = np.zeros(len(best), int)
            for j in free:
                near = share * (high[j] - low[j])
                sides[j] = 1 if best[j] - low[j] < near else -1 if high[j] - best[j] < near else 0
            if sides.tolist() not in shapes:
                shapes.append(sides.tolist())
                found = found or self._around(best, free, sides)
        return found

    def _around(self, best: np.ndarray, free: list[int], sides: np.ndarray) -> bool:
        low, high = self._domain
        at = np.where(sides > 0, low, np.where(sides < 0, high, best))
        moving = [j for j in free if sides[j] == 0]
        tries = [at] if not moving else [self._polished(at, moving), at]
        for point in tries:
            place = (*(f"{v:.3g}" for v in point), *map(int, sides), *free)
            if place in self._tried:
                continue
            self._tried.add(place)
            for numbers in self._spelled(point, moving):
                if self.spent:
                    return False
                spot = Place(numbers, tuple(free), tuple(int(sides[j]) for j in free))
                try:
                    region = touching(self._program, spot, self._reading)
                except (NotSupported, Undecided):
                    region = None
                if region is not None:
                    self.regions.append(region)
                    self.points.append(tuple(map(float, point)))
                    return True
        return False

    def _spelled(self, point: np.ndarray, moving: list[int]) -> Iterator[tuple[Number, ...]]:
        ways: list[list[Number]] = []
        for j, x in enumerate(point):
            if j in moving:
                close = [
                    n for within in (1e-9, 1e-6, 1e-3, 3e-2) for n in candidates(float(x), within)
                ]
                ways.append(list(dict.fromkeys(close))[:6])
            else:
                ways.append([rational(float(x))])
        order = sorted(itertools.product(*map(enumerate, ways)), key=lambda w: sum(i for i, _ in w))
        spelled = [tuple(n for _, n in way) for way in order[:SAMPLE]]
        if not spelled:
            return
        values = np.array([[n.as_float for n in numbers] for numbers in spelled])
        full = np.concatenate([values, np.repeat(values[:1], SAMPLE - len(values), axis=0)])
        share = self._measured(full, masked=False)[: len(spelled)]
        yield from [spelled[i] for i in np.flatnonzero(np.abs(share) < EQUAL)][:SPELLINGS]

    def settles(self, box: Box) -> bool:
        """Return whether a proof shows that rhs - lhs is nonnegative on a box."""
        if self._failures >= FAILURES or time.process_time() > self._until:
            return False
        found = holds_on(self._program, box, self._reading)
        self._failures = 0 if found else self._failures + 1
        return found

    def covered(self, point: Sequence[float]) -> bool:
        """Return whether a point lies in a region on which the claim is proved."""
        return any(region.holds(point, point) for region in self.regions)

    def holds(self, box: Box) -> bool:
        """Return whether a box lies inside one region on which the claim is proved."""
        return any(region.holds(box.lower, box.upper) for region in self.regions)

    def cut(self, box: Box) -> tuple[int, float] | None:
        """Return (coordinate, value) at which a proved region's face cuts a box, or None."""
        for region in self.regions:
            ends = list(zip(region.lower, region.upper, box.lower, box.upper))
            if all(c <= b and a <= d for a, b, c, d in ends):
                for j, (a, b, c, d) in enumerate(ends):
                    for value in (a, b):
                        if c < value < d:
                            return j, value
        return None
