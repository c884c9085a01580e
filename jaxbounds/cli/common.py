"""The arguments and the output that commands share."""

import json
import os
import sys
from collections.abc import Iterable
from typing import Annotated, Any

import tyro
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from jaxbounds.claims.statements import Kind
from jaxbounds.ground.text import printable

Patterns = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PATTERN")]
Imports = Annotated[
    tuple[str, ...], tyro.conf.UseAppendAction, tyro.conf.arg(name="import", metavar="MODULE")
]
Kinds = Annotated[tuple[Kind, ...], tyro.conf.UseAppendAction]


class Plain(Console):
    """A console that interprets no markup, and shows control characters as escapes.

    Without control characters a printed text cannot control the terminal.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **given)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments of a text, with escapes in place of its control characters."""
        for part in super().render(renderable, options):
            yield part if part.control else part._replace(text=printable(part.text))


def console_for_output(*, errors: bool = False) -> Console:
    """Return a console on standard output or error.

    If the output is no terminal, the environment variable COLUMNS gives the console's width.
    """
    given = os.environ.get("COLUMNS", "")
    width = int(given) if given.isdecimal() and int(given) else 100
    stream = sys.stderr if errors else sys.stdout
    return Plain(width=None if stream.isatty() else width, stderr=errors)


def print_json(value: Any, /) -> None:
    """Print a value as JSON; `jaxbounds schema` prints its schema."""
    print(json.dumps(value, indent=1, allow_nan=False).replace("\x7f", "\\u007f"))
