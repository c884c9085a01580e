"""What is kept on record about a paper, in its own folder: ratios, sharp constants.

Whoever ships or writes a paper has them beside its statements, in `records/` (of a paper in a
single file `claims.py` in `claims-records/`), as JSON that a person reads in a difference.
"""

import json
from pathlib import Path
from typing import Any

from jaxbounds.claims.renamed import current_id
from jaxbounds.claims.statements import Paper
from jaxbounds.ground.files import write_text

RATIOS, CONSTANTS = "ratios.json", "constants.json"


def _file(paper: Paper, name: str) -> Path | None:
    return None if paper.folder is None else paper.folder / name


def read_records(paper: Paper, name: str, /) -> dict[str, Any]:
    """What is on record, by the id of a statement now; empty where nothing is.

    Args:
        paper: as it was loaded from its file.
        name: RATIOS or CONSTANTS.

    Raises:
        ValueError: if the file is damaged.
    """
    file = _file(paper, name)
    if file is None or not file.is_file():
        return {}
    try:
        kept = dict(json.loads(file.read_text(encoding="utf8")))
        return {current_id(name): content for name, content in kept.items()}
    except (OSError, ValueError, TypeError) as problem:
        raise ValueError(f"{file} is damaged ({problem}): record again") from problem


def write_records(paper: Paper, name: str, content: dict[str, Any], /) -> None:
    """Put them on record, a line a statement.

    Raises:
        ValueError: if the paper is in no file.
    """
    file = _file(paper, name)
    if file is None:
        raise ValueError(f"paper {paper.id!r} is in no file, and has no place for records")
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in content.items())
    write_text(file, "{\n" + ",\n".join(lines) + "\n}\n")
