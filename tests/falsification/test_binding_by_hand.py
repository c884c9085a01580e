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
from stubs import measured, statement

from jaxbounds.claims.statements import Budget, Counterexample, Form, Sides, Size
from jaxbounds.falsification.binding import (
    _differ,
    _judgement,
    _notices,
    _one_at_a_time,
    bindings,
    is_bound_to,
)
from jaxbounds.falsification.mistakes import OTHER_MISTAKES, is_of, off, with_one_entry_off
from jaxbounds.falsification.planting import _holders, planted

pytestmark = pytest.mark.usefixtures("x64")
ONE = Size({"d": 1})
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


@pytest.mark.parametrize("leaf, kind, found", [
    (1.0, np.inexact, True), (1j, np.inexact, True), (1, np.inexact, False), (1, np.integer, True),
    (True, np.integer, False), (True, np.bool_, True), (np.int8(1), np.integer, True),
    (np.ones(2), np.inexact, True), ("x", np.inexact, False), (None, np.bool_, False),
])  # fmt: skip
def test_of_what_kind_a_leaf_is(leaf, kind, found):
    assert is_of(leaf, kind) == found
    assert is_of(jnp.ones(2), kind) == (kind is np.inexact)


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


@pytest.mark.parametrize(
    "before, after, relation, differs",
    [
        (("holds", 0.5), ("fails", 0.5), "<=", True),
        (("holds", 0.5), ("holds", 0.5), "<=", False),
        # By more than the tolerance of the ratio, or of one for discrepancies.
        (("", 200.0), ("", 200.0 + 1.9e-7), "<=", False),
        (("", 200.0), ("", 200.0 + 2.1e-7), "<=", True),
        (("", -200.0), ("", -200.0 - 1.9e-7), "<=", False),
        (("", 0.001), ("", 0.001 + 0.9e-9), "=", False),
        (("", 0.001), ("", 0.001 + 1.1e-9), "=", True),
        (("", np.nan), ("", np.nan), "<=", False),
        (("", np.nan), ("", 1.0), "<=", True),
        (("", 1.0), ("", np.nan), "<=", True),
        (("", np.inf), ("", np.inf), "<=", False),
    ],
)
def test_what_differs(before, after, relation, differs):
    with np.errstate(invalid="ignore"):
        assert _differ(before, after, statement(relation=relation, tolerance=1e-9)) == differs


def test_a_judgement_has_status_worst_mean_and_stored_ratio():
    stored = Counterexample(instance={"x": 1.0}, size={"d": 1}, ratio=3.0)
    forms = (Form(name="printed", expected="holds", counterexample=stored), Form(name="derived"))
    claim = statement(forms=forms)
    table = lambda rows: measured(np.array(rows), counted=np.ones((len(rows), 3), bool))
    parts = [table([[0.25, 3.0, 9.0]]), table([[0.5, 1.0, 9.0]])]
    found = _judgement(claim, parts, [table([[7.0, 8.0, 9.0]]), None], np.array([0, 1]))
    assert found[:3] == (("holds", 0.5), ("", pytest.approx((0.2 + 1 / 3) / 2)), ("", 7.0))
    assert found[3:] == (("fails", 3.0), ("", pytest.approx((0.75 + 0.5) / 2)))
    assert _judgement(claim, [parts[0], None], [None, None], np.array([0])) is None
    assert _judgement(claim, parts, [None, None], np.array([0, 1])) is None
    none = measured(np.ones((1, 3)), counted=False)
    empty = _judgement(statement(), [none], [None], np.array([0]))
    assert empty[0][0] == "vacuous" and empty[1] == ("", 0.0)


def _mine(rhs, **options):
    sides = lambda i, s: Sides(i["x"], {"printed": rhs(i["x"]), "control": -9.0})
    return statement(sides, judges=(used, unused), **options)


FEW = Budget(samples=4, restarts=0, steps=0, batch=4)


def test_variants_on_the_host_are_measured_one_after_the_other():
    claim, batch = _mine(lambda x: 1 + HERE.used(x)), {"x": np.array([1.0, 4.0])}
    whole, other, none = _one_at_a_time(claim, ONE, batch, (used, unused), 1.5)
    assert whole.value[:, 0].tolist() == none.value[:, 0].tolist() == [1 / 3, 4 / 9]
    assert other.value[:, 0].tolist() == [1 / 4, 4 / 13]

    def broken(x):
        if HERE.used(x) != 2 * x:
            raise ZeroDivisionError
        return 9.0

    assert _one_at_a_time(_mine(broken), ONE, batch, (used,), 1.5)[1] is None


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
