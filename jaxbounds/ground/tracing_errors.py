"""Describe an exception that user code raises while JAX traces it: its line, cause and cure."""

import linecache
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path

from jax import errors

LIBRARIES = ("jax", "jaxlib", "jaxbounds", "numpy", "flax", "equinox", "optax", "jaxtyping")
"""The names of packages whose code does not count as the user's code.

An error message never quotes a line of code of a package with one of these names.
"""

OWN = str(Path(__file__).parents[1])
"""The folder of this library's code."""

STANDARD = sysconfig.get_paths()["stdlib"]
"""The folder of Python's standard library."""


def is_library(filename: str, /) -> bool:
    """Return whether a file belongs to JAX, to this library or to Python, not to the user."""
    parts = Path(filename).parts
    if "site-packages" in parts:
        return parts[parts.index("site-packages") + 1] in LIBRARIES
    return filename.startswith((OWN, STANDARD)) or (
        filename.startswith("<") and "ipython" not in filename
    )


def _chain(problem: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and its causes; the user's lines are in a traceback of one of them."""
    while problem is not None:
        yield problem
        problem = problem.__cause__


def users_line(problem: BaseException, /) -> str:
    """Return the user's innermost line in a traceback as text, such as " at net.py:12: `code`"."""
    frames = [
        frame
        for one in _chain(problem)
        for frame in traceback.extract_tb(one.__traceback__)
        if not is_library(frame.filename)
    ]
    if not frames:
        return ""
    last = frames[-1]
    code = (last.line or linecache.getline(last.filename, last.lineno or 0)).strip()
    return f" at {Path(last.filename).name}:{last.lineno}" + (f": `{code}`" if code else "")


TRACED = (
    errors.ConcretizationTypeError,
    errors.TracerArrayConversionError,
    errors.TracerIntegerConversionError,
    errors.NonConcreteBooleanIndexError,
    errors.UnexpectedTracerError,
)
"""The exceptions of code that needs the value of an array while JAX traces the code."""


def trace_fault(problem: BaseException, /) -> tuple[str, str] | None:
    """Return the cause of an exception of traced code as a predicate, and the change to try.

    The result is None if the exception does not come from a trace.
    """
    if isinstance(problem, errors.TracerArrayConversionError):
        return "hands a traced array to NumPy or Python", "jax.numpy"
    if isinstance(problem, errors.TracerBoolConversionError):
        return "decides in Python about a traced number", "jnp.where or jax.lax.cond"
    if isinstance(problem, errors.NonConcreteBooleanIndexError):
        return "takes the entries of a traced mask", "jnp.where"
    if isinstance(problem, errors.TracerIntegerConversionError | errors.ConcretizationTypeError):
        return "needs the value of a traced number in Python", "jax.numpy, or a fixed number"
    if isinstance(problem, errors.UnexpectedTracerError):
        return "uses an array of an earlier trace", "to pass all arrays as arguments"
    return None
