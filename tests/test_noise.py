"""Violations by what rounding leaves: they lead no search, and nothing fails by them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds import (
    Ball,
    Box,
    Budget,
    Form,
    Sides,
    Signs,
    Simplex,
    Sphere,
    Statement,
    find_violation,
)
from jaxbounds.claims.statements import Size
from jaxbounds.claims.statements.line import line_of
from jaxbounds.falsification import UNKEPT, float64_on_cpu, no_referee, verdicts_on
from jaxbounds.falsification.bench import Bench
from jaxbounds.falsification.cancellation import is_noise, largest_entry
from jaxbounds.falsification.measure import Measured
from jaxbounds.falsification.second_opinion import TRUE, Referee, stands

BUDGET = Budget(samples=32, restarts=2, steps=20, batch=32)


def _cancelling(factor, host=False):
    """x <= factor ((1e6 + x) - 1e6) is true for a factor of at least one; near zero it is noise."""

    def sample(key, size):
        return {"x": 10.0 ** jax.random.uniform(key, (), minval=-8.0, maxval=0.0), "big": 1e6}

    def evaluate(instance, size):
        lost = (instance["big"] + instance["x"]) - instance["big"]
        return Sides(lhs=instance["x"], rhs={"printed": factor * lost, "control": 0.1 * lost})

    return Statement(
        id="mine.cancel", label="1", formula="x <= c x", kind="inequality", evaluate=evaluate,
        sample=lambda key, size: jax.tree.map(jnp.asarray, sample(key, size)), judges=(),
        hypotheses=lambda i, size: {"big": i["big"] == 1e6, "x > 0": i["x"] > 0},
        project=lambda i, size: {"x": jnp.abs(i["x"]), "big": jnp.full((), 1e6)},
        forms=(Form(name="printed"),), control="a tenth", sizes=({"d": 1},), budget=BUDGET,
        host=host,
    )  # fmt: skip


def _says(word, reason=""):
    asked = []

    def referee(statement, form, instance, size):
        asked.append(float(instance["x"]))
        return Referee(word, reason)

    return referee, asked


@pytest.mark.parametrize(
    "word, reason, status, counted",
    [
        ("undecided", TRUE, "holds", False),
        ("undecided", "the sides overlap", "inconclusive", False),
        ("disproved", "", "fails", True),  # the entry 1e6 is large, not the difference small
    ],
)
def test_noise_counts_only_if_it_is_confirmed(word, reason, status, counted):
    """The entry 1e6 leaves 1e-10 of the last places: a ratio of x to that is no violation.

    On the host no size of the terms is known, and the referee decides.
    """
    referee, asked = _says(word, reason)
    verdict = verdicts_on(_cancelling(1.0 + 1e-5, host=True), referee=referee)[0]
    assert asked and max(asked) < 1e-5
    assert verdict.status == status, verdict.reason
    assert (verdict.worst_ratio > 1) == counted
    if status == "inconclusive":
        assert "may be rounding" in verdict.reason and reason in verdict.reason


@pytest.mark.parametrize(
    "word, reason, status",
    [("undecided", TRUE, "holds"), ("undecided", "the sides overlap", "inconclusive"),
     ("disproved", "", "fails")],
)  # fmt: skip
def test_sides_within_the_rounding_of_their_terms_are_no_violation(word, reason, status):
    """The terms are of size 1e6; the referee decides on the largest gap below their rounding."""
    referee, asked = _says(word, reason)
    verdict = verdicts_on(_cancelling(1.0 + 1e-5), referee=referee)[0]
    assert verdict.status == status and asked, verdict.reason


def test_a_claim_that_is_false_elsewhere_fails_there():
    """False by 1% for every x; the noise near zero is larger, and hides nothing."""
    referee, _ = _says("undecided", "the sides overlap")
    verdict = verdicts_on(_cancelling(1 / 1.01), referee=referee)[0]
    assert verdict.status == "fails"


def _column(value, lhs, rhs):
    full = lambda x: np.asarray([x])
    flag = np.asarray([True])
    return Measured(full(value), full(value), full(value), flag, full(lhs), full(rhs), ~flag, flag,
                    full(0.0))  # fmt: skip


@pytest.mark.parametrize(
    "lhs, rhs, largest, noise",
    [
        (1e-13, 0.9e-13, 1.0, True),  # 1e-14 apart, where 1e-12 may be lost
        (1e-13, 0.9e-13, 1e-8, True),  # or 1e-12 of numbers near one
        (4e-12, 1e-12, 1.0, False),
        (4e-12, 1e-12, 2.1, True),
        (3e-12, 1e-12, 0.0, False),
        (0.9e-13, 1e-13, 1.0, False),  # no violation
        (np.inf, np.inf, 1.0, False),
    ],
)
def test_noise_by_hand(lhs, rhs, largest, noise):
    with np.errstate(invalid="ignore"):
        value = lhs / rhs if np.isfinite(lhs) else 2.0
    assert is_noise(_cancelling(1.0), _column(value, lhs, rhs), largest) == noise


def test_the_largest_entry_is_a_float_of_any_leaf():
    batch = {
        "x": np.array([[1.0, -3.0], [0.5, 0.0]]),
        "n": np.array([7, 9]),
        "y": np.array([0.0, 2.0]),
    }
    assert largest_entry(batch, np, axes=1).tolist() == [3.0, 2.0]
    assert float(largest_entry(batch, np)) == 3.0 and largest_entry({"n": np.array(5)}, np) == 0.0
    assert largest_entry({"x": np.zeros((2, 0))}, np, axes=1).tolist() == [0.0, 0.0]
    with float64_on_cpu():
        assert float(largest_entry({"x": jnp.array([1.0, -4.0])})) == 4.0


def _divergence(p, q):
    return jnp.sum(jnp.where(p > 0, p * jnp.log(jnp.where(p > 0, p, 1.0) / q), 0.0))


def test_pinsker_by_one_percent_too_much_is_violated():
    """2 (p - q)^2 <= KL is sharp as q comes near p, where the logarithms cancel."""
    found = find_violation(
        lambda p, q: 2.02 * (jnp.sum(jnp.abs(p - q)) / 2) ** 2, _divergence,
        over={"p": Simplex("d"), "q": Simplex("d")}, sizes={"d": 2}, budget=BUDGET,
    )  # fmt: skip
    assert found and 1.005 < found.ratio < 1.0101


@pytest.mark.default_cases("0-1.4-True", "1-1.45-False")
@pytest.mark.parametrize("factor, false", [(1.2, True), (1.4, True), (1.45, False)])
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_an_artefact_hides_no_violation_and_is_none(factor, false, seed):
    """TV <= sqrt(2) H, with H^2 = 1 - sum sqrt(p q), which cancels where p and q are near.

    There floats give zero on the right, and points whose sums are one up to rounding violate even
    what is true; where the factor is too small, other instances violate it certainly.
    """
    distance = lambda p, q: jnp.sum(jnp.abs(p - q)) / 2
    found = find_violation(
        distance, lambda p, q: factor * jnp.sqrt(1 - jnp.sum(jnp.sqrt(p * q))),
        over={"p": Simplex("d"), "q": Simplex("d")}, sizes={"d": 2}, seed=seed,
    )  # fmt: skip
    assert bool(found) == false


def test_an_argument_with_a_value_of_its_own_keeps_it():
    """As lambdas that are made in a loop have."""
    over = {"p": Simplex("d")}
    for most, false in ((1.0, False), (0.98, True)):
        right = lambda d, most=most: most * jnp.log(d)
        entropy = lambda p: -jnp.sum(jnp.where(p > 0, p * jnp.log(jnp.where(p > 0, p, 1.0)), 0.0))
        found = find_violation(entropy, right, over=over, sizes={"d": 3}, budget=BUDGET)
        assert bool(found) == false
        assert found.line["rhs"] == ["d"] and f"most={most!r}" in found.line["code"]
    with pytest.raises(ValueError, match="the function rhs takes argument='c', expected a name"):
        find_violation(lambda p: p[0], lambda c: c, over=over, sizes={"d": 3})


CANCEL = {"x": Box(-3, 3)}
SPHERES = {"u": Sphere(1, "d"), "v": Sphere(1, "d")}
BALLS = {"x": Ball(3, "d"), "y": Ball(3, "d")}


def _moved(x, y):
    return jnp.linalg.norm(jax.nn.softmax(x) - jax.nn.softmax(y))


@pytest.mark.parametrize(
    "lhs, rhs, over, sizes, false",
    [
        # 1 - cos x <= x^2 / 2 and log cosh x <= x^2 / 2; near zero both sides are nothing.
        (lambda x: 1 - jnp.cos(x), lambda x: 0.51 * x**2, CANCEL, None, False),
        (lambda x: 1 - jnp.cos(x), lambda x: 0.49 * x**2, CANCEL, None, True),
        (lambda x: jnp.log(jnp.cosh(x)), lambda x: 0.51 * x**2, CANCEL, None, False),
        # 1 - <u, v> = |u - v|^2 / 2 of unit vectors, which are of unit length up to rounding.
        (
            lambda u, v: 1 - u @ v,
            lambda u, v: 0.51 * jnp.sum((u - v) ** 2),
            SPHERES,
            {"d": 3},
            False,
        ),
        (
            lambda u, v: 1 - u @ v,
            lambda u, v: 0.49 * jnp.sum((u - v) ** 2),
            SPHERES,
            {"d": 3},
            True,
        ),
        # Softmax has the constant 1/2.
        (_moved, lambda x, y: 0.48 * jnp.linalg.norm(x - y), BALLS, {"d": 2}, True),
    ],
)
def test_what_cancels_is_no_violation_and_hides_none(lhs, rhs, over, sizes, false):
    # A few instances show that a claim is false; noise beside a true one is rarer.
    budget = BUDGET if false else Budget()
    found = find_violation(lhs, rhs, over=over, sizes=sizes, budget=budget)
    assert bool(found) == false, found.reason
    assert found.ratio < 1.05  # of the false ones .5 / .49 and .5 / .48


def test_every_point_of_a_finite_set_is_tried():
    """Barker's sequence of length 11 is one of few: its merit factor is 121 / 10."""

    def merit(s):
        return 121 / (2 * sum(jnp.sum(s[:-k] * s[k:]) ** 2 for k in range(1, 11)))

    assert find_violation(merit, 11.5, over={"s": Signs(11)}, budget=BUDGET)
    found = find_violation(merit, 12.1, over={"s": Signs(11)}, budget=BUDGET)
    assert not found and found.ratio == pytest.approx(1.0, abs=1e-9)


def test_a_number_that_only_a_batch_has_is_no_violation():
    """XLA on the CPU passes over the NaN of a row of zeros, in a maximum of many entries."""

    def coherence(v):
        unit = v / jnp.linalg.norm(v, axis=1, keepdims=True)
        return jnp.max(jnp.abs(unit @ unit.T) - jnp.eye(20))

    zero = {"v": jax.random.normal(jax.random.key(0), (20, 5)).at[2].set(0.0)}
    bench = Bench(line_of(coherence, 2.0, {"v": Box(-1, 1, (20, 5))}, None, "<=").statement(),
                  4, UNKEPT)  # fmt: skip
    with float64_on_cpu():
        instance = jax.tree.map(lambda x: np.asarray(x, float), zero)
        said = stands(bench, bench.statement.forms[0], (instance, Size({}), 1.5), no_referee)
        assert "the ratio is nan or 1.5 at v = " in said
        whole = {"v": np.eye(20, 5) + 1e-3}
        value = float(bench.one(whole, Size({})).value[0])
        assert "the ratio is" not in stands(
            bench, bench.statement.forms[0], (whole, Size({}), value), no_referee
        )


@pytest.mark.parametrize("twin, status", [(1.0, "inconclusive"), (0.9, "fails")])
def test_a_violation_below_the_error_of_a_function_of_jax_is_undecided(twin, status):
    """JAX's matrix exponential has a relative error of 2e-8 at the matrix [10]."""
    lhs = lambda x: jax.scipy.linalg.expm(x[None, None])[0, 0]
    claim = jb.claim(
        "mine.exp", lhs, "<=", lambda x: twin * jnp.exp(x), equality="always", budget=BUDGET,
        over={"x": jb.Box(9.5, 10.5, ())}, sizes={"d": 1},
    )  # fmt: skip
    verdict = jb.falsify(claim)[0]
    assert verdict.status == status, verdict.reason
    assert ("the error of JAX's expm" in verdict.reason) == (status == "inconclusive")
