"""Read and write a paper's records: measured ratios, values of functions and sharp constants.

The records lie in the folder `records/`, beside the paper's statements. A paper in the single file
`claims.py` has its records in `claims-records/`.
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

    The argument `name` is RATIOS, VALUES or CONSTANTS.

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
    inner = lambda value: (
        _lines(value, depth - 1, pad + " ") if depth > 1 and value else json.dumps(value)
    )
    lines = (f"{pad}{json.dumps(key)}: {inner(value)}" for key, value in content.items())
    return "{\n" + ",\n".join(lines) + f"\n{pad[1:]}}}"


def write_records(paper: Paper, name: str, content: dict[str, Any], /, *, depth: int = 1) -> None:
    """Write one file of a paper's records.

    Each entry of the file's first `depth` levels of nesting gets its own line.

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
