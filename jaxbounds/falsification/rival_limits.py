"""Compare two versions of a claim about a limit, since a sequence has at most one limit."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxbounds.claims.statements import Size, Statement
from jaxbounds.falsification.bench import Column
from jaxbounds.falsification.decide import Decision
from jaxbounds.falsification.limits import SAME_GAP

NEAR, NEAR_BY_POWER, SIZES = 0.1, 0.7, 3
"""The left side has reached a version's limit if their distance is small at the last two of at
least SIZES sizes. A small distance is at most the share NEAR of the gap between the two claimed
limits. If the distance falls like a power, the share at the last size is NEAR_BY_POWER. A larger
share refutes more versions, also a true version that the left side has not reached yet."""
STEADY = 0.02
"""The distance falls like a power if its last three local exponents differ by at most this share. A
larger share takes more distances for powers."""
CONSTANT = 1e-3
"""The gap between two claimed limits is constant if it changes by at most this share at the last
`SIZES` sizes. A larger share also compares right sides that may have a common limit."""
FALLS = 0.3
"""The distance to a version's limit falls between the last two sizes at least by the power FALLS of
the parameter. A larger power compares fewer versions."""
BETTER = 0.25
"""A version fits better than another if its local exponent drifts by at most this share of the
other's drift. A larger share leaves more versions undecided."""
TINY = 1e-300
"""The logarithm of a distance starts at this number, so that zero has a logarithm. A larger number
could hide distances."""


def without_rivals(
    statement: Statement, columns: Sequence[Column], decisions: Sequence[Decision], /
) -> list[Decision]:
    """Decide versions whose claimed limit stays apart from another version's limit.

    A version is inconsistent if the left side reaches the other limit. A consistent version becomes
    inconclusive if the other limit fits the left side better.

    Args:
        statement: a claim about a limit; other claims keep their decisions.
        columns: the measurements of each version of the claim.
        decisions: the decision about each version.
    """
    found = list(decisions)
    if statement.kind != "limit":
        return found
    for index, decision in enumerate(decisions):
        for other, rival in enumerate(statement.forms):
            if decision.status == "inconsistent" or decisions[other].status != "consistent":
                continue
            pairs = _pairs(statement, columns[index], columns[other]) if other != index else []
            apart = f"and the two right sides differ by {max([0.0, *(p.gap for p in pairs)]):.3g}"
            if any(pair.reached for pair in pairs):
                words = f"the left side comes near the right side of {rival.name!r}, {apart}"
                found[index] = Decision("inconsistent", decision.ratio, words)
                break
            if any(pair.better for pair in pairs) and decision.status == "consistent":
                words = (
                    f"{decision.reason}, but the right side of {rival.name!r} fits the left side "
                    f"better, {apart}. Try more sizes, closer to the limit"
                )
                found[index] = Decision("inconclusive", decision.ratio, words)
    return found


class _Pair(NamedTuple):
    """Two claimed limits of the same numbers, whose gap is constant at large sizes.

    Attributes:
        gap: the difference of the two right sides; 0 if it is not constant.
        reached: whether the left side has reached the other version's right side.
        better: whether the distance to the other right side falls much more like a power.
    """

    gap: float = 0.0
    reached: bool = False
    better: bool = False


def _pairs(statement: Statement, column: Column, other: Column) -> list[_Pair]:
    """Compare two versions of the claim at each group of sizes that differ in the parameter."""
    (axis, end), *_ = statement.towards.items()
    groups: dict[tuple, list[tuple[float, ...]]] = {}
    ours, theirs = column.measured, other.measured
    plain = [np.abs(m.value - np.abs(m.lhs - m.rhs)) <= SAME_GAP * m.value for m in (ours, theirs)]
    for index, size in enumerate(map(Size, statement.sizes)):
        rows = (column.sizes == index) & ours.counted & theirs.counted
        if not rows.any() or not np.all((plain[0] & plain[1] & (ours.lhs == theirs.lhs))[rows]):
            return []
        apart = np.abs(ours.rhs - theirs.rhs)[rows]
        x = float(np.log(size[axis])) * (1 if end else -1)
        rest = tuple((name, value) for name, value in size.items() if name != axis)
        distances = (float(np.max(m.value[rows])) for m in (ours, theirs))
        row = x, float(np.min(apart)), float(np.max(apart)), *distances
        groups.setdefault(rest, []).append(row)
    return [_compared(*np.array(sorted(rows)).T) for rows in groups.values()]


def _compared(
    x: np.ndarray, least: np.ndarray, most: np.ndarray, own: np.ndarray, rival: np.ndarray
) -> _Pair:
    gap = float(least[-1])
    if len(x) < SIZES or not gap > 0 or np.max(most[-SIZES:]) > (1 + CONSTANT) * gap:
        return _Pair()
    if np.min(least[-SIZES:]) < (1 - CONSTANT) * gap:
        return _Pair()
    slopes = [np.diff(np.log(np.maximum(y, TINY)))[-2:] / np.diff(x)[-2:] for y in (own, rival)]
    drifts = [abs(slope[-1] - slope[-2]) / max(abs(slope[-1]), TINY) for slope in slopes]
    falls = rival[-1] <= TINY or slopes[1][-1] <= -FALLS
    powers = (np.diff(np.log(np.maximum(rival, TINY))) / np.diff(x))[-3:]
    steady = len(powers) == 3 and np.ptp(powers) <= STEADY * abs(powers[-1])
    near = bool(np.all(rival[-2:] <= NEAR * gap)) or (steady and rival[-1] <= NEAR_BY_POWER * gap)
    return _Pair(gap, bool(near and falls), drifts[1] <= BETTER * drifts[0])
