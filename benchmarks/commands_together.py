"""Kill commands at random moments, and start several at once on one folder and one cache.

    python benchmarks/commands_together.py kills --count 90     # verify, certify, run
    python benchmarks/commands_together.py kills --count 30 --commands constant
    python benchmarks/commands_together.py crowd --rounds 20    # two, then five at once

After a kill the same command ends as one that nobody disturbed: its exit status, its verdicts, and
all the files that they name. Sweeps have `sweeps_killed.py`. The exit status is 1 if one differed.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import tyro

CLAIMS = """
import jax.numpy as jnp
import jaxbounds as jb

def claim(name, factor):
    def evaluate(instance, size):
        x = instance["x"]
        sides = {"printed": factor * jnp.sum(x**2), "control": 0.0}
        return jb.Sides(lhs=jnp.sum(x) ** 2, rhs=sides)

    return jb.Statement(
        id=f"mine.{name}", label="1", formula="f", kind="inequality", evaluate=evaluate,
        over={"x": jb.Box(-1, 1, 2)}, forms=(jb.Form(name="printed"),), control="zero",
        sizes=({"d": 2},), judges=(), budget=jb.Budget(samples=64, restarts=4, steps=60),
    )

PAPER = jb.Paper(id="mine", title="Mine", statements=(
    claim("a", 1.9), claim("b", 2.1), claim("c", 1.5), claim("d", 2.5),
))
"""
WORDS = {
    "verify": ["verify", "mine.py", "--jobs", "2"],
    "certify": ["certify", "mine.py", "--jobs", "2", "--seconds", "5"],
    "run": ["run", "smapprox.machine", "--machine", "parity", "--input", "0110"],
    "constant": ["constant", "mine.a", "--import", "mine.py", "--seconds", "2"],
}
RESULT = {
    "verify": "verdicts.json",
    "certify": "certificates.json",
    "run": "result.nc",
    "constant": "constants.json",
}
EXACT = {"verify": ("id", "form", "status", "worst_ratio"), "certify": ("id", "form", "word")}
"""The part of each entry that must be equal; the time of a run decides a constant's digits."""
SECONDS = 600
"""Seconds after which a command counts as hanging; a larger number finds that later."""


def started(name: str, out: str) -> subprocess.Popen[str]:
    """A command in a process group of its own."""
    program = [sys.executable, "-m", "jaxbounds", *WORDS[name], "--out", out]
    pipe: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(program, start_new_session=True, **pipe)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Its exit status, and what it said."""
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out + err


def result(name: str, out: Path) -> Any:
    """The reproducible results of a command, or the fault in them."""
    file = out / RESULT[name]
    if not file.is_file():
        return f"no {file.name}"
    if name == "run":
        from jaxbounds.experiments.results import load

        return sorted((k, v.values.tolist()) for k, v in load(file).data_vars.items())
    found = json.loads(file.read_text())
    if name == "verify":
        names = [v[k] for v in found for k in ("worst_file", "shrunk_file") if v[k]]
        if missing := [one for one in names if not (out / one).is_file()]:
            return f"missing: {', '.join(missing)}"
    return [[one.get(k) for k in EXACT.get(name, ("id", "form"))] for one in found]


def _left(group: int) -> list[int]:
    """The processes of a killed command that still live after a while."""
    for _ in range(50):
        left = []
        for process in psutil.process_iter(["pid", "status"]):
            try:
                mine = os.getpgid(process.pid) == group
            except ProcessLookupError:
                continue
            left += [process.pid] * (mine and process.info["status"] != psutil.STATUS_ZOMBIE)
        if not left:
            return []
        time.sleep(0.1)
    return left


def kills(
    count: int = 20,
    seed: int = 0,
    commands: tuple[str, ...] = ("verify", "certify", "run"),
) -> int:
    """Kill commands, and let the same command end.

    Args:
        count: kills in all, dealt out among commands and signals.
        seed: of the moments.
        commands: which ones.
    """
    rng, wrong, early = random.Random(seed), 0, 0
    expected, took = {}, {}
    for name in commands:
        began = time.monotonic()
        status, said = ended(started(name, f"whole-{name}"))
        took[name] = time.monotonic() - began
        expected[name] = status, result(name, Path(f"whole-{name}"))
        if status not in (0, 1):
            raise SystemExit(f"{name} cannot run: {said}")
        print(f"{name}: status {status} in {took[name]:.1f} s", flush=True)
    signals = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
    for number in range(count):
        name, way = commands[number % len(commands)], signals[number // len(commands) % 3]
        out = f"{name}-{number}"
        process = started(name, out)
        time.sleep(rng.uniform(0, took[name]))
        # The command alone: its workers end by themselves.
        os.kill(process.pid, way)
        status, said = ended(process)
        early += status in (0, 1) and status == expected[name][0]
        problems = [f"left alive: {alive}"] if (alive := _left(process.pid)) else []
        problems += ["traceback"] * ("Traceback" in said)
        again = started(name, out)
        end = ended(again)
        found = end[0], result(name, Path(out))
        if found != expected[name]:
            problems.append(f"ended with {str(found)[:200]}, not {str(expected[name])[:200]}")
        problems += ["traceback at the second start"] * ("Traceback" in end[1])
        wrong += bool(problems)
        if problems:
            print(f"{number}: {name} {way.name}: {'; '.join(problems)}", flush=True)
    print(f"{count} kills ({early} after the end): {wrong} went wrong", flush=True)
    return int(wrong > 0)


def crowd(rounds: int = 5, commands: int = 5) -> int:
    """Start two, then several commands at once on one folder and one cache.

    Args:
        rounds: how often.
        commands: in the larger crowd; every second one has another seed.
    """
    wrong = 0
    status, _ = ended(started("verify", "whole"))
    alone = status, result("verify", Path("whole"))
    WORDS["other"] = [*WORDS["verify"], "--seed", "1"]
    status, _ = ended(started("other", "whole-other"))
    other = status, result("verify", Path("whole-other"))
    for number in range(rounds):
        for many in (2, commands):
            names = ["verify", "other", "verify", "verify", "other", *["verify"] * many][:many]
            place = Path(f"round-{number}-{many}")
            running = [started(name, str(place / "out")) for name in names]
            ends = [ended(one) for one in running]
            problems = [f"{s}: {said[-200:]}" for s, said in ends if s != alone[0]]
            problems += ["traceback" for _, said in ends if "Traceback" in said]
            folders = sorted(f.parent for f in place.glob("*/verdicts.json"))
            found = [(alone[0], result("verify", folder)) for folder in folders]
            if sorted(map(str, found)) != sorted(map(str, [alone, other])):
                problems.append(f"{[*map(str, folders)]}: {str(found)[:300]}")
            wrong += bool(problems)
            for problem in problems:
                print(f"round {number}, {many} commands: {problem}", flush=True)
        print(f"round {number} is over: {wrong} went wrong so far", flush=True)
    print(f"{rounds} rounds of 2 and of {commands} commands: {wrong} went wrong", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as here:
        os.chdir(here)
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(here) / "cache")
        Path("mine.py").write_text(CLAIMS)
        try:
            code = tyro.extras.subcommand_cli_from_dict({"kills": kills, "crowd": crowd})
        finally:
            os.chdir("/")
    raise SystemExit(code)
