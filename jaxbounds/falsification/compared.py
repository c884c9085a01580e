"""Measure a claim where entries equal the constants with which its program compares them.

A claim may be false only at a jump, such as the point x = 0.7 of `x >= 0.7`. A random draw meets a
jump with probability zero.
"""

from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any

import jax
import numpy as np

from jaxbounds.claims.statements import ON_AVERAGE, Instance, Size
from jaxbounds.falsification.bench import Bench, Pool, length, take
from jaxbounds.falsification.decide import edge
from jaxbounds.falsification.discrete import leaves_of
from jaxbounds.falsification.evaluation import read
from jaxbounds.falsification.jumps import Pair, is_table, jumps
from jaxbounds.falsification.move_search import projected
from jaxbounds.falsification.moves import is_float
from jaxbounds.falsification.scales import traced_reading
from jaxbounds.ground.jax_internals import ClosedJaxpr, with_outputs
from jaxbounds.programs.interpreted import NotInterpreted, interpreted

FEW = 4
"""Instances with several constants use the first FEW constants. A larger number finds violations at
further constants, and meets each combination less often."""
BATCHES = 2
"""Largest number of batches of instances with constants at each size. A larger number tries more
entries and takes longer."""
FACTORS = {1.0: BATCHES, 2.0: 1}
"""The factors of the constants at which the search measures the claim, each with its number of
batches. More factors find violations beyond a constant and take longer."""
GRID = 8.0
"""The search rounds half of the instances to multiples of 1 / GRID. A larger number gives
counterexamples with more digits."""
STEPS = 5
"""Number of secant steps that equate the operands of a comparison. More steps solve more nonlinear
equations and take longer."""
REACH = 1e3
"""A solution counts if it exceeds the largest drawn entry by at most this factor. A larger factor
finds violations farther away, and more violations that are only rounding."""
LARGE = 2**22
"""A batch of instances with constants takes at most this many bytes. A larger number lets the
search try larger instances."""


def sides_of(bench: Bench, size: Size, batch: Instance) -> tuple[ClosedJaxpr, bool]:
    """Return the traced program of both sides, and whether NumPy can run it on the batch."""
    try:
        traced = traced_reading(bench, size, batch)
    except NotInterpreted:
        one, statement = take(batch, 0), bench.statement
        return jax.make_jaxpr(lambda i: read(statement, size)(i)[:2])(one), False
    several = len(jax.tree.leaves(traced.out_info[:2]))
    return with_outputs(traced.jaxpr, traced.jaxpr.jaxpr.outvars[:several]), True


def look_at_compared_constants(bench: Bench, pool: Pool, seed: int, /) -> None:
    """Add the instances to the pool that violate the claim at a jump of its program.

    Some instances have entries equal to constants of the program, or to sizes. Others equate both
    operands of a comparison. The function concerns claims with `over`, without `there_is`. It skips
    a claim with `search="none"` and its own `sample`.
    """
    statement = bench.statement
    if statement.over is None or statement.host or statement.there_is is not None:
        return
    own = any(getattr(sampler, "own", None) for sampler in statement.samplers.values())
    if statement.kind in ON_AVERAGE or (own and statement.search == "none"):
        return
    for index in range(len(statement.sizes)):
        if index in pool.sizes:
            for near in _near(bench, pool, index, np.random.default_rng([seed, index, 7])):
                _add(bench, pool, index, near)


def _near(bench: Bench, pool: Pool, index: int, rng: np.random.Generator) -> Iterator[Instance]:
    """Yield batches of instances at the jumps of the claim's program at one size."""
    size, (drawn, _) = Size(bench.statement.sizes[index]), pool.of_size(index)
    batch = take(drawn, rng.integers(length(drawn), size=bench.batch))
    leaves, structure = jax.tree.flatten(batch)
    sets = leaves_of(bench.statement.over or {}, batch)  # no set says which others are allowed
    floats = [i for i, leaf in enumerate(leaves) if i in sets and is_float(leaf) and leaf[0].size]
    if not floats or sum(leaf.nbytes for leaf in leaves) > LARGE:
        return
    program, runs = sides_of(bench, size, batch)
    numbers = [float(x) for x in size.values() if isinstance(x, int | float)]
    found = jumps(program, numbers)
    for factor, batches in FACTORS.items():
        constants = [factor * c for c in found.constants]
        for moved in islice(_with_constants(leaves, floats, constants, rng), batches):
            yield jax.tree.unflatten(structure, moved)
    if runs and found.pairs:
        onto = projected(bench, size)
        back = lambda moved: onto(jax.tree.unflatten(structure, moved))
        moved = _with_equal_operands(program, found.pairs, leaves, floats, rng, back)
        yield jax.tree.unflatten(structure, moved)


def _add(bench: Bench, pool: Pool, index: int, batch: Instance) -> None:
    statement, size = bench.statement, Size(bench.statement.sizes[index])
    there = projected(bench, size)(batch)
    found = bench(there, size)
    with np.errstate(invalid="ignore"):
        against = found.counted & (found.value > edge(statement))
        if statement.strict:
            against = against | (found.counted & (found.lhs >= found.rhs))
    kept = np.flatnonzero(np.any(against[:, :-1], axis=1))
    if len(kept):
        pool.add("search", index, take(there, kept), type(found)(*take(found, kept)))


def _readable(leaf: np.ndarray, rows: Any) -> np.ndarray:
    """Return a copy of a leaf (array) of a batch, with the entries of some rows rounded."""
    copied = leaf.copy()
    copied[rows] = np.round(leaf[rows] * GRID) / GRID
    return copied


def _with_constants(
    leaves: list[np.ndarray], floats: list[int], constants: list[float], rng: np.random.Generator
) -> Iterator[list[np.ndarray]]:
    """Yield batches in which one entry, or all entries, of arrays equal a constant or its negative.

    The rows that are left in the last batch have several entries with different constants.

    Args:
        leaves: the arrays of a batch of drawn instances.
        floats: the indices of the arrays of floats.
        constants: the constants, the most important ones first.
        rng: the generator that chooses the entries.
    """
    rows = len(leaves[0])
    groups = [[i] for i in floats] + ([floats] if len(floats) > 1 else [])
    single = any(leaves[i][0].size > 1 for i in floats)
    kinds = product(constants, groups, (True, False) if single else (True,), (1.0, -1.0))
    points = [p for p in kinds if p[0] or p[3] > 0][: BATCHES * rows]
    for start in range(0, len(points), rows):
        moved = [
            _readable(x, slice(1, None, 2)) if i in floats else x for i, x in enumerate(leaves)
        ]
        for row, (constant, group, whole, sign) in enumerate(points[start : start + rows]):
            for i in group:
                flat = moved[i].reshape(rows, -1)
                at: Any = slice(None) if whole else rng.integers(flat.shape[1])
                flat[row, at] = sign * constant
                moved[i] = flat.reshape(leaves[i].shape)
        for i in floats:
            left = moved[i][len(points) - start :]
            signed = rng.choice(constants[:FEW], left.shape) * rng.choice(
                (1.0, 1.0, -1.0), left.shape
            )
            left[...] = np.where(rng.random(left.shape) < 0.5, signed, left)
        yield moved


def _with_equal_operands(
    program: ClosedJaxpr,
    pairs: list[Pair],
    leaves: list[np.ndarray],
    floats: list[int],
    rng: np.random.Generator,
    back: Callable[[list[np.ndarray]], Instance],
) -> list[np.ndarray]:
    """Return a batch in which each instance equates the operands of a comparison by secant steps.

    The secant steps change one entry of each instance, which `back` projects onto the sets.
    """
    rows, order = np.arange(len(leaves[0])), rng.integers(2**31, size=len(leaves[0]))
    half = slice(None, None, 2)
    moved = [_readable(x, half) if i in floats else x for i, x in enumerate(leaves)]
    which = np.array(floats)[(rows // len(pairs)) % len(floats)]

    def entry(values: np.ndarray | None = None) -> np.ndarray:
        found = np.zeros(len(rows))
        for i in floats:
            flat, own = moved[i].reshape(len(rows), -1), np.flatnonzero(which == i)
            at = own, (order // 7)[own] % flat.shape[1]
            found[own] = flat[at]
            if values is not None:
                flat[at] = values[own]
                moved[i] = flat.reshape(leaves[i].shape)
        return found

    moved = [np.array(x) for x in jax.tree.leaves(back(moved))]
    first = before = entry()
    other = rng.permutation(len(rows))
    x = before.copy()
    for i in floats:
        own = np.flatnonzero(which == i)
        flat = leaves[i].reshape(len(rows), -1)
        x[own] = flat[other[own], (order // 7)[own] % flat.shape[1]]
    try:
        gap = _gaps(program, pairs, order, back)
        old = gap(moved)
        for _ in range(STEPS):
            entry(x)
            new = gap(moved)
            with np.errstate(all="ignore"):
                step = new * (x - before) / (new - old)
            go = np.isfinite(step) & (step != 0)
            before, old = np.where(go, x, before), np.where(go, new, old)
            x = np.where(go, x - step, x)
            if not np.any(go):
                break
    except NotInterpreted:
        return moved
    most = REACH * max(1.0, *(float(np.max(np.abs(leaves[i]))) for i in floats))
    entry(np.where(np.abs(x) <= most, x, first))
    return moved


def _gaps(
    program: ClosedJaxpr,
    pairs: list[Pair],
    order: np.ndarray,
    back: Callable[[list[np.ndarray]], Instance],
) -> Callable[[list[np.ndarray]], np.ndarray]:
    """Return a function from a batch to the difference of one pair of operands of each instance."""
    moving = [x for pair in pairs for x in pair if not is_table(x)]
    run, rows = interpreted(with_outputs(program, moving)), len(order)
    whole: dict[int, np.ndarray] = {}  # the whole numbers near the first operands of floor, ...

    def gap(leaves: list[np.ndarray]) -> np.ndarray:
        values, found = iter(run(*jax.tree.leaves(back(leaves)))), np.full(rows, np.nan)
        for k, pair in enumerate(pairs):
            left, right = (np.asarray(x) if is_table(x) else next(values) for x in pair)
            if is_table(pair[1]) and np.isnan(right).any():
                right = whole.setdefault(k, np.round(left))
            wide = np.asarray(left - right, float)
            own = np.arange(k, rows, len(pairs))
            if wide.shape[:1] == (rows,):
                flat = wide.reshape(rows, -1)
                found[own] = flat[own, (order // 11)[own] % flat.shape[1]]
        return found

    return gap
