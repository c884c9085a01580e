"""Proofs at a point of equality by hand: polynomials whose sign fractions and school decide.

Nothing here is computed by the engine but what is tested: signs come from factors, discriminants
and values at points that stand here.
"""

import itertools
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from fields import again
from flint import arb, fmpq
from mpmath import mp

from jaxbounds.falsification import float64_on_cpu
from jaxbounds.programs.balls import contact
from jaxbounds.programs.balls.contact import (
    Number,
    Place,
    Region,
    candidates,
    not_negative,
    rational,
    touching,
    weights_of,
)
from jaxbounds.programs.balls.exact import Field
from jaxbounds.programs.balls.interpreter import precision, traced
from jaxbounds.programs.balls.jets import Coefficient, Jet, Jets
from jaxbounds.programs.balls.values import NAN, NotSupported, Undecided


@pytest.fixture(autouse=True)
def arithmetic():
    with float64_on_cpu(), precision(128):
        yield


def terms(**coefficients):
    """x2=1, x1y1=-3 is x^2 - 3 x y; in one variable x2=1 alone."""
    both = any("y" in name for name in coefficients)
    out = []
    for name, c in coefficients.items():
        powers = {"x": 0, "y": 0}
        for letter, digit in zip(name[::2], name[1::2]):
            powers[letter] = int(digit)
        if c:
            out.append(((powers["x"], powers["y"]) if both else (powers["x"],), arb(c)))
    return out


# Numbers.

NUMBERS = [
    (Number("rational", Fraction(-3, 7)), lambda: mp.mpf(-3) / 7),
    (Number("root", Fraction(2), 2), lambda: mp.sqrt(2)),
    (Number("root", Fraction(2, 3), 2, -1), lambda: -mp.sqrt(mp.mpf(2) / 3)),
    (Number("root", Fraction(1, 2), 2), lambda: mp.sqrt(0.5)),
    (Number("root", Fraction(5), 3), lambda: mp.cbrt(5)),
    (Number("root", Fraction(5), 3, -1), lambda: -mp.cbrt(5)),
    (Number("log", Fraction(3, 2)), lambda: mp.log(1.5)),
    (Number("pi", Fraction(-2, 3)), lambda: -2 * mp.pi / 3),
    (Number("exp", Fraction(1, 2)), lambda: mp.exp(0.5)),
]


@pytest.mark.parametrize("number, true", NUMBERS)
def test_a_number_in_floats_and_exactly(number, true):
    with mp.workdps(30):
        assert number.as_float == pytest.approx(float(true()), rel=1e-15)
        found = again(number.exact).ball
        assert found.overlaps(arb(mp.nstr(true(), 28), 1e-26)) and float(found.rad()) < 1e-30


def test_a_number_without_an_exact_form():
    assert Number("log", Fraction(-1)).exact(Field()) is None
    assert rational(0.375) == Number("rational", Fraction(3, 8))


@pytest.mark.parametrize("number, true", NUMBERS)
def test_numbers_are_found_from_floats(number, true):
    found = list(candidates(number.as_float, 1e-9))
    assert number in found and len(found) == len(set(found))
    first = rational(number.as_float) if number.kind == "rational" else found[0]
    assert first.as_float == pytest.approx(number.as_float, abs=1e-9)


@pytest.mark.parametrize("x", [0.3333, -1.4142, 3.1416, 100.0, -0.001, 0.0, 2.7183, 40.0, -35.0])
@pytest.mark.parametrize("within", [1e-9, 1e-6, 1e-3])
def test_candidates_are_within(x, within):
    found = list(candidates(x, within))
    for number in found:
        assert abs(number.as_float - x) <= within * max(1.0, abs(x)) + 1e-15
    if within > 1e-5:
        assert all(number.kind == "rational" for number in found)
    assert len(found) == len(set(found))


def test_the_plainest_is_first_and_a_root_is_no_rational():
    assert next(candidates(0.5 + 1e-12, 1e-9)) == Number("rational", Fraction(1, 2))
    assert next(candidates(7.0, 1e-9)) == Number("rational", Fraction(7))
    assert next(candidates(1 / 3 + 2e-4, 1e-3)).q == Fraction(1, 3)
    sqrt2 = [n.kind for n in candidates(2**0.5, 1e-9)]
    assert sqrt2[0] == "root" and "rational" not in sqrt2
    negative = [n for n in candidates(-(2**0.5), 1e-9) if n.kind == "root"]
    assert negative == [Number("root", Fraction(2), 2, -1)]
    assert not [n for n in candidates(-1.7, 1e-9) if n.kind == "exp"]
    assert not [n for n in candidates(0.25, 1e-9) if n.kind == "log" and n.q <= 0]


def test_regions_hold_what_is_inside():
    region = Region((0.0, -1.0), (1.0, 2.0))
    assert region.holds((0.0, -1.0), (1.0, 2.0)) and region.holds((0.5, 0.5), (0.5, 0.5))
    for lower, upper in (((-0.1, 0.0), (1.0, 1.0)), ((0.0, 0.0), (1.1, 1.0)),
                         ((0.0, -1.1), (1.0, 1.0)), ((0.0, 0.0), (1.0, 2.1))):  # fmt: skip
        assert not region.holds(lower, upper)


# Terms, weights, directions.


def test_the_terms_that_do_not_vanish():
    field = Field()
    jets = Jets(field, 1, 2)
    one, zero = field.rational(1), field.rational(0)
    x = field.symbol("x", NAN)
    loose = arb(0, 0.5)
    both = lambda at, over: contact._terms(Jet(list(map(Coefficient, at, over))), jets)
    # An exact zero is none; at the highest degree what counts is the neighbourhood.
    found = both([zero, one, zero], [loose, arb(1, 2), loose])
    assert [powers for powers, _ in found] == [(1,), (2,)]
    assert found[0][1] == 1 and found[1][1].contains(arb(0.4)) and found[1][1].contains(arb(-0.4))
    found = both([None, None, one], [loose, loose, arb(3)])
    assert [powers for powers, _ in found] == [(0,), (1,), (2,)] and found[2][1] == 3
    assert contact._terms(Jet([None, Coefficient(one, arb(1)), None]), jets)[0][0] == (1,)
    assert both([None, one, one], [NAN, arb(1), arb(1)]) is None
    assert both([one, one, None], [arb(1), arb(1), NAN]) is None
    # Of a number without a finite ball that of the neighbourhood is taken.
    assert both([x, zero, None], [arb(7), arb(0), arb(1)])[0] == ((0,), arb(7))
    assert both([x, zero, None], [arb("inf"), arb(0), arb(1)]) is None
    jet = lambda *over: Jet([Coefficient(zero, v) for v in over])
    assert contact._defined(jet(arb(1), arb(2))) and contact._defined(Jet([None]))
    assert not contact._defined(jet(arb(1), NAN)) and not contact._defined(jet(arb("inf")))


WEIGHTS = [
    (terms(x2=1, y2=1), 2, ((1, 1), 2)), (terms(x2=1, y4=1), 2, ((2, 1), 4)),
    (terms(x2=1, y3=1), 2, ((3, 2), 6)), (terms(x2=1, y4=1, x1y1=1), 2, None),
    (terms(x2=1, y4=1, x1y2=1), 2, ((2, 1), 4)), (terms(x2=1, y2=1, x1y1=-1), 2, ((1, 1), 2)),
    (terms(x2=1, x1y1=1), 2, None), (terms(x3=1, x2=1), 1, ((1,), 2)), (terms(x3=1), 1, ((1,), 3)),
    (terms(x0=1, x2=1), 1, None), (terms(x1y1=1), 2, None), (terms(y1=1, x4=1), 2, ((1, 4), 4)),
    (terms(x1y3=1, x6=1, y4=1), 2, None), (terms(x2y2=1, x6=1, y4=1), 2, ((2, 3), 12)),
]  # fmt: skip


@pytest.mark.parametrize("given, count, expected", WEIGHTS)
def test_weights_by_the_lowest_powers(given, count, expected):
    """By hand: the least common multiple of the lowest pure powers, over each; none lower."""
    if given[0][0] == (2, 2):
        expected = None if 2 * 2 + 3 * 2 < 12 else expected  # x^2 y^2 weighs 10
    assert weights_of(given, count) == expected


WHOLE, UP, DOWN = (-1.0, 1.0), (0.0, 1.0), (-1.0, 0.0)
DIRECTIONS = {
    (0,): [[(1.0, 1.0)], [(-1.0, -1.0)]], (1,): [[(1.0, 1.0)]], (-1,): [[(-1.0, -1.0)]],
    (1, 0): [[(1.0, 1.0), WHOLE], [UP, (1.0, 1.0)], [UP, (-1.0, -1.0)]],
    (-1, 1): [[(-1.0, -1.0), UP], [DOWN, (1.0, 1.0)]],
    (0, -1): [[(1.0, 1.0), DOWN], [(-1.0, -1.0), DOWN], [WHOLE, (-1.0, -1.0)]],
}  # fmt: skip


@pytest.mark.parametrize("sides", DIRECTIONS)
def test_the_faces_of_directions(sides):
    assert sorted(contact._directions(sides)) == sorted(DIRECTIONS[sides])


# Q >= 0.

FORMS = [(c, sides) for c in (-5.0, -1.9, 0.0, 1.9, 5.0)
         for sides in ((0, 0), (1, 1), (1, -1), (-1, -1), (0, 1))]  # fmt: skip


@pytest.mark.parametrize("c, sides", FORMS)
@pytest.mark.parametrize("weights", [(1, 1), (2, 1)])
def test_forms_by_their_discriminant(c, sides, weights):
    """x^2 + c x y + y^2, and x^2 + c x y^2 + y^4, whose second factor has no sign."""
    degree = 2 * weights[0]
    given = terms(x2=1, x1y1=c, y2=1) if weights == (1, 1) else terms(x2=1, x1y2=c, y4=1)
    signs = [(u, v) for u in (1, -1) for v in (1, -1) if u * sides[0] >= 0 and v * sides[1] >= 0]
    worst = min(c * u * (v if weights == (1, 1) else 1) for u, v in signs)
    assert not_negative(given, [], weights, degree, 0.5, sides) == (worst > -2)


@pytest.mark.parametrize("side", [1, 0, -1])
@pytest.mark.parametrize("reach", [0.9, 1.1])
@pytest.mark.parametrize("c", [-1, 1])
def test_the_reach_counts(c, reach, side):
    """x^2 + c x^3 is not negative where c x >= -1."""
    holds = reach < 1 or side * c > 0
    assert not_negative(terms(x2=1, x3=c), [], (1,), 2, reach, (side,)) == holds


def test_negative_terms_and_uncertain_ones():
    assert not not_negative(terms(x2=-1), [], (1,), 2, 0.5, (0,))
    assert not not_negative([((2,), arb(1, 1.5))], [], (1,), 2, 0.5, (0,))
    assert not_negative([((2,), arb(1, 0.5))], [], (1,), 2, 0.5, (0,))
    assert not_negative([((1,), arb(1, 0.5))], [], (1,), 1, 0.5, (1,))
    assert not not_negative([((1,), arb(1, 0.5))], [], (1,), 1, 0.5, (0,))
    assert not not_negative([((1,), arb(1, 0.5))], [], (1,), 1, 0.5, (-1,))


CONDITIONS = [
    # margin, conditions, sides, whether it is not negative where they hold
    (terms(x1=1), [], (0,), False), (terms(x1=1), [terms(x1=1)], (0,), True),
    (terms(x1=1), [terms(x1=-1)], (0,), False), (terms(x1=1), [[]], (0,), False),
    (terms(x1=1), [[], terms(x1=2, x2=1)], (0,), True),
    (terms(x1=1), [terms(x1=2, x2=9)], (0,), False),  # it holds below -2/9
    (terms(x1=1), [terms(x0=-1, x2=1)], (0,), True),  # nowhere near
    (terms(x1=1), [terms(x0=1, x2=1)], (0,), False),  # everywhere
    (terms(x1=1), [terms(x2=-1)], (0,), True), (terms(x1=1), [terms(x2=1)], (0,), False),
    (terms(x1=2, y1=-1), [terms(x1=1, y1=-1)], (1, 1), True),
    (terms(x1=2, y1=-1), [terms(x1=1, y1=-1)], (0, 1), True),
    (terms(x1=2, y1=-1), [terms(x1=-1, y1=1)], (1, 1), False),
    (terms(x1=1, y1=1), [terms(x1=1, y0=0), terms(y1=1)], (0, 0), True),
    (terms(x1=1, y1=1), [terms(x1=1, y0=0)], (0, 0), False),
]  # fmt: skip


@pytest.mark.parametrize("given, conditions, sides, holds", CONDITIONS)
def test_where_a_condition_fails_nothing_is_asked(given, conditions, sides, holds):
    assert not_negative(given, conditions, (1,) * len(sides), 1, 0.5, sides) == holds


def test_nothing_is_called_not_negative_that_is_negative_somewhere():
    """Random terms; at points of the box their sum is computed in fractions."""
    rng, yes = np.random.default_rng(3), 0
    for _ in range(30):
        powers = [(2, 0), (0, 2), (1, 1), (2, 1), (0, 3)]
        c = [4, 4, *rng.integers(-9, 10, 3).tolist()]
        sides = tuple(rng.integers(-1, 2, 2).tolist())
        given = [(p, arb(v)) for p, v in zip(powers, c)]
        if not not_negative(given, [], (1, 1), 2, 0.5, sides):
            continue
        yes += 1
        grid = [Fraction(k, 8) for k in range(-4, 5)]
        for x, y in itertools.product(grid, grid):
            if x * sides[0] >= 0 and y * sides[1] >= 0:
                assert sum(v * x**i * y**j for (i, j), v in zip(powers, c)) >= 0
    assert yes > 5


# From a program.


def program(function, count=1, needed=lambda x: jnp.asarray(True)):
    return traced(lambda x: (function(x), needed(x)), jnp.zeros(count))[0]


ZERO = rational(0.0)


@pytest.mark.parametrize("side", [1, 0, -1])
def test_the_neighbourhood_of_a_place(side):
    """At 3/8, within 1/4, on the side that the box is on."""
    jets = Jets(Field(), 1, 2)
    place = Place((rational(7.0), rational(0.375)), (1,), (side,))
    two = program(lambda x: x[1] + 0 * x[0], 2)
    ((margin, conditions),) = contact._ways(two, place, jets, (0.25,), "exact")
    value, slope, _ = margin.of
    assert conditions == [] and value.at.as_rational() == fmpq(3, 8) and slope.over == 1
    low, high = (0.375 - 0.25 * (side < 1), 0.375 + 0.25 * (side > -1))
    for x in (low, high, 0.375):
        assert value.over.contains(arb(x))
    for x in (low - 0.01, high + 0.01):
        assert not value.over.contains(arb(x))
    fixed = program(lambda x: x[0] + 0 * x[1], 2)
    ((margin, _),) = contact._ways(fixed, place, jets, (0.25,), "exact")
    assert margin.of[0].over == 7 and margin.of[0].at.as_rational() == 7


def test_a_way_counts_where_the_hypotheses_are_met():
    jets = Jets(Field(), 1, 2)
    place = Place((ZERO,), (0,), (0,))
    closed = program(lambda x: x[0], 1, lambda x: x[0] >= 0)
    (way,) = contact._ways(closed, place, jets, (0.5,), "exact")
    assert len(way.conditions) == 1 and way.conditions[0].of[1].over == 1
    assert jets.conditions == []
    both = contact._ways(program(lambda x: jnp.abs(x[0])), place, jets, (0.5,), "exact")
    assert [way.margin.of[1].over for way in both] == [1, -1]
    assert [way.conditions[0].of[1].over for way in both] == [2, -2]
    nowhere = Place((Number("log", Fraction(-1)),), (0,), (0,))
    assert contact._ways(closed, nowhere, jets, (0.5,), "exact") is None


TOUCHES = {
    # name: (program, side, whether it is not negative near 0)
    "x^2": (lambda x: x * x, 0, True), "x^2 + 1": (lambda x: x * x + 1, 0, False),
    "x^3": (lambda x: x**3, 0, False), "x^3 right": (lambda x: x**3, 1, True),
    "x^3 left": (lambda x: x**3, -1, False), "-x^3 left": (lambda x: -(x**3), -1, True),
    "x^4 - x^6": (lambda x: x**4 - x**6, 0, True), "-x^4": (lambda x: -(x**4), 0, False),
    "|x| + x / 2": (lambda x: jnp.abs(x) + x / 2, 0, True),
    "|x| + 2 x": (lambda x: jnp.abs(x) + 2 * x, 0, False),
    "sin": (lambda x: x - jnp.sin(x), 1, True), "sin left": (lambda x: x - jnp.sin(x), -1, False),
    "cos": (lambda x: 1 - jnp.cos(x), 0, True), "0": (lambda x: x - x, 0, True),
    "nothing": (lambda x: jnp.zeros(()), 0, True),
    "a ramp": (lambda x: jnp.maximum(x, 0.0), 0, True),
    "a ramp down": (lambda x: jnp.minimum(x, 0.0), 0, False),
    "a root": (lambda x: jnp.sqrt(x), 1, False),  # it has no series at zero
}  # fmt: skip


@pytest.mark.parametrize("name", TOUCHES)
def test_what_touches_zero(name, monkeypatch):
    function, side, holds = TOUCHES[name]
    if not holds:  # nor with fewer tries
        monkeypatch.setattr(contact, "RADII", (2.0**-4,))
    closed = program(lambda x: function(x[0]))
    place = Place((ZERO,), (0,), (side,))
    try:
        region = touching(closed, place, "exact")
    except (NotSupported, Undecided):
        region = None
    assert (region is not None) == holds
    if region is not None:
        (low,), (high,) = region
        assert low <= 0 <= high and low < high
        assert (low < 0) == (side < 1) and (high > 0) == (side > -1)
        for x in (low, high, low / 3, high / 3):
            assert float(function(jnp.asarray(x))) >= 0


@pytest.mark.parametrize("side", [0, 1, -1])
def test_a_box_around_a_root_is_in_floats_within(side):
    place = Place((Number("root", Fraction(2), 2), rational(0.1)), (0,), (side,))
    fine = {}
    region = contact._again(lambda: contact._inside(place, (0.125,), fine))
    with mp.workdps(40):
        root, half = mp.sqrt(2), mp.mpf(0.125)
        low, high = mp.mpf(region.lower[0]), mp.mpf(region.upper[0])
        assert (low > root - half) if side < 1 else region.lower[0] == float(root)
        assert (high < root + half) if side > -1 else region.upper[0] == float(root)
        assert abs(high - low) > (0.2499999 if side == 0 else 0.1249999)
    assert region.lower[1] == region.upper[1] == 0.1


def test_a_square_at_a_root(monkeypatch):
    place = Place((Number("root", Fraction(2), 2),), (0,), (0,))
    closed = program(lambda x: (x[0] ** 2 - 2) ** 2)
    region = touching(closed, place, "exact")
    assert region.lower[0] < 2**0.5 < region.upper[0]
    monkeypatch.setattr(contact, "RADII", (2.0**-4,))
    assert touching(closed, Place((rational(2**0.5),), (0,), (0,)), "exact") is None
    assert touching(program(lambda x: x[0] ** 2 - 2), place, "exact") is None


def test_weights_follow_the_margin(monkeypatch):
    """x^2 + y^4 - x y^2 is not negative, by its discriminant, and has no positive definite form."""
    place = Place((ZERO, ZERO), (0, 1), (0, 0))
    form = lambda c: program(lambda x: x[0] ** 2 + x[1] ** 4 + c * x[0] * x[1] ** 2, 2)
    region = touching(form(-1.0), place, "exact")
    assert region is not None
    assert all(a < 0 < b for a, b in zip(region.lower, region.upper))
    monkeypatch.setattr(contact, "RADII", (2.0**-4,))
    assert touching(form(-3.0), place, "exact") is None


@pytest.mark.parametrize("form", [(2,), (3,), (1, 2), (2, 3), (7, 3)])
def test_the_reach_of_directions_covers_the_box(form, monkeypatch):
    """r^w is at least the half-width of every coordinate, in fractions."""
    reaches = []
    spy = lambda terms, conditions, weights, degree, reach, sides: (
        not reaches.append((reach, weights))
    )
    monkeypatch.setattr(contact, "not_negative", spy)
    jets = Jets(Field(), len(form), max(form) + 1)
    jet = jets.constant(None)
    for j, power in enumerate(form):
        at = jets.monomials.index(tuple(power * int(i == j) for i in range(len(form))))
        jet.of[at] = jets.rational(1)
    place = Place((ZERO,) * len(form), tuple(range(len(form))), (0,) * len(form))
    for reach in (2.0**-3, 2.0**-5, 0.3, 1.0, 3.0):
        half, fits = (reach, reach / 7)[: len(form)], []
        contact._holds(contact._Way(jet, []), jets, place, half, fits)
        ((r, weights),) = reaches
        assert all(Fraction(r) ** w >= Fraction(x) for w, x in zip(weights, half))
        assert any(Fraction(r) ** w <= Fraction(x) * Fraction(1001, 1000)
                   for w, x in zip(weights, half))  # fmt: skip
        assert fits == [weights]
        reaches.clear()


def test_what_is_unknown_is_not_proved():
    """The squares of x is; where a term, or the neighbourhood, or a condition is unknown, not."""
    field = Field()
    jets = Jets(field, 1, 2)
    place = Place((ZERO,), (0,), (0,))
    zero, two = field.rational(0), field.rational(2)
    square = Jet(
        [Coefficient(zero, arb(0, 1)), Coefficient(zero, arb(0, 1)), Coefficient(two, arb(2))]
    )
    nan = lambda at: Jet([Coefficient(at, NAN), *square.of[1:]])
    holds = lambda *way: contact._holds(contact._Way(*way), jets, place, (0.5,), [])
    line = Jet([None, jets.rational(1), None])
    assert holds(square, []) and holds(square, [line]) and holds(Jet([None] * 3), [])
    assert not holds(nan(None), []) and not holds(nan(zero), []) and not holds(square, [nan(None)])
    assert not holds(Jet([Coefficient(zero, NAN), None, None]), [])
    assert not holds(line, []) and holds(line, [line])
    assert not holds(Jet([jets.rational(1), *line.of[1:]]), [])  # it does not vanish
