"""Which evidence stands behind a word, at the border of each condition."""

import math

import numpy as np
import pytest
from stubs import TENTH, column, measured, statement

from jaxbounds.claims.statements import ON_AVERAGE, Form
from jaxbounds.falsification.bench import Pool
from jaxbounds.falsification.decide import Decision
from jaxbounds.falsification.evidence import (
    ailments,
    bounded_mean,
    by_size,
    distinct_counted,
    evidence,
    near_control,
)
from jaxbounds.falsification.explore import End, Searched

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("given, near", [
    # A right side smaller by a hundredth: lhs / rhs is 1/.99 of what it is.
    ({"value": [0.5, 0.9905]}, True), ({"value": [0.5, 0.9895]}, False),
    ({"value": [0.9905, 0.5]}, True), ({"value": 0.9999, "low": [0.98, 0.5]}, False),
    ({"value": [0.5, 0.9905], "counted": [1, 0]}, False), ({"value": [], "counted": []}, False),
    # Where a search supports no violation the value is at least looked at.
    ({"value": [0.5, 0.9905], "low": -INF}, True), ({"value": [0.5, 0.9895], "low": -INF}, False),
    # A right side below zero: -1 becomes -1.01, and the sides are told apart by their difference.
    ({"value": 1, "lhs": [-1.0095, -9.0], "rhs": -1.0}, True),
    ({"value": 1, "lhs": [-1.0105, -9.0], "rhs": -1.0}, False),
    ({"value": 1, "lhs": [-2.019, -9.0], "rhs": -2.0}, True),
    ({"value": 1, "lhs": [-2.021, -9.0], "rhs": -2.0}, False),
    ({"value": 2, "lhs": [0.0, -9.0], "rhs": [0.0, -1.0]}, False),
    ({"value": [0.5, 0.9905], "rhs": [1.0, 1e-9], "lhs": 0.0}, True),
    ({"value": NAN, "lhs": [NAN], "rhs": 1.0}, False),
])  # fmt: skip
def test_a_hundredth_of_the_right_side_is_noticed(given, near):
    assert near_control(statement(), column(**given)) == near


def test_the_near_control_goes_by_the_tolerance():
    # 1 / .99 = 1.0101 is beyond 1 + tolerance up to a thousandth: of .9912 from .9905 it is not.
    assert near_control(statement(tolerance=TENTH), column([0.9912]))
    assert not near_control(statement(tolerance=TENTH), column([0.9905]))


@pytest.mark.parametrize("high, near", [
    ([0.0, 8.9e-7], True), ([9.1e-7, 9.1e-7], False), ([9.1e-7, 8.9e-7], True), ([NAN], False),
])  # fmt: skip
def test_a_millionth_of_one_side_is_noticed(high, near):
    # A thousand tolerances, 1e-7, must be left of 1e-6.
    claim = statement(kind="identity", tolerance=1e-10)
    assert near_control(claim, column(0.0, high=high)) == near
    assert not near_control(claim, column([0.0], counted=False))
    assert not near_control(statement(kind="identity", tolerance=1.1e-9), column([0.0]))


def test_a_limit_has_no_near_control():
    claim = statement(kind="limit", towards={"d": INF}, sizes=({"d": 1}, {"d": 2}, {"d": 3}))
    assert not near_control(claim, column([1.0, 2.0]))


NOWHERE = Searched(0, np.zeros(3, int), 0)


def _found(status="holds", ratio=1.0, near=True, *, equality="x = y", index=0, accepted=(0, 0, 0),
           ends=(), given=None, **options):  # fmt: skip
    forms = (Form(name="printed", equality=equality), Form(name="derived"))
    claim = statement(forms=forms if index == 0 else forms[::-1], **options)
    searched = Searched(1, np.array(accepted), 9, tuple(ends))
    rows = column([0.5, 1.0], sources=["draws", "search"]) if given is None else given
    return evidence(claim, index, Decision(status, ratio, ""), near, searched, rows)


@pytest.mark.parametrize("status, word", [
    ("fails", "violated"), ("inconsistent", "not seen"), ("inconclusive", ""), ("vacuous", ""),
    ("error", ""), ("holds", "sampled"), ("consistent", "sampled"),
])  # fmt: skip
def test_each_status_has_its_evidence(status, word):
    assert _found(status) == word


def test_all_there_are_is_more_than_a_search_and_a_search_more_than_draws():
    assert _found(accepted=(0, 5, 5)) == "sampled"
    assert _found(accepted=(2, 0, 0)) == "searched"
    assert _found(index=1, accepted=(2, 0, 0)) == "sampled"
    assert _found(accepted=(2, 0, 0), enumerates="all bits") == "enumerated"


def _ends(*kinds, value=1.0, form=0):
    n = len(kinds)
    return [End(np.array(kinds), np.full(n, form), np.full(n, value))]


BOTH = _ends("worst", "wide")
DRAWN = column([0.5, 1 - 1e-9])
NEAR = {"sources": ["draws", "search"], "value": [0.5, 1 - 2e-9]}


@pytest.mark.parametrize("given, attained", [
    ({"ends": BOTH}, True), ({"given": DRAWN}, True), ({"ends": BOTH, "enumerates": "all"}, True),
    ({"ends": BOTH, "index": 1}, False),  # they ended so for the other form
    ({"ends": _ends("worst", "wide", form=1), "index": 1}, True),
    # Each condition by itself: an equality case, a near-control, a bound, a ratio of one.
    ({"ends": BOTH, "equality": ""}, False), ({"ends": BOTH, "near": False}, False),
    ({"ends": BOTH, "kind": "identity"}, False), ({"ends": BOTH, "relation": ">="}, True),
    ({"ends": BOTH, "ratio": 1 - 1e-6}, True), ({"ends": BOTH, "ratio": 1 - 1.05e-6}, False),
    # The sides are equal up to the tolerance, or up to the stated error, and not only close.
    ({"ends": BOTH, "given": column(**NEAR), "ratio": 1 - 2e-9}, False),
    ({"ends": BOTH, "given": column(**NEAR, high=[0.5, 1.0]), "ratio": 1 - 2e-9}, True),
    ({"ends": BOTH, "given": column(**NEAR, high=[1.0, 0.5]), "ratio": 1 - 2e-9}, True),
    ({"ends": BOTH, "given": column(**NEAR, high=[1.0, 0.5], counted=[0, 1])}, False),
    ({"ends": BOTH, "given": column(**NEAR), "ratio": 1 - 2e-9, "tolerance": 1e-8}, True),
    # One kind of start shows one place, however many ended there; one that did not is none.
    ({"ends": _ends("worst", "worst", "worst")}, False),
    ({"ends": [End(np.array(["worst", "wide"]), np.zeros(2, int), np.array([1.0, 0.5]))]}, False),
    ({"ends": _ends("worst", "wide", "drawn")}, True),
    # A draw or a case at one counts by itself: not what a search or an earlier run found.
    ({"given": column([0.5, 1 - 1.1e-6])}, False),
    ({"given": column([0.5, 1.0], counted=[1, 0])}, False),
    ({"given": column([0.5, 1.0], sources=["draws", "search"])}, False),
    ({"given": column([0.5, 1.0], sources=["draws", "earlier"])}, False),
    ({"given": column([1.0, 0.5], sources=["cases", "search"])}, True),
])  # fmt: skip
def test_attained_is_a_bound_reached_from_several_sides_or_by_a_draw(given, attained):
    assert (_found(**given) == "attained") == attained


def test_different_instances_that_count():
    assert distinct_counted(column([1, 2, 3, 4], labels=[7, 7, 8, 9], counted=[1, 1, 1, 0])) == 2


@pytest.mark.parametrize("ratios, mean", [
    ([1.0, 3.0], 0.625), ([-1.0], -0.5), ([3.0, NAN, INF, -INF], 0.75), ([NAN], None), ([], None),
])  # fmt: skip
def test_a_bounded_mean_by_hand(ratios, mean):
    assert bounded_mean(np.array(ratios)) == mean


TWO = ({"d": 1}, {"d": 2}, {"d": 3})
HALVES = np.repeat([0, 1], 2)


BY_SIZE = [
    ({}, {"value": [1, 3, 7, 5]}, {"d=1": 3.0, "d=2": 7.0}),
    ({}, {"value": [1, 3, 7, 5], "counted": [1, 0, 0, 0]}, {"d=1": 1.0}),
    # Frequencies over the level, of what is above the edge; means over means, or over nothing.
    (
        {"kind": "probability", "level": 0.2, "tolerance": TENTH},
        {"value": [2, 0, 1 + TENTH, 2]},
        {"d=1": 2.5, "d=2": 2.5},
    ),
    (
        {"kind": "expectation"},
        {"value": 0, "lhs": [1, 3, 1, 2], "rhs": [-1, -7, 1, -1]},
        {"d=1": 0.5, "d=2": 1.5},
    ),
    (
        {"kind": "rate", "forms": (Form(name="printed", sense="at most"),)},
        {"value": [1, 2, 3, 4]},
        {},
    ),
    ({"kind": "limit", "towards": {"d": INF}}, {"value": [1, 2, 3, 4]}, {}),
]


@pytest.mark.parametrize("options, given, found", BY_SIZE)
def test_the_worst_ratio_of_each_size(options, given, found):
    assert by_size(statement(sizes=TWO, **options), column(**given, sizes=HALVES)) == found


def test_each_kind_without_a_deciding_instance_has_a_ratio_of_each_size():
    assert {options.get("kind") for options, _, _ in BY_SIZE} >= {*ON_AVERAGE}


# What is no evidence


def _pool(x, source="draws", size=0):
    pool = Pool()
    pool.add(source, size, {"x": np.asarray(x, float)}, measured(x))
    return pool


def _ill(pool=None, columns=None, searched=NOWHERE, **options):
    claim = statement(**({"sizes": ({"d": 1}, {"d": 2})} | options))
    columns = [column(np.arange(9.0))] * 2 if columns is None else columns
    return list(ailments(claim, pool or _pool(np.arange(9)), columns, searched))


@pytest.mark.parametrize("x, source, told", [
    (np.ones(8), "draws", True), (np.ones(7), "draws", False), (np.ones(9), "cases", False),
    (np.ones(9), "search", False), (np.append(np.ones(8), 2), "draws", False),
])  # fmt: skip
def test_draws_that_are_all_one_instance(x, source, told):
    found = _ill(_pool(x, source, 1))
    assert found == (
        [f"all {len(x)} draws of 'draws' at d=2 are equal. Try a sampler that uses its key"]
        if told
        else []
    )


def test_sides_that_are_two_numbers_or_zeros():
    (said,) = _ill(columns=[column(np.ones(9), rhs=2.0)] * 2, **SAMPLED)
    assert "Try over={} for sides that take sizes only" in said
    (said,) = _ill(columns=[column(np.ones(9), lhs=0.0, rhs=0.0)] * 2, **SAMPLED)
    assert said.endswith("Try the relation '=' and false=[1.0]")


@pytest.mark.parametrize("runs, met, told", [(1, 0, True), (0, 0, False), (1, 1, False)])
def test_a_search_that_never_met_the_hypotheses(runs, met, told):
    found = _ill(searched=Searched(runs, np.zeros(2, int), met))
    words = "no step of any search met the hypotheses. Try `project`, a map onto the hypotheses"
    assert found == ([words] if told else [])


ALL_ONE = column(np.ones(9))
SAMPLED = {"sample": lambda key, size: {"x": np.zeros(())}}


@pytest.mark.parametrize("columns, options, told", [
    ([ALL_ONE, ALL_ONE], SAMPLED, True), ([ALL_ONE, ALL_ONE], {}, False),
    ([ALL_ONE, ALL_ONE], SAMPLED | {"kind": "identity"}, False),
    ([ALL_ONE, ALL_ONE], SAMPLED | {"kind": "expectation"}, False),
    # One side of one form that moves is enough, and so are less than eight draws.
    ([ALL_ONE, column(np.arange(9.0))], SAMPLED, False),
    ([column(np.ones(9), rhs=np.arange(9.0)), ALL_ONE], SAMPLED, False),
    ([column(np.ones(7))] * 2, SAMPLED, False), ([column(np.ones(8))] * 2, SAMPLED, True),
    # Cases are no draws: neither do they make a side move, nor are they counted.
    ([column(np.append(np.ones(8), 5), sources=["draws"] * 8 + ["cases"])] * 2, SAMPLED, True),
    ([column(np.append(np.ones(7), 1), sources=["draws"] * 7 + ["cases"])] * 2, SAMPLED, False),
])  # fmt: skip
def test_sides_that_are_one_number(columns, options, told):
    says = (
        "both sides are equal and constant over all draws, at least up to rounding. "
        "Try the relation '=', or a bound on lhs - rhs"
    )
    assert _ill(columns=columns, **options) == ([says] if told else [])
