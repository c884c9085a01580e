"""Data in batches: weights are shares of the examples, and bad data is refused in one sentence."""

import numpy as np
import pytest

from jaxbounds.networks.curvature.batches import count, group

X, Y = np.arange(10.0).reshape(5, 2), np.arange(5)


def test_one_batch_and_none():
    assert group(None, None) is None and count(None) == 1
    (one,) = group((X, Y), None)
    assert one.weight == 1 and one.stacked[0].shape == (1, 5, 2) and count((one,)) == 1


def test_a_list_counts_equally():
    (found,) = group([(X, Y), (X + 1, Y), (X + 2, Y)], None)
    assert found.weight == 1 / 3 and found.stacked[0].shape == (3, 5, 2) and count((found,)) == 3
    np.testing.assert_array_equal(found.stacked[0][1], X + 1)


@pytest.mark.parametrize(
    "size, shapes, weights",
    [
        (2, [(2, 2, 2), (1, 1, 2)], [2 / 5, 1 / 5]), (5, [(1, 5, 2)], [1.0]),
        (7, [(1, 5, 2)], [1.0]),
        (1, [(5, 1, 2)], [1 / 5]), (3, [(1, 3, 2), (1, 2, 2)], [3 / 5, 2 / 5]),
    ],
)  # fmt: skip
def test_examples_are_cut_and_weighted_by_their_number(size, shapes, weights):
    found = group({"x": X, "y": Y}, size)
    assert [g.stacked["x"].shape for g in found] == shapes
    assert [g.weight for g in found] == pytest.approx(weights)
    assert count(found) == sum(shape[0] for shape in shapes)
    rows = np.concatenate([np.reshape(g.stacked["y"], -1) for g in found])
    np.testing.assert_array_equal(rows, Y)
    assert sum(g.weight * g.stacked["x"].shape[0] for g in found) == pytest.approx(1)


@pytest.mark.parametrize(
    "batches, size, words",
    [
        ([], None, "is empty"), (iter([X]), None, "only once"), ((), None, "hold no arrays"),
        (None, 2, "without data"), ([X], 2, "expected only one"), ([X, X[:3]], None, "batch 1 and"),
        ([X, X.astype(np.int32)], None, "batch 1 and batch 0"), ([X, X, X[:1]], None, "batch 2"),
        ((X, Y[:3]), 2, "one positive length n"), ((X, np.float64(3)), 2, "one positive length n"),
        ((X[:0], Y[:0]), 2, "one positive length n"), ((X, Y), 0, "one positive length n"),
    ],
)  # fmt: skip
def test_data_that_makes_no_batches(batches, size, words):
    with pytest.raises(ValueError, match=words):
        group(batches, size)


def test_four_arrays_of_a_batch_are_shown():
    five = tuple(np.zeros(k) for k in range(1, 6))
    with pytest.raises(ValueError) as said:
        group([five, five[:4]], None)
    assert "[4], ...)" in str(said.value) and "[4])" in str(said.value)
