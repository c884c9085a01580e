"""The evidence for a verdict: its kind, the number of instances, and the least error it shows."""

from collections.abc import Iterator
from typing import Literal

import jax
import numpy as np

from jaxbounds.claims.statements import FITTED, ON_AVERAGE, Instance, Size, Statement
from jaxbounds.falsification.bench import Column, Pool, labelled, length
from jaxbounds.falsification.decide import Decision, edge
from jaxbounds.falsification.discrete import all_points
from jaxbounds.falsification.evaluation import Reals
from jaxbounds.falsification.examples import SOURCE
from jaxbounds.falsification.explore import Searched, agreeing
from jaxbounds.falsification.measure import Measured, ratio
from jaxbounds.falsification.small_sides import TRY_ZERO

Evidence = Literal[
    "", "sampled", "searched", "enumerated", "approached", "attained", "violated", "not seen"
]
"""The kinds of evidence, from weak to strong. "sampled": the evidence is random draws only.
"searched": the evidence is draws, and a search that found a worse instance. "enumerated": the
run measured all instances of a finite set. "approached": the ratio of the sides tends to one
along a sequence of instances, and no measured instance reaches one. "attained": both sides of an
instance were equal up to rounding, so the claim is sharp. "violated": an instance violates the
claim. "not seen": a fit shows another rate than the claimed rate."""

SHRUNK = 0.01
"""The slightly false variant of a `<=` has a right side smaller by this share. A larger share makes
the variant easier to reject."""
CLOSE = 1e-6
"""An instance with equal sides is confirmed if another instance's lhs / rhs is this close to one. A
larger value counts more claims as attained."""
MOVED = 1e-6
"""The slightly false variant of an `=` moves one side by this share of the largest entry. A larger
share makes the variant easier to reject."""
KINDS = 2
"""The claim counts as sharp if searches from this many kinds of starting points end at equal sides.
A larger number counts fewer claims as sharp."""
ENOUGH = 8
"""If at least this many draws are all equal, the verdict reports a sampler without randomness. A
larger number overlooks more samplers."""
PAIR = 2
"""Constant sides are a warning only if the claim's sets have more than this many points. A larger
number judges more claims whose sides ignore the draws."""
FEW = 4
"""If all draws are equal, the advice lists at most this many other sizes of the claim. A larger
number lists more sizes."""


def near_control(statement: Statement, column: Column, /) -> bool:
    """Return whether the rules reject a slightly false variant of the claim on these instances."""
    counted = column.measured.counted
    m = Measured(*(np.asarray(field)[counted] for field in column.measured))
    if statement.kind == "limit":
        return False
    if statement.relation == "=":
        return bool(np.any(MOVED - m.high > edge(statement)))
    positive = m.rhs > 0
    with np.errstate(all="ignore"):
        below = ratio(m.lhs, m.rhs - SHRUNK * np.abs(m.rhs), np)
        # A violation on an estimated side has low = -inf; its value still counts here.
        low = np.where(np.isneginf(m.low), m.value, m.low)
        low = np.where(positive, low / (1 - SHRUNK), below)
    if column.scale is not None:  # a share of a zero side is zero, so the terms give the scale
        scale = column.scale[counted]
        with np.errstate(all="ignore"):
            moved = 1 + SHRUNK + (m.lhs - m.rhs) / np.where(scale > 0, scale, np.nan)
        low = np.where(moved > low, moved, low)
    return bool(np.any(low > edge(statement))) or falls_to_zero(m)


def falls_to_zero(m: Measured, /) -> bool:
    """Return whether one side is zero at every instance, while the other side comes near zero.

    A slightly false variant multiplies a side by a factor near one, which does not change a zero
    side.
    """
    gap = np.abs(m.lhs - m.rhs)
    gap = gap[np.isfinite(gap)]
    zero = len(gap) > 0 and bool(np.all((m.lhs == 0) | (m.rhs == 0)))
    return zero and float(np.min(gap)) <= SHRUNK * float(np.max(gap))


def evidence(
    statement: Statement,
    index: int,
    decision: Decision,
    near: bool,
    searched: Searched,
    column: Column,
    /,
    *,
    along: str = "",
    sharp: bool = False,
) -> Evidence:
    """Return the strongest kind of evidence for the verdict on one version of the claim.

    "attained" needs equal sides at a hand-written or random instance, or at the ends of searches
    from `KINDS` kinds of starting points. One kind alone may lead all searches to one local
    maximum. The sentence `along` describes a sequence of instances on which lhs / rhs only
    approaches one.
    """
    if decision.status == "fails":
        return "violated"
    if decision.status == "inconsistent":
        return "not seen"
    if decision.status not in ("holds", "consistent"):
        return ""
    if along and decision.status == "holds":
        return "approached"
    reached = near and statement.is_bound and decision.ratio >= 1 - CLOSE
    reached = reached and is_one(statement, column)
    known = (sharp or bool(statement.forms[index].equality)) and not statement.strict
    if known and reached and _by_many(searched, index, column):
        return "attained"
    if statement.enumerates:
        return "enumerated"
    return "searched" if searched.accepted[index] else "sampled"


def is_one(statement: Statement, column: Column, /) -> bool:
    """Return whether a ratio of the sides is one up to the tolerance, or up to the stated error."""
    high = np.asarray(column.measured.high)[np.asarray(column.measured.counted)]
    return bool(np.any(high >= 1 - statement.tolerance))


def _by_many(searched: Searched, form: int, column: Column) -> bool:
    given = column.measured.counted & ~np.isin(column.sources, ("search", SOURCE))
    if np.any(np.asarray(column.measured.value)[given] >= 1 - CLOSE):
        return True
    return sum(there > 0 for there, _ in agreeing(searched, form).values()) >= KINDS


def distinct_counted(column: Column, /) -> int:
    """Return the number of different instances that are evidence for one claim version."""
    return len(np.unique(column.labels[np.asarray(column.measured.counted)]))


def bounded_mean(ratios: Reals, /) -> float | None:
    """Return the mean of r / (1 + |r|) over finite ratios r = lhs/rhs; each r affects the mean."""
    finite = ratios[np.isfinite(ratios)]
    return float(np.mean(finite / (1 + np.abs(finite)))) if len(finite) else None


def by_size(statement: Statement, column: Column, /) -> dict[str, float]:
    """Return the worst lhs / rhs for each choice of array shapes; empty for rates and limits."""
    found: dict[str, float] = {}
    m = column.measured
    for index, size in enumerate(map(Size, statement.sizes)):
        rows = m.counted & (column.sizes == index)
        if statement.kind in FITTED or not np.any(rows):
            continue
        if statement.kind == "probability":
            worst = float(np.mean(m.value[rows] > edge(statement))) / (statement.level or 1.0)
        elif statement.kind == "expectation":
            worst = float(np.mean(m.lhs[rows])) / (abs(float(np.mean(m.rhs[rows]))) or 1.0)
        else:
            worst = float(np.max(m.value[rows]))
        found[repr(size)] = worst
    return found


def ailments(
    statement: Statement, pool: Pool, columns: list[Column], searched: Searched, /
) -> Iterator[str]:
    """Yield reasons why the measurements may say nothing about the claim, each with advice."""
    for batch, source, at in zip(pool.instances, pool.sources, pool.sizes):
        rows = length(batch)
        drawn = source not in ("cases", "search") and rows >= ENOUGH
        drawn = drawn and not (source == "over" and _has_points(statement, at, 1))
        if drawn and len(np.unique(labelled(batch))) < 2:
            yield _equal_draws(statement, source, at, batch)
    if searched.runs and not searched.met:
        yield "no step of any search met the hypotheses. Try `project`, a map onto the hypotheses"
    # The search for `there_is` entries may bring both sides to one number.
    plain = statement.is_bound and statement.there_is is None
    alone = all(_has_points(statement, at, PAIR) for at in range(len(statement.sizes)))
    if plain and statement.kind not in ON_AVERAGE and statement.sample and not alone:
        sides = [(column.measured.lhs, column.measured.rhs) for column in columns]
        drawn = np.asarray(columns[-1].sources) != "cases"
        if np.sum(drawn) >= ENOUGH and all(len(np.unique(s[drawn])) < 2 for s in sum(sides, ())):
            yield _constant_sides(statement, *(side[drawn] for side in sides[0]))


def _has_points(statement: Statement, at: int, most: int) -> bool:
    """Return whether the claim's sets have at most `most` points at the size with this index."""
    sets = all_points(statement, Size(statement.sizes[at]))
    count = None if sets is None else sets.cardinality(statement.sizes[at])
    return count is not None and count <= most


def _equal_draws(statement: Statement, source: str, at: int, batch: Instance) -> str:
    size, rows = statement.sizes[at], length(batch)
    where = f" at {Size(size)!r}" if size else ""
    empty = all(np.size(leaf) == 0 for leaf in jax.tree.leaves(batch))
    if not (empty or (source == "over" and statement.over)):
        return f"all {rows} draws of {source!r}{where} are equal. Try a sampler that uses its key"
    said = "the arrays have no entries" if empty else "the sets of over= seem to have one point"
    others = [dict(other) for other in statement.sizes if other != size]
    shown = repr(others) if len(others) <= FEW else f"[...] without {dict(size)}"
    if others:
        cure = f"sizes={shown}"
    else:
        cure = "sizes of at least 1" if empty else "larger sets, or over={} for a claim about sizes"
    return f"{said}{where}, so all {rows} draws are equal. Try {cure}"


def _constant_sides(statement: Statement, lhs: Reals, rhs: Reals) -> str:
    said = "constant over all draws, at least up to rounding"
    if statement.kind == "inequality" and np.allclose(lhs, rhs, rtol=CLOSE, atol=CLOSE):
        zero = not np.any(lhs) and not np.any(rhs)
        cure = TRY_ZERO if zero else "Try the relation '=', or a bound on lhs - rhs"
        return f"both sides are equal and {said}. {cure}"
    return (
        f"both sides are {said}. Try over={{}} for sides that take sizes only, or sides that "
        "differ between instances in float64"
    )
