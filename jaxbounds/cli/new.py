"""`jaxbounds new`: write a folder for a user's paper, with example claims that pass `verify`."""

import dataclasses
import importlib.util
import re
import shutil
import sys
from collections import Counter
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated

import tyro

from jaxbounds.cli.answers import answer
from jaxbounds.cli.line import told_in
from jaxbounds.cli.streams import say
from jaxbounds.ground.exceptions import Refused
from jaxbounds.papers import PAPERS

NAME = "room"
"""The name of the paper in the template; the name of the new paper replaces it."""


def _paper_id(folder: Path) -> str:
    name = folder.resolve().name
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise Refused(
            f"name={name!r} cannot be a paper's id, which must be a valid name of a Python "
            f"package. Try a name of lower-case letters, digits and _ that begins with a "
            f"letter"
        )
    if name in PAPERS or name in sys.stdlib_module_names or _installed(name):
        raise Refused(
            f"name={name!r} is already the name of another module or paper. Try another name"
        )
    return name


def _installed(name: str) -> bool:
    found = importlib.util.find_spec(name)
    return found is not None and "site-packages" in str(found.origin)


def new(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    from_: Annotated[Path | None, tyro.conf.arg(name="from")] = None,
) -> int:
    """Start a paper of your own: formulas, statements, tests and a README that `verify` passes.

    Args:
        folder: the path of a new folder, whose name becomes the paper's id.
        from_: a paper's .tex file, or the folder that holds this file. Each numbered theorem,
            definition, assumption and labelled display becomes an item that no statement covers
            yet. The command reads the .tex file without executing TeX code. Alternatively, `--from`
            is a file that `save` wrote for a result of `sharp_constant` or `find_violation`. The
            claim that `save` stored becomes the paper's first statement, in place of the example.
            The command prints the new files before it writes them, because `verify` will run the
            claim's code.
    """
    name = _paper_id(folder)
    if from_ is not None and (from_.is_dir() or from_.suffix == ".tex"):
        return _from_source(folder, name, from_)
    told = None if from_ is None else told_in(from_)
    _refuse_taken(folder)
    written = {} if told is None else told(name)
    for file_name, text in written.items():
        say(f"{file_name} will be\n\n{text}", errors=False)
    files = [*resources.files("jaxbounds.template").iterdir()]
    texts = {
        file.name: re.sub(rf"\b{NAME}\b", name, file.read_text(encoding="utf8"))
        for file in files
        if file.is_file()
    }
    if told is not None:
        del texts["test_model.py"]
    _write(folder, name, texts | written)
    return 0


def _from_source(folder: Path, name: str, source: Path) -> int:
    from jaxbounds.cli.listed import files_of
    from jaxbounds.papers.latex import items_in

    _refuse_taken(folder)
    found = items_in(source, name)
    _write(folder, name, files_of(name, found))
    answer(items=[dataclasses.asdict(item) for item in found.items])
    kinds = Counter(item.kind for item in found.items)
    words = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "no numbered item"
    say(f"{len(found.items)} items of {found.file}: {words}", errors=False)
    return 0


def _refuse_taken(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Refused(f"folder={str(folder)!r} exists already. Try a new folder")


def _write(folder: Path, name: str, texts: Mapping[str, str]) -> None:
    partial = folder.with_name(f".{name}.partial")
    partial.mkdir(parents=True, exist_ok=True)
    try:
        for file_name, text in texts.items():
            (partial / file_name).write_text(text, encoding="utf8")
        partial.replace(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    answer(folder=str(folder), files=sorted(texts))
    above = folder.parent
    names = ", ".join(sorted(file.name for file in folder.iterdir()))
    say(f"{folder}: {names}", errors=False)
    where = "" if above.resolve() == Path.cwd() else f"cd {above} && "
    say(f"next: {where}jaxbounds verify {name} --import {name}", errors=False)
