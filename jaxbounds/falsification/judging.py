"""The judgement of a statement: draw instances, search, measure, and decide."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from jaxbounds.claims.statements import Budget, Size, Statement
from jaxbounds.claims.statements.form import REJECTED
from jaxbounds.falsification.as_coded import as_coded
from jaxbounds.falsification.bench import Bench, Column, Pool, calls_of
from jaxbounds.falsification.controls import controls_of
from jaxbounds.falsification.deadline import GRACE, LEAST_GRACE, OutOfTime, limited, looking
from jaxbounds.falsification.decide import (
    Decision,
)
from jaxbounds.falsification.evaluation import changes_its_instance
from jaxbounds.falsification.everywhere import search_everywhere
from jaxbounds.falsification.evidence import ailments, near_control
from jaxbounds.falsification.examples import NONE, Examples, recall
from jaxbounds.falsification.explore import Searched, draw
from jaxbounds.falsification.extrapolation import (
    confirm_extrapolated,
    extrapolate,
    without_rounding,
)
from jaxbounds.falsification.fitness import repeats, unfit
from jaxbounds.falsification.form_judging import FormJudge
from jaxbounds.falsification.measure import float64_on_cpu
from jaxbounds.falsification.programs import Programs
from jaxbounds.falsification.reach import reach
from jaxbounds.falsification.rival_limits import without_rivals
from jaxbounds.falsification.scales import (
    second_look,
)
from jaxbounds.falsification.second_opinion import (
    Asked,
    no_referee,
    remembering,
)
from jaxbounds.falsification.shared_entries import with_shared_entries
from jaxbounds.falsification.thin_hypotheses import thin_hypotheses
from jaxbounds.falsification.trace_watch import forget

OUT_OF_TIME = "the time limit ended the run"


class Findings(NamedTuple):
    """The findings about all instances of a statement.

    Attributes:
        columns: the measurements of each version of the claim, then those of a false variant.
        decisions: the decision on each version, and the ratio of its stored counterexample or None.
        controls: for each version, the decision about its deliberately false variant.
        left_out: a dictionary from each reason of rejection to the number of rejected instances.
        near: for each version, whether the rules rejected a slightly false variant.
        along: for each version, describes a sequence of instances on which lhs / rhs approaches one
            without reaching it, or "".
        sharp: for each version, whether both sides are equal at some instance.
        steep: for each version, whether all its violations come from the rounding of small sides.
        late: whether the time limit ended the draws or searches.
    """

    bench: Bench
    pool: Pool
    columns: list[Column]
    decisions: list[tuple[Decision, float | None]]
    controls: list[Decision]
    left_out: dict[str, int]
    searched: Searched
    near: list[bool]
    along: tuple[str, ...] = ()
    sharp: tuple[bool, ...] = ()
    steep: tuple[bool, ...] = ()
    late: bool = False


def judge(
    statement: Statement,
    /,
    *,
    budget: Budget,
    seed: int,
    programs: Programs,
    examples: Examples = NONE,
    referee: Asked = no_referee,
    timeout: float | None = None,
) -> Findings:
    """Judge a statement by draws and searches, without shrinking or storing an instance.

    After `timeout` seconds, the draws and searches end; the function then decides on the
    measurements so far.

    Raises:
        OutOfTime: if the time limit ends the run before the first measurement, or before a
            decision.
    """
    referee = remembering(looking(referee))
    with float64_on_cpu():
        calls = calls_of(statement, budget)
        bench, pool = Bench(statement, budget.batch, programs, calls=calls), Pool()
        seen = _Seen(Searched(0, np.zeros(len(statement.forms) + 1, int), 0))
        late = False
        try:
            with limited(timeout):
                _explore(bench, pool, seen, budget=budget, seed=seed, examples=examples,
                         referee=referee)  # fmt: skip
        except OutOfTime:
            if not pool.measured:
                raise
            late = True
        grace = None if timeout is None else max(GRACE * timeout, LEAST_GRACE)
        with limited(grace):
            return _decided(statement, bench, pool, seen, referee, late=late)


@dataclass
class _Seen:
    """The results of the draws and searches so far.

    Attributes:
        left_out: a dictionary from each reason of rejection to the number of rejected instances.
        doubts: for some claim versions, the reason why the status can be no better than
            inconclusive.
    """

    searched: Searched
    left_out: dict[str, int] = field(default_factory=dict)
    doubts: dict[str, str] = field(default_factory=dict)


def _explore(
    bench: Bench,
    pool: Pool,
    seen: _Seen,
    *,
    budget: Budget,
    seed: int,
    examples: Examples,
    referee: Asked,
) -> None:
    seen.left_out = draw(bench, pool, budget, seed)
    recall(bench, pool, examples)
    seen.searched = search_everywhere(bench, pool, budget, seed)
    seen.doubts = confirm_extrapolated(bench, pool, seen.searched, referee)
    if budget.restarts:
        extrapolate(bench, pool, referee, seed)


def _decided(
    statement: Statement, bench: Bench, pool: Pool, seen: _Seen, referee: Asked, *, late: bool
) -> Findings:
    searched, left_out, doubts = seen.searched, seen.left_out, seen.doubts
    columns = second_look(bench, pool, with_shared_entries(bench, pool, pool.columns()))
    columns, more = without_rounding(bench, pool, columns, referee)
    doubts |= more
    if statement.kind == "expectation":
        ends = reach(bench, pool)
        columns = [column._replace(reach=end) for column, end in zip(columns, ends)]
    controls = controls_of(statement, columns)
    if statement.host and bench.watch.never:  # a cached judged function does not run again
        forget(*(function.__module__ for function in statement.judges))
        bench.one(pool.instance(0), Size(statement.sizes[pool.sizes[0]]))
    if statement.host:
        first, size = pool.instance(0), Size(statement.sizes[pool.sizes[0]])
        bench.watch.writes = changes_its_instance(statement, first, size)
        bench.watch.fixed = repeats(bench, pool, columns)
    thin = thin_hypotheses(statement, pool, columns[-1])
    reasons = [*ailments(statement, pool, columns, searched), *unfit(bench.watch), thin]
    ill = "; ".join(filter(None, reasons))
    near = [near_control(statement, column) for column in columns[:-1]]
    wrapped = as_coded(bench, pool, columns)
    judges: dict[int, FormJudge] = {}
    decided: dict[int, tuple[Decision, float | None]] = {}
    refuted = False  # whether a false twin fails, which shows that the code rejects a false claim
    forms = statement.forms
    for index in sorted(range(len(forms)), key=lambda i: not forms[i].is_twin):
        one = judges[index] = FormJudge(
            bench, pool, referee, index, columns[index], controls[index],
            rejected=controls[index].status in REJECTED or refuted, ill=ill,
            doubt=doubts.get(forms[index].name, ""), near=near[index], left_out=left_out,
            wrapped=wrapped[index],
        )  # fmt: skip
        decision, stored_ratio = one.judged()
        columns[index] = one.column
        if late and decision.status not in REJECTED:
            reason = f"{OUT_OF_TIME}; so far: {decision.status}, {decision.reason}"
            decision = Decision("inconclusive", decision.ratio, reason)
        refuted = refuted or (forms[index].is_twin and decision.status in REJECTED)
        decided[index] = decision, stored_ratio
    rivals = without_rivals(statement, columns, [decided[i][0] for i in range(len(forms))])
    decisions = [(decision, decided[i][1]) for i, decision in enumerate(rivals)]
    ordered = [judges[i] for i in range(len(forms))]
    along, sharp, steep = zip(*((one.along, one.sharp, one.steep) for one in ordered), strict=True)
    return Findings(bench, pool, columns, decisions, controls, left_out, searched, near,
                    along, sharp, steep, late)  # fmt: skip
