"""What the commands share."""

import contextlib
import json
import os
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, Any, get_args

import tyro
from rich.console import Console

from jaxbounds.papers import load_papers, select
from jaxbounds.statements import Kind, Statement

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


def with_earlier(
    file: Path, found: list[dict[str, Any]], /, *, instead: Collection[str] = ()
) -> str:
    """JSON of what was found, after what the file holds of other forms.

    Args:
        file: of an earlier run.
        found: each with its id and form.
        instead: ids of statements of which nothing earlier is kept.
    """
    earlier: list[dict[str, Any]] = []
    with contextlib.suppress(OSError, ValueError):  # none, or nothing of ours
        stored = json.loads(file.read_text(encoding="utf8"))
        earlier = [one for one in stored if {"id", "form"} <= set(one)]
    new = {(one["id"], one["form"]) for one in found}
    old = lambda one: one["id"] in instead or (one["id"], one["form"]) in new
    kept = [one for one in earlier if not old(one)]
    return json.dumps(kept + found, indent=1)


def of_kinds(statements: Iterable[Statement], kinds: tuple[str, ...], /) -> tuple[Statement, ...]:
    """The statements of some kinds; all of them where none is given.

    Raises:
        ValueError: if there is none; the message says of which kinds there are some.
    """
    statements = tuple(statements)
    found = tuple(s for s in statements if not kinds or s.kind in kinds)
    if statements and not found:
        there = ", ".join(kind for kind in get_args(Kind) if kind in {s.kind for s in statements})
        raise ValueError(f"no statement of kind {', '.join(kinds)} among these; there are: {there}")
    return found


def statements_of(
    imports: tuple[str, ...], patterns: tuple[str, ...], kinds: tuple[str, ...] = (), /
) -> tuple[Statement, ...]:
    """The statements of the shipped papers and of the imported ones, as far as patterns need."""
    papers = load_papers(imports, patterns=patterns)
    return of_kinds(select((s for paper in papers for s in paper.statements), patterns), kinds)
