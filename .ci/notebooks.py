"""Run notebooks in fast mode, each beside a wheel and without the library: `notebooks.py FILE ...`.

The environment of this Python needs `nbclient` and `ipykernel`.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def run(file: Path) -> float:
    """The seconds that a notebook takes, from its first cell to its last."""
    subprocess.run([sys.executable, "-m", "pip", "uninstall", "-q", "-y", "jaxbounds"], check=True)
    book = nbformat.read(file, as_version=4)
    start = time.perf_counter()
    place = {"metadata": {"path": str(file.parent)}}
    NotebookClient(book, timeout=900, kernel_name="python3", resources=place).execute()
    return time.perf_counter() - start


if __name__ == "__main__":
    os.environ["JAXBOUNDS_FAST"] = "1"
    for name in sys.argv[1:]:
        print(f"{Path(name).stem}: {run(Path(name)):.0f} s", flush=True)
