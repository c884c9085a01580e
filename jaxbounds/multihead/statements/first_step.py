"""Section 5.1 and Appendix D.3: the first gradient step, its endpoint and its deviation."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.sets import Box, Reals
from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Form,
    Instance,
    Sides,
    Size,
    Statement,
)
from jaxbounds.multihead.derivatives import network_risk
from jaxbounds.multihead.first_phase import (
    centre,
    deviation,
    deviation_bound,
    deviation_bound_dimension,
    deviation_bound_sharp,
    first_direction,
    first_step,
    printed_centre,
)
from jaxbounds.multihead.statements.contexts import (
    DRAWS,
    assumption_3,
    by_hand,
    on_sequences,
    sequences,
    unfold,
)
from jaxbounds.numerics.norms import vector_norm

DATA_SETS = ({"n": 4}, {"n": 8}, {"n": 16}, {"n": 32}, {"n": 64})
"""The numbers n1 of first-phase samples at which the check measures how fast ||p|| falls."""


def _first_step(instance: Instance, size: Size) -> Sides:
    c, alpha = unfold(instance), instance["alpha"]
    closed = first_step(c.data, alpha)
    zero = jax.tree.map(jnp.zeros_like, closed)
    slope = jax.grad(network_risk)(zero, c.data)
    root = jnp.sqrt(1.0 * alpha.shape[0])
    step = jax.tree.map(lambda g: -alpha[:, None, None] * root * g, slope)
    flat = lambda tree: jnp.concatenate([tree["U"].ravel(), tree["W"].ravel()])
    # Eq. (120), term by term, with n1 in place of n.
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
    signs = jnp.all(jnp.abs(instance["alpha"]) == 1)
    return assumption_3(instance, size) | {"alpha_h in {-1, +1} (Section 5.1)": signs}


LEMMA_16 = on_sequences(
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
            note="This version of the claim interprets n in (120) as n1, and the printed columns "
            "as rows.",
        ),
        Form(
            name="printed, l'(0) = 1/2",
            cites="the proof of Lemma 16, Appendix D.3: 'also l'(0) = 1/2'",
            erratum="E16",
            note=(
                "The logistic loss has l'(0) = -1/2. The gradient step has a second minus sign, so "
                "the sign in (120) is right."
            ),
            counterexample=Counterexample(
                instance=by_hand([[True, False]] * 2, y=[1, -1], alpha=[1.0, 1.0]),
                size={"n": 2, "T": 2, "d": 4},
                ratio=2.0,
                meets=_with_signs,
            ),
        ),
        Form(
            name="derived",
            note="This version of the claim is U^(1) = alpha 1_T ((1 / 2 n1) sum_i y_i mean_t "
            "x_it)^T.",
        ),
    ),
    control="twice the step",
    source="Appendix D.3; Lemma 2",
    over={"alpha": Reals(2)},
    budget=DRAWS,
)


def _four_sequences(size: Size) -> Instance:
    signs = 0.1 * np.array([1, -1, 1, -1])[:, None, None]
    along = [signs * np.broadcast_to(axes, (4, 2, 4)) for axes in (np.ones(4), *np.eye(4))]
    laws = [by_hand([[True, False]] * 4, y=[1, 1, -1, -1], z=noise) for noise in along]
    return {name: np.stack([law[name] for law in laws]) for name in laws[0]}


@functools.cache
def _all_data_sets(count: int) -> tuple[np.ndarray, np.ndarray]:
    three = np.indices((count + 1,) * 3).reshape(3, -1).T
    three = three[np.sum(three, axis=1) <= count]
    often = np.column_stack([three, count - np.sum(three, axis=1)]).astype(float)
    gammaln = scipy.special.gammaln
    log_ways = gammaln(count + 1.0) - np.sum(gammaln(often + 1.0), axis=1)
    return often, np.exp(log_ways - count * np.log(4.0))


@jax.jit
def _root_mean_squares(
    instance: Instance, weights: Array, probability: ArrayLike
) -> dict[str, Array]:
    c = unfold(instance)

    def away(weights: Array) -> dict[str, Array]:
        # The mean over four sequences, weighted by their counts, is the mean over the data set.
        data = {"X": weights[:, None, None] * c.X, "y": c.y}
        printed = first_direction(data) - printed_centre(c.classifier, c.zeta)
        return {"printed": printed, "corrected": deviation(data, c.classifier, c.zeta)}

    every = jax.vmap(away)(weights)
    return jax.tree.map(lambda p: jnp.sqrt(probability @ jnp.sum(p**2, axis=1)), every)


def _deviation_rate(instance: Instance, size: Size) -> Sides:
    often, probability = _all_data_sets(size["n"])
    lhs = _root_mean_squares(instance, 4.0 / size["n"] * often, probability)
    rate = instance["S"] / size["n"] ** 0.5
    return Sides(
        lhs={**lhs, "control": lhs["corrected"]},
        rhs={"printed": rate, "corrected": rate, "control": rate**2 / instance["S"]},
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
            exponent=(0.05, 0.4),
            note=(
                "The expectation E[y mu_y] is u*/2 and not u*. The distance of each row of U^(1) "
                "from the printed centre (zeta/2) u* therefore tends to zeta S sqrt(2) / 4."
            ),
        ),
        Form(
            name="corrected",
            sense="at least",
            exponent=(0.999, 1.001),
            note=(
                "This version of the claim measures p from the true mean (zeta / 4) u*. The "
                "deviation p is then a mean of n1 independent vectors of mean zero, so its root "
                "mean square falls exactly like 1 / sqrt(n1)."
            ),
        ),
    ),
    control="the rate 1 / n1",
    source="Section 5.1, eq. (6); Lemmas 16 and 17",
    host=True,
    cases=_four_sequences,
    sizes=DATA_SETS,
    enumerates="all data sets of n1 sequences of laws on four, with noise along an axis or all",
    assumptions="DM1, Assumption 3: T = 2, zeta = 1/2, one distractor; root mean squares over all "
    "data sets, each with its probability",
)


def _many(key: jax.Array, size: Size) -> Instance:
    """Draw DM1 data, or DM1 data without noise and with a single relevant token.

    Without noise and with one relevant token, the norm of the deviation p is nearly maximal.
    """
    drawn = {**sequences(key, size), "delta": 0.1 * jnp.ones(())}
    if size["noise"]:
        return drawn
    first = jnp.broadcast_to(jnp.arange(size["T"]) == 0, drawn["relevant"].shape)
    return {**drawn, "z": 0 * drawn["z"], "relevant": first}


def _deviation(instance: Instance, size: Size) -> Sides:
    c, n, delta = unfold(instance), size["n"], instance["delta"]
    sharp = deviation_bound_sharp(c.R, n, delta)
    return Sides(
        lhs=vector_norm(deviation(c.data, c.classifier, c.zeta)),
        rhs={
            "corrected, C = 1 / sqrt 2": deviation_bound_dimension(c.S, c.Z, size["d"], n, delta),
            "sharpened S13": deviation_bound(c.R, n, delta),
            "sharpened S15": sharp,
            "control": sharp / 2,
        },
    )


LEMMA_17 = on_sequences(
    id="multihead.lem17",
    label="Lemma 2, eq. (6)",
    formula="||p|| <= P with probability 1 - delta; in print the constant is unspecified",
    tex=r"\mathbb{P}\left( \|p\| \le P \right) \ge 1 - \delta, \quad P = C (2 S + Z) \left( "
    r"\sqrt{\frac{d}{n_1}} + \sqrt{\frac{\ln(1/\delta)}{n_1}} \right)",
    kind="probability",
    evaluate=_deviation,
    judges=(deviation, deviation_bound, deviation_bound_dimension, deviation_bound_sharp),
    forms=(
        Form(
            name="corrected, C = 1 / sqrt 2",
            note=(
                "Here p is the deviation of the first direction u1 from its true mean (zeta/4) "
                "u*, and P has the constant C = 1 / sqrt 2. Because R <= S + Z, P is at least the "
                "bound of sharpening S13."
            ),
        ),
        Form(
            name="sharpened S13",
            note="The bound on ||p|| is P# = (R/2)(1 + sqrt(2 log(1/delta))) / sqrt(n1), where p "
            "is measured about (zeta/4) u*. The mean of the norm is at most R / (2 sqrt(n1)), "
            "and McDiarmid's inequality bounds the deviation from the mean.",
        ),
        Form(
            name="sharpened S15",
            note=(
                "The bound on ||p|| is R sqrt(log(2/delta) / (2 n1)), from Pinelis' inequality. "
                "The test's data sets have 30 sequences without noise, one relevant token of 32 "
                "and one distractor. For these data, p is .97 R / 2 times the mean of n1 signs. "
                "For 1.6% of the data sets ||p|| exceeds the bound, and delta = 10% allows this "
                "for 10% of the data sets."
            ),
        ),
    ),
    control="half of S15",
    source="Appendix D.3, eqs. (6), (121), (122)",
    level=0.1,
    sample=_many,
    sizes=({"n": 32, "T": 4, "d": 4, "noise": 1}, {"n": 30, "T": 32, "d": 4, "noise": 0}),
    budget=Budget(samples=1000, restarts=0),
)


def _tails(instance: Instance, size: Size) -> Sides:
    R, n, delta = instance["R"], instance["n"], instance["delta"]
    # One sample changes ||p|| by at most R / n, and the mean of ||p|| is at most R / (2 sqrt(n)).
    beyond = deviation_bound(R, n, delta) - R / (2 * jnp.sqrt(n))
    mcdiarmid = jnp.exp(-2 * beyond**2 / (n * (R / n) ** 2))
    pinelis = 2 * jnp.exp(-((2 * n * deviation_bound_sharp(R, n, delta)) ** 2) / (2 * n * R**2))
    return Sides.pairs(
        {
            "sharpened S13": (mcdiarmid, delta),
            "sharpened S15": (pinelis, delta),
            "control": (mcdiarmid, delta**2),
        }
    )


LEMMA_17_TAIL = Statement(
    id="multihead.lem17.tail",
    label="Lemma 17, the constants",
    formula="McDiarmid's tail at P# - R / (2 sqrt(n1)) is delta, and so is Pinelis' at S15",
    tex=r"\exp\left( -\frac{2 \left( P^\# - R / (2 \sqrt{n_1}) \right)^2}{n_1 (R / n_1)^2} "
    r"\right) = \delta",
    kind="identity",
    evaluate=_tails,
    judges=(deviation_bound, deviation_bound_sharp),
    forms=(
        Form(
            name="sharpened S13",
            note="McDiarmid's inequality is applied with differences R / n1, since one sample "
            "changes ||p|| by at most R / n1.",
        ),
        Form(
            name="sharpened S15",
            note="This version of the claim evaluates Pinelis' tail bound 2 exp(-r^2 / (2 n1 R^2)) "
            "at r = 2 n1 ||p||.",
        ),
    ),
    control="delta^2 for delta",
    source="Appendix D.3; library: how P# and S15 are solved for",
    over={"R": Box(1, math.inf), "n": Box(1, math.inf), "delta": Box(0.01, 0.9)},
    sizes=({"n": 1000},),
)

STATEMENTS = (LEMMA_16, LEMMA_2, LEMMA_17, LEMMA_17_TAIL)
