"""List the leaves of a pytree with their paths.

A `flax.nnx.Variable` that appears in two places is one leaf.
"""

import sys
from dataclasses import dataclass
from typing import Any

import jax

from jaxbounds.ground.exceptions import Refused

Params = Any


def text(path: tuple, /) -> str:
    """Return a path of JAX as a text like "block/attention/kernel"."""
    return jax.tree_util.keystr(path, simple=True, separator="/")


def _is_variable(node: Any) -> bool:
    nnx = sys.modules.get("flax.nnx")
    return nnx is not None and isinstance(node, nnx.Variable)


def leaves_of(params: Params, /) -> list[tuple[str, Any, Any]]:
    """Return (path, leaf, its `flax.nnx.Variable` or None) for each leaf.

    The path of the array inside a Variable is the path of the Variable.
    """
    variables: list[Any] = []
    for node in jax.tree.leaves(params, is_leaf=_is_variable):
        held = node if _is_variable(node) else None
        variables += [held] * len(jax.tree.leaves(node))
    found = jax.tree_util.tree_flatten_with_path(params)[0]
    return [
        (text(path) if variable is None else text(path[:-1]), leaf, variable)
        for (path, leaf), variable in zip(found, variables)
    ]


def refuse_deleted(name: str, leaf: Any, /) -> None:
    """Refuse an array that a jitted function took as a donated argument.

    Raises:
        Refused: if JAX has deleted the array (a donated argument).
    """
    if isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer) and leaf.is_deleted():
        raise Refused(
            f"the array at leaf={name} was deleted, because a jitted function took it as a donated "
            "argument. Try the array that the function returned, or leave donate_argnums out"
        )


@dataclass(frozen=True)
class Sharing:
    """A pytree in which one Variable appears in several places, as tied weights do.

    Attributes:
        outer: the structure of the pytree in which each Variable is a leaf.
        nodes: for each leaf of `outer`, a pair: the tree structure inside the leaf, and an index.
            The index is the place of the first leaf of `outer` that is the same object.
    """

    outer: Any
    nodes: tuple[tuple[Any, int], ...]

    def once(self, leaves: list[Any], /) -> list[Any]:
        """Return a pytree's leaves with each shared Variable once, from the list of all leaves."""
        kept, left = [], iter(leaves)
        for i, (inner, first) in enumerate(self.nodes):
            own = [next(left) for _ in range(inner.num_leaves)]
            kept += own if first == i else []
        return kept

    def unflatten(self, leaves: list[Any], /) -> Any:
        """Rebuild the pytree from leaves that list each shared Variable only once."""
        built: list[Any] = []
        left = iter(leaves)
        for i, (inner, first) in enumerate(self.nodes):
            if first == i:
                node = jax.tree.unflatten(inner, [next(left) for _ in range(inner.num_leaves)])
            else:
                node = built[first]
            built.append(node)
        return jax.tree.unflatten(self.outer, built)


def sharing_of(params: Params, /) -> Sharing | None:
    """Return how a pytree shares Variables; None if each Variable appears once."""
    nodes, outer = jax.tree.flatten(params, is_leaf=_is_variable)
    first: dict[int, int] = {}
    same = [first.setdefault(id(n), i) if _is_variable(n) else i for i, n in enumerate(nodes)]
    if same == list(range(len(nodes))):
        return None
    return Sharing(outer, tuple((jax.tree.structure(n), i) for n, i in zip(nodes, same)))
