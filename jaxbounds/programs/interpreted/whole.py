"""Run programs on integers of any length, to find operations that wrap and to get exact results.

NumPy first runs the program with the integer types that the program declares. If a result leaves
the range of its type, the run continues with Python integers.
"""

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from jaxbounds.ground.jax_internals import ClosedJaxpr, IntegerPower, JaxprEqn
from jaxbounds.programs.interpreted import Runner, as_value, indexing, refuse, structure, typed
from jaxbounds.programs.interpreted.values import NotInterpreted, Rule

STEPS = 200_000
"""The largest number of equations that one run may execute (about two seconds of work).

A larger number allows longer loops.
"""
NEAR = 1e-9
"""A float estimate of an integer counts as close to a limit of its type at this relative
distance. Python integers then compute the result. A larger distance makes the run use Python
integers more often.
"""

LONGEST = 2**16
"""The largest number of bits of a power of integers; a longer power counts as infinite.

A larger number compares longer powers exactly, and takes more time and memory.
"""


def _as_float(v: Any) -> float:
    small = isinstance(v, float) or abs(v) < 2**1023
    return float(v) if small else math.inf if v > 0 else -math.inf


_float_entries = np.frompyfunc(_as_float, 1, 1)


def as_floats(x: Any, /) -> np.ndarray:
    """Return numbers as floats; an integer beyond the floats becomes infinite."""
    x = np.asarray(x)
    return np.asarray(_float_entries(x) if x.dtype == object else x, float)


def _is_integer(v: Any) -> bool:
    return isinstance(v, int | np.integer)


def _power(base: Any, exponent: Any) -> Any:
    """Return a power of two integers: an integer, a fraction for a negative exponent, or a float.

    A power of more bits than `LONGEST` is infinite or, for a negative exponent, zero. A negative
    power of zero is infinite. A power is NaN unless base and exponent are integers.
    """
    if not (_is_integer(base) and _is_integer(exponent)):
        return math.nan
    base, exponent = int(base), int(exponent)
    if abs(base) == 1 or exponent == 0:
        return base ** (exponent % 2)
    if base == 0:
        return 0 if exponent > 0 else math.inf
    if abs(exponent) * base.bit_length() > LONGEST:
        return 0.0 if exponent < 0 else math.inf if base > 0 or exponent % 2 == 0 else -math.inf
    return base**exponent if exponent > 0 else Fraction(base) ** exponent


_powers = np.frompyfunc(_power, 2, 1)


def _towards_zero(x: Any, y: Any) -> Any:
    if np.any(y == 0):
        raise NotInterpreted("an integer is divided by zero")
    quotient = np.abs(x) // np.abs(y)
    return np.where((x < 0) == (y < 0), quotient, -quotient)


def _remainder(x: Any, y: Any) -> Any:
    return x - y * _towards_zero(x, y)


def _plain(function: Callable) -> Rule:
    return lambda *xs, **_: function(*xs)


def _of_bits(function: Callable) -> Callable:
    """Return an entrywise bit operation, which gives NaN unless both numbers are integers."""
    whole = lambda x, y: function(x, y) if _is_integer(x) and _is_integer(y) else math.nan
    return np.frompyfunc(whole, 2, 1)


_WRAPPING: dict[str, Rule] = {
    "add": _plain(np.add),
    "add_any": _plain(np.add),
    "sub": _plain(np.subtract),
    "mul": _plain(np.multiply),
    "neg": _plain(np.negative),
    "abs": _plain(np.abs),
    "square": _plain(lambda x: x * x),
    "pow": _plain(np.power),
    "integer_pow": lambda x, *, y, **_: x**y,
    "shift_left": _plain(lambda x, y: x * 2**y),
    "convert_element_type": _plain(lambda x: x),
    "dot_general": lambda x, y, *, dimension_numbers, **_: structure._dot(
        x, y, dimension_numbers=dimension_numbers
    ),
    **{name: structure.RULES[name] for name in ("reduce_sum", "reduce_prod", "cumsum", "cumprod")},
}
"""For each operation whose results may leave its operands' type, the rule that runs it. Each
rule accepts both floats and Python integers.
"""
_MOVED = (
    "broadcast_in_dim", "reshape", "squeeze", "expand_dims", "rev", "transpose", "slice", "split",
    "tile", "stack", "unstack", "concatenate", "reduce_max", "reduce_min", "cummax", "cummin",
)  # fmt: skip
_EXACT: dict[str, Rule] = {
    **_WRAPPING,
    **{name: structure.RULES[name] for name in _MOVED},
    **{name: indexing.RULES[name] for name in ("gather", "dynamic_slice", "dynamic_update_slice")},
    **{name: _plain(function) for name, function in (
        ("max", np.maximum), ("min", np.minimum), ("eq", np.equal), ("ne", np.not_equal),
        ("lt", np.less), ("le", np.less_equal), ("gt", np.greater), ("ge", np.greater_equal),
        ("and", _of_bits(operator.and_)), ("or", _of_bits(operator.or_)),
        ("xor", _of_bits(operator.xor)),
        ("shift_right_arithmetic", _of_bits(operator.rshift)),
        ("div", _towards_zero), ("rem", _remainder),
        ("clamp", lambda low, x, high: np.minimum(np.maximum(x, low), high)),
        ("sign", lambda x: np.where(x > 0, 1, np.where(x < 0, -1, 0))),
        ("stop_gradient", lambda x: x), ("copy", lambda x: x),
        ("select_n", lambda which, *xs: np.choose(np.asarray(which).astype(int), xs)),
    )},
}  # fmt: skip
"""The rules that accept Python integers of any length. For any other primitive, the interpreter
replaces each operand by the nearest integer of the operand's type.
"""


class Whole(NamedTuple):
    """The results of a program that ran with integers of any length.

    Attributes:
        values: the results; Python integers stand for integers beyond their type. A fraction stands
            for a negative power of an integer.
        wraps: the names of the primitives with results outside their type's range, in the order of
            the run.
    """

    values: list[Any]
    wraps: tuple[str, ...]


def _is_whole(dtype: Any) -> bool:
    return bool(np.issubdtype(dtype, np.integer))


def may_wrap(eqn: JaxprEqn, /) -> bool:
    """Tell whether an equation computes integers that may leave the range of their type."""
    signed = np.issubdtype(_dtype(eqn), np.signedinteger)
    named = eqn.primitive.name in _WRAPPING and _is_whole(_dtype(eqn))
    return named and (signed or eqn.primitive.name != "shift_left")


def _dtype(eqn: JaxprEqn) -> Any:
    variable: Any = eqn.outvars[0]
    kind = variable.aval.dtype
    return kind if isinstance(kind, np.dtype) else np.dtype(object)


def _outside(eqn: JaxprEqn, values: Sequence[Any]) -> bool:
    if not all(_is_whole(np.asarray(x).dtype) or np.asarray(x).dtype == bool for x in values):
        return False
    ends = np.iinfo(_dtype(eqn))
    with np.errstate(all="ignore"):
        roughly = [np.asarray(x).astype(float) for x in values]
        about = np.asarray(_WRAPPING[eqn.primitive.name](*roughly, **eqn.params))
    inside = (about <= ends.max * (1 - NEAR)) & (about >= ends.min * (1 - NEAR))
    return not bool(np.all(inside))


class _Exactly:
    def __init__(self) -> None:
        self.wraps: dict[str, None] = {}
        self._left = STEPS

    def __call__(self, eqn: JaxprEqn, values: list[Any]) -> list[Any]:
        self._left -= 1
        if self._left < 0:
            raise NotInterpreted("the program executes too many equations for NumPy")
        name = eqn.primitive.name
        given = [np.asarray(x) for x in values]
        if not any(x.dtype == object for x in given):
            if not (may_wrap(eqn) and _outside(eqn, given)):
                return typed(eqn, values)
        elif name not in _EXACT:
            return typed(eqn, [_nearest(x, v) for x, v in zip(given, eqn.invars)])
        whole = lambda x: x.astype(object) if _is_whole(x.dtype) or x.dtype == bool else x
        try:
            found = _EXACT[name](*map(whole, given), **eqn.params)
        except (ArithmeticError, TypeError, ValueError, LookupError) as unforeseen:
            raise NotInterpreted(
                f"{name} fails for integers beyond the range of their type"
            ) from unforeseen
        outs = found if eqn.primitive.multiple_results else [found]
        return [self._taken(name, out, v.aval) for out, v in zip(outs, eqn.outvars, strict=True)]

    def _taken(self, name: str, out: Any, said: Any) -> Any:
        out = np.asarray(out, object)
        if out.shape != said.shape:
            raise NotInterpreted(
                f"{name} gave the shape {out.shape}, but the program declares {said.shape}"
            )
        if not _is_whole(said.dtype):
            return np.asarray(out if said.dtype == bool else as_floats(out), said.dtype)
        ends = np.iinfo(said.dtype)
        if all(ends.min <= v <= ends.max and v == int(v) for v in out.ravel().tolist()):
            return out.astype(said.dtype)
        if name in _WRAPPING:
            self.wraps[name] = None
        return out

    def power(self, power: IntegerPower, base: Any, exponent: Any, out: Any) -> Any:
        """Compute a power from all bits of the exponent; `out` used only its lowest bits."""
        exponent = np.asarray(exponent)
        if np.all((exponent >= 0) & (exponent < 2**power.bits)):
            return out
        both = (_spread(base, power.of_base), _spread(exponent, power.of_exponent))
        there = np.broadcast_to(np.asarray(_powers(*both), object), out.shape)
        if np.all(there == out):
            return out
        self.wraps["pow"] = None
        return there


def _spread(x: Any, moves: Sequence[JaxprEqn]) -> Any:
    for eqn in moves:
        x = structure.RULES[eqn.primitive.name](x, **eqn.params)
    return np.asarray(x).astype(object)


def _nearest(x: np.ndarray, variable: Any) -> Any:
    """Return the nearest integers in the type that the program declares; the largest for NaN."""
    kind: Any = variable.aval.dtype
    if x.dtype != object:
        return x
    ends = np.iinfo(kind)
    x = np.where(x == x, x, int(ends.max))
    return np.asarray(np.clip(x, int(ends.min), int(ends.max))).astype(kind)


def with_whole_numbers(program: ClosedJaxpr, arguments: Sequence[Any], /) -> Whole:
    """Run a program with whole numbers of any length in place of machine integers.

    Raises:
        NotInterpreted: if NumPy has no rule for an equation, or the run executes more equations
            than `STEPS`.
    """
    refuse(program)
    exactly = _Exactly()
    with np.errstate(all="ignore"):
        found = Runner(exactly, exactly.power).closed(program, [as_value(x) for x in arguments])
    return Whole(found, tuple(exactly.wraps))
