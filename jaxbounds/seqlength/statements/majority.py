"""Section 6: the sparse majority task, its network, and the trends of the figures."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.claims.statements import Form, Instance, Sides, Size
from jaxbounds.seqlength.extract_norms import extract_network
from jaxbounds.seqlength.majority_model import (
    MajorityTransformer,
    glorot_limit,
    reduced_logits,
    sigmoid_loss,
    softmax_loss,
    total_l1,
)
from jaxbounds.seqlength.sparse_majority import (
    Embedding,
    draw_bits,
    draw_symbols,
    draw_task,
    embed,
    majority_label,
    positional_code,
)
from jaxbounds.seqlength.statements.instances import identity_on_host, numbers
from jaxbounds.seqlength.trends import trend

DENSE = (("hidden", "relu"), ("readout", "identity"))


NET = MajorityTransformer(d_k=3, hidden=4)


@functools.partial(jax.jit, static_argnums=(2, 3))
def _outputs(params: Any, seed: Array, T: int, d: int) -> tuple[Any, ...]:
    key_task, key_bits = jax.random.split(jax.random.key(seed))
    task = draw_task(key_task, Embedding(d=d), T=T, sparsity=3)
    bits = draw_bits(key_bits, n=5, T=T)
    X = embed(task, bits)
    return X, NET.apply({"params": params}, X), reduced_logits(params, task, bits)


@functools.cache
def _shapes(T: int, d: int) -> Any:
    tokens = jax.ShapeDtypeStruct((5, T + 1, d), jnp.float32)
    return jax.eval_shape(NET.init, jax.random.key(0), tokens)["params"]


def _network(instance: Instance, size: Size) -> Sides:
    (seed,), T, d = numbers(instance, "seed"), size["T"], size["d"]
    rng = np.random.default_rng(seed)
    params = jax.tree.map(lambda s: 0.3 * rng.normal(size=s.shape), _shapes(T, d))
    X, whole, short = _outputs(params, seed, T, d)
    folded = extract_network(params, attention="attention", dense=DENSE, cls=-1)(np.asarray(X))
    return Sides(whole, {"derived": short, "derived folded": folded, "control": -whole})


NETWORK = identity_on_host(
    id="seqlength.sec6.network",
    label="Section 6, the network",
    tex=r"\sum_{h=1}^H \mathrm{softmax}\left( q_h^\top K_h^\top \right) X W_{V,h} W_{O,h} + b "
    r"= \text{the [CLS] row of the dense network}",
    formula="multi-head attention with biases, ReLU, dense = its [CLS] row alone = its folded form",
    cases=lambda size: {"seed": np.arange(10)},
    evaluate=_network,
    judges=(reduced_logits, extract_network, embed),
    sizes=({"T": 5, "d": 6},),
    forms=(
        Form(
            name="derived",
            note="Softmax ignores the key bias, which adds one number to all scores. All sequences "
            "have equal queries, because the [CLS] token is constant.",
        ),
        Form(
            name="derived folded",
            note="`extract_norms` folds matrices and biases together. The folded network has W_QK "
            "with the query bias, the products W_V W_O, and the sum of the other biases.",
        ),
    ),
    control="the negative of the output",
    source="library: how Section 6 is trained and then certified",
)


@functools.partial(jax.jit, static_argnums=(2, 3))
def _task_quantities(seed: Array, z: Array, T: int, d: int) -> tuple[Array, ...]:
    key_task, key_bits, key_symbols = jax.random.split(jax.random.key(seed), 3)
    task = draw_task(key_task, Embedding(d=d), T=T, sparsity=3)
    bits = draw_bits(key_bits, n=len(z), T=T)
    y, symbols = majority_label(bits, task.relevant), draw_symbols(key_symbols, Embedding(d=d))
    losses = jnp.append(softmax_loss(z, y), sigmoid_loss(z, y))
    return bits, task.relevant, y, symbols, positional_code(T, d), losses, total_l1({"a": [z, z]})


def _task(instance: Instance, size: Size) -> Sides:
    (seed,), T, d = numbers(instance, "seed"), size["T"], size["d"]
    z = np.random.default_rng(seed).normal(size=(8, 2))
    drawn = map(np.asarray, _task_quantities(seed, z, T, d))
    bits, relevant, y, symbols, code, losses, weight = drawn
    ones = bits[:, relevant].sum(axis=1)
    wave = lambda j, i: (math.cos if i % 2 else math.sin)(j / 10000 ** (i / d))
    chosen, p = np.eye(2)[y], np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    s = 1.0 / (1.0 + np.exp(-z))
    binary = -(chosen * np.log(s) + (1.0 - chosen) * np.log(1.0 - s)).mean(axis=1)
    products, lengths = (symbols @ symbols.T)[np.triu_indices(3, 1)], np.abs(symbols).sum(axis=1)
    return Sides.pairs(
        {
            "derived labels": (y, ones >= 2),
            "derived symbols": (np.append(products, lengths), np.repeat([0.0, 1.0], 3)),
            "derived code": (code, np.array([[wave(j, i) for i in range(d)] for j in range(T)])),
            "derived losses": (losses, np.append(-np.log((chosen * p).sum(axis=1)), binary)),
            "derived weights": (
                np.array([weight, glorot_limit((4, 2, 3))]),
                np.array([2.0 * np.abs(z).sum(), math.sqrt(6.0 / (4 * (2 + 3)))]),
            ),
            "control": (y, ones < 2),
        }
    )


TASK = identity_on_host(
    id="seqlength.sec6.task",
    label="Section 6, the task",
    tex=r"y = \mathbb{1}\left\{ \sum_{i \in I} S_i > \frac{|I|}{2} \right\}",
    formula="label 1 where most bits at I are 1; orthogonal symbols; sine code; the two losses",
    cases=lambda size: {"seed": np.arange(10)},
    evaluate=_task,
    judges=(
        *(majority_label, draw_symbols, positional_code),
        *(softmax_loss, sigmoid_loss, total_l1, glorot_limit),
    ),
    sizes=({"T": 5, "d": 6},),
    forms=(
        Form(name="derived labels"),
        Form(
            name="derived symbols",
            note="The vectors of the symbols are orthogonal and have the l_1 norm 1.",
        ),
        Form(
            name="derived code",
            note="The positional code has the exponent i / d, as in the authors' public code.",
        ),
        Form(
            name="derived losses",
            note="The majority experiment has two losses: the softmax cross entropy and the mean "
            "of two binary cross entropies.",
        ),
        Form(
            name="derived weights",
            note="The check recomputes in NumPy two results of the library: the sum of all "
            "|weight|, which Figure 1 plots, and the range of Keras' initial weights.",
        ),
    ),
    control="the minority",
)


def _trend(instance: Instance, size: Size) -> Sides:
    """Compare the results of `trend` for two data sets with values computed by hand.

    In the first, an exchange of the two rows changes only the slope's sign, so the p-value is 1.
    """
    (step,) = numbers(instance, "step")
    x, keep = np.array([1.0, 3.0]), np.ones((2, 1), bool)
    two = trend(x, np.array([[0.5], [0.5 + step]]), keep, kind="max", permutations=9)
    x, keep = np.arange(4.0), np.ones((4, 2), bool)
    keep[3, 1] = False
    values = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 5.0], [3.0, 100.0]])
    slopes = [trend(x, values, keep, kind=kind, permutations=9).slope for kind in ("mean", "max")]
    # Computed by hand: the means are .5, 2, 3.5, 3, the maxima are 1, 3, 5, 3, and x has mean 1.5.
    expected = np.array([step / 2.0, 1.0, 0.9, 0.8])
    found = np.array([two.slope, two.p_value, *slopes])
    return Sides(found, {"derived": expected, "control": np.flip(expected)})


TREND = identity_on_host(
    id="seqlength.sec6.trend",
    label="Section 6, no increasing trend",
    tex=r"\hat{b} = \frac{\sum_T (T - \bar{T}) v_T}{\sum_T (T - \bar{T})^2}",
    formula="least squares of the mean or maximum over runs, and the permutation p-value",
    cases=lambda size: {"step": np.array([0.25, -1.0, 1.0, 3.0, -0.1, 7.0, 0.5, -2.0, 1e-3, 40.0])},
    evaluate=_trend,
    judges=(trend,),
    sizes=({"runs": 2},),
    forms=(
        Form(
            name="derived",
            note="The check fits the least-squares line with a formula of its own, and leaves out "
            "runs that did not learn.",
        ),
    ),
    control="in reverse order",
    source="library: how the claims about Figures 1 to 3 are decided",
)

STATEMENTS = (NETWORK, TASK, TREND)
