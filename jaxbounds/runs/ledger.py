"""The record of what a run rests on, in the folder of the run from its first moment on.

A run that is killed leaves the record as it was then: each file that the user's code opens stands
in it before the code goes on. The environment is not in it, as a queue's job that goes on where
another was cut has another one.
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
    """Read the dependencies that a folder of a run names; {} without a record.

    Raises:
        Refused: if the record is damaged.
    """
    place, depends = folder / LEDGER, dict[str, str]()
    try:
        with here(place) as file:
            first, *lines = (line for _, line in lines_in(file))
    except FileNotFoundError:
        return {}
    except Refused as problem:
        raise Refused(f"{place} is damaged ({problem}). Try another --out") from problem
    try:
        if first != HEAD.encode():
            raise Damaged("its first line is another one")
        for line in lines:
            found = parsed(line)
            if not fits(found, tuple[str, str]):
                raise Damaged(f"the line {line[:40]!r}")
            depends.setdefault(*found)
    except UNREADABLE as problem:
        raise Refused(f"{place} is damaged ({problem}). Try another --out") from problem
    return depends


def refuse_changes(folder: Place, /) -> None:
    """Refuse to go on with a run after a change of something that the run rests on.

    Raises:
        Refused: naming the first change.
    """
    seen = {name: found for name, found in read(folder).items() if found != UNKNOWN}
    if different := changed(seen):
        more = f" and {len(different) - 1} more" if different[1:] else ""
        raise Refused(
            f"{folder} holds a run that rests on {different[0].replace(': ', ' ', 1)}{more}, which "
            "changed since. Try another --out, or undo the change"
        )


def refuse_mixture(folders: Iterable[Place], /) -> None:
    """Refuse shards that rest on files with different contents.

    A file that is not on this machine is compared among the shards alone.

    Raises:
        Refused: naming the first such file.
    """
    known: dict[str, tuple[str, Any]] = {}
    for folder in folders:
        for name, found in read(folder).items():
            if not name.startswith("file: "):
                continue
            before, other = known.setdefault(name, (found, folder))
            if before != found:
                raise Refused(
                    f"shards of different runs: {name.replace(': ', ' ', 1)} differs between "
                    f"{other} and {folder}. Try to compute one of them again"
                )
            if state(name) not in (found, ABSENT):
                raise Refused(
                    f"{name.replace(': ', ' ', 1)} changed since {folder} was computed. Try to "
                    "compute the shards again, or undo the change"
                )


@contextlib.contextmanager
def recorded(folder: Place, /, *, resume: bool) -> Iterator[None]:
    """Record during a `with` block all dependencies of a user's code in the folder.

    Args:
        folder: of the run.
        resume: go on with the record that is there, instead of a new one.
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
