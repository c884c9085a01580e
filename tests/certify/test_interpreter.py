"""What the interpreter does around its rules: whole numbers, readings, forks, limits, refusals.

The oracle for whole numbers is JAX itself, which is exact on them and shares no code with NumPy.
"""

import math
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb
from jax import lax
from oracle import draws

from jaxbounds.certification import Undecided, enclose
from jaxbounds.programs.balls.values import constant, midpoints, reals


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


def box(*balls: arb) -> np.ndarray:
    return reals((len(balls),), balls)


OPEN = arb(0, 1)


@pytest.mark.parametrize(("entries", "ways"), [(6, 64), (7, None)])
def test_too_many_ways_are_undecided(entries, ways, x64):
    program = lambda x: (x > 0).astype(int)
    if ways is None:
        with pytest.raises(Undecided, match=r"too many continuations|more than 64 paths"):
            enclose(program, box(*[OPEN] * entries))
    else:
        assert len(enclose(program, box(*[OPEN] * entries)).ways) == ways


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


def test_solutions_of_singular_systems_are_unknown(x64):
    (found,) = enclose(jnp.linalg.solve, np.array([[1.0, 0], [1, 0]]), np.ones((2, 1))).ways
    assert all(v.is_nan() for v in found.ravel())


def test_direct_solves_are_run_also_for_a_batch(x64):
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(3, 2, 2)), rng.normal(size=(3, 2, 2))
    (found,) = enclose(jnp.linalg.solve, a, b).ways
    assert np.allclose(midpoints(found), np.linalg.solve(a, b))
