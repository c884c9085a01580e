"""Compiling the programs of statements cheaply, and keeping what tracing them gave.

Statements are hundreds of small programs that run for milliseconds. Compiled ones are kept by JAX's
own cache, but finding them there takes the traced program, and tracing is then what costs.
"""

import contextlib
import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from jax import export

from jaxbounds.files import whole

CHEAP = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
    "xla_cpu_prefer_vector_width": 128,
}
"""Compiler options that trade the speed of a program for the time of compiling it."""


@functools.cache
def _supported() -> dict[str, Any]:
    """Those of `CHEAP` that this version of the compiler knows."""
    known = {}
    for name, value in CHEAP.items():
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
            known[name] = value
    return known


def compiled(function: Callable) -> Callable:
    """`jit` with the compiler told to be quick."""
    return jax.jit(function, compiler_options=_supported())


def _digest(content: bytes | bytearray) -> bytes:
    return hashlib.sha256(content).digest()


def _read(file: Path) -> bytearray | None:
    """What was kept in a file; None where there is nothing or where it was damaged."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    check, content = content[:32], content[32:]
    return bytearray(content) if check == _digest(content) else None


class Programs:
    """Compiles functions over batches of instances for the CPU; may keep their traces in a folder.

    A trace is found again by the name of the function and the shapes of its arguments alone. So a
    folder must belong to one state of all code that is traced, and to nothing else.
    """

    def __init__(self, folder: str | Path | None = None, /) -> None:
        """Keep traces in `folder`; without one, nothing is kept."""
        self._folder = None if folder is None else Path(folder)

    def __call__(self, function: Callable, /, *name: object) -> Callable:
        """`jit(vmap(function))`.

        Args:
            function: of one instance.
            name: what tells this function from all others that use the folder, in plain values.
        """
        mapped = jax.vmap(function)
        if self._folder is None:
            return compiled(mapped)
        loaded: dict[str, Callable] = {}

        def run(*arguments: Any) -> Any:
            signature = repr((name, jax.tree.map(jax.typeof, arguments)))
            if signature not in loaded:
                loaded[signature] = compiled(self._traced(mapped, signature, arguments).call)
            return loaded[signature](*arguments)

        return run

    def _traced(self, mapped: Callable, signature: str, arguments: tuple) -> export.Exported:
        assert self._folder is not None
        file = self._folder / _digest(signature.encode()).hex()
        kept = _read(file)
        if kept is None:
            # The platform is named because a machine with an accelerator would export for that.
            kept = export.export(jax.jit(mapped), platforms=["cpu"])(*arguments).serialize()
            # A full or read-only disk costs time, not verdicts.
            with contextlib.suppress(OSError), whole(file) as out:
                out.write(_digest(kept) + kept)
        return export.deserialize(kept)


UNKEPT = Programs()
"""One for all who keep nothing: statements share their samplers' programs through it."""
