"""What papers claim, as data."""

from jaxbounds.statements.paper import Erratum, Paper
from jaxbounds.statements.registry import (
    PAPERS,
    load_module,
    load_paper,
    load_papers,
    origin,
    select,
)
from jaxbounds.statements.statement import (
    CONTROL,
    Budget,
    Form,
    Hypotheses,
    Instance,
    Kind,
    Relation,
    Sampler,
    Search,
    Sense,
    Sides,
    Size,
    Statement,
    Status,
)

__all__ = [
    "CONTROL",
    "PAPERS",
    "Budget",
    "Erratum",
    "Form",
    "Hypotheses",
    "Instance",
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
    "load_module",
    "load_paper",
    "load_papers",
    "origin",
    "select",
]
