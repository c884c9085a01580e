"""The worst instances that earlier runs found: tried first, and where searches start again.

One file for each form that should hold and each size, small ones only. What one command found,
the others start from. They are of no use where no single instance decides, and are not taken where
the cases are all there are.

An example belongs to the statement that it was found for: to one source, whatever else has its id.
It counts only where the statement says which instances there are: `hypotheses` or `over` admit it,
or `project` leaves it or moves it to one.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from jaxbounds.claims.statements import Form, Instance, Size, Statement
from jaxbounds.falsification.bench import Bench, Pool, batch_of
from jaxbounds.falsification.decide import ON_AVERAGE, edge
from jaxbounds.falsification.move_search import projected
from jaxbounds.falsification.origins import source_digest
from jaxbounds.falsification.storage import StoredInstance, load_instance, save_instance
from jaxbounds.ground.text import shortened

SMALL = 2**20
"""Bytes of an instance that is worth keeping."""
SOURCE = "earlier"
"""What they are called among the sources of a verdict."""


class Examples(NamedTuple):
    """Where examples are kept, and which are wanted.

    Attributes:
        folder: with a file `<source>/<id>.<form>.<size>.npz` for each, where <source> tells which
            files define the statement; None keeps nothing.
        every: take all of them, not only those that violated.
    """

    folder: Path | None
    every: bool = False

    def of(self, statement: Statement, form: Form, size: Size, /) -> Path | None:
        """The file of a form at a size; None where none is kept."""
        averaged = statement.kind in ON_AVERAGE or statement.enumerates
        if self.folder is None or averaged or form.expected != "holds" or not _admits(statement):
            return None
        axes = "_".join(f"{name}{value}" for name, value in sorted(size.items()))
        name = shortened(f"{statement.id}.{form.file_name}.{axes}", 240)
        return self.folder / source_digest(statement)[:32] / f"{name}.npz"


NONE = Examples(None)


def recall(bench: Bench, pool: Pool, examples: Examples, /) -> None:
    """Add to the pool what earlier runs found.

    Only what violated then, unless every example is wanted: other draws would make a run depend on
    those before it. What no longer fits the statement is passed over.
    """
    statement = bench.statement
    for form in statement.forms:
        for at, size in enumerate(map(Size, statement.sizes)):
            for stored in _stored(examples.of(statement, form, size)):
                batch, violated = batch_of(stored.instance), _ratio(stored) > edge(statement)
                wanted = examples.every or violated
                if wanted and at in pool.sizes and _fits(batch, pool.of_size(at)[0]):
                    batch = projected(bench, size)(batch)
                    pool.add(SOURCE, at, batch, bench(batch, size))


def _admits(statement: Statement) -> bool:
    """Whether a statement says which instances there are, so that an example can be confirmed."""
    return statement.hypotheses is not None or statement.project is not None


def _stored(file: Path | None) -> Iterator[StoredInstance]:
    if file is not None:
        with contextlib.suppress(ValueError, KeyError, OSError):  # not there, or damaged
            stored = load_instance(file)
            _ratio(stored)
            yield stored


def _ratio(stored: StoredInstance) -> float:
    return float(stored.meta["ratio"])


def _fits(batch: Instance, other: Instance) -> bool:
    shapes = lambda tree: jax.tree.map(lambda leaf: (leaf.shape[1:], leaf.dtype), tree)
    return shapes(batch) == shapes(other)


def remember(
    bench: Bench, form: Form, index: int, found: tuple[Instance, Size, float], examples: Examples, /
) -> None:
    """Keep an instance of a form with its ratio, if it is worse than the one kept at its size."""
    instance, size, ratio = found
    file = examples.of(bench.statement, form, size)
    small = sum(leaf.nbytes for leaf in jax.tree.leaves(instance)) <= SMALL
    if file is None or not small or not np.isfinite(ratio):
        return
    for stored in _stored(file):
        if _ratio(stored) == ratio:
            return
        if _ratio(stored) > ratio:
            batch = batch_of(stored.instance)
            if _fits(batch, batch_of(instance)):
                again = bench(projected(bench, size)(batch), size)  # the formula may have changed
                if again.counted[0, index] and again.value[0, index] > ratio:
                    return
    about = {"id": bench.statement.id, "form": form.name, "ratio": repr(ratio)}
    with contextlib.suppress(OSError):  # no place: nothing is remembered
        save_instance(file, instance, lasting=False, **about, size=dict(size))
