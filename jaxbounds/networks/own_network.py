"""A network of one's own, whatever library it is of: its leaves by path, and why a bound is none.

A pytree is enough: variables of linen, a module or state of nnx, an Equinox module, nested dicts.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Leaves = dict[str, Any]


class Reason(NamedTuple):
    """Why no bound applies, and what would have to change.

    Attributes:
        what: was found, in a sentence.
        paths: the parameters, or the argument, that it is about.
        change: what to do about it.
    """

    what: str
    paths: tuple[str, ...]
    change: str

    @property
    def where(self) -> str:
        """The paths in a row, of many the first few."""
        return listed(self.paths) if self.paths else ""

    def __str__(self) -> str:
        """Three parts on three lines; without paths on two."""
        where = [f"  at {', '.join(self.paths)}"] if self.paths else []
        return "\n".join([self.what, *where, f"  change: {self.change}"])


def listed(names: list[str] | tuple[str, ...], /, most: int = 4) -> str:
    """Names in a row, of many the first few and how many more."""
    shown = ", ".join(names[:most]) or "none"
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def holds(leaf: Any, kind: Any, /) -> bool:
    """Whether a leaf is an array, or the shape of one, with numbers of a kind."""
    array = isinstance(leaf, np.ndarray | np.generic | jax.Array | jax.ShapeDtypeStruct)
    return array and jnp.issubdtype(leaf.dtype, kind)


def leaves_by_path(tree: Any, /, *, collections: bool = False) -> Leaves:
    """The leaves of any pytree by paths as "block/attention/query/kernel".

    The containers that Flax puts around an array are no part of a path; what a training state holds
    beside its "params" is left out, as are random streams, leaves that are functions, and the
    settings of Equinox's dropout.

    Args:
        tree: a pytree.
        collections: whether "params" stays in the path.

    Raises:
        Refused: if the keys of a dictionary cannot be ordered.
    """
    named = lambda key: str(
        next((getattr(key, n) for n in ("key", "name", "idx") if hasattr(key, n)), key)
    )
    flat, _ = jax.tree_util.tree_flatten_with_path(tree)
    paths = [tuple(map(named, path)) for path, _ in flat]
    parents = [path[:-1] for path in paths]
    leaves: Leaves = {}
    for path, (_, leaf) in zip(paths, flat):
        if len(path) > 1 and path[-1] in ("value", "raw_value") and parents.count(path[:-1]) == 1:
            path = path[:-1]
        whole = path
        while len(path) > 1 and path[0] == "params":
            path = path[1:]
        beside = whole == path and any(p[:1] == ("params",) for p in paths)
        if beside and path[:1] in (("step",), ("opt_state",), ("tx",)):
            continue
        dropout = path[-1:] in (("p",), ("inference",)) and isinstance(leaf, float | bool)
        random = "rngs" in path or holds(leaf, jax.dtypes.prng_key)
        if not (random or dropout or callable(leaf)):
            leaves["/".join(whole if collections else path)] = leaf
    return leaves
