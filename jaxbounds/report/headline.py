"""Summaries of errata: their number in each class, and the errata that change a main theorem."""

import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import get_args

from jaxbounds.claims.statements import Erratum, Paper
from jaxbounds.claims.statements.paper import Weight
from jaxbounds.falsification import Verdict

MANY: Mapping[Weight, str] = {"gap": "gaps", "reading": "readings", "typo": "typos"}
"""The plurals of the classes of errata with a noun as name. The names of the other classes are
adjectives, such as "false"."""
EARLY = "early version"
"""The words in a form's name that mark a claim of an earlier version of the paper."""
NO_ERRATUM = "no erratum"
NO_ERRATA = "no errata"


def plural(count: int, word: str, /) -> str:
    """Return a count with its noun: "1 figure", "2 figures"."""
    return f"{count} {word}" + ("" if count == 1 else "s")


def main_changes(papers: Iterable[Paper], /) -> Iterator[tuple[Paper, Erratum]]:
    """Yield the errata that change a main theorem, the heaviest erratum of a paper first."""
    for paper in papers:
        for erratum in paper.by_weight:
            if erratum.changes_main:
                yield paper, erratum


def about(paper: Paper, ids: Collection[str], /) -> tuple[Erratum, ...]:
    """Return the errata of a paper that concern some of its statements.

    If `ids` contains all ids of the paper, the result has all errata of the paper.
    """
    own = [s for s in paper.statements if s.id in ids]
    if len(own) == len(paper.statements):
        return paper.errata
    cited = {form.erratum for s in own for form in s.forms}
    named = lambda erratum: {*erratum.evidence.replace(",", " ").split()} & {*ids}
    return tuple(e for e in paper.errata if e.id in cited or named(e))


def headline(papers: Iterable[Paper], ids: Collection[str] | None = None, /) -> str:
    """Return a line: the number of errata in each class, and of those that change a main theorem.

    If `ids` is given, the function counts only errata that concern statements with these ids.
    """
    papers = tuple(papers)
    of = {paper.id: paper.errata if ids is None else about(paper, ids) for paper in papers}
    counts = Counter(erratum.kind for errata in of.values() for erratum in errata)
    if not counts:
        return NO_ERRATA
    weights = [
        f"{counts[kind]} {MANY.get(kind, kind) if counts[kind] > 1 else kind}"
        for kind in get_args(Weight)
        if counts[kind]
    ]
    total = counts.total()
    head = f"{total} {'erratum' if total == 1 else 'errata'}: {', '.join(weights)}"
    changed: dict[str, list[str]] = {}
    for paper, erratum in main_changes(papers):
        if erratum in of[paper.id]:
            changed.setdefault(paper.id, []).append(erratum.id)
    if not changed:
        return f"{head}; no erratum changes a main theorem"
    many = sum(map(len, changed.values()))
    names = "; ".join(f"{paper} {', '.join(ids)}" for paper, ids in changed.items())
    return f"{head}; {many} change{'s' if many == 1 else ''} a main theorem: {names}"


def in_brief(papers: Iterable[Paper], width: int, /) -> Iterator[str]:
    """Yield the headline, then a line for each erratum that changes a main theorem.

    The function cuts a line with more than `width` characters after a word.
    """
    papers = tuple(papers)
    yield headline(papers)
    changed = list(main_changes(papers))
    names = [f"{paper.id} {erratum.id} ({erratum.kind})" for paper, erratum in changed]
    longest = max(map(len, names), default=0)
    room = max(width - longest - 6, 20)
    for name, (_, erratum) in zip(names, changed):
        where = textwrap.shorten(erratum.where.split(";")[0], 2 * room // 5, placeholder=" ...")
        main = erratum.main.removeprefix("changed to ")
        main = textwrap.shorten(main, room - len(where), placeholder=" ...")
        yield f"  {name:<{longest}}  {where}: {main}"


def fails_as_printed(paper: Paper, verdicts: Sequence[Verdict], /) -> dict[str, int]:
    """Count the statements with a failing printed form, for each class of erratum.

    A form is one version of a claim. A statement counts once, for its heaviest erratum. The class
    EARLY counts statements of which only the form of an earlier paper version fails. The class
    NO_ERRATUM counts statements whose failing form names no erratum.
    """
    kinds = {erratum.id: erratum.kind for erratum in paper.errata}
    order = (*get_args(Weight), NO_ERRATUM, EARLY)
    named = {(s.id, f.name): kinds.get(f.erratum) for s in paper.statements for f in s.forms}
    heaviest: dict[str, int] = {}
    for v in verdicts:
        if v.paper != paper.id or v.status not in ("fails", "inconsistent"):
            continue
        if v.form.startswith("printed"):
            known = named.get((v.id, v.form))
            weight = known or (EARLY if EARLY in v.form else NO_ERRATUM)
            heaviest[v.id] = min(order.index(weight), heaviest.get(v.id, len(order)))
    counts = Counter(heaviest.values())
    return {name: counts[place] for place, name in enumerate(order) if counts[place]}


def weights_in_words(counts: Mapping[str, int], /) -> str:
    """Return the counts of `fails_as_printed` as text: "23 (8 false, 15 typo); 2 early version"."""
    now = {name: count for name, count in counts.items() if name != EARLY}
    by_weight = ", ".join(f"{count} {name}" for name, count in now.items())
    words = f"{sum(now.values())} ({by_weight})" if now else "0"
    return f"{words}; {counts[EARLY]} {EARLY}" if EARLY in counts else words
