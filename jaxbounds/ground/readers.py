"""Read the library's files, and check structure and size before memory is allocated.

A reader takes a local file, and executes no code stored in the file. If the library cannot have
written the content, the reader raises `Damaged` with the file's name.
"""

import hashlib
import json
import math
import os
import stat
import types
import zipfile
from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import numpy as np

from jaxbounds.ground.exceptions import Refused

Value = TypeVar("Value")

TEXT = 2**26
"""`bytes_in` reads at most this many bytes from a file; a larger limit may fill more memory."""
CONTAINERS, ENTRIES = 2**21, 2**22
"""Limits for a JSON text that `parsed` accepts. `CONTAINERS` limits the number of objects and
lists, `ENTRIES` the number of commas. If these limits are larger, a small file can fill more
memory.
"""
HEADER = 2**16
"""`arrays_in` accepts an array's header with at most this many bytes.

If this limit is larger, `arrays_in` accepts longer headers.
"""
NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"
"""The name that netCDF-4 gives to a dimension without a variable. A reader needs no values for this
dimension.
"""
UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, RecursionError, OverflowError)
"""The exceptions that a conversion may raise for a JSON value with an unexpected structure."""


class Damaged(Refused):
    """Raised when the library did not write a file's content; the message names the file."""


def _plain_file(path: Path) -> BufferedReader:
    """Open a plain file, and refuse a pipe or a device, from which a read may never end."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    # A file object refuses the descriptor of a folder, but does not close the descriptor.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Damaged(f"{path} is no plain file, got path={str(path)!r}. Try another folder")
    return open(descriptor, "rb")


def bytes_in(path: Path, /, *, limit: int = TEXT) -> bytes:
    """Return the content of a plain file.

    Raises:
        Damaged: if the path is no plain file, or the file has more bytes than the limit.
        OSError: if the file is missing or cannot be read.
    """
    with _plain_file(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Damaged(
            f"{path} has more than limit={limit} bytes, but the library writes no file of this "
            "kind that is so large. Try another folder"
        )
    return data


def sha256_of(path: Path, /) -> str:
    """Return the SHA-256 of the content of a plain file.

    Raises:
        Damaged: if the path is no plain file.
        OSError: if the file is missing or cannot be read.
    """
    with _plain_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def parsed(data: bytes, /) -> Any:
    """Return the value of a JSON text.

    Raises:
        Refused: if the text has too many objects, lists or commas, or nests them too deeply.
        ValueError: if the bytes of the file are not a JSON text.
    """
    containers, entries = data.count(b"{") + data.count(b"["), data.count(b",")
    if containers > CONTAINERS or entries > ENTRIES:
        raise Refused(
            f"the JSON text has objects and lists={containers} and commas={entries}, expected at "
            f"most {CONTAINERS} and {ENTRIES}. Try to compute the file again"
        )
    try:
        return json.loads(data.decode("utf8"))
    except RecursionError:
        raise Refused(
            f"the JSON text nests its objects and lists={containers} too deeply. Try to compute "
            f"the file again"
        ) from None


def json_in(path: Path, /, *, of: Callable[[Any], Value], limit: int = TEXT) -> Value:
    """Read a JSON file of at most `limit` bytes.

    The function `of` converts the parsed JSON to the result, and raises one of `UNREADABLE` for
    JSON with an unexpected structure.

    Raises:
        Damaged: if the file is not JSON, or if `of` raises one of `UNREADABLE`.
        OSError: if the file is missing or cannot be read.
    """
    try:
        return of(parsed(bytes_in(path, limit=limit)))
    except Damaged:
        raise
    except UNREADABLE as problem:
        words = " ".join(str(problem).split())[:120]
        raise Damaged(f"{path} is damaged ({type(problem).__name__}: {words})") from problem


_WORDS = (None, "inf", "-inf")
"""The JSON values that stand for NaN, infinity and minus infinity."""


def fits(value: Any, hint: Any, /) -> bool:
    """Tell whether a parsed JSON value has the structure that `to_json` gives a type's values."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if hint is None or hint is type(None):
        return value is None
    if hint is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number or (isinstance(value, str | None) and value in _WORDS)
    if hint in (str, bool, int):
        return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))
    if origin is Literal:
        return isinstance(value, str | int | None) and value in inner
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in inner)
    if origin in (tuple, list):
        if not isinstance(value, list | tuple):
            return False
        if origin is list or inner[1:] == (...,):
            return all(fits(one, inner[0]) for one in value)
        return len(value) == len(inner) and all(map(fits, value, inner))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        named = isinstance(value, dict) and all(isinstance(name, str) for name in value)
        return named and all(fits(one, inner[1]) for one in value.values())
    return isinstance(value, dict) if hint is dict else False


def is_inside(name: str, /) -> bool:
    """Tell whether a relative file name, read from a file, stays inside the file's folder."""
    parts = PurePosixPath(name).parts
    return not (name.startswith("/") or "\\" in name or "\0" in name or ".." in parts)


def lines_in(path: Path, /, *, limit: int = 4 * TEXT) -> Iterator[tuple[int, bytes]]:
    """Yield the number (from 1) and the content of each line, but not of an unfinished last line.

    Raises:
        Damaged: if the path is no plain file, or the file has more bytes than the limit.
        OSError: if the file is missing or cannot be read.
    """
    *whole, _ = bytes_in(path, limit=limit).split(b"\n")
    return ((number, line) for number, line in enumerate(whole, 1) if line.strip())


def _array_of(part: Any, size: int) -> np.ndarray:
    version = np.lib.format.read_magic(part)
    if version not in ((1, 0), (2, 0)):
        raise Refused(
            f"an array has the .npy format version={version}, expected (1, 0) or (2, 0). Try to "
            "compute the file again"
        )
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, by_columns, dtype = read(part, max_header_size=HEADER)
    if dtype.hasobject or not dtype.itemsize:
        raise Refused(
            f"an array has dtype={dtype}, expected a type of numbers. Try to compute the file again"
        )
    count = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or count != size - part.tell():
        raise Refused(
            f"an array of shape={shape} and dtype={dtype} does not fit the {size} bytes of its "
            "entry. Try to compute the file again"
        )
    buffer, filled = bytearray(count), 0
    while filled < count:
        step = part.readinto(memoryview(buffer)[filled:])
        if not step:
            raise Refused(
                f"the data of an array end after bytes={filled}, expected {count} bytes. Try to "
                f"compute the file again"
            )
        filled += step
    if part.read(1):  # this read also compares the archive's checksum
        raise Refused(
            f"an array declares bytes={count} but the file stores more. Try to compute the file "
            f"again"
        )
    return np.ndarray(shape, dtype, buffer, order="F" if by_columns else "C")


def arrays_in(path: Path, /, *, limit: int) -> dict[str, np.ndarray]:
    """Return a dict from names to the arrays of an .npz file; refuse arrays of Python objects.

    The function reads an array only if the size that its header states equals the size in the
    archive.

    Raises:
        Refused: if the file is not an .npz file, or unpacks to more bytes than the limit.
        OSError: if the file is missing or cannot be read.
    """
    found: dict[str, np.ndarray] = {}
    with _plain_file(path) as raw, zipfile.ZipFile(raw) as parts:
        members = parts.infolist()
        total = sum(member.file_size for member in members)
        if total > limit:
            raise Refused(
                f"the arrays of the file take bytes={total}, expected at most {limit}. Try to "
                "compute the file again"
            )
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name in found or not member.filename.endswith(".npy"):
                raise Refused(
                    f"entry={member.filename[:80]!r} is no array, or occurs twice. Try to compute "
                    "the file again"
                )
            with parts.open(member) as part:
                found[name] = _array_of(part, member.file_size)
    return found


def check_netcdf(path: Path, /, *, limit: int) -> None:
    """Check that a netCDF-4 file stores the bytes that its variables declare.

    Without the check, a small file with a huge declared variable (chunked, without data) could fill
    the memory.

    Raises:
        Refused: if a variable declares more bytes than the file stores for it, or all variables
            together declare more bytes than the limit.
        OSError: if the file is not a netCDF-4 file.
    """
    import h5py  # slow to import

    total = 0
    with h5py.File(path, "r") as file:

        def look(name: str, part: Any) -> None:
            nonlocal total
            if not isinstance(part, h5py.Dataset):
                return
            label = part.attrs.get("NAME", b"")
            if isinstance(label, bytes) and label.startswith(NO_VARIABLE):
                return
            wanted = math.prod(part.shape or ()) * part.dtype.itemsize if part.shape else 0
            if part.external or part.is_virtual:
                raise Refused(
                    f"variable={name} has its data in another file. Try to compute the file again"
                )
            # For strings of variable length, the declared bytes are those of the references.
            if wanted > part.id.get_storage_size():
                raise Refused(
                    f"variable={name} declares {wanted} bytes, but the file stores fewer. Try to "
                    "compute the file again"
                )
            total += wanted

        file.visititems(look)
    if total > limit:
        raise Refused(
            f"the variables of the file take bytes={total}, expected at most {limit}. Try to "
            "compute the file again"
        )
