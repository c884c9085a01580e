"""How formulas are written, what is sought, and what their values are: each by hand.

Values are mpmath's own constants and functions, at 50 digits.
"""

import itertools
from fractions import Fraction

import mpmath
import pytest

from jaxbounds.constants import relations as r

MP = mpmath.mp.clone() if hasattr(mpmath.mp, "clone") else mpmath.MPContext()
MP.dps = 50
F = Fraction


@pytest.mark.parametrize(
    "name, value",
    [
        ("7", 7), ("pi", MP.pi), ("e", MP.e), ("1/e", 1 / MP.e), ("log(12)", MP.log(12)),
        ("pi^2", MP.pi**2), ("1/pi", 1 / MP.pi),
    ],
)  # fmt: skip
def test_named_numbers(name, value):
    assert abs(r.named(name, MP) - value) < 1e-48


@pytest.mark.parametrize(
    "powers, text",
    [
        ([], "1"),
        ([("2", F(1))], "2"),
        ([("2", F(3)), ("3", F(2))], "72"),
        ([("2", F(1, 2)), ("3", F(1, 2))], "sqrt(6)"),
        ([("2", F(3, 2)), ("3", F(5, 2)), ("pi", F(1, 2))], "18 sqrt(6 pi)"),
        ([("2", F(1)), ("3", F(-3, 2)), ("7", F(0))], "2/(3 sqrt(3))"),
        ([("2", F(-1))], "1/2"),
        ([("pi", F(1)), ("2", F(-2))], "pi/4"),
        ([("pi", F(3)), ("e", F(-2))], "pi^3/e^2"),
        ([("T", F(1, 2)), ("d", F(1, 2))], "sqrt(T d)"),
        ([("T", F(3, 2))], "T sqrt(T)"),
        ([("2", F(1, 3))], "2^(1/3)"),
        ([("2", F(4, 3))], "2 2^(1/3)"),
        ([("pi", F(-7, 4))], "1/(pi pi^(3/4))"),
        ([("2", F(-1)), ("log(2)", F(-1))], "1/(2 log(2))"),
        ([("2", F(-1, 2)), ("pi", F(-1, 2))], "1/sqrt(2 pi)"),
    ],
)
def test_products_in_print(powers, text):
    assert r.product_text(powers) == text


@pytest.mark.parametrize(
    "terms, under, text",
    [
        ([(1, ""), (2, "pi")], 1, "1 + 2 pi"),
        ([(1, ""), (2, "pi")], 4, "(1 + 2 pi)/4"),
        ([(0, ""), (1, "pi")], 4, "pi/4"),
        ([(0, ""), (-1, "pi")], 1, "-pi"),
        ([(0, ""), (-3, "pi")], 2, "-3 pi/2"),
        ([(3, ""), (0, "pi")], 1, "3"),
        ([(-1, ""), (1, "e")], 1, "-1 + e"),
        ([(-2, ""), (-1, "e")], 1, "-2 - e"),
        ([(0, ""), (3, "1/pi")], 1, "3/pi"),
        ([(2, ""), (1, "1/pi")], 1, "2 + 1/pi"),
        ([(0, ""), (1, "1/pi")], 2, "(1/pi)/2"),
        ([(1, ""), (-3, "1/e")], 2, "(1 - 3/e)/2"),
        ([(-1, "")], 1, "-1"),
        ([(2, "log(2)"), (0, ""), (1, "log(3)")], 2, "(2 log(2) + log(3))/2"),
    ],
)
def test_sums_in_print(terms, under, text):
    assert r.sum_text(terms, under) == text


@pytest.mark.parametrize(
    "coefficients, text",
    [
        ([1, 0, -3, 1], "x^3 - 3 x + 1"), ([2, 0], "2 x"), ([5], "5"), ([1, 1], "x + 1"),
        ([-1, 0, 0], "-x^2"), ([4, -1, 1], "4 x^2 - x + 1"),
    ],
)  # fmt: skip
def test_polynomials_in_print(coefficients, text):
    assert r.polynomial_text(coefficients) == text
    assert r.polynomial_text(coefficients, "n") == text.replace("x", "n")


@pytest.mark.parametrize(
    "relation, text, value",
    [
        ([1, -1, -1], "(1 + sqrt(5))/2", (1 + MP.sqrt(5)) / 2),
        ([-1, 1, 1], "(1 + sqrt(5))/2", (1 + MP.sqrt(5)) / 2),
        ([1, 1, -1], "(-1 + sqrt(5))/2", (MP.sqrt(5) - 1) / 2),
        ([1, -3, 1], "(3 - sqrt(5))/2", (3 - MP.sqrt(5)) / 2),
        ([-1, 3, -1], "(3 - sqrt(5))/2", (3 - MP.sqrt(5)) / 2),
        ([1, 0, -2], "sqrt(2)", MP.sqrt(2)),
        ([-1, 0, 2], "sqrt(2)", MP.sqrt(2)),
        ([1, 0, -2], "-sqrt(2)", -MP.sqrt(2)),
        ([1, 0, -8], "2 sqrt(2)", MP.sqrt(8)),
        ([1, -2, -1], "1 + sqrt(2)", 1 + MP.sqrt(2)),
        ([1, -10, 23], "5 - sqrt(2)", 5 - MP.sqrt(2)),
        ([3, 0, -2], "sqrt(6)/3", MP.sqrt(MP.mpf(2) / 3)),
        ([1, -2, -11], "1 + 2 sqrt(3)", 1 + 2 * MP.sqrt(3)),
        ([4, -4, -7], "(1 + 2 sqrt(2))/2", MP.sqrt(2) + 0.5),
    ],
)
def test_roots_of_quadratics_in_print(relation, text, value):
    assert abs(MP.polyval(relation, value)) < 1e-45  # by hand it is one
    assert r._quadratic_text(relation, value) == text


def test_a_square_factor_up_to_its_full_size():
    # b^2 - 4 a c = 4 * 99^2 * 2 from x^2 - 99^2 * 2: the root is 2 * 99 = 198.
    assert r._quadratic_text([1, 0, -2 * 99**2], 99 * MP.sqrt(2)) == "99 sqrt(2)"


def test_a_root_to_all_digits_and_none_on_a_flat_place():
    value = r._root([1, 0, -2], MP.mpf("1.4"))
    assert abs(value(MP) - MP.sqrt(2)) < 1e-48
    assert MP.isnan(r._root([1, 0, 1], MP.mpf(0))(MP))


def test_a_sum_solved_for_the_number():
    # 2 x + 3 - 4 pi = 0, whichever sign it has: x = (4 pi - 3)/2.
    for sign in (1, -1):
        found = r._sum(("pi",), [sign * 2, sign * 3, -sign * 4])
        assert found.text == "(-3 + 4 pi)/2" and found.basis == "a + b times pi"
        assert found.numbers == (sign * 2, sign * 3, -sign * 4)
        assert abs(found.value(MP) - (4 * MP.pi - 3) / 2) < 1e-48
    found = r._sum(("log(2)", "log(3)"), [1, 0, -2, -1])
    assert found.text == "2 log(2) + log(3)"
    assert abs(found.value(MP) - MP.log(12)) < 1e-48
    assert r._sum(("pi",), [0, 3, -4]) is None  # it says nothing of x
    assert r._sum(("pi",), [2, 3, 0]) is None  # rational
    assert r._sum(("log(2)", "log(3)"), [1, 0, 0, -1]).text == "log(3)"


def sought(value, known=30, numbers=()):
    return list(r.relations(MP.mpf(value), known, numbers, MP))


def texts(value, known=30, numbers=()):
    return [f.text if f else None for f in sought(value, known, numbers)]


def test_whatever_holds_of_a_rational_number_follows():
    (found,) = sought(MP.mpf(3) / 7)
    assert found.text == "3/7" and found.value(MP) == MP.mpf(3) / 7
    assert sorted(map(abs, found.numbers)) == [3, 7]


@pytest.mark.parametrize(
    "value, place, text",
    [
        (MP.sqrt(2) * MP.cbrt(3), 0, None),  # sixth roots have no denominator up to four
        (MP.mpf(2) ** 0.75, 0, "2^(3/4)"),
        (7 * MP.sqrt(5), 0, "7 sqrt(5)"),
        (MP.pi / MP.sqrt(MP.e), 1, "pi/sqrt(e)"),
        (MP.log(2) * 3, 1, "3 log(2)"),
        (MP.log(3) / 5, 2, "log(3)/5"),
        (2 * MP.sqrt(MP.log(5)), 3, "2 sqrt(log(5))"),
        (1 + MP.pi, 4, "1 + pi"),
        (1 + 1 / MP.pi, 5, "1 + 1/pi"),
        (MP.pi**2 - 5, 6, "-5 + pi^2"),
        (MP.e - 2, 7, "-2 + e"),
        (1 - 1 / MP.e, 8, "1 - 1/e"),
        (1 - MP.log(2), 9, "1 - log(2)"),
        (2 + MP.log(3), 10, "2 + log(3)"),
        (2 + MP.log(5), 11, "2 + log(5)"),
        (1 + MP.log(2) + MP.log(3) * 2, 12, "1 + log(2) + 2 log(3)"),
        (1 + MP.log(2) + MP.log(5) * 2, 13, "1 + 2 log(5) + log(2)"),
        (1 + MP.sqrt(2), 14, "1 + sqrt(2)"),
        (3 + MP.sqrt(2), 14, "3 + sqrt(2)"),  # x^2 - 6 x + 7: 36 > 28
        (MP.sqrt(2), 14, "sqrt(2)"),
        (MP.cbrt(2) + 1, 15, "the root near 2.26 of x^3 - 3 x^2 + 3 x - 3"),
        (MP.sqrt(2) + MP.sqrt(3), 16, "the root near 3.146 of x^4 - 10 x^2 + 1"),
    ],
)
def test_in_which_basis_a_number_is_found(value, place, text):
    # With log(5): 4 bases of products, 8 of sums, 2 pairs, quadratics, then degrees from 3 on.
    found = next(itertools.islice(r.relations(+value, 30, [5], MP), place, None))
    assert (found and found.text) == text
    assert found is None or abs(found.value(MP) - value) < 1e-28


def test_log_4_is_no_second_log_2():
    assert len(sought(MP.zeta(3), 30)) == 16
    assert len(sought(MP.zeta(3), 30, [4])) == 18 and len(sought(MP.zeta(3), 30, [5])) == 19


def test_digits_beyond_those_known_do_not_count():
    # Of 1 + pi + 3e-21 twenty digits and fewer are those of 1 + pi; PSLQ is given two less.
    near = 1 + MP.pi + MP.mpf("3e-21")
    assert texts(near, 20)[3] == "1 + pi" and texts(near, 26)[3] is None
    assert texts(1 + MP.pi + MP.mpf("5e-19"), 20)[3] == "1 + pi"


def test_coefficients_are_below_a_hundred():
    # As PSLQ takes its bound. 101 is prime and no factor of the bases: sixteen times nothing.
    assert texts(MP.mpf(99) / 98) == ["99/98"] and texts(MP.mpf(100) / 99)[0] is None
    assert texts(MP.mpf(103) / 101) == [None] * 16


@pytest.mark.parametrize("leading", [1, -1])
def test_the_leading_coefficient_of_a_polynomial_is_positive(leading, monkeypatch):
    found = lambda numbers, **_: [leading, 0, 0, -leading * 2] if len(numbers) == 4 else None
    monkeypatch.setattr(MP, "pslq", lambda numbers, **more: found(list(numbers), **more))
    last = sought(MP.cbrt(2))[-1]
    assert last.text == "the root near 1.26 of x^3 - 2" and last.numbers == (1, 0, 0, -2)


@pytest.mark.parametrize("power, found", [(1, True), (4, True), (5, False), (0, False)])
def test_roots_up_to_the_fourth_are_products(power, found, monkeypatch):
    # x^power = 3: any sign of the relation says so.
    monkeypatch.setattr(MP, "pslq", lambda numbers, **_: [-power, 0, 1])
    product = r._product(MP.mpf(3) ** 0.5, ("2", "3"), {}, MP)
    assert (product is not None) == found
    if product is not None:
        assert abs(product.value(MP) - MP.mpf(3) ** (MP.mpf(1) / power)) < 1e-48


def test_one_has_no_logarithm_to_speak_of():
    assert r._product(MP.mpf(1), ("2",), {}, MP) is None
