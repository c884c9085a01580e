"""`jaxbounds verify --watch`: while one edits, what a change may have changed is judged again.

Each round is a fresh process, so that nothing of what was edited is left over. A statement is
judged again if the code behind it changed (what `jaxbounds show ID --code` prints), or anything
outside of its paper's folder.
"""

import multiprocessing
import sys
import time
from collections.abc import Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from jaxbounds.cli.common import console_for_output
from jaxbounds.cli.screen import show
from jaxbounds.cli.streams import say
from jaxbounds.papers import selected
from jaxbounds.report.source import code_digest, own_files
from jaxbounds.runs.cache import prepare_jax
from jaxbounds.runs.interruption import interruptible
from jaxbounds.runs.statement_run import Options, Verification

WAIT = 0.3
"""Seconds between two looks at the files."""
TIDY = 3.0
"""Seconds that a round has to put away what it has when it is cut."""
Stamps = dict[Path, tuple[int, int]]
"""When each file was changed, and its size."""


class Watched(NamedTuple):
    """The statements that a watch judges, and their options."""

    patterns: tuple[str, ...]
    kinds: tuple[str, ...]
    imports: tuple[str, ...]
    out: Path
    jobs: int
    exitfirst: bool
    durations: int
    options: Options


class Round(NamedTuple):
    """The remains of one round: digests of the code that was judged, the files, the exit status."""

    digests: dict[str, str]
    stamps: Stamps
    status: int


def stamps_of(files: Iterable[Path], /) -> Stamps:
    """When files were changed; those that are not there are left out."""
    return {f: (s.st_mtime_ns, s.st_size) for f in files if f.is_file() for s in [f.stat()]}


def _imported(imports: Iterable[str]) -> set[Path]:
    """The files that imports name, also where they cannot be loaded."""
    paths = [Path(where).resolve() for where in imports]
    return {f for path in paths for f in (path.rglob("*.py") if path.is_dir() else [path])}


def judge_changed(watched: Watched, before: Round, /) -> Round:
    """Judge the statements whose code is not as it was.

    Args:
        watched: what is judged.
        before: the round before.
    """
    stamps = stamps_of(_imported(watched.imports))
    try:
        selection = selected(watched.patterns, imports=watched.imports, kinds=watched.kinds)
    except ValueError as problem:  # half an edit
        say(f"jaxbounds: {problem}")
        return Round(before.digests, before.stamps | stamps, 2)
    stamps |= stamps_of(own_files())
    now = {s.id: code_digest(s) for s in selection.statements}
    changed = tuple(s for s in selection.statements if before.digests.get(s.id) != now[s.id])
    if not changed:
        return Round(now, stamps, before.status)
    run = Verification(
        selection._replace(statements=changed, parts=()),
        watched.options,
        watched.out,
        jobs=watched.jobs,
        exitfirst=watched.exitfirst,
    )
    show(run, console_for_output(), durations=watched.durations)
    left = {s.id for s in changed} - set(run.done)
    return Round({k: v for k, v in now.items() if k not in left}, stamps, run.status)


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
        process.join(TIDY)  # Ctrl-C reached it, too; other signals did not
        process.terminate()
        raise
    finally:
        process.join()


def keep_watching(watched: Watched, /) -> int:
    """Judge, wait for a change, judge again: until Ctrl-C. The exit status of the last round.

    Args:
        watched: what is judged.
    """
    last = Round({}, {}, 0)
    try:
        while True:
            found = _in_a_process(watched, last)
            # A round that broke counts as seen: the next change tries it again.
            last = found or last._replace(stamps=stamps_of(last.stamps), status=3)
            files = set(last.stamps) | _imported(watched.imports)
            say(f"watching {len(files)} files; Ctrl-C ends")
            while stamps_of(files) == last.stamps:
                time.sleep(WAIT)
                files |= _imported(watched.imports)
            changed = set(stamps_of(files).items()) ^ set(last.stamps.items())
            names = sorted({file.name for file, _ in changed})
            say(f"\nchanged: {', '.join(names[:5])}")
    except KeyboardInterrupt:
        return last.status
