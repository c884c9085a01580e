"""Check verdicts: compare float64 measurements with ball arithmetic (rigorous error bounds).

The crosscheck draws random instances of a claim. Ball arithmetic must confirm the hypotheses, the
claim, and the float64 difference of the sides up to the error that `evaluate` states.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import jax
import numpy as np
from flint import arb

from jaxbounds.certification.apart import apart
from jaxbounds.certification.enclosures import enclosures, hypotheses_of
from jaxbounds.certification.sides import arrays_of, sides_of
from jaxbounds.claims.statements import Form, Instance, Size, Statement
from jaxbounds.falsification import float64_on_cpu
from jaxbounds.falsification.measure import measure
from jaxbounds.programs.balls.boxes import MARGIN
from jaxbounds.programs.balls.interpreter import precision
from jaxbounds.programs.balls.values import NotSupported, Undecided, as_reals

Finding = Literal["agrees", "violated", "error too small", "hypothesis missed", "apart", "not run"]
ROUNDING = 1e-13
"""The crosscheck accepts a float64 difference that is wrong by this share of the larger side. A
larger value makes the check report fewer errors."""
BITS = 160
"""Precision of ball arithmetic (rigorous error bounds) in bits; a larger number gives sharper
bounds and takes longer."""


@dataclass(frozen=True, kw_only=True)
class Crosscheck:
    """The crosscheck's result for one version of a claim on one random instance.

    Attributes:
        form: the name of the claim's version; empty if the statement's program failed.
        finding: one of six words for the result of the check. "agrees": float64 and ball arithmetic
            do not contradict each other. "violated" and "hypothesis missed": ball arithmetic proves
            that the instance violates the claim or a hypothesis, although float64 accepted it.
            "error too small": the float difference of the sides is wrong by more than the error
            that `evaluate` states. "apart": the sides of an identity certainly differ, by `amount`.
            "not run": the check could not run; see `reason`.
        amount: the size of the contradiction between float64 and ball arithmetic, relative to the
            larger side.
        seconds: the processor time that the check took, in seconds.
    """

    id: str
    form: str
    finding: Finding
    amount: float = 0.0
    reason: str = ""
    seconds: float = 0.0


def _draws(statement: Statement, size: Size, count: int, seed: int) -> Iterator[Instance]:
    for sampler in statement.samplers.values():
        for key in jax.random.split(jax.random.key(seed), count):
            yield sampler(key, size)
    if statement.cases is not None:
        cases = statement.cases(size)
        for row in range(min(count, len(jax.tree.leaves(cases)[0]))):
            yield jax.tree.map(lambda leaf, row=row: leaf[row], cases)


def crosscheck(
    statement: Statement, /, *, draws: int = 2, seed: int = 0, seconds: float = 20.0
) -> list[Crosscheck]:
    """Check every claim version that should hold, on instances of the statement's smallest size.

    Args:
        statement: a statement of any kind; JAX must be able to trace its `evaluate`.
        draws: the number of random instances from each sampler, and also the number of the
            statement's hand-written instances.
        seed: the seed of the random draws.
        seconds: the processor time in seconds after which the check stops.
    """
    end = time.process_time() + seconds
    forms = [form for form in statement.forms if form.expected in ("holds", "vacuous")]
    size = Size(dict(statement.sizes[0]))
    found: list[Crosscheck] = []
    with float64_on_cpu():
        for drawn in _draws(statement, size, draws, seed):
            instance = arrays_of(drawn, statement.host)
            for form in forms:
                if time.process_time() > end:
                    return found
                started = time.process_time()
                try:
                    finding, amount, reason = _compare(statement, form, instance, size, end)
                except (Undecided, NotSupported) as problem:
                    finding, amount, reason = "not run", 0.0, str(problem)
                took = time.process_time() - started
                found.append(
                    Crosscheck(
                        id=statement.id, form=form.name, finding=finding, amount=amount,
                        reason=reason, seconds=took,
                    )
                )  # fmt: skip
    return found


def _compare(
    statement: Statement, form: Form, instance: Any, size: Size, end: float
) -> tuple[Finding, float, str]:
    options: Any = {"bits": BITS, "seconds": max(end - time.process_time(), 0.1)}
    counted = measure(statement, size)(instance)
    column = counted.column([f.name for f in statement.forms].index(form.name))
    if not bool(column.counted):
        return "agrees", 0.0, "the draw misses a hypothesis, so it does not count"
    missed = [
        name
        for name, word in hypotheses_of(statement, form, instance, size)(**options).words.items()
        if word == "missed"
    ]
    if missed:
        return "hypothesis missed", 0.0, ", ".join(missed)

    sides = sides_of(statement, form, size)
    *near, stated = (np.asarray(part, float).ravel() for part in sides(instance))
    error = float(np.max(stated))
    # "error too small" is about the whole difference, so the stated error is not subtracted here.
    ways = [way[:2] for way in enclosures(sides, instance, reading="ulp", **options).ways]
    with precision(BITS):
        gap = min(apart(statement.relation, *way).amount for way in ways)
        off = min(_off(near, way) for way in ways)
        scale = max(float(np.max(np.abs(side), initial=0.0)) for side in near)
    if statement.relation == "=" and statement.kind != "rate":
        tolerance = max(statement.tolerance, 2 * error / scale if scale else 0.0)
        if gap > tolerance:
            return "apart", float(gap), "the sides of an identity differ"
    elif gap > MARGIN and statement.kind in ("inequality", "construction"):
        return "violated", float(gap), "the draw meets all hypotheses and violates the claim"
    allowed = error if error > 0 else statement.tolerance * scale
    if off > max(allowed, ROUNDING * scale):
        reason = f"the float difference is wrong by {off:.2g}, and the stated error is {error:.2g}"
        return "error too small", off / scale, reason
    return "agrees", float(gap), ""


def _off(near: list[np.ndarray], way: Any) -> float:
    left, right = (as_reals(side).ravel() for side in way)
    pairs = zip(*np.broadcast_arrays(*near), *np.broadcast_arrays(left, right))
    off = [abs((l - r) - (arb(float(a)) - arb(float(b)))).lower() for a, b, l, r in pairs
           if np.isfinite(a) and np.isfinite(b) and (l - r).is_finite()]  # fmt: skip
    return max((float(v) for v in off), default=0.0)
