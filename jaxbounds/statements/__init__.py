"""What papers claim, as data."""

from jaxbounds.statements.domain import Domain
from jaxbounds.statements.form import Counterexample, Form, Sense, Status
from jaxbounds.statements.instance import Hypotheses, Instance, Sampler, Size, stacked
from jaxbounds.statements.judged import Judged, full_name, owner_of
from jaxbounds.statements.paper import Erratum, Paper
from jaxbounds.statements.sides import CONTROL, Sides
from jaxbounds.statements.statement import FITTED, Budget, Kind, Relation, Search, Statement

__all__ = [
    "CONTROL",
    "FITTED",
    "Budget",
    "Counterexample",
    "Domain",
    "Erratum",
    "Form",
    "Hypotheses",
    "Instance",
    "Judged",
    "Kind",
    "Paper",
    "Relation",
    "Sampler",
    "Search",
    "Sense",
    "Sides",
    "Size",
    "Statement",
    "Status",
    "full_name",
    "owner_of",
    "stacked",
]
