"""Record the runs of figures, at the paper's settings (full size) and at a quick preset.

Each paper has the files `records/full_size.json` and `records/quick.json`, with the settings,
versions and results of a run of each figure.
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
"""The name, without extension, of a file with records of figure runs: "full_size" for runs at the
paper's settings, else "quick"."""
PRESET = "published"
"""The name of the preset with the paper's settings."""
WHERE = "jaxbounds guide figures"
"""The command that prints the numbers of runs at the paper's settings (full size)."""
EARLIER: Mapping[str, str] = {"qstr.fig1a": f"2026-11-21, version 0.1, seed 0: {WHERE}"}
"""The ids of figures that ran at full size before this library stored records of runs. The guide
prints the results of these earlier runs.
"""


class Answer(NamedTuple):
    """The decision of a run at the paper's settings (full size) about one claim of a figure.

    Attributes:
        answer: "yes" if the run confirmed the claim, "NO" if the run refuted it, else "open".
        number: a text with the measured numbers that decided the claim.
    """

    claim: str
    answer: str
    number: str


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """The settings, versions and results of one run of a figure, as its record stores them.

    Attributes:
        date: the day on which the run began ("2026-11-27").
        machine: a text that describes the machine, such as "2 CPU cores".
        cpu_seconds: the seconds of processor time of the whole command.
        settings: a line of text about the data set and the sizes that the run used.
        claims: for each claim about the figure, whether the run confirmed it; in the figure's
            order.
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
        """Return on one line the run's date, version and seed, and the command for its results."""
        return f"{self.date}, version {self.version}, seed {self.seed}: {WHERE}"


def answered(finding: Finding, /) -> Answer:
    """Convert a finding (the decision about a claim) to the `Answer` that a record stores."""
    words = {True: "yes", False: "NO", None: "open"}
    return Answer(finding.text, words[finding.reproduced], finding.number)


def small_preset(experiment: Experiment, /) -> str:
    """Return the name of a figure's preset for a trial run: "quick", or else "default"."""
    return "quick" if "quick" in experiment.presets else "default"


def place(paper: str, kind: Kind = "full_size", /) -> Path:
    """Return the path of the JSON file that records the runs of a paper's figures."""
    return Path(__file__).parents[1] / paper / "records" / f"{kind}.json"


@functools.cache
def records(kind: Kind = "full_size", /) -> Mapping[str, RecordedRun]:
    """Return a dict from each figure's id to the record of its run, for the shipped papers."""
    found: dict[str, RecordedRun] = {}
    for paper in PAPERS:
        file = place(paper, kind)
        kept = json.loads(file.read_text(encoding="utf8")) if file.is_file() else {}
        for name, one in kept.items():
            claims = tuple(Answer(*row) for row in one.pop("claims"))
            found[name] = RecordedRun(**one, claims=claims)
    return found


def full_size(experiment: Experiment, /) -> str:
    """Return a line that says whether the figure ran at the paper's settings.

    If the figure has no preset with the paper's settings, the result is "".
    """
    if PRESET not in experiment.presets:
        return ""
    lines = {**EARLIER, **{name: one.line() for name, one in records().items()}}
    known = lines.get(experiment.id)
    return f"ran at full size: {known}" if known else f"never ran at full size (--preset {PRESET})"
