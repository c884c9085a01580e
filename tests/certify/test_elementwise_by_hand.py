"""Rules that act entry by entry, beside values worked out by hand on one or two entries.

Next floats are NumPy's own; what else is compared stands here.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb
from jax import lax
from oracle.hand import ANY, INF, are_images, ball, balls, is_image, only, ways

from jaxbounds.certification import Flags, Undecided, precision
from jaxbounds.programs.balls.elementwise import rounds
from jaxbounds.programs.balls.values import as_flags, nonnegative

pytestmark = pytest.mark.usefixtures("x64")
AROUND = ball(-0.75, 1.75)
BEYOND = arb(10) ** 400
"""A number above all floats."""


def next_one(x, y):
    return only(lax.nextafter, balls(x), balls(y)).item()


@pytest.mark.parametrize(
    ("x", "y"),
    [(1.0, 2.0), (1.0, -2.0), (-1.0, 0.5), (-1.0, -3.0), (1.0, 1.0), (0.5, 0.75), (3e8, 0.0)],
)
def test_the_next_float_is_numpys(x, y):
    assert is_image(next_one(x, y), float(np.nextafter(x, y)))


def test_the_next_float_towards_a_ball_on_one_side():
    assert is_image(next_one(1.0, ball(2, 3)), float(np.nextafter(1, 2)))
    assert is_image(next_one(1.0, ball(-3, -2)), float(np.nextafter(1, 0)))


@pytest.mark.parametrize(("x", "y"), [(1.0, AROUND), (1.0, ball(0.5, 1.5))])
def test_the_next_float_towards_what_may_be_on_either_side(x, y):
    found = next_one(x, y)
    assert found.contains(float(np.nextafter(x, 9))) and found.contains(float(np.nextafter(x, -9)))
    assert float(found.rad()) < 1e-14


def test_the_next_float_of_a_ball_reaches_beyond_both_ends():
    found = next_one(ball(1, 2), 5)
    assert found.contains(float(np.nextafter(2, 5))) and found.contains(1.0)
    assert float(found.rad()) < 0.5 + 1e-8


def test_the_next_float_of_what_is_no_float():
    with precision(64):
        third, exact = arb(1) / 3, arb(1) + arb(2) ** -60
    found = only(lax.nextafter, balls(third), balls(1)).item()
    assert found.contains(float(np.nextafter(1 / 3, 1)))
    assert found.contains(float(np.nextafter(np.nextafter(1 / 3, 1), 1)))
    assert exact.is_exact()  # a point, between two floats: rounded to 1, or to 1 + 2^-52
    found = only(lax.nextafter, balls(exact), balls(5)).item()
    assert found.contains(1 + 2.0**-52) and found.contains(1 + 2.0**-51) and not found.is_exact()
    found = only(lax.nextafter, balls(exact), balls(exact)).item()
    assert found.contains(1) and found.contains(1 + 2.0**-52)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (INF, 1),
        (1, INF),
        (ANY, 1),
        (1, ANY),
        (float(np.finfo(float).max), BEYOND),
        (ball(1, 1e308), INF),
    ],
)
def test_the_next_float_of_what_is_not_finite_is_unknown(x, y):
    assert next_one(x, y).is_nan()


def test_the_next_float_of_a_ball_that_reaches_the_largest_is_unknown():
    largest = float(np.finfo(float).max)
    assert next_one(arb(largest, 1e300), 5).is_nan() and next_one(arb(-largest, 1e300), 5).is_nan()


def test_the_next_float_beside_zero_may_be_zero():
    """Below the least normal number, 2^-1022, programs may flush."""
    for sign in (1, -1):
        found = next_one(0, sign)
        assert found.contains(0) and found.contains(arb(sign) * arb(2) ** -1074)
        assert not found.contains(-arb(sign) * arb(2) ** -1074)
    found = next_one(arb(2) ** -1022, 0)
    assert found.contains(0) and found.contains(arb(2) ** -1022 - arb(2) ** -1074)
    assert next_one(2.0**-1022, 1).is_exact()


COMPARED = {
    lax.lt: (1, 2, 0, 2), lax.le: (1, 2, 0, 2), lax.gt: (0, 2, 1, 2), lax.ge: (0, 2, 1, 2),
    lax.eq: (0, 2, 0, 2), lax.ne: (1, 2, 1, 2),
}  # fmt: skip


@pytest.mark.parametrize("compare", COMPARED, ids=lambda f: f.__name__)
def test_comparisons_with_a_number(compare):
    found = only(lambda x: compare(x, 1.0), balls((0, 0.5), (0.5, 3), (2, 3), ANY))
    assert as_flags(found).tolist() == [*COMPARED[compare]]


def test_comparisons_of_flags_with_booleans():
    """x <= open is certain of no, open <= x of yes."""
    x, known = balls(AROUND, AROUND, 1), np.array([False, True, True])
    for function, answers in (
        (lax.le, (2, 1, 1)), (lax.ge, (1, 2, 1)), (lax.lt, (0, 2, 0)), (lax.gt, (2, 0, 0)),
        (lax.eq, (2, 2, 1)), (lax.ne, (2, 2, 0)),
    ):  # fmt: skip
        found = only(lambda x, b, act=function: act(x > 0, b), x, known)
        assert as_flags(found).tolist() == [*answers], function


@pytest.mark.parametrize(
    ("act", "table"),
    [(lax.bitwise_xor, (0, 1, 1, 0, 2, 2, 2)), (lax.bitwise_or, (0, 1, 1, 1, 2, 1, 2)),
     (lax.bitwise_and, (0, 0, 0, 1, 0, 2, 2)), (lax.max, (0, 1, 1, 1, 2, 1, 2)),
     (lax.min, (0, 0, 0, 1, 0, 2, 2))],
)  # fmt: skip
def test_logic_of_flags_and_booleans(act, table):
    """Rows no/no, no/yes, yes/no, yes/yes, open/no, open/yes, and open with itself by two names."""
    x = balls(-1, -1, 1, 1, AROUND, AROUND, AROUND)
    known = np.array([False, True, False, True, False, True])
    found = only(lambda x, y, b: act(x > 0, jnp.concatenate([b, y > 0])), x, balls(AROUND), known)
    assert as_flags(found).tolist() == [*table]
    other = only(lambda x, y, b: act(jnp.concatenate([b, y > 0]), x > 0), x, balls(AROUND), known)
    assert as_flags(other).tolist() == [*table]


def total(name):
    return lambda x, y: getattr(lax, f"{name}_to_p").bind(x, y)


def test_the_total_order():
    """lt_to and le_to: as < and <=, but for two zeros, whose signs decide."""
    x, y = balls(1, 2, 0, AROUND, 1, 0, 1), balls(2, 1, 0, 1, 1, 1, 0)
    assert as_flags(only(total("lt"), x, y)).tolist() == [1, 0, 2, 2, 0, 1, 0]
    assert as_flags(only(total("le"), x, y)).tolist() == [1, 0, 2, 2, 1, 1, 0]
    one = balls(0, AROUND, ANY)
    assert as_flags(only(lambda x: total("lt")(x, x), one)).tolist() == [0, 0, 0]
    assert as_flags(only(lambda x: total("le")(x, x), one)).tolist() == [1, 1, 1]


def test_a_variable_beside_itself():
    x = balls(AROUND, INF, ANY, -INF)
    square, nothing = ways(lambda x: (x * x, x - x), x)[0]
    assert are_images(square, [(0, 3.0625), np.inf, None, np.inf])
    assert are_images(nothing, [0, None, None, None])
    twice, product = ways(lambda x, y: (x + x, x * y), balls(AROUND), balls(AROUND))[0]
    assert are_images(twice, [(-1.5, 3.5)])
    assert is_image(product.item(), (-1.3125, 3.0625), 0.7)
    (difference,) = only(lambda x, y: x - y, balls(AROUND), balls(AROUND))
    assert is_image(difference, (-2.5, 2.5))


def test_which_are_finite():
    found = only(lax.is_finite, balls(1, AROUND, INF, -INF, ANY, arb("0 +/- inf")))
    assert as_flags(found).tolist() == [1, 1, 0, 0, 2, 2]


def test_a_choice_between_balls():
    which = balls(-1, 1, AROUND)
    found = only(lambda w, x, y: jnp.where(w > 0, x, y), which, balls(1, 2, 3), balls(4, 5, 6))
    assert are_images(found, [4, 2, (3, 6)])
    known = np.array([True, False, True])
    found = only(lambda w, x, y: lax.select(w, x, y), known, balls(1, 2, 3), balls(4, 5, 6))
    assert are_images(found, [1, 5, 3])
    found = only(lambda w, x: lax.select_n(w, x, x + 1, x + 2), np.array([2, 0, 1]), balls(1, 2, 3))
    assert are_images(found, [3, 2, 4])


def test_one_choice_for_a_whole_array():
    found = only(lambda w, x: lax.select_n(w[0] > 0, x, 2 * x), balls(AROUND), balls(1, 2))
    assert are_images(found, [(1, 2), (2, 4)])
    found = only(lambda w, x: lax.select_n(w, x, 2 * x), np.array(True), balls(1, 2))
    assert are_images(found, [2, 4])


def test_a_choice_between_balls_and_floats_of_the_program():
    found = only(lambda w, x: jnp.where(w > 0, x, jnp.zeros(2)), balls(AROUND, 1), balls((1, 2), 5))
    assert are_images(found, [(0, 2), 5])


def test_a_choice_between_flags():
    w, x = balls(-1, 1, AROUND, AROUND, AROUND), balls(AROUND, AROUND, AROUND, 1, -1)
    no = np.array([True, True, True, True, True])
    found = only(lambda w, x, n: lax.select_n(w > 0, n, x > 0), w, x, no)
    assert as_flags(found).tolist() == [1, 2, 2, 1, 2]
    found = only(lambda w, x, n: lax.select_n(w, n, x > 0), np.array([0, 1, 0, 1, 1], bool), x, ~no)
    assert as_flags(found).tolist() == [0, 2, 0, 1, 0]
    found = only(lambda w, n: lax.select_n(w > 0, n, ~n), w, no)
    assert as_flags(found).tolist() == [1, 0, 2, 2, 2]


def test_a_choice_between_whole_numbers_forks_where_they_differ():
    pick = lambda w, n, m: lax.select_n(w > 0, n, m)
    found = ways(pick, balls(AROUND, AROUND, 1, -1), np.array([3, 4, 5, 6]), np.array([7, 4, 8, 9]))
    assert sorted(way[0].tolist() for way in found) == [[3, 4, 8, 6], [7, 4, 8, 6]]


def test_a_choice_between_three_flags_by_an_index():
    """`select_n` by integers, of which one case is open."""
    pick = lambda x, w: lax.select_n(w, x > 0, x > 9, ~(x > 9))
    found = only(pick, balls(AROUND, AROUND, 1), np.array([0, 1, 2]))
    assert as_flags(found).tolist() == [2, 0, 1] and isinstance(found, Flags)


def test_clamp():
    clamp = lambda low, x, high: lax.clamp(low, x, high)
    found = only(clamp, balls(0, 0, 0, 0), balls(AROUND, -1, 3, 0.5), balls(1, 1, 1, 1))
    assert are_images(found, [(0, 1), 0, 1, 0.5])
    assert is_image(only(clamp, balls(2), balls(0), balls(1)).item(), 1)


def converted(new):
    return lambda x: lax.convert_element_type(x, new)


def test_whole_parts_of_balls_as_integers():
    found = only(converted(np.int32), balls(2.75, -2.75, (2.25, 2.75), (-0.5, 0.5)))
    assert found.tolist() == [2, -2, 2, 0] and found.dtype == np.int32
    for x in (AROUND, ball(1.5, 2.5), ANY, INF):
        with pytest.raises(Undecided, match="integer part"):
            ways(converted(np.int64), balls(1, x))


@pytest.mark.parametrize(
    ("new", "least", "most"),
    [(np.int8, -128, 127), (np.uint8, 0, 255), (np.int16, -(2**15), 2**15 - 1)],
)
def test_the_ends_of_a_type_of_integers(new, least, most):
    assert only(converted(new), balls(least, most)).tolist() == [least, most]
    for beyond in (least - 1, most + 1):
        with pytest.raises(Undecided, match="too large"):
            ways(converted(new), balls(0, beyond))


def test_booleans_of_balls():
    found = only(converted(np.bool_), balls(0, 1, -2, AROUND, (1, 2), ANY))
    assert as_flags(found).tolist() == [0, 1, 1, 2, 1, 2]
    found = only(lambda x: converted(np.bool_)(x > 0), balls(-1, 1, AROUND))
    assert as_flags(found).tolist() == [0, 1, 2]


def test_numbers_of_flags():
    found = ways(lambda x: converted(np.int16)(x > 0), balls(-1, 1, AROUND))
    assert sorted(way[0].tolist() for way in found) == [[0, 1, 0], [0, 1, 1]]
    assert all(way[0].dtype == np.int16 for way in found)
    found = only(lambda x: converted(np.float64)(x > 0), balls(-1, 1, AROUND))
    assert are_images(found, [0, 1, (0, 1)])


def test_floats_of_integers_and_narrower_floats():
    """2^24 + 1 has no float32: it is rounded to the even neighbour, 2^24. A flag has one."""
    n = np.array([2**24 + 1, -3])
    both = lambda n, x: (
        converted(np.float32)(x + converted(np.float64)(n)),
        converted(np.float64)(n),
    )
    ((narrow, wide),) = ways(both, n, balls(0, 0))
    assert are_images(narrow, [2**24, -3]) and are_images(wide, [2**24 + 1, -3])
    whole = lambda n: converted(np.float32)(n)
    assert are_images(only(whole, n), [2**24, -3])
    found = only(lambda x: converted(np.float32)(x > 0), balls(-1, 1, AROUND))
    assert are_images(found, [0, 1, (0, 1)])
    tenth = only(converted(np.float32), balls(0.1)).item()
    assert is_image(tenth, float(np.float32(0.1)))
    again = only(lambda x: converted(np.float64)(converted(np.float32)(x)), balls(0.1)).item()
    assert is_image(again, float(np.float32(0.1)))


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        ("float64", "float32", True), ("float32", "float64", False), ("float32", "float32", False),
        ("float64", "float64", False), ("float16", "float32", False), ("float32", "float16", True),
        ("bfloat16", "float16", True), ("float16", "bfloat16", True),
        ("bfloat16", "float32", False),
        ("float32", "bfloat16", True), ("int32", "float32", True), ("int64", "float64", False),
        ("bool", "float16", False), ("int8", "bfloat16", True),
        ("float8_e4m3fn", "float8_e5m2", True), ("float8_e5m2", "float16", False),
        ("float8_e5m2", "float8_e4m3fn", True), ("float8_e5m2fnuz", "float8_e5m2", True),
    ],
)  # fmt: skip
def test_which_conversions_round(old, new, answer):
    """By the digits and the exponents of both: of 10 digits and 5 bits of exponents float16 is."""
    assert rounds(jnp.dtype(old), jnp.dtype(new)) is answer


def test_what_is_not_negative_stays_so_through_a_choice():
    found = only(lambda w, x: jnp.where(w > 0, x * x, 1.0), balls(AROUND), balls(AROUND)).item()
    assert nonnegative(found) and is_image(found, (0, 3.0625))


def test_keys_are_moved_as_they_are():
    """A choice between keys is no choice between numbers: they are arrays of JAX."""
    found = only(lambda k, n: jax.random.key_data(jnp.where(n > 0, k[0], k[1])),
                 jax.random.split(jax.random.key(0), 2), np.array(1))  # fmt: skip
    assert found.tolist() == jax.random.key_data(jax.random.split(jax.random.key(0), 2)[0]).tolist()
