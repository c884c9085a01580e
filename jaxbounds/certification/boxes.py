"""Branch and bound: boxes on which a margin is enclosed, until it is nowhere negative.

The margin is enclosed by its balls, by the mean value form about the centre (value there, less
|slope| times radius), and on a face where it is monotone. What is left is cut in two.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb
from jax.extend.core import ClosedJaxpr

from jaxbounds.certification.interpreter import Interpreter, traced
from jaxbounds.certification.slopes import Sloped, sloped
from jaxbounds.certification.values import (
    INF,
    NAN,
    NotSupported,
    Reading,
    Undecided,
    as_flags,
    as_reals,
    reals,
)
from jaxbounds.traces import equations

BATCH = 32
"""Boxes that are enclosed together."""
MARGIN = 1e-6
"""By how much, relative to the larger side, a claim must be violated to be false: below it stand
rounded irrationals."""


class Box(NamedTuple):
    """A box by its corners; a coordinate may be a point."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]


class Values(NamedTuple):
    """A margin on boxes.

    Attributes:
        margin: how much the right side is larger, less the stated error.
        scale: the larger of the two sides; of points only.
        stated: the error that was stated; of points only.
        slopes: of the margin, along each coordinate; NaN where they are unknown.
        needed: 1 where all hypotheses are met, 0 where one is missed, 2 where that is open.
    """

    margin: np.ndarray
    scale: np.ndarray
    stated: np.ndarray
    slopes: np.ndarray
    needed: np.ndarray


def balls_of(boxes: Sequence[Box], /) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centres (floats), radii (rounded up), and the balls."""
    lower, upper = (np.array([box[i] for box in boxes]) for i in (0, 1))
    centres = np.where(lower == upper, lower, lower / 2 + upper / 2)
    radii = np.nextafter(np.maximum(upper - centres, centres - lower), np.inf)
    radii = np.where(lower == upper, 0.0, radii)
    balls = reals(centres.shape, (arb(c, r) for c, r in zip(centres.ravel(), radii.ravel())))
    return centres, radii, balls


class Programs:
    """The margin's program for batches of boxes, padded to powers of two.

    A program with a loop is run box by box: under `vmap` all boxes would leave it together.
    """

    def __init__(
        self, margin: Callable[[jax.Array], Any], count: int, slack: float, reading: Reading
    ) -> None:
        """Take a function of a point of shape (count,) that gives `Values` but for the slopes.

        The slack, which is the number it is, is added to the margin.
        """
        self.reading, self.widened, self._slack = reading, False, arb(slack)
        self._margin, self._count = margin, count
        self._known: dict[tuple[int, bool], ClosedJaxpr] = {}
        alone = traced(margin, jnp.zeros(count))[0].jaxpr
        self._alone = any(eqn.primitive.name == "while" for eqn in equations(alone))

    def _for(self, rows: int, whole: bool) -> ClosedJaxpr:
        """With all values or, as slopes need no more, the margin and whether the point counts."""
        if (rows, whole) not in self._known:
            parts = self._margin if whole else lambda point: self._margin(point)[::3]
            points = jnp.zeros((rows, self._count))
            self._known[rows, whole] = traced(jax.vmap(parts), points)[0]
        return self._known[rows, whole]

    def __call__(self, balls: np.ndarray, slopes: bool) -> Values:
        """The margin on balls of shape (rows, count).

        Raises:
            Undecided: if a discrete choice stays open.
            NotSupported: if there is no rule for an operation.
        """
        if self._alone and len(balls) > 1:
            parts = [self(balls[i : i + 1], slopes) for i in range(len(balls))]
            return Values(*map(np.concatenate, zip(*parts)))
        rows = len(balls)
        padded = 1 << (rows - 1).bit_length()
        given = np.concatenate([balls, np.repeat(balls[:1], padded - rows, axis=0)])
        value, *others, needed = self._run(self._for(padded, not slopes), given, slopes)
        unknown = reals((rows, self._count), [NAN] * (rows * self._count))
        if isinstance(value, Sloped):
            unknown = np.stack([s[:rows] for s in value.slopes], -1)
            value = value.value
        margin = as_reals(value)[:rows] + self._slack
        none = unknown[:, 0]
        scale, stated = [as_reals(x)[:rows] for x in others] or [none, none]
        return Values(margin, scale, stated, unknown, as_flags(needed)[:rows])

    def _run(self, program: ClosedJaxpr, given: np.ndarray, slopes: bool) -> list[Any]:
        if slopes:
            try:
                return sloped(program, given, reading=self.reading)
            except NotSupported:
                pass
        run = Interpreter(self.reading)
        first, *others = run.ways(program, given)
        self.widened |= run.widened
        if others:
            raise Undecided("a discrete choice is open")
        return first


def _halves(box: Box, along: int) -> tuple[Box, Box] | None:
    low, high = box.lower[along], box.upper[along]
    middle = low / 2 + high / 2
    if not low < middle < high:
        return None
    cut = lambda corner, value: (*corner[:along], value, *corner[along + 1 :])
    return Box(box.lower, cut(box.upper, middle)), Box(cut(box.lower, middle), box.upper)


def _face(box: Box, slopes: Sequence[arb]) -> Box | None:
    """The face on which a monotone margin is least, or None if it is not monotone."""
    lower, upper = list(box.lower), list(box.upper)
    for j, slope in enumerate(slopes):
        if lower[j] < upper[j]:
            if slope > 0:
                upper[j] = lower[j]
            elif slope < 0:
                lower[j] = upper[j]
    face = Box(tuple(lower), tuple(upper))
    return None if face == box else face


def _widest(box: Box, slopes: Sequence[arb], radii: np.ndarray) -> int:
    """The coordinate along which the margin varies most, as far as is known."""
    free = [j for j in range(len(radii)) if radii[j] > 0]
    finite = all(slopes[j].is_finite() for j in free)
    weight = lambda j: float(abs(slopes[j]).upper()) * radii[j] if finite else radii[j]
    return max(free, key=lambda j: (weight(j), radii[j]))


class BoxSearch:
    """The boxes that are open, and what became of the others.

    Attributes:
        todo: boxes that are open.
        boxes: that were enclosed; `faces` of them left a face only, `outside` of them miss a
            hypothesis everywhere, `inside` of them are proved.
        narrowest: the smallest width of a box that was cut.
        false: a point where the claim is violated by a relative `MARGIN`.
        stuck: a point, or a box too narrow to be cut, on which the claim is not proved.
    """

    def __init__(self, programs: Programs, boxes: Sequence[Box]) -> None:
        """Start from some boxes."""
        self.programs, self.todo = programs, list(boxes)
        self.boxes = self.faces = self.outside = self.inside = 0
        self.narrowest = math.inf
        self.false: tuple[float, ...] | None = None
        self.stuck: Box | None = None

    def step(self) -> None:
        """Enclose some boxes: what is not proved comes back as a face or as halves."""
        batch = [self.todo.pop() for _ in range(min(BATCH, len(self.todo)))]
        centres, radii, balls = balls_of(batch)
        found = self.programs(balls, slopes=True)
        needed, margin = found.needed, found.margin
        rest = [i for i, v in enumerate(margin) if not (needed[i] == 0 or v >= 0)]
        self.boxes += len(batch)
        self.outside += int(np.sum(needed == 0))
        self.inside += sum(bool(n != 0 and v >= 0) for n, v in zip(needed, margin))
        if not rest:
            return
        points = reals((len(rest), centres.shape[1]), (arb(c) for c in centres[rest].ravel()))
        middles = self.programs(points, slopes=False)
        at = zip(rest, middles.margin, middles.scale, middles.stated, middles.needed)
        for i, middle, scale, stated, meets in at:
            if meets == 1 and not middle >= 0:
                # No box around a point at which it is open can ever be proved.
                point = tuple(map(float, centres[i]))
                # The error was taken off; to be false the claim must fail with it added.
                if middle + 2 * stated + MARGIN * scale < 0 or middle == -INF:
                    self.false = point
                else:
                    self.stuck = Box(point, point)
                return
            # Where the margin may be undefined slopes say nothing of it.
            slopes = list(found.slopes[i]) if margin[i].is_finite() else [NAN] * len(radii[i])
            self._settle(batch[i], middle, bool(needed[i] == 1), slopes, radii[i])

    def _settle(self, box: Box, middle: arb, whole: bool, slopes: list, radii: np.ndarray) -> None:
        varies = [abs(s).upper() * arb(r) for s, r in zip(slopes, radii) if r > 0]
        if all(v.is_finite() for v in varies) and middle - sum(varies, arb(0)) >= 0:
            self.inside += 1
            return
        # On a face nothing may be left to prove where the hypotheses cut the box.
        face = _face(box, slopes) if whole else None
        if face is not None:
            self.faces += 1
            self.todo.append(face)
            return
        if not radii.any():
            self.stuck = box
            return
        halves = _halves(box, _widest(box, slopes, radii))
        if halves is None:
            self.stuck = box
            return
        self.narrowest = min(self.narrowest, float(2 * radii[radii > 0].min()))
        self.todo += halves
