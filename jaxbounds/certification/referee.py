"""Ball arithmetic as the referee of verdicts: asked where a violation may be rounding."""

from jaxbounds.certification.disproof import confirmed
from jaxbounds.claims.statements import Form, Instance, Size, Statement
from jaxbounds.falsification import Referee


def referee(statement: Statement, form: Form, instance: Instance, size: Size, /) -> Referee:
    """Whether a form is certainly violated, or certainly true, on an instance."""
    try:
        found = confirmed(statement, form.name, instance, size)
    except ValueError as problem:
        return Referee("undecided", str(problem))
    return Referee(found.word, found.reason)
