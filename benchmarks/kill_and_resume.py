"""End a command at random moments, by every signal, continue it, and compare bit for bit.

    python benchmarks/kill_and_resume.py --kills 20 --deadline 10
    python benchmarks/kill_and_resume.py --kills 20 --what verify qstr.prop3 qstr.lem12
    python benchmarks/kill_and_resume.py --kills 20 --what run multihead.fig6 --preset quick

What follows `--what` is the command's.

Checked: `--gone` seconds (5) after the signal, or its deadline after SIGTERM, no process of the
command lives; what was printed as judged is kept; nothing that was published before is lost;
continued, the command comes to its end with the values of an undisturbed run. Printed: how long
each signal took at most, and how many SIGTERM ended with a checkpoint made for it (the others came
while nothing was being trained).
"""

import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import tyro

from jaxbounds.experiments.results import load

SWEEP = ("run", "multihead.fig2", "--heads", "1", "16", "--trials", "3", "--steps", "6000")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def _command(what: tuple[str, ...], folder: Path, *flags: str) -> list[str]:
    """As a user would start it."""
    program = "from jaxbounds.cli import main; raise SystemExit(main())"
    return [sys.executable, "-c", program, *what, "--out", str(folder), *flags]


def _family(process: subprocess.Popen) -> list[psutil.Process]:
    try:
        parent = psutil.Process(process.pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def cut(
    command: list[str], after: float, how: signal.Signals, log: Path, within: float
) -> float | None:
    """Run for `after` seconds at most; how long after the signal all was over, if it was cut."""
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file)
        try:
            if process.wait(after) != 0:
                raise SystemExit(f"it failed by itself: {' '.join(command)}\n{log.read_text()}")
            return None
        except subprocess.TimeoutExpired:
            family = _family(process)
            process.send_signal(how)
            sent = time.perf_counter()
        _, alive = psutil.wait_procs(family, timeout=within)
        took = time.perf_counter() - sent
        process.poll()
        alive = [one for one in alive if one.is_running() and one.status() != "zombie"]
        if alive:
            for one in alive:
                one.kill()
            raise SystemExit(
                f"{within:g} s after {how.name} there still are {alive}\n{log.read_text()}"
            )
    return took


def _judged(folder: Path) -> set[str]:
    """The statements that are kept, in work or in place."""
    kept = set()
    for line in _text(folder / "unfinished" / "judged.jsonl").split("\n")[1:]:
        if line.strip():
            kept.add(json.loads(line)[0]["id"])
    published = _text(folder / "verdicts.json")
    return kept | {one["id"] for one in json.loads(published or "[]")}


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def _values(folder: Path) -> object:
    """Everything but how long it took."""
    if (folder / "verdicts.json").is_file():
        every = json.loads((folder / "verdicts.json").read_text())
        return [{name: x for name, x in one.items() if name != "seconds"} for one in every]
    data = load(folder / "result.nc")
    return {name: np.asarray(data[name].values).tobytes() for name in data}


def main(
    what: tuple[str, ...],
    /,
    *,
    kills: int = 20,
    seed: int = 0,
    deadline: float = 10.0,
    gone: float = 5.0,
) -> None:
    """Print a line for each time that a command which was cut came to its end.

    Args:
        what: the command.
        kills: by each signal.
        seed: of the moments.
        deadline: seconds that SIGTERM leaves a run.
        gone: seconds after which no process may be left; more where others keep the cores busy.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)  # where a shell has it ignored
    choose, resume = random.Random(seed), (["--resume"] if what[0] == "run" else [])
    if what[0] == "run":
        what = (*what, "--deadline", f"{deadline:g}")
    longest, kept = dict.fromkeys(SIGNALS, 0.0), 0
    with tempfile.TemporaryDirectory() as scratch:
        undisturbed, broken, log = (Path(scratch) / name for name in ("whole", "broken", "log"))
        cut(_command(what, undisturbed), 1e6, signal.SIGKILL, log, gone)
        started = time.perf_counter()
        cut(_command(what, undisturbed), 1e6, signal.SIGKILL, log, gone)
        whole = time.perf_counter() - started
        print(f"undisturbed, compiled programs cached: {whole:.1f} s", flush=True)
        expected, ends, since = _values(undisturbed), 0, 0
        planned = [how for how in SIGNALS for _ in range(kills)]
        choose.shuffle(planned)
        while planned or since:
            how = planned.pop() if planned else None
            wait = choose.uniform(0, 1.1 * whole) if how else 1e6
            flags = resume if since else []
            command = _command(what, broken, *flags)
            within = max(deadline, gone) if how == signal.SIGTERM and what[0] == "run" else gone
            done = cut(command, wait, how or signal.SIGKILL, log, within)
            if how and done:
                longest[how] = max(longest[how], done)
                kept += how == signal.SIGTERM and "before the stop are saved" in _text(log)
            said = set(re.findall(r"^\d+/\d+ ([\w.\-]+):", _text(log), re.MULTILINE))
            if what[0] == "verify" and not said <= _judged(broken):
                raise SystemExit(f"judged and lost: {said - _judged(broken)}")
            if done is not None:
                since += 1
            elif since or not planned:
                if _values(broken) != expected:
                    raise SystemExit("continued, it gives other values")
                ends, since = ends + 1, 0
                print(f"complete after cuts; {len(planned)} to come: the same bits", flush=True)
    print(f"{kills} times each of {', '.join(s.name for s in SIGNALS)}; {ends} times complete")
    worst = ", ".join(f"{how.name} {took:.1f}" for how, took in longest.items())
    print(f"seconds from signal to end, at most: {worst}; {kept} SIGTERM made a checkpoint")


if __name__ == "__main__":
    at = sys.argv.index("--what") if "--what" in sys.argv else len(sys.argv)
    tyro.cli(partial(main, tuple(sys.argv[at + 1 :]) or SWEEP), args=sys.argv[1:at])
