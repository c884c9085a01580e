"""The statements of the paper, in the paper's order.

`SECTIONS` maps each section of the paper to the module of its statements.
"""

from pathlib import Path

from jaxbounds.claims.statements import Paper
from jaxbounds.claims.statements.errata import load_errata
from jaxbounds.claims.statements.sections import Sections, statements_in
from jaxbounds.qstr.statements.codes import CODES
from jaxbounds.qstr.statements.items import ITEMS
from jaxbounds.qstr.statements.reference import BIBTEX, CITATION, EDITION, LINKS, UNJUDGED

SECTIONS: Sections = {
    "Sections 2 and 3: data, risks, encodings, Assumption 2": ("model", "links"),
    "Section 3.1: heads (Proposition 3, Theorem 1)": ("few_heads", "heads", "few_heads.REMARKS"),
    "Section 3.2: the limit Omega(qd) after Theorem 4": ("label_limits",),
    "Section 4, Appendix B: feedforward networks (Theorem 6)": ("feedforward",),
    "Section 5: recurrent networks (Proposition 8, Theorem 9)": (
        "recurrent.MAIN", "recurrent_norms", "memorising", "minimisers",
    ),
    "Section 6: Figure 1 and the public code": ("networks",),
    "A.1: retrieval, tails, covers (Lemmas 11 to 15)": ("retrieval", "tails", "covers"),
    "A.1: Lemmas 15 to 34, Theorems 4, 7 and 10": (
        "transformers", "cover_sizes", "lipschitz", "gaps", "truncation", "printed_orders",
        "explicit_samples",
    ),
    "A.2: heads (Proposition 21)": ("heads.APPENDIX",),
    "C.1: the construction (Lemmas 22 to 25, Propositions 26 and 28)": (
        "construction", "gates", "gate_norms", "simple",
    ),
    "C.2, C.4: projection and interpolation (Lemmas 29, 30, 36 to 38)": (
        "recurrent.APPENDIX", "interpolation",
    ),
    "D: auxiliary lemmas (39 to 42)": ("auxiliary", "ridge", "gates.AUXILIARY"),
}  # fmt: skip

_ERRATA = load_errata(Path(__file__).with_name("errata.toml"))

PAPER = Paper(
    id="qstr",
    title="When Do Transformers Outperform Feedforward and Recurrent Networks?",
    citation=CITATION,
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
