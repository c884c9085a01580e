"""Make a statement's `evaluate` from two functions whose arguments are entries and sizes."""

import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jaxbounds.claims.statements.instance import Instance, Size
from jaxbounds.claims.statements.judged import owner_of
from jaxbounds.claims.statements.sides import Sides
from jaxbounds.ground.exceptions import Refused

Side = Callable[..., Any] | float
"""One side of a claim: a number, or a function whose arguments are named entries and sizes."""
PRINTED = "printed"
FLOATS = (
    "floats in the side, such as 2.0**d in place of 2**d, or logarithms of both sides for "
    "numbers above 1e308"
)
"""The advice of an error message about a Python number too large for an array of JAX."""


def parameters(side: Side, /) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a side by name; none if the side is a number."""
    return inspect.signature(side).parameters if callable(side) else {}


def refuse_other_side(which: str, side: Any, /) -> None:
    """Refuse a side that is neither a function nor a number.

    Raises:
        TypeError: if the side is neither a function nor a number; the message names the side.
    """
    if not callable(side) and (isinstance(side, bool) or not isinstance(side, int | float)):
        raise TypeError(
            f"{which}={side!r:.60} is neither a function nor a number. Try {_as_number(side)}"
        )


def _as_number(side: Any) -> str:
    try:
        return repr(float(side))
    except (TypeError, ValueError):
        return "a number, or lambda x: x"


_MEANT = {
    "<": "<=", "=<": "<=", "≤": "<=", "⩽": "<=", "≦": "<=", "≲": "<=", r"\le": "<=", r"\leq": "<=",
    ">": ">=", "=>": ">=", "≥": ">=", "⩾": ">=", "≧": ">=", "≳": ">=", r"\ge": ">=", r"\geq": ">=",
    "==": "=", "===": "=", "≡": "=", "→": "->", "-->": "->", r"\to": "->",
}  # fmt: skip
"""Maps other spellings of a relation to the library's spelling."""


def refuse_other_relation(relation: Any, known: Sequence[str], /) -> None:
    """Refuse a relation that the library does not know.

    Raises:
        Refused: if the relation is unknown; the message suggests the library's spelling of the
            relation.
    """
    if relation in known:
        return
    said = _MEANT.get(relation.strip(), relation) if isinstance(relation, str) else relation
    words = [repr(name) for name in known]
    cure = repr(said)
    if relation in ("<", ">"):
        cure = f"{said!r}, or jb.claim, which judges a strict inequality"
    elif said == "=" and said not in known:
        cure = "'<=', and then '>='"
    if said not in known and said != "=":
        cure = f"one of {', '.join(words)}"
    raise Refused(
        f"relation={relation!r}: expected {', '.join(words[:-1])} or {words[-1]}. Try {cure}"
    )


def entries_of(sides: Iterable[Side], known: Collection[str], /) -> list[str]:
    """Return the names of the arguments that the claim's sides need, without the `known` names."""
    needed = (name for side in sides for name in _needed(side) if name not in known)
    return list(dict.fromkeys(needed))


def _needed(side: Side) -> list[str]:
    return [
        name
        for name, argument in parameters(side).items()
        if argument.default is argument.empty
        and argument.kind not in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD)
    ]


def refuse_other_arguments(which: str, side: Side, known: Collection[str], /) -> None:
    """Refuse a side with an argument that is neither an entry nor a size.

    Raises:
        Refused: if the side has an unknown argument; the message names the argument and the known
            names.
    """
    for name in _needed(side):
        if name not in known:
            own = callable(side) and _is_of_a_user(side)
            called = getattr(side, "__name__", "f")
            one = next(iter(sorted(known)), "x")
            wrapped = "" if own else f", or lambda {one}: {called}({one})"
            raise Refused(
                f"the function {which} takes argument={name!r}, expected a name in over= or in "
                f"sizes=. Try one of: {', '.join(sorted(known)) or 'no name is known'}{wrapped}"
            )


def owned(side: Side, /) -> bool:
    """Tell whether a side is a named function of a module, in which tests can plant mistakes."""
    try:
        owner_of(side)  # type: ignore[arg-type]
    except (Refused, AttributeError):
        return False
    return callable(side)


class TwoSides:
    """An `evaluate` that computes both sides of each form (version of the claim).

    Attributes:
        sides: the functions or numbers of all sides, each once, and the rounding error `error`. If
            the code of a side or of the error changes, stored verdicts become stale.
    """

    def __init__(
        self, pairs: Mapping[str, tuple[Side, Side]], error: Side = 0.0, name: str = ""
    ) -> None:
        self._name = name
        self._pairs, self._error = dict(pairs), error
        every = [side for pair in pairs.values() for side in pair]
        self.sides = tuple({id(side): side for side in (*every, error)}.values())
        written = [side for side in self.sides if callable(side) and _is_of_a_user(side)]
        if written:
            self.__wrapped__ = written[0]  # `inspect` then finds the file of a side

    def __call__(self, instance: Instance, size: Size) -> Sides:
        """Return both sides of each claim version on one instance; compute a common side once."""
        entries, done = {**size, **instance}, dict[int, Any]()

        def value(side: Side, which: str) -> Any:
            if id(side) not in done:
                done[id(side)] = self._measured(side, entries, which)
            return done[id(side)]

        pairs = {
            form: _alike(
                *pair,
                value(pair[0], f"left side of {form!r}"),
                value(pair[1], f"right side of {form!r}"),
            )
            for form, pair in self._pairs.items()
        }
        return Sides.pairs(pairs, error=value(self._error, "error"))

    def _measured(self, side: Side, entries: Mapping[str, Any], which: str) -> Any:
        where = f"statement {self._name!r}: the {which}" if self._name else f"the {which}"
        try:
            found = _value(side, entries)
            if found is not None:
                return jnp.asarray(found)
        except OverflowError as problem:
            sizes = [f"{n}={entries[n]}" for n in parameters(side) if _is_number(entries.get(n))]
            at = f" at {', '.join(sizes)}" * bool(sizes)
            raise Refused(
                f"{where}{at} got {type(problem).__name__}, expected numbers in the range of int64 "
                f"or float64. Try {FLOATS}"
            ) from problem
        except _SAID as problem:
            if type(problem) not in _SAID:
                raise
            words = f"{where} raised {type(problem).__name__}: {_first_line(problem)}"
            shapes = [
                f"{name} has shape {jnp.shape(entries[name])}"
                for name in parameters(side)
                if isinstance(entries.get(name), jax.Array)
            ]
            given = f" ({', '.join(shapes)})" if shapes else ""
            number = any(words.endswith("()") for words in shapes)
            sets = ", or sets with a shape, such as jb.Ball(1, 'd')" if number else ""
            raise type(problem)(
                f"{words}{given}. Try to call the function on one instance{sets}"
            ).with_traceback(problem.__traceback__) from problem
        raise TypeError(
            f"{where} returned value={found}, expected a number. Try `return` in the function"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _first_line(problem: Exception) -> str:
    return str(problem).strip().partition("\n")[0].rstrip(". ")


_SAID = (TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError, NameError)
"""The exceptions of a side to which the library adds the name of the side. An exception of a
subclass stays unchanged, because the engine reacts to the class of the exception."""


def _alike(left: Side, right: Side, lhs: Any, rhs: Any) -> tuple[Any, Any]:
    if not callable(left):
        return jnp.broadcast_to(lhs, rhs.shape), rhs
    return (lhs, rhs) if callable(right) else (lhs, jnp.broadcast_to(rhs, lhs.shape))


class ByName:
    """Makes `function(instance, size)` from a function whose arguments are entries and sizes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__wrapped__ = function

    def __call__(self, instance: Instance, size: Size) -> Any:
        """Evaluate the wrapped function on one instance."""
        return _value(self.__wrapped__, {**size, **instance})


def by_name(hypotheses: Any, known: Collection[str], /) -> Any:
    """Turn hypotheses whose arguments are entries and sizes into `hypotheses(instance, size)`.

    An argument with a default value may have any name.
    """
    if not callable(hypotheses):
        return hypotheses
    asked, needed = set(parameters(hypotheses)), set(_needed(hypotheses))
    named = needed <= set(known) and not asked.isdisjoint(known)
    return ByName(hypotheses) if named else hypotheses


LIBRARIES = ("jax", "jaxlib", "numpy", "jaxbounds")
"""The packages whose files the library skips when it looks for the file with the user's claim."""


def _is_of_a_user(side: Any) -> bool:
    module = getattr(inspect.unwrap(side), "__module__", None) or ""
    return module.split(".")[0] not in LIBRARIES or module.startswith("jaxbounds.template")


def _value(side: Side, entries: Mapping[str, Any]) -> Any:
    if not callable(side):
        return float(side)
    of = parameters(side)
    given = {name: entries[name] for name in of if name in entries}
    first = [given.pop(n) for n in list(given) if of[n].kind is inspect.Parameter.POSITIONAL_ONLY]
    return _as_it_is_now(side)(*first, **given)


def _as_it_is_now(side: Callable[..., Any]) -> Callable[..., Any]:
    """Return the wrapper that temporarily replaces the function `side` in its module, else `side`.

    To test whether a judged function affects the verdict, the library puts a wrapper into the
    module. An unrelated function of the same name does not count.
    """
    found: Any = sys.modules.get(getattr(side, "__module__", None) or "")
    for part in getattr(side, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found if getattr(found, "__wrapped__", None) is side else side
