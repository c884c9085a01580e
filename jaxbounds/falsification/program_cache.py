"""Compiled programs in files, found again without a trace.

JAX keeps compiled programs as well, but finds them by the traced program. A folder here belongs to
one state of all traced code, of the compiler and of the processor. A file that cannot be read is
made again. A program is code, and the compiler writes it as a pickle. So each file carries a digest
under a key of the folder, which only the folder's owner can read.
"""

import contextlib
import functools
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbounds.falsification.evaluation import Reading
from jaxbounds.falsification.measure import Measured
from jaxbounds.ground.files import whole
from jaxbounds.ground.jax_internals import forget_compilation_cache, serialize_executable
from jaxbounds.ground.private import key_of, read_signed, signature

_RECORDS: dict[str, Any] = {"Measured": Measured, "Reading": Reading}


def digest(content: bytes | bytearray, /) -> bytes:
    """Return 32 bytes that tell contents apart."""
    return hashlib.sha256(content).digest()


def described(tree: Any, /) -> Any:
    """Describe the containers of a result as JSON: its leaves become zeros.

    Raises:
        TypeError: if a container is no dict by strings, list, tuple, `Reading` or `Measured`.
    """
    if tree is None or not isinstance(tree, dict | list | tuple):
        return None if tree is None else 0
    if isinstance(tree, dict):
        if not all(isinstance(name, str) for name in tree):
            raise TypeError(f"dict keys={list(tree)} must be strings. Try str(key)")
        return {"dict": {name: described(value) for name, value in tree.items()}}
    kind = type(tree).__name__
    if type(tree) not in (list, tuple, *_RECORDS.values()):
        raise TypeError(f"type={kind} cannot be described as JSON. Try a dict, list or tuple")
    return {kind: [described(value) for value in tree]}


def rebuilt(description: Any, /) -> Any:
    """Rebuild the containers that `described` described, with zeros for leaves."""
    if not description:
        return description
    ((kind, parts),) = description.items()
    if kind == "dict":
        return {name: rebuilt(part) for name, part in parts.items()}
    values = list(map(rebuilt, parts))
    if kind in _RECORDS:
        return _RECORDS[kind](*values)
    return values if kind == "list" else tuple(values)


class StoredProgram(NamedTuple):
    """A compiled program, with the record of its trace.

    Attributes:
        seen: the record of the trace, see `TraceWatch.seen`.
        result: the containers of its result, see `described`.
        program: the program as the compiler writes it.
    """

    seen: dict[str, list[str]]
    result: Any
    program: bytes

    def written(self, file: Path, key: bytes) -> bytes:
        """Return the bytes of a file: a digest under the folder's key, a line of JSON, the program.

        Args:
            file: the path of the file.
            key: the key of its folder.
        """
        about = {"seen": self.seen, "result": self.result}
        content = json.dumps(about).encode() + b"\n" + self.program
        return signature(key, file, content) + content


def read_program(file: Path, /) -> StoredProgram | None:
    """Read a program from a file; None where no program of this library is.

    None stands for a missing or damaged file, for a file from elsewhere, and for every file of a
    folder that others can write.
    """
    content = read_signed(file)
    if content is None:
        return None
    about, _, program = content.partition(b"\n")
    return StoredProgram(**json.loads(about), program=program)


def store_program(file: Path, compiled: Any, seen: dict[str, list[str]], /) -> None:
    """Write a compiled program where it will be found; skip a program that cannot be written."""
    # A full or read-only disk, or a program that cannot be written, costs time, not verdicts.
    with contextlib.suppress(OSError, TypeError, ValueError, NotImplementedError):
        key = key_of(file.parent)
        if key is None:
            return
        program, _, result = serialize_executable.serialize(compiled)
        shape = described(jax.tree.unflatten(result, [0] * result.num_leaves))
        with whole(file, lasting=False) as out:
            out.write(StoredProgram(seen, shape, program).written(file, key))


@functools.cache
def _lapack_is_ready() -> None:
    """Load LAPACK by lowering a program that needs it: a loaded program would crash without it."""
    jax.jit(jax.numpy.linalg.eigvalsh).lower(np.eye(1))


def load_program(kept: StoredProgram, arguments: tuple, /) -> Callable | None:
    """Return the program, ready for such arguments; None where this machine cannot run it."""
    _lapack_is_ready()
    with contextlib.suppress(Exception):  # any refusal of a program that was written elsewhere
        return serialize_executable.deserialize_and_load(
            kept.program,
            jax.tree.structure((arguments, {})),
            jax.tree.structure(rebuilt(kept.result)),
            backend="cpu",
            execution_devices=jax.devices("cpu")[:1],
        )
    return None


@contextlib.contextmanager
def without_jax_cache() -> Iterator[None]:
    """Switch off JAX's own cache for the length of a `with` block.

    A program from JAX's cache could not be written again: its machine code is gone by then.
    """
    name = "jax_enable_compilation_cache"
    usual = jax.config.values[name]
    jax.config.update(name, False)
    forget_compilation_cache()  # else JAX keeps the setting that it read first
    try:
        yield
    finally:
        jax.config.update(name, usual)
        forget_compilation_cache()
