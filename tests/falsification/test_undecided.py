"""A violation that may be rounding is cleared by the referee, or the claim does not hold."""

import jax
import jax.numpy as jnp
import pytest

import jaxbounds as jb
from jaxbounds.falsification.engine import verdicts_on
from jaxbounds.falsification.second_opinion import TRUE, Referee

FEW = jb.Budget(samples=64, restarts=2, steps=12)
LARGE = 1e8


@pytest.fixture(autouse=True)
def as_a_user():
    """Types and ranks are promoted as in a session of a user."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def _claim(lhs, relation, rhs, equality="", over=None):
    return jb.claim("t.rounding", lhs, relation, rhs, over=over or {"x": jb.Box(1, 2)},
                    equality=equality, budget=FEW)  # fmt: skip


def _error(x):
    """Zero on paper; in floats up to 1e-8."""
    return (LARGE + x) - LARGE - x


def _both_are_rounding(x):
    return _error(x) + jnp.maximum(x - 1.5, 0.0)


CLAIMS = {
    # In floats the left side exceeds x by up to 7e-9: its terms are of size 1e8.
    "cancelled terms on the left": (lambda x: (LARGE + x) - LARGE, "<=", lambda x: x, "always"),
    "a side that is zero": (_error, "<=", 0.0, ""),
    "both sides below the rounding of their terms": (
        _both_are_rounding, "<=", lambda x: 2 * _error(x + 0.3) + 2 * jnp.maximum(x - 1.5, 0.0),
        "x <= 3/2"),
}  # fmt: skip
SAYS = {
    "undecided": Referee("undecided", "nobody knows"),
    "absent": Referee("absent", "nobody can be asked"),
}


@pytest.mark.slow_cases("cancelled terms on the left-absent", "a side that is zero-absent")
@pytest.mark.parametrize("word", SAYS)
@pytest.mark.parametrize("name", CLAIMS)
def test_what_nobody_decides_does_not_hold(name, word):
    (found,) = verdicts_on(_claim(*CLAIMS[name]), referee=lambda *_: SAYS[word])
    assert found.status == "inconclusive" and "nobody" in found.reason


@pytest.mark.parametrize("name", CLAIMS)
@pytest.mark.parametrize("said", [
    Referee("undecided", TRUE), Referee("undecided", "equal", equal=True),
    Referee("undecided", "overlap", meeting=True),
], ids=["true", "equal", "meeting"])  # fmt: skip
def test_rounding_that_the_referee_clears_holds(name, said):
    (found,) = verdicts_on(_claim(*CLAIMS[name]), referee=lambda *_: said)
    assert found.status == "holds", found.reason


FALSE = {
    # x <= x - 1e-9 is false everywhere, and floats differ by as much as they round.
    "cancelled terms on the left": (lambda x: (LARGE + x) - LARGE, "<=", lambda x: x - 1e-9,
                                    "nowhere"),
    "a side that is zero": (lambda x: (LARGE + x) - LARGE - x + 1e-9 * x, "<=", 0.0, ""),
}  # fmt: skip
ON_PAPER = {
    "cancelled terms on the left": CLAIMS["cancelled terms on the left"],
    "a side that is zero": CLAIMS["a side that is zero"],
    "a least eigenvalue": (
        lambda p: jnp.linalg.eigvalsh(jnp.diag(p) - jnp.outer(p, p))[0], ">=", 0.0, "",
        {"p": jb.Simplex(3)}),
}  # fmt: skip


@pytest.mark.parametrize("name", FALSE)
def test_a_violation_of_the_size_of_rounding_is_never_held(name):
    pytest.importorskip("flint")
    (found,) = jb.verify(jb.Paper(id="t", title="T", statements=(_claim(*FALSE[name]),)))
    assert found.status in ("fails", "inconclusive"), found.reason


@pytest.mark.parametrize("name", ON_PAPER)
def test_true_claims_hold_although_their_sides_round(name):
    pytest.importorskip("flint")
    (found,) = jb.verify(jb.Paper(id="t", title="T", statements=(_claim(*ON_PAPER[name]),)))
    assert found.status == "holds", found.reason
