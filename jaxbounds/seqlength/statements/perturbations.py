"""Appendix E: perturbations of one block, of the chain, and the cover of the network."""

import math
from functools import partial

import jax
import jax.numpy as jnp

from jaxbounds.seqlength.model import blocks
from jaxbounds.seqlength.multi_layer import (
    Constants,
    NetworkNorms,
    terms_corrected,
    terms_derived,
)
from jaxbounds.seqlength.perturbation import (
    block_perturbation,
    chain_perturbation,
    lemma_e_2,
    spectral_norms,
)
from jaxbounds.seqlength.statements.instances import l2_sphere, log_uniform
from jaxbounds.statements import Budget, Form, Sides, Statement

FEW = Budget(samples=64, restarts=0, steps=0, batch=64)
SEARCHED = Budget(samples=128, restarts=4, steps=80, batch=64)


def _layer(key, d, k):
    keys = jax.random.split(key, 6)
    shapes = {"W_QK": (d, d), "W_v": (d, k), "W_c": (k, d)}
    return {
        name: log_uniform(keys[2 * i], -1.0, 0.7)
        / math.sqrt(d)
        * jax.random.normal(keys[2 * i + 1], shape)
        for i, (name, shape) in enumerate(shapes.items())
    }


def _moved(key, layer):
    a, b = jax.random.split(key)
    amount = log_uniform(a, -3.0, 0.0)
    keys = jax.random.split(b, len(layer))
    return {
        name: leaf + amount * jax.random.normal(k, leaf.shape)
        for k, (name, leaf) in zip(keys, layer.items())
    }


def _block_sample(key, size):
    a, b, c, e = jax.random.split(key, 4)
    T, d, k = size["T"], size["d"], size["k"]
    layer = _layer(a, d, k)
    near, far = jax.random.split(e)
    g = l2_sphere(c, (T, d))
    ghat = _into_ball(g + log_uniform(near, -3.0, 0.0) * jax.random.normal(far, (T, d)))
    return {"layer": layer, "moved": _moved(b, layer), "g": g, "ghat": ghat}


def _into_ball(g):
    return g / jnp.maximum(1.0, jnp.linalg.norm(g, axis=-1, keepdims=True))


def _moved_by(weights, moved):
    """The difference is far above rounding."""
    steps = [jnp.max(jnp.abs(weights[name] - moved[name])) for name in weights]
    return {"weights moved by 1e-5": jnp.max(jnp.stack(steps)) >= 1e-5}


_ONLY_W_C = "only W_c moves, and the outer projection is inactive"


def _lemma_e_2(instance):
    g, ghat = instance["g"], instance["ghat"]
    layer, moved = instance["layer"], instance["moved"]
    parts = block_perturbation(g, ghat, layer, moved, activation=jnp.tanh)
    norms = spectral_norms(layer, moved)
    printed = lemma_e_2(parts, norms, 1.0)
    return Sides(
        parts.output,
        {
            "printed": printed,
            "sharpened S4": lemma_e_2(parts, norms, 1.0, softmax_constant=1.0),
            "control": printed / 20.0,
        },
        error=1e-13,
    )


LEMMA_E_2 = Statement(
    id="seqlength.lemma-e.2",
    label="Lemma E.2, i >= 2",
    formula="||d g^(i+1)|| <= ||dW_c^T ..|| + L B_c B_v (1 + 4 B_QK) ||d g^(i)||"
    " + 2 L B_c B_v ||dW_QK^T ..|| + L B_c ||dW_v^T ..||",
    kind="inequality",
    sample=_block_sample,
    project=lambda i: {**i, "g": _into_ball(i["g"]), "ghat": _into_ball(i["ghat"])},
    hypotheses=lambda i: {
        "tokens in the unit ball": jnp.maximum(
            jnp.max(jnp.linalg.norm(i["g"], axis=1)), jnp.max(jnp.linalg.norm(i["ghat"], axis=1))
        )
        <= 1 + 1e-12,
        **_moved_by(i["layer"], i["moved"]),
    },
    evaluate=_lemma_e_2,
    sizes=({"T": 3, "d": 2, "k": 2},),
    forms=(
        Form(
            name="printed",
            note="inputs of later blocks are in the unit ball",
            equality=_ONLY_W_C,
        ),
        Form(
            name="sharpened S4",
            note="1 + 2 B_QK and coefficient 1, by the softmax constant 1",
            equality=_ONLY_W_C,
        ),
    ),
    control="a twentieth of it",
    budget=SEARCHED,
    source="Lemma E.2, from Edelman et al. (2022), Lemma A.15",
)

_KEYS = {"W_v": [[0.25, 0.0], [0.0, 0.25]], "W_c": [[1.0, 0.0], [0.0, 1.0]]}
_LAYER = {"W_QK": [[0.0005, 0.0], [0.0, 0.0]], **_KEYS}
_MOVED = {"W_QK": [[-0.0005, 0.0], [0.0, 0.0]], **_KEYS}
_OPPOSITE = [[4.0, 0.0], [-4.0, 0.0]]


def _stack_layers(layer):
    return {name: [leaf] for name, leaf in layer.items()}


def _first_sample(key, size):
    a, b, c, e = jax.random.split(key, 4)
    layer = _layer(a, size["d"], size["k"])
    X = log_uniform(e, -0.5, 1.0) * l2_sphere(c, (size["T"], size["d"]))
    return {"layer": layer, "moved": _moved(b, layer), "X": X}


def _opposite_tokens(key, size):
    """Two opposite tokens of norm B_x, values I / B_x, and a small step of W_QK along them."""
    a, b = jax.random.split(key)
    d, k = size["d"], size["k"]
    B_x, step = log_uniform(a, 0.0, 1.0), log_uniform(b, -4.0, -1.5)
    X = jnp.stack([B_x * (1.0 - 2.0 * (t % 2)) * jnp.eye(d)[0] for t in range(size["T"])])
    layer = {
        "W_QK": step / 2.0 * jnp.outer(jnp.eye(d)[0], jnp.eye(d)[0]),
        "W_v": jnp.eye(d, k) / B_x,
        "W_c": jnp.eye(k, d),
    }
    return {"layer": layer, "moved": {**layer, "W_QK": -layer["W_QK"]}, "X": X}


def _first_block(instance):
    X, layer, moved = instance["X"], instance["layer"], instance["moved"]
    parts = block_perturbation(X, X, layer, moved, activation=jnp.tanh)
    norms = spectral_norms(layer, moved)
    corrected = lemma_e_2(parts, norms, 1.0, radius=parts.radius)
    return Sides(
        parts.output,
        {
            "printed": lemma_e_2(parts, norms, 1.0),
            "corrected": corrected,
            "sharpened S4": lemma_e_2(parts, norms, 1.0, softmax_constant=1.0, radius=parts.radius),
            "control": corrected / 5.0,
        },
        error=1e-13,
    )


FIRST_BLOCK = Statement(
    id="seqlength.lemma-e.2-first",
    label="Lemma E.2, i = 1",
    formula="the same for g^(1) = X with tokens of norm up to B_x",
    kind="inequality",
    sample={"normal": _first_sample, "opposite tokens": _opposite_tokens},
    hypotheses=lambda i: _moved_by(i["layer"], i["moved"]),
    evaluate=_first_block,
    sizes=({"T": 2, "d": 2, "k": 2},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E9",
            note="dp moves by up to B_x ||dW^T x|| and values have norm B_v B_x",
            counterexample={"layer": _LAYER, "moved": _MOVED, "X": _OPPOSITE},
        ),
        Form(name="corrected", note="B_x^2 on the QK term", equality=_ONLY_W_C),
        Form(name="sharpened S4", note="and coefficient 1", equality=_ONLY_W_C),
    ),
    control="a fifth of the corrected bound",
    budget=SEARCHED,
    source="Lemma E.2 at i = 1, used in the proof of Theorem 4.2",
)


def _lemma_e_3(instance):
    w, what, g, ghat = (instance[name] for name in ("w", "what", "g", "ghat"))
    first = jnp.linalg.norm(w) * jnp.linalg.norm(g - ghat)
    second = jnp.abs((w - what) @ ghat)
    return Sides(jnp.abs(w @ g - what @ ghat), {"printed": first + second, "control": first})


def _lemma_e_3_sample(key, size):
    return {
        name: jax.random.normal(k, (size["d"],))
        for k, name in zip(jax.random.split(key, 4), ("w", "what", "g", "ghat"))
    }


LEMMA_E_3 = Statement(
    id="seqlength.lemma-e.3",
    label="Lemma E.3",
    formula="|w.g - what.ghat| <= ||w|| ||g - ghat|| + |(w - what).ghat|",
    kind="inequality",
    sample=_lemma_e_3_sample,
    evaluate=_lemma_e_3,
    search="none",
    sizes=({"d": 2},),
    forms=(Form(name="printed", equality="w = c (g - ghat), signs agreeing"),),
    control="without the second term",
    budget=FEW,
    source="Lemma E.3, from Edelman et al. (2022), Lemma A.16",
)


def _network_sample(first, key, size):
    a, b, c = jax.random.split(key, 3)
    inner = {**size, "T": size["T"]}
    start = first(a, inner)
    L = size["L"]
    others = jax.vmap(lambda k: _layer(k, size["d"], size["k"]))(jax.random.split(b, L - 1))
    layers = jax.tree.map(
        lambda one, rest: jnp.concatenate([one[None], rest]), start["layer"], others
    )
    moved = jax.tree.map(
        lambda one, rest: jnp.concatenate([one[None], rest]), start["moved"], others
    )
    w = l2_sphere(c, (size["d"],))
    return {"X": start["X"], "layers": layers, "moved": moved, "w": w, "what": w}


def _chain(instance):
    X, layers, moved, w, what = (instance[n] for n in ("X", "layers", "moved", "w", "what"))
    found = chain_perturbation(X, layers, moved, w, what, 0, activation=jnp.tanh, L_sigma=1.0)
    return Sides(
        found.output,
        {
            "printed": found.printed,
            "corrected": found.corrected,
            "sharpened S4": found.sharpened,
            "control": found.corrected / 40.0,
        },
        error=1e-13,
    )


_NETWORK = {
    "X": _OPPOSITE,
    "layers": _stack_layers(_LAYER),
    "moved": _stack_layers(_MOVED),
    "w": [1.0, 0.0],
    "what": [1.0, 0.0],
}

CHAIN = Statement(
    id="seqlength.appe-chain",
    label="Appendix E, the unrolled chain",
    formula="|g_scalar - ghat_scalar| <= eps_w + B_w sum_i alpha_i (eps_c + L B_c eps_v"
    " + 2 L B_c B_v eps_QK), the eps measured",
    kind="inequality",
    sample={
        "normal": partial(_network_sample, _first_sample),
        "opposite tokens": partial(_network_sample, _opposite_tokens),
    },
    hypotheses=lambda i: _moved_by(i["layers"], i["moved"]),
    evaluate=_chain,
    search="none",
    sizes=({"L": 2, "T": 2, "d": 2, "k": 2},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E9",
            note="one layer, two opposite tokens of norm 4",
            counterexample=_NETWORK,
        ),
        Form(name="corrected", note="B_x^2 on the QK term of layer 1"),
        Form(name="sharpened S4", note="and the softmax constant 1"),
    ),
    control="a fortieth of the corrected bound",
    budget=Budget(samples=128, restarts=0, steps=0, batch=64),
    source="Appendix E",
)


def _cover_of_network(instance):
    X, layers, moved, w, what = (instance[n] for n in ("X", "layers", "moved", "w", "what"))
    L = layers["W_c"].shape[0]
    run = lambda weights, v: blocks(X, weights, activation=jnp.tanh)[-1][0] @ v
    output = jnp.abs(run(layers, w) - run(moved, what))
    B_x = jnp.max(jnp.linalg.norm(X, axis=1))
    size = lambda stack: jnp.linalg.norm(stack, ord=2, axis=(1, 2))
    largest = lambda n: jnp.max(jnp.maximum(size(layers[n]), size(moved[n])))
    norms = NetworkNorms(
        jnp.maximum(jnp.linalg.norm(w), jnp.linalg.norm(what)),
        largest("W_c"), largest("W_v"), largest("W_QK"), 1.0, B_x,
    )  # fmt: skip
    steps = {n: size(layers[n] - moved[n]) for n in layers}
    ones = Constants(1.0, 1.0, 1.0, 1.0)
    radius = [B_x if i == 0 else jnp.ones_like(B_x) for i in range(L)]

    def total(beta, *, values):
        # The covers' resolutions: how far each map moves on its ball of inputs.
        scales = [jnp.linalg.norm(w - what)]
        for i in range(L):
            scales += [steps["W_c"][i], steps["W_v"][i] * values[i], steps["W_QK"][i] * radius[i]]
        return beta @ jnp.stack(scales)

    corrected = total(terms_corrected(norms, ones, L).beta, values=radius)
    sharp = terms_corrected(norms, ones, L, softmax_constant=1.0).beta
    return Sides(
        output,
        {
            "derived": total(terms_derived(norms, 1.0, 1.0, L).beta, values=[1.0] * L),
            "corrected": corrected,
            "sharpened S4": total(sharp, values=radius),
            "control": corrected / 100.0,
        },
        error=1e-13,
    )


COVER = Statement(
    id="seqlength.appe-cover",
    label="Theorem 4.2, the cover",
    formula="covers at scales eps_i of the single matrices cover the network at sum beta_i eps_i",
    kind="inequality",
    sample={
        "normal": partial(_network_sample, _first_sample),
        "opposite tokens": partial(_network_sample, _opposite_tokens),
    },
    hypotheses=lambda i: _moved_by(i["layers"], i["moved"]),
    evaluate=_cover_of_network,
    search="none",
    sizes=({"L": 2, "T": 2, "d": 2, "k": 2},),
    forms=(
        Form(
            name="derived",
            expected="fails",
            erratum="E10",
            note="the proof's list: no B_x^2 on the first QK, the first W_v covered at norm 1",
            counterexample=_NETWORK,
        ),
        Form(name="corrected", note="inputs of norm B_x in layer 1, L_sigma before W_c"),
        Form(name="sharpened S4", note="and the softmax constant 1"),
    ),
    control="a hundredth of the corrected bound",
    budget=Budget(samples=128, restarts=0, steps=0, batch=64),
    source="Theorem 4.2 and its proof",
)


STATEMENTS = (
    LEMMA_E_2,
    FIRST_BLOCK,
    LEMMA_E_3,
    CHAIN,
    COVER,
)
