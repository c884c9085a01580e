"""What a program's numbers become, how they are rounded, and what runs a program, in small.

The values are fractions worked out by hand; narrow floats are rounded by NumPy and ml_dtypes.
"""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb, ctx
from jax import lax
from oracle.hand import ANY, INF, are_images, ball, balls, ends, is_image, only, ways

from jaxbounds.certification import Flags, NotSupported, Undecided, enclose, precision
from jaxbounds.programs.balls import values
from jaxbounds.programs.balls.interpreter import Interpreter, Program
from jaxbounds.programs.balls.rounding import narrowed
from jaxbounds.programs.balls.values import (
    Nonnegative,
    as_flags,
    as_reals,
    constant,
    each,
    enclosed,
    flags,
    has_few_digits,
    hull,
    is_narrow,
    is_reals,
    is_short,
    is_soft,
    known_nonnegative,
    midpoints,
    nonnegative,
    reals,
    settled,
)

AROUND = ball(-1, 1)
BELOW = known_nonnegative(ball(-1, 3))


def test_what_is_known_not_to_be_negative():
    assert type(BELOW) is Nonnegative and nonnegative(BELOW) and not nonnegative(AROUND)
    assert nonnegative(arb(0)) and nonnegative(ball(1, 2)) and not nonnegative(arb(-1))
    assert not nonnegative(ANY) and not nonnegative(arb("0 +/- inf")) and nonnegative(INF)
    for x in (arb(2), ANY, INF, arb("0 +/- inf"), arb(0)):
        assert known_nonnegative(x) is x


@pytest.mark.parametrize(
    ("a", "b", "value"),
    [
        (1, 3, (1, 3)), (AROUND, 5, (-1, 5)), (2, 2, 2), (INF, INF, math.inf),
        (-INF, -INF, -math.inf),
        (INF, 1, None), (1, INF, None), (INF, -INF, None), (ANY, 1, None), (1, ANY, None),
        (ANY, ANY, None), (arb("0 +/- inf"), arb("0 +/- inf"), None), (-1, BELOW, (-1, 3)),
    ],
)  # fmt: skip
def test_hulls(a, b, value):
    found = hull(*(x if isinstance(x, arb) else arb(x) for x in (a, b)))
    assert is_image(found, value)
    assert not nonnegative(found) or min(ends(found)) >= 0 or found == INF


def test_the_hull_of_what_is_not_negative_is_not():
    assert nonnegative(hull(BELOW, arb(0))) and nonnegative(hull(arb(0), BELOW))
    assert not nonnegative(hull(BELOW, arb(-1))) and not nonnegative(hull(arb(-1), BELOW))


def test_flags_and_their_numbers():
    open_one = flags([[0, 2], [1, 1]])
    assert isinstance(open_one, Flags) and as_flags(open_one).tolist() == [[0, 2], [1, 1]]
    assert flags([1, 0]).dtype == bool and not isinstance(flags([1, 0]), Flags)
    assert type(as_flags(open_one)) is np.ndarray and as_flags(True) == 1
    assert are_images(as_reals(open_one), [[0, (0, 1)], [1, 1]])
    assert nonnegative(as_reals(open_one)[0, 1])
    assert are_images(as_reals(np.array([2**60 + 1, -3])), [2**60 + 1, -3])
    assert are_images(as_reals(np.array([True, False])), [1, 0])
    assert are_images(as_reals(np.array([0.1, -np.inf])), [0.1, -math.inf])
    assert is_soft(open_one) and is_soft(balls(1)) and not is_soft(np.ones(2))
    assert is_reals(balls(1)) and not is_reals(open_one) and not is_reals(3.0)


class Taken:
    """Takes the continuations it is told to."""

    def __init__(self, *taken):
        self.taken, self.asked = list(taken), []

    def fork(self, ways, what):
        self.asked.append((ways, what))
        return self.taken.pop(0)


def test_open_flags_are_settled_one_by_one():
    run = Taken(1, 0)
    assert settled(flags([2, 0, 2, 1]), run, "a why").tolist() == [1, 0, 0, 1]
    assert run.asked == [(2, "a why")] * 2
    assert settled(np.array([True]), Taken(), "").tolist() == [1]


def test_arrays_of_balls():
    x = reals((2, 2), map(arb, range(4)))
    assert are_images(x, [[0, 1], [2, 3]]) and reals((0, 3), ()).shape == (0, 3)
    assert reals((), [arb(5)]).item() == 5
    for many in (3, 5):  # a rule that gives another number of entries is never cut to fit
        with pytest.raises(ValueError, match="reshape"):
            reals((2, 2), map(arb, range(many)))
    found = each(lambda a, b: a - b, x, balls(10, 20))
    assert are_images(found, [[-10, -19], [-8, -17]])
    assert midpoints(balls((1, 2), INF, ANY, -4)).tolist()[::3] == [1.5, -4.0]
    assert np.isnan(midpoints(balls((1, 2), INF, ANY, -4))[1:3]).all()


@pytest.mark.parametrize(
    ("x", "digits", "short"),
    [
        (0.0, 53, True), (-0.0, 53, True), (math.inf, 53, True), (math.nan, 53, True),
        (2.0**26 - 1, 53, True), (2.0**26 + 1, 53, False), (-(2.0**26) - 1, 53, False),
        (2.0**12 - 1, 24, True), (2.0**12 + 1, 24, False), (1.5 + 2.0**-11, 53, True),
        (1.5 + 2.0**-12, 53, False), (2.0**-26, 53, True), (-(2.0**-26), 53, True),
        (2.0**-27, 53, False), (15.0, 8, True), (17.0, 8, False), (1.5, 4, True), (1.25, 4, False),
        (1 + 2.0**-3, 8, True), (1 + 2.0**-4, 8, False),
    ],
)  # fmt: skip
def test_which_numbers_mean_themselves(x, digits, short):
    assert is_short(x, digits) is short
    assert digits != 53 or is_short(x) is short


@pytest.mark.parametrize(
    ("x", "digits", "few"),
    [
        (2.0**26 - 1, 53, True), (2.0**26 + 1, 53, False), (2.0**-40, 53, True), (0.1, 53, False),
        (2.0**24 - 1, 48, True), (2.0**24 + 1, 48, False), (math.inf, 53, True), (0.0, 53, True),
    ],
)  # fmt: skip
def test_which_numbers_half_of_the_digits_write_down(x, digits, few):
    assert has_few_digits(x, digits) is few


@pytest.mark.parametrize(
    ("x", "digits", "radius"),
    [
        (0.1, 53, 2.0**10 * 2.0**-56), (-0.1, 53, 2.0**10 * 2.0**-56),
        (1.1, 53, 2.0**10 * 2.0**-52),
        (float(np.float32(0.1)), 24, 2 * 2.0**-27), (float(np.float32(0.1)), 53, 2 * 2.0**-27),
        (1 + 2.0**-7, 8, 2 * 2.0**-7), (1 + 2.0**-10, 11, 2 * 2.0**-10), (1.1e-7, 53, 2.0**-65.1),
    ],
)  # fmt: skip
def test_by_how_much_a_constant_may_be_off(x, digits, radius):
    """Of 53 digits 2^10 units in the last place, of fewer two."""
    assert is_image(constant(x, "exact", digits), x)
    found = constant(x, "ulp", digits)
    if x != 1.1e-7:
        x, radius = Fraction(x), Fraction(radius)
        assert is_image(found, (x - radius, x + radius), radius / 10**6) and not found.is_exact()
    else:
        assert found.contains(x) and found.rad() < 1e-17


@pytest.mark.parametrize("sign", [1, -1])
def test_a_tiny_constant_reaches_to_zero(sign):
    for size in (2.0**-27, 1e-12, 1e-300):
        found = constant(sign * size, "ulp")
        assert found.contains(0) and found.contains(arb(sign * size))
        assert found.contains(arb(sign * size) * 1.0000000000001)
        assert not found.contains(-arb(sign * size) / 4)
        assert nonnegative(found) == (sign > 0) and nonnegative(-found) <= (sign < 0)


@pytest.mark.parametrize(
    ("dtype", "digits"), [(np.float32, 24), (np.float16, 11), (jnp.bfloat16, 8), (np.float64, 53)]
)
def test_constants_are_read_by_the_digits_of_their_type(dtype, digits):
    x = np.array([0.7, 0.5]).astype(dtype)
    exact, near = enclosed(x), enclosed(x, "ulp")
    assert are_images(exact, x.astype(float).tolist())
    unit, at = Fraction(2) ** -digits * (1024 if digits == 53 else 2), Fraction(float(x[0]))
    assert is_image(near[0], (at - unit, at + unit), unit / 10**6)
    assert is_image(near[1], 0.5)


def test_what_is_no_array_of_floats_stays_what_it_is(x64):
    key, soft = jax.random.key(0), balls(AROUND)
    assert enclosed(key) is key and enclosed(soft) is soft
    assert enclosed([1, 2]).dtype == int and enclosed(np.array(True)).dtype == bool
    assert is_narrow(np.float32) and not is_narrow(np.float64) and not is_narrow(np.int8)
    assert is_narrow(jnp.bfloat16)


# Rounding to a narrower type.

NARROW = (np.float32, np.float16, jnp.bfloat16)
POINTS = [
    0.1, -0.1, 1.0, 1 / 3, 2.0**24 + 1, 2.0**24 + 3, -(2.0**24) - 1, 1 + 2.0**-8, 1 + 3 * 2.0**-8,
    1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-24, 1 + 2.0**-24 + 2.0**-40, 1 - 2.0**-9, 2049.0,
    2051.0,
    65504.0, 2.0**-14, 1.999, 1000.3, -1000.3,
]  # fmt: skip


@pytest.mark.parametrize("dtype", NARROW)
def test_a_number_is_rounded_as_numpy_rounds_it(dtype):
    with precision(192), np.errstate(over="ignore"):
        for x in POINTS:
            true = float(np.asarray(x).astype(dtype))
            if math.isfinite(true) and abs(true) >= float(jnp.finfo(dtype).tiny):
                assert is_image(narrowed(arb(x), dtype), true), (x, dtype)


@pytest.mark.parametrize("dtype", NARROW)
def test_the_largest_number_and_beyond(dtype):
    most = float(jnp.finfo(dtype).max)
    with precision(192):
        for sign in (1, -1):
            assert is_image(narrowed(arb(sign * most), dtype), sign * most)
            assert narrowed(arb(sign * most) * 2, dtype).is_nan()
            half = arb(2) ** (jnp.finfo(dtype).maxexp - 2 - jnp.finfo(dtype).nmant)
            assert narrowed(sign * (most + half), dtype).is_nan()
            assert is_image(narrowed(sign * (most + half / 2), dtype), sign * most)


@pytest.mark.parametrize("dtype", NARROW)
def test_numbers_below_the_normal_ones(dtype):
    least = arb(2) ** int(jnp.finfo(dtype).minexp)
    assert float(least) == float(jnp.finfo(dtype).tiny)
    with precision(192):
        assert narrowed(least, dtype) == least and narrowed(-least, dtype) == -least
        assert narrowed(arb(0), dtype).is_zero()
        for sign in (1, -1):
            for part in (0.75, 0.25):  # of which one is a power of two
                found = narrowed(sign * least * part, dtype)
                assert found.contains(0) and found.contains(sign * least)
                assert not found.contains(-sign * least / 8)
                assert not found.contains(sign * least * 1.25)


def test_a_ball_is_rounded_by_its_ends():
    with precision(192):
        found = narrowed(arb(0.1, 0.01), np.float32)
        low, high = (float(np.float32(v)) for v in (0.09, 0.11))
        assert found.contains(low) and found.contains(high) and found.rad() < 0.0101
        assert is_image(narrowed(ball(1 + 2.0**-30, 1 + 2.0**-28), np.float32), 1)
        assert narrowed(ball(1, 2.0**200), np.float32).is_nan()
    for x in (INF, -INF):
        assert is_image(narrowed(x, np.float32), math.inf if x > 0 else -math.inf)
    assert narrowed(ANY, np.float32).is_nan()


# What runs a program.


def test_forks_are_counted():
    run = Interpreter()
    for _ in range(8):
        assert run.fork(16, "a why") == 0
    with pytest.raises(Undecided, match="too wide to decide a why"):
        run.fork(2, "a why")
    with pytest.raises(Undecided, match="too many"):
        Interpreter().fork(17, "a why")


def test_the_ways_through_forks_are_all_combinations(x64):
    program = Program.of(lambda x: (x > 0).astype(int), np.zeros(3))
    found = program.enclosed(balls(AROUND, 1, AROUND)).ways
    assert sorted(way.tolist() for way in found) == [[0, 1, 0], [0, 1, 1], [1, 1, 0], [1, 1, 1]]
    ((first, second), *rest) = ways(
        lambda x: (jnp.argmax(x), x[::-1]), balls((0, 3), (1, 2), (0, 2))
    )
    assert first == 0 and len(rest) == 2 and are_images(second, [(0, 2), (1, 2), (0, 3)])


def test_precision_is_put_back():
    before = ctx.prec
    with precision(100):
        assert ctx.prec == 100
        with precision(200):
            assert ctx.prec == 200
        assert ctx.prec == 100
    assert ctx.prec == before
    with pytest.raises(ValueError, match="mine"), precision(77):
        raise ValueError("mine")
    assert ctx.prec == before


def test_the_bits_asked_for_are_kept(x64):
    third = lambda bits: enclose(lambda x: x / 3, np.array(1.0), bits=bits).ways[0].item()
    for bits in (32, 64, 192):
        assert 2.0 ** (-bits - 3) < float(third(bits).rad()) < 2.0 ** (2 - bits)
        low, high = ends(third(bits))
        assert low <= Fraction(1, 3) <= high


@pytest.mark.parametrize(
    ("function", "computed", "widened"),
    [
        (lambda x: x * 2.0, False, False), (lambda x: x * 0.1, True, True),
        (lambda x: x + np.array([1.0, 2.0]), True, False),
        (lambda x: x * np.array([0.3]), True, True),
        (lambda x: x + np.array([0.5]), False, False), (lambda x: x * (2.0**30 + 1), True, True),
        (lambda x: x + x[jnp.array([0, 0])], True, False),
        (lambda x: jnp.maximum(x, -jnp.inf), False, False),
        (lambda x: x * (1 + 2.0**-12), False, True), (lambda x: x * np.array(2.0), False, False),
        (lambda x: x * np.int64(2**40 + 1).astype(float), True, True),
        (lambda x: x + np.array([0.3, 0.5]), True, True),
        (lambda x: jnp.where(x > 0, x, jnp.nan), False, False),
    ],
)  # fmt: skip
def test_what_is_seen_of_constants(function, computed, widened, x64):
    closed, _ = Program.of(function, np.ones(1))
    run = Interpreter("ulp")
    list(run.ways(closed, balls(1)))
    assert (run.computed, run.widened) == (computed, widened)
    again = Interpreter("exact")
    list(again.ways(closed, balls(1)))
    assert (again.computed, again.widened) == (computed, False)


def test_a_program_says_whether_numbers_from_outside_are_taken():
    found = values.reals((), [arb(1)])
    from jaxbounds.programs.balls.interpreter import Enclosed

    assert not Enclosed([found], True).taken(False) and Enclosed([found], True).taken(True)
    assert not Enclosed([found], False).taken(True) and Enclosed([found], False, False).taken(False)


@pytest.mark.parametrize(
    ("function", "word"),
    [
        (lambda x: x.astype(np.float32) * 2, "primitive='mul' computes in dtype=float32"),
        (lambda x: jnp.sum(x.astype(np.float16)), "float16|float32"),
        (lambda x: lax.complex(x, x), "complex numbers"),
        (
            lambda x: jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct((1,), float), x),
            "not part of the program",
        ),
        (lambda x: lax.reduce_precision(x, 5, 2), "no rule for primitive="),
        (
            lambda x: x.astype(np.float32).at[0].add(np.float32(1)),
            "primitive='scatter-add' computes in dtype=float32",
        ),
    ],
)
def test_what_is_refused_is_named(function, word, x64):
    with pytest.raises(NotSupported, match=word):
        ways(function, balls(AROUND))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: -x.astype(np.float32), lambda x: jnp.abs(x.astype(np.float32)),
        lambda x: jnp.max(x.astype(np.float32), keepdims=True),
        lambda x: jnp.sort(x.astype(np.float32)), lambda x: x.astype(np.float32)[::-1],
        lambda x: jnp.where(x > 0, x, x).astype(np.float32),
    ],
)  # fmt: skip
def test_what_rounds_nothing_is_enclosed_in_narrow_floats_too(function, x64):
    found = only(function, balls(0.5))
    assert abs(ends(found[0])[0]) == Fraction(1, 2) and found[0].is_exact()


def test_what_nothing_wanted_reads_is_not_run(x64):
    """The second result of top_k would fork, the unused sine would be refused."""
    run = Interpreter(rules={k: v for k, v in Interpreter().rules.items() if k != "sin"})
    closed, _ = Program.of(lambda x: (jnp.sin(x), lax.top_k(x, 1)[0])[1], np.zeros(2))
    ((found,),) = run.ways(closed, balls((0, 2), (1, 3)))
    assert are_images(found, [(1, 3)])
    inner = jax.jit(lambda x: (jnp.sin(x), x + 1))
    closed, _ = Program.of(lambda x: inner(x)[1], np.zeros(1))
    ((found,),) = run.ways(closed, balls(1))
    assert are_images(found, [2])
    with pytest.raises(NotSupported, match="sin"):
        list(run.ways(Program.of(lambda x: inner(x)[0], np.zeros(1)).closed, balls(1)))


def test_arguments_and_results_are_trees(x64):
    found = enclose(lambda p: {"sum": p["a"] + p["b"], "same": p["a"], "four": 4.0},
                    {"a": balls(1), "b": np.array([2.0])}).ways  # fmt: skip
    assert are_images(found[0]["sum"], [3]) and are_images(found[0]["same"], [1])
    assert float(found[0]["four"].item() if is_reals(found[0]["four"]) else found[0]["four"]) == 4.0


def test_one_interpreter_runs_many_programs(x64):
    """Also where an earlier one is gone, and a later one may have its place in memory."""
    run = Interpreter()
    for k in range(40):
        program = Program.of(lambda x, k=k: x + float(k) if k % 2 else x * float(k), np.zeros(1))
        ((found,),) = run.ways(program.closed, balls(3))
        assert are_images(found, [3 + k if k % 2 else 3 * k])
        del program


def test_programs_of_whole_numbers_are_run_and_their_callbacks_are_not(x64):
    quarter = jax.jit(lambda n: n.astype(float) / 4)
    assert are_images(only(lambda n: quarter(n), np.array([3, -1])), [0.75, -0.25])
    steps = lambda n: lax.fori_loop(0, n, lambda i, c: c + i / 2, 0.0)
    assert is_image(only(steps, np.array(5)).item(), 5)
    shape = jax.ShapeDtypeStruct((1,), np.int64)
    with pytest.raises(NotSupported, match="not part of the program"):
        only(lambda n: jax.pure_callback(lambda v: v, shape, n), np.array([3]))


def test_the_time_that_is_allowed_counts_from_the_start(x64):
    found = enclose(lambda x: x + 1, np.array(1.0), seconds=600).ways[0]
    assert is_image(found.item(), 2)
    with pytest.raises(Undecided, match="time"):
        enclose(lambda x: x + 1, np.array(1.0), seconds=-1e-9)
