"""Fit how a constant depends on the sizes: one exponent for each size that varies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy
from numpy.typing import ArrayLike

CONFIDENCE = 0.99
"""The confidence level of an exponent's interval; a larger level makes wider intervals."""
CONSTANT = 1e-6
"""The constant C counts as independent of an axis if log C varies by at most this much when only
this axis varies. A larger limit makes more constants count as independent."""
POWER = 1e-3
"""The constant C counts as a product of powers of the axes if the fit to log C has at most this
residual. A larger limit accepts products of powers that fit less well."""


@dataclass(frozen=True, kw_only=True)
class Exponent:
    """The fit of log C (C is the constant) to the log of one axis (such as T).

    Attributes:
        axis: the name of the axis (the size on which the constant depends, such as T).
        value: the exponent, from one fit of all axes together.
        low: the lower end of the exponent's 99% interval (Student). `low` and `high` are None
            unless the number of sizes exceeds the number of fitted parameters.
        high: the upper end of the 99% interval of the fitted exponent.
        word: "none" if the constant does not vary along the axis, "power" if the residual of the
            fit is less than a thousandth, else "no single power".
    """

    axis: str
    value: float
    low: float | None
    high: float | None
    word: str


def varying(sizes: Sequence[Mapping[str, float]], /) -> list[str]:
    """Return the axes (numbers such as "T") that have several values in the sizes, all positive."""
    values = {axis: {size[axis] for size in sizes} for axis in sizes[0]}
    return [axis for axis, found in values.items() if len(found) > 1 and min(found) > 0]


def dependence(
    sizes: Sequence[Mapping[str, float]], constants: ArrayLike, /
) -> tuple[tuple[Exponent, ...], float]:
    """Fit C = c * product of axis^exponent by least squares; return the exponents and the residual.

    Args:
        sizes: the sizes: each is a dict from axes to values.
        constants: the positive constant C at each size, of shape (sizes,).

    Returns:
        An exponent for each size axis that varies, and the largest residual of the fit to log C (0
        if no axis varies).
    """
    if not sizes:
        return (), 0.0
    axes = varying(sizes)
    y = np.log(np.asarray(constants, float))
    x = np.log([[size[axis] for axis in axes] for size in sizes]).reshape(len(sizes), len(axes))
    design = np.column_stack([x, np.ones(len(sizes))])
    if not axes or np.linalg.matrix_rank(design) < design.shape[1]:
        return (), float(np.ptp(y)) if len(y) else 0.0
    solution = np.linalg.lstsq(design, y, rcond=None)[0]
    left = y - design @ solution
    free = len(y) - design.shape[1]
    worst, half = float(np.max(np.abs(left))), np.zeros(len(axes))
    if free:
        spread = np.linalg.inv(design.T @ design) * float(left @ left) / free
        width = scipy.special.stdtrit(free, (1 + CONFIDENCE) / 2)
        half = width * np.sqrt(np.diag(spread))[:-1]
    found = []
    for j, axis in enumerate(axes):
        word = "power" if worst < POWER else "no single power"
        word = "none" if _variation_along(x, y, j) < CONSTANT else word
        found.append(
            Exponent(
                axis=axis,
                value=float(solution[j]),
                low=float(solution[j] - half[j]) if free else None,
                high=float(solution[j] + half[j]) if free else None,
                word=word,
            )
        )
    return tuple(found), worst


def _variation_along(x: np.ndarray, y: np.ndarray, j: int) -> float:
    others = [tuple(np.delete(row, j)) for row in x]
    return max(float(np.ptp(y[[o == mine for o in others]])) for mine in set(others))


def halves(exponents: Sequence[Exponent], /) -> dict[str, Fraction] | None:
    """Return the constant's exponent in each axis, rounded to a multiple of 1/2.

    The result is None if an exponent differs from every multiple of 1/2 by more than a millionth.
    """
    near = {e.axis: Fraction(round(2 * e.value), 2) for e in exponents}
    fits = lambda e: abs(e.value - near[e.axis]) < CONSTANT and e.word != "no single power"
    return near if all(map(fits, exponents)) else None
