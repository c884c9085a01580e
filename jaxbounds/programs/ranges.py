"""Test quickly whether an integer in a program may leave the range of its type.

The test computes a range (a pair of Python integers) for each variable of the program. An unknown
range counts as all integers of the variable's type.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxbounds.ground.jax_internals import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    UnknownParametersError,
    branches_of,
    called_program,
    integer_powers,
    is_call,
    scan_of,
    while_of,
)

Range = tuple[int, int] | None
"""The least and the largest integer that a variable may hold; None if they are unknown."""
STEADY = 8
"""The number of first steps of a `scan` in which the overflow test computes the ranges of integers.

For the later steps the test extrapolates a range that grew equally at each step. A larger number
lets the test notice a later change of the growth.
"""

_SAME = frozenset(
    ("broadcast_in_dim", "reshape", "squeeze", "expand_dims", "rev", "transpose", "slice", "copy",
     "stop_gradient", "reduce_max", "reduce_min", "cummax", "cummin", "gather", "dynamic_slice",
     "optimization_barrier", "convert_element_type", "tile")
)  # fmt: skip
_HULL = frozenset(
    ("concatenate", "dynamic_update_slice", "scatter", "max", "min", "sort", "stack", "split",
     "unstack", "pad")
)  # fmt: skip


def _shape(variable: Any) -> tuple[int, ...]:
    return tuple(variable.aval.shape)


def _dtype(variable: Any) -> Any:
    kind = getattr(variable.aval, "dtype", None)
    return kind if isinstance(kind, np.dtype) else _OTHER


_OTHER = np.dtype(object)


def _is_whole(variable: Any) -> bool:
    return _dtype(variable).kind in "iu"


def _hull(ranges: Sequence[Range]) -> Range:
    known = [r for r in ranges if r is not None]
    if len(known) < len(ranges) or not known:
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _corners(function: Callable[[int, int], int], a: Range, b: Range) -> Range:
    if a is None or b is None:
        return None
    found = [function(x, y) for x, y in itertools.product(a, b)]
    return min(found), max(found)


def _times(of: Range, count: int) -> Range:
    """Return the range of all sums of 1 to `count` terms, if each term lies in the range `of`."""
    return of and (min(of[0], of[0] * count), max(of[1], of[1] * count))


def _power(of: Range, exponent: int) -> Range:
    most = of and max(map(abs, of)) ** exponent
    return None if most is None else (0 if exponent % 2 == 0 else -most, most)


def _loses_bits(base: Range, exponent: Range, bits: int) -> bool:
    """Tell whether an integer power may change if its exponent keeps only the low `bits` bits."""
    if exponent is not None and exponent[0] >= 0 and exponent[1] < 2**bits:
        return False
    small = base is not None and base[0] >= -1 and base[1] <= 1
    return not small or exponent is None or exponent[0] < 0


def _of_array(x: Any) -> Range:
    x = np.asarray(x) if isinstance(getattr(x, "dtype", None), np.dtype) else np.asarray(0.5)
    if x.dtype == bool:
        return 0, 1
    whole = np.issubdtype(x.dtype, np.integer) and x.size
    return (int(x.min()), int(x.max())) if whole else None


class _Look:
    def __init__(self) -> None:
        self.leaving: dict[str, None] = {}

    def closed(self, program: ClosedJaxpr, given: Sequence[Range]) -> list[Range]:
        return self.jaxpr(program.jaxpr, list(map(_of_array, program.consts)), given)

    def jaxpr(self, program: Jaxpr, consts: Sequence[Range], given: Sequence[Range]) -> list[Range]:
        known: dict[Any, Range] = dict(zip(program.constvars, consts))
        known |= dict(zip(program.invars, given))
        of = lambda v: _of_array(np.asarray(v.val)) if isinstance(v, Literal) else known.get(v)
        powers = integer_powers(program)
        for eqn in program.eqns:
            outs = self._equation(eqn, list(map(of, eqn.invars)))
            name = eqn.primitive.name
            known |= {v: self._kept(name, v, r) for v, r in zip(eqn.outvars, outs, strict=True)}
            for power in (powers[v] for v in eqn.outvars if v in powers):
                if _loses_bits(of(power.base), of(power.exponent), power.bits):
                    self.leaving["pow"] = None
                    known[eqn.outvars[0]] = None
        return list(map(of, program.outvars))

    def _kept(self, name: str, variable: Any, found: Range) -> Range:
        kind = _dtype(variable)
        if kind.kind == "b":
            return 0, 1
        if kind.kind not in "iu" or found is None:
            return None
        ends = np.iinfo(kind)
        if found[0] < ends.min or found[1] > ends.max:
            self.leaving[name] = None
            return None
        return found

    def _equation(self, eqn: JaxprEqn, xs: list[Range]) -> Sequence[Range]:
        name = eqn.primitive.name
        unknown: list[Range] = [None] * len(eqn.outvars)
        try:
            if name == "cond":
                ways = [self.closed(branch, xs[1:]) for branch in branches_of(eqn)]
                return [_hull(column) for column in zip(*ways)]
            if name == "scan":
                return self._scan(eqn, xs)
            if name == "while":
                loop = while_of(eqn)
                consts = xs[loop.condition_consts :][: loop.body_consts]
                self.closed(loop.body, [*consts, *unknown])
                return unknown
            if is_call(name):
                inner = called_program(eqn)
                if isinstance(inner, ClosedJaxpr):
                    return self.closed(inner, xs)
                return self.jaxpr(inner, (), xs)
        except UnknownParametersError:
            return unknown
        if not any(map(_is_whole, eqn.outvars)):
            return unknown
        found = self._plain(eqn, name, xs)
        if found is None and name in _MAY_LEAVE and self._are_whole(eqn):
            self.leaving[name] = None
        return [found] * len(eqn.outvars)

    def _are_whole(self, eqn: JaxprEqn) -> bool:
        if not all(map(_is_whole, eqn.invars)):
            return False
        given, into = _dtype(eqn.invars[0]), _dtype(eqn.outvars[0])
        return eqn.primitive.name != "convert_element_type" or not np.can_cast(given, into)

    def _scan(self, eqn: JaxprEqn, xs: list[Range]) -> list[Range]:
        loop = scan_of(eqn)
        consts, rest = xs[: loop.consts], xs[loop.consts :]
        carry, along = rest[: loop.carry], rest[loop.carry :]
        before, outs = [carry], list[Range]()
        for _ in range(min(loop.length, STEADY)):
            outs = self.closed(loop.body, [*consts, *before[-1], *along])
            before.append([_hull(pair) for pair in zip(before[-1], outs[: loop.carry])])
        if loop.length > STEADY:
            last, left = before[-1], loop.length - STEADY
            carry = [_onwards([row[i] for row in before], left) for i in range(len(last))]
            outs = self.closed(loop.body, [*consts, *carry, *along])
            before.append(carry)
        return [*before[-1], *outs[loop.carry :]]

    def _plain(self, eqn: JaxprEqn, name: str, xs: list[Range]) -> Range:
        first = xs[0] if xs else None
        if name in _SAME:
            return first
        if name in _HULL:
            return _hull(xs)
        if name == "select_n":
            return _hull(xs[1:])
        if name == "clamp":
            return _hull([xs[0], xs[2]])
        if name in ("add", "add_any"):
            return _corners(lambda a, b: a + b, *xs)
        if name == "sub":
            return _corners(lambda a, b: a - b, *xs)
        if name == "mul":
            return _corners(lambda a, b: a * b, *xs)
        if name == "neg":
            return first and (-first[1], -first[0])
        if name == "abs":
            return _power(first, 1) and (0, max(map(abs, first or (0,))))
        if name == "sign":
            return -1, 1
        if name in ("square", "integer_pow"):
            return _power(first, int(eqn.params.get("y", 2)))
        if name in ("reduce_sum", "cumsum"):
            axes = eqn.params["axes"] if name == "reduce_sum" else (eqn.params["axis"],)
            return _times(first, math.prod(_shape(eqn.invars[0])[axis] for axis in axes))
        if name == "dot_general":
            (axes, _), _ = eqn.params["dimension_numbers"]
            count = math.prod(_shape(eqn.invars[0])[axis] for axis in axes)
            return _times(_corners(lambda a, b: a * b, *xs), count)
        if name in ("reduce_prod", "cumprod"):
            axes = eqn.params["axes"] if name == "reduce_prod" else (eqn.params["axis"],)
            count = math.prod(_shape(eqn.invars[0])[axis] for axis in axes)
            most = first and max(1, *map(abs, first)) ** min(count, 64)
            return None if most is None else (-most if first and first[0] < 0 else 0, most)
        if name == "iota":
            return 0, max(_shape(eqn.outvars[0]), default=1)
        if name in ("argmax", "argmin"):
            return 0, max(_shape(eqn.invars[0]), default=1)
        if name == "rem":
            most = xs[1] and max(map(abs, xs[1]))
            return None if most is None else (-most, most)
        if name in ("div", "shift_right_arithmetic", "shift_right_logical"):
            most = first and max(map(abs, first))
            return None if most is None else (-most, most)
        return None


_MAY_LEAVE = frozenset(
    ("add", "add_any", "sub", "mul", "neg", "abs", "square", "integer_pow", "pow", "reduce_sum",
     "reduce_prod", "cumsum", "cumprod", "dot_general", "shift_left", "convert_element_type")
)  # fmt: skip


def _onwards(rows: Sequence[Range], steps: int) -> Range:
    """Return the range after `steps` more steps; None unless all steps change the range alike."""
    known = [r for r in rows if r is not None]
    if len(known) < len(rows):
        return None
    down = {b[0] - a[0] for a, b in itertools.pairwise(known)}
    up = {b[1] - a[1] for a, b in itertools.pairwise(known)}
    if len(down) > 1 or len(up) > 1:
        return None
    return known[-1][0] + steps * down.pop(), known[-1][1] + steps * up.pop()


def operations_that_may_wrap(program: ClosedJaxpr, given: Sequence[Any], /) -> tuple[str, ...]:
    """Return the names of primitives with integer results that may leave the range of their type.

    For each argument, `given` holds an array; the argument may hold any integers between the
    array's least and largest entry.
    """
    look = _Look()
    look.closed(program, list(map(_of_array, given)))
    return tuple(look.leaving)
