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
from ..intervals import FIELD, greatest, interval, log, sqrt, total
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
    "seqlength.cord.0.orientation",
    "derived (D.0.1), W_QK^T x",
    ("ln(least cover of x -> W_QK^T x, by volume)", "<=", "d x^2 ln(2 d + 1), x = 4 / sqrt(d)"),
    size="largest=1024",
    text="fa987e4f77a2550cdf74ee0d3da3e92c",
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
    "seqlength.cord.0.orientation",
    "derived (D.0.2), W_QK x",
    ("ln(least cover of x -> W_QK x, by volume)", "<=", "x^2 ln(d^2), x = 2"),
    size="largest=1024",
    text="e4546297e40ffe33c085af35200334a2",
    **ORIENTATION,
)
@checks(
    "seqlength.cord.0.orientation",
    "derived (D.0.2), W_QK x, constant 100",
    ("ln(least cover of x -> W_QK x, by volume)", "<=", "100 x^2 ln(d^2), x = 2"),
    size="largest=1000000",
    text="71552743ecd11337d93cd1aa681c5543",
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
        "maps W_QK x, W_c^T x, W_v^T x of Appendix E; x = B / eps = 4 / sqrt n"
    ),
    "size": "largest=256",
    "leaves": {"n": "i"},
}


@checks(
    "seqlength.corf.0.1",
    "derived",
    ("ln(least cover of x -> W_QK x, by volume)", "<=", "n x^2 ln(2 n + 1), x = 4 / sqrt(n)"),
    text="c9cb2a5c9646d0a49ad339a3d8f03c0a",
    **TOKENS,
)
@checks(
    "seqlength.corf.0.1",
    "derived, W_c^T x",
    ("ln(least cover of x -> W_c^T x, by volume)", "<=", "n x^2 ln 3, x = 4 / sqrt(n)"),
    text="6fc48ca3d9d5f17d156663047c017279",
    **TOKENS,
)
@checks(
    "seqlength.corf.0.1",
    "derived, W_v^T x",
    ("ln(least cover of x -> W_v^T x, by volume)", "<=", "x^2 ln(2 n + 1), x = 4 / sqrt(n)"),
    text="5e3ab6f5b5989dd38f1cdc48717869aa",
    **TOKENS,
)
def tokens_in_a_ball(w: Witness) -> Sides:
    """Corollary F.0.1 uses Lemma 3.3 for tokens in the l_2 ball; x = 4 / sqrt(n).

    W_QK = e_1 u^T, d = k = n: W_QK x = (u.x) e_1, whose sup over the ball is ||u||_2; W_c^T = u^T,
    from R^n to R^1, whose own number is n x^2 ln 3; or W_v = v^T in R^{1 x n}, whose n columns have
    one entry each: W_v^T x = v x.
    """
    n = w.whole("n")
    assume({"1 <= n <= largest": 1 <= n <= w.size["largest"]})
    x = 4 / sqrt(n)
    inputs, outputs = {
        "derived": (n, n),
        "derived, W_c^T x": (n, 1),
        "derived, W_v^T x": (1, n),
    }[w.form]
    return Sides(cube_in_balls(n, 1 / x), lemma_3_3(inputs, outputs, x))


LEMMA_3_4: Any = {
    "formula": "ln N <~ x^2 ln(dk) for ||W||_{2,1} <= B_w, ||x||_1 <= B_x",
    "size": "d=64",
    "leaves": {"d": "i", "k": "i", "x": "f"},
}


@checks(
    "seqlength.lemma3.4.size",
    "printed",
    ("ln(least cover of ||W||_{2,1} <= B_w, by volume)", "<=", "x^2 ln(d k)"),
    text="3db057f377ef6a2e84504edf077bb0ed",
    **LEMMA_3_4,
)
@checks(
    "seqlength.lemma3.4.size",
    "printed, constant 100",
    ("ln(least cover of ||W||_{2,1} <= B_w, by volume)", "<=", "100 x^2 ln(d k)"),
    text="26737300298d0ebac3299191fdc06010",
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
    text="b48e22995b2f898c80e09c8e78344a85",
    **LEMMA_3_5,
)
@checks(
    "seqlength.lemma3.5",
    "printed, constant 100",
    ("ln(least cover of ||W||_{2,1} <= B_w, by volume)", "<=", "100 x^2 ln(d n), n = d + 1"),
    text="870f5bd8425d462da7e9a1433e6b7fd8",
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
    text="31c966c811f3bee0378a31e4905050e5",
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
    text="09fd2c56fdc242a6447538221ec135a8",
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


SHAPES: Any = {
    "formula": (
        "k ln(2d) <= ln N <= d x^2 ln(2k + 1) for W_c^T, and d ln(2d) <= ln N <= d x^2 ln(2k + 1) "
        "for W_QK, x = B / eps, inputs e_j"
    ),
    "size": "largest=1024",
    "leaves": {"d": "i", "epsilon": "f", "k": "i"},
}


@checks(
    "seqlength.corf.0.1.constant",
    "derived, W_c^T x",
    ("k ln(2 d), of maps W_c^T with columns +-e_i", "<=", "d x^2 ln(2 k + 1), x = 1 / eps"),
    text="f66986fb869e0aabd5834ba9a1eddad7",
    **SHAPES,
)
@checks(
    "seqlength.corf.0.1.constant",
    "derived, W_c^T x, constant 10",
    ("k ln(2 d), of maps W_c^T with columns +-e_i", "<=", "10 d x^2 ln(2 k + 1), x = 1 / eps"),
    text="b39599ff937cb8c20d9bb8beb5ec7264",
    **SHAPES,
)
@checks(
    "seqlength.corf.0.1.constant",
    "derived, W_c^T x, rows",
    ("ln(least cover of x -> u x_1, by volume)", "<=", "d x^2 ln(2 k + 1), x = 4 / sqrt(d)"),
    text="ec21d6842a557b6dc07e3d0a56c88571",
    **SHAPES,
)
@checks(
    "seqlength.corf.0.1.constant",
    "derived, W_QK x",
    ("d ln(2 d), of maps W_QK with columns +-e_i", "<=", "d x^2 ln(2 k + 1), x = 1 / eps"),
    text="cb8fb6e1fecd521a8987643f2a9c56cb",
    **SHAPES,
)
def one_constant(w: Witness) -> Sides:
    """Corollary F.0.1's d x^2 ln(2k + 1) for the maps W_c^T, d x k, and W_QK, d x d; x = 1 / eps.

    All columns +-e_i: two such maps are sqrt 2 apart at some e_j. Or rows of l_1 norm 1 in place of
    columns: W_c^T = u e_1^T, |u_i| <= 1, at x = 4 / sqrt(d).
    """
    d, k, eps = w.whole("d"), w.whole("k"), w["epsilon"]
    assume(
        {
            "1 <= d, k <= largest": min(d, k) >= 1 and max(d, k) <= w.size["largest"],
            "sqrt 2 >= 2 eps > 0": eps > 0 and 2 * eps**2 <= 1,
        }
    )
    if w.form.endswith("rows"):
        x = 4 / sqrt(d)
        return Sides(cube_in_balls(d, 1 / x), lemma_3_3(d, k, x))
    columns = d if "W_QK" in w.form else k
    constant = 10 if "10" in w.form else 1
    return Sides(columns * log(2 * d), constant * lemma_3_3(d, k, 1 / interval(eps)))
