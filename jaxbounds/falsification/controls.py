"""Controls: deliberately false right sides for each form, which the rules must reject.

The statement or the engine supplies the controls.
"""

from typing import Any

import numpy as np

from jaxbounds.claims.statements import FITTED, Form, Statement
from jaxbounds.falsification.bench import Column
from jaxbounds.falsification.decide import Decision, decide
from jaxbounds.falsification.intervals import fitted_exponent
from jaxbounds.falsification.measure import Measured, ratio
from jaxbounds.ground.exceptions import Refused

EXCEEDS = 0.01
"""The worst instance's left side exceeds the engine's control (a deliberately false right side) by
this relative amount. A larger value makes a control that is easier to reject."""
EXPONENT = 2.0
"""Exponent of the engine's control for a rate "at most"; the control of a rate "at least" has the
inverse exponent. A larger value makes a control that is easier to reject.
"""
FLAT = 1e-3
"""Least fitted exponent for which the engine makes a control. If the exponent is smaller, no power
of the right side contradicts the claim. A larger value leaves more rates without a control of the
engine.
"""


def controls_of(statement: Statement, columns: list[Column], /) -> list[Decision]:
    """Return, for each form, the decision about its control.

    Args:
        statement: the statement to which the controls belong.
        columns: the measurements of each form, then the measurements of the control. If an `=` has
            no control of its own, this last column holds the first form's right side, scaled by the
            engine.
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
    """Scale the right side of a bound until the worst instance exceeds it by `EXCEEDS`.

    If the right side is zero on the worst instance, the engine moves the right side instead, until
    the left side exceeds it by the share `EXCEEDS` of the terms. If no instance has finite sides,
    the column stays unchanged, and the rules do not reject the control.
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
            size = max(abs(left), scale)
            control = m.rhs + left - EXCEEDS * size
    return column._replace(measured=_compared(statement, m, control))


def _moved(form: Form, column: Column) -> Column:
    """Move the right side of a limit by twice the largest distance between the two sides."""
    m = column.measured
    finite = m.counted & np.isfinite(m.value)
    size = max(1.0, float(np.max(np.abs(m.rhs[finite]), initial=0.0)))
    amount = 2 * float(np.max(m.value[finite], initial=0.0)) or EXCEEDS * size
    value, low, high = amount - m.value, amount - m.high, amount - m.low
    return column._replace(measured=m._replace(value=value, low=low, high=high))


def _to_a_power(form: Form, column: Column) -> Column:
    """Raise the right side of a rate to a power, so that the fitted exponent contradicts the claim.

    If no exponent can be fitted, the sides stay unchanged, and the rules do not reject the control.
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
    """Compare the left side with the control in place of the right side, as for any bound."""
    with np.errstate(all="ignore"):
        value, low, high = (ratio(m.lhs + moved, control, np) for moved in (0.0, -m.error, m.error))
    return m._replace(value=value, low=low, high=high, rhs=control)
