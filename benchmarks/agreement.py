"""Do the verdicts depend on the seed, or on how many processes judge?

    python benchmarks/agreement.py

Runs `jaxbounds verify` with seeds 0 to 9 and compares every status; then seed 0 again in one
process, and compares everything but the seconds, bit for bit. Prints what differs.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import tyro

PROGRAM = "from jaxbounds.cli import main; raise SystemExit(main())"


def verdicts(folder: Path, *flags: str) -> dict[tuple[str, str], dict]:
    """The verdicts of one run, by statement and form, without how long they took."""
    command = [sys.executable, "-c", PROGRAM, "verify", "--out", str(folder), *flags]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(command, check=False, **quiet)
    found = json.loads((folder / "verdicts.json").read_text())
    drop = lambda one: {name: value for name, value in one.items() if name != "seconds"}
    return {(one["id"], one["form"]): drop(one) for one in found}


def main(seeds: int = 10) -> None:
    """Print each form whose status, or whose verdict at seed 0, is not always the same."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        runs = []
        for seed in range(seeds):
            runs.append(verdicts(place / str(seed), "--seed", str(seed)))
            wrong = [key for key, one in runs[-1].items() if not one["as_expected"]]
            print(f"seed {seed}: {len(runs[-1])} forms, not as recorded: {wrong}", flush=True)
        alone = verdicts(place / "alone", "--jobs", "1")
    for key in runs[0]:
        statuses = [run[key]["status"] for run in runs]
        if len(set(statuses)) > 1:
            print(f"{key}: {statuses}")
    differ = [key for key, one in runs[0].items() if alone.get(key) != one]
    print(f"one process and several: {len(differ)} of {len(runs[0])} verdicts differ: {differ}")


if __name__ == "__main__":
    tyro.cli(main)
