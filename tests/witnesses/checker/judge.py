"""From a witness to a verdict: whether it is of a registered claim, and shows it to be false."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from mpmath import mp
from mpmath.libmp import NoConvergence

from .claims import CLAIMS, Claim
from .intervals import greatest, interval
from .witness import BadWitness, Witness, read

GAP = interval(Fraction(1, 10**6))
"""By this much, relative to the larger side, both sides have to differ."""

WIDTH = interval(Fraction(1, 10**6))
"""An enclosure wider than this, relative to its value, says too little to be compared."""

NEAR = interval(Fraction(1, 10**9))
"""Enclosures meet up to this share of them: a program's sqrt(2) is a float, the paper's is not."""

UNDEFINED = (ValueError, ArithmeticError, LookupError, TypeError, NoConvergence)
"""What a formula raises that has no value at an instance, as 1/0 or the root of -1."""


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
    """What was found.

    Attributes:
        word: "confirmed" (the claim is false at the instance), "rejected" (that is not shown), or
            "refused" (this is no witness of a registered claim).
        reason: in one sentence: what is false, or why not.
        lhs, rhs: both sides as recomputed, where they were.
        claim: the claim that the witness is of, where it is of one.
    """

    word: Literal["confirmed", "rejected", "refused"]
    reason: str
    lhs: Any = None
    rhs: Any = None
    claim: Claim | None = None

    @property
    def confirmed(self) -> bool:
        return self.word == "confirmed"


def check(document: Any) -> Verdict:
    """Whether a parsed file proves that its form is false.

    Confirmed are: a witness of a registered claim, hypotheses that certainly hold, a violation that
    certainly is one, by `GAP`, and enclosures that meet the recomputed ones.
    """
    try:
        witness = read(document)
        claim = CLAIMS.get((witness.statement, witness.form))
        if claim is not None:
            claim.admit(witness)
    except BadWitness as error:
        return Verdict("refused", str(error))
    if claim is None:
        return Verdict("rejected", "there is no recomputation for this form")
    try:
        return _compared(claim, witness, claim.recompute(witness))
    except NotCertain as error:
        return Verdict("rejected", str(error), claim=claim)
    except UNDEFINED as error:
        reason = f"not to be recomputed: {type(error).__name__}: {error}"
        return Verdict("rejected", reason, claim=claim)


def _compared(claim: Claim, witness: Witness, sides: Sides) -> Verdict:
    left, right = _flat(sides.lhs), _flat(sides.rhs)
    entry = witness.entry or 0
    if len(left) != len(right) or not entry < len(left):
        reason = f"entry {entry} of sides with {len(left)} entries is no one"
        return Verdict("rejected", reason, claim=claim)
    lhs, rhs = left[entry], right[entry]
    rejected = lambda reason: Verdict("rejected", reason, lhs, rhs, claim)
    for name, stored, mine in (("lhs", witness.lhs, lhs), ("rhs", witness.rhs, rhs)):
        if not all(mp.isfinite(mp.mpf(end)) for end in (mine.a, mine.b)):
            return rejected(f"{name} has no finite value here")
        if not _width(stored) <= WIDTH:
            return rejected(f"the enclosure of {name} says too little: it is too wide")
        near = NEAR * max(abs(stored.a), abs(stored.b))
        if (stored.b + near).b < mine.a or mine.b < (stored.a - near).a:
            return rejected(f"{name} is {mine}, outside of the witness's enclosure")
    if claim.relation == "<=":
        excess, scale = lhs - rhs, greatest((abs(lhs), abs(rhs)))
    else:
        excess = greatest((lhs - rhs, rhs - lhs))
        scale = greatest(abs(x) for x in (*left, *right))
    if not (excess - GAP * scale).a > 0:
        return rejected(f"not certainly violated by a relative 1e-6: {lhs} and {rhs}")
    return Verdict("confirmed", _false(claim, witness, lhs, rhs), lhs, rhs, claim)


def _false(claim: Claim, witness: Witness, lhs: Any, rhs: Any) -> str:
    """The claim, in the words of this checker, where it fails, and both sides."""
    size = ", ".join(f"{name} = {number}" for name, number in witness.size.items())
    numbers = {name: x for name, x in witness.instance.items() if isinstance(x, Fraction)}
    given = ", ".join(f"{name} = {_short(interval(x))}" for name, x in numbers.items())
    where = "".join([f" at size {size}" if size else "", f" with {given}" if given else ""])
    entry = "" if witness.entry is None else f" in entry {witness.entry}"
    return f"false{where}: {claim}; the sides are {_short(lhs)} and {_short(rhs)}{entry}"


def _short(x: Any) -> str:
    return str(mp.nstr(mp.mpf(x.mid), 8)).removesuffix(".0")


def _flat(sides: Any) -> Sequence[Any]:
    return [interval(x) for x in np.ravel(np.asarray(sides, object))]


def _width(x: Any) -> Any:
    """The width relative to the larger end, an interval; 0 for a number that is known exactly."""
    return interval(0) if x.a == x.b else (x.b - x.a) / max(abs(x.a), abs(x.b))
