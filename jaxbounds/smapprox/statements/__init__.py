"""The statements of the paper, in its order.

Section 2.1 and Appendix A: `section2` (finite classes), `section2_margins` (the all-layer margin),
`section2_epsilon` (what Lemma 2.4 concludes), `sample_sizes` (the shapes of Lemma 2.4, Corollary
A.1, Theorem 3.1), `margin_covers`, `margin_samples`, `margin_profiles` (Lemma 2.4, Corollary A.1
with constants). Section 3 and Appendix B: `section3_circuits` (the construction), `appendix_b` (its
gates and norms),
`section3_margins` (Lemma 3.3), `section3_rounding` (Claim 3.5), `explicit_samples` (Theorem 3.1,
other losses, with constants). Section 4: `machine` (Theorem 4.1, step by step), `machine_bounds`
(its sizes), `machine_margins` (its margin, softmax), `explicit_machine_samples` (its constants).
Appendix C: `appendix_c` (Lemmas C.1, C.2, C.7, C.8), `appendix_c_search` (Lemma C.3, Claims C.4 to
C.6), `appendix_c_scores` (their scores), `appendix_c_norms` (all norms). Appendix D: `appendix_d`,
`appendix_d_margin` (Theorem D.6), `appendix_d_lemmas` (D.7, D.8), `appendix_d_sharing` (D.9). What
statements share: `margin_cases`. Where the text is wrong, and what is no erratum: `errata.toml`;
where each item of it is taken up: `items`; the edition read, how to cite it, and the functions that
no statement judges: `reference`.
"""

from pathlib import Path
from types import ModuleType

from jaxbounds.claims.statements import Paper, Statement
from jaxbounds.claims.statements.errata import load_errata
from jaxbounds.smapprox.statements import (
    appendix_b,
    appendix_c,
    appendix_c_norms,
    appendix_c_scores,
    appendix_c_search,
    appendix_d,
    appendix_d_lemmas,
    appendix_d_margin,
    appendix_d_sharing,
    explicit_machine_samples,
    explicit_samples,
    machine,
    machine_bounds,
    machine_margins,
    margin_covers,
    margin_profiles,
    margin_samples,
    sample_sizes,
    section2,
    section2_epsilon,
    section2_margins,
    section3_circuits,
    section3_margins,
    section3_rounding,
)
from jaxbounds.smapprox.statements.items import ITEMS
from jaxbounds.smapprox.statements.reference import BIBTEX, CITATION, EDITION, LINKS, UNJUDGED


def _of(*modules: ModuleType) -> tuple[Statement, ...]:
    return tuple(statement for module in modules for statement in module.STATEMENTS)


_ERRATA = load_errata(Path(__file__).with_name("errata.toml"))

PAPER = Paper(
    id="smapprox",
    title="Statistically Meaningful Approximation: a Case Study on Approximating Turing Machines "
    "with Transformers",
    citation=CITATION,
    statements=(
        *_of(section2, section2_margins, section2_epsilon, sample_sizes),
        *_of(margin_covers, margin_samples, margin_profiles),
        *_of(section3_circuits, appendix_b, section3_margins, section3_rounding, explicit_samples),
        *_of(machine, machine_bounds, machine_margins, explicit_machine_samples),
        *appendix_c.STATEMENTS[:2],
        *_of(appendix_c_search, appendix_c_scores),
        *appendix_c.STATEMENTS[2:],
        *_of(
            appendix_c_norms, appendix_d, appendix_d_margin, appendix_d_lemmas, appendix_d_sharing
        ),
    ),
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
