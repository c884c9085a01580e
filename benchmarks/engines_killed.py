"""Kill workers and shards at random moments, and compare bit for bit with one machine left alone.

    python benchmarks/engines_killed.py dask --kills 10 qstr multihead.prop1
    python benchmarks/engines_killed.py shards --count 7 --kills 3 -- multihead.fig2 --trials 3

`dask`: statements are verified by two Dask workers, one of which is killed each time. `shards`: a
run is cut into shards, started in random order; some are killed, started again, and all merged.
"""

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import tyro
from engines import cluster

from jaxbounds.experiments.results import load


def _command(*words: str) -> list[str]:
    program = "from jaxbounds.cli import main; raise SystemExit(main())"
    return [sys.executable, "-c", program, *words]


def _run(*words: str) -> float:
    """Seconds that a command took; statuses 0 and 1 mean that it came to its end."""
    started = time.perf_counter()
    done = subprocess.run(_command(*words), capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(words)}: status {done.returncode}\n{done.stderr}")
    return time.perf_counter() - started


def _verdicts(folder: Path) -> list[dict]:
    found = json.loads((folder / "verdicts.json").read_text())
    return [{name: x for name, x in one.items() if name != "seconds"} for one in found]


def _instances(folder: Path) -> dict[str, bytes]:
    files = [f for kind in ("worst", "counterexamples") for f in (folder / kind).glob("*.npz")]
    return {file.name: file.read_bytes() for file in files}


def _compared(one: Path, other: Path) -> str:
    """Whether two runs left the same bits; else the forms that differ."""
    pairs = list(zip(_verdicts(one), _verdicts(other), strict=True))
    apart = [f"{a['id']} ({a['form']})" for a, b in pairs if a != b]
    if apart:
        return f"{len(apart)} OTHER VERDICTS: {', '.join(apart[:10])}"
    same = _instances(one) == _instances(other)
    return f"{len(pairs)} verdicts and their instances: " + ("the same" if same else "OTHER BITS")


def _workers() -> list[psutil.Process]:
    """The processes that compute, each below its nanny."""
    below = psutil.Process().children(recursive=True)
    return [p for p in below if "multiprocessing.spawn" in " ".join(p.cmdline())]


def dask(
    what: tuple[str, ...] = (),
    /,
    *,
    kills: int = 10,
    seed: int = 0,
    alone: Path | None = None,
    took: float = 0.0,
) -> None:
    """Verify alone, then by two workers, one of them killed at a random moment each time.

    Args:
        what: ids or patterns; everything unless given.
        kills: how often.
        seed: of the moments and the victims.
        alone: a folder that `jaxbounds verify` left, in place of a run of our own.
        took: seconds that two workers need, where that is known already.
    """
    choose = random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch, cluster(2) as address:
        by_dask = Path(scratch) / "dask"
        on = ("verify", *what, "--engine", address, "--out", str(by_dask))
        if alone is None:
            alone = Path(scratch) / "alone"
            _run("verify", *what, "--jobs", "1", "--out", str(alone))
        if not took:
            _run(*on)
            subprocess.run(["rm", "-r", str(by_dask)], check=True)
            took = _run(*on)  # with what is compiled kept, as in the runs below
            print(f"undisturbed, {took:.1f} s: {_compared(by_dask, alone)}", flush=True)
            subprocess.run(["rm", "-r", str(by_dask)], check=True)
        for kill in range(1, kills + 1):
            process = subprocess.Popen(
                _command(*on), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
            after = choose.uniform(0.1, 0.9) * took
            time.sleep(after)
            running = process.poll() is None
            victim = choose.choice(_workers())
            victim.send_signal(signal.SIGKILL)
            said = process.communicate()[1]
            if process.returncode not in (0, 1):
                raise SystemExit(said)
            words = _compared(by_dask, alone)
            subprocess.run(["rm", "-r", str(by_dask)], check=True)
            print(f"kill {kill}, after {after:.1f} s (at work: {running}): {words}", flush=True)


def shards(what: tuple[str, ...], /, *, count: int = 7, kills: int = 3, seed: int = 0) -> None:
    """A run alone, then its shards in random order, some of them killed in their midst."""
    choose = random.Random(seed)
    order = choose.sample(range(1, count + 1), count)
    victims = set(choose.sample(order, kills))
    with tempfile.TemporaryDirectory() as scratch:
        alone, parts, merged = (Path(scratch) / name for name in ("alone", "parts", "merged"))
        took = _run("run", *what, "--out", str(alone))
        print(f"alone: {took:.1f} s; shards in the order {order}", flush=True)
        for index in order:
            one = ("run", *what, "--shard", f"{index}/{count}", "--resume", "--out", str(parts))
            if index in victims:
                process = subprocess.Popen(_command(*one), stderr=subprocess.DEVNULL)
                folder = parts / f"shard-{index}-of-{count}"
                while process.poll() is None and not list(folder.rglob("curve/state.npz")):
                    time.sleep(0.02)
                time.sleep(choose.uniform(0, 0.3))
                cut = process.poll() is None
                process.kill()
                process.wait()
                print(f"shard {index} was killed in its midst: {cut}", flush=True)
            print(f"shard {index}: {_run(*one):.1f} s", flush=True)
        _run("merge", str(parts), "--out", str(merged))
        one, other = load(alone / "result.nc"), load(merged / "result.nc")
        same = all(one[n].values.tobytes() == other[n].values.tobytes() for n in one.variables)
        print("merged: the same bits" if same and one.attrs == other.attrs else "OTHER BITS")


if __name__ == "__main__":
    tyro.extras.subcommand_cli_from_dict({"dask": dask, "shards": shards})
