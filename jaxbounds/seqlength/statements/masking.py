"""Section 5 and Appendix G: the prediction of a masked word."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.claims.sets import Box, Integers, Reals
from jaxbounds.claims.statements import Budget, Domain, Form, Instance, Sides, Size, Statement
from jaxbounds.seqlength import masking
from jaxbounds.seqlength.rademacher import empirical_rademacher
from jaxbounds.seqlength.statements.instances import gradient_search, identity, inequality


def _gradient(instance: Instance, size: Size) -> Sides:
    x = instance["x"]
    slope = jnp.sum(jnp.abs(jax.grad(masking.cross_entropy)(x, 0)))
    return Sides(
        slope, {"printed": masking.gradient_l1(x, 0), "control": 2.0 * jax.nn.softmax(x)[0]}
    )


GRADIENT = identity(
    id="seqlength.appg",
    label="Appendix G, the gradient",
    tex=r"\|\nabla_x L(x, y)\|_1 = 2 \left( 1 - \mathrm{softmax}(x)_i \right), \quad y = e_i",
    formula="||grad_x CE(x, i)||_1 = 2 (1 - softmax(x)_i)",
    over={"x": Box(-8, 8, "K")},
    evaluate=_gradient,
    judges=(masking.gradient_l1, masking.cross_entropy),
    sizes=({"K": 4},),
    forms=(
        Form(
            name="printed",
            cites="Appendix G, the two partial derivatives",
            note="The sum of Appendix G's two displays equals the norm of the gradient that "
            "automatic differentiation gives.",
        ),
    ),
    control="2 softmax(x)_i",
)


def _corners(size: Size) -> Instance:
    M = np.linspace(0.5, 3.0, 16)[:, None]
    corner = np.where(np.arange(size["K"]) == 0, -1.0, 1.0)[None]
    return {"x": M * corner, "y": (M - 1e-3) * corner}


def _lipschitz(instance: Instance, size: Size) -> Sides:
    x, y, K = instance["x"], instance["y"], size["K"]
    distance = jnp.max(jnp.abs(x - y))
    M = jnp.maximum(jnp.max(jnp.abs(x)), jnp.max(jnp.abs(y)))
    return Sides(
        jnp.abs(masking.cross_entropy(x, 0) - masking.cross_entropy(y, 0)),
        {
            "printed": masking.lipschitz_constant(K) * distance,
            "sharpened S11": masking.lipschitz_constant(K, M) * distance,
            "control": distance,
        },
        error=1e-14,
    )


TWO_WORDS = Domain(
    name="K = 2, logits (s, 0) and (s + t, 0), |s| <= 4, t in [1/64, 4]",
    chart=lambda point, size: {
        "x": jnp.stack([point[0], 0.0 * point[0]]),
        "y": jnp.stack([point[0] + point[1], 0.0 * point[0]]),
    },
    size={"K": 2},
    lower=(-4.0, 1 / 64),
    upper=(4.0, 4.0),
)

LIPSCHITZ = gradient_search(
    id="seqlength.sec5.lipschitz",
    label="Section 5, the loss is 2-Lipschitz in l_infinity",
    tex=r"|\ell_i(y, x) - \ell_i(y, x')| \le 2 \|x - x'\|_\infty",
    formula="|CE(x, i) - CE(y, i)| <= 2 ||x - y||_infinity",
    budget=Budget(samples=64, restarts=4, steps=40, batch=64),
    over=dict.fromkeys("xy", Box(-4, 4, "K")),
    cases=_corners,
    hypotheses=lambda i, size: {"logits 1e-3 apart": jnp.max(jnp.abs(i["x"] - i["y"])) >= 0.999e-3},
    evaluate=_lipschitz,
    judges=(masking.lipschitz_constant, masking.cross_entropy),
    sizes=({"K": 3},),
    assumptions="K = 3, logits within 4 (for larger logits the two constants agree up to "
    "rounding) and 1e-3 apart; the right word is the first word, which suffices by "
    "symmetry",
    forms=(
        Form(
            name="printed",
            cites="Appendix G, the first display; Theorem 5.1, proof",
            note="The supremum of the l_1 norm of the loss's gradient is 2, which extreme logits "
            "approach.",
            domains=(TWO_WORDS,),
        ),
        Form(
            name="sharpened S11",
            note="The Lipschitz constant of the loss is 2 (1 - 1/(1 + (K-1) e^{2M})) for K words "
            "and logits in [-M, M]. At a corner of the cube of logits, the loss changes at nearly "
            "this rate.",
            domains=(TWO_WORDS,),
        ),
    ),
    control="constant 1",
    source="Section 5, Appendix G",
)


on_words = functools.partial(
    Statement,
    kind="inequality",
    search="gradient",
    budget=Budget(samples=64, restarts=2, steps=30, batch=64),
    over={"V": Reals(("words", "d")), "Y": Reals(("m", "d")), "labels": Integers(0, "K-1", "m")},
    hypotheses=lambda i, size: {"V has two functions": jnp.max(jnp.std(i["V"], axis=0)) > 1e-3},
)


def _losses(scores: Array, labels: Array, K: int) -> Array:
    grids = jnp.meshgrid(*[jnp.arange(scores.shape[0])] * K, indexing="ij")
    chosen = jnp.stack([grid.ravel() for grid in grids])
    logits = jnp.moveaxis(scores[chosen], 0, -1)
    return jax.vmap(jax.vmap(masking.cross_entropy), (0, None))(logits, labels)


def _theorem_5_1(instance: Instance, size: Size) -> Sides:
    scores = instance["V"] @ instance["Y"].T
    scalar, K = empirical_rademacher(scores), size["K"]
    return Sides(
        empirical_rademacher(_losses(scores, instance["labels"], K)),
        {"printed": masking.theorem_5_1_leading(scalar, K), "control": scalar / 2.0},
    )


THEOREM_5_1 = on_words(
    id="seqlength.thm5.1",
    label="Theorem 5.1",
    tex=r"\mathbb{E} \sup_{W, Y} \sum_{i=1}^m \epsilon_i \ell_i\left( W (Y_L^{(i)})_\tau "
    r"\right) \le \tilde{O}(\sqrt{K}) \max_s \mathbb{E} \sup_{W_s, Y} \sum_{i=1}^m "
    r"\epsilon_i W_s (Y_L^{(i)})_\tau",
    formula="E sup sum eps_i CE(W Y^(i)) <= O~(sqrt K) max_s E sup sum eps_i W_s Y^(i)",
    evaluate=_theorem_5_1,
    judges=(masking.theorem_5_1_leading, masking.cross_entropy),
    assumptions="finite classes of rows W_s, equal for all s, and given outputs Y; the bound "
    "omits the logarithms of m in O~(.), which would only enlarge it; the contraction "
    "of Foster and Rakhlin is about the largest complexity over samples",
    sizes=({"K": 3, "words": 4, "d": 2, "m": 6},),
    forms=(
        Form(
            name="printed",
            cites="Theorem 5.1, proof, the display",
            note="The bound on the loss's complexity is the leading term 2 sqrt K max_s Rad(F_s) "
            "with the hidden constant 1. K is the number of words, and F_s is the class of the "
            "scores of word s.",
        ),
    ),
    control="half of Rad, without sqrt K",
)


def _binary(instance: Instance, size: Size) -> Sides:
    scores, labels = instance["V"] @ instance["Y"].T, instance["labels"]
    difference = (scores[None] - scores[:, None]).reshape(-1, size["m"])
    direct = masking.binary_loss(difference, jnp.broadcast_to(labels, difference.shape))
    loss, scalar = _losses(scores, labels, 2), empirical_rademacher(difference)
    whole = empirical_rademacher(loss)
    # The two descriptions of the loss agree for each function.
    scale = 1.0 + jnp.max(jnp.abs(scores))
    apart = jnp.max(jnp.abs(direct - loss)) / scale
    return Sides.pairs(
        {
            "sharpened S9": (whole, scalar),
            "sharpened S9 loss": (1.0 + apart, 1.0),
            "control": (whole, scalar / 4.0),
        },
        error=dict.fromkeys(("sharpened S9", "control"), 1e-14 * scale)
        | {"sharpened S9 loss": 1e-14},
    )


BINARY = on_words(
    id="seqlength.thm5.1.binary",
    label="Theorem 5.1 for two words",
    tex=r"\mathrm{Rad}_m(\ell \circ \mathcal{H}, S) \le \mathrm{Rad}_m\left( \{ x \mapsto "
    r"(w_1 - w_0)^\top Y(x) \}, S \right), \quad K = 2",
    formula="K = 2: Rad(loss) <= Rad{x -> (w_1 - w_0).Y(x)}",
    evaluate=_binary,
    judges=(masking.binary_loss, masking.cross_entropy),
    sizes=({"K": 2, "words": 4, "d": 2, "m": 6},),
    forms=(
        Form(
            name="sharpened S9",
            note="For two words (K = 2), the loss is a logistic function of the difference x_1 - "
            "x_0 of the scores. This function is 1-Lipschitz. The bound therefore needs no sqrt "
            "K, no factor 2 and no logarithms.",
        ),
        Form(
            name="sharpened S9 loss",
            note="The cross entropy for K = 2 equals the logistic loss of x_1 - x_0.",
            equality="always",
        ),
    ),
    control="a quarter of the right side",
    source="Section 6 uses K = 2",
)


CLIP = 1.0
"""The value c, in nats, at which the check clips losses; a larger value clips fewer losses."""


def _uncut(size: Size) -> Instance:
    F = np.random.default_rng(0).normal(size=(4, size["functions"], size["m"]))
    at_clip = np.log(np.expm1(CLIP)) + F - np.max(F, axis=(1, 2), keepdims=True)
    return {"F": np.concatenate([at_clip - 1.0, at_clip])}


def _clipping(instance: Instance, size: Size) -> Sides:
    whole = empirical_rademacher(jax.nn.softplus(instance["F"]))
    cut = empirical_rademacher(masking.clipped(jax.nn.softplus, CLIP)(instance["F"]))
    return Sides(cut, {"derived": whole, "control": whole / 4.0})


CLIPPING = inequality(
    id="seqlength.sec5.clipping",
    label="Section 5, clipped cross entropy",
    tex=r"\mathrm{Rad}_m(\min(\ell, c) \circ \mathcal{H}, S) \le \mathrm{Rad}_m(\ell \circ "
    r"\mathcal{H}, S)",
    formula="Rad(min(loss, c)) <= Rad(loss)",
    over={"F": Reals(("functions", "m"))},
    cases=_uncut,
    evaluate=_clipping,
    judges=(masking.clipped,),
    sizes=({"functions": 4, "m": 6},),
    forms=(
        Form(
            name="derived",
            cites="Section 5, the last paragraph, which prints no inequality",
            note="Clipping the loss is a 1-Lipschitz map, so clipped losses have no larger "
            "Rademacher complexity.",
            equality="no loss above c",
        ),
    ),
    control="a quarter of the right side",
    source="Section 5, after Theorem 5.1",
)

STATEMENTS = (LIPSCHITZ, THEOREM_5_1, BINARY, CLIPPING, GRADIENT)
