"""Rounder instances: which are tried, which is taken, and how much must be left of a violation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbounds as jb
from jaxbounds.falsification import load_instance, verdicts_on
from jaxbounds.falsification.shrink import (
    complexity,
    enlarged,
    is_round,
    shrink,
)


def _amount(of):
    """By how much an instance fails, from its entries; and what was asked of."""
    asked = []

    def judge(instances):
        asked.append(len(instances))
        return np.array([of(instance["x"]) for instance in instances], float)

    return judge, asked


X = {"x": np.array([1.234, 5.678]), "n": np.array([7])}


def test_a_violation_is_made_as_simple_as_it_can_be():
    judge, _ = _amount(lambda x: 1.0)
    found = shrink(X, judge)
    assert found["x"].tolist() == [0, 0] and found["n"].tolist() == [7]
    # Of those that still fail the simplest: [1, 6] of both rounded, then [0, 6], which is the last.
    judge, _ = _amount(lambda x: x[1] - 5)
    assert shrink(X, judge)["x"].tolist() == [0, 6]
    # Each round takes one step.
    judge, _ = _amount(lambda x: 1.0)
    for rounds, left in ((0, [1.234, 5.678]), (1, [1, 6]), (2, [0, 6]), (3, [0, 0])):
        assert shrink(X, judge, rounds=rounds)["x"].tolist() == left
    nested = {"a": {"x": np.array(0.5)}}
    assert shrink(nested, lambda many: np.ones(len(many)))["a"]["x"] == 0.0


@pytest.mark.parametrize("first, other, taken", [
    # A tenth must be left, or half of what there was.
    (1.0, 0.1, True), (1.0, 0.0999, False), (0.3, 0.1, True), (0.3, 0.0999, False),
    (0.1, 0.05, True), (0.1, 0.0499, False), (1e-6, 0.5e-6, True), (1e-6, 0.49e-6, False),
    (1.0, -np.inf, False), (1.0, np.nan, False),
])  # fmt: skip
def test_a_tenth_or_half_of_the_amount_must_be_left(first, other, taken):
    judge, _ = _amount(lambda x: first if x[0] == 1.234 and x[1] == 5.678 else other)
    assert (shrink(X, judge)["x"].tolist() == [0, 0]) == taken


@pytest.mark.parametrize("amount", [0.0, -1.0, -np.inf])
def test_what_does_not_fail_stays_as_it_is(amount):
    judge, asked = _amount(lambda x: amount)
    assert shrink(X, judge) is X and asked == [1]


def test_what_cannot_be_simpler_is_asked_about_once():
    judge, asked = _amount(lambda x: 1.0)
    assert shrink({"x": np.zeros(2)}, judge)["x"].tolist() == [0, 0] and asked == [1]
    judge, asked = _amount(lambda x: 1.0 if x[0] == 2 else -1.0)
    assert shrink({"x": np.array([2.0])}, judge)["x"].tolist() == [2] and asked == [1, 1]


def test_a_small_entry_is_rounded_to_few_digits():
    judge, _ = _amount(lambda x: 1.0 if 0 < x[0] < 1e-8 else -1.0)
    assert shrink({"x": np.array([2.6442e-9])}, judge)["x"].tolist() == [3e-9]


def test_what_counts_as_round():
    assert is_round({"x": np.array([0.5, 3e-9]), "n": np.array([7])})
    assert not is_round({"x": np.array([0.5, 0.123])})
    assert complexity({"x": np.array([0.0, 0.5]), "n": np.array([7])}) == 2


def test_copies_are_larger_or_further_apart():
    given = {
        "x": np.array([1e-3]),
        "y": np.array([3e-3]),
        "z": np.zeros((2, 1)),
        "n": np.array([7]),
    }
    copies = list(enlarged(given))
    assert all(copy["n"].tolist() == [7] for copy in copies)
    assert any(np.allclose(c["x"], 1) and np.allclose(c["y"], 3) for c in copies)
    apart = [c for c in copies if np.allclose((c["x"] + c["y"]) / 2, 2e-3)]
    assert any(np.allclose(c["y"] - c["x"], 2) for c in apart)


def softmax_gap(x, y):
    return jnp.sum(jnp.abs(jax.nn.softmax(x) - jax.nn.softmax(y)))


def kl(p, q):
    return jnp.sum(jax.scipy.special.rel_entr(p, q))


LINES, PROBABILITIES = jb.Reals("d"), jb.Simplex("d")
NEAR = {  # claims whose worst ratio comes as two points meet
    "lipschitz": (softmax_gap, "<=", lambda x, y: 0.8 * jnp.max(jnp.abs(x - y)),
                  {"x": LINES, "y": LINES}),
    "close to true": (softmax_gap, "<=", lambda x, y: 0.99 * jnp.max(jnp.abs(x - y)),
                      {"x": LINES, "y": LINES}),
    "pinsker": (kl, ">=", lambda p, q: 0.6 * jnp.sum(jnp.abs(p - q)) ** 2,
                {"p": PROBABILITIES, "q": PROBABILITIES}),
}  # fmt: skip


@pytest.mark.slow_cases("close to true", "pinsker")
@pytest.mark.parametrize("name", NEAR)
def test_a_counterexample_has_sides_of_ordinary_size_and_few_digits(name, tmp_path):
    lhs, relation, rhs, over = NEAR[name]
    made = jb.claim("t.near", lhs, relation, rhs, over=over, sizes={"d": 2})
    (found,) = verdicts_on(made, store=tmp_path)
    assert found.status == "fails"
    instance = load_instance(tmp_path / found.shrunk_file).instance
    size = max(float(lhs(**instance)), float(rhs(**instance)))
    assert is_round(instance) and 1e-3 <= size <= 10, instance
