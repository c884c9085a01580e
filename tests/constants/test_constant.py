"""The course of a search for a constant: what is asked, when it ends, and what is said then.

Searches, polishing and certificates are written down; their results are tested elsewhere.
"""

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from flint import arb

import jaxbounds as jb
from jaxbounds.claims.statements import Budget, Form
from jaxbounds.constants import AtSize, constant
from jaxbounds.constants.constant import (
    BUDGET,
    LEAST,
    MANY,
    OTHERS,
    STARTS,
    _at_size,
    _budget,
    _elsewhere,
    _Settling,
    sharp_constant,
)
from jaxbounds.constants.examine import Best
from jaxbounds.constants.limits import Limit
from jaxbounds.constants.polish import Point
from jaxbounds.constants.problem import Problem
from jaxbounds.constants.snapping import tied
from jaxbounds.constants.starts import Start
from jaxbounds.falsification.examples import NONE

NEVER = math.inf


def point(*x, ratio=1.0, kind="drawn", stalled=False):
    instance = {"x": np.array(x, float)}
    return Point(instance, *tied(instance, 0.0), ratio, kind, stalled)


def best(ratio=1.0, far=None, gain=0.0, stalled=False, entries=2):
    at = point(*range(1, entries + 1), ratio=ratio, stalled=stalled)
    return Best(at, arb(ratio), "", gain, far, 0.0, ratio)


def far(ratio, settled=True):
    return Limit("x -> 0", {}, arb(ratio), arb(ratio), settled, False, 0.0, 0.1, False, dict)


@pytest.mark.parametrize(
    "own, wanted",
    [
        (Budget(samples=10, restarts=3, steps=20, batch=5), (10, 12, 20, 5)),
        (Budget(samples=1000, restarts=30, steps=900, batch=7), (192, 30, 200, 7)),
        (Budget(samples=10, restarts=0, steps=20, batch=5), (10, 0, 20, 5)),
    ],
)
def test_the_budget_of_a_constant(own, wanted, claim):
    found = _budget(claim(budget=own))
    assert (found.samples, found.restarts, found.steps, found.batch) == wanted
    assert BUDGET.restarts == 12


NINE = np.full(9, 0.5)


@pytest.mark.parametrize(
    "drawn, ratio, more, word",
    [
        (NINE, 0.5, {}, "every instance"), (NINE[:8], 0.5, {}, None),
        (np.append(NINE, -np.inf), 0.5, {}, "every instance"),
        (np.append(NINE[:8], np.nan), 0.5, {}, None),
        (np.append(NINE, 0.5 * (1 + 0.95e-9)), 0.5, {}, "every instance"),
        (np.append(NINE, 0.5 * (1 + 1.05e-9)), 0.5, {}, None),
        (NINE, 0.5 * (1 + 1.05e-9), {}, None),  # a search found more
        (NINE, 0.5, {"search": "none"}, "every instance"),
        (NINE[:3], 0.5, {"search": "none"}, "drawn"),
        (np.array([np.nan]), 0.5, {}, None),
        (NINE, 0.5, {"enumerates": "all of them", "sample": {}, "search": "none",
                     "cases": lambda size: {"x": np.ones((1, 2))}}, "enumerated"),
    ],
)  # fmt: skip
def test_where_something_else_than_slopes_decides(drawn, ratio, more, word, claim):
    assert _elsewhere(claim(**more), drawn, ratio) == word


@pytest.fixture
def settling(known, claim):
    def make(until=NEVER, seed=3):
        problem = known(lambda x: x[0], statement=claim())
        return _Settling(problem, lambda: [{"x": np.zeros(1)}], seed, True, until)

    return make


@pytest.mark.parametrize(
    "top, more, changes",
    [
        # A larger ratio by more than a ten thousand millionth.
        (1 + 1.1e-10, {}, True), (1 + 0.9e-10, {}, False),
        # A point as good where slopes are missing or promise something.
        (1 - 0.95e-9, {"gain": None}, True), (1 - 1.05e-9, {"gain": None}, False),
        (1.0, {"gain": 1.05e-11}, True), (1.0, {"gain": 0.95e-11}, False),
        (1.0, {"gain": None, "far": far(2.0)}, False),
        # Where there is a limit: more than that, or it had not settled.
        (1.5, {"far": far(2.0)}, False), (2.1, {"far": far(2.0)}, True),
        (2 * (1 + 1.1e-10), {"far": far(2.0)}, True), (2 * (1 + 0.9e-10), {"far": far(2.0)}, False),
        (1.5, {"far": far(2.0, settled=False)}, True),
    ],
)  # fmt: skip
def test_what_is_a_reason_to_certify_again(top, more, changes, settling):
    new = [point(1, ratio=top), point(1, ratio=0.0)]
    assert settling()._changes(best(**more), new) is changes
    assert not settling()._changes(best(gain=None), [])


@pytest.fixture
def rounds(settling, monkeypatch):
    """A round with its parts written down, and what they were asked."""

    def run(stalled=False, entries=2, cma=True, until=NEVER, farther=()):
        seen = {"polished": [], "further": [], "far": [], "evolved": []}

        def further(problem, known, fresh, *, seed):
            assert [f["x"] for f in fresh] == [0]
            seen["further"].append(([k["x"][0] for k in known], seed))
            return iter([Start("wide", {"x": np.array([5.0])}), Start("drawn", {"x": np.ones(1)})])

        def polished(problem, starts, *, until, snap, reach):
            seen["polished"].append((starts[0].kind, reach))
            return [point(1, ratio=starts[0].instance["x"][0], kind=starts[0].kind)]

        def far_out(problem, points, top, *, until):
            seen["far"].append(([p.ratio for p in points], top))
            return [Start("far", {"x": np.array([4.0 + k])}) for k in farther]

        def evolved(problem, p, *, seed, until):
            seen["evolved"].append((seed, until))
            return point(1, kind="CMA-ES")

        monkeypatch.setattr(constant, "further", further)
        monkeypatch.setattr(constant, "polished", polished)
        monkeypatch.setattr(constant, "farther", far_out)
        monkeypatch.setattr(constant, "evolved", evolved)
        monkeypatch.setattr(constant, "has_cma", lambda: cma)
        points = [point(k, ratio=k / 4) for k in range(1, 9)]
        more = settling(until)._round(points, best(stalled=stalled, entries=entries), 1)
        return [p.kind for p in more], seen

    return run


def test_a_round_of_starts(rounds, monkeypatch):
    kinds, seen = rounds()
    assert kinds == ["wide", "drawn"]
    # From the two best, with a seed of this round; the six best are looked at far out.
    assert seen["further"] == [([8, 7], 3 + 2000)]
    assert seen["far"] == [([2, 1.75, 1.5, 1.25, 1, 0.75], 2)]
    # What was reached is what the next start has to reach.
    assert seen["polished"] == [("wide", 2), ("drawn", 5)] and not seen["evolved"]
    # One of each kind comes before far ones.
    assert rounds(farther=(1, 2, 3))[0] == ["wide", "drawn", "far", "far"]
    monkeypatch.setattr(constant, "KINDS", {})
    assert rounds(farther=(1, 2, 3))[0] == ["wide", "far", "far", "drawn"]
    assert rounds(until=0.0)[0] == []


@pytest.mark.parametrize(
    "more, tried",
    [
        ({"stalled": True}, True), ({}, False), ({"stalled": True, "cma": False}, False),
        ({"stalled": True, "entries": 80}, True), ({"stalled": True, "entries": 81}, False),
        ({"stalled": True, "until": 0.0}, False),
    ],
)  # fmt: skip
def test_evolution_is_for_kinks(more, tried, rounds):
    kinds, seen = rounds(**more)
    assert ("CMA-ES" in kinds) == tried
    if tried:
        assert seen["evolved"][0][0] == 2003


FIRST, NEW = best(), best(2.0)


@pytest.fixture
def settled(settling, monkeypatch):
    """The rounds until it is settled: words after each, and points that each round adds."""

    def run(words, kinds, points=(), changes=False, until=NEVER, half=None, each=10):
        left, calls = list(words), []
        monkeypatch.setattr(constant, "said", lambda *a: AtSize(
            size={}, ratio=1.0, where=left.pop(0) if len(left) > 1 else left[0]))  # fmt: skip
        search = settling(until)
        search.half = search.half if half is None else half

        def one(points, best, number):
            calls.append(number)
            return [point(1, kind=kinds) for _ in range(each)]

        monkeypatch.setattr(search, "_round", one)
        monkeypatch.setattr(search, "_changes", lambda *a: changes)
        monkeypatch.setattr(search, "_best_of", lambda points: calls.append("again") or NEW)
        found, last = search(list(points), FIRST)
        return found, last, calls

    return run


@pytest.mark.parametrize("word", ["attained", "limit"])
def test_forty_other_starts_must_lead_to_nothing_larger(word, settled):
    found, last, calls = settled([word], "wide", half=0.0)
    assert found.where == word and calls == [0, 1, 2, 3] and last is FIRST
    assert (LEAST, OTHERS, MANY, STARTS) == (6, 40, 160, 6)
    known = [point(1, kind="vertex")] * 40
    assert settled([word], "wide", known, half=0.0)[2] == []
    assert settled([word], "wide", known[:39], half=0.0)[2] == [0]
    # Draws and searches are no other starts.
    seen = [point(1, kind="drawn")] * 30 + [point(1, kind="searched")] * 30
    assert settled([word], "wide", seen, half=0.0)[2] == [0, 1, 2, 3]


def test_while_half_of_the_time_is_left_there_are_four_times_as_many(settled, settling):
    known = [point(1, kind="vertex")] * 160
    assert settled(["limit"], "wide", known)[2] == []
    assert settled(["limit"], "wide", known[:121])[2] == [0, 1, 2, 3]
    now = time.process_time()
    assert now + 990 < settling(now + 2000).half < now + 1010


def test_what_has_no_bound_is_settled_and_what_rises_goes_on(settled):
    assert settled(["unbounded"], "wide")[2] == []
    found, _, calls = settled(["rising"] * 9 + ["unbounded"], "wide")
    assert found.where == "unbounded" and len(calls) == 9
    # Not for ever: four hundred rounds are the most.
    assert len(settled(["rising"], "drawn", each=1)[2]) == 400


def test_what_changes_is_certified_again(settled):
    _, last, calls = settled(["attained"], "wide", changes=True)
    assert last is NEW and calls[:4] == [0, "again", 1, "again"]


@pytest.fixture
def at_size(claim, monkeypatch):
    """One size, with drawing, polishing and settling written down."""

    def run(starts=2, ratios=(0.1, 0.2), seconds=100.0, **more):
        seen = {}
        some = [Start("searched", {"x": np.array([3.0, 1.0])}), Start("drawn", {"x": np.ones(2)})]
        monkeypatch.setattr(constant, "draw", lambda b, p, budget, seed: seen.update(drawn=seed))
        monkeypatch.setattr(constant, "search", lambda b, p, budget, seed: seen.update(search=seed))
        monkeypatch.setattr(constant, "first_starts",
                            lambda pool, most: (some[:starts], np.array(ratios)))  # fmt: skip
        monkeypatch.setattr(constant, "polished", lambda p, s, *, until, snap: seen.update(
            first=until) or [point(1, ratio=9.0)])  # fmt: skip
        monkeypatch.setattr(constant, "at", lambda p, i, t: point(*i["x"], ratio=4.0, kind="-"))
        monkeypatch.setattr(constant, "best_of", lambda p, points, **k: seen.update(k) or best(
            points[0].ratio)._replace(point=points[0]))  # fmt: skip
        size = AtSize(size={}, ratio=1.0, where="attained")
        monkeypatch.setattr(constant, "said", lambda p, b, points, where: replace(
            size, where=where or "rising", starts=len(points)))  # fmt: skip
        monkeypatch.setattr(constant, "readable", lambda *a, until: {"instance_ratio": 0.5})

        class Settling:
            def __init__(self, *given):
                pass

            def others(self, points, *, until):
                seen.update(others=until)
                return [point(1, ratio=3.0)]

            def __call__(self, points, best):
                seen.update(settled=len(points))
                return size, best

        monkeypatch.setattr(constant, "_Settling", Settling)
        now = time.process_time()
        problem = Problem(claim(**more), "printed", {})
        found = _at_size(problem, Budget(), 7, seconds, True, NONE)
        return found, {
            k: v - now if k in ("first", "others", "until") else v for k, v in seen.items()
        }

    return run


def test_one_size(at_size):
    found, seen = at_size()
    assert found.where == "attained" and found.instance_ratio == 0.5 and found.seconds >= 0
    assert seen["drawn"] == seen["search"] == seen["seed"] == 7 and seen["snap"] is True
    # A quarter of the time for the first starts, one more for others, before any is certified.
    assert abs(seen["first"] - 25) < 5 and abs(seen["others"] - 50) < 5 and seen["settled"] == 2
    assert abs(seen["until"] - 100) < 5


def test_nothing_counts(at_size):
    found, _ = at_size(starts=0)
    assert (found.where, found.ratio) == ("none", 0.0) and found.seconds >= 0


def test_what_is_not_climbed_is_measured_at_its_worst_start(at_size):
    found, seen = at_size(search="none")
    assert found.where == "drawn" and found.starts == 1 and "first" not in seen
    found, seen = at_size(ratios=NINE * 18)
    assert found.where == "every instance"  # of ratio 9, as the best point
    assert "others" not in seen


def test_a_constant_over_sizes(claim, monkeypatch):
    ratios = {1: 0.5, 2: 1.0, 4: 2.0}

    def one(problem, budget, seed, seconds, snap, examples):
        calls.append((problem.form, seed, budget, seconds, snap))
        assert examples is NONE
        size = problem.size
        where = words.get(size["n"], "attained")
        return AtSize(size=dict(size), ratio=ratios[size["n"]], where=where)

    calls, words = [], {}
    monkeypatch.setattr(constant, "_at_size", one)
    own = claim(sizes=({"n": 1}, {"n": 2}, {"n": 4}), budget=Budget(samples=5))
    found = sharp_constant(own)
    assert [s.ratio for s in found.sizes] == [0.5, 1, 2] and found.seed == 0
    assert [(e.axis, e.value) for e in found.dependence] == [("n", pytest.approx(1))]
    assert calls[0] == ("printed", 0, _budget(own), 30.0, True) and found.relation == "<="
    # What has no constant does not say how a constant depends.
    for word in ("unbounded", "none"):
        words = {1: word}
        ratios[1] = 99.0
        found = sharp_constant(own)
        assert found.dependence[0].value == pytest.approx(1) and found.dependence[0].low is None
    words, ratios[1] = {}, 0.0
    assert sharp_constant(own).dependence[0].low is None


def test_a_law_only_where_every_size_has_a_constant(claim, monkeypatch):
    monkeypatch.setattr(constant, "law", lambda *a: "n/2")
    where = ["attained"]
    word = lambda size: where[0] if size["n"] == 1 else "attained"
    monkeypatch.setattr(constant, "_at_size", lambda p, *a: AtSize(
        size=dict(p.size), ratio=1.0, where=word(p.size)))  # fmt: skip
    own = claim(sizes=({"n": 1}, {"n": 2}))
    assert sharp_constant(own).law == "n/2"
    where[0] = "unbounded"
    assert sharp_constant(own).law == ""


@pytest.mark.parametrize(
    "more, words",
    [
        ({"kind": "identity"}, "kind='identity'"),
        ({"kind": "expectation"}, "kind='expectation'"),
        ({"kind": "probability", "level": 0.1}, "kind='probability'"),
        ({"estimates": {"rhs": "below"}}, "a search estimates the larger side"),
    ],
)  # fmt: skip
def test_what_has_no_sharp_constant(more, words, claim):
    with pytest.raises(ValueError, match=words):
        sharp_constant(claim(**more))


def test_functions_need_their_sets(claim):
    for pair in ((abs, "printed"), (claim(), abs)):
        with pytest.raises(ValueError, match="needs sets"):
            sharp_constant(*pair)
    with pytest.raises(jb.Refused, match="no form='corrected'"):
        sharp_constant(claim(forms=(Form(name="printed"),)), "corrected")
