"""Independent calls in parallel: XLA compiles and computes outside Python's lock."""

import ctypes
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread
from typing import Any

import jax
import jax.numpy as jnp

from jaxbounds.experiments.provenance import products_used
from jaxbounds.ground.jax_internals import enable_x64


@contextmanager
def at_once() -> Iterator[Callable[..., Future]]:
    """Open a block in which `submit(call, *args)` runs calls in threads, in the caller's precision.

    An exception that leaves the block, for example Ctrl-C, ends the calls. Each call ends as soon
    as XLA is done with its work for the call. If there are several processes, a call runs at once
    in the submitting thread, because collectives must keep one order.
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
