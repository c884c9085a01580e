"""Define the folder in which a verification stores its verdicts.

The folder loses no verdict when a run is interrupted, and reuses no outdated verdict. During a run
`unfinished/` holds the measured instances and a journal: a line with the run's settings, then a
line of verdicts for each judged statement. At the end of a run, `publish` moves the instances and
verdicts into the folder. A later run with equal settings continues an interrupted run, and reuses
each verdict whose dependencies have not changed.
"""

import contextlib
import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from jaxbounds.claims.statements import Statement
from jaxbounds.falsification import Verdict
from jaxbounds.falsification.verdict import beside
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.folders import Marked, say, set_aside
from jaxbounds.ground.occupied import Held, take
from jaxbounds.ground.readers import (
    UNREADABLE,
    Damaged,
    fits,
    is_inside,
    json_in,
    lines_in,
    parsed,
    sha256_of,
)
from jaxbounds.ground.states import Depends, changed
from jaxbounds.ground.to_json import fields_of
from jaxbounds.runs.other_run import what_differs

__all__ = ["UNREADABLE", "ById", "Folder", "Kept", "folder_for", "published_in", "verdicts_of"]

INSTANCES = ("worst", "counterexamples")
JOURNAL = "unfinished/judged.jsonl"
NAMES = ("verdicts.json", "run.json", "report.html", "failed.json", JOURNAL)
"""The names of the files that a verification writes, without the files of instances (arrays at
which a claim was measured)."""
FORM = "jaxbounds-journal-2"
ById = dict[str, tuple[Verdict, ...]]
"""A dictionary from a statement's id to the verdicts on the statement."""


class Kept(NamedTuple):
    """The verdicts on a statement, with their time (UTC) and their dependencies.

    The field `depends` lists the files and modules that the verdicts depend on. The field does not
    contain the settings.
    """

    verdicts: tuple[Verdict, ...]
    when: str
    depends: Depends


def _digest(depends: Depends) -> str:
    return hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()


def _verdict(stored: Any) -> Verdict:
    if not isinstance(stored, dict):
        raise Refused(f"verdict={stored!r:.40}, expected a JSON object. Try to verify again")
    verdict, hints = Verdict.from_json(stored), fields_of(Verdict)
    for field in fields(Verdict):
        if not fits(stored[field.name], hints[field.name]):
            raise Refused(
                f"a verdict has {field.name}={stored[field.name]!r:.40}, a value of a wrong type "
                f"for this field. Try to verify again"
            )
        if field.name.endswith("_file") and not is_inside(stored[field.name]):
            raise Refused(
                f"a verdict has {field.name}={stored[field.name]!r:.40}, a file outside of the "
                "folder. Try to verify again"
            )
    return verdict


def verdicts_of(stored: Any, /) -> tuple[Verdict, ...]:
    """Return the verdicts of a parsed JSON file.

    Raises:
        Refused: if the file does not hold a list of verdicts.
    """
    if not isinstance(stored, list):
        raise Refused(f"verdicts={stored!r:.40}, expected a list of verdicts. Try to verify again")
    return tuple(map(_verdict, stored))


def _dump(verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
    return [verdict.to_json() for verdict in verdicts]


def _sealed(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return json.dumps({"sha256": hashlib.sha256(text.encode()).hexdigest(), "value": value})


def _opened(line: bytes) -> Any:
    stored = parsed(line)
    if not isinstance(stored, dict) or set(stored) != {"sha256", "value"}:
        raise Refused(
            f"line={line[:40]!r} of file={JOURNAL!r} lacks a sha256 digest or a value. Try to "
            f"verify again"
        )
    text = json.dumps(stored["value"], sort_keys=True)
    if hashlib.sha256(text.encode()).hexdigest() != stored["sha256"]:
        raise Refused(
            f"the value of a journal's line does not match its digest "
            f"sha256={stored['sha256']!r:.20}. Try to verify again"
        )
    return stored["value"]


def _kept(value: Any, records: Mapping[str, Depends]) -> Kept:
    if not isinstance(value, dict) or not fits(value.get("when"), str):
        raise Refused(
            f"value={value!r:.40} of a journal's line lacks the time of the "
            f"verdicts. Try to verify again"
        )
    verdicts = verdicts_of(value.get("verdicts"))
    if (count := len({v.id for v in verdicts})) != 1:
        raise Refused(
            f"a line of file={JOURNAL!r} has verdicts on statements={count}, expected one "
            f"statement. Try to verify again"
        )
    return Kept(verdicts, value["when"], records[value["record"]])


def _journal_in(file: Path) -> tuple[Any, list[Kept], list[str]]:
    """Return a run journal's settings, its verdicts, and a sentence on each damaged line."""
    settings, judged, wrong = None, list[Kept](), list[str]()
    records: dict[str, Depends] = {}
    for number, line in lines_in(file):
        try:
            value = _opened(line)
            if number == 1:
                settings = value
                if not isinstance(value, dict) or value.get("format") != FORM:
                    raise Refused(
                        f"format={value!r:.40}, expected a JSON object with {FORM!r}. Try to "
                        f"verify again"
                    )
                continue
            if fits(value, dict[str, dict[str, str]]) and set(value) == {"depends"}:
                records[_digest(value["depends"])] = value["depends"]
            else:
                judged.append(_kept(value, records))
        except UNREADABLE as problem:
            if number == 1:
                raise Damaged(
                    f"{file} is damaged, line=1: {problem}. Try to verify again"
                ) from problem
            wrong.append(f"line {number}: {' '.join(str(problem).split())[:100]}")
    if settings is None:
        raise Damaged(
            f"{file} is damaged: it lacks a first line with format={FORM!r}. Try to verify again"
        )
    return settings, judged, wrong


def _unchanged(file: Path, digest: str | None) -> tuple[Verdict, ...]:
    found = json_in(file, of=verdicts_of)
    if sha256_of(file) != digest:
        raise Damaged(
            f"{file} does not match its digest={digest!r:.20} in run.json: somebody changed the "
            "file, or a run ended early. Try to verify again"
        )
    return found


def published_in(folder: Path, /) -> tuple[Verdict, ...]:
    """Read the published verdicts of a folder, and check their digest if run.json holds a digest.

    Raises:
        Damaged: if somebody changed the verdicts after the run that published them, or a file is
            damaged.
        OSError: if there are no verdicts, or a file cannot be read.
    """
    file = folder / "verdicts.json"
    try:
        about = json_in(folder / "run.json", of=dict)
    except FileNotFoundError:
        about = {}
    if "files" not in about:  # an earlier version wrote no digests
        return json_in(file, of=verdicts_of)
    return _unchanged(file, json_in(folder / "run.json", of=_settings)["files"].get(file.name))


def verdicts_in(*folders: Path) -> ById:
    """Read the latest verdicts on each statement in some folders, from runs with any settings.

    The result omits damaged verdicts, and verdicts that somebody changed after a run published
    them. The function prints a message about each damaged or changed file.
    """
    found: list[tuple[float, list[tuple[Verdict, ...]]]] = []
    for folder in folders:
        for file in (folder / "verdicts.json", folder / JOURNAL):
            try:
                parts = (
                    [kept.verdicts for kept in _journal_in(file)[1]]
                    if file.suffix == ".jsonl"
                    else [published_in(folder)]
                )
                found.append((file.stat().st_mtime, parts))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except Damaged as problem:
                say(f"{problem}; the verdicts of this file are left out")
    verdicts: ById = {}
    for _, parts in sorted(found, key=lambda one: one[0]):
        for part in parts:
            verdicts |= {k: tuple(v) for k, v in itertools.groupby(part, lambda v: v.id)}
    return verdicts


class Folder:
    """The folder in which a run stores its verdicts; it never mixes verdicts of different settings.

    The first file that is written creates the folder. The folder `asked`, which the user named,
    gets the list of failed statements.

    Raises:
        Refused: if the path is an address such as gs://bucket/folder.
    """

    def __init__(
        self,
        path: Path,
        settings: Mapping[str, Any],
        held: Held | None = None,
        asked: Path | None = None,
        /,
    ) -> None:
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(path)):
            raise Refused(
                f"out={str(path)!r} is a URL, expected a folder on this machine. Try "
                "--out ./results"
            )
        self.path, self.settings, self._held = path, dict(settings), held
        self.asked = path if asked is None else asked
        self.marked = Marked(path)
        self.working = path / "unfinished"
        self._written: set[str] = set()

    def published(self) -> dict[str, Kept] | None:
        """Return this run's verdicts in the folder, keyed by statement id; {} if there are none.

        The result is None if the folder holds verdicts of another run, or verdicts whose
        dependencies changed. The method renames files of verdicts that are damaged, or that
        somebody changed after a run published them, and then returns {}.
        """
        found = self._published()
        return None if isinstance(found, str) else found

    def other_run(self) -> str:
        """Describe how the run in the folder differs from this run; "" if it is this run."""
        found = self._published()
        return found if isinstance(found, str) else ""

    def _published(self) -> dict[str, Kept] | str:
        if not self.marked.place("verdicts.json").is_file():
            return {}
        about = self.marked.read("run.json", lambda file: json_in(file, of=_settings))
        if about is None:
            return "the file run.json of that run is missing or damaged"
        now = json.loads(json.dumps(self.settings))
        if {name: about.get(name) for name in now} != now:
            return self._difference(about, about["records"].values())
        digest = about["files"].get("verdicts.json")

        found = self.marked.read("verdicts.json", lambda file: _unchanged(file, digest))
        if found is None:
            return {}
        judged, records = about["judged"], about["records"]
        if any(v.id not in judged for v in found):
            return "the file run.json of that run does not list each verdict"
        used = {judged[v.id]["record"] for v in found}
        if any(changed(records[name]) for name in used):
            return self._difference(about, [records[name] for name in used])
        groups = itertools.groupby(found, lambda v: v.id)
        return {
            name: Kept(tuple(group), judged[name]["when"], records[judged[name]["record"]])
            for name, group in groups
        }

    def begin(self) -> dict[str, Kept]:
        """Start a run, or continue an interrupted run; return the interrupted run's verdicts.

        The result omits verdicts whose dependencies changed, and the method prints a message about
        these verdicts.
        """
        head, judged = {"format": FORM} | self.settings, dict[str, Kept]()
        found = self.marked.read(JOURNAL, _journal_in)
        if found is not None and found[0] == json.loads(json.dumps(head)):
            judged = self._fresh({kept.verdicts[0].id: kept for kept in found[1]})
            if found[2]:
                journal = self.marked.place(JOURNAL)
                set_aside(
                    journal,
                    f"is damaged ({'; '.join(found[2])}): the statements of these lines are judged "
                    "again",
                )
                self._write_journal(head, judged)
        elif found is not None and found[1]:
            count = len({kept.verdicts[0].id for kept in found[1]})
            why = self._difference(found[0], [kept.depends for kept in found[1]])
            say(
                f"{count} statements in {self.path} were judged before; they are judged again, "
                f"since {why}"
            )
        if not judged:
            self.marked.sweep_up("unfinished")
            self._write_journal(head, {})
        return judged

    def _difference(self, settings: Any, records: Iterable[Depends]) -> str:
        different = dict.fromkeys(one for record in records for one in changed(record))
        return what_differs(settings, json.loads(json.dumps(self.settings)), different)

    def _fresh(self, judged: dict[str, Kept]) -> dict[str, Kept]:
        why: dict[str, list[str]] = {}
        for record in {_digest(kept.depends): kept.depends for kept in judged.values()}.values():
            why[_digest(record)] = changed(record)
        for name, kept in judged.items():
            if different := why[_digest(kept.depends)]:
                more = f" and {len(different) - 1} more" if len(different) > 1 else ""
                say(
                    f"{name} is judged again, because this dependency changed: {different[0]}{more}"
                )
        return {name: kept for name, kept in judged.items() if not why[_digest(kept.depends)]}

    def _write_journal(self, head: Any, judged: Mapping[str, Kept]) -> None:
        self.marked.begin_lines(JOURNAL, _sealed(head))
        self._written.clear()
        for kept in judged.values():
            self.keep(kept)

    def keep(self, kept: Kept) -> None:
        """Write a statement's verdicts to the journal at once, with their dependencies."""
        record = _digest(kept.depends)
        line = {"verdicts": _dump(kept.verdicts), "when": kept.when, "record": record}
        lines = [] if record in self._written else [{"depends": dict(kept.depends)}]
        try:
            for value in [*lines, line]:
                # The line break starts a new line even if the line before is incomplete.
                self.marked.add_line(JOURNAL, "\n" + _sealed(value))
            self._written.add(record)
        except OSError as problem:
            problem.filename = str(self.path / JOURNAL)
            raise

    def keep_files(self, files: Mapping[str, bytes]) -> None:
        """Write instances to the unfinished run, each file whole or not at all."""
        for name, content in files.items():
            self.marked.write(f"unfinished/{name}", content)

    def scratch(self) -> Path:
        """Return a temporary folder for the jobs of a queue; it is removed when the run ends."""
        return self.marked.scratch("unfinished/jobs")

    def publish(self, judged: Sequence[Kept], run: Mapping[str, Any]) -> None:
        """Move verdicts, instances and run.json into place, and remove other files of earlier runs.

        The file run.json holds the digests of the verdicts and of the instances.
        """
        verdicts = [v for kept in judged for v in kept.verdicts]
        records = {_digest(kept.depends): dict(kept.depends) for kept in judged}
        times = {
            kept.verdicts[0].id: {"when": kept.when, "record": _digest(kept.depends)}
            for kept in judged
        }
        named = {
            name
            for v in verdicts
            for name in (v.worst_file, v.shrunk_file, v.witness_file, v.theorem_file)
            if name
        }
        marked, text = self.marked, json.dumps(_dump(verdicts), indent=1) + "\n"
        files = {"verdicts.json": hashlib.sha256(text.encode()).hexdigest()}
        for name in sorted(named):
            with contextlib.suppress(OSError, ValueError):
                data = self.place_of(name).read_bytes()
                files[name] = hashlib.sha256(data).hexdigest()
        freshness = {"judged": times, "records": records, "files": files}
        about = json.dumps({**run, **self.settings, **freshness}, indent=1) + "\n"
        # The verdicts move first, so that old verdicts never stand beside this run's settings.
        with marked.writing("run.json") as last, marked.writing("verdicts.json") as first:
            for file, content in ((first, text), (last, about)):
                file.write(content.encode())
                file.flush()  # a full disk raises here, before any file moves
            for name in named:
                if (self.working / name).is_file():
                    marked.move(f"unfinished/{name}", name)
            for name in marked.names:
                if name.split("/")[0] in INSTANCES and name not in named:
                    marked.remove(name)
        marked.tidy()

    def write(self, name: str, text: str) -> None:
        """Write a text file beside the verdicts."""
        self.marked.write(name, text)

    def place_of(self, name: str) -> Path:
        """Return the path of a stored instance; until the run ends, its folder is `unfinished/`."""
        working = self.working / name
        return working if working.is_file() else self.path / name

    def end(self) -> None:
        """End a complete run: remove all files of the unfinished run."""
        self.marked.sweep_up("unfinished")

    def release(self) -> None:
        """Unlock the folder for other runs."""
        if self._held is not None:
            self._held.release()


def _settings(stored: Any) -> dict[str, Any]:
    if not isinstance(stored, dict) or not fits(stored.get("files"), dict[str, str]):
        raise Refused(
            f"run.json={stored!r:.40}, expected a JSON object with digests. Try to verify again"
        )
    # A file of an earlier version has no dependencies of verdicts, and counts as another run's.
    judged, records = stored.setdefault("judged", {}), stored.setdefault("records", {})
    if not fits(judged, dict[str, dict[str, str]]) or not fits(records, dict[str, dict[str, str]]):
        raise Refused(
            f"the entry judged={judged!r:.40} of run.json lacks the time or the dependencies "
            f"of a verdict. Try to verify again"
        )
    if any(
        set(one) != {"when", "record"} or one["record"] not in records for one in judged.values()
    ):
        raise Refused(
            f"the entry judged={judged!r:.40} of run.json names dependencies that run.json does "
            f"not hold. Try to verify again"
        )
    for name, depends in records.items():
        if _digest(depends) != name:
            raise Refused(
                f"a record of dependencies in run.json does not match its "
                f"digest={name!r:.20}. Try to verify again"
            )
    return stored


def judged_before(out: Path, /) -> dict[str, bool]:
    """Return for each judged statement whether its last verdicts agreed with the records."""

    def known(stored: Any) -> dict[str, bool]:
        if fits(stored, list[str]):  # an earlier version wrote the ids of failed statements alone
            return dict.fromkeys(stored, False)
        if not fits(stored, dict[str, bool]):
            raise Refused(
                f"failed.json holds ids={stored!r:.40}, expected a JSON object from ids to true or "
                "false. Try without --last-failed"
            )
        return dict(stored)

    return Marked(out).read("failed.json", lambda file: json_in(file, of=known)) or {}


def remember_judged(folder: Folder, done: ById, /, *, changed: Iterable[str] = ()) -> None:
    """Store in failed.json whether each statement's verdicts and values agree with the records.

    The file is in the folder that the user named, even if the verdicts are in another folder. The
    argument `changed` has the ids of statements with a value that differs from its record.
    """
    known = judged_before(folder.asked)
    known |= {name: all(v.as_expected for v in found) for name, found in done.items()}
    known |= dict.fromkeys(changed, False)
    Marked(folder.asked).write("failed.json", json.dumps(known, sort_keys=True))


def instances_of(statements: Iterable[Statement], /) -> Iterator[str]:
    """Yield the names of all instance files that verdicts on these statements can have."""
    for statement in statements:
        for form in statement.forms:
            stem = f"{statement.id}.{form.file_name}"
            yield from (f"worst/{stem}.npz", f"counterexamples/{stem}.npz")
            yield from (f"counterexamples/{stem}.json", beside(f"counterexamples/{stem}.json"))


def folder_for(
    out: Path,
    part: Sequence[str],
    settings: Mapping[str, Any],
    instances: Iterable[str] = (),
    /,
    look: Any = lambda: None,
) -> Folder:
    """Return the folder of the results, or another folder beside it if `out` holds another run.

    The patterns `part` chose the statements; no pattern means all statements. The function calls
    `look` while another run has locked the folder.
    """
    Folder(out, settings)  # this refuses an address
    names = [*NAMES, *(name for one in instances for name in (one, f"unfinished/{one}"))]
    held = take(out, dict(settings), names, look=look)
    folder = Folder(held.path, settings, held)
    if part and (why := folder.other_run()):
        folder.release()
        words = "-".join(pattern.replace("*", "all").replace("?", "one") for pattern in part)
        words = re.sub(r"[^\w.\-]+", "-", words)[:60]
        other = out.with_name(f"{out.name}-{words}")
        say(f"{out} holds another run, since {why}; the results go to {other}")
        asked, held = folder.asked, take(other, dict(settings), names, look=look)
        folder = Folder(held.path, settings, held, asked)
    return folder
