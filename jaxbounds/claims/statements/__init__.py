"""Data types of a claim: papers, statements, forms (versions of a claim), instances and errata."""

from jaxbounds.claims.statements.domain import Domain
from jaxbounds.claims.statements.form import Counterexample, Form, Sense, Status
from jaxbounds.claims.statements.instance import Hypotheses, Instance, Sampler, Size, stacked
from jaxbounds.claims.statements.judged import Judged, full_name, owner_of
from jaxbounds.claims.statements.kinds import (
    BY_INSTANCE,
    DRAWN,
    FITTED,
    ON_AVERAGE,
    Kind,
    Relation,
    Search,
)
from jaxbounds.claims.statements.paper import Erratum, Paper
from jaxbounds.claims.statements.sides import CONTROL, Sides
from jaxbounds.claims.statements.statement import Budget, Statement

__all__ = [
    "BY_INSTANCE",
    "CONTROL",
    "DRAWN",
    "FITTED",
    "ON_AVERAGE",
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
