"""Second-order Taylor arithmetic: values with exact gradients and Hessians, in intervals.

Derivatives of a model are taken of the model itself, so that a paper's derivative formulas have
something to be compared with.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .intervals import ONE, ZERO, exp, interval


@dataclass(frozen=True, eq=False)
class Jet:
    """A function of n variables at a point: its value, gradient (n,) and Hessian (n, n)."""

    value: Any
    gradient: np.ndarray
    hessian: np.ndarray

    def __add__(self, other: Any) -> "Jet":
        if not isinstance(other, Jet):
            return Jet(self.value + other, self.gradient, self.hessian)
        return Jet(
            self.value + other.value,
            self.gradient + other.gradient,
            self.hessian + other.hessian,
        )

    __radd__ = __add__

    def __mul__(self, other: Any) -> "Jet":
        if not isinstance(other, Jet):
            return Jet(self.value * other, self.gradient * other, self.hessian * other)
        cross = np.outer(self.gradient, other.gradient)
        return Jet(
            self.value * other.value,
            self.gradient * other.value + other.gradient * self.value,
            self.hessian * other.value + other.hessian * self.value + cross + cross.T,
        )

    __rmul__ = __mul__

    def __neg__(self) -> "Jet":
        return Jet(-self.value, -self.gradient, -self.hessian)

    def __sub__(self, other: Any) -> "Jet":
        if not isinstance(other, Jet):
            return self + -other
        return Jet(
            self.value - other.value,
            self.gradient - other.gradient,
            self.hessian - other.hessian,
        )

    def through(self, value: Any, first: Any, second: Any) -> "Jet":
        """f of this, where f, f' and f'' at its value are given."""
        outer = np.outer(self.gradient, self.gradient)
        return Jet(value, first * self.gradient, first * self.hessian + second * outer)

    def exp(self) -> "Jet":
        """e to this."""
        value = exp(self.value)
        outer = np.outer(self.gradient, self.gradient)
        return Jet(value, value * self.gradient, value * (self.hessian + outer))

    def reciprocal(self) -> "Jet":
        """1 over this."""
        value = ONE / self.value
        return self.through(value, -(value**2), 2 * value**3)


def variables(values: np.ndarray) -> np.ndarray:
    """The coordinates of a point, as jets in all of them; same shape."""
    flat = interval(np.ravel(values))
    n = len(flat)
    zeros = np.full((n, n), ZERO, object)
    found = np.empty(n, object)
    for i in range(n):
        unit = np.full(n, ZERO, object)
        unit[i] = ONE
        found[i] = Jet(flat[i], unit, zeros)
    return found.reshape(np.shape(values))


def softmax_of_jets(row: np.ndarray) -> np.ndarray:
    """The softmax of a vector of jets."""
    weights = [sum(((other - mine).exp() for other in row), start=ZERO) for mine in row]
    return np.array([weight.reciprocal() for weight in weights], object)
