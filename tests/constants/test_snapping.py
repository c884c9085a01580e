"""Which coordinates move together, and the nearby instances: worked out by hand."""

import math

import numpy as np
import pytest

from jaxbounds.constants.snapping import TOLERANCES, bases, snapped, tied


def vectors(**leaves):
    return {name: np.array(leaf, float) for name, leaf in leaves.items()}


def test_leaves_of_one_shape_in_pairs_as_middle_and_half_difference():
    instance = vectors(a=[7, 9], b=[1, 5], c=[2, 3, 4], d=[0, 0], e=[8])
    plain, paired = bases(instance)
    x = np.array([7, 9, 1, 5, 2, 3, 4, 0, 0, 8.0])
    np.testing.assert_array_equal(plain.coordinates(x), x)
    np.testing.assert_array_equal(plain.expand(x), x)
    y = [4, 7, 3, 2, 2, 3, 4, 0, 0, 8]  # a and b alone: each leaf has one partner at most
    np.testing.assert_array_equal(paired.coordinates(x), y)
    np.testing.assert_array_equal(paired.expand(np.array(y, float)), x)
    np.testing.assert_array_equal(paired.partner, [2, 3, 0, 1, 4, 5, 6, 7, 8, 9])


@pytest.mark.parametrize(
    "leaves", [{"a": [1, 2]}, {"a": [1], "b": [2]}, {"a": [1, 2], "b": [1, 2, 3]}]
)
def test_no_pairs_of_other_shapes_or_of_single_numbers(leaves):
    assert len(bases(vectors(**leaves))) == 1


def test_two_pairs():
    instance = vectors(a=[1, 2], b=[[5, 7]], c=[3, 6], d=[[1, 1]])
    paired = bases(instance)[1]
    y = paired.coordinates(np.array([1, 2, 5, 7, 3, 6, 1, 1.0]))
    np.testing.assert_array_equal(y, [2, 4, 3, 4, -1, -2, 2, 3])


@pytest.mark.parametrize(
    "x, tolerance, values, labels, signs",
    [
        # A group goes on as long as the steps between neighbours are at most a tenth of 10.
        ([10, -9, 8, 6, -5], 0.1, [5.5, 9], [1, 1, 1, 0, 0], [1, -1, 1, 1, -1]),
        # What is at most the tolerance is zero.
        ([10, 1, -1, 1.5, 0], 0.1, [1.5, 10], [1, 0, 0, 0, 0], [1, 0, 0, 1, 0]),
        ([2, -2, 1, 0], 0.0, [1, 2], [1, 1, 0, 0], [1, -1, 1, 0]),
        ([0, 0], 0.3, [], [0, 0], [0, 0]),
        ([2, 0], 0.0, [2], [0, 0], [1, 0]),
        ([3, 1, 2], 0.0, [1, 2, 3], [2, 0, 1], [1, 1, 1]),
    ],
)
def test_entries_near_each_other_take_their_mean(x, tolerance, values, labels, signs):
    ties, found = tied(vectors(x=x), tolerance)
    np.testing.assert_allclose(found, values)
    np.testing.assert_array_equal(ties.signs, signs)
    mine = np.array(signs) != 0
    np.testing.assert_array_equal(ties.labels[mine], np.array(labels)[mine])
    if values:
        wanted = np.array(signs) * np.array(values)[labels]
        np.testing.assert_allclose(ties.expand(found), wanted)


def test_how_near_is_relative_to_each_leaf():
    ties, values = tied(vectors(a=[100, 95], b=[1, 0.5]), 0.1)
    np.testing.assert_allclose(values, [97.5, 0.5, 1])
    np.testing.assert_array_equal(ties.labels, [0, 0, 2, 1])
    assert len(tied({"a": np.zeros((0,)), "b": np.ones(1)}, 0.1)[1]) == 1


def test_ties_in_pairs_are_of_middles_and_differences():
    # Middles 4, 4 and differences 3, 3: two values where there are four numbers.
    instance = vectors(a=[7, 7], b=[1, 1])
    ties, values = tied(instance, 0.0, bases(instance)[1])
    np.testing.assert_array_equal(values, [4, 3])
    np.testing.assert_array_equal(ties.expand(np.array([10.0, 1.0])), [11, 11, 9, 9])


def test_different_ways_to_tie_the_fewest_values_first(known):
    slope = lambda x: np.ones(len(x))
    instance = vectors(x=[1, 0.96, 0.5])
    found = [v for _, v in snapped(known(lambda x: 1.0, slope), instance)]
    # By 0.3 the first two; by 0.1 the same; by 0.03 and less all three.
    assert TOLERANCES[-1] == 0.0
    np.testing.assert_allclose(found[0], [0.5, 0.98])
    np.testing.assert_allclose(found[1], [0.5, 0.96, 1])
    assert len(found) == 2
    # By pairs too, where there are pairs: other ties, of as many values.
    pair = vectors(a=[7, 7], b=[1, 1])
    assert [list(v) for _, v in snapped(known(lambda x: 1.0, slope), pair)] == [[7, 1], [4, 3]]
    assert not list(snapped(known(lambda x: 1.0, slope), vectors(x=[0, 0])))


def test_ties_that_miss_a_hypothesis_are_left_out(known):
    # e^-50 is as far below as what does not count: no ratio is that small beside another.
    height = lambda x: -1.0 if x[0] == x[1] else math.exp(-45)
    found = list(snapped(known(height, np.ones_like), vectors(x=[1, 0.96])))
    assert len(found) == 1
