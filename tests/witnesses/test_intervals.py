"""The checker's intervals contain what they should: against mpmath at twice the precision.

Eigenvalues are compared with matrices built from theirs: V diag(l) V^T with a rational reflection.
"""

from fractions import Fraction

import numpy as np
import pytest
from checker import intervals
from checker.jets import softmax_of_jets, variables
from mpmath.ctx_mp import MPContext

TRUTH = MPContext()
TRUTH.prec = 2 * intervals.BITS

POINTS = [Fraction(n, d) for n in (-700, -7, -1, 0, 1, 5, 300) for d in (1, 3, 7)]


def point(x):
    return TRUTH.mpf(x.numerator) / x.denominator


def contains(found, truth):
    """Whether the interval contains the number and is no wider than 2^-150 of it."""
    lower, upper = (TRUTH.make_mpf(end) for end in found._mpi_)
    return lower <= truth <= upper and upper - lower <= TRUTH.ldexp(1 + abs(truth), -150)


@pytest.mark.parametrize("x", POINTS)
def test_functions_contain_their_values(x):
    value = point(x)
    assert contains(intervals.interval(x), value)
    assert contains(intervals.exp(x), TRUTH.exp(value))
    assert contains(intervals.softplus(x), TRUTH.log1p(TRUTH.exp(value)))
    if x > 0:
        assert contains(intervals.log(x), TRUTH.log(value))
        assert contains(intervals.sqrt(x), TRUTH.sqrt(value))
        for exponent in (Fraction(1, 3), Fraction(2, 3), 2):
            assert contains(intervals.power(x, exponent), value ** point(Fraction(exponent)))


def test_softmax_contains_its_values():
    row = np.array([Fraction(1, 3), Fraction(-2), Fraction(40)], object)
    weights = [TRUTH.exp(point(x)) for x in row]
    for found, weight in zip(intervals.softmax(row), weights):
        assert contains(found, weight / sum(weights))


def test_what_has_no_value_raises():
    with pytest.raises(ValueError, match="logarithm of something positive"):
        intervals.log(Fraction(0))
    with pytest.raises(ValueError, match="square root of at least zero"):
        intervals.sqrt(Fraction(-1))


@pytest.mark.parametrize("values", [(3, 1, -2, -2), (1, 1, 1, 1), (5, 0, 0, Fraction(1, 7))])
def test_eigenvalues_of_a_matrix_built_from_them(values):
    u = np.array([Fraction(1), Fraction(2), Fraction(-1), Fraction(3)], object)
    reflection = np.eye(4, dtype=int) - 2 * np.outer(u, u) / (u @ u)
    matrix = reflection @ np.diag([Fraction(v) for v in values]) @ reflection
    for found, truth in (
        (intervals.least_eigenvalue(matrix), min(values)),
        (intervals.greatest_eigenvalue(matrix), max(values)),
        (intervals.spectral_norm(matrix), max(map(abs, values))),
    ):
        assert found.a <= intervals.interval(truth).b
        assert intervals.interval(truth).a <= found.b
        assert found.delta < 1e-9


def test_jets_are_the_derivatives_of_softmax():
    v = np.array([Fraction(1, 5), Fraction(-1), Fraction(2)], object)
    middle = softmax_of_jets(variables(v))[1]

    def softmax(*at):
        return TRUTH.exp(at[1]) / sum(TRUTH.exp(x) for x in at)

    for i in range(3):
        first = TRUTH.diff(softmax, tuple(map(point, v)), tuple(int(k == i) for k in range(3)))
        assert abs(TRUTH.mpf(middle.gradient[i].mid) - first) < 1e-30
        for j in range(3):
            order = tuple(int(k == i) + int(k == j) for k in range(3))
            second = TRUTH.diff(softmax, tuple(map(point, v)), order)
            assert abs(TRUTH.mpf(middle.hessian[i, j].mid) - second) < 1e-25
