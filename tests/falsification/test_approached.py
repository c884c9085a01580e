"""Suprema that are reached, and suprema that are only approached: the word on each.

The truth of each claim is on paper; the supremum of each ratio is one.
"""

import math

import jax.numpy as jnp
import pytest
from jax.scipy.special import erf, rel_entr

import jaxbounds as jb
from jaxbounds.report.columns import closeness

LAWS = {"p": jb.Simplex(3), "q": jb.Simplex(3)}
LINE, PAIR = {"x": jb.Box(0, math.inf)}, {"x": jb.Reals(3), "y": jb.Reals(3)}
size = lambda x: jnp.sqrt(jnp.sum(x**2))


def word(*claim):
    """The status and the evidence of the claim that lhs <= rhs."""
    found = judged(*claim)
    return found.status, found.evidence


def judged(lhs, rhs, over, equality):

    def evaluate(i, s):
        left, right = lhs(**i), rhs(**i) if callable(rhs) else jnp.asarray(rhs)
        return jb.Sides(lhs=left, rhs={"printed": right, "control": -1.0 - jnp.abs(left)})

    statement = jb.Statement(
        id="t.word", label="", formula="", kind="inequality", evaluate=evaluate, control="below",
        forms=(jb.Form(name="printed", equality=equality),), sizes=({},), over=over,
    )  # fmt: skip
    (found,) = jb.falsify(statement, seed=0)
    return found


APPROACHED = {
    "rational": (lambda x: x / (1 + x), 1.0, LINE),
    "an error function that rounds to one": (erf, 1.0, LINE),
    "an end of a box": (lambda x: jnp.sin(x) / x, 1.0, {"x": jb.Box(1e-8, 10)}),
    "a difference quotient": (
        lambda x, y: size(jnp.tanh(x) - jnp.tanh(y)), lambda x, y: size(x - y), PAIR
    ),
}  # fmt: skip
AWAY = {
    "at an end of a box": (lambda x: jnp.sin(x) / x, 1.0, {"x": jb.Box(1e-3, 10)}),
    "at an end of a large box": (lambda x: x / (1 + x), 1.0, {"x": jb.Box(0, 1e7)}),
    "at two ends": (
        lambda x: jnp.sum(jnp.sin(x)), lambda x: jnp.sum(x), {"x": jb.Box(8e-4, 3, 2)}
    ),
    "at a smooth maximum": (lambda x: x * (2 - x) * (1 - 1e-7), 1.0, {"x": jb.Box(0, 5)}),
    "everywhere": (lambda x: x * (1 - 5e-7), lambda x: x, {"x": jb.Box(1, 2)}),
}  # fmt: skip
"""The greatest ratio is 1 - 5e-7 to 1 - 1e-7."""
ATTAINED = {
    "a plateau": (lambda x: jnp.minimum(x, 1.0), 1.0, {"x": jb.Box(0, 100)}),
    "an end of a box": (lambda x: x, 1.0, {"x": jb.Box(0, 1)}),
    "inside": (lambda x: x * (2 - x), 1.0, {"x": jb.Box(0, 5)}),
    "at an irrational number": (
        lambda x: x**2 * jnp.exp(-(x**2) / 2) * math.e / 2, 1.0, {"x": jb.Box(0, 5)}
    ),
    "where one of two points is zero, or the other large": (
        lambda x, y: size(x + y), lambda x, y: size(x) + size(y) + jnp.minimum(size(x), 1.0), PAIR
    ),
    "where two points are one": (
        lambda x, y: jnp.sum(x * y), lambda x, y: size(x) * size(y), PAIR
    ),
    "where a divergence is infinite": (
        lambda p, q: jnp.sum(jnp.abs(p - q)) ** 2 / 4,
        lambda p, q: 1.0 - jnp.exp(-jnp.sum(rel_entr(p, q))), LAWS,
    ),
    "where both sides are zero beside their terms": (
        lambda p, q: jnp.sum(jnp.abs(p - q)) / 2
        - jnp.sqrt(jnp.maximum(1.0 - jnp.sum(jnp.sqrt(p * q)) ** 2, 0.0)),
        0.0, LAWS,
    ),
}  # fmt: skip


@pytest.mark.default_cases(
    "at the end-rational", "-rational", "-an end of a box", "-a difference quotient"
)
@pytest.mark.parametrize("name", APPROACHED)
@pytest.mark.parametrize("equality", ["at the end", ""])
def test_a_supremum_that_no_instance_reaches_is_approached(name, equality):
    assert word(*APPROACHED[name], equality) == ("holds", "approached")


@pytest.mark.default_cases("x = pi-at an end of a box", *(f"-{name}" for name in AWAY))
@pytest.mark.parametrize("name", AWAY)
@pytest.mark.parametrize("equality", ["x = pi", ""])
def test_a_ratio_that_stays_below_one_is_neither_approached_nor_attained(name, equality):
    found = judged(*AWAY[name], equality)
    assert (found.status, found.evidence) in (("holds", "searched"), ("holds", "sampled"))
    assert closeness(found) in ("equal to 5e-07", "equal to 2e-07", "equal to 1e-07")


def test_a_verdict_says_on_which_way_the_ratio_comes_to_one():
    found = judged(*APPROACHED["rational"], "x = pi")
    assert found.reason.startswith("the ratio comes to one with x to infinity")


@pytest.mark.slow_cases("inside", "at an irrational number", "where two points are one")
@pytest.mark.parametrize("name", ATTAINED)
def test_an_equality_case_is_attained(name):
    assert word(*ATTAINED[name], "there") == ("holds", "attained")


def test_a_bound_by_zero_holds_up_to_the_rounding_of_its_terms():
    matrix = lambda p: jnp.diag(p) - jnp.outer(p, p)
    least = lambda p: -jnp.min(jnp.linalg.eigvalsh(matrix(p)))
    assert word(least, 0.0, {"p": jb.Simplex(4)}, "")[0] == "holds"
    taylor = lambda x: jnp.exp(x) - 1 - x - x**2 / 2  # positive, by x^3 / 6 at most 1.7e-13
    assert word(taylor, 0.0, {"x": jb.Box(-1e-4, 1e-4)}, "")[0] != "holds"


def test_rounding_of_large_terms_is_no_violation():
    lhs = lambda x: (1 - jnp.cos(x)) / x**2
    assert word(lhs, 0.5, {"x": jb.Box(1e-6, 10)}, "x to 0")[0] == "holds"


SAID = {
    "an unbounded set": (lambda x: x / (1 + x), jb.Box(0, math.inf), "comes to one with x to inf"),
    "an end of a set": (lambda x: x / (1 + x), jb.Box(0, 1e10), "close to one at an end of the"),
    "a saturated function": (jnp.tanh, jb.Box(-30, 30), "close to one at an end of the set of x"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_the_reason_says_how_far_the_set_goes(name):
    lhs, over, words = SAID[name]
    few = jb.Budget(samples=64, restarts=4, steps=60)
    (found,) = jb.falsify(jb.claim("t.said", lhs, "<=", 1.0, over={"x": over}, budget=few))
    assert found.status == "holds" and words in found.reason, found.reason


def test_a_ratio_of_rounding_comes_to_nothing():
    # The true ratio is at most 0.7; for |x - y| < 1e-17 floats drop the exponential, and give one.
    rhs = lambda x, y: 1 - jnp.exp(-jnp.abs(x - y)) + jnp.abs(x - y)
    lhs, line = lambda x, y: jnp.abs(jnp.tanh(x) - jnp.tanh(y)), jb.Reals(())
    (found,) = jb.falsify(jb.claim("t.rounds", lhs, "<=", rhs, over={"x": line, "y": line}))
    assert found.status == "holds" and found.evidence != "approached", found.reason
