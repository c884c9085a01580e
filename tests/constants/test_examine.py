"""What may be said of a point: each word, each refusal and each threshold from both sides.

Points, balls and limits are written down; what computes them is tested elsewhere.
"""

import math
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from jaxbounds.constants import examine
from jaxbounds.constants.examine import (
    Best,
    _at_the_end,
    _closed,
    _Confirmed,
    _confirmed,
    _is_real,
    _out_of_floats,
    _still,
    _where,
    _within,
    best_of,
    corrected,
    farther,
    moves,
    said,
)
from jaxbounds.constants.limits import Limit, Look
from jaxbounds.constants.polish import Point
from jaxbounds.constants.snapping import tied
from jaxbounds.programs.balls.values import NotSupported, Undecided

NEVER = math.inf


def point(*x, ratio=1.0, kind="drawn", stalled=False):
    instance = {"x": np.array(x, float)}
    return Point(instance, *tied(instance, 0.0), ratio, kind, stalled)


def far(**more):
    given = {"words": "x -> infinity", "instance": {"x": np.ones(2)}, "ratio": arb(1)}
    given |= {"certain": arb(1), "settled": True, "endless": False, "left": 1e-20, "rise": 0.1}
    return Limit(**given | {"lawful": False, "family": lambda s: {"x": np.array([s, 1.0])}} | more)


def best(**more):
    given = {"point": point(1, 2), "ball": arb(1), "reason": "", "gain": 0.0, "far": None}
    return Best(**given | {"promise": 0.0, "near": 1.0} | more)


@pytest.mark.parametrize(
    "more, agreeing, word",
    [
        ({}, 2, "attained"), ({}, 1, "rising"), ({}, 3, "attained"),
        ({"gain": None}, 2, "rising"),
        ({"gain": 1e-11}, 2, "rising"), ({"gain": 0.95e-11}, 2, "attained"),
        ({"gain": 1.05e-11}, 2, "rising"),
        ({"near": 1 + 0.95e-9}, 2, "attained"), ({"near": 1 + 1.05e-9}, 2, "rising"),
        ({"far": far()}, 2, "limit"), ({"far": far()}, 1, "rising"),
        ({"far": far(), "gain": None}, 2, "limit"),
        ({"far": far(), "near": 1 + 0.95e-6}, 2, "limit"),
        ({"far": far(), "near": 1 + 1.05e-6}, 2, "rising"),
        ({"far": far(settled=False)}, 2, "rising"),
        ({"far": far(endless=True), "near": 9.0}, 1, "unbounded"),
    ],
)  # fmt: skip
def test_the_word(more, agreeing, word):
    assert _where(best(**more), 1.0, agreeing) == word


@pytest.mark.parametrize(
    "more, gain, real",
    [
        ({"rise": 1.05e-9}, 0.0, True), ({"rise": 0.95e-9}, 0.0, False),
        # Without slopes nothing but the rise itself speaks for it.
        ({"rise": 0.95e-9}, None, False), ({"rise": 1.05e-9}, None, True),
        ({"rise": 0.0, "endless": True}, 0.0, True),
        ({"rise": 0.0, "lawful": True}, 0.0, True),
        ({"rise": 1e-10}, 1.05e-13, True), ({"rise": 1e-10}, 0.95e-13, False),
    ],
)  # fmt: skip
def test_a_rise_far_out_is_real(more, gain, real):
    assert _is_real(far(**more), gain) is real


def test_the_ratio_as_floats_have_it_where_the_ball_allows():
    assert _within(0.5, arb(0.5, 0.1)) == 0.5 and _within(0.55, arb(0.5, 0.1)) == 0.55
    assert _within(0.7, arb(0.5, 0.1)) == 0.5
    top = float(arb(0.5, 0.1).upper())  # what rounding alone puts outside is at the end
    assert _within(top + 5e-16, arb(0.5, 0.1)) == top and _within(top + 5e-15, arb(0.5, 0.1)) == 0.5
    assert _within(0.7, arb("inf")) == 0.7 and _within(0.7, arb("nan")) == 0.7


def test_why_it_still_rises():
    assert "x -> infinity" in _still(best(far=far(settled=False)))
    for more in ({}, {"far": far()}, {"far": far(settled=False, endless=True)}):
        assert _still(best(**more)) == ""


@pytest.mark.parametrize(
    "entry, where, said", [(1.05e300, "rising", True), (0.95e300, "rising", False),
                           (-1.05e300, "rising", True), (1.05e300, "attained", False)]
)  # fmt: skip
def test_where_floats_end(entry, where, said):
    assert bool(_out_of_floats(best(point=point(entry, 1)), where)) == said


@pytest.fixture
def ended(known, known_ratio, monkeypatch):
    """The ball and the promise at the end of a limit, where slopes give a ball and a gain."""

    def end(ball, gain, *x, raises=None, own=None, **more):
        def ascent(ratio, out, *_):
            if raises:
                raise raises("no")
            seen.append(out.instance["x"][0])
            return ball, gain, []

        seen = []
        monkeypatch.setattr(examine, "ascent", ascent)
        monkeypatch.setattr(examine, "curvature", lambda *a: (None, None))
        ratio = known_ratio(lambda x: arb(1))
        found = _at_the_end(known(lambda x: 1.0), ratio, point(*x), far(**more), own)
        assert seen in ([], [2.0**100])  # slopes are taken there
        return found

    return end


def test_the_end_of_a_limit(ended):
    # Not settled: what was left. Settled: twice that; where nothing but the scale moves no more.
    assert ended(None, 9, 1, 2, settled=False, left=0.25) == (arb(1), 0.25)
    assert ended(None, 9, 3, 3, left=0.25) == (arb(1), 0.5)
    assert ended(arb(3), 0.95e-14, 1, 2, left=1e-20) == (arb(3), 2e-20 + 0.95e-14)
    # More than float64 vouches for: the ball as before, and by floats.
    assert ended(arb(3), 1.05e-14, 1, 2, left=0.25) == (arb(1), 0.5 + 1e-14)
    # A ball that is lower than the limit by more than what is left is none.
    assert ended(arb(0.51), 0.0, 1, 2, left=0.25) == (arb(0.51), 0.5)
    assert ended(arb(0.49), 0.0, 1, 2, left=0.25) == (arb(1), 0.5 + 1e-14)
    # The point's own slopes speak for the end where the point is near to it.
    near, off = {"rise": 0.9e-9, "own": 0.25}, {"rise": 1.1e-9, "own": 0.25}
    assert ended(arb(0.49), 0.0, 1, 2, left=0.25, **near) == (arb(1), 0.75)
    assert ended(arb(0.49), 0.0, 1, 2, left=0.25, **off) == (arb(1), 0.5 + 1e-14)
    for refusal in (Undecided, NotSupported, ValueError, ArithmeticError, np.linalg.LinAlgError):
        assert ended(None, 0, 1, 2, raises=refusal, left=0.25) == (arb(1), 0.5 + 1e-14)


class Balls:
    """In the place of `Ratio`: the ball of each instance, or why there is none."""

    def __init__(self, balls, monkeypatch):
        self.made, self.balls = [], balls
        monkeypatch.setattr(examine, "Ratio", self.make)

    def make(self, problem, instance, *, seconds, project):
        self.made.append((float(instance["x"][0]), seconds, project))
        return self

    def __call__(self, instance, reading):
        assert reading == "ulp"
        found = self.balls[float(instance["x"][0])]
        if isinstance(found, Exception):
            raise found
        return arb(found)


def test_the_largest_ball_of_those_first_in_line(known, monkeypatch):
    problem, points = known(lambda x: 1.0), [point(k, ratio=3.0) for k in range(4)]
    balls = Balls({0: 3.0, 1: 3 + 2e-9, 2: 3.0, 3: 9.0}, monkeypatch)
    found = _confirmed(problem, points, time.process_time() + 50)
    assert found[0] is points[1] and found[2] == 3 + 2e-9 and found[3] == ""
    assert [m[0] for m in balls.made] == [0, 1, 2]  # three of them
    assert all(40 < m[1] <= 50 for m in balls.made)
    assert _confirmed(problem, points, 0.0) and balls.made[-1][1] == 1.0  # a second in any case


def test_points_that_are_rounding_stand_in_nobodys_way(known, monkeypatch):
    # Seven of which floats say more than balls, then four that are what they seem to be.
    problem, high = known(lambda x: 1.0), [9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.5, 3.0, 3.0, 3.0, 3.0]
    points = [point(k, ratio=ratio) for k, ratio in enumerate(high)]
    balls = Balls({k: 2.0 if k < 7 else 3.0 for k in range(11)}, monkeypatch)
    found = _confirmed(problem, points, NEVER)
    assert found.point is points[7] and found.ball == 3 and found.beyond == 0
    assert [m[0] for m in balls.made] == list(range(10))
    # What balls said of them is remembered in the place of what floats say.
    assert [p.ratio for p in corrected(problem, points)] == [2.0] * 7 + [3.0] * 4
    balls.made.clear()
    ordered = sorted(corrected(problem, points), key=lambda p: -p.ratio)
    assert _confirmed(problem, ordered, NEVER).ball == 3 and len(balls.made) == 3


def test_instances_of_other_whole_numbers_are_others(known, monkeypatch):
    problem = known(lambda x: 1.0)
    Balls({1: 2.0}, monkeypatch)
    one, other = (point(1, ratio=3.0)._replace(instance={"x": np.ones(1), "n": np.array([n])})
                  for n in (4, 5))  # fmt: skip
    _confirmed(problem, [one], NEVER)
    assert [p.ratio for p in corrected(problem, [one, other])] == [2.0, 3.0]


def test_points_without_balls(known, monkeypatch):
    points = [point(0, ratio=3.0), point(1, ratio=2.0)]
    problem = known(lambda x: 1.0)
    Balls({0: Undecided("first"), 1: NotSupported("second")}, monkeypatch)
    assert _confirmed(problem, points, NEVER) == (points[0], None, None, "second", 3.0)


def test_what_balls_do_not_decide_may_be_larger(known, monkeypatch):
    """A smaller number that is certain is a lower estimate, and nobody's supremum."""
    points = [point(0, ratio=3.0), point(1, ratio=2.0)]
    problem = known(lambda x: 1.0)
    Balls({0: Undecided("first"), 1: 2.0}, monkeypatch)
    words = "floats give the ratio 3, which ball arithmetic cannot confirm: first"
    assert _confirmed(problem, points, NEVER)[2:] == (2, words, 3.0)
    Balls({0: Undecided("first"), 1: 3 * (1 - 0.9e-9)}, monkeypatch)
    assert _confirmed(problem, points, NEVER)[3:] == ("", 0.0)
    Balls({0: Undecided("first"), 1: 3 * (1 - 1.1e-9)}, monkeypatch)
    assert _confirmed(problem, points, NEVER)[4] == 3.0


@pytest.mark.parametrize(
    "search, project, wanted",
    [("gradient", True, True), ("gradient", False, False), ("none", True, False)],
)
def test_balls_go_back_onto_the_hypotheses_as_the_search_does(
    search, project, wanted, known, claim, monkeypatch
):
    own = claim(search=search, project=(lambda i, size: i) if project else None)
    balls = Balls({0: 1.0}, monkeypatch)
    _confirmed(known(lambda x: 1.0, statement=own), [point(0)], NEVER)
    assert balls.made[0][2] is wanted


@pytest.mark.parametrize(
    "more, climbs", [({}, True), ({"search": "none"}, False), ({"host": True}, False)]
)
def test_what_is_climbed(more, climbs, known, claim):
    assert moves(known(lambda x: 1.0, statement=claim(**more))) is climbs


@pytest.mark.parametrize(
    "where, agreeing, more, text",
    [
        ("attained", 2, {}, "1/2"), ("attained", 1, {}, None), ("limit", 2, {}, "1/2"),
        ("rising", 2, {}, None), ("unbounded", 2, {}, None), ("drawn", 9, {}, None),
        ("enumerated", 1, {}, "1/2"), ("every instance", 1, {}, "1/2"),
        ("attained", 2, {"ball": None}, None), ("attained", 2, {"promise": None}, None),
        ("every instance", 1, {"promise": None}, None),
        ("enumerated", 1, {"promise": None}, "1/2"),
        # Twelve digits are the least: slopes must not promise more than their last.
        ("attained", 2, {"promise": 0.9e-12}, "1/2"), ("attained", 2, {"promise": 1.1e-11}, None),
        ("enumerated", 2, {"promise": 1.1e-11}, "1/2"),
        ("attained", 2, {"ball": arb(0.5, 1e-11)}, None),
    ],
)  # fmt: skip
def test_a_closed_form_only_where_nothing_speaks_against_it(where, agreeing, more, text, known):
    found = _closed(
        known(lambda x: 1.0), best(**{"ball": arb(0.5)} | more), ("0.4", "0.6"), where, agreeing
    )
    assert (found and found.text) == text


@pytest.mark.parametrize("off, found", [(0.9, True), (1.1, False), (-0.9, True), (-1.1, False)])
def test_a_closed_form_is_the_number_computed(off, found, known):
    # Within 2^-46 of the middle, whatever room constants as balls leave.
    ball = arb(0.5 * (1 + off * 2.0**-46), 1e-13)
    ends = ("0.4", "0.6")
    assert bool(_closed(known(lambda x: 1.0), best(ball=ball), ends, "attained", 2)) == found
    # What slopes promise is room on both sides.
    wider = best(ball=ball, promise=3e-14)
    assert _closed(known(lambda x: 1.0), wider, ends, "attained", 2)
    # And it lies between the two ends, where these are closer.
    for ends in (("0.5000000000001", "0.6"), ("0.4", "0.4999999999999")):
        assert _closed(known(lambda x: 1.0), wider, ends, "attained", 2) is None


def test_logarithms_of_the_size_are_tried(known):
    log = arb(7).log()
    sized, ends = known(lambda x: 1.0, size={"n": 7}), ("1.9", "2")
    assert _closed(sized, best(ball=log), ends, "enumerated", 1).text == "log(7)"
    assert _closed(known(lambda x: 1.0), best(ball=log), ends, "enumerated", 1) is None


@pytest.mark.parametrize("high, ball, kept", [
    (1 + 1.05e-9, 2.0, True), (1 + 0.95e-9, 2.0, False), (3.0, 1 + 0.95e-9, False),
    (3.0, 1 + 1.05e-9, True), (3.0, None, True),
])  # fmt: skip
def test_what_is_better_far_out_is_a_start_if_confirmed(high, ball, kept, known, monkeypatch):
    there = {"x": np.array([8.0, 8.0])}
    monkeypatch.setattr(examine, "looks", lambda *a, **k: [Look(0, high, there, high, True)])
    confirmed = _Confirmed(point(8, 8), None, arb(ball) if ball else None, "", 0.0)
    monkeypatch.setattr(examine, "_confirmed", lambda *a: confirmed)
    found = farther(known(lambda x: 1.0), [point(1, 2)], 1.0, until=NEVER)
    assert [s.kind for s in found] == ["far"] * kept


def all_of(*ratios):
    return [point(1, 2, ratio=r, kind=k) for k, r in ratios]


def test_what_is_said_of_a_maximum(known):
    points = all_of(("drawn", 0.5), ("wide", 0.5), ("wide", 0.25), ("", 0.5))
    found = said(known(lambda x: 1.0, size={"n": 3}), best(ball=arb(0.5), point=points[0],
                 near=0.5), points)  # fmt: skip
    assert (found.where, found.ratio, found.size) == ("attained", 0.5, {"n": 3})
    assert (found.starts, found.agreeing) == (4, 3)
    assert found.kinds == {"drawn": 1, "wide": 2} and found.agreed == {"drawn": 1, "wide": 1}
    assert Fraction(found.low) <= Fraction(1, 2) <= Fraction(found.high)
    assert found.digits > 12 and found.closed.text == "1/2" and found.gain == 0.0
    assert (found.along, found.reason, found.instance_ratio) == ("", "", 0.5)
    assert found.instance == {"x": [1.0, 2.0]}


@pytest.mark.parametrize("promise", [1e-10, 1e-18, 1e-25])
def test_what_slopes_promise_is_above_however_little_it_is(promise, known):
    found = said(known(lambda x: 1.0), best(promise=promise), all_of(("drawn", 1.0)))
    assert Fraction(promise) <= Fraction(found.high) - 1 < 2 * Fraction(promise)


def test_the_upper_end_reaches_as_far_as_is_promised(known):
    found = said(known(lambda x: 1.0), best(promise=0.25), all_of(("drawn", 1.0)))
    assert Fraction(found.high) == Fraction(5, 4) and Fraction(found.low) == 1
    exact = said(known(lambda x: 1.0), best(), all_of(("drawn", 1.0)))
    assert Fraction(exact.high) == Fraction(exact.low) == 1


def test_ends_beyond_all_decimal_numbers_are_infinite(known):
    # exp(exp(80)), up to its sign: Python's decimals end at exponents of 10^18.
    for ball in (arb(80).exp().exp() * arb(0, 1), arb("nan")):
        found = said(known(lambda x: 1.0), best(ball=ball), all_of(("drawn", 1.0)))
        assert (found.low, found.high, found.digits) == ("-inf", "inf", 0)
        assert not Decimal(found.low) > 1


def test_without_balls_there_are_no_digits(known):
    alone = best(ball=None, reason="no rule", point=point(1, ratio=0.75))
    found = said(known(lambda x: 1.0), alone, all_of(("drawn", 0.75)), "drawn")
    assert (found.low, found.high, found.digits, found.where) == ("", "", 0, "drawn")
    assert found.ratio == 0.75 and found.reason == "no rule" and found.closed is None


@pytest.fixture
def chosen(known, claim, monkeypatch):
    """`best_of` with everything it calls written down."""

    def choose(near=1.0, ball=1.0, gain=0.0, ratio=1.0, again=None, limit=None, kink=None,
               raises=None, snap=True, until=NEVER, search="gradient", bare=False,
               climbed=None, moved=2):  # fmt: skip
        calls, seen[:] = [], []
        monkeypatch.setattr(examine, "best_neighbour", lambda p, i, s: calls.append("near") or
                            (i, near if i["x"][0] != 7 else 5.0))  # fmt: skip
        other = point(9, 9, ratio=again or 0.0)
        monkeypatch.setattr(examine, "polished", lambda *a, **k: calls.append("again") or [other])
        ball_of = (None, None) if bare else ("R", arb(ball))
        confirmed = lambda p, ps, u: _Confirmed(ps[0], *ball_of, "no", 0.0)
        monkeypatch.setattr(examine, "_confirmed", confirmed)
        monkeypatch.setattr(examine, "_rounder", lambda p, q, cost, u: calls.append(cost) or q)
        monkeypatch.setattr(examine, "curvature", lambda *a: (1, 2))

        def ascent(*a):
            if raises:
                raise raises("slopes")
            return arb(climbed or ball), gain, [arb(5), arb(6)][:moved]

        monkeypatch.setattr(examine, "ascent", ascent)
        monkeypatch.setattr(examine, "_at_kink", lambda *a: calls.append("kink") or kink)
        monkeypatch.setattr(examine, "limit", lambda p, r, start, until: calls.append("limit") or
                            seen.append(start.instance["x"].tolist()) or limit)  # fmt: skip
        monkeypatch.setattr(examine, "_at_the_end", lambda *a: (arb(8), 0.125))
        problem = known(lambda x: 1.0, statement=claim(search=search))
        points = [point(3, 4, ratio=ratio / 2), point(1, 2, ratio=ratio)]
        return best_of(problem, points, until=until, snap=snap), calls

    seen = choose.seen = []
    return choose


def test_the_best_point_and_its_slopes(chosen):
    found, calls = chosen(gain=1e-20)
    assert found.point.instance["x"][0] == 1 and found.gain == found.promise == 1e-20
    assert calls == ["near", 2e-14, "limit"] and found.near == 1 and found.far is None
    assert chosen(snap=False)[1] == ["near", "limit"]


@pytest.mark.parametrize(
    "near, again, until, snap, taken",
    [
        (1 + 1.05e-9, 1 + 1.05e-9, NEVER, True, True), (1 + 0.95e-9, 2.0, NEVER, True, False),
        (2.0, 1 + 0.95e-9, NEVER, True, False), (2.0, 2.0, 0.0, True, False),
        (2.0, 2.0, NEVER, False, False),
    ],
)  # fmt: skip
def test_a_better_neighbour_is_gone_on_from(near, again, until, snap, taken, chosen):
    found, calls = chosen(near=near, again=again, until=until, snap=snap)
    assert (found.point.instance["x"][0] == 9) == taken
    assert (calls.count("near") == 2) == taken


@pytest.mark.parametrize("gain, asked", [(0.95e-11, False), (1.05e-11, True)])
def test_what_slopes_still_promise_is_asked_of_kinks(gain, asked, chosen):
    found, calls = chosen(gain=gain, kink=(arb(3), 1e-15))
    assert ("kink" in calls) == asked
    assert found.gain == found.promise == (1e-15 if asked else gain)
    assert found.ball == (3 if asked else 1)
    assert chosen(gain=gain)[0].gain == gain


def test_where_there_are_no_slopes(chosen):
    for refusal in (Undecided, NotSupported):
        found, calls = chosen(raises=refusal)
        assert found.gain is found.promise is None and "no certified slopes" in found.reason
        assert "limit" in calls
    found, calls = chosen(bare=True)
    assert found.ball is None and found.reason == "no" and calls == ["near"]
    found, calls = chosen(search="none", near=5.0)
    assert calls == [] and found.near == 0.0 and found.gain is None


def test_the_ratio_is_that_of_the_ball(chosen):
    assert chosen(ball=0.75)[0].point.ratio == 0.75


def test_the_end_of_a_real_rise_is_taken(chosen):
    there = {"x": np.array([7.0, 7.0])}
    found, _ = chosen(limit=far(instance=there))
    assert found.far and found.ball == 8 and found.promise == 0.125 and found.near == 5.0
    found, _ = chosen(limit=far(rise=1e-12, instance=there))
    assert found.far is None and found.ball == 1 and found.near == 1.0


def test_a_limit_is_followed_from_where_balls_climbed_to(chosen):
    there = {"x": np.array([7.0, 7.0])}
    found, _ = chosen(limit=far(instance=there, certain=arb(3)), climbed=2.0, gain=1e-20)
    assert [5, 6] in chosen.seen and [1, 2] not in chosen.seen
    assert found.far and found.point.instance["x"].tolist() == [5, 6]
    # They climbed to no more, or nothing moves: from the point.
    found, _ = chosen(limit=far(instance=there, certain=arb(3)), climbed=2.0, moved=0)
    assert [1, 2] in chosen.seen and found.point.instance["x"].tolist() == [1, 2]
    found, _ = chosen(limit=far(instance=there))
    assert [1, 2] in chosen.seen and [5, 6] not in chosen.seen
    assert found.point.instance["x"].tolist() == [1, 2]


def test_below_what_balls_climbed_to_there_is_no_limit(chosen):
    there = {"x": np.array([7.0, 7.0])}
    found, _ = chosen(limit=far(instance=there, certain=arb(1)), climbed=2.0, gain=1e-20)
    # As slopes lead there all the same, nothing says that what balls climbed to is attained.
    assert found.far is found.gain is found.promise is None and found.ball == 2
    assert "stays below the ratio of the climb" in found.reason
    endless, _ = chosen(limit=far(instance=there, certain=arb(1), endless=True), climbed=2.0)
    assert endless.far


def test_what_was_not_followed_to_its_end_is_not_attained(chosen):
    # With the time over no scale is looked at, and slopes that vanish say nothing of what is far.
    late, _ = chosen(until=0.0)
    assert late.far is late.gain is late.promise is None and "the time was over" in late.reason
    assert chosen()[0].gain == 0.0 and "the time was over" not in chosen()[0].reason
    there = {"x": np.array([7.0, 7.0])}
    assert chosen(until=0.0, limit=far(instance=there))[0].far


def test_where_other_coordinates_may_gain_at_its_end_it_is_no_limit_yet(known):
    starts = all_of(("drawn", 1.0), ("wide", 1.0))
    for promise, word in ((0.95e-11, "limit"), (1.05e-11, "rising"), (math.inf, "rising")):
        found = said(known(lambda x: 1.0), best(far=far(), promise=promise), starts)
        assert found.where == word
        assert ("other coordinates may still raise" in found.reason) == (word == "rising")
    assert (found.low, found.high, found.closed) == ("1", "inf", None)
