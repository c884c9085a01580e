"""Balls beside values written down by hand: ends as fractions, and the one way of a program."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import numpy as np
from flint import arb

from jaxbounds.certification import enclose
from jaxbounds.programs.balls.values import reals
from oracle import draws

ANY, INF = arb("nan"), arb("inf")


def ball(low: float, high: float) -> arb:
    """The ball with these ends (binary fractions)."""
    return arb((low + high) / 2, (high - low) / 2)


def ball_of(x: Any) -> arb:
    """A number as a ball; a ball as it is, with what is known of its sign."""
    return x if isinstance(x, arb) else arb(x)


def balls(*pairs: Any) -> np.ndarray:
    """An array of balls, each a number, a ball, or its two ends."""
    made = (ball(*p) if isinstance(p, tuple) else ball_of(p) for p in pairs)
    return reals((len(pairs),), made)


def exactly(x: Any) -> np.ndarray:
    """Balls of whole numbers, in the shape that they have."""
    return reals(np.shape(x), map(arb, np.ravel(x).tolist()))


def ends(x: arb) -> tuple[Fraction, Fraction]:
    """Both ends, read off midpoint and radius."""
    middle, radius = draws.exactly(x.mid()), draws.exactly(x.rad())
    return middle - radius, middle + radius


def is_image(found: arb, wanted: Any, slack: float = 1e-6) -> bool:
    """Whether a ball is what it should be.

    `wanted` is a number or an infinity (the ball is it, exactly), two ends (the ball contains them
    and reaches no farther than `slack` beyond), or None (nothing may be claimed).
    """
    if wanted is None:
        return found.is_nan()
    if not isinstance(wanted, tuple):
        return found.is_exact() and draws.exactly(found) == wanted
    if not found.is_finite():
        return False
    (a, b), (low, high) = ends(found), wanted
    more = Fraction(slack) * max(1, abs(Fraction(low)), abs(Fraction(high)))
    return low - more <= a <= low and high <= b <= high + more


def are_images(found: np.ndarray, wanted: Any) -> bool:
    """The same of each entry of an array; `wanted` is nested lists of the same shape."""
    if not found.shape:
        return is_image(found.item(), wanted)
    return len(found) == len(wanted) and all(
        are_images(np.asarray(f, object), w) for f, w in zip(found, wanted)
    )


def ways(function: Callable[..., Any], *arguments: Any, bits: int = 64) -> list[list[Any]]:
    """The leaves of every way through a program."""
    return [jax.tree.leaves(way) for way in enclose(function, *arguments, bits=bits).ways]


def only(function: Callable[..., Any], *arguments: Any, bits: int = 64) -> Any:
    """What a program with one result and one way gives."""
    ((found,),) = ways(function, *arguments, bits=bits)
    return found
