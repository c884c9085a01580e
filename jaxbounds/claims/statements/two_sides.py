"""Turn two functions that take entries and sizes by name into an `evaluate`."""

import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

import jax.numpy as jnp

from jaxbounds.claims.statements.instance import Instance, Size
from jaxbounds.claims.statements.judged import owner_of
from jaxbounds.claims.statements.sides import Sides
from jaxbounds.ground.exceptions import Refused

Side = Callable[..., Any] | float
"""A number, or a function whose arguments have the names of entries and sizes."""
PRINTED = "printed"


def parameters(side: Side, /) -> Mapping[str, inspect.Parameter]:
    """Return a dictionary from the name of each parameter of a side to the parameter.

    The result is empty for a number.
    """
    return inspect.signature(side).parameters if callable(side) else {}


def refuse_other_side(which: str, side: Any, /) -> None:
    """Refuse a side that is neither a function nor a number.

    Raises:
        TypeError: if the side is neither; the message names the side.
    """
    if not callable(side) and (isinstance(side, bool) or not isinstance(side, int | float)):
        raise TypeError(f"{which}={side!r:.60} is neither a function nor a number. Try 0.0")


def refuse_other_arguments(which: str, side: Side, known: Collection[str], /) -> None:
    """Refuse a side with an argument that is neither an entry nor a size.

    Args:
        which: the name of the side in messages.
        side: a function or a number.
        known: the names of all entries and sizes.

    Raises:
        Refused: if the side has such an argument; the message names it, and the known names.
    """
    for name, argument in parameters(side).items():
        many = argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD)
        if name not in known and argument.default is argument.empty and not many:
            raise Refused(
                f"the {which} takes argument={name!r}, which is neither in over nor a size. "
                f"Try one of: {', '.join(sorted(known)) or 'no name is known'}"
            )


def owned(side: Side, /) -> bool:
    """Whether a side is a function under its own name in its module, as judging requires."""
    try:
        owner_of(side)  # type: ignore[arg-type]
    except (Refused, AttributeError):
        return False
    return callable(side)


class TwoSides:
    """An `evaluate` that computes both sides of each form (version of the claim).

    Args:
        pairs: the left and the right side of each form, by the form's name.
        error: the absolute rounding error of left - right, given like a side.

    Attributes:
        sides: every distinct side, and the error. If their code changes, stored verdicts become
            stale.
    """

    def __init__(self, pairs: Mapping[str, tuple[Side, Side]], error: Side = 0.0) -> None:
        self._pairs, self._error = dict(pairs), error
        every = [side for pair in pairs.values() for side in pair]
        self.sides = tuple({id(side): side for side in (*every, error)}.values())
        written = [side for side in self.sides if callable(side) and _is_of_a_user(side)]
        if written:
            self.__wrapped__ = written[0]  # `inspect` then finds the file of a side

    def __call__(self, instance: Instance, size: Size) -> Sides:
        """Return both sides of each claim version on one instance; compute a common side once."""
        entries, done = {**size, **instance}, dict[int, Any]()

        def value(side: Side) -> Any:
            if id(side) not in done:
                done[id(side)] = jnp.asarray(_value(side, entries))
            return done[id(side)]

        pairs = {form: _alike(*pair, *map(value, pair)) for form, pair in self._pairs.items()}
        return Sides.pairs(pairs, error=value(self._error))


def _alike(left: Side, right: Side, lhs: Any, rhs: Any) -> tuple[Any, Any]:
    """Give a side that is a number the shape of the other side."""
    if not callable(left):
        return jnp.broadcast_to(lhs, rhs.shape), rhs
    return (lhs, rhs) if callable(right) else (lhs, jnp.broadcast_to(rhs, lhs.shape))


class ByName:
    """Turns a function that takes entries and sizes by name into `function(instance, size)`.

    Args:
        function: a function whose arguments have the names of entries and sizes.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__wrapped__ = function

    def __call__(self, instance: Instance, size: Size) -> Any:
        """Return the value of the function on one instance."""
        return _value(self.__wrapped__, {**size, **instance})


LIBRARIES = ("jax", "jaxlib", "numpy", "jaxbounds")
"""The packages to skip when the library looks for the file in which a user wrote a claim."""


def _is_of_a_user(side: Any) -> bool:
    module = getattr(inspect.unwrap(side), "__module__", None) or ""
    return module.split(".")[0] not in LIBRARIES or module.startswith("jaxbounds.template")


def _value(side: Side, entries: Mapping[str, Any]) -> Any:
    """Return the value of a side; an argument that is neither entry nor size keeps its default."""
    if not callable(side):
        return float(side)
    of = parameters(side)
    given = {name: entries[name] for name in of if name in entries}
    first = [given.pop(n) for n in list(given) if of[n].kind is inspect.Parameter.POSITIONAL_ONLY]
    return _as_it_is_now(side)(*first, **given)


def _as_it_is_now(side: Callable[..., Any]) -> Callable[..., Any]:
    """Return the wrapper that a module now holds in place of the function `side`, else `side`.

    The search for a judged function's effect on the verdict puts such wrappers into the module for
    a while. The lookup ignores an unrelated function that was given the same name after the
    declaration.
    """
    found: Any = sys.modules.get(getattr(side, "__module__", None) or "")
    for part in getattr(side, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found if getattr(found, "__wrapped__", None) is side else side
