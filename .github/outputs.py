"""Run notebooks and keep their outputs in them, as small pictures: `outputs.py FILE ...`.

Notebooks run in fast mode, with the library that this Python imports. The environment needs
`nbclient`, `ipykernel` and `pillow`.
"""

import argparse
import base64
import hashlib
import io
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import nbformat

MOST_PICTURE = 60_000
"""Bytes of a stored picture; a larger number makes sharper pictures and a larger repository."""
MOST_TEXT = 20_000
"""Characters of a stored text; a larger number keeps more of a long table."""
NARROWEST = 400
"""Pixels below which a picture is not made narrower; a larger number may refuse a picture."""

_OF_THIS_RUN = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]| at 0x[0-9a-f]+")
"""Colours of a terminal, and addresses in memory."""


def digest(book: Any, /) -> str:
    """Return a digest of the code of a notebook: the outputs belong to this code."""
    code = [cell.source for cell in book.cells if cell.cell_type == "code"]
    return hashlib.sha256("\0".join(code).encode()).hexdigest()[:16]


def small(png: bytes, /) -> bytes:
    """Return a picture in 64 colours, and narrower until it has few bytes.

    Raises:
        ValueError: if the picture is too large at the least width.
    """
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    while True:
        file = io.BytesIO()
        picture.quantize(64, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
        if file.tell() <= MOST_PICTURE:
            return file.getvalue()
        width, height = (int(0.85 * side) for side in picture.size)
        if width < NARROWEST:
            raise ValueError(
                f"a picture has bytes={file.tell()} at width={picture.width}, expected at most "
                f"{MOST_PICTURE}. Try a simpler picture in the notebook"
            )
        picture = picture.resize((width, height), Image.Resampling.LANCZOS)


_NEW_FOLDER = re.compile(re.escape(tempfile.gettempdir()) + r"/tmp\w+")
"""A folder that the code made for this run; its name is another one each time."""


def _text(words: str) -> str:
    words = _NEW_FOLDER.sub("FOLDER", _OF_THIS_RUN.sub("", words))
    lost = len(words) - MOST_TEXT
    return words if lost <= 0 else f"{words[:MOST_TEXT]}\n... {lost} more characters\n"


def _kept(output: Any) -> Any | None:
    """Return an output as it is stored, or None."""
    if output.output_type == "stream":
        # Progress and remarks of tools are about one machine.
        if output.name == "stderr":
            return None
        return nbformat.v4.new_output("stream", name="stdout", text=_text(output.text))
    if output.output_type == "error":
        raise ValueError(f"a cell raised {output.ename}: {output.evalue}. Try to mend its code")
    data, stored = output.data, {}
    if "application/vnd.jupyter.widget-view+json" in data:  # a bar of progress
        return None
    if "image/png" in data:
        png = small(base64.b64decode(data["image/png"]))
        stored["image/png"] = base64.b64encode(png).decode()
    else:
        kinds = ("text/markdown", "text/plain")
        stored |= {k: _text("".join(data[k])) for k in kinds if "".join(data.get(k, "")).strip()}
    if not stored:
        return None
    count = {"execution_count": None} if output.output_type == "execute_result" else {}
    return nbformat.v4.new_output(output.output_type, data=stored, **count)


def keep(book: Any, /) -> None:
    """Leave in a notebook that was run what is stored of it, and the digest of its code.

    Raises:
        ValueError: if a cell raised, or a picture cannot be made small.
    """
    for cell in book.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [o for o in map(_kept, cell.outputs) if o is not None]
            cell.execution_count = None
    book.metadata["jaxbounds"] = {"outputs_of": digest(book)}


def run(file: Path, /) -> float:
    """Run a notebook and store its outputs in it.

    Returns:
        The seconds from its first cell to its last.
    """
    from nbclient import NotebookClient

    book = nbformat.read(file, as_version=4)
    before = {k: v for k, v in book.metadata.items() if k != "jaxbounds"}
    start = time.perf_counter()
    place = {"metadata": {"path": str(file.parent)}}
    NotebookClient(
        book, timeout=1800, kernel_name="python3", resources=place, record_timing=False
    ).execute()
    seconds = time.perf_counter() - start
    book.metadata.clear()
    book.metadata.update(before)
    keep(book)
    nbformat.write(book, file)
    return seconds


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    os.environ["JAXBOUNDS_FAST"] = "1"
    for name in parser.parse_args().files:
        print(f"{name.stem}: {run(name):.0f} s", flush=True)
