"""The worst instances that earlier runs found: tried first, and where searches start again.

One file for each form that should hold, small ones only. They are of no use where no single
instance decides, and are not taken where the cases are all there are.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from jaxbounds.falsification.bench import Bench, Pool, batch_of
from jaxbounds.falsification.decide import ON_AVERAGE, edge
from jaxbounds.falsification.storage import StoredInstance, load_instance, save_instance
from jaxbounds.statements import Form, Instance, Size, Statement

SMALL = 2**20
"""Bytes of an instance that is worth keeping."""
SOURCE = "earlier"
"""What they are called among the sources of a verdict."""


class Examples(NamedTuple):
    """Where examples are kept, and which are wanted.

    Attributes:
        folder: with a file `<id>.<form>.npz` for each; None keeps nothing.
        every: take all of them, not only those that violated.
    """

    folder: Path | None
    every: bool = False

    def of(self, statement: Statement, form: Form, /) -> Path | None:
        """The file of a form; None where none is kept."""
        averaged = statement.kind in ON_AVERAGE or statement.enumerates
        if self.folder is None or averaged or form.expected != "holds":
            return None
        return self.folder / f"{statement.id}.{form.file_name}.npz"


NONE = Examples(None)


def recall(bench: Bench, pool: Pool, examples: Examples, /) -> None:
    """Add to the pool what earlier runs found.

    Only what violated then, unless every example is wanted: other draws would make a run depend on
    those before it. What no longer fits the statement is passed over.
    """
    statement = bench.statement
    for form in statement.forms:
        for stored in _stored(examples.of(statement, form)):
            size, ratio = Size(stored.meta["size"]), float(stored.meta["ratio"])
            if size not in statement.sizes or not (examples.every or ratio > edge(statement)):
                continue
            at = statement.sizes.index(size)
            batch = batch_of(stored.instance)
            if _fits(batch, pool.of_size(at)[0]):
                pool.add(SOURCE, at, batch, bench(batch, size))


def _stored(file: Path | None) -> Iterator[StoredInstance]:
    if file is not None:
        with contextlib.suppress(ValueError, KeyError, OSError):  # not there, or damaged
            stored = load_instance(file)
            float(stored.meta["ratio"]), dict(stored.meta["size"])
            yield stored


def _fits(batch: Instance, other: Instance) -> bool:
    shapes = lambda tree: jax.tree.map(lambda leaf: (leaf.shape[1:], leaf.dtype), tree)
    return shapes(batch) == shapes(other)


def remember(
    bench: Bench, form: Form, index: int, found: tuple[Instance, Size, float], examples: Examples, /
) -> None:
    """Keep an instance of a form with its ratio, if it is worse than the one kept."""
    file, (instance, size, ratio) = examples.of(bench.statement, form), found
    small = sum(leaf.nbytes for leaf in jax.tree.leaves(instance)) <= SMALL
    if file is None or not small or not np.isfinite(ratio):
        return
    for stored in _stored(file):
        if float(stored.meta["ratio"]) == ratio:
            return
        if float(stored.meta["ratio"]) > ratio and dict(stored.meta["size"]) == dict(size):
            batch = batch_of(stored.instance)
            if _fits(batch, batch_of(instance)):
                again = bench(batch, size)  # the formula may have changed since
                if again.counted[0, index] and again.value[0, index] > ratio:
                    return
    about = {"id": bench.statement.id, "form": form.name, "ratio": repr(ratio)}
    with contextlib.suppress(OSError):  # no place: nothing is remembered
        save_instance(file, instance, **about, size=dict(size))
