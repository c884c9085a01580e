"""Run traced programs in NumPy, so that a program that runs only once needs no compilation.

NumPy computes in the types of the compiled program. The results agree up to the rounding of
elementary functions and of sums. If NumPy has no rule for an equation, the caller must compile the
program instead.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxbounds.ground.jax_internals import (
    ClosedJaxpr,
    IntegerPower,
    Jaxpr,
    JaxprEqn,
    Literal,
    UnknownParametersError,
    branches_of,
    called_program,
    integer_powers,
    is_call,
    scan_of,
    solver_of,
    while_of,
)
from jaxbounds.programs.interpreted import draws, elementwise, indexing, linear_algebra, structure
from jaxbounds.programs.interpreted.values import NotInterpreted, Rule
from jaxbounds.programs.primitives import unknown_parameters
from jaxbounds.programs.traces import equations

__all__ = [
    "NotInterpreted",
    "Runner",
    "as_said",
    "as_value",
    "has_rule",
    "interpreted",
    "once",
    "refuse",
    "ruled",
    "typed",
]

_RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **structure.RULES,
    **indexing.RULES,
    **linear_algebra.RULES,
    **draws.RULES,
}


COVERED = frozenset(map(np.dtype, (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
    "float64",
)))  # fmt: skip
"""The array types that NumPy's rules accept. For arrays of these types, tests compare each rule
with the compiled program.
"""


def _is_key(dtype: Any) -> bool:
    return jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)


def has_rule(name: str, /) -> bool:
    """Tell whether NumPy can run the primitive `name`."""
    return name in _RULES or name in _CONTROL or is_call(name)


def refuse(program: ClosedJaxpr, /) -> None:
    """Refuse a program that NumPy does not run.

    Raises:
        NotInterpreted: if NumPy has no rule for an equation, for one of its parameters, or for the
            type of an operand or result.
    """
    for eqn in equations(program.jaxpr):
        name = eqn.primitive.name
        if not has_rule(name):
            raise NotInterpreted(f"NumPy has no rule for {name}")
        if unknown := unknown_parameters(eqn):
            raise NotInterpreted(unknown)
        for kind in (getattr(v.aval, "dtype", None) for v in (*eqn.invars, *eqn.outvars)):
            if _is_key(kind) and not draws.is_threefry(kind):
                raise NotInterpreted(f"NumPy has no rule for random keys of {kind}")
            if not _is_key(kind) and np.dtype(kind) not in COVERED:
                raise NotInterpreted(f"NumPy has no rule for primitive={name} with dtype={kind}")


def interpreted(program: ClosedJaxpr, /) -> Callable[..., list[np.ndarray]]:
    """Return a function that runs a program in NumPy.

    Raises:
        NotInterpreted: raised at the call of this function if NumPy has no rule for a primitive.
            The returned function raises the exception if NumPy may give another result than the
            compiled program.
    """
    refuse(program)

    def run(*arguments: Any) -> list[np.ndarray]:
        with np.errstate(all="ignore"):
            return _MACHINE.closed(program, [as_value(x) for x in arguments])

    return run


def once(
    function: Callable,
    otherwise: Callable,
    /,
    *,
    seen: Callable[[ClosedJaxpr], Any] = lambda traced: None,
) -> Callable:
    """Return a function with the results of `function`, which NumPy runs without a compilation.

    The returned function is fast for one or two calls; for more calls, a compiled program is
    faster. If NumPy has no rule, the returned function calls `otherwise`. Each call first passes
    the traced program to `seen`.
    """
    trace = jax.jit(function).trace  # keeps its traces, by the shapes and types of arguments

    def run(*arguments: Any) -> Any:
        traced = trace(*arguments)
        seen(traced.jaxpr)
        try:
            found = interpreted(traced.jaxpr)(*jax.tree.leaves(arguments))
        except NotInterpreted:
            return otherwise(*arguments)
        return jax.tree.unflatten(jax.tree.structure(traced.out_info), found)

    return run


def as_value(x: Any, /) -> Any:
    """Return an argument or constant as a NumPy array; each random key becomes one integer."""
    return draws.as_numbers(x) if _is_key(getattr(x, "dtype", np.dtype(float))) else np.asarray(x)


Plain = Callable[[JaxprEqn, list[Any]], list[Any]]
"""A function from an equation without inner programs, and the equation's operands, to the
equation's results."""
Raise = Callable[[IntegerPower, Any, Any, Any], Any]
"""A function that computes a power of integers. The arguments are the `IntegerPower`, the base, the
exponent, and the result that the last equation of the power gave.
"""


class Runner:
    """An interpreter that runs programs, and the programs inside these, equation by equation.

    Args:
        plain: a function that computes the results of an equation without inner programs.
        power: a function that computes a power of integers again, because JAX writes the power as
            several equations; None keeps the result of JAX's equations.
    """

    def __init__(self, plain: Plain, power: Raise | None = None) -> None:
        self._plain, self._power = plain, power
        self._control = {"scan": self._scanned, "while": self._while, "cond": self._chosen,
                         "custom_linear_solve": self._solved}  # fmt: skip

    def closed(self, program: ClosedJaxpr, values: Sequence[Any]) -> list[Any]:
        """Run a closed program (it holds its constants) and return its results."""
        return self._run(program.jaxpr, [as_value(c) for c in program.consts], values)

    def _run(self, program: Jaxpr, consts: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        known: dict[Any, Any] = dict(zip(program.constvars, consts))
        known |= dict(zip(program.invars, values))
        last = {v: i for i, eqn in enumerate(program.eqns) for v in _read(eqn.invars)}
        kept = set(_read(program.outvars))
        powers = integer_powers(program) if self._power is not None else {}
        kept.update(_read([v for one in powers.values() for v in (one.base, one.exponent)]))

        def value_of(atom: Any) -> Any:
            kind: Any = atom.aval
            return np.asarray(atom.val, kind.dtype) if isinstance(atom, Literal) else known[atom]

        for i, eqn in enumerate(program.eqns):
            outs = self._equation(eqn, [value_of(v) for v in eqn.invars])
            if self._power is not None and (one := powers.get(eqn.outvars[0])) is not None:
                outs = [self._power(one, value_of(one.base), value_of(one.exponent), outs[0])]
            known.update(zip(eqn.outvars, outs, strict=True))
            for v in _read(eqn.invars):
                if last[v] == i and v not in kept:
                    known.pop(v, None)
        return [value_of(v) for v in program.outvars]

    def _equation(self, eqn: Any, values: list[Any]) -> list[Any]:
        name = eqn.primitive.name
        if name in self._control or is_call(name):
            try:
                return self._control.get(name, self._called)(eqn, values)
            except UnknownParametersError as unknown:
                raise NotInterpreted(str(unknown)) from unknown
        return self._plain(eqn, values)

    def _called(self, eqn: JaxprEqn, values: list[Any]) -> list[Any]:
        inner = called_program(eqn)
        if isinstance(inner, ClosedJaxpr):
            return self.closed(inner, values)
        return self._run(inner, (), values)

    def _solved(self, eqn: JaxprEqn, values: list[Any]) -> list[Any]:
        return self.closed(*solver_of(eqn, values))

    def _chosen(self, eqn: JaxprEqn, values: list[Any]) -> list[Any]:
        branches = branches_of(eqn)
        return self.closed(branches[int(np.clip(int(values[0]), 0, len(branches) - 1))], values[1:])

    def _scanned(self, eqn: JaxprEqn, values: list[Any]) -> list[Any]:
        loop = scan_of(eqn)
        if not loop.length:
            raise NotInterpreted("the program has a scan of zero steps, which NumPy does not run")
        consts, rest = values[: loop.consts], values[loop.consts :]
        carry, along = rest[: loop.carry], rest[loop.carry :]
        rows: list[Any] = [None] * loop.length
        for i in reversed(range(loop.length)) if loop.reverse else range(loop.length):
            outs = self.closed(loop.body, [*consts, *carry, *(x[i] for x in along)])
            carry, rows[i] = outs[: loop.carry], outs[loop.carry :]
        return [*carry, *(np.stack(column) for column in zip(*rows))]

    def _while(self, eqn: JaxprEqn, values: list[Any]) -> list[Any]:
        loop = while_of(eqn)
        of_cond, rest = values[: loop.condition_consts], values[loop.condition_consts :]
        of_body, carry = rest[: loop.body_consts], rest[loop.body_consts :]
        goes = lambda: np.asarray(self.closed(loop.condition, [*of_cond, *carry])[0])
        while np.any(going := goes()):
            new = self.closed(loop.body, [*of_body, *carry])
            # In a batch, `going` is an array: a member whose loop has ended keeps its values.
            along = lambda x, going=going: going.reshape(
                going.shape + (1,) * (np.ndim(x) - going.ndim)
            )
            carry = [np.where(along(after), after, before) for before, after in zip(carry, new)]
        return carry


def _read(atoms: Sequence[Any]) -> list[Any]:
    return [v for v in atoms if not isinstance(v, Literal)]


def as_said(out: Any, said: Any, name: str) -> np.ndarray:
    """Return a result in the type that the program declares.

    Raises:
        NotInterpreted: if the result has another shape than the program declares.
    """
    if np.shape(out) != said.shape:
        raise NotInterpreted(
            f"{name} gave the shape {np.shape(out)}, but the program declares {said.shape}"
        )
    return np.asarray(out, np.uint64 if _is_key(said.dtype) else said.dtype)


def typed(eqn: JaxprEqn, values: Sequence[Any], /) -> list[Any]:
    """Return the results of NumPy's rule, in the types that the program declares.

    Raises:
        NotInterpreted: if NumPy's rule refuses the equation, or gives a shape that was not
            declared.
    """
    said: Any = [v.aval for v in eqn.outvars]
    name = eqn.primitive.name
    return [as_said(out, kind, name) for out, kind in zip(ruled(eqn, values), said, strict=True)]


def ruled(eqn: JaxprEqn, values: Sequence[Any], /) -> list[Any]:
    """Apply NumPy's rule to one equation without inner programs, and return the results.

    Raises:
        NotInterpreted: if the rule cannot take the equation's parameters or operands.
    """
    name = eqn.primitive.name
    try:
        found = _RULES[name](*values, **eqn.params)
    except (ArithmeticError, TypeError, ValueError, LookupError) as unforeseen:
        raise NotInterpreted(f"NumPy's rule for {name} fails: {unforeseen}") from unforeseen
    return list(found) if eqn.primitive.multiple_results else [found]


_MACHINE = Runner(typed)
_CONTROL = ("scan", "while", "cond", "custom_linear_solve")
"""The primitives whose equations hold programs: branches, loops, and linear solves."""
