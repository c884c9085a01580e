"""Covering numbers that are printed too small: against packings, for linear maps x -> W x.

Of a class that contains {x -> v x_1 : v in V}, or {x -> u.x : u in V}, with inputs of length B_x in
all directions that matter, every cover at eps is one of V at eps / B_x in the l_2 norm, so that it
has at least vol(V) / vol(ball of radius eps / B_x) members. Here x = B B_x / eps.
"""

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from ..intervals import FIELD, exp, greatest, interval, log, power, sqrt, total
from ..judge import Sides, assume, checks
from ..witness import BadWitness, Witness


def log_unit_ball(n: int) -> Any:
    """log of the volume of the unit ball of R^n, n even: pi^{n/2} / (n/2)!."""
    if n < 2 or n % 2:
        raise BadWitness(f"an even dimension is expected, {n} came")
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


@checks("seqlength.cor-d.0-orientation", "derived (D.0.1), W_QK^T x")
def rows_for_columns(w: Witness) -> Sides:
    """Lemma 3.3's number for x -> W_QK^T x with ||W_QK||_{1,inf} <= B, in Corollary D.0.1.

    W_QK = e_1 u^T has columns u_j e_1, so |u_j| <= B; W_QK^T x = u x_1. At x = 4 / sqrt(d).
    """
    d = w.whole("d")
    assume({"d >= 1": d >= 1})
    x = 4 / sqrt(d)
    return Sides(cube_in_balls(d, 1 / x), lemma_3_3(d, d, x))


@checks(
    "seqlength.cor-d.0-orientation",
    "derived (D.0.2), W_QK x",
    "derived (D.0.2), W_QK x, constant 100",
)
def columns_for_rows(w: Witness) -> Sides:
    """Lemma 3.4's x^2 ln(d^2) for x -> W_QK x with ||W_QK||_{2,1} <= B, in Corollary D.0.2.

    W_QK = v e_1^T with ||v||_2 <= B has the column v and no other; W_QK x = v x_1. At x = 2.
    """
    d, constant = w.whole("d"), 100 if "100" in w.form else 1
    assume({"d >= 2": d >= 2})
    return Sides(ball_in_balls(d, 2), constant * 4 * 2 * log(d))


@checks("seqlength.cor-f.0.1", "derived", "derived, W_c^T x", "derived, W_v^T x")
def tokens_in_a_ball(w: Witness) -> Sides:
    """Corollary F.0.1 uses Lemma 3.3 for tokens in the l_2 ball; x = 4 / sqrt(n).

    W_QK = e_1 u^T, d = k = n: W_QK x = (u.x) e_1, whose sup over the ball is ||u||_2; W_c^T = u^T,
    from R^n to R^1, whose own number is n x^2 ln 3; or W_v = v^T in R^{1 x n}, whose n columns have
    one entry each: W_v^T x = v x.
    """
    n = w.whole("n")
    assume({"n >= 1": n >= 1})
    x = 4 / sqrt(n)
    inputs, outputs = {"derived": (n, n), "derived, W_c^T x": (n, 1)}.get(w.form, (1, n))
    bound = lemma_3_3(inputs, outputs, x)
    return Sides(cube_in_balls(n, 1 / x), bound)


@checks("seqlength.lemma3.4-size", "printed", "printed, constant 100")
def lemma_3_4(w: Witness) -> Sides:
    """x^2 ln(dk) for ||W||_{2,1} <= B_w and ||x||_1 <= B_x: W = v e_1^T with v in a ball of R^k."""
    d, k, x = w.whole("d"), w.whole("k"), w["x"]
    constant = 100 if "100" in w.form else 1
    assume({"d, k >= 1, x > 0": d >= 1 and k >= 1 and x > 0})
    return Sides(ball_in_balls(k, x), constant * interval(x) ** 2 * log(d * k))


@checks("seqlength.lemma3.5", "printed", "printed, constant 100")
def lemma_3_5(w: Witness) -> Sides:
    """x^2 ln(dn) for the same and n = d + 1 points, of which B_x e_1 is one."""
    d, k, x = w.whole("d"), w.whole("k"), w["x"]
    constant = 100 if "100" in w.form else 1
    assume({"d, k >= 1, x > 0": d >= 1 and k >= 1 and x > 0})
    return Sides(ball_in_balls(k, x), constant * interval(x) ** 2 * log(d * (d + 1)))


@checks("seqlength.cor4.2.1", "derived")
def largest_cover(w: Witness) -> Sides:
    """ln(2 d d + 1) of Lemma 3.6's cover of W_QK, d x d, over the ln(2 d k + 1) of the corollary.

    x^2 goes with both; w and W_c, W_v have 2 d + 1 and 2 d k + 1.
    """
    d, k, x = w.whole("d"), w.whole("k"), w["x"]
    assume({"d, k >= 1, x > 0": d >= 1 and k >= 1 and x > 0})
    sizes = [log(2 * n + 1) for n in (d, d * k, d * d)]
    return Sides(greatest(sizes) / sizes[1], 1)


@checks("seqlength.lemma3.2", "printed")
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


def read_out(g: Any, share: Fraction) -> Any:
    """The output for values 0, share and -share at scores 0, g and -g."""
    small = exp(-g)
    return share * (1 - small**2) / (1 + small**2 + small)


@checks("seqlength.cor4.2.1-packing", "printed", "printed, constant 100", "derived")
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
        raise BadWitness(f"d > 2 is expected, d = {d} came")
    g = interval(B_x) ** 2 / (sqrt(2) * (d - 2))
    small = exp(-g)
    output = (1 - small**2) / (1 + small**2 + small) / sqrt(2)
    C = log(2 * d * d + 1 if w.form == "derived" else 2 * d + 1)  # k = 1
    constant = 100 if "100" in w.form else 1
    sure = {
        "B_x >= 1": B_x >= 1,
        "eps > 0": eps > 0,
        "networks 2 eps apart": bool((output - interval(eps)).a >= 0),
    }
    assume(sure)
    return Sides((d - 2) * log(2), constant * printed_number(C, B_x) / interval(eps) ** 2)


@checks("seqlength.thm4.2-packing", "printed")
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


@checks("seqlength.cor-f.0.2-packing", "printed", "printed, constant 100", "derived")
def signs_in_the_l1_ball(w: Witness) -> Sides:
    """(d - 2) ln 2 against (gamma + eta)^3 / eps^2 of Corollary F.0.2, L = k = B = L_sigma = 1.

    As for Corollary 4.2.1 with tokens B_x e_0 and +-B_x (e_1 + e_i) / 2, of l_1 norm B_x at most:
    scores 0 and +-s_i g, g = B_x^2 / (2 (d - 2)), values 0 and +-1/2. ||W_QK||_{2,1} is 1 over
    columns and 1 / sqrt(d - 2) over rows; no row is longer than 1, in l_1 or l_2.
    """
    B_x, d, eps = w["B_x"], w.whole("d"), w["epsilon"]
    if d <= 3:
        raise BadWitness(f"d > 3 is expected, so that 2 d - 3 tokens are more than d; d = {d} came")
    output = read_out(interval(B_x) ** 2 / (2 * (d - 2)), Fraction(1, 2))
    sure = {
        "B_x >= 1": B_x >= 1,
        "eps > 0": eps > 0,
        "networks 2 eps apart": bool((output - interval(eps)).a >= 0),
    }
    assume(sure)
    if w.form == "derived":  # ln(d^2) for every matrix
        number = listed_number(2 * log(d))
    else:
        number = printed_number(log(d), B_x) * (100 if "100" in w.form else 1)
    return Sides((d - 2) * log(2), number / interval(eps) ** 2)


@checks("seqlength.cor-f.0.1-packing", "printed", "printed, constant 10", "derived")
def levels_in_the_l1_ball(w: Witness) -> Sides:
    """(d - 3) ln M against (gamma + eta)^3 / eps^2 of Corollary F.0.1, L = k = B = L_sigma = 1.

    Row 0 of W_QK is 1/d at coordinate 2 and l_i / d at i > 2, l_i one of M levels 2 / (M - 1) apart
    in [-1, 1]. Tokens B_x e_0 and +-B_x (15 e_1 + (e_i - t e_2) / 2) / 16, of l_1 norm B_x at most
    for |t| <= 1: scores 0 and +-B_x^2 (l_i - t) / (32 d), values 0 and +-15/16. With t between two
    levels networks that differ there are twice the read-out apart.
    """
    B_x, d, M, t, eps = w["B_x"], w.whole("d"), w.whole("M"), w["t"], w["epsilon"]
    if d <= 3 or M < 2:
        raise BadWitness(f"d > 3 and M > 1 are expected, d = {d} and M = {M} came")
    half = Fraction(1, M - 1)
    output = read_out(interval(B_x) ** 2 * half / (32 * d), Fraction(15, 16))
    sure = {
        "B_x >= 1": B_x >= 1,
        "both levels in [-1, 1]": abs(t) + half <= 1,
        "eps > 0": eps > 0,
        "networks 2 eps apart": bool((output - interval(eps)).a >= 0),
    }
    assume(sure)
    C = d * log(3)
    if w.form == "derived":
        number = listed_number(C)
    else:
        number = printed_number(C, B_x) * (10 if "10" in w.form else 1)
    return Sides((d - 3) * log(M), number / interval(eps) ** 2)


@checks(
    "seqlength.cor-f.0.1-one-constant",
    "derived, W_c^T x",
    "derived, W_c^T x, constant 10",
    "derived, W_c^T x, rows",
    "derived, W_QK x",
)
def one_constant(w: Witness) -> Sides:
    """Corollary F.0.1's d x^2 ln(2k + 1) for the maps W_c^T, d x k, and W_QK, d x d; x = 1 / eps.

    All columns +-e_i: two such maps are sqrt 2 apart at some e_j. Or rows of l_1 norm 1 in place of
    columns: W_c^T = u e_1^T, |u_i| <= 1, at x = 4 / sqrt(d).
    """
    d, k, eps = w.whole("d"), w.whole("k"), w["epsilon"]
    assume({"d, k >= 1": d >= 1 and k >= 1, "sqrt 2 >= 2 eps > 0": eps > 0 and 2 * eps**2 <= 1})
    if w.form.endswith("rows"):
        x = 4 / sqrt(d)
        return Sides(cube_in_balls(d, 1 / x), lemma_3_3(d, k, x))
    columns = d if "W_QK" in w.form else k
    constant = 10 if "10" in w.form else 1
    return Sides(columns * log(2 * d), constant * lemma_3_3(d, k, 1 / interval(eps)))
