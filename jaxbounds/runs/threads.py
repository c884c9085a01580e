"""Environment of a process that judges, set before JAX is imported.

One thread for sums: the same bits on any number of cores, and by any engine.
"""

import gc
import os

_SETTINGS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Read when NumPy is imported. A BLAS with more threads adds in another order."""


def one_thread() -> None:
    """Set one thread for sums unless the user set a number; Dask's workers do this alone."""
    for setting in _SETTINGS:
        os.environ.setdefault(setting, "1")


RARELY = (50_000, 20, 20)
"""Tracing makes millions of objects that stay: looking for garbage as often as Python does by
itself takes a tenth of the time."""


def collect_rarely() -> None:
    """Make the garbage collector run rarely, in processes that the package starts."""
    gc.set_threshold(*RARELY)
