"""Define rules for programs inside programs: calls, scans, loops and branches."""

from typing import Any

import jax
import numpy as np

from jaxbounds.ground.jax_internals import (
    ClosedJaxpr,
    JaxprEqn,
    branches_of,
    called_names,
    called_program,
    scan_of,
    while_of,
)
from jaxbounds.programs.balls.values import (
    Flags,
    NotSupported,
    as_flags,
    as_reals,
    dtype_of,
    flags,
    is_reals,
    settled,
    shape_of,
)

Values = list[Any]
LONGEST = 100_000
"""The interpreter runs at most this many steps of a `while` loop.

A larger number allows longer loops.
"""


def call(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Run the program that an equation (such as jit) calls; custom derivatives have no effect.

    Raises:
        UnknownParametersError: if the equation holds no program.
    """
    wanted, inner = tuple(map(run.used, eqn.outvars)), called_program(eqn)
    if isinstance(inner, ClosedJaxpr):
        return run.closed(inner, *xs, wanted=wanted)
    return run.jaxpr(inner, [], xs, wanted)


def same(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply a primitive that changes no value in real arithmetic."""
    return list(xs)


def _entry(x: Any, i: int) -> Any:
    if isinstance(x, jax.Array):
        return x[i]
    part = x[i : i + 1].reshape(x.shape[1:])
    return flags(part) if isinstance(x, Flags) else part


def _stacked(parts: Values, shape: tuple[int, ...], dtype: Any) -> Any:
    if any(map(is_reals, parts)):
        return np.concatenate([as_reals(p).ravel() for p in parts]).reshape(shape)
    if any(isinstance(p, Flags) for p in parts):
        return flags(np.stack(list(map(as_flags, parts))))
    return np.stack(list(map(np.asarray, parts))) if parts else np.zeros(shape, dtype)


def scan(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `scan`, step by step."""
    body, fixed, carried, length, reverse = scan_of(eqn)
    consts, carry, sequences = xs[:fixed], xs[fixed : fixed + carried], xs[fixed + carried :]
    steps: list[Values] = [[]] * length
    for i in range(length - 1, -1, -1) if reverse else range(length):
        out = run.closed(body, *consts, *carry, *(_entry(s, i) for s in sequences))
        carry, steps[i] = out[:carried], out[carried:]
    tails = [
        _stacked([step[k] for step in steps], shape_of(v), dtype_of(v))
        for k, v in enumerate(eqn.outvars[carried:])
    ]
    return [*carry, *tails]


def loop(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `while`; if the condition is undecided, the interpreter runs both continuations.

    Raises:
        NotSupported: if the loop of the program takes too many steps.
    """
    condition, asks, body, does = while_of(eqn)
    to_ask, to_do, state = xs[:asks], xs[asks : asks + does], xs[asks + does :]
    for _ in range(LONGEST):
        (go,) = run.closed(condition, *to_ask, *state)
        if not (run.fork(2, "whether a loop goes on") if isinstance(go, Flags) else bool(go)):
            return state
        state = run.closed(body, *to_do, *state)
    raise NotSupported(f"a loop takes more than {LONGEST} steps, limit={LONGEST}. Try fewer steps")


def branch(eqn: JaxprEqn, xs: Values, run: Any, /) -> Values:
    """Apply `cond`; if the choice of the branch is undecided, the interpreter runs each branch."""
    which, *operands = xs
    branches = branches_of(eqn)
    taken = int(settled(which, run, "a branch") if isinstance(which, Flags) else which)
    return run.closed(branches[min(max(taken, 0), len(branches) - 1)], *operands)


_SAME = (
    "stop_gradient",
    "copy",
    "copy_p",
    "device_put",
    "optimization_barrier",
    "sharding_constraint",
    "name",
)
RULES = {
    **dict.fromkeys(called_names(), call),
    **dict.fromkeys(_SAME, same),
    "scan": scan,
    "while": loop,
    "cond": branch,
}
