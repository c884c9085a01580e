"""Kill sweeps at random moments, change something after half of the kills, and compare bit for bit.

    python benchmarks/sweeps_killed.py --kills 30

A sweep runs in a process of its own and is ended by SIGKILL. After every second kill it is started
again with another rate, seed, step function or version: it must refuse, name the change, and leave
every file as it was. Then it is continued without a change until it ends: its bits must be those of
a sweep that nobody disturbed, and a file of the user's in the folder must be whole.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from jaxbounds.experiments.sweeps import identity, lanes_of, sweep
from jaxbounds.experiments.sweeps.checkpoint import leaves_of
from jaxbounds.ground.occupied import LOCK

CHANGES = {
    "rate": "lanes['rate'], values",
    "seed": "lanes['key'], values",
    "step": "step, the program",
    "version": "jaxbounds",
}
"""What is changed, and the words that the refusal must hold."""
REFUSED = 2


def child(folder: Path, change: str, steps: int) -> None:
    """The sweep, which goes on where it was cut; its bits go into result.json beside the folder."""
    if change == "version":
        usual = identity.versions()
        identity.versions = lambda: usual | {"jaxbounds": "0.0.0"}
    rates = np.float32([0.01, 0.2 if change == "rate" else 0.1])
    key = jax.random.key(7 if change == "seed" else 0)
    lanes, _ = lanes_of(jax.random.split(key, 5), rate=rates)

    def start(lane):
        return {"w": jax.random.normal(lane["key"], (40,), jnp.bfloat16), "key": lane["key"]}

    def step(lane, state):
        key, noise = jax.random.split(state["key"])
        slope = jnp.tanh(state["w"].astype(jnp.float32))
        if change == "step":
            slope = jnp.sin(slope)
        moved = state["w"] - lane["rate"] * (slope + 0.1 * jax.random.normal(noise, (40,)))
        return {"w": moved.astype(jnp.bfloat16), "key": key}

    measure = lambda lane, state: {"loss": jnp.sum(state["w"].astype(jnp.float32) ** 2)}
    try:
        found = sweep(start, step, measure, lanes, steps, every=10, chunk=100, folder=folder,
                      resume=True, on_record=folder.parent / "log.csv")  # fmt: skip
    except ValueError as refusal:
        print(refusal)
        raise SystemExit(REFUSED) from None
    arrays = [leaf.tobytes().hex() for leaf in leaves_of((found.state, found.metrics))]
    log = (folder.parent / "log.csv").read_text()
    (folder.parent / "result.json").write_text(json.dumps([arrays, log]))


def _start(folder: Path, change: str, steps: int) -> subprocess.Popen:
    words = ["--folder", folder, "--change", change, "--steps", steps]
    command = [sys.executable, __file__, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _ended(folder: Path, steps: int) -> list:
    process = _start(folder, "", steps)
    said = process.communicate()[0]
    if process.returncode:
        raise SystemExit(f"a sweep that should go on did not: {said}")
    return json.loads((folder.parent / "result.json").read_text())


def _content(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.iterdir() if path.name != LOCK] if folder.exists() else []
    return {path.name: path.read_bytes() for path in files}


def main(
    *, kills: int = 30, seed: int = 0, steps: int = 20_000, folder: str = "", change: str = ""
) -> None:
    """Print a line for each sweep that came to its end.

    Args:
        kills: how many.
        seed: of the moments.
        steps: of the sweep; more leave more time for kills.
        folder: of the sweep that this process runs, if it is a child.
        change: in what the child differs.
    """
    if folder:
        child(Path(folder), change, steps)
        return
    choose, refusals, resumed = random.Random(seed), 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        whole = Path(scratch) / "whole" / "sweep"
        whole.parent.mkdir()
        began = time.perf_counter()
        expected = _ended(whole, steps)
        took = time.perf_counter() - began
        print(f"undisturbed: {took:.1f} s", flush=True)
        done = turn = 0
        while done < kills:
            place = Path(scratch) / f"cut{turn}" / "sweep"
            place.mkdir(parents=True)
            (place / "data_of_mine.npz").write_bytes(b"mine")
            turn += 1
            for _ in range(min(3, kills - done)):
                process = _start(place, "", steps)
                try:
                    process.wait(choose.uniform(0.3, 1.0) * took)
                except subprocess.TimeoutExpired:
                    process.kill()
                process.communicate()
                done += 1
                resumed += (place / "state.npz").is_file()
                before = _content(place)
                if done % 2 and "state.npz" in before:
                    name = choose.choice(list(CHANGES))
                    process = _start(place, name, steps)
                    said = process.communicate()[0]
                    if process.returncode != REFUSED or CHANGES[name] not in said:
                        raise SystemExit(f"another {name} was not refused by its name: {said}")
                    if _content(place) != before:
                        raise SystemExit(f"the refusal of another {name} changed the folder")
                    refusals += 1
            if _ended(place, steps) != expected:
                raise SystemExit("continued, it gives other bits")
            if (place / "data_of_mine.npz").read_bytes() != b"mine":
                raise SystemExit("a file of the user's is gone")
            print(f"{done} kills: the same bits", flush=True)
    print(f"{done} kills, {resumed} with a checkpoint, {refusals} changes refused by their names")


if __name__ == "__main__":
    tyro.cli(main)
