"""Read the jumps of a program: the constants with which it compares, and the compared operands."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbounds.falsification.evaluation import is_floating
from jaxbounds.ground.jax_internals import (
    ClosedJaxpr,
    Jaxpr,
    Literal,
    is_call,
    programs_inside,
    without_dead_code,
)

CONSTANTS = 12
"""The search sets entries to at most this many constants of a program. A larger number finds
violations at further constants and takes longer."""
PAIRS = 16
"""The search equates the operands of at most this many comparisons. A larger number finds
violations at further jumps and takes longer."""
LEAST, MOST = 1e-6, 1e6
"""Least and largest absolute value of a nonzero constant. A wider range also tries constants that
only guard a division or a logarithm."""
TABLE = 16
"""The search reads the constants of an array with at most this many entries. A larger number also
reads longer tables."""
_RANK = dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "max", "min", "clamp", "sign", "abs"), 0)
_RANK |= dict.fromkeys(("floor", "ceil", "round", "sub", "add", "select_n"), 1)
"""The importance of the constants of a primitive; 0 for comparisons, 2 for primitives not named."""
WHOLE = ("floor", "ceil", "round")
"""The primitives that jump at whole numbers, or between whole numbers."""
_UNCHANGED = ("convert_element_type", "broadcast_in_dim", "reshape", "squeeze", "copy")

Pair = tuple[Any, Any]
"""Two compared operands; each is a variable of the outermost program, or a NumPy array."""


class Jumps(NamedTuple):
    """The absolute values of a program's constants, and the operands of its comparisons.

    The constants of comparisons come first.
    """

    constants: list[float]
    pairs: list[Pair]


def jumps(closed: ClosedJaxpr, numbers: Any, /) -> Jumps:
    """Collect the constants and the compared operands of a traced program.

    Args:
        closed: the traced program.
        numbers: further constants, which come last.
    """
    ranks: dict[float, int] = {}
    pairs: dict[Any, Pair] = {}
    known = dict(zip(closed.jaxpr.constvars, closed.consts))
    uses = [*_uses(without_dead_code(closed.jaxpr), known, True), ("", list(numbers))]
    for name, atoms in uses:
        rank = _RANK.get(name, 2) if name else 3
        held = [x for x in atoms if is_table(x)]
        for value in np.abs(
            np.concatenate([np.zeros(0), *(np.ravel(np.asarray(x, float)) for x in held)])
        ):
            if value == 0 or LEAST <= value <= MOST:
                ranks[float(value)] = min(rank, ranks.get(float(value), rank))
        for pair in _pairs(atoms, name) if rank == 0 or name in WHOLE else ():
            pairs.setdefault(tuple(id(x) if not is_table(x) else str(x) for x in pair), pair)
    return Jumps(sorted(ranks, key=ranks.__getitem__)[:CONSTANTS], list(pairs.values())[:PAIRS])


def is_table(x: Any, /) -> bool:
    """Return whether a value is a constant, or a short array of constants."""
    kind = getattr(x, "dtype", np.asarray(0.0).dtype if isinstance(x, int | float) else None)
    plain = isinstance(x, int | float | np.ndarray | np.generic | jax.Array)
    return plain and is_floating(kind) and np.size(x) <= TABLE


def _pairs(atoms: list[Any], name: str) -> Iterator[Pair]:
    """Yield the operands of a jump, if at least one of them depends on the instance.

    The second operand of `floor`, `ceil` and `round` is NaN, which stands for a whole number.
    """
    if name in WHOLE:
        if hasattr(atoms[0], "aval") and not isinstance(atoms[0], jax.Array):
            yield atoms[0], np.array(np.nan)
        return
    if len(atoms) == 1:
        atoms = [*atoms, np.zeros(())]
    if len(atoms) == 3:  # the operands of `clamp` are the least value, the number, the largest
        atoms = [atoms[1], atoms[0]]
    moving = [hasattr(x, "aval") and not isinstance(x, jax.Array) for x in atoms]
    floats = (is_floating(x.aval.dtype) for x, one in zip(atoms, moving) if one)
    fixed = (is_table(x) and np.all(np.isfinite(x)) for x, one in zip(atoms, moving) if not one)
    if any(moving) and all(floats) and all(fixed):
        yield atoms[0], atoms[1]


def _uses(
    program: Jaxpr, known: dict[Any, Any], outermost: bool
) -> Iterator[tuple[str, list[Any]]]:
    """Yield each equation's primitive, and its operands as variables of the outermost program.

    An operand is a NumPy array if it is constant, and None if the outermost program has no variable
    for it.
    """
    at = lambda v: (
        np.asarray(v.val) if isinstance(v, Literal) else known.get(v, v if outermost else None)
    )
    for eqn in program.eqns:
        name, inside = eqn.primitive.name, [*programs_inside(eqn)]
        atoms: list[Any] = list(map(at, eqn.invars))
        for inner in inside:
            aligned = is_call(name) and len(inner.invars) == len(atoms)
            yield from _uses(inner, dict(zip(inner.invars, atoms)) if aligned else {}, False)
        if name in _UNCHANGED and is_table(atoms[0]) and np.size(atoms[0]) == 1:
            known[eqn.outvars[0]] = np.asarray(atoms[0]).reshape(())
        elif not inside:
            yield name, atoms
