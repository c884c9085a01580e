"""The least sample sizes at which the main theorems' bounds are below their trivial values."""

import functools
import math
from typing import NamedTuple

import numpy as np

from jaxbounds.claims.sets import Box
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size
from jaxbounds.seqlength.comparisons import Setting
from jaxbounds.seqlength.onset import Bound, onsets, smallest_samples
from jaxbounds.seqlength.statements import instances as draw


class _Found(NamedTuple):
    there: float
    before: float
    samples: float


@functools.lru_cache(maxsize=64)  # the searches of all forms start at equal instances
def _found(theorem: int, setting: Setting) -> tuple[_Found, _Found]:
    name, onset = list(onsets(setting, layers=2, words=3).items())[theorem]
    least = smallest_samples(setting, layers=2, words=3, theorems=(name,))[name]

    def found(bound: Bound, m: int | None) -> _Found:
        at = 1 if m is None else m
        before = max(1, at - 1 - at // 200)
        there, short = bound(at) / onset.trivial, bound(before) / onset.trivial
        return _Found(there, short, math.inf if m is None else m)

    return found(onset.printed, least[0]), found(onset.sharpened, least[1])


def _onset(instance: Instance, size: Size) -> Sides:
    B_QK, B_x = draw.numbers(instance, "B_QK", "B_x")
    printed, sharp = _found(size["theorem"], Setting(d=2, B_QK=B_QK, B_x=B_x))
    # Bounds are clipped at the trivial value and vacuous there: a clipped bound counts as above it.
    informative = lambda share: share if share < 1.0 else 2.0
    return Sides.pairs(
        {
            "derived": (informative(printed.there), 1.0),
            "derived, least": (1.0, printed.before),
            "sharpened": (informative(sharp.there), 1.0),
            "sharpened, least": (1.0, sharp.before),
            "sharpened, never later": (sharp.samples, printed.samples),
            "control": (1.0, sharp.there),
        }
    )


CLIPPED = "both sides are the trivial value (the bound is clipped)"

ONSET = draw.random_search_on_host(
    id="seqlength.onset",
    label="The smallest informative sample sizes",
    tex=r"m^* = \min \{ m : \mathrm{bound}(m) < \mathrm{trivial} \}",
    formula="each main theorem's bound is below its trivial value from m* samples on, not before",
    budget=Budget(samples=1, restarts=1, steps=3),
    over={"B_QK": Box(0.1, 10), "B_x": Box(0.25, 4)},
    # All norms are 1, as in the table, or one of the norms is 2.
    cases=lambda size: {"B_QK": np.array([1.0, 2.0, 1.0]), "B_x": np.array([1.0, 1.0, 2.0])},
    evaluate=_onset,
    judges=(onsets, smallest_samples),
    sizes=tuple({"theorem": i} for i in range(6)),
    assumptions="the theorems have the order of the table; all norms except B_QK and B_x are 1; d "
    "= k = 2, L = 2, K = 3; m* is found to 0.1%",
    forms=(
        Form(
            name="derived",
            note=(
                "At the sample size m* that `smallest_samples` returns, the printed bound (c = 12 "
                "in Dudley's integral) is below the trivial value, which no complexity exceeds."
            ),
            equality="just below it",
        ),
        Form(
            name="derived, least",
            note="For 0.5% fewer samples than m*, the printed bound is at least the trivial value, "
            "the largest possible complexity.",
            equality=CLIPPED,
        ),
        Form(
            name="sharpened",
            note="At the sample size m* that `smallest_samples` returns, the sharpened bound is "
            "below the trivial value, which no complexity exceeds.",
            equality="just below it",
        ),
        Form(
            name="sharpened, least",
            note="For 0.5% fewer samples than `smallest_samples` returns, the certified bound is "
            "at least the trivial value.",
            equality=CLIPPED,
        ),
        Form(
            name="sharpened, never later",
            note="The sharpened bound is below the trivial value wherever the printed bound is. "
            "This claim is false for B_x >= 8: Theorem 4.2's printed, false bound (erratum E10) is "
            "of order B_x^2, and the corrected bound is larger, of order B_x^6 (E9).",
        ),
    ),
    control="above the trivial value at m*",
    source="Theorems 4.1, 4.2 and 5.1, Corollaries D.0.2 and F.0.2",
)

STATEMENTS = (ONSET,)
