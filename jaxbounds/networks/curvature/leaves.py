"""Select the parameters of a pytree by path and by head, and convert them to a vector and back.

The functions take plain pytrees, linen variables, `flax.nnx` modules and states, and Equinox
modules. Leaves without real numbers (integers, booleans, keys, functions and others) are never
parameters; the functions hold them fixed. A `flax.nnx.Variable` that appears in several places of a
pytree is one parameter.
"""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.networks.curvature.filters import (
    Filter,
    is_mask,
    listed,
    masked,
    matches,
    nearest,
    said,
)
from jaxbounds.networks.curvature.paths import (
    Params,
    Sharing,
    leaves_of,
    refuse_deleted,
    sharing_of,
    text,
)
from jaxbounds.networks.options import whole


class Held:
    """A leaf that is not an array.

    All `Held` objects compare equal. If the leaf's value changes the loss, it changes the trace of
    the loss too, and the library compares traces separately.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held)


@dataclass(frozen=True)
class Selection:
    """The map from a pytree to its vector of parameters.

    The cache of compiled programs uses this map as a part of its keys.

    Attributes:
        structure: the structure of the pytree that the leaves come from.
        chosen: for each leaf that is a parameter, the tuple (path, shape, dtype of the computation,
            head axis or None); for each other leaf, None.
        static: a tuple with the leaf itself for each leaf that is not an array, and None for each
            array.
        heads: the number of heads if the vector holds the parameters of one head, else None.
        sharing: the Variables that appear in several places of the pytree; each Variable counts
            once in `chosen` and `static`. The value is None if no Variable is shared.
        places: for each leaf of the pytree, the paths of all its places.
    """

    structure: Any
    chosen: tuple[tuple[str, tuple[int, ...], Any, int | None] | None, ...]
    static: tuple[Held | None, ...]
    heads: int | None
    sharing: Sharing | None = None
    places: tuple[tuple[str, ...], ...] = ()

    def _leaves(self, params: Params) -> list[Any]:
        leaves = jax.tree.leaves(params)
        return leaves if self.sharing is None else self.sharing.once(leaves)

    def _unflatten(self, leaves: list[Any]) -> Params:
        if self.sharing is None:
            return jax.tree.unflatten(self.structure, leaves)
        return self.sharing.unflatten(leaves)

    @property
    def dtype(self) -> Any:
        """The dtype of the vector: the widest dtype of the selected leaves."""
        return max((leaf[2] for leaf in self.chosen if leaf), key=lambda dtype: dtype.itemsize)

    @property
    def size(self) -> int:
        """The number of parameters, or of one head's parameters if one head is selected."""
        return sum(math.prod(self._shape(leaf)) for leaf in self.chosen if leaf)

    @staticmethod
    def _shape(leaf: tuple) -> tuple[int, ...]:
        _, shape, _, axis = leaf
        return shape if axis is None else shape[:axis] + shape[axis + 1 :]

    def arrays(self, params: Params) -> tuple[list[Array], list[Array]]:
        """Return the parameters, in the dtypes of the computation, and the fixed arrays."""
        leaves = self._leaves(params)
        own = [jnp.asarray(x).astype(c[2]) for x, c in zip(leaves, self.chosen) if c]
        pairs = zip(leaves, self.chosen, self.static)
        return own, [jnp.asarray(x) for x, c, static in pairs if not c and static is None]

    def rebuilt(self, own: list[Any], fixed: list[Any]) -> Params:
        """Rebuild the pytree from its parameters `own` and its other arrays `fixed`."""
        own_left, fixed_left = iter(own), iter(fixed)
        leaves = [
            next(own_left) if chosen else next(fixed_left) if static is None else static.value
            for chosen, static in zip(self.chosen, self.static)
        ]
        return self._unflatten(leaves)

    def flat(self, params: Params) -> list[Any]:
        """Return the arrays of a pytree with this structure, the parameters first."""
        leaves = self._leaves(params)
        own = [x for x, chosen in zip(leaves, self.chosen) if chosen]
        pairs = zip(leaves, self.chosen, self.static)
        return [*own, *(x for x, chosen, static in pairs if not chosen and static is None)]

    def vector(self, own: list[Array], head: Array | None = None) -> Float[Array, " n"]:
        """Return the vector of all parameters, or of one head's parameters."""
        pieces = []
        for leaf, (_, _, _, axis) in zip(own, filter(None, self.chosen)):
            if axis is not None:
                leaf = jax.lax.dynamic_index_in_dim(leaf, head, axis, keepdims=False)
            pieces.append(leaf.ravel().astype(self.dtype))
        return jnp.concatenate(pieces)

    def pieces(self, vector: Float[Array, " n"]) -> list[Array]:
        """Cut a vector into arrays shaped like the leaves, or like their slices of one head."""
        shapes = [self._shape(leaf) for leaf in self.chosen if leaf]
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        return [x.reshape(shape) for x, shape in zip(jnp.split(vector, ends), shapes)]

    def params(
        self, vector: Array, own: list[Array], fixed: list[Array], head: Array | None = None
    ) -> Params:
        """Return the pytree whose parameters are the numbers of the vector."""
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
        return self._unflatten(leaves)

    def tree(self, vector: Array, head: Array | int | None = None) -> Params:
        """Return a vector as a pytree: None for fixed leaves, 0 for all heads except `head`."""
        return self.tree_of(self.pieces(vector), head)

    def tree_of(self, pieces: list[Array], head: Array | int | None = None) -> Params:
        """Return the same pytree as `tree`, from the list of arrays that `pieces` returned."""
        left = iter(pieces)
        leaves: list[Any] = []
        for leaf in self.chosen:
            if leaf is None:
                leaves.append(None)
                continue
            _, shape, _, axis = leaf
            piece = next(left)
            if axis is not None:
                zero = jnp.zeros(shape, piece.dtype)
                piece = jax.lax.dynamic_update_index_in_dim(zero, piece, head, axis)
            leaves.append(piece)
        return self._unflatten(leaves)

    def vector_of(self, tree: Params, /) -> Float[Array, " n"]:
        """Flatten a pytree like the parameters to a vector, without the entries of fixed leaves.

        The function finds leaves by path, so `tree` may be a module or the module's state.

        Raises:
            Refused: if a parameter is missing, has another shape, or is not an array of real
                numbers; if the pytree has a leaf that the parameters lack.
        """
        given: dict[str, Any] = {}
        for path, leaf, _ in leaves_of(tree):
            if path in given:
                raise Refused(
                    f"two leaves of the pytree have path={path!r}, expected a different path for "
                    f"each leaf. Try other keys"
                )
            given[path] = leaf
        wanted = [entry[0] for entry in self.chosen if entry]
        missing = [path for path in wanted if path not in given]
        known = {path for place in self.places for path in place}
        odd = [path for path in given if path not in known]
        if missing or odd:
            lack = f"lacks {listed(missing)}" if missing else ""
            more = f"has {listed(odd)}, which no parameter is called" if odd else ""
            told = " and ".join(part for part in (lack, more) if part)
            raise Refused(
                f"the pytree v={type(tree).__name__} must have the leaves of the parameters, but "
                f"it {told}. Try jax.tree.map over the parameters to make v"
            )
        own = []
        places = (place for place, entry in zip(self.places, self.chosen) if entry)
        for place, (path, shape, dtype, _) in zip(places, filter(None, self.chosen)):
            leaf = given[path]
            if not is_real(leaf) and not isinstance(leaf, jax.core.Tracer):
                kind = getattr(leaf, "dtype", type(leaf).__name__)
                raise Refused(
                    f"the leaf {path!r} of the pytree is {kind}, expected an array of real "
                    "numbers. Try to convert it"
                )
            if tuple(leaf.shape) != shape:
                raise Refused(
                    f"the leaf {path!r} of the pytree has shape={tuple(leaf.shape)}, expected "
                    f"{shape}, the shape of the parameter. Try jax.tree.map over the parameters to "
                    "make the pytree"
                )
            for other in place:
                _refuse_unequal(path, leaf, other, given.get(other, leaf))
            own.append(jnp.asarray(leaf).astype(dtype))
        return self.vector(own)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | np.generic) and (
        not isinstance(leaf, np.ndarray | np.generic) or leaf.dtype.kind in "biufcV"
    )


def is_real(leaf: Any, /) -> bool:
    """Return whether a leaf is an array of real or complex numbers."""
    return _is_array(leaf) and jnp.issubdtype(leaf.dtype, jnp.inexact)


def _refuse_modules(params: Params) -> None:
    flax = sys.modules.get("flax.linen")
    if flax is not None and isinstance(params, flax.Module):
        raise Refused(
            f"params has type={type(params).__name__}, a linen module, which holds no parameters. "
            "Try the variables that the module's init returned"
        )


def _linen_state(params: Params) -> tuple[str, ...]:
    beside = isinstance(params, Mapping) and "params" in params
    return ("batch_stats", "cache", "intermediates", "perturbations") if beside else ()


def _optimizer_leaves(params: Params) -> frozenset[str]:
    of_optax = lambda x: type(x).__module__.split(".")[0] == "optax"
    found = set[str]()
    for path, node in jax.tree_util.tree_flatten_with_path(params, is_leaf=of_optax)[0]:
        if of_optax(node):
            inner = jax.tree_util.tree_flatten_with_path(node)[0]
            found.update(text((*path, *rest)) for rest, _ in inner)
    return frozenset(found)


def _refuse_unequal(path: str, leaf: Any, other: str, second: Any) -> None:
    """Refuse two different values of one parameter; traced values are not compared."""
    seen = not isinstance(leaf, jax.core.Tracer) and not isinstance(second, jax.core.Tracer)
    if second is not leaf and seen and not np.array_equal(leaf, second, equal_nan=True):
        raise Refused(
            f"path={path!r} and path={other!r} are one shared parameter, but the pytree has "
            "different values there. Try equal values in both places"
        )


def select(
    params: Params,
    filter: Filter | None = None,
    *,
    heads: Mapping[str, int] | None = None,
) -> Selection:
    """Select the leaves with respect to which the loss is differentiated.

    Args:
        params: any pytree.
        filter: a filter that selects leaves of real numbers; the default selects all leaves of real
            numbers. A filter selects only variables of kind `nnx.Param` among `flax.nnx` variables,
            unless the filter itself is a kind of variable. A filter never selects linen collections
            other than "params" (batch_stats, cache, intermediates, perturbations), nor the optax
            state of a `TrainState`. If a shared Variable has several places in the pytree, a filter
            that selects one place selects the Variable.
        heads: a mapping from a pattern of paths to the axis that runs over the heads. If `heads` is
            given, the vector holds the parameters of one head, and leaves that no pattern selects
            are held fixed.

    Raises:
        Refused: if no leaf is left, a selected leaf is complex or deleted, leaves have different
            numbers of heads, or the filter is of another type.
    """
    _refuse_modules(params)
    if heads is not None and not isinstance(heads, Mapping):
        raise Refused(
            "heads must be a dict from patterns of paths to the axis of the heads, got "
            f"heads={heads!r}. Try head_axes(params), which finds the axes of Flax's attention"
        )
    mask = masked(filter, params) if filter is not None and is_mask(filter) else None
    found, sharing = leaves_of(params), sharing_of(params)
    every = list(range(len(found)))
    owners = every if sharing is None else sharing.once(every)
    places = _places(found, sharing)
    state, beside = _optimizer_leaves(params), _linen_state(params)
    trained = lambda path: path.split("/")[0] not in beside and path not in state
    nnx = sys.modules.get("flax.nnx")
    usual = lambda variable: variable is None or isinstance(variable, nnx.Param)  # type: ignore

    def wanted(index: int, path: str, variable: Any) -> bool:
        if mask is not None:
            return mask[index] and usual(variable)
        if filter is None or not isinstance(filter, type):
            return usual(variable) and (filter is None or matches(filter, path, variable))
        return matches(filter, path, variable)

    chosen, static, real = [], [], []
    for index, paths in zip(owners, places):
        path, leaf, variable = found[index]
        refuse_deleted(repr(path), leaf)
        able = is_real(leaf) and trained(path)
        real += [path] * able
        axis = None if heads is None else _axis(heads, paths)
        taken = able and (heads is None or axis is not None)
        taken = taken and any(wanted(i, p, variable) for i, p in paths.items())
        chosen.append(_entry(path, leaf, axis) if taken else None)
        static.append(None if taken or _is_array(leaf) else Held(leaf))
    if not real:
        raise Refused(
            f"params has type={type(params).__name__} with {len(found)} leaves, but no array of "
            "real numbers to differentiate. Try jnp.asarray of Python numbers, which are held fixed"
        )
    if not any(chosen):
        if mask is not None:
            raise Refused(
                f"filter has type={type(filter).__name__}, a mask that selects no parameter. Try "
                f"True for one of {listed(real)}"
            )
        asked = list(heads or ()) if filter is None else filter
        option = "heads" if filter is None else "filter"
        asked = asked[0] if isinstance(asked, list) and len(asked) == 1 else asked
        hint = " (a function gets the path of a leaf)" if callable(asked) else ""
        raise Refused(
            f"no parameter matches {option}={said(asked)}{hint}; {nearest(asked, real)}. Try one "
            "of the listed paths"
        )
    counts = {e[1][e[3]]: e[0] for e in chosen if e and e[3] is not None}
    if len(counts) > 1:
        told = ", ".join(f"{count} in {path}" for count, path in counts.items())
        raise Refused(
            f"all arrays that heads= selects must have equal numbers of heads, got {told}. Try "
            f"patterns in heads= that match a single part of the network"
        )
    return Selection(
        jax.tree.structure(params), tuple(chosen), tuple(static), next(iter(counts), None),
        sharing, tuple(tuple(paths.values()) for paths in places),
    )  # fmt: skip


def _places(found: list, sharing: Sharing | None) -> list[dict[int, str]]:
    paths = [path for path, _, _ in found]
    if sharing is None:
        return [{i: path} for i, path in enumerate(paths)]
    starts, start = [], 0
    for inner, _ in sharing.nodes:
        starts.append(start)
        start += inner.num_leaves
    gathered: dict[int, dict[int, str]] = {}
    for (inner, first), own in zip(sharing.nodes, starts):
        for k in range(inner.num_leaves):
            gathered.setdefault(starts[first] + k, {})[own + k] = paths[own + k]
    return list(gathered.values())


def _axis(heads: Mapping[str, int], paths: Mapping[int, str]) -> int | None:
    found: dict[str, int] = {}
    for path in paths.values():
        for axis in [axis for pattern, axis in heads.items() if matches(pattern, path)][:1]:
            found[path] = axis
    if len(set(found.values())) > 1:
        told = ", ".join(f"axis {axis} at {path}" for path, axis in found.items())
        raise Refused(
            f"heads={dict(heads)!r} gives one shared parameter different axes of heads: {told}. "
            "Try one pattern for this parameter"
        )
    return next(iter(found.values()), None)


def _entry(path: str, leaf: Any, axis: int | None) -> tuple:
    dtype = jnp.asarray(leaf).dtype
    if jnp.issubdtype(dtype, jnp.complexfloating):
        raise Refused(
            f"{path} is complex, with dtype={dtype}, expected real numbers. Try its real and "
            "imaginary parts as two leaves, or a filter that leaves the leaf out"
        )
    if axis is not None:
        whole(f"the axis of {path}", axis, least=None)
        if not -leaf.ndim <= axis < leaf.ndim:
            raise Refused(
                f"{path} has shape={leaf.shape}, which has no axis={axis} for the heads. Try "
                "axis=0 in heads="
            )
        axis %= leaf.ndim
    # bfloat16 and float16 leaves are computed in float32, since their own precision gives only
    # noise.
    wide = dtype if dtype.itemsize >= 4 else jnp.dtype(jnp.float32)
    return path, tuple(leaf.shape), wide, axis
