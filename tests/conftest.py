"""Every test runs with strict promotion rules, on several fake CPU devices, compiled cheaply.

Most of a test's time goes into compiling programs that run for milliseconds.
"""

import os

import jax
import jaxtyping
import pytest

# Read when the first backend starts, which refuses flags that it does not know.
CHEAP = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
CHEAP += " --xla_cpu_parallel_codegen_split_count=1 --xla_cpu_prefer_vector_width=128"
if jax.__version_info__ < (0, 11):
    CHEAP += " --xla_cpu_use_fusion_emitters=false"
os.environ["XLA_FLAGS"] = f"{CHEAP} {os.environ.get('XLA_FLAGS', '')}"
jax.config.update("jax_num_cpu_devices", 4)
jax.config.update("jax_cpu_enable_async_dispatch", False)  # as the commands do, for their reason
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def x64():
    """Float64 for the length of one test, as the library scopes it."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def key():
    """A typed PRNG key; split it, never reuse it."""
    return jax.random.key(0)


@pytest.fixture
def unannotated():
    """Shape annotations off: bad input must be refused by the library, as for its users."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
