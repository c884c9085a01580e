"""The instances that chains of moves keep; `tests/test_moves.py` has the moves themselves."""

import numpy as np
import pytest

from jaxbounds.falsification import moves


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
