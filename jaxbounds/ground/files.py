"""Write files completely or not at all, with a checksum that reveals later damage."""

import contextlib
import hashlib
import json
import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import ml_dtypes
import numpy as np

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.readers import arrays_in

Arrays = Mapping[str, np.ndarray]
if TYPE_CHECKING:
    Place = Path
else:  # an fsspec path is not a `Path`, but has the methods of a `Path`
    Place = object


PARTIAL = ".jaxbounds-partial-"
"""The first part of the name of an unfinished file; 32 random hexadecimal digits follow.

A killed process may leave an unfinished file.
"""


def locate(path: str | Place, /) -> Place:
    """Return the path object for a local path, or for an address in an object store.

    For an address ("gs://bucket/results") fsspec gives an object with the methods of a `Path`.

    Raises:
        Refused: if the extra that installs fsspec is missing, or no installed package can read this
            kind of address.
    """
    if "://" not in str(path):
        return Path(path)
    try:
        from upath import UPath

        found = UPath(path)
        found.fs  # noqa: B018 - imports the package that reads this kind of address
    except (ImportError, ValueError) as problem:
        raise Refused(
            f"path={str(path)!r} is an address that cannot be opened: {problem}. Addresses need an "
            "extra. Try pip install 'jaxbounds[storage]'"
        ) from problem
    return cast(Path, found)


def _is_here(path: Place) -> bool:
    return "://" not in str(path)


class Unreachable(OSError):
    """Raised when an object store (such as gs://) did not answer, or refused a request."""


@contextlib.contextmanager
def reaching(path: Place, /) -> Iterator[None]:
    """Turn any exception of an object store into an OSError that names the store.

    Raises:
        FileNotFoundError: if the object store has no file at `path`.
        Unreachable: for every other exception of the store.
    """
    try:
        yield
    except Exception as problem:
        if _is_here(path):
            raise
        kind = FileNotFoundError if isinstance(problem, FileNotFoundError) else Unreachable
        raise kind(f"{path}: {type(problem).__name__} {problem}") from problem


def is_there(path: Place, /) -> bool:
    """Tell whether a file exists at a path.

    Raises:
        Unreachable: if the object store of the file did not answer.
    """
    if _is_here(path):
        return path.is_file()
    try:
        with reaching(path):
            return bool(cast(Any, path).fs.info(cast(Any, path).path)["type"] == "file")
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def here(path: str | Place, /) -> Iterator[Path]:
    """Provide a local file with the content of `path`, for the duration of a `with` block.

    Raises:
        OSError: if the object store does not have the file, or does not answer.
    """
    path = locate(path)
    if _is_here(path):
        yield path
        return
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / path.name
        with reaching(path):
            cast(Any, path).fs.get_file(cast(Any, path).path, str(copy))
        yield copy


@contextlib.contextmanager
def whole(path: str | Place, /, *, lasting: bool = True) -> Iterator[IO[bytes]]:
    """Open a binary file for writing; `path` gets the content only if the block raises nothing.

    If `lasting` is true, the function fsyncs the data before the rename; the fsync takes
    milliseconds. Pass False for a file that can be computed again.
    """
    path = locate(path)
    if not _is_here(path):
        with tempfile.NamedTemporaryFile() as file:
            yield cast(IO[bytes], file)
            file.flush()
            with reaching(path):  # a direct write to the store would leave a part after an error
                cast(Any, path).fs.put_file(file.name, cast(Any, path).path)
        return
    partial = path.with_name(f"{PARTIAL}{uuid.uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(partial, "x+b") as file:
            yield file
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException as problem:
        with contextlib.suppress(OSError):
            partial.unlink()
        if isinstance(problem, OSError) and problem.errno is not None:
            problem.filename = str(path)
        raise


def try_to_write(folder: Place, /) -> None:
    """Write and remove a test file, so that a run detects a full or read-only disk at its start.

    The file has 64 KiB and a unique name. If the folder was absent, the function removes it again.

    Raises:
        OSError: if the write fails; the exception names the folder.
    """
    probe = folder / f"{PARTIAL}{uuid.uuid4().hex}"
    if not _is_here(folder):
        with reaching(folder):
            probe.write_bytes(b"0" * 65536)
            probe.unlink()
        return
    new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(probe, "xb") as file:
            file.write(b"0" * 65536)
    except OSError as problem:
        problem.filename = str(folder)
        raise
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
            if new:
                folder.rmdir()


def write_text(path: str | Place, text: str, /) -> Place:
    """Write a text file in UTF-8, completely or not at all."""
    with whole(path) as file:
        file.write(text.encode())
    return locate(path)


_NAMED = "types"
"""The name of the archive entry that lists the array types which NumPy's file format cannot
name."""


def _word(dtype: np.dtype) -> str:
    """Return a word that identifies a dtype, because types of ml_dtypes share one `dtype.str`."""
    return dtype.name if dtype.isbuiltin == 2 else dtype.str


def _stored(array: np.ndarray) -> np.ndarray:
    if _word(array.dtype) == array.dtype.str:
        return array
    return np.require(array, requirements="C").view(f"u{array.dtype.itemsize}")


def can_be_stored(dtype: np.dtype, /) -> bool:
    """Tell whether `save_arrays` can store arrays of a dtype without a change of any bit."""
    special = _word(dtype) != dtype.str
    return not dtype.hasobject and (not special or hasattr(ml_dtypes, dtype.name))


def digest(arrays: Arrays, /, *words: str) -> str:
    """Return one SHA-256 of all named arrays (names, types, shapes, values) and of `words`."""
    total = hashlib.sha256(json.dumps(words).encode())
    for name in sorted(arrays):
        array = arrays[name]
        total.update(f"{name}:{_word(array.dtype)}:{array.shape}".encode())
        if array.size:
            total.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def save_arrays(
    path: str | Place, arrays: Arrays, /, *, form: str, about: str = "", lasting: bool = True
) -> Place:
    """Write arrays as .npz with a checksum, completely or not at all.

    The text `form` is the kind and version of the file; `load_arrays` compares it with the expected
    text. The file stores the text `about` with the arrays. If `lasting` is true, the function
    fsyncs the file (see `whole`).

    Raises:
        TypeError: if an array holds Python objects, or has a type that `load_arrays` cannot read.
    """
    with whole(path, lasting=lasting) as file:
        write_arrays(file, arrays, form=form, about=about)
    return locate(path)


def write_arrays(file: IO[bytes], arrays: Arrays, /, *, form: str, about: str = "") -> None:
    """Write arrays into an open file, in the format of `save_arrays`.

    Raises:
        TypeError: if an array holds Python objects, or has a type that `load_arrays` cannot read.
    """
    if not all(can_be_stored(array.dtype) for array in arrays.values()):
        raise TypeError(
            f"some arrays have a type that no file can store, got arrays={list(arrays)}. Try "
            "arrays of numbers"
        )
    named: Any = {f"array/{name}": _stored(array) for name, array in arrays.items()}
    special = {k: _word(a.dtype) for k, a in arrays.items() if _word(a.dtype) != a.dtype.str}
    if special:
        named[_NAMED] = np.array(json.dumps(special))
    np.savez(file, stamp=np.array([form, about, digest(arrays, form, about)]), **named)


def load_arrays(
    path: str | Place, /, *, form: str, limit: int = 2**34
) -> tuple[dict[str, np.ndarray], str]:
    """Read the arrays and the text that `save_arrays` wrote.

    The text `form` is the expected kind and version of the file. The unpacked arrays may take at
    most `limit` bytes.

    Raises:
        Refused: if the file is missing or of another kind, or if the file's checksum does not
            match. The message gives no advice; the caller adds the advice.
        Unreachable: if the object store that has the file does not answer.
    """
    try:
        with here(path) as copy:
            stored = arrays_in(copy, limit=limit)
        found, about, check = (str(entry) for entry in stored.pop("stamp"))
        named = json.loads(str(stored.pop(_NAMED, "{}")))
        arrays = {name.removeprefix("array/"): array for name, array in stored.items()}
        for name, word in named.items():
            arrays[name] = arrays[name].view(getattr(ml_dtypes, word))
    except Unreachable:
        raise
    except Exception as problem:  # the readers may raise anything for a damaged file
        raise Refused(
            f"path={str(path)!r} is missing or damaged ({type(problem).__name__})"
        ) from problem
    if found != form:
        raise Refused(
            f"path={str(path)!r} is of another kind or version, got form={found[:40]!r}, "
            f"expected {form!r}"
        )
    if check != digest(arrays, form, about):
        raise Refused(f"path={str(path)!r} is damaged: the checksum does not match the arrays")
    return arrays, about
