"""Compute the ratio lhs/rhs and its slopes in ball arithmetic, at an instance of exact numbers.

The certified digits belong to lhs/rhs at this instance, so they prove a lower estimate of the
supremum. The slopes at the instance, nearby instances and further searches suggest, but do not
prove, that no instance has a larger lhs/rhs.
"""

import itertools
import math
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb

from jaxbounds.certification.enclosures import enclosures
from jaxbounds.claims.statements import CONTROL, Instance
from jaxbounds.constants.polish import Point
from jaxbounds.constants.problem import Problem, flat, unflat
from jaxbounds.programs.balls.interpreter import Interpreter, precision, traced
from jaxbounds.programs.balls.values import (
    Flags,
    Reading,
    Undecided,
    as_flags,
    as_reals,
    enclosed,
    is_soft,
    reals,
)

BITS = 448
"""The precision of balls (enclosing intervals) in bits. A computation with more bits certifies more
digits and takes longer."""
ROUNDS, SURE = 5, 1e-40
"""The largest number of steps of Newton's method, and the relative gain of the ratio lhs/rhs below
which the method stops. More steps of Newton's method, or a smaller gain, certify more digits and
take longer."""
STEP = 2.0**-100
"""The relative step of the difference quotients that estimate slopes.

This step reveals relative gains down to 1e-30; a larger step misses more small gains.
"""


class Ratio:
    """The ratio lhs/rhs of a problem, as a function of instances of floats or of intervals.

    An enclosure stops with `Undecided` after `seconds` of processor time. If `project` is true, the
    function first projects an instance onto the hypotheses.
    """

    def __init__(
        self, problem: Problem, instance: Instance, *, seconds: float, project: bool = False
    ) -> None:
        statement, size = problem.statement, problem.size
        hypotheses = [h for h in (statement.hypotheses, statement.forms[0].hypotheses) if h]

        def program(given: Instance) -> Any:
            moved = problem.projected(given) if project and self._put is None else given
            sides = statement.evaluate(moved, size)
            named = [flag for h in hypotheses for flag in h(moved, size).values()]
            return sides.lhs, sides.rhs[CONTROL], named

        self._program, self._host = program, statement.host
        self._until = time.process_time() + seconds
        self._traced: Any = None
        self._put: Any = None
        if not statement.host:
            shapes = jax.tree.map(lambda x: np.zeros(x.shape) if is_soft(x) else x, instance)
            given = jax.tree.map(jnp.asarray, shapes)
            if project:
                put, structure = traced(problem.projected, given)
                self._put = put if structure == jax.tree.structure(given) else None
            self._traced = traced(program, given)

    def _ways(self, instance: Instance, reading: Reading) -> list[Any]:
        left = self._until - time.process_time()
        if left <= 0:
            raise Undecided("the enclosure took longer than its time limit")
        if self._host:
            found = enclosures(self._program, instance, reading=reading, bits=BITS, seconds=left)
            if found.taken(True):
                raise Undecided("numbers that were computed on the host count as exact")
            return found.ways
        closed, structure = self._traced
        run = Interpreter(reading, seconds=left)
        placed = [[enclosed(x) for x in jax.tree.leaves(instance)]]
        if self._put is not None:
            # Every projected point is an instance, whichever values the constants have.
            placed = list(Interpreter("exact", seconds=left).ways(self._put, *placed[0]))
        ways = itertools.chain.from_iterable(run.ways(closed, *given) for given in placed)
        return [jax.tree.unflatten(structure, out) for out in ways]

    def __call__(self, instance: Instance, reading: Reading = "exact") -> arb:
        """Enclose the ratio lhs/rhs at an instance.

        Under the reading "ulp" a float constant of the program also means nearby reals. Only an
        enclosure with "ulp" certifies digits of the constant.

        Raises:
            Undecided: if ball arithmetic cannot decide a hypothesis or a side, or the time is over.
            NotSupported: if an operation has no rule in ball arithmetic.
        """
        with precision(BITS):
            balls, ways = [], self._ways(instance, reading)
            # "ulp" may read a small tolerance as zero; "exact" then decides about the hypotheses.
            coded = lambda: reading != "exact" and _all_met(self._ways(instance, "exact"))
            if not (_all_met(ways) or coded()):
                raise Undecided("ball arithmetic cannot confirm a hypothesis at this instance")
            for lhs, rhs, _ in ways:
                left, right = as_reals(lhs).ravel()[0], as_reals(rhs).ravel()[0]
                if not right > 0 or not left.is_finite():
                    raise Undecided(
                        "the left side may be infinite, or the right side may not be positive"
                    )
                balls.append(left / right)
            hull = balls[0]
            for ball in balls[1:]:
                hull = hull.union(ball)
            return hull


def _all_met(ways: list[Any]) -> bool:
    flags = [flag for *_, named in ways for flag in named]
    table = [as_flags(flag) if isinstance(flag, Flags) else np.asarray(flag) for flag in flags]
    return all(np.all(values == 1) for values in table)


def at_values(point: Point, values: list[arb], /) -> Instance:
    """Return a point's instance with balls (intervals) as the values of its free coordinates."""
    moved = point.ties.expand(reals((len(values),), values)) if values else flat(point.instance)
    return unflat(point.instance, moved)


class Ascended(NamedTuple):
    """The result of Newton's steps towards a stationary point, in ball arithmetic.

    Attributes:
        ball: the ratio lhs/rhs after the last step, with certified digits.
        gain: the further relative gain of the ratio lhs/rhs that a Newton step predicts from
            slopes.
        values: the values of the k groups of tied coordinates after the last step, of shape (k,).
    """

    ball: arb
    gain: float
    values: list[arb]


def ascent(ratio: Ratio, point: Point, directions: np.ndarray, bent: np.ndarray, /) -> Ascended:
    """Take Newton's steps in ball arithmetic, and estimate the remaining gain of the ratio lhs/rhs.

    The estimated further gain of the ratio is slope^2 / (2 curvature) in a curved direction, and
    the absolute slope in a flat direction. The estimated gain is zero in a direction along which
    the ratio falls on both sides of the point.

    The columns of `directions` are k directions of moves, shape (k, k). The array `bent` holds -d^2
    log(ratio) along each direction.
    """
    with precision(BITS):
        values, step = [arb(v) for v in point.values], arb(STEP)
        start = values
        columns = [[arb(v) for v in column] for column in directions.T]
        moved = lambda amount, column: [v + amount * c for v, c in zip(values, column)]
        before = math.inf
        for _ in range(ROUNDS):
            here = ratio(at_values(point, values))
            steps, gain = [], 0.0
            for column, curved in zip(columns, bent):
                ways = [ratio(at_values(point, moved(s * step, column))) for s in (1, -1)]
                rises = [((way - here) / here / step).upper() for way in ways]
                slope = float(max(*rises, arb(0)))
                gain += slope**2 / curved / 2 if curved > 0 else slope
                central = (ways[0] - ways[1]) / here / (2 * step)
                newton = central / arb(float(curved)) if curved > 0 and slope > 0 else arb(0)
                steps.append(newton.mid())
            if gain < SURE or gain > before / 10:
                break
            before = gain
            for amount, column in zip(steps, columns):
                values = [(v + amount * c).mid() for v, c in zip(values, column)]
        there, here = (ratio(at_values(point, v), "ulp") for v in (values, start))
        # A step may cross a jump; keep the start if the start has the larger ratio.
        return Ascended(here, math.inf, start) if there < here else Ascended(there, gain, values)


def digits_of(x: arb, /) -> int:
    """Return the number of decimal digits that a ball (interval) determines."""
    return max(0, int(min(x.rel_accuracy_bits(), BITS) * 0.30103)) if x.is_finite() else 0
