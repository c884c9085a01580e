"""Taylor coefficients by hand: mpmath's at 50 digits, binomials, and products of one-variable ones.

mpmath differentiates by differences; fractions and factorials share no code with the recurrences.
"""

import math
from fractions import Fraction

import pytest
from fields import again
from flint import arb, fmpq
from mpmath import mp

from jaxbounds.programs.balls.exact import ATOMS, Field
from jaxbounds.programs.balls.interpreter import precision
from jaxbounds.programs.balls.jets import Coefficient, Jet, JetRun, Jets, _finite
from jaxbounds.programs.balls.values import NAN, NotSupported, Undecided, nonnegative

ORDER = 4


@pytest.fixture(autouse=True)
def arithmetic():
    with precision(160), mp.workdps(50):
        yield


def near(true, digits=20):
    within = 10.0**-digits * max(1.0, abs(float(true)))
    return arb(mp.nstr(true, 40), within)


def check_at(x, true):
    """Both its ball and what is written down are that number."""
    written = x.field.value(x.num) / x.field.value(x.den)
    for ball in (x.ball, written):
        assert float(ball.rad()) < 1e-20
        assert ball.overlaps(near(true)), (ball, true)


def fork_never(count, what):
    raise AssertionError(what)


sigmoid = lambda x: 1 / (1 + mp.exp(-x))
half = lambda q: mp.mpf(q.numerator) / q.denominator
QUARTER = Fraction(1, 4)
FUNCTIONS = {
    "neg": (lambda x: -x, QUARTER), "square": (lambda x: x * x, QUARTER),
    "exp": (mp.exp, QUARTER), "exp2": (lambda x: mp.mpf(2) ** x, QUARTER),
    "expm1": (mp.expm1, -QUARTER), "log": (mp.log, QUARTER), "log1p": (mp.log1p, -QUARTER),
    "sin": (mp.sin, -QUARTER), "cos": (mp.cos, QUARTER), "sinh": (mp.sinh, QUARTER),
    "cosh": (mp.cosh, -QUARTER), "tanh": (mp.tanh, QUARTER), "logistic": (sigmoid, -QUARTER),
    "atan": (mp.atan, QUARTER), "asin": (mp.asin, Fraction(1, 2)),
    "acos": (mp.acos, Fraction(-1, 2)), "erf": (mp.erf, Fraction(0)),
    "lgamma": (mp.loggamma, Fraction(2)), "sqrt": (mp.sqrt, Fraction(3, 4)),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), Fraction(3, 4)), "cbrt": (mp.cbrt, Fraction(2)),
}  # fmt: skip
UNWRITTEN = {"lgamma"}  # but for its value
REACH = 2.0**-5


def taylor(function, x, order):
    if function is mp.loggamma:
        rest = (mp.psi(k - 1, x) / math.factorial(k) for k in range(1, order + 1))
        return [mp.loggamma(x), *rest]
    return mp.taylor(function, x, order)


def jet_of(name, middle, order=ORDER):
    def run(field):
        jets = Jets(field, 1, order)
        around = Coefficient(field.rational(middle), arb(float(middle), REACH))
        return jets.apply(name, jets.variable(0, around)).of

    return again(run)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_series_there_and_around(name):
    function, middle = FUNCTIONS[name]
    found = jet_of(name, middle)
    assert len(found) == ORDER + 1
    for x in (0.0, REACH, -REACH, REACH / 3):
        true = taylor(function, half(middle) + x, ORDER)
        for k, (value, t) in enumerate(zip(found, true)):
            if value is None:
                assert abs(t) < 1e-20
                continue
            assert value.over.overlaps(near(t, 15)), (k, x, t)
            if x == 0 and k < ORDER and (k == 0 or name not in UNWRITTEN):
                check_at(value.at, t)
    # The ball of the highest is of the size of the coefficient.
    if found[ORDER] is not None and name not in UNWRITTEN:
        assert float(found[ORDER].over.rad()) <= 0.1 + 1.5 * abs(float(t))


ONLY_BALLS = {"atan": (mp.atan, 3), "asin": (mp.asin, 0.3), "acos": (mp.acos, 0.3),
              "erf": (mp.erf, 0.5), "lgamma": (mp.loggamma, 0.75)}  # fmt: skip


@pytest.mark.parametrize("name", ONLY_BALLS)
def test_series_where_nothing_is_written_down(name):
    """A number of which only a ball is known."""
    function, middle = ONLY_BALLS[name]

    def run(field):
        jets = Jets(field, 1, 3)
        return jets.apply(name, jets.variable(0, Coefficient(None, arb(middle)))).of

    found = again(run)
    for k, (value, true) in enumerate(zip(found, taylor(function, mp.mpf(middle), 3))):
        assert value.over.overlaps(near(true)) and float(value.over.rad()) < 1e-20
        assert value.at is None or k == 3


@pytest.mark.parametrize("x", [1, 2])
def test_zeros_of_log_gamma_and_no_others(x):
    assert jet_of("lgamma", Fraction(x), 2)[0].at.is_zero()
    assert jet_of("lgamma", Fraction(3), 2)[0].at is None
    assert jet_of("lgamma", Fraction(0), 2)[0].over.is_nan()
    assert jet_of("erf", Fraction(0), 2)[0].at.is_zero()
    assert jet_of("erf", Fraction(1), 2)[0].at is None
    slope = 2 / mp.sqrt(mp.pi) * mp.exp(-0.25)
    found = jet_of("erf", Fraction(1, 2), 3)
    check_at(found[1].at, slope)
    check_at(found[2].at, -slope / 2)


POWERS = [(3, 2), (0, 2), (1, 2), (2, -2), (7, 2), (-1, 2), (-2, -2), (-3, 2)]
RATIONAL_POWERS = [Fraction(1, 3), Fraction(-5, 2), Fraction(5, 2), Fraction(3), Fraction(-1)]


@pytest.mark.parametrize("n, middle", POWERS)
def test_whole_powers_by_the_binomials(n, middle):
    """(m + h)^n has binom(n, k) m^(n - k) h^k; for n < 0 too, with the signs."""

    def run(field):
        jets = Jets(field, 1, ORDER)
        x = jets.variable(0, Coefficient(field.rational(middle), arb(middle, REACH)))
        both = jets.power(x, n), jets.apply("pow", x, jets.lift(arb(n)))
        return [jet.of for jet in both]

    for found in again(run):
        for k, value in enumerate(found):
            over = [Fraction(1)]
            for i in range(k):
                over.append(over[-1] * (n - i) / (i + 1))
            for at in (Fraction(middle), Fraction(middle) + Fraction(1, 32)):
                true = over[k] * (at ** (n - k) if over[k] else 0)
                if value is None:
                    assert true == 0
                    continue
                assert value.over.overlaps(near(half(true)))
            if value is not None and k < ORDER:
                check_at(
                    value.at, half(over[k] * Fraction(middle) ** (n - k) if over[k] else 0 * true)
                )


@pytest.mark.parametrize("q", RATIONAL_POWERS)
def test_rational_powers(q):
    def run(field):
        jets = Jets(field, 1, ORDER)
        x = jets.variable(0, Coefficient(field.rational(2), arb(2, REACH)))
        exponent = jets.constant(jets.rational(q))
        return jets.apply("pow", x, exponent).of

    found = again(run)
    for at in (2, 2 + mp.mpf(REACH), 2 - mp.mpf(REACH)):
        for k, value in enumerate(found):
            true = mp.binomial(half(q), k) * mp.mpf(at) ** (half(q) - k)
            if value is None:
                assert abs(true) < 1e-30
                continue
            assert value.over.overlaps(near(true))
            if at == 2 and k < ORDER:
                check_at(value.at, true)


def test_a_power_whose_exponent_varies():
    """x^x at 2, and 2^x, whose exponent varies alone."""

    def run(field):
        jets = Jets(field, 1, 3)
        x = jets.variable(0, Coefficient(field.rational(2), arb(2, REACH)))
        two = jets.lift(arb(2))
        return [jets.apply("pow", base, x).of for base in (x, two)]

    for found, function in zip(again(run), (lambda x: x**x, lambda x: mp.mpf(2) ** x)):
        for at in (2, 2 + mp.mpf(REACH)):
            for k, (value, true) in enumerate(zip(found, mp.taylor(function, mp.mpf(at), 3))):
                assert value.over.overlaps(near(true, 15))
                if at == 2 and k < 3:
                    check_at(value.at, true)


def test_powers_at_zero():
    jets = Jets(Field(), 1, 3)
    h = Jet([None, jets.rational(1), None, None])
    cube = jets.power(h, 3).of
    assert cube[:3] == [None] * 3 and cube[3].over == 1
    one = jets.power(h, 0).of
    assert one[0].at.as_rational() == 1 and one[1:] == [None] * 3
    one = jets.apply("pow", h, jets.constant(None)).of
    assert one[0].at.as_rational() == 1 and one[1:] == [None] * 3
    for q in (Fraction(1, 2), -1):
        with pytest.raises(NotSupported):
            jets.apply("pow", h, jets.lift(arb(float(q))))
    with pytest.raises(NotSupported):
        jets.apply("div", h, h)
    with pytest.raises(NotSupported):
        jets.apply("digamma", h)
    zero = jets.constant(Coefficient(jets.field.rational(0), arb(0)))
    assert jets.apply("sqrt", zero).of[0].over == 0  # a constant needs no slope
    assert jets.apply("exp", h).of[2].at.as_rational() == fmpq(1, 2)


def test_even_powers_are_tight_and_known_not_to_be_negative():
    jets = Jets(Field(), 1, 2)
    x = jets.variable(0, Coefficient(jets.field.rational(0), arb(0, 1)))
    for squared in (jets.power(x, 2), jets.apply("square", x), jets.apply("mul", x, x)):
        over = squared.of[0].over
        assert nonnegative(over) and over.contains(1) and over.contains(0)
        assert squared.of[0].at.is_zero() and squared.of[1].over.contains(2)
    assert nonnegative(jets.power(x, 4).of[0].over)
    assert not nonnegative(jets.power(x, 3).of[0].over) and jets.power(x, 3).of[0].over.contains(-1)
    y = jets.variable(0, Coefficient(jets.field.rational(0), arb(0, 1)))
    other = jets.apply("mul", x, y).of[0].over
    assert other.contains(-1)  # they need not be one number
    assert jets.power(x, 0).of[0].over == 1
    alone = Jets(jets.field, 0, 1)
    (squared,) = alone.apply("square", alone.constant(Coefficient(None, arb(0, 1)))).of
    assert nonnegative(squared.over)


# Several variables.


def polynomial(jets, entries):
    """(x + 2) (x - 3 y)^2 / 4 - y."""
    x, y = entries
    two, three = jets.lift(arb(2)), jets.lift(arb(3))
    mul, add, sub = (lambda a, b, n=n: jets.apply(n, a, b) for n in ("mul", "add", "sub"))
    inner = sub(x, mul(three, y))
    quarter = jets.apply("div", mul(add(x, two), jets.power(inner, 2)), jets.lift(arb(4)))
    return sub(quarter, y)


def derivatives(a, b):
    """By hand: f = (x^3 + 2 x^2 - 6 x^2 y - 12 x y + 9 x y^2 + 18 y^2) / 4 - y."""
    c = {(3, 0): 1, (2, 0): 2, (2, 1): -6, (1, 1): -12, (1, 2): 9, (0, 2): 18}
    out = {}
    for i in range(4):
        for j in range(4 - i):
            terms = (v * math.comb(p, i) * math.comb(q, j) * a ** (p - i) * b ** (q - j)
                     for (p, q), v in c.items() if p >= i and q >= j)  # fmt: skip
            out[i, j] = sum(terms, Fraction(0)) / 4
    out[0, 0] -= b
    out[0, 1] -= 1
    return out


def test_a_polynomial_of_two_variables():
    a, b, reach = Fraction(1, 2), Fraction(-1, 4), Fraction(1, 16)
    jets = Jets(Field(), 2, 3)
    assert jets.monomials == [(0, 0), (0, 1), (1, 0), (0, 2), (1, 1), (2, 0),
                              (0, 3), (1, 2), (2, 1), (3, 0)]  # fmt: skip
    r = jets.field.rational
    entries = [jets.variable(0, Coefficient(r(a), arb(0.5, 0.0625))),
               jets.variable(1, Coefficient(r(b), arb(-0.25, 0.0625)))]  # fmt: skip
    found = polynomial(jets, entries).of
    for x, y in ((a, b), (a + reach, b - reach), (a - reach, b - reach)):
        true = derivatives(x, y)
        for powers, value in zip(jets.monomials, found):
            over = arb(0) if value is None else value.over
            t = true[powers]
            assert over.overlaps(arb(t.numerator) / t.denominator), powers
            if (x, y) == (a, b) and sum(powers) < 3 and value is not None:
                assert value.at.as_rational() == fmpq(t.numerator, t.denominator)
            if sum(powers) == 3:
                assert float(over.rad()) < 1e-20  # constant, and seen to be


@pytest.mark.parametrize("name", ["exp", "log", "sqrt"])
def test_functions_of_two_variables_by_products_of_one(name):
    """exp(x + 2 y), log(x y^2) and sqrt(x y^2) are products or sums of functions of one."""
    a, b, order = Fraction(1, 2), Fraction(3, 4), 3

    def run(field):
        jets = Jets(field, 2, order)
        x = jets.variable(0, Coefficient(field.rational(a), arb(0.5, REACH)))
        y = jets.variable(1, Coefficient(field.rational(b), arb(0.75, REACH)))
        twice = jets.apply("add", y, y), jets.apply("mul", y, y)
        inner = jets.apply("add", x, twice[0]) if name == "exp" else jets.apply("mul", x, twice[1])
        return jets.monomials, jets.apply(name, inner).of

    monomials, found = again(run)
    one = {"exp": (mp.exp, lambda y: mp.exp(2 * y)), "log": (mp.log, lambda y: 2 * mp.log(y)),
           "sqrt": (mp.sqrt, lambda y: y)}[name]  # fmt: skip
    for shift in (0, mp.mpf(REACH), -mp.mpf(REACH)):
        u, v = (mp.taylor(f, half(m) + shift, order) for f, m in zip(one, (a, b)))
        for (i, j), value in zip(monomials, found):
            true = u[i] * v[j]
            if name == "log":
                true = u[0] + v[0] if i == j == 0 else u[i] if j == 0 else v[j] if i == 0 else 0
            over = arb(0) if value is None else value.over
            assert over.overlaps(near(mp.mpf(true), 15)), (i, j)
            assert float(over.rad()) < 64
            if shift == 0 and i + j < order and value is not None and value.at is not None:
                check_at(value.at, mp.mpf(true))
                assert abs(true) > 1e-20 or value.at.is_zero()
            if i + j < order:
                assert value is None or value.at is not None


# What is not known.


def test_constants():
    jets = Jets(Field(), 1, 2)
    assert jets.lift(arb(0)).of == [None] * 3
    three = jets.lift(arb(0.375)).of
    assert three[0].at.as_rational() == fmpq(3, 8) and three[0].over == 0.375
    assert three[1:] == [None, None]
    for ball in (arb(1, 0.5), arb("inf"), NAN):
        (first, *others) = jets.lift(ball).of
        assert first.at is None and others == [None, None]
        assert first.over.is_nan() == ball.is_nan() and first.over.rad() == ball.rad()
    assert jets.rational(Fraction(2, 3)).at.as_rational() == fmpq(2, 3)
    assert jets.rational(Fraction(2, 3)).over.contains(arb(2) / 3)


def test_what_may_be_undefined_stays_so():
    jets = Jets(Field(), 1, 2)
    x = jets.variable(0, Coefficient(jets.field.rational(0), arb(0, 1)))
    bad = jets.apply("log", x)
    assert bad.of[0].over.is_nan() and jets.finite(bad) == 2 and not _finite(bad)
    assert jets.finite(x) == 1 and _finite(x) and jets.finite(jets.constant(None)) == 1
    zero = jets.constant(None)
    for product in (jets.apply("mul", bad, zero), jets.apply("mul", zero, bad)):
        assert product.of[0].at is None and product.of[0].over.is_nan()
    top = Jet([jets.rational(1), None, Coefficient(None, NAN)])  # only the highest is unknown
    assert jets.apply("mul", zero, top).of[0].over.is_nan() and not _finite(top)
    assert jets.finite(jets.lift(arb("inf"))) == 2
    assert jets.hull(zero) == 0 and jets.hull(x).contains(1) and not jets.hull(x).contains(2)


def test_a_field_that_is_full_leaves_the_balls():
    field = Field()
    for i in range(ATOMS):
        field.symbol(i, arb(2))
    jets = Jets(field, 0, 1)
    x = jets.constant(Coefficient(field.symbol(0, arb(2)), arb(2)))
    found = jets.apply("exp", x).of[0]
    assert found.at is None and found.over.overlaps(near(mp.exp(2)))
    y = jets.constant(Coefficient(field.symbol(1, arb(2)), arb(2)))
    for _ in range(5):
        y = jets.apply("mul", y, jets.apply("add", jets.apply("add", y, x), jets.lift(arb(1))))
    for i in range(2, 12):
        more = jets.constant(Coefficient(field.symbol(i, arb(2)), arb(2)))
        y = jets.apply("mul", jets.apply("add", y, more), jets.apply("sub", more, x))
    assert y.of[0].at is None and y.of[0].over.is_exact()


# Choices.


def constants(jets, *entries):
    return [jets.lift(arb(*e)) if isinstance(e, tuple) else jets.lift(arb(e)) for e in entries]


ORDERED = {"lt": (1, 0, 0), "le": (1, 0, 1), "gt": (0, 1, 0), "ge": (0, 1, 1), "eq": (0, 0, 1),
           "ne": (1, 1, 0)}  # fmt: skip


@pytest.mark.parametrize("name", ORDERED)
def test_comparisons_that_are_decided(name):
    jets = Jets(Field(), 1, 2)
    one, three, also = constants(jets, 1, 3, 3)
    found = [jets.compare(name, a, b, fork_never) for a, b in ((one, three), (three, one))]
    assert (*found, jets.compare(name, three, also, fork_never)) == ORDERED[name]
    x = jets.variable(0, Coefficient(jets.field.rational(0), arb(0, 1)))
    assert jets.compare(name, x, three, fork_never) == ORDERED[name][0]
    assert jets.conditions == []


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge"])
def test_an_open_comparison_forks_and_notes_its_condition(name, first):
    """The first continuation is where a >= b, so a - b is not negative there."""
    jets = Jets(Field(), 1, 2)
    x = jets.variable(0, Coefficient(jets.field.rational(0), arb(0, 1)))
    half_of = jets.lift(arb(0.5))
    asked = []

    def fork(count, what):
        asked.append(count)
        return first

    found = jets.compare(name, x, half_of, fork)
    assert found == int((name in ("gt", "ge")) == (first == 0)) and asked == [2]
    (condition,) = jets.conditions
    sign = 1 if first == 0 else -1
    assert condition.of[0].at.as_rational() == fmpq(-sign, 2)
    assert condition.of[1].over == sign
    # The larger of the two is the one that the continuation takes.
    jets.conditions = []
    assert jets.larger(x, half_of, fork) is (x if first == 0 else half_of)
    assert len(jets.conditions) == 1


@pytest.mark.parametrize("name", ["eq", "ne"])
def test_whether_two_numbers_are_equal_is_no_fork(name):
    jets = Jets(Field(), 1, 2)
    x = jets.variable(0, Coefficient(jets.field.rational(0), arb(0, 1)))
    with pytest.raises(Undecided):
        jets.compare(name, x, jets.lift(arb(0.5)), fork_never)
    for pair in ((x, jets.lift(NAN)), (jets.lift(NAN), x)):
        for any_name in ("lt", "ge", name):
            with pytest.raises(Undecided):
                jets.compare(any_name, *pair, fork_never)
        assert jets.larger(*pair, fork_never).of[0].over.is_nan()
    with pytest.raises(Undecided):
        jets.join([x, x])


def test_signs_that_are_known_from_what_is_written_down():
    """x^2 is nowhere negative though x is open; -x^2 nowhere positive."""
    jets = Jets(Field(), 0, 1)
    ball = arb(0, 1)
    x = jets.field.symbol("x", ball)
    loose = lambda entry: jets.constant(Coefficient(entry, ball))
    square, minus, zero = loose(x * x), loose(-(x * x)), jets.constant(None)
    assert jets.compare("ge", square, zero, fork_never) == 1
    assert jets.compare("lt", square, zero, fork_never) == 0
    assert jets.compare("le", minus, zero, fork_never) == 1
    assert jets.compare("gt", minus, zero, fork_never) == 0
    assert jets.larger(square, minus, fork_never) is square
    assert jets.larger(minus, square, fork_never) is square
    took = lambda count, what: 1
    for name, entry in (("le", square), ("gt", square), ("ge", minus), ("lt", minus)):
        jets.conditions = []
        assert jets.compare(name, entry, zero, took) == int(name in ("le", "lt"))
        assert len(jets.conditions) == 1
    jets.conditions = []
    assert jets.compare("ge", loose(x), zero, took) == 0 and len(jets.conditions) == 1
    # Where something varies a value there says nothing of the neighbourhood.
    moving = Jets(jets.field, 1, 2)
    entry = moving.variable(0, Coefficient(x * x, ball))
    moving.compare("ge", entry, moving.constant(None), took)
    assert len(moving.conditions) == 1
    quotient = Jets(jets.field, 0, 1)
    v = quotient.field.symbol("v", arb(-1, 0.5))
    below = quotient.constant(Coefficient(x * x * v.inverse(), ball))
    assert quotient.compare("ge", below, quotient.constant(None), took) == 0


def test_a_run_of_jets():
    jets = Jets(Field(), 0, 1)
    run = JetRun(jets, "exact", 1.0)
    assert run.algebra is jets
    assert run.larger(*constants(jets, 1, 2)).of[0].over == 2
    assert run.smaller(*constants(jets, 1, 2)).of[0].over == 1
