"""Theorem 1's head count: d heads that show q > d tokens, Section 3.1 and Appendix A.2.

The expectation over the tokens is the witness's own: the Gauss-Hermite rule with three nodes,
0 and +-sqrt(3) with masses 2/3 and 1/6, for each of the q d coordinates. What is recomputed is the
attention, the decoding and the sum, from Sections 2 and 3 and the form's note.
"""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from ..claims import checks
from ..intervals import ONE, ZERO, exp, interval, log, sqrt, total
from ..judge import Sides, assume
from ..witness import Witness


def inverse(matrix: np.ndarray) -> np.ndarray:
    """Of a square matrix of Fractions, by elimination."""
    n = len(matrix)
    work = np.concatenate([matrix, np.eye(n, dtype=int).astype(object)], axis=1)
    for i in range(n):
        pivot = next((k for k in range(i, n) if work[k, i] != 0), None)
        if pivot is None:
            raise ValueError("the encodings of the q tokens are not independent")
        work[[i, pivot]] = work[[pivot, i]]
        work[i] = work[i] / Fraction(work[i, i])
        for k in range(n):
            if k != i:
                work[k] = work[k] - work[k, i] * work[i]
    return work[:, n:]


@checks(
    "qstr.thm1.heads",
    "derived q > d",
    ("1 - d/q", "<=", "the quadrature of (y^ - y)^2"),
    formula=(
        "H = d < q heads have risk >= 1 - H/q for the t = (1, .., q) of the proofs of "
        "Propositions 3 and 21 (any W_QK)"
    ),
    text="f7970ed483d70ab4555f857ee2734b04",
    size="N q=3 d=2 de",
    leaves={"signs": "i N de", "selectivity": "f", "beta": "f"},
)
def all_tokens_shown(w: Witness) -> Sides:
    """1 - d/q against the quadrature of (y^ - y)^2, y = sum_i (|x_i|^2 - d) / sqrt(q d).

    Encodings are signs / sqrt(de). Head k gives token j the logit (s / margin) <v, w_j> + beta x_jk
    with v the shortest such that <v, w_j> = 1 for j <= q, and margin = 1 - max_{j > q} <v, w_j>;
    its output holds sum_j alpha_j x_jk and sum_j alpha_j w_j. The pseudo-inverse of (w_1, .., w_q)
    gives back alpha, up to what the others add, and x_ik = m_k + l_i - sum_j alpha_j l_j with
    l = log(alpha) / beta. Tokens beyond the q-th are 0.
    """
    N, q, d, de = (w.size[name] for name in ("N", "q", "d", "de"))
    signs, beta = w["signs"], interval(w["beta"])
    # Everything is a ratio of integers: <w_i, w_j> = G_ij / de.
    gram = signs @ signs.T / Fraction(de)
    dual = inverse(gram[:q, :q])
    along = gram[:, :q] @ dual.sum(axis=1)  # <v, w_j>
    margin = 1 - max(along[q:])
    sure = {
        "signs": all(abs(s) == 1 for s in signs.ravel()),
        "encodings separable": margin > 0,
        "|<w_i, w_j>| <= 1/2": all(abs(g) <= Fraction(1, 2) for g in gram[~np.eye(N, dtype=bool)]),
        "d < q <= N/2 - 1": d < q <= N // 2 - 1,
        "0 < beta <= 1": 0 < w["beta"] <= 1,
    }
    assume(sure)
    select = [exp(interval(w["selectivity"] * a / margin)) for a in along]
    recover = interval(gram[:, :q] @ dual)  # (N, q): what token j adds to alpha_i
    root3 = sqrt(3)
    tilt = {c: exp(beta * root3 * c) for c in (-1, 0, 1)}
    rest = total(select[q:])
    leak = [total(select[j] * recover[j, i] for j in range(q, N)) for i in range(q)]

    def decoded(column: tuple[int, ...]) -> list[Any]:
        """One coordinate of the q tokens, from the head that tilts along it."""
        weights = [select[j] * tilt[column[j]] for j in range(q)]
        mass = total(weights) + rest
        mean = total(weight * c for weight, c in zip(weights, column)) * root3 / mass
        alpha = [(weight + more) / mass for weight, more in zip(weights, leak)]
        level = [log(a) / beta for a in alpha]
        middle = total(a * l for a, l in zip(alpha, level))
        return [mean + l - middle for l in level]

    # Both labels are sums over coordinates, so a column's error is all that a point needs.
    error = {
        column: total(x**2 for x in decoded(column)) - 3 * sum(c * c for c in column)
        for column in product((-1, 0, 1), repeat=q)
    }
    risk = ZERO
    for columns in product(error, repeat=d):
        mass = Fraction(1)
        for c in sum(columns, ()):
            mass *= Fraction(2, 3) if c == 0 else Fraction(1, 6)
        risk += interval(mass) * total(error[c] for c in columns) ** 2
    return Sides(ONE - interval(Fraction(d, q)), risk / (q * d))
