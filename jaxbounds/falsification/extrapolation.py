"""Search for violations of a claim at instances far from the random draws.

A difference of large float64 numbers may be rounding. An instance far from the draws therefore
counts only if ball arithmetic confirms its violation.
"""

from collections.abc import Iterator

import jax
import numpy as np

from jaxbounds.claims.statements import ON_AVERAGE, Instance, Size
from jaxbounds.falsification.bench import (
    Bench,
    Column,
    Pool,
    batch_of,
    concatenate,
    spread,
    take,
)
from jaxbounds.falsification.cancellation import NOISE, is_cancellation, largest_entry
from jaxbounds.falsification.decide import violation
from jaxbounds.falsification.explore import Searched
from jaxbounds.falsification.found_equality import are_rounding
from jaxbounds.falsification.move_search import projected
from jaxbounds.falsification.moves import is_float
from jaxbounds.falsification.second_opinion import Asked, clears_at_the_set, cure

FACTORS = tuple(10.0**power for power in (-100, -50, -20, -8, -4, 4, 8, 20, 50, 100))
BASES = 2
"""The engine scales this many of the worst instances, and equally many random instances. A larger
number takes longer."""
CLEAR = 1e-6
"""If the sides differ by more than this share of their terms, rounding an instance onto its set
does not explain the difference. A larger share leaves more violations undecided."""
ASKED = 2
"""Ball arithmetic decides at most this many instances for one claim version. A larger number takes
longer."""
NO_RULE = "primitive="
"""The first word of the reason that ball arithmetic gives if it has no rule for an operation."""
LEAVES = 6
"""If an instance has at most this many float arrays, the engine also scales each array alone. A
larger number tries more scaled instances."""


def _scaled(instance: Instance) -> Iterator[Instance]:
    leaves, structure = jax.tree.flatten(instance)
    moving = [i for i, leaf in enumerate(leaves) if is_float(leaf) and leaf.size]
    alone = [[i] for i in moving] if 1 < len(moving) <= LEAVES else []
    for group in [*alone, moving] if moving else []:
        for factor in FACTORS:
            with np.errstate(all="ignore"):
                moved = [leaf * factor if i in group else leaf for i, leaf in enumerate(leaves)]
            yield jax.tree.unflatten(structure, moved)


def _add(bench: Bench, pool: Pool, index: int, instance: Instance) -> None:
    batch = batch_of(instance)
    pool.add("search", index, batch, bench(batch, Size(bench.statement.sizes[index])))


def confirm_extrapolated(
    bench: Bench, pool: Pool, searched: Searched, referee: Asked, /
) -> dict[str, str]:
    """Add to `pool` the violations far from the random draws that ball arithmetic confirms.

    Returns:
        A dictionary from each claim version that ball arithmetic cannot decide to the reason.
    """
    statement, doubts = bench.statement, dict[str, str]()
    for column, form in enumerate(statement.forms):
        if any(np.any(violation(statement, m.column(column)) > 0) for m in pool.measured):
            continue
        found = []
        for index, instance in searched.far:
            size = Size(statement.sizes[index])
            excess = violation(statement, bench.one(instance, size).column(column))
            if excess > 0:
                found.append((float(excess), index, instance))
        for amount, index, instance in sorted(found, key=lambda f: -f[0])[:ASKED]:
            said = referee(statement, form, instance, Size(statement.sizes[index]))
            if said.word == "disproved":
                _add(bench, pool, index, instance)
                doubts.pop(form.name, None)
                break
            if not said.is_true:
                doubts[form.name] = (
                    f"an instance far from all draws violates the form by {amount:.2g}, perhaps "
                    "only by rounding, and ball arithmetic does not confirm it: "
                    f"{said.reason}. {cure(statement)}"
                )
    return doubts


def extrapolate(bench: Bench, pool: Pool, referee: Asked, seed: int, /) -> None:
    """Add to `pool` the scaled instances whose violation ball arithmetic confirms.

    The function skips a claim version that an instance already violates, and a claim that no single
    instance can refute.
    """
    statement = bench.statement
    if statement.search == "none" or statement.host or statement.kind in ON_AVERAGE:
        return
    for index, size in enumerate(map(Size, statement.sizes)):
        if index not in pool.sizes:
            continue
        batch, measured = pool.of_size(index)
        rng = np.random.default_rng([seed, index, 5])
        rows = rng.integers(len(measured.counted), size=BASES).tolist()
        value = np.where(measured.counted, measured.value, -np.inf)  # a sort puts NaN last
        rows += np.argsort(-value[:, 0], kind="stable")[:BASES].tolist()
        bases = [take(batch, row) for row in dict.fromkeys(rows)]
        added = set[int]()
        for sign in (1, -1):  # an odd function violates a bound on one side only
            many = [moved for base in bases for moved in _scaled(_signed(base, sign))]
            if not many:
                break
            far = projected(bench, size)(concatenate([batch_of(one) for one in many]))
            found = bench(far, size)
            for column, form in enumerate(statement.forms):
                if column in added or np.any(violation(statement, measured.column(column)) > 0):
                    continue
                excess = violation(statement, found.column(column))
                for row in np.argsort(-excess, kind="stable")[:ASKED]:
                    instance = take(far, int(row))
                    if not excess[row] > 0:
                        break
                    if referee(statement, form, instance, size).word.startswith("disproved"):
                        _add(bench, pool, index, instance)
                        added.add(column)
                        break


def _signed(instance: Instance, sign: int) -> Instance:
    """Multiply the floats of an instance by a sign."""
    signed = lambda leaf: leaf * leaf.dtype.type(sign) if is_float(leaf) else leaf
    return instance if sign == 1 else jax.tree.map(signed, instance)


def without_rounding(
    bench: Bench, pool: Pool, columns: list[Column], referee: Asked, /
) -> tuple[list[Column], dict[str, str]]:
    """Return the measurements of all claim versions, without violations as small as rounding.

    Returns:
        The measurements, and the reason for each claim version that ball arithmetic cannot decide.
    """
    statement, doubts = bench.statement, dict[str, str]()
    if not statement.is_bound or statement.kind in ON_AVERAGE:
        return columns, doubts
    largest = np.concatenate([largest_entry(batch, np, axes=1) * np.ones(len(m.counted))
                              for batch, m in zip(pool.instances, pool.measured)])  # fmt: skip
    found = list(columns)
    for index, form in enumerate(statement.forms):
        m, excess = columns[index].measured, violation(statement, columns[index].measured)
        lost = is_cancellation(m.lhs, m.rhs, largest) & (excess > 0)
        if not np.any(lost):
            continue
        rows = np.flatnonzero(lost)
        rows = rows[np.argsort(-excess[rows], kind="stable")]
        widest = rows[np.argmax(np.abs(m.lhs - m.rhs)[rows])]
        certain, words = False, ""
        for row in dict.fromkeys(map(int, [*spread(rows, ASKED + 1), widest])):
            asked = form, pool.instance(row), Size(statement.sizes[columns[index].sizes[row]])
            said = referee(statement, *asked)
            gap, scale = abs(m.lhs[row] - m.rhs[row]), columns[index].scale
            # Rounding of large entries or of the terms may explain the violation.
            if said.word.startswith("disproved"):
                certain = gap > NOISE or (scale is not None and gap > CLEAR * scale[row])
                if certain:
                    break
            if said.reason.startswith(NO_RULE) and are_rounding(bench, pool, columns[index], index):
                continue
            if not words and not said.clears and not clears_at_the_set(statement, *asked, referee):
                # A certain violation is not enough, because the floats may meet the hypotheses only
                # up to rounding.
                confirms = "confirms it for these floats only"
                if not said.word.startswith("disproved"):
                    confirms = f"does not confirm it: {said.reason.partition('. Try')[0]}"
                words = (
                    f"the violation (a ratio of 1 + {m.value[row] - 1:.2g}) may be rounding, and "
                    f"ball arithmetic {confirms}. {cure(statement)}"
                )
        if certain:
            continue
        found[index] = columns[index]._replace(measured=m._replace(counted=m.counted & ~lost))
        if words:
            doubts[form.name] = words
    return found, doubts
