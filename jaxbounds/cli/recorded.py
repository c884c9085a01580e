"""The worst ratios that the shipped statements are known to have, and what moved since.

A verdict may stay as it was while its ratio moves: a formula that changed, or a sampler. The file
beside this module holds the ratios of a whole `jaxbounds verify` (seed 0); `jaxbounds verify
--record` writes it anew (`verify ID --record` those of a statement), and a person reads the
difference.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jaxbounds.falsify import Verdict
from jaxbounds.files import write_text
from jaxbounds.papers import PAPERS

FILE = Path(__file__).with_name("recorded.json")
SEARCHED, EXACT = 0.03, 1e-6
"""How far, relatively, a worst ratio may be from the recorded one: where a search found it, and
where the draws alone did."""


def _kept(verdict: Verdict) -> bool:
    """Rounding is not recorded: of identities that hold nothing is."""
    exact = verdict.relation == "=" and verdict.status == "holds"
    return verdict.paper in PAPERS and not exact and math.isfinite(verdict.worst_ratio)


def _read() -> dict[str, dict[str, float]]:
    return json.loads(FILE.read_text(encoding="utf8")) if FILE.is_file() else {}


def record(verdicts: Sequence[Verdict], /, *, others: bool) -> None:
    """Write the ratios of these verdicts, in place of those that were there.

    Args:
        verdicts: all forms of some statements.
        others: keep what is recorded of other statements.
    """
    now: dict[str, dict[str, float]] = {}
    for verdict in filter(_kept, verdicts):
        now.setdefault(verdict.id, {})[verdict.form] = float(f"{verdict.worst_ratio:.8g}")
    judged = {verdict.id for verdict in verdicts}
    before = _read() if others else {}
    kept = {name: forms for name, forms in before.items() if name not in judged or name in now}
    ratios = {name: now.get(name, forms) for name, forms in (kept | now).items()}
    write_text(FILE, json.dumps(ratios, indent=1) + "\n")


def moved(
    verdicts: Sequence[Verdict], recorded: Mapping[str, Mapping[str, float]] | None = None, /
) -> Iterator[str]:
    """A line for each form whose worst ratio is not the recorded one, or has none.

    Args:
        verdicts: of seed 0 and the statements' own budgets.
        recorded: ratios by statement and form; those of the file unless given.
    """
    if recorded is None:
        recorded = _read()
    for verdict in filter(_kept, verdicts):
        before, now = recorded.get(verdict.id, {}).get(verdict.form), verdict.worst_ratio
        allowed = SEARCHED if verdict.accepted else EXACT
        name = f"{verdict.id} ({verdict.form})"
        if before is None:
            yield f"{name}: no ratio is recorded"
        elif not math.isclose(now, before, rel_tol=allowed, abs_tol=1e-9):
            yield f"{name}: ratio {now:.8g}, recorded {before:.8g}"
