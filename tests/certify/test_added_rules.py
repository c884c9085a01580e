"""A primitive of a caller's own gets a rule of ball arithmetic."""

import numpy as np
import pytest
from jax.extend.core import Primitive
from jax.interpreters import mlir

import jaxbounds as jb

flint = pytest.importorskip("flint")

from jaxbounds.programs import balls  # noqa: E402
from jaxbounds.programs.balls.interpreter import RULES  # noqa: E402
from jaxbounds.programs.balls.values import each  # noqa: E402
from jaxbounds.programs.primitives import PRIMITIVES  # noqa: E402


@pytest.fixture
def cube(monkeypatch):
    primitive = Primitive("cube_of_a_user")
    primitive.def_impl(lambda x, scale: scale * x**3)
    primitive.def_abstract_eval(lambda x, scale: x)
    lowered = mlir.lower_fun(lambda x, scale: scale * x**3, multiple_results=False)
    mlir.register_lowering(primitive, lowered)
    for table in (RULES, PRIMITIVES):  # the test's own entries leave with it
        for name in ("cube_of_a_user",):
            monkeypatch.setitem(table, name, None)
            monkeypatch.delitem(table, name)
    return lambda x: primitive.bind(x, scale=2.0)


def scaled_cube(eqn, values, run):
    return [each(lambda ball: ball**3 * eqn.params["scale"], values[0])]


def test_a_rule_of_ones_own_encloses_the_value(cube):
    with jb.float64_on_cpu():
        x = np.array([0.1, -1.5])
        with pytest.raises(balls.NotSupported, match="no rule for primitive='cube_of_a_user'"):
            balls.enclose(lambda x: cube(x).sum(), x)
        balls.add_rule("cube_of_a_user", scaled_cube, reads=("scale",))
        (found,) = balls.enclose(lambda x: cube(x).sum(), x).ways
        exact = sum(2 * flint.fmpq(*float(v).as_integer_ratio()) ** 3 for v in x)
        value = np.ravel(found)[0]
        with balls.precision(400):
            assert value.overlaps(flint.arb(exact)) and float(value.rad()) < 1e-40
        balls.add_rule("cube_of_a_user", lambda *_: [np.zeros(7)], reads=("scale",))
        with pytest.raises(balls.NotSupported, match=r"gives the shape \(7,\)"):
            balls.enclose(cube, x)
        balls.add_rule("cube_of_a_user", scaled_cube)
        with pytest.raises(balls.NotSupported, match="unknown or missing parameters: scale"):
            balls.enclose(cube, x)


def test_a_rule_of_the_library_stays():
    with pytest.raises(jb.Refused, match="primitive='sin' is known to the library"):
        balls.add_rule("sin", scaled_cube)
    assert RULES["sin"] is not scaled_cube
