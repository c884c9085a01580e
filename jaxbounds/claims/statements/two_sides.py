"""Two functions of entries and sizes by name, as the `evaluate` of a statement."""

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
"""A function of entries and sizes by name, or a number."""
PRINTED = "printed"


def parameters(side: Side, /) -> Mapping[str, inspect.Parameter]:
    """The arguments of a side by name; a number has no arguments."""
    return inspect.signature(side).parameters if callable(side) else {}


def refuse_other_side(which: str, side: Any, /) -> None:
    """Refuse a side that is neither a function nor a number.

    Raises:
        TypeError: naming the side.
    """
    if not callable(side) and (isinstance(side, bool) or not isinstance(side, int | float)):
        raise TypeError(f"the {which} is a function or a number, got {side!r:.60}")


def refuse_other_arguments(which: str, side: Side, known: Collection[str], /) -> None:
    """Refuse a side that asks for more than the entries and sizes.

    Args:
        which: the name of the side in messages.
        side: a function or a number.
        known: the names of all entries and sizes.

    Raises:
        Refused: naming the argument, and the names there are.
    """
    for name, argument in parameters(side).items():
        many = argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD)
        if name not in known and argument.default is argument.empty and not many:
            raise Refused(
                f"the {which} takes {name!r}, which is neither in over nor a size: there are "
                f"{', '.join(sorted(known)) or 'none'}"
            )


def owned(side: Side, /) -> bool:
    """Whether a side is a function that its module has under its own name: one can judge it."""
    try:
        owner_of(side)  # type: ignore[arg-type]
    except (Refused, AttributeError):
        return False
    return callable(side)


class TwoSides:
    """Evaluates both sides of each form; an `evaluate`.

    Args:
        pairs: for each form its left and its right side.
        error: how far left - right may be off; as the sides are given.

    Attributes:
        sides: every side, each once: what the code of a verdict consists of.
    """

    def __init__(self, pairs: Mapping[str, tuple[Side, Side]], error: Side = 0.0) -> None:
        self._pairs, self._error = dict(pairs), error
        every = [side for pair in pairs.values() for side in pair]
        self.sides = tuple({id(side): side for side in (*every, error)}.values())
        written = [side for side in self.sides if callable(side) and _is_of_a_user(side)]
        if written:
            self.__wrapped__ = written[0]  # whoever asks where this is written, finds a side

    def __call__(self, instance: Instance, size: Size) -> Sides:
        """Both sides of each form on one instance; a side that forms share is computed once."""
        entries, done = {**size, **instance}, dict[int, Any]()

        def value(side: Side) -> Any:
            if id(side) not in done:
                done[id(side)] = jnp.asarray(_value(side, entries))
            return done[id(side)]

        pairs = {form: (value(left), value(right)) for form, (left, right) in self._pairs.items()}
        return Sides.pairs(pairs, error=value(self._error))


class ByName:
    """A function of entries and sizes by name, as one of an instance and its size.

    Args:
        function: of entries and sizes by name.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__wrapped__ = function

    def __call__(self, instance: Instance, size: Size) -> Any:
        """The value of the function at one instance."""
        return _value(self.__wrapped__, {**size, **instance})


LIBRARIES = ("jax", "jaxlib", "numpy", "jaxbounds")
"""Packages whose functions tell nothing about where a claim is written."""


def _is_of_a_user(side: Any) -> bool:
    module = getattr(inspect.unwrap(side), "__module__", None) or ""
    return module.split(".")[0] not in LIBRARIES or module.startswith("jaxbounds.template")


def _value(side: Side, entries: Mapping[str, Any]) -> Any:
    """A side at entries and sizes; what it does not name keeps its own value."""
    if not callable(side):
        return float(side)
    given = {name: entries[name] for name in parameters(side) if name in entries}
    return _as_it_is_now(side)(**given)


def _as_it_is_now(side: Callable[..., Any]) -> Callable[..., Any]:
    """The object that a module has in place of its function, if the object wraps the function.

    A tool wraps a module's function for a while, to see whether a verdict rests on it. Another
    function that took the name since the declaration is not meant.
    """
    found: Any = sys.modules.get(getattr(side, "__module__", None) or "")
    for part in getattr(side, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found if getattr(found, "__wrapped__", None) is side else side
