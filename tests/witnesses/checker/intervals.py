"""Outward-rounded intervals: numbers, vectors and matrices of them, eigenvalues between bounds.

Vectors and matrices are numpy arrays of objects. Data stay `Fraction` until a function below makes
them intervals, so that what is rational is exact.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from mpmath import mp
from mpmath.ctx_iv import MPIntervalContext

BITS = 200


class _Field(MPIntervalContext):
    """Intervals that take Fractions, outward rounded, and leave arrays of intervals to numpy."""

    def convert(self, x: Any) -> Any:
        if isinstance(x, Fraction):
            return self.mpf(x.numerator) / x.denominator
        if isinstance(x, np.ndarray):  # else two entries would be taken for the ends of one
            return NotImplemented
        try:
            return super().convert(x)
        except NotImplementedError:
            return NotImplemented


FIELD = _Field()
"""The arithmetic: a context of its own, as mpmath's shared one has a precision anyone may set."""
FIELD.prec = BITS

ONE = FIELD.mpf(1)
ZERO = FIELD.mpf(0)


def interval(x: Any) -> Any:
    """An interval that contains x: an integer, a Fraction, an interval, or an array of these."""
    if isinstance(x, np.ndarray):
        found = np.empty(x.shape, object)
        for index in np.ndindex(x.shape):
            found[index] = interval(x[index])
        return found
    return FIELD.mpf(int(x)) if isinstance(x, np.integer) else FIELD.convert(x)


def between(lower: Any, upper: Any) -> Any:
    """The interval from the lower end of one interval to the upper end of another."""
    return FIELD.mpf([interval(lower).a, interval(upper).b])


def sqrt(x: Any) -> Any:
    """The root of x >= 0; an interval that rounding has made reach below zero is cut there."""
    x = interval(x)
    if x.b < 0:
        raise ValueError(f"a square root of at least zero is expected; {x} came: a wrong instance")
    return FIELD.sqrt(FIELD.mpf([max(x.a, ZERO.a), x.b]))


def log(x: Any) -> Any:
    """The natural logarithm of x > 0."""
    x = interval(x)
    if not x.a > 0:
        raise ValueError(f"the logarithm of something positive is expected; {x} came")
    return FIELD.log(x)


def exp(x: Any) -> Any:
    """e^x."""
    return FIELD.exp(interval(x))


def power(x: Any, exponent: Fraction | int) -> Any:
    """x^exponent of x >= 0, for a positive rational exponent; exact for integers."""
    x = interval(x)
    if Fraction(exponent).denominator == 1:
        return x ** int(exponent)
    if x.a == 0 == x.b:
        return ZERO
    return exp(interval(Fraction(exponent)) * log(x))


def total(values: Iterable[Any]) -> Any:
    """The sum."""
    return sum(values, start=ZERO)


def greatest(values: Iterable[Any]) -> Any:
    """The maximum: from the largest lower to the largest upper end."""
    ends = [interval(value) for value in values]
    return FIELD.mpf([max(x.a for x in ends), max(x.b for x in ends)])


def least(values: Iterable[Any]) -> Any:
    """The minimum."""
    return -greatest(-interval(value) for value in values)


def norm(x: np.ndarray) -> Any:
    """The Euclidean norm of a vector, the Frobenius norm of a matrix."""
    return sqrt(total(interval(entry) ** 2 for entry in np.ravel(x)))


def softmax(row: np.ndarray) -> np.ndarray:
    """The softmax of a vector; each entry is 1 / sum_j e^{v_j - v_i}, which depends on v once."""
    row = interval(np.asarray(row, object))
    weights = [ONE / total(exp(other - mine) for other in row) for mine in row]
    return np.array(weights, object)


def softplus(x: Any) -> Any:
    """log(1 + e^x)."""
    return log(ONE + exp(x))


def positive_definite(matrix: np.ndarray) -> bool:
    """Whether a symmetric matrix of intervals certainly is: its pivots are positive."""
    rest = interval(matrix)
    while rest.size:
        pivot, column = rest[0, 0], rest[1:, 0]
        if not pivot.a > 0:
            return False
        rest = rest[1:, 1:] - np.outer(column, column) / pivot
    return True


def least_eigenvalue(matrix: np.ndarray) -> Any:
    """Of a symmetric matrix of intervals: below by pivots of A - s I, above by a quotient.

    The vector of the Rayleigh quotient is a float's guess; any vector gives an upper bound.
    """
    matrix = interval(matrix)
    size = len(matrix)
    guesses, vectors = mp.eigsy(mp.matrix(size, size) + _middle(matrix))
    vector = np.array([FIELD.mpf(vectors[i, 0]) for i in range(size)], object)
    upper = (vector @ matrix @ vector) / (vector @ vector)
    scale = max(abs(guess) for guess in guesses) + mp.mpf(2) ** -60
    for digits in (12, 9, 6, 3):
        shift = FIELD.mpf(guesses[0] - scale * mp.mpf(10) ** -digits)
        if positive_definite(matrix - shift * np.eye(size, dtype=object)):
            return between(shift, upper)
    raise ValueError("the least eigenvalue was not enclosed: the matrix is known too coarsely")


def greatest_eigenvalue(matrix: np.ndarray) -> Any:
    """Of a symmetric matrix of intervals."""
    return -least_eigenvalue(-matrix)


def spectral_norm(matrix: np.ndarray) -> Any:
    """The largest singular value: the root of the largest eigenvalue of A^T A."""
    matrix = interval(matrix)
    return sqrt(greatest_eigenvalue(matrix.T @ matrix))


def _middle(matrix: np.ndarray) -> Any:
    middle = [[mp.mpf(entry.mid) for entry in row] for row in matrix]
    return mp.matrix(middle)
