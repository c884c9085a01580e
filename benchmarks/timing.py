"""Median wall times of functions, taken in turn so that drift of the machine hits all alike."""

import statistics
import time
from collections.abc import Callable, Sequence

import jax


def medians(functions: Sequence[Callable], /, *, repeats: int = 5) -> list[float]:
    """Seconds of each function after one warm-up; results are waited for."""
    for function in functions:
        jax.block_until_ready(function())
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for function, seconds in zip(functions, times):
            start = time.perf_counter()
            jax.block_until_ready(function())
            seconds.append(time.perf_counter() - start)
    return [statistics.median(seconds) for seconds in times]
