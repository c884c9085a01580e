"""The quantifiers of a statement in words: its sets, the entries of `there_is`, its limit.

The command `jaxbounds show`, the HTML page and the audit use the words of this module.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax

from jaxbounds.claims.statements import Size, Statement


def quantifiers(statement: Statement, /) -> list[tuple[str, str]]:
    """Return pairs (name, text) of the statement's sets, `there_is`, estimated sides and limit."""
    found = [
        (name, ", ".join(f"{entry} in {one!r}" for entry, one in sets.items()))
        for name, sets in (("over", statement.over), ("there is", statement.there_is))
        if sets
    ]
    found += [("estimated", f"the {side}, from {word}") for side, word in _estimates(statement)]
    return found + [("limit", f"as {_moves(statement)}")] * bool(statement.towards)


def in_one_line(statement: Statement, /) -> str:
    """Return the formula as plain text, after "there is" with its entries, and before its limit.

    The function adds neither the entries of `there_is` nor the limit if the formula already names
    them.
    """
    words = statement.formula
    if statement.there_is and "there is" not in words.lower() and "exist" not in words.lower():
        given = ", ".join(statement.over or ())
        each = f"for each {given} there is" if given else "there is"
        words = f"{each} {', '.join(statement.there_is)} such that {words}"
    if any(f"{axis} ->" not in words for axis in statement.towards):
        words = f"{words} as {_moves(statement)}"
    return words


def checked(statement: Statement, names: Sequence[str], /) -> list[tuple[str, list[str]]]:
    """Return titled lists: hypotheses on instances, and on entries that the claim says exist."""
    of_promise = _names(statement.there_is, statement.sizes)
    groups = (
        ("checked on every instance", [name for name in names if name not in of_promise]),
        (
            "checked on the entries that the claim says exist",
            [name for name in names if name in of_promise],
        ),
    )
    return [(title, found) for title, found in groups if found]


def last_size(statement: Statement, shown: str, /) -> tuple[str, str]:
    """Return a title for the last size on which a statement was judged, and that size in words.

    The last size is the size closest to the limit if the claim is about a limit; else `shown`.
    """
    for axis, end in statement.towards.items():
        closest = (max if math.isinf(end) else min)(statement.sizes, key=lambda size: size[axis])
        return f"Size closest to {axis} -> {_end(end)}", repr(Size(closest))
    return "Largest size", shown


def _estimates(statement: Statement) -> list[tuple[str, str]]:
    return [(str(side), str(word)) for side, word in statement.estimates.items()]


def _moves(statement: Statement) -> str:
    return ", ".join(f"{axis} -> {_end(end)}" for axis, end in statement.towards.items())


def _end(end: float) -> str:
    return "infinity" if math.isinf(end) else f"{end:g}"


def _names(sets: Any, sizes: Sequence[Mapping[str, float]]) -> set[str]:
    found = set[str]()
    for size in map(Size, sizes if sets else ()):
        tested = lambda key, size=size: sets.meets(sets.draw(key, size), size)
        found |= set(jax.eval_shape(tested, jax.random.key(0)))
    return found
