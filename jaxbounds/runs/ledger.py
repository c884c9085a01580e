"""Record the dependencies of a run: the files and modules that the user's code reads.

The run records each file when the code opens it, so that even a killed run leaves a complete
record. The record omits environment variables, because they differ between the jobs of a queue that
continue one run.
"""

import contextlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from jaxbounds.ground import recording
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import Place, here
from jaxbounds.ground.folders import Marked
from jaxbounds.ground.readers import UNREADABLE, Damaged, fits, lines_in, parsed
from jaxbounds.ground.states import ABSENT, UNKNOWN, Depends, changed, state

LEDGER = "depends.jsonl"
HEAD = json.dumps({"format": "jaxbounds-depends-1"})


def _line(dependency: str, found: str) -> str:
    return json.dumps([dependency, found])


def read(folder: Place, /) -> Depends:
    """Return the record of dependencies in a run's folder; {} if the folder has no record.

    Raises:
        Refused: if the record of dependencies is damaged.
    """
    place, depends = folder / LEDGER, dict[str, str]()
    try:
        with here(place) as file:
            first, *lines = (line for _, line in lines_in(file))
    except FileNotFoundError:
        return {}
    except Refused as problem:
        raise Refused(
            f"{place} is damaged ({problem}). Try another folder, as --out=FOLDER"
        ) from problem
    try:
        if first != HEAD.encode():
            raise Damaged(
                f"the file of the run's dependencies has first line={first[:40]!r}, expected "
                f"{HEAD!r}. Try to compute again"
            )
        for line in lines:
            found = parsed(line)
            if not fits(found, tuple[str, str]):
                raise Damaged(
                    f"the file of the run's dependencies has line={line[:40]!r}, expected a "
                    f"dependency and its state. Try to compute again"
                )
            depends.setdefault(*found)
    except UNREADABLE as problem:
        raise Refused(
            f"{place} is damaged ({problem}). Try another folder, as --out=FOLDER"
        ) from problem
    return depends


def refuse_changes(folder: Place, /) -> None:
    """Refuse to continue a run if one of its dependencies has changed.

    Raises:
        Refused: if a dependency has changed; the message names the first changed dependency.
    """
    seen = {name: found for name, found in read(folder).items() if found != UNKNOWN}
    if different := changed(seen):
        more = f" and {len(different) - 1} more" if different[1:] else ""
        raise Refused(
            f"folder={str(folder)!r} holds a run that depends on "
            f"{different[0].replace(': ', ' ', 1)}{more}, which changed since then. Try another "
            "folder (--out), or undo the change"
        )


def refuse_mixture(folders: Iterable[Place], /) -> None:
    """Refuse shards that depend on files with different contents.

    If a file is missing on this machine, the function compares only the shards with each other.

    Raises:
        Refused: if two shards read different contents of one file, or if a file changed after a
            shard read it. The message names the first file whose content changed.
    """
    known: dict[str, tuple[str, Any]] = {}
    for folder in folders:
        for name, found in read(folder).items():
            if not name.startswith("file: "):
                continue
            before, other = known.setdefault(name, (found, folder))
            if before != found:
                raise Refused(
                    f"these shards are of different runs: {name.replace(': ', ' ', 1)} was not "
                    f"equal for shard={str(other)!r} and shard={str(folder)!r}. Try to compute one "
                    "of the two shards again"
                )
            if state(name) not in (found, ABSENT):
                raise Refused(
                    f"{name.replace(': ', ' ', 1)} changed after shard={str(folder)!r} (a part of "
                    f"the run) was computed. Try to compute the shards again, or undo the change"
                )


@contextlib.contextmanager
def recorded(folder: Place, /, *, resume: bool) -> Iterator[None]:
    """Record in the folder all dependencies of the user's code during a `with` block.

    If `resume` is true, the block continues the folder's record instead of starting a new record.
    """
    marked, local = Marked(folder), "://" not in str(folder)
    if local:
        recording.ignore(Path(folder))
    lines = (dict(read(folder)) if resume else {}) | recording.record()
    marked.begin_lines(LEDGER, HEAD)

    def tell(dependency: str, found: str) -> None:
        if lines.setdefault(dependency, found) == found and local:
            with contextlib.suppress(OSError):  # a full disk ends the run at its next checkpoint
                marked.add_line(LEDGER, _line(dependency, found))

    def write() -> None:
        marked.write(LEDGER, "\n".join([HEAD, *(_line(*one) for one in lines.items()), ""]))

    write()
    with recording.telling(tell):
        try:
            yield
        finally:
            if not local:  # an object store takes whole files only
                write()
