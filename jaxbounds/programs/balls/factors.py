"""A margin written down on a box: identically zero, or squares times factors with a sign.

The coordinates are the atoms of `exact`. An identity of rational functions in atoms is an identity
of the numbers behind them. So the proof is about the margin itself, on all of the box. The margin
is zero wherever its numerator cancels. It is not negative where every factor of odd power has a
sign and the signs multiply to plus. This reaches equalities along curves, surfaces and whole
regions, where no point is alone.
"""

from typing import Any

import numpy as np
from flint import arb

from jaxbounds.ground.jax_internals import ClosedJaxpr
from jaxbounds.programs.balls.boxes import Box, balls_of
from jaxbounds.programs.balls.exact import Exact, Field, Finer, GivenUp
from jaxbounds.programs.balls.jets import Coefficient, Jet, JetRun, Jets
from jaxbounds.programs.balls.values import (
    NotSupported,
    Reading,
    Undecided,
    as_flags,
    known_nonnegative,
    reals,
)

RESTARTS, SECONDS = 12, 2.0
"""Restarts with finer atoms, and seconds of one attempt; larger numbers prove more, for longer."""


def _coordinates(jets: Jets, box: Box) -> list[Jet]:
    """Return atoms that are not negative, unless the box crosses zero.

    Numbers for fixed coordinates.
    """
    entries = []
    (balls,) = balls_of([box])[2]
    for j, (low, high, ball) in enumerate(zip(box.lower, box.upper, balls)):
        if low == high:
            entries.append(jets.lift(arb(low)))
            continue
        sign = -1 if high <= 0 else 1
        around = known_nonnegative(-ball) if sign < 0 else ball
        at = jets.field.symbol(j, around)
        if low >= 0 or high <= 0:
            jets.field.nonnegative.add(jets.field.index("symbol", j))
        entry = jets.constant(Coefficient(at, around))
        entries.append(entry if sign > 0 else jets.apply("neg", entry))
    return entries


def _sign(margin: Jet) -> bool:
    """Tell whether the margin is proved not to be negative."""
    value = margin.of[0]
    if value is None:
        return True
    if not value.over.is_finite() or value.at is None:
        return False
    return value.over >= 0 or not_negative(value.at)


def not_negative(x: Exact, /) -> bool:
    """Decide from the factors whether a value is not negative."""
    if x.is_zero():
        return True
    sign = 1
    for part in (x.num, x.den):
        content, factors = part.factor()
        sign *= 1 if content > 0 else -1
        for base, power in factors:
            if int(power) % 2 == 0:
                continue
            known = x.field.sign(base)
            if not known:
                return False
            sign *= known
    return sign > 0


def holds_on(program: ClosedJaxpr, box: Box, reading: Reading, /) -> bool:
    """Tell whether the claim is proved on a box by writing its margin down.

    Args:
        program: the program from a point to the margin and whether the hypotheses are met.
        box: the box, on which all choices must be decided.
        reading: the reading of constants.
    """
    fine: dict[Any, int] = {}
    for _ in range(RESTARTS):
        try:
            jets = Jets(Field(fine), 0, 1)
            entries = _coordinates(jets, box)
            run = JetRun(jets, reading, SECONDS)
            ways = run.ways(program, reals((len(entries),), entries))
            return all(_sign(m.item()) for m, needed in ways if np.all(as_flags(needed)))
        except Finer:
            continue
        except (NotSupported, Undecided, GivenUp):
            return False
    return False
