"""The leaves of a pytree by path; a `flax.nnx.Variable` that stands in two places is one leaf."""

import sys
from dataclasses import dataclass
from typing import Any

import jax

from jaxbounds.ground.exceptions import Refused

Params = Any


def text(path: tuple, /) -> str:
    """A path of JAX as "block/attention/kernel"."""
    return jax.tree_util.keystr(path, simple=True, separator="/")


def _is_variable(node: Any) -> bool:
    nnx = sys.modules.get("flax.nnx")
    return nnx is not None and isinstance(node, nnx.Variable)


def leaves_of(params: Params, /) -> list[tuple[str, Any, Any]]:
    """(path, leaf, its `flax.nnx.Variable` or None); a variable's own "value" is no part of it."""
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
    """Refuse an array whose buffer JAX has given away.

    Raises:
        Refused: then, with its name.
    """
    if isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer) and leaf.is_deleted():
        raise Refused(
            f"{name} was deleted: a jitted function took it as a donated argument. Try the array "
            "that the function returned, or leave donate_argnums out"
        )


@dataclass(frozen=True)
class Sharing:
    """A pytree in which one Variable stands in several places, as tied weights do.

    Attributes:
        outer: the structure, with a Variable as a leaf.
        nodes: for each leaf of `outer` its own structure, and the first leaf that is the same.
    """

    outer: Any
    nodes: tuple[tuple[Any, int], ...]

    def once(self, leaves: list[Any], /) -> list[Any]:
        """The leaves of such a pytree without repetitions, from all of its leaves."""
        kept, left = [], iter(leaves)
        for i, (inner, first) in enumerate(self.nodes):
            own = [next(left) for _ in range(inner.num_leaves)]
            kept += own if first == i else []
        return kept

    def unflatten(self, leaves: list[Any], /) -> Any:
        """The pytree from its leaves without repetitions; the sharing is as it was."""
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
    """How Variables are shared in a pytree; None where each stands in one place."""
    nodes, outer = jax.tree.flatten(params, is_leaf=_is_variable)
    first: dict[int, int] = {}
    same = [first.setdefault(id(n), i) if _is_variable(n) else i for i, n in enumerate(nodes)]
    if same == list(range(len(nodes))):
        return None
    return Sharing(outer, tuple((jax.tree.structure(n), i) for n, i in zip(nodes, same)))
