"""What stands behind a verdict: which evidence, from how many instances, and how sharp a test."""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from jaxbounds.claims.statements import FITTED, Size, Statement
from jaxbounds.falsification.bench import Column, Pool, labelled, length
from jaxbounds.falsification.decide import ON_AVERAGE, Decision, edge
from jaxbounds.falsification.evaluation import Reals
from jaxbounds.falsification.examples import SOURCE
from jaxbounds.falsification.explore import Searched, agreeing
from jaxbounds.falsification.measure import Measured, ratio

Evidence = Literal[
    "", "sampled", "searched", "enumerated", "approached", "attained", "violated", "not seen"
]
"""From weak to strong: draws; draws and a search that found worse ones; all there are; the ratio
comes to one along a scale, and no instance reaches one; an equality case was reached, so that
nothing sharper can hold. "violated" where it fails, "not seen" where a
fit shows another rate than is claimed."""

SHRUNK = 0.01
"""By what part the near-control of `<=` makes the right side smaller."""
CLOSE = 1e-6
"""How near one the worst ratio of an equality case that was reached must be."""
MOVED = 1e-6
"""By how much, relative to the largest entry, the near-control of `=` moves one side."""
KINDS = 2
"""Of starts, that must end at an equality case which is said to be attained."""
ENOUGH = 8
"""From so many draws on it is no accident that they agree."""


def near_control(statement: Statement, column: Column, /) -> bool:
    """Whether the rules reject the form, on the same instances, once it is a little wrong."""
    counted = column.measured.counted
    m = Measured(*(np.asarray(field)[counted] for field in column.measured))
    if statement.kind == "limit":
        return False
    if statement.relation == "=":
        return bool(np.any(MOVED - m.high > edge(statement)))
    positive = m.rhs > 0
    with np.errstate(all="ignore"):
        below = ratio(m.lhs, m.rhs - SHRUNK * np.abs(m.rhs), np)
        # What a search cannot support as a violation is at least looked at.
        low = np.where(np.isneginf(m.low), m.value, m.low)
        low = np.where(positive, low / (1 - SHRUNK), below)
    if column.scale is not None:  # of a side that is zero one part in a hundred is nothing
        scale = column.scale[counted]
        with np.errstate(all="ignore"):
            moved = 1 + SHRUNK + (m.lhs - m.rhs) / np.where(scale > 0, scale, np.nan)
        low = np.where(moved > low, moved, low)
    return bool(np.any(low > edge(statement)))


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
) -> Evidence:
    """The strongest kind that the verdict on a form, given by its index, has.

    A form whose ratio only comes to one `along` a scale has no equality case.

    What a search reached counts as attained only if starts of `KINDS` kinds ended there: a search
    from one kind shows one basin. A case, or a draw, that is an equality counts by itself.
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
    if statement.forms[index].equality and reached and _by_many(searched, index, column):
        return "attained"
    if statement.enumerates:
        return "enumerated"
    return "searched" if searched.accepted[index] else "sampled"


def _by_many(searched: Searched, form: int, column: Column) -> bool:
    given = column.measured.counted & ~np.isin(column.sources, ("search", SOURCE))
    if np.any(np.asarray(column.measured.value)[given] >= 1 - CLOSE):
        return True
    return sum(there > 0 for there, _ in agreeing(searched, form).values()) >= KINDS


def distinct_counted(column: Column, /) -> int:
    """How many different instances count for a form."""
    return len(np.unique(column.labels[np.asarray(column.measured.counted)]))


def bounded_mean(ratios: Reals, /) -> float | None:
    """The mean of r / (1 + |r|): any ratio that moves, or no longer counts, moves it."""
    finite = ratios[np.isfinite(ratios)]
    return float(np.mean(finite / (1 + np.abs(finite)))) if len(finite) else None


def by_size(statement: Statement, column: Column, /) -> dict[str, float]:
    """What `Verdict.worst_ratio` is, at each size alone; nothing for rates."""
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
    """Why what was measured may be no evidence at all; each with its cure."""
    for batch, source, at in zip(pool.instances, pool.sources, pool.sizes):
        rows = length(batch)
        drawn = source not in ("cases", "search") and rows >= ENOUGH
        if drawn and len(np.unique(labelled(batch))) < 2:
            where = f"{source!r} at {Size(statement.sizes[at])!r}"
            yield f"all {rows} draws of {where} are one instance: does it use its key?"
    if searched.runs and not searched.met:
        yield "no step of any search met the hypotheses: give `project`, back onto them"
    if statement.is_bound and statement.kind not in ON_AVERAGE and statement.sample:
        sides = [(column.measured.lhs, column.measured.rhs) for column in columns]
        drawn = np.asarray(columns[-1].sources) != "cases"
        if np.sum(drawn) >= ENOUGH and all(len(np.unique(s[drawn])) < 2 for s in sum(sides, ())):
            yield "both sides are one number on every draw: do they depend on the instance?"
