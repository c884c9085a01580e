"""Digest of a statement's source, which distinguishes statements with the same id."""

import functools
import hashlib
import inspect
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxbounds.claims.statements import Statement


def source_digest(statement: Statement, /) -> str:
    """Return the SHA-256 of a statement's sets, and of its files' paths and contents.

    A function without a file, as in a notebook, contributes its code to the digest.
    """
    numbers = [s for s in getattr(statement.evaluate, "sides", ()) if not callable(s)]
    total = hashlib.sha256(repr((statement.id, statement.over, numbers)).encode())
    for part in sorted({_written(function) for function in _functions(statement)}):
        total.update(part.encode(errors="surrogatepass"))
    return total.hexdigest()


def _functions(s: Statement) -> Iterator[Any]:
    own = (s.evaluate, s.hypotheses, s.project, s.cases, *s.judges, *s.samplers.values())
    sides = getattr(s.evaluate, "sides", ())
    for function in filter(callable, (*own, *sides)):
        yield from _bare(function)


def _bare(function: Any) -> Iterator[Any]:
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(getattr(function, "__func__", function))
    yield function
    if getattr(function, "own", None) is not None:  # sets hold the statement's own
        yield from _bare(function.own)


def _written(function: Any) -> str:
    module = getattr(function, "__module__", None) or ""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file and Path(file).is_file():
        found = Path(file).resolve()
        told = found.stat()
        return f"{found} {_of_file(found, told.st_mtime_ns, told.st_ctime_ns, told.st_size)}"
    code = getattr(function, "__code__", None)
    return f"{module} {getattr(function, '__qualname__', '')} {_of_code(code)}"


@functools.lru_cache(maxsize=1024)
def _of_file(file: Path, *when: int) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _of_code(code: types.CodeType | None) -> str:
    if code is None:
        return ""
    inner = [_of_code(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    parts = (code.co_code, code.co_names, code.co_varnames, code.co_freevars, inner)
    return hashlib.sha256(repr(parts).encode(errors="surrogatepass")).hexdigest()
