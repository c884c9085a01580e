"""Records of a paper, in its own folder: ratios, values, sharp constants.

Whoever ships or writes a paper has them beside its statements, in `records/` (of a paper in a
single file `claims.py` in `claims-records/`), as JSON that a person reads in a difference.
"""

import json
from pathlib import Path
from typing import Any

from jaxbounds.claims.renamed import current_id
from jaxbounds.claims.statements import Paper
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import write_text

RATIOS, VALUES, CONSTANTS = "ratios.json", "values.json", "constants.json"


def place_of_records(paper: Paper, name: str, /) -> Path | None:
    """The file of a kind of records; None if the paper is in no file."""
    return None if paper.folder is None else paper.folder / name


def read_records(paper: Paper, name: str, /) -> dict[str, Any]:
    """Read the records by today's ids of statements; empty without records.

    Args:
        paper: as it was loaded from its file.
        name: RATIOS, VALUES or CONSTANTS.

    Raises:
        Refused: if the file is damaged.
    """
    file = place_of_records(paper, name)
    if file is None or not file.is_file():
        return {}
    try:
        kept = dict(json.loads(file.read_text(encoding="utf8")))
        return {current_id(name): content for name, content in kept.items()}
    except (OSError, ValueError, TypeError) as problem:
        raise Refused(f"{file} is damaged ({problem}): record again") from problem


def _lines(content: dict[str, Any], depth: int, pad: str = " ") -> str:
    """Write an object as JSON, one entry a line, also for the objects inside to a depth."""
    inner = lambda value: (
        _lines(value, depth - 1, pad + " ") if depth > 1 and value else json.dumps(value)
    )
    lines = (f"{pad}{json.dumps(key)}: {inner(value)}" for key, value in content.items())
    return "{\n" + ",\n".join(lines) + f"\n{pad[1:]}}}"


def write_records(paper: Paper, name: str, content: dict[str, Any], /, *, depth: int = 1) -> None:
    """Put them on record, a line a statement.

    Args:
        paper: as it was loaded from its file.
        name: RATIOS, VALUES or CONSTANTS.
        content: by statement.
        depth: of the lines: 1 gives one to a statement, 2 to a form; a larger number makes a
            longer file, in which a person sees more exactly what changed.

    Raises:
        Refused: if the paper is in no file.
    """
    file = place_of_records(paper, name)
    if file is None:
        raise Refused(f"paper {paper.id!r} is in no file, and has no place for records")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, _lines(content, depth) + "\n")
