"""End a command at random moments, by every signal, continue it, and compare bit for bit.

    python benchmarks/kill_and_resume.py --kills 20
    python benchmarks/kill_and_resume.py --kills 20 --what verify qstr.prop3 qstr.lem12
    python benchmarks/kill_and_resume.py --kills 20 --what run multihead.fig6 --preset quick

What follows `--what` is the command's.

Checked: five seconds after the signal no process of the command lives; what was printed as judged
is kept; nothing that was published before is lost; continued, the command comes to its end with the
values of an undisturbed run.
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

from jaxbounds.results import load

SWEEP = ("run", "multihead.fig2", "--heads", "1", "16", "--trials", "3", "--steps", "6000")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
GONE = 5.0
"""Seconds after which no process may be left."""


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


def cut(command: list[str], after: float, how: signal.Signals, log: Path) -> bool:
    """Run for `after` seconds at most; whether it was cut."""
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file)
        try:
            if process.wait(after) != 0:
                raise SystemExit(f"it failed by itself: {' '.join(command)}\n{log.read_text()}")
            return False
        except subprocess.TimeoutExpired:
            family = _family(process)
            process.send_signal(how)
        _, alive = psutil.wait_procs(family, timeout=GONE)
        process.poll()
        alive = [one for one in alive if one.is_running() and one.status() != "zombie"]
        if alive:
            for one in alive:
                one.kill()
            raise SystemExit(
                f"{GONE:g} s after {how.name} there still are {alive}\n{log.read_text()}"
            )
    return True


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


def main(what: tuple[str, ...], /, *, kills: int = 20, seed: int = 0) -> None:
    """Print a line for each time that a command which was cut came to its end."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # where a shell has it ignored
    choose, resume = random.Random(seed), (["--resume"] if what[0] == "run" else [])
    with tempfile.TemporaryDirectory() as scratch:
        undisturbed, broken, log = (Path(scratch) / name for name in ("whole", "broken", "log"))
        cut(_command(what, undisturbed), 1e6, signal.SIGKILL, log)
        started = time.perf_counter()
        cut(_command(what, undisturbed), 1e6, signal.SIGKILL, log)
        whole = time.perf_counter() - started
        print(f"undisturbed, compiled programs cached: {whole:.1f} s", flush=True)
        expected, ends, since = _values(undisturbed), 0, 0
        planned = [how for how in SIGNALS for _ in range(kills)]
        choose.shuffle(planned)
        while planned or since:
            how = planned.pop() if planned else None
            wait = choose.uniform(0, 1.1 * whole) if how else 1e6
            flags = resume if since else []
            done = cut(_command(what, broken, *flags), wait, how or signal.SIGKILL, log)
            said = set(re.findall(r"^\d+/\d+ ([\w.\-]+):", _text(log), re.MULTILINE))
            if what[0] == "verify" and not said <= _judged(broken):
                raise SystemExit(f"judged and lost: {said - _judged(broken)}")
            if done:
                since += 1
            elif since or not planned:
                if _values(broken) != expected:
                    raise SystemExit("continued, it gives other values")
                ends, since = ends + 1, 0
                print(f"complete after cuts; {len(planned)} to come: the same bits", flush=True)
    print(f"{kills} times each of {', '.join(s.name for s in SIGNALS)}; {ends} times complete")


if __name__ == "__main__":
    at = sys.argv.index("--what") if "--what" in sys.argv else len(sys.argv)
    tyro.cli(partial(main, tuple(sys.argv[at + 1 :]) or SWEEP), args=sys.argv[1:at])
