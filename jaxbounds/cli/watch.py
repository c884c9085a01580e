"""`jaxbounds verify --watch`: judge statements again while the user edits their code.

Each round is a new process, so that no old code stays in memory. A round judges a statement again
if its code, a file that it read, or a folder that it listed has changed.
"""

import contextlib
import multiprocessing
import sys
import time
from collections.abc import Iterable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from jaxbounds.cli.common import console_for_output
from jaxbounds.cli.screen import show
from jaxbounds.cli.streams import say
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.recording import record
from jaxbounds.ground.states import Depends, changed, place_of
from jaxbounds.papers import selected
from jaxbounds.report.source import code_digest, own_files
from jaxbounds.runs.cache import prepare_jax
from jaxbounds.runs.interruption import interruptible
from jaxbounds.runs.statement_run import Options, Verification

WAIT = 0.3
"""Seconds between two checks of the files. If this number of seconds is larger, `--watch` notices a
change of the files later."""
TIDY = 3.0
"""Seconds in which an interrupted round can store its results. If this number of seconds is larger,
`--watch` may end later after Ctrl-C.
"""
Stamps = dict[Path, tuple[int, ...]]
"""A dictionary from each file to its stamp: the file's inode, size and times. A stamp changes
whenever its file changes, because no program can set the time of a change (ctime).
"""


class Watched(NamedTuple):
    """The statements that `--watch` judges again after changes, and the options of the command."""

    patterns: tuple[str, ...]
    kinds: tuple[str, ...]
    imports: tuple[str, ...]
    out: Path
    jobs: int
    exitfirst: bool
    durations: int
    options: Options


class Round(NamedTuple):
    """The results of one round of judging; a round follows each change of files.

    Attributes:
        digests: a dictionary from each statement to the digest of its judged code.
        depends: a dictionary from each statement to the files other than code that it read.
    """

    digests: dict[str, str]
    stamps: Stamps
    status: int
    depends: Mapping[str, Depends] = {}


def stamps_of(files: Iterable[Path], /) -> Stamps:
    """Return the stamps (length, times, ids) of the given files and folders that exist."""
    found: Stamps = {}
    for file in files:
        with contextlib.suppress(OSError, ValueError):
            s = file.stat()
            found[file] = (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
    return found


def _read(depends: Depends, code: Iterable[Path]) -> Depends:
    known = {str(file) for file in code}
    return {k: v for k, v in depends.items() if place_of(k) not in known}


def _places(depends: Iterable[Depends]) -> set[Path]:
    found = {key: Path(place) for one in depends for key in one if (place := place_of(key))}
    return {file for key, file in found.items() if key.startswith("names") or not file.is_dir()}


def _imported(imports: Iterable[str]) -> set[Path]:
    paths = [Path(where).resolve() for where in imports]
    return {f for path in paths for f in (path.rglob("*.py") if path.is_dir() else [path])}


def judge_changed(watched: Watched, before: Round, /) -> Round:
    """Judge the statements whose code changed."""
    stamps = stamps_of(_imported(watched.imports))
    try:
        selection = selected(watched.patterns, imports=watched.imports, kinds=watched.kinds)
    except Refused as problem:  # the edit is unfinished
        say(f"jaxbounds: {problem}")
        stamps |= stamps_of(_places([record()]))
        return Round(before.digests, before.stamps | stamps, 2, before.depends)
    stamps |= stamps_of({*own_files(), *_places([record(), *before.depends.values()])})
    now = {s.id: code_digest(s) for s in selection.statements}
    touched = tuple(
        s
        for s in selection.statements
        if before.digests.get(s.id) != now[s.id] or changed(before.depends.get(s.id, {}))
    )
    if not touched:
        return Round(now, stamps, before.status, before.depends)
    run = Verification(
        selection._replace(statements=touched, parts=()),
        watched.options,
        watched.out,
        jobs=watched.jobs,
        exitfirst=watched.exitfirst,
    )
    show(run, console_for_output(), durations=watched.durations)
    left = {s.id for s in touched} - set(run.done)
    depends = dict(before.depends) | {
        name: _read(kept.depends, own_files()) for name, kept in run.judged.items()
    }
    stamps |= stamps_of(_places(depends.values()) - set(stamps))
    return Round({k: v for k, v in now.items() if k not in left}, stamps, run.status, depends)


def _round(watched: Watched, before: Round, answer: Connection) -> None:
    with interruptible():
        try:
            prepare_jax()
            answer.send(judge_changed(watched, before))
        except KeyboardInterrupt:
            sys.exit(130)


def _in_a_process(watched: Watched, before: Round) -> Round | None:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_round, args=(watched, before, there))
    process.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        return None
    except KeyboardInterrupt:
        process.join(TIDY)  # Ctrl-C reached the process, too; other signals did not
        process.terminate()
        raise
    finally:
        process.join()


def keep_watching(watched: Watched, /) -> int:
    """Judge the statements, and judge them again after each change, until Ctrl-C.

    Return the exit status of the last round.
    """
    last = Round({}, {}, 0)
    try:
        while True:
            found = _in_a_process(watched, last)
            # The files of a broken round count as seen, so that the next change starts a new round.
            last = found or last._replace(stamps=stamps_of(last.stamps), status=3)
            files = set(last.stamps) | _imported(watched.imports) | _places(last.depends.values())
            say(f"watching {len(files)} files; Ctrl-C ends the watch")
            while stamps_of(files) == last.stamps:
                time.sleep(WAIT)
                files |= _imported(watched.imports)
            changed = set(stamps_of(files).items()) ^ set(last.stamps.items())
            names = sorted({file.name for file, _ in changed})
            say(f"\nchanged: {', '.join(names[:5])}")
    except KeyboardInterrupt:
        return last.status
