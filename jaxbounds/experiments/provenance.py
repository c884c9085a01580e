"""Describe the origin of a result: versions, device, precision, key, configuration, git state."""

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import platform
import subprocess
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

import jax

from jaxbounds.version import __version__


@functools.cache
def _packages() -> dict[str, str]:
    names = ("jax", "jaxlib", "flax", "optax", "chex", "numpy", "scipy")
    return {name: importlib.metadata.version(name) for name in names}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages on which the computed numbers depend."""
    return (
        {"jaxbounds": __version__}
        | _packages()
        | {"python": platform.python_version(), "machine": platform.machine()}
    )


def _git_state() -> str:
    folder = Path(__file__).parents[1]
    try:
        ask = ("git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40")
        done = subprocess.run(ask, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


PRECISIONS = ("highest", "high", "default")
"""JAX's names for the precision of float32 matrix products; each experiment uses one name.

A GPU computes the products in float32 or TF32. A TPU uses six, three or one pass in bfloat16. A CPU
always computes the products in float32.
"""

_asked: ContextVar[str] = ContextVar("precision", default="")


@contextlib.contextmanager
def products_in(usual: str, /) -> Iterator[None]:
    """Use the run's precision of matrix products, by default `usual`, inside a `with` block."""
    with jax.default_matmul_precision(_asked.get() or usual):
        yield


@contextlib.contextmanager
def asked_for(precision: str, /) -> Iterator[None]:
    """Set the precision of matrix products for runs inside a `with` block.

    The empty text leaves the choice to the experiment or to JAX.
    """
    token = _asked.set(precision)
    try:
        with products_in(precision) if precision else contextlib.nullcontext():
            yield
    finally:
        _asked.reset(token)


def products_used() -> str:
    """Return the precision of matrix products that JAX uses now."""
    return str(cast(Any, jax.config).jax_default_matmul_precision or "default")


def provenance(config: Any, key: jax.Array, /) -> dict[str, Any]:
    """Return the origin of a result: configuration, key, versions, device, precision, git state."""
    return {
        "config": dataclasses.asdict(config),
        "config_type": type(config).__name__,
        "key": jax.random.key_data(key).tolist(),
        "prng": str(jax.random.key_impl(key)),
        "versions": versions(),
        "device": jax.devices()[0].device_kind,
        "backend": jax.default_backend(),
        "matmul_precision": products_used(),
        "git": _git_state(),
    }


def fingerprint(config: Any, key: jax.Array, /) -> str:
    """Return a short hash of configuration, key and precision.

    A run refuses a checkpoint with another hash.
    """
    text = json.dumps([repr(config), jax.random.key_data(key).tolist(), products_used()])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
