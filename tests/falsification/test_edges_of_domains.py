"""Claims with roots and inverse cosines whose operands rounding puts beside their domains."""

import jax.numpy as jnp
import pytest
from jax.scipy.special import rel_entr

import jaxbounds as jb
from jaxbounds.falsification.engine import verdicts_on
from jaxbounds.runs.falsify import by_balls

pytest.importorskip("flint")
SIMPLEX, SPHERE, UNIT = jb.Simplex("d"), jb.Sphere(1, "d"), jb.Box(lo=0, hi=1)
SIZES = ({"d": 2}, {"d": 3})


def _kl(p, q):
    return jnp.sum(rel_entr(p, q))


def _root_of_js(p, q):
    middle = (p + q) / 2
    return jnp.sqrt((_kl(p, middle) + _kl(q, middle)) / 2)


def _angle(x, y):
    return jnp.arccos(x @ y)


def _status(lhs, rhs, sizes=SIZES, **over):
    claim = jb.claim("t.edge", lhs, "<=", rhs, over=over, sizes=sizes)
    return verdicts_on(claim, referee=by_balls)[0].status


def test_a_root_of_a_divergence_that_rounds_below_zero_is_zero():
    sides = lambda p, q: jnp.abs(p - q).sum() / 2, lambda p, q: jnp.sqrt(1 - jnp.exp(-_kl(p, q)))
    assert _status(*sides, p=SIMPLEX, q=SIMPLEX) == "holds"


@pytest.mark.parametrize("factor, status", [(1.0, "holds"), (0.999, "fails")])
def test_the_root_of_the_js_divergence_is_a_metric(factor, status):
    lhs = lambda p, q, r: _root_of_js(p, r)
    rhs = lambda p, q, r: factor * (_root_of_js(p, q) + _root_of_js(q, r))
    assert _status(lhs, rhs, SIZES[:1], p=SIMPLEX, q=SIMPLEX, r=SIMPLEX) == status


@pytest.mark.parametrize("factor, status", [(1.0, "holds"), (0.999, "fails")])
def test_angles_satisfy_the_triangle_inequality(factor, status):
    lhs = lambda x, y, z: _angle(x, z)
    rhs = lambda x, y, z: factor * (_angle(x, y) + _angle(y, z))
    assert _status(lhs, rhs, x=SPHERE, y=SPHERE, z=SPHERE) == status


@pytest.mark.parametrize("factor, status", [(0.5, "holds"), (0.4999, "fails")])
def test_an_angle_is_at_most_a_multiple_of_the_chord(factor, status):
    chord = lambda x, y: factor * jnp.pi * jnp.linalg.norm(x - y)
    assert _status(_angle, chord, x=SPHERE, y=SPHERE) == status


@pytest.mark.parametrize("excess, status", [(1e-10, "fails"), (0.0, "holds")])
def test_a_root_of_a_small_difference_is_no_rounding(excess, status):
    lhs = lambda x: jnp.sqrt((x - 0.5) ** 2 + excess)
    assert _status(lhs, lambda x: jnp.abs(x - 0.5) + 0.99 * excess**0.5, ({},), x=UNIT) == status


def test_a_root_of_negative_numbers_is_undefined():
    assert _status(lambda x: jnp.sqrt(x - 0.5), lambda x: x + 1, ({},), x=UNIT) == "inconclusive"


@pytest.mark.parametrize("less, status", [(1e-14, "inconclusive"), (0.0, "holds")])
def test_a_named_equality_case_hides_no_tiny_violation(less, status):
    claim = jb.claim("t.less", lambda x: x, "<=", lambda x: 1 - less, over={"x": UNIT},
                     equality="x = 1")  # fmt: skip
    assert verdicts_on(claim, referee=by_balls)[0].status == status


def test_the_search_does_not_drift_out_of_a_sphere():
    claim = jb.claim(
        "t.drift", lambda x, y: _angle(x, y), "<=",
        lambda x, y: jnp.where(jnp.abs(x @ x - 1) < 1e-14, 4.0, 0.0),
        over={"x": SPHERE, "y": SPHERE}, sizes=SIZES,
    )  # fmt: skip
    assert verdicts_on(claim, referee=by_balls)[0].status == "holds"
