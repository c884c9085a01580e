"""Lemma C.1 and the cover of the attention class in Appendix C."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.norms import vector_norm
from jaxbounds.seqlength.model import attend_from
from jaxbounds.seqlength.perturbation import softmax_distance
from jaxbounds.seqlength.statements.instances import FEW, log_uniform, normals, stacked
from jaxbounds.statements import Form, Sides, Statement


def _softmax_sample(key, size):
    a, b = jax.random.split(key)
    drawn = normals(a, {"theta": (size["p"],), "step": (size["p"],)})
    return {**drawn, "step": log_uniform(b, -2.0, 1.0) * drawn["step"]}


def _two_blocks(size):
    """theta_2 = -theta_1 with two equal blocks of opposite signs."""
    sign = np.where(np.arange(size["p"]) < size["p"] // 2, 0.5, -0.5)
    half = np.geomspace(1e-2, 10.0, 24)[:, None] * sign[None]
    return {"theta": -half, "step": 2.0 * half}


def _softmax(instance):
    theta, step = instance["theta"], instance["step"]
    moved = jnp.sum(jnp.abs(jax.nn.softmax(theta + step) - jax.nn.softmax(theta)))
    largest = jnp.max(jnp.abs(step))
    return Sides(
        moved,
        {
            "printed": 2.0 * largest,
            "sharpened S4": largest,
            "sharpened S4 tanh": softmax_distance((jnp.max(step) - jnp.min(step)) / 2.0),
            "control": largest / 2.0,
        },
        error=4e-15,
    )


LEMMA_C_1 = Statement(
    id="seqlength.lemma-c.1",
    label="Lemma C.1",
    formula="||softmax(theta_1) - softmax(theta_2)||_1 <= 2 ||theta_1 - theta_2||_infinity",
    kind="inequality",
    sample=_softmax_sample,
    cases=_two_blocks,
    evaluate=_softmax,
    search="none",
    sizes=({"p": 6},),
    forms=(
        Form(name="printed", note="attributed to Edelman et al. (2022), Corollary A.7"),
        Form(
            name="sharpened S4",
            note="the Jacobian's norm from l_inf to l_1 is 1 - min_s (p.s)^2 <= 1",
        ),
        Form(
            name="sharpened S4 tanh",
            note="2 tanh(range / 4): the finite form, blind to shifts",
            equality="two equal blocks, theta_2 = -theta_1",
        ),
    ),
    control="constant 1/2",
    budget=FEW,
    source="Lemma C.1",
)


def _attention_sample(key, size):
    a, b = jax.random.split(key)
    T, d = size["T"], size["d"]
    drawn = normals(a, {"X": (T, d), "W": (d, d), "step": (d, d)})
    scale, amount = log_uniform(b, jnp.array([-1.0, -2.0]), jnp.array([1.0, 0.5]), (2,))
    X, step = scale * drawn["X"], drawn["step"]
    # The scores of the CLS token move by up to `amount`.
    reach = jnp.max(vector_norm(X)) * vector_norm(step.T @ X[0])
    return {"X": X, "W": drawn["W"], "step": amount / reach * step}


def _two_tokens(size):
    """The CLS token v, its opposite, and a map along v: where the derivative is largest."""
    rng, rows = np.random.default_rng(0), []
    for amount in np.geomspace(1e-2, 1.0, 24):
        v = 10.0 ** rng.uniform(-0.5, 0.5) * np.eye(size["d"])[0]
        X = (-1.0) ** np.arange(size["T"])[:, None] * v
        slope = amount * np.outer(v, v) / np.sum(v**2) ** 2
        rows.append({"X": X, "W": -slope / 2.0, "step": slope})
    return stacked(rows)


def _attention_step(instance):
    X, W, step = instance["X"], instance["W"], instance["step"]
    change = attend_from(X, W + step, 0) - attend_from(X, W, 0)
    B_x, B_inf = jnp.max(vector_norm(X)), jnp.max(jnp.abs(X))
    moved = vector_norm(step.T @ X[0])
    return Sides(
        jnp.max(jnp.abs(change)),
        {
            "printed": 2.0 * B_x**2 * moved,
            "sharpened S5": B_inf * B_x * moved,
            "control": B_inf * B_x * moved / 2.0,
        },
        error=1e-14 * B_inf,
    )


ATTENTION_STEP = Statement(
    id="seqlength.appc-cover",
    label="Appendix C, the cover of the attention class",
    formula="|e_j^T X^T (softmax(X W x) - softmax(X What x))| <= 2 B_x^2 ||(W - What) x||_2",
    kind="inequality",
    sample=_attention_sample,
    cases=_two_tokens,
    evaluate=_attention_step,
    hypotheses=lambda i: {
        "the scores move by 1e-3": jnp.max(vector_norm(i["X"]))
        * vector_norm(i["step"].T @ i["X"][0])
        >= 1e-3
    },
    search="none",
    sizes=({"T": 4, "d": 2},),
    forms=(
        Form(name="printed"),
        Form(
            name="sharpened S5",
            note="max |X_tj| B_x, and softmax constant 1; approached by X = (v, -v), small W",
        ),
    ),
    control="half the sharpened bound",
    budget=FEW,
    source="Appendix C, before 'Therefore, we can see the log covering number of S'",
)


STATEMENTS = (
    LEMMA_C_1,
    ATTENTION_STEP,
)
