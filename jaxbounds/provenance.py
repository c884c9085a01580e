"""What a result depends on: versions, device, precision, key, configuration, git state."""

import dataclasses
import hashlib
import importlib.metadata
import json
import platform
import subprocess
from pathlib import Path
from typing import Any

import jax

from jaxbounds.version import __version__


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that decide the numbers."""
    names = ("jax", "jaxlib", "flax", "optax", "chex", "numpy", "scipy")
    packages = {name: importlib.metadata.version(name) for name in names}
    return (
        {"jaxbounds": __version__}
        | packages
        | {"python": platform.python_version(), "machine": platform.machine()}
    )


def _git_state() -> str:
    """The commit of the checkout this package is imported from, "-dirty" if changed, else ""."""
    folder = Path(__file__).parent
    try:
        ask = ("git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40")
        done = subprocess.run(ask, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def provenance(config: Any, key: jax.Array, /) -> dict[str, Any]:
    """What a result depends on: configuration, key, versions, device, precision, git state."""
    return {
        "config": dataclasses.asdict(config),
        "config_type": type(config).__name__,
        "key": jax.random.key_data(key).tolist(),
        "prng": str(jax.random.key_impl(key)),
        "versions": versions(),
        "device": jax.devices()[0].device_kind,
        "backend": jax.default_backend(),
        "matmul_precision": str(jax.config.values["jax_default_matmul_precision"] or "default"),
        "git": _git_state(),
    }


def fingerprint(config: Any, key: jax.Array, /) -> str:
    """A short hash of configuration and key: a checkpoint with another one is refused."""
    text = json.dumps([repr(config), jax.random.key_data(key).tolist()])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
