"""Judge one version of a claim from the measurements of all versions."""

import functools
from dataclasses import dataclass

import jax
import numpy as np

from jaxbounds.claims.statements import ON_AVERAGE, Form
from jaxbounds.falsification.approached import approached
from jaxbounds.falsification.as_coded import Wrapped, without_wrapped
from jaxbounds.falsification.bench import Bench, Column, Pool, counterexample_of, with_worst
from jaxbounds.falsification.cancellation import is_noise, largest_entry
from jaxbounds.falsification.decide import (
    MAY_BE,
    NONE_MET,
    TRY_SETS,
    UNNAMED,
    Decision,
    decide,
    violation,
)
from jaxbounds.falsification.doubted import (
    ask_about_rounding,
    beside_zero,
    beyond_floats,
    confirmed,
    looked_again,
)
from jaxbounds.falsification.fitness import CHANGES
from jaxbounds.falsification.found_equality import (
    agree,
    cleared,
    false_at_equality,
    with_equality,
)
from jaxbounds.falsification.saturated import saturated
from jaxbounds.falsification.scales import measured_again
from jaxbounds.falsification.second_opinion import JUMPS, Asked, no_referee
from jaxbounds.falsification.small_sides import are_rounding as is_small_rounding
from jaxbounds.falsification.small_sides import vanishing
from jaxbounds.falsification.tolerated import hidden_violation, strictly
from jaxbounds.falsification.undefined import where_undefined
from jaxbounds.falsification.unreached import COMES, are_rounding, unreached

STORED = 1e-6
"""Relative difference up to which a counterexample's measured and recorded ratios agree. A larger
value overlooks larger changes."""
TRY_TWIN = (
    "Try false=[...] in jb.claim, or a control in jb.Statement, with a right side that is wrong"
)
"""The advice if the library accepted its own deliberately false variant of the claim."""


def with_stored(
    bench: Bench, form: Form, index: int, decision: Decision, referee: Asked = no_referee
) -> tuple[Decision, float | None]:
    """Revise a decision by the claim version's stored counterexample."""
    stored = form.counterexample
    if stored is None:
        return decision, None
    instance, size = counterexample_of(bench.statement, form)
    m = measured_again(bench, instance, size, index)
    if violation(bench.statement, m) <= 0 and bench.statement.there_is is None:
        plain = bench.one(instance, size).column(index)  # a second look may call it rounding
        if violation(bench.statement, plain) > 0:
            said = referee(bench.statement, form, instance, size)
            m = plain if said.word.startswith("disproved") else m
    value = float(m.value)
    without = f"; without the counterexample: {decision.status}, {decision.reason}"
    if np.isnan(value):
        reason = f"evaluate gives NaN at the stored counterexample. Try another instance{without}"
        return Decision("inconclusive", decision.ratio, reason), value
    if violation(bench.statement, m) <= 0:
        reason = f"the stored counterexample satisfies the form (ratio {value:.6g}){without}"
        return Decision("inconclusive", decision.ratio, reason), value
    if is_noise(bench.statement, m, largest_entry(jax.tree.map(np.asarray, instance), np)):
        said = referee(bench.statement, form, instance, size)
        if not said.word.startswith("disproved"):
            words = "the stored counterexample violates the form only within rounding, and ball"
            reason = f"{words} arithmetic does not confirm it: {said.reason}{without}"
            return Decision("inconclusive", decision.ratio, reason), value
    if not np.isclose(value, stored.ratio, rtol=STORED, atol=0.0):
        reason = (
            f"the stored counterexample has ratio {value!r}, expected the recorded "
            f"ratio={stored.ratio!r}. Try to correct the instance or the formula{without}"
        )
        return Decision("inconclusive", decision.ratio, reason), value
    if decision.status != "fails":
        return Decision("fails", value, "the stored counterexample violates the form"), value
    return decision, value


@dataclass
class FormJudge:
    """The judge of one claim version, with the measurements and the reasons that decide.

    Attributes:
        column: the measurements on all instances; the judge may correct some.
        control: the decision on a deliberately false variant.
        rejected: whether the rules rejected a deliberately false variant computed by the same code.
        ill: a reason against the status `holds` or `consistent` of every claim version, or "".
        doubt: a reason against the status `holds` or `consistent` of this claim version, or "".
        near: whether the rules rejected a slightly false variant.
        left_out: for each reason of rejection, the number of rejected instances.
        wrapped: the instances at which integers overflow.
        rounding: the reason why rounding may hide a violation, or "".
        beyond: a remark about instances with infinite sides that do not count, or "".
        along: describes a sequence of instances on which lhs / rhs approaches one without reaching
            it, or "".
        sharp: whether both sides are equal at some instance.
        steep: whether all violations come only from the rounding of small sides.
    """

    bench: Bench
    pool: Pool
    referee: Asked
    index: int
    column: Column
    control: Decision
    rejected: bool
    ill: str
    doubt: str
    near: bool
    left_out: dict[str, int]
    wrapped: Wrapped
    rounding: str = ""
    beyond: str = ""
    along: str = ""
    sharp: bool = False
    steep: bool = False

    @property
    def form(self) -> Form:
        """The version of the claim that the judge decides."""
        return self.bench.statement.forms[self.index]

    @property
    def by_instance(self) -> bool:
        """Whether one instance can refute the claim; one instance refutes no mean and no trend."""
        return self.bench.statement.kind not in ON_AVERAGE

    def judged(self) -> tuple[Decision, float | None]:
        """Return the decision, and the ratio of the stored counterexample or None."""
        self.sharp = bool(self.form.equality)
        decision, ratio = with_stored(
            self.bench, self.form, self.index, self._measured(), self.referee
        )
        decision = self._guarded(self._at_one(self._looked_again(decision)))
        if decision.status == "holds" and self.beyond:
            decision = decision._replace(reason=f"{decision.reason}; {self.beyond}")
        return decision, ratio

    def _measured(self) -> Decision:
        bench, pool, form = self.bench, self.pool, self.form
        if self.by_instance:
            self.column, self.beyond = beyond_floats(bench, pool, self.column, form, self.referee)
        decision = decide(bench.statement, form, self.column)
        if decision.status == "holds" or decision.reason == UNNAMED:
            said = ask_about_rounding(bench, pool, self.column, form, self.referee)
            if said.row is not None:
                self.column = confirmed(pool, self.column, self.index, said.row)
                decision = decide(bench.statement, form, self.column)
            else:
                self.rounding = said.doubt
        if decision.status == "vacuous" and self.left_out:
            missed = ", ".join(f"{count} missed {name!r}" for name, count in self.left_out.items())
            none = decision.reason.startswith(NONE_MET)
            words = f"{NONE_MET}: {missed}{TRY_SETS}" if none else f"{decision.reason}: {missed}"
            decision = decision._replace(reason=words)
        if decision.status == "inconclusive" and self.by_instance:
            where = where_undefined(bench.statement, pool, self.column)
            decision = decision._replace(reason=where or decision.reason)
        decision, self.column = without_wrapped(
            bench.statement, self.index, self.column, decision, self.wrapped
        )
        return decision

    def _looked_again(self, decision: Decision) -> Decision:
        bench, pool, form = self.bench, self.pool, self.form
        if decision.status == "fails" and bench.statement.host and not bench.watch.fixed:
            decision = Decision("inconclusive", decision.ratio, CHANGES)
        if decision.status == "fails" and self.by_instance:
            decision, self.column = looked_again(
                bench, pool, self.column, form, decision, self.referee
            )
            if decision.status == "inconclusive":
                self.steep = is_small_rounding(bench, pool, self.column, form, self.referee)
        return beside_zero(bench, pool, self.column, form, decision, self.referee)

    def _at_one(self, decision: Decision) -> Decision:
        given = self.bench, self.pool, self.column, self.index, self.form, self.referee
        unnamed = decision.reason == UNNAMED
        if unnamed or (self.form.equality and decision.status == "holds"):
            self.along = approached(*given)
        if unnamed and self.along:
            return Decision("holds", decision.ratio, self.along)
        if self.along:
            return decision._replace(reason=f"{self.along}; named: {self.form.equality}")
        if decision.status == "holds" and self.form.equality and self.by_instance:
            doubt = false_at_equality(self.bench, self.pool, self.column, self.index, self.referee)
            return Decision("inconclusive", decision.ratio, doubt) if doubt else decision
        if unnamed:
            said = cleared(*given)
            self.sharp = said.attained
            if said.doubt:
                return Decision("inconclusive", decision.ratio, said.doubt)
            if said.reason:
                self.rounding *= JUMPS in self.rounding
                return Decision("holds", decision.ratio, said.reason)
        return decision

    def _unreached(self, decision: Decision) -> str:
        known = self.bench, self.pool, self.column, self.index, self.form, self.referee
        said = unreached(*known)
        said = decision.reason if said and self.along else said
        self.along = said if said == COMES else self.along
        return said

    def _guarded(self, decision: Decision) -> Decision:
        """Replace `holds` and `consistent` by `inconclusive` if there is a reason to doubt."""
        statement, pool, form = self.bench.statement, self.pool, self.form
        unsure = lambda reason: Decision("inconclusive", decision.ratio, reason)
        if statement.strict and decision.status == "holds":
            given = statement, pool, self.column, form, decision, self.referee
            meet = lambda instance, size: agree(
                self.bench, instance, size, self.index, form, self.referee
            )
            far = functools.partial(self._unreached, decision)
            decision, row = strictly(*given, unreached=far, agree=meet)
            if row is not None:
                self.column = with_worst(self.column, row)
            zero = np.all((self.column.measured.lhs == 0) | (self.column.measured.rhs == 0))
            if decision.status == "holds" and zero:
                tiny = are_rounding(self.bench, pool, self.column, self.index)
                decision = unsure(f"the inequality is strict, but {tiny}") if tiny else decision
        if decision.status in ("holds", "consistent") and not self.rejected:
            decision = unsure(
                vanishing(statement, pool, self.column)
                or "the control, a deliberately false variant, was not rejected "
                f"({self.control.status}: {self.control.reason}). {TRY_TWIN}"
            )
        asks = decision.status == "holds" or decision.reason == UNNAMED
        if self.by_instance and (asks or MAY_BE in decision.reason):
            hidden = hidden_violation(statement, pool, self.column, form, self.referee)
            decision = unsure(hidden) if hidden else decision
        if self.by_instance and statement.there_is is not None and decision.status == "holds":
            flat = saturated(self.bench, pool, self.column, self.index, form, self.referee)
            decision = unsure(flat) if flat else decision
        if decision.status in ("holds", "consistent"):
            missed = bool(form.equality) and self.by_instance and not self.near
            words = f"no instance came near the named equality case: {form.equality}"
            if reason := self.ill or self.doubt or self.rounding or words * missed:
                decision = unsure(reason)
        if decision.reason == UNNAMED and statement.strict:
            words = "the inequality is strict, and the worst ratio is one up to rounding"
            decision = decision._replace(reason=f"{words}. Try the relation '<=' or '>='")
        elif decision.reason == UNNAMED:
            decision = decision._replace(reason=with_equality(pool, self.column))
        return decision
