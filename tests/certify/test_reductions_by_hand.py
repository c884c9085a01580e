"""Rules that fold, order and slide, beside NumPy's exact integers and answers written down here.

NumPy folds and correlates whole numbers without rounding, and knows no balls.
"""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb
from jax import lax
from oracle.hand import ANY, INF, are_images, ball, balls, exactly, is_image, only, ways

from jaxbounds.certification import Flags, NotSupported, Undecided
from jaxbounds.programs.balls.reductions import order_statistics
from jaxbounds.programs.balls.values import as_flags, flags, nonnegative
from jaxbounds.programs.balls.windows import places

pytestmark = pytest.mark.usefixtures("x64")
AROUND = ball(-1, 1)
NUMBERS = np.array([[[3, -1, 4], [1, -5, 9]], [[-2, 6, 5], [3, 5, -8]]])
"""Of shape (2, 2, 3)."""


def test_folds_of_balls():
    x = balls((0, 1), (-3, 2), (1, 4))
    total, most, least = (only(f, x).item() for f in (jnp.sum, jnp.max, jnp.min))
    assert is_image(total, (-2, 7)) and is_image(most, (1, 4)) and is_image(least, (-3, 1))
    assert is_image(only(jnp.sum, balls(0, 0, 0)).item(), 0)
    for fold in (jnp.sum, jnp.max, jnp.min, jnp.prod):
        assert only(fold, balls(1, ANY)).item().is_nan()


def test_folds_of_nothing():
    nothing = np.zeros((2, 0))
    empty = {lax.reduce_sum_p: 0, lax.reduce_prod_p: 1, lax.reduce_max_p: -math.inf,
             lax.reduce_min_p: math.inf}  # fmt: skip
    for fold, value in empty.items():
        act = lambda x, fold=fold: fold.bind(x, axes=(1,), out_sharding=None)
        assert are_images(only(act, nothing), [value, value])


def test_all_and_any_of_what_is_decided():
    x = balls(-1, -1, 1, 1, -1, 1).reshape(3, 2)
    every, some = ways(lambda x: (jnp.all(x > 0, axis=1), jnp.any(x > 0, axis=1)), x)[0]
    assert every.tolist() == [False, True, False] and some.tolist() == [False, True, True]
    x = np.concatenate([x, balls(AROUND, AROUND).reshape(1, 2)])  # so that they are flags
    for act in (lambda x: x > 0, lambda x: x >= 0):
        every, some = ways(lambda x, a=act: (jnp.all(a(x), axis=1), jnp.any(a(x), axis=1)), x)[0]
        assert as_flags(every).tolist() == [0, 1, 0, 2] and as_flags(some).tolist() == [0, 1, 1, 2]


POSITIONS = [
    ([3, 5, 5, 1], 1, 3), ([1, 1, 2], 2, 0), ([-math.inf, 0, math.inf], 2, 0),
    ([(0, 1), (2, 3), (-3, -1)], 1, 2), ([2, (0, 1.5), (0.5, 1.5), -1], 0, 3),
]  # fmt: skip


@pytest.mark.parametrize(("row", "largest", "least"), POSITIONS)
def test_positions(row, largest, least):
    x = balls(*row)
    assert only(lambda x: lax.argmax(x, 0, np.int32), x) == largest
    found = only(lambda x: lax.argmin(x, 0, np.int8), x)
    assert found == least and found.dtype == np.int8


def test_positions_that_are_certain_are_no_choices():
    """Of which only eight may be open: here are ten rows."""
    rows = exactly(np.arange(20).reshape(10, 2))
    assert only(lambda x: lax.argmax(x, 1, np.int32), rows).tolist() == [1] * 10
    assert only(lambda x: lax.top_k(x, 1)[1], rows).tolist() == [[1]] * 10
    assert only(lambda x: lax.top_k(x, 10)[1], rows[:, 0]).tolist() == [*range(9, -1, -1)]


def test_positions_that_are_open_fork():
    x = balls((0, 2), 1, (0, 3), -1)
    assert sorted(int(way[0]) for way in ways(jnp.argmax, x)) == [0, 1, 2]
    assert [int(way[0]) for way in ways(jnp.argmin, x)] == [3]
    with pytest.raises(Undecided, match="position"):
        ways(jnp.argmax, balls(1, ANY))


def test_order_statistics_lie_between_those_of_the_ends():
    found = order_statistics(list(balls((0, 3), (1, 2), -1)))
    assert are_images(np.array(found, object), [-1, (0, 2), (1, 3)])
    exact = order_statistics(list(balls(3, 1, 1, -2, math.inf)))
    assert are_images(np.array(exact, object), [-2, 1, 1, 3, math.inf])
    square = only(lambda x: x * x, balls(AROUND, (-2, 2)))
    assert all(map(nonnegative, order_statistics(list(square))))
    assert not any(map(nonnegative, order_statistics([*square, AROUND, ball(-9, 9)])))


def test_sorting_along_each_axis():
    for axis in (0, 1, 2):
        found = only(lambda x, axis=axis: lax.sort(x, axis), exactly(NUMBERS))
        assert are_images(found, np.sort(NUMBERS, axis=axis).tolist())
    with pytest.raises(Undecided, match="a number is unknown"):
        ways(lax.sort, balls(1, ANY, 2))


def together(*, keys=1, axis=0):
    return lambda *xs: lax.sort(xs, dimension=axis, num_keys=keys)


def test_numbers_sorted_together():
    """Equal ones stay in their order, unless a second key says another one."""
    keys, rest = balls(2, 1, 2, 0), balls(5, 6, 4, 7)
    ((first, second),) = ways(together(), keys, rest)
    assert are_images(first, [0, 1, 2, 2]) and are_images(second, [7, 6, 5, 4])
    ((first, second),) = ways(together(keys=2), keys, rest)
    assert are_images(first, [0, 1, 2, 2]) and are_images(second, [7, 6, 4, 5])
    ((first, second),) = ways(together(), np.array([2, 1, 2, 0]), balls(5, AROUND, 4, 7))
    assert first.tolist() == [0, 1, 2, 2] and are_images(second, [7, (-1, 1), 5, 4])
    ((first, second),) = ways(together(axis=1), keys.reshape(2, 2), rest.reshape(2, 2))
    assert are_images(first, [[1, 2], [0, 2]]) and are_images(second, [[6, 5], [7, 4]])
    ((first, second),) = ways(together(axis=0), keys.reshape(2, 2), rest.reshape(2, 2))
    assert are_images(first, [[2, 0], [2, 1]]) and are_images(second, [[5, 7], [4, 6]])


@pytest.mark.parametrize("keys", [(AROUND, 0), (ANY, 0), ((0, 2), (1, 3)), (AROUND, AROUND)])
def test_an_open_order_of_numbers_sorted_together_is_undecided(keys):
    with pytest.raises(Undecided, match="sorted together"):
        ways(together(), balls(*keys), balls(1, 2))


def test_sorting_by_open_flags_forks_and_with_them_does_not():
    act = lambda x, n: lax.sort((x > 0, n), num_keys=1)
    found = sorted(tuple(way[1].tolist()) for way in ways(act, balls(AROUND, -1), np.array([7, 8])))
    assert found == [(7, 8), (8, 7)]
    assert all(way[0].dtype == bool for way in ways(act, balls(AROUND, -1), np.array([7, 8])))
    found = [way[0].tolist() for way in ways(lambda x: lax.sort(x > 0), balls(1, AROUND, -1))]
    assert sorted(found) == [[False, False, True], [False, True, True]]
    act = lambda n, x: lax.sort((n, x > 0), num_keys=1)
    ((_, found),) = ways(act, np.array([2, 1, 0]), balls(AROUND, 1, -1))
    assert as_flags(found).tolist() == [0, 1, 2]


def test_the_largest():
    ((values, where),) = ways(lambda x: lax.top_k(x, 2), balls(1, 4, 3, 4, -7))
    assert are_images(values, [4, 4]) and where.tolist() == [1, 3]
    ((values, where),) = ways(lambda x: lax.top_k(x, 3), balls(1, 4, 3, 2))
    assert are_images(values, [4, 3, 2]) and where.tolist() == [1, 2, 3]
    ((values, where),) = ways(lambda x: lax.top_k(x, 1), exactly(NUMBERS))
    assert are_images(values, [[[4], [9]], [[6], [5]]]) and where.tolist() == [
        [[2], [2]],
        [[1], [1]],
    ]


def test_the_largest_that_are_open_fork():
    x = balls((0, 2), 1, -1)
    found = ways(lambda x: lax.top_k(x, 2), x)
    assert sorted(way[1].tolist() for way in found) == [[0, 1], [1, 0]]
    assert all(are_images(way[0], [(1, 2), (0, 1)]) for way in found)
    assert len(ways(lambda x: lax.top_k(x, 2)[0], x)) == 1  # where they stand is not asked
    zeros = ways(lambda x: lax.top_k(x, 1), balls(0, 0))  # -0. is below 0.
    assert sorted(way[1].tolist() for way in zeros) == [[0], [1]]
    with pytest.raises(Undecided, match="unknown"):
        ways(lambda x: lax.top_k(x, 1), balls(1, ANY))


# Windows.


@pytest.mark.parametrize(
    ("shape", "window", "strides", "padding", "holes", "apart", "seen"),
    [
        ((3,), (2,), (1,), [(0, 0)], (1,), (1,), [[0, 1], [1, 2]]),
        ((5,), (2,), (2,), [(0, 0)], (1,), (1,), [[0, 1], [2, 3]]),
        ((3,), (2,), (1,), [(1, 2)], (1,), (1,), [[-1, 0], [0, 1], [1, 2], [2, -1], [-1, -1]]),
        ((3,), (2,), (1,), [(-1, 0)], (1,), (1,), [[1, 2]]),
        ((4,), (2,), (1,), [(0, -2)], (1,), (1,), [[0, 1]]),
        ((4,), (2,), (1,), [(-1, -1)], (1,), (1,), [[1, 2]]),
        ((2,), (3,), (1,), [(0, 0)], (3,), (1,), [[0, -1, -1], [-1, -1, 1]]),
        ((4,), (2,), (1,), [(0, 0)], (1,), (2,), [[0, 2], [1, 3]]),
        ((5,), (3,), (1,), [(0, 0)], (1,), (2,), [[0, 2, 4]]),
        ((0,), (1,), (1,), [(1, 0)], (2,), (1,), [[-1]]),
        ((1,), (3,), (1,), [(0, 0)], (1,), (1,), []),
        ((1,), (1,), (2,), [(0, 0)], (1,), (1,), [[0]]),
        ((2, 3), (2, 2), (1, 1), [(0, 0)] * 2, (1, 1), (1, 1), [[[0, 1, 3, 4], [1, 2, 4, 5]]]),
        ((2, 2), (1, 2), (1, 2), [(0, 0), (1, 1)], (1, 1), (1, 1),
         [[[-1, 0], [1, -1]], [[-1, 2], [3, -1]]]),
        ((), (), (), [], (), (), [0]),
    ],
)  # fmt: skip
def test_what_windows_see(shape, window, strides, padding, holes, apart, seen):
    assert places(shape, window, strides, padding, holes, apart).tolist() == seen


ONE = {"window_strides": (1,), "base_dilation": (1,), "window_dilation": (1,)}


def windowed(name, padding):
    return lambda x: getattr(lax, f"{name}_p").bind(
        x, window_dimensions=(2,), padding=(padding,), **ONE
    )


def test_pools():
    """What is padded counts for nothing; a window that sees nothing else gives the empty fold."""
    x = balls(3, -1, (0, 4))
    assert are_images(only(windowed("reduce_window_sum", (0, 3)), x), [2, (-1, 3), (0, 4), 0, 0])
    inf = math.inf
    most = only(windowed("reduce_window_max", (2, 0)), balls(-3, -1, -5))
    assert are_images(most, [-inf, -3, -1, -1])
    least = only(windowed("reduce_window_min", (2, 0)), balls(3, 1, 5))
    assert are_images(least, [inf, 3, 1, 1])


@pytest.mark.parametrize(
    ("act", "start", "padding", "values"),
    [
        (lax.add, 1.0, (0, 0), [6, 9]), (lax.mul, 2.0, (0, 0), [12, 30]),
        (lax.max, 4.0, (0, 1), [4, 5, 5]), (lax.min, 2.5, (1, 0), [2, 2, 2.5]),
    ],
)  # fmt: skip
def test_folds_of_windows_from_a_start(act, start, padding, values):
    fold = lambda x: lax.reduce_window(x, start, act, (2,), (1,), (padding,))
    assert are_images(only(fold, balls(2, 3, 5)), values)
    assert np.array_equal(fold(np.array([2.0, 3, 5])), values)  # JAX itself, exact here


def general_fold(act, padding):
    """From a start that is an argument."""
    return lambda x, start: lax.reduce_window(x, start, act, (2,), (1,), (padding,))


def test_padding_from_a_start_that_is_not_neutral_is_refused():
    """1 + 1 + 2 = 4 by the definition, 1 + 2 = 3 by what the compiler makes of it."""
    for act, neutral, values in ((lax.add, 0.0, [2, 5]), (lax.mul, 1.0, [2, 6])):
        fold = general_fold(act, (1, 0))
        assert are_images(only(fold, balls(2, 3), balls(neutral).reshape(())), values)
        for start in (neutral + 1, (neutral, neutral + 1), -1):
            with pytest.raises(NotSupported, match="padding needs the reduction's identity"):
                only(fold, balls(2, 3), balls(start).reshape(()))
    found = only(general_fold(lax.min, (1, 1)), balls(2, 3), balls((0, 5)).reshape(()))
    assert are_images(found, [(0, 2), (0, 2), (0, 3)])


@pytest.mark.parametrize("fold", [lax.sub, lambda a, b: a + 2 * b], ids=["one", "two"])
def test_other_folds_of_windows_are_refused(fold):
    with pytest.raises(NotSupported, match="reduce_window by function="):
        only(lambda x: lax.reduce_window(x, 0.0, fold, (2,), (1,), "VALID"), balls(1, 2))


def convolved(x, kernel, *, bits=64, **options):
    options = {"window_strides": (1,), "padding": ((0, 0),)} | options
    act = lambda x, k: lax.conv_general_dilated(x, k, **options)
    return only(act, exactly(np.array(x)), exactly(np.array(kernel)))


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ({}, [21, 32, 43]), ({"window_strides": (2,)}, [21, 43]),
        ({"padding": ((1, 1),)}, [10, 21, 32, 43, 4]), ({"padding": ((0, -1),)}, [21, 32]),
        ({"lhs_dilation": (2,)}, [1, 20, 2, 30, 3, 40]), ({"rhs_dilation": (2,)}, [31, 42]),
    ],
)  # fmt: skip
def test_correlations(options, values):
    """Of 1, 2, 3, 4 with 1, 10: nothing is flipped."""
    assert are_images(convolved([[[1, 2, 3, 4]]], [[[1, 10]]], **options), [[values]])


def test_correlations_of_channels():
    """Each feature is a sum over channels: 1, 2 by 1, 10 and 3, 4 by 100, 1000."""
    x, kernel = [[[1, 2], [3, 4]], [[5, 6], [7, 8]]], [[[1, 10], [100, 1000]], [[1, 0], [0, 0]]]
    assert are_images(convolved(x, kernel), [[[4321], [1]], [[8765], [5]]])


def test_correlations_of_groups_of_features():
    """Features 0, 1 see the first channel, 2, 3 the second."""
    x, kernel = [[[1, 2], [3, 4]]], [[[1, 10]], [[2, 20]], [[1, 10]], [[2, 20]]]
    found = convolved(x, kernel, feature_group_count=2)
    assert are_images(found, [[[21], [42], [43], [86]]])


def test_correlations_of_groups_of_a_batch():
    """Of four rows the first two make the first feature, the others the second."""
    x, kernel = [[[1]], [[2]], [[3]], [[4]]], [[[10]], [[100]]]
    found = convolved(x, kernel, batch_group_count=2)
    assert are_images(found, [[[10], [300]], [[20], [400]]])


def test_correlations_with_other_orders_of_axes():
    """Rows first, channels last: (W, N, C), and kernels (I, O, W); out (N, W, C)."""
    x = np.array([[[1, 2, 3], [4, 5, 6]]]).transpose(2, 0, 1)  # of (N, C, W)
    kernel = np.array([[[1, 10], [100, 0]]]).transpose(1, 0, 2)  # of (O, I, W)
    found = convolved(x, kernel, dimension_numbers=("WNC", "IOW", "NWC"))
    assert are_images(found, [[[421], [532]]])


def log_sums(x, **options):
    return only(lambda x: lax.cumlogsumexp(x, **options), x)


def near(found, values):
    close = lambda v, w: v.is_finite() and abs(float(v.mid()) - w) < 1e-14 and v.rad() < 1e-14
    return len(found.ravel()) == len(values) and all(
        is_image(v, w) if w is None or math.isinf(w) else close(v, w)
        for v, w in zip(found.ravel(), values)
    )


def test_running_logarithms_of_sums():
    """log(1 + 1) = log 2, log(1 + 1 + 2) = log 4."""
    two = math.log(2)
    x = balls(0, 0, arb(2).log())
    assert near(log_sums(x), [0, two, 2 * two])
    assert near(log_sums(x, reverse=True), [2 * two, math.log(3), two])
    square = balls(0, 0, -INF, 0).reshape(2, 2)
    assert near(log_sums(square, axis=0), [0, 0, 0, two])
    assert near(log_sums(square, axis=1), [0, two, -math.inf, 0])
    assert near(log_sums(square, axis=0, reverse=True), [0, two, -math.inf, 0])
    assert near(log_sums(balls(-INF, -INF, 0)), [-math.inf, -math.inf, 0])
    assert near(log_sums(balls(0, INF, 0)), [0, None, None])
    assert near(log_sums(balls(0, ANY)), [0, None])
    assert near(log_sums(balls(900, -900)), [900, 900])


def test_running_logarithms_of_sums_of_balls():
    first, second, third = log_sums(balls((0, 1), (0, 0), -INF))
    low, high = math.log(2), math.log(1 + math.e)
    assert is_image(first, (0, 1))
    for found in (second, third):
        assert found.contains(low + 1e-12) and found.contains(high - 1e-12)
        assert float(found.rad()) < (high - low) / 2 + 1e-6


def test_open_flags_are_flags():
    assert isinstance(flags([2, 1]), Flags)
