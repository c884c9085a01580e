"""Judge a claim again without the instances whose violations are rounding of small sides.

If a cancelled difference has error 1e-16, its square root has error 1e-8, so floats violate a true
bound at small sides. A search moves towards such instances. The engine therefore draws and searches
again among instances with a side of at least `LEAST`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.statements import ON_AVERAGE, Form, Instance, Size, Statement
from jaxbounds.claims.statements.instance import Hypotheses
from jaxbounds.falsification.bench import Bench, Column, Pool, spread
from jaxbounds.falsification.decide import violation
from jaxbounds.falsification.moves import is_float
from jaxbounds.falsification.second_opinion import Asked, clears_at_the_set

LEAST = 1e-3
"""The second judgement needs a side of at least this value; a square root of this size has error
1e-13. A larger value excludes more instances."""
ASKED = 12
"""Ball arithmetic decides at most this many violations, each in tenths of seconds. A larger number
takes longer."""
TINY = 1e-150
"""Products of numbers up to this absolute value lose digits in float64. A larger value makes more
verdicts name lost digits as the cause."""
TRY_ZERO = "Try the relation '=' and false=[1.0]"
"""The advice for a claim whose two sides are zero, because a multiple of zero is no false variant.
"""
NAME = f"a side is at least {LEAST:g}"
"""The name under which a verdict lists the hypothesis that a side is at least LEAST."""


def are_rounding(bench: Bench, pool: Pool, column: Column, form: Form, referee: Asked, /) -> bool:
    """Return whether all violations have small sides, and tested violations are only rounding."""
    statement, m = bench.statement, column.measured
    if statement.host or statement.kind in ON_AVERAGE or not statement.is_bound:
        return False
    if statement.unrefutable or statement.there_is is not None:
        return False
    amount = violation(statement, m)
    rows = np.argsort(-amount, kind="stable")[: int(np.sum(amount > 0))]
    sides = np.maximum(np.abs(m.lhs), np.abs(m.rhs))
    if not len(rows) or not np.all(sides[rows] < LEAST):
        return False
    for row in spread(rows, ASKED):
        asked = form, pool.instance(int(row)), Size(statement.sizes[column.sizes[row]])
        if not referee(statement, *asked).clears and not clears_at_the_set(
            statement, *asked, referee
        ):
            return False
    return True


def vanishing(statement: Statement, pool: Pool, column: Column, /) -> str:
    """Return a reason if both sides are so small that no changed side is false, else ""."""
    m = column.measured
    sides = np.maximum(np.abs(m.lhs), np.abs(m.rhs))[m.counted]
    if statement.kind in ON_AVERAGE or not len(sides) or not np.all(sides <= TINY):
        return ""
    zero = not np.any(sides)
    leaves = [x for batch in pool.instances for x in jax.tree.leaves(batch) if is_float(x)]
    entries = max((float(np.max(np.abs(x), initial=0.0)) for x in leaves), default=1.0)
    if zero and (entries > TINY or not entries):  # a product of exact zeros is no underflow
        return f"both sides are zero on all instances. {TRY_ZERO}"
    said = "are zero" if zero else f"are at most {np.max(sides):.1g}"
    cure = "larger sets in over=, such as jb.Ball(1, 'd')" if statement.over else "larger entries"
    return f"both sides {said} on all instances, perhaps because products underflow. Try {cure}"


@dataclass(frozen=True)
class _LargeSides:
    statement: Statement
    own: Hypotheses | None

    def __call__(self, instance: Instance, size: Size) -> Mapping[str, Any]:
        sides, name = self.statement.evaluate(instance, size), self.statement.forms[0].name
        left = sides.lhs[name] if isinstance(sides.lhs, Mapping) else sides.lhs
        larger = jnp.maximum(jnp.abs(jnp.asarray(left)), jnp.abs(jnp.asarray(sides.rhs[name])))
        return {**(self.own(instance, size) if self.own else {}), NAME: larger >= LEAST}


def without_small_sides(statement: Statement, /) -> Statement:
    """Return a copy of the statement for instances with a side of at least `LEAST`."""
    return replace(statement, hypotheses=_LargeSides(statement, statement.hypotheses))
