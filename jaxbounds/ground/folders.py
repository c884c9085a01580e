"""Mark the files that runs wrote in a folder, so that runs replace and remove no other files.

The mark is the file `.jaxbounds` in the folder. The mark lists the name of each file that a run
wrote, and the digest of the file's content. A file with another name or another content belongs to
the user.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, TypeVar

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import PARTIAL, Place, is_there, locate, reaching, whole
from jaxbounds.ground.readers import Damaged, bytes_in, sha256_of
from jaxbounds.ground.text import printable

Value = TypeVar("Value")

MARK = ".jaxbounds"
FORMAT = "jaxbounds-folder-1"
HEAD = 2**16
"""The largest number of bytes of a file's first line whose digest (SHA-256) `Marked` compares with
the recorded digest. If this number of bytes is larger, `Marked` reads longer lines.
"""


def _local(place: Place) -> bool:
    return "://" not in str(place)


def say(words: str, /) -> None:
    """Print a message for the user on standard error, without control characters."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # a closed stream
        print(f"jaxbounds: {printable(words)}", file=sys.stderr)


def refuse_links(folder: Path, name: str, /) -> None:
    """Refuse a relative name that leads out of a folder, directly or through a symbolic link.

    Raises:
        Refused: if the name leads out of the folder, or a part of the path is a symbolic link.
    """
    parts = PurePosixPath(name).parts
    if not parts or ".." in parts or PurePosixPath(name).is_absolute():
        raise Refused(
            f"name={name!r} leads out of the folder {folder}. Try a name inside of the folder"
        )
    path = folder
    for part in parts:
        path = path / part
        if path.is_symlink():
            raise Refused(
                f"{path} is a link, and a run writes into plain files and folders only, got "
                f"name={name!r}. Try another --out, or remove the link"
            )


def set_aside(path: Place, why: str, /) -> Place:
    """Rename a file or folder, to protect it from a write; print both names; return the new path.

    The reason `why` is a phrase that follows the path in the message ("was changed").
    """
    for number in range(1, 10**6):
        target = path.with_name(f"{path.stem}.aside-{number}{path.suffix}")
        if not _local(path):
            with reaching(path):
                if target.exists():
                    continue
                path.rename(target)
            break
        try:
            if path.is_dir() and not path.is_symlink():
                target.mkdir()
            else:
                open(target, "xb").close()
        except FileExistsError:
            continue
        os.replace(path, target)
        break
    say(f"{path} {why}; the old content is kept as {target.name}")
    return target


class Marked:
    """A folder of the user, in which runs write files of their own.

    The names of files are relative to the folder, with "/" between their parts. The first write
    makes the folder.

    Raises:
        Refused: in any method, if the mark `.jaxbounds` is a symbolic link, or the user has a file
            `.jaxbounds` there.
    """

    def __init__(self, path: str | Place) -> None:
        self.path = locate(path)
        self._digests: dict[str, set[str]] | None = None
        self._stamps: dict[str, tuple[int, ...]] = {}

    def _read(self) -> dict[str, set[str]]:
        if self._digests is not None:
            return self._digests
        mark, found = self.path / MARK, dict[str, set[str]]()
        if _local(self.path):
            refuse_links(self.path, MARK)
        if not is_there(mark):
            return found
        with reaching(mark):
            data = bytes_in(mark) if _local(mark) else mark.read_bytes()
        head, *lines = data.decode("utf8", "replace").split("\n")
        if head != json.dumps({"format": FORMAT}):
            raise Refused(
                f"{mark} is not this library's list of a run's files, got first line={head!r:.60}. "
                f"Try another --out"
            )
        for line in lines:
            with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):  # torn line
                entry = json.loads(line)
                found.setdefault(str(entry["name"]), set()).add(str(entry["sha256"]))
        self._digests = found
        return found

    def _note(self, name: str, digest: str) -> None:
        """Add a file's name and digest to the mark `.jaxbounds`, before the file is created."""
        known = self._read()
        line = json.dumps({"name": name, "sha256": digest}) + "\n"
        mark, head = self.path / MARK, json.dumps({"format": FORMAT}) + "\n"
        if digest in known.get(name, ()):
            return
        known.setdefault(name, set()).add(digest)
        self._digests = known
        if _local(self.path) and mark.is_file():
            with open(mark, "a", encoding="utf8") as file:
                file.write(line)
            return
        entries = [json.dumps({"name": n, "sha256": d}) for n in known for d in sorted(known[n])]
        with whole(mark, lasting=False) as new:
            new.write((head + "\n".join(entries) + "\n").encode())

    def place(self, name: str, /) -> Place:
        """Return the path of a file in this folder.

        Raises:
            Refused: if the name leads out of the folder, or a part of the path is a symbolic link.
        """
        if _local(self.path):
            refuse_links(self.path, name)
        return self.path / name

    @property
    def names(self) -> list[str]:
        """Return the names of all files that runs wrote, including files that someone changed."""
        return list(self._read())

    def _digest(self, path: Place) -> str:
        if _local(path):
            return sha256_of(path)
        with reaching(path):
            return hashlib.sha256(path.read_bytes()).hexdigest()

    def read(self, name: str, read: Callable[[Place], Value], /) -> Value | None:
        """Return the content of a file; None if the file is absent or damaged.

        A run's file also counts as damaged if someone changed it after the run. The method renames
        a run's damaged file (see `set_aside`), and leaves a file of the user unchanged. The
        function `read` raises `Damaged` if the library did not write the content.
        """
        path = self.place(name)
        try:
            found = read(path)
            self.refuse_changed(name)
            return found
        except (FileNotFoundError, NotADirectoryError):
            return None
        except Damaged as problem:
            words = str(problem).removeprefix(f"{path} ")
            if name in self._read():
                set_aside(path, words)
            else:
                say(f"{path} {words}; no run wrote this file, so the file stays as it is")
            return None

    def refuse_changed(self, name: str, /) -> None:
        """Refuse a file if its content differs from the content that a run wrote.

        Raises:
            Damaged: if a run wrote the file, and the file's content has changed since.
            OSError: if the list of the files that runs wrote cannot be read.
        """
        path = self.place(name)
        if not _local(path):  # a comparison would fetch the remote file once more
            return
        now = {self._digest(path), f"head {_head_of(path)}"}
        self._digests = None  # another process may have written the mark and then the file
        known = self._read().get(name)
        if known and not known & now:
            raise Damaged(f"{path} was changed after a run wrote it")

    def owns(self, name: str, /) -> bool:
        """Tell whether a run wrote the named file and no one changed the file afterwards."""
        digests = self._read().get(name, set())
        if not digests or not is_there(self.place(name)):
            return False
        path = self.place(name)
        if not _local(path):  # a comparison would fetch the remote file first
            return True
        if self._stamps.get(name) == _stamp(path):
            return True
        with contextlib.suppress(Damaged):
            return self._digest(path) in digests or f"head {_head_of(path)}" in digests
        return False

    def foreign(self, names: Iterable[str], /) -> list[str]:
        """Return the given names, or folders of these names, at which the user has files."""
        found = dict[str, None]()
        for name in names:
            path = self.place(name)
            if path.exists() and not self._knows(name):
                found[name] = None
            for folder in PurePosixPath(name).parents[:-1] if _local(path) else ():
                if (self.path / folder).is_file():
                    found[str(folder)] = None
        return list(found)

    def _knows(self, name: str) -> bool:
        """Tell whether a run, in this or another process, wrote a file with the given name.

        A run adds the name to the mark (list of written files) before the run makes the file. If
        the file exists, a later reading of the mark therefore finds the name.
        """
        if name not in self._read():
            self._digests = None
        return name in self._read()

    @contextlib.contextmanager
    def writing(self, name: str, /, *, lasting: bool = True) -> Iterator[IO[bytes]]:
        """Open a binary file for writing, which appears as `name` if the block raises nothing.

        The method renames an old file of this name (see `set_aside`) if a user wrote the file, or
        if someone changed the file after a run wrote it.
        """
        path = self.place(name)
        with whole(path, lasting=lasting) as file:
            yield file
            file.flush()
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
            if is_there(path) and not self.owns(name):
                set_aside(path, "was changed since a run wrote it, or is not of a run")
            self._note(name, digest)
        if _local(path):
            self._stamps[name] = _stamp(path)

    def write(self, name: str, content: bytes | str, /, *, lasting: bool = True) -> Place:
        """Write a file completely or not at all; a string is encoded in UTF-8."""
        with self.writing(name, lasting=lasting) as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return self.path / name

    def begin_lines(self, name: str, head: str, /) -> None:
        """Begin a file to which a run adds lines; the first line, `head`, identifies the file."""
        self._note(name, f"head {hashlib.sha256(head.encode()).hexdigest()}")
        self.write(name, f"{head}\n")

    def add_line(self, name: str, line: str, /) -> None:
        """Add a line to a file that `begin_lines` began; return after the line is on the disk."""
        path = self.place(name)
        with open(path, "ab", opener=_existing) as file:
            file.write(f"{line}\n".encode())
            file.flush()
            os.fsync(file.fileno())

    def move(self, old: str, new: str, /) -> None:
        """Rename a run's file; a user's file with the new name first gets another name."""
        source, target = self.place(old), self.place(new)
        if is_there(target) and not self.owns(new):
            set_aside(target, "was changed since a run wrote it, or is not of a run")
        self._note(new, self._digest(source))
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(source, target)

    def remove(self, name: str, /) -> bool:
        """Remove a run's file and its empty folders; return whether the file was removed."""
        if not self.owns(name):
            return False
        path = self.place(name)
        with reaching(path):
            path.unlink()
        if _local(path):
            with contextlib.suppress(OSError):
                for _ in PurePosixPath(name).parts[1:]:
                    path = path.parent
                    path.rmdir()
        return True

    def scratch(self, name: str, /) -> Path:
        """Return the path of a new folder with a unique name; `sweep_up` removes the folder.

        The first write into the folder makes the folder.
        """
        own = f"{name}-{uuid.uuid4().hex}"
        self._note(f"{own}/", "folder")
        return Path(self.place(own))

    def sweep_up(self, under: str, /) -> None:
        """Remove the files that runs wrote below a subfolder, and no other file."""
        for name in [name for name in self.names if name.startswith(f"{under}/")]:
            with contextlib.suppress(Refused):  # a link now has the name; no run wrote the link
                if name.endswith("/"):
                    shutil.rmtree(self.place(name.rstrip("/")), ignore_errors=True)
                else:
                    self.remove(name)
        with contextlib.suppress(OSError, ValueError):
            top = Path(self.place(under))
            for part in [*top.glob(f"{PARTIAL}*"), *top.glob(f"*/{PARTIAL}*")]:
                if re.fullmatch("[0-9a-f]{32}", part.name.removeprefix(PARTIAL)):
                    part.unlink()
            for folder in [*top.glob("*/"), top]:
                if not folder.is_symlink():
                    with contextlib.suppress(OSError):
                        folder.rmdir()
        self._forget(lambda name: name.startswith(f"{under}/") and not self.place(name).exists())

    def tidy(self) -> None:
        """Remove from the mark (list of written files) the names of files that no longer exist."""
        self._forget(lambda name: not self.place(name.rstrip("/")).exists())

    def _forget(self, gone: Callable[[str], bool]) -> None:
        self._digests = None  # another process may have added a name
        known = self._read()

        def over(name: str) -> bool:
            with contextlib.suppress(ValueError, OSError):
                return gone(name)
            return False

        kept = {name: digests for name, digests in known.items() if not over(name)}
        if len(kept) < len(known):
            entries = [json.dumps({"name": n, "sha256": d}) for n in kept for d in sorted(kept[n])]
            text = "\n".join([json.dumps({"format": FORMAT}), *entries, ""])
            with whole(self.path / MARK, lasting=False) as new:
                new.write(text.encode())
            self._digests = kept


def _stamp(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _head_of(path: Place) -> str:
    if not _local(path):
        return ""
    with open(path, "rb") as file:
        return hashlib.sha256(file.readline(HEAD).removesuffix(b"\n")).hexdigest()


def _existing(path: str, flags: int) -> int:
    return os.open(path, (flags & ~os.O_CREAT) | getattr(os, "O_NOFOLLOW", 0))
