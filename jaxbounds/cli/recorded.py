"""What the shipped statements are known to measure, and what moved since.

A verdict may stay as it was while its ratios move: a formula that changed, or a sampler. The file
beside this module holds, for each form, the worst ratio, the worst at each size, and a mean over
the draws alone (`Verdict.drawn`), which any change of a formula moves. It is written by `jaxbounds
verify --record` (`verify ID --record`: of one statement), seed 0; a person reads the difference.
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
"""How far, relatively, a ratio may be from the recorded one: where a search found it, and where the
draws alone did."""
Ratios = dict[str, float]
"""Of one form: "worst", "drawn", and the worst ratio by size ("n=4, T=3")."""


def _kept(verdict: Verdict) -> bool:
    """Rounding is not recorded: of identities that hold nothing is."""
    exact = verdict.relation == "=" and verdict.status == "holds"
    return verdict.paper in PAPERS and not exact and math.isfinite(verdict.worst_ratio)


def ratios_of(verdict: Verdict, /) -> Ratios:
    """What is recorded of a verdict."""
    drawn = {} if verdict.drawn is None else {"drawn": verdict.drawn}
    found = {"worst": verdict.worst_ratio} | drawn
    found |= verdict.by_size if len(verdict.by_size) > 1 else {}
    return {name: float(f"{value:.8g}") for name, value in found.items() if math.isfinite(value)}


def _read() -> dict[str, dict[str, Ratios]]:
    return json.loads(FILE.read_text(encoding="utf8")) if FILE.is_file() else {}


def record(verdicts: Sequence[Verdict], /, *, others: bool) -> None:
    """Write the ratios of these verdicts, in place of those that were there.

    Args:
        verdicts: all forms of some statements.
        others: keep what is recorded of other statements.
    """
    now: dict[str, dict[str, Ratios]] = {}
    for verdict in filter(_kept, verdicts):
        now.setdefault(verdict.id, {})[verdict.form] = ratios_of(verdict)
    judged = {verdict.id for verdict in verdicts}
    before = _read() if others else {}
    kept = {name: forms for name, forms in before.items() if name not in judged or name in now}
    merged = {name: now.get(name, forms) for name, forms in (kept | now).items()}
    lines = (f" {json.dumps(name)}: {json.dumps(forms)}" for name, forms in merged.items())
    write_text(FILE, "{\n" + ",\n".join(lines) + "\n}\n")


def differences(verdict: Verdict, before: Ratios, /) -> Iterator[str]:
    """Which of its ratios are not those."""
    for name, now in ratios_of(verdict).items():
        allowed = SEARCHED if verdict.accepted and name != "drawn" else EXACT
        if not math.isclose(now, before.get(name, math.nan), rel_tol=allowed, abs_tol=1e-9):
            yield name


def moved(
    verdicts: Sequence[Verdict], recorded: Mapping[str, Mapping[str, Ratios]] | None = None, /
) -> Iterator[str]:
    """A line for each form whose ratios are not the recorded ones, or of which there are none.

    Args:
        verdicts: of seed 0 and the statements' own budgets.
        recorded: ratios by statement and form; those of the file unless given.
    """
    if recorded is None:
        recorded = _read()
    for verdict in filter(_kept, verdicts):
        before = recorded.get(verdict.id, {}).get(verdict.form)
        name, now = f"{verdict.id} ({verdict.form})", ratios_of(verdict)
        if before is None:
            yield f"{name}: no ratio is recorded"
        elif changed := list(differences(verdict, before)):
            said = (f"{part} {now[part]:.8g}, recorded {before.get(part)}" for part in changed[:3])
            yield f"{name}: {'; '.join(said)}"
