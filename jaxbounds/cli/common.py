"""What the commands share."""

import sys
from typing import Annotated

import tyro
from rich.console import Console

from jaxbounds.statements import Statement, load_papers, select

Patterns = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PATTERN")]
Imports = Annotated[
    tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(name="import", metavar="MODULE")
]


def console_for_output() -> Console:
    """Standard output; 100 columns where it is no terminal."""
    width = None if sys.stdout.isatty() else 100
    return Console(width=width, highlight=False)


def all_statements(imports: tuple[str, ...], /) -> tuple[Statement, ...]:
    """The statements of the shipped papers and of the imported ones."""
    return tuple(s for paper in load_papers(imports) for s in paper.statements)


def find_statement(imports: tuple[str, ...], name: str, /) -> Statement:
    """The statement of that id."""
    return select(all_statements(imports), (name,))[0]
