"""What a ratio does far out, from its values at scales 2^m, which are written down here.

The ratios are functions of m that anybody can draw: powers of two, exponentials of lines with
bends, sequences that settle. Where a rule has a threshold, a value lies on each side of it.
"""

import math

import pytest
from flint import arb

from jaxbounds.constants.growth import STEPS, _lawful, _steady, _steady_in_logs, growth
from jaxbounds.programs.balls.interpreter import precision
from jaxbounds.programs.balls.values import NotSupported, Undecided


@pytest.fixture(autouse=True)
def many_bits():
    with precision(448):
        yield


def lines(*points):
    return [(m, arb(v)) for m, v in points]


@pytest.mark.parametrize(
    "points, keeps, steady",
    [
        (((0, 0), (1, 9), (2, 10), (3, 11), (4, 12)), 1.0, True),  # the first slopes do not count
        (((0, 0), (1, 1.5), (2, 2.5), (3, 3.5)), 1.0, False),  # those before the last do
        (((0, 0), (1, 1), (2, 2.5), (3, 3.5)), 1.0, False),
        (((0, 0), (1, 1), (2, 2.125), (3, 3.125)), 0.85, True),
        (((0, 0), (1, 1), (2, 2.125), (3, 3.125)), 0.9, False),
        (((0, 0), (2, 2), (6, 6), (16, 16)), 1.0, True),  # over scales of other lengths
        (((0, 0), (2, 2), (6, 6), (16, 15)), 1.0, False),
        (((0, 0), (1, -1), (2, -2), (3, -3)), 0.5, False),
        (((0, 1), (1, 1), (2, 1), (3, 1)), 0.5, False),
        (((0, 0), (1, 0), (2, 0), (3, 1e-12)), 1.0, False),  # rounding
        (((0, 0), (1, 0), (2, 0), (3, 0.95e-12)), 1.0, False),
        (((0, 0), (1, 0), (2, 0), (3, 1.05e-12)), 1.0, True),
    ],
)
def test_a_local_exponent_that_does_not_decay(points, keeps, steady):
    assert _steady(lines(*points), keeps) is steady


@pytest.mark.parametrize(
    "points, steady",
    [
        (((17, 17), (20, 20), (30, 30), (40, 40)), True),  # one for each doubling of m
        (((14, 50), (17, 17), (20, 20), (30, 30), (40, 40)), True),  # nearer ones do not count
        (((14, 14), (17, 17), (20, 20), (30, 30)), False),  # four far ones are the least
        (((17, 0), (20, 3), (30, 13), (40, 22.1)), True),
        (((17, 0), (20, 3), (30, 13), (40, 21.9)), False),
        (((17, 0), (20, 3.4), (30, 13), (40, 23)), False),  # all those before count
        (((17, 0), (20, 0), (30, 0), (40, 0.95e-5)), False),
        (((17, 0), (20, 0), (30, 0), (40, 1.05e-5)), True),
    ],
)
def test_growth_as_a_power_of_the_logarithm(points, steady):
    assert _steady_in_logs([(2**k, arb(v)) for k, v in points]) is steady


class Along:
    """A ratio by its logarithm as a function of m, refused beyond `until`; notes what was asked."""

    def __init__(self, log, ulp=None, until=math.inf, refusal=Undecided):
        self.log, self.ulp = log, ulp or log
        self.until, self.refusal, self.asked = until, refusal, []

    def __call__(self, m, reading):
        self.asked.append((m, reading))
        if m > self.until:
            raise self.refusal("beyond")
        return arb((self.ulp if reading == "ulp" else self.log)(m)).exp()


def powers(*exponents):
    """2^e at the scales that every ratio is followed to, one after the other."""
    at = dict(zip(STEPS, exponents))

    def value(m, reading):
        if m not in at:
            raise Undecided("beyond")
        return arb((1, at[m]))

    return value


@pytest.mark.parametrize(
    "exponents, endless",
    [
        ((0, 1, 3, 6, 30, 101), True),
        ((0, 1, 3, 6, 30, 100), False),  # 2^100 is the least, and must be passed
        ((7, 8, 10, 13, 37, 107), False),  # of where it started
        ((7, 8, 10, 13, 37, 108), True),
        ((0, 40, 80, 90, 101, 102), False),  # it comes to rest
        ((0, 1, 3, 6, 300), False),  # five scales are too few
        ((0, -1, -3, -6, -30, -101), False),
    ],
)
def test_what_explodes_before_it_ends(exponents, endless):
    found = growth(powers(*exponents))
    assert (found is not None) == endless
    if found:
        assert found.endless and not found.settled and found.left == found.rise == math.inf
        assert found.ratio == found.certain == arb((1, exponents[-1])) and not found.lawful


@pytest.mark.parametrize(
    "exponents",
    [
        (0, 1, 2, 3, 4, 5, 5, 5, 4),  # it came down at last
        (0, 9, 2, 3, 4, 5, 6, 6, 6),  # it was larger before
        (3, 1, 2, 2, 2, 3, 3, 3, 3),  # it ends where it began
        (5, 1, 2, 2, 2, 3, 3, 3, 3),
    ],
)
def test_what_was_larger_before_is_no_supremum_at_the_end(exponents):
    assert growth(powers(*exponents)) is None


def settles(m, least=0.0):
    """From 0 to 1, at the rate 2^-m."""
    return 1 - arb((1, -m)) + least


def test_a_ratio_that_settles():
    # e^(1 - 2^-m) from 1 to e.
    found = growth(Along(settles))
    assert found.settled and not found.endless and abs(found.ratio / arb(1).exp() - 1) < 1e-60
    assert found.certain.overlaps(found.ratio) and found.rise == pytest.approx(math.e - 1)
    assert found.left < 1e-30 and not found.lawful  # a rise so large needs no law


def test_what_was_known_is_kept_where_it_ends():
    # Refused beyond 2^200: what is known is from 2^80 and 2^100.
    for refusal in (Undecided, NotSupported):
        slow = Along(lambda m: 1 - 1 / arb(m + 1), until=200, refusal=refusal)
        found = growth(slow)
        assert not found.settled and not found.endless
        assert abs(found.ratio / (1 - 1 / arb(101)).exp() - 1) < 1e-60
        assert found.left == pytest.approx(math.expm1(1 / 81 - 1 / 101), rel=0.02)
        assert found.rise == pytest.approx(math.expm1(1 - 1 / 101), rel=1e-9)


def bent(bend, keeps):
    """Rises by one from scale to scale, from m = 80 on by so much less."""
    return lambda m: arb(min(m, bend)) + keeps * arb(max(m - bend, 0))


@pytest.mark.parametrize(
    "keeps, endless", [(0.985, True), (0.975, False), (1.1, True), (0.0, False)]
)
def test_near_by_an_exponent_may_decay_by_two_percent(keeps, endless):
    found = growth(Along(bent(80, keeps), until=100))
    assert found.endless is endless and found.settled is (keeps == 0)
    if endless:
        end = bent(80, keeps)(100)
        assert found.rise == math.inf and abs(found.ratio / end.exp() - 1) < 1e-60
        assert found.left == pytest.approx(1 - math.exp(-20 * keeps), rel=1e-9)


@pytest.mark.parametrize("slope, none", [(0.95e-12, True), (1.05e-12, False)])
def test_a_power_as_small_as_rounding_is_none(slope, none):
    # 100 doublings of it are 1e-10 when it is a millionth of a millionth.
    found = growth(Along(lambda m: slope * arb(m), until=100))
    assert (found is None) == none
    assert none or found.endless


def reading(near, far, start=0.0):
    """The logarithm when constants are balls: at 2^80, from 2^100 on."""
    return lambda m: arb(far if m > 80 else near if m == 80 else start)


@pytest.mark.parametrize(
    "near, far, none",
    [
        (-1.0, -0.95e-12, False), (-1.0, -1.05e-12, True),  # below where it starts
        (0.5, 0.5 - 0.95e-12, False), (0.5, 0.5 - 1.05e-12, True),  # below the scale before
        (0.5, 0.6, False),
    ],
)  # fmt: skip
def test_constants_as_balls_confirm_the_rise(near, far, none):
    # Exactly it goes from 0 to 1.
    found = growth(Along(settles, reading(near, far)))
    assert (found is None) == none
    assert none or abs(found.certain / arb(far).exp() - 1) < 1e-60


@pytest.mark.parametrize("refused", [80, 100])
def test_no_growth_where_constants_as_balls_decide_nothing(refused):
    along = Along(settles)

    def value(m, reading):
        if reading == "ulp" and m == refused:
            raise Undecided("no")
        return along(m, reading)

    assert growth(value) is None


@pytest.mark.parametrize("fall, none", [(0.95e-12, False), (1.05e-12, True)])
def test_what_comes_down_again_far_out_is_no_limit(fall, none):
    found = growth(Along(lambda m: 1 - 1 / arb(m + 1) if m <= 100 else arb(100) / 101 - fall))
    assert (found is None) == none


def test_wide_balls_far_out_say_nothing():
    # Settled to 1e-20 at 2^100; from 2^256 on balls of few bits would set it in motion again.
    def log(m):
        return arb(min(m, 80)) / 80 + (arb("1e-20") if m == 100 else arb(0))

    for bits, followed in ((70, True), (50, False)):

        def far(m, b=bits):
            return arb(1) + arb(0, (1, -b)) if m > 100 else log(m)

        along = Along(lambda m: log(m) if m <= 100 else arb(1) + arb("3e-20"), far)
        found = growth(along)
        assert found.settled
        assert (abs(found.ratio / (arb(1) + arb("3e-20")).exp() - 1) < 1e-40) == followed


def test_while_it_moves_wide_balls_do_not_stop_it():
    # Exactly it moves on, and settles at 2^1024; with constants as balls nothing is known there.
    def far(m):
        return arb("nan") if m > 100 else settles_late(m)

    def settles_late(m):
        return arb(2) - 1 / arb(m + 1) if m < 1000 else arb(2)

    found = growth(Along(settles_late, far))
    assert abs(found.ratio / arb(2).exp() - 1) < 1e-60
    assert abs(found.certain / settles_late(100).exp() - 1) < 1e-60
    # Where not even that is finite, it is as far as before.
    lost = growth(Along(lambda m: arb("nan") if m > 100 else settles_late(m)))
    assert abs(lost.ratio / settles_late(100).exp() - 1) < 1e-60


def lacking(*logs, sign=1):
    """1 - exp(log) at m = -16, -8, 0, 8: what lacks to the end falls by these logarithms."""
    at = dict(zip((-16, -8, 0, 8), logs))
    return lambda m, reading: 1 - sign * arb(at[m]).exp()


@pytest.mark.parametrize(
    "logs, lawful",
    [
        ((-1, -2, -3, -4), True),
        ((-1, -2, -3, -4.04), True), ((-1, -2, -3, -4.06), False),
        ((-1, -2.04, -3.04, -4.04), True), ((-1, -2.06, -3.06, -4.06), False),
        ((-1, -2, -3.06, -4.06), False), ((-1, -2, -2.94, -3.94), False),
        ((-1, -1.0105, -1.021, -1.0315), True), ((-1, -1.0095, -1.019, -1.0285), False),
        ((-4, -3, -2, -1), False), ((-1, -1, -1, -1), False),
    ],
)  # fmt: skip
def test_what_lacks_is_one_power_of_the_scale(logs, lawful):
    assert _lawful(lacking(*logs), arb(1)) is lawful


def test_what_lacks_is_positive_and_certain():
    assert not _lawful(lacking(-1, -2, -3, -4, sign=-1), arb(1))
    assert not _lawful(lambda m, _: 1 - arb((1, -m)) * (m != 8), arb(1))
    for refusal in (Undecided, NotSupported):
        assert not _lawful(Along(lambda m: arb(-m), until=0, refusal=refusal), arb(9))


@pytest.mark.parametrize("rise, lawful", [(0.95e-9, True), (1.05e-9, False)])
def test_a_law_is_asked_for_where_a_rise_is_faint(rise, lawful):
    # 1 - rise 2^-m, which settles to one; what lacks is the first power.
    found = growth(lambda m, reading: 1 - arb(rise) * arb((1, -m)))
    assert found.settled and found.lawful is lawful
    assert found.rise == pytest.approx(rise, rel=1e-6, abs=0)
