"""A statement about the networks of Section 5 and of the public code (Figure 1).

The statement compares each Flax module's output with a formula in the module's weights.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.qstr.architectures import build
from jaxbounds.qstr.gated import CELLS, BidirectionalGated, recur
from jaxbounds.qstr.layers import FeedForward
from jaxbounds.qstr.recurrent import BidirectionalRNN, project_to_ball
from jaxbounds.qstr.relu_networks import Layer, evaluate
from jaxbounds.qstr.state_space import LinearStateSpace, diagonal_recurrence
from jaxbounds.qstr.transformer import PublishedTransformer, SparseTransformer, attention_map

_GATED = {cell: BidirectionalGated(2, cell) for cell in CELLS}


def _model(name: str, size: Size) -> nn.Module:
    return _GATED.get(name) or build(name, N=size["N"], d=size["d"])


_NAMES = ("transformer", "feedforward256", "rnn", "state_space", *_GATED)


def _sample(key: Array, size: Size) -> Instance:
    """Draw tokens z and the parameters of each network.

    All parameters are slices of one array of normal numbers, because many random arrays compile
    slowly.
    """
    z = jax.ShapeDtypeStruct((size["N"], size["De"]), jnp.zeros(()).dtype)
    start = lambda key, z, name: _model(name, size).init(key, z)["params"]
    shapes = {name: jax.eval_shape(partial(start, name=name), key, z) for name in _NAMES}
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), shapes | {"z": z})
    flat, unravel = ravel_pytree(zeros)
    drawn = unravel(0.5 * jax.random.normal(key, flat.shape))
    biases = {name: zeros["transformer"][name] for name in ("in_proj_bias", "out_proj_bias")}
    return {**drawn, "transformer": {**drawn["transformer"], **biases}}


def _mlp(parameters: Mapping[str, Array], *features: Array) -> Array:
    names = range(len(parameters) // 2)
    network = tuple(Layer(parameters[f"W{k}"], parameters[f"b{k}"]) for k in names)
    return evaluate(network, jnp.concatenate(features, axis=-1))


def _both_ways(
    states: Callable[[str, Array], Sequence[ArrayLike]], z: Array
) -> tuple[Array, Array]:
    return jnp.stack(states("forward", z)), jnp.stack(states("backward", z[::-1])[::-1])


def _as_in_section_3(p: Mapping[str, Any], z: Array) -> Array:
    De, mlp = z.shape[1], p["mlp"]
    explicit = {
        "W_QK": attention_map({"params": p})[None] / math.sqrt(De),
        "W": mlp["W0"] @ p["out_proj_weight"] @ p["in_proj_weight"][2 * De :],
        "b": mlp["b0"],
        "a": mlp["W1"][0],
    }
    paper = SparseTransformer(heads=1, width=len(mlp["b0"]))
    return paper.apply({"params": explicit}, z) + mlp["b1"][0]


def _residual(p: Mapping[str, Any], z: Array) -> Array:
    def states(side: str, tokens: Array) -> list[Array]:
        found = [jnp.zeros(64)]
        for token in tokens[:-1]:
            found.append(project_to_ball(found[-1] + _mlp(p[side], found[-1], token), 10.0))
        return found

    return _mlp(p["readout"], *_both_ways(states, z), z)[:, 0]


def _linear(p: Mapping[str, Any], z: Array) -> Array:
    def states(side: str, tokens: Array) -> Sequence[ArrayLike]:
        decay, driven = jax.nn.sigmoid(p[f"{side}_decay"]), _mlp(p[side], tokens)
        return [sum(decay ** (n - k) * driven[k] for k in range(n + 1)) for n in range(len(tokens))]

    return _mlp(p["readout"], *_both_ways(states, z), z)[:, 0]


def _gated(name: str) -> Callable[[Mapping[str, Any], Array], Array]:
    cell, gates, parts = CELLS[name]

    def run(p: Mapping[str, Any], z: Array) -> Array:
        def states(side: str, tokens: Array) -> list[Array]:
            weights = ("W_input", "W_hidden", "b_input", "b_hidden")
            W_i, W_h, b_i, b_h = (p[w][("forward", "backward").index(side)] for w in weights)
            carry, found = (jnp.zeros(2),) * parts, []
            for token in tokens:
                own, past = jnp.split(W_i @ token + b_i, gates), W_h @ carry[0] + b_h
                carry = cell(carry, tuple(own), tuple(jnp.split(past, gates)))
                found.append(carry[0])
            return found

        return _mlp(p["readout"], *_both_ways(states, z))[:, 0]

    return run


_PLAIN = {
    "transformer": _as_in_section_3,
    "feedforward256": lambda p, z: _mlp(p["mlp"], z.ravel()),
    "rnn": _residual,
    "state_space": _linear,
    **{name: _gated(name) for name in _GATED},
}


def _networks(i: Instance, size: Size) -> Sides:
    z = i["z"]
    pairs: dict[str, Any] = {}
    for name, plain in _PLAIN.items():
        ours = lambda p, name=name: _model(name, size).apply({"params": p}, z)
        runs = ours, lambda p, plain=plain: plain(p, z)
        pairs[f"derived {name}"] = tuple(run(i[name]) for run in runs)
        if name == "gru":  # the gradient's rule is the same for every cell
            slopes = (jax.grad(lambda p, run=run: jnp.sum(run(p) ** 2))(i[name]) for run in runs)
            left, right = (ravel_pytree(slope)[0] for slope in slopes)
            pairs[f"derived {name} gradient"] = left, right
    one_off = jnp.roll(pairs["derived rnn"][1], 1)
    return Sides.pairs({**pairs, "control": (pairs["derived rnn"][0], one_off)})


NETWORKS = Statement(
    id="qstr.fig1.networks",
    label="Section 5 and Figure 1 (networks)",
    formula="yhat = f_y(h->, h<-, z), h->_{i+1} = Pi_r(h->_i + f->(h->_i, z_i)), and the like",
    tex=r"\hat y_i = f_y(h_i^\to, h_i^\leftarrow, z_i; \Theta_y), \quad h_{i+1}^\to = "
    r"\Pi_{r_h}(h_i^\to + f_h^\to(h_i^\to, z_i; \Theta_h^\to))",
    kind="construction",
    judges=(
        PublishedTransformer.__call__,
        attention_map,
        FeedForward.__call__,
        BidirectionalRNN.__call__,
        LinearStateSpace.__call__,
        diagonal_recurrence,
        BidirectionalGated.__call__,
        recur,
    ),
    sample=_sample,
    evaluate=_networks,
    forms=(
        Form(
            name="derived transformer",
            note="The network equals the Transformer of Section 3 with W_QK = W_Q^T W_K / "
            "sqrt(De).",
        ),
        Form(
            name="derived feedforward256",
            note="The check applies layers that are written out by hand to the flattened prompt.",
        ),
        Form(
            name="derived rnn",
            note="The check computes the states token by token; each state excludes its own token.",
        ),
        Form(
            name="derived state_space",
            note="The states are h_i = sum_{j <= i} decay^{i-j} input_j.",
        ),
        *(
            Form(
                name=f"derived {name}",
                note="The check applies the recurrent cell to the tokens one after the other.",
            )
            for name in _GATED
        ),
        Form(
            name="derived gru gradient",
            note="The check compares the gradient that is written by hand with the gradient of "
            "autograd.",
        ),
    ),
    control="predictions one place off",
    sizes=({"N": 2, "d": 2, "De": 6},),
    budget=Budget(samples=12, batch=12),
    source="Section 5 and the public code",
)

STATEMENTS = (NETWORKS,)
