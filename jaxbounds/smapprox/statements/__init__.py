"""The paper's statements in its order: `SECTIONS` maps sections to modules."""

from pathlib import Path

from jaxbounds.claims.statements import Paper
from jaxbounds.claims.statements.errata import load_errata
from jaxbounds.claims.statements.sections import Sections, statements_in
from jaxbounds.smapprox.statements.items import ITEMS
from jaxbounds.smapprox.statements.reference import BIBTEX, CITATION, EDITION, LINKS, UNJUDGED

SECTIONS: Sections = {
    "Section 2.1: finite classes, all-layer margins, Lemma 2.4": (
        "section2", "section2_margins", "section2_epsilon",
    ),
    "Section 2.1, Appendix A: sample sizes (Lemma 2.4, Corollary A.1)": (
        "sample_sizes", "margin_covers", "margin_samples", "margin_profiles",
    ),
    "Section 3, Appendix B: circuits (Theorem 3.1)": (
        "section3_circuits", "appendix_b", "section3_margins", "section3_rounding",
        "explicit_samples",
    ),
    "Section 4: Turing machines (Theorem 4.1)": (
        "machine", "machine_bounds", "machine_margins", "explicit_machine_samples",
    ),
    "Appendix C: the machine's layers": (
        "appendix_c", "appendix_c_search", "appendix_c_scores", "appendix_c.LATER",
        "appendix_c_norms",
    ),
    "Appendix D: margins of the machine (Theorem D.6, Lemmas D.7 to D.9)": (
        "appendix_d", "appendix_d_margin", "appendix_d_lemmas", "appendix_d_sharing",
    ),
}  # fmt: skip

_ERRATA = load_errata(Path(__file__).with_name("errata.toml"))

PAPER = Paper(
    id="smapprox",
    title="Statistically Meaningful Approximation: a Case Study on Approximating Turing Machines "
    "with Transformers",
    citation=CITATION,
    statements=statements_in(__name__, SECTIONS),
    errata=_ERRATA.errata,
    survives=_ERRATA.survives,
    remarks=_ERRATA.remarks,
    unchecked=_ERRATA.unchecked,
    items=ITEMS,
    unjudged=UNJUDGED,
    edition=EDITION,
    links=LINKS,
    bibtex=BIBTEX,
)
