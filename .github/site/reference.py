"""The reference: a page for each theme of `jaxbounds/__init__.pyi`; autodoc fills the pages."""

import inspect
import re
from pathlib import Path
from typing import NamedTuple

from crosslinks import Links

import jaxbounds as jb

STUB = Path(jb.__file__).with_suffix(".pyi")


class Theme(NamedTuple):
    """Public names that belong together.

    Attributes:
        title: in words.
        names: in the order of the file.
    """

    title: str
    names: tuple[str, ...]

    @property
    def name(self) -> str:
        """The title in the name of a file."""
        return "-".join(re.findall(r"[a-z]+", self.title.lower()))[:40].strip("-")


def themes() -> tuple[Theme, ...]:
    """The themes of the public face: a comment, then the names below it."""
    found = list[tuple[str, list[str]]]()
    for line in STUB.read_text(encoding="utf8").splitlines():
        if name := re.fullmatch(r"from \S+ import \w+ as (\w+)", line):
            found[-1][1].append(name[1])
        elif line.startswith("# ") and not line.startswith("# ruff"):
            found.append((line.removeprefix("# ").rstrip("."), []))
    return tuple(Theme(title, tuple(names)) for title, names in found if names)


def write_reference(folder: Path, links: Links, /) -> None:
    """Write the pages.

    Args:
        folder: where the pages go.
        links: the names that have a place.
    """
    for theme in themes():
        parts = [f"# {theme.title}", "`import jaxbounds as jb` gives these names."]
        parts += map(_directive, theme.names)
        text = "\n\n".join(parts)
        (folder / f"{theme.name}.md").write_text(text + "\n", encoding="utf8")


def _directive(name: str) -> str:
    """A name for autodoc, which takes its signature and docstring from the package."""
    found = getattr(jb, name)
    kind = "autoclass" if inspect.isclass(found) else "autofunction"
    options = "   :members:\n" if inspect.isclass(found) else ""
    return f"## {name}\n\n```{{eval-rst}}\n.. {kind}:: jaxbounds.{name}\n{options}```"
