"""The statements of the paper, in its order."""

from jaxbounds.multihead.statements import (
    descent,
    first_phase,
    formulas,
    loss_bounds,
    margins,
    model_bounds,
    proof_steps,
    readouts,
    realizability,
    segments,
    stability,
)
from jaxbounds.multihead.statements.errata import ERRATA
from jaxbounds.statements import Paper

PAPER = Paper(
    id="multihead",
    title="On the Optimization and Generalization of Multi-head Attention",
    citation="Deora, Ghaderi, Taheri, Thrampoulidis; Transactions on Machine Learning Research, "
    "April 2024",
    statements=(
        *formulas.STATEMENTS,
        *readouts.STATEMENTS,
        *proof_steps.STATEMENTS,
        *model_bounds.STATEMENTS,
        *loss_bounds.STATEMENTS,
        *segments.STATEMENTS,
        *descent.STATEMENTS,
        *stability.STATEMENTS,
        *realizability.STATEMENTS,
        *first_phase.STATEMENTS,
        *margins.STATEMENTS,
    ),
    errata=ERRATA,
    unchecked={
        "Theorems 1, 2, Corollaries 2, 3, Proposition 2, Lemma 2 of the main text": "constants are "
        "hidden in >~; their versions with constants in Appendices B to D are checked",
        "Corollary 5, generalization": "its bound is `corollary5(...)['gap_times_n']`; no Monte "
        "Carlo run at the head counts it certifies was made (Corollary 4, which it follows from, is "
        "checked)",
        "Figure 6": "SST-2 needs pretrained RoBERTa weights",
    },
)
