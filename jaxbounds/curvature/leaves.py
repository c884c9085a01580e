"""Which leaves of a pytree are parameters: inexact ones, by path, by head; as one vector and back.

Works on plain pytrees, linen variables, `flax.nnx` modules and states, and Equinox modules.
Integers, booleans, keys, functions and whatever else is no array of real numbers are held fixed.
"""

import difflib
import fnmatch
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Params = Any
Filter = str | type | Sequence[str] | Callable[[str], bool]
"""Which parameters: a part of their path or a pattern ("attention", "block_*/kernel"), several of
these, a function of the path, or a kind of `flax.nnx.Variable`."""


class Held:
    """A leaf that is no array; equal to any other, as it says nothing that a trace does not."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held)


@dataclass(frozen=True)
class Selection:
    """How a pytree becomes a vector of parameters; hashable, so that a program can depend on it.

    Attributes:
        structure: of the pytree.
        chosen: (path, shape, dtype to compute in, head axis or None), for each leaf None if fixed.
        static: for each leaf that is no array itself, else None.
        heads: how many; None unless the vector is of one head.
    """

    structure: Any
    chosen: tuple[tuple[str, tuple[int, ...], Any, int | None] | None, ...]
    static: tuple[Held | None, ...]
    heads: int | None

    @property
    def dtype(self) -> Any:
        """Of the vector."""
        return max((leaf[2] for leaf in self.chosen if leaf), key=lambda dtype: dtype.itemsize)

    @property
    def size(self) -> int:
        """Of the vector: of one head where it is of one head."""
        return sum(math.prod(self._shape(leaf)) for leaf in self.chosen if leaf)

    @staticmethod
    def _shape(leaf: tuple) -> tuple[int, ...]:
        _, shape, _, axis = leaf
        return shape if axis is None else shape[:axis] + shape[axis + 1 :]

    def arrays(self, params: Params) -> tuple[list[Array], list[Array]]:
        """The parameters in the precision that computes, and the fixed arrays."""
        leaves = jax.tree.leaves(params)
        own = [jnp.asarray(x).astype(c[2]) for x, c in zip(leaves, self.chosen) if c]
        pairs = zip(leaves, self.chosen, self.static)
        return own, [jnp.asarray(x) for x, c, static in pairs if not c and static is None]

    def rebuilt(self, own: list[Any], fixed: list[Any]) -> Params:
        """The pytree from what `arrays` gave."""
        own_left, fixed_left = iter(own), iter(fixed)
        leaves = (
            next(own_left) if chosen else next(fixed_left) if static is None else static.value
            for chosen, static in zip(self.chosen, self.static)
        )
        return jax.tree.unflatten(self.structure, leaves)

    def flat(self, params: Params) -> list[Any]:
        """The arrays of such a pytree, the parameters first."""
        leaves = jax.tree.leaves(params)
        own = [x for x, chosen in zip(leaves, self.chosen) if chosen]
        pairs = zip(leaves, self.chosen, self.static)
        return [*own, *(x for x, chosen, static in pairs if not chosen and static is None)]

    def vector(self, own: list[Array], head: Array | None = None) -> Float[Array, " n"]:
        """The vector of the parameters, or of those of one head."""
        pieces = []
        for leaf, (_, _, _, axis) in zip(own, filter(None, self.chosen)):
            if axis is not None:
                leaf = jax.lax.dynamic_index_in_dim(leaf, head, axis, keepdims=False)
            pieces.append(leaf.ravel().astype(self.dtype))
        return jnp.concatenate(pieces)

    def pieces(self, vector: Float[Array, " n"]) -> list[Array]:
        """The vector cut and shaped like the leaves, or like their slices of one head."""
        shapes = [self._shape(leaf) for leaf in self.chosen if leaf]
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        return [x.reshape(shape) for x, shape in zip(jnp.split(vector, ends), shapes)]

    def params(
        self, vector: Array, own: list[Array], fixed: list[Array], head: Array | None = None
    ) -> Params:
        """The pytree with the vector's numbers in their places."""
        pieces, own_left, fixed_left = iter(self.pieces(vector)), iter(own), iter(fixed)
        leaves: list[Any] = []
        for leaf, static in zip(self.chosen, self.static):
            if leaf is None:
                leaves.append(next(fixed_left) if static is None else static.value)
                continue
            _, _, dtype, axis = leaf
            piece, old = next(pieces).astype(dtype), next(own_left)
            if axis is not None:
                piece = jax.lax.dynamic_update_index_in_dim(old, piece, head, axis)
            leaves.append(piece)
        return jax.tree.unflatten(self.structure, leaves)

    def tree(self, vector: Array, head: Array | None = None) -> Params:
        """The vector as a pytree with None in the place of fixed leaves; zero in other heads."""
        pieces = iter(self.pieces(vector))
        leaves: list[Any] = []
        for leaf in self.chosen:
            if leaf is None:
                leaves.append(None)
                continue
            _, shape, _, axis = leaf
            piece = next(pieces)
            if axis is not None:
                zero = jnp.zeros(shape, piece.dtype)
                piece = jax.lax.dynamic_update_index_in_dim(zero, piece, head, axis)
            leaves.append(piece)
        return jax.tree.unflatten(self.structure, leaves)


def _text(path: tuple) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")


def _variables(params: Params) -> list[Any]:
    """For each leaf the `flax.nnx.Variable` that holds it, or None."""
    nnx = sys.modules.get("flax.nnx")
    if nnx is None:
        return [None] * len(jax.tree.leaves(params))
    found: list[Any] = []
    stop = lambda x: isinstance(x, nnx.Variable)
    for node in jax.tree.leaves(params, is_leaf=stop):
        held = node if stop(node) else None
        found += [held] * len(jax.tree.leaves(node))
    return found


def _leaves(params: Params) -> list[tuple[str, Any, Any]]:
    """(path, leaf, its `flax.nnx.Variable` or None); a variable's own "value" is no part of it."""
    found = jax.tree_util.tree_flatten_with_path(params)[0]
    return [
        (_text(path) if variable is None else _text(path[:-1]), leaf, variable)
        for (path, leaf), variable in zip(found, _variables(params))
    ]


def matches(pattern: Filter, path: str, variable: Any = None) -> bool:
    """Whether a filter takes the leaf at `path`, held by that `flax.nnx.Variable` if any."""
    if isinstance(pattern, type):
        return isinstance(variable, pattern)
    if isinstance(pattern, str):
        exact = any(c in pattern for c in "*?[")
        return fnmatch.fnmatchcase(path, pattern if exact else f"*{pattern}*")
    if callable(pattern):
        return bool(pattern(path))
    return any(matches(one, path, variable) for one in pattern)


def _said(pattern: Any) -> str:
    return getattr(pattern, "__name__", repr(pattern))


def _nearest(pattern: Any, paths: Sequence[str]) -> str:
    """The paths that somebody may have meant."""
    wanted = pattern if isinstance(pattern, str) else ""
    names = {part for path in paths for part in (path, *path.split("/"))}
    close = difflib.get_close_matches(wanted.strip("*"), sorted(names), n=3, cutoff=0.4)
    those = close or list(paths)[:3]
    more = f" and {len(paths) - 3} more" if not close and len(paths) > 3 else ""
    return ("nearest: " if close else "there are: ") + ", ".join(those) + more


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | np.generic) and (
        not isinstance(leaf, np.ndarray | np.generic) or leaf.dtype.kind in "biufcV"
    )


def _is_real(leaf: Any) -> bool:
    return _is_array(leaf) and jnp.issubdtype(leaf.dtype, jnp.inexact)


def _refuse_modules(params: Params) -> None:
    flax = sys.modules.get("flax.linen")
    if flax is not None and isinstance(params, flax.Module):
        raise ValueError(
            f"params is the linen module {type(params).__name__}, which holds no parameters: give "
            "what its init returned"
        )


def _linen_state(params: Params) -> tuple[str, ...]:
    """The collections of linen variables that are not trained: those beside "params"."""
    beside = isinstance(params, Mapping) and "params" in params
    return ("batch_stats", "cache", "intermediates", "perturbations") if beside else ()


def _optimizer_leaves(params: Params) -> frozenset[str]:
    """The paths of what optax keeps: moments and counts of an optimiser are no parameters."""
    of_optax = lambda x: type(x).__module__.split(".")[0] == "optax"
    found = set[str]()
    for path, node in jax.tree_util.tree_flatten_with_path(params, is_leaf=of_optax)[0]:
        if of_optax(node):
            inner = jax.tree_util.tree_flatten_with_path(node)[0]
            found.update(_text((*path, *rest)) for rest, _ in inner)
    return frozenset(found)


def select(
    params: Params,
    filter: Filter | None = None,
    *,
    heads: Mapping[str, int] | None = None,
) -> Selection:
    """Which leaves are differentiated.

    Args:
        params: any pytree.
        filter: which inexact leaves; all unless given. Of `flax.nnx` variables only the `nnx.Param`
            unless it is a kind of variable itself; of linen variables not what lies beside
            "params" (batch_stats, cache, intermediates, perturbations); never the state of an
            optax optimiser, as a `TrainState` holds it.
        heads: the axis of the heads for each pattern of a path; the vector is then of one head, and
            leaves that no pattern takes are held fixed.

    Raises:
        ValueError: if no leaf is left, a chosen one is complex, or leaves differ in their heads.
    """
    _refuse_modules(params)
    if heads is not None and not isinstance(heads, Mapping):
        raise ValueError(
            "heads must give the axis of the heads for each pattern of a path, as "
            f"head_axes(params) does for Flax's attention, got {heads!r}"
        )
    found, structure = _leaves(params), jax.tree.structure(params)
    paths, leaves, variables = ([entry[i] for entry in found] for i in range(3))
    state = _optimizer_leaves(params)
    trained = lambda path: path.split("/")[0] not in _linen_state(params) and path not in state
    real = [path for path, leaf in zip(paths, leaves) if _is_real(leaf) and trained(path)]
    if not real:
        raise ValueError(
            f"params has no leaf of real numbers among its {len(leaves)}: there is nothing to "
            "differentiate (Python numbers are held fixed: make them arrays)"
        )
    nnx = sys.modules.get("flax.nnx")
    usual = lambda variable: variable is None or isinstance(variable, nnx.Param)  # type: ignore
    axes = [None if heads is None else _axis(heads, path) for path in paths]
    chosen = []
    for path, leaf, variable, axis in zip(paths, leaves, variables, axes):
        taken = path in real and (heads is None or axis is not None)
        if taken:
            by_kind = isinstance(filter, type)
            taken = (by_kind or usual(variable)) and (
                filter is None or matches(filter, path, variable)
            )
        chosen.append(_entry(path, leaf, axis) if taken else None)
    if not any(chosen):
        wanted = list(heads or ()) if filter is None else filter
        wanted = wanted[0] if isinstance(wanted, list) and len(wanted) == 1 else wanted
        raise ValueError(f"no parameter matches {_said(wanted)}; {_nearest(wanted, real)}")
    counts = {e[1][e[3]]: e[0] for e in chosen if e and e[3] is not None}
    if len(counts) > 1:
        said = ", ".join(f"{count} in {path}" for count, path in counts.items())
        raise ValueError(f"the leaves must have the same number of heads, got {said}")
    static = tuple(None if c or _is_array(leaf) else Held(leaf) for leaf, c in zip(leaves, chosen))
    return Selection(structure, tuple(chosen), static, next(iter(counts), None))


def _axis(heads: Mapping[str, int], path: str) -> int | None:
    return next((axis for pattern, axis in heads.items() if matches(pattern, path)), None)


def _entry(path: str, leaf: Any, axis: int | None) -> tuple:
    """A chosen leaf as `Selection.chosen` has it."""
    dtype = jnp.asarray(leaf).dtype
    if jnp.issubdtype(dtype, jnp.complexfloating):
        raise ValueError(f"{path} is complex: split it into real and imaginary parts, or filter it")
    if axis is not None:
        if not -leaf.ndim <= axis < leaf.ndim:
            raise ValueError(f"{path} of shape {leaf.shape} has no axis {axis} for its heads")
        axis %= leaf.ndim
    # bfloat16 and float16 are computed in float32: their curvature is rounding noise.
    wide = dtype if dtype.itemsize >= 4 else jnp.dtype(jnp.float32)
    return path, tuple(leaf.shape), wide, axis


def shares(vector: Params, /, *, depth: int | None = None) -> dict[str, float]:
    """The part of a direction's squared norm in each leaf, or in each layer, the largest first.

    Args:
        vector: a pytree like `Extremes.vector_minimum`.
        depth: how many names of the path make a layer; whole paths unless given.
    """
    found: dict[str, float] = {}
    for path, leaf, _ in _leaves(vector):
        name = "/".join(path.split("/")[:depth])
        found[name] = found.get(name, 0.0) + float(jnp.sum(jnp.asarray(leaf, float) ** 2))
    total = sum(found.values()) or 1.0
    ordered = sorted(found.items(), key=lambda pair: -pair[1])
    return {name: part / total for name, part in ordered}


def head_shares(vector: Params, heads: Mapping[str, int], /) -> Float[Array, " H"]:
    """The part of a direction's squared norm in each head; the rest lies outside of them.

    Args:
        vector: a pytree like `Extremes.vector_minimum`.
        heads: the axis of the heads for each pattern of a path.

    Raises:
        ValueError: as `select`.
    """
    selection = select(vector, heads=heads)
    own, _ = selection.arrays(vector)
    entries = [leaf for leaf in selection.chosen if leaf]
    per_head = [
        jnp.sum(jnp.moveaxis(leaf, axis, 0).reshape(leaf.shape[axis], -1) ** 2, axis=1)
        for leaf, (_, _, _, axis) in zip(own, entries)
        if axis is not None
    ]
    total = sum(jnp.sum(leaf.astype(selection.dtype) ** 2) for leaf in _reals(vector))
    return sum(part.astype(selection.dtype) for part in per_head) / jnp.where(total > 0, total, 1)


def _reals(tree: Params) -> list[Array]:
    return [jnp.asarray(leaf) for leaf in jax.tree.leaves(tree) if _is_real(leaf)]


def head_axes(params: Params, /) -> dict[str, int]:
    """The axes of the heads in Flax's attention (linen and nnx), for `heads=`.

    Their query, key and value have kernels (features, H, d) and biases (H, d), and the output a
    kernel (H, d, features).

    Raises:
        ValueError: if there is no such attention.
    """
    found: dict[str, int] = {}
    for path, leaf, _ in _leaves(params):
        *_, layer, kind = ("", *path.split("/"))
        rank = getattr(leaf, "ndim", 0)
        if layer in ("query", "key", "value") and (kind, rank) in (("kernel", 3), ("bias", 2)):
            found[path] = rank - 2
        elif (layer, kind, rank) == ("out", "kernel", 3):
            found[path] = 0
    if not found:
        raise ValueError(
            "no attention with kernels (features, H, d) named query, key, value, out was found: "
            "give heads={path pattern: axis}"
        )
    return found
