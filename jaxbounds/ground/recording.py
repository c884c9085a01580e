"""Record the files and modules that a user's code reads, by watching the code run.

An audit hook of Python reports each opened file, each listed folder and each started program. An
import finder records each import, and compiles the user's modules from source, because Python may
use outdated bytecode. Replacements of `os.stat` and similar functions record existence checks.

The record misses files that C code opens itself (such as HDF5 files), the clock, and answers from a
computer network. A statement declares inputs of these three kinds with `depends=`.
"""

import contextlib
import functools
import os
import site
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from jaxbounds.ground.states import UNKNOWN, changed, content, found_by, state, whence

LIBRARY = str(Path(__file__).parents[1]) + os.sep
_NAMED = sysconfig.get_paths()
_INSTALLED = tuple(
    {os.path.realpath(path) + os.sep for path in (_NAMED["purelib"], _NAMED["platlib"])}
    | {
        os.path.realpath(path) + os.sep
        for path in (*site.getsitepackages(), site.getusersitepackages())
    }
)
_STANDARD = tuple({os.path.realpath(_NAMED[name]) + os.sep for name in ("stdlib", "platstdlib")})
OURS = frozenset((
    "jaxbounds", "jax", "jaxlib", "numpy", "scipy", "ml_dtypes", "opt_einsum", "flax", "optax",
    "chex", "jaxtyping", "beartype",
))  # fmt: skip
"""The packages whose files a run does not record, because the run stores the packages' versions.
"""
_SYSTEM = ("/proc/", "/sys/", "/dev/")
_WRITES = os.O_WRONLY | os.O_RDWR
_MAKES = os.O_TRUNC | os.O_EXCL | os.O_APPEND
_STARTS = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "socket.connect",
)
"""The audit events (a started program, a network connection) after which the record may lack files
on which a result depends.
"""
_LOOK_ONLY = frozenset(
    ["exists", "lexists", "isfile", "isdir", "islink", "is_file", "is_dir", "is_symlink", "resolve"]
)
_BEGAN = time.time()


def _of_python(path: str) -> bool:
    return path.startswith(_STANDARD) and not path.startswith(_INSTALLED)


@functools.cache
def is_installed(path: str, /) -> bool:
    """Tell whether a file belongs to Python itself or to an installed package."""
    if path.startswith(_INSTALLED):
        return True
    path = os.path.realpath(path)
    inside = f"{os.sep}site-packages{os.sep}" in path
    return inside or path.startswith((*_INSTALLED, *_STANDARD))


class _Watch:
    """The record of files and modules that the user's code read; `_watch` is its only instance."""

    def __init__(self) -> None:
        self.depends: dict[str, str] = {}
        self.made: set[str] = set()
        self.executed: set[str] = set()
        self.before: dict[str, str] = {}
        self.seen: set[str] = set()
        self.depth = self.loading = 0
        self.hooked = False
        self.ignored: set[str] = set()
        self.told: list[Callable[[str, str], None]] = []
        self.entries: set[CodeType] = set()
        self.lock = threading.RLock()
        self.inside = threading.local()

    def note(self, word: str, path: Any) -> None:
        """Record the present state of a dependency, unless the record already has a state."""
        if isinstance(path, int) or path is None:
            return
        name = os.path.abspath(os.fsdecode(path))
        if name.startswith((LIBRARY, *_SYSTEM, *self.ignored)) or "__pycache__" in name:
            return
        if _of_python(name) or self._is_made(name):
            return
        key = f"{word}: {name}"
        if key not in self.depends:
            self.keep(key, state(key))

    def keep(self, key: str, value: str) -> None:
        if key in self.depends:
            return
        self.depends[key] = value
        busy, self.inside.busy = getattr(self.inside, "busy", False), True
        try:
            for tell in self.told:
                tell(key, value)
        finally:
            self.inside.busy = busy

    def _is_made(self, name: str) -> bool:
        return name in self.made or any(str(p) in self.made for p in Path(name).parents)

    def make(self, path: Any) -> None:
        """Record a path that this process writes; later reads of the path do not count."""
        if not isinstance(path, int) and path is not None:
            self.made.add(os.path.abspath(os.fsdecode(path)))

    def is_users(self, frame: FrameType | None) -> bool:
        """Tell whether the user's code called a frame's function, directly or through packages."""
        if self.loading:
            return True
        while frame is not None and frame.f_code not in self.entries:
            if _is_foreign(frame.f_code.co_filename):
                return True
            frame = frame.f_back
        return False


_foreign: dict[str, bool] = {}


def _is_foreign(file: str) -> bool:
    if file not in _foreign:
        path = os.path.realpath(file)
        place = next((p for p in _INSTALLED if path.startswith(p)), "")
        package = path[len(place) :].split(os.sep)[0] if place else ""
        own = path.startswith(LIBRARY) or _of_python(path) or package in OURS
        _foreign[file] = not (own or (file.startswith("<") and not file.startswith("<ipython")))
    return _foreign[file]


_watch = _Watch()


def _asks_itself(frame: FrameType | None) -> bool:
    """Tell whether Python's import system, rather than the user's code, accesses a file."""
    for _ in range(6):
        if frame is None or not (
            frame.f_code.co_filename.startswith("<frozen") or _of_python(frame.f_code.co_filename)
        ):
            return False
        if "importlib" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def _opened(path: Any, mode: Any, flags: Any) -> None:
    flags = flags if isinstance(flags, int) else 0
    new = flags & _MAKES or (flags & os.O_CREAT and not os.path.exists(path))
    if not (flags & os.O_WRONLY or new):
        _watch.note("file", path)
    if flags & _WRITES:
        _watch.make(path)


def _hook(event: str, given: tuple[Any, ...]) -> None:
    if not _watch.depth or getattr(_watch.inside, "busy", False):
        return
    if event == "open":
        act: Callable[[], Any] = lambda: _opened(*given[:3])
    elif event in ("os.listdir", "os.scandir"):
        act = lambda: _watch.note("names", "." if given[0] is None else given[0])
    elif event in ("os.mkdir", "os.rename", "os.symlink", "os.link"):
        act = lambda: _watch.make(given[1 if event != "os.mkdir" else 0])
    elif event == "sqlite3.connect":
        act = lambda: _watch.note("file", given[0])
    elif event in _STARTS:
        act = lambda: _watch.keep(f"{UNKNOWN}: {event}", UNKNOWN)
    else:
        return
    frame = sys._getframe(1)
    if event in ("os.listdir", "os.scandir") and _asks_itself(frame):
        return
    if event in _STARTS and not _is_foreign(_outside_of_python(frame)):
        return
    _noted(act, frame)


def _outside_of_python(frame: FrameType | None) -> str:
    while frame is not None and (
        frame.f_code.co_filename.startswith("<frozen") or _of_python(frame.f_code.co_filename)
    ):
        frame = frame.f_back
    return "<nobody>" if frame is None else frame.f_code.co_filename


def _noted(act: Callable[[], Any], frame: FrameType | None) -> None:
    _watch.inside.busy = True
    try:
        with contextlib.suppress(Exception):
            if _watch.is_users(frame):
                act()
    finally:
        _watch.inside.busy = False


def _looking(name: str) -> Callable[..., Any]:
    """Return a replacement for a function of `os`, such as `stat`, that also records the path."""
    usual = getattr(os, name)
    words = {"lstat": "own kind", "readlink": "target", "access": "kind"}

    def look(path: Any, *given: Any, **named: Any) -> Any:
        if _watch.depth and not getattr(_watch.inside, "busy", False):
            frame = sys._getframe(1)
            word = words.get(name) or ("kind" if _only_looks(frame) else "times")
            if named.get("dir_fd") is None and not _asks_itself(frame):
                _noted(lambda: _watch.note(word, path), frame)
        return usual(path, *given, **named)

    for able in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
        if usual in able:
            able.add(look)
    return look


def _only_looks(frame: FrameType | None) -> bool:
    """Tell whether the caller, such as `os.path.exists`, asks only for the kind of a file."""
    for _ in range(3):
        if frame is None or not (
            _of_python(frame.f_code.co_filename) or frame.f_code.co_filename.startswith("<frozen")
        ):
            return False
        if frame.f_code.co_name in _LOOK_ONLY:
            return True
        frame = frame.f_back
    return False


class FromText(SourceFileLoader):
    """A loader that compiles a module from its text, and never reads stored bytecode."""

    def get_code(self, fullname: str) -> Any:
        """Compile the source text of the module, and return the code object."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _Finder:
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        first = name.partition(".")[0]
        busy = getattr(_watch.inside, "busy", False)
        if not _watch.depth or busy or first in OURS or first in sys.stdlib_module_names:
            return None
        if not _watch.is_users(sys._getframe(1)):
            return None
        spec = found_by(name, path, [f for f in sys.meta_path if f is not self])
        origin = os.path.abspath(spec.origin) if spec and spec.has_location and spec.origin else ""
        _watch.keep(f"module: {name}", whence(spec))
        if spec is None:
            return None
        file = origin if os.path.isfile(origin) else getattr(spec.loader, "archive", "")
        _watch.inside.busy = True
        try:
            if file:
                _watch.note("file", file)
        finally:
            _watch.inside.busy = False
        if not (file and is_installed(file)):
            _watch.executed.add(name)
            if type(spec.loader) is SourceFileLoader:
                spec.loader = FromText(name, origin)
        return spec


_finder = _Finder()
_looks = {
    name: (getattr(os, name), _looking(name))
    for name in ("stat", "lstat", "access", "readlink")
    if hasattr(os, name)
}
"""The functions of `os` that examine a path, each with a replacement that also records the path."""


@contextlib.contextmanager
def watching(entry: CodeType, /, *, loading: bool = False) -> Iterator[None]:
    """Record the files that the user's code reads, for the duration of a `with` block.

    The function with the code object `entry` calls the user's code; its own reads do not count. If
    `loading` is true, the block loads a user's module, and all reads count.
    """
    watch = _watch
    with watch.lock:
        if not watch.hooked:
            sys.addaudithook(_hook)
            watch.hooked = True
        watch.entries.add(entry)
        watch.depth += 1
        watch.loading += loading
        if watch.depth == 1:
            sys.meta_path.insert(0, _finder)
            for name, (usual, look) in _looks.items():
                if getattr(os, name) is usual:
                    setattr(os, name, look)
    try:
        yield
    finally:
        with watch.lock:
            watch.depth -= 1
            watch.loading -= loading
            if watch.depth == 0:
                sys.meta_path.remove(_finder)
                for name, (usual, look) in _looks.items():
                    if getattr(os, name) is look:
                        setattr(os, name, usual)


@contextlib.contextmanager
def telling(tell: Callable[[str, str], None], /) -> Iterator[None]:
    """Call a function for each newly recorded dependency, for the duration of a `with` block.

    The function takes a dependency (such as "file: /home/me/data.npy") and its state. The record
    omits files that the function opens.
    """
    _watch.told.append(tell)
    try:
        yield
    finally:
        _watch.told.remove(tell)


def ignore(folder: str | Path, /) -> None:
    """Omit the files below a folder, such as the library's own cache, from the record."""
    _watch.ignored.add(os.path.join(os.path.abspath(folder), ""))


def note_file(path: str | Path, /) -> None:
    """Record a file that the library reads for the user's code."""
    _watch.note("file", path)


def executed(name: str, /) -> None:
    """Record that Python executed a user's module in this process."""
    _watch.executed.add(name)


def loaded_before() -> None:
    """Record the files of the user's modules that this process imported before the record began.

    If a file changed after the process began, the state of its module is recorded as unknown.
    """
    new = [name for name in sys.modules.copy() if name not in _watch.seen]
    _watch.seen.update(new)
    for name in new:
        file = getattr(sys.modules.get(name), "__file__", None) or ""
        known = name in _watch.executed or name in ("__main__", "__mp_main__")
        if known or not file or file.startswith(LIBRARY) or is_installed(file):
            continue
        path = os.path.abspath(file)
        _watch.before[name] = f"file: {path}"
        _watch.depends.setdefault(f"file: {path}", content(path))
        with contextlib.suppress(OSError):
            if os.stat(path).st_ctime > _BEGAN - 1:
                _watch.depends.setdefault(f"{UNKNOWN}: {path}", UNKNOWN)


def record() -> dict[str, str]:
    """Return a dict from the files and modules that the user's code read to their states."""
    return dict(sorted(_watch.depends.items()))


def outdated() -> set[str]:
    """If a recorded file changed, clear the record and return the modules to load again.

    A file that this process wrote itself does not count as changed. If nothing changed, the result
    is empty and the record stays.
    """
    made = {f"{word}: {path}" for path in _watch.made for word in ("file", "kind", "times")}
    kept = {k: v for k, v in _watch.depends.items() if k not in made and v != UNKNOWN}
    if not (different := set(changed(kept))):
        return set()
    return forget(different)


def forget(different: set[str] = frozenset(), /) -> set[str]:  # type: ignore[assignment]
    """Forget all recorded dependencies (files, modules); return the names of recorded modules.

    A module that Python imported before the recording began is in the result only if its own file
    is in `different`, the changed files and modules.
    """
    before = {name for name, key in _watch.before.items() if key in different}
    names = _watch.executed | before
    _watch.executed, _watch.before, _watch.depends, _watch.made = set(), {}, {}, set()
    _watch.seen = set()
    return names
