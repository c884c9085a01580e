"""The paper's statements, in its order."""

from jaxbounds.qstr.statements import (
    auxiliary,
    construction,
    feedforward,
    heads,
    interpolation,
    model,
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
