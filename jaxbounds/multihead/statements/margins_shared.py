"""What the statements about margins share."""

from jaxbounds.multihead.statements.common import stated
from jaxbounds.multihead.statements.contexts import SIZES
from jaxbounds.statements import Budget


def margin_statement(name, label, formula, kind, evaluate, forms, control, source, **options):
    """A statement on margins of DM1."""
    defaults = {"sizes": SIZES}
    if kind == "inequality":
        defaults |= {"budget": Budget(samples=256, restarts=4, steps=100)}
    return stated(
        name, label, formula, evaluate, forms, control, source, kind=kind, **defaults | options
    )
