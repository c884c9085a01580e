"""What a fit says of a rate: the exponent, and whether lower-order terms explain it."""

from typing import NamedTuple

import numpy as np

from jaxbounds.claims.statements import Form, Sense, Status
from jaxbounds.falsification.evaluation import Reals
from jaxbounds.falsification.intervals import fitted_exponent
from jaxbounds.falsification.measure import Measured

SETTLES = 0.6
"""Per doubling of the right side: a change of log(lhs / rhs) that falls by this factor or more ends
(lower-order terms); a logarithm's falls more and more slowly."""
SLOWLY = 0.9
"""So do changes that fall by this factor, and not more slowly from step to step: of a right side
n^2 a term of order n leaves 0.71."""
STAYS = 0.75
"""A last local exponent whose distance from one is this share of the fitted one's tends to nothing
else."""


class Rate(NamedTuple):
    """A status, the fitted exponent, and why."""

    status: Status
    exponent: float
    reason: str


def by_size(m: Measured, sizes: np.ndarray, /) -> tuple[Reals, Reals]:
    """Geometric means of log rhs and log(lhs / rhs) at each size, in the order of the sizes."""
    means = [
        (np.mean(np.log(m.rhs[rows])), np.mean(np.log(m.lhs[rows]) - np.log(m.rhs[rows])))
        for rows in (sizes == size for size in np.unique(sizes))
    ]
    x, q = np.array(means).T
    # Sizes of one right side tell nothing.
    moved = np.append(True, np.abs(np.diff(x)) > 1e-9)
    return x[moved], q[moved]


def _decays(x: Reals, q: Reals) -> bool:
    """Whether log(lhs / rhs) comes to an end, as lower-order terms do."""
    steps, change = np.abs(np.diff(x)), np.abs(np.diff(q))
    slopes = change / steps
    if len(slopes) < 3 or not np.all(slopes > 0):
        return False
    # Over a step of log 2 in the right side; between the middles of the steps.
    middles = np.abs(np.diff((x[1:] + x[:-1]) / 2)) / np.log(2)
    factors = (slopes[1:] / slopes[:-1]) ** (1 / middles)
    settling = np.all(factors[-2:] <= SETTLES)
    slowly = len(factors) > 2 and np.all(factors[-3:] <= SLOWLY)
    # To a thousandth, as equal factors are equal up to rounding.
    return bool(settling or (slowly and factors[-1] <= 1.001 * np.min(factors[-3:-1])))


ASIDE = 0.01
"""How far from one the exponents of three steps must be to speak against a fit that agrees."""


def _settled_aside(x: Reals, q: Reals, sense: Sense, /) -> float:
    """By how much the exponents of the last steps miss what is claimed, if they come no nearer.

    A fit over all sizes may agree by what small ones add to it.
    """
    if len(x) < 4:
        return 0.0
    last = (np.diff(q) / np.diff(x))[-3:]
    wrong = {"at most": last > ASIDE, "at least": last < -ASIDE, "exactly": np.abs(last) > ASIDE}
    one_side = np.all(last > 0) or np.all(last < 0)
    farther = np.all(np.diff(np.abs(last)) >= -1e-4)
    return float(last[-1]) if np.all(wrong[sense]) and one_side and farther else 0.0


def judged_rate(form: Form | None, sense: Sense, m: Measured, sizes: np.ndarray, /) -> Rate:
    """Whether the exponent of lhs against rhs agrees with what is claimed.

    Args:
        form: whose band counts.
        sense: what is claimed of the exponent.
        m: what was measured, with a stated error that leaves the sides positive.
        sizes: the index of each instance's size, the asymptotic end last.
    """
    try:
        slope, low, high = fitted_exponent(m.rhs, m.lhs)
    except ValueError as problem:
        wrong = int(np.sum(~(m.lhs > 0) | ~(m.rhs > 0)))
        reason = f"{problem} ({wrong} of {len(m.lhs)} instances have a side that is not positive)"
        return Rate("inconclusive", float("nan"), reason)
    # An exact power has an interval of no length, which rounding may put beside one.
    most, least = low <= 1 + 1e-9, high >= 1 - 1e-9
    agrees = {"at most": most, "at least": least, "exactly": most and least}[sense]
    text = f"exponent {slope:.3f} (99% interval {low:.3f} to {high:.3f}), claimed {sense} 1"
    band = form.exponent if form else None
    if band and not band[0] <= slope <= band[1]:
        expected = "expected {:g} to {:g}: is the formula what was meant?".format(*band)
        return Rate("inconclusive", slope, f"{text}, {expected}")
    x, q = by_size(m, sizes)
    if agrees and (aside := _settled_aside(x, q, sense)):
        reason = f"{text}, but {1 + aside:.3f} at the largest sizes, and no nearer to one"
        return Rate("inconclusive", slope, reason)
    if agrees:
        return Rate("consistent", slope, text)
    if _decays(x, q):
        words = "lower-order terms: the ratio of the sides settles as the right side moves on"
        return Rate("consistent", slope, f"{text}; {words}")
    # Of a single size the fit is all there is; right sides that hardly differ show no step.
    alone = slope - 1 if len(np.unique(sizes)) == 1 else 0.0
    last = float((q[-1] - q[-2]) / (x[-1] - x[-2])) if len(x) > 1 else alone
    if last * (slope - 1) < STAYS * (slope - 1) ** 2:
        reason = f"{text}, but {1 + last:.3f} at the largest sizes: larger ones would tell"
        return Rate("inconclusive", slope, reason)
    return Rate("inconsistent", slope, text)
