"""Compute digests of the environment variables, JAX settings and Python flags of a process."""

import hashlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import jax

NO_MATTER = frozenset((
    "_", "COLUMNS", "LINES", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE",
    "CLICOLOR", "CLICOLOR_FORCE", "PWD", "OLDPWD", "SHLVL", "TMPDIR", "TEMP", "TMP",
    "XDG_CACHE_HOME", "JAX_COMPILATION_CACHE_DIR", "NPROC", "WINDOWID", "DISPLAY",
    "WAYLAND_DISPLAY", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "SSH_AUTH_SOCK", "SSH_AGENT_PID",
    "DBUS_SESSION_BUS_ADDRESS", "XDG_SESSION_ID", "PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER",
    "PYTEST_XDIST_TESTRUNUID", "STY", "TMUX", "TMUX_PANE", "PS1", "LS_COLORS", "HISTFILE",
    "KRB5CCNAME",
))  # fmt: skip
"""The names of environment variables that describe a terminal, a session or a cache. `environment`
omits these variables, because no verdict depends on their values.
"""
NUMERIC = ("JAX_", "XLA_", "TF_", "CUDA_", "OMP_", "MKL_", "OPENBLAS_", "TPU_", "LIBTPU_", "PYTHON")
"""The prefixes of the names of environment variables that the library and its compiler read."""
_RUN = ("cache", "traceback_filtering", "async_dispatch")
"""Words in the names of those settings of JAX that a run sets itself.

No number that the library computes depends on a setting with one of these words in its name.
"""


def _digest(value: Any) -> str:
    text = repr(value).encode(errors="surrogateescape")
    return hashlib.sha256(text).hexdigest()[:16]


def environment(*, whole: bool) -> str:
    """Return a digest of the environment variables with a prefix in `NUMERIC`.

    If `whole` is true, the digest includes all variables except those in `NO_MATTER`, because a
    user's code may read any variable.
    """
    kept = {k: v for k, v in os.environ.items() if k not in NO_MATTER}
    if not whole:
        kept = {k: v for k, v in kept.items() if k.startswith(NUMERIC) and k != "PYTHONPATH"}
    return _digest(sorted(kept.items()))


def jax_settings() -> str:
    """Return a digest of JAX's settings, whether variables or calls set them."""
    values = jax.config.values
    return _digest(
        sorted((k, repr(v)) for k, v in values.items() if not any(part in k for part in _RUN))
    )


def flags() -> str:
    """Return Python's flags, such as -O, as text."""
    return repr(sys.flags)


def installed() -> str:
    """Return a digest of the packages that can be imported, each by its name and version."""
    names: set[str] = set()
    for place in sys.path:
        try:
            found = os.listdir(place or ".")
        except OSError:
            continue
        names |= {name for name in found if name.endswith((".dist-info", ".egg-info", ".pth"))}
    return _digest(sorted(names))


def for_users() -> dict[str, str]:
    """Return digests and texts of the dependencies that are no files, such as "environment"."""
    return {
        "environment": environment(whole=True),
        "folder": str(Path.cwd()),
        "zone": repr((time.tzname, time.timezone)),
        "installed": installed(),
    }
