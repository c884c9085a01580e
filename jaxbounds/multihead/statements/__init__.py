"""The statements of the paper, in its order."""

from jaxbounds.multihead.statements import (
    descent,
    formulas,
    loss_bounds,
    model_bounds,
    proof_steps,
    readouts,
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
    ),
    errata=ERRATA,
)
