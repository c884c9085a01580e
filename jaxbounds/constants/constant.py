"""The sharp constant of an inequality: search, snap, polish, certify, and say what it may mean."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from jaxbounds.certification.certificate import decimal_bounds
from jaxbounds.certification.interpreter import precision
from jaxbounds.certification.values import NotSupported, Undecided
from jaxbounds.constants.closed_form import ClosedForm, closed_form
from jaxbounds.constants.dependence import dependence
from jaxbounds.constants.enclosure import BITS, Ratio, ascent, digits_of
from jaxbounds.constants.law import law
from jaxbounds.constants.limits import NEAR, Limit, limit
from jaxbounds.constants.polish import (
    SAME,
    Point,
    at,
    best_neighbour,
    curvature,
    polished,
)
from jaxbounds.constants.problem import Problem
from jaxbounds.constants.result import AtSize, SharpConstant, Where
from jaxbounds.constants.sizes import Sizes, check, grid
from jaxbounds.falsification import ON_AVERAGE, float64_on_cpu
from jaxbounds.falsification.bench import Pool
from jaxbounds.falsification.explore import draw, search
from jaxbounds.falsification.shrink import shrink
from jaxbounds.papers import Named, the_statement
from jaxbounds.statements import Budget, Instance, Relation, Size, Statement
from jaxbounds.statements.line import Sets, Side, line_of

BUDGET = Budget(samples=192, restarts=12, steps=200)
STARTS = 6
ENOUGH = 8
"""Draws of one ratio, to say that it is the same at every instance."""
SETTLED = 1e-25
"""A gain below this is that of an optimum, not of a way to infinity."""
STATIONARY = 1e-11
"""A relative gain below this is none."""
EXACT, READABLE = 2e-14, 1e-3
"""What rounding may cost, relatively: where the supremum must stay, and for reading."""
ROUNDS = 12
MOST = 256
"""Instances that are measured at once, between two looks at the time."""
ROUGHLY = 1e-2
"""How near a limit, relatively, starts must come to be counted."""


def sharp_constant(
    statement: Named | Side,
    form: str | Side = "printed",
    *,
    over: Sets | None = None,
    relation: Relation = "<=",
    sizes: Sizes | None = None,
    seed: int = 0,
    budget: Budget | None = None,
    seconds: float = 60.0,
    snap: bool = True,
) -> SharpConstant:
    """The supremum of lhs/rhs of one form, size by size: how loose it is, and how that grows.

    Every ratio is a lower estimate of the supremum. Digits are certified where
    `jaxbounds.certify` can enclose the ratio at the extremal instance.

    Args:
        statement: or its id: an inequality, or another kind of bound that single instances decide.
            With `over`, the left side: a function whose arguments are entries of `over` or sizes,
            by name; or a number.
        form: the name of one of its forms. With `over`, the right side, as the left.
        over: sets by the name of an argument, {"x": jb.Ball(1, "d")}: then no statement is needed.
        relation: of the two functions, "<=" or ">=".
        sizes: axes with the values to combine, {"T": (2, 4, 8)}; others as in the first of its
            sizes; or the sizes one by one. Unless given, its own sizes.
        seed: of the draws.
        budget: of the draws and searches at each size.
        seconds: of processor time for each size; half of it polishes starts.
        snap: look for optima where coordinates coincide.

    Raises:
        KeyError: if there is no such form.
        ValueError: if it is no `<=` that instances decide; if there is no such axis, or a size
            cannot be measured or does not fit into memory.
    """
    line = None
    if over is not None:
        line = line_of(statement, form, over, sizes, relation)  # type: ignore[arg-type]
        statement, form, sizes = line.statement(), "printed", None
    elif callable(statement) or callable(form):
        raise ValueError("of two functions say over which sets, as over={'x': jb.Ball(1, 'd')}")
    statement, form = the_statement(statement), str(form)  # type: ignore[arg-type]
    statement.form(form)
    if not statement.is_bound or statement.kind in ON_AVERAGE:
        raise ValueError(
            f"{statement.id} is of kind {statement.kind} ({statement.relation}): a sharp constant "
            "is the largest lhs/rhs over instances, of an inequality"
        )
    if statement.there_is is not None or statement.unrefutable:
        raise ValueError(
            f"{statement.id} rests on a search on its larger side: what it finds is no lower "
            "estimate of a constant"
        )
    chosen = grid(statement, sizes or {})
    for size in chosen:
        check(statement, form, size)
    with float64_on_cpu():
        found = tuple(
            _at_size(statement, form, size, seed, budget or _budget(statement), seconds, snap)
            for size in chosen
        )
    known = [f for f in found if f.ratio > 0 and f.where not in ("none", "unbounded")]
    exponents, residual = dependence([f.size for f in known], [f.ratio for f in known])
    return SharpConstant(
        id=statement.id,
        form=form,
        label=statement.label,
        formula=statement.formula,
        sizes=found,
        dependence=exponents,
        residual=residual,
        law=law(found, exponents) if len(known) == len(found) else "",
        relation=statement.relation,
        line=line.to_json() if line else {},
        seed=seed,
    )


def _budget(statement: Statement) -> Budget:
    own = statement.budget
    return Budget(
        samples=min(own.samples, BUDGET.samples),
        restarts=max(own.restarts, BUDGET.restarts) if own.restarts else 0,
        steps=min(own.steps, BUDGET.steps),
        batch=own.batch,
    )


def _starts(problem: Problem, pool: Pool) -> tuple[list[Instance], np.ndarray]:
    """The worst instance of each search first, then of the draws; and the ratios of the draws."""
    (column, *_) = pool.columns()
    usable = column.measured.counted & (column.measured.rhs > 0)
    value = np.where(usable & np.isfinite(column.measured.value), column.measured.value, -np.inf)
    order = [i for i in np.argsort(-value, kind="stable") if value[i] > 0]
    searched = [i for i in order if column.sources[i] == "search"]
    drawn = [i for i in order if column.sources[i] != "search"]
    # Searches from nearby draws end alike: spread over what they found.
    spread = searched[:: max(1, len(searched) // (2 * STARTS))][: STARTS - 1]
    chosen = list(dict.fromkeys([*order[:2], *spread, *drawn[:1]]))
    rows = value[column.sources != "search"]
    return [pool.instance(int(i)) for i in sorted(chosen, key=lambda i: -value[i])], rows


def _at_size(
    statement: Statement,
    form: str,
    size: Size,
    seed: int,
    budget: Budget,
    seconds: float,
    snap: bool,
) -> AtSize:
    started = time.process_time()
    took = lambda: time.process_time() - started
    problem, pool = Problem(statement, form, size), Pool()
    draw(problem.bench, pool, budget, seed)
    search(problem.bench, pool, budget, seed)
    starts, drawn = _starts(problem, pool)
    if not starts:
        return AtSize(size=dict(size), ratio=0.0, where="none", seconds=took())
    until = started + seconds
    if statement.host or statement.search == "none":
        points = [at(problem, starts[0], 0.0)]
    else:
        points = polished(problem, starts, until=started + seconds / 2, snap=snap)
    found = examined(problem, points, until=until, seed=seed, snap=snap)
    finite = drawn[np.isfinite(drawn)]
    if statement.enumerates:
        found = replace(found, where="enumerated")
    elif len(finite) > ENOUGH and max(found.ratio, np.max(finite)) < np.min(finite) * (1 + SAME):
        found = replace(found, where="every instance")
    elif statement.search == "none":
        found = replace(found, where="drawn", closed=None)
    return replace(found, seconds=took())


def examined(
    problem: Problem, points: Sequence[Point], /, *, until: float, seed: int = 0, snap: bool = True
) -> AtSize:
    """What may be said of polished points: the best of them, certified as far as that goes.

    Args:
        problem: the form at its size.
        points: from `polished`; the best is taken whose ratio ball arithmetic confirms.
        until: a time of `time.process_time` after which nothing more is certified.
        seed: of the neighbours.
        snap: round coordinates, and go on from a neighbour that is better.
    """
    ordered = sorted(points, key=lambda p: -p.ratio)
    point, ratio, ball, reason = _confirmed(problem, ordered, until)
    moves = not problem.statement.host and problem.statement.search != "none"
    near = best_neighbour(problem, point.instance, seed) if moves else (point.instance, 0.0)
    if snap and near[1] > point.ratio * (1 + SAME) and time.process_time() < until:
        again = polished(problem, [near[0]], until=until)[0]
        if again.ratio > point.ratio * (1 + SAME):
            point, ratio, ball, reason = _confirmed(problem, [again, point], until)
            near = best_neighbour(problem, point.instance, seed)
    gain, far = None, None
    if moves and ratio:
        point = _rounder(problem, point, EXACT, until) if snap else point
        try:
            ball, gain = ascent(ratio, point, *curvature(problem, point))
        except (Undecided, NotSupported) as refused:
            reason = f"no certified slopes: {refused}"
        # At a true optimum slopes vanish; on the way to infinity they only shrink.
        far = limit(problem, ratio, point) if gain is None or gain > SETTLED else None
    top = far.ratio if far else ball
    value = point.ratio if top is None else float(top.mid())
    agreeing = sum(p.ratio >= value * (1 - (ROUGHLY if far else SAME)) for p in ordered)
    if far:
        near = best_neighbour(problem, far.instance, seed)
    highest = near[1] <= value * (1 + (NEAR if far else SAME))
    where = _where(far, gain, highest, agreeing)
    shown = _rounder(problem, point, READABLE, until)
    with precision(BITS):
        low, high = decimal_bounds(top) if top is not None else ("", "")
    return AtSize(
        size=dict(problem.size),
        ratio=value,
        where=where,
        along=far.words if far else "",
        low=low,
        high=high,
        digits=digits_of(top) if top is not None else 0,
        gain=gain,
        reason=reason,
        starts=len(points),
        agreeing=agreeing,
        closed=_closed(top, None if far else gain, where, agreeing),
        instance=jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), dict(shown.instance)),
        instance_ratio=shown.ratio,
    )


def _confirmed(problem: Problem, points: Sequence[Point], until: float):
    """The point whose certified ratio is largest, of those first in line; with its ball."""
    moves = problem.statement.search != "none"
    project = moves and problem.statement.project is not None
    seconds = max(until - time.process_time(), 1.0)
    known: list[tuple[Point, Ratio, Any]] = []
    reason = ""
    for point in points:
        # Once a float ratio is confirmed, only those as large are of interest.
        if known and point.ratio < float(known[0][2].lower()) * (1 - SAME):
            break
        try:
            ratio = Ratio(problem, point.instance, seconds=seconds, project=project)
            known.append((point, ratio, ratio(point.instance, "ulp")))
        except (Undecided, NotSupported) as refused:
            reason = str(refused)
        known.sort(key=lambda k: -k[2].lower())
    return (*known[0], "") if known else (points[0], None, None, reason)


def _where(far: Limit | None, gain: float | None, highest: bool, agreeing: int) -> Where:
    if far is not None and not far.settled:
        return "unbounded"
    if not highest or agreeing < 2:
        return "rising"
    if far is not None:
        return "limit"
    return "attained" if gain is not None and gain < STATIONARY else "rising"


def _closed(top: Any, gain: float | None, where: Where, agreeing: int) -> ClosedForm | None:
    """Only where the digits are certain and nothing says that the supremum is elsewhere."""
    if top is None or agreeing < 2 or where not in ("attained", "limit"):
        return None
    # Along a scale no slope was measured: float64 stands behind the coordinates.
    known = (20, 14) if gain is None else (int(-np.log10(max(gain, 1e-60))),)
    with precision(BITS):
        decimals, certain = top.mid().str(70, radius=False), digits_of(top)
    tried = (closed_form(decimals, min(certain, digits)) for digits in known)
    return next((found for found in tried if found), None)


def _rounder(problem: Problem, point: Point, cost: float, until: float) -> Point:
    """Rounder numbers, as far as they cost no more than a part `cost` of the ratio."""
    at_once = 1 if problem.statement.host else MOST

    def judge(instances: list[Instance]) -> np.ndarray:
        found = np.full(len(instances), -np.inf)
        for start in range(0, len(instances), at_once):
            if time.process_time() > until:
                break
            some = slice(start, start + at_once)
            found[some] = problem.ratios(instances[some])
        return found / point.ratio - 1 + 2 * cost

    if time.process_time() > until:
        return point
    return at(problem, shrink(point.instance, judge, rounds=ROUNDS), 1e-9, point.ties.basis)
