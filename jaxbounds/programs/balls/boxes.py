"""Prove a claim (an inequality) on a box by branch and bound.

The margin is the right side of the claim minus the left side. The search encloses the margin on a
box by ball (interval) arithmetic, and by the value at the centre minus the sum of |slope| times
radius. If the margin is monotone in a coordinate, the search keeps only the face where the margin
is least. If the margin's sign stays undecided, the search cuts the box in two.
"""

import heapq
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb

from jaxbounds.ground.jax_internals import ClosedJaxpr
from jaxbounds.programs.balls.interpreter import Interpreter, traced
from jaxbounds.programs.balls.slopes import Sloped, sloped
from jaxbounds.programs.balls.values import (
    INF,
    NAN,
    NotSupported,
    Reading,
    Undecided,
    as_flags,
    as_reals,
    known_nonnegative,
    reals,
)
from jaxbounds.programs.traces import equations

BATCH = 32
"""The number of boxes for which the search encloses the claim's margin (right side minus left side)
in one batch.

A larger number takes more memory.
"""
MARGIN = 1e-6
"""The smallest violation, relative to the larger side, at which `BoxSearch` calls a claim false.

A larger value leaves more small violations undecided. MARGIN must exceed the rounding errors of the
irrational constants in a program.
"""
NARROW, CLOSE, VERY_NARROW = 2.0**-4, 0.02, 2.0**-10
"""The search looks for a point where both sides of the claim are equal in each box narrower than
VERY_NARROW. The search also looks in each box narrower than NARROW if its margin (rhs - lhs)
is below CLOSE. NARROW and VERY_NARROW are fractions of the whole box's width, and CLOSE is a
fraction of the claim's larger side. Larger fractions make the search look in more boxes.
"""


class Box(NamedTuple):
    """A box, given by its lower and its upper corner. A coordinate with two equal ends is fixed."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]


class Values(NamedTuple):
    """The enclosed margin (right side minus left side) of a claim on a batch of boxes.

    Attributes:
        margin: for each box, a ball (interval) that contains the right side minus the left side
            minus the declared error.
        scale: the larger of the two sides; given only if each box is a single point.
        stated: the error bound that the statement declares; given only if each box is a single
            point.
        slopes: a ball for the margin's slope along each coordinate; NaN if unknown.
        needed: 1 if all hypotheses are met, 0 if a hypothesis is violated, 2 if undecided.
    """

    margin: np.ndarray
    scale: np.ndarray
    stated: np.ndarray
    slopes: np.ndarray
    needed: np.ndarray


def balls_of(boxes: Sequence[Box], /) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the boxes' centres, half-widths (rounded up), and coordinates as balls (intervals)."""
    lower, upper = (np.array([box[i] for box in boxes]) for i in (0, 1))
    centres = np.where(lower == upper, lower, lower / 2 + upper / 2)
    radii = np.nextafter(np.maximum(upper - centres, centres - lower), np.inf)
    radii = np.where(lower == upper, 0.0, radii)
    ends = zip(centres.ravel(), radii.ravel(), lower.ravel())
    # The radius is rounded up, so a ball may reach below zero even if the box begins at zero.
    balls = reals(
        centres.shape,
        (known_nonnegative(arb(c, r)) if low >= 0 else arb(c, r) for c, r, low in ends),
    )
    return centres, radii, balls


class Programs:
    """The program that computes the margin (right side minus left side) on batches of boxes.

    The number of boxes in a batch is padded to a power of two. A program with a loop runs on one
    box at a time, because under `vmap` all boxes would leave the loop at the same step.
    """

    def __init__(
        self, margin: Callable[[jax.Array], Any], count: int, slack: float, reading: Reading
    ) -> None:
        """Add the exact number `slack` to the margin, so that the search tests a weaker claim."""
        self.reading, self.widened, self._slack = reading, False, arb(slack)
        self._margin, self._count = margin, count
        self._known: dict[tuple[int, bool], ClosedJaxpr] = {}
        alone = traced(margin, jnp.zeros(count))[0].jaxpr
        self._alone = any(eqn.primitive.name == "while" for eqn in equations(alone))

    def _for(self, rows: int, whole: bool) -> ClosedJaxpr:
        if (rows, whole) not in self._known:
            parts = self._margin if whole else lambda point: self._margin(point)[::3]
            points = jnp.zeros((rows, self._count))
            self._known[rows, whole] = traced(jax.vmap(parts), points)[0]
        return self._known[rows, whole]

    def __call__(self, balls: np.ndarray, slopes: bool) -> Values:
        """Enclose the margin on boxes, given as balls (intervals) of shape (rows, count)."""
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
            raise Undecided(
                "the enclosures (balls) are too wide to decide a branch or an index of the program"
            )
        return first


def _halves(box: Box, along: int) -> tuple[Box, Box] | None:
    low, high = box.lower[along], box.upper[along]
    middle = low / 2 + high / 2
    return _cut(box, along, middle) if low < middle < high else None


def _cut(box: Box, along: int, middle: float) -> tuple[Box, Box]:
    cut = lambda corner, value: (*corner[:along], value, *corner[along + 1 :])
    return Box(box.lower, cut(box.upper, middle)), Box(cut(box.lower, middle), box.upper)


def _face(box: Box, slopes: Sequence[arb]) -> Box | None:
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
    free = [j for j in range(len(radii)) if radii[j] > 0]
    finite = all(slopes[j].is_finite() for j in free)
    weight = lambda j: float(abs(slopes[j]).upper()) * radii[j] if finite else radii[j]
    return max(free, key=lambda j: (weight(j), radii[j]))


class Open(NamedTuple):
    """A box on which the claim is neither proved nor disproved.

    Attributes:
        least: a lower bound of the margin (right side minus left side, plus the slack) on the box;
            minus infinity if unknown.
    """

    box: Box
    least: float


@runtime_checkable
class Touching(Protocol):
    """The interface of `equality.Equalities`, which finds regions on which rhs >= lhs is proved."""

    @property
    def spent(self) -> bool:
        """Tell whether the search for regions around points of equality has used up its tries."""

    def find_region(self, box: Box) -> bool:
        """Look in a box for a region on which rhs >= lhs is proved; tell whether there is one."""

    def settles(self, box: Box) -> bool:
        """Tell whether one proof shows the claim on the whole box, without splitting the box."""

    def covered(self, point: Sequence[float]) -> bool:
        """Tell whether a proved region contains a point."""

    def holds(self, box: Box) -> bool:
        """Tell whether a proved region contains a box."""

    def cut(self, box: Box) -> tuple[int, float] | None:
        """Return axis and coordinate of a proved region's face inside a box, or None."""


class BoxSearch:
    """A branch and bound search, which next takes the box with the margin's least lower bound.

    Attributes:
        boxes: the number of boxes on which the search enclosed the margin (right side minus left
            side). `faces` counts the boxes that the search replaced by a face on which a monotone
            margin is least. `outside` counts the boxes that violate a hypothesis everywhere, and
            `inside` the proved boxes.
        narrowest: the smallest width of the boxes that the search cut in two.
        false: a point at which the sides violate the claim by at least `MARGIN`; else None.
        stuck: boxes without a proof: the claim is undecided at a point of the box, or the box is
            too narrow to be cut. `stuck_at` is the first point at which the claim stayed undecided.
    """

    def __init__(
        self, programs: Programs, boxes: Sequence[Box], equalities: Touching | None = None
    ) -> None:
        self.programs, self._equalities = programs, equalities
        self._heap: list[tuple[float, int, Box]] = []
        self._pushed = 0
        self._whole = _widths(boxes)
        self.boxes = self.faces = self.outside = self.inside = 0
        self.narrowest = math.inf
        self.false: tuple[float, ...] | None = None
        self.stuck: list[Open] = []
        self.stuck_at: tuple[float, ...] | None = None
        for box in boxes:
            self._push(box, -math.inf)

    def _push(self, box: Box, least: float) -> None:
        # If two boxes have equal bounds, the newer box comes first, which keeps few boxes open.
        self._pushed += 1
        heapq.heappush(self._heap, (least, -self._pushed, box))

    @property
    def todo(self) -> list[Box]:
        """Return the boxes on which the claim is still undecided."""
        return [box for _, _, box in self._heap]

    @property
    def worst(self) -> Open | None:
        """Return the undecided box with the least lower bound of the margin."""
        left = [Open(self._heap[0][2], self._heap[0][0])] if self._heap else []
        return min([*left, *self.stuck], key=lambda one: one.least, default=None)

    def step(self) -> None:
        """Enclose the margin on a batch of undecided boxes.

        If the claim is not proved on a box, one of the box's faces or its two halves replace the
        box.
        """
        taken = [heapq.heappop(self._heap) for _ in range(min(BATCH, len(self._heap)))]
        known = self._equalities
        batch = [Open(box, least) for least, _, box in taken if not (known and known.holds(box))]
        self.inside += len(taken) - len(batch)
        if not batch:
            return
        centres, radii, balls = balls_of([one.box for one in batch])
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
            # `middle` has the stated error subtracted; a false claim must fail with it added.
            if meets == 1 and (middle + 2 * stated + MARGIN * scale < 0 or middle == -INF):
                self.false = tuple(map(float, centres[i]))
                return
        for i, middle, scale, meets in zip(rest, middles.margin, middles.scale, middles.needed):
            # The slopes of a margin that may be undefined bound nothing.
            slopes = list(found.slopes[i]) if margin[i].is_finite() else [NAN] * len(radii[i])
            one = Open(batch[i].box, max(batch[i].least, _lower(margin[i])))
            point = tuple(map(float, centres[i]))
            # A box around a point where the claim is open has no proof, except at an equality.
            open_there = meets == 1 and not middle >= 0 and not (known and known.covered(point))
            state = _State(middle, scale, slopes, radii[i], bool(needed[i] == 1), open_there, point)
            self._settle(one, state)

    def _touch(self, *boxes: Box) -> bool:
        known = self._equalities
        return known is not None and not known.spent and any(map(known.find_region, boxes))

    def _settle(self, one: Open, at: "_State") -> None:
        (box, least), radii = one, at.radii
        varies = [abs(s).upper() * arb(r) for s, r in zip(at.slopes, radii) if r > 0]
        if all(v.is_finite() for v in varies):
            around = at.middle - sum(varies, arb(0))
            if around >= 0:
                self.inside += 1
                return
            least = max(least, _lower(around))
        known = self._equalities
        low = not at.middle > CLOSE * at.scale or self._is_narrow(box, VERY_NARROW)
        close = at.middle.is_finite() and low
        if close and known and known.settles(box):
            self.inside += 1
            return
        if at.open_there:
            if self._touch(box, Box(at.point, at.point)):
                self._push(box, least)
            else:
                self.stuck.append(Open(box, least))
                self.stuck_at = self.stuck_at or at.point
            return
        # A face may violate hypotheses that a part of the box meets: reduce only a whole box.
        face = _face(box, at.slopes) if at.whole else None
        if face is not None:
            self.faces += 1
            self._push(face, least)
            return
        cut = known.cut(box) if known else None
        if not cut and close and self._is_narrow(box) and self._touch(box):
            self._push(box, least)
            return
        halves = None
        if radii.any():
            halves = _cut(box, *cut) if cut else _halves(box, _widest(box, at.slopes, radii))
        if halves is None:
            self.stuck.append(Open(box, least))
            self.stuck_at = self.stuck_at or box.lower
            return
        self.narrowest = min(self.narrowest, float(2 * radii[radii > 0].min()))
        for half in halves:
            self._push(half, least)

    def _is_narrow(self, box: Box, share: float = NARROW) -> bool:
        widths = zip(box.lower, box.upper, self._whole)
        return all(b - a <= share * whole for a, b, whole in widths)


class _State(NamedTuple):
    """`open_there`: at the box's middle, the hypotheses hold but the claim is undecided."""

    middle: arb
    scale: arb
    slopes: list[arb]
    radii: np.ndarray
    whole: bool
    open_there: bool
    point: tuple[float, ...]


def _widths(boxes: Sequence[Box]) -> list[float]:
    ends = [(min(box.lower[j] for box in boxes), max(box.upper[j] for box in boxes))
            for j in range(len(boxes[0].lower))]  # fmt: skip
    return [b - a for a, b in ends]


def _lower(x: arb) -> float:
    """Return the lower end of a ball, rounded down to a float; minus infinity for a NaN ball."""
    if not x.is_finite():
        return math.inf if x == INF else -math.inf
    return float(np.nextafter(float(x.lower()), -np.inf))
