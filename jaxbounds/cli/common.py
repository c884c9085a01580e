"""What the commands share."""

import os
import sys
from typing import Annotated

import tyro
from rich.console import Console

from jaxbounds.papers import load_papers, select
from jaxbounds.statements import Statement

Patterns = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PATTERN")]
Imports = Annotated[
    tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(name="import", metavar="MODULE")
]


def console_for_output() -> Console:
    """Standard output; where it is no terminal, COLUMNS wide, or 100."""
    given = os.environ.get("COLUMNS", "")
    width = int(given) if given.isdecimal() and int(given) else 100
    return Console(width=None if sys.stdout.isatty() else width, highlight=False)


def statements_of(imports: tuple[str, ...], patterns: tuple[str, ...], /) -> tuple[Statement, ...]:
    """The statements of the shipped papers and of the imported ones, as far as patterns need."""
    papers = load_papers(imports, patterns=patterns)
    return select((s for paper in papers for s in paper.statements), patterns)
