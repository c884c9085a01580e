"""The paper's statements in its order, with errata and what is not checked.

Sections 2.1, 3.4: `norms`. 2.2 to 2.4, and complexities in Appendix C: `complexities`.
2.6, 4.1: `model`. 3.1 (Lemma 3.1): `sparsification`. 3.2, 3.3 (Lemmas 3.2, 3.3, 3.6), Appendix A:
`linear_covers`. Lemmas 3.4, 3.5, and 2.5: `row_covers`. 4.1 (Theorem 4.1), 4.2, Appendix D:
`single_layer`. 4.3 (Theorem 4.2), Lemma E.1, Appendix F: `multi_layer`. 5, Appendix G: `masking`.
Appendix C: `peeling`, then `attention_cover` (Lemma C.1, Dudley's integral). Appendix E: `blocks`
(Lemmas E.2, E.3), then `chain`. 6: `majority`. Trained networks: `certificates`. What statements
share: `instances`. Where the text is wrong: `errata`.
"""

from jaxbounds.seqlength.statements import (
    attention_cover,
    blocks,
    certificates,
    chain,
    complexities,
    linear_covers,
    majority,
    masking,
    model,
    multi_layer,
    norms,
    peeling,
    row_covers,
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
        *linear_covers.STATEMENTS,
        *row_covers.STATEMENTS,
        *single_layer.STATEMENTS,
        *multi_layer.STATEMENTS,
        *masking.STATEMENTS,
        *peeling.STATEMENTS,
        *attention_cover.STATEMENTS,
        *blocks.STATEMENTS,
        *chain.STATEMENTS,
        *majority.STATEMENTS,
        *certificates.STATEMENTS,
    ),
    errata=ERRATA,
    unchecked=UNCHECKED,
)
