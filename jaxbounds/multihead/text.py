"""Labelled sentences from files.

The module reads GLUE's SST-2 (`train.tsv`, `dev.tsv`, or Parquet) and the film-review snippets in
the source archive of vaderSentiment 3.3.2 (Hutto and Gilbert 2014). This package contains no
sentence of SST-2 or of the snippets.
"""

import hashlib
import io
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxbounds.ground.exceptions import Refused

SNIPPETS_SHA256 = "c8293b0d942e90e223ea2c0955d969040d1a1be514a978b9af0698940bd13350"
SNIPPETS_NAME = "movieReviewSnippets_GroundTruth.txt"
SNIPPETS_INNER = "hutto_ICWSM_2014.tar.gz"
FETCH_SNIPPETS = "pip download --no-deps --no-binary :all: vaderSentiment==3.3.2"
NEEDS_PARQUET = "Parquet files need pyarrow: pip install 'jaxbounds[sst2]'"


class Sentences(NamedTuple):
    """Texts and their labels.

    Attributes:
        texts: the n texts, unchanged.
        labels: (n,) int32, 1 for praise and 0 for blame.
    """

    texts: tuple[str, ...]
    labels: np.ndarray

    def take(self, rows: np.ndarray, /) -> "Sentences":
        """Return the sentences at `rows`, in that order."""
        return Sentences(tuple(self.texts[i] for i in rows), self.labels[rows])


def _checked(path: Path, texts: Sequence, labels: Sequence) -> Sentences:
    where = f"{path} has"
    if not texts:
        raise Refused(f"{where} sentences=0, expected at least one. Try another file")
    lost = [row for row, text in enumerate(texts) if not isinstance(text, str) or not text.strip()]
    if lost:
        raise Refused(
            f"{where} {len(lost)} empty or null sentences of {len(texts)}, the first in"
            f" row={lost[0]}: the file was read or written wrongly. Try fetching it again"
        )
    if all(label in (-1, "-1", None, "") for label in labels):
        raise Refused(
            f"{where} labels=none, as in GLUE's test split, expected 0 and 1. Try the dev"
            " (validation) split"
        )
    odd = [row for row, label in enumerate(labels) if label not in (0, 1, "0", "1")]
    if odd:
        raise Refused(
            f"{where} {len(odd)} labels that are neither 0 nor 1, the first in row={odd[0]}:"
            f" label={labels[odd[0]]!r}. Try to remove or correct these rows"
        )
    return Sentences(tuple(texts), np.asarray([int(label) for label in labels], np.int32))


def read_tsv(path: str | Path, /) -> Sentences:
    """Read a split of GLUE's SST-2: header `sentence<tab>label`; quotes are part of the text.

    Raises:
        Refused: if the file cannot be read, has a different header, or has a row without a label.
    """
    path = Path(path)
    try:
        lines = path.read_bytes().decode("utf8").split("\n")
    except (OSError, UnicodeDecodeError) as problem:
        raise Refused(
            f"cannot read path={path} as UTF-8 text ({problem}). Try fetching it again"
        ) from None
    lines = [line.removesuffix("\r") for line in lines]
    if lines[0] == "index\tsentence":
        raise Refused(f"path={path} is GLUE's test split, which has no labels. Try dev.tsv")
    if lines[0] != "sentence\tlabel":
        raise Refused(
            f"{path}: header={lines[0][:60]!r}, expected sentence<tab>label. Try the train.tsv or"
            " dev.tsv of SST-2"
        )
    rows = [line.split("\t") for line in (lines[1:-1] if lines[-1] == "" else lines[1:])]
    broken = [number for number, row in enumerate(rows) if len(row) != 2]
    if broken:
        raise Refused(
            f"{path}: {len(broken)} rows are not a sentence, a tab and a label; the first is"
            f" line={broken[0] + 2}: {' '.join(rows[broken[0]])[:60]!r}. Try to correct these"
            " rows"
        )
    return _checked(path, [row[0] for row in rows], [row[1] for row in rows])


def read_parquet(path: str | Path, /) -> Sentences:
    """Read a split of SST-2 as Parquet, with columns `sentence` and `label`.

    Raises:
        Refused: if the file cannot be read, lacks a column, or has nulls or missing labels.
        ImportError: if pyarrow is missing; the message tells how to install pyarrow.
    """
    path = Path(path)
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as problem:
        raise ImportError(NEEDS_PARQUET) from problem
    try:
        table = pyarrow.parquet.read_table(path, columns=["sentence", "label"])
    except (OSError, pyarrow.ArrowException) as problem:
        words = str(problem).splitlines()[0][:200]
        raise Refused(
            f"cannot read path={path} as Parquet ({words}). Try fetching it again"
        ) from problem
    if table.column_names != ["sentence", "label"]:
        raise Refused(
            f"{path}: columns={', '.join(table.column_names)}, expected sentence and label."
            " Try the Parquet files of SST-2"
        )
    return _checked(path, table["sentence"].to_pylist(), table["label"].to_pylist())


def _member(archive: bytes, name: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        for entry in tar:
            if entry.isfile() and Path(entry.name).name == name:
                file = tar.extractfile(entry)
                return b"" if file is None else file.read()
    raise KeyError(name)


def read_snippets(path: str | Path, /) -> Sentences:
    """Read the 10,568 film-review snippets with nonzero mean rating; a positive rating is praise.

    Args:
        path: `vaderSentiment-3.3.2.tar.gz` (`FETCH_SNIPPETS` fetches it), or the file of ratings in
            this archive.

    Raises:
        Refused: if the archive is broken, or its content is not the published ratings.
    """
    path = Path(path)
    cure = f"fetch it again: {FETCH_SNIPPETS}"
    try:
        content = path.read_bytes()
        if path.name != SNIPPETS_NAME:
            content = _member(_member(content, SNIPPETS_INNER), SNIPPETS_NAME)
    except KeyError as problem:
        raise Refused(f"path={path} holds no {problem.args[0]}. Try again: {cure}") from None
    except (OSError, EOFError, tarfile.TarError, zlib.error) as problem:
        raise Refused(
            f"cannot read path={path} ({type(problem).__name__}). Try again: {cure}"
        ) from problem
    found = hashlib.sha256(content).hexdigest()
    if found != SNIPPETS_SHA256:
        raise Refused(
            f"{path}: {SNIPPETS_NAME} has sha256={found}, expected {SNIPPETS_SHA256}: it is"
            f" another file. Try again: {cure}"
        )
    rows = [line.split("\t") for line in content.decode("utf8").split("\r\n") if line]
    rated = [(text, float(rating)) for _, rating, text in rows if float(rating) != 0]
    return _checked(path, [text for text, _ in rated], [int(rating > 0) for _, rating in rated])


def read_text(path: str | Path, /) -> dict[str, Sentences]:
    """Read labelled sentences from `path`: a folder or file of SST-2, or film-review snippets.

    Returns:
        The sentences of each split, by name: "train" and "test" for a folder of SST-2, "all" for a
            single file. The test set of SST-2 is GLUE's dev (validation) split, because GLUE's test
            split has no labels.

    Raises:
        Refused: if the path has none of the three kinds of sentences, or a file is damaged.
    """
    path = Path(path)
    if path.is_dir():
        return _read_folder(path)
    if not path.is_file():
        raise Refused(f"path={path} is no file or folder. Try SST-2's folder or {FETCH_SNIPPETS}")
    if path.suffix == ".parquet":
        return {"all": read_parquet(path)}
    if path.suffix == ".tsv":
        return {"all": read_tsv(path)}
    return {"all": read_snippets(path)}


def _read_folder(path: Path) -> dict[str, Sentences]:
    if (path / "train.tsv").is_file() and (path / "dev.tsv").is_file():
        return {"train": read_tsv(path / "train.tsv"), "test": read_tsv(path / "dev.tsv")}
    for folder in (path, path / "data"):
        splits = [sorted(folder.glob(f"{name}*.parquet")) for name in ("train", "validation")]
        if [len(files) for files in splits] == [1, 1]:
            return {name: read_parquet(files[0]) for name, files in zip(("train", "test"), splits)}
    names = ", ".join(sorted(entry.name for entry in path.iterdir())[:8]) or "nothing"
    raise Refused(
        f"{path}: found files={names}, expected train.tsv and dev.tsv, or one train*.parquet"
        " and one validation*.parquet. Try SST-2's folder"
    )
