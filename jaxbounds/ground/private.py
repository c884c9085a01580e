"""Make folders and keys that no other user can write, so that files there are safe to load."""

import contextlib
import hmac
import os
import secrets
import stat
import uuid
from pathlib import Path

KEY, LENGTH = ".key", 32
"""The name of the file that holds a folder's secret key, and the length of the key in bytes. A
larger length makes the key harder to guess.
"""
SIGNED = 32
"""The length of a signature in bytes, at most 32.

A larger length makes a signature harder to guess.
"""
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def fault_of(folder: Path, /) -> str:
    """Return the reason why another user may have written into a folder; "" if there is none."""
    try:
        found = folder.stat()
    except OSError as problem:
        return problem.strerror or type(problem).__name__
    if not stat.S_ISDIR(found.st_mode):
        return "it is no folder"
    if not hasattr(os, "geteuid"):  # this operating system has no owners of files
        return ""
    if found.st_uid != os.geteuid():
        return f"user {found.st_uid} owns it"
    return "other users can write there" if found.st_mode & _OTHERS_WRITE else ""


def private(folder: Path, /) -> Path | None:
    """Make a folder, if it is absent, that only the user of this process can write; return it.

    The result is None if the folder cannot be made, if another user owns it, or if other users can
    write into it.
    """
    try:
        missing = [level for level in (folder, *folder.parents) if not level.exists()]
        for level in reversed(missing):
            level.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return None
    return None if fault_of(folder) else folder


def key_of(folder: Path, /) -> bytes | None:
    """Return the 32-byte random key of a private folder, and make the key if it is absent.

    Only the owner of the folder can read the key. The result is None if the folder is not private,
    or a key cannot be stored in it.
    """
    if private(folder) is None:
        return None
    with contextlib.suppress(OSError):
        return _read(folder / KEY) or _made(folder / KEY)
    return None


def signature(key: bytes, file: Path, content: bytes, /) -> bytes:
    """Return the 32-byte signature of a file's name and content; computing it needs the key."""
    name = f"{file.parent.name}/{file.name}\n".encode(errors="surrogateescape")
    return hmac.digest(key, name + content, "sha256")


def read_signed(file: Path, /) -> bytes | None:
    """Return the content of a file, without the `signature` with which the file begins.

    The result is None if the file is missing, cut or changed, or if its folder is not private.
    """
    try:
        written = file.read_bytes()
    except OSError:
        return None
    key, check, content = key_of(file.parent), written[:SIGNED], written[SIGNED:]
    if key is None or not hmac.compare_digest(check, signature(key, file, content)):
        return None
    return content


def _made(file: Path) -> bytes | None:
    """Make a new secret key; if two processes make keys at the same time, the later key stays."""
    partial = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(secrets.token_bytes(LENGTH))
    os.replace(partial, file)
    return _read(file)


def _read(file: Path) -> bytes | None:
    if not file.exists() or file.is_symlink():
        return None
    with open(file, "rb") as content:
        found = os.fstat(content.fileno())
        foreign = hasattr(os, "geteuid") and (
            found.st_uid != os.geteuid() or bool(found.st_mode & _OTHERS)
        )
        key = content.read(LENGTH + 1)
    return key if len(key) == LENGTH and not foreign else None
