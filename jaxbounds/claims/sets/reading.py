"""Parse sets from the text that `words.declared` writes, without executing the text."""

import ast
import math
from collections.abc import Callable, Iterator
from typing import Any

from jaxbounds.claims.sets.base import Set
from jaxbounds.claims.sets.each import Each
from jaxbounds.claims.sets.finite import Integers, OneOf
from jaxbounds.claims.sets.matrices import (
    PSD,
    Matrices,
    OperatorNorm,
    Orthogonal,
    Symmetric,
)
from jaxbounds.claims.sets.simplex import Simplex, SubSimplex
from jaxbounds.claims.sets.vectors import Ball, Box, Reals, Signs, Sphere
from jaxbounds.ground.exceptions import Refused

_MAKERS: dict[str, Callable[..., Set]] = {
    "Ball": Ball,
    "Box": Box,
    "Each": Each,
    "Integers": Integers,
    "Matrices": Matrices,
    "OneOf": OneOf,
    "OperatorNorm": OperatorNorm,
    "Orthogonal": Orthogonal,
    "PSD": PSD,
    "Reals": Reals,
    "Signs": Signs,
    "Simplex": Simplex,
    "Sphere": Sphere,
    "SubSimplex": SubSimplex,
    "Symmetric": Symmetric,
}
_INFINITIES = {"inf": math.inf, "-inf": -math.inf}
Sets = dict[str, Any]
"""A dict from the names of entries to sets, or to dicts of sets."""


def sets_in(text: str, /) -> Sets:
    """Parse the sets that a text like "{'x': jb.Ball(1, 'd')}" declares.

    Raises:
        Refused: if the text holds anything other than sets of the library, numbers, words and
            lists.
    """
    try:
        found = _mapping(ast.parse(text, mode="eval").body)
    except (SyntaxError, TypeError, RecursionError, MemoryError) as problem:
        raise Refused(
            f"text={text!r:.60} declares no sets: {problem!s:.60}. Try {{'x': jb.Ball(1, 'd')}}"
        ) from problem
    return found


def _mapping(node: ast.expr) -> Sets:
    if not isinstance(node, ast.Dict):
        raise _refused(node)
    return dict(_entries(node))


def _entries(node: ast.Dict) -> Iterator[tuple[str, Any]]:
    for key, value in zip(node.keys, node.values):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise _refused(key or value)
        yield key.value, _mapping(value) if isinstance(value, ast.Dict) else _set(value)


def _set(node: ast.expr) -> Set:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="jb"), attr=name)) if name in _MAKERS:
            given = [_value(one) for one in node.args]
            named = {str(one.arg): _value(one.value) for one in node.keywords if one.arg}
            if len(named) == len(node.keywords):
                return _MAKERS[name](*given, **named)
    raise _refused(node)


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=int() | float() | str()):
            return node.value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.Tuple(elts=parts):
            return tuple(map(_value, parts))
        case ast.List(elts=parts):
            return list(map(_value, parts))
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=word)], keywords=[]):
            if word in _INFINITIES:
                return _INFINITIES[word]
            raise _refused(node)
    return _set(node)


def _refused(node: ast.AST) -> Refused:
    return Refused(
        f"expression={ast.unparse(node)!r:.60} is not a set of the library. "
        "Try {'x': jb.Ball(1, 'd')}"
    )
