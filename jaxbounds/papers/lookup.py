"""Look up statements and experiments by id, pattern, or number in the paper ("Theorem 4.1")."""

import difflib
import fnmatch
import importlib
import importlib.util
import warnings
from collections.abc import Container, Iterable
from pathlib import Path

from jaxbounds.claims.renamed import current_id
from jaxbounds.claims.statements import Paper, Statement
from jaxbounds.experiments.experiment import Experiment
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.extras import require
from jaxbounds.papers.loading import PAPERS, load_module, load_paper


def load_papers(extra: Iterable[str] = (), /, *, patterns: Iterable[str] = ()) -> tuple[Paper, ...]:
    """Load the shipped papers, then the papers that the modules or files in `extra` define.

    Args:
        extra: the user's modules or files that define a `PAPER`.
        patterns: patterns of statement ids. If every pattern begins with the name of a shipped
            paper, the function loads no other shipped paper.

    Raises:
        Refused: if two papers share an id, or a module in `extra` cannot be loaded.
    """
    own = _distinct(extra)
    named = {pattern.split(".")[0] for pattern in patterns}
    known = named <= {*PAPERS, *(paper.id for paper in own)}
    shipped = [name for name in PAPERS if not (named and known) or name in named]
    papers = (*map(load_paper, shipped), *own)
    ids = [*PAPERS, *(paper.id for paper in own)]
    repeated = sorted({i for i in ids if ids.count(i) > 1})
    if repeated:
        raise Refused(
            f"more than one paper is called {', '.join(repeated)}, got id={repeated[0]!r}. Try "
            "to rename yours"
        )
    return papers


def _distinct(names: Iterable[str]) -> list[Paper]:
    papers, seen = list[Paper](), set[str]()
    for where in names:
        file = str(Path(where).resolve()) if Path(where).exists() else where
        if file in seen:
            continue
        seen.add(file)
        paper = load_paper(where)
        known = ((one.id, id(one.statements)) for one in papers)
        if (paper.id, id(paper.statements)) not in known:
            papers.append(paper)
    return papers


def _now(name: str, known: Container[str]) -> str:
    now = current_id(name)
    if name in known or now == name:
        return name
    warnings.warn(
        f"{name} is now called {now}; the next release drops the old id",
        DeprecationWarning,
        stacklevel=3,
    )
    return now


def find_statement(name: str, *, imports: Iterable[str] = ()) -> Statement:
    """Return the statement with this id; import no other shipped paper than the statement's own.

    Args:
        name: the id of the statement, for example "multihead.cor1.3".
        imports: the user's modules or files that define a `PAPER`.

    Raises:
        Refused: if no statement has this id; the message names the nearest ids.
    """
    paper = name.split(".")[0]
    known = [load_paper(where) for where in imports]
    if paper in PAPERS:
        known.append(load_paper(paper))
    named = {s.id: s for one in known for s in one.statements}
    name = _now(name, named)
    if name not in named:
        near = difflib.get_close_matches(name, named, 3, 0.4)
        hint = ", ".join(near) or "an id from `jaxbounds list`"
        raise Refused(f"no statement has id={name!r}. Try {hint}")
    return named[name]


def judges_of(statements: Iterable[Statement], name: str, /) -> tuple[Statement, ...]:
    """Return the statements whose checks test a given function of the library.

    The argument `name` is the tested function's full name, or the end of this name.

    Raises:
        Refused: if no statement tests the function; the message names tested functions of similar
            names.
    """
    statements = tuple(statements)
    meant = lambda judged: judged == name or judged.endswith(f".{name}")
    found = tuple(s for s in statements if any(map(meant, s.judged)))
    if not found:
        by_end = {judged.rsplit(".", 1)[-1]: judged for s in statements for judged in s.judged}
        near = difflib.get_close_matches(name.rsplit(".", 1)[-1], sorted(by_end), 3)
        near = [by_end[end] for end in near]
        hint = ", ".join(near) or "a function that `jaxbounds show ID` names"
        raise Refused(f"no statement tests function={name!r}. Try {hint}")
    return found


def select(statements: Iterable[Statement], patterns: Iterable[str] = ()) -> tuple[Statement, ...]:
    """Return the statements whose ids match a pattern.

    A pattern may be an id, the beginning of an id up to a dot or a dash, or a shell pattern.

    Raises:
        Refused: if a pattern matches no id; the message names the nearest ids.
    """
    statements, patterns = tuple(statements), tuple(patterns)
    if not patterns:
        return statements

    matches = lambda s, pattern: _matches(s.id, pattern)
    there = {s.id for s in statements}
    patterns = tuple(_now(pattern, there) for pattern in patterns)

    for pattern in patterns:
        if not any(matches(s, pattern) for s in statements):
            names = dict.fromkeys([s.paper for s in statements] + [s.id for s in statements])
            first = pattern.split(".")[0]
            own = [s.id for s in statements if s.paper not in PAPERS and first not in PAPERS]
            near = difflib.get_close_matches(pattern, own or names, 3, 0.4)
            hint = ", ".join(near or own[:MANY]) or "an id from `jaxbounds list`"
            if first not in names and not own:
                hint += " (statements of your own need --import FILE)"
            raise Refused(f"no statement matches pattern={pattern!r}. Try {hint}")
    return tuple(s for s in statements if any(matches(s, p) for p in patterns))


MANY = 5
"""A message names at most this many ids of the user's statements.

A larger number makes longer messages.
"""


def _matches(name: str, pattern: str) -> bool:
    return name.startswith((f"{pattern}.", f"{pattern}-")) or fnmatch.fnmatchcase(name, pattern)


def in_own_papers(papers: Iterable[Paper], pattern: str, /) -> tuple[str, ...]:
    """Return the ids of the user's statements for a pattern that omits the paper's id.

    The pattern is a statement's label, the part of the id after the paper's id, the beginning of
    this part, or a shell pattern.
    """
    every = [s for paper in papers for s in paper.statements]
    rest = lambda s: s.id.removeprefix(f"{s.paper}.")
    return tuple(s.id for s in every if pattern == s.label or _matches(rest(s), pattern))


def named_in_print(name: str, /) -> tuple[str, ...]:
    """Return the ids of the statements about a paper's numbered item; return a given id unchanged.

    Args:
        name: the item with its paper, "seqlength Theorem 4.1"; "Theorem 4.1" for all papers that
            have a Theorem 4.1; or a statement's label, "Corollary 1 (3)".

    Raises:
        Refused: if no statement is about the item; the message names the nearest items.
    """
    first, _, rest = name.partition(" ")
    item, where = (rest, (first,)) if first in PAPERS else (name, PAPERS)
    if " " not in name.strip():
        return (name,)
    papers = [load_paper(paper) for paper in where]
    about = {paper.id: paper.items for paper in papers}
    labelled = tuple(s.id for paper in papers for s in paper.statements if s.label == item)
    if labelled and not any(item in items for items in about.values()):
        return labelled
    texts = [items[item] for items in about.values() if item in items]
    ids = (part.strip() for text in texts for part in text.split(","))
    found = tuple(i for i in ids if i.split(".")[0] in PAPERS)
    if texts and not found:
        raise Refused(f"no statement is about item={name!r}: {'; '.join(texts)}. Try another item")
    if not texts:
        known = {label: None for items in about.values() for label in items}
        near = difflib.get_close_matches(item, known, 3, 0.6)
        hint = ", ".join(near) or "an id from `jaxbounds list`"
        raise Refused(f"no paper has the item={item!r}. Try {hint}")
    return found


def _experiments_of(paper: str) -> dict[str, Experiment]:
    name = f"jaxbounds.{paper}.experiments"
    if importlib.util.find_spec(name) is None:
        return {}
    require("xarray", "h5netcdf", "h5py", why="experiments")
    return {e.id: e for e in importlib.import_module(name).EXPERIMENTS}


def experiments() -> dict[str, Experiment]:
    """Return a dict from each experiment's id to the experiment, for all shipped papers."""
    return {name: found for paper in PAPERS for name, found in _experiments_of(paper).items()}


def find_experiment(name: str, *, imports: Iterable[str] = ()) -> Experiment:
    """Return the experiment with this id; import no other shipped paper than the experiment's own.

    Args:
        name: the id of the experiment.
        imports: the user's modules or files. The function executes these modules and also searches
            their `EXPERIMENTS`. They may register objects, such as an architecture, that an
            experiment uses by name.

    Raises:
        Refused: if no experiment has this id, or a module cannot be loaded; the message names all
            experiments.
    """
    modules = [load_module(where) for where in imports]
    own = {e.id: e for module in modules for e in getattr(module, "EXPERIMENTS", ())}
    paper = name.split(".")[0]
    shipped = _experiments_of(paper) if paper in PAPERS else experiments()
    known = own if name in own else own | shipped
    if name not in known:
        raise Refused(
            f"no experiment has id={name!r}. Try one of: {', '.join(known) or 'none yet'}"
        )
    return known[name]
