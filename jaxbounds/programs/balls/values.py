"""Represent enclosed values of a program: balls (intervals) for floats, flags for booleans.

An array of floats becomes a NumPy array of `flint.arb`. Every rule guarantees two properties:

- A ball that is not NaN contains the real number that the entry stands for, and the number is
  certainly defined. A NaN ball means an unknown entry of the array: any number, or an undefined
  entry.
- A number that may be infinite is stored as an infinity or as NaN, never as a finite ball.

The integers of a program stay machine integers. A boolean that depends on overlapping balls is open
(undecided).
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
"""The meaning of a float constant in a program. Under "exact" a float constant means exactly its
own value. Under "ulp" the constant means every real that may have rounded to it; see `constant`."""

ZERO, ONE = arb(0), arb(1)
NAN, INF = arb("nan"), arb("inf")
OPEN = 2
"""The number that stands for an open (undecided) boolean in `Flags`, beside 0 (no) and 1 (yes); no
entry is larger.
"""


class Flags(np.ndarray):
    """An array of three-valued booleans: 0 means no, 1 means yes, 2 means open (undecided)."""


class Nonnegative(arb):
    """A ball around a number that is known to be >= 0, although the ball reaches below zero.

    The radius of a ball has only 30 bits, so a ball of positive radius may not begin exactly at
    zero.
    """


def nonnegative(x: arb, /) -> bool:
    """Tell whether the number that the ball stands for is certainly >= 0."""
    return type(x) is Nonnegative or x >= 0


def known_nonnegative(x: arb, /) -> arb:
    """Return the ball, marked as the ball of a number that is >= 0."""
    return x if not x.is_finite() or x >= 0 else Nonnegative(x)


def shape_of(atom: Any, /) -> tuple[int, ...]:
    """Return the shape of a variable or literal of a program."""
    return tuple(atom.aval.shape)


def axes_of(eqn: JaxprEqn, /) -> tuple[int, ...]:
    """Return the axes along which a reduction, such as a sum, combines entries."""
    return tuple(map(int, eqn.params["axes"]))


def dtype_of(atom: Any, /) -> Any:
    """Return the dtype of a variable or literal of a program."""
    return atom.aval.dtype


def is_float(atom: Any, /) -> bool:
    """Tell whether a variable or literal of a program has a floating-point type."""
    return jax.dtypes.issubdtype(atom.aval.dtype, np.floating)


def is_narrow(dtype: Any, /) -> bool:
    """Tell whether a floating-point type has fewer digits than float64."""
    return jax.dtypes.issubdtype(dtype, np.floating) and np.dtype(dtype).itemsize < 8


def flags(values: Any, /) -> Any:
    """Return plain booleans, or `Flags` if an entry is undecided (2)."""
    plain = np.asarray(values, dtype=np.int8)
    return plain.view(Flags) if (plain == OPEN).any() else plain.astype(bool)


def as_flags(x: Any, /) -> np.ndarray:
    """Return booleans as an array of the integers 0 (false), 1 (true) and 2 (undecided)."""
    return np.asarray(x).view(np.ndarray).astype(np.int8)


def settled(x: Any, run: Any, what: str, /) -> np.ndarray:
    """Return booleans as 0 and 1.

    The interpreter runs the program once for each value of an undecided boolean.
    """
    out = as_flags(x)
    for index in np.argwhere(out == OPEN):
        out[tuple(index)] = run.fork(2, what)
    return out


def reals(shape: tuple[int, ...], balls: Iterable[Any], /) -> np.ndarray:
    """Return an array of the given shape from its balls (intervals), in row-major order."""
    return np.fromiter(balls, object).reshape(shape)  # raises if the number of balls differs


def is_reals(x: Any, /) -> bool:
    """Tell whether an object is an array of balls (intervals)."""
    return isinstance(x, np.ndarray) and x.dtype == object


def is_soft(x: Any, /) -> bool:
    """Tell whether an object is an array of balls or `Flags`, on which JAX cannot compute."""
    return is_reals(x) or isinstance(x, Flags)


UNITS = {53: 2**10}
"""The number of units in the last place by which a rounded constant of the program may be wrong.

The key of this dict is the number of binary digits of the constant's type. A short computation with
Python floats (1 - .99, 100.2 - 100.1) loses up to 2^10 units. For narrower types the library allows
only two units. A larger number of units makes wider balls.
"""
RESIDUE = 2.0**-26
"""A constant below this size may be the residue of a cancellation, such as .1 + .2 - .3.

The ball of a constant below this size also contains zero. A larger size widens the balls of more
constants.
"""


def _digits(dtype: Any) -> int:
    return int(jnp.finfo(dtype).nmant) + 1


SINGLE = 24
"""The number of binary digits of float32. A float64 constant with at most this many binary digits
may be a converted float32. A larger number treats more float64 constants as rounded float32
numbers.
"""


def is_short(x: float, /, digits: int = 53) -> bool:
    """Tell whether a constant counts as exact: an integer or fraction with few binary digits.

    An integer counts as exact with at most half of its type's digits, a fraction with at most half
    of float32's digits. A constant below `RESIDUE` does not count as exact, because it may be the
    residue of a cancellation.
    """
    if x == 0 or not math.isfinite(x):
        return True
    most = digits if float(x).is_integer() else min(digits, SINGLE)
    return abs(x) >= RESIDUE and has_few_digits(x, most)


def has_few_digits(x: float, /, digits: int = 53) -> bool:
    """Tell whether a constant needs at most half of its type's digits and counts as unrounded."""
    return not math.isfinite(x) or float(math.frexp(x)[0] * 2.0 ** (digits // 2)).is_integer()


def constant(x: float, reading: Reading, /, digits: int = 53) -> arb:
    """Return a float of the program as a ball (an interval).

    Under "ulp" a constant that is not short (see `is_short`) stands for all reals within some units
    in the last place of its type (see `UNITS`). A constant below 2^-26 also stands for zero, and
    for every number between zero and the constant.
    """
    if reading == "exact" or is_short(x, digits):
        return arb(x)
    if has_few_digits(x, 2 * SINGLE):
        digits = min(digits, SINGLE)  # for example pi in float32, converted to float64
    unit = math.ldexp(1.0, max(math.frexp(x)[1] - digits, -1074))
    ball = arb(x, UNITS.get(digits, 2) * unit)
    if abs(x) >= RESIDUE:
        return ball
    return hull(ZERO, ball) if x > 0 else -hull(ZERO, -ball)


def enclosed(x: Any, /, reading: Reading = "exact") -> Any:
    """Return a concrete array as a value of the interpreter: floats become balls (intervals)."""
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
    """Return an operand as balls: exact for an integer, and [0, 1] for an undecided boolean."""
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
    """Apply a function of balls (intervals) entry by entry to broadcast arrays."""
    if len({x.shape for x in arrays}) > 1:
        arrays = np.broadcast_arrays(*arrays)
    return reals(arrays[0].shape, map(function, *(x.flat for x in arrays)))


def hull(a: arb, b: arb, /) -> arb:
    """Return a ball that contains a and b; NaN if a and b differ and one is not finite."""
    if a.is_finite() and b.is_finite():
        both = a.union(b)
        return known_nonnegative(both) if nonnegative(a) and nonnegative(b) else both
    return a if a.is_exact() and b.is_exact() and a == b else NAN


def midpoints(x: np.ndarray, /) -> np.ndarray:
    """Return the balls' midpoints as floats; they help to choose pivots, but prove nothing."""
    finite = (float(v.mid()) if v.is_finite() else math.nan for v in x.ravel())
    return np.fromiter(finite, float, x.size).reshape(x.shape)
