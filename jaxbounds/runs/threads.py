"""One thread for sums: the same bits on any number of cores, and by any engine."""

import os

_SETTINGS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Read when NumPy is imported. A BLAS with more threads adds in another order."""


def one_thread() -> None:
    """Unless something else is set; Dask's workers do it by themselves."""
    for setting in _SETTINGS:
        os.environ.setdefault(setting, "1")
