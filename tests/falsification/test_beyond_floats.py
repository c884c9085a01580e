"""Overflow, machine integers, and host code that works in place or draws numbers."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds.claims.statements import Size
from jaxbounds.falsification.bench import Bench, batch_of
from jaxbounds.falsification.programs import UNKEPT

pytest.importorskip("flint")
HUGE = {"x": jb.Box(-1e200, 1e200), "y": jb.Box(-1e200, 1e200)}
SMALL = jb.Budget(samples=64, restarts=2, steps=12)


def host(function, limit, draws=64):
    """function(x) <= limit on a box, run on the host."""

    def evaluate(i, s):
        value = np.asarray(function(i["x"]), float)
        return jb.Sides(
            lhs=value, rhs={"printed": np.asarray(limit), "control": -1.0 - np.abs(value)}
        )

    return jb.Statement(
        id="t.host", label="", formula="", kind="inequality", evaluate=evaluate, host=True,
        control="a negative right side", over={"x": jb.Box(-1, 1, 4)},
        forms=(jb.Form(name="printed"),), sizes=({},),
        budget=jb.Budget(samples=draws, restarts=2, steps=12),
    )  # fmt: skip


def line(lhs, rhs, over, **more):
    return jb.find_violation(lhs, rhs, over=over, budget=SMALL, **more)


def test_a_violation_that_overflows_is_found_and_stored():
    found = line(lambda x, y: x * y, 1e308, HUGE)
    x, y = (Fraction(found.instance[name]) for name in "xy")
    assert found.found and x * y > 10**308


def test_overflow_alone_is_no_violation():
    norm = lambda x, y: jnp.sqrt(x * x + y * y)
    assert not line(norm, lambda x, y: jnp.abs(x) + jnp.abs(y), HUGE)


def test_sides_that_both_overflow_are_compared_in_ball_arithmetic():
    over = {"x": jb.Box(-1e201, 1e201)}
    found = line(lambda x: x**2, lambda x: 1e200 * jnp.abs(x), over)
    assert found.found and abs(Fraction(found.instance["x"])) > Fraction(1e200)
    assert not line(lambda x: x**2, lambda x: 1e202 * jnp.abs(x), over)


def test_small_terms_are_no_rounding():
    found = line(lambda x: x**2, 1e-300, {"x": jb.Box(1e-170, 1)}, relation=">=")
    assert found.found and Fraction(found.instance["x"]) ** 2 < Fraction(1e-300)


@pytest.mark.parametrize("low, high", [(-(2**63) + 1, 5), (-(2**63), 2**63 - 1), (-3, 5)])
def test_machine_integers_are_drawn_to_both_ends(low, high):
    found = line(lambda n: n.astype(float), float(high), {"n": jb.Integers(low, high)})
    assert not found and found.ratio <= 1
    beside = line(
        lambda n: n.astype(float), high - max(0.5, 1e-3 * high), {"n": jb.Integers(low, high)}
    )
    assert beside.found


def sorts(x):
    x.sort()
    return x[-1] - x[0]


def centres(x):
    x -= x.mean()
    return np.sum(x**2) / 4


@pytest.mark.parametrize("change, most", [(sorts, 2.5), (centres, 1.5)])
def test_an_evaluate_that_works_in_place_is_refused_by_name(change, most):
    (verdict,) = jb.falsify(host(change, most))
    assert verdict.status == "inconclusive" and "in place" in verdict.reason
    (plain,) = jb.falsify(host(lambda x: change(np.array(x)), most))
    assert plain.status == "holds"


def test_an_evaluate_that_works_in_place_changes_no_instance():
    statement, x = host(sorts, 1.0), np.array([0.5, -1.0, 1.0, 0.25])
    with jb.float64_on_cpu():
        bench = Bench(statement, 4, UNKEPT)
        assert bench.one({"x": x}, Size({})).lhs[0] == 2.0
        bench(batch_of({"x": x}), Size({}))
    np.testing.assert_array_equal(x, [0.5, -1.0, 1.0, 0.25])


def test_a_violation_of_what_works_in_place_is_of_the_instance_as_drawn(tmp_path):
    found = jb.falsify(host(sorts, 1.0), store=tmp_path)
    verdict = found[0]
    stored = jb.load_instance(tmp_path / verdict.shrunk_file).instance["x"]
    assert verdict.status == "fails" and max(stored) - min(stored) > 1.0


def test_what_does_not_repeat_fails_nothing():
    rng, count = np.random.default_rng(3), [0]

    def turns(x):
        count[0] += 1
        return float(count[0] % 2)

    for changing in (lambda x: x[0] + rng.normal(), turns):
        (verdict,) = jb.falsify(host(changing, 0.5))
        assert verdict.status == "inconclusive" and "different values" in verdict.reason


@pytest.mark.parametrize("radius", [1e-150, 1e-140, 1e-100, 1.0])
def test_a_false_bound_fails_at_every_scale(radius):
    claim = jb.claim(
        "t.scale", lambda x: jnp.sum(jnp.abs(x)), "<=", lambda x: 1.3 * jnp.linalg.norm(x),
        over={"x": jb.Ball(radius, 2)},
    )  # fmt: skip
    assert jb.falsify(claim)[0].status == "fails"


@pytest.mark.parametrize("name", ["t.b", "t.c", "t.d"])  # the id chooses the draws
@pytest.mark.parametrize("one", [jb.Sphere(1e-200, 3), jb.Box(1e-200, 1e-199, 3)], ids=str)
def test_an_underflow_beside_a_rounded_constant_refutes_nothing(name, one):
    norm = lambda x: jnp.sqrt(jnp.sum(x**2))
    lhs = lambda x: jnp.sum(jnp.abs(x))
    claim = jb.claim(name, lhs, "<=", lambda x: 3**0.5 * norm(x), over={"x": one})
    assert jb.falsify(claim)[0].status == "inconclusive"


@pytest.mark.parametrize("factor, status", [(1.0, "holds"), (0.9, "fails")])
def test_rounding_of_complex_eigenvalues_is_no_violation(factor, status):
    """Ball arithmetic has no complex numbers, so changes of the last digits decide."""
    radius = lambda A: jnp.max(jnp.abs(jnp.linalg.eigvals(A)))
    claim = jb.claim(
        "t.radius", lambda A: radius(A) - factor * jnp.linalg.norm(A, 2), "<=", 0.0,
        over={"A": jb.Matrices((2, 2), norm="frobenius", at_most=1)},
    )  # fmt: skip
    assert jb.falsify(claim)[0].status == status
