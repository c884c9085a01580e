"""Time and memory of the default tests, as README starts them: of each worker, and by file.

    python benchmarks/suite.py

Runs `pytest -n 2` in this checkout and asks the system, twice a second, for the resident memory of
its workers. Printed are the wall and CPU seconds, each worker's peak, and the files that took
longest. Nothing else should run beside it.
"""

import collections
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import tyro

ROOT = Path(__file__).parents[1]


def _workers(parent: psutil.Process) -> list[psutil.Process]:
    """The processes that pytest-xdist started; what these start is none."""
    return [child for child in parent.children() if child.status() != psutil.STATUS_ZOMBIE]


def _watched(command: list[str]) -> tuple[int, float, float, dict[int, float]]:
    """The exit status, wall and CPU seconds, and GiB at most of each worker."""
    started, peaks = time.time(), dict[int, float]()
    running = psutil.Popen(command, cwd=ROOT)
    cpu = dict[int, float]()
    while running.poll() is None:
        for worker in _workers(running):
            try:
                peaks[worker.pid] = max(
                    peaks.get(worker.pid, 0.0), worker.memory_info().rss / 2**30
                )
                used = worker.cpu_times()
                cpu[worker.pid] = sum(used[:4])
            except psutil.Error:
                continue
        time.sleep(0.5)
    return running.returncode, time.time() - started, sum(cpu.values()), peaks


def main(workers: int = 2, select: tuple[str, ...] = ()) -> int:
    """Run the tests and print what they took.

    Args:
        workers: processes.
        select: files or folders; all unless given.
    """
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            str(workers),
            f"--junit-xml={report}",
        ]
        status, wall, cpu, peaks = _watched([*command, *select])
        cases = ElementTree.parse(report).iter("testcase")
        by_file = collections.Counter[str]()
        for case in cases:
            by_file[case.attrib["classname"].split(".Test")[0]] += float(case.attrib["time"])
    print(f"exit status {status}, {wall:.0f} s, {cpu:.0f} CPU s of the workers and their children")
    print("peak of each worker:", ", ".join(f"{peak:.2f} GiB" for peak in peaks.values()))
    for name, seconds in by_file.most_common(20):
        print(f"{seconds:7.1f} s  {name}")
    return status


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
