"""What the commands keep between runs: compiled programs, and the traces of shipped statements."""

import contextlib
import functools
import hashlib
import os
import shutil
import time
from pathlib import Path

import jax

from jaxbounds.cli.common import all_statements
from jaxbounds.falsify import UNKEPT, Programs
from jaxbounds.results import versions
from jaxbounds.statements import Statement

MONTH = 30 * 24 * 3600.0
"""Seconds after which compiled programs, and unused traces of another version, are removed."""


def _folder() -> Path:
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return Path(os.environ["JAX_COMPILATION_CACHE_DIR"])
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "jaxbounds" / "xla"


def use_compilation_cache() -> None:
    """Keep compiled programs between runs, where the user's environment says if it does."""
    jax.config.update("jax_compilation_cache_dir", str(_folder()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@functools.cache
def _kept() -> Programs:
    """In a folder for exactly this source, these versions and these settings of JAX."""
    settings = {k: v for k, v in jax.config.values.items() if "cache" not in k}
    state = hashlib.sha256(repr(sorted((versions() | settings).items())).encode())
    package = Path(__file__).parents[1]
    for file in sorted(package.rglob("*.py")):
        state.update(file.relative_to(package).as_posix().encode() + file.read_bytes())
    folder = _folder() / "jaxbounds-traces" / state.hexdigest()
    with contextlib.suppress(OSError):  # without a place to keep them, they are made each time
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        for other in filter(_is_old, folder.parent.iterdir()):
            shutil.rmtree(other, ignore_errors=True)
        if "JAX_COMPILATION_CACHE_DIR" not in os.environ:  # else the others are not ours
            for program in filter(_is_old, _folder().glob("*-cache")):
                program.unlink(missing_ok=True)
    return Programs(folder)


def _is_old(file: Path) -> bool:
    return time.time() - file.stat().st_mtime > MONTH


def programs_for(statement: Statement, /) -> Programs:
    """Kept ones for a shipped statement; a user's own may have changed and is traced each time."""
    shipped = any(statement is one for one in all_statements(()))
    return _kept() if shipped else UNKEPT
