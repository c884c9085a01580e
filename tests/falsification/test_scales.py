"""Zero on the right, cancelled sides, and entries of different sizes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds.falsification.summands import MOVED, shaken, terms

P, X = jb.Simplex("N"), jb.Box(-3, 3, "N")
SIZES = ({"N": 2}, {"N": 4})
centred = lambda i: i["p"] @ (i["x"] - i["p"] @ i["x"])
matrix = lambda p: jnp.diag(p) - jnp.outer(p, p)


def judged(lhs, rhs, *, relation="=", error=0.0, equality="", over, sizes=SIZES):
    """The verdict on lhs = rhs, or lhs >= rhs, at few draws."""

    def evaluate(i, s):
        left, right = jnp.asarray(lhs(i)), jnp.asarray(rhs(i) if callable(rhs) else float(rhs))
        right = jnp.broadcast_to(right, left.shape)
        wrong = right + 1 + jnp.abs(left)
        return jb.Sides(
            lhs=left,
            rhs={"printed": right, "control": wrong},
            error={"printed": error, "control": 0.0},
        )

    statement = jb.Statement(
        id="t.zero", label="", formula="", kind="identity" if relation == "=" else "inequality",
        evaluate=evaluate, control="one more", relation=relation, over=over, sizes=sizes,
        forms=(jb.Form(name="printed", equality=equality),),
        budget=jb.Budget(samples=64, restarts=2, steps=12),
    )  # fmt: skip
    return jb.falsify(statement)[0]


TRUE = {
    "a centred mean": (centred, {"p": P, "x": X}),
    "rows of the Jacobian of softmax": (
        lambda i: jnp.sum(jax.jacobian(jax.nn.softmax)(i["x"]), 1), {"x": X},
    ),
    "a covariance on the constants": (
        lambda i: matrix(i["p"]) @ jnp.ones(len(i["p"])), {"p": P},
    ),
    "a polynomial written twice": (
        lambda i: (i["x"] + 1) ** 3 - i["x"] ** 3 - 3 * i["x"] ** 2 - 3 * i["x"] - 1, {"x": X},
    ),
}  # fmt: skip


@pytest.mark.default_cases(
    "a centred mean-1e-13", "a centred mean-0.0", "rows of the Jacobian of softmax-0.0"
)
@pytest.mark.parametrize("error", [0.0, 1e-13])
@pytest.mark.parametrize("name", TRUE)
def test_identities_with_zero_on_the_right_hold(name, error):
    lhs, over = TRUE[name]
    assert judged(lhs, 0.0, over=over, error=error).status == "holds"


@pytest.mark.slow_cases("1e-13")
@pytest.mark.parametrize("error", [0.0, 1e-13])
def test_a_least_eigenvalue_that_is_zero_is_not_negative(error):
    verdict = judged(
        lambda i: jnp.linalg.eigvalsh(matrix(i["p"]))[0], 0.0, relation=">=", error=error,
        equality="always", over={"p": P},
    )  # fmt: skip
    assert (verdict.status, verdict.near) == ("holds", True)


def test_a_cancelled_side_is_compared_with_its_terms():
    verdict = judged(
        lambda i: i["x"] @ matrix(i["p"]) @ i["x"],
        lambda i: i["p"] @ (i["x"] - i["p"] @ i["x"]) ** 2,
        over={"p": P, "x": X},
    )
    assert verdict.status == "holds"


def test_zero_on_the_right_fails_where_the_left_side_is_no_rounding():
    plain = lambda i: i["p"] @ (i["x"] - jnp.mean(i["x"]))
    assert judged(plain, 0.0, over={"p": P, "x": X}).status == "fails"
    least = lambda i: jnp.linalg.eigvalsh(matrix(i["p"]))[0] - 1e-6
    assert judged(least, 0.0, relation=">=", over={"p": P}).status == "fails"


def test_an_error_that_hides_everything_is_inconclusive_and_never_vacuous():
    verdict = judged(centred, 0.0, over={"p": P, "x": X}, error=1e9)
    assert verdict.status == "inconclusive" and "the stated error" in verdict.reason
    least = lambda i: jnp.linalg.eigvalsh(matrix(i["p"]))[0]
    hidden = judged(least, 0.0, relation=">=", over={"p": P}, error=1e9)
    assert hidden.status == "inconclusive" and "the stated error" in hidden.reason


def test_a_wrong_entry_beside_larger_entries_is_found():
    moments = lambda x, wrong: jnp.stack([jnp.mean(x) ** 8, jnp.var(x) + wrong, jnp.mean(x)])
    over = {"x": jb.Box(100, 2000, 5)}
    wrong = judged(lambda i: moments(i["x"], 0.0), lambda i: moments(i["x"], 0.1), over=over)
    assert wrong.status in ("fails", "inconclusive")
    doubled = lambda i: moments(i["x"], 0.0).at[2].multiply(2)
    assert judged(lambda i: moments(i["x"], 0.0), doubled, over=over).status == "fails"


def test_a_bound_that_is_infinite_everywhere_is_vacuous():
    over = {"x": X}
    infinite = judged(lambda i: -jnp.inf + 0 * jnp.sum(i["x"]), lambda i: jnp.sum(i["x"] ** 2),
                      relation="<=", over=over)  # fmt: skip
    assert infinite.status == "vacuous"


def _traced(function, *arguments):
    return jax.jit(function).trace(*arguments)


def test_sizes_are_those_of_the_terms_also_of_exact_sums():
    with jb.float64_on_cpu():
        x = (np.array([1e6, -1e6, 3.0]),)
        function = lambda x: (jnp.sum(x), x[2] * x[0] - 3e6, jnp.floor(x[2]))
        found = terms(_traced(lambda a: function(*a), x), x)
        assert found.values == (3.0, 0.0, 3.0)
        # Of random movements the largest: at least a twentieth of the terms, at most all of them.
        for size, true in zip(found.sizes, (2e6, 6e6, 3.0)):
            assert true / 20 <= size <= 3 * true * (1 + MOVED)


@pytest.mark.parametrize("function, most", [
    (lambda a: jax.scipy.linalg.expm(a), 9.0),
    (lambda a: jnp.linalg.solve(1e8 * jnp.eye(2) + a, 1e8 * jnp.eye(2) - a), 9.0),
    (lambda a: jnp.linalg.det(jnp.eye(2) + a), 9.0),
])  # fmt: skip
def test_a_linear_system_has_terms_of_the_size_of_its_solution(function, most):
    with jb.float64_on_cpu():
        a = np.array([[0.1, 0.5], [0.2, -0.3]])
        found = terms(_traced(function, a), a)
        np.testing.assert_allclose(found.values, function(a), rtol=1e-12)
        assert np.all(np.abs(found.values) <= found.sizes) and np.max(found.sizes) <= most


def test_a_step_is_shaken_by_roundings_alone():
    with jb.float64_on_cpu():
        function = lambda x: (jnp.floor(x[0] + 0.5), jnp.floor(x[1] + 0.5), jnp.floor(3 * x[2]))
        x = np.array([0.5 - 2.0**-54, 0.5, 1 / 3])
        runs = [shaken(_traced(function, x), x, seed) for seed in range(8)]
        first, second, third = (set(map(float, run)) for run in zip(*runs))
    assert first == {0.0, 1.0}  # the sum was rounded up to one
    assert second == {1.0}
    assert third == {0.0, 1.0}


def test_an_estimated_side_refutes_nothing_beside_a_negative_side():
    # A search found -|a|^2 - 0.001 from below; the true right side may be larger than zero.
    claim = jb.claim(
        "t.estimated", lambda a: 0 * jnp.sum(a), "<=", lambda a: -1e-3 - a @ a,
        over={"a": jb.Ball(1, 2)}, estimates={"rhs": "below"},
        budget=jb.Budget(samples=64, restarts=2, steps=12),
    )  # fmt: skip
    (found,) = jb.falsify(claim)
    assert found.status == "inconclusive" and "only estimates the rhs from below" in found.reason


def test_zeros_on_both_sides_have_a_control_of_the_size_of_their_terms():
    claim = jb.claim(
        "t.zeros", lambda a, b: a @ b - b @ a, "<=", 0,
        over={"a": jb.Ball(1, 2), "b": jb.Ball(1, 2)},
        budget=jb.Budget(samples=64, restarts=2, steps=12),
    )  # fmt: skip
    (found,) = jb.falsify(claim)
    assert found.control["status"] == "fails"
