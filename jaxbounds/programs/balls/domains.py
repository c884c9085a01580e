"""Find an operation of a program, such as sqrt, whose operand may leave its domain on a box.

If an operand may leave its domain, the result of the operation has no bounds.
"""

import contextlib
from typing import Any

import numpy as np

from jaxbounds.ground.jax_internals import ClosedJaxpr, JaxprEqn
from jaxbounds.programs.balls.boxes import Box, balls_of
from jaxbounds.programs.balls.interpreter import RULES, Interpreter
from jaxbounds.programs.balls.values import NotSupported, Reading, Undecided, is_reals


def _is_bounded(x: Any) -> bool:
    return not is_reals(x) or all(ball.is_finite() for ball in np.ravel(x))


def unbounded_on(program: ClosedJaxpr, box: Box, reading: Reading, /) -> str:
    """Name the first primitive with bounded operands but an unbounded result on a box.

    The name, such as "sqrt", is empty if every result is bounded. The reading "exact" takes each
    float constant as exactly its value, "ulp" as any nearby real number.
    """
    found: list[str] = []

    def watched(rule: Any) -> Any:
        def run_it(eqn: JaxprEqn, xs: list[Any], run: Any) -> list[Any]:
            outs = rule(eqn, xs, run)
            if all(map(_is_bounded, xs)) and not all(map(_is_bounded, outs)):
                found.append(eqn.primitive.name)
            return outs

        return run_it

    run = Interpreter(reading, rules={name: watched(rule) for name, rule in RULES.items()})
    with contextlib.suppress(Undecided, NotSupported):
        next(iter(run.ways(program, balls_of([box])[2][0])), None)
    return found[0] if found else ""
