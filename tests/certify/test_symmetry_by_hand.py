"""Flows by hand: laws are checked by following them in floats, faces by looking at the box.

Plain floats move the entries; nothing of the algebra of laws is used for that.
"""

import math
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb

from jaxbounds.falsification import float64_on_cpu
from jaxbounds.programs.balls.boxes import Box
from jaxbounds.programs.balls.interpreter import precision, traced
from jaxbounds.programs.balls.symmetry import (
    Flow,
    Law,
    Laws,
    _combined,
    _fixed,
    _outward,
    _within,
    flows,
    kernel,
    reduced,
)
from jaxbounds.programs.balls.values import NotSupported

INF = math.inf
UNITS = ((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1)))
NONE = (Fraction(0), Fraction(0))


def fork(count, what):
    raise AssertionError(what)


@pytest.fixture(autouse=True)
def arithmetic():
    with precision(128):
        yield


def entry(laws, given):
    """Scaled x, y; shifted s, t; or a number; and where it is."""
    values = {"x": 1.75, "y": 2.5, "s": 0.375, "t": 1.25}
    if not isinstance(given, str):
        return laws.lift(arb(given)), float(given)
    unit = UNITS[given in "yt"]
    law = Law(unit, NONE, finite=True) if given in "xy" else Law(NONE, unit, finite=True)
    return law, values[given]


def dot(form, weights):
    return sum(float(a * b) for a, b in zip(form, weights))


def followed(law, value, weights, t):
    if math.isinf(value):
        return value
    return value * math.exp(dot(law.degree, weights) * t) + dot(law.shift, weights) * t


FUNCTIONS = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "neg": lambda a: -a, "abs": abs, "square": lambda a: a * a,
    "sqrt": math.sqrt, "cbrt": lambda a: a ** (1 / 3), "rsqrt": lambda a: a**-0.5,
    "exp": math.exp,
    "log": math.log, "pow": lambda a, b: a**b, "sin": math.sin, "atan2": math.atan2,
    "larger": max, "join": lambda a, b: a,
}  # fmt: skip

# The function, its entries, and of how many dimensions the weights are under which it has a law.
LAWS = [
    ("add", "xy", 1), ("add", ("x", 0.0), 2), ("add", (0.0, "x"), 2), ("add", ("x", 1.5), 1),
    ("add", "st", 2), ("add", ("s", 1.5), 2), ("add", (1.5, "s"), 2), ("add", "xt", 1),
    ("add", "tx", 1), ("add", ("s", 0.0), 2), ("add", (0.0, "s"), 2), ("add", "xx", 2),
    ("sub", "xy", 1), ("sub", "st", 2), ("sub", (0.0, "s"), 2), ("sub", ("s", 0.0), 2),
    ("sub", (0.0, "x"), 2), ("sub", (1.5, "t"), 2), ("sub", "sx", 1), ("sub", "ss", 2),
    ("mul", "xy", 2), ("mul", ("x", 3.0), 2), ("mul", (3.0, "x"), 2), ("mul", ("s", 3.0), 2),
    ("mul", (-3.0, "s"), 2), ("mul", "sy", 1), ("mul", "ys", 1), ("mul", "st", 0),
    ("mul", ("s", 0.0), 2), ("mul", (0.0, "x"), 2),
    ("div", "xy", 2), ("div", ("s", 4.0), 2), ("div", ("t", 1.0), 2),
    ("div", (4.0, "x"), 2), ("div", (4.0, "s"), 1),
    ("div", "sy", 1), ("div", "ys", 1), ("div", ("x", -4.0), 2),
    ("neg", "x", 2), ("neg", "s", 2), ("abs", "x", 2), ("abs", "s", 1), ("square", "x", 2),
    ("square", "s", 1), ("sqrt", "x", 2), ("sqrt", "s", 1), ("cbrt", "y", 2), ("rsqrt", "y", 2),
    ("exp", "s", 2), ("exp", "x", 1), ("log", "x", 2), ("log", "s", 1), ("pow", ("x", 2.5), 2),
    ("pow", ("s", 2.0), 1), ("pow", "xy", 0), ("pow", (2.0, "s"), 1), ("sin", "x", 1),
    ("sin", "s", 1), ("atan2", "xy", 0), ("atan2", "st", 0),
    ("larger", "xy", 1), ("larger", "st", 1), ("larger", ("x", 0.0), 2), ("larger", (0.0, "y"), 2),
    ("larger", ("s", 0.0), 1), ("larger", (0.0, "t"), 1), ("larger", ("s", -INF), 2),
    ("larger", (-INF, "x"), 2), ("larger", "xt", 0), ("larger", ("x", 1.0), 1),
    ("join", "xy", 1), ("join", "ts", 1), ("join", "st", 1), ("join", ("x", 0.0), 2),
]  # fmt: skip


@pytest.mark.parametrize("name, given, dimensions", LAWS)
def test_laws_are_followed(name, given, dimensions):
    laws = Laws(2)
    entries = [entry(laws, one) for one in given]
    rules = [law for law, _ in entries]
    if name == "larger":
        law = laws.larger(*rules, fork)
    elif name == "join":
        law = laws.join(rules)
    else:
        law = laws.apply(name, *rules)
    basis = kernel(laws.equations, 2)
    assert len(basis) == dimensions
    for weights in [*basis, [sum(c) for c in zip(*basis)]] if basis else []:
        assert not any(dot(law.degree, weights) and dot(law.shift, weights) for _ in "1")
        for t in (0.0, 0.25, -0.125):
            moved = [followed(rule, value, weights, t) for rule, value in entries]
            start = FUNCTIONS[name](*(value for _, value in entries))
            expected = followed(law, start, weights, t)
            if name == "larger" and not {0.0, -INF} & set(given):
                expected = max(moved)  # they keep their order, see below
            assert FUNCTIONS[name](*moved) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("n", [-2, 0, 1, 2, 3])
def test_whole_powers(n):
    laws = Laws(2)
    law = laws.power(entry(laws, "y")[0], n)
    assert law.degree == (0, n) and not any(law.shift) and not laws.equations
    laws.power(entry(laws, "s")[0], n)
    assert kernel(laws.equations, 2) == [[0, 1]]


COMPARED = [("xy", 1), ("st", 1), (("x", 0.0), 2), (("s", 0.0), 1), ((0.0, "y"), 2), ("xt", 0),
            (("s", INF), 2), ((-INF, "x"), 2), (("x", 2.0), 1)]  # fmt: skip


@pytest.mark.parametrize("given, dimensions", COMPARED)
def test_comparisons_are_the_same_all_along(given, dimensions):
    laws = Laws(2)
    entries = [entry(laws, one) for one in given]
    assert laws.compare("ge", *(law for law, _ in entries), fork) == 2
    basis = kernel(laws.equations, 2)
    assert len(basis) == dimensions
    for weights in basis:
        orders = set()
        for t in np.linspace(-4, 4, 9):
            a, b = (followed(law, value, weights, t) for law, value in entries)
            orders.add(a >= b)
        assert len(orders) == 1


def test_of_constants_all_is_known():
    laws = Laws(2)
    two, three = laws.lift(arb(2)), laws.lift(arb(3))
    assert laws.compare("ge", two, three, fork) == 0 and laws.compare("lt", two, three, fork) == 1
    assert laws.larger(two, three, fork).value == 3 and laws.larger(three, two, fork).value == 3
    assert laws.apply("add", two, three).value == 5 and laws.apply("neg", two).value == -2
    assert laws.apply("sub", two, three).value == -1
    assert laws.hull(two) == 2 and not laws.equations
    with pytest.raises(NotSupported):
        laws.hull(entry(laws, "x")[0])
    # No law but that of the limit.
    minus = laws.lift(arb("-inf"))
    assert laws.larger(minus, two, fork).value == 2 and laws.larger(two, minus, fork).value == 2
    assert laws.apply("mul", entry(laws, "s")[0], laws.lift(arb(0))).value == 0


def test_what_is_certainly_finite():
    laws = Laws(2)
    x, zero = entry(laws, "x")[0], laws.lift(arb(0))
    infinite, undefined = laws.lift(arb("inf")), laws.apply("sqrt", x)
    said = lambda law: laws.finite(law)
    assert [said(v) for v in (x, zero, infinite, undefined)] == [1, 1, 2, 2]
    assert said(laws.apply("neg", x)) == 1 and said(laws.apply("neg", undefined)) == 2
    assert said(laws.apply("add", x, x)) == 1
    for pair in ((x, undefined), (undefined, x)):
        assert said(laws.apply("add", *pair)) == 2 and said(laws.larger(*pair, fork)) == 2
        assert said(laws.join(list(pair))) == 2
    assert said(laws.larger(x, zero, fork)) == 1 and said(laws.join([x, zero])) == 1
    assert said(laws.larger(undefined, zero, fork)) == 2 and said(laws.join([x, infinite])) == 2
    assert laws.join([infinite, x]).value is None and laws.join([x, infinite]).degree == x.degree


KERNELS = [
    ([], 2, [[1, 0], [0, 1]]), ([(1, -1)], 2, [[1, 1]]), ([(2, 4)], 2, [[-2, 1]]),
    ([(1, 0), (0, 1)], 2, []), ([(1, 1, 1), (0, 1, -1)], 3, [[-2, 1, 1]]),
    ([(0, 3, 0)], 3, [[1, 0, 0], [0, 0, 1]]), ([(1, 2), (2, 4)], 2, [[-2, 1]]),
    ([(0, 1), (1, 0)], 2, []), ([(0, 2, 1), (3, 0, 1)], 3, [[Fraction(-1, 3), Fraction(-1, 2), 1]]),
]  # fmt: skip


@pytest.mark.parametrize("equations, count, expected", KERNELS)
def test_kernels(equations, count, expected):
    assert kernel([tuple(map(Fraction, e)) for e in equations], count) == expected


def test_weights_that_satisfy_more():
    whole = kernel([], 3)
    assert _within(whole, [UNITS3[0]]) == [whole[1], whole[2]]
    some = [[Fraction(v) for v in b] for b in ((1, 2, 0), (0, 1, 1))]
    assert _within(some, [UNITS3[1]]) == [[Fraction(-1, 2), 0, 1]]
    assert _within(whole, []) == whole and _within(whole, list(UNITS3)) == []


UNITS3 = [tuple(Fraction(int(i == j)) for i in range(3)) for j in range(3)]


def test_flows_that_only_grow_come_first():
    found = list(_combined(kernel([], 2)))
    assert found[0] == (1, 1) and (0, 0) not in found and (1, -1) in found and (2, -1) in found
    negative = [sum(w < 0 for w in weights) for weights in found]
    assert negative == sorted(negative)
    assert list(_combined([[Fraction(1), Fraction(-2)]]))[:2] == [(-2, 4), (-1, 2)]


# Faces. A box, which coordinates are scaled, the weights; the faces, or None.
S, T = True, False
OUTWARD = [
    ([(1, 2)], [S], [1], [[(2, 2)]]), ([(-2, -1)], [S], [1], [[(-2, -2)]]),
    ([(-1, 2)], [S], [1], [[(2, 2)], [(-1, -1)], [(0, 0)]]),
    ([(0, 2)], [S], [1], [[(2, 2)], [(0, 0)]]), ([(-2, 0)], [S], [1], [[(-2, -2)], [(0, 0)]]),
    ([(1, 2)], [S], [-1], [[(1, 1)]]), ([(-2, -1)], [S], [-1], [[(-1, -1)]]),
    ([(0, 2)], [S], [-1], None), ([(-2, 0)], [S], [-1], None), ([(-1, 1)], [S], [-1], None),
    ([(-1, 2)], [T], [1], [[(2, 2)]]), ([(-1, 2)], [T], [-1], [[(-1, -1)]]),
    ([(0, 2)], [T], [-1], [[(0, 0)]]), ([(0, 1)], [S], [0], None),
    ([(1, 1), (1, 2)], [S, S], [1, 1], None),
    ([(0, 0), (1, 2)], [S, S], [1, 1], [[(0, 0), (2, 2)]]),
    ([(0, 0), (1, 2)], [T, S], [1, 1], None),
    ([(1, 1), (1, 2)], [S, S], [0, 1], [[(1, 1), (2, 2)]]),
    ([(0, 0)], [S], [1], None), ([(1, 1)], [S], [0], None),
    ([(0, 1), (0, 1)], [S, S], [1, 2],
     [[(1, 1), (0, 1)], [(0, 1), (1, 1)], [(0, 0), (0, 0)]]),
    ([(0, 1), (1, 2)], [S, S], [1, 1], [[(1, 1), (1, 2)], [(0, 1), (2, 2)]]),
    ([(0, 1), (-1, 1)], [S, S], [1, 0], [[(1, 1), (-1, 1)], [(0, 0), (-1, 1)]]),
    ([(0, 1), (0, 1)], [S, T], [1, 1], [[(1, 1), (0, 1)], [(0, 1), (1, 1)]]),
    ([(1, 2), (0, 1)], [S, S], [-1, 1], [[(1, 1), (0, 1)], [(1, 2), (1, 1)]]),
    ([(1, 2), (0, 1)], [S, S], [1, -1], None),
    ([(1, 2), (0, 1)], [S, S], [1, 0], [[(2, 2), (0, 1)]]),
    ([(-3, -1), (-1, 0)], [S, T], [-1, -1], [[(-1, -1), (-1, 0)], [(-3, -1), (-1, -1)]]),
]  # fmt: skip


@pytest.mark.parametrize("ends, scaled, weights, expected", OUTWARD)
def test_the_faces_through_which_points_leave(ends, scaled, weights, expected):
    lower, upper = (tuple(float(e[i]) for e in ends) for i in (0, 1))
    found = _outward(Box(lower, upper), Flow(tuple(scaled), tuple(map(Fraction, weights))))
    if expected is None:
        assert found is None
        return
    boxes = [Box(tuple(float(a) for a, _ in e), tuple(float(b) for _, b in e)) for e in expected]
    assert sorted(found) == sorted(boxes)


def test_a_face():
    assert _fixed(Box((0.0, 1.0), (2.0, 3.0)), {1: 1.5}) == Box((0.0, 1.5), (2.0, 1.5))


# Programs.


def program(function, count):
    with float64_on_cpu():
        return traced(lambda x: (function(x), jnp.asarray(True)), jnp.zeros(count))[0]


def test_boxes_that_are_left():
    unit, away = Box((0.0, 0.0), (1.0, 1.0)), Box((1.0, 1.0), (2.0, 2.0))
    points = lambda *pairs: sorted(Box(p, p) for p in pairs)
    one = program(lambda x: x[0] * x[0] - x[0] * x[1], 2)
    origin = Box((0.0, 0.0), (0.0, 0.0))
    right, top = Box((1.0, 0.0), (1.0, 1.0)), Box((0.0, 1.0), (1.0, 1.0))
    assert sorted(reduced(one, unit)) == sorted([right, top, origin])
    two = program(lambda x: x[0] * x[1], 2)
    assert set(reduced(two, away)) == {Box((2.0, 2.0), (2.0, 2.0))}
    assert sorted(set(reduced(two, unit))) == points((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0))
    shift = program(lambda x: jnp.exp(x[0]) - jnp.exp(x[1]), 2)
    assert sorted(reduced(shift, unit)) == sorted([right, top])
    none = program(lambda x: x[0] + x[1] ** 2 + 1.0, 2)
    assert reduced(none, unit) == [unit]
    assert reduced(program(lambda x: x[0] + 0 * x[1] - 1.0, 2), unit) != []


def test_more_is_scaled_first():
    found = list(flows(program(lambda x: x[0] * x[1], 2), 2))
    assert found[0] == ((True, True), [[1, 0], [0, 1]])
    scaled = [sum(s) for s, _ in found]
    assert scaled == sorted(scaled, reverse=True)
    assert not list(flows(program(lambda x: jnp.sin(x[0]) + x[0] ** 2, 1), 1))
