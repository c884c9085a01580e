"""Lemma E.1: dividing a scale among several covers."""

import jax.numpy as jnp
import numpy as np

from jaxbounds.seqlength.multi_layer import covering_constant, divide_scale
from jaxbounds.seqlength.statements.instances import FEW, stacked, terms
from jaxbounds.statements import Form, Sides, Statement


def _scale_cases(size):
    """The minimiser, and one scale negative with eps still positive."""
    rng, rows, n = np.random.default_rng(0), [], size["n"]
    for _ in range(16):
        C, beta = 10.0 ** rng.uniform(-1.0, 1.0, size=(2, n))
        best = np.cbrt(C / beta)
        rows.append({"C": C, "beta": beta, "scales": best})
        rest = beta[1:] @ best[1:]
        taken = -rng.uniform(0.1, 0.9) * rest / beta[0]
        rows.append({"C": C, "beta": beta, "scales": np.append(taken, best[1:])})
    return stacked(rows)


def _lemma_e_1(instance):
    C, beta, scales = instance["C"], instance["beta"], instance["scales"]
    total = beta @ scales
    least = covering_constant(C, beta) / total**2
    reached = jnp.sum(C / scales**2)
    return Sides(
        lhs={"printed": least, "corrected": least, "control": 1.2 * least},
        rhs={"printed": reached, "corrected": reached, "control": reached},
    )


LEMMA_E_1 = Statement(
    id="seqlength.lemma-e.1",
    label="Lemma E.1",
    formula="(sum C_i^{1/3} beta_i^{2/3})^3 / eps^2 <= sum C_i / eps_i^2, eps = sum beta_i eps_i",
    kind="inequality",
    sample=terms,
    cases=_scale_cases,
    evaluate=_lemma_e_1,
    hypotheses=lambda i: {
        "C, beta > 0": jnp.minimum(jnp.min(i["C"]), jnp.min(i["beta"])) > 1e-3,
        "eps_i is not 0": jnp.min(jnp.abs(i["scales"])) > 1e-3,
        "eps > 0": i["beta"] @ i["scales"] > 1e-3,
    },
    search="none",
    sizes=({"n": 3},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E8",
            note="eps_i > 0 is missing: eps = 1 = 100 - 99 costs 2e-4",
            counterexample={"C": [1.0, 1.0], "beta": [1.0, 1.0], "scales": [100.0, -99.0]},
        ),
        Form(
            name="corrected",
            note="eps_i > 0; Hoelder's inequality",
            hypotheses=lambda i: {"eps_i > 0": jnp.min(i["scales"]) > 0},
            equality="eps_i = (eps / gamma) (C_i / beta_i)^{1/3}",
        ),
    ),
    control="1.2 times the minimum",
    budget=FEW,
    source="Lemma E.1, from Edelman et al. (2022), Lemma A.8",
)


def _minimiser(instance):
    C, beta = instance["C"], instance["beta"]
    budget = divide_scale(C, beta, 0.5)
    gamma = jnp.sum(jnp.cbrt(C * beta**2))
    swapped = 0.5 / gamma * jnp.cbrt(beta / C)
    value = lambda scales: jnp.stack([beta @ scales, jnp.sum(C / scales**2)])
    return Sides(
        jnp.stack([jnp.asarray(0.5), gamma**3 / 0.25]),
        {"printed": value(budget.scales), "control": value(swapped)},
    )


MINIMISER = Statement(
    id="seqlength.lemma-e.1-minimiser",
    label="Lemma E.1, the minimiser",
    formula="eps_i = (eps / gamma) (C_i / beta_i)^{1/3} has sum beta_i eps_i = eps and"
    " sum C_i / eps_i^2 = gamma^3 / eps^2",
    kind="identity",
    sample=terms,
    evaluate=_minimiser,
    sizes=({"n": 3},),
    forms=(Form(name="printed"),),
    control="beta_i / C_i for C_i / beta_i",
    budget=FEW,
    source="Lemma E.1",
)


STATEMENTS = (
    LEMMA_E_1,
    MINIMISER,
)
