"""What stands behind a verdict: which evidence, from how many instances, and how sharp a test."""

from collections.abc import Iterator
from typing import Literal

import jax
import numpy as np

from jaxbounds.falsify.bench import Column, Pool, length
from jaxbounds.falsify.decide import ON_AVERAGE, Decision, edge
from jaxbounds.falsify.explore import Searched
from jaxbounds.falsify.measure import Measured, Reals, ratio
from jaxbounds.statements import Form, Instance, Size, Statement

Evidence = Literal["", "sampled", "searched", "enumerated", "attained", "violated"]
"""From weak to strong: draws; draws and a search that found worse ones; all there are; an equality
case was reached, so that nothing sharper can hold. "violated" where it fails."""

SHRUNK = 0.01
"""By what part the near-control of `<=` makes the right side smaller."""
MOVED = 1e-6
"""By how much, relative to the largest entry, the near-control of `=` moves one side."""
ENOUGH = 8
"""From so many draws on it is no accident that they agree."""


def near_control(statement: Statement, column: Column, /) -> bool:
    """Whether the rules reject the form, on the same instances, once it is a little wrong."""
    m = Measured(*(np.asarray(field)[column.measured.counted] for field in column.measured))
    if not len(m.value):
        return False
    if statement.relation == "=":
        return bool(np.any(MOVED - m.high > edge(statement)))
    positive = m.rhs > 0
    with np.errstate(all="ignore"):
        below = ratio(m.lhs, m.rhs - SHRUNK * np.abs(m.rhs), np)
        low = np.where(positive, m.low / (1 - SHRUNK), below)
    return bool(np.any(low > edge(statement)))


def evidence(
    statement: Statement, form: Form, decision: Decision, near: bool, accepted: int, /
) -> Evidence:
    """The strongest kind that a verdict has."""
    if decision.status in ("fails", "inconsistent"):
        return "violated"
    if decision.status not in ("holds", "consistent"):
        return ""
    if form.equality and near and statement.relation == "<=":
        return "attained"
    if statement.enumerates:
        return "enumerated"
    return "searched" if accepted else "sampled"


def distinct(batch: Instance, chosen: np.ndarray, /) -> int:
    """How many of these rows of a batch differ from one another, bit by bit."""
    leaves = [np.ascontiguousarray(leaf)[chosen] for leaf in jax.tree.leaves(batch)]
    rows = int(np.sum(chosen))
    flat = [leaf.reshape(rows, -1).view(np.uint8).reshape(rows, -1) for leaf in leaves if leaf.size]
    return len({row.tobytes() for row in np.hstack(flat)}) if flat and rows else min(rows, 1)


def distinct_counted(pool: Pool, column: Column, /) -> int:
    """How many different instances count for a form."""
    starts = np.cumsum([0, *map(length, pool.instances)])
    counted = np.asarray(column.measured.counted)
    parts = zip(pool.instances, starts, starts[1:])
    return sum(distinct(batch, counted[first:last]) for batch, first, last in parts)


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
        if statement.kind == "rate" or not np.any(rows):
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
        everything = np.ones(rows, bool)
        if source not in ("cases", "search") and rows >= ENOUGH and distinct(batch, everything) < 2:
            where = f"{source!r} at {Size(statement.sizes[at])!r}"
            yield f"all {rows} draws of {where} are one instance: does it use its key?"
    if searched.runs and not searched.met:
        yield "no step of any search met the hypotheses: give `project`, back onto them"
    if statement.relation == "<=" and statement.kind not in ON_AVERAGE and statement.sample:
        sides = [(column.measured.lhs, column.measured.rhs) for column in columns]
        drawn = np.asarray(columns[-1].sources) != "cases"
        if np.sum(drawn) >= ENOUGH and all(len(np.unique(s[drawn])) < 2 for s in sum(sides, ())):
            yield "both sides are one number on every draw: do they depend on the instance?"
