"""Programs run in NumPy against the same programs compiled by XLA, which shares no code with them.

Threefry is checked against the known answers of its authors as well (Random123, kat_vectors).
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxbounds.falsification import float64_on_cpu
from jaxbounds.programs.interpreted import NotInterpreted, interpreted
from jaxbounds.programs.interpreted.draws import as_numbers, threefry
from jaxbounds.programs.traces import executed

random = jax.random


@pytest.mark.parametrize("key, count, answer", [
    (0x0000000000000000, 0x0000000000000000, 0x6B20015999BA4EFE),
    (0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0x1CB996FCBB002BE7),
    (0x13198A2E03707344, 0x243F6A8885A308D3, 0xC4923A9C483DF7A0),
])  # fmt: skip
def test_known_answers_of_threefry(key, count, answer):
    assert int(threefry(np.uint64(key)[None], np.uint64(count)[None])[0]) == answer


def _agree(function, *arguments):
    """What both give: the same types and shapes, floats up to rounding, all else the same."""
    with float64_on_cpu():
        arguments = [x if hasattr(x, "dtype") else jnp.asarray(x) for x in arguments]
        found = interpreted(jax.make_jaxpr(function)(*arguments))(*arguments)
        wanted = jax.tree.leaves(jax.jit(function)(*arguments))
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted):
        if jax.dtypes.issubdtype(other.dtype, jax.dtypes.prng_key):
            other = as_numbers(other)
        other = np.asarray(other)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        if one.dtype.kind == "f":
            few = 1e-12 if one.dtype == np.float64 else 1e-5
            np.testing.assert_allclose(one, other, rtol=few, atol=few)
        else:
            np.testing.assert_array_equal(one, other)


DRAWS = {
    "normal": lambda k: random.normal(k, (2, 3)),
    "float32": lambda k: random.normal(k, (3,), jnp.float32),
    "uniform": lambda k: random.uniform(k, (4,), minval=-2.0, maxval=5.0),
    "whole": lambda k: random.randint(k, (5,), -100, 100),
    "narrow": lambda k: random.randint(k, (5,), 0, 200, dtype=jnp.uint8),
    "large": lambda k: random.randint(k, (5,), 0, 2**40),
    "order": lambda k: random.permutation(k, 7),
    "some": lambda k: random.choice(k, 9, (4,), replace=False),
    "weighted": lambda k: random.categorical(k, jnp.arange(4.0)),
    "coins": lambda k: random.bernoulli(k, 0.3, (4,)),
    "signs": lambda k: random.rademacher(k, (5,)),
    "exponential": lambda k: random.exponential(k, (3,)),
    "laplace": lambda k: random.laplace(k, (3,)),
    "cauchy": lambda k: random.cauchy(k, (3,)),
    "truncated": lambda k: random.truncated_normal(k, -1.0, 2.0, (3,)),
    "binomial": lambda k: random.binomial(k, 400, 0.5, (3,)),
    "folded": lambda k: random.normal(random.fold_in(k, 7), (2,)),
    "words": lambda k: random.bits(random.wrap_key_data(random.key_data(k)), (3,), "uint16"),
    "keys": lambda k: random.split(k, (2, 3))[1, 2],
}


@pytest.mark.parametrize("name", DRAWS)
def test_what_is_drawn_is_what_jax_draws(name):
    with float64_on_cpu():
        _agree(jax.vmap(DRAWS[name]), random.split(random.key(3), 16))


X = np.array([[0.3, -1.5, 2.0], [1.0, 0.0, -0.2]])
N = np.array([[7, -7, 3], [-4, 0, 5]])
AT = np.array([2, 0, 1, 1])


@jax.custom_vjp
def _twice(x):
    return 2 * x


_twice.defvjp(lambda x: (_twice(x), None), lambda _, slope: (2 * slope,))


def _put_together(values, vectors):
    """The matrix of a spectrum: nobody chooses its signs."""
    return (vectors * values[None]) @ vectors.T


FUNCTIONS = {
    "elementary": lambda x: [
        f(x) for f in (
            jnp.exp, jnp.expm1, jnp.log1p, jnp.tanh, jnp.sinh, jnp.cosh, jnp.arctan, jnp.arcsinh,
            jnp.sin, jnp.cos, jnp.sign, jnp.floor, jnp.ceil, jnp.round, jnp.abs, lax.erf, lax.erfc,
            jax.nn.sigmoid, jnp.isfinite, jnp.sqrt, jnp.cbrt, jnp.square, lax.rsqrt, lax.exp2,
            lambda x: lax.lgamma(x + 9), lambda x: lax.digamma(x + 9), lambda x: lax.erf_inv(x / 3),
            lambda x: lax.round(x + 0.5, lax.RoundingMethod.AWAY_FROM_ZERO), lax.stop_gradient,
            lambda x: jnp.nextafter(x, 9.0), lambda x: jnp.arctan2(x, x[:1]), jnp.tan,
            lambda x: jnp.arcsin(x / 3), lambda x: jnp.arccos(x / 3), lambda x: jnp.arccosh(x + 3),
            lambda x: jnp.arctanh(x / 3), lambda x: jnp.log(x + 3),
        )
    ],
    "searched": lambda x: [jnp.searchsorted(jnp.sort(x[0]), x, side=s) for s in ("left", "right")],
    "interpolated": lambda x: jnp.interp(x, jnp.arange(3.0), x[0]),
    "binary logarithm": lambda x: jnp.log2(jnp.abs(x)),
    "slopes of tanh": lambda x: jax.hessian(lambda y: jnp.sum(jnp.tanh(y) ** 3))(x[0]),
    "powers": lambda x: (x**3, (x + 5) ** -2, (x + 5) ** 0.3, jnp.hypot(x, x[:1])),
    "order": lambda x: (x < x[:1], x <= 0, x > 0, x >= 1, x == 1, x != 1, ~(x > 0) ^ (x < 1)),
    "choice": lambda x: (jnp.where(x > 0, x, -1), jnp.clip(x, -1, 1), jnp.maximum(x, 0)),
    "cases": lambda x: lax.select_n(jnp.array([[0, 1, 2], [2, 1, 0]]), x, 2 * x, 3 * x),
    "moved": lambda x: (x.T, x[::-1], x[:, 1:], x.reshape(3, 2), x[None], jnp.stack([x, x], 1)),
    "joined": lambda x: (jnp.concatenate([x, x], 1), jnp.pad(x, ((1, 0), (0, 2)))),
    "split": lambda x: jnp.split(x, 3, 1),
    "folds": lambda x: [
        f(x, axis) for axis in (0, 1) for f in (
            jnp.sum, jnp.max, jnp.min, jnp.prod, jnp.argmax, jnp.argmin, jnp.cumsum,
        )
    ],
    "running": lambda x: (lax.cummax(x, 1, reverse=True), lax.cummin(x), lax.cumprod(x, 1)),
    "any": lambda x: (jnp.any(x > 1, 0), jnp.all(x > -1, 1)),
    "products": lambda x: (x @ x.T, jnp.einsum("ij,kj->jik", x, x), jnp.einsum("ij,ij->i", x, x)),
    "sorted": lambda x: (jnp.sort(x, 0), jnp.argsort(x), lax.top_k(x, 2)),
    "taken": lambda x: (x[:, AT], x[1, AT], jnp.take_along_axis(x, x.astype(int) % 3, 1)),
    "taken by rows": jax.vmap(lambda row: row[jnp.argsort(row)[:2]]),
    "outside": lambda x: (x.at[:, 9].get(mode="fill", fill_value=5.0), x.at[0, 9].get(mode="clip")),
    "outside, as said": lambda x: [
        y.at[:, 9].get(mode="fill") for y in (x, x.astype(int), x > 0, jnp.abs(x).astype(jnp.uint8))
    ],
    "put": lambda x: (x.at[0, AT[:3]].set(1.0), x.at[:, AT].add(2.0), x.at[1].multiply(3.0)),
    "extremes put": lambda x: (x.at[0, AT].max(1.0), x.at[0, AT].min(1.0)),
    "put outside": lambda x: x.at[:, jnp.array([1, 9])].set(7.0, mode="drop"),
    "put by rows": jax.vmap(lambda row: row.at[jnp.argmax(row)].set(0.0)),
    "window": lambda x: (
        lax.dynamic_slice(x, (jnp.argmax(x[:, 0]), 5), (1, 2)),
        lax.dynamic_update_slice(x, x[:1, :2], (0, jnp.argmin(x[0]))),
    ),
    "scan": lambda x: lax.scan(lambda c, row: (c + row, c * row), x[0], x),
    "back": lambda x: lax.scan(lambda c, row: (c - 2 * row, c), x[0], x, reverse=True),
    "while": lambda x: lax.while_loop(lambda c: jnp.sum(c) < 99, lambda c: c * c + 1, x),
    "while, a batch": jax.vmap(
        lambda row: lax.while_loop(lambda c: jnp.sum(c) < 99, lambda c: c * c + 1, row)
    ),
    "cond": lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
    "platforms": lambda x: (
        lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos),
        lax.platform_dependent(x, tpu=jnp.sin, default=jnp.cos),
    ),
    "switch": lambda x: lax.switch(jnp.argmax(x[0]), [jnp.sin, jnp.cos, jnp.exp, jnp.tanh], x),
    "calls": lambda x: (jax.jit(jnp.sin)(x), jax.checkpoint(jnp.cos)(x), jax.nn.relu(x)),
    "repeated": lambda x: (jnp.tile(x, (2, 3)), jnp.unstack(x), jnp.unstack(x, axis=1)),
    "own rules": lambda x: (_twice(x), jnp.cbrt(x), jax.nn.silu(x)),
    # Vectors up to their signs, which are LAPACK's to choose.
    "spectra": lambda x: (
        jnp.linalg.eigvalsh(x @ x.T), _put_together(*jnp.linalg.eigh(x.T @ x)),
        jnp.linalg.svd(x, compute_uv=False), jnp.linalg.norm(x, 2), jnp.linalg.norm(x, "nuc"),
        [u * s[None] @ v for u, s, v in [jnp.linalg.svd(x, full_matrices=False)]],
        [jnp.abs(v) for v in jnp.linalg.svd(x)[::2]],
    ),
    "bases": lambda x: [q @ r for q, r in (jnp.linalg.qr(x), jnp.linalg.qr(x.T, "complete"))],
    "systems": lambda x: [
        jnp.linalg.solve(x[:, :2] + 3 * jnp.eye(2), x), jnp.linalg.det(x[:, :2]),
        jnp.linalg.inv(x[:, :2] + 3 * jnp.eye(2)), jnp.linalg.slogdet(x[:, :2]),
        jax.scipy.linalg.expm(x[:, :2]), lax.linalg.lu(x), lax.linalg.lu(x.T),
        lax.linalg.lu(jnp.ones((2, 2))),
    ],
    "triangles": lambda x: [
        solve(a + 3 * jnp.eye(2), b, trans=trans, lower=lower, unit_diagonal=unit)
        for solve in (jax.scipy.linalg.solve_triangular,) for a, b in ((x[:, :2], x),)
        for trans in (0, 1) for lower in (False, True) for unit in (False, True)
    ],
    "triangles, right": lambda x: lax.linalg.triangular_solve(
        x[:, :2] + 3 * jnp.eye(2), x.T, left_side=False, lower=True
    ),
    "kinds": lambda x: [x.astype(k) for k in (int, bool, jnp.float32)] + [(x > 0).astype(float)],
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_floats(name):
    with float64_on_cpu():
        _agree(FUNCTIONS[name], jnp.asarray(X))


def test_functions_of_integers():
    divided = lambda n: (lax.div(n, n[:1] + 5), lax.rem(n, n[:1] + 9), n // 2, n % 3, -n, n * n)
    bits = lambda n: (
        n << 3,
        n >> 2,
        lax.shift_right_logical(n, 60 + 0 * n),
        n & 6,
        n | 9,
        n ^ 5,
        ~n,
    )
    seen = lambda n: lax.bitcast_convert_type(n, jnp.float64)
    with float64_on_cpu():
        for function in (divided, bits, seen):
            _agree(function, jnp.asarray(N))


def test_singular_values_of_a_matrix_that_is_not_finite_are_nan_and_lapack_is_not_asked(
    monkeypatch,
):
    """LAPACK prints a line for such a matrix; the compiler's NaN is what it returns."""
    bad = np.stack([np.eye(3), np.full((3, 3), np.nan), np.diag([1, np.inf, 1.0]),
                    np.full((3, 3), -np.inf), np.arange(9.0).reshape(3, 3)])  # fmt: skip
    _agree(lambda x: jnp.linalg.svd(x, compute_uv=False), bad)
    asked, real = [], np.linalg.svd
    watched = lambda a, **given: (asked.append(a), real(a, **given))[1]
    monkeypatch.setattr(np.linalg, "svd", watched)
    with float64_on_cpu():
        norms = lambda x: jnp.linalg.norm(x, 2, axis=(1, 2))
        (found,) = interpreted(jax.make_jaxpr(norms)(bad))(bad)
    assert asked and all(np.all(np.isfinite(a)) for a in asked)
    assert np.isnan(found).tolist() == [False, True, True, True, False]


@pytest.mark.parametrize("function, words", [
    (lambda x: jnp.fft.fft(x), "(fft|jit) with dtype=complex128|no rule for fft"),
    (lambda x: jnp.linalg.eigvalsh(x.T @ x / 0), "infinite entries"),
    (lambda x: jnp.linalg.svd(x / 0), "infinite entries"),
    (lambda x: jnp.linalg.qr(x / 0), "infinite entries"),
    (lambda x: lax.linalg.svd(x, full_matrices=False, subset_by_index=(0, 1)),
     "svd with unknown or .* subset_by_index"),
    (lambda x: lax.linalg.eigh(x.T @ x, subset_by_index=(0, 1)),
     "eigh with unknown .* subset_by_index"),
    (lambda x: lax.linalg.qr(x, pivoting=True), "with pivots"),
    (lambda x: jax.scipy.linalg.solve_triangular(0 * x[:, :2], x), "a singular system"),
    (lambda x: x.astype(int) >> 64, "more bits than there are"),
    (lambda x: random.normal(random.key(0, impl="rbg"), (2,)) + x[0, 0], "no rule|keys of"),
    (lambda x: (x / 0).astype(int), "beyond an integer type's range"),
    (lambda x: lax.div(x.astype(int), 0 * x.astype(int)), "divided by zero"),
    (lambda x: x.astype(int) << 64, "more bits than there are"),
    (lambda x: lax.pad(x, 0.0, ((0, 0, 1), (0, 0, 0))), "between"),
    (lambda x: lax.reshape(x, (6,), (1, 0)), "reshape with unknown .* dimensions"),
    (lambda x: lax.scan(lambda c, r: (c, r), 0.0, x[:0]), "zero steps"),
    (lambda x: x.at[:, jnp.array([1, 9])].get(mode="promise_in_bounds"), "outside"),
])  # fmt: skip
def test_what_is_left_to_the_compiler(function, words):
    with float64_on_cpu():
        program = jax.make_jaxpr(function)(jnp.asarray(X))
        with pytest.raises(NotInterpreted, match=words):
            interpreted(program)(X)


def test_keys_of_other_kinds_are_left_to_the_compiler():
    with float64_on_cpu(), jax.threefry_partitionable(False):
        program = jax.make_jaxpr(lambda k: random.split(k))(random.key(0))
        with pytest.raises(NotInterpreted, match="keys of"):
            interpreted(program)


def test_how_many_equations_run():
    loop = lambda x: lax.scan(lambda c, _: (jnp.sin(c) + 1.0, None), x, None, length=7)[0]
    count = lambda function: executed(jax.make_jaxpr(function)(1.0).jaxpr)
    assert count(lambda x: jnp.sin(x) * 2.0) == 2
    assert count(loop) == 14 and count(lambda x: jax.jit(loop)(x) + 1.0) == 15
    # Of many numbers as many as take that long; of a product the multiplications.
    assert count(lambda x: jnp.sin(jnp.zeros((100, 100)))) == 2 * (1 + 5)
    assert count(lambda x: jnp.zeros((100, 10)) @ jnp.ones((10, 100))) == 2 + 1 + 50
    assert count(lambda x: lax.while_loop(lambda c: c < 9, lambda c: 2 * c, x)) == np.inf
