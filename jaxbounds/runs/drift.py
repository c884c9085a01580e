"""Recorded ratios of the statements of a paper, and the differences of a run from them.

A verdict may stay as it was while its ratios move: a formula that changed, or a sampler. For each
form `records/ratios.json` of its paper holds the worst ratio, the worst at each size, and a mean
over the draws alone (`Verdict.drawn`), which any change of a formula moves. It is written by
`jaxbounds verify --record` (`verify ID --record`: of one statement), seed 0; a person reads the
difference.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from jaxbounds.claims.records import RATIOS, read_records, write_records
from jaxbounds.claims.statements import Paper
from jaxbounds.falsification import Verdict

SEARCHED, EXACT = 0.03, 1e-6
"""How far, relatively, a ratio may be from the recorded one: where a search found it, and where the
draws alone did."""
Ratios = Mapping[str, float]
"""Ratios of one form: "worst", "drawn", and the worst ratio by size ("n=4, T=3")."""
OfStatements = Mapping[str, Mapping[str, Ratios]]
"""The texts by statement and form."""


def _is_recorded(verdict: Verdict) -> bool:
    """Whether a verdict's ratios are recorded: identities that hold leave only rounding."""
    exact = verdict.relation == "=" and verdict.status == "holds"
    return not exact and bool(ratios_of(verdict))


def ratios_of(verdict: Verdict, /) -> Ratios:
    """Return the ratios of a verdict to record: the finite ones, as a right side may vanish."""
    drawn = {} if verdict.drawn is None else {"drawn": verdict.drawn}
    found = {"worst": verdict.worst_ratio} | drawn
    found |= verdict.by_size if len(verdict.by_size) > 1 else {}
    return {name: float(f"{value:.8g}") for name, value in found.items() if math.isfinite(value)}


def record(verdicts: Sequence[Verdict], papers: Iterable[Paper], /, *, others: bool) -> None:
    """Write the ratios of these verdicts, in place of those that were there.

    Args:
        verdicts: all forms of some statements.
        papers: theirs.
        others: keep what is recorded of other statements.

    Raises:
        Refused: if a paper is in no file.
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
    """Describe the ratios of a verdict that differ from the recorded ones."""
    for name, now in ratios_of(verdict).items():
        allowed = SEARCHED if verdict.accepted and name != "drawn" else EXACT
        if not math.isclose(now, before.get(name, math.nan), rel_tol=allowed, abs_tol=1e-9):
            yield name


def moved(verdicts: Iterable[Verdict], recorded: OfStatements, /) -> Iterator[str]:
    """Return a line for each form whose ratios differ from the recorded ones or have no record.

    Args:
        verdicts: of seed 0 and the statements' own budgets.
        recorded: ratios by statement and form.
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
    """Return the lines of `moved` for all papers that have records."""
    for paper in papers:
        if recorded := read_records(paper, RATIOS):
            yield from moved([v for v in verdicts if v.paper == paper.id], recorded)
