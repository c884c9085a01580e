"""The oracle's scores, saturation and margin: Sections 5.3 and 7, Appendix E."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from ..claims import checks
from ..intervals import exp, greatest, interval, log, norm, softmax, sqrt, total
from ..judge import Sides, assume
from ..witness import Witness
from .losses import attention, model
from .mixture import SEQUENCE, Mixture, one_sequence


@checks(
    "multihead.eq9",
    "printed, eq. (123)",
    ("||U_opt||, ||W_opt||, ||theta_opt||^2 of (123)", "=", "1, 1, 2"),
    formula="||U_opt|| = ||W_opt|| = 1, ||theta_opt||^2 = 2",
    text="ff030151f3784d1c60def8285864ea90",
    size="T=5 d",
    leaves={"S": "f", "patterns": "f count d"},
)
def normalised(w: Witness) -> Sides:
    """||U_opt||, ||W_opt|| and ||theta_opt||^2 of (123), (124), against 1, 1 and 2.

    U_opt = (S sqrt(T))^{-1} 1_T u*^T (the text prints 1_d), W_opt = W* / (S^2 sqrt(2 (M + 1))).
    """
    S, T, patterns = w["S"], w.size["T"], w["patterns"]
    plus, minus, *nus = patterns
    M = len(nus)
    U = interval(np.stack([plus - minus] * T)) / (interval(S) * sqrt(T))
    W = (
        np.outer(plus, plus)
        + np.outer(minus, minus)
        + sum(np.outer(nu, plus + minus) for nu in nus)
    )
    W = interval(W) / (interval(S) ** 2 * sqrt(2 * (M + 1)))
    squares = norm(U) ** 2 + norm(W) ** 2
    grams = patterns @ patterns.T
    expected = np.diag([S**2] * (M + 2))
    sure = {"patterns orthogonal and of norm S > 0": S > 0 and bool((grams == expected).all())}
    assume(sure)
    return Sides([norm(U), norm(W), squares], [1, 1, 2])


@checks(
    "multihead.eq129",
    "printed, 2 B <= 1.25 S^4 / 4",
    ("2 B = 4 (Z_mu^2 + Z_mu Z_nu + S^2 Z_mu)", "<=", "1.25 S^4 / 4"),
    formula="scores under W* are at least A on R and at most B off R; Z <= S^2/8 gives A > 2 B",
    text="e03d6eb796d8a30cefe39eddb96e2db3",
    size="T d",
    leaves={**SEQUENCE, "log_eps": "f"},
)
def scores_off(w: Witness) -> Sides:
    """2 B <= 1.25 S^4 / 4, B = 2 (Z_mu^2 + Z_mu Z_nu + S^2 Z_mu) at Z_mu = Z_nu, below (129)."""
    c = one_sequence(w)
    S, Z = c.S, c.Z_bar
    sure = {"DM1": c.valid, "Z_mu = Z_nu <= S^2 / 8": Z <= S**2 / 8}
    assume(sure)
    return Sides(4 * (2 * Z**2 + S**2 * Z), Fraction(5, 16) * S**4)


@checks(
    "multihead.lem18",
    "printed",
    ("the mass of phi(Gamma r) off the first L tokens", "<=", "eps"),
    formula="Gamma >= (2/A) log((T/L - 1) / eps) implies mass at most eps off the top L tokens",
    text="5c4bd45fe6d411697f5a106898b8723e",
    size="T",
    leaves={"r": "f T", "L": "i", "log_eps": "f", "extra": "f"},
)
def saturation(w: Witness) -> Sides:
    """The mass of phi(Gamma r) off the first L tokens, Gamma >= (2/A) log((T/L - 1)/eps).

    Gamma is that bound and `extra`; A the least score of the first L, B the largest of the others.
    """
    r, L, T = w["r"], w.whole("L"), w.size["T"]
    if not 0 < L < len(r) == T:
        raise ValueError(f"0 < L < T = {len(r)} is expected, L = {L} came")
    A, B = min(r[:L]), max(r[L:])
    bound = 2 / interval(A) * (log(Fraction(T, L) - 1) - interval(w["log_eps"]))
    gamma = bound + interval(w["extra"])
    sure = {"A > 2 B": A > 2 * B, "extra >= 0": w["extra"] >= 0}
    sure["r_1 >= ... >= r_L"] = all(a >= b for a, b in pairwise(r[:L]))
    assume(sure)
    return Sides(total(softmax(gamma * interval(r))[L:]), exp(w["log_eps"]))


def _scale(w: Witness, c: Mixture) -> Any:
    """Gamma: `more` / S^2 above 8 sqrt(2 (M + 1)) / (3 S^2) log((1/zeta - 1) / eps), (10)."""
    ratio = log(1 / c.zeta - 1) - interval(w["log_eps"])
    bound = 8 * sqrt(2 * (c.M + 1)) / (3 * interval(c.S) ** 2) * ratio
    return bound + interval(w["more"] / c.S**2)


def _optimal(c: Mixture) -> tuple[np.ndarray, np.ndarray]:
    """(U_opt, W_opt) of (9)."""
    U, W = c.oracle
    S = interval(c.S)
    return interval(U) / (S * sqrt(2 * c.T)), interval(W) / (S**2 * sqrt(2 * (c.M + 1)))


def _proposition_3(w: Witness, c: Mixture) -> dict[str, bool]:
    return {
        "DM1": c.valid,
        "Z_mu = Z_nu <= S^2 / 8": c.Z_bar <= c.S**2 / 8,
        "more >= 0": w["more"] >= 0,
    }


@checks(
    "multihead.prop3.mass",
    "printed",
    ("the largest mass of a row of phi(X Gamma W_opt X^T) off R", "<=", "eps"),
    formula=(
        "Gamma >= 8 sqrt(2 (M+1)) / (3 S^2) log((1/zeta - 1)/eps) leaves mass at most eps off R"
    ),
    text="265fa2aa9eeeabc9554b1c9f00e166d0",
    size="T d",
    leaves={**SEQUENCE, "log_eps": "f", "more": "f"},
)
def mass_off_relevant(w: Witness) -> Sides:
    """The largest mass of a row of phi(X Gamma W_opt X^T) off R, against eps, (10)."""
    c = one_sequence(w)
    assume(_proposition_3(w, c))
    rows = attention(c.X, _scale(w, c) * _optimal(c)[1])
    off = greatest(total(row[c.relevant == 0]) for row in rows)
    return Sides(off, exp(w["log_eps"]))


MARGIN: Any = {
    "formula": (
        "y Phi(X; U_opt, Gamma W_opt) >= gamma_attn(eps) = sqrt(T/2) (S^2 (1 - eps) - 2 eps "
        "Z_mu) / S"
    ),
    "size": "T d",
    "leaves": {**SEQUENCE, "log_eps": "f", "more": "f"},
}


@checks(
    "multihead.prop3.margin",
    "printed",
    ("sqrt(T/2) (S^2 (1 - eps) - 2 eps Z_mu) / S", "<=", "y Phi(X; U_opt, Gamma W_opt)"),
    text="730f529a5f921d5d925787a11c1f75bb",
    **MARGIN,
)
@checks(
    "multihead.prop3.margin",
    "printed, Section 7",
    ("y Phi(X; U_opt, Gamma W_opt)", "<=", "S sqrt(T/2) ((1 - eps) - 2 eps Z_mu / S)"),
    text="76b10fbc3dee954e6660a7eb7f7af78a",
    **MARGIN,
)
def oracle_margin(w: Witness) -> Sides:
    """y Phi(X; U_opt, Gamma W_opt) against gamma_attn(eps).

    (11) says that the margin is at least sqrt(T/2) / S (S^2 (1 - eps) - 2 eps Z_mu); Section 7,
    that it equals S sqrt(T/2) ((1 - eps) - 2 eps Z_mu / S) for Gamma >~ log((1/zeta - 1)/eps) / S,
    which is met at S = 1 by (10)'s Gamma; here the margin is the larger side.
    """
    c = one_sequence(w)
    assume(_proposition_3(w, c))
    U, W = _optimal(c)
    margin = int(c.y) * model(c.X, U, _scale(w, c) * W)
    eps, S, Z = exp(w["log_eps"]), interval(c.S), interval(c.Z_mu)
    if w.form == "printed":
        bound = sqrt(Fraction(c.T, 2)) / S * (S**2 * (1 - eps) - 2 * eps * Z)
        return Sides(bound, margin)
    printed = S * sqrt(Fraction(c.T, 2)) * ((1 - eps) - 2 * eps * Z / S)
    assume({"S = 1": c.S == 1, "eps in (0, 1)": bool(eps.b < 1)})
    return Sides(margin, printed)
