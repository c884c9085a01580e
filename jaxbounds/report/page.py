"""The HTML page of `jaxbounds verify`: one file that needs no network."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path

from jaxbounds.claims.statements import Paper, Statement
from jaxbounds.constants import constants_on_record
from jaxbounds.falsification import Verdict
from jaxbounds.report.cite import cite_section
from jaxbounds.report.columns import COLUMNS
from jaxbounds.report.constants import looseness_section
from jaxbounds.report.headline import headline
from jaxbounds.report.instances import Run
from jaxbounds.report.items import items_section
from jaxbounds.report.markup import Html, element, joined
from jaxbounds.report.rows import MARKS, statement_rows
from jaxbounds.report.sections import (
    codes_section,
    errata_section,
    reading_section,
    remarks_section,
    unchecked_section,
)
from jaxbounds.report.terminal import PAPER_COLUMNS, grouped, paper_rows, summary
from jaxbounds.report.worst import worst_known

# The page may load nothing from outside, whatever a statement's text contains.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_NAMES = (
    ("statements", "Statements"),
    ("errata", "Errata"),
    ("constants", "Sharp constants"),
    ("items", "Items of the source"),
    ("remarks", "Remarks"),
    ("unchecked", "Not checked"),
    ("codes", "Short names"),
    ("reading", "How to read it"),
    ("cite", "Cite this"),
)
_FORMS = ("printed", "derived", "corrected", "sharpened", "false")


def _asset(name: str) -> Html:
    return Html((resources.files(__package__) / name).read_text(encoding="utf8"))


def document(title: str, body: Html, /, *styles: str) -> str:
    """Return a page that loads no other file."""
    head = joined(
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width,initial-scale=1">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        Html('<link rel="icon" href="data:,">'),
        element("title", title),
        *(element("style", _asset(name)) for name in styles),
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>'


def _choice(name: str, label: str, values: Iterable[str | tuple[str, str]]) -> Html:
    pairs = [(value, value) if isinstance(value, str) else value for value in values]
    options = (element("option", text, value=value) for value, text in pairs)
    # The attribute must be present: without the attribute, the option's value is its text.
    every = Html('<option value="">all</option>')
    return element("label", label, element("select", every, *options, name=name))


def _controls(verdicts: Sequence[Verdict]) -> Html:
    seen = lambda values: list(dict.fromkeys(values))
    statuses = [status for status in MARKS if any(v.status == status for v in verdicts)]
    shown = [(status, f"{MARKS[status]} {status}") for status in statuses]
    if not all(v.as_expected for v in verdicts):
        shown.append(("unexpected", "! not as recorded, or not as claimed"))
    forms = [name for name in _FORMS if any(v.form.startswith(name) for v in verdicts)]
    search = Html('<input type="search" name="q" placeholder="name, formula, note">')
    return element(
        "form",
        element("label", "Search", search, class_="wide"),
        _choice("paper", "Paper", seen(v.paper for v in verdicts)),
        _choice("kind", "Kind", seen(v.kind for v in verdicts)),
        _choice("form", "Form", forms),
        _choice("verdict", "Verdict", shown),
        element("button", "Clear", type="reset"),
        element("button", "Open all", type="button", id="open-all", aria_pressed="false"),
        element("output", aria_live="polite", id="shown"),
        id="controls",
        hidden=True,
    )


def _table(statements: Mapping[str, Statement], verdicts: Sequence[Verdict], run: Run) -> Html:
    head = (
        element(
            "th",
            column.name.capitalize(),
            scope="col",
            data_sort=column.sort,
            class_=f"column-{column.name.split()[-1]}",
        )
        for column in COLUMNS
    )
    bodies = (
        statement_rows(statements[name], group, run) for name, group in grouped(verdicts).items()
    )
    caption = element("caption", "Each row is a form. Click on the formula for all details.")
    return element("table", caption, element("thead", element("tr", *head)), *bodies, id="verdicts")


def _papers(papers: Sequence[Paper], verdicts: Sequence[Verdict]) -> Html:
    head = (element("th", name, scope="col") for name in PAPER_COLUMNS)
    rows = (
        element(
            "tr",
            element("th", row[0], scope="row"),
            *(element("td", cell) for cell in row[1:]),
        )
        for row in paper_rows(papers, verdicts)
    )
    return element(
        "table",
        element("caption", "The findings about the papers' printed forms."),
        element("thead", element("tr", *head)),
        element("tbody", *rows),
        id="papers",
    )


def _navigation(sections: Mapping[str, Html | None]) -> Html:
    links = (element("a", name, href=f"#{key}") for key, name in _NAMES if sections.get(key))
    theme = element("button", "Theme: auto", type="button", id="theme", hidden=True)
    return element("nav", *links, theme, aria_label="Parts of this page")


def html_page(
    verdicts: Sequence[Verdict],
    papers: Iterable[Paper],
    provenance: Mapping[str, object],
    out: Path,
    imports: Sequence[str] = (),
    /,
) -> str:
    """Return the HTML page: a table with rows that open to formulas, proofs and instances.

    The page is readable without JavaScript. JavaScript sorts and filters the table of verdicts,
    also by the part of the address behind the "#" ("#paper=multihead&verdict=fails"). The commands
    on the page that replay an instance need the arguments `imports` of `--import`.
    """
    papers = tuple(papers)
    seen = {verdict.paper for verdict in verdicts}
    judged = frozenset(seen)
    seen |= {paper.id for paper in papers if paper.contents and not paper.statements}
    chosen = [paper for paper in papers if paper.id in seen]
    statements = {s.id: s for paper in chosen for s in paper.statements}
    errata = frozenset((paper.id, erratum.id) for paper in chosen for erratum in paper.errata)
    run = Run(out, tuple(imports), errata)
    table = _table(statements, verdicts, run)
    constants = [c for paper in chosen for c in constants_on_record(paper)]
    sections = {
        "statements": element(
            "section", element("h2", "Statements"), _controls(verdicts), table, id="statements"
        ),
        "errata": errata_section(chosen, verdicts),
        "constants": looseness_section(
            constants, frozenset(v.id for v in verdicts), worst_known(chosen, verdicts)
        ),
        "items": items_section(chosen, verdicts),
        "remarks": remarks_section(chosen),
        "unchecked": unchecked_section(chosen),
        "codes": codes_section(chosen),
        "reading": reading_section(provenance),
        "cite": cite_section([p for p in chosen if p.id in judged], verdicts, provenance),
    }
    titles = joined(*(element("cite", p.title) for p in chosen), separator="; ")
    body = joined(
        element("a", "Skip to the statements", href="#statements", class_="skip"),
        element(
            "header",
            element("h1", "Verdicts"),
            element("p", summary(verdicts), ".", class_="summary"),
            element("p", headline(chosen), ".", class_="summary") if chosen else None,
            _papers(chosen, verdicts) if chosen else None,
            element("p", titles, class_="small") if chosen else None,
            _navigation(sections),
        ),
        element("main", *sections.values()),
        element("script", _asset("page.js")),
    )
    return document("jaxbounds: verdicts", body, "page.css")
