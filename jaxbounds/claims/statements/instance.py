"""Types of instances, sizes, samplers and hypotheses."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax
import numpy as np
from jax.typing import ArrayLike

Instance = Mapping[str, Any]
"""A nested dict of arrays that satisfies a statement's hypotheses. An instance holds inputs (data,
weights, a seed, an index into a named family), never an outcome. The gradient search moves float
leaves, and holds integer and boolean leaves fixed."""


@jax.tree_util.register_static
class Size(Mapping[str, Any]):
    """The static part of an instance: a dict from names to shapes and other Python numbers.

    A `Size` is hashable, and JAX treats a `Size` as static when JAX traces a function.
    """

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> Any:
        """Return the number of the size with a given name: an integer for a shape, else a float.

        Raises:
            KeyError: if the size has no number of this name; the message lists all names of the
                size.
        """
        try:
            return self._entries[name]
        except KeyError:
            known = ", ".join(self._entries) or "nothing"
            raise KeyError(f"the statement has no size={name!r}. Try one of: {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return hash(tuple(self._entries.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self._entries == dict(other)

    def __repr__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self._entries.items())


Sampler = Callable[[jax.Array, Size], Instance]
Hypotheses = Callable[[Instance, Size], Mapping[str, ArrayLike]]


def stacked(instances: Iterable[Instance], /) -> dict[str, Any]:
    """Stack instances along a new leading axis, as `Statement.cases` must return them."""
    rows = [jax.tree.map(np.asarray, dict(instance)) for instance in instances]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
