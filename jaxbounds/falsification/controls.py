"""Make a deliberately false right side for each claim; the rules must reject it."""

from typing import Any

import numpy as np

from jaxbounds.claims.statements import FITTED, Form, Statement
from jaxbounds.falsification.bench import Column
from jaxbounds.falsification.decide import Decision, decide
from jaxbounds.falsification.intervals import fitted_exponent
from jaxbounds.falsification.measure import Measured, ratio
from jaxbounds.ground.exceptions import Refused

EXCEEDS = 0.01
"""The worst instance's left side exceeds the deliberately false right side by this relative amount.
A larger value makes the false claim easier to reject."""
EXPONENT = 2.0
"""The exponent that makes the right side of a rate "at most" false (1 / EXPONENT for "at least"). A
larger value makes the false claim easier to reject."""
FLAT = 1e-3
"""The engine makes no false variant of a rate claim whose fitted exponent is below this value. A
larger value leaves more rate claims without a false variant."""


def controls_of(statement: Statement, columns: list[Column], /) -> list[Decision]:
    """Return the decision about the deliberately false variant of each version of the claim.

    The last column holds the measurements of the variant that the statement declares, or that the
    engine made for an `=`.
    """
    if not statement.control.strip() and statement.kind in FITTED:
        made = _moved if statement.kind == "limit" else _to_a_power
        return [
            decide(statement, None, made(form, column))
            for form, column in zip(statement.forms, columns[:-1])
        ]
    if statement.control.strip() or not statement.is_bound:
        return [decide(statement, None, columns[-1])] * len(statement.forms)
    return [decide(statement, None, scaled(statement, column)) for column in columns[:-1]]


def scaled(statement: Statement, column: Column, /) -> Column:
    """Scale a bound's right side until the worst instance's left side exceeds it by `EXCEEDS`.

    A zero right side is lowered by the share `EXCEEDS` of the terms' size. If no instance has
    finite sides, the measurements stay unchanged.
    """
    m = column.measured
    counted = np.asarray(m.counted) & np.isfinite(m.lhs) & np.isfinite(m.rhs)
    rows = np.flatnonzero(counted)
    if not len(rows):
        return column
    worst = column.worst(rows)
    left, right = float(m.lhs[worst]), float(m.rhs[worst])
    below = left - EXCEEDS / (1 + EXCEEDS) * abs(left) if left else -EXCEEDS * abs(right)
    with np.errstate(all="ignore"):  # sides that are not finite have a control that is none, too
        if right:
            control = m.rhs * (below / right)
        else:
            scale = 0.0 if column.scale is None else float(np.nan_to_num(column.scale[worst]))
            # Where both sides are zero, the other instances give the size.
            others = max(float(np.max(np.abs(side[rows]))) for side in (m.lhs, m.rhs))
            size = max(abs(left), scale) or others
            control = m.rhs + left - EXCEEDS * size
    return column._replace(measured=_compared(statement, m, control))


def _moved(form: Form, column: Column) -> Column:
    m = column.measured
    finite = m.counted & np.isfinite(m.value)
    size = max(1.0, float(np.max(np.abs(m.rhs[finite]), initial=0.0)))
    amount = 2 * float(np.max(m.value[finite], initial=0.0)) or EXCEEDS * size
    value, low, high = amount - m.value, amount - m.high, amount - m.low
    return column._replace(measured=m._replace(value=value, low=low, high=high))


def _to_a_power(form: Form, column: Column) -> Column:
    """Raise a rate's right side to a power, so that the fitted exponent contradicts the claim.

    If no exponent can be fitted, the sides stay unchanged.
    """
    m = column.measured
    keep = m.counted & (m.lhs > 0) & (m.rhs > 0) & np.isfinite(m.lhs) & np.isfinite(m.rhs)
    try:
        slope, *_ = fitted_exponent(m.rhs[keep], m.lhs[keep])
    except Refused:
        return column
    if abs(slope) < FLAT:
        return column
    power = slope * EXPONENT if form.sense == "at least" else slope / EXPONENT
    with np.errstate(all="ignore"):
        return column._replace(measured=m._replace(rhs=np.abs(m.rhs) ** power))


def _compared(statement: Statement, m: Measured, control: Any) -> Measured:
    with np.errstate(all="ignore"):
        value, low, high = (ratio(m.lhs + moved, control, np) for moved in (0.0, -m.error, m.error))
    return m._replace(value=value, low=low, high=high, rhs=control)
