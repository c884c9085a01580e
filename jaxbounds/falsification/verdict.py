"""The verdict of the library about one form of one statement."""

import re
from dataclasses import dataclass, field, fields
from typing import Any

from jaxbounds.claims.statements import Form, Status
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.tables import Table, number, with_table
from jaxbounds.ground.to_json import to_json


def beside(witness_file: str, /) -> str:
    """Return the path of the Rocq file of a witness, with a name that Rocq takes."""
    folder, _, name = witness_file.rpartition("/")
    stem = re.sub(r"\W+", "_", name.removesuffix(".json"), flags=re.ASCII).strip("_")
    return f"{folder}/{stem}.v" if name else ""


@with_table
@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict of the library about one form of one statement, with its evidence.

    Attributes:
        id: the statement.
        paper: its paper.
        label: its label in print.
        kind: its kind.
        relation: the comparison: "<=", ">=" or "="; "->" for limits.
        form: the form judged.
        expected: the status the form is expected to have.
        recorded: whether an expectation is on record: the form's declaration, or recorded ratios.
            Otherwise a claim is expected to hold, and a false twin to fail.
        out_of_time: whether the limit of time ended the run; the form is then inconclusive.
        status: the status it got.
        reason: the reason for the status, in one sentence.
        worst_ratio: the worst ratio, by kind. For `<=` the largest lhs/rhs, for `>=` the largest
            rhs/lhs, for `=` the largest relative discrepancy. For a probability, failure frequency
            over level; for an expectation, mean over mean. For a rate, the fitted exponent; for a
            limit, the distance of the sides at the last size. NaN where no instance counted.
        instances: the number of instances that counted.
        evidence: the evidence: "sampled", "searched", "enumerated", "attained", or "violated" (with
            a certificate "disproved"); see `jaxbounds.falsification.evidence`.
        searches: the number of searches for this form.
        accepted: the number of search steps that led to a worse instance.
        starts: for each kind of start at the worst size, the number of searches that ended within a
            millionth of the worst ratio, and the number of searches.
        distinct: the number of different instances that counted.
        by_size: the worst ratio at each size.
        near: whether the near-control was rejected: the form with a right side 1% smaller, or with
            one side of an identity moved by a millionth.
        sensitivity: for a bound that holds, the relative amount by which the larger side could
            shrink unnoticed.
        horizon: for trajectories, the number of steps that were followed.
        enumerates: the finite set of which the instances are all points; empty otherwise.
        checked: the hypotheses by name, evaluated on every instance.
        excluded: the number of instances left out, by reason.
        sources: for each sampler, `cases` and the search: instances and worst ratio.
        quantiles: 0%, 5%, ..., 100% of the ratios of the counted instances.
        drawn: the mean of r / (1 + |r|) over the ratios r of the draws and cases that count: any
            change of a formula moves it.
        values: the noted values of a few draws and cases, by instance and name ("lhs", "rhs", or a
            judged function). A value with many entries has a few numbers. Values that all forms
            share stand with the first form.
        control: status and worst ratio of the deliberately false variant.
        certificate: the answer of ball arithmetic, where the form was certified
            (`jaxbounds.certify`).
        witness_file: its witness, relative to the output folder; empty without a witness.
        counterexample_ratio: the ratio of the stored counterexample, where there is one.
        worst_file: the saved worst instance, relative to the output folder; empty if not saved.
        shrunk_ratio: the ratio of the shrunk failing instance, where the form fails.
        shrunk_file: the shrunk instance, relative to the output folder; empty if not saved.
        size: the shapes of the worst instance.
        precision: the float type.
        tolerance: the relative tolerance that the statement declares.
        seconds: the seconds spent on the whole statement.
        seed: the seed of the run.
        source: the place in the paper, and other numbers of the statement.
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
    values: dict[str, dict[str, tuple[float, ...]]] = field(default_factory=dict)
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
        """Return the path of the disproof's Rocq file, beside its witness.

        Empty without a witness.
        """
        return beside(self.witness_file)

    @property
    def is_twin(self) -> bool:
        """Tell whether the form is a false twin of the claim, which must fail."""
        return Form(name=self.form).is_twin

    @property
    def as_expected(self) -> bool:
        """Tell whether the status is the recorded one."""
        return self.status == self.expected

    @property
    def aside(self) -> str:
        """Return a note beside a status: the status on record, or that a twin must fail."""
        if self.as_expected:
            return ""
        if self.is_twin:
            return "must fail"
        return f"recorded: {self.expected}" if self.recorded else ""

    @property
    def largest_size(self) -> str:
        """Return the last size at which instances counted, in words.

        Empty if no instance counted.
        """
        sizes = [*self.by_size] or [", ".join(f"{k}={v}" for k, v in self.size.items())]
        return sizes[-1]

    def _table(self) -> Table:
        about = {
            "verdict": f"{self.status}, {self.aside}" if self.aside else self.status,
            "because": self.reason,
            "worst ratio": number(self.worst_ratio),
            "at": ", ".join(f"{k}={v}" for k, v in self.size.items()),
            "largest size": self.largest_size,
            "evidence": self.evidence,
            "instances": str(self.instances),
        }
        rows = [(name, value) for name, value in about.items() if value]
        return Table(f"{self.id} ({self.form}), {self.label}", ("", ""), rows)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict; NaN becomes null, and infinities words."""
        return to_json(self) | {"as_expected": self.as_expected}

    @classmethod
    def from_json(cls, stored: dict[str, Any], /) -> "Verdict":
        """Return the verdict of a dict from `to_json`.

        Raises:
            Refused: if a field is missing or unknown.
        """
        stored = {name: value for name, value in stored.items() if name != "as_expected"}
        if set(stored) != {f.name for f in fields(cls)}:
            raise Refused(
                f"these verdicts have fields={sorted(stored)}, those of another version. Try "
                "`jaxbounds verify` again"
            )
        number = lambda value: float("nan") if value is None else float(value)
        return cls(
            **stored
            | {
                "worst_ratio": number(stored["worst_ratio"]),
                "quantiles": tuple(map(number, stored["quantiles"])),
                "checked": tuple(stored["checked"]),
                "values": {
                    place: {name: tuple(map(number, row)) for name, row in named.items()}
                    for place, named in stored["values"].items()
                },
                "starts": {kind: tuple(ended) for kind, ended in stored["starts"].items()},
            }
        )
