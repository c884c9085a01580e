"""List the papers, and find statements and experiments, including the user's own."""

from jaxbounds.papers.loading import PAPERS, load_module, load_paper, origin
from jaxbounds.papers.lookup import (
    experiments,
    find_experiment,
    find_statement,
    judges_of,
    load_papers,
    named_in_print,
    select,
)
from jaxbounds.papers.selection import Catalogue, Named, Selection, selected, the_statement

__all__ = [
    "PAPERS",
    "Catalogue",
    "Named",
    "Selection",
    "experiments",
    "find_experiment",
    "find_statement",
    "judges_of",
    "load_module",
    "load_paper",
    "load_papers",
    "named_in_print",
    "origin",
    "select",
    "selected",
    "the_statement",
]
