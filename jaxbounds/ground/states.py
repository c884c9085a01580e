"""Compute the states of the files, folders and modules on which a result depends.

A dependency is a text: a kind, and a path or name, such as "file: /home/me/data.npy". The state of
a dependency is a text that describes its content, such as a digest. A new modification time of a
file is no change.
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
"""A dict from each dependency (such as "file: data.npy") to its state (a digest) at the first
read.
"""

UNKNOWN = "unrecorded"
"""The word for the unknown state of a file or module. A file with an unknown state always counts as
changed.
"""
SETTLED = 2.0
"""`content` remembers a file's digest if the last change of the file is at least this many seconds
old. As long as the file's times, size and inode do not change, `content` then does not read the
file again. If this number of seconds is larger, `content` reads recently changed files more
often."""
ABSENT, FOLDER = "absent", "folder"
_Stamp = tuple[int, ...]
_known: dict[str, tuple[_Stamp, str]] = {}


def content(path: str, /) -> str:
    """Return the SHA-256 of a plain file, or a text such as "absent" or "folder"."""
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
    # No program can set a file's change time (ctime), but Windows has no change time.
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
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return ABSENT
    return f"{found.st_mode} {found.st_size} {found.st_mtime_ns}"


def _names(path: str) -> str:
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
    if not os.path.isdir(path):
        return content(path)
    total = hashlib.sha256()
    for file in sorted(Path(path).rglob("*")):
        if "__pycache__" not in file.parts:
            total.update(f"{file.relative_to(path)} {content(str(file))}\n".encode())
    return total.hexdigest()


def found_by(name: str, path: Any, finders: Iterable[Any], /) -> ModuleSpec | None:
    """Return a module's spec from the first finder that finds the module; else None.

    The function does not ask the finders of built-in and frozen modules.
    """
    for finder in finders:
        look = getattr(finder, "find_spec", None)
        if look is None or finder in (BuiltinImporter, FrozenImporter):
            continue
        if (spec := look(name, path)) is not None:
            return spec
    return None


def whence(spec: ModuleSpec | None, /) -> str:
    """Return the file of a module; for a namespace package, which has no file, its folders."""
    if spec is None:
        return ABSENT
    if spec.has_location and spec.origin:
        return os.path.abspath(spec.origin)
    try:
        return repr([*(spec.submodule_search_locations or ())])
    except KeyError:  # a namespace package in a package that Python has not imported
        return repr(getattr(spec.submodule_search_locations, "_path", None))


def _module(name: str) -> str:
    spec, inside = None, None
    parts = name.split(".")
    for number in range(len(parts)):
        try:
            spec = found_by(".".join(parts[: number + 1]), inside, sys.meta_path)
            inside = spec and [*(spec.submodule_search_locations or ())]
        except Exception:  # a finder may fail without the imported package
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
    """Return the present state (a digest) of a dependency; "" for a dependency of unknown kind."""
    word, _, rest = dependency.partition(": ")
    find = _STATES.get(word)
    return find(rest) if find else ""


def place_of(dependency: str, /) -> str:
    """Return the path of a dependency on a file or folder; "" for a dependency of another kind."""
    word, _, rest = dependency.partition(": ")
    return rest if word in _STATES and word != "module" and os.path.isabs(rest) else ""


def changed(depends: Depends, /) -> list[str]:
    """Return the dependencies whose present state differs from the given state, or is unknown."""
    if not depends:
        return []
    importlib.invalidate_caches()
    return [one for one, before in depends.items() if state(one) != before]
