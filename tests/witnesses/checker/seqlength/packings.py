"""Networks of one layer whose number is printed too small: packings, Section 4 and Appendix F.

Networks that differ at some input by at least 2 eps are covered by no fewer functions than there
are of them. The bound on the logarithm of that is (gamma + eta)^3 / eps^2, at L = 1.
"""

from fractions import Fraction
from typing import Any

from ..claims import checks
from ..intervals import exp, interval, log, power, sqrt
from ..judge import Sides, assume
from ..witness import Witness


def printed_number(C: Any, B_x: Fraction) -> Any:
    """(gamma + eta)^3: L = L_sigma = B_c2 = B_w = alpha_1 = 1, B_v2 = 1 / B_x, C_Bx = B_x^2 C."""
    third, B_v2 = Fraction(1, 3), 1 / interval(B_x)
    gamma = power(interval(B_x) ** 2 * C, third) * power(2 * B_v2, 2 * third)
    return (gamma + power(C, third) * (1 + power(B_v2, 2 * third))) ** 3


def listed_number(C: Any) -> Any:
    """The same by Lemma E.1 from the proof's own list: w, W_c and W_v with beta 1, and W_QK.

    Of W_QK C_Bx = B_x^2 C and beta = 2 B_v2 = 2 / B_x: C^{1/3} 4^{1/3}.
    """
    return C * (3 + power(4, Fraction(1, 3))) ** 3


def read_out(g: Any, share: Any) -> Any:
    """The output for values 0, share and -share at scores 0, g and -g."""
    small = exp(-g)
    return share * (1 - small**2) / (1 + small**2 + small)


NETWORKS: Any = {
    "formula": "(d - 2) ln 2 <= ln N(eps) <= (gamma + eta)^3 / eps^2 for L = 1, k = 1, B = 1",
    "size": "L=1",
    "leaves": {"B_x": "f", "d": "i", "epsilon": "f"},
}


@checks(
    "seqlength.cor4.2.1.packing",
    "printed",
    ("(d - 2) ln 2", "<=", "(gamma + eta)^3 / eps^2"),
    text="4bb271c1acf2545b09beb7a0e45339f9",
    **NETWORKS,
)
@checks(
    "seqlength.cor4.2.1.packing",
    "printed, constant 100",
    ("(d - 2) ln 2", "<=", "100 (gamma + eta)^3 / eps^2"),
    text="5c885ab17255a6ec9d88f9aa3d1d67bc",
    **NETWORKS,
)
@checks(
    "seqlength.cor4.2.1.packing",
    "derived",
    ("(d - 2) ln 2", "<=", "(gamma + eta)^3 / eps^2 with ln(2 d d + 1)"),
    text="ba61c441038714c0c80e1387c5681ccb",
    **NETWORKS,
)
def saturated_networks(w: Witness) -> Sides:
    """(d - 2) ln 2 against (gamma + eta)^3 / eps^2 of Corollary 4.2.1, L = k = B = L_sigma = 1.

    Input i has the tokens 0: B_x e_0 ([CLS]), and +-B_x (e_1 + e_i) / sqrt(2), i = 2, .., d - 1.
    W_QK = e_0 s^T / (d - 2) with signs s, of l_1 norm 1; W_v = e_1 / B_x; W_c = e_1^T; w = e_1.
    The scores are 0 and +-s_i g, g = B_x^2 / (sqrt(2) (d - 2)), the values 0 and +-1/sqrt(2): the
    output is s_i (e^g - e^-g) / (e^g + e^-g + 1) / sqrt(2). Networks that differ in some s_i are
    twice that apart; where it is at least 2 eps no function is within eps of two of them.
    """
    B_x, d, eps = w["B_x"], w.whole("d"), w["epsilon"]
    if d <= 2:
        raise ValueError(f"d > 2 is expected, d = {d} came")
    g = interval(B_x) ** 2 / (sqrt(2) * (d - 2))
    output = read_out(g, 1 / sqrt(2))
    C = log(2 * d * d + 1 if w.form == "derived" else 2 * d + 1)  # k = 1
    constant = 100 if "100" in w.form else 1
    sure = {
        "B_x >= 1": B_x >= 1,
        "eps > 0": eps > 0,
        "networks 2 eps apart": bool((output - interval(eps)).a >= 0),
    }
    assume(sure)
    return Sides((d - 2) * log(2), constant * printed_number(C, B_x) / interval(eps) ** 2)


@checks(
    "seqlength.thm4.2.packing",
    "printed",
    ("ln 4", "<=", "(gamma + eta)^3 / eps^2"),
    formula="ln 4 <= ln N(1/2) <= 4 (gamma + eta)^3 for L = 1 and four networks that are 1 apart",
    text="d58e1e4d11e579676a8d4c9ce1a1776e",
    size="L=1",
    leaves={"B_x": "f", "c": "f", "epsilon": "f"},
)
def four_networks(w: Witness) -> Sides:
    """ln 4 against (gamma + eta)^3 / eps^2 of Theorem 4.2, L = L_sigma = 1, d = k = T = 2.

    Inputs (0, B_x e_i) with [CLS] = 0, W_QK = 0, W_v = (2 / B_x) I and W_c = +-c e_j e_1^T give
    W_v^T X^T softmax(0) = e_i and the row +-c [i = j] e_1; w = e_1 / c. The four outputs
    (+-[i = j])_i differ by one at least on some input, and 1 >= 2 eps. C_1 and C_Bx are Lemma
    3.6's for ||W_c||_{1,1} <= c; B_c2 = c, B_v2 = 2 / B_x, B_w = 1 / c, alpha_1 = 1.
    """
    B_x, c, eps = w["B_x"], w["c"], w["epsilon"]
    assume({"B_x >= 2, c > 0": B_x >= 2 and c > 0, "1 >= 2 eps > 0": 0 < eps <= Fraction(1, 2)})
    C_1 = interval(c) ** 2 * log(2 * 2 * 2 + 1)
    C_Bx = C_1 * interval(B_x) ** 2
    third = Fraction(1, 3)
    B_v2, B_w = 2 / B_x, 1 / c
    gamma = power(C_Bx, third) * power(2 * c * B_v2 * B_w, 2 * third)
    gamma = gamma + power(C_1, third) * (1 + power(B_w * B_v2, 2 * third))
    return Sides(log(4), gamma**3 / interval(eps) ** 2)


IN_L1_SIGNS: Any = {
    "formula": (
        "(d - 2) ln 2 <= ln N(eps) <= (gamma + eta)^3 / eps^2 for L = 1, k = 1, B = 1, with B^2 "
        "ln(dk) in gamma and eta"
    ),
    "size": "L=1",
    "leaves": {"B_x": "f", "d": "i", "epsilon": "f"},
}


@checks(
    "seqlength.corf.0.2.packing",
    "printed",
    ("(d - 2) ln 2", "<=", "(gamma + eta)^3 / eps^2 with C_1 = ln d"),
    text="ced735c8fce9a51ffe53aebadb231c2c",
    **IN_L1_SIGNS,
)
@checks(
    "seqlength.corf.0.2.packing",
    "printed, constant 100",
    ("(d - 2) ln 2", "<=", "100 (gamma + eta)^3 / eps^2 with C_1 = ln d"),
    text="b4866f0cfdfdcff8d96bbc932f6bb452",
    **IN_L1_SIGNS,
)
@checks(
    "seqlength.corf.0.2.packing",
    "derived",
    ("(d - 2) ln 2", "<=", "C_1 (3 + 4^{1/3})^3 / eps^2 with C_1 = ln(d^2)"),
    text="183eba92524ece9172e16d7feeac00c3",
    **IN_L1_SIGNS,
)
def signs_in_the_l1_ball(w: Witness) -> Sides:
    """(d - 2) ln 2 against (gamma + eta)^3 / eps^2 of Corollary F.0.2, L = k = B = L_sigma = 1.

    As for Corollary 4.2.1 with tokens B_x e_0 and +-B_x (e_1 + e_i) / 2, of l_1 norm B_x at most:
    scores 0 and +-s_i g, g = B_x^2 / (2 (d - 2)), values 0 and +-1/2. ||W_QK||_{2,1} is 1 over
    columns and 1 / sqrt(d - 2) over rows; no row is longer than 1, in l_1 or l_2.
    """
    B_x, d, eps = w["B_x"], w.whole("d"), w["epsilon"]
    assume({"d > 3, so that there are 2 d - 3 > d tokens": d > 3, "B_x >= 1": B_x >= 1})
    output = read_out(interval(B_x) ** 2 / (2 * (d - 2)), Fraction(1, 2))
    sure = {
        "eps > 0": eps > 0,
        "networks 2 eps apart": bool((output - interval(eps)).a >= 0),
    }
    assume(sure)
    if w.form == "derived":  # ln(d^2) for every matrix
        number = listed_number(2 * log(d))
    else:
        number = printed_number(log(d), B_x) * (100 if "100" in w.form else 1)
    return Sides((d - 2) * log(2), number / interval(eps) ** 2)


IN_L1_LEVELS: Any = {
    "formula": (
        "(d - 3) ln M <= ln N(eps) <= (gamma + eta)^3 / eps^2 for L = 1, k = 1, B = 1 and M "
        "levels, of the order B_x^2 / d, with d B^2 ln(2k + 1) in gamma and eta"
    ),
    "size": "L=1",
    "leaves": {"B_x": "f", "M": "f", "d": "i", "epsilon": "f", "t": "f"},
}


@checks(
    "seqlength.corf.0.1.packing",
    "printed",
    ("(d - 3) ln M", "<=", "(gamma + eta)^3 / eps^2 with C_1 = d ln 3"),
    text="f3752b8b4ffc585365fe0947f6d6d067",
    **IN_L1_LEVELS,
)
@checks(
    "seqlength.corf.0.1.packing",
    "printed, constant 10",
    ("(d - 3) ln M", "<=", "10 (gamma + eta)^3 / eps^2 with C_1 = d ln 3"),
    text="c1acc7f679a1690551d9bfe417552e38",
    **IN_L1_LEVELS,
)
@checks(
    "seqlength.corf.0.1.packing",
    "derived",
    ("(d - 3) ln M", "<=", "C_1 (3 + 4^{1/3})^3 / eps^2 with C_1 = d ln 3"),
    text="95a4295952de3c1c1ef2b9ebe4265761",
    **IN_L1_LEVELS,
)
def levels_in_the_l1_ball(w: Witness) -> Sides:
    """(d - 3) ln M against (gamma + eta)^3 / eps^2 of Corollary F.0.1, L = k = B = L_sigma = 1.

    Row 0 of W_QK is 1/d at coordinate 2 and l_i / d at i > 2, l_i one of M levels 2 / (M - 1) apart
    in [-1, 1]. Tokens B_x e_0 and +-B_x (15 e_1 + (e_i - t e_2) / 2) / 16, of l_1 norm B_x at most
    for |t| <= 1: scores 0 and +-B_x^2 (l_i - t) / (32 d), values 0 and +-15/16. With t between two
    levels networks that differ there are twice the read-out apart.
    """
    B_x, d, M, t, eps = w["B_x"], w.whole("d"), w.whole("M"), w["t"], w["epsilon"]
    assume(
        {
            "B_x >= 1": B_x >= 1,
            "d > 3, M > 1": d > 3 and M > 1,
            "2 (d - 3) (M - 1) + 1 > d tokens": 2 * (d - 3) * (M - 1) + 1 > d,
        }
    )
    half = Fraction(1, M - 1)
    output = read_out(interval(B_x) ** 2 * half / (32 * d), Fraction(15, 16))
    sure = {
        "both levels in [-1, 1]": abs(t) + half <= 1,
        "eps > 0": eps > 0,
        "networks 2 eps apart": bool((output - interval(eps)).a >= 0),
    }
    assume(sure)
    C = d * log(3)  # k = 1
    if w.form == "derived":
        number = listed_number(C)
    else:
        number = printed_number(C, B_x) * (10 if "10" in w.form else 1)
    return Sides((d - 3) * log(M), number / interval(eps) ** 2)
