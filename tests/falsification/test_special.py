"""Identities that are wrong at whole numbers, halves, ties, zero and singular matrices alone."""

import jax
import jax.numpy as jnp
import pytest

import jaxbounds as jb

LINE, SQUARE = {"x": jb.Box(-10, 10)}, {"x": jb.Box(-1, 1, (2, 2))}
FOUR = {"x": jb.Box(0, 1, 4)}
total, real = jnp.sum, lambda x: x.astype(float)
determinant = lambda x: x[0, 0] * x[1, 1] - x[0, 1] * x[1, 0]
FALSE = {
    "ceil is floor + 1": (jnp.ceil, lambda x: jnp.floor(x) + 1, LINE),
    "round is a floor": (jnp.round, lambda x: jnp.floor(x + 0.5), LINE),
    "sign squared is one": (lambda x: jnp.sign(x) ** 2, lambda x: 1.0 + 0 * x, LINE),
    "floors of opposites": (
        lambda x: jnp.floor(x) + jnp.floor(-x), lambda x: -1.0 + 0 * x, LINE,
    ),
    "slope of relu at zero": (jax.grad(jax.nn.relu), lambda x: real(x >= 0), LINE),
    "inverse of a singular matrix": (
        lambda x: x @ jnp.linalg.pinv(x), lambda x: jnp.eye(2) + 0 * x, SQUARE,
    ),
    "full rank": (lambda x: jnp.sign(determinant(x)) ** 2, lambda x: 1.0 + 0 * x[0, 0], SQUARE),
    "distinct entries": (
        lambda x: total(jnp.sign(jnp.abs(x[:, None] - x[None]))), lambda x: 12.0 + 0 * x[0], FOUR,
    ),
}  # fmt: skip
TRUE = {
    "Hermite": (
        lambda x: jnp.floor(2 * x), lambda x: jnp.floor(x) + jnp.floor(x + 0.5), LINE,
    ),
    "ceil is a mirrored floor": (jnp.ceil, lambda x: -jnp.floor(-x), LINE),
    "thirds": (
        lambda x: jnp.floor(3 * x),
        lambda x: jnp.floor(x) + jnp.floor(x + 1 / 3) + jnp.floor(x + 2 / 3), LINE,
    ),
    "undefined at zero": (lambda x: x / x, lambda x: 1.0 + 0 * x, LINE),
}  # fmt: skip


def judged(lhs, rhs, over):
    def evaluate(i, s):
        left, right = lhs(i["x"]), rhs(i["x"])
        return jb.Sides(lhs=left, rhs={"printed": right, "control": right + 1 + jnp.abs(left)})

    statement = jb.Statement(
        id="t.special", label="", formula="", kind="identity", evaluate=evaluate, sizes=({},),
        control="one more", over=over, forms=(jb.Form(name="printed"),),
        budget=jb.Budget(samples=32, restarts=2, steps=8),
    )  # fmt: skip
    return jb.falsify(statement)[0]


@pytest.mark.parametrize("name", FALSE)
def test_an_identity_that_breaks_at_special_points_fails(name):
    assert judged(*FALSE[name]).status == "fails"


@pytest.mark.parametrize("name", TRUE)
def test_a_true_identity_with_steps_does_not_fail(name):
    assert judged(*TRUE[name]).status != "fails"


def _resistance(w, shift):
    """The effective resistance between two vertices of a graph with the weights w."""
    a = jnp.triu(w, 1)
    a = a + a.T
    g = jnp.linalg.inv(jnp.diag(a.sum(1)) - a + shift)
    return g[0, 0] + g[1, 1] - 2 * g[0, 1]


@pytest.mark.parametrize("factor, statuses", [(1.0, ("inconclusive",)), (1.1, ("fails",))])
@pytest.mark.parametrize("shift", [1.0, 1 / 3])
def test_rounding_garbage_at_a_singular_matrix_refutes_nothing(shift, factor, statuses):
    claim = jb.claim(
        "t.resistance", lambda w: _resistance(w, shift), ">=",
        lambda w: factor / (w[0, 1] + w[0, 2]), over={"w": jb.Box(0, 1, (3, 3))},
        hypotheses=lambda w: {"degree": w[0, 1] + w[0, 2] > 0},
    )  # fmt: skip
    assert jb.falsify(claim)[0].status in statuses


@pytest.mark.parametrize("factor, status", [(0.5, "holds"), (1.0, "fails"), (0.45, "fails")])
def test_a_supremum_over_integers_has_no_jump_at_infinity(factor, status):
    over = {"p": jb.Simplex("n"), "q": jb.Simplex("n")}
    distance = lambda p, q, n: jb.supremum(
        lambda f: (p - q) @ f, {"f": jb.Integers(0, 1, "n")}, size={"n": n}
    )
    claim = jb.claim(
        "t.sup", distance, "=", lambda p, q: factor * jnp.sum(jnp.abs(p - q)), over=over,
        sizes={"n": 2},
    )  # fmt: skip
    with jax.numpy_dtype_promotion("standard"):
        assert jb.falsify(claim)[0].status == status


def test_real_numbers_have_no_negative_zero():
    claim = jb.claim(
        "t.zero", lambda w: 1 / (w + 1), "<=", lambda w: 1 / w, over={"w": jb.Box(0, 1)}
    )
    assert jb.falsify(claim)[0].status == "holds"


@pytest.mark.parametrize("factor, status", [(1.0, "holds"), (0.97, "fails")])
def test_a_violation_beside_a_tie_is_found(factor, status):
    """The loss of a choice that an error e misleads is at most 2 e, and nearly so beside a tie."""

    def loss(q, e):
        return jnp.max(q) - q[jnp.argmax(q + e)]

    claim = jb.claim(
        "t.tie", loss, "<=", lambda e: factor * 2 * jnp.max(jnp.abs(e)),
        over={"q": jb.Box(0, 1, (2,)), "e": jb.Box(-0.1, 0.1, (2,))}, equality="a tie",
    )  # fmt: skip
    assert jb.falsify(claim)[0].status == status
