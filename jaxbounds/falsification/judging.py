"""The judgement of a statement: draw instances, search, measure, and decide.

The engine shrinks and stores instances; this module does not.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbounds.claims.statements import Budget, Form, Size, Statement
from jaxbounds.claims.statements.form import REJECTED
from jaxbounds.falsification.approached import approached
from jaxbounds.falsification.as_coded import as_coded, without_wrapped
from jaxbounds.falsification.bench import Bench, Column, Pool, calls_of, counterexample_of
from jaxbounds.falsification.cancellation import is_noise, largest_entry
from jaxbounds.falsification.controls import controls_of
from jaxbounds.falsification.deadline import GRACE, LEAST_GRACE, OutOfTime, limited, looking
from jaxbounds.falsification.decide import (
    NAME_EQUALITY,
    ON_AVERAGE,
    UNNAMED,
    Decision,
    decide,
    violation,
)
from jaxbounds.falsification.evaluation import Reals, changes_its_instance
from jaxbounds.falsification.evidence import ailments, near_control
from jaxbounds.falsification.examples import NONE, Examples, recall
from jaxbounds.falsification.explore import Searched, draw, search
from jaxbounds.falsification.extrapolation import (
    confirm_extrapolated,
    extrapolate,
    without_rounding,
)
from jaxbounds.falsification.found_equality import cleared, with_equality
from jaxbounds.falsification.measure import Measured, float64_on_cpu
from jaxbounds.falsification.programs import Programs
from jaxbounds.falsification.reach import reach
from jaxbounds.falsification.scales import (
    look_at_large_violations,
    measured_again,
    second_look,
)
from jaxbounds.falsification.second_opinion import (
    Asked,
    clears_at_the_set,
    is_coarse,
    no_referee,
    remembering,
    stands,
)
from jaxbounds.falsification.small_sides import are_rounding
from jaxbounds.falsification.snapped import look_at_readable_points, look_at_zeros
from jaxbounds.falsification.special import look_at_special_points
from jaxbounds.falsification.tolerated import hidden_violation, strictly
from jaxbounds.falsification.trace_watch import TraceWatch, forget
from jaxbounds.falsification.undefined import where_undefined
from jaxbounds.programs.traces import APPROXIMATE

LESS = 8
"""If the largest violation may be rounding, the engine measures at most this many smaller
violations again. A larger number takes longer.
"""
STORED = 1e-6
"""A counterexample's measured ratio agrees with its recorded ratio if their relative difference is
at most this. A larger value overlooks larger changes of a counterexample's ratio.
"""


CHANGES = (
    "evaluate returns different values when it is called again on one instance; it may draw "
    "random numbers or change a Python state. Try to draw all random numbers in the sampler"
)
OUT_OF_TIME = "the time limit ended the run"
SLOW = 1.0
"""If a measurement takes more than this many seconds, the check of repeatability measures the
instance again once instead of twice. A larger value notices more functions that change at every
other call, and takes longer.
"""
ASKED = 2
"""For one form (version of the claim), a function of this module asks the referee (ball arithmetic)
about at most this many instances. Each decision takes seconds, so a larger number takes longer.
"""
FAR = 8
"""The referee (ball arithmetic) decides at most this many instances with overflowing sides. Each
decision takes seconds, so a larger number takes longer."""


def _repeats(bench: Bench, pool: Pool, columns: list[Column]) -> bool:
    """Return whether repeated measurements of the first and the worst instances agree.

    Two measurements agree if their error bars overlap, or if neither measurement counts. An
    instance that takes more than `SLOW` seconds is measured again once, any other instance twice.
    """
    rows = [(0, i) for i in range(len(columns))]
    every = np.arange(len(columns[0].sizes))
    rows += [(column.worst(every), i) for i, column in enumerate(columns)]
    for row in dict.fromkeys(row for row, _ in rows):
        instance, size, _ = _at_row(bench, pool, columns[0], row)
        first = {
            name: np.array([getattr(column.measured, name)[row] for column in columns])
            for name in ("value", "low", "high", "counted")
        }
        for _ in range(2):
            began = time.perf_counter()
            again = bench.one(instance, size)
            is_slow = time.perf_counter() - began > SLOW
            equal = np.isclose(again.value, first["value"], rtol=1e-9, atol=0, equal_nan=True)
            overlap = (first["low"] <= again.high) & (again.low <= first["high"])
            silent = ~first["counted"] & ~again.counted
            if not np.all(equal | (overlap & np.isfinite(first["low"])) | silent):
                return False
            if is_slow:
                break
    return True


def _beyond_floats(bench: Bench, pool: Pool, column: Column, form: Form, referee: Asked) -> Column:
    """Let ball arithmetic decide instances whose sides overflow, if floats give NaN or a violation.

    A violation with two infinite sides counts if the referee confirms it. If the referee finds the
    claim true at every instance with an overflow, these instances do not count. The referee decides
    at most `FAR` instances. If more than `FAR` instances overflow, all of these instances count,
    and the claim cannot hold.
    """
    m, statement = column.measured, bench.statement
    far = np.isinf(m.lhs) | np.isinf(m.rhs)
    with np.errstate(all="ignore"):
        lost = m.counted & np.isnan(m.value) & np.isinf(m.lhs) & np.isinf(m.rhs)
        above = violation(statement, m) > 0
    if not np.any(lost) and not np.any(above & far):
        return column
    rows = np.flatnonzero(lost | (above & far))
    clear = len(rows) <= FAR
    for row in rows[np.unique(np.linspace(0, len(rows) - 1, FAR).astype(int))]:
        instance, size, _ = _at_row(bench, pool, column, int(row))
        said = referee(statement, form, instance, size)
        clear = clear and said.is_true
        if said.word.startswith("disproved") and not np.any(above):
            fields = {name: np.array(getattr(m, name)) for name in ("value", "low", "high")}
            for field in fields.values():
                field[row] = np.inf
            return column._replace(measured=m._replace(**fields))
        if not clear and (said.word == "absent" or np.any(above)):
            return column
    left = m.counted & ~lost & ~(above & far)
    return column._replace(measured=m._replace(counted=left)) if clear and left.any() else column


def _with_stored(
    bench: Bench, form: Form, index: int, decision: Decision, referee: Asked = no_referee
) -> tuple[Decision, float | None]:
    """Combine a decision with the stored counterexample.

    The counterexample's measured ratio must equal its recorded ratio.
    """
    stored = form.counterexample
    if stored is None:
        return decision, None
    instance, size = counterexample_of(bench.statement, form)
    m = measured_again(bench, instance, size, index)
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


class Findings(NamedTuple):
    """The findings about all instances of a statement.

    Attributes:
        bench: the bench, an object that measures instances.
        pool: all measured instances.
        columns: the measurements of each form (version of the claim) as a `Column`, then those of
            the control (a false variant).
        decisions: the decision on each form, and the ratio of its stored counterexample or None.
        controls: the decision on the control of each form.
        left_out: a dictionary from each reason of rejection to the number of rejected instances.
        searched: the results of the searches.
        near: for each form, whether the rules rejected the near-control (a slightly wrong variant).
        along: for each form, a sentence about a sequence of instances on which the ratio approaches
            one without reaching one; else empty.
        sharp: whether each form has an equality case (instance with equal sides), named or found.
        steep: for each form, whether its violations come only from the rounding of small sides.
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


def unfit(watch: TraceWatch, /) -> Iterator[str]:
    """Yield the reasons why the measured program may differ from the program in the source."""
    if watch.narrow:
        more = f" and {len(watch.narrow) - 1} more" if len(watch.narrow) > 1 else ""
        yield (
            f"the engine measures in float64, but evaluate rounds in {watch.narrow[0]}{more}: "
            f"{_cure(watch)}"
        )
    if watch.fixed is False:
        yield CHANGES
    if watch.writes:
        yield (
            "evaluate changes its instance in place. Try x = np.array(x) before the first change"
        )
    if watch.never and not watch.blind:
        yield f"the field judges names {', '.join(watch.never)}, which evaluate never calls"


def _cure(watch: TraceWatch) -> str:
    """Return advice against a narrow type; the advice names a constant that causes the type."""
    if not watch.constants:
        return "try to leave out astype and dtype= there"
    return (
        f"a constant is {watch.constants[0]}, as jnp.array makes it while a file is loaded. Try "
        "np.array for the constant, and jnp.asarray of it inside the function"
    )


def _coarse(watch: TraceWatch) -> str:
    """If the program rounds coarsely, return the reason why a small violation does not count."""
    if watch.narrow:
        return next(unfit(watch))
    named = " and ".join(f"{name} (about {APPROXIMATE[name]:g})" for name in watch.approximate)
    return (
        f"the violation may be the error of JAX's {named}. Try a function that is accurate to "
        "float64, such as scipy.linalg's with host=True"
    )


def _looked_again(
    bench: Bench, pool: Pool, column: Column, form: Form, decision: Decision, referee: Asked
) -> tuple[Decision, Column]:
    """Decide about a violation that rounding may explain; only ball arithmetic can confirm it.

    If ball arithmetic does not confirm the largest violation, the function asks ball arithmetic
    about smaller violations. If ball arithmetic confirms a smaller violation, the larger violations
    do not count.
    """
    statement, violating = bench.statement, violation(bench.statement, column.measured)
    index = [f.name for f in statement.forms].index(form.name)
    if np.any(violating > 0):
        found = _at_row(bench, pool, column, int(np.argmax(violating)))
    else:
        instance, size = counterexample_of(statement, form)
        found = instance, size, float(bench.one(instance, size).value[index])
    coarse = is_coarse(bench, index, found)
    doubt = _coarse(bench.watch) if coarse else stands(bench, form, found, referee)
    if not doubt:
        return decision, column
    if np.any(violating > 0) and not coarse:  # rounding of the terms may explain all violations
        looked = look_at_large_violations(bench, pool, column, index)
        again = decide(statement, form, looked)
        asked = _asked(bench, pool, looked, form, referee)
        if again.status in ("holds", "vacuous") and not asked.doubt and asked.row is None:
            return again, looked
    for row in _smaller(violating):
        smaller = _at_row(bench, pool, column, row)
        if not is_coarse(bench, index, smaller) and not stands(bench, form, smaller, referee):
            measured = column.measured
            counted = measured.counted & ~(violating > violating[row])
            column = column._replace(measured=measured._replace(counted=counted))
            return decide(statement, form, column), column
    return Decision("inconclusive", decision.ratio, doubt), column


class _Asked(NamedTuple):
    """The answers of the referee (ball arithmetic) about violations that rounding may explain.

    Attributes:
        row: the row of a violation that the referee confirms, or None.
        doubt: the reason why the referee cannot exclude a violation; empty if the referee excludes
            all violations.
    """

    row: int | None
    doubt: str


def _asked(
    bench: Bench, pool: Pool, column: Column, form: Form, referee: Asked, rows: Any = None
) -> _Asked:
    """Ask the referee (ball arithmetic) about the largest violations that may be rounding.

    The referee decides nothing about promised entries (`there_is`), so the function skips claims
    with these entries.
    """
    amount, doubt = column.rounding, ""
    if bench.statement.there_is is not None:
        return _Asked(None, "")
    if rows is None:
        if amount is None or not np.any(amount > 0):
            return _Asked(None, "")
        rows = np.argsort(-amount, kind="stable")[: int(np.sum(amount > 0))]
    for row in rows[:ASKED]:
        instance, size, _ = found = _at_row(bench, pool, column, int(row))
        said = referee(bench.statement, form, instance, size)
        if said.word.startswith("disproved") and not stands(bench, form, found, referee):
            return _Asked(int(row), "")
        if not said.clears and not clears_at_the_set(
            bench.statement, form, instance, size, referee
        ):
            doubt = doubt or (
                "floats violate the form at an instance, perhaps only by rounding of its terms, "
                f"and ball arithmetic does not decide: {said.reason}"
            )
    return _Asked(None, doubt)


def _confirmed(pool: Pool, column: Column, index: int, row: int) -> Column:
    """Restore the first measurement of a violation that the referee (ball arithmetic) confirms."""
    own = Measured(*(field[row] for field in pool.columns()[index].measured))
    fields = [np.array(field) for field in column.measured]
    for measured, value in zip(fields, own):
        measured[row] = value
    return column._replace(measured=Measured(*fields))


def _beside_zero(
    bench: Bench, pool: Pool, column: Column, form: Form, decision: Decision, referee: Asked
) -> Decision:
    """Let a bound by zero hold if rounding explains the difference of its other side from zero.

    A bound by zero needs no named instance of equality, if ball arithmetic does not refute the
    worst instances. A claim with promised entries (`there_is`) keeps its decision, because ball
    arithmetic decides nothing about the best entries. A bound with promised entries that is false
    by less than rounding could otherwise hold.
    """
    m, statement = column.measured, bench.statement
    zero = (m.rhs == 0) | (m.lhs == 0)
    if decision.reason != UNNAMED or not np.all(zero[m.counted]) or statement.there_is is not None:
        return decision
    words = "one side is zero, and the other differs from it by no more than its terms round"
    value = np.where(m.counted, m.value, -np.inf)
    order = np.argsort(-value, kind="stable")
    for row in order[:ASKED]:
        instance, size, _ = _at_row(bench, pool, column, int(row))
        if referee(statement, form, instance, size).word.startswith("disproved"):
            return decision
    with np.errstate(invalid="ignore"):
        above = [row for row in order if m.counted[row] and m.lhs[row] > m.rhs[row]]
    if doubt := _asked(bench, pool, column, form, referee, above).doubt:
        return Decision("inconclusive", decision.ratio, f"{doubt}{NAME_EQUALITY}")
    return Decision("holds", decision.ratio, words)


TRY_TWIN = (
    "Try false=[...] in jb.claim, or a control in jb.Statement, with a right side that is wrong"
)
"""The advice if the library accepted its own control (a deliberately false variant)."""


def _at_row(bench: Bench, pool: Pool, column: Column, row: int) -> tuple[Any, Size, float]:
    size = Size(bench.statement.sizes[column.sizes[row]])
    return pool.instance(row), size, float(column.measured.value[row])


def _smaller(violating: Reals) -> list[int]:
    """Return the rows of up to `LESS` violations below the largest, the larger ones first."""
    rows = np.argsort(-np.asarray(violating), kind="stable")[: int(np.sum(violating > 0))]
    ranks = np.unique(np.linspace(0, max(len(rows) - 1, 0), LESS + 1).astype(int))
    return [int(row) for row in rows[ranks[1:]]]


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
    """Draw, search, measure and decide, without shrinking or storing an instance.

    Args:
        statement: the statement to judge.
        budget: the budget of draws and searches.
        seed: the seed of all draws.
        programs: the compiler, which may keep traced programs.
        examples: the examples of earlier runs.
        referee: the referee (ball arithmetic), which decides about violations of the size of
            rounding.
        timeout: the seconds after which draws and searches end; the function then decides on the
            measurements so far.

    Raises:
        OutOfTime: if the limit ends before the first measurement, or before a decision.
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
        searched: the worst instances that the searches found, and their counts of steps.
        left_out: a dictionary from each reason of rejection to the number of rejected instances.
        doubts: for each form (version of the claim) in doubt, the reason why its status can be no
            better than inconclusive.
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
    """Draw and search; at the time limit, `pool` and `seen` store the results so far."""
    seen.left_out = draw(bench, pool, budget, seed)
    recall(bench, pool, examples)
    if budget.restarts:
        look_at_special_points(bench, pool, seed)
    seen.searched = search(bench, pool, budget, seed)
    if budget.restarts:
        look_at_readable_points(bench, pool)
        look_at_zeros(bench, pool)
    seen.doubts = confirm_extrapolated(bench, pool, seen.searched, referee)
    if budget.restarts:
        extrapolate(bench, pool, referee, seed)


def _decided(
    statement: Statement, bench: Bench, pool: Pool, seen: _Seen, referee: Asked, *, late: bool
) -> Findings:
    """Decide the status of each form from the measurements so far."""
    searched, left_out, doubts = seen.searched, seen.left_out, seen.doubts
    columns = second_look(bench, pool, pool.columns())
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
        bench.watch.fixed = _repeats(bench, pool, columns)
    ill = "; ".join([*ailments(statement, pool, columns, searched), *unfit(bench.watch)])
    near = [near_control(statement, column) for column in columns[:-1]]
    wrapped = as_coded(bench, pool, columns)
    along, sharp = [""] * len(statement.forms), [bool(f.equality) for f in statement.forms]
    steep = [False] * len(statement.forms)
    decided: dict[int, tuple[Decision, float | None]] = {}
    refuted = False  # whether a false twin fails, which shows that the code rejects a false claim
    forms = statement.forms
    for index in sorted(range(len(forms)), key=lambda i: not forms[i].is_twin):
        form, column, control = forms[index], columns[index], controls[index]
        if statement.kind not in ON_AVERAGE:
            column = columns[index] = _beyond_floats(bench, pool, column, form, referee)
        decision = decide(statement, form, column)
        if decision.status == "holds" or decision.reason == UNNAMED:
            asked = _asked(bench, pool, column, form, referee)
            if asked.row is not None:
                column = columns[index] = _confirmed(pool, column, index, asked.row)
                decision = decide(statement, form, column)
            elif asked.doubt and form.name not in doubts:
                doubts[form.name] = asked.doubt
        if decision.status == "vacuous" and left_out:
            missed = ", ".join(f"{count} missed {name!r}" for name, count in left_out.items())
            decision = decision._replace(reason=f"{decision.reason}: {missed}")
        if decision.status == "inconclusive" and statement.kind not in ON_AVERAGE:
            where = where_undefined(statement, pool, column)
            decision = decision._replace(reason=where or decision.reason)
        decision, column = without_wrapped(statement, index, column, decision, wrapped[index])
        columns[index] = column
        decision, stored_ratio = _with_stored(bench, form, index, decision, referee)
        if decision.status == "fails" and statement.host and not bench.watch.fixed:
            decision = Decision("inconclusive", decision.ratio, CHANGES)
        if decision.status == "fails" and statement.kind not in ON_AVERAGE:
            decision, column = _looked_again(bench, pool, column, form, decision, referee)
            columns[index] = column
            if decision.status == "inconclusive":
                steep[index] = are_rounding(bench, pool, column, form, referee)
        decision = _beside_zero(bench, pool, column, form, decision, referee)
        unnamed = decision.reason == UNNAMED
        if unnamed or (form.equality and decision.status == "holds"):
            along[index] = approached(bench, pool, column, index, form, referee)
        if unnamed and along[index]:
            decision = Decision("holds", decision.ratio, along[index])
        elif along[index]:
            words = f"{along[index]}; named: {form.equality}"
            decision = decision._replace(reason=words)
        elif unnamed:
            said = cleared(bench, pool, column, index, form, referee)
            sharp[index] = said.attained
            if said.reason:
                decision = Decision("holds", decision.ratio, said.reason)
        rejected = control.status in REJECTED or refuted
        if decision.status in ("holds", "consistent") and not rejected:
            reason = (
                f"the control, a deliberately false variant, was not rejected ({control.status}: "
                f"{control.reason}). {TRY_TWIN}"
            )
            decision = Decision("inconclusive", decision.ratio, reason)
        holds = decision.status == "holds" or decision.reason == UNNAMED
        if holds and statement.kind not in ON_AVERAGE:
            hidden = hidden_violation(statement, pool, column, form, referee)
            decision = Decision("inconclusive", decision.ratio, hidden) if hidden else decision
        if statement.strict and decision.status == "holds" and not along[index]:
            decision = strictly(pool, column, decision)
        if decision.status in ("holds", "consistent"):
            named = form.equality and statement.kind not in ON_AVERAGE
            missed = f"no instance came near the named equality case: {form.equality}"
            missed = missed if named and not near[index] else ""
            if reason := ill or doubts.get(form.name, "") or missed:
                decision = Decision("inconclusive", decision.ratio, reason)
        if decision.reason == UNNAMED:
            decision = decision._replace(reason=with_equality(pool, column))
        if late and decision.status not in REJECTED:
            reason = f"{OUT_OF_TIME}; so far: {decision.status}, {decision.reason}"
            decision = Decision("inconclusive", decision.ratio, reason)
        refuted = refuted or (form.is_twin and decision.status in REJECTED)
        decided[index] = decision, stored_ratio
    decisions = [decided[index] for index in range(len(decided))]
    return Findings(bench, pool, columns, decisions, controls, left_out, searched, near,
                    tuple(along), tuple(sharp), tuple(steep), late)  # fmt: skip
