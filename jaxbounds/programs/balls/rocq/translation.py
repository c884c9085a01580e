"""Translate a JAX program on exact inputs into a list of scalar operations, the ledger."""

import linecache
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbounds.ground import jax_internals
from jaxbounds.ground.jax_internals import JaxprEqn
from jaxbounds.programs.balls import loops, movement
from jaxbounds.programs.balls.interpreter import Interpreter, Program
from jaxbounds.programs.balls.rocq.ledger import Ledger
from jaxbounds.programs.balls.rocq.rules import INTEGERS, RULES, lifted, objects
from jaxbounds.programs.balls.rocq.terms import Fact, Place, Real
from jaxbounds.programs.balls.values import (
    NotSupported,
    Reading,
    Undecided,
    dtype_of,
    is_float,
    is_reals,
)

PACKAGE = Path(__file__).parents[3]
_LOOPS = frozenset(loops.RULES) | {"custom_linear_solve"}
_FRAME = re.compile(r"(?P<file>.+?):(?P<line>\d+)(:\d+)? \((?P<function>.+)\)")
_DATA = movement.DATA | {"scatter-add": (0, 2)}


def place_of(eqn: JaxprEqn, /) -> Place | None:
    """Return the innermost line of user code that made an equation; None if JAX records no line."""
    found = _FRAME.fullmatch(jax_internals.place_of(eqn))
    if found is None:
        return None
    file, line, function = found["file"], int(found["line"]), found["function"]
    path = Path(file)
    shown = str(path.relative_to(PACKAGE.parent)) if PACKAGE in path.parents else path.name
    code = linecache.getline(file, line).strip()
    return Place(shown, line, function.replace("<locals>", "").rsplit(".", 1)[-1], code)


class Translator(Interpreter):
    """An interpreter that records one path through a program as scalar operations."""

    def __init__(self, ledger: Ledger, reading: Reading, seconds: float | None) -> None:
        super().__init__(reading, rules=RULES, seconds=seconds)
        self.ledger = ledger

    def fork(self, ways: int, what: str) -> int:
        """Refuse to follow several branches; a file for Rocq must prove the choice of a branch.

        Raises:
            Undecided: always.
        """
        raise Undecided(f"the computed bounds on the numbers do not decide {what}")

    def _constant(self, x: Any) -> Any:
        value = super()._constant(x)
        if not is_reals(value):
            return value
        entries = np.asarray(x, dtype=np.float64).ravel().tolist()

        def one(float_: float, ball: Any) -> Any:
            if ball.is_exact() or not ball.is_finite():
                return lifted(ball, self.ledger)[()]
            return self.ledger.variable(float_, ball)

        return objects(value.shape, map(one, entries, value.ravel()))

    def _equation(self, eqn: JaxprEqn, values: list[Any]) -> list[Any]:
        name = eqn.primitive.name
        self.ledger.group(place_of(eqn) or self.ledger.place)
        if name not in _LOOPS and name not in INTEGERS:
            values = [
                without_balls(x, v)
                if is_reals(x) and not is_float(v) and dtype_of(v) != np.bool_
                else x
                for v, x in zip(eqn.invars, values)
            ]
        elif (data := _DATA.get(name)) is not None:
            values = [
                x if i in data or not is_reals(x) else without_balls(x, v)
                for i, (v, x) in enumerate(zip(eqn.invars, values))
            ]
        outs = super()._equation(eqn, values)
        for v, out in zip(eqn.outvars, outs):
            if is_reals(out) and np.issubdtype(dtype_of(v), np.integer):
                _refuse_overflow(out, np.iinfo(dtype_of(v)))
        return outs


def _refuse_overflow(x: np.ndarray, kind: Any) -> None:
    """Refuse integers outside the range of their type, because the program would wrap them."""
    for v in x.ravel():
        if isinstance(v, Real) and v.exact is not None and not kind.min <= v.exact <= kind.max:
            raise NotSupported(
                f"integers are beyond the range of their type, got {v.exact}. Try a wider type"
            )


def without_balls(x: np.ndarray, like: Any) -> np.ndarray:
    """Convert an array of exact numbers and decided comparisons to NumPy integers of `like`'s type.

    Raises:
        Undecided: if the array contains a number that is not an exact integer.
    """
    entries = []
    for v in x.ravel():
        if isinstance(v, Fact):
            entries.append(int(v))
        elif v.exact is None or v.exact.denominator != 1:
            raise Undecided("a number that the program uses as an integer is not exact")
        else:
            entries.append(int(v.exact))
    return np.array(entries, dtype_of(like)).reshape(x.shape)


def program_of(function: Callable[[Any], Any], instance: Any, /) -> tuple[Program, Any, bool]:
    """Trace a function of all given arrays, or of the floats alone if the first trace fails.

    Returns:
        The program; its argument (the arrays, or a dict of the float arrays); and whether all
            arrays are the argument of the traced function.

    Raises:
        NotSupported: if both attempts to trace the function fail.
    """
    leaves, structure = jax.tree.flatten(instance)
    is_real = lambda x: jax.dtypes.issubdtype(x.dtype, np.floating)
    floats = {i: x for i, x in enumerate(leaves) if is_real(x)}

    def of_floats(given: dict[int, Any]) -> Any:
        mixed = [given[i] if i in given else np.asarray(x) for i, x in enumerate(leaves)]
        return function(jax.tree.unflatten(structure, mixed))

    refusal: Exception | None = None
    for traceable, argument in ((function, instance), (of_floats, floats)):
        if not jax.tree.leaves(argument):
            continue
        try:
            return Program.of(traceable, argument), argument, refusal is None
        except Exception as problem:  # NumPy and Python may raise anything for a tracer
            refusal = problem
    raise NotSupported(
        f"`evaluate` computes on the host and JAX cannot trace it, error={type(refusal).__name__}. "
        "Try jax.numpy in evaluate"
    )


def translated(
    function: Callable[[Any], Any], instance: Any, names: dict[int, np.ndarray], run: Translator, /
) -> Any:
    """Translate a function's value on given arrays into recorded numbers and proved booleans.

    `names` maps the index of a leaf in `instance` to the recorded numbers for the leaf's entries.

    Raises:
        NotSupported: if an operation has no translation; the message names the operation.
        Undecided: if the bounds of two numbers leave a comparison open.
    """
    program, argument, whole = program_of(function, instance)
    leaves = jax.tree.leaves(argument)
    if whole:
        given = [names.get(i, x) for i, x in enumerate(leaves)]
    else:
        given = [names.get(i, x) for i, x in zip(argument, leaves)]
    run._next, run._reads = 0, []
    outs = run.closed(program.closed, *given)
    return jax.tree.unflatten(program.result, outs)


def entries_of(x: Any, ledger: Ledger, /) -> list[Any]:
    """Return the entries of an array in order: recorded numbers and proved booleans."""
    return list(lifted(x, ledger).ravel())
