"""Section 5.1 and Appendix D.3: the first gradient step, where it lands and how far off."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxbounds.multihead.first_phase import (
    centre,
    deviation,
    deviation_bound,
    first_direction,
    first_step,
    printed_centre,
)
from jaxbounds.multihead.loss import empirical_risk
from jaxbounds.multihead.statements.contexts import (
    DRAWS,
    ON_DATA,
    assumption_3,
    by_hand,
    sequences,
    unfold,
)
from jaxbounds.norms import vector_norm
from jaxbounds.statements import Budget, Counterexample, Form, Instance, Sides, Size, Statement

COUNTS = (8, 32, 128, 512)
"""The n1 over which the rate of the first phase is fitted."""


def _with_steps(key: jax.Array, size: Size) -> Instance:
    data_key, step_key = jax.random.split(key)
    steps = jax.random.uniform(step_key, (2,), minval=-2.0, maxval=2.0)
    return {**sequences(data_key, size), "alpha": steps}


def _first_step(instance: Instance, size: Size) -> Sides:
    c, alpha = unfold(instance), instance["alpha"]
    closed = first_step(c.data, alpha)
    zero = jax.tree.map(jnp.zeros_like, closed)
    slope = jax.grad(empirical_risk)(zero, c.data)
    root = jnp.sqrt(1.0 * alpha.shape[0])
    step = jax.tree.map(lambda g: -alpha[:, None, None] * root * g, slope)
    flat = lambda tree: jnp.concatenate([tree["U"].ravel(), tree["W"].ravel()])
    # Eq. (120), term by term, with n1 for n.
    signed = c.y[:, None] * jnp.where(c.y[:, None] > 0, c.patterns[0], c.patterns[1])
    others = jnp.where(instance["relevant"][..., None], 0.0, c.X)
    rest = jnp.mean(c.y[:, None] * jnp.sum(others, axis=1), axis=0) / (2 * c.T)
    half = printed_centre(c.classifier, c.zeta)
    row = half + c.zeta / 2 * (jnp.mean(signed, axis=0) - c.classifier) + rest
    shape = closed["U"].shape
    printed = {**closed, "U": alpha[:, None, None] * jnp.broadcast_to(row[None, None, :], shape)}
    return Sides(
        lhs=flat(step),
        rhs={
            "printed": flat(printed),
            "printed, l'(0) = 1/2": -flat(printed),
            "derived": flat(closed),
            "control": 2 * flat(closed),
        },
    )


def _with_signs(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    """Assumption 3, and the step sizes of the first phase."""
    signs = jnp.all(jnp.abs(instance["alpha"]) == 1)
    return assumption_3(instance, size) | {"alpha_h in {-1, +1} (Section 5.1)": signs}


LEMMA_16 = Statement(
    id="multihead.lem16",
    label="Lemma 16, eq. (120)",
    formula="after one step from zero W = 0 and every row of U is alpha (zeta/2 u* + p1 + p2)",
    tex=r"W_h^{(1)} = 0, \quad U_h^{(1)} = \alpha_h 1_T \left( \frac{\zeta}{2} u_\star + "
    r"\frac{\zeta}{2} \left( \frac{1}{n_1} \sum_{i \in [n_1]} y_i \mu_{y_i} - u_\star \right) + "
    r"\frac{1}{2 n_1 T} \sum_{i \in [n_1]} y_i \sum_{t \in \mathcal{R}_i^c} (\nu_{j_t} + "
    r"z_{i,t}) \right)^\top",
    kind="identity",
    evaluate=_first_step,
    judges=(first_step, first_direction),
    forms=(
        Form(
            name="printed",
            cites="Lemma 16, eq. (120), Appendix D.3",
            note="With n1 for n, and rows for columns.",
        ),
        Form(
            name="printed, l'(0) = 1/2",
            cites="the proof of Lemma 16, Appendix D.3: 'also l'(0) = 1/2'",
            expected="fails",
            erratum="E16",
            note="l'(0) = -1/2; descent turns the sign, so (120) is right.",
            counterexample=Counterexample(
                instance=by_hand([[True, False]] * 2, y=[1, -1], alpha=[1.0, 1.0]),
                size={"n": 2, "T": 2, "d": 4},
                ratio=2.0,
                meets=_with_signs,
            ),
        ),
        Form(name="derived", note="alpha 1_T ((1 / 2 n1) sum_i y_i mean_t x_it)^T."),
    ),
    control="twice the step",
    source="Appendix D.3; Lemma 2",
    **ON_DATA | {"sample": _with_steps, "budget": DRAWS},
)


def _growing(key: jax.Array, size: Size) -> Instance:
    """Data of which the first `count` sequences are used, with noise at +-S/10."""
    data_key, count_key, sign_key = jax.random.split(key, 3)
    which = jax.random.randint(count_key, (), 0, len(COUNTS))
    instance = sequences(data_key, size)
    # Signs as integers: there is nothing in them to search or to shrink.
    signs = jax.random.rademacher(sign_key, instance["z"].shape, dtype=int)
    return {**instance, "count": jnp.asarray(COUNTS)[which], "z": signs}


def _deviation_rate(instance: Instance, size: Size) -> Sides:
    c = unfold({**instance, "z": 0.1 * instance["S"] * instance["z"].astype(float)})
    count = instance["count"].astype(c.X.dtype)
    used = (jnp.arange(size["n"]) < instance["count"]).astype(c.X.dtype)
    weighted = {"X": (used * size["n"] / count)[:, None, None] * c.X, "y": instance["y"]}
    p = deviation(weighted, c.classifier, c.zeta)
    rate = c.S / jnp.sqrt(count)
    return Sides(
        lhs={
            "printed": vector_norm(
                first_direction(weighted) - printed_centre(c.classifier, c.zeta)
            ),
            "corrected": vector_norm(p),
            "control": vector_norm(p),
        },
        rhs={"printed": rate, "corrected": rate, "control": rate**2 / c.S},
    )


LEMMA_2 = Statement(
    id="multihead.lem2.rate",
    label="Lemma 2",
    formula="||U_h^(1) - (zeta alpha / 2) 1_T u*^T||_F = O(1 / sqrt(n1))",
    tex=r"\left\| U_h^{(1)} - \frac{\zeta \alpha_h}{2} 1_T u_\star^\top \right\|_F = O\left( "
    r"\frac{1}{\sqrt{n_1}} \right)",
    kind="rate",
    evaluate=_deviation_rate,
    judges=(deviation, centre, printed_centre),
    forms=(
        Form(
            name="printed",
            cites="Section 5.1, above Lemma 2",
            expected="inconsistent",
            erratum="E2",
            sense="at least",
            exponent=(0.2, 0.75),
            note="E[y mu_y] = u*/2, not u*: the distance tends to zeta S sqrt(2) / 4 per row.",
        ),
        Form(
            name="corrected",
            sense="at least",
            exponent=(0.5, 1.5),
            note="The centre is (zeta / 4) u*. The distance falls with n1: at least this fast.",
        ),
    ),
    control="the rate 1 / n1",
    source="Section 5.1, eq. (6); Lemmas 16 and 17",
    **ON_DATA
    | {
        "sample": _growing,
        "sizes": ({"n": COUNTS[-1], "T": 4, "d": 4},),
        "budget": Budget(samples=96, restarts=0, batch=32),
    },
)


def _many(key: jax.Array, size: Size) -> Instance:
    return {**sequences(key, size), "delta": 0.1 * jnp.ones(())}


def _deviation(instance: Instance, size: Size) -> Sides:
    c = unfold(instance)
    bound = deviation_bound(c.R, size["n"], instance["delta"])
    return Sides(
        lhs=vector_norm(deviation(c.data, c.classifier, c.zeta)),
        rhs={"sharpened S13": bound, "control": bound / size["n"] ** 0.5},
    )


LEMMA_17 = Statement(
    id="multihead.lem17",
    label="Lemma 2, eq. (6)",
    formula="||p|| <= P with probability 1 - delta; in print the constant is unspecified",
    tex=r"\mathbb{P}\left( \|p\| \le P \right) \ge 1 - \delta, \quad P = C (2 S + Z) \left( "
    r"\sqrt{\frac{d}{n_1}} + \sqrt{\frac{\ln(1/\delta)}{n_1}} \right)",
    kind="probability",
    evaluate=_deviation,
    judges=(deviation, deviation_bound),
    forms=(
        Form(
            name="sharpened S13",
            note="P# = (R/2)(1 + sqrt(2 log(1/delta))) / sqrt(n1), p about (zeta/4) u*: the "
            "mean of the norm is at most R / (2 sqrt(n1)), then McDiarmid.",
        ),
    ),
    control="1 / n1 in place of 1 / sqrt(n1)",
    source="Appendix D.3, eqs. (6), (121), (122)",
    level=0.1,
    **ON_DATA
    | {
        "sample": _many,
        "sizes": ({"n": 32, "T": 4, "d": 4},),
        "budget": Budget(samples=1000, restarts=0),
    },
)


def _levels(size: Size) -> Instance:
    table = {"R": [1.0, 2.0, 5.0], "n": [1.0, 30.0, 1000.0], "delta": [0.9, 0.1, 0.01]}
    grid = np.meshgrid(*table.values())
    return {name: values.ravel() for name, values in zip(table, grid)}


def _mcdiarmid(instance: Instance, size: Size) -> Sides:
    R, n, delta = instance["R"], instance["n"], instance["delta"]
    # One sample moves ||p|| by at most R / n, and its mean is at most R / (2 sqrt(n)).
    beyond = deviation_bound(R, n, delta) - R / (2 * jnp.sqrt(n))
    tail = jnp.exp(-2 * beyond**2 / (n * (R / n) ** 2))
    return Sides(lhs=tail, rhs={"sharpened S13": delta, "control": delta**2})


LEMMA_17_TAIL = Statement(
    id="multihead.lem17.tail",
    label="Lemma 17, the constant",
    formula="McDiarmid's tail at P# - R / (2 sqrt(n1)) is delta",
    tex=r"\exp\left( -\frac{2 \left( P^\# - R / (2 \sqrt{n_1}) \right)^2}{n_1 (R / n_1)^2} "
    r"\right) = \delta",
    kind="identity",
    evaluate=_mcdiarmid,
    judges=(deviation_bound,),
    forms=(Form(name="sharpened S13", note="Differences R / n1 in ||p||."),),
    control="delta^2 for delta",
    source="Appendix D.3; library: how P# is solved for",
    cases=_levels,
    sizes=({"n": 1000},),
)

STATEMENTS = (LEMMA_16, LEMMA_2, LEMMA_17, LEMMA_17_TAIL)
