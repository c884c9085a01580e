"""Slightly wrong versions, and when a changed number is noticed; by hand, nothing is compiled.

`tests/test_binding.py` has statements that notice a mistake, and such that do not.
"""

import dataclasses
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stubs import statement

from jaxbounds.claims.statements import Budget, Counterexample, Form, Sides
from jaxbounds.falsification.binding import (
    _notices,
    bindings,
    is_bound_to,
)
from jaxbounds.falsification.mistakes import OTHER_MISTAKES, off, with_one_entry_off
from jaxbounds.falsification.planting import _holders, planted

pytestmark = pytest.mark.usefixtures("x64")
HERE = sys.modules[__name__]


class Pair(NamedTuple):
    """Two of them."""

    first: object
    second: object


@dataclasses.dataclass(frozen=True)
class Network:
    """No pytree."""

    name: str
    weights: object
    made: int = dataclasses.field(init=False, default=3)


def used(x):
    """A judged function."""
    return 2 * x


def unused(x):
    """Another one."""
    return x


TABLE = {"used": used}


@dataclasses.dataclass(frozen=True)
class Runs(Network):
    """One that can be called."""

    def __call__(self, x):
        """What it says of x."""
        return x


class Method:
    """Holds functions."""

    @staticmethod
    def plain(x):
        """A static one."""
        return 3 * x

    @classmethod
    def of(cls, x):
        """A class's."""
        return 5 * x


def test_reals_are_scaled_else_integers_raised_else_booleans_negated():
    both = off({"x": 2.0, "n": 3, "b": True, "s": "t"}, 1.25)
    assert both == {"x": 2.5, "n": 3, "b": True, "s": "t"}
    assert off({"n": 3, "b": True, "m": np.array([1, 2])}, 1.25)["m"].tolist() == [2, 3]
    assert off((3, True), 1.25) == (4, True) and off([True, False], 2.0) == [False, True]
    assert off(np.array([True, False]), 2.0).tolist() == [False, True]
    named = off(used, 1.5)
    assert named(4.0) == 12.0 and named.__name__ == "used"


@pytest.mark.parametrize(
    "value, wrong",
    [
        (Network("n", np.array([1.0, -5.0])), [1.0, -4.0]),
        (Network("n", np.array([[1, 2], [7, 0]])), [[1, 2], [8, 0]]),
        (Network("n", np.array([False, True])), [False, False]),
        (Network("n", True), False),
        (Network("n", 4), 5),
        (Network("n", 0.5), 1.5),
        (Network("n", np.zeros(0)), None),
        (Network("n", {"s": "t", "w": 1.0, "v": 2.0}), {"s": "t", "w": 2.0, "v": 2.0}),
        (Network("n", ["t", 1, 2]), ["t", 2, 2]),
        (Network("n", ("t", 1)), ("t", 2)),
        (Network("n", Pair("t", 1)), Pair("t", 2)),
        (Network("n", Network("m", 1)), Network("m", 2)),
        (Network("n", "t"), None),
        (Network("n", ()), None),
        (Network("n", Network), None),
    ],
)
def test_of_an_object_one_entry_is_another(value, wrong):
    found = with_one_entry_off(value)
    if wrong is None:
        assert found is None
        return
    assert found.name == "n" and type(found.weights) is type(value.weights)
    left = found.weights.tolist() if isinstance(found.weights, np.ndarray) else found.weights
    assert left == wrong
    assert off(value, 1.25).name == "n"
    assert off(Runs("n", 4), 1.25) == Runs("n", 5) and with_one_entry_off(np.bool_(True)) is False
    jax_too = with_one_entry_off(jnp.array([1.0, -5.0]))
    assert isinstance(jax_too, jax.Array) and jax_too.tolist() == [1, -4]


def test_everything_that_holds_a_function_is_found():
    held = [(holder, name) for holder, name in _holders(used)]
    assert (HERE, "used") in held and (TABLE, "used") in held
    assert list(_holders(Method.plain)) == [(Method, "plain")]


@pytest.mark.parametrize("wrong, value", [(1.5, 12.0), (lambda v: v - 1, 7.0), (-1.0, -8.0)])
def test_a_planted_function_is_wrong_wherever_it_is_held(wrong, value):
    kept = used
    with planted(used, wrong):
        assert used(4.0) == TABLE["used"](4.0) == value
        assert used.__name__ == "used" and unused(4.0) == 4.0
    assert used is kept and TABLE["used"] is kept and used(4.0) == 8.0
    with pytest.raises(KeyError), planted(used, wrong):
        raise KeyError
    assert used is kept
    for function, plain in ((Method.plain, 12.0), (Method.of, 20.0)):
        with planted(function, 2.0):
            assert function.__name__ and getattr(Method, function.__name__)(4.0) == 2 * plain
        assert getattr(Method, function.__name__)(4.0) == plain


SQUARE = np.arange(1.0, 5).reshape(2, 2)


@pytest.mark.parametrize(
    "name, x, found",
    [
        ("sign", SQUARE, -SQUARE),
        ("shifted by one along the last axis", SQUARE, [[2, 1], [4, 3]]),
        ("shifted by one along the first axis", SQUARE, [[3, 4], [1, 2]]),
        ("shifted by one along the first axis", np.arange(3.0), [2, 0, 1]),
        ("reversed", np.arange(3.0), [2, 1, 0]),
        ("transposed", SQUARE, SQUARE.T),
        ("transposed", np.ones((2, 3)), np.ones((2, 3))),
        ("transposed", np.arange(3.0), np.arange(3.0)),
        ("the last entries dropped", SQUARE, SQUARE),
        ("the mean added: no entry is left out", SQUARE, SQUARE + 2.5),
    ],
)
def test_other_mistakes_by_hand(name, x, found):
    wrong = OTHER_MISTAKES[name]
    np.testing.assert_array_equal(wrong(x), found)
    np.testing.assert_array_equal(wrong(lambda: x)(), found)
    if name == "the last entries dropped":
        assert wrong(jnp.asarray(x)).tolist() == [[1, 0], [3, 0]]
    if name != "sign":  # what is no array of reals stays
        assert wrong({"n": 3, "x": 2.0}) == {"n": 3, "x": 2.0}
        assert wrong(np.arange(3)).tolist() == [0, 1, 2]


def _mine(rhs, **options):
    sides = lambda i, s: Sides(i["x"], {"printed": rhs(i["x"]), "control": -9.0})
    return statement(sides, judges=(used, unused), **options)


FEW = Budget(samples=4, restarts=0, steps=0, batch=4)


def test_bindings_are_told_function_by_function():
    assert bindings(_mine(lambda x: 1 + HERE.used(x)), (used, unused), budget=FEW) == [True, False]
    assert bindings(_mine(lambda x: 1 + HERE.unused(x)), (used, unused), budget=FEW) == [
        False,
        True,
    ]
    # An evaluation that breaks has noticed.
    broken = lambda x: 1 / (HERE.used(x) == 2 * x)
    with np.errstate(all="ignore"):
        assert bindings(
            _mine(lambda x: 9.0 if HERE.used(x) == 2 * x else {}), (used,), budget=FEW
        ) == [True]
    assert broken(1.0) == 1.0
    # A counterexample at a size that is not drawn notices as well.
    apart = lambda x: 9.0 if x < 50 else HERE.used(x) / 8
    far = Counterexample(
        instance={"x": 100.0}, size={"d": 7}, ratio=4.0, meets=lambda i, s: {"a": True}
    )
    form = Form(name="printed", expected="fails", note="n", counterexample=far)
    assert bindings(_mine(apart, forms=(form,)), (used, unused), budget=FEW) == [True, False]
    assert bindings(_mine(apart), (used,), budget=FEW) == [False]


def test_what_no_factor_shows_another_mistake_may():
    # That the first entry is below the last is said of any multiple.
    def sides(instance, size):
        found = HERE.used(instance["x"])
        return Sides(found[0] / found[-1], {"printed": 0.9, "control": 0.0})

    rows = {"cases": lambda size: {"x": np.array([[1.0, 2, 4], [1.0, 3, 9]])}}
    claim = statement(sides, judges=(used,), **rows)
    assert bindings(claim, (used,), budget=FEW) == [False]
    assert is_bound_to(claim, used, budget=FEW)
    assert _notices(claim, used, lambda value: value[::-1], FEW)
    assert not _notices(claim, used, lambda value: 3 * value, FEW)
    assert _notices(claim, used, lambda value: None, FEW)  # it breaks
    # The worst of them stays, and the mean does not.
    listed = _mine(lambda x: 1 / HERE.used(x), cases=lambda size: {"x": np.array([1.0, 2.0])})
    assert _notices(listed, used, lambda value: value if value > 3 else value / 2, FEW)
    assert not _notices(listed, used, lambda value: value, FEW)
    assert not is_bound_to(statement(judges=(used,)), used, budget=FEW)
