"""From a witness to a verdict: which recomputation belongs to it, and what it has to show."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .intervals import greatest, interval
from .witness import BadWitness, Witness, read

GAP = interval(Fraction(1, 10**6))
"""By this much, relative to the larger side, both sides have to differ."""

WIDTH = interval(Fraction(1, 10**6))
"""An enclosure wider than this, relative to its value, says too little to be compared."""

NEAR = interval(Fraction(1, 10**9))
"""Enclosures meet up to this share of them: a program's sqrt(2) is a float, the paper's is not."""


@dataclass(frozen=True)
class Sides:
    """What was recomputed.

    Attributes:
        lhs, rhs: numbers, or of an identity equally many.
    """

    lhs: Any
    rhs: Any


class NotCertain(ValueError):
    """A hypothesis that the instance misses, or may miss."""


def assume(hypotheses: dict[str, bool]) -> None:
    """Goes on only where everything that the paper assumes is certainly so.

    Raises:
        NotCertain: naming what is not.
    """
    missed = [name for name, certain in hypotheses.items() if not certain]
    if missed:
        raise NotCertain(f"not certainly so: {'; '.join(missed)}")


@dataclass(frozen=True)
class Verdict:
    """`confirmed`, or why not; both sides as recomputed, where they were."""

    confirmed: bool
    reason: str
    lhs: Any = None
    rhs: Any = None


CHECKS: dict[tuple[str, str], Callable[[Witness], Sides]] = {}
"""The recomputation of each failing form, by statement and form."""


def checks(statement: str, *forms: str) -> Callable[[Callable], Callable]:
    """Registers a recomputation for these forms of a statement."""

    def register(function: Callable[[Witness], Sides]) -> Callable[[Witness], Sides]:
        CHECKS.update({(statement, form): function for form in forms})
        return function

    return register


def check(document: dict[str, Any]) -> Verdict:
    """Whether a witness proves that its form is false.

    Confirmed are: hypotheses that certainly hold, a violation that certainly is one, by `GAP`, and
    enclosures that meet the recomputed ones.
    """
    try:
        witness = read(document)
        recompute = CHECKS.get((witness.statement, witness.form))
        if recompute is None:
            reason = f"no recomputation for the form '{witness.form}' of {witness.statement}"
            return Verdict(False, reason)
        sides = recompute(witness)
    except (BadWitness, NotCertain) as error:
        return Verdict(False, str(error))
    except (KeyError, ValueError, IndexError, ZeroDivisionError) as error:
        return Verdict(False, f"{type(error).__name__}: {error}")
    return _compared(witness, sides)


def _compared(witness: Witness, sides: Sides) -> Verdict:
    left, right = _flat(sides.lhs), _flat(sides.rhs)
    if len(left) != len(right) or not 0 <= witness.entry < len(left):
        return Verdict(False, f"entry {witness.entry} of sides with {len(left)} entries is no one")
    lhs, rhs = left[witness.entry], right[witness.entry]
    found = lambda confirmed, reason: Verdict(confirmed, reason, lhs, rhs)
    for name, stored, mine in (("lhs", witness.lhs, lhs), ("rhs", witness.rhs, rhs)):
        if not _width(stored) <= WIDTH:
            return found(False, f"the enclosure of {name} says too little: it is too wide")
        near = NEAR * max(abs(stored.a), abs(stored.b))
        if (stored.b + near).b < mine.a or mine.b < (stored.a - near).a:
            return found(False, f"{name} is {mine}, outside of the witness's enclosure")
    if witness.relation == "<=":
        excess, scale = lhs - rhs, greatest((abs(lhs), abs(rhs)))
    elif witness.relation == "=":
        excess = greatest((lhs - rhs, rhs - lhs))
        scale = greatest(abs(x) for x in (*left, *right))
    else:
        return found(False, f"the relation '{witness.relation}' is neither '<=' nor '='")
    if not (excess - GAP * scale).a > 0:
        return found(False, f"not certainly violated by a relative 1e-6: {lhs} and {rhs}")
    return found(True, "violated")


def _flat(sides: Any) -> Sequence[Any]:
    return [interval(x) for x in np.ravel(np.asarray(sides, object))]


def _width(x: Any) -> Any:
    """The width relative to the larger end, an interval; 0 for a number that is known exactly."""
    return interval(0) if x.a == x.b else (x.b - x.a) / max(abs(x.a), abs(x.b))
