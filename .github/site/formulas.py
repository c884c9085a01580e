"""The functions behind the statements of each paper, and two libraries of the engine's own.

A page for each paper lists the functions that its statements judge, by module; autodoc fills it.
"""

import importlib
import inspect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import jaxbounds as jb
from jaxbounds.claims.statements import Paper

LIBRARIES = {
    "jaxbounds.networks.curvature": "Curvature of any network, in detail",
    "jaxbounds.experiments.sweeps": "Sweeps, in detail",
}
"""Packages that guide pages name below the public face, each with the title of its page."""


def pages(papers: Sequence[Paper], /) -> dict[str, str]:
    """The names of the pages, each with its title.

    Args:
        papers: the papers.
    """
    named = {f"functions-{p.id}": f"Functions of {p.id}" for p in papers}
    return named | {name.rpartition(".")[2]: title for name, title in LIBRARIES.items()}


def write_formulas(papers: Sequence[Paper], folder: Path, /) -> None:
    """Write the pages.

    Args:
        papers: the papers.
        folder: where the pages go.
    """
    seen = set[str]()
    for paper in papers:
        names = list(dict.fromkeys(name for s in paper.statements for name in s.judged))
        parts = [
            f"# Functions of {paper.id}",
            f"The [statements of {paper.id}](#paper-{paper.id}) judge these functions: a slightly "
            "wrong version of one of them changes a verdict.",
            *_by_module(sorted(names), seen),
        ]
        _write(folder / f"functions-{paper.id}.md", parts)
    for name, title in LIBRARIES.items():
        public = importlib.import_module(name).__all__
        shared = [f"{{py:obj}}`jb.{one} <jaxbounds.{one}>`" for one in public if one in dir(jb)]
        own = [f"{name}.{one}" for one in public if one not in dir(jb)]
        own = [one for one in own if callable(_found(one))]
        words = f"`{name}` has these names, and {', '.join(shared)}."
        parts = [f"# {title}", words, *map(_directive, own)]
        _write(folder / f"{name.rpartition('.')[2]}.md", parts)


def _write(file: Path, parts: Iterable[str]) -> None:
    file.write_text("\n\n".join(parts) + "\n", encoding="utf8")


def _by_module(names: Iterable[str], seen: set[str]) -> Iterator[str]:
    """The directives, a heading for each module; a name that has a page stands there alone."""
    for module, group in itertools.groupby(names, _module):
        yield f"## {module}"
        for name in group:
            yield f"{{py:obj}}`{name}`" if name in seen else _directive(name)
            seen.add(name)


def _module(name: str) -> str:
    """The module of a function or method."""
    head = name.rpartition(".")[0]
    return head.rpartition(".")[0] if head.rpartition(".")[2][:1].isupper() else head


def _found(name: str) -> object:
    """The thing of a full name."""
    module = importlib.import_module(_module(name))
    found: object = module
    for part in name.removeprefix(f"{module.__name__}.").split("."):
        found = getattr(found, part)
    return found


def _directive(name: str) -> str:
    """The directive of autodoc for a function, a method or a class."""
    is_class = inspect.isclass(_found(name))
    method = name.rpartition(".")[0] != _module(name)
    kind = "autoclass" if is_class else "automethod" if method else "autofunction"
    return f"```{{eval-rst}}\n.. {kind}:: {name}\n{'   :members:' if is_class else ''}\n```"
