"""The folder of a verification: nothing that was judged is lost, nothing stale stays.

While a run goes on, everything is kept in `unfinished/`: the settings of the run and each
statement's verdicts, a line each, as soon as they are judged, and the instances. `publish` moves
that into place. A run that was cut by anything is continued by the next one with the same settings.
"""

import contextlib
import itertools
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxbounds.falsification import Verdict
from jaxbounds.files import whole, write_text

INSTANCES = ("worst", "counterexamples")
UNREADABLE = (ValueError, TypeError, AttributeError, RecursionError)
"""What reading something else than verdicts raises."""
ById = dict[str, tuple[Verdict, ...]]
"""The verdicts on each statement."""


def _read(text: str) -> tuple[Verdict, ...]:
    return tuple(map(Verdict.from_json, json.loads(text)))


def _dump(verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
    return [verdict.to_json() for verdict in verdicts]


def verdicts_in(*folders: Path) -> ById:
    """The latest verdicts on each statement that folders hold, of whatever settings."""
    names = ("verdicts.json", "unfinished/judged.jsonl")
    files = [folder / name for folder in folders for name in names]
    found: ById = {}
    for file in sorted(filter(Path.is_file, files), key=lambda file: file.stat().st_mtime):
        text = file.read_text(encoding="utf8")
        for part in text.split("\n") if file.suffix == ".jsonl" else [text]:
            with contextlib.suppress(*UNREADABLE):
                found |= {k: tuple(v) for k, v in itertools.groupby(_read(part), lambda v: v.id)}
    return found


class Folder:
    """One folder of verdicts.

    Args:
        path: where; created when it is tried.
        settings: what the verdicts depend on; others than these are not mixed with them.

    Raises:
        ValueError: if the path is an address.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(path)):
            raise ValueError(f"--out must be a folder of this machine, got the address {path}")
        self.path, self.settings = path, dict(settings)
        self.working = path / "unfinished"
        self._journal = self.working / "judged.jsonl"

    def published(self) -> tuple[Verdict, ...] | None:
        """The verdicts that are there, if they are of these settings; () if there are none.

        None means that those of another run are there.
        """
        if not (self.path / "verdicts.json").is_file():
            return ()
        with contextlib.suppress(OSError, *UNREADABLE):
            stored = json.loads((self.path / "run.json").read_text(encoding="utf8"))
            if {name: stored.get(name) for name in self.settings} == self.settings:
                return _read((self.path / "verdicts.json").read_text(encoding="utf8"))
        return None

    def begin(self) -> ById:
        """Start, or continue what was cut: the statements that are judged already."""
        head, judged = json.dumps(self.settings, sort_keys=True), {}
        with contextlib.suppress(OSError):
            first, *lines = self._journal.read_text(encoding="utf8").split("\n")
            for line in lines if first == head else ():
                with contextlib.suppress(IndexError, *UNREADABLE):  # a torn last line
                    verdicts = _read(line)
                    judged[verdicts[0].id] = verdicts
        if not judged:
            shutil.rmtree(self.working, ignore_errors=True)
            write_text(self._journal, head + "\n")
        return judged

    def keep(self, verdicts: Sequence[Verdict]) -> None:
        """Keep a statement's verdicts at once."""
        try:
            with open(self._journal, "a", encoding="utf8") as file:
                # A line of its own, also where the one before was torn.
                file.write("\n" + json.dumps(_dump(verdicts)) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as problem:
            problem.filename = str(self._journal)
            raise

    def publish(self, verdicts: Sequence[Verdict], run: Mapping[str, Any]) -> None:
        """Put verdicts, their instances and what the run was in place; nothing else stays."""
        files = ((v.worst_file, v.shrunk_file, v.witness_file, v.theorem_file) for v in verdicts)
        named = {name for names in files for name in names if name}
        about = json.dumps({**run, **self.settings}, indent=1)
        # The verdicts are in place first: old ones never stand beside the settings of this run.
        with whole(self.path / "run.json") as last, whole(self.path / "verdicts.json") as first:
            for file, text in ((first, json.dumps(_dump(verdicts), indent=1)), (last, about)):
                file.write(f"{text}\n".encode())
                file.flush()  # nothing moves before there is room
            for kind in INSTANCES:
                self._move(kind, named)

    def _move(self, kind: str, named: set[str]) -> None:
        (self.path / kind).mkdir(parents=True, exist_ok=True)
        for file in (self.working / kind).glob("*.*"):
            os.replace(file, self.path / kind / file.name)
        for file in (self.path / kind).iterdir():
            if f"{kind}/{file.name}" not in named:
                file.unlink()

    def place_of(self, name: str) -> Path:
        """Where an instance is by now."""
        working = self.working / name
        return working if working.is_file() else self.path / name

    def end(self) -> None:
        """The run is complete: nothing is left to continue."""
        shutil.rmtree(self.working, ignore_errors=True)


def failed_before(out: Path, /) -> set[str]:
    """The statements that were not as recorded when they were judged last with this --out."""
    with contextlib.suppress(OSError, *UNREADABLE):
        return set(json.loads((out / "failed.json").read_text(encoding="utf8")))
    return set()


def remember_failed(out: Path, done: ById, /) -> None:
    """Keep that, after some were judged: also where their verdicts went elsewhere."""
    wrong = {name for name, found in done.items() if not all(v.as_expected for v in found)}
    write_text(out / "failed.json", json.dumps(sorted(failed_before(out) - set(done) | wrong)))


def folder_for(out: Path, part: Sequence[str], settings: Mapping[str, Any], /) -> Folder:
    """Where the results go: some statements never replace those of another run."""
    folder = Folder(out, settings)
    if part and folder.published() is None:
        words = "-".join(pattern.replace("*", "all").replace("?", "one") for pattern in part)
        folder = Folder(out.with_name(f"{out.name}-{words[:60]}"), settings)
        print(
            f"{out} holds another run (version, source, seed or settings differ): to {folder.path}",
            file=sys.stderr,
        )
    return folder
