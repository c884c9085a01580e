"""Environment of a process that judges, set before JAX is imported.

One thread for sums: the same bits on any number of cores, and by any engine.
"""

import gc
import os

_SETTINGS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Read when NumPy is imported. A BLAS with more threads adds in another order."""


def one_thread() -> None:
    """Unless something else is set; Dask's workers do it by themselves."""
    for setting in _SETTINGS:
        os.environ.setdefault(setting, "1")


RARELY = (50_000, 20, 20)
"""Tracing makes millions of objects that stay: looking for garbage as often as Python does by
itself takes a tenth of the time."""


def collect_rarely() -> None:
    """For processes of our own; a user's keeps its habits."""
    gc.set_threshold(*RARELY)
