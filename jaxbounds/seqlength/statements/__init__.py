"""The paper's statements in its order: `SECTIONS` maps each section to a module."""

from pathlib import Path

from jaxbounds.claims.statements import Paper
from jaxbounds.claims.statements.errata import load_errata
from jaxbounds.claims.statements.sections import Sections, statements_in
from jaxbounds.seqlength.statements.codes import CODES
from jaxbounds.seqlength.statements.items import ITEMS
from jaxbounds.seqlength.statements.reference import BIBTEX, EDITION, LINKS, UNJUDGED

SECTIONS: Sections = {
    "Sections 2.1 to 2.6 and 4.1: norms, gaps, complexities, the model": (
        "norms", "gap", "complexities", "model",
    ),
    "Sections 3.1 to 3.4, Appendix A: covers of linear maps": (
        "sparsification", "linear_covers", "cover_sizes", "row_covers", "corrections",
    ),
    "Sections 4.1 to 4.3, Appendices D and F: the bounds": (
        "single_layer", "corollaries", "multi_layer", "packings", "appendix_f_levels", "appendix_f",
    ),
    "Appendices D, E and F: columns or rows, constants, logarithms, scales": (
        "orientation", "one_constant", "logarithms", "scales",
    ),
    "Section 5, Appendix G: masking (Theorem 5.1)": ("masking", "contraction"),
    "Appendix C: peeling, attention, the entropy integral": (
        "peeling", "attention_norms", "attention_cover", "entropy_integral",
    ),
    "Appendix E: blocks (Lemmas E.2, E.3) and chains": ("blocks", "chain"),
    "Section 6: majority": ("majority",),
    "Beyond the paper: the onset of the bounds, trained networks": ("onset", "certificates"),
}  # fmt: skip

_ERRATA = load_errata(Path(__file__).with_name("errata.toml"))

PAPER = Paper(
    id="seqlength",
    title="Sequence Length Independent Norm-Based Generalization Bounds for Transformers",
    citation="J. Trauger, A. Tewari, AISTATS 2024",
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
