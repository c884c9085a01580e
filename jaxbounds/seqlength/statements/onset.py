"""From how many samples on the main theorems say anything."""

from collections.abc import Iterator

import numpy as np

from jaxbounds.seqlength.comparisons import Setting
from jaxbounds.seqlength.onset import Onset, onsets, smallest_samples
from jaxbounds.seqlength.statements import instances as draw
from jaxbounds.statements import Form, Instance, Sides, Size, Statement


def _there(found: Onset, samples: tuple[int | None, int | None]) -> Iterator[tuple[float, float]]:
    """Printed, then sharpened: the bound over the trivial value, at m* and at 0.5% less."""
    for bound, m in zip((found.printed, found.sharpened), samples):
        at = 1 if m is None else m
        before = max(1, at - 1 - at // 200)
        yield bound(at) / found.trivial, bound(before) / found.trivial


def _onset(instance: Instance, size: Size) -> Sides:
    (B_QK,) = draw.numbers(instance, "B_QK")
    setting = Setting(d=size["d"], B_QK=B_QK)
    found, least = onsets(setting, layers=2, words=3), smallest_samples(setting, layers=2, words=3)
    pairs = [list(_there(found[name], least[name])) for name in found]
    printed, sharp = (np.array([pair[i] for pair in pairs]) for i in (0, 1))
    samples = np.array([least[name] for name in found], float)
    return Sides.pairs(
        {
            "derived": (printed[:, 0].max(), 1.0),
            "derived, least": (1.0, printed[:, 1].min()),
            "sharpened": (sharp[:, 0].max(), 1.0),
            "sharpened, least": (1.0, sharp[:, 1].min()),
            "sharpened, never later": ((samples[:, 1] / samples[:, 0]).max(), 1.0),
            "control": (1.0, sharp[:, 0].min()),
        }
    )


ONSET = Statement(
    id="seqlength.onset",
    label="The smallest informative sample sizes",
    tex=r"m^* = \min \{ m : \mathrm{bound}(m) < \mathrm{trivial} \}",
    formula="each main theorem's bound is below its trivial value from m* samples on, not before",
    **draw.ON_HOST,
    cases=lambda size: {"B_QK": np.array([1.0])},
    evaluate=_onset,
    judges=(onsets, smallest_samples),
    enumerates="the one setting of the table",
    sizes=({"d": 2},),
    assumptions="all norms 1, d = k = 2, L = 2, K = 3; m* to 0.1%",
    forms=(
        Form(name="derived", note="the printed bounds, c = 12", equality="just below it"),
        Form(
            name="derived, least", note="at 0.5% fewer samples not", equality="clipped: the trivial"
        ),
        Form(name="sharpened", note="the certified ones", equality="just below it"),
        Form(
            name="sharpened, least",
            note="at 0.5% fewer samples not",
            equality="clipped: the trivial",
        ),
        Form(name="sharpened, never later", note="sharpened bounds are informative first"),
    ),
    control="above the trivial value at m*",
    source="Theorems 4.1, 4.2 and 5.1, Corollaries D.0.2 and F.0.2",
)

STATEMENTS = (ONSET,)
