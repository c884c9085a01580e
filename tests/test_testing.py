"""`jaxbounds.testing.claim`: a claim for a test in a line."""

import jax
import pytest

import jaxbounds as jb
from jaxbounds.testing import claim


def test_a_true_claim_holds_and_a_false_one_fails():
    over = {"x": jb.Reals()}
    true = claim(lambda x: 2 * x, lambda x: 1.5 + x**2, entry="x", over=over)
    false = claim(lambda x: 2 * x, lambda x: 0.9 + x**2, entry="x", over=over)
    assert [v.status for v in jb.falsify(true)] == ["holds"]
    assert [v.status for v in jb.falsify(false)] == ["fails"]


def test_sides_take_the_instance_and_numbers():
    drawn = lambda key, size: {"a": jax.random.uniform(key), "b": jax.random.uniform(key)}
    at_least = claim(lambda i: abs(i["a"]) + abs(i["b"]) + 1.5, 1.0, relation=">=", sample=drawn)
    assert [v.status for v in jb.falsify(at_least)] == ["holds"]


def test_the_control_is_rejected_also_where_the_relation_is_the_other():
    for relation in ("<=", ">="):
        one = claim(lambda x: x, lambda x: x, entry="x", relation=relation, over={"x": jb.Reals()})
        (verdict,) = jb.falsify(one)
        assert verdict.control["status"] == "fails", relation


def test_it_needs_instances():
    with pytest.raises(ValueError, match="sample"):
        claim(1.0, 2.0)
