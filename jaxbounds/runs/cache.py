"""How runs use JAX, and what they keep: compiled programs, and draws, of shipped statements."""

import contextlib
import functools
import hashlib
import os
import platform
import shutil
import time
from pathlib import Path

import jax

from jaxbounds.falsification import UNKEPT, Examples, Programs
from jaxbounds.falsification.programs import CHEAP
from jaxbounds.papers import PAPERS, load_paper
from jaxbounds.provenance import versions
from jaxbounds.runs.digest import cache_folder, digest_of
from jaxbounds.statements import Statement

MONTH = 30 * 24 * 3600.0
"""Seconds after which compiled programs, and an unused folder of another version, are removed."""


def examples(every: bool, /) -> Examples:
    """The worst instances that earlier runs found; all of them, or those that violated."""
    return Examples(cache_folder() / "jaxbounds-examples", every)


def prepare_jax() -> None:
    """Settings of JAX for runs: compiled programs are kept between runs, nothing hangs.

    What a trace refuses is expected, and to shorten its traceback takes longer than the trace.

    A program with two batches of eigenvalue problems sometimes waits for itself for ever, and more
    often where the CPU runs it beside the thread that asked for it (jaxlib 0.10.2, two cores).
    """
    jax.config.update("jax_traceback_filtering", "off")
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def compile_quickly() -> None:
    """What statements on the host compile by themselves is small, like what is compiled for them.

    For this process, if no device is in use yet, and for those that it starts. XLA ends a process
    for a flag that it does not know: only versions that were tried are told.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if jax.__version_info__ < (0, 11) and not all(name in flags for name in CHEAP):
        cheap = (f"--{name}={str(value).lower()}" for name, value in CHEAP.items())
        os.environ["XLA_FLAGS"] = " ".join([*cheap, flags]).strip()


def _processor() -> str:
    """What a compiled program may rest on: the features that Linux names."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return platform.processor()


@functools.cache
def _kept() -> Programs:
    """In a folder for exactly this source, these versions, this processor, these settings."""
    settings = {k: v for k, v in jax.config.values.items() if "cache" not in k}
    machine = {"processor": _processor(), "compiler": os.environ.get("XLA_FLAGS", "")}
    state = repr([digest_of(()), sorted((versions() | settings | machine).items())])
    folder = cache_folder() / "jaxbounds-programs" / hashlib.sha256(state.encode()).hexdigest()
    with contextlib.suppress(OSError):  # without a place to keep them, they are made each time
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        for other in filter(_is_old, folder.parent.iterdir()):
            shutil.rmtree(other, ignore_errors=True)
        if "JAX_COMPILATION_CACHE_DIR" not in os.environ:  # else the others are not ours
            for program in filter(_is_old, cache_folder().glob("*-cache")):
                program.unlink(missing_ok=True)
    return Programs(folder)


def _is_old(file: Path) -> bool:
    return time.time() - file.stat().st_mtime > MONTH


def programs_for(statement: Statement, /) -> Programs:
    """Kept ones for a shipped statement; a user's own may have changed and is traced each time."""
    own = load_paper(statement.paper).statements if statement.paper in PAPERS else ()
    return _kept() if any(statement is one for one in own) else UNKEPT
