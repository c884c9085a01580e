"""Find the line of code that declares a statement, even if helper functions make the statement."""

import sys
import sysconfig
import types
from typing import NamedTuple


class Line(NamedTuple):
    """A line of a Python file: path of the file, number from 1, and name of the module."""

    file: str
    line: int
    module: str


DECLARES = ("jaxbounds.claims", "dataclasses", "contextlib", "functools")
"""`caller` skips the frames of these modules, which declare statements for their callers."""
ENGINE = frozenset(
    ("certification", "claims", "cli", "constants", "falsification", "ground", "papers", "programs",
     "pytest_plugin", "report", "runs", "testing")
)  # fmt: skip
"""The library's packages that may copy a statement, but that never declare a new statement."""


def caller() -> Line | None:
    """Return the line outside of the library that declares a statement; None if there is none.

    While a module loads, the result is its top-level line, even if a helper declares the statement.
    """
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and _module(frame).startswith(DECLARES):
        frame = frame.f_back
    nearest = frame
    while frame is not None and not _is_foreign(frame):
        if frame.f_code.co_name == "<module>":
            return _line(frame)
        frame = frame.f_back
    return None if nearest is None or _is_foreign(nearest) else _line(nearest)


def _line(frame: types.FrameType) -> Line:
    return Line(frame.f_code.co_filename, frame.f_lineno, _module(frame))


def _module(frame: types.FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_foreign(frame: types.FrameType) -> bool:
    """Whether a frame belongs to Python, an installed package or the library without its papers."""
    first, _, rest = _module(frame).partition(".")
    if first == "jaxbounds":
        return rest.partition(".")[0] in ENGINE or not rest
    file = frame.f_code.co_filename
    return file.startswith(("<frozen", *_INSTALLED)) or "-packages" in file


_INSTALLED = (sysconfig.get_paths()["stdlib"],)
