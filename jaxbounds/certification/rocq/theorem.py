"""Translate a disproof (exact instance, hypotheses and both sides) to scalar operations."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import jax
import numpy as np
from flint import arb

from jaxbounds.certification.sides import arrays_of, sides_of
from jaxbounds.claims.statements import Form, Instance, Size, Statement
from jaxbounds.falsification import fitted, float64_on_cpu
from jaxbounds.falsification.storage import flatten
from jaxbounds.programs.balls.boxes import MARGIN
from jaxbounds.programs.balls.interpreter import precision
from jaxbounds.programs.balls.rocq.ledger import Ledger
from jaxbounds.programs.balls.rocq.names import usable
from jaxbounds.programs.balls.rocq.rules import lifted, objects
from jaxbounds.programs.balls.rocq.terms import Fact, Real
from jaxbounds.programs.balls.rocq.translation import Translator, translated
from jaxbounds.programs.balls.values import NotSupported, Reading, Undecided, nonnegative

DIGITS = (12, 24, 48)
"""The translation tries these numbers of decimal digits for the bounds on each number. More digits
give sharper bounds and larger files."""
BITS = 320
"""Precision of ball arithmetic in bits; a larger number gives sharper bounds and takes longer."""
READINGS: tuple[Reading, ...] = ("ulp", "exact")  # "ulp" encloses "exact"


@dataclass(frozen=True, eq=False)
class Translated:
    """A disproof translated to scalar operations, from which a Rocq file is written.

    Attributes:
        ledger: all numbers and comparisons that the program computes, in the program's order.
        opened: the position in the ledger at which the operations of the sides begin.
        lhs: the translated left side; for an equation, only the entry at which the sides differ.
        rhs: the translated right side; for an equation, only the entry at which the sides differ.
        entry: the index, in the flattened sides, of the entry at which the sides differ; -1 for
            scalar sides.
        reading: whether the file treats the program's constants as exact or as rounded numbers.
    """

    statement: Statement
    form: Form
    size: Mapping[str, int]
    instance: dict[str, np.ndarray]
    ledger: Ledger
    hypotheses: dict[str, Fact]
    opened: int
    lhs: Real
    rhs: Real
    error: Real
    entry: int
    reading: Reading


def theorem_of(
    statement: Statement,
    form: Form,
    instance: Instance,
    size: Mapping[str, float],
    /,
    *,
    readings: tuple[Reading, ...] = READINGS,
    margin: float = MARGIN,
    seconds: float | None = None,
) -> Translated:
    """Translate the proof that an instance violates a claim to scalar operations.

    Raises:
        NotSupported: if an operation has no translation; the message names the operation.
        Undecided: if the bounds on the translated numbers are too wide to prove the violation.
    """
    static = Size(dict(size))
    problem: Exception = NotSupported("readings=() leaves nothing to try. Try READINGS")
    with float64_on_cpu():
        given = fitted(statement, form, arrays_of(instance, statement.host), static)
        for reading in readings:
            for digits in DIGITS:
                try:
                    with precision(BITS):
                        run = Translator(Ledger(digits), reading, seconds)
                        return _attempt(statement, form, given, static, run, margin)
                except Undecided as found:
                    problem = found
    raise problem


def _leaves(instance: Any, ledger: Ledger) -> tuple[dict[int, np.ndarray], dict[str, np.ndarray]]:
    by_place, by_name = {}, {}
    leaves = jax.tree.leaves(instance)
    paths = list(flatten(jax.tree.map(np.asarray, instance)))
    for i, (path, leaf) in enumerate(zip(paths, leaves, strict=True)):
        x = np.asarray(leaf)
        if x.dtype.kind not in "fiu":
            continue
        name = usable(path)
        suffixes = ["".join(f"_{k}" for k in index) for index in np.ndindex(*x.shape)]
        values = (ledger.given(name + s, Fraction(v)) for s, v in zip(suffixes, x.ravel().tolist()))
        by_place[i] = by_name[name] = objects(x.shape, values)
    return by_place, by_name


def _attempt(
    statement: Statement, form: Form, given: Any, size: Size, run: Translator, margin: float
) -> Translated:
    ledger = run.ledger
    names, instance = _leaves(given, ledger)
    known: dict[str, Fact] = {}
    for hypotheses in (statement.hypotheses, form.hypotheses):
        if hypotheses is None:
            continue
        named = lambda i, hypotheses=hypotheses: dict(hypotheses(i, size))
        for name, value in translated(named, given, names, run).items():
            known[name] = _whole(name, value, ledger)
    opened = ledger.now
    sides = sides_of(statement, form, size)
    if statement.host:
        left, right = translated(lambda i: sides(i)[:2], given, names, run)
        error: Any = np.asarray(sides(given)[2], float)
    else:
        left, right, error = translated(sides, given, names, run)
    off = _largest_error(lifted(error, ledger).ravel(), ledger)
    lhs, rhs, entry = _apart(
        "<=" if statement.is_bound else "=",
        lifted(left, ledger),
        lifted(right, ledger),
        off,
        margin,
    )
    return Translated(
        statement, form, dict(size), instance, ledger, known, opened, lhs, rhs, off, entry,
        run.reading,
    )  # fmt: skip


def _whole(name: str, value: Any, ledger: Ledger) -> Fact:
    facts = lifted(value, ledger).ravel()
    if not all(isinstance(f, Fact) for f in facts):
        raise NotSupported(
            f"the hypothesis {name!r} returns type={type(value).__name__}, expected booleans. Try "
            "a comparison, such as a <= b"
        )
    if not all(f.truth for f in facts):
        raise Undecided(f"the instance violates the hypothesis {name!r}")
    return Fact(True, tuple(dict.fromkeys(c for f in facts for c in f.because)), ledger)


def _largest_error(errors: np.ndarray, ledger: Ledger) -> Real:
    for e in errors:
        if e.why or not e.ball.is_finite() or not nonnegative(e.ball):
            raise Undecided("the rounding error Sides.error may be negative or NaN")
    if not len(errors):
        return ledger.literal(0)
    return max(errors, key=lambda e: float(e.ball.upper()))


def _apart(
    relation: str, left: np.ndarray, right: np.ndarray, error: Real, margin: float
) -> tuple[Real, Real, int]:
    left, right = left.ravel(), right.ravel()
    if left.shape != right.shape:
        left, right = np.broadcast_arrays(left, right)
    if relation == "<=" and len(left) != 1:
        raise NotSupported(
            f"both sides of a <= must be scalars, got entries={len(left)}. Try jnp.max of each side"
        )
    for x in (*left, *right):
        if x.why:
            raise NotSupported(
                f"a side of relation={relation!r} is undefined: {x.why}. Try an instance on which "
                "the side is defined"
            )
        if not x.ball.is_finite():
            raise NotSupported(
                f"a side of relation={relation!r} is infinite, and a Rocq file takes real numbers "
                f"only. Try another instance"
            )
    size = lambda x: abs(x.ball).upper()
    scale = max(map(size, (*left, *right)), default=arb(0))
    best, where = arb(-math.inf), -1
    for i, (a, b) in enumerate(zip(left, right)):
        gap = a.ball - b.ball
        gap = ((gap if relation == "<=" else abs(gap)) - error.ball).lower()
        if gap > best:
            best, where = gap, i
    if where < 0 or not best > 0 or not best >= margin * scale:
        raise Undecided("the bounds of both sides are too wide to decide the claim")
    return left[where], right[where], where if len(left) > 1 else -1
