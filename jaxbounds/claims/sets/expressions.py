"""Numbers and shapes as expressions of named sizes: "d", ("n", "2*d"), "sqrt(d)"."""

import ast
import math
import operator
from collections.abc import Mapping

from jaxbounds.ground.exceptions import Refused

Number = float | str
"""A number, or an expression of sizes: names, numbers, + - * / // ** and sqrt, log, exp."""
Shape = int | str | tuple[int | str, ...]
"""A shape: one axis or several, each a whole number or an expression of sizes; () means scalar."""
Size = Mapping[str, float]
"""A dict from names to numbers: the static part of an instance."""

MOST = 2.0**1000
"""Largest absolute value of a power in an expression; with a larger bound, powers could overflow a
float."""


def _power(base: float, exponent: float) -> float:
    if abs(base) > 1 and exponent > 0 and exponent * math.log2(abs(base)) > math.log2(MOST):
        raise Refused(f"power={base}**{exponent} exceeds {MOST:.0e}. Try a smaller exponent")
    return operator.pow(base, exponent)


_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: _power,
}
_CALLS = {"sqrt": math.sqrt, "log": math.log, "exp": math.exp}


def _value(node: ast.expr, size: Size | None, text: str) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            if size is None:
                return 1.0
            try:
                return size[name]
            except KeyError:
                known = f"one of: {', '.join(size)}" if size else f'sizes={{"{name}": (2, 4)}}'
                raise Refused(f"expression={text!r} names no size={name!r}. Try {known}") from None
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, size, text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            sides = _value(left, size, text), _value(right, size, text)
            return sides[0] if size is None else _BINARY[type(op)](*sides)
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in _CALLS:
            found = _value(inner, size, text)
            return found if size is None else _CALLS[name](found)
    raise Refused(
        f"expression={text!r} holds more than names and numbers, + - * / // ** and sqrt, log, exp. "
        "Try '2*d'"
    )


def refuse_other_expressions(what: Number, /) -> None:
    """Refuse a value that is neither a number nor an expression of sizes; sizes may have any names.

    Raises:
        Refused: if the value is neither a number nor an expression; the message gives an example.
    """
    if isinstance(what, str):
        try:
            parsed = ast.parse(what, mode="eval").body
        except SyntaxError:
            raise Refused(f"expression={what!r} cannot be parsed. Try 'd' or '2*d'") from None
        _value(parsed, None, what)
    elif isinstance(what, bool) or not isinstance(what, int | float) or math.isnan(what):
        raise Refused(f"value={what!r}: expected a number or an expression of sizes. Try 1 or 'd'")


def number_of(what: Number, size: Size, /) -> float:
    """Return the value of an expression such as 2*d, if `size` gives the value of each name.

    Raises:
        Refused: if the text is not an expression, or names a size that `size` lacks.
    """
    if not isinstance(what, str):
        return what
    return _value(ast.parse(what, mode="eval").body, size, what)


def shape_of(shape: Shape, size: Size, /) -> tuple[int, ...]:
    """Return a shape with each expression replaced by its value for given sizes.

    Raises:
        Refused: if an axis is not a nonnegative whole number.
    """
    axes = shape if isinstance(shape, tuple) else (shape,)
    found = [number_of(axis, size) for axis in axes]
    for axis, length in zip(axes, found):
        if length != int(length) or length < 0:
            raise Refused(
                f"an array's axis={axis!r} has length={length}, expected a whole number >= 0. Try "
                f"another size"
            )
    return tuple(map(int, found))
