"""States of a result's dependencies: files, folders and modules, by their content.

A dependency is a word and a path or name, as "file: /home/me/data.npy". Its state is a text. If two
states are equal, a reader of the dependency sees no change. The states of files are digests of
their content, so times and sizes alone decide nothing.
"""

import hashlib
import importlib
import importlib.util
import os
import stat
import sys
import time
from collections.abc import Iterable, Mapping
from importlib.machinery import BuiltinImporter, FrozenImporter, ModuleSpec
from pathlib import Path
from typing import Any

Depends = Mapping[str, str]
"""The state of each dependency, as it was when it was first read."""

UNKNOWN = "unrecorded"
"""The state of a dependency without a state: it never counts as unchanged."""
SETTLED = 2.0
"""Seconds since a file's last change after which `content` keeps its digest. `content` then reads
the file again only if its times, size or inode change. A larger value reads young files more often.
"""
ABSENT, FOLDER = "absent", "folder"
_Stamp = tuple[int, ...]
_known: dict[str, tuple[_Stamp, str]] = {}


def content(path: str, /) -> str:
    """Return the SHA-256 of a plain file; else "absent", "folder", or why there is no digest."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return ABSENT
    if stat.S_ISDIR(found.st_mode):
        return FOLDER
    if not stat.S_ISREG(found.st_mode):
        return "no plain file"
    stamp = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    if _known.get(path, ((), ""))[0] == stamp:
        return _known[path][1]
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        return problem.strerror or type(problem).__name__
    # No program can set the change time (ctime) of a file, but Windows has no change time.
    age = time.time() - max(found.st_mtime, found.st_ctime)
    if age > SETTLED and os.name == "posix":
        _known[path] = stamp, digest
    return digest


def _kind(path: str, follow: bool = True) -> str:
    try:
        mode = (os.stat if follow else os.lstat)(path).st_mode
    except (OSError, ValueError):
        return ABSENT
    return stat.filemode(mode)[0]


def _times(path: str) -> str:
    """Return the mode, size and time that `os.stat` gives for a file; a caller may use any."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return ABSENT
    return f"{found.st_mode} {found.st_size} {found.st_mtime_ns}"


def _names(path: str) -> str:
    """Return the digest of the names in a folder, without `__pycache__`."""
    try:
        names = sorted(set(os.listdir(path)) - {"__pycache__"})
    except (OSError, ValueError):
        return ABSENT
    return hashlib.sha256("\0".join(names).encode(errors="surrogateescape")).hexdigest()


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except (OSError, ValueError):
        return ABSENT


def _declared(path: str) -> str:
    """Return the content of a file, or of all files of a folder; "absent" for any other text."""
    if not os.path.isdir(path):
        return content(path)
    total = hashlib.sha256()
    for file in sorted(Path(path).rglob("*")):
        if "__pycache__" not in file.parts:
            total.update(f"{file.relative_to(path)} {content(str(file))}\n".encode())
    return total.hexdigest()


def found_by(name: str, path: Any, finders: Iterable[Any], /) -> ModuleSpec | None:
    """Return the spec of a module from the first finder that knows it; None if no finder does.

    The finders of built-in and frozen modules are left out.
    """
    for finder in finders:
        look = getattr(finder, "find_spec", None)
        if look is None or finder in (BuiltinImporter, FrozenImporter):
            continue
        if (spec := look(name, path)) is not None:
            return spec
    return None


def whence(spec: ModuleSpec | None, /) -> str:
    """Return the file of a module, or the folders of a package without a file."""
    if spec is None:
        return ABSENT
    if spec.has_location and spec.origin:
        return os.path.abspath(spec.origin)
    try:
        return repr([*(spec.submodule_search_locations or ())])
    except KeyError:  # a namespace package inside a package that is not imported
        return repr(getattr(spec.submodule_search_locations, "_path", None))


def _module(name: str) -> str:
    """Return the file in which an import would find the module now, without executing it."""
    spec, inside = None, None
    parts = name.split(".")
    for number in range(len(parts)):
        try:
            spec = found_by(".".join(parts[: number + 1]), inside, sys.meta_path)
            inside = spec and [*(spec.submodule_search_locations or ())]
        except Exception:  # a finder may need the package itself
            return ABSENT
        if spec is None:
            return ABSENT
    return whence(spec)


_STATES = {
    "file": content,
    "kind": _kind,
    "own kind": lambda path: _kind(path, follow=False),
    "times": _times,
    "names": _names,
    "target": _target,
    "module": _module,
    "declared": _declared,
}


def state(dependency: str, /) -> str:
    """Return the present state of a dependency; "" for a dependency of an unknown kind."""
    word, _, rest = dependency.partition(": ")
    find = _STATES.get(word)
    return find(rest) if find else ""


def place_of(dependency: str, /) -> str:
    """Return the path of a file or folder dependency; "" for a module or a text."""
    word, _, rest = dependency.partition(": ")
    return rest if word in _STATES and word != "module" and os.path.isabs(rest) else ""


def changed(depends: Depends, /) -> list[str]:
    """Return the dependencies whose state changed, or was unknown before."""
    if not depends:
        return []
    importlib.invalidate_caches()
    return [one for one, before in depends.items() if state(one) != before]
