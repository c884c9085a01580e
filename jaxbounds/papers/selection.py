"""Select statements by ids, patterns, files or papers, or as `Statement` objects."""

import fnmatch
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

from jaxbounds.claims.statements import Kind, Paper, Statement
from jaxbounds.ground.exceptions import Refused
from jaxbounds.papers.loading import PAPERS, load_paper
from jaxbounds.papers.lookup import find_statement, in_own_papers, load_papers, select

Named = str | Path | Paper | Statement
"""The type of an argument that names statements: an id, the beginning of ids, or a shell pattern.

The argument may also be a `Paper` or `Statement` object, or a file or folder that defines a
`PAPER`. A file selects all statements of its paper, unless the user also gives ids of this paper.
In an id of the user's own paper, the paper's name may be omitted: "one" for "mine.one".
"""


def the_statement(what: Named, imports: Iterable[str] = (), /) -> Statement:
    """Return the single statement to which an argument of type `Named` refers.

    The argument is the statement itself, its id or its file. A complete id selects only its own
    statement, even if other ids begin with the same text.

    Raises:
        Refused: if the argument selects no statement, or more than one.
    """
    if isinstance(what, Statement):
        return what
    found = selected(what, imports=imports).statements
    found = tuple(s for s in found if s.id == what) or found
    if len(found) != 1:
        ids = ", ".join(s.id for s in found[:5])
        raise Refused(
            f"{what} names count={len(found)} statements ({ids}, ...), expected one. Try "
            f"{found[0].id if found else 'an id'}"
        )
    return found[0]


class Catalogue(NamedTuple):
    """The papers in which a process searches for the statement of an id.

    Attributes:
        imports: the user's modules or files that define a `PAPER`.
        own: papers that were made in this process, and that no file defines.
    """

    imports: tuple[str, ...] = ()
    own: tuple[Paper, ...] = ()

    def paper(self, name: str, /) -> Paper:
        """Return the paper with this id."""
        known = {paper.id: paper for paper in self.own}
        return known.get(name) or next(
            paper for paper in load_papers(self.imports, patterns=[name]) if paper.id == name
        )

    def statement(self, name: str, /) -> Statement:
        """Return the statement with this id.

        Raises:
            Refused: if no statement has this id.
        """
        known = {s.id: s for paper in self.own for s in paper.statements}
        return known.get(name) or find_statement(name, imports=self.imports)

    def absolute(self) -> "Catalogue":
        """Return the catalogue with absolute paths, for a process in another working directory."""
        whole = lambda name: str(Path(name).resolve()) if Path(name).exists() else name
        return self._replace(imports=tuple(map(whole, self.imports)))


class Selection(NamedTuple):
    """The statements that the caller selected, with their papers.

    Attributes:
        papers: the papers of the selected statements; the tuple may hold further papers.
        catalogue: the papers in which another process can find the statements by their ids.
        parts: the patterns and kinds by which the caller chose the statements; empty if the caller
            chose all.
    """

    papers: tuple[Paper, ...]
    statements: tuple[Statement, ...]
    catalogue: Catalogue
    parts: tuple[str, ...]


def _is_file(name: str | Path) -> bool:
    return isinstance(name, Path) or name.endswith(".py")


def _at_hand(statements: Sequence[Statement]) -> list[Paper]:
    ids = dict.fromkeys(s.paper for s in statements)
    of = lambda name: tuple(s for s in statements if s.paper == name)
    return [Paper(id=name, title=name, statements=of(name)) for name in ids]


def _is_shipped(statement: Statement) -> bool:
    known = load_paper(statement.paper).statements if statement.paper in PAPERS else ()
    return any(statement is one for one in known)


def _in_full(patterns: Sequence[str], own: Sequence[Paper]) -> list[str]:
    known = {*PAPERS, *(paper.id for paper in own)}
    found = list[str]()
    for one in patterns:
        there = one.split(".")[0] in known or any(fnmatch.fnmatchcase(i, one) for i in _ids(own))
        found += [one] if there else in_own_papers(own, one) or [one]
    return list(dict.fromkeys(found))


def _ids(papers: Sequence[Paper]) -> list[str]:
    return [s.id for paper in papers for s in paper.statements]


def _of_kinds(statements: tuple[Statement, ...], kinds: Sequence[str]) -> tuple[Statement, ...]:
    found = tuple(s for s in statements if not kinds or s.kind in kinds)
    if statements and not found:
        there = ", ".join(kind for kind in get_args(Kind) if kind in {s.kind for s in statements})
        raise Refused(
            f"no statement has kind={', '.join(kinds)} among the selected statements. Try one of: "
            f"{there}"
        )
    return found


def selected(
    what: Named | Iterable[Named] = (),
    /,
    *,
    imports: Iterable[str] = (),
    kinds: Sequence[str] = (),
) -> Selection:
    """Return the selected statements; without `what`, all of the shipped and imported papers.

    Args:
        what: one or several arguments that name statements, see `Named`.
        imports: the user's modules or files that define a `PAPER`.
        kinds: the kinds of statements (such as "inequality") to select; the default selects all
            kinds.

    Raises:
        Refused: if a pattern matches no statement, a file defines no paper, two papers have one id,
            or no statement is of one of the kinds.
        TypeError: if an argument is not of the type `Named`.
    """
    named = [what] if isinstance(what, Named) else list(what)
    patterns, files, papers, loose = list[str](), list[str](), list[Paper](), list[Statement]()
    of_files = set[str]()
    for one in named:
        if isinstance(one, Paper):
            papers.append(one)
            patterns.append(one.id)
        elif isinstance(one, Statement):
            loose += [] if _is_shipped(one) else [one]
            patterns.append(one.id)
        elif not isinstance(one, str | Path):
            raise TypeError(
                f"expected ids, files, papers or statements, got {one!r}. Try "
                "jb.verify('multihead.cor1.3')"
            )
        elif _is_file(one):
            files.append(str(one))
            patterns.append(load_paper(str(one)).id)
            of_files.add(patterns[-1])
        else:
            patterns.append(str(one))
    patterns = _in_full(patterns, [*papers, *map(load_paper, dict.fromkeys([*imports, *files]))])
    # If ids of its paper are given, too, a file only tells where to find their statements.
    within = lambda paper: any(p.startswith(f"{paper}.") for p in patterns)
    patterns = [p for p in patterns if not (p in of_files and within(p))]
    papers = [paper for paper in papers if paper.id not in PAPERS] + _at_hand(loose)
    catalogue = Catalogue(tuple(dict.fromkeys([*imports, *files])), tuple(papers))
    own = {paper.id for paper in papers}
    elsewhere = [p for p in patterns if p.split(".")[0] not in own]
    known = papers
    if elsewhere or not patterns:
        known = [*load_papers(catalogue.imports, patterns=elsewhere), *papers]
    repeated = {p.id for p in known if [q.id for q in known].count(p.id) > 1}
    if repeated:
        raise Refused(
            f"more than one paper is called {', '.join(sorted(repeated))}, got "
            f"id={min(repeated)!r}. Try to rename yours"
        )
    empty = {paper.id for paper in known if not paper.statements}  # a paper may have items alone
    left = [pattern for pattern in patterns if pattern not in empty]
    every = [s for paper in known for s in paper.statements]
    chosen = select(every, left) if left or not patterns else ()
    return Selection(tuple(known), _of_kinds(chosen, kinds), catalogue, (*patterns, *kinds))
