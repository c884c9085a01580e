"""The paper's statements, in its order.

Sections and appendices, and where they are:

* 2, 3 (data, assumptions, encodings): `model`
* 3.1, A.2 (Theorem 1, Propositions 3 and 21): `heads`
* 4, B (Definition 5, Theorem 6): `feedforward`
* 5, C.2, C.4 (Proposition 8, Theorem 9, Lemmas 29 and 30, (C.1), (C.2)): `recurrent`
* 6 and the public code (Figure 1): `networks`
* A.1 (Lemma 11): `retrieval`; the rest of A (Lemmas 12 to 20, Theorem 10): `transformers`
* C.1 (Lemma 22, Propositions 26 and 28): `construction`
* C.4 (Lemmas 36 to 38): `interpolation`
* D (Lemmas 39 to 41): `auxiliary`
* what is wrong or not checked: `errata`
"""

from jaxbounds.qstr.statements import (
    auxiliary,
    construction,
    feedforward,
    heads,
    interpolation,
    model,
    networks,
    recurrent,
    retrieval,
    transformers,
)
from jaxbounds.qstr.statements.errata import ERRATA, UNCHECKED
from jaxbounds.statements import Paper

PAPER = Paper(
    id="qstr",
    title="When Do Transformers Outperform Feedforward and Recurrent Networks?",
    citation="Mousavi-Hosseini, Sanford, Wu, Erdogdu: When Do Transformers Outperform Feedforward "
    "and Recurrent Networks? A Statistical Perspective",
    statements=(
        *model.STATEMENTS,
        *heads.STATEMENTS,
        *feedforward.STATEMENTS,
        *recurrent.MAIN,
        *networks.STATEMENTS,
        *retrieval.STATEMENTS,
        *transformers.STATEMENTS,
        *heads.APPENDIX,
        *construction.STATEMENTS,
        *recurrent.APPENDIX,
        *interpolation.STATEMENTS,
        *auxiliary.STATEMENTS,
    ),
    errata=ERRATA,
    unchecked=UNCHECKED,
)
