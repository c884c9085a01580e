"""The statements of the paper, in its order.

    Section 2                 formulas, readouts (the footnote to eq. (1))
    Section 3, Appendix A     formulas (Lemma 1), closed_forms (ours, against autograd), softmax,
                              proof_steps, model_bounds (Propositions 1, 5, Lemma 5), loss_bounds
                              (eq. (24), Corollary 1)
    Section 4.1, Appendix B   gradient_descent (Theorem 3, Assumption 2, Corollary 3), main_text
                              (Theorems 1, 2 and Corollary 2 with constants)
    Section 4.2, Appendix C   generalization (Lemmas 3, 11, Theorem 4, Corollary 4)
    Section 4.3, C.3, C.4     nearest_target, realizability (Proposition 7, Corollary 5),
                              unbalanced (B_Phi > 1), expected_gap (Corollary 5, its gap);
                              realizable_starts (Definition 1, eq. (98))
    Section 5                 data_models (Assumption 3)
    Section 5.1, Appendix D   first_step (Lemmas 2, 16, 17), good_start (Proposition 2, Fact 2),
                              oracle_margins (Lemma 13), step_sizes (eqs. (115), (116)),
                              separability (Lemmas 14, 15)
    Section 5.2, Appendix E   margin_sketch (the sketch of P3), oracle_scores (eqs. (8), (9),
                              (108)), saturation (Proposition 3)
    Section 5.3, Appendix F   margin_order, comparisons (eq. (12))
    Section 6.1, Appendix B   segments (eqs. (14)-(16), Proposition 4), descent_lemmas (7 to 10),
                              smoothness (rho_k <= rho)
    Section 6.2, Appendix C   recursion (eqs. (19)-(22))
    Section 7                 kernel_margins (the best NTK margin)
    Sections 4.1, 5.1, 7      orders (what the main text claims in place of constants)
    Sections 4.3, 5.1         guarantees (what it says that Corollary 2 comes to)

`errata.toml` says what is wrong in the paper and what else is worth knowing; `items` goes through
everything that has a number; `reference` says where the paper is found. Instances are drawn in
`instances` (heads, data sets, segments), `run_instances` (problems for gradient descent) and
`contexts` (DM1); `common` holds settings that statements share.
"""

from pathlib import Path

from jaxbounds.claims.statements import Paper
from jaxbounds.claims.statements.errata import load_errata
from jaxbounds.multihead.statements import (
    closed_forms,
    comparisons,
    data_models,
    descent_lemmas,
    expected_gap,
    first_step,
    formulas,
    generalization,
    good_start,
    gradient_descent,
    guarantees,
    induced_norms,
    kernel_margins,
    loss_bounds,
    main_text,
    margin_order,
    margin_sketch,
    model_bounds,
    nearest_target,
    oracle_margins,
    oracle_scores,
    orders,
    paper_losses,
    paper_sizes,
    proof_steps,
    readouts,
    realizability,
    recursion,
    saturation,
    segments,
    separability,
    smoothness,
    softmax,
    step_sizes,
    unbalanced,
    weak_convexity,
)
from jaxbounds.multihead.statements.codes import CODES
from jaxbounds.multihead.statements.items import ITEMS
from jaxbounds.multihead.statements.reference import BIBTEX, EDITION, LINKS, UNJUDGED

_PARTS = (
    (induced_norms, formulas, closed_forms, softmax, readouts, proof_steps, model_bounds),
    (loss_bounds,),
    (segments, descent_lemmas, smoothness, gradient_descent, main_text, recursion, generalization),
    (nearest_target, realizability, unbalanced, expected_gap),
    (data_models, first_step, good_start, oracle_margins, step_sizes, separability, margin_sketch),
    (oracle_scores, saturation, margin_order, comparisons, orders, guarantees),
    (kernel_margins, weak_convexity),
    (paper_losses, paper_sizes),
)
"""The model; gradient descent; good starts; DM1 and its margins; their sizes; beyond the paper; the
paper's own sizes."""

_ERRATA = load_errata(Path(__file__).with_name("errata.toml"))

PAPER = Paper(
    id="multihead",
    title="On the Optimization and Generalization of Multi-head Attention",
    citation="Deora, Ghaderi, Taheri, Thrampoulidis; Transactions on Machine Learning Research, "
    "April 2024",
    statements=tuple(
        statement for part in _PARTS for module in part for statement in module.STATEMENTS
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
