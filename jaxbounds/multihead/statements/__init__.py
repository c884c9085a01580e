"""The statements of the paper, in its order."""

from jaxbounds.multihead.statements import (
    comparisons,
    descent_lemmas,
    first_step,
    formulas,
    generalization,
    good_start,
    loss_bounds,
    model_bounds,
    oracle_margins,
    oracle_scores,
    proof_steps,
    readouts,
    realizability,
    recursion,
    saturation,
    segments,
    separability,
    softmax,
    training,
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
        *softmax.STATEMENTS,
        *readouts.STATEMENTS,
        *proof_steps.STATEMENTS,
        *model_bounds.STATEMENTS,
        *loss_bounds.STATEMENTS,
        *segments.STATEMENTS,
        *descent_lemmas.STATEMENTS,
        *training.STATEMENTS,
        *recursion.STATEMENTS,
        *generalization.STATEMENTS,
        *realizability.STATEMENTS,
        *first_step.STATEMENTS,
        *good_start.STATEMENTS,
        *oracle_margins.STATEMENTS,
        *separability.STATEMENTS,
        *oracle_scores.STATEMENTS,
        *saturation.STATEMENTS,
        *comparisons.STATEMENTS,
    ),
    errata=ERRATA,
    unchecked={
        "Theorems 1, 2, Corollaries 2, 3, Proposition 2, Lemma 2 of the main text": "constants are "
        "hidden in >~; their versions with constants in Appendices B to D are checked",
        "Corollary 5, generalization": "its bound is `corollary5(...)['gap_times_n']`; no Monte "
        "Carlo run was made at the head counts it certifies; Corollary 4 implies it and is checked",
        "Figure 6": "SST-2 needs pretrained RoBERTa weights",
    },
)
