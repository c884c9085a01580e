"""The largest known ratio of the left side to the right side, for each form of a statement."""

import math
from collections.abc import Iterable, Mapping

from jaxbounds.claims.records import RATIOS, read_records
from jaxbounds.claims.statements import Paper
from jaxbounds.falsification import Verdict

Worst = Mapping[tuple[str, str], float]
"""A dictionary from a statement's id and the name of a form (version of the claim) to the largest
known ratio of the left side to the right side."""


def worst_known(papers: Iterable[Paper], verdicts: Iterable[Verdict] = (), /) -> Worst:
    """Return, for each form (version of a claim), its largest lhs/rhs in records and verdicts.

    Raises:
        Refused: if a file that records the papers' ratios is damaged.
    """
    found: dict[tuple[str, str], float] = {}
    for paper in papers:
        for name, forms in read_records(paper, RATIOS).items():
            found |= {(name, form): ratios.get("worst", 0.0) for form, ratios in forms.items()}
    for v in verdicts:
        if not math.isnan(v.worst_ratio):
            found[v.id, v.form] = max(v.worst_ratio, found.get((v.id, v.form), -math.inf))
    return found
