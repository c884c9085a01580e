"""How instances are moved until a hypothesis is missed."""

import jax
import numpy as np
import pytest
from stubs import statement

from jaxbounds.claims.statements import Form, Size
from jaxbounds.falsification.hypothesis_coverage import _given, _moves, never_missed

ONE = Size({"d": 1})


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
