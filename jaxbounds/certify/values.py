"""What a program computes with, enclosed: balls for floats, three-valued flags for booleans.

An array of floats becomes a NumPy array of `flint.arb`: each ball contains the real number that the
entry stands for, and NaN says that nothing is known. Integers stay what they are. A boolean that
hangs on balls that overlap is neither true nor false but open.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal

import jax
import numpy as np
from flint import arb
from jax.extend.core import JaxprEqn

Reading = Literal["exact", "ulp"]
"""What a float in a program stands for: the number it is, or every real that rounds near it."""

ZERO, ONE = arb(0), arb(1)
NAN, INF = arb("nan"), arb("inf")
OPEN = 2


class Undecided(Exception):
    """A branch or an index hangs on a comparison that the enclosures leave open."""


class NotSupported(Exception):
    """There is no rule for an operation of the program."""


class Flags(np.ndarray):
    """Booleans of which some may be open: 0 no, 1 yes, 2 open."""


def shape_of(atom: Any, /) -> tuple[int, ...]:
    """The shape of a variable or literal of a program."""
    return tuple(atom.aval.shape)


def axes_of(eqn: JaxprEqn, /) -> tuple[int, ...]:
    """The axes that a reduction folds."""
    return tuple(map(int, eqn.params["axes"]))


def dtype_of(atom: Any, /) -> Any:
    """Its type."""
    return atom.aval.dtype


def flags(values: Any, /) -> Any:
    """Plain booleans where all are decided, else `Flags`."""
    plain = np.asarray(values, dtype=np.int8)
    return plain.view(Flags) if (plain == OPEN).any() else plain.astype(bool)


def as_flags(x: Any, /) -> np.ndarray:
    """The entries 0, 1, 2 of plain booleans or `Flags`, as integers."""
    return np.asarray(x).view(np.ndarray).astype(np.int8)


def settled(x: Any, run: Any, what: str, /) -> np.ndarray:
    """The entries 0 and 1: for each open flag the program forks."""
    out = as_flags(x)
    for index in np.argwhere(out == OPEN):
        out[tuple(index)] = run.fork(2, what)
    return out


def reals(shape: tuple[int, ...], balls: Iterable[arb], /) -> np.ndarray:
    """An array of that shape from its balls in order."""
    out = np.empty(math.prod(shape), dtype=object)
    for position, ball in enumerate(balls):
        out[position] = ball
    return out.reshape(shape)


def is_reals(x: Any, /) -> bool:
    """Whether it is an array of balls."""
    return isinstance(x, np.ndarray) and x.dtype == object


def is_soft(x: Any, /) -> bool:
    """Whether it holds balls or open flags, which JAX cannot compute with."""
    return is_reals(x) or isinstance(x, Flags)


def is_short(x: float, /) -> bool:
    """Whether it has at most 26 binary digits: such a constant means itself."""
    return not math.isfinite(x) or float(math.frexp(x)[0] * 2.0**26).is_integer()


def constant(x: float, reading: Reading, /) -> arb:
    """A float of the program as a ball: under "ulp" with radius one unit in its last place."""
    return arb(x, math.ulp(x)) if reading == "ulp" and not is_short(x) else arb(x)


def enclosed(x: Any, /, reading: Reading = "exact") -> Any:
    """A concrete array as a value: floats as balls, integers, booleans and keys as they are."""
    if is_soft(x):
        return x
    if isinstance(x, jax.Array) and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        return x
    x = np.asarray(x)
    if not jax.dtypes.issubdtype(x.dtype, np.floating):
        return x
    return reals(x.shape, (constant(v, reading) for v in x.astype(np.float64).ravel().tolist()))


def as_reals(x: Any, /) -> np.ndarray:
    """Balls from whatever a rule was given: integers exactly, open flags as [0, 1]."""
    if is_reals(x):
        return x
    if isinstance(x, Flags):
        hulls = (ZERO.union(ONE) if v == OPEN else arb(int(v)) for v in as_flags(x).ravel())
        return reals(x.shape, hulls)
    x = np.asarray(x)
    if jax.dtypes.issubdtype(x.dtype, np.floating):
        return enclosed(x)
    return reals(x.shape, (arb(int(v)) for v in x.ravel()))


def each(function: Callable[..., arb], *arrays: np.ndarray) -> np.ndarray:
    """A scalar rule applied entry by entry, with broadcasting."""
    together = np.broadcast_arrays(*arrays)
    return reals(together[0].shape, (function(*v) for v in zip(*(x.ravel() for x in together))))


def hull(a: arb, b: arb, /) -> arb:
    """A ball that contains both; NaN where one is not finite and they are not the same."""
    if a.is_finite() and b.is_finite():
        return a.union(b)
    return a if a.is_exact() and b.is_exact() and a == b else NAN


def midpoints(x: np.ndarray, /) -> np.ndarray:
    """The middles, rounded to floats; for pivots and signs, never for a claim."""
    finite = (float(v.mid()) if v.is_finite() else math.nan for v in x.ravel())
    return np.fromiter(finite, float, x.size).reshape(x.shape)
