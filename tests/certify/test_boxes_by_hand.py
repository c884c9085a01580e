"""Branch and bound by hand: margins that are given as balls, not computed from programs.

What must become of a box (proved, outside, a face, halves, stuck, false) is said by its definition.
"""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb
from jax import lax

from jaxbounds.falsification import float64_on_cpu
from jaxbounds.programs.balls.boxes import (
    BATCH,
    CLOSE,
    MARGIN,
    NARROW,
    VERY_NARROW,
    Box,
    BoxSearch,
    Open,
    Programs,
    Values,
    _face,
    _lower,
    balls_of,
)
from jaxbounds.programs.balls.interpreter import precision
from jaxbounds.programs.balls.values import INF, NAN, Undecided, nonnegative, reals


@pytest.fixture(autouse=True)
def arithmetic():
    with precision(128):
        yield


# Balls of boxes.


def test_balls_hold_their_boxes():
    boxes = [
        Box((0.0, 0.3), (1.0, 0.3)),
        Box((-1.0, -3.0), (0.5, 1e300)),
        Box((0.1, 0.0), (0.7, 0.0)),
    ]
    centres, radii, balls = balls_of(boxes)
    assert centres[0].tolist() == [0.5, 0.3] and centres[1, 0] == -0.25
    for row, box in enumerate(boxes):
        for j, (low, high) in enumerate(zip(*box)):
            ball, radius = balls[row, j], radii[row, j]
            assert ball.contains(arb(low)) and ball.contains(arb(high))
            assert (radius == 0) == (low == high) == ball.is_exact()
            assert ball.mid() == centres[row, j]
            assert radius >= max(high - centres[row, j], centres[row, j] - low)
            assert radius <= 1.000001 * (high / 2 - low / 2)
            assert nonnegative(ball) == (low >= 0)
    low, high = 1e308, 1.7e308  # no overflow in the middle
    assert balls_of([Box((low,), (high,))])[0][0, 0] == 1.35e308


def test_lower_ends_are_below():
    assert _lower(arb(1) / 3) < 1 / 3 and _lower(arb(1) / 3) > 0.333
    assert _lower(arb(0)) < 0 and _lower(arb(2, 1)) < 1 and _lower(arb(2, 1)) > 0.99
    assert _lower(INF) == math.inf and _lower(-INF) == -math.inf and _lower(NAN) == -math.inf


def test_the_face_on_which_a_monotone_margin_is_least():
    box = Box((0.0, -1.0, 5.0), (1.0, 2.0, 5.0))
    up, down, open_, none = arb(2, 1), arb(-2, 1), arb(0, 1), arb("nan")
    assert _face(box, [up, open_, open_]) == Box((0.0, -1.0, 5.0), (0.0, 2.0, 5.0))
    assert _face(box, [open_, down, up]) == Box((0.0, 2.0, 5.0), (1.0, 2.0, 5.0))
    assert _face(box, [up, down, none]) == Box((0.0, 2.0, 5.0), (0.0, 2.0, 5.0))
    assert _face(box, [open_, none, up]) is None and _face(box, [none, open_, down]) is None
    assert _face(box, [arb(0), arb(0), up]) is None


# Steps. A margin is a function of the balls of a box.


class Given(Programs):
    """`Programs` whose values are given."""

    def __init__(self, margin, slopes=None, scale=1.0, stated=0.0, needed=1):
        self.margin, self.slopes, self.scale, self.stated = margin, slopes, scale, stated
        self.needed = needed if callable(needed) else lambda *x: needed

    def __call__(self, balls, slopes):
        rows, count = balls.shape
        none = reals((rows, count), [NAN] * (rows * count))
        found = none
        if slopes and self.slopes:
            found = reals((rows, count), [s for row in balls for s in self.slopes(*row)])
        of = lambda value: reals((rows,), [arb(value)] * rows)
        margin = reals((rows,), [self.margin(*row) for row in balls])
        needed = np.array([self.needed(*row) for row in balls], np.int8)
        if slopes:
            return Values(margin, none[:, 0], none[:, 0], found, needed)
        return Values(margin, of(self.scale), of(self.stated), none, needed)


def exact_at(middle, on_box):
    """A margin that is known at points, and only a wide ball on a box."""
    return lambda *x: arb(middle) if all(v.is_exact() for v in x) else on_box


def stepped(given, *boxes, equalities=None):
    search = BoxSearch(given, boxes or [Box((0.0,), (1.0,))], equalities)
    search.step()
    return search


WIDE = arb(0, 10)


def counts(search):
    return search.boxes, search.inside, search.outside, search.faces, len(search.todo)


def test_what_is_proved_is_inside():
    assert counts(stepped(Given(lambda x: arb(2, 1)))) == (1, 1, 0, 0, 0)
    assert counts(stepped(Given(lambda x: arb(0)))) == (1, 1, 0, 0, 0)
    assert counts(stepped(Given(lambda x: arb(2, 1), needed=2))) == (1, 1, 0, 0, 0)
    search = stepped(
        Given(lambda x: x, lambda x: [arb(1)]), Box((0.5,), (1.0,)), Box((2.0,), (3.0,))
    )
    assert counts(search) == (2, 2, 0, 0, 0) and search.worst is None and search.false is None


def test_what_misses_a_hypothesis_is_outside():
    assert counts(stepped(Given(lambda x: arb(-2), needed=0))) == (1, 0, 1, 0, 0)
    assert counts(stepped(Given(lambda x: arb(2), needed=0))) == (1, 0, 1, 0, 0)
    search = stepped(Given(lambda x: arb(-2), needed=0))
    assert search.false is None and not search.stuck


VIOLATED = [
    # margin at the centre, scale, stated error, hypotheses, whether it is false
    (-1.0, 1.0, 0.0, 1, True), (-1.0, 1.0, 0.0, 2, False), (-1.0, 1.0, 0.0, 0, False),
    (-1.0, 1.0, 0.4, 1, True), (-1.0, 1.0, 0.6, 1, False), (1.0, 1.0, 0.0, 1, False),
    (-1.0, 0.9 / MARGIN, 0.0, 1, True), (-1.0, 1.1 / MARGIN, 0.0, 1, False),
    ("-inf", "inf", 0.0, 1, True), ("nan", 1.0, 0.0, 1, False), (0.0, 0.0, 0.0, 1, False),
]  # fmt: skip


@pytest.mark.parametrize("middle, scale, stated, meets, false", VIOLATED)
def test_what_is_violated_at_the_centre_is_false(middle, scale, stated, meets, false):
    at = lambda x: meets if x.is_exact() else 2
    given = Given(exact_at(middle, WIDE), scale=scale, stated=stated, needed=at)
    search = stepped(given, Box((0.0,), (1.0,)))
    assert (search.false == (0.5,)) == false and (search.false is None) != false


@pytest.mark.parametrize("middle, slope, inside", [
    (1.0, arb(0, 1.9), True), (1.0, arb(0, 2.1), False), (1.0, arb(-1.5, 0.6), False),
    (1.0, arb(1.5, 0.6), False), (0.0, arb(0), True), (1.0, NAN, False),
])  # fmt: skip
def test_the_mean_value_form(middle, slope, inside):
    """On [0, 1] the margin is at least that in the middle, less half of the largest slope."""
    given = Given(exact_at(middle, WIDE), lambda x: [slope], needed=2)
    assert stepped(given).inside == int(inside)
    undefined = Given(exact_at(middle, NAN), lambda x: [arb(0)], needed=2)
    assert stepped(undefined).inside == 0  # slopes of what may be undefined say nothing


def test_the_mean_value_form_of_two_coordinates():
    undefined = Given(exact_at(1.0, NAN), lambda x, y: [arb(0), arb(0)])
    for box in (Box((0.0, 0.0), (1.0, 1.0)), Box((0.5, 0.0), (0.5, 1.0))):
        assert len(stepped(undefined, box).todo) == 2
    slopes = lambda x, y: [arb(1), arb(-2)]
    box = Box((0.0, 0.0), (1.0, 1.0))
    assert stepped(Given(exact_at(1.51, WIDE), slopes, needed=2), box).inside == 1
    assert stepped(Given(exact_at(1.49, WIDE), slopes, needed=2), box).inside == 0
    flat = Box((0.0, 0.5), (1.0, 0.5))  # what does not vary counts for nothing
    unknown = lambda x, y: [arb(1), NAN]
    assert stepped(Given(exact_at(0.51, WIDE), unknown, needed=2), flat).inside == 1
    bound = stepped(Given(exact_at(1.25, WIDE), slopes, needed=2), box).worst.least
    assert -0.2501 < bound < -0.25


def test_a_monotone_margin_leaves_a_face():
    given = lambda needed: Given(exact_at(1.0, WIDE), lambda x: [arb(9, 1)], needed=needed)
    search = stepped(given(1))
    assert counts(search) == (1, 0, 0, 1, 1) and search.todo == [Box((0.0,), (0.0,))]
    assert search.worst == Open(Box((0.0,), (0.0,)), search.worst.least)
    search = stepped(given(2))  # where the hypotheses cut the box the face may be outside
    assert counts(search) == (1, 0, 0, 0, 2)
    assert sorted(search.todo) == [Box((0.0,), (0.5,)), Box((0.5,), (1.0,))]
    assert search.narrowest == pytest.approx(1.0)


def test_a_box_is_cut_where_it_varies_most():
    slopes = lambda x, y: [arb(0, 9), arb(0, 10)]
    search = stepped(Given(exact_at(1.0, WIDE), slopes), Box((0.0, 0.0), (2.0, 1.0)))
    assert sorted(search.todo) == [Box((0.0, 0.0), (1.0, 1.0)), Box((1.0, 0.0), (2.0, 1.0))]
    assert search.narrowest == pytest.approx(1.0)  # the smallest width of the box that was cut
    steep = lambda x, y: [arb(0, 1), arb(0, 9)]
    search_y = stepped(Given(exact_at(1.0, WIDE), steep), Box((0.0, 0.0), (2.0, 1.0)))
    assert sorted(search_y.todo) == [Box((0.0, 0.0), (2.0, 0.5)), Box((0.0, 0.5), (2.0, 1.0))]
    # The tightest of what is known is kept.
    assert search.worst.least == pytest.approx(-10, rel=1e-6)
    tight = stepped(Given(exact_at(1.0, arb(0, 100)), slopes), Box((0.0, 0.0), (2.0, 1.0)))
    assert tight.worst.least == pytest.approx(1 - 9 - 5, rel=1e-6)


@pytest.mark.parametrize("middle, needed, stuck", [
    (arb(0, 1e-9), 1, True), (NAN, 1, True), (arb(0, 1e-9), 2, False), (arb(1), 1, False),
])  # fmt: skip
def test_a_box_with_an_open_point_is_stuck(middle, needed, stuck):
    given = Given(exact_at(middle, WIDE), needed=needed)
    search = stepped(given)
    assert len(search.stuck) == int(stuck) and len(search.todo) == (0 if stuck else 2)
    if stuck:
        assert search.stuck_at == (0.5,) and search.worst == search.stuck[0]
        assert search.worst.box == Box((0.0,), (1.0,))
        assert search.worst.least == pytest.approx(-10, rel=1e-6)


def test_a_point_that_cannot_be_cut_is_stuck():
    search = stepped(Given(lambda x: WIDE, needed=2), Box((0.25,), (0.25,)))
    assert search.stuck == [Open(Box((0.25,), (0.25,)), search.stuck[0].least)]
    assert search.stuck_at == (0.25,)
    narrow = float(np.nextafter(1.0, 2.0))
    search = stepped(Given(exact_at(1.0, WIDE), needed=2), Box((1.0,), (narrow,)))
    assert len(search.stuck) == 1 and search.stuck_at == (1.0,)


def test_the_least_bound_comes_first_and_of_equals_the_last():
    """x is open on all of [0, 8], lower on the left."""
    search = BoxSearch(
        Given(exact_at(1.0, WIDE), needed=2), [Box((float(i),), (i + 1.0,)) for i in range(40)]
    )
    assert len(search.todo) == 40 and search.worst.least == -math.inf
    search.step()
    assert search.boxes == BATCH == 32
    assert len(search.todo) == 40 - 32 + 64
    assert {Box((float(i),), (i + 1.0,)) for i in range(8)} <= set(search.todo)
    given = Given(lambda x: x - 5, needed=2)
    search = stepped(given, Box((0.0,), (1.0,)), Box((2.0,), (3.0,)))
    assert search.worst.box.upper[0] <= 1.0 and -5.01 < search.worst.least < -4.99
    assert search.false is None


def test_all_is_proved_in_the_end():
    """x^2 - x + 0.26 > 0, with slopes 2 x - 1; x^2 - x + 0.24 is false in the middle."""
    given = lambda c: Given(lambda x: x * x - x + c, lambda x: [2 * x - 1])
    search = BoxSearch(given(0.26), [Box((0.0,), (1.0,))])
    for _ in range(20):
        search.step()
    assert not search.todo and not search.stuck and search.false is None and search.inside > 0
    search = BoxSearch(given(0.24), [Box((0.0,), (1.0,))])
    search.step()
    assert search.false == (0.5,)


# Regions of equality.


class Known:
    """Equalities of which is said what they know."""

    def __init__(self, **said):
        self.said, self.asked = said, []

    def __getattr__(self, name):
        if name == "spent":
            return self.said.get("spent", False)

        def answer(what):
            self.asked.append((name, what))
            found = self.said.get(name, None if name == "cut" else False)
            return found(what) if callable(found) else found

        return answer


def test_boxes_that_are_known_are_not_enclosed():
    def margin(x):
        raise AssertionError

    search = stepped(Given(margin), equalities=Known(holds=True))
    assert counts(search) == (0, 1, 0, 0, 0)
    first = Box((0.0,), (1.0,))
    some = Known(holds=lambda box: box == first)
    search = stepped(Given(lambda x: arb(1)), first, Box((2.0,), (3.0,)), equalities=some)
    assert counts(search) == (1, 2, 0, 0, 0)


def test_a_box_that_is_settled_is_inside():
    given = Given(exact_at(0.5 * CLOSE, WIDE))
    search = stepped(given, equalities=Known(settles=True))
    assert counts(search) == (1, 1, 0, 0, 0)
    far = Known(settles=True)
    assert stepped(Given(exact_at(2 * CLOSE, WIDE)), equalities=far).inside == 0
    assert "settles" not in dict(far.asked)
    assert stepped(Given(exact_at("nan", WIDE)), equalities=Known(settles=True)).inside == 0
    # A very narrow box is looked at wherever it is.
    narrow = Box((0.0,), (VERY_NARROW,))
    boxes = [narrow, Box((0.5,), (1.0,))]
    search = stepped(Given(exact_at(1.0, WIDE)), *boxes, equalities=Known(settles=True))
    assert search.inside == 1


def test_at_an_open_point_an_equality_is_looked_for():
    given = Given(exact_at(arb(0, 1e-9), WIDE))
    known = Known(find_region=True)
    search = stepped(given, equalities=known)
    assert search.todo == [Box((0.0,), (1.0,))] and not search.stuck
    known = Known(find_region=lambda box: box == Box((0.5,), (0.5,)))
    assert stepped(given, equalities=known).todo == [Box((0.0,), (1.0,))]
    assert [what for name, what in known.asked if name == "find_region"] == [
        Box((0.0,), (1.0,)), Box((0.5,), (0.5,))
    ]  # fmt: skip
    assert stepped(given, equalities=Known(find_region=True, spent=True)).stuck
    # One that is in a region is no obstacle.
    search = stepped(given, equalities=Known(covered=lambda point: point == (0.5,)))
    assert len(search.todo) == 2 and not search.stuck


def test_a_region_cuts_the_boxes_at_its_end():
    known = Known(cut=(0, 0.875))
    search = stepped(Given(exact_at(1.0, WIDE)), equalities=known)
    assert sorted(search.todo) == [Box((0.0,), (0.875,)), Box((0.875,), (1.0,))]


def test_in_narrow_boxes_with_little_margin_equalities_are_looked_for():
    asked = lambda known: [what for name, what in known.asked if name == "find_region"]
    narrow, wide = Box((0.0,), (NARROW,)), Box((0.0,), (1.0,))
    for middle, box, looks in ((0.5 * CLOSE, narrow, 1), (0.5 * CLOSE, wide, 0),
                               (2 * CLOSE, narrow, 0)):  # fmt: skip
        known = Known(find_region=True)
        search = stepped(Given(exact_at(middle, WIDE)), box, Box((1.0,), (1.0,)), equalities=known)
        assert (box in asked(known)) == bool(looks)
        assert (box in search.todo) == bool(looks)
    known, off = Known(find_region=True), Box((1.0 - NARROW,), (1.0,))
    search = stepped(Given(exact_at(0.5 * CLOSE, WIDE)), off, Box((0.0,), (0.0,)), equalities=known)
    assert off in asked(known) and off in search.todo
    known = Known(find_region=True, cut=(0, NARROW / 4))  # where a region ends it is cut first
    search = stepped(Given(exact_at(0.5 * CLOSE, WIDE)), narrow, wide, equalities=known)
    assert Box((0.0,), (NARROW / 4,)) in search.todo


# Programs.


def margin(p):
    return p[0] - 2 * p[1], 1.0 + p[0], 0.25, p[0] > p[1]


def test_a_program_on_some_boxes():
    with float64_on_cpu():
        programs = Programs(margin, 2, 0.5, "exact")
        boxes = [
            Box((2.0, 0.0), (3.0, 1.0)),
            Box((0.0, 5.0), (1.0, 6.0)),
            Box((0.0, 0.5), (1.0, 0.5)),
        ]
        balls = balls_of(boxes)[2]
        found = programs(balls, slopes=True)
        assert len(found.margin) == len(found.needed) == len(found.slopes) == 3
        assert found.needed.tolist() == [1, 0, 2]
        for row, box in enumerate(boxes):
            least = box.lower[0] - 2 * box.upper[1] + 0.5
            most = box.upper[0] - 2 * box.lower[1] + 0.5
            assert found.margin[row].contains(arb(least)) and found.margin[row].contains(arb(most))
            assert float(found.margin[row].rad()) < 0.51 * (most - least)
            assert found.slopes[row][0] == 1 and found.slopes[row][1] == -2
        points = reals((1, 2), [arb(3), arb(0.5)])
        found = programs(points, slopes=False)
        assert (found.margin[0], found.scale[0], found.stated[0]) == (2.5, 4, 0.25)
        assert found.needed.tolist() == [1] and all(v.is_nan() for v in found.slopes[0])
        assert not programs.widened


def test_a_constant_margin_has_no_slopes_and_a_program_is_read_once():
    with float64_on_cpu():
        programs = Programs(lambda p: (jnp.asarray(1.0), 1.0, 0.0, True), 1, 0.0, "exact")
        found = programs(balls_of([Box((0.0,), (1.0,))])[2], slopes=True)
        assert found.margin[0] == 1 and found.slopes[0][0].is_nan() and found.needed[0] == 1
        widened = Programs(lambda p: (p[0] * 0.1 * p[0] ** p[0], 1.0, 0.0, True), 1, 0.0, "ulp")
        widened(balls_of([Box((1.0,), (2.0,))])[2], slopes=True)  # no slopes: x^x
        assert widened.widened


def test_an_open_choice_is_undecided_and_a_loop_runs_box_by_box():
    def loop(p):
        more = lambda c: c[1] < 4 * p[0]
        count, _ = lax.while_loop(more, lambda c: (c[0] + 1.0, c[1] + 1.0), (p[1], 0.5))
        return count, 1.0, 0.0, True

    with float64_on_cpu():
        programs = Programs(loop, 2, 0.0, "exact")
        points = reals((2, 2), [arb(0.5), arb(10), arb(1), arb(20)])
        found = programs(points, slopes=True)
        assert found.margin.tolist() == [12, 24] and found.needed.tolist() == [1, 1]
        position = lambda p: (jnp.array([1.0, 2.0])[jnp.argmax(p)], 1.0, 0.0, True)
        programs = Programs(position, 2, 0.0, "exact")
        with pytest.raises(Undecided):
            programs(balls_of([Box((0.0, 0.0), (1.0, 1.0))])[2], slopes=False)
        assert programs(reals((1, 2), [arb(0), arb(1)]), slopes=False).margin[0] == 2
