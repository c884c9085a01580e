"""Round balls (intervals) to a narrower floating-point type, as a conversion in a program does."""

from typing import Any

import jax.numpy as jnp
from flint import arb, fmpz

from jaxbounds.programs.balls.values import NAN, ZERO, hull


def _nearest(x: arb, kind: Any) -> arb:
    """Round an exact number to a type's nearest float (ties to even); NaN if it is too large.

    A compiled program may flush a number below the least normal float to zero. For a number below
    the least normal float, the result is the hull of zero and the nearest float.
    """
    mantissa, exponent = (int(v) for v in x.man_exp())
    if mantissa == 0:
        return ZERO
    size = abs(mantissa)
    top = size.bit_length() + exponent - 1
    if top < kind.minexp:
        least = arb(2) ** kind.minexp
        return hull(ZERO, least) if mantissa > 0 else -hull(ZERO, least)
    unit = top - kind.nmant
    if unit > exponent:
        shift = unit - exponent
        whole, rest = divmod(size, 1 << shift)
        half = 1 << (shift - 1)
        whole += rest > half or (rest == half and whole % 2 == 1)
        size, exponent = whole, unit
    rounded = arb(fmpz(size)) * arb(2) ** exponent
    return NAN if rounded > float(kind.max) else rounded if mantissa > 0 else -rounded


def narrowed(x: arb, dtype: Any, /) -> arb:
    """Round a ball to a type; rounding is monotone, so the rounded ends enclose the result."""
    if not x.is_finite():
        return x
    kind = jnp.finfo(dtype)
    return hull(_nearest(x.lower(), kind), _nearest(x.upper(), kind))
