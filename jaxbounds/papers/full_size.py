"""Which figures ran, at the paper's full size and at a quick preset: the records of these runs.

Each paper keeps its records in `records/full_size.json` and `records/quick.json`, by figure.
`.github/full_size.py` writes a record from the folder of a run.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from jaxbounds.experiments.experiment import Experiment, Finding
from jaxbounds.papers.loading import PAPERS

Kind = Literal["full_size", "quick"]
"""The file of a record: of a run at the paper's settings, or of a run that tries a figure out."""
PRESET = "published"
"""The preset that has the paper's settings."""
WHERE = "jaxbounds guide figures"
"""The place of the numbers."""
EARLIER: Mapping[str, str] = {"qstr.fig1a": f"2026-11-21, version 0.1, seed 0: {WHERE}"}
"""Figures that ran before runs were put on record; the guide alone has their numbers."""


class Answer(NamedTuple):
    """A claim of a figure, as a run at full size answered it.

    Attributes:
        claim: the text of the claim.
        answer: "yes", "NO" or "open".
        number: the numbers behind the answer, in words.
    """

    claim: str
    answer: str
    number: str


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """A run of a figure, as its record keeps it.

    Attributes:
        date: the day of the run ("2026-11-27").
        version: of the library.
        jax: the version of JAX.
        seed: of the run.
        machine: in words ("2 CPU cores").
        cpu_seconds: of processor time, for the whole command.
        settings: the data and the sizes in a line.
        config: the whole configuration.
        claims: the answers, in the order of the figure's claims.
    """

    date: str
    version: str
    jax: str
    seed: int
    machine: str
    cpu_seconds: float
    settings: str
    config: Mapping[str, Any]
    claims: tuple[Answer, ...]

    def line(self) -> str:
        """Say in a line which run it was, and where its numbers stand."""
        return f"{self.date}, version {self.version}, seed {self.seed}: {WHERE}"


def answered(finding: Finding, /) -> Answer:
    """Return a finding as a record keeps it."""
    words = {True: "yes", False: "NO", None: "open"}
    return Answer(finding.text, words[finding.reproduced], finding.number)


def small_preset(experiment: Experiment, /) -> str:
    """Return the name of the preset that tries a figure out: "quick", or else "default"."""
    return "quick" if "quick" in experiment.presets else "default"


def place(paper: str, kind: Kind = "full_size", /) -> Path:
    """Return the file of a shipped paper's records."""
    return Path(__file__).parents[1] / paper / "records" / f"{kind}.json"


@functools.cache
def records(kind: Kind = "full_size", /) -> Mapping[str, RecordedRun]:
    """Read the records of the shipped papers, by figure."""
    found: dict[str, RecordedRun] = {}
    for paper in PAPERS:
        file = place(paper, kind)
        kept = json.loads(file.read_text(encoding="utf8")) if file.is_file() else {}
        for name, one in kept.items():
            claims = tuple(Answer(*row) for row in one.pop("claims"))
            found[name] = RecordedRun(**one, claims=claims)
    return found


def full_size(experiment: Experiment, /) -> str:
    """Say whether a figure ran at the paper's settings; "" where the paper has no such settings."""
    if PRESET not in experiment.presets:
        return ""
    lines = {**EARLIER, **{name: one.line() for name, one in records().items()}}
    known = lines.get(experiment.id)
    return f"ran at full size: {known}" if known else f"never ran at full size (--preset {PRESET})"
