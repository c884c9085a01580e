"""Parameters of any library, sorted into attention, dense layers, and parameters without a bound.

The module recognises each layer of a pytree from the names and shapes of its arrays. An attention
has the projections query, key, value and output. A dense layer has a matrix, and may have a bias.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.networks.own_network import Leaves, Reason, holds, leaves_by_path


class Layers(NamedTuple):
    """The parameters of a model, sorted into attention layers, dense layers and other parameters.

    Attributes:
        attention: for each path, the projections "query", "key", "value" and "out", each a dict
            with "kernel" and possibly "bias".
        dense: for each path, a "kernel" of shape (inputs, outputs) and possibly a "bias".
        reasons: for every other parameter, a reason why the bounds do not cover it.
    """

    attention: dict[str, dict[str, Leaves]]
    dense: dict[str, Leaves]
    reasons: tuple[Reason, ...]


_PROJECTIONS = {
    name: whole
    for whole, names in {
        "query": ("query", "q"),
        "key": ("key", "k"),
        "value": ("value", "v"),
        "out": ("out", "output", "o"),
    }.items()
    for name in names
}
_FUSED = ("qkv", "c_attn", "in_proj", "query_key_value")
_MATRIX, _SCALE = ("kernel", "weight", "w"), ("scale", "weight", "gamma")
_NORMALISATION = {*_SCALE, "bias", "beta", "mean", "var"}

NORMALISED = (
    "train without this normalisation: Appendix C has no step for it, because it multiplies "
    "distances by up to 1 / sqrt(its epsilon); the paper's own normalisation, onto the unit ball, "
    "has no parameters"
)
EMBEDDED = (
    "leave the embedding out, and give its outputs as X; the embedding must be fixed beforehand"
)
SPLIT = "split the matrix into query, key, value (d, heads, d_k) and out (heads, d_k, d)"
UNKNOWN = (
    "only attention (query, key, value, out) and dense layers (kernel or weight, bias) are "
    "mapped: leave out leaves that the output does not use, or fold the leaves into attention or "
    "a dense layer"
)


def _modules(leaves: Leaves) -> dict[str, Leaves]:
    modules: dict[str, Leaves] = {}
    for path, leaf in leaves.items():
        parent, _, name = path.rpartition("/")
        modules.setdefault(parent, {})[name] = leaf
    return modules


def _in_flax_layout(module: Leaves) -> Leaves:
    matrix = next(name for name in _MATRIX if name in module)
    kernel = np.asarray(module[matrix], np.float64)
    bias = next((module[name] for name in ("bias", "b") if module.get(name) is not None), None)
    found = {"kernel": kernel.T if matrix == "weight" else kernel}
    return found if bias is None else found | {"bias": np.asarray(bias, np.float64)}


def _is_layer(module: Leaves) -> bool:
    return any(
        name in module and module[name].ndim >= 2 and set(module) <= {name, "bias", "b"}
        for name in _MATRIX
    )


def _attention(modules: Mapping[str, Leaves]) -> Iterator[tuple[str, dict[str, str]]]:
    held: dict[str, dict[str, str]] = {}
    for path, module in modules.items():
        parent, _, name = path.rpartition("/")
        whole = _PROJECTIONS.get(name.removesuffix("_proj"))
        if whole and _is_layer(module):
            held.setdefault(parent, {})[whole] = path
    return ((parent, parts) for parent, parts in held.items() if len(parts) == 4)


def read_layers(tree: Any, /) -> Layers:
    """Sort a model's parameters into layers, with a reason for each parameter in none."""
    reasons: list[Reason] = []

    def refuse(what: str, paths: list[str], change: str) -> None:
        if paths:
            reasons.append(Reason(what, tuple(paths), change))

    every = leaves_by_path(tree)
    leaves = {path: leaf for path, leaf in every.items() if holds(leaf, jnp.floating)}
    shapes = [path for path, leaf in leaves.items() if isinstance(leaf, jax.ShapeDtypeStruct)]
    refuse("the parameters are shapes without values", shapes, "give the trained parameters")
    leaves |= {path: np.broadcast_to(0.0, leaves[path].shape) for path in shapes}
    if not leaves:
        what = f"no parameters in a model of type {type(tree).__name__}"
        change = "give a pytree of arrays: variables of linen, a module of nnx, an Equinox module"
        return Layers({}, {}, (Reason(what, (), change),))
    wild = [p for p, leaf in leaves.items() if not np.isfinite(np.asarray(leaf, np.float64)).all()]
    refuse(
        "some values are NaN or infinite", wild, "train again, because no norm bounds such values"
    )

    modules = _modules(leaves)
    attention = dict(_attention(modules))
    taken = {path for parts in attention.values() for path in parts.values()}
    sorted_out: dict[str, list[str]] = {"norm": [], "embedding": [], "fused": [], "dense": []}
    unknown = [path for path in every if path not in leaves]
    for path, module in modules.items():
        last = path.rpartition("/")[2].lower()
        named = [path + "/" * bool(path) + name for name in module]
        if path in taken:
            continue
        if any("embed" in name.lower() for name in (last, *module)):
            sorted_out["embedding"] += named
        elif any(word in name.lower() for word in _FUSED for name in (last, *module)):
            sorted_out["fused"] += named
        elif set(module) <= _NORMALISATION and all(leaf.ndim == 1 for leaf in module.values()):
            sorted_out["norm"].append(path or "the top")
        elif _is_layer(module) and max(leaf.ndim for leaf in module.values()) == 2:
            sorted_out["dense"].append(path)
        else:
            unknown += named
    kinds = "LayerNorm, RMSNorm or BatchNorm: each coordinate has its own scale"
    refuse(kinds, sorted_out["norm"], NORMALISED)
    refuse("the model contains embeddings", sorted_out["embedding"], EMBEDDED)
    refuse("one matrix contains query, key and value", sorted_out["fused"], SPLIT)
    refuse("some leaves belong to no attention or dense layer", unknown, UNKNOWN)
    read = lambda path: _in_flax_layout(modules[path])
    return Layers(
        {path: {n: read(part) for n, part in parts.items()} for path, parts in attention.items()},
        {path: read(path) for path in sorted_out["dense"]},
        tuple(reasons),
    )
