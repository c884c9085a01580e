"""The paper's statements in the paper's order.

`SECTIONS` maps each section of the paper to the module that checks it.
"""

from pathlib import Path

from jaxbounds.claims.statements import Paper
from jaxbounds.claims.statements.errata import load_errata
from jaxbounds.claims.statements.sections import Sections, statements_in
from jaxbounds.multihead.statements.codes import CODES
from jaxbounds.multihead.statements.items import ITEMS
from jaxbounds.multihead.statements.reference import BIBTEX, EDITION, LINKS, UNJUDGED

SECTIONS: Sections = {
    "Sections 2 and 3, Appendix A: the model": (
        "induced_norms", "formulas", "closed_forms", "softmax", "readouts", "proof_steps",
        "model_bounds",
    ),
    "Section 3, Appendix A: the loss (eq. (24), Corollary 1)": ("loss_bounds",),
    "Sections 4.1 and 6.1, Appendix B: gradient descent (Theorems 1 to 3)": (
        "segments", "descent_lemmas", "smoothness", "gradient_descent", "main_text",
    ),
    "Sections 4.2 and 6.2, Appendix C: stability and generalization": (
        "recursion", "generalization",
    ),
    "Section 4.3, C.3, C.4: realizability (Proposition 7, Corollary 5)": (
        "nearest_target", "realizability", "unbalanced", "expected_gap",
    ),
    "Sections 5 and 5.1, Appendix D: a good start on DM1": (
        "data_models", "first_step", "good_start", "oracle_margins", "step_sizes", "separability",
    ),
    "Section 5.2, Appendix E: margins and saturation": (
        "margin_sketch", "oracle_scores", "saturation",
    ),
    "Section 5.3, Appendix F: comparisons (eq. (12))": ("margin_order", "comparisons"),
    "Sections 4.1, 4.3, 5.1 and 7: orders of the main text": ("orders", "guarantees"),
    "Section 7: the kernel regime": ("kernel_margins", "weak_convexity"),
    "Figures 2 to 5: the bounds at the sizes of the experiments": ("paper_losses", "paper_sizes"),
}  # fmt: skip

_ERRATA = load_errata(Path(__file__).with_name("errata.toml"))

PAPER = Paper(
    id="multihead",
    title="On the Optimization and Generalization of Multi-head Attention",
    citation="Deora, Ghaderi, Taheri, Thrampoulidis; Transactions on Machine Learning Research, "
    "April 2024",
    statements=statements_in(__name__, SECTIONS),
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
