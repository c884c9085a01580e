"""Store compiled programs in files, and load them without tracing.

A folder's programs are valid only for one version of the traced code, the compiler and the
processor. A program is code, so each file carries a digest, computed with a secret key that only
the folder's owner can read.
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
    """Return the SHA-256 digest of some bytes."""
    return hashlib.sha256(content).digest()


def described(tree: Any, /) -> Any:
    """Return JSON that describes the structure (pytree) of a result, with zeros as leaves.

    Raises:
        TypeError: if a container is not a dict with string keys, a list, a tuple, a `Reading` or a
            `Measured`.
    """
    if tree is None or not isinstance(tree, dict | list | tuple):
        return None if tree is None else 0
    if isinstance(tree, dict):
        if not all(isinstance(name, str) for name in tree):
            raise TypeError(f"dict keys={list(tree)} must be strings. Try str(key)")
        return {"dict": {name: described(value) for name, value in tree.items()}}
    kind = type(tree).__name__
    if type(tree) not in (list, tuple, *_RECORDS.values()):
        raise TypeError(
            f"the result has a container of type={kind}, which JSON cannot describe. "
            f"Try a dict, list or tuple"
        )
    return {kind: [described(value) for value in tree]}


def rebuilt(description: Any, /) -> Any:
    """Rebuild a pytree from the description that `described` returned, with zeros as leaves."""
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
        seen: what `TraceWatch.seen` returned for the trace.
        result: the structure of the program's result as JSON; see `described`.
        program: the bytes that the compiler writes for the program.
    """

    seen: dict[str, list[str]]
    result: Any
    program: bytes

    def written(self, file: Path, key: bytes) -> bytes:
        """Return a file's bytes: a digest with the secret key, a JSON line, the program."""
        about = {"seen": self.seen, "result": self.result}
        content = json.dumps(about).encode() + b"\n" + self.program
        return signature(key, file, content) + content


def read_program(file: Path, /) -> StoredProgram | None:
    """Read a program from a file; return None unless this library wrote the file.

    The result is also None for every file of a folder to which other users can write.
    """
    content = read_signed(file)
    if content is None:
        return None
    about, _, program = content.partition(b"\n")
    return StoredProgram(**json.loads(about), program=program)


def store_program(file: Path, compiled: Any, seen: dict[str, list[str]], /) -> None:
    """Write a compiled program to a file; skip a program that the compiler cannot serialise."""
    # A failed write (a full disk, a program that cannot be serialised) costs only time.
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
    """Load LAPACK; without LAPACK, a stored program that calls it crashes."""
    jax.jit(jax.numpy.linalg.eigvalsh).lower(np.eye(1))


def load_program(kept: StoredProgram, arguments: tuple, /) -> Callable | None:
    """Return a stored program as a function; None if this machine cannot run the program."""
    _lapack_is_ready()
    with contextlib.suppress(Exception):  # any error of a program from another machine
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
    """Switch off JAX's compilation cache in a `with` block.

    JAX cannot serialise a program that came from its cache.
    """
    name = "jax_enable_compilation_cache"
    usual = jax.config.values[name]
    jax.config.update(name, False)
    forget_compilation_cache()  # JAX would otherwise keep its first setting
    try:
        yield
    finally:
        jax.config.update(name, usual)
        forget_compilation_cache()
