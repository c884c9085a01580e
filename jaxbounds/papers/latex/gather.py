r"""Join the files that a paper inputs with `\input`, and drop comments and verbatim text."""

import re
from pathlib import Path
from typing import NamedTuple

from jaxbounds.ground.exceptions import Refused
from jaxbounds.papers.latex.pieces import Piece, Pieces

MOST_BYTES = 8_000_000
"""All files of a paper together may have at most this many bytes; `gather` refuses larger papers.
A larger limit makes `gather` accept larger papers, and may make it slower."""
MOST_FILES = 300
r"""`\input` may name at most this many files, counted with repetitions.

A larger limit makes `gather` accept papers of more files, and may make it slower.
"""
_RAW = "verbatim|Verbatim|lstlisting|minted|comment|filecontents"
_TOKEN = re.compile(
    rf"""\\verb\*?(?P<bar>[^A-Za-z\s*]).*?(?P=bar)
    | \\begin\s*\{{(?P<raw>{_RAW})(?P<star>\*?)\}}.*?\\end\s*\{{(?P=raw)(?P=star)\}}
    | (?P<comment>%[^\n]*(?:\n[ \t]*|\Z))
    | \\(?:sub)?(?:import|inputfrom|includefrom)\*?\s*\{{(?P<folder>[^{{}}]*)\}}
      \s*\{{(?P<within>[^{{}}]*)\}}
    | \\(?:input|include|subfile|subfileinclude)(?![A-Za-z])\s*
      (?:\{{(?P<name>[^{{}}]*)\}}|(?P<bare>[^\s{{}}%\\]+))
    | \\(?:usepackage|RequirePackage|documentclass|LoadClass)\s*(?:\[[^\]]*\])?
      \s*\{{(?P<styles>[^{{}}]*)\}}
    | (?P<stop>\\endinput(?![A-Za-z]))
    | \\(?:[^A-Za-z]|[A-Za-z]+)""",
    re.DOTALL | re.VERBOSE,
)
_TRUTH = re.compile(r"\\(newif\s*\\if[A-Za-z]+|if[A-Za-z]+|else|fi|[A-Za-z]+)(?![A-Za-z])")
_OTHER_IFS = (
    "ifx", "ifnum", "ifdim", "ifodd", "ifcase", "ifdefined", "ifcsname", "ifmmode", "ifcat",
    "ifvmode", "ifhmode", "if",
)  # fmt: skip
"""The conditionals of TeX that only TeX itself can decide; `gather` keeps both of their
branches."""


def main_file(path: Path, /) -> Path:
    r"""Return the main file of a paper: the path itself, or the only document in a folder.

    Raises:
        Refused: if the file does not exist, or a folder has several documents.
    """
    if path.is_file():
        return path
    if not path.is_dir():
        raise Refused(f"path={str(path)!r} of --from is no file or folder. Try a .tex file")
    found = [file for file in sorted(path.glob("*.tex")) if _is_document(file)]
    if len(found) == 1:
        return found[0]
    usual = [file for file in found if file.stem in ("main", "paper", "ms", "arxiv")]
    if len(usual) == 1:
        return usual[0]
    names = ", ".join(file.name for file in found) or "none"
    raise Refused(
        f"--from {path}: expected one .tex file with \\documentclass and \\begin{{document}}, "
        f"got {names}. Try --from {path / 'main.tex'}"
    )


def _is_document(file: Path) -> bool:
    text = _decoded(file) if file.stat().st_size < MOST_BYTES else ""
    bare = re.sub(r"(?<!\\)%[^\n]*", "", text)
    return "\\documentclass" in bare and "\\begin{document}" in bare


def _decoded(file: Path) -> str:
    data = file.read_bytes()
    try:
        return data.decode("utf8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


class _Gathering:
    def __init__(self, folder: Path) -> None:
        self.folder, self.files, self.bytes = folder.resolve(), 0, 0

    def resolved(self, name: str, place: str, suffix: str) -> Path | None:
        file = (self.folder / name.strip().strip('"')).resolve()
        if self.folder != file and self.folder not in file.parents:
            raise Refused(
                f"{place}: file={name.strip()!r} is outside the folder {self.folder.name!r}, and "
                "is not read. Try to copy the file into the folder"
            )
        for found in (file.with_name(f"{file.name}{suffix}"), file):
            if found.is_file():
                return self._inside(found, place)
        return None

    def _inside(self, file: Path, place: str) -> Path:
        if self.folder not in file.resolve().parents:
            raise Refused(
                f"{place}: file={file.name!r} is a link to outside the folder "
                f"{self.folder.name!r}, and is not read. Try to copy the file into the folder"
            )
        return file

    def read(self, file: Path, open_files: tuple[Path, ...] = ()) -> Pieces:
        self.files, self.bytes = self.files + 1, self.bytes + file.stat().st_size
        if self.files > MOST_FILES or self.bytes > MOST_BYTES:
            raise Refused(
                f"{file.name}: the paper has more than {MOST_FILES} files or {MOST_BYTES} "
                f"bytes, got files={self.files}, bytes={self.bytes}. Try the .tex file of one "
                "part"
            )
        name = file.relative_to(self.folder).as_posix()
        whole = Pieces([Piece(_decoded(file).replace("\r\n", "\n"), name, 1)])
        changes = list[tuple[int, int, str | Pieces]]()
        end = len(whole.text)
        inside = (*open_files, file)
        for found in _TOKEN.finditer(whole.text):
            start, stop = found.span()
            given = found.groupdict()
            if given["stop"]:
                end = start
                break
            if given["comment"] is not None or given["raw"]:
                changes.append((start, stop, ""))
            elif given["bar"]:
                changes.append((start, stop, "\\texttt{}"))
            elif given["styles"] is not None:
                added = self._styles(given["styles"], whole.place(start), inside)
                if added:
                    changes.append((stop, stop, Pieces(added)))
            elif wanted := given["name"] or given["bare"] or given["within"]:
                if "#" in wanted or "\\" in wanted:  # a name inside the definition of a macro
                    continue
                wanted = (
                    f"{given['folder'] or ''}/{wanted}".lstrip("/") if given["within"] else wanted
                )
                changes.append((start, stop, self._input(wanted, whole.place(start), inside)))
        changes.append((end, len(whole.text), ""))
        return whole.replaced(changes)

    def _input(self, name: str, place: str, inside: tuple[Path, ...]) -> Pieces:
        file = self.resolved(name, place, ".tex")
        if file is None:
            raise Refused(
                f"{place}: folder={self.folder.name!r} has no file {name!r}. Try to put the file "
                "there"
            )
        if file in inside:
            raise Refused(
                f"{place}: file={file.name!r} includes itself by \\input. Try to remove this "
                f"\\input"
            )
        return self.read(file, inside)

    def _styles(self, names: str, place: str, inside: tuple[Path, ...]) -> list[Piece]:
        found = list[Piece]()
        for name in names.split(","):
            for suffix in (".sty", ".cls"):
                plain = re.fullmatch(r"[\w.\-/]+", name.strip()) and not name.strip().startswith(
                    "/"
                )
                file = self.resolved(f"{name.strip()}{suffix}", place, "") if plain else None
                if file is not None and file not in inside:
                    found += self.read(file, inside).pieces
        return found


def gather(file: Path, /) -> Pieces:
    r"""Return a paper's text with its input files, without comments and without skipped branches.

    The function reads no file outside the folder of the main file.

    Raises:
        Refused: if a file is missing, outside the folder, or inputs itself; if the paper has too
            many files or bytes.
    """
    gathering = _Gathering(file.parent)
    pieces = _without_false_branches(gathering.read(file.resolve()))
    end = pieces.text.find("\\end{document}")
    return pieces if end < 0 else Pieces(pieces.part(0, end + len("\\end{document}")))


def _without_false_branches(pieces: Pieces) -> Pieces:
    flags = {"iftrue": True, "iffalse": False}
    changes, stack = list[tuple[int, int, str | Pieces]](), list[_Branch]()
    for found in _TRUTH.finditer(pieces.text):
        word, (start, end) = found[1], found.span()
        named = re.fullmatch(r"([A-Za-z]+)(true|false)", word)
        if word.startswith("newif"):
            flags.setdefault(word.partition("\\")[2], False)
        elif word in flags:
            stack.append(_Branch(flags[word], start, end))
        elif named and f"if{named[1]}" in flags:
            if all(branch.truth is not False for branch in stack):
                flags[f"if{named[1]}"] = named[2] == "true"
        elif word in _OTHER_IFS:
            stack.append(_Branch(None, start, end))
        elif word in ("else", "fi") and stack:
            truth, begins, body = stack.pop()
            if word == "else":
                stack.append(_Branch(None if truth is None else not truth, start, end))
            if truth is not None:
                changes.append((begins, body if truth else end, ""))
            if truth and word == "fi":
                changes.append((start, end, ""))
    return pieces.replaced(_outermost(changes))


class _Branch(NamedTuple):
    """A branch of a TeX conditional; `truth` is None if only TeX can decide the condition."""

    truth: bool | None
    begins: int
    body: int


def _outermost(
    changes: list[tuple[int, int, str | Pieces]],
) -> list[tuple[int, int, str | Pieces]]:
    found, last = list[tuple[int, int, str | Pieces]](), 0
    for start, end, instead in sorted(changes, key=lambda change: (change[0], -change[1])):
        if start >= last:
            found.append((start, end, instead))
            last = max(end, last)
    return found
