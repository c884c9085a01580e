"""Collect the instances of a run: random draws, hand-written instances and results of searches."""

import functools
import math
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import jax
import numpy as np

from jaxbounds.claims.renamed import drawn_as
from jaxbounds.claims.sets.base import MOST
from jaxbounds.claims.statements import (
    CONTROL,
    ON_AVERAGE,
    Budget,
    Instance,
    Sampler,
    Size,
    Statement,
)
from jaxbounds.claims.statements.over import Drawn
from jaxbounds.falsification.bench import (
    Bench,
    Pool,
    cases_of,
    concatenate,
    fitting,
    is_searched,
    length,
    take,
)
from jaxbounds.falsification.close_moves import look_between, search_close
from jaxbounds.falsification.deadline import is_limited
from jaxbounds.falsification.decide import violation
from jaxbounds.falsification.discrete import LARGE, all_points, is_little_work
from jaxbounds.falsification.evaluation import NO_SLOPES, form_names
from jaxbounds.falsification.measure import Measured, ranked
from jaxbounds.falsification.move_search import (
    FoundByMoves,
    InRange,
    Place,
    measuring,
    projected,
    search_by_moves,
    spread_out,
    within_range_of,
)
from jaxbounds.falsification.noted_values import NotedAt
from jaxbounds.falsification.programs import Programs
from jaxbounds.falsification.scales import traced_reading
from jaxbounds.falsification.search import (
    Found,
    Slopes,
    gradient_search,
    host_search,
    leading,
    random_search,
    slopes,
)
from jaxbounds.programs.interpreted import NotInterpreted, once

ASKED_FROM = 10**6
"""The engine computes the bytes of a draw only if the squared product of the statement's dimensions
is at least ASKED_FROM. A larger value asks for fewer statements."""
NO_ROOM = "room in memory"
"""The name under which a verdict counts the random draws that did not fit into memory."""


def _key(seed: int, *names: str | int) -> jax.Array:
    key = jax.random.key(seed)
    for name in names:
        data = name if isinstance(name, int) else zlib.crc32(name.encode())
        key = jax.random.fold_in(key, data)
    return key


@dataclass(frozen=True)
class _Sampling:
    """A sampler at given shapes; statements that share the sampler share its compiled program."""

    programs: Programs
    sampler: Sampler
    size: Size
    first: tuple[str, ...] = field(compare=False)


@functools.lru_cache(maxsize=256)
def _sampler(of: _Sampling) -> Callable:
    draw = lambda key: of.sampler(key, of.size)
    compiled = of.programs(draw, *of.first, "sample", tuple(of.size.items()))

    @functools.cache  # statements that share the sampler share its trace
    def together(count: int) -> Callable:
        many = lambda key: jax.vmap(draw)(jax.random.split(key, count))
        return once(many, lambda key: compiled(jax.random.split(key, count)))

    def run(key: jax.Array, count: int, batch: int) -> Instance:
        most = _most(draw, of.size)
        if count > most:  # draws that exceed the memory come a batch at a time
            keys, step = jax.random.split(key, count)[:most], min(batch, most)
            parts = [compiled(keys[i : i + step]) for i in range(0, most, step)]
            return concatenate([jax.tree.map(np.asarray, part) for part in parts])
        return jax.tree.map(np.asarray, together(count)(key))

    return run


def _most(draw: Callable, size: Size) -> int:
    if math.prod(max(1, abs(value)) for value in size.values()) ** 2 < ASKED_FROM:
        return sys.maxsize
    leaves = jax.tree.leaves(jax.eval_shape(draw, jax.random.key(0)))
    return fitting(sum(leaf.size * leaf.dtype.itemsize for leaf in leaves))


def _every(statement: Statement, sampler: Sampler, size: Size) -> Instance | None:
    """Return all points of finite sets, or None if the claim does not allow an enumeration."""
    if not isinstance(sampler, Drawn) or sampler.own is not None:
        return None
    if statement.host or statement.kind in ON_AVERAGE:
        return None
    return sampler.over.every(size)


def _draws_of(bench: Bench, name: str, index: int, budget: Budget, seed: int) -> Instance:
    statement, size = bench.statement, Size(bench.statement.sizes[index])
    sampler, place = statement.samplers[name], (statement.id, name)
    # A limit uses equal keys at all sizes, so that instances of one shape stay the same.
    key = lambda: _key(seed, drawn_as(statement.id), name, 0 if statement.towards else index)
    drawn = _sampler(_Sampling(bench.programs, sampler, size, place))
    make = lambda: drawn(key(), budget.samples, budget.batch)
    return bench.programs.cached_draw(
        make, *place, "drawn", tuple(size.items()), budget.samples, seed
    )


def _worst_of_many(bench: Bench, size: Size, like: Instance) -> Instance | None:
    """Measure all points of large finite sets; return the worst for each claim version, or None."""
    statement, sets = bench.statement, all_points(bench.statement, size)
    count = sets.cardinality(size) if sets else None
    if statement.host or statement.kind in ON_AVERAGE or sets is None or count is None:
        return None
    if not MOST < count <= LARGE:
        return None
    try:
        program = traced_reading(bench, size, take(like, np.arange(bench.batch) % length(like)))
    except NotInterpreted:
        return None
    if not is_little_work(program.jaxpr.jaxpr, count / bench.batch):
        return None
    typed = lambda point, leaf: np.asarray(point, leaf.dtype)
    points = jax.tree.map(typed, sets.numbered(np.arange(count), size), like)
    found = bench(points, size)
    value = np.where(found.counted & ~np.isnan(found.value), found.value, -np.inf)
    order = np.argsort(-value, axis=0, kind="stable")[: bench.batch]
    return take(points, np.unique(order))


def drawn(bench: Bench, index: int, budget: Budget, seed: int, /) -> list[tuple[str, Instance]]:
    """Return the random and the hand-written instances for one choice of shapes, by source."""
    statement, batches = bench.statement, list[tuple[str, Instance]]()
    size = Size(statement.sizes[index])
    for name, sampler in statement.samplers.items():
        batches.append((name, _draws_of(bench, name, index, budget, seed)))
        if (points := _every(statement, sampler, size)) is not None:
            like = lambda point, leaf: np.asarray(point, leaf.dtype)
            batches.append(("every", jax.tree.map(like, points, batches[-1][1])))
    if statement.cases is not None:
        batches.append(("cases", cases_of(statement, size)))
    many = _worst_of_many(bench, size, batches[0][1]) if batches else None
    return batches if many is None else [*batches, ("every", many)]


def _missing(statement: Statement, batches: list[tuple[str, Instance]], budget: Budget) -> int:
    return sum(
        budget.samples - length(batch) for name, batch in batches if name in statement.samplers
    )


def draw(bench: Bench, pool: Pool, budget: Budget, seed: int, /) -> dict[str, int]:
    """Add random and hand-written instances to `pool`; count rejections by reason."""
    statement, left_out = bench.statement, dict[str, int]()
    for index, size in enumerate(map(Size, statement.sizes)):
        batches = drawn(bench, index, budget, seed)
        if (missing := _missing(statement, batches, budget)) > 0:
            left_out[NO_ROOM] = left_out.get(NO_ROOM, 0) + missing
        for part in _portions(batches, portioned=statement.host and is_limited()):
            name, batch = part.source, part.batch
            measured, rows = bench.noted(batch, size, NotedAt(index, name, part.start), part.total)
            pool.noted += rows
            pool.add(name, index, batch, measured)
            if not np.all(measured.counted):
                for reason, count in bench.excluded(batch, size, measured).items():
                    left_out[reason] = left_out.get(reason, 0) + count
    return left_out


MOMENT = 0.5
"""If there is a time limit, the engine measures statements outside JAX in portions of this many
seconds. A larger value loses more measurements at the limit."""


class _Portion(NamedTuple):
    source: str
    batch: Instance
    start: int
    total: int


def _portions(batches: Iterable[tuple[str, Instance]], *, portioned: bool) -> Iterator[_Portion]:
    """Yield batches, or portions of them, so that a time limit loses few measurements."""
    many = 1
    for name, batch in batches:
        start, total = 0, length(batch)
        while start < total:
            count = min(many, total - start) if portioned else total
            began = time.perf_counter()
            yield _Portion(name, take(batch, slice(start, start + count)), start, total)
            start += count
            many = many * 2 if time.perf_counter() - began < MOMENT else max(1, many // 2)


def _starts(
    measured: Measured,
    wide: np.ndarray,
    form: int,
    restarts: int,
    rng: np.random.Generator,
    *,
    equality: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Choose starting points of searches; return their rows, and their kinds (such as "worst").

    Half of the starting points are the worst instances, the other half is random. Half of the
    random points have entries of very different sizes. If the worst ratio is one and `equality` is
    set, only one starting point is a worst instance.
    """
    usable = measured.counted[:, form] & np.isfinite(measured.value[:, form])
    counted, spread = np.flatnonzero(usable), np.flatnonzero(usable & wide)
    if not len(counted):
        return np.zeros(0, int), np.zeros(0, str)
    rank = ranked(measured, equality)[:, form]
    order = counted[np.argsort(-rank[counted], kind="stable")]
    value = rank[order]
    apart = np.append(True, value[1:] < value[:-1] - ALIKE * np.abs(value[:-1]))
    reached = equality and abs(value[0] - 1) <= ALIKE
    half = (restarts + 1) // 2
    best = np.concatenate([order[apart], order[~apart]])[: min(half, 1) if reached else half]
    left = restarts - len(best)
    many = 3 * left // 4 if reached else (left + 1) // 2
    far = rng.choice(spread, many) if len(spread) else spread
    drawn = rng.choice(counted, left - len(far))
    kinds = np.repeat(["worst", "wide", "drawn"], [len(best), len(far), len(drawn)])
    return np.concatenate([best, far, drawn]), kinds


ALIKE = 1e-6
"""Relative difference up to which the final ratios of two searches count as equal. A larger value
treats more final ratios as equal."""


INNER = 20
"""The number of steps of a search is divided by this factor if each step runs an inner search for
`there_is` entries. A larger factor makes these searches shorter."""
POINTS = 64
"""A search takes all its steps if `there_is` entries have at most this many values, else
proportionally fewer. A larger number finds worse instances and takes longer."""


class Searched(NamedTuple):
    """The result of all searches of a statement.

    Attributes:
        runs: the number of searches for each version of the claim.
        accepted: the number of steps, for each claim version and the false variant, that led to a
            worse instance.
        met: the number of steps to instances that met the hypotheses, over all claim versions.
        ends: the ends of the searches at each choice of shapes.
        far: the violations far from all draws, perhaps only by rounding.
    """

    runs: int
    accepted: np.ndarray
    met: int
    ends: tuple["End", ...] = ()
    far: tuple["DistantInstance", ...] = ()


class DistantInstance(NamedTuple):
    """An instance far from all random draws, and the index of its shapes in `statement.sizes`."""

    size: int
    instance: Instance


class End(NamedTuple):
    """The ends of all searches for one choice of shapes, as arrays with one entry for each search.

    Attributes:
        kind: the kind of each search's starting point, such as "worst" or "drawn".
        form: the index of the claim version that each search maximises.
        value: lhs / rhs at the end of the search; -inf if no instance counted as evidence.
    """

    kind: np.ndarray
    form: np.ndarray
    value: np.ndarray


def agreeing(searched: Searched, form: int, /) -> dict[str, tuple[int, int]]:
    """Count, for each kind of start, the searches that reached the worst ratio, and all searches.

    The function counts only the searches for the shapes that have the worst ratio.
    """
    own = [(end.kind[end.form == form], end.value[end.form == form]) for end in searched.ends]
    own = [(kind, value) for kind, value in own if np.any(np.isfinite(value))]
    if not own:
        return {}
    sizes = [np.max(value[np.isfinite(value)]) for _, value in own]
    top = max(sizes)
    most = [(kind, value) for (kind, value), size in zip(own, sizes) if size == top]
    kind, value = (np.concatenate(part) for part in zip(*most))
    there = value >= top - ALIKE * abs(top)
    return {
        str(k): (int(np.sum(there[kind == k])), int(np.sum(kind == k))) for k in dict.fromkeys(kind)
    }


def search(bench: Bench, pool: Pool, budget: Budget, seed: int, /) -> Searched:
    """Search for the worst instance of each claim version, starting from measured instances."""
    statement = bench.statement
    searched = Searched(0, np.zeros(len(form_names(statement)), int), 0)
    if not is_searched(statement, budget):
        return searched
    whole = budget
    for index, size in enumerate(map(Size, statement.sizes)):
        points = _points_tried(bench, size)
        budget = replace(whole, steps=_steps_for(points, whole.steps))
        near = within_range_of(pool.of_size(index)[0])
        if statement.host:
            searched = _slopes(bench, pool, budget, (seed, index), near, searched)
            continue
        searched = _with_moves(
            searched, search_by_moves(bench, pool, budget, (seed, index), again=False)
        )
        searched = _slopes(bench, pool, budget, (seed, index), near, searched)
        searched = _with_moves(
            searched, search_by_moves(bench, pool, budget, (seed, index), again=True)
        )
        if statement.is_bound and points is not None:
            searched = _with_close(bench, pool, budget, (seed, index), searched)
    return searched


def _points_tried(bench: Bench, size: Size) -> int | None:
    """Return how many values of `there_is` entries a measurement tries; None for a search."""
    return 1 if bench.statement.there_is is None else bench.promises(size).points


def _steps_for(points: int | None, steps: int) -> int:
    least = max(1, steps // INNER)
    return least if points is None else min(steps, max(least, steps * POINTS // max(points, 1)))


def _with_close(
    bench: Bench, pool: Pool, budget: Budget, at: Place, searched: Searched
) -> Searched:
    look_between(bench, pool, at[1])
    found, distant = search_close(bench, pool, budget, at)
    far = tuple(DistantInstance(at[1], instance) for instance in distant)
    return _with_moves(searched, found)._replace(far=(*searched.far, *far))


def _with_moves(searched: Searched, hopped: FoundByMoves) -> Searched:
    accepted = searched.accepted.copy()
    np.add.at(accepted, hopped.forms, hopped.accepted)
    return searched._replace(
        accepted=accepted,
        met=searched.met + int(np.sum(hopped.met)),
        ends=(*searched.ends, End(hopped.kinds, hopped.forms, hopped.score)),
    )


def _slopes(
    bench: Bench, pool: Pool, budget: Budget, at: Place, near: InRange, searched: Searched
) -> Searched:
    statement, index = bench.statement, at[1]
    size, rng = Size(statement.sizes[index]), np.random.default_rng(at)
    (batch, measured), spread = pool.of_size(index), 0
    if not statement.host:
        wide = spread_out(bench, pool, at)
        batch, spread = concatenate([batch, wide]), length(wide)
        measured = Measured(*concatenate([measured, bench(wide, size)]))
    is_wide = np.arange(length(batch)) >= length(batch) - spread
    chosen = []
    for column, name in enumerate(form_names(statement)):
        restarts = budget.restarts if name != CONTROL else max(1, budget.restarts // 4)
        chosen.append(
            _starts(measured, is_wide, column, restarts, rng, equality=statement.is_bound)
        )
    rows, kinds = map(np.concatenate, zip(*chosen))
    if not len(rows):
        return searched
    targets = np.repeat(np.arange(len(chosen)), [len(some) for some, _ in chosen])
    # A third of the chains step in logarithms: the steps make entries of very different sizes, but
    # hardly move small entries.
    each = (kinds == "wide") & (np.arange(len(kinds)) % 3 == 0)
    starts = take(batch, rows), targets, each
    found = _climb(bench, budget.steps, at, size, batch, starts)
    best, of_each = bench(found.best, size), (np.arange(len(rows)), targets)
    # A violation far from the draws may be rounding, so ball arithmetic decides about it later.
    far = ~near(found.best) & np.any(violation(statement, best)[:, :-1] > 0, axis=1)
    kept = np.flatnonzero(~far)
    if len(kept):
        pool.add("search", index, take(found.best, kept), Measured(*take(best, kept)))
    accepted = searched.accepted.copy()
    np.add.at(accepted, targets, found.accepted)
    value = np.where(best.counted[of_each] & ~far, best.value[of_each], -np.inf)
    return Searched(
        searched.runs + budget.restarts,
        accepted,
        searched.met + int(np.sum(found.met)),
        (*searched.ends, End(kinds, targets, value)),
        (
            *searched.far,
            *(DistantInstance(index, take(found.best, i)) for i in np.flatnonzero(far)),
        ),
    )


def _along(bench: Bench, size: Size) -> Callable[..., Slopes]:
    """Return a function that computes the scores of instances and the scores' gradients.

    The function inserts the best `there_is` entries first, because the gradient of a minimum over
    finitely many points is the gradient at the best point.
    """
    if bench.statement.there_is is None:
        return bench.mapped(slopes(bench.statement, size), "slopes", size)
    promises = bench.promises(size)
    along = promises.given.mapped(slopes(promises.given.statement, size), "slopes", size)
    return lambda instances, forms: along(promises.of_each(instances, forms), forms)


def _climb(
    bench: Bench,
    steps: int,
    place: Place,
    size: Size,
    batch: Instance,
    starts: tuple[Instance, np.ndarray, np.ndarray],
) -> Found:
    statement, (seed, index), (instances, targets, each) = bench.statement, place, starts
    if statement.host:
        climb, rng = host_search(statement, size, steps), np.random.default_rng([seed, index, 1])
        every = [climb(rng, take(instances, i), int(f), batch) for i, f in enumerate(targets)]
        return jax.tree.map(lambda *leaves: np.stack(leaves), *every)
    if statement.search == "gradient" and _points_tried(bench, size) is not None:
        along = _along(bench, size)
        ascent = gradient_search(leading(statement, along), projected(bench, size), steps)
        try:
            return ascent(instances, targets, each)
        except NO_SLOPES:  # the program has a trace already, so only its gradient can be missing
            pass
    measured_at = measuring(bench, size, targets)

    def score(moved: Instance) -> tuple[Instance, np.ndarray, np.ndarray]:
        there, measured, leads = measured_at(moved)
        rank = ranked(measured, statement.is_bound)
        return there, np.where(leads, rank, -np.inf), np.asarray(measured.met)

    return random_search(score, batch, steps)(np.random.default_rng([seed, index, 2]), instances)
