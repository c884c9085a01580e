"""Inspect the user's own network: list its leaves by path, and explain why no bound applies.

The network may be any pytree: variables of linen, a module or state of nnx, an Equinox module,
nested dicts.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Leaves = dict[str, Any]


class Reason(NamedTuple):
    """The reason why no bound applies to a network, and the change that would help.

    Attributes:
        what: a sentence that names the obstacle.
        paths: the paths of the parameters that the obstacle concerns, or the name of an argument.
        change: the change of the network that the user should make.
    """

    what: str
    paths: tuple[str, ...]
    change: str

    @property
    def where(self) -> str:
        """Return the first few parameter paths as one line of text."""
        return listed(self.paths) if self.paths else ""

    def __str__(self) -> str:
        where = [f"  at {', '.join(self.paths)}"] if self.paths else []
        return "\n".join([self.what, *where, f"  change: {self.change}"])


def listed(names: list[str] | tuple[str, ...], /, most: int = 4) -> str:
    """Return a line of text: the first `most` given names, and the number of further names."""
    shown = ", ".join(names[:most]) or "none"
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def holds(leaf: Any, kind: Any, /) -> bool:
    """Return whether a leaf is an array (or only its shape and dtype) of a given kind of dtype."""
    array = isinstance(leaf, np.ndarray | np.generic | jax.Array | jax.ShapeDtypeStruct)
    return array and jnp.issubdtype(leaf.dtype, kind)


def leaves_by_path(tree: Any, /, *, collections: bool = False) -> Leaves:
    """Return the leaves of any pytree by path, such as "block/attention/query/kernel".

    A path omits the names of the containers that Flax puts around an array. The result has no
    entries for the parts of a training state beside "params", random streams, functions, and the
    settings of Equinox's dropout.

    Args:
        tree: a pytree.
        collections: whether paths begin with the name "params" of linen's collection; by default
            the function removes the name "params".

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
