"""The state of the library's source, and the folder of what is kept for it; neither needs JAX."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from jaxbounds.ground.private import fault_of, private


def _named_by_user() -> Path | None:
    """Return the folder of this machine that JAX's variable names.

    None if there is no such folder.
    """
    named = os.environ.get("JAX_COMPILATION_CACHE_DIR", "")
    return Path(named).absolute() if named and "://" not in named else None


def _place() -> Path | None:
    """Return the place of the cache, whether it exists or not; None without a variable and a home.

    A variable that is empty, or names no absolute path where one is needed, counts as unset. So
    does the root of the file system as a home, which is the home of users without one.
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
    """Return the folder of compiled programs, traces, examples and texts; None if absent.

    There is none without a home, where nothing can be written, and where another user owns the
    folder or can write there: runs go on without it.
    """
    place = _place()
    return None if place is None else private(place)


def refusal() -> str:
    """Return a sentence on a cache that exists and is not used; empty otherwise."""
    place = _place()
    if place is None or cache_folder() is not None or not place.exists():
        return ""
    return (
        f"the cache {place} is not used: {fault_of(place)}, and a cache must be its user's alone. "
        f"Try chmod 700, or another JAX_COMPILATION_CACHE_DIR"
    )


def folder_for_jax() -> Path | None:
    """Return the folder of JAX's compiled programs: that of JAX's variable, or the cache."""
    return _named_by_user() or cache_folder()


def digest_of(imports: Iterable[str], /) -> str:
    """Return the digest of the package's source and errata, and of the imported files."""
    package, state = Path(__file__).parents[1], hashlib.sha256()
    for file in sorted([*package.rglob("*.py"), *package.rglob("errata.toml")]):
        state.update(file.relative_to(package).as_posix().encode() + file.read_bytes())
    for path in map(Path, imports):
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path] * path.is_file():
            state.update(file.read_bytes())
    return state.hexdigest()
