"""Set environment variables of a process that judges statements, before it imports JAX.

The environment variables let a single thread compute each sum, so that results have equal bits on
any number of cores and on any engine.
"""

import gc
import os

_SETTINGS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that NumPy's BLAS library reads at import; each sets the number of threads
for one BLAS library. A BLAS with more threads adds numbers in another order.
"""


def one_thread() -> None:
    """Let one thread compute sums, unless the user set a number of threads.

    Dask's workers call this function themselves.
    """
    for setting in _SETTINGS:
        os.environ.setdefault(setting, "1")


RARELY = (50_000, 20, 20)
"""Thresholds of Python's garbage collector, in objects and collections. Tracing makes millions of
objects that stay alive. The collector would use a tenth of the run's time with Python's default
thresholds. If the thresholds are larger, the collector runs less often, and the process takes more
memory.
"""


def collect_rarely() -> None:
    """Make the garbage collector run rarely, in processes that the package starts."""
    gc.set_threshold(*RARELY)
