"""Running the programs of statements: in NumPy, or compiled, for as little time as that takes.

Statements are hundreds of small programs that run for milliseconds, most of them a few times. What
was compiled, and what was drawn, may be kept.
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
"""Equations that run, over all calls: up to the one a program is run in NumPy, where an equation
takes some microseconds, and to compile it a few hundred; from the other on it is compiled well."""
MANY = 100
"""Calls, where nobody says how many there will be."""
SMALL = 2**23
"""Bytes of instances that are worth keeping."""


class _Options:
    """Those of `CHEAP` that this version of the compiler knows; they outlive `watched.forget`."""

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
    """`jit` with the compiler told to be quick."""
    return jax.jit(function, compiler_options=_supported())


def _kind(leaf: Any) -> tuple[Any, ...]:
    """What tells arguments apart for a compiled program, found faster than JAX's type."""
    weak = getattr(leaf, "weak_type", False)
    return np.shape(leaf), getattr(leaf, "dtype", type(leaf)), weak


class Programs:
    """Runs functions over batches of instances on the CPU; may keep what it compiles in a folder.

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
        """`jit(vmap(function))`; in NumPy where so few calls are not worth compiling it.

        Args:
            function: of one instance.
            name: what tells this function from all others that use the folder, in plain values.
            calls: about how many there will be, for arguments of one shape.
            watch: is told what the trace shows.
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
        """What `draw` gives, or gave when it was called by that name before.

        Args:
            draw: makes the instances.
            name: as of `__call__`; all that they depend on beside the code.
        """
        if self._folder is None:
            return draw()
        file = self._folder / f"{digest(repr(name).encode()).hex()}.npz"
        if file.exists():
            with contextlib.suppress(ValueError, OSError):  # damaged: it is made again
                return load_instance(file).instance
        made = draw()
        if sum(leaf.nbytes for leaf in jax.tree.leaves(made)) <= SMALL:
            with contextlib.suppress(OSError, TypeError):  # no place, or no dict of arrays
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
        """A function for such arguments: kept, in NumPy, or compiled."""
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
        """The same, where none is kept that can be used."""
        traced = jax.jit(mapped).trace(*arguments)
        if watch is not None:
            retrace = functools.partial(jax.eval_shape, mapped, *arguments)
            watch.program(traced.jaxpr, jax.tree.leaves(arguments), retrace=retrace)
            if watch.fixed is None and file is None:  # where something is kept the code is the key
                watch.fixed = is_fixed(mapped, *arguments, before=traced.jaxpr)
        work = calls * executed(traced.jaxpr.jaxpr)
        cheap = _supported() | {"xla_backend_optimization_level": int(work >= HEAVY)}
        compile_it = lambda: traced.lower().compile(compiler_options=cheap)
        if work <= LONG:
            with contextlib.suppress(NotInterpreted):
                return _or_else(_in_numpy(traced), compile_it, NotInterpreted)
        if file is None or (watch is not None and watch.blind):  # nobody saw what it calls
            return compile_it()
        with without_jax_cache():
            made = compile_it()
        store_program(file, made, {} if watch is None else watch.seen())
        return made


def _in_numpy(traced: Any) -> Callable:
    """What was traced, run in NumPy.

    Raises:
        NotInterpreted: if there is no rule for one of its primitives; later, where NumPy may give
            something else.
    """
    run, structure = interpreted(traced.jaxpr), jax.tree.structure(traced.out_info)
    return lambda *given: jax.tree.unflatten(structure, run(*jax.tree.leaves(given)))


def _or_else(run: Callable, make: Callable[[], Callable], refusal: type[Exception]) -> Callable:
    """A function that is replaced by another, made once, where it refuses."""
    other = functools.cache(make)

    def either(*given: Any) -> Any:
        try:
            return run(*given)
        except refusal:
            return other()(*given)

    return either


UNKEPT = Programs()
"""One for all who keep nothing: statements share their samplers' programs through it."""
