"""Damage each kind of file that a command reads, many times, and run the command.

    python benchmarks/damaged_files.py --count 2000

First the commands run once under an audit hook, which lists the files that each opens in its folder
and in the cache. Each kind is then damaged `count` times: bytes flipped, cut, repeated, set to
zero, values of JSON replaced. After each damage the reader of that kind reads the file, as
`damaged_readers.py` has it: it refuses, or answers as before. After the first `commands` damages
the commands run, too, that open the file; a command that does not open it cannot notice. Work that
reads no damaged file (a proof, a constant, a picture) is done once and remembered. No command may
raise, write outside of its folder, believe a wrong result, or take more than 1 GB. The exit status
is 1 if one did.
"""

import collections
import contextlib
import functools
import hashlib
import io
import json
import os
import pickle
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tyro
from damaged_readers import answer

CLAIMS = """
import numpy as np
import jaxbounds as jb

def cases(size):
    return {"x": np.arange(1.0, 5.0)}

def evaluate(instance, size):
    x = instance["x"]
    return jb.Sides(lhs=x + x, rhs={"printed": C * x, "control": 5 * x})

def claim(name):
    return jb.Statement(
        id=name, label="1", formula="x + x = C x", kind="identity", judges=(), cases=cases,
        evaluate=evaluate, host=True, sizes=({"n": 4},), forms=(jb.Form(name="printed"),),
        control="5 x",
    )

PAPER = jb.Paper(id="mine", title="Mine", statements=(claim("mine.a"), claim("mine.b")))
"""
SLOPES = """
import jax.numpy as jnp
import jaxbounds as jb

def evaluate(instance, size):
    x = instance["x"]
    return jb.Sides(lhs=jnp.sum(x) ** 2, rhs={"printed": 1.9 * jnp.sum(x**2), "control": 0.0})

PAPER = jb.Paper(id="slope", title="Slope", statements=(jb.Statement(
    id="slope.sum", label="1", formula="f", kind="inequality", evaluate=evaluate,
    over={"x": jb.Box(-1, 1, 2)}, forms=(jb.Form(name="printed"),), control="zero",
    sizes=({"d": 2},), judges=(), budget=jb.Budget(samples=32, restarts=4, steps=40),
),))
"""
SWEPT = """
from dataclasses import dataclass
import jax, jax.numpy as jnp, numpy as np, xarray as xr
import jaxbounds as jb
from jaxbounds.experiments.experiment import Experiment

@dataclass(frozen=True)
class Config:
    \"\"\"A short sweep.

    Attributes:
        steps: of descent.
    \"\"\"

    steps: int = 8

def run(config, key, /, *, folder=None, resume=False):
    lanes = {"rate": np.float32([0.1, 0.2, 0.3])}
    found = jb.sweep(
        lambda lane: jnp.ones(3), lambda lane, state: state - lane["rate"] * state,
        lambda lane, state: {"loss": jnp.sum(state**2)}, lanes, config.steps, chunk=4,
        folder=None if folder is None else folder / "descent", resume=resume,
    )
    return xr.Dataset({"loss": (("lane", "record"), found.metrics["loss"])})

def figure(dataset, /):
    import matplotlib.pyplot as plt
    return plt.figure()

EXPERIMENTS = (
    Experiment(id="swept.one", label="Figure 1", title="one", config=Config(), run=run,
               figure=figure, claims=lambda dataset, /: (), resumable=True),
)
"""
MEMORY = 2**30
"""Bytes that a damaged file may add to this process; a larger number lets more pass."""
IMPORT = ("--import", "mine.py", "--jobs", "1")
VERIFY = ("verify", "mine", *IMPORT, "--out", "out")
CUT = ("verify", "mine", *IMPORT, "--out", "cut")
PART = ("verify", "mine.b", *IMPORT, "--out", "out")
SLOPE = ("verify", "slope.py", "--jobs", "1", "--out", "slope")
CERTIFY = ("certify", "slope.py", "--jobs", "1", "--seconds", "5", "--out", "slope")
CONSTANT = ("constant", "slope.py", "--seconds", "1", "--out", "slope")
REPLAY = ("replay", "out/worst/mine.a.printed.npz", "--import", "mine.py")
RUN = ("run", "smapprox.machine", "--machine", "parity", "--input", "0110", "--out", "run")
OWN = ("swept.one", "--import", "swept.py")
RESUME = ("run", *OWN, "--resume", "--out", "half")
SHARD = ("run", *OWN, "--shard", "1/2", "--resume", "--out", "parts")
MERGE = ("merge", "parts", "--import", "swept.py", "--out", "merged")
SHIPPED = ("verify", "seqlength.lemmae.3", "--jobs", "1", "--out", "shipped")
READ = {
    "out": [PART, REPLAY, ("diff", "out", "same")],
    "half": [RESUME],
    "parts": [SHARD, MERGE],
    "same": [("diff", "out", "same")],
    "cut": [CUT],
    "slope": [CERTIFY, CONSTANT],
    "run": [("plot", "run")],
    "cache": [SLOPE, SHIPPED, ("list", "qstr")],
}
"""The commands that read what stands in each folder."""


def command(*words: str) -> tuple[int, str, str]:
    """The exit status of a command in this process, and what it printed."""
    from jaxbounds.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(list(words))
        except SystemExit as end:
            status = int(end.code or 0)
    return status, out.getvalue(), err.getvalue()


def prepared() -> None:
    """The folders that commands read, as commands leave them."""
    Path("mine.py").write_text(CLAIMS.replace("C *", "3 *"))
    Path("slope.py").write_text(SLOPES)
    Path("swept.py").write_text(SWEPT)
    second = tuple("2/2" if word == "1/2" else word for word in SHARD)
    unfinished()
    for words in (VERIFY, SLOPE, CERTIFY, CONSTANT, RUN, ("list", "qstr"), SHARD, second, SHIPPED):
        status, _, err = command(*words)
        if status not in (0, 1):
            raise SystemExit(f"{words}: {err}")
    shutil.copytree("out", "same")
    from jaxbounds.runs.statement_run import Verification

    over, publish = Verification._is_over, Verification.publish
    Verification._is_over = lambda run: len(run.done) > 0  # type: ignore[method-assign]
    Verification.publish = lambda run, **_: run.folder.release()  # type: ignore[method-assign]
    command(*CUT)
    Verification._is_over, Verification.publish = over, publish  # type: ignore[method-assign]


def unfinished() -> None:
    """A run that was cut after its first checkpoint."""
    from jaxbounds.experiments.sweeps import Checkpoints

    save = Checkpoints.save

    def dying(*given: Any) -> None:
        save(*given)
        raise KeyboardInterrupt

    Checkpoints.save = dying  # type: ignore[method-assign]
    status, _, err = command(*(word for word in RESUME if word != "--resume"))
    Checkpoints.save = save  # type: ignore[method-assign]
    if status != 130:
        raise SystemExit(f"the run was not cut: {status} {err}")


def opened_by_commands(place: Path) -> dict[str, tuple[Path, list[tuple[str, ...]]]]:
    """A file of each kind that commands open below a folder, and the commands that open it."""
    kinds: dict[str, tuple[Path, list[tuple[str, ...]]]] = {}
    seen: set[Path] = set()
    active = True

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if active and event == "open" and isinstance(given[0], str | bytes | os.PathLike):
            seen.add(Path(os.path.abspath(os.fsdecode(given[0]))))

    sys.addaudithook(hook)
    room = Kept(place)
    for words in dict.fromkeys(words for commands in READ.values() for words in commands):
        seen.clear()
        command(*words)
        for file in sorted(seen):
            if (place / file.relative_to(place) if file.is_relative_to(place) else None) is None:
                continue
            relative = file.relative_to(place)
            if relative in room.content and file.suffix != ".py":
                kind = _kind(relative)
                if kind and words in READ.get(relative.parts[0], ()):
                    commands = kinds.setdefault(kind, (relative, []))[1]
                    if words not in commands:
                        commands.append(words)
        room.restore()
    active = False
    return dict(sorted(kinds.items()))


def _kind(relative: Path) -> str:
    """The kind of a file: its name, or its ending where there are many; "" of what is no data."""
    if relative.name.endswith("-cache") or relative.name == ".jaxbounds-lock":
        return ""
    top = relative.parts[0]
    named = relative.suffix in (".npz", ".txt") or top == "cache"
    tail = f"*{relative.suffix}" if named and relative.name != ".key" else relative.name
    middle = relative.parts[1] if len(relative.parts) > 2 else ""
    return "/".join(filter(None, (top, middle, tail)))


Stamp = tuple[int, ...]


class Kept:
    """The content of a folder, which comes back whenever it is asked for.

    Args:
        place: the folder.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.content = {
            path.relative_to(place): path.read_bytes()
            for path in place.rglob("*")
            if path.is_file()
        }
        self.stamps = {name: self._stamp(place / name) for name in self.content}
        self.folders = {name for path in self.content for name in path.parents}

    def _stamp(self, path: Path) -> Stamp:
        found = path.lstat()
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode

    def restore(self, under: Path = Path()) -> None:
        """Write what changed, and remove what was added, below a folder of this one."""
        there, added = set[Path](), list[Path]()
        for root, folders, files in os.walk(self.place / under):
            inside = Path(root).relative_to(self.place)
            there.update(inside / name for name in files)
            added += [inside / name for name in folders if inside / name not in self.folders]
        for name in there - self.content.keys():
            (self.place / name).unlink()
        for name, data in self.content.items():
            if not name.is_relative_to(under):
                continue
            path = self.place / name
            if name not in there or self._stamp(path) != self.stamps[name]:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.unlink(missing_ok=True)
                path.write_bytes(data)
                self.stamps[name] = self._stamp(path)
        for folder in reversed(added):
            (self.place / folder).rmdir()


@contextlib.contextmanager
def remembered() -> Iterator[None]:
    """Within a `with` block proofs, constants and pictures that were made once are made no more.

    The digest of the library's source and the versions of its packages are found once, too.
    """
    import matplotlib.figure

    from jaxbounds.constants import constant
    from jaxbounds.runs import cache, certify, digest, merged_files, request, statement_run

    usual = certify._certified, constant.sharp_constant, matplotlib.figure.Figure.savefig
    found: dict[str, Any] = {}

    def once(function: Any, name: Any) -> Any:
        @functools.wraps(function)
        def call(*given: Any, **more: Any) -> Any:
            key = name(*given, **more)
            if key not in found:
                found[key] = pickle.dumps(function(*given, **more))
            return pickle.loads(found[key])

        return call

    def picture(figure: Any, to: Any, **more: Any) -> None:
        kind = more["format"]
        if kind not in found:
            room = io.BytesIO()
            usual[2](figure, room, **more)
            found[kind] = room.getvalue()
        to.write(found[kind])

    library, versions = digest.digest_of(()), statement_run.versions()

    def digest_of(imports: Any) -> str:
        """The library does not change here; the files of the claims may."""
        texts = b"".join(Path(file).read_bytes() for file in imports)
        return hashlib.sha256(library.encode() + texts).hexdigest() if texts else library

    before = [(module, name, getattr(module, name))
              for module in (cache, merged_files, request, statement_run)
              for name in ("digest_of", "versions") if hasattr(module, name)]  # fmt: skip
    for module, name, _ in before:
        setattr(module, name, digest_of if name == "digest_of" else lambda: dict(versions))
    certify._certified = once(usual[0], lambda statement, *_: f"proof {statement.id}")
    constant.sharp_constant = once(
        usual[1], lambda statement, form, **_: f"constant {statement.id} {form}"
    )
    matplotlib.figure.Figure.savefig = picture
    try:
        yield
    finally:
        certify._certified, constant.sharp_constant, matplotlib.figure.Figure.savefig = usual
        for module, name, function in before:
            setattr(module, name, function)


def _json(data: bytes, rng: random.Random) -> bytes:
    """JSON with one value in place of another kind."""
    lines = data.decode().splitlines()
    at = rng.randrange(len(lines)) if len(lines) > 1 and data[:1] != b"[" else None
    value = json.loads(data if at is None else lines[at])
    nodes: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            nodes.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    if not isinstance(value, dict | list):
        return data[:-1]
    walk(value)
    if nodes:
        node, key = rng.choice(nodes)
        node[key] = rng.choice(
            [None, 1e400, -1, 2**70, "../../x", "\x1b[2J", [], {}, [[[]]], True, "holds", "vacuous"]
        )
    text = json.dumps(value)
    if at is None:
        return text.encode()
    return "\n".join([*lines[:at], text, *lines[at + 1 :], ""]).encode()


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Other bytes than these."""
    content = bytearray(data)
    at, length = rng.randrange(len(content) + 1), rng.randrange(1, 65)
    way = rng.randrange(8)
    if way == 0:
        return bytes(content[:at])
    if way == 1:
        content[at : at + length] = rng.randbytes(length)
    elif way == 2:
        content[at:at] = content[:length] * rng.randrange(1, 50)
    elif way == 3:
        content[at : at + length] = bytes(length)
    elif way == 4 and content:
        content[at - 1] ^= 1 << rng.randrange(8)
    elif way == 5:
        del content[at : at + length]
    else:
        with contextlib.suppress(ValueError, IndexError):
            return _json(data, rng)
        content += rng.randbytes(length)
    return bytes(content)


def tree(place: Path) -> set[Path]:
    """All that stands beside a folder."""
    return {path for path in place.parent.iterdir() if path != place}


def believed(place: Path) -> list[str]:
    """The verdicts that folders show and that are wrong: both claims fail."""
    wrong = []
    for name in ("out", "cut"):
        for file in place.glob(f"{name}*/verdicts.json"):
            with contextlib.suppress(ValueError, TypeError, KeyError):
                shown = {v["id"]: v["status"] for v in json.loads(file.read_text())}
                wrong += [f"{file}: {k} {v}" for k, v in shown.items() if v != "fails"]
    return wrong


Answer = tuple[int, str, str]


def _wrong_result(words: tuple[str, ...], answer: Answer, usual: Answer) -> str:
    """The fault of an answer that believes a damaged file.

    `diff`, `replay` and `plot` say what a file holds: they say the usual, or refuse, or name what
    they leave out. The others measure by themselves.
    """
    (status, out, err), (before, printed, _) = answer, usual
    reads = words[0] in ("diff", "replay", "plot", "run", "merge") and status in (0, 1)
    if reads and not err.strip() and (status, out) != (before, printed):
        return f"{words[0]} ended with {status} and another answer, without a word of damage"
    if words[0] in ("certify", "constant", "verify") and status in (0, 1) and status != before:
        return f"{words[0]} ended with {status}, not {before}"
    return ""


class Trials:
    """Damages of the files of a folder.

    Args:
        place: the folder.
        usual: the answer of each command where nothing is damaged.
    """

    def __init__(self, place: Path, usual: dict[tuple[str, ...], Answer]) -> None:
        self.place, self.usual, self.room = place, usual, Kept(place)
        self.before, self.answers = tree(place), dict[Path, str]()

    def _read(self, file: Path, content: bytes) -> str:
        """The fault of the reader of a file that has this content now."""
        path = self.place / file
        if file not in self.answers:
            self.answers[file] = answer(path)
            self.room.restore(file.parent)
        path.write_bytes(content)
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                found = answer(path)
        except Exception as problem:
            return f"the reader raised {type(problem).__name__}: {problem!s:.150}"
        finally:
            self.room.restore(file.parent)
        if file.suffix == ".jsonl":  # which keeps the lines that are whole
            return ""
        known = found in ("", self.answers[file])
        return "" if known else "the reader believes what it reads"

    def damage(
        self, file: Path, commands: list[tuple[str, ...]], rng: random.Random
    ) -> list[str] | None:
        """The faults after one damage of a file; None where the damage changed nothing."""
        data = self.room.content[file]
        other = damaged(data, rng)
        if other == data:
            return None
        problems = list(filter(None, [self._read(file, other)]))
        try:
            for words in commands:
                (self.place / file).write_bytes(other)
                try:
                    said = command(*words)
                except BaseException as problem:
                    problems.append(f"{words[0]} raised {type(problem).__name__}: {problem!s:.150}")
                    continue
                status, _, err = said
                if status not in (0, 1, 2, 3) or "Traceback" in err:
                    problems.append(f"{words[0]} ended with {status}: {err[-150:]}")
                if words[0] == "verify" and status in (0, 1):
                    problems += believed(self.place)
                problems += filter(None, [_wrong_result(words, said, self.usual[words])])
                if tree(self.place) != self.before:
                    beside = sorted(tree(self.place) ^ self.before)
                    problems.append(f"wrote outside: {beside[:3]}")
                self.room.restore()
        finally:
            if commands:
                self.room.restore()
        return problems


def main(
    count: int = 200,
    commands: int = 200,
    seed: int = 0,
    only: str = "",
    first: int = 0,
    seconds: float = 1e9,
) -> int:
    """Damage files.

    Args:
        count: damages of each kind of file, which its reader reads.
        commands: after so many of them commands run, too.
        seed: of the damages.
        only: kinds whose names contain this.
        first: kinds that come before this number are left out.
        seconds: after which no other kind begins.
    """
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a disk would be waited for
    with tempfile.TemporaryDirectory(dir=memory) as folder, remembered():
        place, began = Path(folder).resolve() / "here", time.monotonic()
        place.mkdir()
        os.chdir(place)
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(place / "cache")
        prepared()
        kinds = opened_by_commands(place)
        print(f"{len(kinds)} kinds: {', '.join(kinds)}", flush=True)
        room, usual = Kept(place), dict[tuple[str, ...], Answer]()
        for words in {words for _, opening in kinds.values() for words in opening}:
            usual[words] = command(*words)
            room.restore()
        trials = Trials(place, usual)
        start, failed = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0
        for number, (kind, (file, opening)) in enumerate(kinds.items()):
            if only not in kind or number < first or time.monotonic() - began > seconds:
                continue
            since, found, done = time.monotonic(), collections.Counter[str](), 0
            rng = random.Random(f"{seed} {kind}")
            while done < count:
                problems = trials.damage(file, opening if done < commands else [], rng)
                if problems is not None:
                    done += 1
                    found.update(problems)
            more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) * 1024
            failed += sum(found.values()) + (more > MEMORY)
            names = ", ".join(dict.fromkeys(words[0] for words in opening))
            print(
                f"{number} {kind} ({min(commands, done)} times {names}): {done} damages, "
                f"{sum(found.values())} problems, "
                f"+{more / 2**20:.0f} MiB, {time.monotonic() - since:.0f} s",
                flush=True,
            )
            for text, times in found.most_common(5):
                print(f"   {times} x {text}", flush=True)
        os.chdir("/")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(tyro.cli(main))
