"""The statements of the paper, in its order.

Section 2.1 and Appendix A: `section2` (finite classes), `section2_margins` (the all-layer margin),
`sample_sizes` (Lemma 2.4, Corollary A.1, and Theorem 3.1). Section 3 and Appendix B:
`section3_circuits` (the construction), `section3_rounding` (its margin). Section 4: `machine`
(Theorem 4.1, step by step), `machine_bounds` (its sizes, margins, softmax). Appendix C:
`appendix_c` (Lemmas C.1, C.2, C.7, C.8), `appendix_c_search` (Lemma C.3, Claims C.4 to C.6).
Appendix D: `appendix_d`, then `appendix_d_margin` (from Theorem D.6). What statements share:
`margin_cases`. Where the text is wrong: `errata`.
"""

from jaxbounds.smapprox.statements import (
    appendix_c,
    appendix_c_search,
    appendix_d,
    appendix_d_margin,
    machine,
    machine_bounds,
    sample_sizes,
    section2,
    section2_margins,
    section3_circuits,
    section3_rounding,
)
from jaxbounds.smapprox.statements.errata import ERRATA
from jaxbounds.statements import Paper

PAPER = Paper(
    id="smapprox",
    title="Statistically Meaningful Approximation: a Case Study on Approximating Turing Machines "
    "with Transformers",
    citation="Wei, Chen, Ma, 2021",
    statements=(
        *section2.STATEMENTS,
        *section2_margins.STATEMENTS,
        *sample_sizes.STATEMENTS,
        *section3_circuits.STATEMENTS,
        *section3_rounding.STATEMENTS,
        *machine.STATEMENTS,
        *machine_bounds.STATEMENTS,
        *appendix_c.STATEMENTS[:2],
        *appendix_c_search.STATEMENTS,
        *appendix_c.STATEMENTS[2:],
        *appendix_d.STATEMENTS,
        *appendix_d_margin.STATEMENTS,
    ),
    errata=ERRATA,
    unchecked={
        "Definitions 2.1, 2.2": "definitions; computed on finite classes by `finite_classes`",
        "Lemma 2.4, sample complexity": "absolute constants and logarithms are hidden; "
        "`sample_complexity` takes them as arguments",
        "Corollary A.1": "absolute constants are hidden; `margin_generalization_bound` takes them "
        "as arguments and needs certified margins",
        "Theorem 3.1, Theorem 4.1, sample sizes": "follow from Lemma 2.4, whose constants are "
        "hidden; the construction, norms and margins they need are checked",
        "Section 3, VC and norm-product comparisons": "cited bounds with hidden constants; "
        "`sample_complexity` evaluates their shapes",
    },
)
