"""Compiling the programs of statements cheaply, and keeping what tracing and drawing gave.

Statements are hundreds of small programs that run for milliseconds. Compiled ones are kept by JAX's
own cache, but finding them there takes the traced program, and tracing is then what costs. A draw
is the same whenever it is made, so it is kept, too.
"""

import contextlib
import functools
import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import export

from jaxbounds.falsification.storage import load_instance, save_instance
from jaxbounds.falsification.watched import Watch
from jaxbounds.files import whole
from jaxbounds.interpreted import NotInterpreted, interpreted
from jaxbounds.statements import Instance
from jaxbounds.traces import executed, is_fixed

CHEAP = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
    "xla_cpu_prefer_vector_width": 128,
}
"""Compiler options that trade the speed of a program for the time of compiling it."""


LONG = 16_000
"""Equations that run, over all calls, from which on a program is compiled: each takes some
microseconds in NumPy, and to compile it a few hundred."""
SMALL = 2**21
"""Bytes of instances that are worth keeping."""
LARGE = 2**22
"""Numbers in a result from which on a program may take longer to run cheap than to compile well."""


class _Options:
    """Those of `CHEAP` that this version of the compiler knows; they outlive `watched.forget`."""

    known: dict[str, Any] | None = None


def _supported() -> dict[str, Any]:
    if _Options.known is None:
        known = {}
        for name, value in CHEAP.items():
            with contextlib.suppress(jax.errors.JaxRuntimeError):
                jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
                known[name] = value
        _Options.known = known
    return _Options.known


def _for(traced: Any) -> dict[str, Any]:
    """The options for what was traced: large results are worth a little of optimisation."""
    numbers = sum(math.prod(result.shape) for result in jax.tree.leaves(traced.out_info))
    return _supported() | ({"xla_backend_optimization_level": 1} if numbers >= LARGE else {})


def compiled(function: Callable) -> Callable:
    """`jit` with the compiler told to be quick."""
    return jax.jit(function, compiler_options=_supported())


def _digest(content: bytes | bytearray) -> bytes:
    return hashlib.sha256(content).digest()


class Kept(NamedTuple):
    """A trace that was kept, and what was seen when it was made."""

    seen: dict[str, list[str]]
    trace: bytearray

    def written(self) -> bytes:
        """As the bytes of a file: a digest, a line of JSON, the trace."""
        content = json.dumps(self.seen).encode() + b"\n" + bytes(self.trace)
        return _digest(content) + content


def _read(file: Path) -> Kept | None:
    """What was kept in a file; None where there is nothing or where it was damaged."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    check, content = content[:32], content[32:]
    if check != _digest(content):
        return None
    seen, _, trace = content.partition(b"\n")
    return Kept(json.loads(seen), bytearray(trace))


def _kind(leaf: Any) -> tuple[Any, ...]:
    """What tells arguments apart for a compiled program, found faster than JAX's type."""
    weak = getattr(leaf, "weak_type", False)
    return np.shape(leaf), getattr(leaf, "dtype", type(leaf)), weak


def _mapped(function: Callable, watch: Watch | None) -> Callable:
    return jax.vmap(function if watch is None else watch.calls(function))


def _ready(make: Callable[..., Callable]) -> Callable:
    """A function that is made once for arguments of the same shapes and types."""
    ready: dict[Any, Callable] = {}

    def run(*arguments: Any) -> Any:
        leaves, structure = jax.tree.flatten(arguments)
        shapes = structure, *map(_kind, leaves)
        if shapes not in ready:
            ready[shapes] = make(*arguments)
        return ready[shapes](*arguments)

    return run


class Programs:
    """Compiles functions over batches of instances for the CPU; may keep their traces in a folder.

    A trace is found again by the name of the function and the shapes of its arguments alone. So a
    folder must belong to one state of all code that is traced, and to nothing else.
    """

    def __init__(self, folder: str | Path | None = None, /) -> None:
        """Keep traces in `folder`; without one, nothing is kept."""
        self._folder = None if folder is None else Path(folder)

    def __call__(
        self, function: Callable, /, *name: object, watch: Watch | None = None
    ) -> Callable:
        """`jit(vmap(function))`.

        Args:
            function: of one instance.
            name: what tells this function from all others that use the folder, in plain values.
            watch: is told what the trace shows.
        """
        mapped = _mapped(function, watch)

        def make(*arguments: Any) -> Callable:
            signature = repr((name, jax.tree.map(jax.typeof, arguments)))
            traced = self._traced(mapped, signature, arguments, watch)
            return traced.lower().compile(compiler_options=_for(traced))

        return _ready(make)

    def few(
        self, function: Callable, /, *name: object, calls: int, watch: Watch | None = None
    ) -> Callable:
        """The same for a few calls, in NumPy: compiled is what would take long there.

        Args:
            function: of one instance.
            name: as of `__call__`.
            calls: about how many there will be.
            watch: is told what the trace shows.
        """
        mapped = _mapped(function, watch)
        compile_it = self(function, *name, watch=watch)

        def make(*arguments: Any) -> Callable:
            traced, result = jax.make_jaxpr(mapped, return_shape=True)(*arguments)
            try:
                if calls * executed(traced.jaxpr) > LONG:
                    return compile_it
                run = interpreted(traced)
            except NotInterpreted:
                return compile_it
            if watch is not None:
                self._shown(watch, mapped, arguments, traced)
            structure = jax.tree.structure(result)

            def in_numpy(*given: Any) -> Any:
                try:
                    return jax.tree.unflatten(structure, run(*jax.tree.leaves(given)))
                except NotInterpreted:
                    return compile_it(*given)

            return in_numpy

        return _ready(make)

    def drawn(self, draw: Callable[[], Instance], /, *name: object) -> Instance:
        """What `draw` gives, or gave when it was called by that name before.

        Args:
            draw: makes the instances.
            name: as of `__call__`; all that they depend on beside the code.
        """
        if self._folder is None:
            return draw()
        file = self._folder / f"{_digest(repr(name).encode()).hex()}.npz"
        if file.exists():
            with contextlib.suppress(ValueError, OSError):  # damaged: it is made again
                return load_instance(file).instance
        made = draw()
        if sum(leaf.nbytes for leaf in jax.tree.leaves(made)) <= SMALL:
            with contextlib.suppress(OSError, TypeError):  # no place, or no dict of arrays
                save_instance(file, made)
        return made

    def _traced(
        self, mapped: Callable, signature: str, arguments: tuple, watch: Watch | None
    ) -> Any:
        """The program for such arguments, traced or found."""
        if self._folder is not None:
            kept = self._kept(mapped, signature, arguments, watch)
            if watch is not None:
                watch.recall(kept.seen)
            return jax.jit(export.deserialize(kept.trace).call).trace(*arguments)
        traced = jax.jit(mapped).trace(*arguments)
        if watch is not None:
            self._shown(watch, mapped, arguments, traced.jaxpr)
        return traced

    def _shown(self, watch: Watch, mapped: Callable, arguments: tuple, traced: Any) -> None:
        """Tell who watches what was traced; of code that may change, whether it is the same again.

        Where something is kept the code is the key.
        """
        watch.program(traced, functools.partial(jax.eval_shape, mapped, *arguments))
        if watch.fixed is None and self._folder is None:
            watch.fixed = is_fixed(mapped, *arguments, before=traced)

    def _kept(
        self, mapped: Callable, signature: str, arguments: tuple, watch: Watch | None
    ) -> Kept:
        assert self._folder is not None
        file = self._folder / _digest(signature.encode()).hex()
        kept = _read(file)
        if kept is None:
            program = jax.jit(mapped)
            if watch is not None:
                again = functools.partial(jax.eval_shape, mapped, *arguments)
                watch.program(program.trace(*arguments).jaxpr, again)
            # The platform is named because a machine with an accelerator would export for that.
            trace = export.export(program, platforms=["cpu"])(*arguments).serialize()
            kept = Kept({} if watch is None else watch.seen(), trace)
            if watch is not None and watch.blind:
                return kept  # nobody saw what it calls
            # A full or read-only disk costs time, not verdicts.
            with contextlib.suppress(OSError), whole(file) as out:
                out.write(kept.written())
        return kept


UNKEPT = Programs()
"""One for all who keep nothing: statements share their samplers' programs through it."""
