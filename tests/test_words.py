"""Strong words in a user's own hands: claims whose truth is plain, and what is said of them.

Each truth is a line of school mathematics; nothing of the engine says what it should find.
"""

import functools
import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.sparse.linalg as sparse
import numpy as np
import pytest

from jaxbounds import falsify
from jaxbounds.certification import disprove, prove
from jaxbounds.claims.statements import Budget, Counterexample, Domain, Form, Sides, Statement
from jaxbounds.falsification import is_bound_to
from jaxbounds.falsification.found_equality import NEAR_ONE
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.report.columns import closeness

FEW = Budget(samples=64, restarts=4, steps=60)


def number(key, size):
    return {"x": jax.random.normal(key, ())}


def claim(lhs, rhs, *, sample=number, form=None, control=lambda i: -9.0, **options) -> Statement:
    """lhs(instance) <= rhs(instance), unless the options say otherwise."""
    error = options.pop("error", lambda i: 0.0)

    def evaluate(instance, size):
        sides = {"printed": rhs(instance), "control": control(instance)}
        return Sides(lhs=lhs(instance), rhs=sides, error=error(instance))

    defaults: dict[str, Any] = {
        "id": "mine.claim",
        "label": "Claim",
        "formula": "lhs <= rhs",
        "kind": "inequality",
        "evaluate": evaluate,
        "sample": sample,
        "sizes": ({"d": 1},),
        "forms": (form or Form(name="printed", equality="somewhere"),),
        "control": "far off",
        "budget": FEW,
    }
    return Statement(**(defaults | options))


def box(lower, upper, slack=0.0):
    return Domain(
        name="a box", chart=lambda p, size: {"x": p[0]}, size={"d": 1},
        lower=(lower,), upper=(upper,), slack=slack,
    )  # fmt: skip


def proved(lhs, rhs, lower, upper, **options):
    return prove(claim(lhs, rhs, **options), "printed", box(lower, upper), seconds=20.0)


def disproved(lhs, rhs, instance, **options):
    return disprove(claim(lhs, rhs, **options), "printed", instance, {"d": 1})


X = lambda i: i["x"]
NONE = lambda i: 0.0 * i["x"]

# --- boxes ---


@pytest.mark.parametrize("ends", [(0.0, math.inf), (-math.inf, 0.0), (math.nan, 1.0)])
def test_a_box_has_finite_ends(ends):
    with pytest.raises(ValueError, match=r"finite ends.*t / \(1 - t\)"):
        box(*ends)


@pytest.mark.parametrize(
    ("ends", "error"),
    [
        ((-1e308, 1.7e308), ValueError),
        ((1.0, 1.0), ValueError),
        ((False, True), TypeError),
    ],
)
def test_a_box_that_is_none_is_refused(ends, error):
    with pytest.raises(error, match="domain 'a box'"):
        box(*ends)


UNDEFINED = {
    "a root that isnan sees": (
        lambda i: -0.001, lambda i: jnp.where(jnp.isnan(jnp.sqrt(X(i))), -5.0, jnp.sqrt(X(i))),
        -1.0, 1.0,
    ),
    "a power in a comparison": (
        lambda i: -1.0, lambda i: jnp.where(X(i) ** 0.5 >= -1, 0.0, -5.0), -1.0, 1.0,
    ),
    "nothing times a logarithm": (lambda i: 0.0, lambda i: 0 * jnp.log(X(i)), -1.0, 2.0),
    "nan_to_num": (
        lambda i: jnp.nan_to_num(jnp.sqrt(X(i) - 0.5), nan=2.0), lambda i: 1.0, 0.0, 1.0,
    ),
    "a root below its domain": (lambda i: -1.0, lambda i: jnp.sqrt(X(i)), -1.0, 1.0),
    "an arc sine": (lambda i: -2.0, lambda i: jnp.arcsin(X(i)), -1.0, 2.0),
    "an infinity less itself": (
        lambda i: 0.0, lambda i: 0.0 * (1 / (X(i) - X(i))), 0.5, 1.0,
    ),
    "a logarithm that is dropped": (
        lambda i: jnp.minimum(jnp.log(X(i) - 0.3), 0.0) * 0.0, lambda i: 1.0, 0.0, 1.0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNDEFINED)
def test_where_a_side_may_be_undefined_nothing_is_proved(name):
    lhs, rhs, lower, upper = UNDEFINED[name]
    assert proved(lhs, rhs, lower, upper).word == "undecided"


def test_a_root_that_is_defined_everywhere_is_proved():
    """sqrt(x^2 + y y) = |x| at y = 0: the balls of squares reach below zero, the squares do not."""
    found = proved(lambda i: jnp.sqrt(X(i) ** 2), lambda i: 1.001 + NONE(i), -1.0, 1.0)
    assert found.word == "proved on D"
    assert found.looked > 1000


LAST_PLACES = {
    "three tenths": (lambda i: 3 * (0.1 * X(i)), lambda i: 0.3 * X(i), "undecided"),
    "a third": (lambda i: X(i) / 3, lambda i: (1 / 3) * X(i), "undecided"),
    "one less .99": (lambda i: 0.01 * X(i) + 2e-18 * X(i), lambda i: (1 - 0.99) * X(i), "as coded"),
    "a root squared": (
        lambda i: 2 * X(i) + 1e-17 * X(i), lambda i: X(i) * math.sqrt(2) * math.sqrt(2), "as coded",
    ),
    "with room": (lambda i: 0.3 * X(i), lambda i: 0.30001 * X(i), "proved on D"),
}  # fmt: skip


@pytest.mark.parametrize("name", LAST_PLACES)
def test_what_hangs_on_the_last_place_of_a_constant_is_neither_proved_nor_false(name):
    lhs, rhs, word = LAST_PLACES[name]
    said = proved(lhs, rhs, 0.25, 1.0).word
    assert said.endswith(word) and (word == "proved on D") == (said == "proved on D")


def test_a_claim_is_false_only_by_a_margin():
    assert proved(lambda i: X(i) * (1 + 1e-7), X, 0.25, 1.0).word == "undecided"
    assert proved(lambda i: X(i) * (1 + 1e-5), X, 0.25, 1.0).word == "false on D"


def test_a_proof_takes_off_the_stated_error():
    error = {"error": lambda i: 0.6 + NONE(i)}
    assert proved(X, lambda i: X(i) + 0.5, 0.0, 1.0, **error).word == "undecided"
    assert proved(X, lambda i: X(i) + 0.7, 0.0, 1.0, **error).word == "proved on D"
    assert proved(lambda i: X(i) + 0.5, X, 0.0, 1.0, **error).word == "undecided"


@pytest.mark.parametrize("kind", ["probability", "expectation"])
def test_no_box_decides_what_is_on_average(kind):
    level = {"level": 0.1} if kind == "probability" else {}
    for rhs in (2.0, 9.0):
        found = proved(X, lambda i, r=rhs: r + NONE(i), -3.0, 3.0, kind=kind, **level)
        assert (found.word, kind in found.reason) == ("undecided", True)


def test_a_box_of_vectors_is_refused_in_words():
    found = proved(lambda i: jnp.stack([X(i), X(i)]), lambda i: 2.0 + NONE(i), 0.0, 1.0)
    assert found.word == "undecided"
    assert "must be scalars" in found.reason


def test_a_chart_gives_what_is_drawn():
    whole = claim(X, X, sample=lambda key, size: {"x": jax.random.randint(key, (), 0, 9)})
    with pytest.raises(ValueError, match=r"x.* as float64; expected int64"):
        prove(whole, "printed", box(0.0, 1.0))
    with pytest.raises(ValueError, match="y"):
        prove(claim(X, X, sample=lambda key, size: {"y": jnp.zeros(())}), "printed", box(0.0, 1.0))


ROUNDED = lambda i: jnp.abs(X(i) - X(i).astype(jnp.bfloat16).astype(float))


def test_a_narrowing_conversion_rounds():
    """bfloat16 has 8 digits: |x - bf16(x)| is up to 2^-9 x on [1, 2], and 2^-10.6 at 1.00098."""
    assert proved(ROUNDED, lambda i: 2.0**-20 * X(i), 0.5, 2.0).word == "false on D"
    at = {"x": 1.001}  # the nearest is 1: off by 1e-3
    assert disproved(lambda i: 1e-4 * X(i), ROUNDED, at).word == "undecided"
    assert disproved(ROUNDED, lambda i: 9e-4 * X(i), at).word == "disproved"


@pytest.mark.parametrize("kind", [jnp.float32, jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("x", [1.001, 0.1, -3.3, 65000.0, 2.0**-30, 1 + 2.0**-9, 1 + 3 * 2.0**-9])
def test_a_conversion_of_a_point_is_the_one_that_numpy_makes(kind, x):
    from jaxbounds.certification import enclose

    with enable_x64(True):
        (found,) = enclose(lambda v: v.astype(kind).astype(float), np.float64(x)).ways
    true = float(np.asarray(x).astype(kind))
    ball = found.item()
    assert ball.is_nan() if np.isinf(true) else ball.contains(true)
    if math.isfinite(true) and abs(true) >= float(jnp.finfo(kind).tiny):
        assert ball.is_exact()


def test_a_slope_does_not_lead_through_rounding():
    """float32(x) - x is a saw: its mean slope is none, and 1000 hides it from float64."""
    saw = lambda i: X(i).astype(jnp.float32).astype(float) - X(i) + 1000.0
    statement = claim(saw, lambda i: 1000.0 + 1e-9 + NONE(i))
    found = prove(statement, "printed", box(1.0, 1.25), boxes=1000, seconds=20.0)
    assert found.word == "undecided"


def test_a_constant_in_float32_stands_for_what_was_rounded():
    """sin(10^6 pi) = 0, and pi in float32 is not pi."""
    sine = lambda i: jnp.abs(jnp.sin(jnp.round(X(i)) * jnp.float32(math.pi).astype(float)))
    found = disproved(sine, lambda i: 0.05 + NONE(i), {"x": 1e6})
    assert found.word in ("undecided", "disproved as coded")


# --- points ---


def test_an_iterative_solve_is_the_program_that_stands_there():
    """One step of conjugate gradients leaves |Ab' - b| = 1.73 here, more than .1."""
    A = np.array([[4.0, 1, 0.5], [1, 3, -1], [0.5, -1, 2]])
    step = lambda b: sparse.cg(lambda v: jnp.asarray(A) @ v, b, maxiter=1)[0]
    residual = lambda i: jnp.linalg.norm(jnp.asarray(A) @ step(i["x"]) - i["x"])
    options = {"sample": lambda key, size: {"x": jax.random.normal(key, (3,))}}
    at = {"x": [1.0, 2.0, 1.5]}
    assert disproved(lambda i: 0.1, residual, at, **options).word == "undecided"
    assert disproved(residual, lambda i: 1.5, at, **options).word == "disproved"


def test_the_stated_error_is_taken_off_a_gap():
    found = disproved(X, NONE, {"x": 0.5}, error=lambda i: 0.6 + NONE(i))
    assert found.word == "undecided"
    assert disproved(X, NONE, {"x": 0.5}, error=lambda i: 0.4 + NONE(i)).word == "disproved"
    for bad in (-1.0, math.nan):
        found = disproved(X, NONE, {"x": 0.5}, error=lambda i, b=bad: b + NONE(i))
        assert (found.word, "error" in found.reason) == ("undecided", True)


INTEGER = lambda key, size: {"x": jax.random.randint(key, (), 0, 9)}
BITS = lambda key, size: {"x": jax.random.bits(key, (), jnp.uint32)}
FLAG = lambda key, size: {"x": jax.random.bernoulli(key)}


@pytest.mark.parametrize(
    ("sample", "x"), [(INTEGER, 2.5), (FLAG, 3), (BITS, -1), (BITS, 2**40), (INTEGER, math.nan)]
)
def test_an_instance_that_cannot_be_drawn_is_refused(sample, x):
    with pytest.raises(ValueError, match="x"):
        disproved(lambda i: X(i).astype(float), lambda i: -1.0, {"x": x}, sample=sample)


def test_an_integer_has_the_type_that_is_drawn():
    """1664525 * 5000000 is above 2^32 in 64 bits, and wraps in the 32 that are drawn."""
    product = lambda i: (X(i) * jnp.asarray(1664525, X(i).dtype)).astype(float)
    found = disproved(product, lambda i: 2.0**32, {"x": 5000000}, sample=BITS)
    assert found.word == "undecided"
    assert disproved(lambda i: X(i).astype(float), lambda i: 1.0, {"x": 2.0}, sample=INTEGER).word


TRUE_ONES = {
    "a float32 literal": (
        lambda i: jnp.abs(10 * (X(i).astype(jnp.float32) * 0.1).astype(float) - X(i)), NONE,
        {"x": 1.0}, {},
    ),
    "a callback": (
        lambda i: jnp.abs(
            jnp.exp(
                jax.pure_callback(
                    lambda n: np.float64(np.log(np.float32(n))),
                    jax.ShapeDtypeStruct((), jnp.float64), i["x"],
                )
            ) - i["x"].astype(float)
        ),
        lambda i: 0.0, {"x": 7}, {"sample": INTEGER, "search": "none"},
    ),
    "the sign of a zero": (
        lambda i: -jnp.linalg.svd(i["x"], full_matrices=False)[0][0, 0], lambda i: 0.0,
        {"x": [[-0.0, 0.5]]}, {"sample": lambda key, size: {"x": jax.random.normal(key, (1, 2))}},
    ),
    "an angle at the cut": (
        lambda i: jnp.arctan2(NONE(i), -jnp.abs(X(i))), lambda i: 3.2 * jnp.sign(NONE(i) + 1),
        {"x": 0.0}, {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRUE_ONES)
def test_a_true_claim_is_not_disproved(name):
    lhs, rhs, instance, options = TRUE_ONES[name]
    assert disproved(lhs, rhs, instance, **options).word == "undecided"


def test_what_a_cancellation_left_is_at_most_as_coded():
    found = disproved(lambda i: X(i) ** 2 * (0.1 + 0.2 - 0.3), NONE, {"x": 1.0})
    assert found.word == "disproved as coded"


def test_where_float64_contradicts_a_disproof_nothing_is_claimed(monkeypatch):
    """A rule that were wrong (here: every cosine is two) is not believed."""
    from jaxbounds.programs.balls import interpreter
    from jaxbounds.programs.balls.values import reals

    two = lambda eqn, xs, run: [reals(np.shape(xs[0]), [type(v)(2) for v in xs[0].ravel()])]
    monkeypatch.setitem(interpreter.RULES, "cos", two)
    found = disproved(lambda i: jnp.cos(X(i)), lambda i: 1.5 + NONE(i), {"x": 1.0})
    assert found.word == "undecided"
    assert "contradiction" in found.reason


def test_where_float64_contradicts_a_proof_nothing_is_claimed(monkeypatch):
    from jaxbounds.programs.balls import interpreter
    from jaxbounds.programs.balls.values import reals

    constant = lambda eqn, xs, run: [reals(np.shape(xs[0]), [type(v)(0) for v in xs[0].ravel()])]
    monkeypatch.setitem(interpreter.RULES, "sin", constant)
    found = proved(lambda i: jnp.sin(X(i)), lambda i: 0.5 + NONE(i), 0.0, 2.0)
    assert found.word == "undecided"
    assert "contradiction" in found.reason and found.point is not None


# --- verdicts ---

VECTORS = lambda key, size: dict(zip("xy", jax.random.normal(key, (2, 3))))
DOT = lambda i: jnp.abs(i["x"] @ i["y"])
NORMS = lambda i: jnp.linalg.norm(i["x"]) * jnp.linalg.norm(i["y"])


def judged(*sides, **options):
    (verdict,) = falsify(claim(*sides, **options))
    return verdict


def test_an_error_that_is_none_decides_nothing():
    nan = lambda i: 1e-15 * jnp.sqrt(0.9 * NORMS(i) - DOT(i))
    found = judged(DOT, lambda i: 0.9 * NORMS(i), sample=VECTORS, error=nan)
    assert (found.status, "NaN" in found.reason) == ("inconclusive", True)
    found = judged(DOT, NORMS, sample=VECTORS, error=lambda i: -1e-6 * NORMS(i))
    assert (found.status, "negative" in found.reason) == ("inconclusive", True)


@pytest.mark.parametrize("tolerance", [0.1, -1.0, math.nan])
def test_a_tolerance_is_for_rounding(tolerance):
    with pytest.raises(ValueError, match="expected a relative rounding error"):
        claim(DOT, NORMS, sample=VECTORS, tolerance=tolerance)


@pytest.mark.parametrize("level", [0.0, -1.0, 1.0, 2.0])
def test_a_level_is_a_probability(level):
    with pytest.raises(ValueError, match="expected a probability of failure"):
        claim(X, NONE, kind="probability", level=level)


def test_draws_that_the_error_leaves_open_count_against_a_claim():
    """P(x > 1.5) = 6.7%, and the error says nothing of just those draws."""
    big = lambda i: jnp.where(X(i) > 1.5, 100.0, 0.0)
    more = {"kind": "probability", "budget": Budget(samples=2000), "error": big}
    found = judged(X, lambda i: 1.5 + NONE(i), level=0.01, **more)
    assert found.status == "inconclusive"
    assert judged(X, lambda i: 1.5 + NONE(i), level=0.1, **more).status == "holds"


def test_repeated_draws_are_no_further_evidence():
    """Five seeds: none of the five numbers exceeds 1.5, which one in fifteen does."""
    seeds = lambda key, size: {
        "x": jax.random.normal(jax.random.key(jax.random.randint(key, (), 0, 5)), ())
    }
    more = {"kind": "probability", "level": 0.02, "budget": Budget(samples=2000)}
    found = judged(X, lambda i: 1.5 + NONE(i), sample=seeds, **more)
    assert (found.status, "5 different" in found.reason) == ("inconclusive", True)


HEAVY = {
    "e^{3g}, mean 90": (lambda u: jnp.exp(3 * jax.scipy.special.ndtri(u)), 75.0),
    "1/u, no mean": (lambda u: 1 / u, 20.0),
    "1/u, no mean, a large claim": (lambda u: 1 / u, 1000.0),
    "1e6 at 1e-5": (lambda u: jnp.where(u < 1e-5, 1e6, 0.0) + u, 5.0),
}


@pytest.mark.parametrize("name", HEAVY)
@pytest.mark.parametrize("seed", range(3))
def test_a_mean_that_rare_draws_decide_does_not_hold(name, seed):
    value, bound = HEAVY[name]
    statement = claim(
        lambda i: value(i["x"]), lambda i: bound + NONE(i), kind="expectation",
        sample=lambda key, size: {"x": jax.random.uniform(key, minval=1e-300)},
        control=lambda i: -1.0, budget=Budget(samples=2000),
    )  # fmt: skip
    (found,) = falsify(statement, seed=seed)
    assert found.status != "holds"


def test_a_mean_of_light_tails_holds_and_fails():
    """E x^2 = 1 for a normal x."""
    square = lambda bound: judged(
        lambda i: X(i) ** 2, lambda i: bound + NONE(i), kind="expectation",
        control=lambda i: 0.1 + NONE(i), budget=Budget(samples=2000),
    )  # fmt: skip
    found = [square(bound).status for bound in (1.9, 1.0, 0.3)]
    assert found == ["holds", "inconclusive", "fails"]


@pytest.mark.parametrize("given", [lambda i: 1.0 - X(i), lambda i: None])
def test_a_hypothesis_is_a_boolean(given):
    statement = claim(X, lambda i: 1.0 + NONE(i), hypotheses=lambda i, size: {"x <= 1": given(i)})
    with pytest.raises(TypeError, match="'x <= 1' must be a boolean"):
        falsify(statement)


def test_hypotheses_say_what_counts_also_where_a_projection_is_narrower():
    """x^2 <= |x| is false for 1 < |x| <= 2, which `project` never leaves to the search."""
    found = judged(
        lambda i: X(i) ** 2, lambda i: jnp.abs(X(i)), control=lambda i: 0.5 * jnp.abs(X(i)),
        sample=lambda key, size: {"x": jax.random.uniform(key, (), minval=-1.0)},
        hypotheses=lambda i, size: {"|x| <= 2": jnp.abs(X(i)) <= 2},
        project=lambda i, size: {"x": jnp.clip(X(i), -1, 1)},
    )  # fmt: skip
    assert found.status == "fails"
    assert found.worst_ratio > 1.5


def test_float32_inside_is_named_and_decides_nothing():
    narrow = lambda i: {name: leaf.astype(jnp.float32) for name, leaf in i.items()}
    half = {"control": lambda i: 0.5 * NORMS(i), "sample": VECTORS}
    found = judged(lambda i: DOT(narrow(i)), lambda i: NORMS(narrow(i)), **half)
    assert found.status == "inconclusive"
    assert "float32" in found.reason and "test_words.py" in found.reason
    # By a half it is false, whatever rounds.
    found = judged(lambda i: DOT(narrow(i)), lambda i: 0.5 * NORMS(narrow(i)), **half)
    assert found.status == "fails"


def test_complex_sides_are_refused():
    with pytest.raises(TypeError, match="lhs is complex"):
        falsify(claim(lambda i: X(i).astype(complex), lambda i: 3.0 + NONE(i)))


def test_a_violation_that_is_rounding_is_none():
    """Pinsker's 2 (p - q)^2 <= KL(p, q) is true; for q near p the logarithms cancel."""
    p = 0.5

    def divergence(i):
        q = p + X(i)
        return p * jnp.log(p / q) + (1 - p) * jnp.log((1 - p) / (1 - q))

    found = judged(
        lambda i: 2 * X(i) ** 2, divergence, control=lambda i: 0.1 * divergence(i),
        sample=lambda key, size: {"x": 10.0 ** jax.random.uniform(key, (), minval=-7, maxval=-6)},
        tolerance=1e-12, search="none",
    )  # fmt: skip
    # Noise does not count where ball arithmetic says that the claim is true there.
    assert found.worst_ratio < 1 and found.status != "fails"


def test_a_small_violation_that_is_certain_fails():
    found = judged(lambda i: X(i) * (1 + 2.0**-25), X, control=lambda i: 0.5 * X(i),
                   sample=lambda key, size: {"x": 1 + jax.random.uniform(key)})  # fmt: skip
    assert (found.status, found.evidence) == ("fails", "violated")


def never(x):
    """Called by nobody."""
    return x


def used(x):
    """x^2."""
    return x**2


@pytest.mark.parametrize("host", [False, True])
def test_a_judged_function_that_is_never_called_is_named(host):
    options = {"control": lambda i: 0.5 * used(X(i)), "host": host}
    options |= {"search": "none"} if host else {}
    double = lambda i: 2 * used(X(i))
    sides = lambda i: used(X(i)), double
    found = judged(*sides, judges=(used, never), form=Form(name="printed"), **options)
    assert (found.status, "never" in found.reason) == ("inconclusive", True)
    found = judged(*sides, judges=(used,), form=Form(name="printed"), **options)
    assert found.status == "holds"


def masked(x):
    """The running sums of x: entry t sees nothing after t."""
    return jnp.tril(jnp.ones((3, 3))) @ x


def test_mistakes_that_are_no_factor_are_noticed():
    """That changing the last entry changes no other output is said of any multiple as well."""

    def evaluate(instance, size):
        x = instance["x"]
        later = x.at[2].add(1.0)
        before, after = masked(x)[:2], masked(later)[:2]
        return Sides(lhs=before, rhs={"printed": after, "control": after + 1})

    statement = Statement(
        id="mine.causal", label="c", formula="no output depends on later tokens", kind="identity",
        evaluate=evaluate, judges=(masked,), forms=(Form(name="printed"),), control="off by one",
        sample=lambda key, size: {"x": jax.random.normal(key, (3,))}, sizes=({"T": 3},),
    )  # fmt: skip
    assert is_bound_to(statement, masked)


RATES = {
    # n^2 + 50 >= n^2 everywhere, and the fitted exponent of n^2 + 50 against n^2 is below one.
    "a constant more, at least": (lambda n: n**2 + 50, "at least", ("consistent",)),
    "a constant more, at most": (lambda n: n**2 + 50, "at most", ("consistent",)),
    "a lower power more, at most": (lambda n: n**2 + 9 * n, "at most", ("consistent",)),
    "a constant less, at most": (lambda n: n**2 - 3, "at most", ("consistent",)),
    "a logarithm more, at most": (
        lambda n: n**2 * np.log(n), "at most", ("inconclusive", "inconsistent"),
    ),
    "a power more, at most": (lambda n: n**2.2, "at most", ("inconsistent",)),
    "a power less, at least": (lambda n: n**1.8, "at least", ("inconsistent",)),
}  # fmt: skip


@pytest.mark.parametrize("name", RATES)
def test_lower_order_terms_refute_no_rate(name):
    measured, sense, words = RATES[name]

    def evaluate(instance, size):
        n = float(size["n"])
        return Sides(
            lhs=measured(n), rhs={"printed": n**2, "control": n**4 if "least" in sense else n}
        )

    statement = Statement(
        id="mine.rate", label="r", formula="lhs ~ n^2", kind="rate", evaluate=evaluate, host=True,
        cases=lambda size: {"x": np.zeros(1)}, sizes=tuple({"n": 2**k} for k in range(2, 9)),
        forms=(Form(name="printed", sense=sense),), control="another power",
    )  # fmt: skip
    (found,) = falsify(statement)
    assert found.status in words, found.reason
    if found.status == "inconsistent":
        assert found.evidence == "not seen"


def test_attained_is_said_where_it_is_shown_only():
    near = judged(
        lambda i: 0.9995 * DOT(i), NORMS, sample=VECTORS, control=lambda i: 0.5 * NORMS(i)
    )
    assert closeness(near) != "attained"
    missed = judged(
        lambda i: 1.00005 * DOT(i), NORMS, sample=VECTORS, control=lambda i: 0.5 * NORMS(i)
    )
    assert missed.status == "fails"
    assert "over" in closeness(missed) and "x1.00 " not in closeness(missed)
    there = judged(DOT, NORMS, sample=VECTORS, control=lambda i: 0.5 * NORMS(i))
    assert (closeness(there), there.evidence) == ("attained", "attained")


@functools.cache
def _norms():
    return judged(DOT, NORMS, sample=VECTORS, control=lambda i: 0.5 * NORMS(i))


@pytest.mark.parametrize("status, ratio, words", [
    ("holds", 1.0, "equal at worst"), ("holds", 1 + 4e-10, "equal to 4e-10"),
    ("inconclusive", 1.0, "equal at worst"), ("inconclusive", 1 - 1e-12, "equal to 1e-12"),
    ("inconclusive", 2.0, "x2 undecided"), ("inconclusive", 2090.0, "x2e+03 undecided"),
    ("inconclusive", 1.0003, "0.03% undecided"), ("fails", 1.0003, "over by 0.03%"),
    ("fails", 2.0, "x2 over"), ("holds", 0.9997, "loose by 0.03%"), ("holds", 0.25, "x4 loose"),
])  # fmt: skip
def test_how_close_is_said_in_words(status, ratio, words):
    made = replace(_norms(), status=status, worst_ratio=ratio, evidence="searched", reason=NEAR_ONE)
    assert closeness(made) == words and len(words) <= 16


def test_a_form_that_fails_beside_instances_without_numbers_stores_one_that_fails(tmp_path):
    statement = claim(
        lambda i: jnp.where(X(i) > 0.9, jnp.nan, X(i)), lambda i: X(i) / 2,
        sample=lambda key, size: {"x": jax.random.uniform(key)},
    )  # fmt: skip
    (found,) = falsify(statement, store=tmp_path)  # the worst number, no NaN
    assert found.status == "fails" and found.worst_ratio == pytest.approx(2)


def test_a_stored_counterexample_has_the_types_that_are_drawn():
    stored = Counterexample(instance={"x": 2.5}, size={"d": 1}, ratio=2.0)
    form = Form(name="printed", expected="fails", note="n", counterexample=stored)
    with pytest.raises(ValueError, match="int64"):
        falsify(claim(lambda i: X(i) * 1.0, lambda i: 0.5 * X(i), sample=INTEGER, form=form))
