"""Make a statement's rows in the HTML page's table, and the details that a click shows."""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from jaxbounds.claims.statements import FITTED, Statement
from jaxbounds.falsification import ON_AVERAGE, Verdict
from jaxbounds.report.columns import COLUMNS, Column, is_difference, number
from jaxbounds.report.formula import formula
from jaxbounds.report.histogram import Axis, axis, histogram, sparkline, words
from jaxbounds.report.instances import Run, stored_instances
from jaxbounds.report.markup import Html, element, joined
from jaxbounds.report.quantifiers import checked, in_one_line, last_size, quantifiers
from jaxbounds.report.tex import prose

DIGITS = 12
"""The page rounds the ends of a certificate's enclosures outwards to this many significant digits.
A larger number shows longer numbers."""
MARKS = {
    "holds": "✓",
    "consistent": "≈",
    "fails": "✗",
    "inconsistent": "≉",
    "vacuous": "∅",
    "inconclusive": "?",
    "error": "!",
}
"""A sign for each status, for readers who cannot distinguish colours."""

_RATIO = (
    "worst ratio",
    "left side over right side; the claim is true where this ratio is at most one",
)
_FROM_BELOW = (
    "worst ratio",
    "right side over left side; the claim is true where this ratio is at most one",
)
_DIFFERENCE = (
    "largest relative difference",
    "relative difference of the sides; the line is the tolerance",
)
_WORDS = {
    "probability": (
        "frequency of failures over the allowed level",
        "left side over right side of a draw; the level says how often this ratio may exceed one",
    ),
    "expectation": (
        "mean over mean",
        "left side over right side of a draw; only the ratio of the means must be at most one",
    ),
    "limit": (
        "distance at the last size",
        "distance of the sides, at all sizes; the distance must tend to zero along the sizes",
    ),
    "rate": (
        "fitted exponent",
        "left side over right side of a draw; the claim leaves the constant factor open",
    ),
}
"""A dict from each kind of claim to two phrases: what the worst ratio measures, and what the
histogram's axis shows."""


def badge(verdict: Verdict, /) -> Html:
    """Return a verdict's status with its symbol, and a warning if the paper's record differs."""
    mark = element("span", MARKS[verdict.status], aria_hidden="true", class_="mark")
    status = element("span", mark, " ", verdict.status, class_=f"badge {verdict.status}")
    if verdict.as_expected:
        return status
    aside = verdict.aside or "not shown to hold"
    return joined(status, " ", element("strong", aside, class_="alarm"))


def quantity(statement: Statement, /) -> tuple[str, str]:
    """Return the meaning of a statement's worst ratio, and of the axis of the histogram."""
    usual = {"=": _DIFFERENCE, ">=": _FROM_BELOW}.get(statement.relation, _RATIO)
    return _WORDS.get(statement.kind, usual)


def _erratum(paper: str, erratum: str, run: Run) -> Html | None:
    if not erratum:
        return None
    href = f"#erratum.{paper}.{erratum}" if (paper, erratum) in run.errata else None
    return element("a", f"erratum {erratum}", href=href, class_="erratum")


def source_words(verdict: Verdict, /) -> str:
    """Return, for each source of instances (such as a search), their number and worst ratio."""
    parts = []
    for name, source in verdict.sources.items():
        shown = f"{verdict.searches} searches" if name == "search" else name
        parts.append(f"{shown}: {source['instances']}, at most {number(source['worst_ratio'])}")
    return "; ".join(parts)


def evidence_words(verdict: Verdict, /) -> str:
    """Describe the evidence of a verdict, and the smallest error that the evidence would reveal."""
    parts = [verdict.evidence or "none", f"{verdict.distinct} different instances"]
    if verdict.searches:
        parts.append(f"{verdict.accepted} steps of the search found a worse instance")
    if verdict.starts:
        kinds = (f"{there} of {of} {kind}" for kind, (there, of) in verdict.starts.items())
        parts.append(f"starts that ended within a millionth of the worst ratio: {', '.join(kinds)}")
    if verdict.enumerates:
        parts.append(f"these are {verdict.enumerates}")
    if verdict.horizon is not None:
        parts.append(f"{verdict.horizon} steps were followed")
    if verdict.sensitivity is not None:
        slight = verdict.sensitivity < 1e-6
        larger = "left" if verdict.relation == ">=" else "right"
        percent = f"{100 * verdict.sensitivity:.2g}%"
        unnoticed = f"no instance refutes a {larger} side that is up to {percent} smaller"
        parts.append(f"a smaller {larger} side would not pass" if slight else unnoticed)
    if verdict.status != "fails" and verdict.kind not in FITTED:
        near = "an instance refutes" if verdict.near else "no instance refutes"
        by = "a millionth" if verdict.relation == "=" else "1%"
        parts.append(f"the library made the claim stronger by {by}, and {near} the stronger claim")
    return "; ".join(parts)


def _few_digits(decimal: str | Decimal, rounding: str = ROUND_FLOOR) -> str:
    return f"{Context(prec=DIGITS, rounding=rounding).plus(Decimal(decimal)).normalize():g}"


def certificate_words(verdict: Verdict, /) -> str:
    """Return ball arithmetic's result as text: a word, bounds on each side, the precision in bits.

    Ball arithmetic encloses each computed number in an interval that contains its exact value.
    """
    c = verdict.certificate
    if not c:
        return ""
    said = f"{c['word']}{': ' + c['reason'] if c['reason'] else ''}"
    if not c["lhs"]:
        return said
    sides = " against ".join(
        f"{_few_digits(low)} ... {_few_digits(high, ROUND_CEILING)}"
        for low, high in (c["lhs"], c["rhs"])
    )
    smaller, larger = ("rhs", "lhs") if verdict.relation == ">=" else ("lhs", "rhs")
    low, high = Decimal(c[smaller][0]), Decimal(c[larger][1])
    if verdict.relation in ("<=", ">=") and low > 0 and high > 0:
        sides += f", ratio at least {_few_digits(low / high)}"
    met = f"certain: {', '.join(c['hypotheses'])}; " if c["hypotheses"] else ""
    ways = f", {c['ways']} ways through the program" if c["ways"] > 1 else ""
    return f"{said}; {sides}; {met}{c['bits']} bits{ways}"


def _shared(verdicts: Sequence[Verdict]) -> list[str]:
    return [name for name in verdicts[0].checked if all(name in v.checked for v in verdicts)]


def _form(statement: Statement, verdict: Verdict, ax: Axis, run: Run, shared: list[str]) -> Html:
    form = statement.form(verdict.form)
    drawn = [int(s["instances"]) for name, s in verdict.sources.items() if name != "search"]
    worst = None if verdict.kind in ON_AVERAGE else verdict.worst_ratio
    if worst is not None and math.isnan(worst):
        worst = None
    figure = element(
        "figure",
        histogram(verdict, ax, worst, sum(drawn)),
        element("figcaption", words(verdict, sum(drawn))),
    )
    besides = ", ".join(name for name in verdict.checked if name not in shared)
    facts = [
        ("Printed in", form.cites),
        ("Proof or reason", prose(form.note)),
        ("Equality", form.equality if form.equality not in verdict.reason else None),
        ("Requires besides", besides),
        ("Verdict", verdict.reason),
        (quantity(statement)[0].capitalize(), number(verdict.worst_ratio)),
        ("Sides of the worst instance", _sides(verdict)),
        ("Instances", source_words(verdict)),
        ("Evidence", evidence_words(verdict)),
        ("Certificate", certificate_words(verdict)),
        last_size(statement, verdict.largest_size),
        ("By size", "; ".join(f"{size}: {number(v)}" for size, v in verdict.by_size.items())),
    ]
    return element(
        "section",
        element(
            "h3",
            element("span", form.name),
            " ",
            badge(verdict),
            " ",
            _erratum(statement.paper, form.erratum, run),
        ),
        element("div", _facts(facts), figure, class_="beside"),
        stored_instances(verdict, run),
        class_="form",
    )


def _sides(verdict: Verdict) -> str:
    if not is_difference(verdict):
        return ""
    left, right = (f"{side:.6g}" for side in verdict.sides)
    return f"left side {left}, right side {right}"


def _facts(pairs: Sequence[tuple[str, object]]) -> Html:
    rows = [
        element("div", element("dt", name), element("dd", value))
        for name, value in pairs
        if value not in (None, "")
    ]
    return element("dl", *rows)


def _about(statement: Statement, verdict: Verdict, shared: list[str]) -> Html:
    control = verdict.control.get("status")
    rejected = (
        f" (measured alike: {control}, {number(verdict.control['worst_ratio'])})" if control else ""
    )
    sizes = "; ".join(map(repr, statement.sizes))
    samplers = [*statement.samplers, *(["cases"] if statement.cases else [])]
    search = "" if statement.search == "none" else f"; {statement.search} search"
    draws = f"; {statement.budget.samples} draws of each" if statement.samplers else ""
    excluded = "; ".join(f"{reason}: {count}" for reason, count in verdict.excluded.items())
    level = "" if statement.level is None else f"; level {statement.level:g}"
    return _facts(
        [
            ("As text", element("code", in_one_line(statement)) if statement.tex else None),
            *((title.capitalize(), words) for title, words in quantifiers(statement)),
            ("Assumes", prose(statement.assumptions)),
            *(
                (title.capitalize(), ", ".join(names))
                for title, names in checked(statement, shared)
            ),
            ("Draws left out", excluded),
            ("Source", statement.source),
            ("Instances", f"{', '.join(samplers)} at {sizes}{draws}{search}"),
            (
                "Arithmetic",
                f"{verdict.precision}, tolerance {statement.tolerance:g} relative{level}",
            ),
            ("False control", statement.control_in_words + rejected),
        ]
    )


def _cell(
    column: Column, statement: Statement, verdicts: Sequence[Verdict], line: int
) -> Html | None:
    verdict = verdicts[line]
    if column.name in ("statement", "kind"):
        if line:
            return None
        span = len(verdicts) if len(verdicts) > 1 else None
        if column.name == "kind":
            return element("td", statement.kind, rowspan=span, class_=column.css)
        link = element("a", statement.id, href=f"#{statement.id}")
        label = element("span", statement.label, class_="label")
        return element("th", link, " ", label, scope="rowgroup", rowspan=span, class_=column.css)
    if column.name == "form":
        return element("th", verdict.form, scope="row", class_=column.css)
    drawn = {"verdict": badge, "draws": lambda v: sparkline(statement, v)}.get(column.name)
    content = drawn(verdict) if drawn else column.text(verdict)
    return element("td", content, class_=column.css or None)


def statement_rows(statement: Statement, verdicts: Sequence[Verdict], run: Run, /) -> Html:
    """Return a row for each form (version) of a statement, then a row that a click opens."""
    ax, shared = axis(statement, verdicts), _shared(verdicts)
    rows = [
        element(
            "tr",
            *(_cell(column, statement, verdicts, line) for column in COLUMNS),
            class_="judged",
            data_verdict=verdict.status,
            data_expected=None if verdict.as_expected else "no",
            data_form=verdict.form.split()[0].rstrip(","),
            data_samples=verdict.instances,
        )
        for line, verdict in enumerate(verdicts)
    ]
    opened = element(
        "details",
        element(
            "summary",
            element("span", formula(statement), class_="formula"),
            aria_label=f"{statement.label}: {in_one_line(statement)}",
        ),
        element(
            "div",
            _about(statement, verdicts[0], shared),
            element("p", "Axis: ", quantity(statement)[1], class_="small"),
            *(_form(statement, v, ax, run, shared) for v in verdicts),
            class_="opened",
        ),
        class_="statement",
    )
    return element(
        "tbody",
        *rows,
        element("tr", element("td", opened, colspan=len(COLUMNS)), class_="more"),
        id=statement.id,
        data_paper=statement.paper,
        data_kind=statement.kind,
    )
