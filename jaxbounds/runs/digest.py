"""Compute the digest of the library's source, and find the cache folder, without importing JAX."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from jaxbounds.ground.private import fault_of, private


def _named_by_user() -> Path | None:
    named = os.environ.get("JAX_COMPILATION_CACHE_DIR", "")
    return Path(named).absolute() if named and "://" not in named else None


def _place() -> Path | None:
    """Return the path of the cache folder, which need not exist, or None.

    The root of the file system does not count as a home folder, because it is the home of system
    users.
    """
    if (named := _named_by_user()) is not None:
        return named
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not given.is_absolute():
        try:
            home = Path.home()
        except RuntimeError:  # neither HOME nor an entry among the users
            return None
        if not home.is_absolute() or home == Path(home.anchor):
            return None
        given = home / ".cache"
    return given / "jaxbounds" / "xla"


def cache_folder() -> Path | None:
    """Return the cache folder (compiled programs, traces, worst instances, texts), or None.

    The result is None if the user has no home, if the folder cannot be written, or if another user
    owns the folder or can write there.
    """
    place = _place()
    return None if place is None else private(place)


def refusal() -> str:
    """Return a sentence that says why the library does not use an existing cache; otherwise ""."""
    place = _place()
    if place is None or cache_folder() is not None or not place.exists():
        return ""
    return (
        f"the cache {place} is not used: {fault_of(place)}, and a cache must be its user's alone. "
        f"Try chmod 700, or another JAX_COMPILATION_CACHE_DIR"
    )


def folder_for_jax() -> Path | None:
    """Return the folder that JAX_COMPILATION_CACHE_DIR names, or else the library's cache."""
    return _named_by_user() or cache_folder()


def digest_of(imports: Iterable[str], /) -> str:
    """Return one digest of the package's code and errata, and of the user's imported files."""
    package, state = Path(__file__).parents[1], hashlib.sha256()
    for file in sorted([*package.rglob("*.py"), *package.rglob("errata.toml")]):
        state.update(file.relative_to(package).as_posix().encode() + file.read_bytes())
    for path in map(Path, imports):
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path] * path.is_file():
            state.update(file.read_bytes())
    return state.hexdigest()
