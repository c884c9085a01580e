"""A JAX function beside an independent evaluation, and the judgement of its enclosure."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxbounds.certification import Flags, Undecided, enclose, precision
from jaxbounds.ground.jax_internals import ClosedJaxpr, JaxprEqn, Primitive
from jaxbounds.programs.balls.interpreter import RULES, Interpreter
from jaxbounds.programs.primitives import PRIMITIVES
from jaxbounds.programs.traces import equations
from oracle import draws, truth

Draw = Callable[[np.random.Generator], list[Any]]
TIGHT = 1e-40


@dataclass(frozen=True)
class Program:
    """A function of arrays of which one rule is judged.

    Attributes:
        function: in JAX.
        oracle: the same, of object arrays of fractions (and of the integers, as they are).
        draw: its arguments, as NumPy arrays: floats become points or boxes.
        tight: the radius allowed, relative, at 192 bits on points; infinite where the rule is loose
            (roots of singular matrices) or unknown.
        forks: on boxes a choice may remain open.
        signs: of vectors, which fork also at points that hold a zero.
        renamed: a primitive that is given the name of the rule, where programs seldom have it.
    """

    function: Callable[..., Any]
    oracle: Callable[..., Any]
    draw: Draw
    tight: float = TIGHT
    forks: bool = False
    signs: bool = False
    renamed: str = ""


def floats(*shapes: tuple[int, ...], low: float = -4, high: float = 4) -> Draw:
    """Arrays of those shapes."""
    return lambda rng: [draws.entries(rng, shape, low, high) for shape in shapes]


def signs(x: np.ndarray) -> np.ndarray:
    """Which entries are positive, as plain booleans."""
    return (x > 0).astype(bool)


def of_fractions(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """A scalar function entry by entry, None where it is undefined."""
    return np.frompyfunc(function, count, 1)


def _renamed(closed: ClosedJaxpr, old: str, new: str) -> ClosedJaxpr:
    known = PRIMITIVES[new].reads | PRIMITIVES[new].may

    def name(eqn: JaxprEqn) -> JaxprEqn:
        params = {name: value for name, value in eqn.params.items() if name in known}
        same = eqn.primitive.name != old
        return eqn if same else eqn.replace(primitive=Primitive(new), params=params)

    return closed.replace(jaxpr=closed.jaxpr.replace(eqns=list(map(name, closed.jaxpr.eqns))))


def ways_of(program: Program, name: str, boxes: list[Any], seen: set[str]) -> list[Any]:
    """Every way through it at 192 bits; the rules that acted are noted in `seen`."""

    def noted(primitive: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        def act(*given: Any) -> Any:
            seen.add(primitive)
            return rule(*given)

        return act

    rules = {primitive: noted(primitive, rule) for primitive, rule in RULES.items()}
    if not program.renamed:
        return [jax.tree.leaves(way) for way in enclose(program.function, *boxes, rules=rules).ways]
    shapes = [np.zeros(x.shape) if x.dtype == object else x for x in boxes]
    closed = _renamed(jax.make_jaxpr(program.function)(*shapes), program.renamed, name)
    with precision(192):
        return list(Interpreter(rules=rules).ways(closed, *boxes))


def is_made(name: str, program: Program) -> bool:
    """Whether the JAX at hand writes a program with this primitive."""
    given = program.draw(np.random.default_rng(0))
    made = {eqn.primitive.name for eqn in equations(jax.make_jaxpr(program.function)(*given).jaxpr)}
    return bool(program.renamed) or name in made


def agrees(found: Any, true: Any, decided: bool) -> bool:
    """Whether an array that was found contains a true one of the same shape.

    Where it is to be `decided`, a number that there is must be known.
    """
    true = np.asarray(true, dtype=object)
    if np.shape(found) != true.shape:
        return False
    if isinstance(found, np.ndarray) and found.dtype == object:
        known = all(t is None or not v.is_nan() for v, t in zip(found.ravel(), true.ravel()))
        return (known or not decided) and all(map(truth.encloses, found.ravel(), true.ravel()))
    if isinstance(found, Flags):
        return not decided and all(
            a in (2, int(b)) for a, b in zip(found.ravel().tolist(), true.ravel())
        )
    return np.array_equal(np.asarray(found), true)


def radius(way: list[Any]) -> float:
    """The largest radius of what was found, relative where the number exceeds one."""
    worst = 0.0
    for x in way:
        for v in x.ravel() if isinstance(x, np.ndarray) and x.dtype == object else ():
            if v.is_finite():
                worst = max(worst, float(v.rad()) / max(1.0, abs(float(v.mid()))))
    return worst


def judge(name: str, program: Program, count: int, seed: int) -> tuple[set[str], int]:
    """`count` draws, points and boxes in turn; the rules that acted, and the comparisons made."""
    seen: set[str] = set()
    compared = 0
    for i in range(count):
        rng = np.random.default_rng((seed, i))
        given, wide = program.draw(rng), i % 2 == 1
        known = not wide and math.isfinite(program.tight)
        radii = draws.RADII if wide else (0.0,)
        boxes = [draws.box(x, rng, radii) if x.dtype.kind == "f" else x for x in given]
        try:
            ways = ways_of(program, name, [x.copy() for x in boxes], seen)
        except Undecided:
            assert wide and program.forks, f"{name}: undecided on {given}"
            continue
        if not wide:
            assert len(ways) == 1 or program.signs, f"{name}: {len(ways)} ways on points"
            assert radius(ways[0]) <= program.tight, f"{name}: {ways[0]} on points"
        for _ in range(4 if wide else 1):
            at = [next(draws.places(x, rng, 1)) if x.dtype == object else x for x in boxes]
            true = program.oracle(*at)
            leaves = list(true) if isinstance(true, tuple) else [true]
            fits = lambda way, parts=leaves, sure=known: (
                len(way) == len(parts) and all(agrees(x, t, sure) for x, t in zip(way, parts))
            )
            assert any(map(fits, ways)), f"{name}: {ways} does not contain {leaves} at {at}"
            compared += 1
    return seen, compared
