"""Print the platforms that this machine can provide: lines of an executable and its packages.

Each further Python from 3.11 on takes the newest packages, the newest Python Colab's list, and
Python 3.11 the floors.
"""

import glob
import os
import subprocess
import sys
from pathlib import Path

ASK = "import sys, venv, ensurepip; print(*sys.version_info[:2])"


def pythons() -> dict[tuple[int, int], str]:
    """The executable of each version of Python from 3.11 on that starts."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    folders = [*os.environ["PATH"].split(os.pathsep), f"{root}/versions/*/bin"]
    found = {}
    for file in (f for folder in folders for f in sorted(glob.glob(f"{folder}/python3.[0-9]*"))):
        if not file.rsplit(".", 1)[1].isdecimal():
            continue
        told = subprocess.run([file, "-c", ASK], capture_output=True, text=True)
        if told.returncode == 0 and (version := tuple(map(int, told.stdout.split()))) >= (3, 11):
            found.setdefault(version, file)
    return found


if __name__ == "__main__":
    there = pythons()
    for version in sorted(there.keys() - {sys.version_info[:2]}):
        print(there[version], "newest")
    if there:
        lists = sorted(file.stem for file in Path(__file__).parent.glob("colab-*.txt"))
        print(there[max(there)], lists[-1])
    if (3, 11) in there:
        print(there[3, 11], "floors")
