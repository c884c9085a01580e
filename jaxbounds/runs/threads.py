"""Environment variables of a process that judges statements, set before it imports JAX.

One thread computes sums, so that results have equal bits on any number of cores and by any engine.
"""

import gc
import os

_SETTINGS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that NumPy's BLAS reads at import. A BLAS with more threads adds in another order."""


def one_thread() -> None:
    """Set one thread for sums unless the user set a number. Dask's workers call this themselves."""
    for setting in _SETTINGS:
        os.environ.setdefault(setting, "1")


RARELY = (50_000, 20, 20)
"""Thresholds of Python's garbage collector, in objects and collections. Tracing makes millions of
objects that stay, and Python's default thresholds cost a tenth of the time. Larger thresholds
collect less often and take more memory."""


def collect_rarely() -> None:
    """Make the garbage collector run rarely, in processes that the package starts."""
    gc.set_threshold(*RARELY)
