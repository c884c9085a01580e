"""What the interpreter does around its rules: whole numbers, readings, forks, limits, refusals.

The oracle for whole numbers is JAX itself, which is exact on them and shares no code with NumPy.
"""

import math
import time
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb
from jax import lax
from oracle import draws

from jaxbounds.certification import NotSupported, Undecided, enclose, precision
from jaxbounds.programs.balls import loops
from jaxbounds.programs.balls.certificate import as_fraction, decimal_bounds
from jaxbounds.programs.balls.values import constant, hull, is_short, midpoints, nonnegative, reals


def bitwise(operation, start):
    return lambda n, m: lax.reduce(n, jnp.asarray(start, n.dtype), operation, (0,))


WHOLE = {
    "arithmetic": lambda n, m: (n + m) * (n - m) - n * m * 1_000_003,
    "extrema": lambda n, m: jnp.maximum(n, m) - 2 * jnp.minimum(n, m) + -n,
    "bits": lambda n, m: (n & m) ^ (n | ~m),
    "comparisons": lambda n, m: jnp.stack([n == m, n != m, n < m, n <= m, n > m, n >= m]),
    "logic": lambda n, m: ((n > m) & (n > 0)) | ~(m > 0),
    "all and any": lambda n, m: jnp.stack([jnp.all(n > m), jnp.any(n > m)]),
    "folds": lambda n, m: (jnp.sum(n * 2**30), jnp.max(n), jnp.min(m), jnp.prod(n)),
    "bits of all": bitwise(lax.bitwise_and, -1),
    "bits of any": bitwise(lax.bitwise_or, 0),
    "bits of all, as a fold": lambda n, m: (lax.reduce_and(n, (0,)), lax.reduce_or(n, (0,))),
    "choice": lambda n, m: jnp.where(n > m, n, m) + lax.select_n(n % 3, n, m, n * m),
    "both": lambda n, m: (jnp.concatenate([n, m]), jnp.stack([m, n])),
    "counting": lambda n, m: (jnp.cumsum(n) + jnp.arange(4, dtype=n.dtype), jnp.argmax(m)),
    "other types": lambda n, m: (n.astype(jnp.int8), n.astype(jnp.uint32), (n > 0).astype(n.dtype)),
    "order": lambda n, m: (jnp.sort(n), jnp.argsort(m), n[::-1].reshape(2, 2).T),
    "products": lambda n, m: n @ m,
    "tables": lambda n, m: lax.broadcasted_iota(n.dtype, (4, 3), 1) + n[:, None],
}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_whole_numbers_are_what_jax_computes(name, dtype, x64):
    rng = np.random.default_rng(3)
    for _ in range(5):
        n, m = rng.integers(-5, 6, size=(2, 4)).astype(dtype)
        (found,) = enclose(WHOLE[name], n, m).ways
        true = WHOLE[name](jnp.asarray(n), jnp.asarray(m))
        for a, b in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, true))):
            assert a.dtype == b.dtype
            assert np.array_equal(a, b)


def ends(ball: arb) -> tuple[Fraction, Fraction]:
    middle, radius = draws.exactly(ball.mid()), draws.exactly(ball.rad())
    return middle - radius, middle + radius


def test_an_argument_is_exact_in_both_readings(x64):
    for reading in ("exact", "ulp"):
        (found,) = enclose(lambda x: x, np.array(0.1), reading=reading).ways
        assert ends(found.item()) == (Fraction(0.1), Fraction(0.1))


@pytest.mark.parametrize("inside", [False, True])
def test_a_constant_is_every_real_that_rounds_near_it(inside, x64):
    program = lambda x: (
        lax.scan(lambda c, _: (c + 0.1, None), x, length=1)[0] if inside else x + 0.1
    )
    (exact,) = enclose(program, np.array(0.0)).ways
    (near,) = enclose(program, np.array(0.0), reading="ulp").ways
    assert ends(exact.item()) == (Fraction(0.1), Fraction(0.1))
    low, high = ends(near.item())
    unit = 1024 * Fraction(math.ulp(0.1))
    assert low < Fraction(1, 10) < high
    assert Fraction(0.1) - low == pytest.approx(unit, rel=1e-6)
    assert high - Fraction(0.1) >= unit
    table = jnp.array([0.1, 0.25])
    (found,) = enclose(lambda x: x + table, np.zeros(2), reading="ulp").ways
    assert not found[0].is_exact()
    assert found[1].is_exact()


@pytest.mark.parametrize(
    ("x", "short"),
    [
        (0.0, True),
        (1.0, True),
        (-0.75, True),
        (1e6, True),
        (2.0**26 - 1, True),
        (2.0**26 + 1, False),
        (2.0**-26, True),
        (2.0**-27, False),
        (2.0**-1000, False),
        (2.0**1000, True),
        (1 + 2.0**-11, True),
        (1 + 2.0**-12, False),  # float32 has such: it may be rounded
        (float(np.float32(math.pi)), False),
        (0.1, False),
        (math.pi, False),
        (-1 / 3, False),
        (math.inf, True),
    ],
)
def test_a_constant_of_few_binary_digits_means_itself(x, short):
    assert is_short(x) is short
    assert constant(x, "exact").is_exact()
    assert constant(x, "ulp").is_exact() is short


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (1 - 0.99, Fraction(1, 100)),
        (100.2 - 100.1, Fraction(1, 10)),
        (math.sqrt(3) ** 4, Fraction(9)),
        (0.1 + 0.2 - 0.3, Fraction(0)),
        (100.1 - 100 - 0.1, Fraction(0)),
        (-1e6 * (0.1 + 0.2 - 0.3), Fraction(0)),
        (sum(1 / k for k in range(1, 11)), Fraction(7381, 2520)),
        (float(np.float32(0.1)), Fraction(1, 10)),
        (float(np.float32(1 / 3)), Fraction(1, 3)),
    ],
)
def test_a_constant_stands_for_what_a_short_computation_in_python_meant(written, meant):
    low, high = ends(constant(written, "ulp"))
    assert low <= meant <= high
    assert high - low <= max(1e-6 * abs(meant), 2.1 * abs(Fraction(written)))


def test_a_constant_of_another_type_is_read_by_the_units_of_that_type(x64):
    (found,) = enclose(
        lambda x: jnp.maximum(x, jnp.float32(0.1)), np.float32(0), reading="ulp"
    ).ways
    low, high = ends(found.item())
    assert low < Fraction(1, 10) < high
    assert high - low == pytest.approx(4 * 2.0**-27, rel=1e-3)


def test_a_tiny_constant_is_never_read_as_negative():
    assert nonnegative(constant(1e-12, "ulp"))


@pytest.mark.parametrize(
    ("function", "computed"),
    [
        (lambda x: x * 2.0, False),
        (lambda x: x * 0.1, True),
        (lambda x: x + np.array([1.0, 2.0]), True),
        (lambda x: x * np.array(2.0), False),
        (lambda x: x * np.int64(2**40 + 1).astype(float), True),
        (lambda x: x[(jnp.argmax(x) + 2**40 + 1) % 2], False),
    ],
)
def test_numbers_that_look_computed_are_noticed(function, computed, x64):
    assert enclose(function, np.ones(2)).computed is computed


def box(*balls: arb) -> np.ndarray:
    return reals((len(balls),), balls)


OPEN = arb(0, 1)


def test_each_way_of_several_forks_is_taken_once(x64):
    program = lambda x: (jnp.where(x[0] > 0, 1, 2), jnp.argmax(x[1:]), jnp.where(x[0] > 0, 5, 6))
    ways = enclose(program, box(OPEN, OPEN, OPEN, OPEN)).ways
    found = sorted(tuple(int(v) for v in way) for way in ways)
    assert found == sorted((a, i, b) for a in (1, 2) for i in range(3) for b in (5, 6))


@pytest.mark.parametrize(("entries", "ways"), [(16, 16), (17, None)])
def test_a_choice_among_too_many_is_undecided(entries, ways, x64):
    if ways is None:
        with pytest.raises(Undecided, match="too many continuations"):
            enclose(jnp.argmax, box(*[OPEN] * entries))
    else:
        assert len(enclose(jnp.argmax, box(*[OPEN] * entries)).ways) == ways


@pytest.mark.parametrize(("entries", "ways"), [(6, 64), (7, None), (9, None)])
def test_too_many_ways_are_undecided(entries, ways, x64):
    program = lambda x: (x > 0).astype(int)
    if ways is None:
        with pytest.raises(Undecided, match=r"too many continuations|more than 64 paths"):
            enclose(program, box(*[OPEN] * entries))
    else:
        assert len(enclose(program, box(*[OPEN] * entries)).ways) == ways


def test_what_is_not_needed_is_not_run(x64):
    def program(x):
        lax.nextafter(x, 0.0)  # without a rule
        return x + 1

    (found,) = enclose(program, np.array(1.0)).ways
    assert ends(found.item()) == (2, 2)


def test_what_is_not_needed_of_a_called_program_is_not_run(x64):
    inner = jax.jit(lambda x: (x + 1, lax.nextafter(x, 0.0)))
    (found,) = enclose(lambda x: inner(x)[0], np.array(1.0)).ways
    assert ends(found.item()) == (2, 2)


def test_folds_of_nothing(x64):
    nothing = lambda x: (jnp.sum(x[:0]), jnp.prod(x[:0]), jnp.dot(x[:0], x[:0]))
    (found,) = enclose(nothing, np.ones(2)).ways
    assert [ends(v.item()) for v in found] == [(0, 0), (1, 1), (0, 0)]


def test_the_time_is_kept(x64):
    with pytest.raises(Undecided, match="longer than its time limit"):
        enclose(lambda x: x + 1, np.array(1.0), seconds=-1)


def test_rules_can_be_left_out(x64):
    with pytest.raises(NotSupported, match="no rule for primitive='add'"):
        enclose(lambda x: x + 1, np.array(1.0), rules={})


def test_a_rule_of_another_shape_is_refused(x64):
    rules = {"sin": lambda eqn, xs, run: [xs[0][:1]]}
    with pytest.raises(NotSupported, match="the rule for primitive='sin' gives the shape"):
        enclose(jnp.sin, np.ones(3), rules=rules)


def test_a_loop_without_end_is_given_up(x64, monkeypatch):
    monkeypatch.setattr(loops, "LONGEST", 5)
    twice = lambda x: lax.while_loop(lambda s: s > 0, lambda s: s * 2, x)
    with pytest.raises(NotSupported, match="more than 5 steps"):
        enclose(twice, np.array(1.0))


def test_a_scan_of_nothing(x64):
    program = lambda x: lax.scan(lambda c, v: (c + v, c * v), 2.0, x)
    ((carry, rest),) = enclose(program, np.zeros(0)).ways
    assert ends(carry.item()) == (2, 2)
    assert rest.shape == (0,)


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (lambda x: jnp.arange(3)[jnp.argmax(x)] + x.astype(int), box(OPEN, arb(5))),
        (lambda x: jnp.arange(9.0)[x.astype(int)], box(arb(2.5, 1))),
        (lambda x: lax.dynamic_slice(jnp.arange(9.0), (x[0].astype(int),), (2,)), box(OPEN)),
        (lambda x: x.astype(jnp.int8), np.array(300.0)),
        (lambda x: x.astype(jnp.uint8), np.array(-3.0)),
        (lambda x: jnp.sort(x), box(arb("nan"), arb(1))),
        (jnp.argmax, box(arb("nan"), arb(1))),
        (lambda x: x.astype(jnp.int32), box(arb(1), arb(10**10))),
    ],
)
def test_what_hangs_on_an_open_number_is_undecided(function, given, x64):
    with pytest.raises(Undecided):
        enclose(function, given)


@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5)])
def test_vectors_at_a_point_have_the_signs_that_jax_gives(shape, x64):
    rng = np.random.default_rng(5)
    for _ in range(10):
        x = rng.normal(size=shape)
        (u, _, v), *others = enclose(lambda x: jnp.linalg.svd(x, full_matrices=False), x).ways
        true = jnp.linalg.svd(x, full_matrices=False)
        assert not others
        assert np.allclose(midpoints(u), true[0])
        assert np.allclose(midpoints(v), true[2])
        if shape == (3, 3):
            (_, vectors), *_ = enclose(jnp.linalg.eigh, x).ways
            assert np.allclose(midpoints(vectors), jnp.linalg.eigh(x)[1])


@pytest.mark.parametrize("how", ["a box", "a zero"])
def test_vectors_of_a_box_or_with_a_zero_have_either_sign(how, x64):
    rng = np.random.default_rng(5)
    near = lambda found, true: np.allclose(midpoints(found), true, atol=1e-4)
    x = rng.normal(size=(2, 2))
    given = box(*map(arb, x.ravel(), [1e-6] * 4)).reshape(2, 2)
    if how == "a zero":
        x[0, 1] = 0.0
        given = x
    ways = enclose(lambda x: jnp.linalg.svd(x, full_matrices=False), given).ways
    u, _, v = jnp.linalg.svd(x, full_matrices=False)
    assert len(ways) == 4
    assert sum(near(way[0], u) and near(way[2], v) for way in ways) == 1
    assert all(near(way[0] @ np.diag(way[1]) @ way[2], x) for way in ways)


def test_vectors_of_a_repeated_value_are_unknown(x64):
    for _, vectors in enclose(jnp.linalg.eigh, np.diag([1.0, 1, 3])).ways:
        known = [all(v.is_finite() for v in column) for column in vectors.T]
        assert known == [False, False, True]
        assert np.allclose(np.abs(midpoints(vectors[:, 2])), [0, 0, 1])


def test_full_vectors_of_a_tall_matrix_are_refused_where_they_are_used(x64):
    x = np.arange(6.0).reshape(3, 2)
    with pytest.raises(NotSupported, match="full matrices"):
        enclose(jnp.linalg.svd, x)
    (values,) = enclose(lambda x: jnp.linalg.svd(x)[1], x).ways
    assert midpoints(values) == pytest.approx(np.linalg.svd(x)[1])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: 1 / x,
        lambda x: 1 / -x,
        lambda x: 1 / (-1 * x),
        lambda x: x**-1,
        lambda x: (-x) ** -3.0,
        lax.rsqrt,
    ],
)
def test_what_is_divided_by_zero_is_unknown(function, x64):
    (found,) = enclose(function, np.array(0.0)).ways
    assert found.item().is_nan()


def lower_solve(a, b):
    return lax.linalg.triangular_solve(a, b, left_side=True, lower=True)


@pytest.mark.parametrize("solve", [jnp.linalg.solve, lower_solve])
def test_solutions_of_singular_systems_are_unknown(solve, x64):
    (found,) = enclose(solve, np.array([[1.0, 0], [1, 0]]), np.ones((2, 1))).ways
    assert all(v.is_nan() for v in found.ravel())


def test_the_square_of_a_length_is_not_negative(x64):
    (found,) = enclose(lambda x: x @ x, box(arb(0.5, 1.5), arb(0.5, 1.5))).ways
    assert ends(found.item()) == pytest.approx((0, 8), abs=1e-6)


@pytest.mark.parametrize("function", [jnp.linalg.eigvalsh, lambda x: jnp.linalg.svd(x)[1]])
def test_values_of_an_unknown_matrix_are_unknown(function, x64):
    (found,) = enclose(function, box(arb(1), arb("nan"), arb(2), arb(3)).reshape(2, 2)).ways
    assert all(v.is_nan() for v in found)


def test_a_linear_solve_is_the_program_that_stands_there(x64):
    """One step of Jacobi, not the solution: solve(b) = b / 4 for 3x + y, x + 5y."""
    matrix = np.array([[3.0, 1], [1, 5]])
    once = lambda b: lax.custom_linear_solve(
        lambda v: matrix @ v, b, lambda mv, v: v / 4, symmetric=True
    )
    (found,) = enclose(once, np.array([1.0, 2])).ways
    assert [ends(v) for v in found] == [(0.25, 0.25), (0.5, 0.5)]


def test_direct_solves_are_run_also_for_a_batch(x64):
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(3, 2, 2)), rng.normal(size=(3, 2, 2))
    (found,) = enclose(jnp.linalg.solve, a, b).ways
    assert np.allclose(midpoints(found), np.linalg.solve(a, b))


def test_values_of_a_repeated_value_are_exact(x64):
    (values, vectors), *_ = enclose(jnp.linalg.eigh, np.diag([2.0, 2.0, 5.0])).ways
    assert [ends(v) for v in values] == [(2, 2), (2, 2), (5, 5)]
    assert [v.is_nan() for v in vectors[0]] == [True, True, False]


@pytest.mark.parametrize(
    ("a", "b", "low", "high"), [(1, 3, 1, 3), (arb(0, 1), 5, -1, 5), (2, 2, 2, 2)]
)
def test_a_hull_contains_both(a, b, low, high):
    found = ends(hull(arb(a), arb(b)))
    assert found == pytest.approx((low, high), abs=1e-8)
    assert found[0] <= low
    assert found[1] >= high


def test_a_hull_with_an_infinity_is_unknown_unless_both_are_it():
    infinite = arb("inf")
    assert hull(infinite, arb(1)).is_nan()
    assert hull(arb(1), infinite).is_nan()
    assert hull(infinite, -infinite).is_nan()
    assert hull(infinite, infinite) == infinite
    assert hull(arb("nan"), arb("nan")).is_nan()


@pytest.mark.parametrize("x", [0.1, -0.1, 1e300, -5e-324, 0.0, 3.0, 2**-0.5])
def test_decimals_lie_around_the_ball(x):
    for ball in (arb(x), arb(x, 1e-20), arb(x, 2)):
        with precision(192):
            low, high = map(Fraction, decimal_bounds(ball))
        inner = ends(ball)
        assert low <= inner[0] <= inner[1] <= high
        size = max(abs(low), abs(high))
        assert max(inner[0] - low, high - inner[1]) <= size / 10**28
    assert as_fraction(arb(x)) == Fraction(x)


def test_decimals_of_what_no_memory_holds_are_powers_of_ten():
    for x, low, high in ((arb(10) ** 9999, 9997, 10001), (arb(10) ** -9999, -10001, -9997)):
        found = [int(end.removeprefix("1e")) for end in decimal_bounds(x)]
        assert low <= found[0] < found[1] <= high
        least, most = decimal_bounds(-x)
        assert least.startswith("-1e") and most.startswith("-1e")
        assert arb(10) ** found[0] < x < arb(10) ** found[1]
    started = time.monotonic()
    decimal_bounds(arb(10**15).exp())
    assert time.monotonic() - started < 1


def test_decimals_of_what_is_no_number():
    assert decimal_bounds(arb("inf")) == ("inf", "inf")
    assert decimal_bounds(arb("-inf")) == ("-inf", "-inf")
    assert decimal_bounds(arb("nan")) == ("nan", "nan")
    assert decimal_bounds(arb("0 +/- inf")) == ("nan", "nan")
