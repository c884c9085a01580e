"""What the library says about one form of one statement."""

import re
from dataclasses import dataclass, field, fields
from typing import Any

from jaxbounds.claims.statements import Form, Status
from jaxbounds.ground.tables import Table, number, with_table
from jaxbounds.ground.to_json import to_json


def beside(witness_file: str, /) -> str:
    """The file for Rocq of a witness: its name is one that Rocq takes."""
    folder, _, name = witness_file.rpartition("/")
    stem = re.sub(r"\W+", "_", name.removesuffix(".json"), flags=re.ASCII).strip("_")
    return f"{folder}/{stem}.v" if name else ""


@with_table
@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the library says about one form of one statement, and on what ground.

    Attributes:
        id: the statement.
        paper: its paper.
        label: its label in print.
        kind: its kind.
        relation: "<=", ">=" or "=": what is compared; "->" of limits.
        form: the form judged.
        expected: the status the form is expected to have.
        recorded: whether somebody said what is expected: the form's declaration, or ratios on
            record; else a claim is expected to hold, and a false twin to fail.
        out_of_time: whether the limit of time ended what was tried; it is then inconclusive.
        status: the status it got.
        reason: one sentence: why this status.
        worst_ratio: by kind: the largest lhs/rhs (`<=`) or rhs/lhs (`>=`), the largest relative
            discrepancy (`=`), failure frequency over level (probability), mean over mean
            (expectation), the fitted exponent (rate), or the distance of the sides at the last size
            (limit). NaN where nothing counted.
        instances: how many instances counted.
        evidence: what stands behind it: "sampled", "searched", "enumerated", "attained", or
            "violated" (with a certificate "disproved"); see `jaxbounds.falsification.evidence`.
        searches: how many searches were run for this form.
        accepted: how many of their steps led to a worse instance.
        starts: for each kind of start at the worst size, how many searches ended within a
            millionth of the worst ratio, and how many there were.
        distinct: how many different instances counted.
        by_size: the worst ratio at each size.
        near: whether the near-control was rejected: the same form with a right side 1% smaller, or
            with one side of an identity moved by a millionth.
        sensitivity: for a bound that holds by how much, relatively, the larger side could shrink
            before anything would have been noticed.
        horizon: for trajectories the number of steps that were followed.
        enumerates: of what the instances are all, where they are.
        checked: the hypotheses by name, evaluated on every instance.
        excluded: instances left out, by reason.
        sources: for each sampler, `cases` and the search: instances and worst ratio.
        quantiles: 0%, 5%, ..., 100% of the ratios of the counted instances.
        drawn: the mean of r / (1 + |r|) over the ratios r of the draws and cases that count: any
            change of a formula moves it.
        control: status and worst ratio of the deliberately false variant.
        certificate: where it was certified (`jaxbounds.certify`): what ball arithmetic says.
        witness_file: its witness, relative to the output folder; empty if there is none.
        counterexample_ratio: the ratio of the stored counterexample, where there is one.
        worst_file: the saved worst instance, relative to the output folder; empty if not saved.
        shrunk_ratio: the ratio of the shrunk failing instance, where the form fails.
        shrunk_file: that instance, relative to the output folder; empty if not saved.
        size: the shapes of the worst instance.
        precision: the float type.
        tolerance: relative, as stated by the statement.
        seconds: spent on the whole statement.
        seed: of the run.
        source: where in the paper, and under which other numbers it stands.
    """

    id: str
    paper: str
    label: str
    kind: str
    relation: str
    form: str
    expected: Status
    status: Status
    reason: str
    worst_ratio: float
    instances: int
    searches: int
    recorded: bool = False
    out_of_time: bool = False
    evidence: str = ""
    accepted: int = 0
    starts: dict[str, tuple[int, int]] = field(default_factory=dict)
    distinct: int = 0
    by_size: dict[str, float] = field(default_factory=dict)
    near: bool = False
    sensitivity: float | None = None
    horizon: int | None = None
    enumerates: str = ""
    checked: tuple[str, ...] = ()
    excluded: dict[str, int] = field(default_factory=dict)
    sources: dict[str, dict[str, float]] = field(default_factory=dict)
    quantiles: tuple[float, ...] = ()
    drawn: float | None = None
    control: dict[str, Any] = field(default_factory=dict)
    certificate: dict[str, Any] | None = None
    witness_file: str = ""
    counterexample_ratio: float | None = None
    worst_file: str = ""
    shrunk_ratio: float | None = None
    shrunk_file: str = ""
    size: dict[str, float] = field(default_factory=dict)
    precision: str = "float64"
    tolerance: float = 0.0
    seconds: float = 0.0
    seed: int = 0
    source: str = ""

    @property
    def theorem_file(self) -> str:
        """Where the disproof's file for Rocq stands, if it has one: beside its witness."""
        return beside(self.witness_file)

    @property
    def is_twin(self) -> bool:
        """Whether the form is a false twin of the claim, which must fail."""
        return Form(name=self.form).is_twin

    @property
    def as_expected(self) -> bool:
        """Whether the status is the recorded one."""
        return self.status == self.expected

    @property
    def aside(self) -> str:
        """What a reader must know beside a status: what is on record, or that a twin must fail."""
        if self.as_expected:
            return ""
        if self.is_twin:
            return "must fail"
        return f"recorded: {self.expected}" if self.recorded else ""

    def _table(self) -> Table:
        about = {
            "verdict": f"{self.status}, {self.aside}" if self.aside else self.status,
            "because": self.reason,
            "worst ratio": number(self.worst_ratio),
            "at": ", ".join(f"{k}={v}" for k, v in self.size.items()),
            "evidence": self.evidence,
            "instances": str(self.instances),
        }
        rows = [(name, value) for name, value in about.items() if value]
        return Table(f"{self.id} ({self.form}), {self.label}", ("", ""), rows)

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict; NaN becomes null, and infinities words."""
        return to_json(self) | {"as_expected": self.as_expected}

    @classmethod
    def from_json(cls, stored: dict[str, Any], /) -> "Verdict":
        """A verdict from what `to_json` gave.

        Raises:
            ValueError: if a field is missing or unknown.
        """
        stored = {name: value for name, value in stored.items() if name != "as_expected"}
        if set(stored) != {f.name for f in fields(cls)}:
            raise ValueError("these verdicts are of another version: run verify again")
        number = lambda value: float("nan") if value is None else float(value)
        return cls(
            **stored
            | {
                "worst_ratio": number(stored["worst_ratio"]),
                "quantiles": tuple(map(number, stored["quantiles"])),
                "checked": tuple(stored["checked"]),
                "starts": {kind: tuple(ended) for kind, ended in stored["starts"].items()},
            }
        )
