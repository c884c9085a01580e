"""Kill a sweep at random moments, resume it, and compare with an undisturbed run bit for bit.

python benchmarks/kill_and_resume.py [KILLS [EXPERIMENT [OPTIONS]]]

Without an experiment a short version of Figure 2; "multihead.fig6 --preset quick" is another.
"""

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from jaxbounds.results import load

SWEEP = ("multihead.fig2", "--heads", "1", "16", "--trials", "3", "--steps", "6000")


def command(folder: Path, *flags: str) -> list[str]:
    """The sweep as a user would start it."""
    program = "from jaxbounds.cli import main; raise SystemExit(main())"
    sweep = sys.argv[2:] or SWEEP
    return [sys.executable, "-c", program, "run", *sweep, "--out", str(folder), *flags]


def killed(folder: Path, after: float, *flags: str) -> bool:
    """Run for `after` seconds at most; whether it had to be killed."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command(folder, *flags), **quiet)
    try:
        if process.wait(after) != 0:
            raise SystemExit(f"the sweep failed by itself: {' '.join(command(folder, *flags))}")
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    return False


def main(kills: int) -> None:
    """Print one line for each resumed sweep that came to its end."""
    choose = random.Random(0)
    with tempfile.TemporaryDirectory() as scratch:
        undisturbed, broken = Path(scratch) / "undisturbed", Path(scratch) / "broken"
        killed(undisturbed, 1e6)
        started = time.perf_counter()
        killed(undisturbed, 1e6)
        whole = time.perf_counter() - started
        print(f"undisturbed, compiled programs cached: {whole:.1f} s")
        expected, done, first = load(undisturbed / "result.nc"), 0, True
        since = 0
        while done < kills or since:
            wait = choose.uniform(0, 1.1 * whole) if done < kills else 1e6
            cut = killed(broken, wait, *([] if first else ["--resume"]))
            first = False
            if cut:
                done, since = done + 1, since + 1
                continue
            found = load(broken / "result.nc")
            for name in expected:
                np.testing.assert_array_equal(found[name].values, expected[name].values)
            print(f"resumed after {since} kills ({done} in all): the same bits")
            since, first = 0, True


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
