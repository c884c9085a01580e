"""A claim proved on a box, by branch and bound.

The margin `rhs - lhs + slack` is enclosed on boxes: by its balls, by the mean value form about the
centre (value there, less |slope| times radius), and on a face where it is monotone. What is left
is cut in two. A point at which the margin is certainly negative disproves the claim.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb
from jax.extend.core import ClosedJaxpr

from jaxbounds.certify.interpreter import Interpreter, precision, traced
from jaxbounds.certify.slopes import Sloped, sloped
from jaxbounds.certify.values import (
    NAN,
    Flags,
    NotSupported,
    Undecided,
    as_flags,
    as_reals,
    reals,
)
from jaxbounds.falsify import verification
from jaxbounds.falsify.measure import met, pick
from jaxbounds.statements import Domain, Form, Size, Statement

Outcome = Literal["proved on D", "false on D", "undecided"]
BATCH = 32
"""Boxes that are enclosed together."""


class Box(NamedTuple):
    """A box by its corners; a coordinate may be a point."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What branch and bound says about a form on a domain.

    Attributes:
        id: the statement.
        form: its form.
        word: "proved on D" (every instance of the domain that meets the hypotheses satisfies the
            form up to the slack), "false on D", or "undecided".
        domain: D in words.
        slack: by how much the claim proved is weaker.
        reason: where it is not proved.
        boxes: that were enclosed.
        faces: boxes of which only a face was left, where the margin is monotone.
        outside: boxes of which no instance meets the hypotheses.
        narrowest: the smallest width of a box.
        point: where it is false: the point of the chart.
        left: boxes that are open when the budget ends; give them to `prove` to go on.
        bits: precision of the balls.
        seconds: that it took.
    """

    id: str
    form: str
    word: Outcome
    domain: str
    slack: float = 0.0
    reason: str = ""
    boxes: int = 0
    faces: int = 0
    outside: int = 0
    narrowest: float = math.inf
    point: tuple[float, ...] | None = None
    left: tuple[Box, ...] = ()
    bits: int = 0
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict."""
        return asdict(self)


def _margin(statement: Statement, form: Form, domain: Domain) -> Callable[[jax.Array], Any]:
    """From a point to the margin, and whether the point must satisfy the claim."""

    def margin(point: jax.Array) -> tuple[jax.Array, jax.Array]:
        instance, size = domain.instance(point), Size(dict(domain.size))
        sides = statement.evaluate(instance, size)
        lhs, rhs = (
            jnp.asarray(pick(side, form.name, which, statement), float)
            for side, which in ((sides.lhs, "lhs"), (sides.rhs, "rhs"))
        )
        least = rhs - lhs if statement.relation == "<=" else -jnp.max(jnp.abs(lhs - rhs))
        named = met(statement.hypotheses, instance, size) | met(form.hypotheses, instance, size)
        named.pop("finite")
        required = jnp.stack([jnp.asarray(True), *named.values()])
        return least + domain.slack, jnp.all(required)

    return margin


def balls_of(boxes: Sequence[Box], /) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centres (floats), radii (rounded up), and the balls."""
    lower, upper = (np.array([box[i] for box in boxes]) for i in (0, 1))
    centres = np.where(lower == upper, lower, lower + (upper - lower) / 2)
    radii = np.nextafter(np.maximum(upper - centres, centres - lower), np.inf)
    radii = np.where(lower == upper, 0.0, radii)
    balls = reals(centres.shape, (arb(c, r) for c, r in zip(centres.ravel(), radii.ravel())))
    return centres, radii, balls


class _Programs:
    """The margin's program for batches of boxes, padded to powers of two."""

    def __init__(self, margin: Callable[[jax.Array], Any], count: int) -> None:
        self._margin, self._count = jax.vmap(margin), count
        self._known: dict[int, ClosedJaxpr] = {}

    def _for(self, rows: int) -> ClosedJaxpr:
        if rows not in self._known:
            self._known[rows] = traced(self._margin, jnp.zeros((rows, self._count)))[0]
        return self._known[rows]

    def __call__(self, balls: np.ndarray, slopes: bool) -> Any:
        rows = len(balls)
        padded = 1 << (rows - 1).bit_length()
        given = np.concatenate([balls, np.repeat(balls[:1], padded - rows, axis=0)])
        program = self._for(padded)
        if slopes:
            try:
                value, flags = sloped(program, given)
            except NotSupported:
                slopes = False
        if not slopes:
            (value, flags), *others = Interpreter().ways(program, given)
            if others:
                raise Undecided("a discrete choice is open")
        needed = as_flags(flags)[:rows] if isinstance(flags, Flags) else np.asarray(flags)[:rows]
        if isinstance(value, Sloped):
            return value.value[:rows], np.stack([s[:rows] for s in value.slopes], -1), needed
        unknown = reals((rows, self._count), [NAN] * (rows * self._count))
        return as_reals(value)[:rows], unknown, needed


def _halves(box: Box, along: int) -> tuple[Box, Box] | None:
    low, high = box.lower[along], box.upper[along]
    middle = low + (high - low) / 2
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


class _Search:
    """The boxes that are open, and what became of the others."""

    def __init__(self, programs: _Programs, boxes: Sequence[Box]) -> None:
        self.programs, self.todo = programs, list(boxes)
        self.boxes = self.faces = self.outside = self.inside = 0
        self.narrowest = math.inf
        self.false: tuple[float, ...] | None = None
        self.stuck: Box | None = None

    def step(self) -> None:
        """Enclose some boxes: what is not proved comes back as a face or as halves."""
        batch = [self.todo.pop() for _ in range(min(BATCH, len(self.todo)))]
        centres, radii, balls = balls_of(batch)
        values, slopes, needed = self.programs(balls, slopes=True)
        rest = [i for i, v in enumerate(values) if not (needed[i] == 0 or v >= 0)]
        self.boxes += len(batch)
        self.outside += int(np.sum(np.asarray(needed) == 0))
        self.inside += sum(bool(n != 0 and v >= 0) for n, v in zip(needed, values))
        if not rest:
            return
        points = reals((len(rest), centres.shape[1]), (arb(c) for c in centres[rest].ravel()))
        middles, _, certain = self.programs(points, slopes=False)
        for i, middle, meets in zip(rest, middles, certain):
            if bool(meets == 1) and middle < 0:
                self.false = tuple(map(float, centres[i]))
                return
            whole = bool(needed[i] == 1)
            self._settle(batch[i], middle, whole, list(slopes[i]), radii[i])

    def _settle(self, box: Box, middle: arb, whole: bool, slopes, radii) -> None:
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


def prove(
    statement: Statement,
    form: str,
    domain: Domain,
    /,
    *,
    boxes: int = 20_000,
    seconds: float = 120.0,
    bits: int = 128,
    start: Sequence[Box] = (),
    progress: Callable[[int, int], None] = lambda done, left: None,
) -> Proof:
    """Try to prove one form of a statement on a domain.

    Args:
        statement: of kind "<=" or "=", evaluated by JAX.
        form: the name of one of its forms.
        domain: the box, its chart, and the slack.
        boxes: how many may be enclosed.
        seconds: after which it is undecided.
        bits: precision of the balls.
        start: what an earlier proof left; the whole domain if empty.
        progress: told how many boxes were enclosed and how many are open.

    Raises:
        KeyError: if there is no such form.
    """
    claim, started = statement.form(form), time.monotonic()
    programs = _Programs(_margin(statement, claim, domain), len(domain.lower))
    search = _Search(programs, start or [Box(tuple(domain.lower), tuple(domain.upper))])
    reason = ""
    with verification(), precision(bits):
        try:
            for _ in _until(search, boxes, started + seconds):
                search.step()
                progress(search.boxes, len(search.todo))
        except (Undecided, NotSupported) as problem:
            reason = str(problem)
    stuck = search.stuck is not None
    if not (search.todo or search.inside or search.false or stuck):
        reason = reason or "no instance of the domain meets the hypotheses"
    proved = not (search.todo or reason or search.false or stuck)
    if not proved and not reason:
        reason = (
            f"false at {search.false}" if search.false
            else f"open at {search.stuck.lower}" if search.stuck is not None
            else f"{len(search.todo)} boxes are open at the end of the budget"
        )  # fmt: skip
    return Proof(
        id=statement.id,
        form=form,
        word="proved on D" if proved else "false on D" if search.false else "undecided",
        domain=domain.name,
        slack=domain.slack,
        reason=reason,
        boxes=search.boxes,
        faces=search.faces,
        outside=search.outside,
        narrowest=search.narrowest,
        point=search.false,
        left=tuple(search.todo),
        bits=bits,
        seconds=time.monotonic() - started,
    )


def _until(search: _Search, boxes: int, end: float) -> Iterator[None]:
    while search.todo and search.false is None and search.stuck is None:
        if search.boxes >= boxes or time.monotonic() > end:
            return
        yield
