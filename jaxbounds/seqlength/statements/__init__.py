"""The paper's statements in its order, with errata and what is not checked."""

from jaxbounds.seqlength.statements import (
    attention_cover,
    blocks,
    chain,
    complexities,
    covering_numbers,
    entropy_integrals,
    linear_covers,
    masking,
    model,
    multi_layer,
    norms,
    peeling,
    row_covers,
    scales,
    single_layer,
    sparsification,
)
from jaxbounds.seqlength.statements.errata import ERRATA, UNCHECKED
from jaxbounds.statements import Paper

PAPER = Paper(
    id="seqlength",
    title="Sequence Length Independent Norm-Based Generalization Bounds for Transformers",
    citation="J. Trauger, A. Tewari, AISTATS 2024",
    statements=(
        *norms.STATEMENTS,
        *complexities.STATEMENTS,
        *model.STATEMENTS,
        *sparsification.STATEMENTS,
        *covering_numbers.STATEMENTS,
        *linear_covers.STATEMENTS,
        *row_covers.STATEMENTS,
        *single_layer.STATEMENTS,
        *multi_layer.STATEMENTS,
        *masking.STATEMENTS,
        *peeling.STATEMENTS,
        *attention_cover.STATEMENTS,
        *entropy_integrals.STATEMENTS,
        *scales.STATEMENTS,
        *blocks.STATEMENTS,
        *chain.STATEMENTS,
    ),
    errata=ERRATA,
    unchecked=UNCHECKED,
)
