"""The control of each form: the statement's own, or the right side that the engine scales."""

from typing import Any

import numpy as np

from jaxbounds.claims.statements import Statement
from jaxbounds.falsification.bench import Column
from jaxbounds.falsification.decide import Decision, decide
from jaxbounds.falsification.measure import Measured, ratio

EXCEEDS = 0.01
"""Relative amount by which the worst instance exceeds the engine's control; a larger value makes a
control that is easier to reject.
"""


def controls_of(statement: Statement, columns: list[Column], /) -> list[Decision]:
    """Decide about the control of each form.

    Args:
        statement: the statement whose controls are decided.
        columns: the columns of the forms, then the column of the control. If the statement names no
            control, the last column of an `=` holds the first form's scaled right side.
    """
    if statement.control.strip() or not statement.is_bound:
        return [decide(statement, None, columns[-1])] * len(statement.forms)
    return [decide(statement, None, scaled(statement, column)) for column in columns[:-1]]


def scaled(statement: Statement, column: Column, /) -> Column:
    """Scale the right side of a bound until the worst instance exceeds it by `EXCEEDS`.

    If the right side is zero on the worst instance, the engine subtracts that share of its terms
    instead. If no instance has finite sides, the column stays unchanged, and the rules do not
    reject the control.
    """
    m = column.measured
    counted = np.asarray(m.counted) & np.isfinite(m.lhs) & np.isfinite(m.rhs)
    rows = np.flatnonzero(counted)
    if not len(rows):
        return column
    worst = column.worst(rows)
    left, right = float(m.lhs[worst]), float(m.rhs[worst])
    below = left - EXCEEDS / (1 + EXCEEDS) * abs(left) if left else -EXCEEDS * abs(right)
    if right:
        control = m.rhs * (below / right)
    else:
        scale = 0.0 if column.scale is None else float(np.nan_to_num(column.scale[worst]))
        size = max(abs(left), scale)
        control = m.rhs + left - EXCEEDS * size
    return column._replace(measured=_compared(statement, m, control))


def _compared(statement: Statement, m: Measured, control: Any) -> Measured:
    """Compare the left side with the control as the right side, as for any bound."""
    with np.errstate(all="ignore"):
        value, low, high = (ratio(m.lhs + moved, control, np) for moved in (0.0, -m.error, m.error))
    return m._replace(value=value, low=low, high=high, rhs=control)
