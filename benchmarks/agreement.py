"""Do the verdicts depend on the seed, or on how many processes judge?

    python benchmarks/agreement.py
    python benchmarks/agreement.py multihead.lem7 "qstr.lem3*" --jobs 1

Runs `jaxbounds verify` with seeds 0 to 9, on all statements or on those whose ids match, and
compares every status. Then seed 0 again in one process, and compares everything but the seconds,
bit for bit; with `--jobs 1` there is nothing to compare. Prints what differs, and exits with 1 if
anything does.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import tyro

PROGRAM = "from jaxbounds.cli import main; raise SystemExit(main())"
Verdicts = dict[tuple[str, str], dict]
"""The texts by statement and form."""


def verdicts(folder: Path, *arguments: str) -> Verdicts:
    """The verdicts of one run, without how long they took.

    Raises:
        SystemExit: with what the run said, if it left no verdicts.
    """
    command = [sys.executable, "-c", PROGRAM, "verify", *arguments, "--out", str(folder)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    file = folder / "verdicts.json"
    if not file.is_file():
        raise SystemExit(f"no verdicts of {' '.join(arguments)}: {ran.stderr or ran.stdout}")
    found = json.loads(file.read_text())
    drop = lambda one: {name: value for name, value in one.items() if name != "seconds"}
    return {(one["id"], one["form"]): drop(one) for one in found}


def by_seed(runs: list[Verdicts]) -> int:
    """Print each form whose status is not always the same, with the reasons; how many there are."""
    differ = 0
    for key in runs[0]:
        seen = [run[key] for run in runs]
        reasons = {one["status"]: one["reason"] for one in seen}
        if len(reasons) > 1:
            differ += 1
            print(f"{' '.join(key)}: {', '.join(one['status'] for one in seen)}; {reasons}")
    print(f"{differ} of {len(runs[0])} forms have not the same status at all {len(runs)} seeds")
    return differ


def main(
    patterns: Annotated[tuple[str, ...], tyro.conf.Positional] = (), seeds: int = 10, jobs: int = 0
) -> int:
    """Print each form whose status, or whose verdict at seed 0, is not always the same.

    Args:
        patterns: ids, beginnings of ids or shell patterns, as of `jaxbounds verify`; all if none.
        seeds: how many.
        jobs: processes; 0 means one for each core.
    """
    with tempfile.TemporaryDirectory() as scratch:
        place, runs, differ = Path(scratch), [], 0
        for seed in range(seeds):
            flags = "--seed", str(seed), "--jobs", str(jobs)
            runs.append(verdicts(place / str(seed), *patterns, *flags))
            wrong = [key for key, one in runs[-1].items() if not one["as_expected"]]
            print(f"seed {seed}: {len(runs[-1])} forms, not as recorded: {wrong}", flush=True)
        if jobs != 1:
            alone = verdicts(place / "alone", *patterns, "--jobs", "1")
            apart = [key for key, one in runs[0].items() if alone.get(key) != one]
            print(f"one process and several: {len(apart)} of {len(alone)} verdicts differ: {apart}")
            differ += len(apart)
    return int(by_seed(runs) + differ > 0)


if __name__ == "__main__":
    raise SystemExit(tyro.cli(main))
