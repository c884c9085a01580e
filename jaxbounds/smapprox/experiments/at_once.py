"""Run independent calls in parallel threads: XLA compiles and computes outside Python's lock."""

import ctypes
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Any

import jax
import jax.numpy as jnp

from jaxbounds.experiments.provenance import products_used
from jaxbounds.experiments.sweeps import progress
from jaxbounds.ground.jax_internals import enable_x64


@contextmanager
def at_once() -> Iterator[Callable[..., Future]]:
    """Open a block in which `submit(call, *args)` runs calls in threads.

    An exception inside the block, for example by Ctrl-C, cancels the calls, each after the XLA
    program that it runs. Several processes must start their collective operations in the same
    order, so `submit` then runs each call in the caller's thread.
    """
    threads: list[Thread] = []
    wide = jnp.result_type(float) == jnp.float64
    products = products_used()

    def submit(call: Callable[..., Any], *args: Any) -> Future:
        future: Future = Future()

        def work() -> None:
            try:
                with enable_x64(wide), jax.default_matmul_precision(products):
                    future.set_result(call(*args))
            except BaseException as problem:  # raised again by `future.result()`
                future.set_exception(problem)

        threads.append(Thread(target=work))
        if jax.process_count() > 1:
            work()
        else:
            threads[-1].start()
        return future

    try:
        yield submit
    except BaseException:
        for thread in threads:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident or 0), ctypes.py_object(KeyboardInterrupt)
            )
        raise


Count = Callable[[float, str], None]
"""A function that reports progress: the work since its last call, and a text about this work."""
CHUNKS = 20
"""The number of progress reports. A larger number gives the first estimate of the remaining time
sooner and less reliably."""


@contextmanager
def counted(total: float, unit: str, /) -> Iterator[Count]:
    """Yield a function by which any thread adds finished work to the reported progress.

    The first report estimates no remaining time, because it includes compiling.

    Args:
        total: the amount of work of all threads together.
        unit: the plural noun that names the work, for example "rays".
    """
    lock = Lock()
    done: float = 0
    told: float = 0
    with progress(total, unit) as report:

        def add(more: float, words: str) -> None:
            nonlocal done, told
            with lock:
                done += more
                if done - told >= total / CHUNKS:
                    told = done
                    report(round(done, 1), words)

        yield add
