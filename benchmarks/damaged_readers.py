"""The readers of the library, each for one kind of file, for `damaged_files.py`.

A command hands each file that it opens to one of these. A reader refuses a damaged file by one of
`REFUSES` or by None, or answers with what stood there before the damage.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jaxbounds.experiments import results
from jaxbounds.experiments.sweeps.checkpoint import FORMAT
from jaxbounds.experiments.sweeps.identity import read_identity
from jaxbounds.falsification import load_instance
from jaxbounds.ground.files import load_arrays
from jaxbounds.ground.folders import MARK, Marked
from jaxbounds.ground.private import read_signed
from jaxbounds.ground.readers import json_in
from jaxbounds.runs import ledger, shards
from jaxbounds.runs.folder import _journal_in, failed_before, published_in
from jaxbounds.runs.merged_files import _entries

REFUSES = (ValueError, OSError)
"""Exceptions that commands turn into one sentence."""


def _arrays(found: dict[str, np.ndarray]) -> Any:
    return sorted((name, a.dtype.str, a.shape, a.tobytes()) for name, a in found.items())


def _instance(file: Path) -> Any:
    stored = load_instance(file)
    return json.dumps(stored.meta, sort_keys=True), _arrays(stored.instance)


def _checkpoint(file: Path) -> Any:
    return _arrays(load_arrays(file, form=FORMAT)[0])


def _result(file: Path) -> Any:
    found = results.load(file)
    return str(found.attrs), _arrays({str(name): one.values for name, one in found.items()})


def _owned(file: Path) -> Any:
    """A file that a run only replaces: it is the run's own, or set aside."""
    return True if Marked(file.parent).owns(file.name) else None


def _entries_in(file: Path) -> Any:
    return Marked(file.parent).read(file.name, lambda path: json_in(path, of=_entries))


def _mark(file: Path) -> Any:
    """The foreign names that a damaged mark calls the run's own: there must be none."""
    run, strange = Marked(file.parent), file.parent / "of_the_user"
    strange.write_text("mine")
    own = [name for name in [*run.names, strange.name] if "/" not in name and run.owns(name)]
    return [name for name in own if name == strange.name]


def _journal(file: Path) -> Any:
    """The verdicts in the lines that are whole; fewer after a damage, and no other ones."""
    return [(v.id, v.form, v.status) for kept in _journal_in(file)[1] for v in kept.verdicts]


READERS: dict[str, Callable[[Path], Any]] = {
    MARK: _mark,
    "judged.jsonl": _journal,
    "verdicts.json": lambda file: published_in(file.parent),
    "run.json": lambda file: published_in(file.parent),
    "failed.json": lambda file: failed_before(file.parent) or None,
    "certificates.json": _entries_in,
    "constants.json": _entries_in,
    "sweep.json": lambda file: read_identity(Marked(file.parent)),
    "shard.json": lambda file: shards.read(file.parent),
    "result.nc": _result,
    ledger.LEDGER: lambda file: ledger.read(file.parent),
    ".key": lambda file: [read_signed(text) for text in file.parent.glob("*/*.txt")] or None,
    ".txt": read_signed,
}
"""Readers by the name of the file, or by its ending."""


def reader_of(file: Path) -> Callable[[Path], Any]:
    """The reader of a file."""
    if file.suffix == ".npz":
        return _checkpoint if file.stem.startswith(("state", "chunk")) else _instance
    return READERS.get(file.name) or READERS.get(file.suffix) or _owned


def answer(file: Path) -> str:
    """The digest of a reader's answer; "" where the reader refuses.

    Raises:
        Exception: any other than a refusal.
    """
    try:
        found = reader_of(file)(file)
    except REFUSES:
        return ""
    return "" if found is None else hashlib.sha256(repr(found).encode()).hexdigest()
