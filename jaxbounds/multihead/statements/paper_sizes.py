"""The bounds of Sections 3, 4 and 6 at the sizes of the paper's experiments.

DM1 has T = 10, d = 4 and n = 100 (Figures 2 and 3). DM2 has T = 10, d = 5 and n = 1000 (Figures 4
and 5).
"""

import jax

from jaxbounds.claims.statements import Budget, Instance, Size
from jaxbounds.multihead.statements import descent_lemmas, model_bounds, recursion, smoothness
from jaxbounds.multihead.statements.generalization import LEMMA_11
from jaxbounds.multihead.statements.gradient_descent import THEOREM_3
from jaxbounds.multihead.statements.instances import loss_generic, single_generic
from jaxbounds.multihead.statements.paper_losses import DM1
from jaxbounds.multihead.statements.run_instances import certified_or_loose
from jaxbounds.multihead.statements.together import together

MODEL = together(
    (
        model_bounds.PROP_5_1,
        model_bounds.PROP_5_2,
        model_bounds.PROP_1_1,
        model_bounds.PROP_1_2,
        model_bounds.PROP_5_A1,
        model_bounds.PROP_5_A2,
    ),
    id="multihead.prop1.sizes",
    label="Propositions 1 and 5, at the paper's sizes",
    tex=r"\|\nabla_\theta \Phi\|, \; \|\nabla^2_\theta \Phi\| \quad \text{at } T = 10, \; d = 4, 5",
    sample={"generic": single_generic},
    sizes=({"T": 10, "d": 4}, {"T": 10, "d": 5}),
    budget=Budget(samples=16, restarts=0, batch=16),
    source="Section 3, Appendix A.1; T and d of Figures 2 to 5",
)

HEADS = together(
    (model_bounds.LEMMA_5_1, model_bounds.LEMMA_5_2),
    id="multihead.lemma5.sizes",
    label="Lemma 5, at the paper's sizes",
    tex=r"\|\nabla_\theta \Phi\|, \; \|\nabla^2_\theta \Phi\|, \quad T = 10, \; d = 4, \; H = 8",
    sample={"generic": loss_generic},
    sizes=({"n": 1, "T": 10, "d": 4, "H": 8},),
    budget=Budget(samples=4, restarts=0, batch=4),
    source="Appendix A.1, Lemma 5; T and d of Figures 2 and 3",
)


def _printed(key: jax.Array, size: Size) -> Instance:
    return certified_or_loose(key, size, 2)


def _sharpened(key: jax.Array, size: Size) -> Instance:
    return certified_or_loose(key, size, 3)


RUNS = together(
    (
        descent_lemmas.LEMMA_7,
        descent_lemmas.LEMMA_8,
        descent_lemmas.LEMMA_9,
        descent_lemmas.LEMMA_10,
        smoothness.SMOOTHNESS,
        THEOREM_3,
    ),
    id="multihead.runs.sizes",
    label="Sections 4 and 6, at the paper's sizes",
    tex=r"\hat L(\theta_{k+1}) \le \hat L(\theta_k) - \ldots, \quad n = 100, \; T = 10, \; d = 4",
    sample={"certified": _printed, "certified, sharpened": _sharpened},
    sizes=(DM1 | {"steps": 60},),
    budget=Budget(samples=2, restarts=0, batch=1),
    source="Sections 4.1, 6.1, Appendix B; n, T and d of Figures 2 and 3",
    horizon="steps",
    # The certified H is in the millions, so the loss falls by less than a margin's rounding error.
    without=("printed, last iterate: Theorem 3",),
)

STABILITY = together(
    (recursion.EQ_20, recursion.EQ_22, LEMMA_11),
    id="multihead.stability.sizes",
    label="Section 6.2, at the paper's T and d",
    tex=r"\|\theta_k - \theta_k^{\neg i}\| \quad \text{at } n = 10, \; T = 10, \; d = 4",
    sample={"certified": _printed, "certified, sharpened": _sharpened},
    # Time and memory grow with n^2, because every sample is left out once, so n is 10, not 100.
    sizes=({"n": 10, "T": 10, "d": 4, "steps": 60},),
    budget=Budget(samples=2, restarts=0, batch=1),
    source="Section 6.2, Appendix C; T and d of Figures 2 and 3",
    horizon="steps",
)

STATEMENTS = (MODEL, HEADS, RUNS, STABILITY)

MEASURED: dict[str, tuple[str, ...]] = {
    "multihead.prop1.sizes": (
        "multihead.prop5.1", "multihead.prop5.2", "multihead.prop1.1", "multihead.prop1.2",
        "multihead.prop5.a1", "multihead.prop5.a2",
    ),
    "multihead.lemma5.sizes": ("multihead.lemma5.1", "multihead.lemma5.2"),
    "multihead.cor1.sizes": ("multihead.cor1.1", "multihead.cor1.2", "multihead.cor1.3"),
    "multihead.runs.sizes": (
        "multihead.lem7", "multihead.lem8", "multihead.lem9", "multihead.lem10",
        "multihead.sec6.1.smoothness", "multihead.thm3",
    ),
    "multihead.stability.sizes": ("multihead.eq20", "multihead.eq22", "multihead.lem11"),
}  # fmt: skip
"""For each statement at the paper's sizes, the ids of the statements with the same bounds at small
sizes."""

TOY: dict[str, tuple[str, ...]] = {
    "the bound is a function of margins alone": (
        "multihead.eq24.slope", "multihead.eq24.loss", "multihead.eq24.curvature",
    ),
    "the bound is a step of the proof of Proposition 1": (
        "multihead.eq42", "multihead.kappa3", "multihead.eq49", "multihead.eq51",
    ),
    "the bound is Proposition 1 with another read-out": (
        "multihead.footnote1.pooling", "multihead.footnote1.last",
        "multihead.footnote1.pooling.w", "multihead.footnote1.last.w",
    ),
    "an instance needs 17 spectra, and Corollary 1 (3) bounds each of them": (
        "multihead.eq14", "multihead.eq15",
    ),
    "the bound follows from (15) along a segment": (
        "multihead.eq16", "multihead.prop4", "multihead.eq19",
    ),
    "the check forms Hess f_i of every sample": (
        "multihead.footnote2", "multihead.selfbounded.model", "multihead.selfbounded.network",
    ),
    "the bounds are functions of T, d, R and H alone": (
        "multihead.thm1.constants",
    ),
    "the population of the statement has T = 3 and d = 2": (
        "multihead.asn2", "multihead.cor3", "multihead.lem3", "multihead.thm4", "multihead.cor4",
    ),
    "the theorem is Theorem 3 with other constants": ("multihead.thm1",),
    "the display has an erratum (E8), and the paper means (22)": ("multihead.eq21",),
}  # fmt: skip
"""A dictionary from reasons to the ids of the bounds of Sections 3, 4 and 6 that are measured only
at small sizes.
"""
