"""Covering numbers that are printed too small: against packings, for linear maps x -> W x.

Of a class that contains {x -> v x_1 : v in V}, or {x -> u.x : u in V}, with inputs of length B_x in
all directions that matter, every cover at eps is one of V at eps / B_x in the l_2 norm, so that it
has at least vol(V) / vol(ball of radius eps / B_x) members. Here x = B B_x / eps.
"""

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from ..claims import checks
from ..intervals import FIELD, exp, greatest, interval, log, power, sqrt, total
from ..judge import Sides, assume
from ..witness import Witness


def log_unit_ball(n: int) -> Any:
    """log of the volume of the unit ball of R^n, n even: pi^{n/2} / (n/2)!."""
    if n < 2 or n % 2:
        raise ValueError(f"an even dimension is expected, {n} came")
    return n // 2 * log(FIELD.pi) - total(log(k) for k in range(1, n // 2 + 1))


def cube_in_balls(n: int, scale: Any) -> Any:
    """log of the least number of balls of radius `scale` that cover [-1, 1]^n, by volume."""
    return n * log(2) - log_unit_ball(n) - n * log(scale)


def ball_in_balls(n: int, x: Any) -> Any:
    """The same for the ball of radius 1 and balls of radius 1 / x."""
    return n * log(x)


def lemma_3_3(d: int, k: int, x: Any) -> Any:
    """d x^2 ln(2k + 1), for ||W||_{1,inf} <= B_w (columns), k x d."""
    return d * x**2 * log(2 * k + 1)


ORIENTATION: Any = {
    "formula": (
        "ln N <= d x^2 ln(2d + 1), and <~ x^2 ln(d^2), for the maps W_QK^T x and W_QK x, x = "
        "B_QK B_x / eps, packings below"
    ),
    "leaves": {"d": "i"},
}


@checks(
    "seqlength.cor-d.0-orientation",
    "derived (D.0.1), W_QK^T x",
    ("ln(least cover of x -> W_QK^T x, by volume)", "<=", "d x^2 ln(2 d + 1), x = 4 / sqrt(d)"),
    size="largest=1024",
    text="6c0ce35a1ded5a26278e940d36487113",
    **ORIENTATION,
)
def rows_for_columns(w: Witness) -> Sides:
    """Lemma 3.3's number for x -> W_QK^T x with ||W_QK||_{1,inf} <= B, in Corollary D.0.1.

    W_QK = e_1 u^T has columns u_j e_1, so |u_j| <= B; W_QK^T x = u x_1. At x = 4 / sqrt(d).
    """
    d = w.whole("d")
    assume({"1 <= d <= largest": 1 <= d <= w.size["largest"]})
    x = 4 / sqrt(d)
    return Sides(cube_in_balls(d, 1 / x), lemma_3_3(d, d, x))


@checks(
    "seqlength.cor-d.0-orientation",
    "derived (D.0.2), W_QK x",
    ("ln(least cover of x -> W_QK x, by volume)", "<=", "x^2 ln(d^2), x = 2"),
    size="largest=1024",
    text="c9dedc0e7ee0bce48af38b278e053e14",
    **ORIENTATION,
)
@checks(
    "seqlength.cor-d.0-orientation",
    "derived (D.0.2), W_QK x, constant 100",
    ("ln(least cover of x -> W_QK x, by volume)", "<=", "100 x^2 ln(d^2), x = 2"),
    size="largest=1000000",
    text="5d8775808a24864f43f788ce198ad3d8",
    **ORIENTATION,
)
def columns_for_rows(w: Witness) -> Sides:
    """Lemma 3.4's x^2 ln(d^2) for x -> W_QK x with ||W_QK||_{2,1} <= B, in Corollary D.0.2.

    W_QK = v e_1^T with ||v||_2 <= B has the column v and no other; W_QK x = v x_1. At x = 2.
    """
    d, constant = w.whole("d"), 100 if "100" in w.form else 1
    assume({"2 <= d <= largest": 2 <= d <= w.size["largest"]})
    return Sides(ball_in_balls(d, 2), constant * 4 * 2 * log(d))


TOKENS: Any = {
    "formula": (
        "ln N <= d x^2 ln(2k + 1) for ||W||_{1,inf} <= B, tokens in the l_2 ball, and the "
        "maps W_QK x, W_v^T x of Appendix E; x = B / eps = 4 / sqrt n"
    ),
    "size": "largest=256",
    "leaves": {"n": "i"},
}


@checks(
    "seqlength.cor-f.0.1",
    "derived",
    ("ln(least cover of x -> W_QK x, by volume)", "<=", "n x^2 ln(2 n + 1), x = 4 / sqrt(n)"),
    text="2af681d75df8b15ceef98bec9cd96132",
    **TOKENS,
)
@checks(
    "seqlength.cor-f.0.1",
    "derived, W_v^T x",
    ("ln(least cover of x -> W_v^T x, by volume)", "<=", "x^2 ln(2 n + 1), x = 4 / sqrt(n)"),
    text="b631c1523579ab85583d33d999c9be9d",
    **TOKENS,
)
def tokens_in_a_ball(w: Witness) -> Sides:
    """Corollary F.0.1 uses Lemma 3.3 for tokens in the l_2 ball; x = 4 / sqrt(n).

    W_QK = e_1 u^T, d = k = n: W_QK x = (u.x) e_1, whose sup over the ball is ||u||_2; or
    W_v = v^T in R^{1 x n}, whose n columns have one entry each: W_v^T x = v x.
    """
    n = w.whole("n")
    assume({"1 <= n <= largest": 1 <= n <= w.size["largest"]})
    x = 4 / sqrt(n)
    bound = lemma_3_3(n if w.form == "derived" else 1, n, x)
    return Sides(cube_in_balls(n, 1 / x), bound)


LEMMA_3_4: Any = {
    "formula": "ln N <~ x^2 ln(dk) for ||W||_{2,1} <= B_w, ||x||_1 <= B_x",
    "size": "d=64",
    "leaves": {"d": "i", "k": "i", "x": "f"},
}


@checks(
    "seqlength.lemma3.4-size",
    "printed",
    ("ln(least cover of ||W||_{2,1} <= B_w, by volume)", "<=", "x^2 ln(d k)"),
    text="22dfe07e19c27ff775ebfb3e867abc6e",
    **LEMMA_3_4,
)
@checks(
    "seqlength.lemma3.4-size",
    "printed, constant 100",
    ("ln(least cover of ||W||_{2,1} <= B_w, by volume)", "<=", "100 x^2 ln(d k)"),
    text="7a7da8594060da35d90f008653845eb3",
    **LEMMA_3_4,
)
def lemma_3_4(w: Witness) -> Sides:
    """x^2 ln(dk) for ||W||_{2,1} <= B_w and ||x||_1 <= B_x: W = v e_1^T with v in a ball of R^k."""
    d, k, x = w.whole("d"), w.whole("k"), w["x"]
    constant = 100 if "100" in w.form else 1
    assume({"d, k >= 1, x > 0": d >= 1 and k >= 1 and x > 0})
    return Sides(ball_in_balls(k, x), constant * interval(x) ** 2 * log(d * k))


LEMMA_3_5: Any = {
    "formula": "ln N <~ x^2 ln(dn) for ||W||_{2,1} <= B_w, ||x_i||_2 <= B_x, n points",
    "size": "d=64",
    "leaves": {"d": "i", "k": "i", "x": "f"},
}


@checks(
    "seqlength.lemma3.5",
    "printed",
    ("ln(least cover of ||W||_{2,1} <= B_w, by volume)", "<=", "x^2 ln(d n), n = d + 1"),
    text="26c3d20f9c7d14bb99c0c545f14d1423",
    **LEMMA_3_5,
)
@checks(
    "seqlength.lemma3.5",
    "printed, constant 100",
    ("ln(least cover of ||W||_{2,1} <= B_w, by volume)", "<=", "100 x^2 ln(d n), n = d + 1"),
    text="1178ad9b5e20f88572ab0b6e0342120c",
    **LEMMA_3_5,
)
def lemma_3_5(w: Witness) -> Sides:
    """x^2 ln(dn) for the same and n = d + 1 points, of which B_x e_1 is one."""
    d, k, x = w.whole("d"), w.whole("k"), w["x"]
    constant = 100 if "100" in w.form else 1
    assume({"d, k >= 1, x > 0": d >= 1 and k >= 1 and x > 0})
    return Sides(ball_in_balls(k, x), constant * interval(x) ** 2 * log(d * (d + 1)))


@checks(
    "seqlength.cor4.2.1",
    "derived",
    ("max of ln(2 d + 1), ln(2 d k + 1), ln(2 d d + 1), over ln(2 d k + 1)", "<=", "1"),
    formula=(
        "the covers of Lemma 3.6 for w, W_c, W_v, W_QK have ln N <= x^2 ln(2dk + 1), x = B "
        "B_x / eps"
    ),
    text="4a10abc660b4770902404e1e2754276f",
    size="d=64",
    leaves={"d": "i", "k": "i", "x": "f"},
)
def largest_cover(w: Witness) -> Sides:
    """ln(2 d d + 1) of Lemma 3.6's cover of W_QK, d x d, over the ln(2 d k + 1) of the corollary.

    x^2 goes with both; w and W_c, W_v have 2 d + 1 and 2 d k + 1.
    """
    d, k, x = w.whole("d"), w.whole("k"), w["x"]
    assume({"d, k >= 1, x > 0": d >= 1 and k >= 1 and x > 0})
    sizes = [log(2 * n + 1) for n in (d, d * k, d * d)]
    return Sides(greatest(sizes) / sizes[1], 1)


@checks(
    "seqlength.lemma3.2",
    "printed",
    (
        "the least cover on x and B_x e_1, .., B_x e_d",
        "=",
        "the least cover on B_x e_1, .., B_x e_d",
    ),
    formula="N(F, eps, N, q) = N(F, eps, {B_x e_1, .., B_x e_d}, q), ||x||_1 <= B_x, N >= d",
    text="f7ce2aec418842d78c9339d6cfec3f39",
    size="k d",
    leaves={"W": "f 4 k d", "x": "f points d", "epsilon": "f"},
)
def covering_numbers(w: Witness) -> Sides:
    """Least covers from the class itself, on x with B_x e_1, .., B_x e_d, and on these alone.

    q = 1/2, where ||v||_q = (sum |v_i|^{1/2})^2; B_x = 1; covers are strict (Section 2.4).
    """
    W, points, eps = w["W"], w["x"], w["epsilon"]
    basis = np.eye(w.size["d"], dtype=int).astype(object)
    sure = {"||x||_1 <= 1": all(sum(abs(x)) <= 1 for x in points), "eps > 0": eps > 0}
    on = lambda inputs: _least_cover(W, inputs, eps)
    assume(sure)
    return Sides(on(np.concatenate([basis, points])), on(basis))


def _least_cover(W: np.ndarray, inputs: np.ndarray, eps: Fraction) -> int:
    def near(A: np.ndarray, B: np.ndarray) -> bool:
        lengths = (total(sqrt(abs(y)) for y in (A - B) @ x) ** 2 for x in inputs)
        rest = greatest(lengths) - interval(eps)
        if rest.a <= 0 <= rest.b and not rest.a == rest.b:
            raise ValueError("whether two matrices are within epsilon is undecided")
        return bool(rest.b < 0)

    covered = [{j for j, B in enumerate(W) if near(A, B)} for A in W]
    for size in range(1, len(W) + 1):
        for chosen in combinations(covered, size):
            if set.union(*chosen) == set(range(len(W))):
                return size
    raise ValueError("the class does not cover itself")


NETWORKS: Any = {
    "formula": "(d - 2) ln 2 <= ln N(eps) <= (gamma + eta)^3 / eps^2 for L = 1, k = 1, B = 1",
    "size": "L=1",
    "leaves": {"B_x": "f", "d": "i", "epsilon": "f"},
}


@checks(
    "seqlength.cor4.2.1-packing",
    "printed",
    ("(d - 2) ln 2", "<=", "(gamma + eta)^3 / eps^2"),
    text="bc94ac1d3242360a4d23e32e536205c8",
    **NETWORKS,
)
@checks(
    "seqlength.cor4.2.1-packing",
    "printed, constant 100",
    ("(d - 2) ln 2", "<=", "100 (gamma + eta)^3 / eps^2"),
    text="2edb802531c360562ed6e85357ac0ffa",
    **NETWORKS,
)
@checks(
    "seqlength.cor4.2.1-packing",
    "derived",
    ("(d - 2) ln 2", "<=", "(gamma + eta)^3 / eps^2 with ln(2 d d + 1)"),
    text="7fa25da30f7a98a27838bcba0c144fb2",
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
    small = exp(-g)
    output = (1 - small**2) / (1 + small**2 + small) / sqrt(2)
    # k = 1; of the bound B_c2 = B_w = alpha_1 = 1 and B_v2 = 1 / B_x.
    C = log(2 * d * d + 1 if w.form == "derived" else 2 * d + 1)
    third = Fraction(1, 3)
    B_v2 = 1 / interval(B_x)
    gamma = power(interval(B_x) ** 2 * C, third) * power(2 * B_v2, 2 * third)
    gamma = gamma + power(C, third) * (1 + power(B_v2, 2 * third))
    constant = 100 if "100" in w.form else 1
    sure = {
        "B_x >= 1": B_x >= 1,
        "eps > 0": eps > 0,
        "networks 2 eps apart": bool((output - interval(eps)).a >= 0),
    }
    assume(sure)
    return Sides((d - 2) * log(2), constant * gamma**3 / interval(eps) ** 2)


@checks(
    "seqlength.thm4.2-packing",
    "printed",
    ("ln 4", "<=", "(gamma + eta)^3 / eps^2"),
    formula="ln 4 <= ln N(1/2) <= 4 (gamma + eta)^3 for L = 1 and four networks that are 1 apart",
    text="252d75e6fff21b0ef3cbf9c6e671d74e",
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
