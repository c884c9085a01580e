"""The worst instances of earlier runs, which a run tries first and uses as starts of searches.

The folder has one file for each claim version that should hold and each choice of array shapes.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from jaxbounds.claims.statements import ON_AVERAGE, Form, Instance, Size, Statement
from jaxbounds.falsification.bench import Bench, Pool, batch_of
from jaxbounds.falsification.decide import edge
from jaxbounds.falsification.move_search import projected
from jaxbounds.falsification.origins import source_digest
from jaxbounds.falsification.storage import StoredInstance, load_instance, save_instance
from jaxbounds.ground.text import shortened

SMALL = 2**20
"""A run stores an instance if it has at most this many bytes. A larger limit fills more disk."""
SOURCE = "earlier"
"""The name under which `Verdict.sources` counts the instances of earlier runs."""


class Examples(NamedTuple):
    """The folder of the worst instances of earlier runs, and whether a run uses all of them.

    Attributes:
        folder: a folder with a file `<source>/<id>.<form>.<size>.npz` for each instance, where
            <source> identifies the files that define the statement. If the folder is None, a run
            neither loads nor stores instances.
        every: whether a run uses all instances, or only those that violated their claim.
    """

    folder: Path | None
    every: bool = False

    def of(self, statement: Statement, form: Form, size: Size, /) -> Path | None:
        """Return the path of a claim version's worst instance; None if runs do not store it."""
        averaged = statement.kind in ON_AVERAGE or statement.enumerates
        if self.folder is None or averaged or form.expected != "holds" or not _admits(statement):
            return None
        axes = "_".join(f"{name}{value}" for name, value in sorted(size.items()))
        name = shortened(f"{statement.id}.{form.file_name}.{axes}", 240)
        return self.folder / source_digest(statement)[:32] / f"{name}.npz"


NONE = Examples(None)


def recall(bench: Bench, pool: Pool, examples: Examples, /) -> None:
    """Add the worst instances of earlier runs to the measured instances in `pool`.

    Unless `every` is set, the function adds only violations, because other instances would make a
    run depend on earlier runs. The function skips an instance that no longer fits the statement.
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
    """Return whether a statement can test that a stored instance is one of its instances."""
    return statement.hypotheses is not None or statement.project is not None


def _stored(file: Path | None) -> Iterator[StoredInstance]:
    if file is not None:
        with contextlib.suppress(ValueError, KeyError, OSError):  # missing or damaged
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
    """Store an instance for later runs if its ratio is the worst for its shapes so far."""
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
                again = bench(
                    projected(bench, size)(batch), size
                )  # the formula may have changed since
                if again.counted[0, index] and again.value[0, index] > ratio:
                    return
    about = {"id": bench.statement.id, "form": form.name, "ratio": repr(ratio)}
    with contextlib.suppress(OSError):  # a full or read-only disk keeps no example
        save_instance(file, instance, lasting=False, **about, size=dict(size))
