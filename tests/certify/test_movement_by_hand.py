"""Rules that move data, and whole numbers run as they are, beside NumPy and JAX on whole numbers.

Neither knows balls; JAX is exact on whole numbers.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb
from jax import lax
from oracle.hand import ANY, are_images, ball, balls, exactly, is_image, only, ways

from jaxbounds.certification import Flags, NotSupported, Undecided
from jaxbounds.programs.balls.movement import _fill
from jaxbounds.programs.balls.values import as_flags, reals

pytestmark = pytest.mark.usefixtures("x64")
AROUND = ball(-1, 1)
SIGNS = np.array([[1, 0, 2], [2, 1, 0]])
"""Yes, no, open."""


def open_signs(x):
    """Balls whose sign is as said."""
    return reals(x.shape, ((arb(-1), arb(1), AROUND)[v] for v in x.ravel()))


@pytest.mark.parametrize(
    ("act", "by"),
    [
        (lambda f: lax.broadcast_in_dim(f, (2, 2, 3), (0, 2)),
         lambda x: np.broadcast_to(x[:, None], (2, 2, 3))),
        (lambda f: lax.transpose(f, (1, 0)), np.transpose), (lambda f: f.reshape(3, 2),
                                                             lambda x: x.reshape(3, 2)),
        (lambda f: lax.rev(f, (1,)), lambda x: x[:, ::-1]),
        (lambda f: f[:, 1:], lambda x: x[:, 1:]),
        (lambda f: lax.concatenate([f, f[:1]], 0), lambda x: np.concatenate([x, x[:1]])),
        (lambda f: lax.concatenate([f, jnp.ones((1, 3), bool)], 0),
         lambda x: np.concatenate([x, [[1, 1, 1]]])),
        (lambda f: f[jnp.array([1, 0]), jnp.array([0, 1])], lambda x: x[[1, 0], [0, 1]]),
        (lambda f: lax.pad(f, True, ((0, 1, 0), (0, 0, 0))),
         lambda x: np.concatenate([x, [[1, 1, 1]]])),
        (lambda f: lax.dynamic_update_slice(f, jnp.array([[False]]), (1, 2)),
         lambda x: np.array([[1, 0, 2], [2, 1, 0]])),
        (lambda f: lax.dynamic_update_slice(jnp.ones((2, 3), bool), f[:1, 1:], (1, 0)),
         lambda x: np.array([[1, 1, 1], [0, 2, 1]])),
        (lambda f: f[0], lambda x: x[0]), (lambda f: f[0, :2], lambda x: x[0, :2]),
    ],
)  # fmt: skip
def test_flags_are_moved_as_numpy_moves_numbers(act, by):
    found = only(lambda x: act(x > 0), open_signs(SIGNS))
    assert as_flags(found).tolist() == by(SIGNS).tolist()
    assert isinstance(found, Flags) == (by(SIGNS) == 2).any()


def test_balls_beside_numbers_of_the_program():
    found = only(lambda x: lax.concatenate([x, jnp.array([2.0, 3.0])], 0), balls(AROUND))
    assert are_images(found, [(-1, 1), 2, 3])
    found = only(lambda x: lax.pad(x, 7.0, ((1, 0, 1),)), balls(AROUND, 2))
    assert are_images(found, [7, (-1, 1), 7, 2])
    found = only(lambda x: lax.dynamic_update_slice(jnp.zeros(3), x, (1,)), balls(AROUND))
    assert are_images(found, [0, (-1, 1), 0])
    found = only(lambda x: jnp.zeros(3).at[jnp.array([2, 0])].set(x), balls(AROUND, 5))
    assert are_images(found, [5, 0, (-1, 1)])


def taken(x, i, **fill):
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    mode = lax.GatherScatterMode.FILL_OR_DROP
    return lax.gather(x, i[:, None], numbers, (1,), mode=mode, **fill)


OUTSIDE = np.array([1, 5, -1])


@pytest.mark.parametrize("dtype", ["float32", "int8", "int64", "uint8", "bool"])
def test_what_is_put_for_what_lies_outside_is_what_jax_puts(dtype):
    true = np.asarray(taken(jnp.ones(3, dtype), OUTSIDE))[1]
    (found,) = _fill(None, jnp.dtype(dtype))
    assert found.dtype == true.dtype and np.array_equal(found, true, equal_nan=dtype[0] == "f")
    assert _fill(1, jnp.dtype(dtype)).tolist() == [1]


def test_what_lies_outside_of_balls_and_flags():
    found = only(taken, balls(3, AROUND, 4), OUTSIDE)
    assert are_images(found, [(-1, 1), None, None])
    found = only(lambda x, i: taken(x, i, fill_value=7.0), balls(3, AROUND, 4), OUTSIDE)
    assert are_images(found, [(-1, 1), 7, 7])
    for fill, value in (({}, 1), ({"fill_value": False}, 0)):
        found = only(lambda x, i, f=fill: taken(x > 0, i, **f), balls(3, AROUND, 4), OUTSIDE)
        assert as_flags(found).tolist() == [2, value, value]


@pytest.mark.parametrize("name", ["gather", "slice", "update", "scatter", "add"])
def test_an_index_that_is_open_is_undecided(name):
    x = balls(1, 2, 3)
    of = lambda i: (i > 0).astype(int) if name != "slice" else jnp.argmax(i)
    acts = {
        "gather": lambda x, i: x[lax.convert_element_type(i, int)],
        "slice": lambda x, i: lax.dynamic_slice(x, (lax.convert_element_type(i[0], int),), (1,)),
        "update": lambda x,
        i: lax.dynamic_update_slice(x, x[:1], (lax.convert_element_type(i[0], int),)),
        "scatter": lambda x, i: x.at[lax.convert_element_type(i, int)].set(0.0),
        "add": lambda x, i: x.at[lax.convert_element_type(i, int)].add(0.0),
    }  # fmt: skip
    with pytest.raises(Undecided):
        ways(acts[name], x, balls((0.5, 1.5)))
    assert len(ways(lambda x, i: x[of(i)], x, balls(AROUND))) <= 2


COMBINED = {
    "add": [1, 0, 11 + 5 + 7, 3], "multiply": [1, 0, 11 * 5 * 7, 3], "min": [1, 0, 5, 3],
    "max": [1, 0, 11, 3],
}  # fmt: skip


@pytest.mark.parametrize("name", COMBINED)
def test_updates_at_one_place_are_all_combined(name):
    act = lambda x, y: getattr(x.at[jnp.array([2, 2, 9])], name)(y, mode="drop")
    found = only(act, balls(1, 0, 11, 3), balls(5, 7, 100))
    assert are_images(found, COMBINED[name])


def test_an_update_leaves_what_it_updates_as_it_was():
    ((new, old),) = ways(lambda x, y: (x.at[0].add(y), x), balls(1, 2), balls(5).reshape(()))
    assert are_images(new, [6, 2]) and are_images(old, [1, 2])


def test_updates_of_rows_and_of_balls():
    act = lambda x, y: x.at[jnp.array([1, 0, 1])].add(y)
    x, y = np.arange(4).reshape(2, 2), np.array([[10, 20], [30, 40], [50, 60]])
    assert are_images(only(act, exactly(x), exactly(y)), [[30, 41], [62, 83]])
    found = only(lambda x, y: x.at[jnp.array([0, 0])].add(y), balls(AROUND, 1), balls((0, 1), 2))
    assert are_images(found, [(1, 4), 1])
    found = only(lambda x, y: x.at[jnp.array([0])].add(y), np.zeros(2), balls(AROUND))
    assert are_images(found, [(-1, 1), 0])
    found = only(lambda x, y: x.at[1].max(y), balls(AROUND, AROUND), balls(0).reshape(()))
    assert are_images(found, [(-1, 1), (0, 1)])


# Whole numbers, as they are.


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (2, 3, 4), (5,)])
@pytest.mark.parametrize("dtype", [np.int32, np.float64, np.uint8])
def test_counting_along_each_axis(shape, dtype):
    for axis in range(len(shape)):
        found = only(lambda axis=axis: lax.broadcasted_iota(dtype, shape, axis))
        true = np.indices(shape)[axis]
        if dtype is np.float64:
            assert are_images(found, true.tolist())
        else:
            assert found.dtype == dtype and found.tolist() == true.tolist()


def test_whole_numbers_wrap_as_machines_do():
    """2^31 - 1 and one is -2^31; a sum of int32 stays one."""
    most = np.array([2**31 - 1, -(2**31)], np.int32)
    assert only(lambda n: n + 1, most).tolist() == [-(2**31), -(2**31) + 1]
    assert only(lambda n: n * 2, most).tolist() == [-2, 0]
    assert only(lambda n: -n, most).tolist() == [-(2**31) + 1, -(2**31)]
    total = only(
        lambda n: lax.reduce_sum_p.bind(n, axes=(0,), out_sharding=None), most[:1].repeat(2)
    )
    assert total.dtype == np.int32 and total == -2
    assert only(lambda n: ~n, most).tolist() == [-(2**31), 2**31 - 1]
    assert only(lambda b: ~b, np.array([True, False])).tolist() == [False, True]


NUMBERS = np.array([[6, -3, 5], [12, 7, -9]])


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_folds_of_whole_numbers(axes):
    folds = {
        lax.reduce_sum: np.sum, lax.reduce_max: np.max, lax.reduce_min: np.min,
        lax.reduce_and: np.bitwise_and.reduce, lax.reduce_or: np.bitwise_or.reduce,
        lax.reduce_prod: np.prod,
    }  # fmt: skip
    for act, by in folds.items():
        found = only(lambda n, act=act: act(n, axes), NUMBERS)
        assert np.asarray(found).tolist() == by(NUMBERS, axis=axes).tolist(), act
        small = only(lambda n, act=act: act(n, axes), NUMBERS.astype(np.int32))
        assert small.dtype == np.int32 and np.array_equal(small, found)
    some = NUMBERS > 0
    for act, by in ((lax.reduce_and, np.all), (lax.reduce_or, np.any)):
        found = only(lambda n, act=act: act(n, axes), some)
        assert found.dtype == bool and np.array_equal(found, by(some, axis=axes))


def test_folds_of_no_whole_numbers():
    found = only(lambda n: lax.reduce_max(n, (0,)), np.zeros((0, 2), np.int32))
    assert found.tolist() == [-(2**31)] * 2
    assert only(lambda n: lax.reduce_sum(n, (0,)), np.zeros((0,), np.int64)) == 0


def test_whole_numbers_of_other_types_are_jaxs():
    n = np.array([200, 100], np.uint8)
    found = only(lambda n: n + n, n)
    assert found.dtype == np.uint8 and found.tolist() == [144, 200]
    assert only(lambda n: lax.population_count(n), n).tolist() == [3, 3]
    assert only(lambda n: lax.div(n, jnp.int32(-2)), np.array([7, -7], np.int32)).tolist() == [
        -3,
        3,
    ]


@pytest.mark.parametrize(
    "act",
    [
        lambda n: lax.dot_general(n, n, (((0,), (0,)), ((), ())), preferred_element_type=float),
        lambda n: jax.random.gamma(jax.random.key(0), 2.0 + 0 * n[0].astype(float)),
    ],
    ids=["a product", "a random number"],
)
def test_floats_that_are_not_enclosed_are_refused(act):
    with pytest.raises(NotSupported):
        only(act, np.array([3, 4]))


def test_floats_of_bits_are_exact():
    bits = np.array([1.5, -0.1]).view(np.int64)
    found = only(lambda n: lax.bitcast_convert_type(n, np.float64), bits)
    assert are_images(found, [1.5, -0.1])


def test_floats_of_whole_numbers_are_exact():
    n = np.array([[3, -4], [2**40 + 1, 0]])
    found = only(lambda n: n.astype(float), n)
    assert are_images(found, n.tolist())
    assert is_image(only(lambda n: jnp.where(n > 0, 1.5, 2.5), np.array(3)).item(), 1.5)
    found = only(lambda n: lax.select(n > 0, n, -n), n)
    assert found.tolist() == np.abs(n).tolist()
    assert only(lambda n: jnp.sort(n, axis=0), n).tolist() == np.sort(n, axis=0).tolist()
    assert only(lambda n: lax.rev(lax.concatenate([n, n], 0), (0, 1)), n).tolist() == (
        np.concatenate([n, n])[::-1, ::-1].tolist()
    )


def test_keys_make_the_bits_that_jax_makes():
    key = jax.random.key(3)
    act = lambda k: jax.random.key_data(jax.random.split(k, 2)[1])
    assert only(act, key).tolist() == np.asarray(act(key)).tolist()


def test_an_unknown_number_moves_too():
    found = only(lambda x: x[::-1], balls(ANY, 2))
    assert are_images(found, [2, None])
