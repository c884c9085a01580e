"""What the commands share."""

import json
import os
import sys
from typing import Annotated, Any

import tyro
from rich.console import Console

from jaxbounds.claims.statements import Kind

Patterns = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PATTERN")]
Imports = Annotated[
    tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(name="import", metavar="MODULE")
]
Kinds = Annotated[tuple[Kind, ...], tyro.conf.UseAppendAction]


def console_for_output(*, errors: bool = False) -> Console:
    """Standard output, or standard error; where it is no terminal, COLUMNS wide, or 100."""
    given = os.environ.get("COLUMNS", "")
    width = int(given) if given.isdecimal() and int(given) else 100
    stream = sys.stderr if errors else sys.stdout
    return Console(width=None if stream.isatty() else width, highlight=False, stderr=errors)


def print_json(value: Any, /) -> None:
    """What a program reads: its schema is what `jaxbounds schema` says."""
    print(json.dumps(value, indent=1, allow_nan=False))
