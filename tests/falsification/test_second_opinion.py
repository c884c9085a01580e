"""A violation of the size of rounding: each border of what may be rounding, and who is asked."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stubs import measured, statement

import jaxbounds as jb
from jaxbounds.claims.statements import Form, Sides, Size
from jaxbounds.falsification.bench import Bench
from jaxbounds.falsification.programs import UNKEPT
from jaxbounds.falsification.second_opinion import (
    TRUE,
    Referee,
    is_coarse,
    is_rounding,
    no_referee,
    remembering,
    stands,
)

pytestmark = pytest.mark.usefixtures("x64")
ONE = Size({"d": 1})
EDGE = 1 + 1e-9


def _bench(evaluate, **options):
    return Bench(statement(evaluate, **options), 8, UNKEPT)


def _sides(value, other=5.0):
    """The form's own ratio is `value(instance)`; that of a form before it is another number."""

    def evaluate(instance, size):
        return Sides(
            lhs={"derived": other, "printed": value(instance), "control": 0.0},
            rhs={"derived": 1.0, "printed": 1.0, "control": -9.0},
        )

    return evaluate


FORMS = (Form(name="derived"), Form(name="printed"))
FLAT = lambda value: _sides(lambda i: value)
LEAF = {"x": np.ones(50)}


def _rounds(evaluate, instance, value, **options):
    return is_rounding(_bench(evaluate, forms=FORMS, **options), 1, instance, ONE, value)


@pytest.mark.parametrize("excess, small", [(0.95e-6, True), (1.05e-6, False), (-1.0, True)])
def test_what_is_below_a_millionth_may_always_be_rounding(excess, small):
    value = EDGE + excess
    assert _rounds(FLAT(value), LEAF, value) == small
    assert _rounds(FLAT(value), {"n": np.arange(3), "x": np.ones(0)}, value) == small


@pytest.mark.parametrize("leaf, lost", [
    ({"x": np.array([0.0, 1.05e6]), "y": np.zeros(2)}, True),
    ({"x": np.array([0.0, 0.95e6]), "y": np.ones(3)}, False),
    ({"x": np.ones(2), "y": np.array([-1.05e6, 1.0])}, True),
    ({"n": np.array([2_000_000]), "x": np.ones(2)}, False), ({"n": np.array([2_000_000])}, False),
])  # fmt: skip
def test_sides_apart_by_the_last_places_of_the_largest_entry_are_lost(leaf, lost):
    # 2e-6 and 1e-6 differ by 1e-6, a 1e-12th of a million.
    def evaluate(instance, size):
        lhs = {"derived": 3.0, "printed": 2e-6, "control": 0.0}
        return Sides(lhs, {"derived": 1.0, "printed": 1e-6, "control": -9.0})

    assert _rounds(evaluate, leaf, 2.0) == lost
    equal = _bench(evaluate, forms=FORMS, kind="identity")  # whose measurement has no sides
    assert not is_rounding(equal, 1, leaf, ONE, 2.0)


AMOUNT = 1e-4


def _steep(value, towards=1.0, sign=1.0):
    """By `AMOUNT` for each 2^-20 that an entry is moved from one to that side."""
    moved = lambda i: np.max(np.maximum(towards * (i["x"] - 1), 0)) * 2.0**20
    return _sides(lambda i: value + sign * AMOUNT * moved(i))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("towards", [1.0, -1.0])
@pytest.mark.parametrize("part, rounds", [(15.9, True), (16.1, False)])
def test_four_times_what_four_of_the_last_places_do_is_rounding(towards, sign, part, rounds):
    # Of 50 entries moved 8 times by up to four units of 2^-20 one is moved by all of it.
    value = EDGE + part * AMOUNT
    steep = _steep(value, towards, sign)
    assert _rounds(steep, LEAF, value) == rounds
    # Also in a second leaf, beside one that is no float.
    assert _rounds(steep, {"n": np.arange(3), "x": LEAF["x"]}, value) == rounds


@pytest.mark.parametrize("part, rounds", [(15.9, True), (16.1, False)])
def test_four_units_in_the_last_place_are_rounding(part, rounds):
    # Further away it is no number, so that only these are left; 2^-52 is such a unit of one.
    value = EDGE + part * AMOUNT

    def near(i):
        moved = np.max(np.abs(np.abs(i["x"]) - 1))
        return value + (AMOUNT * moved * 2.0**52 if moved < 1e-9 else np.nan)

    assert _rounds(_sides(near), LEAF, value) == rounds
    assert _rounds(_sides(near), {"x": -LEAF["x"]}, value) == rounds
    # Of zeros, that have no part: units of the least numbers there are.
    zeros = {"x": np.zeros(50)}
    tiny = _sides(lambda i: value + AMOUNT * float(np.max(np.abs(i["x"])) / 5e-324))
    assert _rounds(tiny, zeros, value) == rounds


def test_where_nothing_is_a_number_nearby_nothing_points_to_rounding():
    lone = _sides(lambda i: 1.005 if np.all(i["x"] == 1) else np.nan)
    assert not _rounds(lone, LEAF, 1.005)


def test_integers_are_not_moved():
    def counted(i):
        assert np.all(i["n"] == np.arange(3)) and i["n"].dtype == np.int64
        return 1.005

    assert not _rounds(_sides(counted), {"n": np.arange(3), "x": np.ones(2)}, 1.005)
    assert not _rounds(_sides(counted), {"n": np.arange(3)}, 1.005)


class _Elsewhere(Bench):
    """No statement on the host; its form is 2 at ones, and further away it is steep."""

    def __init__(self):
        super().__init__(statement(FLAT(2.0), forms=FORMS, host=False), 8, UNKEPT)
        self.seen = []

    def one(self, instance, size):
        return measured([5.0, 2.0], lhs=[5.0, 2.0])

    def __call__(self, batch, size):
        self.seen.append(len(batch["x"]))
        steep = 2 + np.max(np.abs(batch["x"] - 1), axis=1) * 1e9
        return measured(np.stack([np.full(len(steep), 5.0), steep], axis=1))


def test_elsewhere_it_is_measured_again_whatever_it_is():
    bench = _Elsewhere()
    assert is_rounding(bench, 1, LEAF, ONE, 2.0) and bench.seen == [16]
    assert not is_rounding(bench, 0, LEAF, ONE, 5.0)


# Who is asked


@pytest.mark.parametrize(
    "excess, evaluate, said, asked, confirmed",
    [
        # Clear and large, too: what cancels may be as large.
        (0.0105, FLAT(EDGE + 0.0105), Referee("undecided", TRUE), True, False),
        (0.0105, FLAT(EDGE + 0.0105), Referee("undecided", "nobody knows"), True, True),
        # Clear and small: it stands unless the claim is true there.
        (0.0095, FLAT(EDGE + 0.0095), Referee("undecided", "nobody knows"), True, True),
        (0.0095, FLAT(EDGE + 0.0095), Referee("undecided", TRUE), True, False),
        (0.0095, FLAT(EDGE + 0.0095), Referee("disproved", "so"), True, True),
        # Of the size of rounding: it stands only where it is confirmed.
        (0.5e-6, FLAT(EDGE + 0.5e-6), Referee("undecided", "nobody knows"), True, False),
        (0.5e-6, FLAT(EDGE + 0.5e-6), Referee("absent", "no"), True, False),
        (0.5e-6, FLAT(EDGE + 0.5e-6), Referee("undecided", TRUE), True, False),
        (0.5e-6, FLAT(EDGE + 0.5e-6), Referee("disproved", "so"), True, True),
        (0.5e-6, FLAT(EDGE + 0.5e-6), Referee("disproved as coded", "so"), True, True),
        (
            0.0095,
            _sides(lambda i: EDGE + 0.0095 + np.max(np.abs(i["x"] - 1)) * 2.0**20),
            Referee("undecided", "nobody knows"),
            True,
            False,
        ),
    ],
)
def test_a_violation_stands_where_it_is_clear_or_confirmed(
    excess, evaluate, said, asked, confirmed
):
    questions = []

    def referee(claim, form, instance, size):
        questions.append((claim.id, form.name, instance["x"][0], dict(size)))
        return said

    bench = _bench(evaluate, forms=FORMS)
    found = stands(bench, FORMS[1], (LEAF, ONE, EDGE + excess), referee)
    assert (found == "") == confirmed
    assert questions == ([("mine.claim", "printed", 1.0, {"d": 1})] if asked else [])
    if not confirmed:
        assert said.reason in found and f"a ratio of 1 + {excess:.2g}" in found


def test_a_large_violation_of_lost_sides_is_asked_about():
    def evaluate(instance, size):
        lhs = {"derived": 3.0, "printed": 2e-6, "control": 0.0}
        return Sides(lhs, {"derived": 1.0, "printed": 1e-6, "control": -9.0})

    asked = lambda *_: Referee("undecided", "nobody knows")
    bench = _bench(evaluate, forms=FORMS)
    assert stands(bench, FORMS[1], ({"x": np.full(2, 2e6)}, ONE, 2.0), asked) != ""
    assert stands(bench, FORMS[1], ({"x": np.full(2, 5e5)}, ONE, 2.0), asked) == ""


def test_where_nobody_can_be_asked():
    said = no_referee(statement(), FORMS[0], LEAF, ONE)
    assert said.word == "absent" and not said.is_true
    assert Referee("undecided", TRUE).is_true and not Referee(TRUE, "").is_true


def test_a_question_is_asked_once():
    asked = []

    def referee(claim, form, instance, size):
        asked.append((form.name, float(instance["x"].ravel()[0]), dict(size)))
        return Referee("undecided", str(len(asked)))

    first, second = statement(FLAT(1.0)), statement(FLAT(1.0))
    again = remembering(referee)
    at = lambda x: {"x": np.full(2, x)}
    said = [
        again(claim, claim.forms[0], at(x), Size(size))
        for claim, x, size in [
            (first, 1.0, {"n": 1}), (first, 1.0, {"n": 1}), (first, 2.0, {"n": 1}),
            (first, 1.0, {"n": 2}), (second, 1.0, {"n": 1}), (first, 2.0, {"n": 1}),
        ]
    ]  # fmt: skip
    # Another instance, size or statement is another question; so is -0.0, which is not 0.0.
    assert [one.reason for one in said] == ["1", "1", "2", "3", "4", "2"] and len(asked) == 4
    zero = [again(first, first.forms[0], at(x), Size({"n": 1})).reason for x in (0.0, -0.0)]
    assert zero == ["5", "6"]


def _expm(lhs, rhs):
    """The bench of a claim about exponentials of two matrices, which has measured an instance."""
    e = jax.scipy.linalg.expm
    both = {"a": jb.Reals((2, 2)), "b": jb.Reals((2, 2))}
    claim = jb.claim("t.e", lambda a, b: lhs(e, a, b), "<=", lambda a, b: rhs(e, a, b), over=both)
    return Bench(claim, 8, UNKEPT)


NORM = jnp.linalg.norm
TRUE_CLAIM = (
    lambda e, a, b: NORM(e(a + b) - e(a) @ e(b)),
    lambda e, a, b: NORM(a @ b - b @ a) * jnp.exp(NORM(a) + NORM(b)) / 2,
)
FALSE_CLAIM = lambda e, a, b: NORM(e(a + b)), lambda e, a, b: 1.01 * NORM(e(a)) * NORM(e(b))


@pytest.mark.parametrize("sides, a, b, coarse", [
    # The sides cancel to less than the error of expm; the ratio of the floats is 2e10.
    (TRUE_CLAIM,
     [[0.5500245573439606, 0.06845375825567647], [-0.9327512618119005, 21.450095388375797]],
     [[0.5326674826868003, 0.06629356926639837], [-0.9033165155416439, 20.77319668978474]], True),
    (FALSE_CLAIM, [[0.0, 5.0], [0.0, 0.0]], [[0.0, 0.0], [5.0, 0.0]], False),
])  # fmt: skip
def test_an_approximate_function_errs_by_a_share_of_its_terms(sides, a, b, coarse):
    bench, instance = _expm(*sides), {"a": np.array(a), "b": np.array(b)}
    value = float(bench.one(instance, Size({})).value[0])
    assert value > 4
    assert is_coarse(bench, 0, (instance, Size({}), value)) == coarse


def test_an_infinite_side_is_a_violation_only_if_ball_arithmetic_confirms_it():
    bench = _bench(FLAT(np.inf), forms=FORMS)
    found = LEAF, ONE, np.inf
    assert "infinite in floats at" in stands(bench, FORMS[1], found, no_referee)
    disproves = lambda *asked: Referee("disproved", "the sides are apart")
    assert not stands(bench, FORMS[1], found, disproves)
