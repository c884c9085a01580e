"""Programs for the rules that act entry by entry; oracle: `truth`, entry by entry."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from mpmath import mp, mpf

from oracle import truth
from oracle.programs import Draw, Program, floats, of_fractions, signs

INSIDE = {
    "acosh": (1.6, 4),
    "asin": (-0.4, 0.4),
    "acos": (-0.4, 0.4),
    "atanh": (-0.4, 0.4),
    "erf_inv": (-0.4, 0.4),
    **dict.fromkeys(("sqrt", "rsqrt", "log", "lgamma", "digamma"), (0.6, 4)),
    **dict.fromkeys(("pow", "igamma", "igammac"), (0.6, 4)),
    "log1p": (-0.4, 4),
}
"""Where a box of half-width 1/2 stays in the domain."""


def nearest_single(x: Fraction) -> Fraction:
    """The float32 next to a number: NumPy's guess and its neighbours, compared as fractions."""
    guess = np.float32(float(x))
    near = [
        guess,
        np.nextafter(guess, np.float32(np.inf)),
        np.nextafter(guess, np.float32(-np.inf)),
    ]
    even = lambda v: int(v.view(np.uint32)) % 2
    return Fraction(float(min(near, key=lambda v: (abs(Fraction(float(v)) - x), even(v)))))


def _within(name: str, *shapes: tuple[int, ...]) -> Draw:
    low, high = INSIDE.get(name, (-4, 4))
    return floats(*shapes, low=low, high=high)


def _scalar(name: str, count: int) -> Program:
    table = truth.UNARY if count == 1 else truth.BINARY
    function = _sum_of_cotangents if name == "add_any" else getattr(lax, name)
    return Program(function, of_fractions(table[name], count), _within(name, *[(3,)] * count))


def _sum_of_cotangents(a: jax.Array, b: jax.Array) -> jax.Array:
    """What two uses of a variable send back."""
    return jax.vjp(lambda x: (x, x), a)[1]((a, b))[0]


def _comparison(name: str) -> Program:
    value = of_fractions(truth.COMPARISONS[name], 2)
    return Program(getattr(lax, name), value, floats((4,), (4,), low=-1, high=1))


def _pick(which: np.ndarray, no: np.ndarray, yes: np.ndarray) -> np.ndarray:
    return np.where(which.astype(bool), yes, no)


def _masked(rng: np.random.Generator) -> list[np.ndarray]:
    x, y = floats((4,), (4,))(rng)
    return [rng.random(4) < 0.5, x, y]


def _indexed(rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.integers(0, 3, size=4).astype(np.int32), *floats((4,), (4,), (4,))(rng)]


def _with_infinities(rng: np.random.Generator) -> list[np.ndarray]:
    (x,) = floats((4,))(rng)
    return [np.where(rng.random(4) < 0.5, rng.choice((math.inf, -math.inf), size=4), x)]


TWO, THREE = floats((3,), (3,)), floats((3,), (3,), (3,))
ONE = floats((4,))
LOGIC = floats((3,), (3,), low=-0.6, high=0.6)
ROUNDING = {method.name: method for method in lax.RoundingMethod}
whole = of_fractions(lambda x: math.trunc(x), 1)
as_int = of_fractions(int, 1)


def _log2(x: Fraction) -> mpf | None:
    with mp.workprec(truth.BITS):
        found = truth.UNARY["log"](x)
        return None if found is None else found / mp.log(2)


def _horner(x: jax.Array, coefficients: list[jax.Array]) -> jax.Array:
    a, b, c = coefficients
    return a + x * (b + x * c)


PROGRAMS: dict[str, tuple[Program, ...]] = {
    "log2": (Program(jnp.log2, of_fractions(_log2, 1), _within("log", (3,))),),
    "one_minus_square": (
        Program(getattr(lax, "one_minus_square", lambda x: 1 - x * x), lambda x: 1 - x * x, ONE),
    ),
    "polynomial": (
        Program(
            lambda x, a, b: getattr(lax, "polynomial", _horner)(x, [a, b, a]),
            lambda x, a, b: a + x * (b + x * a),
            floats((3,), (3,), (3,)),
        ),
    ),
    **{name: (_scalar(name, 1),) for name in truth.UNARY},
    **{name: (_scalar(name, 2),) for name in truth.BINARY},
    **{name: (_comparison(name),) for name in truth.COMPARISONS},
    "is_finite": (
        Program(
            lax.is_finite,
            of_fractions(lambda x: not (isinstance(x, float) and math.isinf(x)), 1),
            _with_infinities,
        ),
    ),
    "and": (Program(lambda x, y: (x > 0) & (y > 0), lambda x, y: signs(x) & signs(y), LOGIC),),
    "or": (Program(lambda x, y: (x > 0) | (y > 0), lambda x, y: signs(x) | signs(y), LOGIC),),
    "xor": (Program(lambda x, y: (x > 0) ^ (y > 0), lambda x, y: signs(x) ^ signs(y), LOGIC),),
    "not": (Program(lambda x: ~(x > 0), lambda x: ~signs(x), ONE),),
    "select_n": (
        Program(
            lambda x, y, z: jnp.where(x > 0, y, z), lambda x, y, z: _pick(signs(x), z, y), THREE
        ),
        Program(
            lambda x, y, z: jnp.where(x > 0, y > 0, z > 0),
            lambda x, y, z: _pick(signs(x), signs(z), signs(y)),
            THREE,
        ),
        Program(
            lambda x: jnp.where(x > 0, 3, jnp.arange(4) + 2),
            lambda x: _pick(signs(x), np.arange(4) + 2, np.full(4, 3)),
            ONE,
        ),
        Program(lambda m, x, y: jnp.where(m, x, y), lambda m, x, y: _pick(m, y, x), _masked),
        Program(
            lambda m, x, y: jnp.where(m, x > 0, y > 0),
            lambda m, x, y: _pick(m, signs(y), signs(x)),
            _masked,
        ),
        Program(
            lambda i, x, y, z: lax.select_n(i, x, y, z),
            lambda i, x, y, z: np.array([(x, y, z)[k][j] for j, k in enumerate(i)]),
            _indexed,
        ),
        Program(
            lambda x, y, z: lax.select_n(x[0] > 0, y, z),
            lambda x, y, z: z if x[0] > 0 else y,
            THREE,
        ),
    ),
    "clamp": (
        Program(
            lambda x: lax.clamp(-1.0, x, 1.0),
            of_fractions(lambda x: min(max(x, Fraction(-1)), Fraction(1)), 1),
            ONE,
        ),
        Program(lax.clamp, of_fractions(lambda a, x, b: min(max(x, a), b), 3), THREE),
    ),
    "integer_pow": tuple(
        Program(
            lambda x, n=n: lax.integer_pow(x, n),
            of_fractions(lambda x, n=n: truth.power(x, Fraction(n)), 1),
            floats((3,), low=low),
        )
        for n, low in ((2, -4), (3, -4), (4, -4), (-2, 0.6), (-1, 0.6))
    ),
    "round": (
        Program(
            lambda x: lax.round(x, ROUNDING["TO_NEAREST_EVEN"]),
            of_fractions(truth.half_to_even, 1),
            ONE,
        ),
        Program(
            lambda x: lax.round(x, ROUNDING["AWAY_FROM_ZERO"]),
            of_fractions(truth.half_away, 1),
            ONE,
        ),
    ),
    "convert_element_type": (
        Program(lambda x: x.astype(jnp.int64), whole, ONE, forks=True),
        Program(lambda x: (x > 0).astype(jnp.float64), lambda x: as_int(signs(x)), ONE),
        Program(lambda x: (x > 0).astype(jnp.int64), lambda x: as_int(signs(x)), ONE),
        Program(lambda x: x.astype(bool), lambda x: (x != 0).astype(bool), ONE),
        Program(
            lambda x: x.astype(jnp.float32), np.vectorize(nearest_single, otypes=[object]), ONE
        ),
    ),
}
