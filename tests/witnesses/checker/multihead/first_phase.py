"""The first phase as a good start: Section 5.1, Appendices C.3 and D."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from ..claims import checks
from ..intervals import ONE, exp, interval, log, norm, sqrt
from ..judge import Sides, assume
from ..witness import Witness
from .mixture import SEQUENCE, SEQUENCES, Mixture, one_sequence, sequences

HALF = Fraction(1, 2)


@checks(
    "multihead.lem12",
    "printed",
    ("P(|Phi| > T R (S + P) sqrt(2 log(1/delta)))", "<=", "delta"),
    formula="|Phi(X; theta^(1))| <= T R (S + P) sqrt(2 log(1/delta)) with probability 1 - delta",
    text="5ce183e41af7ea15f188c91e9382a59f",
    size="T d",
    leaves={**SEQUENCE, "H": "i", "delta": "f"},
)
def initial_output(w: Witness) -> Sides:
    """P(|Phi| > T R (S + P) sqrt(2 log(1/delta))) <= delta over signs alpha, counted.

    Lemma 12, Appendix D.2.2: with W = 0 and U_h = alpha_h 1_T ((zeta/2) u* + p)^T of (102) Phi is
    H^{-1/2} sum alpha_h <row, sum x_t>. p is what a first phase of the samples (mu_+, nu_1) and
    (mu_-, nu_1) leaves by (120); P is ||p|| on the right side, and must do at (6), too.
    """
    c, H, delta = one_sequence(w), w.whole("H"), w["delta"]
    assume({"DM1": c.valid, "0 < delta < 1": 0 < delta < 1, "1 <= H <= 12": 1 <= H <= 12})
    row = c.zeta / 2 * c.classifier + w["p"]
    output = abs(sum(row * c.X.sum(axis=0)))
    bounds = [
        c.T * c.R * (interval(c.S) + P) * sqrt(-2 * log(delta))
        for P in (norm(w["p"]), _first_phase(c, n1=2, delta=HALF))
    ]
    sums = [abs(sum(signs)) * output for signs in product((1, -1), repeat=H)]
    beyond = [[_decided(size / sqrt(H) - bound) for size in sums] for bound in bounds]
    sure = {
        "p of a first phase of two samples": _of_two_samples(c, row),
        "the same at P of (6), C = 1, n1 = 2": beyond[0] == beyond[1],
    }
    assume(sure)
    return Sides(Fraction(sum(beyond[0]), 2**H), delta)


def _of_two_samples(c: Mixture, row: np.ndarray) -> bool:
    """Whether (120) leaves the row after the samples (mu_+, nu_1) and (mu_-, nu_1)."""
    plus, minus, first, *_ = c.pattern
    step = sum(y * (mu + first) for y, mu in ((1, plus), (-1, minus))) / Fraction(2 * 2 * 2)
    return c.T == 2 and bool((step == row).all())


def _first_phase(c: Mixture, n1: int, delta: Fraction) -> Any:
    """P of (6) with C = 1."""
    d = c.z.shape[-1]
    spread = sqrt(Fraction(d, n1)) + sqrt(-log(delta) / n1)
    return (2 * interval(c.S) + sqrt(c.Z_squared)) * spread


def _decided(x: Any) -> bool:
    x = interval(x)
    if x.a <= 0 <= x.b:
        raise ValueError(f"whether {x} is positive is undecided")
    return bool(x.a > 0)


@checks(
    "multihead.lem13",
    "derived, alpha in [-1, 1], recentred",
    ("gamma*", "<=", "E y <grad Phi, theta*> about (zeta/4) u*, alpha in [-1, 1]"),
    formula="E_alpha y <grad Phi(X; theta^(1)), theta*> >= gamma*",
    text="5f0bee24253f553e52794cedbbd33922",
    size="T d",
    leaves=SEQUENCE,
)
def expected_margin(w: Witness) -> Sides:
    """gamma* <= E y <grad Phi, theta*> at U = alpha 1_T ((zeta/4) u* + p)^T, alpha ~ Unif[-1, 1].

    theta* = (U*, sign(alpha) W*): the part along W* is |alpha| times that at alpha = 1.
    """
    c = one_sequence(w)
    assume({"DM1": c.valid})
    outer, inner = c.margins(c.zeta / 4 * c.classifier + w["p"])
    return Sides(c.gamma_star(norm(w["p"])), outer + inner / 2)


@checks(
    "multihead.eq116",
    "printed, alpha = +-1",
    ("the last line of (116)", "<=", "E|alpha| {the brace of (115)} / ||W*||, E|alpha| = 1"),
    formula=(
        "E|alpha| {...} / ||W*|| >= T (1-zeta) zeta / (4 sqrt(2 (M+1))) (zeta S^4 - ...) - "
        "P T^{5/2} (S+Z)^3, {...} the brace of (115)"
    ),
    text="8a79945d62cca5da6bf9013e00e1febc",
    size="T d",
    leaves=SEQUENCE,
)
def last_step(w: Witness) -> Sides:
    """The last line of (116) against the line before it, E|alpha| = 1: the brace over ||W*||.

    P = ||p||, where (zeta/2) u* + p is what a first phase of (mu_+, nu_1), (mu_-, nu_1) leaves.
    """
    c, P = one_sequence(w), norm(w["p"])
    assume({"DM1": c.valid})
    assume({"R >= 1": bool(c.R.a >= 1)})
    row = c.zeta / 2 * c.classifier + w["p"]
    assume({"p of a first phase of two samples": _of_two_samples(c, row)})
    S, T, zeta, Z = interval(c.S), c.T, interval(c.zeta), interval(c.Z_bar)
    longest = S + sqrt(c.Z_squared)
    root = sqrt(2 * (c.M + 1))
    brace = (
        T * (1 - zeta) * zeta / 2 * (zeta * S**6 - 7 * Z * S**4 - 12 * Z**2 * S**2 - 16 * Z**3)
        - 2 * root * P * sqrt(T) ** 5 * S**2 * longest**3
    )
    linear = S * sqrt(T) / sqrt(2) * (zeta - 2 * (1 - zeta) * interval(c.Z_mu) / S**2)
    return Sides(c.gamma_star(P) - linear, brace / (S**2 * root))


@checks(
    "multihead.lem16",
    "printed, l'(0) = 1/2",
    ("U after the first step", "=", "U as if l'(0) were 1/2"),
    formula="after one step from zero W = 0 and every row of U is alpha (zeta/2 u* + p1 + p2)",
    text="b4bbe353ef266c46bfad3709e8486b9b",
    size="n T d",
    leaves={**SEQUENCES, "alpha": "f H"},
)
def first_step(w: Witness) -> Sides:
    """U of every head after the first step, from l'(0) = -1/2; and as if l'(0) were +1/2.

    theta = -alpha_h sqrt(H) grad L(0), so U_h = -alpha_h l'(0) (1/n) sum y_i phi(0) X_i. That p1
    and p2 of (120) add up to the same is the lemma, which is not in question.
    """
    data, alpha = sequences(w), w["alpha"]
    # phi(0) X: every row is the mean token.
    mean = sum(c.y * c.X.sum(axis=0) / Fraction(c.T) for c in data) / Fraction(len(data))
    rows = np.stack([mean] * data[0].T)
    step = lambda slope: np.stack([-a * slope * rows for a in alpha])
    sure = {
        "DM1": all(c.valid for c in data),
        "one share of relevant tokens": len({c.zeta for c in data}) == 1,
        "alpha in [-1, 1]": all(abs(a) <= 1 for a in alpha),
    }
    assume(sure)
    return Sides(step(-HALF), step(HALF))


@checks(
    "multihead.prop7.distance",
    "printed",
    ("||theta(eps) - theta_0||", "<=", "(2 B_Phi + log(1/eps)) / gamma"),
    formula="||theta(eps) - theta_0|| <= g_0(eps) = (2 B_Phi + log(1/eps)) / gamma",
    text="30c2009cd9856e5c0b9c76d65f1060af",
    size="n T d",
    leaves={**SEQUENCES, "log_eps": "f", "excess": "f"},
)
def distance_of_the_proof(w: Witness) -> Sides:
    """||theta(eps) - theta_0|| = G ||theta*|| with G = (2 B_Phi + log(1/eps)) / gamma, against G.

    At theta^(1) about the true centre (zeta/4) u* with as many signs +1 as -1, so Phi = 0 and
    B_Phi = 1; theta* = H^{-1/2} (U*, sign(alpha_h) W*), of norm sqrt(2), and gamma its margin.
    """
    data = sequences(w)
    margins = [sum(c.margins(c.zeta / 4 * c.classifier + w["p"])) for c in data]
    if len(margins) != 1:
        raise ValueError("one sequence is expected: its margin is gamma")
    gamma, eps = margins[0], exp(w["log_eps"])
    U, W = data[0].unit_oracle
    length = sqrt(norm(U) ** 2 + norm(W) ** 2)
    reach = (2 * ONE - interval(w["log_eps"])) / gamma
    sure = {
        "DM1": all(c.valid for c in data),
        "as many signs +1 as -1": w["excess"] == 0,
        "gamma > 0": bool(gamma.a > 0),
        "0 < eps <= 1": bool(eps.b <= 1) or w["log_eps"] == 0,
    }
    assume(sure)
    return Sides(reach * length, reach)


@checks(
    "multihead.prop7.exists",
    "printed",
    ("the least loss within g_0(eps) of theta_0", "<=", "eps"),
    formula=(
        "good theta_0 and (98) imply L(theta) <= eps for some theta with ||theta - theta_0|| "
        "<= g_0(eps) = (2 B_Phi + log(1/eps)) / gamma"
    ),
    text="c9fb090e7856240310e9357795811b8a",
    size="d",
    leaves={"x": "f d", "log_eps": "f", "offset": "f", "part": "f"},
)
def least_loss_within(w: Witness) -> Sides:
    """The least loss within g_0(eps) of theta_0, for one sample of one token x; y = 1.

    Then Phi = <H^{-1/2} sum U_h, x> whatever W is, so that by Cauchy-Schwarz no theta within a
    distance g of theta_0 has a margin above Phi(theta_0) + g ||x||. theta* = U* sqrt(2) x / ||x||
    has the margin sqrt(2) ||x|| in P3, of which gamma is a part; B_Phi = max(1, |Phi(theta_0)|).
    """
    x, offset, part = w["x"], w["offset"], w["part"]
    length = norm(x)
    gamma = interval(part) * sqrt(2) * length
    reach = (2 * interval(max(offset, 1)) - interval(w["log_eps"])) / gamma
    loss = log(1 + exp(interval(offset) - reach * length))
    sure = {
        "R = ||x|| >= 1": sum(x**2) >= 1,
        "Phi(theta_0) <= 0": offset >= 0,
        "0 < gamma <= sqrt(2) ||x||": 0 < part <= 1,
        "eps <= 1": w["log_eps"] <= 0,
    }
    assume(sure)
    return Sides(loss, exp(w["log_eps"]))
