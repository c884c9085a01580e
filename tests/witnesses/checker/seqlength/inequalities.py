"""Single displays: norms, sparsification, peeling, the entropy integral's minimum, Y_[CLS]."""

from fractions import Fraction
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from ..claims import checks
from ..intervals import greatest, interval, least, log, norm, power, softmax, sqrt, total
from ..judge import Sides, assume
from ..witness import Witness


@checks(
    "seqlength.sec2.1.norm",
    "printed",
    ("||W||_{q,p} with the outer l_r", "=", "||W||_{q,p} with the outer l_p"),
    formula="||W||_{q,p} = || (||W_{:,1}||_q, .., ||W_{:,d}||_q) ||_r; l_p is meant",
    text="96d39bd71128c9da088286bc79f6b793",
    size="k d",
    leaves={"W": "f k d"},
)
def printed_norm(w: Witness) -> Sides:
    """||W||_{q,p} with the outer l_r that Section 2.1 prints, r rows, and with the l_p it means.

    At (q, p) = (2, 1), (1, inf), (1, 1) and (2, 2).
    """
    assume({"W is r x d": w["W"].shape == (w.size["k"], w.size["d"])})
    W, r = interval(w["W"]), w["W"].shape[0]
    columns = {1: [total(abs(x) for x in c) for c in W.T], 2: [norm(c) for c in W.T]}
    outer = lambda q: power(total(power(x, r) for x in columns[q]), Fraction(1, r))
    meant = [total(columns[2]), greatest(columns[1]), total(columns[1]), norm(W)]
    return Sides([outer(2), outer(1), outer(1), outer(2)], meant)


@checks(
    "seqlength.lemma3.1.count",
    "printed",
    ("binom(n + K, K)", "<=", "n^K"),
    formula="#{k in Z_{>=0}^d : sum k_i <= K} <= d^K",
    text="2d202e150953f5910235000ad06602fe",
    size="largest=4",
    leaves={"n": "i", "K": "i"},
)
def number_of_sparse(w: Witness) -> Sides:
    """#{k in Z_{>=0}^n : sum k_i <= K} = binom(n + K, K), against n^K."""
    n, K = w.whole("n"), w.whole("K")
    largest = w.size["largest"]
    assume({"n, K >= 1": n >= 1 and K >= 1, "n, K <= largest": max(n, K) <= largest})
    return Sides(comb(n + K, K), n**K)


@checks(
    "seqlength.lemma3.1",
    "printed",
    ("min ||f - (1/k) sum k_i V_i||^2", "<=", "(gamma^2 b^2 - ||f||^2) / k"),
    formula=(
        "exists k_i >= 0, sum k_i <= k: ||f - (1/k) sum k_i V_i||^2 <= (gamma^2 b^2 - ||f||^2) / k"
    ),
    text="1a23a13ed677c405f9ba3a294699a51d",
    size="n dim k=1",
    leaves={"vectors": "f n dim", "weights": "f n"},
)
def sparsification(w: Witness) -> Sides:
    """The least ||f - (1/k) sum k_i V_i||^2 over sum k_i <= k, against (gamma^2 b^2 - ||f||^2)/k.

    b is the largest ||V_i||, the least that the lemma allows; all is rational.
    """
    weights, V, k = w["weights"], w["vectors"], w.size["k"]
    f = weights @ V
    nothing = len(weights)  # an index that stands for no vector
    chosen = combinations_with_replacement(range(len(weights) + 1), k)
    rest = min(
        sum((f - sum((V[i] for i in picks if i != nothing), start=0 * f) / Fraction(k)) ** 2)
        for picks in chosen
    )
    gamma, b2 = sum(weights), max(sum(v**2) for v in V)
    sure = {"weights >= 0": all(a >= 0 for a in weights), "gamma <= 1": gamma <= 1}
    assume(sure)
    return Sides(rest, (gamma**2 * b2 - sum(f**2)) / k)


@checks(
    "seqlength.appc.norms",
    "derived, over rows",
    ("||P v||_2", "<=", "max_i ||P_{i,:}||_2 ||v||_1"),
    formula=(
        "||Pv||_2 <= ||P||_{2,inf} ||v||_1, and ||Xu||_inf <= ||X^T||_{2,inf} ||u||_2, attained"
    ),
    text="c86494ba1986b7ab23f78618b7422a63",
    size="d T",
    leaves={"P": "f d T", "u": "f d", "v": "f T"},
)
def longest_row(w: Witness) -> Sides:
    """||Pv||_2 <= ||P||_{2,inf} ||v||_1, the first norm over rows."""
    P, v = w["P"], w["v"]
    assume({"P, u, v are not zero": all(np.any(w[name] != 0) for name in ("P", "u", "v"))})
    rows = greatest(norm(row) for row in P)
    return Sides(norm(P @ v), rows * sum(abs(v)))


@checks(
    "seqlength.appc.holder",
    "printed",
    ("v.u", "<=", "max_{j, s} s u_j"),
    formula="v.u <= B_v max_j |u_j| = max_{j,s} s u_j, ||v||_1 <= B_v",
    text="f10541eb13366d1ae6d772f8f5252de3",
    size="d",
    leaves={"u": "f d", "v": "f d"},
)
def second_expression(w: Witness) -> Sides:
    """v.u <= max_{j, s} s u_j for ||v||_1 <= B_v, as the display's second expression says."""
    u, v = w["u"], w["v"]
    return Sides(v @ u, max(abs(x) for x in u))


@checks(
    "seqlength.appc.peeling",
    "derived",
    ("|w.W_c^T W_v^T z|", "<=", "||w||_1 ||W_c^T||_{1,inf} ||W_v^T||_{1,inf} max |z_j|"),
    formula="|w.W_c^T W_v^T z| <= ||w||_1 ||W_c^T||_{1,inf} ||W_v^T||_{1,inf} max_j |z_j|",
    text="8cf579da1f098994c7d584053b70f0c9",
    size="d k",
    leaves={"w": "f d", "W_c": "f k d", "W_v": "f d k", "z": "f d"},
)
def peeled(w: Witness) -> Sides:
    """|w.W_c^T W_v^T z| against ||w||_1 ||W_c^T||_{1,inf} ||W_v^T||_{1,inf} max |z_j|.

    ||A||_{1,inf} is the largest l_1 norm of a column (Section 2.1), here of a row of W_c and W_v.
    """
    rows = lambda A: max(sum(abs(row)) for row in A)
    lhs = abs(w["w"] @ w["W_c"].T @ w["W_v"].T @ w["z"])
    rhs = sum(abs(w["w"])) * rows(w["W_c"]) * rows(w["W_v"]) * max(abs(w["z"]))
    return Sides(lhs, rhs)


@checks(
    "seqlength.appc.optimum",
    "printed",
    (
        "min over 0 < delta <= B of delta + (B - delta) a + b ln(B/delta)",
        "=",
        "b + B a + b ln(B (1 - a) / b)",
    ),
    formula=(
        "min over 0 < delta <= B of delta + (B-delta) a + b ln(B/delta) = b + B a + b ln(B "
        "(1-a)/b), a = sqrt(ln 2d / m), b = 2 B_x^2 sqrt(C / m), B = B_x"
    ),
    text="d9d32e91a498762e8c30ddf57c7f6223",
    size="draws=24",
    leaves={"B_x": "f", "C": "f", "d": "f", "m": "f"},
)
def entropy_minimum(w: Witness) -> Sides:
    """min over 0 < delta <= B of delta + (B - delta) a + b ln(B/delta), and the printed value.

    The derivative 1 - a - b/delta changes its sign once, at b / (1 - a), from - to +: where that
    is at least B, the minimum is at delta = B.
    """
    B, C, d, m = (w[name] for name in ("B_x", "C", "d", "m"))
    sure = {
        "m > d >= 1": m > d >= 1,
        "B_x, C > 0": B > 0 and C > 0,
        "m > ln(2 d)": bool((interval(m) - log(2 * d)).a > 0) if d >= 1 else False,
    }
    assume(sure)
    a = sqrt(log(2 * d) / interval(m))
    b = 2 * interval(B) ** 2 * sqrt(C / m)
    delta = least((interval(B), b / (1 - a)))
    truth = delta + (interval(B) - delta) * a + b * log(interval(B) / delta)
    printed = b + interval(B) * a + b * log(interval(B) * (1 - a) / b)
    return Sides(truth, printed)


@checks(
    "seqlength.lemmae.1",
    "printed",
    ("(sum C_i^{1/3} beta_i^{2/3})^3 / eps^2", "<=", "sum C_i / eps_i^2"),
    formula="(sum C_i^{1/3} beta_i^{2/3})^3 / eps^2 <= sum C_i / eps_i^2, eps = sum beta_i eps_i",
    text="7437db8545dd6312d39afc4c81527712",
    size="n",
    leaves={"C": "f n", "beta": "f n", "scales": "f n"},
)
def least_cost(w: Witness) -> Sides:
    """(sum C_i^{1/3} beta_i^{2/3})^3 / eps^2 against sum C_i / eps_i^2, eps = sum beta_i eps_i."""
    C, beta, scales = w["C"], w["beta"], w["scales"]
    eps = beta @ scales
    assume({"C, beta >= 0": all(x >= 0 for x in (*C, *beta)), "eps > 0": eps > 0})
    third = Fraction(1, 3)
    gamma = total(power(c, third) * power(b, 2 * third) for c, b in zip(C, beta))
    cost = sum(c / s**2 for c, s in zip(C, scales))
    return Sides(gamma**3 / interval(eps) ** 2, cost)


@checks(
    "seqlength.sec4.1.cls",
    "printed (complexity)",
    (
        "row [CLS] of RowSoftmax(X W_QK X^T) X W_v W_c",
        "=",
        "W_c^T W_v^T X^T softmax(X W_QK x_[CLS])",
    ),
    formula=(
        "row [CLS] of sigma(RowSoftmax(X W_QK X^T) X W_v) W_c = W_c^T sigma(W_v^T X^T "
        "softmax(X W_QK^T x_[CLS]))"
    ),
    text="c5a060c645506afb85d42ac71eac2c4d",
    size="T d k",
    leaves={"X": "f T d", "W_QK": "f d d", "W_v": "f d k", "W_c": "f k d"},
)
def row_of_cls(w: Witness) -> Sides:
    """Row 0 of sigma(RowSoftmax(X W_QK X^T) X W_v) W_c, and the display with W_QK x_[CLS].

    sigma is the identity, which Section 2.6 allows; [CLS] is token 0.
    """
    X, A, W_c, W_v = (interval(w[name]) for name in ("X", "W_QK", "W_c", "W_v"))
    read = lambda scores: softmax(scores) @ X @ W_v @ W_c
    return Sides(read(X[0] @ A @ X.T), read(X @ A @ X[0]))
