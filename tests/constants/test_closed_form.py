"""When digits are called a formula: how many, how unlikely by chance, and how near.

The odds are counted by hand: with coefficients up to h in size there are (2h + 1)^n relations of n
terms, and 10^(known - 2) numbers that the digits tell apart.
"""

import mpmath
import pytest

from jaxbounds.constants.closed_form import _agrees, closed_form

MP = mpmath.mp.clone() if hasattr(mpmath.mp, "clone") else mpmath.MPContext()
MP.dps = 80


def decimals(value, more="0"):
    return MP.nstr(value + MP.mpf(more), 75)


def test_twelve_digits_are_the_least_and_sixty_the_most():
    # 2 x - 1 = 0: coefficients up to 2, two terms, one basis.
    found = closed_form("0.5", 12)
    assert found.text == "1/2" and found.height == 2 and found.digits == 12
    assert found.chance == pytest.approx(5**2 * 1e-10, abs=0) and found.basis == "rational numbers"
    assert closed_form("0.5", 11) is None
    assert closed_form("0.5", 100).digits == 60 and closed_form("0.5", 59).digits == 59


def test_one_coincidence_in_a_million_is_the_most():
    # 49/2 is one of 99^2 relations, 50/3 one of 101^2; 10^4 is where a millionth lies.
    assert closed_form(decimals(MP.mpf(49) / 2), 12).text == "49/2"
    assert closed_form(decimals(MP.mpf(50) / 3), 12) is None
    assert closed_form(decimals(MP.mpf(50) / 3), 13).text == "50/3"


@pytest.mark.parametrize(
    "axes, bases", [({}, 16), ({"n": 3}, 16), ({"n": 4}, 18), ({"n": 5, "m": 5}, 19)]
)
def test_every_basis_that_is_tried_is_a_chance_more(axes, bases):
    # log(3) is x - log(3) = 0: coefficients up to 1, three terms. Without axes there are 3 bases of
    # products, 7 of sums, 1 pair, quadratics, and 4 degrees; an axis adds a product, a sum and,
    # where its logarithm is no multiple of log(2), a pair. log(3) is among them already.
    found = closed_form(decimals(MP.log(3)), 30, axes=axes)
    assert found.text == "log(3)" and found.height == 1
    assert found.chance == pytest.approx(bases * 3**3 * 1e-28, abs=0)


@pytest.mark.parametrize(
    "value, text",
    [
        ("0.00000096", None),
        ("0.00000105", "21/20000000"),
        ("960000", "960000"),
        ("1000000", None),
        ("1050000", None),
    ],
)
def test_numbers_from_a_millionth_to_a_million(value, text):
    found = closed_form(value, 40)
    assert (found and found.text) == text


def test_of_two_relations_the_simpler_one_is_taken():
    # sqrt(2) is a product of two terms and the root of a quadratic: x^2 - 2 has three coefficients
    # up to 2, 2 log x - log 2 has five up to 2.
    assert closed_form(decimals(MP.sqrt(2)), 30).chance == pytest.approx(12 * 5**3 * 1e-28, abs=0)


@pytest.mark.parametrize("known, apart", [(13, 1e-30), (60, 1e-50)])
def test_a_formula_lies_between_the_two_ends(known, apart):
    third, ends = MP.mpf(1) / 3, lambda *by: tuple(decimals(third, MP.mpf(apart) * b) for b in by)
    digits = decimals(third)
    assert closed_form(digits, known, between=ends(-1, 1)).text == "1/3"
    assert closed_form(digits, known, between=ends(1, 2)) is None
    assert closed_form(digits, known, between=ends(-2, -1)) is None


@pytest.mark.parametrize("times, agrees", [(0, True), (0.95, True), (1.05, False)])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("x", ["0.25", "40"])
def test_without_ends_all_digits_but_two_agree(times, agrees, sign, x):
    x = MP.mpf(x)
    value = x * (1 + sign * times * MP.mpf(10) ** -18)
    assert _agrees(value, x, 20, None, MP) is agrees


@pytest.mark.parametrize("value, agrees", [(1, True), (2, True), (0.5, False), (2.5, False)])
def test_both_ends_belong_to_it(value, agrees):
    assert _agrees(MP.mpf(value), MP.mpf(1), 20, ("1", "2"), MP) is agrees
