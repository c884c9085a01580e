"""A constant as a function of the shapes: quotients of polynomials and roots, by fractions."""

import math
from fractions import Fraction

import pytest

from jaxbounds.constants import AtSize, ClosedForm, Exponent
from jaxbounds.constants.law import _fitted, _over, _rational, law

F = Fraction


def exact(text, low, digits=30, **size):
    """A size with a closed form and certified decimals."""
    form = ClosedForm(text=text, digits=digits, height=1, chance=1e-9, basis="")
    return AtSize(size=size, ratio=float(low), where="attained", closed=form, low=low)


def power(axis, value, word="power"):
    return Exponent(axis=axis, value=value, low=None, high=None, word=word)


ROOT_2 = "1.41421356237309504880168872420969807856967187537694"
ROOT_8 = "2.82842712474619009760337744841939615713934375075389"


@pytest.mark.parametrize(
    "function, top, bottom, law",
    [
        (lambda n: F(n), 1, 0, ([1, 0], [1])),
        (lambda n: F(2 * n - 3, 5), 1, 0, ([2, -3], [5])),
        (lambda n: F(3, 2 * n + 1), 0, 1, ([3], [2, 1])),
        (lambda n: F(n - 7, 3 - 2 * n), 1, 1, ([-1, 7], [2, -3])),
        (lambda n: F(n * n + n + 1, 2), 2, 0, ([1, 1, 1], [2])),
        (lambda n: F(4, n * n + 6), 0, 2, ([4], [1, 0, 6])),
        (lambda n: F(4, 6 - n * n), 0, 2, ([-4], [1, 0, -6])),
        (lambda n: F(1, n * n), 0, 1, None),
        (lambda n: F(99 * n), 1, 0, ([99, 0], [1])),
        (lambda n: F(100 * n), 1, 0, ([100, 0], [1])),
        (lambda n: F(101 * n), 1, 0, None),
        (lambda n: F(n, 101), 1, 0, None),
        (lambda n: F(n - 101), 1, 0, None),
    ],
)
def test_polynomials_through_all_values(function, top, bottom, law):
    at = (2, 4, 5, 7, 9)
    assert _fitted(at, [function(n) for n in at], top, bottom) == law


def test_a_denominator_that_is_zero_at_a_size_is_none():
    # P = v Q for P = n - 2, Q = n - 2 where v = 1 at all sizes but 2, where both vanish.
    assert _fitted((2, 3, 4), [F(5), F(1), F(1)], 1, 1) is None
    # Here Q alone would have to vanish: no value at all is left.
    assert _fitted((1, 2, 3), [F(0), F(0), F(7)], 0, 0) is None


LAWS = (
    (lambda n: F(n + 1), "n + 1", 3),
    (lambda n: F(1, n + 1), "1/(n + 1)", 3),
    (lambda n: F(n - 1, n + 1), "(n - 1)/(n + 1)", 4),
    (lambda n: F(n, 7), "n/7", 3),
    (lambda n: F(n * n - 1), "n^2 - 1", 4),
    (lambda n: F(5, n * n + 1), "5/(n^2 + 1)", 4),
    (lambda n: F(n * n + 2, n), "(n^2 + 2)/n", 5),
    (lambda n: F(n, n * n + 2), "n/(n^2 + 2)", 5),
    (lambda n: F(n * n + 1, n * n + n), "(n^2 + 1)/(n^2 + n)", 6),
)


@pytest.mark.parametrize("function, text, sizes", LAWS, ids=[text for _, text, _ in LAWS])
def test_one_size_more_than_there_are_coefficients_confirms_it(function, text, sizes):
    # p + q + 2 coefficients up to a factor: p + q + 1 are free, and one value more must agree.
    at = (3, 4, 6, 7, 9, 11)
    found = [exact(str(function(n)), str(float(function(n))), n=n) for n in at]
    assert _rational(found[:sizes], [power("n", 1.0)]) == text
    assert _rational(found[: sizes - 1], [power("n", 1.0)]) == ""
    beside = exact(str(function(12) + 1), "1", n=12)
    assert _rational([*found[: sizes - 1], beside], [power("n", 1.0)]) != text


def test_logarithms_of_the_axis():
    logs = [exact(f"log({n})", str(math.log(n)), n=n) for n in (3, 5)]
    assert _rational(logs, [power("n", 0.3)]) == "log(n)"
    assert _rational(logs[:1], [power("n", 0.3)]) == ""
    assert _rational([logs[0], exact("log(3)", "1.1", n=5)], [power("n", 0.3)]) == ""
    assert _rational(logs, [power("n", 0.3), power("m", 0.3)]) == ""
    assert _rational(logs, []) == ""
    open_ = AtSize(size={"n": 7}, ratio=1.0, where="attained")
    assert _rational([*logs, open_], [power("n", 0.3)]) == ""


def test_what_is_left_over_powers_of_the_axes():
    # sqrt(2) 3^(1/2) 2^2 at T = 3, d = 2, over sqrt(T) d^2.
    value = math.isqrt(2 * 3 * 16 * 10**90)
    low = f"{str(value)[0]}.{str(value)[1:]}"
    found = exact("?", low, T=3, d=2)
    assert _over(found, {"T": F(1, 2), "d": F(2)}) == "sqrt(2)"
    assert _over(found, {"T": F(-1, 2), "d": F(5, 2)}) == "3"
    # Twenty-eight digits of what is written are those of the number, however many are certain.
    cut = low[:30] + "0" * 20
    assert _over(exact("?", cut, digits=40, T=3, d=2), {"T": F(1, 2), "d": F(2)}) == "sqrt(2)"
    assert _over(exact("?", low, digits=11, T=3, d=2), {"T": F(1, 2), "d": F(2)}) == ""


@pytest.mark.parametrize(
    "found, exponents, text",
    [
        # A number without axes; an axis on which nothing depends.
        ([exact("1/2", "0.5", T=2)], [], "1/2"),
        ([exact("1/2", "0.5", T=2), exact("1/2", "0.5", T=4)], [power("T", 0.0, "none")], "1/2"),
        # sqrt(T) times one, and times two.
        ([exact("sqrt(2)", ROOT_2, T=2), exact("2", "2", T=4)], [power("T", 0.5)], "sqrt(T)"),
        ([exact("2 sqrt(2)", ROOT_8, T=2), exact("4", "4", T=4)], [power("T", 0.5)], "2 sqrt(T)"),
        ([exact("1/2", "0.5", T=2), exact("1/4", "0.25", T=4)], [power("T", -1.0)], "1/T"),
        # What is left is not one number: no law.
        ([exact("2", "2", T=2), exact("3", "3", T=4)], [power("T", 0.5)], ""),
        # No power: a polynomial.
        (
            [exact(str(n + 1), str(n + 1), T=n) for n in (2, 4, 7)],
            [power("T", 0.8, "no single power")],
            "T + 1",
        ),
    ],
)
def test_laws(found, exponents, text):
    assert law(found, exponents) == text


def test_no_law_without_a_closed_form_at_every_size():
    half = exact("1/2", "0.5", T=2)
    assert law([half, AtSize(size={"T": 4}, ratio=0.5, where="attained")], []) == ""
    unknown = exact("?", "0.76957000000000000000000000012345", T=2)
    assert law([unknown], []) == ""
