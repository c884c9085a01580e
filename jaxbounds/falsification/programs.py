"""Run the programs of statements in NumPy or compiled, whichever takes less time."""

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
"""Compiler options that make the compilation faster and the program slower."""


LONG, HEAVY = 16_000, 1_000_000
"""NumPy runs a program of up to LONG executed operations; the compiler fully optimises from HEAVY
on. A larger LONG runs more programs in NumPy; a larger HEAVY optimises fewer programs."""
MANY = 100
"""Default number of expected calls of a program. A larger number compiles more programs."""
SMALL = 2**23
"""The library stores random draws of at most this many bytes. A larger limit fills more disk."""


class _Options:
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
    """Return `jit` of a function with the options of a fast compilation."""
    return jax.jit(function, compiler_options=_supported())


def _kind(leaf: Any) -> tuple[Any, ...]:
    """Return a key of an array's shape and type; the key is faster to compute than JAX's own."""
    weak = getattr(leaf, "weak_type", False)
    return np.shape(leaf), getattr(leaf, "dtype", type(leaf)), weak


class Programs:
    """Runs functions over batches of instances on the CPU; it may store compiled programs.

    The name of a function and the shapes of its arguments alone identify a stored program. All
    programs in a folder must therefore come from one version of the traced code.
    """

    def __init__(self, folder: str | Path | None = None, /) -> None:
        """Store compiled programs and random draws in `folder`; without a folder, store nothing."""
        self._folder = None if folder is None else Path(folder)

    def __call__(
        self,
        function: Callable,
        /,
        *name: object,
        calls: int = MANY,
        watch: TraceWatch | None = None,
    ) -> Callable:
        """Return `jit(vmap(function))`, which runs in NumPy if the calls are too few to compile it.

        Args:
            function: a function that takes one instance.
            name: plain values under which the folder of programs stores the function's program.
            calls: the expected number of calls of the function with arguments of one shape.
            watch: the object that records the function's trace; None records no trace.
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
        """Return the stored draws with the name `name`, or draw the instances and store them.

        Args:
            draw: a function that draws the instances.
            name: plain values that identify the draws: all inputs of the draws except the code.
        """
        if self._folder is None:
            return draw()
        file = self._folder / f"{digest(repr(name).encode()).hex()}.npz"
        if file.exists():
            with contextlib.suppress(ValueError, OSError):  # a damaged file: draw again
                return load_instance(file).instance
        made = draw()
        if sum(leaf.nbytes for leaf in jax.tree.leaves(made)) <= SMALL:
            with contextlib.suppress(OSError, TypeError):  # a full disk, or not a dict of arrays
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
        traced = jax.jit(mapped).trace(*arguments)
        if watch is not None:
            retrace = functools.partial(jax.eval_shape, mapped, *arguments)
            watch.program(traced.jaxpr, jax.tree.leaves(arguments), retrace=retrace)
            if watch.fixed is None and file is None:  # a folder belongs to one state of the code
                watch.fixed = is_fixed(mapped, *arguments, before=traced.jaxpr)
        work = calls * executed(traced.jaxpr.jaxpr)
        cheap = _supported() | {"xla_backend_optimization_level": int(work >= HEAVY)}
        compile_it = lambda: traced.lower().compile(compiler_options=cheap)
        if work <= LONG:
            with contextlib.suppress(NotInterpreted):
                return _or_else(_in_numpy(traced), compile_it, NotInterpreted)
        if file is None:
            return compile_it()
        with without_jax_cache():
            made = compile_it()
        store_program(file, made, {} if watch is None else watch.seen())
        return made


def _in_numpy(traced: Any) -> Callable:
    """Return a function that runs a traced program in NumPy.

    Raises:
        NotInterpreted: if NumPy has no rule for a primitive. The returned function raises this
            error if NumPy's result may differ from JAX's.
    """
    run, structure = interpreted(traced.jaxpr), jax.tree.structure(traced.out_info)
    return lambda *given: jax.tree.unflatten(structure, run(*jax.tree.leaves(given)))


def _or_else(run: Callable, make: Callable[[], Callable], refusal: type[Exception]) -> Callable:
    """Return a function that calls `run`, or the result of `make` if `run` raises `refusal`."""
    other = functools.cache(make)

    def either(*given: Any) -> Any:
        try:
            return run(*given)
        except refusal:
            return other()(*given)

    return either


UNKEPT = Programs()
"""A compiler that keeps its programs in memory and writes no file. All statements share this
compiler and the compiled programs of samplers."""
