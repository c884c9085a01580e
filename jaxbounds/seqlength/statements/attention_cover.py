"""Appendix C: Lemma C.1 and the cover of the attention class."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.claims.sets import Reals
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size
from jaxbounds.numerics.norms import vector_norm
from jaxbounds.seqlength.model import attend_from
from jaxbounds.seqlength.perturbation import softmax_distance
from jaxbounds.seqlength.single_layer import attention_lipschitz, residual_range
from jaxbounds.seqlength.statements import instances as draw


def _two_blocks(size: Size) -> Instance:
    sign = np.where(np.arange(size["p"]) < size["p"] // 2, 0.5, -0.5)
    half = np.geomspace(1e-2, 10.0, 24)[:, None] * sign[None]
    return {"theta": -half, "step": 2.0 * half}


def _softmax(instance: Instance, size: Size) -> Sides:
    theta, step = instance["theta"], instance["step"]
    largest = jnp.max(jnp.abs(step))
    return Sides(
        jnp.sum(jnp.abs(jax.nn.softmax(theta + step) - jax.nn.softmax(theta))),
        {
            "printed": 2.0 * largest,
            "sharpened S4": largest,
            "sharpened S4 tanh": softmax_distance((jnp.max(step) - jnp.min(step)) / 2.0),
            "control": largest / 2.0,
        },
        error=4e-15,
        trivial=2.0,
    )


LEMMA_C_1 = draw.gradient_search(
    id="seqlength.lemmac.1",
    label="Lemma C.1",
    tex=r"\| \mathrm{softmax}(\theta_1) - \mathrm{softmax}(\theta_2) \|_1 \le 2 \|\theta_1 - "
    r"\theta_2\|_\infty",
    formula="||softmax(theta_1) - softmax(theta_2)||_1 <= 2 ||theta_1 - theta_2||_infinity",
    over={"theta": Reals("p"), "step": Reals("p")},
    cases=_two_blocks,
    project=lambda i, size: {
        **i,
        "step": i["step"] * jnp.maximum(1.0, 1e-2 / jnp.max(jnp.abs(i["step"]))),
    },
    hypotheses=lambda i, size: {"theta moves by 1e-2": jnp.max(jnp.abs(i["step"])) >= 0.999e-2},
    evaluate=_softmax,
    judges=(softmax_distance,),
    sizes=({"p": 6},),
    forms=(
        Form(
            name="printed",
            cites="Lemma C.1, its display",
            note="The paper attributes Lemma C.1 to Edelman et al. (2022), Corollary A.7.",
        ),
        Form(
            name="sharpened S4",
            note=(
                "The Jacobian of softmax at probabilities p has the norm 1 - min_s (p.s)^2 <= 1 "
                "from l_inf to l_1, with the minimum over sign vectors s."
            ),
        ),
        Form(
            name="sharpened S4 tanh",
            note="The bound on the change of softmax is 2 tanh(r / 4), where r is the largest "
            "minus the smallest entry of theta_1 - theta_2. The bound holds for all theta_1 and "
            "theta_2, and does not change if a number is added to all entries of theta_1.",
            equality="two equal blocks, theta_2 = -theta_1",
        ),
    ),
    control="constant 1/2",
)


def _scores_step(instance: Instance) -> Array:
    return jnp.max(vector_norm(instance["X"])) * vector_norm(instance["step"].T @ instance["X"][0])


def _two_tokens(size: Size) -> Instance:
    """Return tokens v (CLS) and -v, and a step of W along v across 0.

    The attention's derivative in W is largest at W = 0.
    """
    rng, rows = np.random.default_rng(0), []
    for amount in np.geomspace(1e-2, 1.0, 24):
        v = 10.0 ** rng.uniform(-0.5, 0.5) * np.eye(size["d"])[0]
        X = (-1.0) ** np.arange(size["T"])[:, None] * v
        slope = amount * np.outer(v, v) / np.sum(v**2) ** 2
        rows.append({"X": X, "W": -slope / 2.0, "step": slope})
    return draw.stacked(rows)


def _attention_step(instance: Instance, size: Size) -> Sides:
    X, W, step = instance["X"], instance["W"], instance["step"]
    change = attend_from(X, W + step, 0) - attend_from(X, W, 0)
    B_x, B_inf = jnp.max(vector_norm(X)), jnp.max(jnp.abs(X))
    moved = vector_norm(step.T @ X[0])
    sharp = attention_lipschitz(B_x, B_inf, softmax_constant=1.0) * moved
    jump, whole = jnp.max(jnp.abs(change)), vector_norm(change)
    in_l2 = attention_lipschitz(B_x, softmax_constant=1.0) * moved
    from_uniform = jnp.max(jnp.abs(attend_from(X, step, 0) - jnp.mean(X, axis=0)))
    return Sides.pairs(
        {
            "printed": (jump, attention_lipschitz(B_x) * moved),
            "printed, l_2 norm": (whole, attention_lipschitz(B_x) * moved),
            "sharpened S5": (jump, sharp),
            "sharpened, l_2 norm": (whole, in_l2),
            "sharpened S7": (from_uniform, residual_range(B_inf, B_x, moved)),
            "control": (jump, sharp / 2.0),
        },
        error=1e-14 * B_inf,
        trivial=2.0 * B_inf,
    )


CHAIN = "Appendix C, the chain of norms before 'the log covering number of S'"

ATTENTION_STEP = draw.gradient_search(
    id="seqlength.appc.cover",
    label="Appendix C, the cover of the attention class",
    tex=r"\left| e_j^\top X^\top \left( \mathrm{softmax}(X W x) - \mathrm{softmax}(X \hat{W} "
    r"x) \right) \right| \le 2 B_x^2 \left\| (W - \hat{W}) x \right\|_2",
    formula="|e_j^T X^T (softmax(X W x) - softmax(X W_hat x))| <= 2 B_x^2 ||(W - W_hat) x||_2",
    budget=Budget(samples=64, restarts=4, steps=30, batch=64),
    over={"X": Reals(("T", "d"))} | dict.fromkeys(("W", "step"), Reals(("d", "d"))),
    cases=_two_tokens,
    project=lambda i, size: {**i, "step": i["step"] * jnp.maximum(1.0, 2e-3 / _scores_step(i))},
    evaluate=_attention_step,
    judges=(attention_lipschitz, residual_range, attend_from),
    hypotheses=lambda i, size: {"the scores move by 1e-3": _scores_step(i) >= 1e-3},
    sizes=({"T": 4, "d": 2},),
    forms=(
        Form(
            name="printed",
            cites=CHAIN,
            note="The first line of Appendix C's inequalities bounds one coordinate of the "
            "attention's output.",
        ),
        Form(
            name="printed, l_2 norm",
            cites=CHAIN,
            note="From the second line on, Appendix C's inequalities bound the l_2 norm of the "
            "whole output vector.",
        ),
        Form(
            name="sharpened S5",
            note="The bound has the factor max |X_tj| B_x (largest entry times largest norm of a "
            "token), and uses the Lipschitz constant 1 of softmax. For tokens X = (v, -v), the two "
            "sides approach equality as W tends to zero.",
        ),
        Form(
            name="sharpened, l_2 norm",
            note=(
                "The bound uses 1 as the Lipschitz constant of softmax. For tokens X = (v, -v), "
                "the two sides approach equality as W tends to zero."
            ),
        ),
        Form(
            name="sharpened S7",
            note="The attention's output differs from the output of uniform attention (W = 0) by "
            "at most 2 B_inf tanh(B_x ||What x||_2 / 2). Here B_inf is the largest absolute entry "
            "of a token, and B_x the largest token norm.",
        ),
    ),
    control="half the sharpened bound",
    source="Appendix C, before 'Therefore, we can see the log covering number of S'",
)

STATEMENTS = (LEMMA_C_1, ATTENTION_STEP)
