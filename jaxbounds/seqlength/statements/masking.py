"""Section 5 and Appendix G: predicting a masked word."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.seqlength.masking import (
    binary_loss,
    cross_entropy,
    gradient_l1,
    theorem_5_1_leading,
)
from jaxbounds.seqlength.rademacher import empirical_rademacher
from jaxbounds.seqlength.statements.instances import FEW, log_uniform, normals
from jaxbounds.statements import Form, Sides, Statement


def _logits(key, size):
    a, b = jax.random.split(key)
    drawn = normals(a, {"x": (size["K"],), "step": (size["K"],)})
    x = 5.0 * drawn["x"]
    return {"x": x, "y": x + log_uniform(b, -2.0, 0.5) * drawn["step"]}


def _corners(size):
    """All other words at M, the right one at -M, and a small step on."""
    M = np.linspace(0.5, 3.0, 16)[:, None]
    corner = np.where(np.arange(size["K"]) == 0, -1.0, 1.0)[None]
    return {"x": M * corner, "y": (M - 1e-3) * corner}


def _gradient(instance):
    x = instance["x"]
    slope = jnp.sum(jnp.abs(jax.grad(cross_entropy)(x, 0)))
    p = jax.nn.softmax(x)
    return Sides(slope, {"printed": gradient_l1(x, 0), "control": 2.0 * p[0]})


GRADIENT = Statement(
    id="seqlength.appendix-g",
    label="Appendix G, the gradient",
    formula="||grad_x CE(x, i)||_1 = 2 (1 - softmax(x)_i)",
    kind="identity",
    sample=lambda key, size: {"x": 2.0 * jax.random.normal(key, (size["K"],))},
    evaluate=_gradient,
    sizes=({"K": 4},),
    forms=(Form(name="printed", note="the two displays of Appendix G, added; autograd agrees"),),
    control="2 softmax(x)_i",
    budget=FEW,
    source="Appendix G",
)


def _lipschitz(instance):
    x, y = instance["x"], instance["y"]
    K = x.shape[0]
    distance = jnp.max(jnp.abs(x - y))
    M = jnp.maximum(jnp.max(jnp.abs(x)), jnp.max(jnp.abs(y)))
    sharp = 2.0 / (1.0 + jnp.exp(-2.0 * M) / (K - 1))
    return Sides(
        jnp.abs(cross_entropy(x, 0) - cross_entropy(y, 0)),
        {
            "printed": 2.0 * distance,
            "sharpened S11": sharp * distance,
            "control": distance,
        },
        error=1e-14,
    )


LIPSCHITZ = Statement(
    id="seqlength.sec5-lipschitz",
    label="Section 5, the loss is 2-Lipschitz in l_infinity",
    formula="|CE(x, i) - CE(y, i)| <= 2 ||x - y||_infinity",
    kind="inequality",
    sample=_logits,
    cases=_corners,
    evaluate=_lipschitz,
    search="none",
    sizes=({"K": 3},),
    forms=(
        Form(name="printed", note="the supremum is 2, at extreme logits"),
        Form(
            name="sharpened S11",
            note="2 (1 - 1/(1 + (K-1) e^{2M})) for logits within M; approached at a corner",
        ),
    ),
    control="constant 1",
    budget=FEW,
    source="Section 5, Appendix G",
)


def _words_sample(key, size):
    a, b, c = jax.random.split(key, 3)
    drawn = normals(a, {"V": (size["words"], size["d"]), "Y": (size["m"], size["d"])})
    return {
        "V": log_uniform(b, -1.0, 1.0) * drawn["V"],
        "Y": drawn["Y"],
        "labels": jax.random.randint(c, (size["m"],), 0, size["K"]),
        "slots": jnp.zeros(size["K"], jnp.int32),
    }


def _losses(scores, labels, K):
    """CE of every choice of K scalar functions, values (functions, m)."""
    count = scores.shape[0]
    grids = jnp.meshgrid(*[jnp.arange(count)] * K, indexing="ij")
    chosen = jnp.stack([grid.ravel() for grid in grids])
    logits = jnp.moveaxis(scores[chosen], 0, -1)
    picked = jnp.take_along_axis(
        logits, jnp.broadcast_to(labels[None, :, None], (*logits.shape[:2], 1)), axis=2
    )
    return jax.nn.logsumexp(logits, axis=-1) - picked[..., 0]


def _theorem_5_1(instance):
    scores = instance["V"] @ instance["Y"].T
    K = instance["slots"].shape[0]
    loss = _losses(scores, instance["labels"], K)
    scalar = empirical_rademacher(scores)
    return Sides(
        empirical_rademacher(loss),
        {"printed": theorem_5_1_leading(scalar, K), "control": scalar / 2.0},
    )


THEOREM_5_1 = Statement(
    id="seqlength.thm5.1",
    label="Theorem 5.1",
    formula="E sup sum eps_i CE(W Y^(i)) <= O~(sqrt K) max_s E sup sum eps_i W_s Y^(i)",
    kind="inequality",
    sample=_words_sample,
    evaluate=_theorem_5_1,
    search="none",
    hypotheses=lambda i: {"V has two functions": jnp.max(jnp.std(i["V"], axis=0)) > 1e-3},
    sizes=({"K": 3, "words": 4, "d": 2, "m": 6},),
    forms=(
        Form(
            name="printed",
            note="the leading term 2 sqrt K max_s Rad, hidden constant 1, on finite classes of"
            " rows; the contraction of Foster and Rakhlin needs worst-case complexities",
        ),
    ),
    control="half of Rad, without sqrt K",
    budget=FEW,
    source="Theorem 5.1",
)


def _binary(instance):
    scores = instance["V"] @ instance["Y"].T
    labels = instance["labels"]
    loss = _losses(scores, labels, 2)
    count = scores.shape[0]
    difference = (scores[None] - scores[:, None]).reshape(count**2, -1)
    direct = binary_loss(difference, jnp.broadcast_to(labels, difference.shape))
    scalar = empirical_rademacher(difference)
    # The two descriptions of the loss agree function by function.
    return Sides(
        jnp.maximum(empirical_rademacher(loss), empirical_rademacher(direct)),
        {"sharpened S9": scalar, "control": scalar / 4.0},
    )


BINARY = Statement(
    id="seqlength.thm5.1-binary",
    label="Theorem 5.1 for two words",
    formula="K = 2: Rad(loss) <= Rad{x -> (w_1 - w_0).Y(x)}",
    kind="inequality",
    sample=_words_sample,
    evaluate=_binary,
    hypotheses=lambda i: {"V has two functions": jnp.max(jnp.std(i["V"], axis=0)) > 1e-3},
    search="none",
    sizes=({"K": 2, "words": 4, "d": 2, "m": 6},),
    forms=(
        Form(
            name="sharpened S9",
            note="the loss is logistic in x_1 - x_0, 1-Lipschitz: no sqrt K, 2, or logarithms",
        ),
    ),
    control="a quarter of it",
    budget=FEW,
    source="Section 6 uses K = 2",
)


def _clipping(instance):
    losses = jax.nn.softplus(instance["F"])
    return Sides(
        empirical_rademacher(jnp.minimum(losses, 1.0)),
        {
            "printed": empirical_rademacher(losses),
            "control": empirical_rademacher(losses) / 4.0,
        },
    )


CLIPPING = Statement(
    id="seqlength.sec5-clipping",
    label="Section 5, clipped cross entropy",
    formula="Rad(min(loss, c)) <= Rad(loss)",
    kind="inequality",
    sample=lambda key, size: {"F": jax.random.normal(key, (size["functions"], size["m"])) - 0.5},
    evaluate=_clipping,
    search="none",
    sizes=({"functions": 4, "m": 6},),
    forms=(Form(name="printed", note="clipping is 1-Lipschitz", equality="no loss above c"),),
    control="a quarter of it",
    budget=FEW,
    source="Section 5, after Theorem 5.1",
)

STATEMENTS = (LIPSCHITZ, THEOREM_5_1, BINARY, CLIPPING, GRADIENT)
