"""The worst instances of earlier runs: tried first, and used as starts of searches.

There is one file for each form that should hold and each size, for small instances only. An example
that one command found is a start for the other commands. Claims about means, and finite sets that
are enumerated, take no examples.

An example belongs to the statement that it was found for: to one source, whatever else has its id.
It counts only where the statement says which instances there are. `hypotheses` or `over` must admit
it, or `project` must leave it in place or move it to an instance.
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
"""Bytes of an instance up to which it is kept as an example; a larger limit fills more disk."""
SOURCE = "earlier"
"""The name of examples among the sources of a verdict."""


class Examples(NamedTuple):
    """The place of examples, and the choice among them.

    Attributes:
        folder: a folder with a file `<source>/<id>.<form>.<size>.npz` for each example, where
            <source> tells which files define the statement; None keeps no examples.
        every: take all examples, not only those that violated.
    """

    folder: Path | None
    every: bool = False

    def of(self, statement: Statement, form: Form, size: Size, /) -> Path | None:
        """Return the file of a form at a size; None where no example is kept."""
        averaged = statement.kind in ON_AVERAGE or statement.enumerates
        if self.folder is None or averaged or form.expected != "holds" or not _admits(statement):
            return None
        axes = "_".join(f"{name}{value}" for name, value in sorted(size.items()))
        name = shortened(f"{statement.id}.{form.file_name}.{axes}", 240)
        return self.folder / source_digest(statement)[:32] / f"{name}.npz"


NONE = Examples(None)


def recall(bench: Bench, pool: Pool, examples: Examples, /) -> None:
    """Add the examples of earlier runs to the pool.

    Only the examples that violated are added, unless `every` is set: other examples would make a
    run depend on earlier runs. An example that no longer fits the statement is passed over.
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
    """Tell whether a statement says which instances exist, so that it can confirm an example."""
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
    """Keep an instance of a form with its ratio, if it is worse than the example at its size."""
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
