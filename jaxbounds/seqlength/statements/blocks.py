"""Lemmas E.2 and E.3: perturbations of one block and of the readout."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.claims.sets import Matrices, Reals
from jaxbounds.claims.statements import Counterexample, Form, Instance, Sides, Size
from jaxbounds.numerics.norms import max_row_norm, project_rows
from jaxbounds.seqlength import perturbation
from jaxbounds.seqlength.model import Activation, block
from jaxbounds.seqlength.statements import instances as draw

OPPOSITE = [[4.0, 0.0], [-4.0, 0.0]]
_KEYS = {"W_v": [[0.25, 0.0], [0.0, 0.25]], "W_c": [[1.0, 0.0], [0.0, 1.0]]}
LAYER = {"W_QK": [[0.0005, 0.0], [0.0, 0.0]], **_KEYS}
MOVED = {"W_QK": [[-0.0005, 0.0], [0.0, 0.0]], **_KEYS}
"""A copy of `LAYER` with a slightly different W_QK; the inputs are opposite tokens of norm 4."""

_ONLY_W_C = "only W_c moves, and the outer projection is inactive"


def meets_appendix_e(instance: Instance, size: Size) -> dict[str, Any]:
    """Check the assumptions of Theorem 4.2 and Appendix E for a layer and its perturbed copy."""
    named = {"layer": instance.get("layer", instance.get("layers")), "moved": instance["moved"]}
    bounds = {"W_QK": 0.0005, "W_v": 0.25, "W_c": 1.0}
    norm = lambda W: np.linalg.norm(np.asarray(W), ord=2, axis=(-2, -1)).max()
    met: dict[str, Any] = {
        f"||{name}||_2 of both <= {bound} (Theorem 4.2)": max(
            norm(weights[name]) for weights in named.values()
        )
        <= bound
        for name, bound in bounds.items()
    }
    met["||x||_2 <= B_x = 4 (Theorem 4.2)"] = np.linalg.norm(instance["X"], axis=1).max() <= 4
    w = np.asarray(instance.get("w", [1.0]))
    met["||w|| <= B_w = 1 (Theorem 4.2)"] = np.linalg.norm(w) <= 1
    z = np.linspace(-3.0, 3.0, 61)
    met["sigma(0) = 0, L_sigma = 1 (Section 2.6)"] = np.tanh(0.0) == 0 and bool(
        np.all(np.diff(np.tanh(z)) <= np.diff(z))
    )
    return met


def weights_and_step(key: Array, size: Size) -> tuple[Instance, Instance]:
    """Draw the weights of a block and a perturbed copy of them.

    Each matrix has a random scale, and noise perturbs the copy.
    """
    d, k = size["d"], size["k"]
    entry_key, scale_key = jax.random.split(key)
    drawn = draw.normals(entry_key, {"W_QK": (2, d, d), "W_v": (2, d, k), "W_c": (2, k, d)})
    low, high = jnp.array([-1.0, -1.0, -1.0, -3.0]), jnp.array([0.7, 0.7, 0.7, 0.0])
    *scales, amount = draw.log_uniform(scale_key, low, high, (4,))
    layer = {name: s / math.sqrt(d) * W[0] for s, (name, W) in zip(scales, drawn.items())}
    return layer, {name: layer[name] + amount * W[1] for name, W in drawn.items()}


def moved_enough(weights: Instance, moved: Instance) -> dict[str, Array]:
    """Return the hypothesis that the weights change by at least 1e-5, far more than by rounding."""
    steps = [jnp.max(jnp.abs(weights[name] - moved[name])) for name in weights]
    return {"weights moved by 1e-5": jnp.max(jnp.stack(steps)) >= 1e-5}


def opposite_tokens(size: Size, *, count: int = 24) -> list[dict]:
    """Return instances with two opposite tokens of norm B_x, W_v = I / B_x, and two close W_QK."""
    rng, rows, d, k = np.random.default_rng(0), [], size["d"], size["k"]
    corner = np.zeros((d, d))
    corner[0, 0] = 1.0
    for _ in range(count):
        B_x, step = 10.0 ** rng.uniform(0.0, 1.0), 10.0 ** rng.uniform(-4.0, -1.5)
        X = np.zeros((size["T"], d))
        X[:, 0] = B_x * (-1.0) ** np.arange(size["T"])
        layer = {"W_QK": step / 2.0 * corner, "W_v": np.eye(d, k) / B_x, "W_c": np.eye(k, d)}
        rows.append({"layer": layer, "moved": {**layer, "W_QK": -layer["W_QK"]}, "X": X})
    return rows


def _only_W_c(rng: np.random.Generator, size: Size) -> tuple[Instance, Instance]:
    d, k = size["d"], size["k"]
    layer = {"W_QK": rng.normal(size=(d, d)), "W_v": rng.normal(size=(d, k))}
    W_c = rng.uniform(-1.0, 1.0, size=(2, k, d)) / (k * math.sqrt(d))
    return {**layer, "W_c": W_c[0]}, {**layer, "W_c": W_c[1]}


def _block_sample(key: Array, size: Size) -> Instance:
    weight_key, token_key, near_key, slope_key = jax.random.split(key, 4)
    layer, moved = weights_and_step(weight_key, size)
    shape = (size["T"], size["d"])
    tokens = draw.normals(token_key, {"g": shape, "step": shape})
    g, near = draw.unit(tokens["g"]), draw.log_uniform(near_key, -3.0, 0.0)
    ghat = project_rows(g + near * tokens["step"], 1.0)
    slopes = jax.random.exponential(slope_key, (3,))
    return {"layer": layer, "moved": moved, "g": g, "ghat": ghat, "slopes": slopes}


def _block_cases(size: Size) -> Instance:
    rng, rows = np.random.default_rng(0), []
    for _ in range(8):
        layer, moved = _only_W_c(rng, size)
        g = rng.uniform(-1.0, 1.0, size=(size["T"], size["d"])) / math.sqrt(size["d"])
        slopes = 0.5 * rng.dirichlet(np.ones(3))
        rows.append({"layer": layer, "moved": moved, "g": g, "ghat": g, "slopes": slopes})
    return draw.stacked(rows)


def _moved(
    g: Array, ghat: Array, layer: Instance, moved: Instance, activation: Activation = jnp.tanh
) -> Array:
    run = lambda g, weights: block(g, weights, activation=activation)
    return max_row_norm(run(g, layer) - run(ghat, moved))


def _lemma_e_2(instance: Instance, size: Size) -> Sides:
    g, ghat = instance["g"], instance["ghat"]
    layer, moved = instance["layer"], instance["moved"]
    sigma, L_sigma = draw.activation(instance["slopes"]), jnp.sum(instance["slopes"])
    parts = perturbation.block_perturbation(g, ghat, layer, moved, activation=sigma)
    norms = perturbation.spectral_norms(layer, moved)
    bound = functools.partial(perturbation.lemma_e_2, parts, norms, L_sigma)
    return Sides(
        _moved(g, ghat, layer, moved, sigma),
        {
            "printed": bound(),
            "sharpened S4": bound(softmax_constant=1.0),
            "control": bound() / 20.0,
        },
        error=1e-13,
        trivial=2.0,
    )


LEMMA_E_2 = draw.inequality(
    id="seqlength.lemmae.2",
    label="Lemma E.2, i >= 2",
    tex=r"\|\Delta g^{(i+1)\top}\|_{2,\infty} \le \|\Delta W_c^{(i)\top} "
    r"\sigma(\cdot)^\top\|_{2,\infty} + L_\sigma B_{c2} B_{v2} (1 + 4 B_{QK2}) \|\Delta "
    r"g^{(i)\top}\|_{2,\infty} + 2 L_\sigma B_{c2} B_{v2} \|\Delta W_{QK}^{(i)\top} "
    r"\hat{g}^{(i)\top}\|_{2,\infty} + L_\sigma B_{c2} \|\Delta W_v^{(i)\top} "
    r"\hat{g}^{(i)\top}\|_{2,\infty}",
    formula="||d g^(i+1)|| <= ||dW_c^T ..|| + L B_c B_v (1 + 4 B_QK) ||d g^(i)||"
    " + 2 L B_c B_v ||dW_QK^T ..|| + L B_c ||dW_v^T ..||",
    budget=draw.MANY,
    over=dict.fromkeys(("g", "ghat"), Matrices(("T", "d"), norm="rows")),
    sample=_block_sample,
    cases=_block_cases,
    hypotheses=lambda i, size: moved_enough(i["layer"], i["moved"]),
    evaluate=_lemma_e_2,
    judges=(perturbation.lemma_e_2, perturbation.block_perturbation, perturbation.spectral_norms),
    sizes=({"T": 3, "d": 2, "k": 2},),
    forms=(
        Form(
            name="printed",
            cites="Lemma E.2, its display",
            note="Except for the first block, the inputs of all blocks are in the unit ball. The "
            "check uses the "
            "activation sigma(z) = a z + b tanh(z) + c relu(z) with the Lipschitz constant "
            "L_sigma = a + b + c.",
            equality=_ONLY_W_C,
        ),
        Form(
            name="sharpened S4",
            note="If softmax has the Lipschitz constant 1, the bound has the factor 1 + 2 B_QK. "
            "The bound's term for W_QK has the coefficient 1.",
            equality=_ONLY_W_C,
        ),
    ),
    control="a twentieth of the right side",
    source="Lemma E.2, from Edelman et al. (2022), Lemma A.15",
)


def _first_sample(key: Array, size: Size) -> Instance:
    weight_key, token_key, scale_key = jax.random.split(key, 3)
    layer, moved = weights_and_step(weight_key, size)
    X = draw.log_uniform(scale_key, -0.5, 1.0) * draw.l2_sphere(token_key, (size["T"], size["d"]))
    return {"layer": layer, "moved": moved, "X": X}


def _first_cases(size: Size) -> Instance:
    rng, rows = np.random.default_rng(0), opposite_tokens(size)
    for _ in range(8):
        layer, moved = _only_W_c(rng, size)
        rows.append(
            {"layer": layer, "moved": moved, "X": 3.0 * rng.normal(size=(size["T"], size["d"]))}
        )
    return draw.stacked(rows)


def _first_block(instance: Instance, size: Size) -> Sides:
    X, layer, moved = instance["X"], instance["layer"], instance["moved"]
    parts = perturbation.block_perturbation(X, X, layer, moved, activation=jnp.tanh)
    norms = perturbation.spectral_norms(layer, moved)
    bound = functools.partial(perturbation.lemma_e_2, parts, norms, 1.0)
    corrected = bound(radius=parts.radius)
    return Sides(
        _moved(X, X, layer, moved),
        {
            "printed": bound(),
            "corrected": corrected,
            "sharpened S4": bound(softmax_constant=1.0, radius=parts.radius),
            "control": corrected / 5.0,
        },
        error=1e-13,
        trivial=2.0,
    )


FIRST_BLOCK = draw.inequality(
    id="seqlength.lemmae.2.first",
    label="Lemma E.2, i = 1",
    tex=r"\|\Delta g^{(2)\top}\|_{2,\infty} \le \|\Delta W_c^{(1)\top} "
    r"\sigma(\cdot)^\top\|_{2,\infty} + 2 L_\sigma B_{c2} B_{v2} \|\Delta "
    r"W_{QK}^{(1)\top} X^\top\|_{2,\infty} + L_\sigma B_{c2} \|\Delta W_v^{(1)\top} "
    r"X^\top\|_{2,\infty}, \quad \|x_t\|_2 \le B_x",
    formula="the same for g^(1) = X with tokens of norm up to B_x",
    budget=draw.MANY,
    sample=_first_sample,
    cases=_first_cases,
    hypotheses=lambda i, size: moved_enough(i["layer"], i["moved"]),
    evaluate=_first_block,
    judges=(perturbation.lemma_e_2, perturbation.block_perturbation, perturbation.spectral_norms),
    sizes=({"T": 2, "d": 2, "k": 2},),
    forms=(
        Form(
            name="printed",
            cites="Lemma E.2, its display, at i = 1",
            erratum="E9",
            note="In the first block, a perturbation dW of W_QK changes the attention scores by "
            "up to B_x ||dW^T x||, and the values have norms up to B_v B_x.",
            counterexample=Counterexample(
                instance={"layer": LAYER, "moved": MOVED, "X": OPPOSITE},
                ratio=7.999658686326246,
                meets=meets_appendix_e,
            ),
        ),
        Form(
            name="corrected",
            note="In the bound on the change of the block's output, the term for W_QK has one "
            "more factor B_x^2 than the printed term, where B_x is the largest token norm.",
            equality=_ONLY_W_C,
        ),
        Form(
            name="sharpened S4",
            note="In the bound on the change of the block's output, the term for W_QK has the "
            "factor B_x^2, where B_x is the largest token norm. The numerical coefficient of the "
            "term is 1, because softmax has the Lipschitz constant 1.",
            equality=_ONLY_W_C,
        ),
    ),
    control="a fifth of the corrected bound",
    source="Lemma E.2 at i = 1, used in the proof of Theorem 4.2",
)


def _lemma_e_3(instance: Instance, size: Size) -> Sides:
    w, what, g, ghat = (instance[name] for name in ("w", "what", "g", "ghat"))
    alone = jnp.linalg.norm(w) * jnp.linalg.norm(g - ghat)
    bound = perturbation.lemma_e_3(w, what, g, ghat)
    return Sides(jnp.abs(w @ g - what @ ghat), {"printed": bound, "control": alone})


def _along(size: Size) -> Instance:
    g, ghat = np.random.default_rng(0).normal(size=(2, 8, size["d"]))
    return {"w": g - ghat, "what": g - 1.5 * ghat, "g": g, "ghat": ghat}


LEMMA_E_3 = draw.inequality(
    id="seqlength.lemmae.3",
    label="Lemma E.3",
    tex=r"|w^\top g - \hat{w}^\top \hat{g}| \le \|w\| \|g - \hat{g}\| + |(w - \hat{w})^\top "
    r"\hat{g}|",
    formula="|w.g - what.ghat| <= ||w|| ||g - ghat|| + |(w - what).ghat|",
    over=dict.fromkeys(("w", "what", "g", "ghat"), Reals("d")),
    cases=_along,
    evaluate=_lemma_e_3,
    judges=(perturbation.lemma_e_3,),
    sizes=({"d": 2},),
    forms=(
        Form(
            name="printed",
            cites="Lemma E.3, its display",
            equality="w = c (g - ghat), signs agreeing",
        ),
    ),
    control="without the second term",
    source="Lemma E.3, from Edelman et al. (2022), Lemma A.16",
)

STATEMENTS = (LEMMA_E_2, FIRST_BLOCK, LEMMA_E_3)
