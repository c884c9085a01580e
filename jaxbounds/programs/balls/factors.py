"""Proofs by the formula of a margin on a box: it is zero, or squares times factors of known sign.

The coordinates are the atoms of `exact`. An identity of rational functions in atoms is an identity
of the numbers behind them. So the proof is about the margin itself, on all of the box. The margin
is zero if its numerator cancels. It is not negative if every factor of odd power has a sign and the
signs multiply to plus. This proves equalities along curves, surfaces and whole regions, where no
point of equality is isolated.
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
"""Restarts with finer atoms of `exact`, and seconds of one attempt. Larger numbers prove more, for
longer.
"""


def _coordinates(jets: Jets, box: Box) -> list[Jet]:
    """Return the coordinates of the box as jets: a fixed coordinate is a number.

    Another coordinate is an atom, or minus an atom, so that the atom is not negative. An atom has
    either sign if the box crosses zero.
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
    """Tell whether the formula of the margin proves the claim on a box.

    Args:
        program: the program from a point to the margin and whether the hypotheses are met.
        box: the box, on which all choices must be decided.
        reading: how floats in the program are read (see `values.Reading`).
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
