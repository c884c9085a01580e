"""Lemma E.1: the division of a scale epsilon among the covers of several matrices."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets import Box, Reals
from jaxbounds.claims.statements import Counterexample, Form, Instance, Sides, Size
from jaxbounds.seqlength.multi_layer import covering_constant, divide_scale
from jaxbounds.seqlength.statements import instances as draw

TERMS = dict.fromkeys(("C", "beta"), Box(1e-3, math.inf, "n"))
"""The ranges of the inputs C_i > 0 and beta_i > 0 of Lemma E.1."""


def _scale_cases(size: Size) -> Instance:
    rng, rows, n = np.random.default_rng(0), [], size["n"]
    for _ in range(16):
        C, beta = 10.0 ** rng.uniform(-1.0, 1.0, size=(2, n))
        best = np.cbrt(C / beta)
        rows.append({"C": C, "beta": beta, "scales": best})
        rest = beta[1:] @ best[1:]
        taken = -rng.uniform(0.1, 0.9) * rest / beta[0]
        rows.append({"C": C, "beta": beta, "scales": np.append(taken, best[1:])})
    return draw.stacked(rows)


def _lemma_e_1(instance: Instance, size: Size) -> Sides:
    C, beta, scales = instance["C"], instance["beta"], instance["scales"]
    least = covering_constant(C, beta) / (beta @ scales) ** 2
    reached = jnp.sum(C / scales**2)
    pair = (least, reached)
    wrong = jnp.where(jnp.min(scales) > 0, 1.2 * least, 0.0)
    return Sides.pairs({"printed": pair, "corrected": pair, "control": (wrong, reached)})


def _lemma_e_1_meets(instance: Instance, size: Size) -> dict[str, Any]:
    eps = np.dot(instance["beta"], instance["scales"])
    return {
        "C_i >= 0 (Lemma E.1)": np.min(instance["C"]) >= 0,
        "beta_i >= 0 (Lemma E.1)": np.min(instance["beta"]) >= 0,
        "eps = sum beta_i eps_i >= 0 (Lemma E.1)": eps >= 0,
    }


LEMMA_E_1 = draw.inequality(
    id="seqlength.lemmae.1",
    label="Lemma E.1",
    tex=r"\min_{\sum_i \beta_i \epsilon_i = \epsilon} \sum_{i=1}^n \frac{C_i}{\epsilon_i^2} = "
    r"\frac{\gamma^3}{\epsilon^2}, \quad \gamma = \sum_{i=1}^n C_i^{1/3} \beta_i^{2/3}",
    formula="(sum C_i^{1/3} beta_i^{2/3})^3 / eps^2 <= sum C_i / eps_i^2, eps = sum beta_i eps_i",
    over=TERMS | {"scales": Reals("n")},
    cases=_scale_cases,
    evaluate=_lemma_e_1,
    judges=(covering_constant,),
    hypotheses=lambda i, size: {
        "eps_i is not 0": jnp.min(jnp.abs(i["scales"])) > 1e-3,
        "eps > 0": i["beta"] @ i["scales"] > 1e-3,
    },
    sizes=({"n": 3},),
    forms=(
        Form(
            name="printed",
            cites="Lemma E.1, the first four displays",
            erratum="E8",
            reading="any real numbers",
            note="The printed lemma lacks the condition eps_i > 0. For eps = 1, eps_1 = 100 and "
            "eps_2 = -99 the sum is only 2e-4. If some C_i = 0 or beta_i = 0, which the lemma "
            "allows, the printed minimiser does not exist either.",
            counterexample=Counterexample(
                instance={"C": [1.0, 1.0], "beta": [1.0, 1.0], "scales": [100.0, -99.0]},
                size={"n": 2},
                ratio=39598.000101005004,
                meets=_lemma_e_1_meets,
            ),
        ),
        Form(
            name="corrected",
            note="This version requires all eps_i > 0. Hoelder's inequality proves the minimum.",
            hypotheses=lambda i, size: {"eps_i > 0": jnp.min(i["scales"]) > 0},
            equality="eps_i = (eps / gamma) (C_i / beta_i)^{1/3}",
        ),
    ),
    control="1.2 times the minimum, eps_i > 0",
    source="Lemma E.1, from Edelman et al. (2022), Lemma A.8",
)


def _minimiser(instance: Instance, size: Size) -> Sides:
    C, beta = instance["C"], instance["beta"]
    budget = divide_scale(C, beta, 0.5)
    least = jnp.sum(jnp.cbrt(C * beta**2)) ** 3 / 0.25
    value = lambda scales: [beta @ scales, jnp.sum(C / scales**2)]
    # `divide_scale` also returns the log size and each term's share of epsilon.
    found = jnp.stack([*value(budget.scales), budget.log_covering, jnp.sum(budget.shares)])
    swapped = jnp.cbrt(beta / C)
    wrong = value(0.5 * swapped / (beta @ swapped))
    expected = jnp.stack([jnp.asarray(0.5), least, least, jnp.asarray(1.0)])
    control = jnp.stack([*wrong, least, jnp.asarray(1.0)])
    return Sides.pairs({"printed": (found, expected), "control": (control, expected)})


MINIMISER = draw.identity(
    id="seqlength.lemmae.1.minimiser",
    label="Lemma E.1, the minimiser",
    tex=r"\epsilon_i = \frac{\epsilon}{\gamma} \left( \frac{C_i}{\beta_i} \right)^{1/3}: "
    r"\quad \sum_i \beta_i \epsilon_i = \epsilon, \quad \sum_i \frac{C_i}{\epsilon_i^2} = "
    r"\frac{\gamma^3}{\epsilon^2}",
    formula="eps_i = (eps / gamma) (C_i / beta_i)^{1/3} has sum beta_i eps_i = eps and"
    " sum C_i / eps_i^2 = gamma^3 / eps^2",
    over=TERMS,
    evaluate=_minimiser,
    judges=(divide_scale,),
    sizes=({"n": 3},),
    assumptions="C_i, beta_i > 0 (E8)",
    forms=(Form(name="printed", cites="Lemma E.1, the last display"),),
    control="beta_i / C_i for C_i / beta_i",
)

STATEMENTS = (LEMMA_E_1, MINIMISER)
