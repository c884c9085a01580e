"""Read and write a paper's records: measured ratios, noted values and sharp constants.

The records lie in the folder `records/`, beside the paper's statements. A paper in the single file
`claims.py` has its records in `claims-records/`. The records are JSON files, so a person can read
their diffs.
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
    """Return the path of a paper's record file; None if the paper was not loaded from a file."""
    return None if paper.folder is None else paper.folder / name


def read_records(paper: Paper, name: str, /) -> dict[str, Any]:
    """Read one file of a paper's records; the result is empty if the file does not exist.

    Args:
        paper: a paper, which the library loaded from a file.
        name: the name of the file to read: RATIOS, VALUES or CONSTANTS.

    Returns:
        A dictionary from each statement's current id to its record; a renamed statement keeps its
        record.

    Raises:
        Refused: if the file of records is damaged.
    """
    file = place_of_records(paper, name)
    if file is None or not file.is_file():
        return {}
    try:
        kept = dict(json.loads(file.read_text(encoding="utf8")))
        return {current_id(name): content for name, content in kept.items()}
    except (OSError, ValueError, TypeError) as problem:
        raise Refused(
            f"file={file} is damaged: {problem}. Try `jaxbounds verify --record` to write it again"
        ) from problem


def _lines(content: dict[str, Any], depth: int, pad: str = " ") -> str:
    """Return an object as JSON with one entry on each line, down to `depth` levels of nesting."""
    inner = lambda value: (
        _lines(value, depth - 1, pad + " ") if depth > 1 and value else json.dumps(value)
    )
    lines = (f"{pad}{json.dumps(key)}: {inner(value)}" for key, value in content.items())
    return "{\n" + ",\n".join(lines) + f"\n{pad[1:]}}}"


def write_records(paper: Paper, name: str, content: dict[str, Any], /, *, depth: int = 1) -> None:
    """Write one file of a paper's records.

    Args:
        paper: a paper, loaded from its file.
        name: the name of the file to write: RATIOS, VALUES or CONSTANTS.
        content: a dictionary from each statement's id to its record.
        depth: the number of nested levels whose entries get a line each: 1 writes a line for each
            statement, 2 a line for each form (version of the claim). A larger number makes the file
            longer, and its diff shows a change more exactly.

    Raises:
        Refused: if the paper was not loaded from a file.
    """
    file = place_of_records(paper, name)
    if file is None:
        raise Refused(
            f"paper={paper.id!r} was not loaded from a file, so its record files have no folder. "
            f"Try to define PAPER in a file"
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, _lines(content, depth) + "\n")
