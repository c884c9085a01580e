"""Median wall times of functions, in alternating blocks so that drift of the machine hits all."""

import statistics
import time
from collections.abc import Callable

import jax


def medians(*calls: tuple[Callable, ...], rounds: int = 2, block: int = 3) -> list[float]:
    """Seconds of each (function, *arguments).

    Each round gives every function one untimed call (which also brings its data back into the
    caches after the others) and then `block` timed ones; results are waited for.
    """
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for (function, *arguments), seconds in zip(calls, times):
            jax.block_until_ready(function(*arguments))
            for _ in range(block):
                start = time.perf_counter()
                jax.block_until_ready(function(*arguments))
                seconds.append(time.perf_counter() - start)
    return [statistics.median(seconds) for seconds in times]
