"""How instances are moved until a hypothesis is missed: every move, listed by hand."""

import jax
import numpy as np
import pytest
from stubs import statement

from jaxbounds.claims.statements import Form, Size
from jaxbounds.falsification.hypothesis_coverage import _beside, _given, _moves, never_missed

ONE = Size({"d": 1})


@pytest.mark.parametrize("leaf, scale", [(np.array([3.0, -4.0]), np.sqrt(12.5)),
                                         (np.array([0.0, 0.0]), 1.0)])  # fmt: skip
def test_floats_are_nudged_scaled_shifted_set_alike_and_reversed(leaf, scale):
    moved = list(_moves(leaf))
    noise = moved[-1]
    assert noise.shape == (2,) and noise[0] != noise[1]
    a, b = leaf
    wanted = [leaf + amount * scale * noise for amount in (1e-6, 1e-3, 0.1)]
    wanted += [leaf * f for f in (-1, 0, 0.5, 0.9, 0.999, 1.001, 1.1, 2, 10, 1000)]
    wanted += [leaf + shift for shift in (-1, 1, 3)]
    wanted += [[a + by * scale, b] for by in (-10, 10, 0.01)]
    wanted += [[a, a], [b, a], noise]
    assert len(moved) == len(wanted) == 22
    for found, want in zip(moved, wanted):
        np.testing.assert_allclose(found, want, rtol=1e-12)
    np.testing.assert_array_equal(leaf, [a, b])
    for kind in (float, bool, int):
        assert list(_moves(np.zeros(0, kind))) == []


def test_integers_are_moved_one_or_all():
    leaf = np.array([5, 7], np.int8)
    moved = [x.tolist() for x in _moves(leaf) if np.abs(x[0]) < 99 and abs(x[1]) < 99]
    assert moved == [
        [5, 4], [2, 4], [5, 6], [4, 6], [5, 8], [6, 8], [5, 9], [7, 9],
        [5, -17], [-19, -17],  # by a thousand, around 256
        [5, 5], [7, 5],
    ]  # fmt: skip
    assert {x.dtype for x in _moves(leaf)} == {np.dtype(np.int8)} and leaf.tolist() == [5, 7]
    assert [x.tolist() for x in _moves(np.array([3]))][-4:] == [[1003], [1003], [3], [3]]


def test_booleans_are_negated_or_all_alike():
    found = [x.tolist() for x in _moves(np.array([True, False]))]
    assert found == [[False, True], [False, False], [True, True]]


def test_one_leaf_is_moved_at_a_time_beside_all_zeros():
    found = list(_beside({"a": np.array([True]), "b": np.array([2.0]), "none": np.zeros(0)}))
    assert len(found) == 2 + 3 + 22
    assert (found[0]["a"].tolist(), found[0]["b"].tolist()) == ([True], [2.0])
    assert (found[1]["a"].tolist(), found[1]["b"].tolist()) == ([False], [0.0])
    assert all(one["b"].tolist() == [2.0] for one in found[2:5])
    assert all(one["a"].tolist() == [True] for one in found[5:])
    assert [one["a"].tolist() for one in found[2:5]] == [[False], [False], [True]]
    assert found[8]["b"].tolist() == [-2.0]


def test_a_few_of_each_sampler_and_of_the_cases_are_moved():
    draw = lambda key, size: {"x": jax.random.uniform(key)}
    other = lambda key, size: {"x": 7.0 + size["d"] + 0 * jax.random.uniform(key)}
    listed = {"cases": lambda size: {"x": np.arange(5.0)}}
    found = [
        float(one["x"]) for one in _given(statement(sample={"a": draw, "b": other}, **listed), ONE)
    ]
    assert len(set(found[:3])) == 3 and max(found[:3]) < 1
    assert found[3:] == [8, 8, 8, 0, 1, 2]
    assert len(list(_given(statement(sample=draw, cases=None), ONE))) == 3
    two = statement(cases=lambda size: {"x": np.array([4.0, 5.0])})
    assert [float(one["x"]) for one in _given(two, ONE)] == [4, 5]


def _guards(flags, *forms, **options):
    claim = statement(hypotheses=flags, forms=forms or (Form(name="printed"),), **options)
    return never_missed(claim)


@pytest.mark.parametrize("host", [True, False])
def test_what_no_moved_instance_misses_is_named(host):
    flags = lambda i, s: {
        "x >= 0": i["x"] >= 0,
        "x < inf": i["x"] < float("inf"),
        "x = x": i["x"] == i["x"],
    }
    own = Form(
        name="derived", hypotheses=lambda i, s: {"x > -9e9": i["x"] > -9e9, "x < 2": i["x"] < 2}
    )
    found = _guards(flags, Form(name="printed"), own, host=host)
    assert found == ("x < inf", "x = x", "x > -9e9")
    assert _guards(None) == ()


@pytest.mark.parametrize(
    "sizes, left", [((1, 2), ()), ((2, 1), ()), ((1,), ("x < 2",)), ((2,), ())]
)
def test_one_size_at_which_it_is_missed_is_enough(sizes, left):
    # At size one nothing that is moved from here comes to the border.
    flags = lambda i, s: {"x < 2": (i["x"] < 2) | (s["d"] == 1), "x = x": i["x"] == i["x"]}
    assert _guards(flags, sizes=tuple({"d": d} for d in sizes)) == (*left, "x = x")


def test_what_the_functions_refuse_is_not_left_to_the_hypotheses():
    def flags(instance, size):
        if instance["x"] < 0 or instance["x"] > 5:
            raise ValueError("no such thing")
        return {"0 <= x": instance["x"] >= 0, "x <= 1": instance["x"] <= 1}

    assert _guards(flags) == ("0 <= x",)
