"""Damage each kind of file that a command reads, many times, and run the command.

    python benchmarks/damaged_files.py --count 2000

First the commands run once under an audit hook, which lists the files that they open in their
folders and in the cache. Each kind is then damaged `count` times: bytes flipped, cut, repeated, set
to zero, values of JSON replaced. No command may raise, write outside of its folder, believe a wrong
verdict, or take more than 1 GB. The exit status is 1 if one did.
"""

import collections
import contextlib
import io
import json
import os
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
READ = {
    "out": [PART, REPLAY, ("diff", "out", "same")],
    "same": [("diff", "out", "same")],
    "cut": [CUT],
    "slope": [CERTIFY, CONSTANT],
    "run": [("plot", "run")],
    "cache": [SLOPE, ("list", "qstr")],
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
    for words in (VERIFY, SLOPE, CERTIFY, CONSTANT, RUN, ("list", "qstr")):
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


def opened_by_commands(place: Path) -> dict[str, Path]:
    """A file of each kind that the commands open below a folder, by its kind."""
    seen: set[Path] = set()
    active = True

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if active and event == "open" and isinstance(given[0], str | bytes | os.PathLike):
            seen.add(Path(os.path.abspath(os.fsdecode(given[0]))))

    sys.addaudithook(hook)
    with kept(place):
        for commands in READ.values():
            for words in commands:
                command(*words)
        active = False
    kinds: dict[str, Path] = {}
    for file in sorted(seen):
        inside = file.is_relative_to(place) and file.is_file() and file.suffix != ".py"
        if inside and not file.name.endswith("-cache") and file.name != ".jaxbounds-lock":
            relative = file.relative_to(place)
            top = relative.parts[0]
            named = file.suffix in (".npz", ".txt") or top == "cache"
            tail = f"*{file.suffix}" if named and file.name != ".key" else file.name
            middle = relative.parts[1] if len(relative.parts) > 2 else ""
            kinds.setdefault("/".join(filter(None, (top, middle, tail))), relative)
    return kinds


@contextlib.contextmanager
def kept(place: Path) -> Iterator[None]:
    """Whatever happens in a folder within a `with` block is undone."""
    with tempfile.TemporaryDirectory() as other:
        copy = Path(other) / "copy"
        shutil.copytree(place, copy, symlinks=True)
        try:
            yield
        finally:
            for part in place.iterdir():
                shutil.rmtree(part) if part.is_dir() else part.unlink()
            shutil.copytree(copy, place, symlinks=True, dirs_exist_ok=True)


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
    return {path for path in place.parent.rglob("*") if not path.is_relative_to(place)}


def believed(place: Path) -> list[str]:
    """The verdicts that folders show and that are wrong: both claims fail."""
    wrong = []
    for name in ("out", "cut"):
        for file in place.glob(f"{name}*/verdicts.json"):
            with contextlib.suppress(ValueError, TypeError, KeyError):
                shown = {v["id"]: v["status"] for v in json.loads(file.read_text())}
                wrong += [f"{file}: {k} {v}" for k, v in shown.items() if v != "fails"]
    return wrong


def trial(place: Path, kind: str, file: Path, rng: random.Random) -> list[str]:
    """Describe the fault after one damage of a file."""
    problems, before = [], tree(place)
    with kept(place):
        data = (place / file).read_bytes()
        other = damaged(data, rng)
        if other == data:
            return []
        (place / file).write_bytes(other)
        for words in READ[file.parts[0]]:
            try:
                status, _, err = command(*words)
            except BaseException as problem:
                problems.append(f"{words[0]} raised {type(problem).__name__}: {problem!s:.150}")
                continue
            if status not in (0, 1, 2, 3) or "Traceback" in err:
                problems.append(f"{words[0]} ended with {status}: {err[-150:]}")
            if words[0] == "verify" and status in (0, 1):
                # The damaged file itself may still stand beside what the command wrote.
                problems += believed(place)
        if tree(place) != before:
            problems.append(f"wrote outside: {sorted(tree(place) ^ before)[:3]}")
    return problems


def main(count: int = 200, seed: int = 0, only: str = "") -> int:
    """Damage files.

    Args:
        count: damages of each kind of file.
        seed: of the damages.
        only: kinds whose names contain this.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve() / "here"
        place.mkdir()
        os.chdir(place)
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(place / "cache")
        prepared()
        kinds = opened_by_commands(place)
        print(f"{len(kinds)} kinds: {', '.join(kinds)}", flush=True)
        start, failed = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0
        for kind, file in kinds.items():
            if only not in kind:
                continue
            began, found = time.monotonic(), collections.Counter[str]()
            rng = random.Random(f"{seed} {kind}")
            for _ in range(count):
                found.update(trial(place, kind, file, rng))
            more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) * 1024
            failed += sum(found.values()) + (more > MEMORY)
            seconds = time.monotonic() - began
            print(f"{kind}: {count} damages, {sum(found.values())} problems, "
                  f"+{more / 2**20:.0f} MiB, {seconds:.0f} s", flush=True)  # fmt: skip
            for words, times in found.most_common(5):
                print(f"   {times} x {words}", flush=True)
        os.chdir("/")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(tyro.cli(main))
