"""Find the parameter of a user's network that multiplies the prompt, if there is exactly one.

Theorem 6 is about networks of the form p -> f(T, W x). The arbitrary function f depends on the
flattened prompt x only through W x. This module decides, from the names and shapes of the
parameters, whether a network has this form. The module accepts Flax linen variables, nnx modules
and states, Equinox modules, and nested dicts.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from jaxbounds.networks.own_network import Reason, holds, leaves_by_path, listed

READS_TOKENS = {
    "attention": ("attn", "attention", "query", "key", "value", "qkv", "rope"),
    "a recurrence": ("rnn", "gru", "lstm", "cell", "recurrent", "hh"),
    "a convolution": ("conv",),
    "a normalisation": ("norm", "ln", "scale"),
    "an embedding": ("embed", "embedding", "pos", "position", "wpe", "wte"),
}
"""A dictionary from a kind of layer that acts on the tokens x themselves, not only on W x, to the
words in a parameter's path that mark this kind.
"""


def weights_of(model: Any, /) -> dict[str, Float[np.ndarray, "..."]]:
    """Return a dictionary from the path of each float array in a pytree to the array.

    Raises:
        Refused: if the keys of a dictionary cannot be sorted.
    """
    leaves = leaves_by_path(model, collections=True).items()
    arrays = {path: leaf for path, leaf in leaves if holds(leaf, jnp.floating)}
    return {
        path: np.asarray(leaf).astype(np.float64)
        for path, leaf in arrays.items()
        if not isinstance(leaf, jax.ShapeDtypeStruct)
    }


def first_layer(
    weights: Mapping[str, np.ndarray], inputs: int, /, *, first: str = ""
) -> tuple[str, Float[np.ndarray, "m inputs"] | None, list[Reason]]:
    """Return the path of the matrix W, the matrix W, and the reasons if no W is identified.

    `inputs` is the number of entries of the flattened prompt. `first`, the path of W, is needed if
    several matrices have `inputs` inputs.
    """
    known = {name: w for name, w in weights.items() if not first or name == first}
    places = [(name, axis) for name, w in known.items() for axis in _input_axes(name, w.shape)]
    places = [(name, axis) for name, axis in places if known[name].shape[axis] == inputs]
    if len(places) == 1:
        name, axis = places[0]
        return name, known[name] if axis else known[name].T, []
    if first and first not in weights:
        why = f"first={first!r} is no parameter; matrices: "
        why += listed([name for name, w in weights.items() if w.ndim == 2])
        return "", None, [Reason(why, (first,), "set first to the path of one of these matrices")]
    if places:
        names = sorted({name for name, _ in places})
        if len(names) == 1:
            why = "the matrix is square, and its name does not show which axis holds the inputs"
            return (
                "",
                None,
                [Reason(why, (*names,), "call the matrix kernel (inputs first) or weight")],
            )
        why = f"several matrices have {inputs} inputs; shapes do not show which one gets the prompt"
        return (
            "",
            None,
            [Reason(why, (*names,), "name the matrix that multiplies the prompt: first=PATH")],
        )
    why = f"no matrix has the {inputs} entries of a flattened prompt as inputs"
    if first:
        why = (
            f"shape {weights[first].shape} does not fit the {inputs} entries of a flattened prompt"
        )
    change = (
        "put a dense layer on the flattened prompt; give the number of entries of an encoded token"
    )
    return "", None, [Reason(why, (first or "the first layer",), f"{change} (encoded=)")]


def beside(weights: Mapping[str, np.ndarray], first: str, width: int, /) -> list[Reason]:
    """Return reasons that name layers which may receive the prompt other than through W x.

    If `first` names a first layer with `width` outputs, the function follows the matrices whose
    numbers of inputs fit the outputs of this layer or of a later one. The function lists all
    remaining parameters. If `first` is "", the function lists the parameters whose names mark a
    layer that acts on tokens.
    """
    rest = {name: w for name, w in weights.items() if name != first}
    reached, growing = {width}, bool(first)
    mapped: set[str] = set()
    while growing:
        before = len(mapped)
        for name, w in rest.items():
            axes = [axis for axis in _input_axes(name, w.shape) if w.shape[axis] in reached]
            if axes and name not in mapped:
                mapped.add(name)
                reached |= {w.shape[1 - axis] for axis in axes}
        growing = len(mapped) > before
    if first:
        mapped |= {n for n, w in rest.items() if w.ndim == 0 or w.shape in {(r,) for r in reached}}
    kinds: dict[str, list[str]] = {}
    for name in rest:
        kind = _kind(name, rest[name])
        if name not in mapped and (first or kind):
            kinds.setdefault(
                kind or "a layer whose inputs are no outputs of the first layer", []
            ).append(name)
    change = "let this layer receive the prompt only through the first layer"
    change += f"; if the layer does so already, pass first={first!r}" if first else ""
    why = "may receive the prompt other than through the first layer"
    return [Reason(f"{kind} {why}", (*names,), change) for kind, names in kinds.items()]


def _input_axes(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes along which a matrix may receive its inputs.

    A matrix named "kernel" or "weight" has one such axis; for other names, both axes are possible.
    """
    said = {"kernel": (0,), "weight": (1,)}.get(name.rsplit("/", 1)[-1], (0, 1))
    return said if len(shape) == 2 else ()


def _kind(name: str, weight: np.ndarray) -> str:
    parts = [part.rstrip("0123456789") for part in name.lower().replace("_", "/").split("/")]
    for kind, marks in READS_TOKENS.items():
        if any(mark in (part if len(mark) > 3 else [part]) for part in parts for mark in marks):
            return kind
    return "a tensor that is no dense layer" if weight.ndim > 2 else ""
