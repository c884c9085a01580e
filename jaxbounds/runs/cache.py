"""Set JAX up for runs, and keep compiled programs and worst instances in a cache.

A worst instance is the input at which a run found the largest ratio lhs/rhs of a claim.
"""

import contextlib
import functools
import hashlib
import os
import platform
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import jax

from jaxbounds.claims.statements import Statement
from jaxbounds.experiments.provenance import versions
from jaxbounds.falsification import UNKEPT, Examples, Programs
from jaxbounds.falsification.programs import CHEAP
from jaxbounds.ground.jax_internals import forget_compilation_cache
from jaxbounds.ground.private import private
from jaxbounds.papers import PAPERS, load_paper
from jaxbounds.runs.digest import cache_folder, digest_of, folder_for_jax

MONTH = 30 * 24 * 3600.0
"""Seconds after which a run removes unused compiled programs, and the folders of other versions of
the library. A larger number of seconds keeps more files on the disk."""


SETTINGS: dict[str, Any] = {
    "jax_traceback_filtering": "off",
    "jax_cpu_enable_async_dispatch": False,
    "jax_compilation_cache_dir": None,
    "jax_persistent_cache_min_compile_time_secs": 0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}
"""The settings of JAX that each run needs. `prepare_jax` also sets the folder of compiled
programs."""
CACHE = {name for name in SETTINGS if "cache" in name}
Call = TypeVar("Call", bound=Callable[..., Any])


def examples(every: bool, /) -> Examples:
    """Return the store of the worst instances that earlier runs found for each claim.

    If `every` is true, a run starts its searches from all stored instances, else only from the
    instances that violate a claim.
    """
    place = cache_folder()
    folder = place and private(place / "jaxbounds-examples")
    if folder is not None:
        _remove_old(folder)
    return Examples(folder, every)


@functools.cache
def _remove_old(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for other in filter(_is_old, folder.iterdir()):
            if other.is_dir() and not other.is_symlink():
                shutil.rmtree(other, ignore_errors=True)
            else:
                other.unlink()


def prepare_jax() -> None:
    """Change JAX's settings: keep compiled programs between runs, and avoid programs that hang.

    The function switches off JAX's filter of tracebacks, because errors inside a trace are common
    in this library and the filter takes longer than the trace. The function turns off the
    asynchronous dispatch of programs. A program with two batches of eigenvalue problems deadlocks
    more often under asynchronous dispatch (jaxlib 0.10.2, two cores).
    """
    place = folder_for_jax()
    kept = jax.config.values["jax_compilation_cache_dir"] if place is None else str(place)
    wanted = SETTINGS | {"jax_compilation_cache_dir": kept}
    changed = {name for name, value in wanted.items() if jax.config.values[name] != value}
    for name in changed:
        jax.config.update(name, wanted[name])
    if "jax_compilation_cache_dir" in changed:
        forget_compilation_cache()


_inside = 0
"""The number of calls of public functions that run in this process now, in all threads together."""
_before: dict[str, Any] = {}
_environment: dict[str, str] = {}
_entering = threading.RLock()


@contextlib.contextmanager
def process_restored() -> Iterator[None]:
    """Restore the settings of JAX and the environment after a `with` block.

    Calls may overlap in several threads: the first call saves the state, and the last call restores
    it.
    """
    global _inside
    with _entering:
        if not _inside:
            _before.update({name: jax.config.values[name] for name in SETTINGS})
            _environment.update(os.environ)
        _inside += 1
    try:
        yield
    finally:
        with _entering:
            _inside -= 1
            if not _inside:
                _restore()


def _restore() -> None:
    changed = {name: old for name, old in _before.items() if jax.config.values[name] != old}
    for name, old in changed.items():
        jax.config.update(name, old)
    if changed.keys() & CACHE:
        forget_compilation_cache()
    for name in set(os.environ) - set(_environment):
        del os.environ[name]
    for name, value in _environment.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
    _before.clear()
    _environment.clear()


def restoring(function: Call, /) -> Call:
    """Wrap a public function so that each call restores JAX's settings and the environment."""

    @functools.wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        with process_restored():
            prepare_jax()
            return function(*given, **named)

    return called  # type: ignore[return-value]


def compile_quickly() -> None:
    """Let XLA compile fast, with few optimisations, since the programs of statements are small.

    The function sets XLA's flags for this process, if it uses no device yet, and for the processes
    that it starts. XLA aborts a process at an unknown flag. Therefore the function sets the flags
    only for versions of JAX whose XLA accepts these flags.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if jax.__version_info__ < (0, 11) and not all(name in flags for name in CHEAP):
        cheap = (f"--{name}={str(value).lower()}" for name, value in CHEAP.items())
        os.environ["XLA_FLAGS"] = " ".join([*cheap, flags]).strip()


def _processor() -> str:
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return platform.processor()


@functools.cache
def _program_store() -> Programs:
    """Return the folder of compiled programs, or None if another user could write into it."""
    place = cache_folder()
    if place is None:
        return UNKEPT
    settings = {k: v for k, v in jax.config.values.items() if "cache" not in k}
    machine = {"processor": _processor(), "compiler": os.environ.get("XLA_FLAGS", "")}
    state = repr([digest_of(()), sorted((versions() | settings | machine).items())])
    folder = private(place / "jaxbounds-programs" / hashlib.sha256(state.encode()).hexdigest())
    if folder is None:
        return UNKEPT
    with contextlib.suppress(OSError):  # without a folder, each run traces the programs again
        os.utime(folder)
        for other in filter(_is_old, folder.parent.iterdir()):
            shutil.rmtree(other, ignore_errors=True)
        if not os.environ.get(
            "JAX_COMPILATION_CACHE_DIR"
        ):  # that folder may hold other programs' files
            for program in filter(_is_old, place.glob("*-cache")):
                program.unlink(missing_ok=True)
    return Programs(folder)


def _is_old(file: Path) -> bool:
    return time.time() - file.stat().st_mtime > MONTH


def programs_for(statement: Statement, /) -> Programs:
    """Return the store of compiled programs for a statement, or None for a user's own statement."""
    own = load_paper(statement.paper).statements if statement.paper in PAPERS else ()
    return _program_store() if any(statement is one for one in own) else UNKEPT
