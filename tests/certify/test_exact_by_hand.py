"""Exact fields by hand: identities of school, and values that mpmath has at 40 digits.

mpmath shares no code with FLINT's polynomials nor with the rules that are tested.
"""

from fractions import Fraction

import pytest
from fields import again
from flint import arb, fmpq
from mpmath import mp

from jaxbounds.programs.balls.exact import ATOMS, LARGEST, Exact, Field, Finer, GivenUp, fraction
from jaxbounds.programs.balls.interpreter import precision

HALF, THIRD = fmpq(1, 2), fmpq(1, 3)


@pytest.fixture(autouse=True)
def arithmetic():
    with precision(160), mp.workdps(40):
        yield


def near(true):
    return arb(mp.nstr(true, 38), 1e-33 * max(1.0, abs(float(true))))


def check(x, true):
    """Both its ball and what is written down are that number."""
    written = x.field.value(x.num) / x.field.value(x.den)
    for ball in (x.ball, written):
        assert float(ball.rad()) < 1e-30 * max(1.0, abs(float(true))), true
        assert ball.overlaps(near(true)), (ball, true)


def symbols(field, *values):
    return [field.symbol(i, arb(v)) for i, v in enumerate(values)]


X, Y = 3, -1.25
OF_TWO = {
    "sum of quotients": (lambda x, y, r: (x * y.inverse()) + (y * (x + r(1)).inverse()),
                         lambda x, y: x / y + y / (x + 1)),
    "difference": (lambda x, y, r: x - y - r(2), lambda x, y: x - y - 2),
    "equal divisors": (lambda x, y, r: x * y.inverse() + r(2) * y.inverse(),
                       lambda x, y: (x + 2) / y),
    "minus": (lambda x, y, r: -(x * y.inverse()), lambda x, y: -x / y),
    "powers": (lambda x, y, r: (x + y) ** 3 + y ** -3 + (x * y.inverse()) ** 2,
               lambda x, y: (x + y) ** 3 + y ** -3 + (x / y) ** 2),
    "root of a quotient": (lambda x, y, r: (x * (y * y + r(1)).inverse()).power(HALF),
                           lambda x, y: mp.sqrt(x / (y * y + 1))),
    "root of two negatives": (lambda x, y, r: (y * (y - r(1))).power(HALF),
                              lambda x, y: mp.sqrt(y * (y - 1))),
    "root of negatives over": (lambda x, y, r: (r(-2) * y.inverse()).power(THIRD),
                               lambda x, y: mp.cbrt(-2 / y)),
    "two thirds": (lambda x, y, r: x.power(fmpq(2, 3)) * x.power(fmpq(-1, 2)),
                   lambda x, y: x ** (mp.mpf(1) / 6)),
    "root of a root": (lambda x, y, r: (x.power(HALF) + r(1)).power(HALF),
                       lambda x, y: mp.sqrt(mp.sqrt(x) + 1)),
    "power of a root": (lambda x, y, r: x.power(HALF).power(fmpq(3, 2)),
                        lambda x, y: x ** mp.mpf(0.75)),
    "exp of a sum": (lambda x, y, r: (x * r(Fraction(1, 2)) + y * y + r(-1)).exp(),
                     lambda x, y: mp.exp(x / 2 + y * y - 1)),
    "exp of a quotient": (lambda x, y, r: (r(Fraction(2, 3)) * y * (x + r(1)).inverse()).exp(),
                          lambda x, y: mp.exp(2 * y / (3 * (x + 1)))),
    "power of exp": (lambda x, y, r: y.exp().power(fmpq(-3, 2)), lambda x, y: mp.exp(-1.5 * y)),
    "exp of half a logarithm": (lambda x, y, r: (x.log() * r(Fraction(1, 2)) + y).exp(),
                                lambda x, y: mp.sqrt(x) * mp.exp(y)),
    "logarithm of a product": (
        lambda x, y, r: (r(Fraction(12, 5)) * x * x * y * (y - x).inverse()).log(),
        lambda x, y: mp.log(mp.mpf(12) / 5 * x * x * y / (y - x))),
    "logarithm of root and exp": (lambda x, y, r: (x.power(THIRD) * y.exp() ** 2).log(),
                                  lambda x, y: mp.log(x) / 3 + 2 * y),
    "sine": (lambda x, y, r: y.sin_cos()[0], lambda x, y: mp.sin(y)),
    "sine of minus": (lambda x, y, r: (-x).sin_cos()[0], lambda x, y: -mp.sin(x)),
    "cosine": (lambda x, y, r: (-x).sin_cos()[1], lambda x, y: mp.cos(x)),
    "sine of a quotient": (lambda x, y, r: (-x * (x + r(1)).inverse()).sin_cos()[0],
                           lambda x, y: -mp.sin(x / (x + 1))),
    "cube of a sine": (lambda x, y, r: x.sin_cos()[0] ** 3 + x.sin_cos()[0] ** 2,
                       lambda x, y: mp.sin(x) ** 3 + mp.sin(x) ** 2),
    "arctangent": (lambda x, y, r: y.atan() + x.atan(), lambda x, y: mp.atan(y) + mp.atan(x)),
    "arctangent of minus": (lambda x, y, r: (-x * (x + r(1)).inverse()).atan(),
                            lambda x, y: -mp.atan(x / (x + 1))),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_TWO)
def test_what_is_written_down_and_its_ball_are_the_number(name):
    work, true = OF_TWO[name]
    found = again(lambda f: work(*symbols(f, X, Y), f.rational))
    check(found, true(mp.mpf(X), mp.mpf(Y)))


ZEROS = {
    "x / x = 1": lambda x, y, r: x * x.inverse() - r(1),
    "a power of zero": lambda x, y, r: (x + y) ** 0 - r(1),
    "a difference of squares": lambda x, y, r: (x - y) * (x + y) - x**2 + y**2,
    "a fraction in lowest terms": (
        lambda x, y, r: (x * x - y * y) * (x - y).inverse() - x - y
    ),
    "a root squared": lambda x, y, r: (x + r(1)).power(HALF) ** 2 - x - r(1),
    "a root of a square": lambda x, y, r: ((y - x) ** 2).power(HALF) - x + y,
    "roots that differ": lambda x, y, r: x.power(THIRD) ** 2 - x.power(fmpq(2, 3)),
    "a root below": lambda x, y, r: x.power(HALF).inverse() - x.power(HALF) * x.inverse(),
    "exp of a sum": lambda x, y, r: (x + y).exp() - x.exp() * y.exp(),
    "exp of minus": lambda x, y, r: y.exp() * (-y).exp() - r(1),
    "exp of log": lambda x, y, r: (x.log() + (-y).log()).exp() + x * y,
    "log of exp": lambda x, y, r: (x * y).exp().log() - x * y,
    "log of a half": lambda x, y, r: r(Fraction(1, 2)).log() + r(2).log(),
    "log of a root": lambda x, y, r: r(2) * x.power(HALF).log() - x.log(),
    "log of a quotient": (
        lambda x, y, r: (x * (x + r(1)).inverse()).log() - x.log() + (x + r(1)).log()
    ),
    "log of an even power of what is negative": (
        lambda x, y, r: (y**2).log() - r(2) * (-y).log()
    ),
    "sin2 + cos2": lambda x, y, r: sum((v**2 for v in y.sin_cos()), r(-1)),
    "sine is odd": lambda x, y, r: y.sin_cos()[0] + (-y).sin_cos()[0],
    "cosine is even": lambda x, y, r: y.sin_cos()[1] - (-y).sin_cos()[1],
    "arctangent is odd": lambda x, y, r: x.atan() + (-x).atan(),
    "of quotients too": lambda x, y, r: (
        (x * y.inverse()).sin_cos()[0] + (-x * y.inverse()).sin_cos()[0]
    ),
    "exp of a quotient": lambda x, y, r: (
        (r(3) * x * y.inverse()).exp() - (x * y.inverse()).exp() ** 3
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ZEROS)
def test_identities_are_seen_and_their_neighbours_not(name):
    found = again(lambda f: ZEROS[name](*symbols(f, X, Y), f.rational))
    assert found.is_zero() and found.as_rational() == 0
    off = again(lambda f: ZEROS[name](*symbols(f, X, Y), f.rational) + f.rational(1))
    assert not off.is_zero() and off.as_rational() == 1


@pytest.mark.parametrize("twelfths", range(-26, 27))
def test_multiples_of_a_twelfth_of_pi(twelfths):
    found = again(lambda f: (f.pi() * f.rational(Fraction(twelfths, 12))).sin_cos())
    if twelfths % 12 in (1, 5, 7, 11):
        assert found is None
        return
    for value, true in zip(found, (mp.sin, mp.cos)):
        check(value, true(mp.pi * twelfths / 12))
        # They are known: squares of all of them are rational.
        assert (value * value).as_rational() is not None


def test_a_multiple_of_pi_that_is_not_known():
    assert again(lambda f: (f.pi() * f.rational(Fraction(1, 5))).sin_cos()) is None


@pytest.mark.parametrize("x", [-1, Fraction(-1, 2), 0, Fraction(1, 2), 1])
def test_angles_that_are_known(x):
    field = Field()
    check(field.rational(x).asin(), mp.asin(mp.mpf(float(x))))
    found = field.rational(x).atan()
    check(found, mp.atan(mp.mpf(float(x))))
    assert (found * field.pi().inverse()).as_rational() == (None if abs(x) == 0.5 else fmpq(x) / 4)


def test_angles_that_are_not_known():
    field = Field()
    assert field.rational(Fraction(1, 3)).asin() is None
    assert field.symbol("x", arb(0.5)).asin() is None


def test_rational_numbers():
    field = Field()
    assert field.rational(Fraction(-7, 3)).as_rational() == fraction(Fraction(-7, 3)) == fmpq(-7, 3)
    assert (field.rational(0.75) * field.rational(Fraction(4, 3))).as_rational() == 1
    check(field.rational(Fraction(-7, 3)), -mp.mpf(7) / 3)
    x = field.symbol("x", arb(2))
    assert x.as_rational() is None and (x * x.inverse()).as_rational() == 1
    assert x.inverse().as_rational() is None
    assert not x.is_zero() and (x - x).is_zero()
    quotient = Exact(field, x.den * 6, x.den * 4, arb(1.5))
    assert quotient.as_rational() == fmpq(3, 2)
    assert Exact.of(field, x.num * 6, x.num * 4, arb(1.5)).as_rational() == fmpq(3, 2)


@pytest.mark.parametrize("ball", [arb(0), arb(0, 1), arb(1, 2), arb(-1, 2), arb("nan")])
def test_what_may_be_zero_is_no_divisor_and_has_no_logarithm(ball):
    field = Field()
    x = field.symbol("x", ball)
    assert x.inverse() is None and x**-1 is None and x.log() is None
    assert x.power(HALF) is None
    zero = Exact(field, x.num - x.num, x.den, arb(1))  # known better than its ball
    assert zero.inverse() is None


def test_an_exponential_whose_ball_reaches_zero_is_no_divisor():
    """e^x with x in [-200, 200] has a ball about zero: e^-x is not written down."""
    field = Field()
    x = field.symbol("x", arb(0, 200))
    assert x.exp() is not None
    assert (-x).exp() is None and (field.rational(1) - x).exp() is None


def test_what_is_negative_has_no_logarithm_and_no_root():
    field = Field()
    x = field.symbol("x", arb(-2, 1))
    assert x.log() is None and x.power(HALF) is None
    check((field.rational(-2)).inverse(), -mp.mpf(1) / 2)
    assert field.rational(-2).power(fmpq(3)).as_rational() == -8


def test_a_factor_of_open_sign_gives_no_logarithm():
    """X (x - 3) + 3 is positive by its ball; that of x^2 - 3x is open, so is x - 3."""
    field = Field()
    x = field.symbol("x", arb(3, 0.25))
    product = (x - field.rational(3)) * x
    positive = Exact(field, product.num, product.den, arb(1))
    assert positive.log() is None and positive.power(HALF) is None
    below = Exact(field, product.den, product.num, arb(1))
    assert below.log() is None and below.power(HALF) is None


def test_factors_are_positive_and_multiply_to_the_polynomial():
    field = Field()
    x, y = symbols(field, 3, -2)
    six = field.rational(Fraction(6, 5))
    positive = (six * x * y**3 * (y - x)).num
    found = field.factors(positive)
    product = x.den
    for base, ball, power in found:
        assert ball > 0 and ball.overlaps(field.value(base))
        product = product * base**power if power > 0 else product / base**-power
    assert product == positive and field.of_some_sign(positive) == found
    assert sorted(power for *_, power in found) == [-1, 1, 1, 1, 1, 3]
    # Its negative is none, but of some sign.
    assert field.factors(-positive) is None
    assert field.of_some_sign(-positive) == found
    assert field.factors((six * y).num) is None and field.factors((-(six * y)).num) is not None
    assert field.factors((x * y * y).num) is not None and field.factors((-x * y * y).num) is None
    assert field.factors(field.rational(-2).num) is None
    assert field.factors(x.num - x.num) is None
    assert field.factors(field.rational(1).num) == []


def test_a_factor_of_open_sign_is_none():
    field = Field()
    x, y = field.symbol("x", arb(0, 1)), field.symbol("y", arb(1))
    assert field.factors((x * y).num) is None and field.of_some_sign((x * y).num) is None
    zero = field.symbol("z", arb(0))
    assert field.factors(zero.num) is None


TERMS = [
    # powers of (open, positive, negative or zero, not negative though its ball is open), sign
    ((0, 0, 0, 0), 1), ((1, 0, 0, 0), 0), ((2, 0, 0, 0), 1), ((3, 1, 1, 1), 0), ((0, 3, 0, 0), 1),
    ((0, 0, 1, 0), -1), ((0, 0, 2, 0), 1), ((0, 0, 3, 0), -1), ((2, 1, 1, 0), -1),
    ((0, 0, 0, 1), 1), ((0, 1, 1, 3), -1), ((1, 0, 1, 0), 0), ((4, 0, 2, 1), 1),
]  # fmt: skip


@pytest.mark.parametrize("powers, sign", TERMS)
def test_the_sign_of_a_term(powers, sign):
    field = Field()
    balls = (arb(0, 0.5), arb(2, 1), arb(-1, 0.5), arb(0.5, 1))
    atoms = [field.symbol(i, ball) for i, ball in enumerate(balls)]
    field.nonnegative.add(3)
    term = field.rational(1)
    for atom, power in zip(atoms, powers):
        term = term * atom**power
    for c in (1, -1, 7, -7):
        (given, coefficient), *others = (term * field.rational(c)).num.terms()
        assert not others
        assert field._of_term(given, coefficient) == (sign if c > 0 else -sign)


def test_the_sign_of_a_polynomial():
    """X is in [-1, 1], u in [0.1, 1.9], v in [-1.9, -0.1]."""
    field = Field()
    x, u, v = (
        field.symbol("x", arb(0, 1)),
        field.symbol("u", arb(1, 0.9)),
        field.symbol("v", arb(-1, 0.9)),
    )
    r = field.rational
    signs = lambda *entries: [field.sign(entry.num) for entry in entries]
    assert signs(x + r(1.5), x - r(1.5), r(2) - x, -x - r(2)) == [1, -1, 1, -1]
    assert signs(x, x * x, -x * x, x * x + u, x * x - u, x * x - v) == [0, 1, -1, 1, 0, 1]
    # Balls say nothing of these, the terms do.
    odd = x * x * x * x
    assert signs(odd + u * x * x, u * v * x * x - odd, odd * v * v - v * x * x) == [1, -1, 1]
    assert signs(x * x - r(2) * x + r(1), odd * v + x * x) == [0, 0]  # a square it may be
    assert signs(r(2) + u, r(-2) + v, r(3), r(-3)) == [1, -1, 1, -1]
    zero = field.symbol("zero", arb(0))
    assert field.sign(zero.num) == 1


def test_powers_that_are_known_are_replaced():
    """With a^2 = x / y at x = 9, y = 4: what is written down is that of a = 3/2."""
    field = Field()
    x, y, a = symbols(field, 9, 4, 1.5)
    field.relate(2, 2, x * y.inverse())
    g = a.num
    for p in (g**5 + x.num * g**2 + 3, g**2, g**3 - g, g + 1, g**4 * y.num + g**2):
        q, below = field.reduced(p)
        assert int(q.degrees()[2]) < 2
        assert field.value(q) / field.value(below) == field.value(p)
    assert field.reduced(g + 1) == (g + 1, x.den)
    assert (a * a - x * y.inverse()).is_zero()
    assert ((a * a).inverse() - y * x.inverse()).is_zero()


def test_later_atoms_are_replaced_first():
    """The square of the root of 1 + root 2 has the root of 2, of which the square is 2."""
    fourth = again(lambda f: (f.rational(2).power(HALF) + f.rational(1)).power(HALF) ** 4)
    assert again(lambda f: fourth - fourth).is_zero()
    check(fourth, (1 + mp.sqrt(2)) ** 2)
    seen = again(lambda f: (
        (f.rational(2).power(HALF) + f.rational(1)).power(HALF) ** 4
        - f.rational(3) - f.rational(2) * f.rational(2).power(HALF)
    ))  # fmt: skip
    assert seen.is_zero()


def test_a_field_holds_so_many_atoms():
    field = Field()
    for i in range(ATOMS):
        check(field.symbol(i, arb(i + 1)), mp.mpf(i + 1))
        assert field.index("symbol", i) == i
    with pytest.raises(GivenUp):
        field.symbol("more", arb(1))
    assert field.symbol(3, arb(99)).ball == 4  # one that is known is what it was


def test_a_number_holds_so_many_terms():
    field = Field()
    x = field.symbol("x", arb(0.5))
    y = field.symbol("y", arb(0.5))
    terms = lambda n: sum((x.num ** (k // 20) * y.num ** (k % 20) for k in range(n)), x.num * 0)
    one = x.den
    assert Exact.of(field, terms(LARGEST - 1), one, arb(1)) is not None
    with pytest.raises(GivenUp):
        Exact.of(field, terms(LARGEST), one, arb(1))


def test_atoms_are_divided_as_finely_as_is_needed():
    fine = {}
    with pytest.raises(Finer):
        Field(fine).rational(3).power(HALF)
    assert set(fine.values()) == {2}
    with pytest.raises(Finer):
        Field(fine).rational(3).power(THIRD)
    assert set(fine.values()) == {6}
    field = Field(fine)
    check(field.rational(3).power(fmpq(5, 6)), mp.mpf(3) ** (mp.mpf(5) / 6))
    check(field.rational(3).power(THIRD), mp.cbrt(3))
    with pytest.raises(Finer):
        field.rational(1).exp().power(HALF)
    assert sorted(fine.values()) == [2, 6]
    check(Field(fine).rational(1).exp().power(fmpq(3, 2)), mp.exp(1.5))


def test_the_logarithm_of_an_exponential_is_known():
    field = Field({("exp", "a0"): 3})
    x = field.symbol("x", arb(2))
    check(x.exp(), mp.exp(2))
    check(x.exp().log(), mp.mpf(2))
    assert (x.exp().log() - x).is_zero()
