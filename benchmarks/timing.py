"""Median wall times of functions, taken in turn so that drift of the machine hits all alike."""

import statistics
import time
from collections.abc import Callable

import jax


def medians(*calls: tuple[Callable, ...], repeats: int = 5) -> list[float]:
    """Seconds of each (function, *arguments) after one warm-up; results are waited for."""
    for function, *arguments in calls:
        jax.block_until_ready(function(*arguments))
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for (function, *arguments), seconds in zip(calls, times):
            start = time.perf_counter()
            jax.block_until_ready(function(*arguments))
            seconds.append(time.perf_counter() - start)
    return [statistics.median(seconds) for seconds in times]
