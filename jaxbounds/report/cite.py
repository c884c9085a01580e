"""Write citations of a paper, of the version of a paper that was read, and of a finding."""

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from jaxbounds.claims.statements import Paper
from jaxbounds.claims.statements.form import REJECTED
from jaxbounds.falsification import Verdict
from jaxbounds.report.items import UNDECIDED
from jaxbounds.report.markup import Html, element

RECOMPUTED = """\
import hashlib, json, sys
lines = []
for v in json.load(open(sys.argv[1])):
    exact = v["relation"] == "=" and v["status"] == "holds"
    ratio = float("nan" if v["worst_ratio"] is None or exact else v["worst_ratio"])
    ratio = format(0.0 if abs(ratio) < 1e-9 else ratio, ".3g")
    lines.append("\\t".join([v["id"], v["form"], v["status"], v["evidence"], ratio]))
print(hashlib.sha256("\\n".join(sorted(lines)).encode()).hexdigest())
"""
"""A program in plain Python that computes the digest of a run's findings from verdicts.json."""


def _line(verdict: Verdict) -> str:
    exact = verdict.relation == "=" and verdict.status == "holds"  # its ratio is rounding alone
    ratio = math.nan if exact else verdict.worst_ratio
    rounded = format(0.0 if abs(ratio) < 1e-9 else ratio, ".3g")
    return "\t".join([verdict.id, verdict.form, verdict.status, verdict.evidence, rounded])


def digest(verdicts: Iterable[Verdict], /) -> str:
    """Return the SHA-256 of the findings: ids, forms, statuses, evidence, and rounded ratios.

    A form is one version of a claim. The evidence is a word for the method behind the verdict.

    The digest does not depend on the machine, the packages' versions, the run's seconds or the
    order of the verdicts. Equal findings of two audits therefore have equal digests. The ratio of
    an identity that holds shows only rounding errors, so the digest leaves this ratio out.
    """
    return hashlib.sha256("\n".join(sorted(map(_line, verdicts))).encode()).hexdigest()


def finding(paper: Paper, verdicts: Iterable[Verdict], settings: Mapping[str, Any], /) -> str:
    """Return a line that names the weightiest finding about a paper.

    A form is one version of a claim. Rejected forms come first, by the weight of their errata, and
    undecided forms come last. A twin (a false claim that the check must refute) is not a claim of
    the paper, and therefore no finding.
    """
    made = f"jaxbounds {settings.get('jaxbounds', '')}".strip()
    ours = [v for v in verdicts if v.paper == paper.id]
    shown = {(s.id, f.name): f.erratum for s in paper.statements for f in s.forms}
    rank = {erratum.id: place for place, erratum in enumerate(paper.by_weight)}
    weight = lambda v: rank.get(shown.get((v.id, v.form), ""), len(rank))
    order = lambda v: (v.status not in REJECTED, v.status in UNDECIDED, weight(v))
    first = min((v for v in ours if not v.is_twin), key=order, default=None)
    said = f"{first.id} ({first.form}) {first.status}; " if first else ""
    made_with = f"seed {settings.get('seed', 0)}, digest {digest(ours)[:16]}"
    return f'{made}, "{paper.title}": {said}{made_with}'


def is_address(target: str, /) -> bool:
    """Tell whether a target is the address of a web page."""
    return re.fullmatch(r"https?://[^\s<>()\"']+", target) is not None


def _link(name: str, target: str) -> Html:
    if not is_address(target):
        return element("span", f"{name}: {target}")
    return element("a", name, href=target, rel="noreferrer")


def cite_section(
    papers: Iterable[Paper], verdicts: Iterable[Verdict], settings: Mapping[str, Any], /
) -> Html | None:
    """Return the page's section about the papers: checked editions, their links and citations."""
    verdicts = tuple(verdicts)
    parts = [
        element(
            "div",
            element("h3", paper.title, element("small", paper.citation)),
            element("p", "Read: ", paper.edition.rstrip("."), ".") if paper.edition else None,
            element("p", *_joined(paper.links)) if paper.links else None,
            element("pre", paper.bibtex.strip()) if paper.bibtex else None,
            element("p", "One finding (replace the statement to cite another finding):"),
            element("pre", finding(paper, verdicts, settings)),
            data_paper=paper.id,
        )
        for paper in papers
    ]
    if not parts:
        return None
    said = element(
        "p",
        "A digest is the SHA-256 of the paper's ids, forms, statuses, evidence and ratios (to "
        "three digits) on this page. It does not cover the machine or versions. ",
        element("code", "jaxbounds audit PAPER"),
        " prints the digest of a whole paper, and a program that computes it without jaxbounds.",
    )
    return element("section", element("h2", "Cite this"), said, *parts, id="cite")


def _joined(links: Mapping[str, str]) -> Iterable[object]:
    for place, (name, target) in enumerate(links.items()):
        yield ", " if place else ""
        yield _link(name, target)
