"""Filling a pool with instances: drawn from the samplers, enumerated, and found by search."""

import functools
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.falsification.bench import Bench, Pool, cases_of, take
from jaxbounds.falsification.measure import Measured, form_names
from jaxbounds.falsification.programs import Programs
from jaxbounds.falsification.search import Found, gradient_search, host_search, random_search
from jaxbounds.statements import CONTROL, Budget, Instance, Sampler, Size


def _key(seed: int, *names: str | int) -> jax.Array:
    key = jax.random.key(seed)
    for name in names:
        data = name if isinstance(name, int) else zlib.crc32(name.encode())
        key = jax.random.fold_in(key, data)
    return key


@dataclass(frozen=True)
class _Sampling:
    """A sampler at a size; statements that share a sampler share what is compiled for the first."""

    programs: Programs
    sampler: Sampler
    size: Size
    first: tuple[str, ...] = field(compare=False)


@functools.lru_cache(maxsize=256)
def _sampler(of: _Sampling) -> Callable:
    draw = lambda key: of.sampler(key, of.size)
    return of.programs(draw, *of.first, "sample", tuple(of.size.items()))


def draw(bench: Bench, pool: Pool, budget: Budget, seed: int, /) -> dict[str, int]:
    """Fill the pool from the samplers and the cases; count what missed a hypothesis."""
    statement, left_out = bench.statement, dict[str, int]()
    for index, size in enumerate(map(Size, statement.sizes)):
        batches: list[tuple[str, Instance]] = []
        for name, sampler in statement.samplers.items():
            # Of a limit the same instances are followed, where their shapes stay.
            place = 0 if statement.towards else index
            keys = jax.random.split(_key(seed, statement.id, name, place), budget.samples)
            sampling = _Sampling(bench.programs, sampler, size, (statement.id, name))
            batches.append((name, _sampler(sampling)(keys)))
        if statement.cases is not None:
            batches.append(("cases", cases_of(statement, size)))
        for name, batch in batches:
            batch = jax.tree.map(np.asarray, batch)
            measured = bench(batch, size)
            pool.add(name, index, batch, measured)
            if not np.all(measured.counted):
                for reason, count in bench.excluded(batch, size, measured).items():
                    left_out[reason] = left_out.get(reason, 0) + count
    return left_out


def _starts(measured: Measured, form: int, restarts: int, rng: np.random.Generator) -> np.ndarray:
    """Half of the starting points are the worst instances so far, half are random ones."""
    counted = np.flatnonzero(measured.counted[:, form] & np.isfinite(measured.value[:, form]))
    if not len(counted) or not restarts:
        return np.zeros(0, int)
    order = counted[np.argsort(-measured.value[counted, form], kind="stable")]
    best = order[: (restarts + 1) // 2]
    return np.concatenate([best, rng.choice(counted, restarts - len(best))])


class Searched(NamedTuple):
    """What all searches of a statement came to.

    Attributes:
        runs: how many were run for each form.
        accepted: steps, for each form and the control, that led to a worse instance.
        met: steps that met the hypotheses, of all forms.
    """

    runs: int
    accepted: np.ndarray
    met: int


def search(bench: Bench, pool: Pool, budget: Budget, seed: int, /) -> Searched:
    """Search from the pool for each form and, less, for the control."""
    statement = bench.statement
    forms = form_names(statement)
    runs, accepted, met = 0, np.zeros(len(forms), int), 0
    if statement.search == "none" or not budget.restarts or not budget.steps:
        return Searched(runs, accepted, met)
    for index, size in enumerate(map(Size, statement.sizes)):
        batch, measured = pool.of_size(index)
        rng = np.random.default_rng([seed, index])
        chosen_by_form = []
        for column, name in enumerate(forms):
            restarts = budget.restarts if name != CONTROL else max(1, budget.restarts // 4)
            chosen = _starts(measured, column, restarts, rng)
            chosen_by_form.append(chosen)
        rows = np.concatenate(chosen_by_form)
        targets = np.repeat(np.arange(len(forms)), [len(chosen) for chosen in chosen_by_form])
        if not len(rows):
            continue
        found = _climb(bench, budget.steps, (seed, index), size, batch, rows, targets)
        pool.add("search", index, found.best, bench(found.best, size))
        np.add.at(accepted, targets, found.accepted)
        runs, met = runs + budget.restarts, met + int(np.sum(found.met))
    return Searched(runs, accepted, met)


def _climb(bench, steps, place, size, batch, rows, targets) -> Found:
    """Search from these rows of a batch, each for its form."""
    statement, (seed, index) = bench.statement, place
    if statement.host:
        climb, rng = host_search(statement, size, steps), np.random.default_rng([seed, index, 1])
        every = [climb(rng, take(batch, row), int(form), batch) for row, form in zip(rows, targets)]
        return jax.tree.map(lambda *leaves: np.stack(leaves), *every)
    if statement.search == "gradient":
        searcher = gradient_search(statement, size, steps)
    else:
        searcher = random_search(statement, size, steps, next(iter(statement.samplers.values())))
    keys = jax.random.split(_key(seed, statement.id, "search", index), len(rows))
    key_of = (statement.id, statement.search, steps, tuple(size.items()))
    found = bench.programs(searcher, *key_of)(keys, take(batch, rows), jnp.asarray(targets))
    return jax.tree.map(np.asarray, found)
