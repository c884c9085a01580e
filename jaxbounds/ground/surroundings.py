"""Dependencies of a result besides files: the environment, JAX's settings, Python's flags."""

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
"""Variables of a terminal, a session or a cache. `environment` leaves them out, since a change of
them does not change a verdict.
"""
NUMERIC = ("JAX_", "XLA_", "TF_", "CUDA_", "OMP_", "MKL_", "OPENBLAS_", "TPU_", "LIBTPU_", "PYTHON")
"""Beginnings of the names of variables that the library and its compiler read."""
_RUN = ("cache", "traceback_filtering", "async_dispatch")
"""Parts of names of JAX's settings that a run sets by itself; no number depends on them."""


def _digest(value: Any) -> str:
    text = repr(value).encode(errors="surrogateescape")
    return hashlib.sha256(text).hexdigest()[:16]


def environment(*, whole: bool) -> str:
    """Return a digest of the environment.

    Args:
        whole: whether to take all variables but `NO_MATTER`, since a user's code may read any
            variable. Otherwise only the variables of `NUMERIC` count.
    """
    kept = {k: v for k, v in os.environ.items() if k not in NO_MATTER}
    if not whole:
        kept = {k: v for k, v in kept.items() if k.startswith(NUMERIC) and k != "PYTHONPATH"}
    return _digest(sorted(kept.items()))


def jax_settings() -> str:
    """Return a digest of JAX's settings, from environment variables and from calls alike."""
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
    """Return the state of everything besides files that a user's code can read, by name."""
    return {
        "environment": environment(whole=True),
        "folder": str(Path.cwd()),
        "zone": repr((time.tzname, time.timezone)),
        "installed": installed(),
    }
