"""Make the parts of the HTML page below the table: errata, unchecked items, meanings of words."""

import re
from collections.abc import Mapping, Sequence

from jaxbounds.claims.statements import Erratum, Paper
from jaxbounds.falsification import Verdict
from jaxbounds.falsification.statuses import Status
from jaxbounds.report.columns import number
from jaxbounds.report.markup import Html, element, escaped, joined
from jaxbounds.report.rows import MARKS, badge
from jaxbounds.report.tex import prose

MEANING: Mapping[str, str] = {status.value: status.meaning for status in Status}
"""A dict from each status of a verdict to the status's meaning; HTML pages and audits print it."""

EVIDENCE = {
    "sampled": "draws only, and named cases.",
    "searched": "draws, and a search from the worst draws that found worse instances. If the "
    'verdict says "attained" as well, only searches from one kind of start reached equal sides.',
    "enumerated": "all instances of the stated finite set.",
    "approached": "the ratio tends to one along a scale, and no measured instance reaches one.",
    "attained": "an equality case was reached: a right side 1% smaller is rejected.",
    "violated": "an instance violates the claim, in float64.",
    "not seen": "a fit shows another rate than the claimed rate.",
}

_DRAWINGS = (
    "Each drawing shows the distribution of the draws' ratios on a logarithmic axis, from their 5% "
    "quantiles. The line is the largest allowed ratio, and the triangle is the worst ratio of "
    "draws and searches. Drawings of one statement share an axis. The drawings in the table share "
    "an axis from a millionth to a hundred times the allowed ratio. The worst ratio of a search is "
    "a lower estimate of the supremum."
)


def _linked(text: str, known: Sequence[str]) -> Html:
    # The longest id comes first, since one id may be the beginning of another.
    names = "|".join(re.escape(name) for name in sorted(known, key=len, reverse=True))
    if not names:
        return escaped(text)
    # The lookahead skips a known id that is only the beginning of an unknown id.
    pieces = re.split(rf"(?<![\w.])({names})(?![\w-]|\.\w)", text)
    return joined(*(element("a", p, href=f"#{p}") if i % 2 else p for i, p in enumerate(pieces)))


def _shown(paper: Paper, erratum: Erratum, verdicts: Sequence[Verdict]) -> Html | None:
    cited = {(s.id, f.name) for s in paper.statements for f in s.forms if f.erratum == erratum.id}
    items = [
        element(
            "li",
            element("a", v.id, href=f"#{v.id}"),
            f" ({v.form}) ",
            badge(v),
            f" {number(v.worst_ratio)}",
        )
        for v in verdicts
        if (v.id, v.form) in cited
    ]
    return element("ul", *items) if items else None


def _erratum(paper: Paper, erratum: Erratum, verdicts: Sequence[Verdict]) -> Html:
    known = list(dict.fromkeys(v.id for v in verdicts))
    return element(
        "article",
        element(
            "h4",
            element("span", erratum.id, class_="number"),
            " ",
            erratum.where,
            " ",
            element("span", erratum.kind, class_="tag"),
        ),
        element("blockquote", prose(erratum.quote), class_="quoted"),
        element("p", prose(erratum.text)),
        element("p", prose(erratum.detail)) if erratum.detail else None,
        *(
            element("p", element("b", f"{word}: "), prose(reading))
            for word, reading in zip(("False if read so", "True if read so"), erratum.readings)
        ),
        element("p", element("b", "Consequence. "), prose(erratum.consequence)),
        element("p", element("b", "Main theorems: "), prose(erratum.main)),
        element("p", "Evidence: ", _linked(erratum.evidence, known), class_="small"),
        _shown(paper, erratum, verdicts),
        id=f"erratum.{paper.id}.{erratum.id}",
        class_="card",
    )


def errata_section(papers: Sequence[Paper], verdicts: Sequence[Verdict], /) -> Html | None:
    """Return the errata of the papers, each with this run's measurements about it."""
    parts = [
        element(
            "div",
            element("h3", paper.title, element("small", paper.citation)),
            element("p", prose(paper.survives)) if paper.survives else None,
            *(_erratum(paper, erratum, verdicts) for erratum in paper.by_weight),
            data_paper=paper.id,
        )
        for paper in papers
        if paper.errata
    ]
    return element("section", element("h2", "Errata"), *parts, id="errata") if parts else None


def _by_place(title: str, name: str, entries: Mapping[str, Mapping[str, str]]) -> Html | None:
    parts = [
        element(
            "div",
            element("h3", paper),
            element(
                "dl",
                *(
                    element("div", element("dt", place), element("dd", prose(text)))
                    for place, text in about.items()
                ),
            ),
        )
        for paper, about in entries.items()
        if about
    ]
    return element("section", element("h2", title), *parts, id=name) if parts else None


def remarks_section(papers: Sequence[Paper], /) -> Html | None:
    """Return the remarks of the papers, which are not errata."""
    return _by_place("Remarks", "remarks", {paper.title: paper.remarks for paper in papers})


def codes_section(papers: Sequence[Paper], /) -> Html | None:
    """Return the section that explains the short names ("S6") in notes and versions of claims."""
    return _by_place("Short names", "codes", {paper.title: paper.codes for paper in papers})


def unchecked_section(papers: Sequence[Paper], /) -> Html | None:
    """Return the items of the papers that the library does not check, with the reasons."""
    return _by_place("Not checked", "unchecked", {p.title: p.unchecked for p in papers})


def reading_section(provenance: Mapping[str, object], /) -> Html:
    """Return the section on the words for statuses and evidence, and on the versions of the run."""
    meanings = (
        element(
            "div",
            element(
                "dt",
                element(
                    "span",
                    element("span", MARKS[status], aria_hidden="true"),
                    f" {status}",
                    class_=f"badge {status}",
                ),
            ),
            element("dd", meaning),
        )
        for status, meaning in MEANING.items()
    )
    evidence = (
        element("div", element("dt", name), element("dd", meaning))
        for name, meaning in EVIDENCE.items()
    )
    made = ", ".join(f"{name} {value}" for name, value in provenance.items())
    return element(
        "section",
        element("h2", "How to read it"),
        element("dl", *meanings),
        element("h3", "Evidence, from weak to strong"),
        element("dl", *evidence),
        element("p", _DRAWINGS),
        element("p", f"Made with {made}.", class_="small"),
        id="reading",
    )
