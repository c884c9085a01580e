"""Record the ratios lhs/rhs of a paper's statements, and compare later runs with the records.

A changed formula or sampler may change the ratios of a claim but not its verdict. Therefore
`records/ratios.json` of a paper holds for each claim the largest ratio, the largest ratio at each
size, and the mean ratio of random instances.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from jaxbounds.claims.records import RATIOS, read_records, write_records
from jaxbounds.claims.statements import Paper
from jaxbounds.falsification import Verdict

SEARCHED, EXACT = 0.03, 1e-6
"""Relative amounts by which a measured ratio lhs/rhs may differ from the ratio in the records.
SEARCHED applies to a ratio that a search found, and EXACT applies to a ratio of random instances
alone. A larger amount hides larger changes of a ratio."""
Ratios = Mapping[str, float]
"""A dictionary of the ratios lhs/rhs of one form (one version of a claim). The keys of the
dictionary are "worst" (the largest ratio), "drawn" (the mean over random instances), and the sizes
("n=4, T=3").
"""
OfStatements = Mapping[str, Mapping[str, Ratios]]
"""A dictionary from a statement's id, then the name of a form (version of the claim), to the ratios
of the form."""


def _is_recorded(verdict: Verdict) -> bool:
    """Return whether to record ratios; the sides of a true identity differ only by rounding."""
    exact = verdict.relation == "=" and verdict.status == "holds"
    return not exact and bool(ratios_of(verdict))


def ratios_of(verdict: Verdict, /) -> Ratios:
    """Return the finite ratios lhs/rhs of a verdict; a ratio is infinite if rhs is zero."""
    drawn = {} if verdict.drawn is None else {"drawn": verdict.drawn}
    found = {"worst": verdict.worst_ratio} | drawn
    found |= verdict.by_size if len(verdict.by_size) > 1 else {}
    return {name: float(f"{value:.8g}") for name, value in found.items() if math.isfinite(value)}


def record(verdicts: Sequence[Verdict], papers: Iterable[Paper], /, *, others: bool) -> None:
    """Replace the recorded ratios lhs/rhs of statements by the ratios in the given verdicts.

    If `others` is true, the file of records keeps its entries of the papers' other statements.

    Raises:
        Refused: if a paper is defined in no file.
    """
    judged = {verdict.id for verdict in verdicts}
    for paper in papers:
        ids = [s.id for s in paper.statements]
        if not judged & set(ids):
            continue
        found = [v for v in verdicts if v.paper == paper.id and _is_recorded(v)]
        before = read_records(paper, RATIOS)
        kept = {i: forms for i, forms in before.items() if others and i not in judged}
        for verdict in found:
            kept.setdefault(verdict.id, {})[verdict.form] = ratios_of(verdict)
        write_records(paper, RATIOS, {name: kept[name] for name in ids if name in kept})


def differences(verdict: Verdict, before: Ratios, /) -> Iterator[str]:
    """Describe the ratios of a verdict that differ from the recorded ratios."""
    for name, now in ratios_of(verdict).items():
        allowed = SEARCHED if verdict.accepted and name != "drawn" else EXACT
        if not math.isclose(now, before.get(name, math.nan), rel_tol=allowed, abs_tol=1e-9):
            yield name


def moved(verdicts: Iterable[Verdict], recorded: OfStatements, /) -> Iterator[str]:
    """Return a line for each form (version of a claim) whose ratios differ from the record.

    A form without recorded ratios also gets a line. The verdicts must come from a run with seed 0
    and the statements' own numbers of random instances and searches.
    """
    for verdict in filter(_is_recorded, verdicts):
        before = recorded.get(verdict.id, {}).get(verdict.form)
        name, now = f"{verdict.id} ({verdict.form})", ratios_of(verdict)
        if before is None:
            yield f"{name}: no ratio is on record"
        elif changed := list(differences(verdict, before)):
            said = (f"{part} {now[part]:.8g}, on record {before.get(part)}" for part in changed[:3])
            yield f"{name}: {'; '.join(said)}"


def drifted(verdicts: Sequence[Verdict], papers: Iterable[Paper], /) -> Iterator[str]:
    """Yield a line for each form (version of a claim) whose ratios differ from its paper's records.

    A paper without recorded ratios gets no lines.
    """
    for paper in papers:
        if recorded := read_records(paper, RATIOS):
            yield from moved([v for v in verdicts if v.paper == paper.id], recorded)
