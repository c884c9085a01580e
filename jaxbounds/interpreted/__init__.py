"""Traced programs run in NumPy: nothing is compiled for what runs only once.

The same equations as XLA would compile, in the same types; results agree up to the rounding of
elementary functions and of sums. What there is no rule for is left to the compiler.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from jaxbounds.interpreted import draws, elementwise, indexing, linear_algebra, structure
from jaxbounds.interpreted.values import NotInterpreted, Rule
from jaxbounds.traces import equations

__all__ = ["NotInterpreted", "interpreted", "once"]

_RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **structure.RULES,
    **indexing.RULES,
    **linear_algebra.RULES,
    **draws.RULES,
}
_CALLS = {
    **dict.fromkeys(("jit", "pjit", "remat2", "checkpoint"), "jaxpr"),
    **dict.fromkeys(
        ("closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"), "call_jaxpr"
    ),
}
"""Primitives that run another program once, and the parameter that holds it."""
_CONTROL = frozenset(("scan", "while", "cond"))


def _is_key(dtype: Any) -> bool:
    return jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)


def _refuse(program: ClosedJaxpr, /) -> None:
    for eqn in equations(program.jaxpr):
        name = eqn.primitive.name
        if name not in _RULES and name not in _CALLS and name not in _CONTROL:
            raise NotInterpreted(f"no rule for {name}")
        for kind in (getattr(v.aval, "dtype", None) for v in eqn.outvars):
            if _is_key(kind) and not draws.is_threefry(kind):
                raise NotInterpreted(f"keys of {kind}")


def interpreted(program: ClosedJaxpr, /) -> Callable[..., list[np.ndarray]]:
    """A function that runs a program in NumPy.

    Raises:
        NotInterpreted: here, if there is no rule for one of its primitives; later, where NumPy may
            give something else than a compiled program.
    """
    _refuse(program)

    def run(*arguments: Any) -> list[np.ndarray]:
        with np.errstate(all="ignore"):
            return _closed(program, [_value(x) for x in arguments])

    return run


def once(
    function: Callable,
    otherwise: Callable,
    /,
    *,
    seen: Callable[[ClosedJaxpr], Any] = lambda traced: None,
) -> Callable:
    """What gives the function's results for a call or two: in NumPy; else `otherwise` is called.

    Args:
        function: that JAX can trace.
        otherwise: gives the same, and is called where there is no rule for it.
        seen: is told what was traced.
    """
    trace = jax.jit(function).trace  # remembers what it traced

    def run(*arguments: Any) -> Any:
        traced = trace(*arguments)
        seen(traced.jaxpr)
        try:
            found = interpreted(traced.jaxpr)(*jax.tree.leaves(arguments))
        except NotInterpreted:
            return otherwise(*arguments)
        return jax.tree.unflatten(jax.tree.structure(traced.out_info), found)

    return run


def _value(x: Any) -> Any:
    return draws.as_numbers(x) if _is_key(getattr(x, "dtype", np.dtype(float))) else np.asarray(x)


def _closed(program: ClosedJaxpr, values: Sequence[Any]) -> list[Any]:
    return _run(program.jaxpr, [_value(c) for c in program.consts], values)


def _run(program: Jaxpr, consts: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    known: dict[Any, Any] = dict(zip(program.constvars, consts))
    known |= dict(zip(program.invars, values))
    last = {v: i for i, eqn in enumerate(program.eqns) for v in _read(eqn.invars)}
    kept = set(_read(program.outvars))

    def value_of(atom: Any) -> Any:
        kind: Any = atom.aval
        return np.asarray(atom.val, kind.dtype) if isinstance(atom, Literal) else known[atom]

    for i, eqn in enumerate(program.eqns):
        outs = _equation(eqn, [value_of(v) for v in eqn.invars])
        for variable, out in zip(eqn.outvars, outs, strict=True):
            known[variable] = _as_said(out, variable.aval, eqn.primitive.name)
        for v in _read(eqn.invars):
            if last[v] == i and v not in kept:
                known.pop(v, None)
    return [value_of(v) for v in program.outvars]


def _read(atoms: Sequence[Any]) -> list[Any]:
    return [v for v in atoms if not isinstance(v, Literal)]


def _as_said(out: Any, said: Any, name: str) -> np.ndarray:
    """A result in the type that the program says; of another shape it is refused."""
    if np.shape(out) != said.shape:
        raise NotInterpreted(f"{name}: shape {np.shape(out)} for {said.shape}")
    return np.asarray(out, np.uint64 if _is_key(said.dtype) else said.dtype)


def _equation(eqn: Any, values: list[Any]) -> list[Any]:
    name, params = eqn.primitive.name, eqn.params
    if name in _CALLS:
        inner = params[_CALLS[name]]
        return _closed(inner, values) if isinstance(inner, ClosedJaxpr) else _run(inner, (), values)
    if name == "scan":
        return _scanned(values, **params)
    if name == "while":
        return _while(values, **params)
    if name == "cond":
        index = int(np.clip(int(values[0]), 0, len(params["branches"]) - 1))
        return _closed(params["branches"][index], values[1:])
    try:
        found = _RULES[name](*values, **params)
    except (TypeError, ValueError, IndexError, KeyError) as unforeseen:
        raise NotInterpreted(f"{name} with such parameters") from unforeseen
    return list(found) if eqn.primitive.multiple_results else [found]


def _scanned(
    values: list[Any], *, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, length: int,
    reverse: bool, **_: Any,
) -> list[Any]:  # fmt: skip
    if not length:
        raise NotInterpreted("a loop of no steps")
    consts, rest = values[:num_consts], values[num_consts:]
    carry, along = rest[:num_carry], rest[num_carry:]
    rows: list[Any] = [None] * length
    for i in reversed(range(length)) if reverse else range(length):
        outs = _closed(jaxpr, [*consts, *carry, *(x[i] for x in along)])
        carry, rows[i] = outs[:num_carry], outs[num_carry:]
    return [*carry, *(np.stack(column) for column in zip(*rows))]


def _while(
    values: list[Any], *, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int,
    body_nconsts: int, **_: Any,
) -> list[Any]:  # fmt: skip
    of_cond, rest = values[:cond_nconsts], values[cond_nconsts:]
    of_body, carry = rest[:body_nconsts], rest[body_nconsts:]
    while np.any(going := np.asarray(_closed(cond_jaxpr, [*of_cond, *carry])[0])):
        new = _closed(body_jaxpr, [*of_body, *carry])
        # Of a batch (`going` is one then) those that have ended stay as they are.
        along = lambda x: going.reshape(going.shape + (1,) * (np.ndim(x) - going.ndim))
        carry = [np.where(along(after), after, before) for before, after in zip(carry, new)]
    return carry
