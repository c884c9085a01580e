"""The verdict on one form (version of the claim) of a statement."""

import re
from dataclasses import dataclass, field, fields
from typing import Any

from jaxbounds.claims.statements import Form, Status
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.tables import Table, number, with_table
from jaxbounds.ground.to_json import to_json


def beside(witness_file: str, /) -> str:
    """Return the path of the Rocq file beside a witness, with a name that Rocq accepts."""
    folder, _, name = witness_file.rpartition("/")
    stem = re.sub(r"\W+", "_", name.removesuffix(".json"), flags=re.ASCII).strip("_")
    return f"{folder}/{stem}.v" if name else ""


@with_table
@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict on one form (version of the claim) of a statement, with its evidence.

    Attributes:
        id: the id of the statement.
        paper: the id of the paper.
        label: the statement's label in print, such as "Lemma 1".
        kind: the statement's kind, such as "inequality" or "rate".
        relation: the comparison: "<=", ">=" or "="; "->" for limits.
        form: the name of the form (version of the claim).
        expected: the status that the library expects of the form.
        recorded: whether `expected` comes from the form's declaration or from the paper's records.
            Otherwise a false twin (a deliberately false variant) is expected to fail, and any other
            claim to hold.
        out_of_time: whether the time limit ended the run; the form is then inconclusive.
        status: the status of the form, such as "holds" or "fails".
        reason: the reason for the status, in one sentence.
        worst_ratio: the worst ratio, which depends on the kind of the claim. For `<=` the worst
            ratio is the largest lhs/rhs, for `>=` the largest rhs/lhs, for `=` the largest relative
            difference. For a probability the worst ratio is the failure frequency divided by the
            level; for an expectation, the mean of lhs divided by the mean of rhs. For a rate the
            worst ratio is the fitted exponent; for a limit, the distance of the sides at the last
            size. NaN if no instance counted as evidence.
        instances: the number of instances that counted as evidence for the verdict.
        evidence: the kind of evidence, such as "sampled", "searched", "enumerated", "attained" or
            "violated" (with a certificate "disproved"); see `jaxbounds.falsification.evidence`.
        searches: the number of searches for worst instances of this form.
        accepted: the number of search steps that led to a worse instance.
        starts: a dictionary from each kind of starting point to two numbers. The first counts the
            searches that ended within a millionth of the worst ratio; the second counts all
            searches.
        distinct: the number of different instances that counted as evidence for the verdict.
        by_size: for each size the worst ratio found.
        near: whether the engine rejected the slightly false form: the right side is 1% smaller, or
            one side of an identity is moved by a millionth.
        sensitivity: for a bound that holds, the relative amount by which the larger side could
            shrink before an instance violates the bound.
        horizon: for claims about trajectories, the number of steps of a trajectory.
        enumerates: the name of the finite set of instances, if the run measured all its members;
            otherwise empty.
        checked: the names of the hypotheses that every instance was tested for.
        excluded: a dictionary from each reason of rejection to the number of rejected instances.
        sources: the number of instances and the worst ratio of each sampler, of the cases
            (hand-written instances) and of the search.
        quantiles: the quantiles 0%, 5%, ..., 100% of the ratios of the random and hand-written
            instances.
        drawn: the mean of r / (1 + |r|), where r runs over the ratios of the random draws and
            hand-written cases that count as evidence. The mean also shows changes of a formula that
            leave the worst ratio unchanged.
        values: the values recorded on a few random and hand-written instances, keyed by instance
            and name ("lhs", "rhs", or a judged function). For a value with many entries, the
            verdict stores two weighted sums. Values that all forms share appear in the first form's
            verdict only.
        control: the status and the worst ratio of the deliberately false variant.
        certificate: the result of ball arithmetic, if `jaxbounds.certify` certified the form.
        witness_file: the path of the witness (a file from which any program can check the failure)
            in the output folder; empty without a witness.
        counterexample_ratio: the ratio lhs/rhs of the stored counterexample, or None.
        worst_file: the path of the worst instance in the output folder; empty if not saved.
        shrunk_ratio: the ratio lhs/rhs of the shrunk failing instance (a simpler instance that
            still fails), or None.
        shrunk_file: the path of the shrunk instance in the output folder; empty if not saved.
        size: the size at which the worst instance was found.
        sides: for a bound, the left and the right side on the worst instance; empty otherwise.
        precision: the float type in which the sides were measured.
        tolerance: the relative tolerance that the statement declares.
        seconds: the seconds that the run spent on the whole statement.
        seed: the seed of the run.
        source: the statement's place in the paper.
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
    sides: tuple[float, ...] = ()
    precision: str = "float64"
    tolerance: float = 0.0
    seconds: float = 0.0
    seed: int = 0
    source: str = ""

    @property
    def theorem_file(self) -> str:
        """The path of the disproof's Rocq file (a formal proof); empty without a disproof."""
        return beside(self.witness_file)

    @property
    def is_twin(self) -> bool:
        """Whether the form (claim version) is a false twin: a false variant, which must fail."""
        return Form(name=self.form).is_twin

    @property
    def as_expected(self) -> bool:
        """Whether the status equals the expected status."""
        return self.status == self.expected

    @property
    def aside(self) -> str:
        """The note beside an unexpected status.

        The note gives the recorded status, or "must fail" for a twin (a false variant).
        """
        if self.as_expected:
            return ""
        if self.is_twin:
            return "must fail"
        return f"recorded: {self.expected}" if self.recorded else ""

    @property
    def largest_size(self) -> str:
        """The last size with an instance that counted as evidence, in words.

        The text is empty if no instance counted, or if the claim is about a limit.
        """
        if self.kind == "limit":
            return ""
        sizes = [*self.by_size] or [", ".join(f"{k}={v}" for k, v in self.size.items())]
        return sizes[-1]

    def _table(self) -> Table:
        below = any(side <= 0 for side in self.sides)  # the ratio is then no quotient
        limit = self.kind == "limit"  # whose worst instance has another size
        about = {
            "verdict": f"{self.status}, {self.aside}" if self.aside else self.status,
            "because": self.reason,
            "distance at the last size" if limit else "worst ratio": number(self.worst_ratio),
            "sides there": " and ".join(f"{side:.6g}" for side in self.sides) if below else "",
            "at": "" if limit else ", ".join(f"{k}={v}" for k, v in self.size.items()),
            "largest size": self.largest_size,
            "evidence": self.evidence,
            "instances": str(self.instances),
        }
        rows = [(name, value) for name, value in about.items() if value]
        return Table(f"{self.id} ({self.form}), {self.label}", ("", ""), rows)

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as a dict for JSON; NaN becomes null, and infinities become words."""
        return to_json(self) | {"as_expected": self.as_expected}

    @classmethod
    def from_json(cls, stored: dict[str, Any], /) -> "Verdict":
        """Return the verdict from a dict that `to_json` returned.

        Raises:
            Refused: if a field of the verdict is missing or unknown.
        """
        stored = {name: value for name, value in stored.items() if name != "as_expected"}
        if set(stored) != {f.name for f in fields(cls)}:
            raise Refused(
                f"the verdict has fields={sorted(stored)}, expected the fields of this version. "
                "Try `jaxbounds verify` again"
            )
        number = lambda value: float("nan") if value is None else float(value)
        return cls(
            **stored
            | {
                "worst_ratio": number(stored["worst_ratio"]),
                "quantiles": tuple(map(number, stored["quantiles"])),
                "checked": tuple(stored["checked"]),
                "sides": tuple(map(number, stored["sides"])),
                "values": {
                    place: {name: tuple(map(number, row)) for name, row in named.items()}
                    for place, named in stored["values"].items()
                },
                "starts": {kind: tuple(ended) for kind, ended in stored["starts"].items()},
            }
        )
