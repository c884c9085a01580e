"""Each paper's statements with verdicts and ratios, and its errata: declarations and records."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from crosslinks import Links

from jaxbounds.claims.records import RATIOS, read_records
from jaxbounds.claims.statements import Erratum, Form, Paper, Statement
from jaxbounds.falsification import Verdict, unmeasured
from jaxbounds.report import closeness, number
from jaxbounds.report.codes import codes_in, explained
from jaxbounds.report.formula import formula
from jaxbounds.report.markdown import bullets, code, table, text
from jaxbounds.report.markup import Html, element
from jaxbounds.report.tex import prose

Ratios = Mapping[str, Mapping[str, float]]
SOURCE = (
    "The verdicts are those on record, and each ratio is the largest one on record. "
    "`jaxbounds verify {paper}` measures all of them again. [The words](#guide-verdicts) are "
    "explained in the guide, and so are [short names such as S6](#guide-codes)."
)


def write_papers(papers: Sequence[Paper], folder: Path, links: Links, /) -> None:
    """Write two pages for each paper: its statements, and its errata.

    Args:
        papers: the papers, as they were loaded from their files.
        folder: where the pages go.
        links: the names that have a place.
    """
    for paper in papers:
        _write(folder / f"{paper.id}.md", _statements(paper, links))
        _write(folder / f"{paper.id}-errata.md", _errata(paper, links))


def _write(file: Path, parts: Iterator[str]) -> None:
    file.write_text("\n\n".join(parts) + "\n", encoding="utf8")


def _block(html: Html) -> str:
    """HTML as a block of Markdown, which an empty line would end."""
    return " ".join(html.split())


def _statements(paper: Paper, links: Links) -> Iterator[str]:
    records: Mapping[str, Any] = read_records(paper, RATIOS)
    yield f"(paper-{paper.id})="
    yield f"# {paper.id}: {text(paper.title)}"
    yield text(paper.citation)
    if paper.links:
        yield ", ".join(f"[{text(name)}]({where})" for name, where in paper.links.items())
    yield f"{text(paper.survives)} [All errata](#errata-{paper.id})."
    yield SOURCE.format(paper=paper.id)
    for statement in paper.statements:
        yield from _statement(statement, paper, records.get(statement.id, {}), links)
    if paper.unchecked:
        yield "## Not checked"
        yield bullets([f"**{text(k)}**: {text(v)}" for k, v in paper.unchecked.items()])
    if paper.remarks:
        yield "## Remarks"
        yield bullets([f"**{text(k)}**: {text(v)}" for k, v in paper.remarks.items()])


def _statement(statement: Statement, paper: Paper, ratios: Ratios, links: Links) -> Iterator[str]:
    yield f"({statement.id})="
    yield f"## {statement.id}: {text(statement.label)}"
    drawn = _block(element("div", formula(statement), class_="formula"))
    yield drawn
    about = [("kind", statement.kind), ("assumes", statement.assumptions)]
    about += [("source", statement.source), ("control", statement.control_in_words)]
    yield bullets([f"{name}: {text(words)}" for name, words in about if words])
    rows = [_row(v, form, paper) for v, form in zip(_on_record(statement, ratios), statement.forms)]
    yield table(["form", "verdict", "how close", "largest ratio", "erratum"], rows)
    notes = [f"{code(form.name)}: {text(form.note)}" for form in statement.forms if form.note]
    if notes:
        yield bullets(notes)
    names = [code(name) for name in statement.judged]
    if names:
        yield f"It judges {', '.join(names)}."
    known = paper.codes
    words = " ".join(f"{form.name} {form.note}" for form in statement.forms)
    if found := codes_in(words, known):
        yield bullets([f"{one}: {text(known[one])}" for one in found])


def _on_record(statement: Statement, ratios: Ratios) -> Iterator[Verdict]:
    """The recorded verdicts, with the largest recorded ratio of each form."""
    for blank, form in zip(unmeasured(statement, ""), statement.forms):
        worst = ratios.get(form.name, {}).get("worst", math.nan)
        yield replace(blank, status=form.expected, worst_ratio=worst, near=bool(form.equality))


def _row(verdict: Verdict, form: Form, paper: Paper) -> list[str]:
    erratum = f"[{form.erratum}](#{paper.id}.{form.erratum})" if form.erratum else ""
    ratio = number(verdict.worst_ratio)
    return [text(form.name), verdict.status, text(closeness(verdict)), ratio, erratum]


def _errata(paper: Paper, links: Links) -> Iterator[str]:
    yield f"(errata-{paper.id})="
    yield f"# Errata of {paper.id}: {text(paper.title)}"
    yield text(paper.survives)
    yield f"Read: {text(paper.edition)}. [The weights](#guide-papers) are explained in the guide."
    for erratum in paper.by_weight:
        yield from _erratum(erratum, paper, links)


def _erratum(erratum: Erratum, paper: Paper, links: Links) -> Iterator[str]:
    yield f"({paper.id}.{erratum.id})="
    yield f"## {erratum.id} ({erratum.kind}): {text(erratum.where)}"
    yield _block(element("blockquote", prose(erratum.quote), class_="quoted"))
    parts = [erratum.text, erratum.detail]
    parts += [
        f"{w}: {r}" for w, r in zip(("False if read so", "True if read so"), erratum.readings)
    ]
    parts += [f"Consequence: {erratum.consequence}", f"Main theorems: {erratum.main}"]
    for words in filter(None, parts):
        yield _block(element("p", prose(words)))
    yield f"Evidence: {_evidence(erratum, links)}"
    others = {c: w for c, w in explained(paper).items() if c != erratum.id}
    if found := codes_in(" ".join(parts), others):
        yield bullets([_explained(one, paper, others[one]) for one in found])


def _explained(one: str, paper: Paper, words: str) -> str:
    name = one if one in paper.codes else f"[{one}](#{paper.id}.{one})"
    return f"{name}: {text(words)}"


def _evidence(erratum: Erratum, links: Links) -> str:
    """The evidence, where ids of statements are links."""
    return " ".join(_word(word, links) for word in erratum.evidence.split())


def _word(word: str, links: Links) -> str:
    name = word.rstrip(".,;:")
    return f"[`{name}`](#{name}){word[len(name) :]}" if name in links.statements else text(word)
