"""The statements of the paper, in its order."""

from jaxbounds.smapprox.statements import (
    appendix_c,
    appendix_c_search,
    appendix_d,
    machine,
    machine_bounds,
    section2,
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
        *section3_circuits.STATEMENTS,
        *section3_rounding.STATEMENTS,
        *machine.STATEMENTS,
        *machine_bounds.STATEMENTS,
        *appendix_c.STATEMENTS[:2],
        *appendix_c_search.STATEMENTS,
        *appendix_c.STATEMENTS[2:],
        *appendix_d.STATEMENTS,
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
