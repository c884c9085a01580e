"""Convert a model's layers, from any library, to a network that the bounds cover, or say why not.

A model's parameters do not show its residual connections, masks and activations. The module finds
these parts if the caller gives the model's outputs, and otherwise lists the parts that the model
may have.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from jaxbounds.networks.own_network import Leaves, Reason
from jaxbounds.seqlength.extract_norms import ACTIVATIONS, AttentionNetwork, extract_network
from jaxbounds.seqlength.parameters import Layers, read_layers

DEAREST = "relu"
"""The activation that the bound assumes if the model's is unknown; no other supported activation
gives a larger bound."""

BLOCKS = (
    "keep one attention layer. For several, `multi_layer.terms_corrected` (Theorem 4.2, corrected)"
    " bounds the cover from norms alone: blocks sigma(attention) W_c with a projection onto the"
    " unit ball after each, without residual connections"
)
MOST = 243
"""The largest number of combinations of activations that `fold` tries (3^5 for five layers). A
larger number allows deeper networks and takes more time."""

DEEPEST = 12
"""The largest number of dense layers that `fold` sorts by their widths. A larger number makes the
function try more orders."""

AGREE = 1e-3
"""The relative difference up to which float32 outputs equal float64 outputs. A larger number
accepts networks that are no copy of the model."""


class Folded(NamedTuple):
    """The network, or the reasons against a bound.

    Attributes:
        network: the network, or None if the model does not fit.
        reasons: every reason why the model does not fit.
        unseen: parts without parameters that the model may have, for example residual connections.
    """

    network: AttentionNetwork | None
    reasons: tuple[Reason, ...]
    unseen: tuple[str, ...]


def _heads(model: Any, path: str) -> int | None:
    for name in filter(None, path.split("/")):
        try:
            model = model[int(name)] if name.isdigit() else getattr(model, name)
        except (AttributeError, IndexError, KeyError, TypeError):
            return None
    heads = getattr(model, "num_heads", None)
    return heads if isinstance(heads, int) else None


def _by_head(parts: dict[str, Leaves], heads: int) -> dict[str, Leaves]:
    cut = {}
    for name, part in parts.items():
        kernel, bias = part["kernel"], part.get("bias")
        if name == "out":
            cut[name] = part | {"kernel": kernel.reshape(heads, -1, kernel.shape[-1])}
        else:
            cut[name] = {"kernel": kernel.reshape(len(kernel), heads, -1)}
            cut[name] |= {} if bias is None else {"bias": bias.reshape(heads, -1)}
    return cut


def _orders(shapes: Mapping[str, tuple[int, ...]], width: int) -> tuple[tuple[str, ...], ...]:
    """List at most two orders in which each layer's output width is the next one's input width."""

    @cache
    def after(width: int, left: frozenset[str]) -> tuple[tuple[str, ...], ...]:
        if not left:
            return ((),)
        fit = (path for path in sorted(left) if shapes[path][0] == width)
        found = ((p, *rest) for p in fit for rest in after(shapes[p][1], left - {p}))
        return tuple(itertools.islice(found, 2))

    return after(width, frozenset(shapes))


def _widths(parts: dict[str, Leaves]) -> tuple[int, int]:
    query, out = parts["query"]["kernel"].shape, parts["out"]["kernel"].shape
    return query[0] if len(query) == 2 else query[-3], out[-1]


def _axes(parts: dict[str, Leaves]) -> int:
    """Count a projection's axes: 2 for a matrix, 3 with heads, 4 with heads and blocks."""
    return parts["query"]["kernel"].ndim


def _blocks(layers: Layers) -> list[Reason]:
    paths, reasons = tuple(layers.attention), []
    stacked = any(_axes(parts) > 3 for parts in layers.attention.values())
    if len(paths) > 1 or stacked:
        what = f"{len(paths)} attention layers" + ", with an axis for blocks" * stacked
        reasons.append(Reason(f"the model has more than one block: {what}", paths, BLOCKS))
    elif not paths:
        what = "the model has no attention with projections query, key, value and out"
        change = (
            "give a network with one attention layer; if its projections have other names, "
            "give them these names"
        )
        reasons.append(Reason(what, (), change))
    if not layers.dense:
        reasons.append(
            Reason("the model has no dense layer after the attention", (), "add a linear readout")
        )
    return reasons


def _traceless(layers: Layers, cls: int) -> tuple[str, ...]:
    seen = []
    for path, parts in layers.attention.items():
        takes, gives = _widths(parts)
        fits, does = ("possible", "keeps") if takes == gives else ("none", "changes")
        where = f"attention at {path or 'the top'}"
        seen.append(f"residual connections: {fits} around {where}, because it {does} the width")
    rest = "masks, dropout, positions that the model adds, layers used twice"
    return (*seen, rest, f"only the output at token {cls} is used")


def _order(layers: Layers, width: int) -> tuple[tuple[str, ...], list[Reason]]:
    """Return the only order of the dense layers that fits their widths, or reasons."""
    shapes = {path: layer["kernel"].shape for path, layer in layers.dense.items()}
    orders = _orders(shapes, width) if len(shapes) <= DEEPEST else ((), ())
    if len(orders) == 1:
        return orders[0], []
    sizes = tuple(f"{path} ({d} to {k})" for path, (d, k) in shapes.items())
    what = "the widths do not determine the order of the dense layers"
    change = 'give dense=[("path", "activation before it"), ...]'
    if not orders:
        what = f"no order of the dense layers fits the attention's width {width}"
        change = "leave out the layers before the attention, and give their outputs as X"
    return (), [Reason(what, sizes, change)]


def _matching(
    networks: Iterable[AttentionNetwork], X: np.ndarray, outputs: np.ndarray
) -> tuple[AttentionNetwork | None, float]:
    """Return the first network that reproduces `outputs` (or None), and its relative error."""
    least, scale = math.inf, max(float(np.abs(outputs).max()), 1e-300)
    for network in networks:
        found = network(X)
        if found.size == outputs.size:
            difference = float(np.abs(found - outputs.reshape(found.shape)).max()) / scale
            if difference <= AGREE:
                return network, difference
            least = min(least, difference)
    return None, least


def fold(
    model: Any,
    /,
    *,
    dense: Sequence[tuple[str, str]] = (),
    heads: int | None = None,
    cls: int = 0,
    X: np.ndarray | None = None,
    outputs: np.ndarray | None = None,
) -> Folded:
    """Convert a model of any library to attention and dense layers, or list reasons why not.

    Args:
        model: a pytree of parameters, or a module that is a pytree.
        dense: the paths of the dense layers in order, each with the activation before it. If
            `dense` is empty, the function infers the order of the dense layers from their widths.
        heads: the number of heads, needed if the projections are matrices and no module has
            `num_heads`.
        cls: the index of the output token that the network uses (the [CLS] token).
        X: the inputs of the attention layer, with shape (m, T, d).
        outputs: the model's own outputs on `X`. The function chooses the activations with which the
            network reproduces these outputs, up to a thousandth of the largest output.
    """
    layers = read_layers(model)
    if layers.reasons and not layers.reasons[0].paths:  # the model has no parameters
        return Folded(None, layers.reasons, ())
    reasons, unseen = [*layers.reasons, *_blocks(layers)], _traceless(layers, cls)
    order: tuple[str, ...] = ()
    if len(layers.attention) == 1:
        ((path, parts),) = layers.attention.items()
        takes, gives = _widths(parts)
        if _axes(parts) == 2:
            known = heads or _heads(model, path)
            if known and not any(part["kernel"].size % known for part in parts.values()):
                parts = _by_head(parts, known)
            else:
                what = (
                    f"heads={known} does not divide the sizes of the projections"
                    if known
                    else "the parameters do not show the number of heads"
                )
                reasons.append(Reason(what, (path,), "give heads=..."))
        if layers.dense and not dense:
            order, unclear = _order(layers, gives)
            reasons += unclear
        if X is not None and (X.ndim != 3 or X.shape[2] != takes):
            what = f"the inputs have shape {X.shape}, but the attention needs (m, T, {takes})"
            reasons.append(Reason(what, (path,), "give the tokens as vectors, after any embedding"))
    if reasons:
        return Folded(None, tuple(reasons), unseen)

    flat = {f"{path}/{name}/{leaf}": v for name, part in parts.items() for leaf, v in part.items()}
    flat |= {f"{p}/{leaf}": v for p, layer in layers.dense.items() for leaf, v in layer.items()}
    compared = (X, outputs) if X is not None and outputs is not None else None
    options: list[Sequence[tuple[str, str]]] = [dense or [(p, DEAREST) for p in order]]
    if compared and not dense:
        names = itertools.islice(itertools.product(ACTIVATIONS, repeat=len(order)), MOST)
        options = [[*zip(order, some)] for some in names]
    networks = (extract_network(flat, attention=path, dense=o, cls=cls) for o in options)
    try:
        if not compared:
            assumed = (
                ()
                if dense
                else (f"activations: taken as {DEAREST}, because its bound holds for all of them",)
            )
            return Folded(next(networks), (), (*unseen, *assumed))
        network, difference = _matching(networks, *compared)
    except ValueError as problem:
        return Folded(
            None, (Reason(str(problem), (), "give the argument that the reason names"),), unseen
        )
    if network:
        return Folded(network, (), ())
    by = f", by {difference:.2g} of the largest" if np.isfinite(difference) else " in shape"
    what = f"the given outputs differ from these layers' outputs{by}"
    change = (
        f"leave out {'; '.join(unseen[:-1])}; the possible activations are {', '.join(ACTIVATIONS)}"
    )
    return Folded(None, (Reason(what, (path, *layers.dense), change),), unseen)
