"""What is looked at beside the draws of a claim about a mean, by hand."""

import numpy as np
import pytest
from stubs import measured, statement

from jaxbounds.falsification.bench import Bench, Pool
from jaxbounds.falsification.programs import UNKEPT
from jaxbounds.falsification.reach import _beside, _beyond, reach

NAN = np.nan


@pytest.mark.parametrize("values, ends", [
    # The gap between the fourth draw and the last, and a third of it; of fewer the whole range.
    ([5.0, 1, 2, 9, 30], [1, 30, 1 - 8, 30 + 28, 1 - 8 / 3, 30 + 28 / 3, 0.0]),
    ([10.0, 13], [10, 13, 7, 16, 9, 14]), ([10.0, 13, 16, 19], [10, 19, 1, 28, 7, 22]),
    ([4.0], [4] * 6),
    # Zero where it lies within, or within a gap beside: on either side, and at its ends.
    ([-1.0, 2], [-1, 2, -4, 5, -2, 3, 0]), ([3.0, 6], [3, 6, 0, 9, 2, 7, 0]),
    ([3.5, 6], [3.5, 6, 1, 8.5, 3.5 - 2.5 / 3, 6 + 2.5 / 3]),
    ([-6.0, -3], [-6, -3, -9, 0, -7, -2, 0]), ([-6.0, -3.5], [-6, -3.5, -8.5, -1, -6 - 2.5 / 3,
                                                             -3.5 + 2.5 / 3]),
    ([0.5, 3.5], [0.5, 3.5, -2.5, 6.5, -0.5, 4.5, 0]),
    ([-3.5, -0.5], [-3.5, -0.5, -6.5, 2.5, -4.5, 0.5, 0]),
    ([0.0, 1], [0, 1, -1, 2, -1 / 3, 4 / 3, 0]), ([-1.0, 0], [-1, 0, -2, 1, -4 / 3, 1 / 3, 0]),
    # Of several the gaps differ: 1 below, 90 above.
    ([-100.0, -99.5, -99.25, -99, -98, -97, -95, -10], [-100, -10, -101, 78, -100 - 1 / 3,
                                                      -10 + 88 / 3, 0]),
])  # fmt: skip
def test_the_extremes_of_a_coordinate_and_beyond(values, ends):
    np.testing.assert_allclose(_beyond(np.array(values)), ends)


def test_each_entry_of_the_first_two_draws_is_moved_alone():
    batch = {
        "n": np.array([5, 6, 7]),
        "x": np.array([[[10.0, 20]], [[13, 26]], [[11, 23]]]),
        "z": np.zeros((3, 0)),
    }
    found = list(_beside(batch))
    assert len(found) == 2 * 6 * 2
    first, second = found[0], found[1]
    assert (first["x"].tolist(), int(first["n"])) == ([[10, 20]], 5)
    assert (second["x"].tolist(), int(second["n"])) == ([[10, 26]], 6)
    assert [one["x"].tolist() for one in found[4:6]] == [[[7, 20]], [[7, 26]]]
    assert [one["x"].tolist() for one in found[14:16]] == [[[10, 26]], [[13, 26]]]
    assert batch["x"][0].tolist() == [[10, 20]]
    # Two leaves: the other one stays as it was drawn.
    two = list(_beside({"a": np.array([10.0, 13]), "b": np.array([20.0, 26])}))
    assert [(float(i["a"]), float(i["b"])) for i in two[::4]] == [
        (10, 20), (7, 20), (9, 20), (10, 20), (10, 14), (10, 18)
    ]  # fmt: skip


def test_of_many_entries_sixteen_are_moved():
    assert len(list(_beside({"x": np.ones((2, 17))}))) == 16 * 6 * 2
    assert len(list(_beside({"x": np.ones((2, 3))}))) == 3 * 6 * 2


class _Fake(Bench):
    """lhs - rhs is x, and 10 x for the control; not met at 7 and infinite at 16."""

    def __init__(self, **options):
        claim = statement(host=False, sizes=({"d": 1}, {"d": 2}), **options)
        super().__init__(claim, 4, UNKEPT)
        self.asked = []

    def __call__(self, batch, size):
        x = batch["x"]
        self.asked.append((size["d"], x.tolist()))
        difference = np.where(x == 16, np.inf, x)
        lhs = np.stack([difference + 2, 10 * x + 2], axis=1)
        return measured(0.0, lhs=lhs, rhs=2.0, met=(x != 7)[:, None] & np.ones(2, bool))


def _pool(*batches):
    pool = Pool()
    for source, size, x in batches:
        pool.add(source, size, {"x": np.array(x)}, measured(np.zeros((len(x), 2))))
    return pool


def test_the_least_and_the_largest_difference_of_each_form():
    bench = _Fake()
    # 10, 13 and beyond: 7 misses a hypothesis, and 16 is infinite.
    assert reach(bench, _pool(("draws", 0, [10.0, 13]))) == [(9, 14), (90, 160)]
    assert bench.asked == [(1, [10, *np.repeat([10, 13, 7, 16, 9, 14], 2)])]
    # Of both sizes together, each measured at its own.
    found = reach(bench, _pool(("draws", 0, [10.0, 13]), ("draws", 1, [20.0, 23])))
    assert found == [(9, 26), (90, 260)] and [d for d, _ in bench.asked[1:]] == [1, 2]


@pytest.mark.parametrize("batch", [("cases", 0, [10.0, 13]), ("draws", 0, [10.0])])
def test_cases_and_a_single_draw_say_nothing_of_what_is_beside(batch):
    bench = _Fake()
    found = reach(bench, _pool(batch))
    np.testing.assert_equal(found, [(NAN, NAN)] * 2)
    assert bench.asked == []
    assert reach(bench, _pool(batch, ("draws", 1, [20.0, 23]))) == [(17, 26), (170, 260)]


def test_where_nothing_is_met_nothing_was_seen():
    np.testing.assert_equal(reach(_Fake(), _pool(("draws", 0, [7.0, 7, 7]))), [(NAN, NAN)] * 2)
    fixed = statement()
    np.testing.assert_equal(reach(Bench(fixed, 4, UNKEPT), _pool(("draws", 0, [10.0, 13]))),
                            [(NAN, NAN)] * 2)  # fmt: skip


def test_beside_whole_numbers_there_is_nothing():
    whole = Pool()
    whole.add("draws", 0, {"x": np.array([10, 13])}, measured(np.zeros((2, 2))))
    bench = _Fake()
    np.testing.assert_equal(reach(bench, whole), [(NAN, NAN)] * 2)
    assert bench.asked == []
