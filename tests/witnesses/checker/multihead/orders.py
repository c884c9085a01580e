"""What Section 5.3 compares, on a logarithmic scale; Hoeffding's inequality as Fact 2 has it."""

from fractions import Fraction
from itertools import product
from typing import Any

from ..claims import checks
from ..intervals import ONE, between, exp, interval, least, log, sqrt
from ..judge import Sides, assume
from ..witness import Witness


@checks(
    "multihead.fact2",
    "printed",
    ("P(|mean of H signs| > 2 sqrt(log(1/delta) / (2 H)))", "<=", "delta"),
    formula="|mean_h X_h - mu| <= 2 B sqrt(log(1/delta) / (2 H)) with probability 1 - delta",
    text="3b0e1989c8b59a2aeda3fe18e1366bbc",
    size="H=12",
    leaves={"H": "i", "plus": "i"},
)
def hoeffding(w: Witness) -> Sides:
    """P(|mean of H signs| > t') against delta where 2 sqrt(log(1/delta) / (2 H)) = t', B = 1.

    For t' just below t = |2 plus - H| / H: for all of [(1 - 1e-8) t, t) the probability is that of
    reaching t, and delta is in the interval of the right side.
    """
    H, plus = w.whole("H"), w.whole("plus")
    assume({"1 <= H <= 12": 1 <= H <= w.size["H"]})
    t = abs(Fraction(2 * plus - H, H))
    reached = sum(abs(sum(signs)) >= t * H for signs in product((1, -1), repeat=H))
    sure = {"0 < t <= 1": 0 < t <= 1}
    near = 1 - Fraction(1, 10**8)
    most, lowest = (exp(-((t * share) ** 2) * H / 2) for share in (near, Fraction(1)))
    assume(sure)
    return Sides(Fraction(reached, 2**H), between(lowest, most))


ORDER: Any = {
    "formula": "gamma_attn >= gamma* >= gamma_lin",
    "size": "C=1",
    "leaves": {"T": "f", "M": "f", "zeta": "f", "log_S": "f", "noise": "f"},
}


@checks(
    "multihead.sec5.3.order",
    "printed",
    ("gamma*", "<=", "gamma_attn(0)"),
    text="48813c449752c93b0473908e79f5dfe8",
    **ORDER,
)
@checks(
    "multihead.sec5.3.order",
    "printed, gamma* >= gamma_lin",
    ("gamma_lin", "<=", "gamma*"),
    text="f301c18b8e84acf601458ad8ad7f64e1",
    **ORDER,
)
def margins_in_order(w: Witness) -> Sides:
    """gamma_attn(0) >= gamma* >= gamma_lin at P = 0 and Z_mu = Z_nu = `noise` S^2.

    (7), (132) and the limit S sqrt(T/2) of (11).
    """
    S, zeta, Z = exp(w["log_S"]), interval(w["zeta"]), None
    T, M = w.whole("T"), w.whole("M")
    relevant = w["zeta"] * T
    Z = interval(w["noise"]) * S**2
    root = S * sqrt(Fraction(T, 2))
    linear = root * (zeta - 2 * (1 - zeta) * Z / S**2)
    gain = zeta * S**4 - 7 * Z * S**2 - 12 * Z**2 - 16 * Z**3 / S**2
    star = T * (1 - zeta) * zeta * gain / (4 * sqrt(2 * (M + 1))) + linear
    sure = {
        "S >= 1": w["log_S"] >= 0,
        "zeta T a count, 0 < zeta < 1": relevant.denominator == 1 and 0 < w["zeta"] < 1,
        "M >= 1": M >= 1,
        "0 <= Z_mu = Z_nu <= S^2 / 8": 0 <= w["noise"] <= Fraction(1, 8),
    }
    if w.form == "printed":
        assume(sure)
        return Sides(star, root)
    assume(sure)
    return Sides(linear, star)


@checks(
    "multihead.sec5.3.sparsity",
    "derived, gamma* - gamma_lin",
    ("gamma* - gamma_lin at zeta", "<=", "gamma* - gamma_lin at zeta' < zeta"),
    formula="gamma_attn - gamma_lin at zeta is at most that at zeta' <= zeta",
    text="0550535907166302995712cd0d2461c9",
    size="C=1",
    leaves={**ORDER["leaves"], "less": "f"},
)
def gap_below(w: Witness) -> Sides:
    """gamma* - gamma_lin at zeta and at a smaller zeta' = `less`, P = 0: the first term of (7)."""
    S, T, M = exp(w["log_S"]), w.whole("T"), w.whole("M")
    Z = interval(w["noise"]) * S**2
    counts = [w[name] * T for name in ("zeta", "less")]
    sure = {
        "S >= 1": w["log_S"] >= 0,
        "M >= 1": M >= 1,
        # A decimal fraction is a count up to the rounding of a float.
        "zeta T, zeta' T counts, 0 < zeta' < zeta < 1": 0 < w["less"] < w["zeta"] < 1
        and all(abs(count - round(count)) < Fraction(1, 10**9) for count in counts),
        "0 <= Z_mu = Z_nu <= S^2 / 8": 0 <= w["noise"] <= Fraction(1, 8),
    }
    assume(sure)
    gain, order = [], []
    for name in ("zeta", "less"):
        zeta = interval(w[name])
        inner = zeta * S**4 - 7 * Z * S**2 - 12 * Z**2 - 16 * Z**3 / S**2
        gain.append(T * (1 - zeta) * zeta * inner / (4 * sqrt(2 * (M + 1))))
        room = S * sqrt(Fraction(T, 2)) * (1 - zeta) * (1 + 2 * Z / S**2)
        order.append(bool(gain[-1].a >= 0) and bool((room - gain[-1]).a >= 0))
    assume({"gamma_attn >= gamma* >= gamma_lin at both": all(order)})
    return Sides(*gain)


@checks(
    "multihead.sec5.3.exponent",
    "printed",
    ("log C where H^{1/2} = log(n)^5 C^{-2} H^{2p-1}", "=", "log(log(n)^{5/2} H^{p-1/4})"),
    formula="H^{1/2} >= log(n)^5 C^{-2} H^{2p-1} iff C >= log(n)^{5/2} H^{p-1/4}",
    text="40ed94f5db0813bb66c4d57f97d151de",
    size="C=1",
    leaves={"c": "f", "p": "f", "log_C": "f", "log_H": "f", "log_S": "f", "log_n": "f"},
)
def solved_for_C(w: Witness) -> Sides:
    """log of the C at which H^{1/2} = log(n)^5 C^{-2} H^{2p-1}, and of log(n)^{5/2} H^{p-1/4}."""
    h, p, logs = interval(w["log_H"]), interval(w["p"]), log(w["log_n"])
    # 2 log C = 5 log log n + (2p - 1) log H - (log H) / 2
    truth = (5 * logs + (2 * p - 1) * h - h / 2) / 2
    printed = Fraction(5, 2).numerator * logs / 2 + (p - interval(Fraction(1, 4))) * h
    C, S = interval(w["log_C"]), interval(w["log_S"])
    sure = {
        "p > 0, H >= 1": w["p"] > 0 and w["log_H"] >= 0,
        "H^c with c = 1/2": w["c"] == Fraction(1, 2),
        "the left condition holds, the printed one does not": bool(truth.b < C.a)
        and bool(C.b < printed.a),
        "S >= C^{-1/2} H^{p/2}, ||W|| >= Gamma": bool((2 * S + C - p * h).a >= 0),
        "||W|| >= ||U||": bool((C + (1 / interval(2) - p) * h - logs + S).a >= 0),
    }
    assume(sure)
    return Sides(truth, printed)


@checks(
    "multihead.sec5.3.target",
    "printed, as per (3)",
    ("min(S^2 C / H^p, sqrt(H) / (S^5 ||theta||_{2,inf} ||theta||^3))^{1/8}", "<=", "1"),
    formula="no (p, C) has S^2 >= H^p / C and sqrt(H) >= S^5 ||theta||^3",
    text="da0ac9078bd588498135da55b0389b5c",
    size="C=1",
    leaves={"c": "f", "p": "f", "log_C": "f", "log_H": "f", "log_S": "f", "log_n": "f"},
)
def target_as_per_3(w: Witness) -> Sides:
    """Both S^2 C / H^p and sqrt(H) / (S^5 ||theta||_{2,inf} ||theta||^3) exceed one.

    U_h = log(n) / S H^{-1/2} U_opt and W_h = C H^{-p} W_opt, with equal heads: ||theta|| = sqrt(H)
    ||theta_h||. The left side is the smaller ratio to the power 1/8, which is no matter for > 1.
    """
    h, p, C, S = (interval(w[name]) for name in ("log_H", "p", "log_C", "log_S"))
    squares = exp(2 * (log(w["log_n"]) - S)) + exp(2 * (C + (1 / interval(2) - p) * h))
    theta = log(squares) / 2
    wide: Any = 2 * S + C - p * h
    heads = h / 2 - 5 * S - (theta - h / 2) - 3 * theta
    sure = {
        "n >= 3": w["log_n"] >= Fraction(11, 10),
        "H >= 1, p > 0, S >= 1": w["log_H"] >= 0 and w["p"] > 0 and w["log_S"] >= 0,
        "H^c with c = 1/2": w["c"] == Fraction(1, 2),
    }
    assume(sure)
    return Sides(exp(least((wide, heads)) / 8), ONE)
