"""Section 2: the all-layer margin, and what Lemma 2.4 concludes from it."""

from fractions import Fraction

from ..claims import checks
from ..intervals import exp, interval, log
from ..judge import Sides, assume
from ..witness import Witness


@checks(
    "smapprox.sec2.1.positive",
    "printed",
    ("whether rho(theta, x, y) > 0", "=", "whether F predicts y"),
    formula="F right at (x, y)  <=>  rho(theta, x, y) > 0",
    text="53d85f4cd583b643137a37feb8df59b4",
    size="keys",
    leaves={"values": "f keys"},
)
def positive_margin(w: Witness) -> Sides:
    """rho(theta, x, y) > 0 as 0 or 1, against whether F predicts y = 1, for tied keys.

    F = the mean value over the tied keys (hard-max attention, Section 4.1). A perturbation of the
    scores, however small, attends to any one key alone: where one of them has a value that is not
    positive, errors are arbitrarily near, and the infimum (2.1) is 0. Otherwise every mean that a
    perturbation of the scores can reach is at least the least value.
    """
    values = w["values"]
    output, worst = sum(values) / Fraction(len(values)), min(values)
    sure = {"two keys or more": len(values) >= 2, "F decides": output != 0}
    assume(sure | {"no value is 0": all(value != 0 for value in values)})
    return Sides(int(worst > 0), int(output > 0))


@checks(
    "smapprox.lemma2.4.epsilon",
    "printed",
    ("P(risk > epsilon)", "<=", "1/100"),
    formula=(
        "(2.3) with epsilon  =>  risk <= epsilon with probability 0.99 at n = C polylog "
        "(alpha^2 log p / gamma^2 + 1) / epsilon^2"
    ),
    text="bb95e3b408e46a414dc1df2b5ceb6d2a",
    size="n=4",
    leaves={"eta": "f", "constant": "f", "log_power": "f"},
)
def missed_difference(w: Witness) -> Sides:
    """P(risk > epsilon) at the n of Lemma 2.4, against 0.01, where epsilon = 1/2 - eta.

    Theta = {(1, 0), (-1, 0)}, so p = 2 and alpha = 1, and F = theta_1 has margin gamma = 1 where it
    is right. Of three points of mass 1/2 - eta, 2 eta, 1/2 - eta one target is 1 on the first two,
    the other on the first: the best theta of each has risk 1/2 - eta, so (2.3) holds, and the worse
    1/2 + eta > epsilon. A sample that misses the middle point does not tell the targets apart, so
    any rule errs for one of them: with probability (1 - 2 eta)^n / 2 at least, on average.
    n = C (alpha^2 log(p) / gamma^2 + 1) / epsilon^2 is used as a real number.
    """
    eta, constant = w["eta"], w["constant"]
    assume({"0 < eta < 1/2": 0 < eta < Fraction(1, 2), "C > 0": constant > 0})
    if w["log_power"] != 0:
        raise ValueError("the power 0 of the hidden logarithm is expected: which one is not said")
    epsilon = Fraction(1, 2) - eta
    n = interval(constant) * (log(2) + 1) / interval(epsilon) ** 2
    return Sides(exp(n * log(1 - 2 * eta)) / 2, Fraction(1, 100))
