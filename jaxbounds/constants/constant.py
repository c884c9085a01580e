"""The sharp constant of an inequality: a search finds and certifies it at each size."""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from jaxbounds.claims.statements import Budget, Instance, Relation, Statement
from jaxbounds.claims.statements.line import Sets, Side, line_of
from jaxbounds.constants.dependence import dependence
from jaxbounds.constants.discrete import is_discrete, neighbour_is_larger, settled
from jaxbounds.constants.examine import (
    STATIONARY,
    Best,
    best_of,
    corrected,
    examined,
    farther,
    moves,
    readable,
    said,
)
from jaxbounds.constants.law import law
from jaxbounds.constants.nonsmooth import LARGEST, has_cma
from jaxbounds.constants.on_host import settled_on_host, unmeasured
from jaxbounds.constants.polish import SAME, Point, at, evolved, polished
from jaxbounds.constants.problem import Problem, flat
from jaxbounds.constants.result import SECONDS, AtSize, SharpConstant, Where
from jaxbounds.constants.sizes import Sizes, check, grid
from jaxbounds.constants.starts import (
    KINDS,
    Fresh,
    Start,
    first_starts,
    further,
    sides_overflow,
    within_floats,
)
from jaxbounds.falsification import ON_AVERAGE, float64_on_cpu
from jaxbounds.falsification.as_coded import at_instances, reason
from jaxbounds.falsification.bench import Pool, batch_of, concatenate, length, take
from jaxbounds.falsification.cancellation import is_noise, largest_entry
from jaxbounds.falsification.decide import edge, violation
from jaxbounds.falsification.examples import NONE, SOURCE, Examples, recall, remember
from jaxbounds.falsification.explore import draw, search
from jaxbounds.falsification.measure import Measured
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.seeds import refuse_other_seeds
from jaxbounds.papers import Named, the_statement
from jaxbounds.programs.interpreted import NotInterpreted

__all__ = ["examined", "sharp_constant"]

BUDGET = Budget(samples=192, restarts=12, steps=200)
STARTS = 6
"""The number of instances from which the first climbs (ascents of the ratio lhs/rhs) start. A
search from more instances finds rarer optima and takes longer."""
ENOUGH = 8
"""If more random instances than this number have equal ratios lhs/rhs, the search assumes that
every instance has this ratio. A larger number makes this assumption safer."""
LEAST, OTHERS, MANY = 6, 40, 160
"""The numbers of starting instances of climbs (ascents of lhs/rhs), random draws not counted.

The search climbs from at least LEAST instances, from OTHERS if time allows, and from up to MANY in
the first half of its time. A search with more instances takes longer.
"""
FIRST = 0.25
"""The share of the search's time for ascents of lhs/rhs from the first starting instances. A larger
share leaves less time for later starting instances."""
ROUNDS = 400
"""The largest number of rounds of further climbs (ascents of the ratio lhs/rhs). A search with more
rounds takes longer and finds rarer optima.
"""
OVERFLOW = "a side overflows float64 at some instances, where the ratio may be larger"
LOOKED_AT = 512
"""The number of instances at which the search tests whether integers wrap (overflow).

A test at more instances reveals rarer overflows and takes longer.
"""


def sharp_constant(
    statement: Named | Side,
    form: str | Side = "printed",
    *,
    over: Sets | None = None,
    relation: Relation = "<=",
    sizes: Sizes | None = None,
    seed: int = 0,
    budget: Budget | None = None,
    seconds: float = SECONDS,
    snap: bool = True,
    examples: Examples = NONE,
) -> SharpConstant:
    """Search for the supremum of lhs/rhs of an inequality at each size, and for its growth.

    Every ratio lhs/rhs is a lower estimate of the supremum. The digits of a ratio are certified if
    ball arithmetic can enclose lhs/rhs at the extremal instance.

    Args:
        statement: a statement or its id; the statement must be an inequality, or another bound that
            one instance can violate. If `over` is given, `statement` is the left side: a number, or
            a function. The function's arguments are names from `over` or names of sizes.
        form: the name of one of the statement's forms (its inequalities, such as "printed"). If
            `over` is given, `form` is the right side: a number or a function, like the left side.
        over: a dict from argument names to sets, such as {"x": jb.Ball(1, "d")}. `over` is needed
            if the claim is given by its two sides instead of a statement.
        relation: the relation between the left and the right side, "<=" or ">="; used only if
            `over` is given.
        sizes: a dict from axes to the values to combine, such as {"T": (2, 4, 8)}, or a list of
            sizes. An axis (a named number such as T) without values keeps its value from the
            statement's first size. The default is the sizes that the statement declares.
        seed: the seed of the random draws.
        budget: the numbers of random draws and of searches at each size.
        seconds: the processor time of the search in seconds, for each size. The search raises
            lhs/rhs from further starting instances until later starts are unlikely to change the
            constant, or until the time is over.
        snap: whether to look for optima at which several coordinates of an instance are equal.
        examples: a store of the worst instances of earlier runs. The search also starts from the
            stored instances, and adds the new worst instances.

    Raises:
        Refused: if the statement lacks the form or an axis, if no single instance can violate the
            form, or if a size cannot be measured or does not fit into memory.
    """
    refuse_other_seeds(seed)
    line = None
    if over is not None:
        line = line_of(statement, form, over, sizes, relation)  # type: ignore[arg-type]
        statement, form, sizes = line.statement(), "printed", None
    elif callable(statement) or callable(form):
        raise Refused(
            f"a claim of two functions needs sets for the arguments, got over={over!r}. Try "
            "over={'x': jb.Ball(1, 'd')}"
        )
    statement, form = the_statement(statement), str(form)  # type: ignore[arg-type]
    statement.form(form)
    if not statement.is_bound or statement.kind in ON_AVERAGE:
        raise Refused(
            f"kind={statement.kind!r} of {statement.id} ({statement.relation}) has no sharp "
            "constant; only an inequality that one instance can violate has a sharp constant. Try "
            "a form with <="
        )
    if statement.there_is is not None or statement.unrefutable:
        raise Refused(
            f"a search estimates the larger side of {statement.id} "
            f"(there_is={statement.there_is}), so the ratio lhs/rhs does not bound the sharp "
            f"constant from below. Try a claim without such a search"
        )
    chosen = grid(statement, sizes or {})
    for size in chosen:
        check(statement, form, size)
    with float64_on_cpu():
        found = tuple(
            _at_size(
                Problem(statement, form, size),
                budget or _budget(statement),
                seed,
                seconds,
                snap,
                examples,
            )
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


def _at_size(
    problem: Problem, budget: Budget, seed: int, seconds: float, snap: bool, examples: Examples
) -> AtSize:
    started = time.process_time()
    took = lambda: time.process_time() - started
    pool, statement, size = Pool(), problem.statement, problem.size
    draw(problem.bench, pool, budget, seed)
    search(problem.bench, pool, budget, seed)
    recall(problem.bench, pool, examples)  # after the search, which must use only its own draws
    starts, drawn = first_starts(pool, STARTS)
    overflows = sides_overflow(pool)
    starts = starts or within_floats(problem, pool, STARTS)
    if not starts:
        word: Where = "rising" if overflows else "none"
        said_so = OVERFLOW if overflows else ""
        return AtSize(size=dict(size), ratio=0.0, where=word, reason=said_so, seconds=took())
    until = started + seconds
    fresh = Fresh(problem, pool, budget, seed)
    settling = _Settling(problem, fresh, seed, snap, until)
    discrete = is_discrete(problem) and not statement.enumerates
    over = settled(problem, pool, budget, seed=seed, until=until) if discrete else None
    if over is not None:
        points = [over.point]
    elif moves(problem):
        points = polished(problem, starts, until=started + seconds * FIRST, snap=snap)
        if _elsewhere(statement, drawn, max(p.ratio for p in points)) is None:
            # The certificate of one point may take all the time, so other points come first.
            points += settling.others(points, until=started + 2 * seconds * FIRST)
    else:
        points = [at(problem, starts[0].instance, 0.0)._replace(kind=starts[0].kind)]
    best = best_of(problem, points, until=until, seed=seed, snap=snap)
    where = _elsewhere(statement, drawn, best.point.ratio)
    if over is not None:
        word = "enumerated" if over.every else "rising" if over.doubt else "attained"
        found = said(problem, best, points, word)
        found = replace(found, reason=over.doubt) if over.doubt else found
    elif where is None and moves(problem):
        found, best = settling(points, best)
    elif where is None:
        found, best = _by_moves(problem, pool, starts, best, fresh, seed, until)
    else:
        found = said(problem, best, points, where)
    settles = found.where in ("attained", "limit") and over is None
    if settles and neighbour_is_larger(problem, pool, best.point):
        words = "the ratio is larger with another integer"
        found = replace(found, where="rising", closed=None, reason=words)
    if overflows and found.where not in ("rising", "unbounded"):
        found = replace(found, where="rising", closed=None, reason=OVERFLOW)
    if none := _without_constant(problem, pool):
        found = replace(found, where="unbounded", closed=None, reason=none)
    if wraps := _wrapping(problem, pool, best.point.instance):
        found = replace(found, where="as coded", closed=None, reason=wraps)
    worst = problem.put(best.point.instance), size, best.point.ratio
    if worst[2] <= edge(statement) or (
        best.far is None and best.ball is not None and best.ball > 1
    ):
        # Do not store a violation that only floats show: it would disturb every later verdict.
        remember(problem.bench, statement.forms[0], 0, worst, examples)
    return replace(found, **readable(problem, best, until=until), seconds=took())


def _without_constant(problem: Problem, pool: Pool) -> str:
    """Return a reason if the left side is positive at an instance with a right side of zero."""
    if not pool.measured:
        return ""
    (column, *_) = pool.columns()
    m = column.measured
    above = (m.rhs <= 0) & (m.lhs > 0) & (violation(problem.statement, m) > 0)
    for row in np.flatnonzero(above):
        one = Measured(*(field[row] for field in m))
        if not is_noise(problem.statement, one, largest_entry(pool.instance(int(row)), np)):
            return (
                f"no constant exists, because lhs={one.lhs:.3g}, rhs={one.rhs:.3g} at an instance"
            )
    return ""


def _wrapping(problem: Problem, pool: Pool, best: Instance) -> str:
    """Return the names of operations in which integers wrap (overflow); empty if no integer wraps.

    If an integer wraps, the ratio lhs/rhs belongs to the program's machine integers, not to the
    mathematical integers.
    """
    bench = problem.bench
    if not bench.watch.wrapping or problem.statement.host:
        return ""
    batch, _ = pool.of_size(0)
    rows = take(batch, np.arange(min(length(batch), LOOKED_AT)))
    with contextlib.suppress(NotInterpreted):
        many = concatenate([rows, batch_of(best)])
        (wrapped,) = at_instances(bench, many, problem.size)
        return reason(wrapped.operations) if np.any(wrapped.rows) else ""
    return ""


def _by_moves(
    problem: Problem,
    pool: Pool,
    starts: list[Start],
    best: Best,
    fresh: Fresh,
    seed: int,
    until: float,
) -> tuple[AtSize, Best]:
    drawn = [b for b, s in zip(pool.instances, pool.sources) if s not in ("search", SOURCE)]
    draws = concatenate([*drawn, *unmeasured(problem, seed)])
    points, doubts = settled_on_host(problem, draws, starts, fresh, seed=seed, until=until)
    best = best_of(problem, points, until=until, seed=seed) if points else best
    largest = best.near <= best.point.ratio * (1 + SAME)
    where: Where | None = "attained" if largest and not doubts else None
    found = said(problem, best, points, where)
    return (found if where else replace(found, reason=doubts or found.reason)), best


def _elsewhere(statement: Statement, drawn: np.ndarray, ratio: float) -> Where | None:
    finite = drawn[np.isfinite(drawn)]
    if statement.enumerates:
        return "enumerated"
    value = max(ratio, np.max(finite, initial=0.0))
    if len(finite) > ENOUGH and value < np.min(finite) * (1 + SAME):
        return "every instance"
    return "drawn" if statement.search == "none" else None


class _Settling:
    def __init__(
        self,
        problem: Problem,
        fresh: Callable[[], list[Instance]],
        seed: int,
        snap: bool,
        until: float,
    ) -> None:
        self.problem, self.fresh, self.seed = problem, fresh, seed
        self.snap, self.until = snap, until
        self.half = (time.process_time() + until) / 2

    def __call__(self, points: list[Point], best: Best) -> tuple[AtSize, Best]:
        found = said(self.problem, best, points)
        for number in range(ROUNDS):
            others = sum(p.kind not in ("drawn", "searched", SOURCE) for p in points)
            enough = MANY if time.process_time() < self.half else OTHERS
            settled = found.where in ("attained", "limit") and others >= enough
            if settled or found.where == "unbounded" or time.process_time() > self.until:
                break
            points = corrected(self.problem, points)
            more = self._round(points, best, number)
            points = [*points, *more]
            if self._changes(best, more):
                best = self._best_of(points)
            found = said(self.problem, best, points)
        if found.where in ("attained", "limit") and others < LEAST:
            words = f"the time was over after {others} starts that are not draws"
            found = replace(found, where="rising", closed=None, reason=words)
        return found, best

    def others(self, points: list[Point], *, until: float) -> list[Point]:
        top, more = max(p.ratio for p in points), list[Point]()
        for start in itertools.islice(self._starts(points, top, self.seed), 1 + len(KINDS)):
            if time.process_time() > until:
                break
            more += polished(self.problem, [start], until=until, snap=self.snap, reach=top)
            top = max(top, more[-1].ratio)
        return more

    def _best_of(self, points: list[Point]) -> Best:
        return best_of(self.problem, points, until=self.until, seed=self.seed, snap=self.snap)

    def _changes(self, best: Best, more: list[Point]) -> bool:
        top = max((p.ratio for p in more), default=0.0)
        if top > best.point.ratio * (1 + SAME / 10):
            value = best.point.ratio if best.far is None else float(best.far.ratio.mid())
            return bool(top > value * (1 + SAME / 10) or not best.far or not best.far.settled)
        # A point with an equal ratio may have certified slopes that the best point lacks.
        left = best.gain if best.far is None else best.promise
        unsure = left is None or left > STATIONARY
        return bool(unsure and top > best.point.ratio * (1 - SAME))

    def _starts(self, points: list[Point], top: float, seed: int) -> Iterator[Start]:
        ordered = sorted(points, key=lambda p: -p.ratio)
        known = [p.instance for p in ordered[:2]]
        kinds = further(self.problem, known, self.fresh(), seed=seed)
        yield from itertools.islice(kinds, 1 + len(KINDS))
        yield from farther(self.problem, ordered[:6], top, until=self.until)[:2]
        yield from kinds

    def _round(self, points: list[Point], best: Best, number: int) -> list[Point]:
        problem, until = self.problem, self.until
        top = max(p.ratio for p in points)
        seed = self.seed + 1000 * (number + 1)
        more = list[Point]()
        for start in self._starts(points, top, seed):
            if time.process_time() > until:
                break
            more += polished(problem, [start], until=until, snap=self.snap, reach=top)
            top = max(top, more[-1].ratio)
        at_kink = best.point.stalled and len(flat(best.point.instance)) <= LARGEST
        if at_kink and has_cma() and time.process_time() < until:
            slice_ = time.process_time() + (until - time.process_time()) / 4
            more.append(evolved(problem, best.point, seed=seed, until=slice_))
        return more
