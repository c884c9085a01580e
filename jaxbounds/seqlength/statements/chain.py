"""Appendix E: the unrolled chain of perturbations, and the cover of the whole network."""

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Form,
    Instance,
    Sides,
    Size,
    Statement,
)
from jaxbounds.numerics.norms import max_row_norm
from jaxbounds.seqlength.masking import cross_entropy
from jaxbounds.seqlength.model import blocks
from jaxbounds.seqlength.multi_layer import Constants, NetworkNorms, terms_corrected, terms_derived
from jaxbounds.seqlength.perturbation import chain_perturbation, spectral_norms
from jaxbounds.seqlength.statements import instances as draw
from jaxbounds.seqlength.statements.blocks import (
    LAYER,
    MOVED,
    OPPOSITE,
    meets_appendix_e,
    moved_enough,
    opposite_tokens,
    weights_and_step,
)
from jaxbounds.seqlength.vector_contraction import terms_word_masking


def _network_sample(key: Array, size: Size) -> Instance:
    weight_key, token_key, scale_key = jax.random.split(key, 3)
    d, keys = size["d"], jax.random.split(weight_key, size["L"])
    layers, moved = jax.vmap(lambda key: weights_and_step(key, size))(keys)
    drawn = draw.normals(token_key, {"X": (size["T"], d), "w": (d,), "what": (d,)})
    drawn = {name: draw.unit(x) for name, x in drawn.items()}
    X = draw.log_uniform(scale_key, -0.5, 1.0) * drawn["X"]
    return {**drawn, "X": X, "layers": layers, "moved": moved}


def _one_moves(size: Size) -> Iterator[dict]:
    L, d, k = size["L"], size["d"], size["k"]
    e_1, stack = np.eye(d)[0], lambda W: np.stack([W] * L)
    for scale in (0.5, 2.0, 4.0, 8.0):
        X = scale * np.outer(np.ones(size["T"]), e_1)
        # A large W_c gives outputs that the projection moves to e_1; a small W_c does not.
        for W_c, factor in ((10.0, 1.0), (0.5, scale / 10.0)):
            layers = {"W_QK": np.zeros((L, d, d)), "W_v": stack(np.eye(d, k))}
            layers["W_c"] = stack(W_c * np.eye(k, d))
            moved = {**layers, "W_c": layers["W_c"].copy()}
            moved["W_c"][-1] *= factor
            what = e_1 if factor != 1.0 else -scale / 10.0 * e_1
            yield {"X": X, "layers": layers, "moved": moved, "w": e_1, "what": what}


def _network_cases(size: Size) -> Instance:
    rng, d, k = np.random.default_rng(1), size["d"], size["k"]
    w, rows = np.eye(d)[0], list(_one_moves(size))
    for case in opposite_tokens(size):
        rest = {"W_QK": rng.normal(size=(d, d)), "W_v": np.eye(d, k), "W_c": np.eye(k, d)}
        follow = lambda first, rest=rest: {
            name: np.stack([first[name]] + [rest[name]] * (size["L"] - 1)) for name in first
        }
        layers, moved = follow(case["layer"]), follow(case["moved"])
        rows.append({"X": case["X"], "layers": layers, "moved": moved, "w": w, "what": w})
    # Only the first W_v moves, and so little that tanh is nearly linear.
    stay = {"W_QK": np.zeros((size["L"], d, d)), "W_c": np.stack([np.eye(k, d)] * size["L"])}
    later = [np.eye(d, k)] * (size["L"] - 1)
    value = lambda c: {**stay, "W_v": np.stack([c * np.eye(d, k), *later])}
    equal = 4.0 * np.outer(np.ones(size["T"]), w)
    rows.append({"X": equal, "layers": value(5e-3), "moved": value(-5e-3), "w": w, "what": w})
    return draw.stacked(rows)


on_networks = functools.partial(
    Statement,
    kind="inequality",
    search="none",
    budget=draw.MANY,
    sample=_network_sample,
    cases=_network_cases,
    hypotheses=lambda i, size: {
        **moved_enough({**i["layers"], "w": i["w"]}, {**i["moved"], "w": i["what"]}),
        "||w|| <= B_w = 1": jnp.linalg.norm(jnp.stack([i["w"], i["what"]]), axis=1) <= 1 + 1e-12,
    },
    sizes=({"L": 1, "T": 2, "d": 2, "k": 2}, {"L": 2, "T": 2, "d": 2, "k": 2}),
)

_ALONG = "only w moves, or the last W_c, along the output"
_ONLY_W = "only w moves, along an output of norm 1"
_ONE_LAYER = Counterexample(
    instance={
        "X": OPPOSITE,
        "layers": {name: [leaf] for name, leaf in LAYER.items()},
        "moved": {name: [leaf] for name, leaf in MOVED.items()},
        "w": [1.0, 0.0],
        "what": [1.0, 0.0],
    },
    ratio=7.999658686326246,
    meets=meets_appendix_e,
)

_ONLY_W_V = {"W_QK": [[[0.0, 0.0], [0.0, 0.0]]], "W_c": [[[1.0, 0.0], [0.0, 1.0]]]}
_ONE_VALUE_MAP = Counterexample(
    instance={
        "X": [[4.0, 0.0], [4.0, 0.0]],
        "layers": {**_ONLY_W_V, "W_v": [[[0.005, 0.0], [0.0, 0.005]]]},
        "moved": {**_ONLY_W_V, "W_v": [[[-0.005, 0.0], [0.0, -0.005]]]},
        "w": [1.0, 0.0],
        "what": [1.0, 0.0],
    },
    ratio=3.9994667519861866,
    meets=meets_appendix_e,
)


def _moved(instance: Instance) -> Array:
    run = lambda weights: blocks(instance["X"], weights, activation=jnp.tanh)[-1][0]
    exact, moved = run(instance["layers"]), run(instance["moved"])
    return jnp.abs(exact @ instance["w"] - moved @ instance["what"])


def _chain(instance: Instance, size: Size) -> Sides:
    X, layers, moved, w, what = (instance[n] for n in ("X", "layers", "moved", "w", "what"))
    about: dict[str, Any] = {"activation": jnp.tanh, "L_sigma": 1.0, "radius": max_row_norm(X)}
    found = chain_perturbation(X, layers, moved, w, what, 0, **about)
    return Sides(
        _moved(instance),
        {
            "printed": found.printed,
            "corrected": found.corrected,
            "sharpened S4": found.sharpened,
            "control": found.corrected / 40.0,
        },
        error=1e-13,
        trivial=2.0,
    )


CHAIN = on_networks(
    id="seqlength.appe.chain",
    label="Appendix E, the unrolled chain",
    tex=r"|g_{\mathrm{scalar}} - \hat{g}_{\mathrm{scalar}}| \le \epsilon_w + B_w \sum_{i=1}^L "
    r"\alpha_i \left( "
    r"\epsilon_c^{(i)} + L_\sigma B_{c2} \epsilon_v^{(i)} + 2 L_\sigma B_{c2} B_{v2} "
    r"\epsilon_{QK}^{(i)} \right)",
    formula="|g_scalar - ghat_scalar| <= eps_w + B_w sum_i alpha_i (eps_c + L B_c eps_v"
    " + 2 L B_c B_v eps_QK), the eps measured",
    evaluate=_chain,
    judges=(chain_perturbation,),
    forms=(
        Form(
            name="printed",
            cites="Appendix E, the last display",
            erratum="E9",
            note="The counterexample has one layer and two opposite tokens of norm 4.",
            counterexample=_ONE_LAYER,
        ),
        Form(
            name="corrected",
            note="In the bound on the change of the output, the W_QK term of layer 1 has one more "
            "factor B_x^2 than the printed term, where B_x is the largest token norm.",
            equality=_ALONG,
        ),
        Form(
            name="sharpened S4",
            note="The bound uses 1 as the Lipschitz constant of softmax, where the paper uses 2.",
            equality=_ALONG,
        ),
    ),
    control="a fortieth of the corrected bound",
)


def _resolutions(instance: Instance, size: Size) -> tuple[NetworkNorms, Any]:
    """Compute the norms of a network and its copy, and the bound sum_i beta_i eps_i.

    Here eps_i is the largest distance between the outputs of matrix i and of its perturbed copy.
    """
    X, layers, moved = (instance[n] for n in ("X", "layers", "moved"))
    B_x = max_row_norm(X)
    spectral = lambda stack: jnp.max(jnp.linalg.svd(stack, compute_uv=False), axis=-1)
    larger = jax.vmap(spectral_norms)(layers, moved)
    norms = NetworkNorms(1.0, jnp.max(larger.c), jnp.max(larger.v), jnp.max(larger.QK), 1.0, B_x)
    steps = {name: spectral(layers[name] - moved[name]) for name in layers}
    within = jnp.ones(size["L"]).at[0].set(B_x)

    def total(beta: Array, readout: Array, values: Array = within) -> Array:
        # The covers' resolutions are the distances by which the maps move on their balls of inputs.
        scales = (steps["W_c"], steps["W_v"] * values, steps["W_QK"] * within)
        return beta[0] * readout + beta[1:] @ jnp.stack(scales, axis=1).ravel()

    return norms, total


ONES = Constants(1.0, 1.0, 1.0, 1.0)


def _cover_of_network(instance: Instance, size: Size) -> Sides:
    L = size["L"]
    norms, total = _resolutions(instance, size)
    moved = jnp.linalg.norm(instance["w"] - instance["what"])
    corrected = total(terms_corrected(norms, ONES, L).beta, moved)
    sharp = total(terms_corrected(norms, ONES, L, softmax_constant=1.0).beta, moved)
    return Sides(
        _moved(instance),
        {
            "derived": total(terms_derived(norms, 1.0, 1.0, L).beta, moved, jnp.ones(L)),
            "corrected": corrected,
            "sharpened S4": sharp,
            "control": corrected / 100.0,
        },
        error=1e-13,
        trivial=2.0,
    )


COVER = on_networks(
    id="seqlength.appe.cover",
    label="Theorem 4.2, the cover",
    tex=r"|g_{\mathrm{scalar}} - \hat{g}_{\mathrm{scalar}}| \le \sum_i \beta_i \epsilon_i",
    formula="covers at scales eps_i of the single matrices cover the network at sum beta_i eps_i",
    evaluate=_cover_of_network,
    judges=(terms_corrected, terms_derived, blocks, spectral_norms),
    forms=(
        Form(
            name="derived",
            erratum="E10",
            note="The check uses the list of covers from the proof of Theorem 4.2. The list covers "
            "the first layer's W_v for inputs of norm 1, but the tokens have norm B_x = 4. The "
            "stored counterexample perturbs only the first layer's W_v. The list's term for the "
            "first layer's W_QK lacks the factor B_x^2 (erratum E9).",
            counterexample=_ONE_VALUE_MAP,
        ),
        Form(
            name="corrected",
            note="In the corrected list of covers, the covers of layer 1 are for inputs of norm "
            "B_x (the largest token norm). The covers of W_c are for inputs of norm L_sigma (the "
            "activation's Lipschitz constant).",
            equality=_ONLY_W,
        ),
        Form(
            name="sharpened S4",
            note="The bound uses 1 as the Lipschitz constant of softmax, where the paper uses 2.",
            equality=_ONLY_W,
        ),
    ),
    control="a hundredth of the corrected bound",
    source="Theorem 4.2 and its proof",
)


def _words_sample(key: Array, size: Size) -> Instance:
    a, b, c = jax.random.split(key, 3)
    drawn = draw.normals(a, {"V": (size["K"], size["d"]), "step": (size["K"], size["d"])})
    V = draw.unit(drawn["V"])
    moved = V + draw.log_uniform(b, -3.0, 0.0) * drawn["step"]
    network = _network_sample(c, size)
    return {**{n: network[n] for n in ("X", "layers", "moved")}, "V": V, "Vhat": draw.unit(moved)}


def _word_masking(instance: Instance, size: Size) -> Sides:
    V, Vhat, K = instance["V"], instance["Vhat"], size["K"]
    run = lambda weights: blocks(instance["X"], weights, activation=jnp.tanh)[-1][0]
    exact, moved = V @ run(instance["layers"]), Vhat @ run(instance["moved"])
    norms, total = _resolutions(instance, size)
    step = jnp.max(jnp.linalg.norm(V - Vhat, axis=1))
    plain = terms_corrected(norms, ONES, size["L"], softmax_constant=1.0)
    listed = terms_word_masking(plain, K)
    # The readout needs K covers, one for each row; the other matrices keep their covers.
    count = jnp.sum(listed.C) - jnp.sum(plain.C)
    return Sides.pairs(
        {
            "derived": (
                jnp.abs(cross_entropy(exact, 0) - cross_entropy(moved, 0)),
                total(listed.beta, step),
            ),
            "derived, covers": (count, K - 1.0),
            "control": (jnp.max(jnp.abs(exact - moved)), total(listed.beta, step) / 100.0),
        },
        error={"derived": 1e-13, "derived, covers": 0.0, "control": 1e-13},
        trivial=4.0,
    )


WORD_MASKING = on_networks(
    id="seqlength.thm5.1.cover",
    label="Theorem 5.1 by covers",
    tex=r"|\ell(V g) - \ell(\hat{V} \hat{g})| \le 2 \max_s \|v_s - \hat{v}_s\| + 2 B_w \sum_i "
    r"\beta_i \epsilon_i, \quad \ln \mathcal{N} = K \frac{C_w}{\epsilon_w^2} + \sum_i "
    r"\frac{C_i}{\epsilon_i^2}",
    formula="covers at eps_i of the rows of V and of the matrices cover the cross entropy at"
    " 2 sum_i beta_i eps_i; only the rows' cover counts K times",
    sample=_words_sample,
    cases=None,
    search="random",
    budget=Budget(samples=128, restarts=2, steps=20, batch=64),
    sizes=({"L": 2, "T": 2, "d": 2, "k": 2, "K": 3},),
    hypotheses=lambda i, size: {
        **moved_enough({**i["layers"], "w": i["V"]}, {**i["moved"], "w": i["Vhat"]}),
        "||v_s|| <= B_w = 1": jnp.linalg.norm(jnp.stack([i["V"], i["Vhat"]]), axis=2) <= 1 + 1e-12,
    },
    evaluate=_word_masking,
    judges=(terms_word_masking, terms_corrected, blocks),
    forms=(
        Form(
            name="derived",
            note="The loss is 2-Lipschitz in l_infinity. Only the bound's term for the read-out "
            "has the factor sqrt(K) of Theorem 5.1 (K: the number of words), and the bound has no "
            "logarithm.",
        ),
        Form(
            name="derived, covers",
            note=(
                "The bound uses K covers of the read-out, one for each output word. The bound for "
                "the scalar network uses only one cover of the read-out."
            ),
            equality="always",
        ),
    ),
    control="a hundredth of the right side, for the scores",
    source="Theorem 5.1, 'or Theorem 4.2 for L >= 1'",
)

STATEMENTS = (CHAIN, COVER, WORD_MASKING)
