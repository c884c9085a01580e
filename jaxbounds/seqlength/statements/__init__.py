"""The paper's statements in its order, with errata and what is not checked.

Sections 2.1, 3.4: `norms`. 2.2, 2.3: `gap`; 2.3, 2.4, and complexities in Appendix C:
`complexities`. 2.6, 4.1: `model`. 3.1 (Lemma 3.1): `sparsification`. 3.2, 3.3 (Lemmas 3.2, 3.3,
3.6): `linear_covers`; their sizes, Appendix A: `cover_sizes`. Lemmas 3.4, 3.5, and 2.5:
`row_covers`; Lemma 3.5 with constants: `corrections`. 4.1 (Theorem 4.1), 4.2: `single_layer`;
Corollary 4.1.1, Appendix D: `corollaries`. 4.3 (Theorem 4.2), Appendix F: `multi_layer`; what
refutes the printed numbers: `packings`, for F.0.2 `appendix_f`, for F.0.1 `appendix_f_levels`; one
C for all matrices of F.0.1: `one_constant`; columns or rows in Appendices D and F: `orientation`;
their logarithms and the orders of 4.3: `logarithms`; Lemma E.1: `scales`. 5, Appendix G: `masking`;
the constants of Theorem 5.1: `contraction`. Appendix C: `peeling`, then `attention_norms`,
`attention_cover` (Lemma C.1) and `entropy_integral`. Appendix E: `blocks` (Lemmas E.2, E.3), then
`chain`. 6: `majority`. From how many samples on bounds say anything: `onset`. Trained networks:
`certificates`. What statements share: `instances`. Where the text is wrong: `errata.toml`. Every
numbered item: `items`. Edition, links and BibTeX: `reference`.
"""

from pathlib import Path
from types import ModuleType

from jaxbounds.claims.statements import Paper, Statement
from jaxbounds.claims.statements.errata import load_errata
from jaxbounds.seqlength.statements import (
    appendix_f,
    appendix_f_levels,
    attention_cover,
    attention_norms,
    blocks,
    certificates,
    chain,
    complexities,
    contraction,
    corollaries,
    corrections,
    cover_sizes,
    entropy_integral,
    gap,
    linear_covers,
    logarithms,
    majority,
    masking,
    model,
    multi_layer,
    norms,
    one_constant,
    onset,
    orientation,
    packings,
    peeling,
    row_covers,
    scales,
    single_layer,
    sparsification,
)
from jaxbounds.seqlength.statements.codes import CODES
from jaxbounds.seqlength.statements.items import ITEMS
from jaxbounds.seqlength.statements.reference import BIBTEX, EDITION, LINKS, UNJUDGED


def _of(*modules: ModuleType) -> tuple[Statement, ...]:
    return tuple(statement for module in modules for statement in module.STATEMENTS)


_ERRATA = load_errata(Path(__file__).with_name("errata.toml"))

PAPER = Paper(
    id="seqlength",
    title="Sequence Length Independent Norm-Based Generalization Bounds for Transformers",
    citation="J. Trauger, A. Tewari, AISTATS 2024",
    statements=(
        *_of(norms, gap, complexities, model),
        *_of(sparsification, linear_covers, cover_sizes, row_covers, corrections),
        *_of(single_layer, corollaries, multi_layer, packings, appendix_f_levels, appendix_f),
        *_of(orientation, one_constant, logarithms, scales, masking, contraction),
        *_of(peeling, attention_norms, attention_cover, entropy_integral, blocks, chain),
        *_of(majority, onset, certificates),
    ),
    errata=_ERRATA.errata,
    survives=_ERRATA.survives,
    remarks=_ERRATA.remarks,
    unchecked=_ERRATA.unchecked,
    items=ITEMS,
    codes=CODES,
    unjudged=UNJUDGED,
    edition=EDITION,
    links=LINKS,
    bibtex=BIBTEX,
)
