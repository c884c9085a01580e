"""The nonzero structure of a compiled network: copies, small products, look-ups.

A layer copies most groups of coordinates, and computes a few groups from a few others. Its
attention compares position codes of n bits. A key's score is n if the key equals the query, and at
most n - 2 otherwise; the null key has the score n - 1. Hard attention therefore finds the keys that
equal the query, else the null key.
"""

from typing import Any, NamedTuple

import numpy as np

from jaxbounds.smapprox.correction import Correction
from jaxbounds.smapprox.layers import Layer
from jaxbounds.smapprox.layout import Layout

ENTERS, LEAVES = ("st", "sym1", "pos1", "pos2"), ("st", "sym1", "pos2")
"""The coordinate groups that are nonzero before the first layer, and those after the last layer."""


class LookUp(NamedTuple):
    """Hard attention that finds the keys with a given cell and given leading bits of the timestep.

    Attributes:
        past: whether the keys are past steps; if not, they are input positions.
        cell: the group that holds the cell to look for.
        prefix: the group whose leading bits must equal those of the key's timestep; "" for no
            condition.
        known: the number of leading bits of `prefix` that must be equal.
        asks: whether the bit after these leading bits must be 1 in the key's timestep.
        flag: the coordinate of scr4 that becomes one if a key is found; -1 if there is no flag.
        copied: the group that is copied from the key found; "" if no group is copied.
        target: the group into which the layer copies the group `copied`.
    """

    past: bool
    cell: str
    prefix: str
    known: int
    asks: bool
    flag: int
    copied: str
    target: str


class SparseLayer(NamedTuple):
    """The nonzero weights of a layer, grouped by what they compute.

    A coordinate group that the layer neither copies nor computes is 0 in the layer's output.

    Attributes:
        look_ups: the attentions of the layer, in the order in which the layer applies them.
        copies: the coordinate groups that the layer copies without change.
        computed: the groups that the layer computes together, as relu(W h + b) and a correction.
        sources: the groups that form h in relu(W h + b).
    """

    look_ups: tuple[LookUp, ...]
    copies: tuple[str, ...]
    computed: tuple[str, ...]
    sources: tuple[str, ...]


class Structure(NamedTuple):
    """A compiled network without its zero weights; the object is hashable."""

    layout: Layout
    layers: tuple[SparseLayer, ...]
    correction: Correction | None


class _Unlike(Exception):
    """An error inside `read`: the weights do not have the structure that the compiler builds."""


def read(
    params: Any, layout: Layout, correction: Correction | None, /, *, T: int
) -> Structure | None:
    """Return the structure of a compiled network's weights, or None for any other weights.

    The result is also None if the position codes repeat within T steps, so that several keys match.

    Args:
        params: weights for `transformer.run`, as NumPy arrays.
        layout: the names of the coordinates.
        correction: the rounding after every layer, or None.
        T: the number of simulated steps.
    """
    try:
        _require(2**layout.bits > T)
        _require(_groups(layout, params["start"]) <= {"st", "sym1"})
        # W1 and b1 hold whole numbers, so that the sums of bits are exact
        _require(all((w == np.rint(w)).all() for w in (params["layers"][n] for n in ("W1", "b1"))))
        _require(_groups(layout, params["embedding"].any(axis=1)) <= {"sym1"})
        _require(_groups(layout, params["head"]) <= set(LEAVES))
        _check_corrections(layout, params["layers"], correction)
        live, layers = set(ENTERS), []
        for i in range(len(params["layers"]["W1"])):
            layer, live = _layer(layout, params["layers"], i, live)
            layers.append(layer)
        _require(live <= set(LEAVES))
        copying = [s for layer in layers for s in layer.look_ups if s.past and s.copied]
        _require(all(len(layout.groups[s.copied]) == len(layout.symbols) for s in copying))
        _require(len(copying) <= 1)
        searches = [i for i, layer in enumerate(layers) if any(s.past for s in layer.look_ups)]
        kept = [
            {"pos1", "pos2"} <= set(layer.copies) for layer in layers[: max(searches, default=0)]
        ]
        _require(all(kept))  # hence keys are equal in all search layers
    except _Unlike:
        return None
    return Structure(layout, tuple(layers), correction)


def blocks(structure: Structure, params: Any, /) -> list[tuple[Any, Any]]:
    """Return, for each layer, the weights W and biases b that the layer uses.

    W has a row for each coordinate that the layer computes, and a column for each that it reads. b
    has the shape (rows, 1).
    """
    groups = structure.layout.groups
    places = lambda names: np.array([i for name in names for i in groups[name]], int)
    W1, b1 = params["layers"]["W1"], params["layers"]["b1"]
    return [
        (
            W1[i, places(layer.computed)][:, places(layer.sources)],
            b1[i, places(layer.computed), None],
        )
        for i, layer in enumerate(structure.layers)
    ]


def _require(condition: bool | np.bool_) -> None:
    if not condition:
        raise _Unlike


def _groups(layout: Layout, vector: np.ndarray) -> set[str]:
    _require(not vector[layout.live :].any())
    return {g for g, at in layout.groups.items() if vector[at.start : at.stop].any()}


def _check_corrections(layout: Layout, layers: Any, correction: Correction | None) -> None:
    wanted = {} if correction is None else correction.weights(layout.width, layout.live)
    _require({"W2", "b2", "W3", "b3"} & set(layers) == set(wanted))
    _require(all((layers[name] == weights).all() for name, weights in wanted.items()))


def _layer(layout: Layout, layers: Any, i: int, live: set[str]) -> tuple[SparseLayer, set[str]]:
    """Return one layer as a `SparseLayer`, and the names of the groups that are nonzero after it.

    The argument `live` names the groups that are nonzero before the layer.
    """
    found = [
        _look_up(layout, kind, {n: w[i] for n, w in layers[kind].items()})
        for kind in ("dec", "enc")
    ]
    look_ups = tuple(look_up for look_up in found if look_up is not None)
    for look_up in look_ups:
        read_from = {look_up.cell, look_up.prefix, look_up.copied if look_up.past else ""}
        _require(read_from - {""} <= live)
        live = (live | {look_up.target} | ({"scr4"} if look_up.flag >= 0 else set())) - {""}
    W1, b1 = layers["W1"][i], layers["b1"][i]
    _require(not W1[layout.live :].any() and not b1[layout.live :].any())
    copies, computed, sources = [], [], set()
    for target, at in layout.groups.items():
        rows, bias = W1[at.start : at.stop], b1[at.start : at.stop]
        read_from = _groups(layout, rows.any(axis=0)) & live
        if read_from == {target} and np.array_equal(rows[:, at.start : at.stop], np.eye(len(at))):
            _require(not bias.any())
            copies.append(target)
        elif read_from:
            computed.append(target)
            sources |= read_from
        else:
            _require((bias <= 0).all())
    layer = SparseLayer(look_ups, tuple(copies), tuple(computed), tuple(sorted(sources)))
    return layer, {*copies, *computed}


def _look_up(layout: Layout, kind: str, weights: dict[str, np.ndarray]) -> LookUp | None:
    """Describe the weights of an attention as a look-up, or None if all are zero.

    The function rebuilds the weights from the look-up, and compares them with the given weights.
    """
    if not any(w.any() for w in weights.values()):
        return None
    query, key = ([int(row.argmax()) for row in weights[n] if row.any()] for n in ("Wq", "Wk"))
    flags, values = np.flatnonzero(weights["bv"]), np.argwhere(weights["Wv"])
    built = Layer("", "", layout).match(kind, query, key, len(key) - 1.0)
    built["bv"][flags] = 1.0
    built["Wv"][tuple(values.T)] = 1.0
    _require(all(np.array_equal(built[name], w) for name, w in weights.items()))
    bits, at = layout.bits, layout.groups
    timestep = [] if kind == "enc" else key[bits:]
    _require(key == [*at["pos1" if kind == "enc" else "pos2"], *timestep])
    _require(timestep == list(at["pos1"])[: len(timestep)])
    cell, prefix = _group_at(layout, query[:bits]), _group_at(layout, query[bits:])
    known, asks = len(query) - bits, len(key) - len(query)
    _require(asks in (0, 1) and len(query[:bits]) == bits)
    _require(len(flags) <= 1 and all(f in at["scr4"] for f in flags))
    flag = at["scr4"].index(flags[0]) if len(flags) else -1
    target, copied = (_group_at(layout, places.tolist()) for places in values.T)
    if copied:
        _require(len(values) == len(at[copied]) == len(at[target]))
        _require(len(timestep) == bits if kind == "dec" else copied == "sym1")
    return LookUp(kind == "dec", cell, prefix, known, bool(asks), flag, copied, target)


def _group_at(layout: Layout, places: list[int]) -> str:
    if not places:
        return ""
    for group, at in layout.groups.items():
        if places == list(at)[: len(places)]:
            return group
    raise _Unlike
