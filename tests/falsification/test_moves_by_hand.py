"""What each move does where the dice say how: every draw is scripted, and its range is looked at.

`tests/test_moves.py` has what moves must keep, and the claims that only they refute.
"""

import numpy as np
import pytest
from stubs import Dice

from jaxbounds.falsification import moves

FACTORS = (1e-3, 0.1, 0.3, 0.5, 2.0, 3.0, 10.0, 1e3)


def _moved(move, leaf, *answers, asked=None):
    leaf = np.asarray(leaf, float)
    before, dice = leaf.copy(), Dice(*answers)
    moved = move(leaf, dice)
    np.testing.assert_array_equal(leaf, before)
    assert dice.answers == []
    if asked is not None:
        assert dice.asked == asked
    return moved.tolist()


def test_one_entry_goes_to_zero_or_to_an_end():
    leaf = [[[1, -5], [2, 3]], [[1, 2], [3, 4]], [[0, 0], [0, 0]], [[1, 2], [3, 4]]]
    asked = [("integers", -1, 2, 4), ("integers", 4, 4)]
    found = _moved(moves.entry_to_end, leaf, [1, -1, 1, 0], [0, 3, 2, 1], asked=asked)
    # Of a chain of zeros the end is one.
    assert found == [[[5, -5], [2, 3]], [[1, 2], [3, -4]], [[0, 0], [1, 0]], [[1, 0], [3, 4]]]


def test_one_entry_changes_its_sign_or_its_size():
    leaf = [[1, 2, 3], [4, 5, 6]]
    found = _moved(moves.entry_flipped, leaf, [2, 0], asked=[("integers", 3, 2)])
    assert found == [[1, 2, -3], [-4, 5, 6]]
    asked = [("integers", 3, 2), ("choice", FACTORS, 2)]
    assert _moved(moves.entry_scaled, leaf, [0, 1], [3.0, 0.5], asked=asked) == [
        [3, 2, 3],
        [4, 2.5, 6],
    ]


@pytest.mark.parametrize("sign, chance, found", [
    (1.0, 0.3, [[2, 2, 3], [4, 5, 5]]), (-1.0, 0.3, [[-2, 2, 3], [4, 5, -5]]),
    (1.0, 0.29, [[2, 1, 3], [4, 6, 5]]), (-1.0, 0.29, [[-2, 1, 3], [4, 6, -5]]),
])  # fmt: skip
def test_one_entry_goes_onto_another_or_both_are_exchanged(sign, chance, found):
    asked = [("integers", 3, (2, 2)), ("choice", [1.0, 1.0, -1.0]), ("random",)]
    leaf = [[1, 2, 3], [4, 5, 6]]
    assert _moved(moves.entry_copied, leaf, [[0, 2], [1, 1]], sign, chance, asked=asked) == found
    assert _moved(moves.row_copied, leaf, [[0, 2], [1, 1]], sign, chance, asked=asked) == found


LEAF = np.arange(1.0, 13).reshape(2, 2, 3)
"""Two chains of [[1, 2, 3], [4, 5, 6]] and [[7, 8, 9], [10, 11, 12]]."""


@pytest.mark.parametrize("axis, many, places, sign, found", [
    (1, 2, [[0, 1], [1, 0]], 1.0, [[[4, 5, 6], [4, 5, 6]], [[7, 8, 9], [7, 8, 9]]]),
    (2, 3, [[0, 2], [2, 1]], -1.0, [[[-3, 2, 3], [-6, 5, 6]], [[7, 8, -8], [10, 11, -11]]]),
])  # fmt: skip
def test_a_slice_goes_onto_another(axis, many, places, sign, found):
    asked = [("integers", 1, 3), ("integers", many, (2, 2)), ("choice", [1.0, 1.0, -1.0])]
    assert _moved(moves.row_copied, LEAF, axis, places, sign, asked=asked) == found


@pytest.mark.parametrize("axis, many, at, factors, found", [
    (1, 2, [0, 1], [2.0, 0.0], [[[2, 4, 6], [4, 5, 6]], [[7, 8, 9], [0, 0, 0]]]),
    (2, 3, [2, 0], [-1.0, 3.0], [[[1, 2, -3], [4, 5, -6]], [[21, 8, 9], [30, 11, 12]]]),
])  # fmt: skip
def test_a_slice_is_scaled(axis, many, at, factors, found):
    asked = [("integers", 1, 3), ("integers", many, 2), ("choice", [-1.0, 0.0, *FACTORS], 2)]
    assert _moved(moves.row_scaled, LEAF, axis, at, factors, asked=asked) == found
    # Of chains of vectors an entry is.
    assert _moved(moves.row_scaled, [[1, 2]], [1], [3.0]) == [[1, 6]]


def test_all_is_scaled():
    asked = [("choice", [-1.0, *FACTORS], 2)]
    found = _moved(moves.scaled, LEAF, [-1.0, 2.0], asked=asked)
    assert found == (LEAF * np.array([-1, 2])[:, None, None]).tolist()
    assert _moved(moves.scaled, [1, 2], [3.0, 0.5]) == [3, 1]


def test_a_vertex_has_ends_and_zeros():
    # A tenth of the largest and less is zero.
    assert _moved(moves.vertex, [[-10, 1.01, -1.01, 1, 0.99], [0, 0, 0, 0, 0.5]]) == [
        [-10, 10, -10, 0, 0], [0, 0, 0, 0, 0.5]
    ]  # fmt: skip


@pytest.mark.parametrize("kept, found", [
    ([[1], [3]], [[0, -5, 0], [1, 2, 3]]), ([[2], [2]], [[0, -5, 3], [0, 2, 3]]),
])  # fmt: skip
def test_the_largest_entries_are_kept(kept, found):
    leaf, asked = [[1, -5, 3], [1, 2, 3]], [("integers", 1, 4, (2, 1))]
    assert _moved(moves.sparse, leaf, kept, asked=asked) == found


def test_entries_that_are_not_zero_become_of_one_size():
    # The root of the mean square of 3 and 4 is 5 / sqrt 2; of one entry itself; of none nothing.
    found = _moved(moves.even, [[3, 0, -4], [0, -2, 0], [0, 0, 0]])
    r = 5 / np.sqrt(2)
    np.testing.assert_allclose(found, [[r, 0, -r], [0, -2, 0], [0, 0, 0]])


def test_a_few_entries_are_nudged_relative_to_the_largest():
    leaf, noise = np.array([[1.0, -4, 0, 0, 0, 0], [2, 0, 0, 0, 0, 1]]), np.full((2, 6), 0.5)
    chance = np.array([[0.19, 0.21, 0.5, 0.1, 0.9, 0.9], [0.9, 0.0, 0.9, 0.9, 0.9, 0.2]])
    asked = [("uniform", -3, 0.5, (2, 1)), ("random", (2, 6)), ("normal", (2, 6))]
    found = _moved(
        moves.nudged, leaf, [[-1.0], [0.0]], chance.tolist(), noise.tolist(), asked=asked
    )
    # By a tenth of 4, and by all of 2, times a half.
    np.testing.assert_allclose(found, np.add(leaf, [[0.2, 0, 0, 0.2, 0, 0], [0, 1, 0, 0, 0, 0]]))
    # Of two entries a half are.
    found = _moved(moves.nudged, [[1, 2]], [[0.0]], [[0.49, 0.51]], [[1.0, 1.0]])
    np.testing.assert_allclose(found, [[3, 2]])


def test_a_wide_start_has_entries_of_many_sizes():
    asked = [("choice", (1.0, 2.0, 3.0), (2, 1)), ("normal", (2, 2))]
    found = _moved(
        moves.wide, [[1, 2], [-3, 4]], [[1.0], [2.0]], [[0.0, 1.0], [0.5, -1.0]], asked=asked
    )
    np.testing.assert_allclose(found, [[1, 2 * np.e], [-3 * np.e, 4 * np.exp(-2)]])


@pytest.mark.parametrize(
    "small, large, found",
    [
        (
            [[1, 2], [3, 4]],
            np.full((3, 3), 9),
            [
                [[1, 2, 1], [3, 4, 3], [1, 2, 1]],
                [[1, 2, 2], [3, 4, 4], [3, 4, 4]],
                [[1, 2, 0], [3, 4, 0], [0, 0, 0]],
                [[1, 2, 9], [3, 4, 9], [9, 9, 9]],
            ],
        ),
        ([1, 2, 3], np.full(2, 9), [[1, 2]] * 4),  # what is larger is cut
        (5, 9, [5] * 4),
        (np.zeros(0), np.full(2, 9), [[9, 9]] * 4),
        (
            [[1, 2, 3]],
            np.full((2, 2), 9),
            [[[1, 2], [1, 2]]] * 2 + [[[1, 2], [0, 0]], [[1, 2], [9, 9]]],
        ),
    ],
)
def test_an_instance_grows_in_four_ways(small, large, found):
    # The type is that of the larger one where there is anything to fill.
    small, large = np.asarray(small, float), np.asarray(large, np.int32)
    grown = [one["x"] for one in moves.grown({"x": small}, {"x": large})]
    assert [one.tolist() for one in grown] == found
    if small.ndim and small.size:
        assert {one.dtype for one in grown} == {np.dtype(np.int32)}
    assert np.all(large == 9)


# Chains


def _climbed(score, starts, steps=1, seed=0):
    return moves.climb(score, starts, np.random.default_rng(seed), steps, moves.one_leaf)


@pytest.mark.parametrize("first, then, better", [
    (1.0, 1 + 1.05e-12, True), (1.0, 1 + 0.95e-12, False), (-1.0, -1 + 1.05e-12, True),
    (-1.0, -1 + 0.95e-12, False), (1e6, 1e6 + 0.9e-6, False), (0.0, 1e-300, True),
    (-np.inf, -5.0, True), (2.0, -np.inf, False), (-np.inf, -np.inf, False), (2.0, np.nan, False),
])  # fmt: skip
def test_what_is_worse_by_less_than_rounding_is_not_worse(first, then, better):
    def score(instances):
        moved = instances["x"][:, 0] != 1
        return instances, np.where(moved, then, first), np.ones(len(moved), bool)

    found = _climbed(score, {"x": np.ones((6, 1))}, 20)
    left = found.instances["x"][:, 0] != 1
    assert left.any() == better
    np.testing.assert_array_equal(found.score, np.where(left, then, first))
    assert (found.accepted >= left).all() and found.accepted.any() == better


def test_each_chain_keeps_its_own_best():
    # The first of each pair counts when it is large, the second when it is small.
    sign = np.tile([1.0, -1.0], 8)
    score = lambda i: (i, sign * i["x"][:, 0], np.ones(16, bool))
    found = _climbed(score, {"x": np.full((16, 1), 2.0), "n": np.arange(16)}, 50)
    np.testing.assert_array_equal(found.score, sign * found.instances["x"][:, 0])
    assert (found.score > sign * 2).all() and found.instances["n"].tolist() == list(range(16))


@pytest.mark.parametrize("starts", [{"n": np.arange(4)}, {"x": np.ones((4, 0))}])
def test_without_floats_nothing_moves(starts):
    found = _climbed(lambda i: (i, np.ones(4), np.ones(4, bool)), starts, 5)
    assert found.accepted.tolist() == found.met.tolist() == [0] * 4


def test_steps_that_led_elsewhere_and_met_the_hypotheses_are_counted():
    calls = []

    def score(instances):
        calls.append(1)
        met = np.array([True, False, True])
        kept = instances["x"].copy()
        kept[2] = 1.0  # the third is put back to where it was
        return {"x": kept}, np.zeros(3), met

    found = _climbed(score, {"x": np.ones((3, 2))}, 40, seed=3)
    assert len(calls) == 41 and found.accepted.tolist() == [0, 0, 0]
    assert 20 < found.met[0] <= 40 and found.met[1:].tolist() == [0, 0]


def test_what_differs_is_told_by_chain():
    one = [np.zeros((3, 2)), np.zeros(3), np.zeros((3, 0))]
    other = [np.array([[0.0, 0], [0, 1], [0, 0]]), np.array([0.0, 0, 2]), np.zeros((3, 0))]
    assert moves._differ(one, other).tolist() == [False, True, True]


ALIKE = [np.array([[1.0, 2], [3, 4]]), np.array([[5.0, 6], [7, 8]]), np.array([7.0, 8])]


@pytest.mark.parametrize("chance, replaced", [(0.09, True), (0.11, False)])
def test_a_leaf_is_moved_or_replaced_by_another_of_its_shape(chance, replaced):
    flipped = moves.MOVES.index(moves.entry_flipped)
    rest = [0, -1.0] if replaced else [flipped, [0, 1]]
    dice = Dice(0, chance, *rest)
    found = moves.one_leaf(ALIKE, dice)
    wanted = [[-5, -6], [-7, -8]] if replaced else [[-1, 2], [3, -4]]
    assert found[0].tolist() == wanted and found[1] is ALIKE[1] and found[2] is ALIKE[2]
    assert dice.asked[0] == ("integers", 3)
    if replaced:
        assert dice.asked[2:] == [("integers", 1), ("choice", [1.0, -1.0])]
    else:
        assert dice.asked[2] == ("integers", 14)


def test_a_leaf_without_another_of_its_shape_or_of_one_entry_is_moved():
    flipped = moves.MOVES.index(moves.entry_flipped)
    dice = Dice(2, flipped, [0, 0])  # the third: nothing has its shape, so that no chance is taken
    assert moves.one_leaf(ALIKE, dice)[2].tolist() == [-7, -8]
    dice = Dice(0, flipped, [0, 1])  # the other is no leaf that moves
    assert moves.one_leaf([ALIKE[0], ALIKE[1].astype(int), ALIKE[2]], dice)[0].tolist() == [
        [-1, 2],
        [3, -4],
    ]
    numbers = [np.array([[1.0], [2]]), np.array([[3.0], [4]])]
    assert moves.one_leaf(numbers, Dice(0, flipped, [0, 0]))[0].tolist() == [[-1], [-2]]
    narrow = [np.ones((2, 2), np.float32)]
    assert moves.one_leaf(narrow, Dice(0, flipped, [0, 1]))[0].dtype == np.float32
