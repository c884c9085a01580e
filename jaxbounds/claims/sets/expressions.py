"""Numbers and shapes that are given by the names of sizes: "d", ("n", "2*d"), "sqrt(d)"."""

import ast
import math
import operator
from collections.abc import Mapping

from jaxbounds.ground.exceptions import Refused

Number = float | str
"""A number, or an expression of sizes: names, numbers, + - * / ** and sqrt, log, exp."""
Shape = int | str | tuple[int | str, ...]
"""An axis or several; () is a scalar. Each a whole number or an expression of sizes."""
Size = Mapping[str, float]
"""The static part of an instance by name."""

MOST = 2.0**1000
"""The largest absolute value of a whole power: larger ones take for ever and are no float."""


def _power(base: float, exponent: float) -> float:
    """Return a power, or refuse a power that is too large for a float.

    Raises:
        Refused: then.
    """
    if abs(base) > 1 and exponent > 0 and exponent * math.log2(abs(base)) > math.log2(MOST):
        raise Refused(f"{base}**{exponent} is larger than {MOST:.0e}")
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
                known = ", ".join(size) or "nothing"
                raise Refused(f"no size {name!r} for {text!r}: the sizes give {known}") from None
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, size, text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            sides = _value(left, size, text), _value(right, size, text)
            return sides[0] if size is None else _BINARY[type(op)](*sides)
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in _CALLS:
            found = _value(inner, size, text)
            return found if size is None else _CALLS[name](found)
    raise Refused(
        f"{text!r} is no expression of sizes: names and numbers, + - * / ** and sqrt, log, exp"
    )


def refuse_other_expressions(what: Number, /) -> None:
    """Refuse what is neither a number nor an expression; names are not looked up.

    Raises:
        Refused: saying what an expression may hold.
    """
    if isinstance(what, str):
        try:
            parsed = ast.parse(what, mode="eval").body
        except SyntaxError:
            raise Refused(f"{what!r} is no expression of sizes, as 'd' or '2*d'") from None
        _value(parsed, None, what)
    elif isinstance(what, bool) or not isinstance(what, int | float) or math.isnan(what):
        raise Refused(f"a number or an expression of sizes is needed, got {what!r}")


def number_of(what: Number, size: Size, /) -> float:
    """Return the value of an expression at a size.

    Raises:
        Refused: if it is no expression, or names a size that there is not.
    """
    if not isinstance(what, str):
        return what
    return _value(ast.parse(what, mode="eval").body, size, what)


def shape_of(shape: Shape, size: Size, /) -> tuple[int, ...]:
    """Return the shape at a size.

    Raises:
        Refused: if an axis is not a whole number from 0 on.
    """
    axes = shape if isinstance(shape, tuple) else (shape,)
    found = [number_of(axis, size) for axis in axes]
    for axis, length in zip(axes, found):
        if length != int(length) or length < 0:
            raise Refused(f"an axis is a whole number from 0 on, but {axis!r} is {length}")
    return tuple(map(int, found))
