"""Enclosed values of a program: balls for floats, three-valued flags for booleans.

An array of floats becomes a NumPy array of `flint.arb`. Every rule keeps two promises:

- A ball that is not NaN contains the real number that the entry stands for, and that number is
  certainly defined. NaN says that nothing is known: the entry may be any number, or undefined.
- A number that may be infinite is an infinity or NaN, and never inside of a finite ball.

Integers stay machine integers. A boolean that depends on overlapping balls is neither true nor
false but open.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from flint import arb

from jaxbounds.ground.exceptions import NotSupported as NotSupported
from jaxbounds.ground.exceptions import Undecided as Undecided
from jaxbounds.ground.jax_internals import JaxprEqn

Reading = Literal["exact", "ulp"]
"""The way to read a float in a program: "exact" takes the number itself, "ulp" every real that may
have rounded to the float (see `constant`)."""

ZERO, ONE = arb(0), arb(1)
NAN, INF = arb("nan"), arb("inf")
OPEN = 2
"""The entry of `Flags` for an open boolean, beside 0 and 1; no larger number is an entry."""


class Flags(np.ndarray):
    """Booleans of which some may be open: 0 means no, 1 yes, 2 open."""


class Nonnegative(arb):
    """A ball of numbers that are known not to be negative, though the ball reaches below zero.

    The radius of a ball has 30 bits, so no ball of positive radius begins exactly at zero.
    """


def nonnegative(x: arb, /) -> bool:
    """Tell whether the number for which the ball stands is certainly not negative."""
    return type(x) is Nonnegative or x >= 0


def known_nonnegative(x: arb, /) -> arb:
    """Return the ball, marked as the ball of a number that is not negative."""
    return x if not x.is_finite() or x >= 0 else Nonnegative(x)


def shape_of(atom: Any, /) -> tuple[int, ...]:
    """Return the shape of a variable or literal of a program."""
    return tuple(atom.aval.shape)


def axes_of(eqn: JaxprEqn, /) -> tuple[int, ...]:
    """Return the axes that a reduction folds."""
    return tuple(map(int, eqn.params["axes"]))


def dtype_of(atom: Any, /) -> Any:
    """Return the type of a variable or literal."""
    return atom.aval.dtype


def is_float(atom: Any, /) -> bool:
    """Tell whether a variable or literal has a type of floats."""
    return jax.dtypes.issubdtype(atom.aval.dtype, np.floating)


def is_narrow(dtype: Any, /) -> bool:
    """Tell whether a type of floats rounds more coarsely than float64."""
    return jax.dtypes.issubdtype(dtype, np.floating) and np.dtype(dtype).itemsize < 8


def flags(values: Any, /) -> Any:
    """Return plain booleans if every entry is decided, else `Flags`."""
    plain = np.asarray(values, dtype=np.int8)
    return plain.view(Flags) if (plain == OPEN).any() else plain.astype(bool)


def as_flags(x: Any, /) -> np.ndarray:
    """Return the entries 0, 1 and 2 of plain booleans or `Flags`, as integers."""
    return np.asarray(x).view(np.ndarray).astype(np.int8)


def settled(x: Any, run: Any, what: str, /) -> np.ndarray:
    """Return the booleans as 0 and 1; the program forks for each open one."""
    out = as_flags(x)
    for index in np.argwhere(out == OPEN):
        out[tuple(index)] = run.fork(2, what)
    return out


def reals(shape: tuple[int, ...], balls: Iterable[Any], /) -> np.ndarray:
    """Return an array of a shape from its balls (or other entries) in order."""
    return np.fromiter(balls, object).reshape(shape)  # raises if the shape has another size


def is_reals(x: Any, /) -> bool:
    """Tell whether an object is an array of balls."""
    return isinstance(x, np.ndarray) and x.dtype == object


def is_soft(x: Any, /) -> bool:
    """Tell whether an object holds balls or open flags, which JAX cannot compute with."""
    return is_reals(x) or isinstance(x, Flags)


UNITS = {53: 2**10}
"""Units in the last place by which a constant may be wrong, by the binary digits of its type. A
short computation with Python's own floats (1 - .99, 100.2 - 100.1) loses up to 2^10 units. Nobody
computes by hand in a narrower type, so its constants may be wrong by two units.
"""
RESIDUE = 2.0**-26
"""Size below which a constant may be the rest of a cancellation (.1 + .2 - .3) and may stand for
zero. A larger size reads more constants as zero.
"""


def _digits(dtype: Any) -> int:
    """Return the binary digits of a type's mantissa."""
    return int(jnp.finfo(dtype).nmant) + 1


SINGLE = 24
"""Binary digits of float32: a float64 of at most as many may have been rounded to float32 before. A
larger number reads more constants as rounded.
"""


def is_short(x: float, /, digits: int = 53) -> bool:
    """Tell whether a constant is exact: a whole number or fraction of few binary digits.

    A whole number may have half of the type's digits, a fraction half of float32's. A tiny constant
    is not exact, because it may be the rest of a cancellation.
    """
    if x == 0 or not math.isfinite(x):
        return True
    most = digits if float(x).is_integer() else min(digits, SINGLE)
    return abs(x) >= RESIDUE and has_few_digits(x, most)


def has_few_digits(x: float, /, digits: int = 53) -> bool:
    """Tell whether half of the binary digits of its type write the constant: nothing rounded it."""
    return not math.isfinite(x) or float(math.frexp(x)[0] * 2.0 ** (digits // 2)).is_integer()


def constant(x: float, reading: Reading, /, digits: int = 53) -> arb:
    """Return a float of the program as a ball.

    Under "ulp" a constant that is not short stands for all reals within some units in the last
    place of its type. If it is smaller than 2^-26, it also stands for zero, and for every number
    between zero and itself.
    """
    if reading == "exact" or is_short(x, digits):
        return arb(x)
    if has_few_digits(x, 2 * SINGLE):
        digits = min(digits, SINGLE)  # such as pi in float32, converted to float64
    unit = math.ldexp(1.0, max(math.frexp(x)[1] - digits, -1074))
    ball = arb(x, UNITS.get(digits, 2) * unit)
    if abs(x) >= RESIDUE:
        return ball
    return hull(ZERO, ball) if x > 0 else -hull(ZERO, -ball)


def enclosed(x: Any, /, reading: Reading = "exact") -> Any:
    """Return a concrete array as a value: floats become balls.

    Integers, booleans and keys stay unchanged.
    """
    if is_soft(x):
        return x
    if isinstance(x, jax.Array) and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        return x
    x = np.asarray(x)
    if not jax.dtypes.issubdtype(x.dtype, np.floating):
        return x
    digits = 53 if reading == "exact" else _digits(x.dtype)
    entries = x.astype(np.float64).ravel().tolist()
    return reals(x.shape, (constant(v, reading, digits) for v in entries))


def as_reals(x: Any, /) -> np.ndarray:
    """Return the balls of a rule's operand: exact balls for integers, [0, 1] for open booleans."""
    if is_reals(x):
        return x
    if isinstance(x, Flags):
        hulls = (hull(ZERO, ONE) if v == OPEN else arb(int(v)) for v in as_flags(x).ravel())
        return reals(x.shape, hulls)
    x = np.asarray(x)
    if jax.dtypes.issubdtype(x.dtype, np.floating):
        return enclosed(x)
    return reals(x.shape, (arb(int(v)) for v in x.ravel()))


def each(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """Apply a scalar rule entry by entry, with broadcasting."""
    if len({x.shape for x in arrays}) > 1:
        arrays = np.broadcast_arrays(*arrays)
    return reals(arrays[0].shape, map(function, *(x.flat for x in arrays)))


def hull(a: arb, b: arb, /) -> arb:
    """Return a ball that contains both; NaN if one is not finite and they differ."""
    if a.is_finite() and b.is_finite():
        both = a.union(b)
        return known_nonnegative(both) if nonnegative(a) and nonnegative(b) else both
    return a if a.is_exact() and b.is_exact() and a == b else NAN


def midpoints(x: np.ndarray, /) -> np.ndarray:
    """Return the balls' midpoints as floats, to choose pivots and signs; they prove nothing."""
    finite = (float(v.mid()) if v.is_finite() else math.nan for v in x.ravel())
    return np.fromiter(finite, float, x.size).reshape(x.shape)
