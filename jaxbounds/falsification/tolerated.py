"""Decide what a tolerance hides: violations below the tolerance, and equality in a strict claim."""

from collections.abc import Callable
from dataclasses import replace

import jax
import numpy as np

from jaxbounds.claims.sets import Over
from jaxbounds.claims.statements import Form, Instance, Size, Statement
from jaxbounds.falsification.bench import Column, Pool, spread
from jaxbounds.falsification.decide import BELOW_ONE, Decision
from jaxbounds.falsification.found_equality import NEAR_ONE as NEAR_ONE_IN_FLOATS
from jaxbounds.falsification.found_equality import is_exact, on_the_grid
from jaxbounds.falsification.measure import Measured
from jaxbounds.falsification.second_opinion import Asked
from jaxbounds.falsification.wording import in_words

ASKED = 2
"""Ball arithmetic decides at most this many violations of a claim version. A larger number takes
longer."""
LOOKED = 512
"""The engine looks for round entries at this many instances with equal sides. A larger number finds
more exact equalities and takes longer."""
TOLERATED = 3e-14
"""Ball arithmetic decides only relative violations above this value; smaller ones are rounding. A
larger value checks fewer violations."""
NEAR_ZERO = 1e-6
"""A strict claim with one zero side is inconclusive if the other side falls below this share of its
median. A larger share leaves more true claims undecided."""
NEAR_ONE = 1e-3
"""A strict claim is inconclusive if its worst ratio is this close to one. A larger number leaves
more true claims undecided."""
POINTS = 64
"""Ball arithmetic decides a strict claim at each value of its `there_is` entries, up to this many.
A larger number decides more claims and takes longer."""
USUAL = 1e-9
"""A tolerance up to this value covers rounding alone; a larger tolerance is the author's choice. A
larger threshold asks ball arithmetic more often."""


def hidden_violation(
    statement: Statement, pool: Pool, column: Column, form: Form, referee: Asked, /
) -> str:
    """Return a reason if the tolerance hides a violation that ball arithmetic confirms.

    A violation that rounding does not explain makes the claim false, however small it is.
    """
    m = column.measured
    if statement.host or statement.unrefutable or statement.there_is is not None:
        return ""
    if statement.tolerance > USUAL or statement.relation == "->":
        return ""
    amount = np.where(m.counted, m.value - (1.0 if statement.is_bound else 0.0), -np.inf)
    amount = np.where(np.isfinite(amount) & (amount > np.nan_to_num(m.error)), amount, -np.inf)
    rows = [row for row in np.argsort(-amount, kind="stable")[:ASKED] if amount[row] > TOLERATED]
    if reason := _only_in_floats(statement, pool, column, form, referee):
        return reason
    strict = replace(statement, tolerance=TOLERATED / 1e4, judges=()) if rows else statement
    for row in rows:
        instance = pool.instance(int(row))
        size = Size(statement.sizes[column.sizes[row]])
        if referee(strict, form, instance, size).word.startswith("disproved"):
            smaller = f"tolerance={amount[row] / 10:.0e}"
            cure = smaller if statement.is_bound else f"the relation '<=' or '>=' with {smaller}"
            less = f", which is less than tolerance={statement.tolerance:g}"
            return (
                f"the worst instance violates the form by {amount[row]:.1g}"
                f"{less * bool(amount[row] < statement.tolerance)}, and ball arithmetic confirms "
                f"the violation. Try {cure}"
            )
    return ""


def _only_in_floats(
    statement: Statement, pool: Pool, column: Column, form: Form, referee: Asked
) -> str:
    """Return a reason if an identity is true in floats only, by saturation or underflow.

    An example is exp(-x) = 0 for x in [800, 900]: all floats of both sides are equal. The function
    concerns claims about floats and integers in boxes, because floats hold these points exactly.
    """
    m, rows = column.measured, np.flatnonzero(column.measured.counted)
    exact = bool(statement.over) and is_exact(statement)
    if statement.relation != "=" or not exact or np.any(m.value[rows] != 0):
        return ""
    bounds = [replace(statement, kind="inequality", relation=r, judges=()) for r in ("<=", ">=")]
    for row in spread(rows, 2 * ASKED):
        at = pool.instance(int(row)), Size(statement.sizes[column.sizes[row]])
        if any(referee(bound, form, *at).strict for bound in bounds):
            return (
                f"floats find equal sides at {in_words(at[0])}, and ball arithmetic finds a "
                "difference below rounding. Try an inequality that bounds the difference"
            )
    return ""


def strictly(
    statement: Statement,
    pool: Pool,
    column: Column,
    form: Form,
    decision: Decision,
    asked: Asked,
    /,
    *,
    unreached: Callable[[], str],
    agree: Callable[[Instance, Size], bool],
) -> tuple[Decision, int | None]:
    """Return a new decision about a strict inequality, if both sides are equal at an instance.

    The inequality fails if ball arithmetic finds equal sides at an instance; `agree` says whether
    short enclosures overlap there, and not beside it. If lhs / rhs only approaches one, the
    inequality holds, for the reason that `unreached` returns.

    Returns:
        The decision, and the row of an instance with equal sides if the inequality fails there.
    """
    m = column.measured
    given = lambda instance: in_words(
        {name: x for name, x in instance.items() if name not in (statement.there_is or {})}
    )
    with np.errstate(invalid="ignore"):
        equal = np.flatnonzero(m.counted & (m.lhs >= m.rhs))
    small = equal[np.argsort(np.abs(m.lhs[equal]), kind="stable")][:ASKED]
    plain = [row for row in equal[:LOOKED] if on_the_grid(pool.instance(int(row)))][:ASKED]
    rows = [int(row) for row in dict.fromkeys([*plain, *small, *equal[:ASKED]])]
    for row in () if statement.host or statement.estimates else rows:
        instance, size = pool.instance(row), Size(statement.sizes[column.sizes[row]])
        if _never_strict(statement, form, instance, size, asked) or (
            row in plain and statement.there_is is None and agree(instance, size)
        ):
            at = f" at {where}" if (where := given(instance)) else ""
            words = f"the inequality is strict, and both sides are equal{at}"
            if promised := ", ".join(statement.there_is or {}):
                words = f"no {promised} satisfies the strict inequality{at}"
            return Decision("fails", decision.ratio, words), row
    zero = _nearly_zero(m)
    if len(equal):
        at = given(pool.instance(int(equal[0])))
        place = f"at {at}" if at else f"with the best {', '.join(statement.there_is or {})} found"
        reason = f"both sides are equal, at least in floats, {place}"
    elif zero:
        reason = "one side is zero, and the other side comes near zero"
    elif decision.reason == BELOW_ONE and not decision.ratio > 1 - NEAR_ONE:
        return decision, None
    elif decision.reason == BELOW_ONE:
        reason = f"the worst ratio comes within {1 - decision.ratio:.1g} of one"
    else:
        at_one = decision.reason.startswith(NEAR_ONE_IN_FLOATS)
        reason = "the worst ratio is one in floats" if at_one else decision.reason
    if not zero and (words := unreached()):
        return Decision("holds", decision.ratio, words), None
    cure = "Try the relation '<=' or '>=', or hypotheses that keep the sides apart"
    words = f"the inequality is strict, but {reason}. {cure}"
    return Decision("inconclusive", decision.ratio, words), None


def _never_strict(
    statement: Statement, form: Form, instance: Instance, size: Size, asked: Asked
) -> bool:
    """Return whether ball arithmetic refutes a strict inequality whose sides are equal in floats.

    Ball arithmetic must refute each value of `there_is` entries, of which there may be `POINTS`.
    """
    if statement.there_is is None:
        return asked(statement, form, instance, size).equal
    points, given = Over(statement.there_is).every(size), replace(statement.as_given(), judges=())
    if points is None or len(jax.tree.leaves(points)[0]) > POINTS:
        return False
    for row in range(len(jax.tree.leaves(points)[0])):
        point = jax.tree.map(lambda leaf, row=row: np.asarray(leaf)[row], points)
        said = asked(given, form, {**instance, **point}, size)
        if not (said.equal or said.word.startswith("disproved")):
            return False
    return True


def _nearly_zero(m: Measured) -> bool:
    gap = np.abs(m.lhs - m.rhs)[m.counted]
    zero = bool(np.all((m.lhs == 0) | (m.rhs == 0) | ~m.counted))
    gap = gap[np.isfinite(gap)]
    return zero and len(gap) > 0 and float(np.min(gap)) <= NEAR_ZERO * float(np.median(gap))
