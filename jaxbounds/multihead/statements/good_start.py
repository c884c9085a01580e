"""Proposition 2, Lemma 12 and Fact 2: theta^(1) has small heads and small outputs (P1, P2)."""

import functools
import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.sets import Box, Integers
from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Form,
    Instance,
    Sampler,
    Sides,
    Size,
    Statement,
)
from jaxbounds.multihead.first_phase import (
    balanced_signs,
    centre,
    equal_rows,
    first_direction,
    head_bound,
    head_bound_sharp,
    hoeffding_tail,
    model_bound,
    printed_centre,
    sign_sum_bound,
)
from jaxbounds.multihead.model import head_norm, model_output
from jaxbounds.multihead.oracle import Real
from jaxbounds.multihead.statements.contexts import (
    DATA_SIZES,
    SIZES,
    assumption_3,
    by_hand,
    keep_context,
    on_sequence,
    searched_sequence,
    sequence,
    sequences,
    unfold,
)
from jaxbounds.numerics.norms import vector_norm

MOST_HEADS = 12
"""The largest H at which the check computes the exact distribution of sum_h alpha_h. A larger
number takes more time.
"""


def _sign_sum_law(heads: Array) -> tuple[Array, Array]:
    k = jnp.arange(MOST_HEADS + 1).astype(float)
    logs = gammaln(heads + 1.0) - gammaln(k + 1.0) - gammaln(jnp.maximum(heads - k, 0.0) + 1.0)
    probability = jnp.where(k <= heads, jnp.exp(logs - heads * jnp.log(2.0)), 0.0)
    return jnp.abs(2 * k - heads), probability


def _interval_sum_tail(heads: Array, least: Array) -> Array:
    k = jnp.arange(MOST_HEADS + 1).astype(float)
    left = jnp.maximum((heads - least) / 2 - k, 0.0)
    logs = gammaln(k + 1.0) + gammaln(jnp.maximum(heads - k, 0.0) + 1.0)
    terms = (-1.0) ** k * left**heads * jnp.exp(-logs)
    return jnp.clip(2 * jnp.sum(jnp.where(k <= heads, terms, 0.0)), 0.0, 1.0)


def _hoeffding_cases(size: Size) -> Instance:
    heads, plus = zip(*[(H, k) for H in range(1, size["H"] + 1) for k in range(H // 2 + 1, H + 1)])
    return {"H": np.asarray(heads), "plus": np.asarray(plus)}


def _hoeffding(instance: Instance, size: Size) -> Sides:
    heads = instance["H"].astype(float)
    # Just below the mean at `plus` signs +1, where the ratio of the tail to the bound is largest.
    t = (1 - 1e-9) * (2 * instance["plus"].astype(float) - heads) / heads
    sums, probability = _sign_sum_law(heads)
    beyond = jnp.sum(jnp.where(sums / heads > t, probability, 0.0))
    delta = hoeffding_tail(t, heads)
    return Sides.pairs(
        {
            "printed": (beyond, delta),
            "corrected": (beyond, 2 * delta),
            "derived, one-sided": (beyond / 2, delta),
            "control": (beyond, delta**2),
        }
    )


def _bounded(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    heads, plus = (jnp.asarray(instance[name]).astype(float) for name in ("H", "plus"))
    count = int(instance["H"])
    signs = np.asarray(list(itertools.product((-1.0, 1.0), repeat=count)))
    sums, probability = _sign_sum_law(heads)
    share = lambda k: np.mean(np.sum(signs > 0, axis=1) == k)
    law = np.asarray([share(k) for k in range(MOST_HEADS + 1)])
    delta = hoeffding_tail((2 * plus - heads) / heads, heads)
    return {
        "1 <= H <= 12": 1 <= count <= MOST_HEADS,
        "|X_h| <= B = 1 (Fact 2, Appendix D.1)": np.max(np.abs(signs)) <= 1,
        "E[X_h] = mu = 0 (Fact 2, Appendix D.1)": np.max(np.abs(np.mean(signs, axis=0))) < 1e-12,
        "X_h independent: E[X_h X_k] = 0 (Fact 2, Appendix D.1)": np.max(
            np.abs(signs.T @ signs / len(signs) - np.eye(count))
        )
        < 1e-12,
        "the tail that is measured is of these vectors": (
            jnp.max(jnp.abs(probability - law)) < 1e-12
        )
        & (jnp.max(jnp.where(law > 0, sums, 0.0)) == np.max(np.abs(np.sum(signs, axis=1)))),
        "delta in (0, 1) (Fact 2, Appendix D.1)": (delta > 0) & (delta < 1),
    }


FACT_2 = Statement(
    id="multihead.fact2",
    label="Fact 2",
    formula="|mean_h X_h - mu| <= 2 B sqrt(log(1/delta) / (2 H)) with probability 1 - delta",
    tex=r"\mathbb{P}\left( \left| \frac{1}{H} \sum_{h} X_h - \mu \right| \le 2 B "
    r"\sqrt{\frac{\ln(1/\delta)}{2 H}} \right) \ge 1 - \delta",
    kind="inequality",
    evaluate=_hoeffding,
    judges=(hoeffding_tail,),
    forms=(
        Form(
            name="printed",
            cites="Fact 2, Appendix D.1",
            erratum="E9",
            note="The inequality is two-sided, so it needs log(2/delta). For three signs and a "
            "deviation t just below 1, the probability is 1/4, and the printed bound is "
            ".2231.",
            counterexample=Counterexample(
                instance={"H": 3, "plus": 3}, ratio=1.1204222642232498, meets=_bounded
            ),
        ),
        Form(
            name="corrected",
            note="The bound on the deviation of the mean is Hoeffding's inequality with "
            "log(2/delta) in place of log(1/delta).",
        ),
        Form(
            name="derived, one-sided",
            note="Lemma 14 uses only one side of the inequality, and log(1/delta) suffices for one "
            "side.",
        ),
    ),
    control="delta^2 for delta",
    source="Appendix D.1; exact binomial tails of Rademacher means, H <= 12",
    enumerates="every positive mean of H signs, for every H up to 12",
    cases=_hoeffding_cases,
    sizes=({"H": MOST_HEADS},),
    search="none",
    assumptions="IID signs, B = 1",
)


def _head_size(instance: Instance, size: Size) -> Sides:
    c, p = unfold(instance), instance["p"]
    found = lambda row: head_norm(equal_rows(row + p, jnp.ones(1), c.T))
    at_centre, P = found(centre(c.classifier, c.zeta)), vector_norm(p)
    printed, sharp = head_bound(c, P), head_bound_sharp(c, P)
    # The printed centre is twice the true one.
    within = head_bound_sharp(replace(c, zeta=2 * c.zeta), P)
    wrong = jnp.maximum(head_bound_sharp(c, 0.0), c.T**0.5 * P)
    return Sides.pairs(
        {
            "printed": (found(printed_centre(c.classifier, c.zeta)), printed),
            "printed, D.2.1": (found(printed_centre(c.classifier, c.zeta)), within),
            "corrected": (at_centre, printed),
            "sharpened": (at_centre, sharp),
            "control": (at_centre, wrong),
        }
    )


PROPOSITION_2_P1 = searched_sequence(
    id="multihead.prop2.p1",
    label="Proposition 2, P1",
    formula="||theta_h^(1)|| <= B_2 = sqrt(T) (S + P)",
    tex=r"\|\theta_h^{(1)}\| \le B_2 = \sqrt{T} (S + P)",
    evaluate=_head_size,
    judges=(head_bound, head_bound_sharp, equal_rows),
    forms=(
        Form(
            name="printed",
            cites="Proposition 2, P1, Section 5.1",
            note="The rows of U^(1) are centred at the printed (zeta / 2) u*.",
        ),
        Form(
            name="printed, D.2.1",
            cites="the display of Appendix D.2.1",
            equality="p parallel to u*",
            note=(
                "The bound on a head's norm is sqrt(T) (zeta S / sqrt(2) + P), since ||u*|| = "
                "sqrt(2) S. This version of the claim centres the rows of U^(1) at the printed "
                "(zeta / 2) u*."
            ),
        ),
        Form(
            name="corrected",
            note="This version of the claim centres the rows of U^(1) at their true mean (zeta / "
            "4) u*.",
        ),
        Form(
            name="sharpened",
            equality="p parallel to u*, or p = 0",
            note="The bound on a head's norm is sqrt(T) (zeta S / (2 sqrt 2) + P), where P bounds "
            "the distance from the true centre (zeta / 4) u*.",
        ),
    ),
    control="the larger of both terms in place of their sum",
    source="Section 5.1; Appendix D.2.1",
    budget=Budget(samples=128, restarts=2, steps=40),
)


def _with_long_deviation(sampler: Sampler) -> Sampler:
    def sample(key: jax.Array, size: Size) -> Instance:
        data_key, scale_key = jax.random.split(key)
        instance = sampler(data_key, size)
        scale = jnp.exp(jax.random.uniform(scale_key, (), minval=0.0, maxval=9.0))
        return {**instance, "p": scale * instance["p"]}

    return sample


def _one_share(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    counts = jnp.sum(instance["relevant"].reshape(-1, size["T"]), axis=1)
    proper = (counts[0] > 0) & (counts[0] < size["T"])
    return {
        "|R| = zeta T in every sequence, 0 < zeta < 1": proper & jnp.all(counts == counts[0]),
        "S > 0": instance["S"] > 0,
    }


def _model_size(instance: Instance, size: Size) -> Sides:
    c, heads, delta = unfold(instance), instance["H"].astype(float), instance["delta"]
    P = vector_norm(instance["p"])
    sums, probability = _sign_sum_law(heads)

    def largest(start: Array) -> Array:
        return jnp.max(jnp.abs(jnp.sum(c.X, axis=-2) @ (start + instance["p"])))

    at_half, at_true = (largest(f(c.classifier, c.zeta)) for f in (printed_centre, centre))

    def exceeds(most: Array, threshold: Real) -> Array:
        return jnp.sum(jnp.where(most * sums / jnp.sqrt(heads) > threshold, probability, 0.0))

    bound = lambda failure: model_bound(c, P, failure)
    # log(n / delta) = log(2 / (2 delta / n)), with n = 1 for one sequence.
    printed, sharp = bound(2 * delta / size.get("n", 1)), at_true * sign_sum_bound(delta)
    beyond = printed * jnp.sqrt(heads) / jnp.maximum(at_half, 1e-300)
    return Sides.pairs(
        {
            "printed": (exceeds(at_half, printed), delta),
            "printed, alpha in [-1, 1]": (_interval_sum_tail(heads, beyond), delta),
            "corrected": (exceeds(at_true, bound(delta)), delta),
            "sharpened": (exceeds(at_true, sharp), delta),
            "derived": (sharp, bound(delta)),
            "control": (exceeds(at_true, 0.7 * sharp), delta),
        }
    )


def _from_two_samples(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    c = unfold(instance)
    pairs = jnp.asarray([[0, 2], [1, 2]])
    first = {"X": c.patterns[pairs], "y": jnp.asarray([1, -1])}
    row = printed_centre(c.classifier, c.zeta) + instance["p"]
    P = (2 * c.S + c.Z) * (jnp.sqrt(c.X.shape[-1] / 2) + jnp.sqrt(jnp.log(2.0) / 2))
    deviates = vector_norm(instance["p"])
    output = jnp.abs(model_output(equal_rows(row, jnp.ones(1), c.T), c.X))
    return {
        **assumption_3(instance, size),
        "u1 = (zeta/2) u* + p of a first phase with n1 = 2 (Section 5.1, eq. (102))": jnp.max(
            jnp.abs(first_direction(first) - row)
        )
        < 1e-12,
        "||p|| <= P of (6) at C = 1, delta = 1/2 (Lemma 2, Section 5.1)": deviates <= P,
        "|Phi| is above the bound with that P too": output
        > model_bound(c, P, 2 * instance["delta"]),
        "delta in (0, 1) (Lemma 12, Appendix D.2.2)": (instance["delta"] > 0)
        & (instance["delta"] < 1),
    }


_ORDERED = Form(
    name="derived",
    note=(
        "Because ||x_t|| <= R, the sharpened version of the claim bounds |Phi| at least as sharply "
        "as the corrected version."
    ),
)
SIGNS_ASSUMED = "DM1, Assumption 3; H <= 12; alpha = +-1 unless a form says otherwise"
on_signs = functools.partial(
    Statement,
    kind="inequality",
    evaluate=_model_size,
    judges=(model_bound, sign_sum_bound, centre, printed_centre),
    control="0.7 of the sharpened bound",
    search="random",
    over={"H": Integers(1, MOST_HEADS), "delta": Box(1e-3, 1 - 1e-6)},
    hypotheses=_one_share,
    project=keep_context,
    budget=Budget(samples=1024, restarts=3, steps=200),
    assumptions=SIGNS_ASSUMED,
)

LEMMA_12 = on_signs(
    id="multihead.lem12",
    label="Lemma 12",
    formula="|Phi(X; theta^(1))| <= T R (S + P) sqrt(2 log(1/delta)) with probability 1 - delta",
    tex=r"\mathbb{P}\left( |\tilde\Phi(X; \tilde\theta^{(1)})| \le T R (S + P) \sqrt{2 "
    r"\ln(1/\delta)} \right) \ge 1 - \delta",
    forms=(
        Form(
            name="printed",
            cites="Lemma 12, Appendix D.2.2",
            erratum="E9",
            note=(
                "If alpha is +1 or -1, Lemma 12 fails because Fact 2 fails, but only for delta "
                "close to one. Example: one head, T = 2, S = 1 and a first phase of one sample of "
                "each label. There U^(1) = alpha 1_T (u*/8)^T, so |Phi| = 1/8 with probability "
                "one. At delta = .99995 the lemma's bound is only .0235. If P is ||p|| itself, "
                "the bound fails from delta = .9986 on."
            ),
            counterexample=Counterexample(
                instance=by_hand([True, False], p=[-0.125, 0.125, 0.0, 0.0], H=1, delta=0.99995),
                size={"T": 2, "d": 4},
                ratio=1.0000500025001250,
                meets=_from_two_samples,
            ),
        ),
        Form(
            name="printed, alpha in [-1, 1]",
            cites="Lemma 12, Appendix D.2.2",
            note="This version of the claim interprets Unif(+-1) as the uniform law on [-1, 1], "
            "whose variance is 1/3. The check uses the exact law of sum_h alpha_h for H <= 12.",
        ),
        Form(
            name="corrected",
            note=(
                "The bound on |Phi| has log(2/delta) in place of the printed logarithm, and p is "
                "the deviation of the rows of U^(1) from the true centre (zeta/4) u*."
            ),
        ),
        Form(
            name="sharpened",
            note="The bound on |Phi| has |<(zeta/4) u* + p, sum_t x_t>| in place of T R (S + P).",
        ),
        _ORDERED,
    ),
    source="Appendix D.2.2; the exact law of the signs' sum, H <= 12",
    sizes=SIZES,
    sample=_with_long_deviation(sequence),
)

PROPOSITION_2_P2 = on_signs(
    id="multihead.prop2.p2",
    label="Proposition 2, P2",
    formula="|Phi(X_i; theta^(1))| <= T R (S + P) sqrt(2 log(n/delta)) for all i <= n "
    "with probability 1 - delta",
    tex=r"\mathbb{P}\left( \max_{i} |\tilde\Phi(X_i; \tilde\theta^{(1)})| \le T R (S + P) "
    r"\sqrt{2 \ln(n/\delta)} \right) \ge 1 - \delta",
    forms=(
        Form(
            name="printed",
            cites="Proposition 2, P2, Section 5.1",
            note=(
                "The rows of U^(1) are centred at the printed (zeta/2) u*, and alpha is +1 or -1. "
                "The bound of P2 for n samples is true for n >= 2, although Lemma 12 is false."
            ),
        ),
        Form(
            name="printed, alpha in [-1, 1]",
            cites="Proposition 2, P2, Section 5.1",
            note="The rows of U^(1) are centred at the printed (zeta/2) u*, and alpha is uniform "
            "on [-1, 1].",
        ),
        Form(
            name="corrected",
            note="The bound on |Phi| has log(2/delta) for every n, and p is measured about the "
            "true centre (zeta/4) u*. Since W^(1) = 0, the outputs of all samples are multiples of "
            "a single sum of signs, so no union bound is needed.",
        ),
        Form(
            name="sharpened",
            note="The bound on |Phi| contains max_i |<(zeta/4) u* + p, sum_t x_it>| in place of T "
            "R (S + P).",
        ),
        _ORDERED,
    ),
    source="Section 5.1; Lemma 12; the exact law of the signs' sum, H <= 12",
    sizes=DATA_SIZES,
    sample=_with_long_deviation(sequences),
    assumptions=f"{SIGNS_ASSUMED}. n = 3; for one sample P2 as printed is Lemma "
    "12, which fails for signs (E9)",
)


def _balanced(instance: Instance, size: Size) -> Sides:
    c, signs = unfold(instance), balanced_signs(2)
    row = centre(c.classifier, c.zeta) + instance["p"]
    output = lambda signs: model_output(equal_rows(row, signs, c.T), c.X)
    scale = c.T * jnp.sum(jnp.abs(row)) * c.R
    entries = lambda value, length: jnp.stack([value, scale, length])
    return Sides(
        lhs=entries(output(signs), vector_norm(signs)),
        rhs={
            "sharpened S12": entries(0.0, 2**0.5),
            "control": entries(output(jnp.abs(signs)), 2**0.5),
        },
    )


BALANCED = on_sequence(
    id="multihead.prop2.balanced",
    label="Proposition 2, P2 with balanced signs",
    formula="Phi(X; theta^(1)) = 0 if as many alpha_h are +1 as -1",
    tex=r"\sum_{h} \alpha_h = 0 \implies \tilde\Phi(X; \tilde\theta^{(1)}) = 0",
    kind="identity",
    evaluate=_balanced,
    judges=(balanced_signs, equal_rows),
    forms=(
        Form(
            name="sharpened S12",
            note=(
                "If half of the heads have the sign +1 and half the sign -1, the output is 0. "
                "Property P2 of a good start therefore holds with certainty, with the least "
                "possible B_Phi = 1."
            ),
        ),
    ),
    control="both signs equal",
    source="Section 5.1",
    budget=Budget(samples=64, restarts=0),
)

STATEMENTS = (FACT_2, PROPOSITION_2_P1, LEMMA_12, PROPOSITION_2_P2, BALANCED)
