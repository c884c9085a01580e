"""Judge rates (claims on growth up to a constant) by a fitted exponent and lower-order terms."""

from typing import NamedTuple

import numpy as np

from jaxbounds.claims.statements import Form, Sense, Status
from jaxbounds.falsification.evaluation import Reals
from jaxbounds.falsification.intervals import fitted_exponent
from jaxbounds.falsification.measure import Measured
from jaxbounds.ground.exceptions import Refused

SETTLES = 0.6
"""If each doubling of rhs shrinks the changes of log(lhs / rhs) by this factor, lower-order terms
explain the changes. A larger factor explains more changes."""
SLOWLY = 0.9
"""SLOWLY replaces SETTLES if the factors by which changes of log(lhs / rhs) shrink do not rise. A
larger value explains more changes by lower-order terms."""
STAYS = 0.75
"""If the last local exponent is STAYS times as far from one as the fitted exponent, the exponents
do not tend to one. A larger STAYS calls fewer rates inconsistent."""


class Rate(NamedTuple):
    """The decision about a rate (exponent of lhs against rhs): status, fitted exponent, reason."""

    status: Status
    exponent: float
    reason: str


def by_size(m: Measured, sizes: np.ndarray, /) -> tuple[Reals, Reals]:
    """Return the means of log rhs and of log(lhs / rhs) at each size, in order of sizes."""
    means = [
        (np.mean(np.log(m.rhs[rows])), np.mean(np.log(m.lhs[rows]) - np.log(m.rhs[rows])))
        for rows in (sizes == size for size in np.unique(sizes))
    ]
    x, q = np.array(means).T
    # Sizes with equal right sides do not determine the exponent.
    moved = np.append(True, np.abs(np.diff(x)) > 1e-9)
    return x[moved], q[moved]


def _decays(x: Reals, q: Reals) -> bool:
    """Return whether log(lhs / rhs) seems to converge, so that both sides have equal exponents."""
    steps, change = np.abs(np.diff(x)), np.abs(np.diff(q))
    slopes = change / steps
    if len(slopes) < 3 or not np.all(slopes > 0):
        return False
    # The factor for a step of log 2 in the right side, between the middles of steps.
    middles = np.abs(np.diff((x[1:] + x[:-1]) / 2)) / np.log(2)
    factors = (slopes[1:] / slopes[:-1]) ** (1 / middles)
    settling = np.all(factors[-2:] <= SETTLES)
    slowly = len(factors) > 2 and np.all(factors[-3:] <= SLOWLY)
    # Factors that agree to a thousandth count as equal.
    return bool(settling or (slowly and factors[-1] <= 1.001 * np.min(factors[-3:-1])))


ASIDE = 0.01
"""The engine rejects a fit if the exponents between the last four sizes differ from one by more
than this. A larger value rejects fewer fits."""


def _settled_aside(x: Reals, q: Reals, sense: Sense, /) -> float:
    """Return how far the last exponent is from one; 0 if the exponents approach the claim.

    A fitted exponent may agree with the claim only because the small sizes agree.
    """
    if len(x) < 4:
        return 0.0
    last = (np.diff(q) / np.diff(x))[-3:]
    wrong = {"at most": last > ASIDE, "at least": last < -ASIDE, "exactly": np.abs(last) > ASIDE}
    one_side = np.all(last > 0) or np.all(last < 0)
    farther = np.all(np.diff(np.abs(last)) >= -1e-4)
    return float(last[-1]) if np.all(wrong[sense]) and one_side and farther else 0.0


def judged_rate(form: Form | None, sense: Sense, m: Measured, sizes: np.ndarray, /) -> Rate:
    """Decide whether the exponent of lhs against rhs agrees with the claim.

    Args:
        form: the version of the claim, which may give a range of exponents.
        sense: the claim about the exponent: "at most", "at least" or "exactly" one.
        m: the measurements; both sides must be positive, and larger than their stated error.
        sizes: for each instance, the index of its size; the sides grow from the first size to the
            last.
    """
    try:
        slope, low, high = fitted_exponent(m.rhs, m.lhs)
    except Refused as problem:
        wrong = int(np.sum(~(m.lhs > 0) | ~(m.rhs > 0)))
        reason = f"{problem} ({wrong} of {len(m.lhs)} instances have a side that is not positive)"
        return Rate("inconclusive", float("nan"), reason)
    # The interval of an exact power has length zero, and rounding may move it away from one.
    most, least = low <= 1 + 1e-9, high >= 1 - 1e-9
    agrees = {"at most": most, "at least": least, "exactly": most and least}[sense]
    text = f"the exponent is {slope:.3f} (99% interval {low:.3f} to {high:.3f}), claimed {sense} 1"
    band = form.exponent if form else None
    if band and not band[0] <= slope <= band[1]:
        outside = f"outside its band {band[0]:g} to {band[1]:g}"
        cure = "Try to correct the formula or the band"
        return Rate("inconclusive", slope, f"{text}, and {outside}. {cure}")
    x, q = by_size(m, sizes)
    if agrees and (aside := _settled_aside(x, q, sense)):
        at = f"at the largest sizes it is {1 + aside:.3f}"
        reason = f"{text}, but {at} and does not come nearer to one"
        return Rate("inconclusive", slope, reason)
    if agrees:
        return Rate("consistent", slope, text)
    if _decays(x, q):
        words = "lower-order terms explain the difference, because the ratio of the sides converges"
        return Rate("consistent", slope, f"{text}; {words}")
    # Right sides that hardly differ show no step, so the fit decides alone.
    alone = slope - 1 if len(np.unique(sizes)) == 1 else 0.0
    last = float((q[-1] - q[-2]) / (x[-1] - x[-2])) if len(x) > 1 else alone
    if last * (slope - 1) < STAYS * (slope - 1) ** 2:
        reason = f"{text}, but at the largest sizes it is {1 + last:.3f}. Try larger sizes"
        return Rate("inconclusive", slope, reason)
    return Rate("inconsistent", slope, text)
