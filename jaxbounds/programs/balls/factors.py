"""Prove a claim if its margin's formula is zero, or a product of squares and factors of known sign.

The margin is the right side of the claim minus the left side. Its formula in atoms (symbols for the
coordinates) holds on all of the box, and so does a proof. The margin is zero if all terms of its
numerator cancel. If each factor of odd power has a constant sign on the box, and the product of
these signs is positive, the margin is >= 0. The proof covers equalities along curves, surfaces and
whole regions, where no point of equality is isolated.
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
"""RESTARTS is the largest number of restarts with finer atoms, such as e^(u/2) for e^u (see
`exact`). SECONDS is the time limit of one restart.

Larger limits prove more claims and take more time.
"""


def _coordinates(jets: Jets, box: Box) -> list[Jet]:
    """Write a varying coordinate as a variable a, or as -a if it is not positive on the box.

    The variable a is >= 0 unless the coordinate changes sign on the box.
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
    value = margin.of[0]
    if value is None:
        return True
    if not value.over.is_finite() or value.at is None:
        return False
    return value.over >= 0 or not_negative(value.at)


def not_negative(x: Exact, /) -> bool:
    """Tell whether the factors of a number prove that the number is >= 0."""
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
    """Tell whether the formula of the margin (right minus left side) proves the claim on a box.

    The program takes a point, and returns the margin and whether the point meets the hypotheses.
    The proof fails if the enclosures (balls) are too wide to decide a branch of the program on the
    box.
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
