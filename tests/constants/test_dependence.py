"""Exponents and their words: thresholds from both sides, by logarithms written out."""

import math

import numpy as np
import pytest

from jaxbounds.constants.dependence import Exponent, _variation_along, dependence, halves, varying


def test_axes_that_take_more_than_one_positive_value():
    sizes = [{"T": 2, "d": 3, "z": 0, "s": -1}, {"T": 4, "d": 3, "z": 1, "s": 5}]
    assert varying(sizes) == ["T"]
    assert varying(sizes[:1]) == []
    assert varying([{"T": 0.5}, {"T": 2}, {"T": 0.5}]) == ["T"]


def test_nothing_to_fit():
    assert dependence([], []) == ((), 0.0)
    assert dependence([{"T": 2}, {"T": 2}], [1.0, math.e**3])[0] == ()
    assert dependence([{"T": 2}, {"T": 2}], [1.0, math.e**3])[1] == pytest.approx(3)
    # Two axes that grow together cannot be told apart: 3 columns of rank 2.
    together = [{"T": n, "d": n} for n in (2, 4, 8)]
    assert dependence(together, [1.0, math.e, 1.0]) == ((), pytest.approx(1))


def test_both_ends_are_unknown_where_nothing_is_left_over():
    (t,), left = dependence([{"T": 2}, {"T": 4}], [3.0, 12.0])
    assert (t.axis, t.low, t.high) == ("T", None, None) and t.value == pytest.approx(2)
    assert left == pytest.approx(0, abs=1e-12) and t.word == "power"
    (t,), _ = dependence([{"T": 2}, {"T": 4}, {"T": 8}], [3.0, 12.0, 48.0])
    assert t.low == pytest.approx(2) and t.high == pytest.approx(2)


@pytest.mark.parametrize("off, word", [(0.95e-3, "power"), (1.05e-3, "no single power")])
def test_a_thousandth_beside_the_line_is_no_power(off, word):
    # log2 T = 0, 1, 2, 3 and residuals off (1, -1, -1, 1): orthogonal to the line.
    y = np.log(2) * np.arange(4) + off * np.array([1, -1, -1, 1])
    (t,), left = dependence([{"T": 2**k} for k in range(4)], np.exp(y))
    assert left == pytest.approx(off, rel=1e-6) and t.word == word
    assert t.value == pytest.approx(1)


@pytest.mark.parametrize("off, word", [(0.95e-6, "none"), (1.05e-6, "power")])
def test_less_than_a_millionth_is_no_dependence(off, word):
    (t,), _ = dependence([{"T": 1}, {"T": 2}], [1.0, math.exp(off)])
    assert t.word == word


def test_the_variation_along_one_axis_alone_is_the_largest():
    # Rows (T, d): along T at d = 0 by 3, at d = 1 by 5; along d at T = 0 by 1, at T = 1 by 7.
    x = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    y = np.array([0.0, 3.0, 1.0, -4.0])
    assert _variation_along(x, y, 0) == 5 and _variation_along(x, y, 1) == 7


@pytest.mark.parametrize(
    "values, words, found",
    [
        ((0.5, 1.0), ("power", "power"), {"a": 0.5, "b": 1}),
        ((0.5 + 0.95e-6, -1.5), ("power", "none"), {"a": 0.5, "b": -1.5}),
        ((0.5 + 1.05e-6, 1.0), ("power", "power"), None),
        ((1.0, 0.5 - 1.05e-6), ("power", "power"), None),
        ((0.5, 1.0), ("power", "no single power"), None),
        ((0.75, 1.0), ("power", "power"), None),
    ],
)
def test_multiples_of_a_half(values, words, found):
    exponents = [
        Exponent(axis=a, value=v, low=None, high=None, word=w)
        for a, v, w in zip("ab", values, words)
    ]
    assert halves(exponents) == found
