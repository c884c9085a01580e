"""Small parts of ball arithmetic against numbers that stand here or come from mpmath.

mpmath shares no code with FLINT's balls nor with the rules that are tested.
"""

from functools import partial

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from flint import arb

from jaxbounds import testing
from jaxbounds.certification import prove
from jaxbounds.certification.crosscheck import crosscheck
from jaxbounds.certification.disproof import apart
from jaxbounds.certification.second_look import against
from jaxbounds.claims.statements import Domain
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.programs.balls.interpreter import precision
from jaxbounds.programs.balls.rounding import narrowed
from jaxbounds.programs.balls.slopes import _DERIVATIVES

FUNCTIONS = {
    "neg": lambda x: -x, "exp": mpmath.exp, "exp2": lambda x: 2**x, "expm1": mpmath.expm1,
    "log": mpmath.log, "log1p": mpmath.log1p, "logistic": lambda x: 1 / (1 + mpmath.exp(-x)),
    "tanh": mpmath.tanh, "sqrt": mpmath.sqrt, "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "square": lambda x: x * x, "abs": abs, "sin": mpmath.sin, "cos": mpmath.cos,
    "sinh": mpmath.sinh, "cosh": mpmath.cosh, "atan": mpmath.atan, "erf": mpmath.erf,
    "lgamma": lambda x: mpmath.log(mpmath.gamma(x)), "erfc": mpmath.erfc, "tan": mpmath.tan,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), "asin": lambda x: mpmath.asin(x),
    "acos": mpmath.acos, "asinh": mpmath.asinh, "atanh": mpmath.atanh,
}  # fmt: skip
STEPS = {"sign", "floor", "ceil", "round"}
WITHIN = {"asin", "acos", "atanh"}
POSITIVE = {"log", "sqrt", "rsqrt", "lgamma"}


def test_every_derivative_has_its_function_here():
    assert set(_DERIVATIVES) == set(FUNCTIONS) | STEPS


@pytest.mark.parametrize("x", [0.3, 1.7, -0.8, -2.3])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_against_differences(name, x):
    x = x / 3 if name in WITHIN else abs(x) if name in POSITIVE else x
    x = max(x, -0.9) if name == "log1p" else x
    with mpmath.workdps(60), precision(160):
        f = FUNCTIONS[name]
        exact = mpmath.diff(f, mpmath.mpf(x))
        value = arb(mpmath.nstr(f(mpmath.mpf(x)), 50))
        slope = _DERIVATIVES[name](arb(x), value)
        assert float(slope.mid()) == pytest.approx(float(exact), rel=1e-14)
        assert float(slope.rad()) < 1e-30


@pytest.mark.parametrize("sign", [1, -1])
def test_what_is_below_the_normal_numbers_is_zero_or_they(sign):
    """float32 has none between 0 and 2^-126 that every program keeps."""
    with precision(160):
        found = narrowed(arb(sign) * arb(2) ** -140, jnp.float32)
        assert found.contains(0) and found.contains(arb(sign) * arb(2) ** -126)
        assert not found.contains(-arb(sign) * arb(2) ** -127)


@pytest.mark.parametrize("sides", [([-2.0], [-1.0]), ([2.0], [1.0]), ([-2.0, 0.0], [-1.0, 0.0])])
def test_the_gap_of_an_identity_is_relative_to_the_larger_side(sides):
    left, right = (np.array([arb(v) for v in side], object) for side in sides)
    with precision(160):
        gap = apart("=", left, right)
    assert float(gap.amount) == pytest.approx(0.5) and gap.entry == 0


def test_the_second_look_moves_around_its_best_points():
    """A dent of width 1e-7 in a box about zero, with a slope toward it everywhere."""
    margin = lambda p: (jnp.abs(p[0] - 0.32175) - 1e-7, 1.0, 0.0, True)
    domain = Domain(name="d", chart=lambda p, s: {}, size={}, lower=(-1.0,), upper=(1.0,))
    with enable_x64():
        asked = lambda p: jax.tree.map(jnp.asarray, margin(p))
        doubt = against(asked, domain, 1e-9)
    assert doubt.reason.startswith("a contradiction")
    assert abs(doubt.point[0] - 0.32175) < 1e-7


claim = partial(
    testing.claim,
    entry="x",
    sample=lambda key, size: {"x": jax.random.uniform(key, (1,))},
    sizes=({"n": 1},),
)


UNIT = Domain(name="d", chart=lambda p, s: {"x": p}, size={"n": 1}, lower=(0.0,), upper=(1.0,))


@pytest.mark.parametrize("excess, word", [(1.0, "undecided"), (1e4, "false on D")])
def test_false_on_a_box_needs_a_relative_margin(excess, word):
    """1 in 10^9 may be what constants round; 10^4 in 10^9 may not."""
    large = claim(lambda x: 1e9 + excess + 0.0 * x[0], lambda x: 1e9 + 0.0 * x[0])
    assert prove(large, "printed", UNIT, boxes=64).word == word


def test_a_vector_is_no_side_of_an_inequality():
    vector = claim(lambda x: jnp.stack([x[0], x[0]]), lambda x: 1.0 + x[0])
    found = prove(vector, "printed", UNIT, boxes=8)
    assert found.word == "undecided" and found.reason.startswith("both sides of a <= must be sc")


def test_a_crosscheck_compares_every_form_also_of_sides_that_are_zero():
    for kind, lhs in (("identity", lambda x: 0.0 * x[0]), ("inequality", lambda x: x[0] / 3)):
        found = crosscheck(claim(lhs, lhs, kind=kind), seconds=30.0)
        assert [one.finding for one in found] == ["agrees", "agrees"], found


def test_a_crosscheck_finds_what_is_violated():
    """x + 1 <= x is false by 1, relative to the larger side by more than a third on [0, 1]."""
    (first, *_) = crosscheck(claim(lambda x: x[0] + 1, lambda x: x[0]), seconds=30.0)
    assert first.finding == "violated" and 1 / 2 <= first.amount <= 1


def test_an_identity_of_one_number_and_several_is_of_each():
    one, three = (np.array([arb(v) for v in side], object) for side in ([1.0], [1.0, 1.0, 3.0]))
    with precision(160):
        gap = apart("=", one, three)
    assert float(gap.amount) == pytest.approx(2 / 3) and gap.entry == 2
