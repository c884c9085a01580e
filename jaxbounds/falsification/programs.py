"""Programs of statements, run in NumPy or compiled, whichever takes less time.

Statements are hundreds of small programs that run for milliseconds, most of them a few times. A
folder may keep compiled programs and draws.
"""

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxbounds.claims.statements import Instance
from jaxbounds.falsification.program_cache import (
    digest,
    load_program,
    read_program,
    store_program,
    without_jax_cache,
)
from jaxbounds.falsification.storage import load_instance, save_instance
from jaxbounds.falsification.trace_watch import TraceWatch
from jaxbounds.programs.interpreted import NotInterpreted, interpreted
from jaxbounds.programs.traces import executed, is_fixed

CHEAP = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
    "xla_cpu_prefer_vector_width": 128,
}
"""Compiler options that trade the speed of a program for the time of compiling it."""


LONG, HEAVY = 16_000, 1_000_000
"""Equations that run, over all calls. Up to LONG a program runs in NumPy, where an equation takes
some microseconds; compiling takes a few hundred. From HEAVY on a program is compiled well. A larger
LONG runs more programs in NumPy, a larger HEAVY compiles more of them quickly.
"""
MANY = 100
"""Calls that are assumed where the caller gives no number; a larger number compiles more programs.
"""
SMALL = 2**23
"""Bytes of instances up to which draws are kept; a larger limit fills more disk."""


class _Options:
    """The options of `CHEAP` that this version of the compiler knows.

    They outlive `watched.forget`.
    """

    known: dict[str, Any] | None = None


def _accepts(options: dict[str, Any]) -> bool:
    with contextlib.suppress(jax.errors.JaxRuntimeError):
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
        return True
    return False


def _supported() -> dict[str, Any]:
    if _Options.known is None:
        known = {name: value for name, value in CHEAP.items() if _accepts({name: value})}
        _Options.known = CHEAP if _accepts(CHEAP) else known
    return _Options.known


def compiled(function: Callable) -> Callable:
    """Return `jit` of a function, with the compiler set to compile quickly."""
    return jax.jit(function, compiler_options=_supported())


def _kind(leaf: Any) -> tuple[Any, ...]:
    """Return a key that tells arguments apart for a compiled program, faster than JAX's type."""
    weak = getattr(leaf, "weak_type", False)
    return np.shape(leaf), getattr(leaf, "dtype", type(leaf)), weak


class Programs:
    """A runner of functions over batches of instances on the CPU; it may keep compiled programs.

    A program is found again by the name of the function and the shapes of its arguments alone. So a
    folder must belong to one state of all code that is traced, and to nothing else.
    """

    def __init__(self, folder: str | Path | None = None, /) -> None:
        """Keep programs and draws in `folder`; without one, nothing is kept."""
        self._folder = None if folder is None else Path(folder)

    def __call__(
        self,
        function: Callable,
        /,
        *name: object,
        calls: int = MANY,
        watch: TraceWatch | None = None,
    ) -> Callable:
        """Return `jit(vmap(function))`; in NumPy where so few calls are not worth compiling it.

        Args:
            function: a function of one instance.
            name: plain values that tell this function from all others that use the folder.
            calls: the number of calls, about, for arguments of one shape.
            watch: the watch that records the trace.
        """
        mapped = jax.vmap(function if watch is None else watch.calls(function))
        ready: dict[Any, Callable] = {}

        def run(*arguments: Any) -> Any:
            leaves, structure = jax.tree.flatten(arguments)
            shapes = structure, *map(_kind, leaves)
            if shapes not in ready:
                signature = repr((name, jax.tree.map(jax.typeof, arguments)))
                ready[shapes] = self._made(mapped, signature, arguments, calls, watch)
            return ready[shapes](*arguments)

        return run

    def cached_draw(self, draw: Callable[[], Instance], /, *name: object) -> Instance:
        """Return the result of `draw`, or its earlier result under this name.

        Args:
            draw: a function that makes the instances.
            name: the name as in `__call__`, with all that the instances depend on beside the code.
        """
        if self._folder is None:
            return draw()
        file = self._folder / f"{digest(repr(name).encode()).hex()}.npz"
        if file.exists():
            with contextlib.suppress(ValueError, OSError):  # a damaged file is made again
                return load_instance(file).instance
        made = draw()
        if sum(leaf.nbytes for leaf in jax.tree.leaves(made)) <= SMALL:
            with contextlib.suppress(OSError, TypeError):  # a full disk, or no dict of arrays
                save_instance(file, made, lasting=False)
        return made

    def _made(
        self,
        mapped: Callable,
        signature: str,
        arguments: tuple,
        calls: int,
        watch: TraceWatch | None,
    ) -> Callable:
        """Return a function for such arguments: kept, in NumPy, or compiled."""
        file = self._folder and self._folder / digest(signature.encode()).hex()
        if file and (kept := read_program(file)) and (found := load_program(kept, arguments)):
            if watch is not None:
                watch.recall(kept.seen)
            anew = lambda: self._compiled(mapped, file, arguments, calls, watch)
            return _or_else(found, anew, jax.errors.JaxRuntimeError)
        return self._compiled(mapped, file, arguments, calls, watch)

    def _compiled(
        self, mapped: Callable, file: Any, arguments: tuple, calls: int, watch: TraceWatch | None
    ) -> Callable:
        """Return a function for such arguments, in NumPy or compiled, without a kept program."""
        traced = jax.jit(mapped).trace(*arguments)
        if watch is not None:
            retrace = functools.partial(jax.eval_shape, mapped, *arguments)
            watch.program(traced.jaxpr, jax.tree.leaves(arguments), retrace=retrace)
            if watch.fixed is None and file is None:  # a folder's key is the code itself
                watch.fixed = is_fixed(mapped, *arguments, before=traced.jaxpr)
        work = calls * executed(traced.jaxpr.jaxpr)
        cheap = _supported() | {"xla_backend_optimization_level": int(work >= HEAVY)}
        compile_it = lambda: traced.lower().compile(compiler_options=cheap)
        if work <= LONG:
            with contextlib.suppress(NotInterpreted):
                return _or_else(_in_numpy(traced), compile_it, NotInterpreted)
        if file is None or (watch is not None and watch.blind):  # the called functions are unknown
            return compile_it()
        with without_jax_cache():
            made = compile_it()
        store_program(file, made, {} if watch is None else watch.seen())
        return made


def _in_numpy(traced: Any) -> Callable:
    """Return a traced function that NumPy runs.

    Raises:
        NotInterpreted: if NumPy has no rule for one of its primitives; in a call, where NumPy may
            give another result.
    """
    run, structure = interpreted(traced.jaxpr), jax.tree.structure(traced.out_info)
    return lambda *given: jax.tree.unflatten(structure, run(*jax.tree.leaves(given)))


def _or_else(run: Callable, make: Callable[[], Callable], refusal: type[Exception]) -> Callable:
    """Return a function that falls back to another, made once, where it refuses."""
    other = functools.cache(make)

    def either(*given: Any) -> Any:
        try:
            return run(*given)
        except refusal:
            return other()(*given)

    return either


UNKEPT = Programs()
"""The programs of callers that keep nothing: statements share their samplers' programs through it.
"""
