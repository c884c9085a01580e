"""Small parts of ball arithmetic against numbers that stand here or come from mpmath.

mpmath shares no code with FLINT's balls nor with the rules that are tested.
"""

from functools import partial

import jax
import jax.numpy as jnp
import mpmath
import pytest
from flint import arb

from jaxbounds import testing
from jaxbounds.certification import prove
from jaxbounds.certification.second_look import against
from jaxbounds.claims.statements import Domain
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.programs.balls.interpreter import precision
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
