"""A cover of linear maps on given points in l_2, by corrections (Lemma 3.5, explicit constants).

The class is W in R^{k x d} with ||W^T||_{2,1} <= B (rows), on x_1, .., x_N with ||x_i||_2 <= B_x.
The bound depends on x = B B_x / epsilon and on a ratio q > 1. Zhang (2002) proves such a bound with
the constant 36. As in his proof, the code of W lists the corrections of a perceptron that starts at
0 and approaches W.

Row j has norm r_j. Its level is l_j = ceil(log_q(B / r_j)), and its weight rho_j = B q^{-l_j} is in
(r_j / q, r_j]. The resolution epsilon_j of row j satisfies epsilon_j^2 = epsilon^2 rho_j / B, so
that sum_j epsilon_j^2 <= epsilon^2. The algorithm starts at V = 0. While ||(W - V) x_i||_2 >=
epsilon for some point x_i, some row j has |e_j| >= epsilon_j, where e_j = (w_j - v_j) . x_i. The
correction adds sign(e_j) (epsilon_j / B_x^2) x_i to the row v_j of V. Then project V onto the class
in the norm F(V) = sum_j ||v_j||^2 / rho_j, where rho_j is the weight of row j. The correction
lowers F(W - V) by at least epsilon_j^2 / (B_x^2 rho_j) = epsilon^2 / (B B_x^2). The projection onto
the class does not increase F(W - V), because W is in the class. At the start F(W) <= q sum_j r_j <=
q B, so there are at most q x^2 corrections.

The code has one letter for each correction. The letter names a row, a point, a sign and the row's
level. A row that the algorithm corrects has r_j B_x >= epsilon_j. Hence B / r_j < q x^2 for a
corrected row j, and the row's level l_j is at most ceil(log_q(q x^2)). The letters of the code
determine the matrix V at which the algorithm stops, and this V is in the class. The cover is
therefore internal (a subset of the class) and strict (its errors are below epsilon). The log size
of the cover is at most floor(q x^2) ln(2 k N (ceil(log_q(q x^2)) + 1) + 1).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.seqlength.norms import require_norm

Matrix = Float[np.ndarray, "k d"]


class Letter(NamedTuple):
    """One correction: a row of V, the index and sign of the added point, and the row's level."""

    row: int
    point: int
    sign: int
    level: int


def project_rows(V: Matrix, weights: Float[np.ndarray, " k"], B: float, /) -> Matrix:
    """Project V onto {||V^T||_{2,1} <= B}; distances are measured by sum_j ||v_j||^2 / weights_j.

    The projection shortens row j by t weights_j, or makes it zero, for the least t >= 0 that
    reaches the set.
    """
    lengths = np.linalg.norm(V, axis=1)
    if lengths.sum() <= B:
        return V
    order = np.argsort(-lengths / weights)
    candidates = (np.cumsum(lengths[order]) - B) / np.cumsum(weights[order])
    kept = np.maximum(lengths - candidates.max() * weights, 0.0)
    return V * (kept / np.where(lengths > 0, lengths, 1.0))[:, None]


def _decode(
    V: Matrix, weights: np.ndarray, letter: Letter, X: np.ndarray, B: float, step: float, q: float
) -> Matrix:
    """Add +- `step` sqrt(weight / B) times a row of X to a row of V, and project V."""
    row, point, sign, level = letter
    weights[row] = B * q**-level
    V = V.copy()
    V[row] += sign * step * math.sqrt(weights[row] / B) * X[point]
    return project_rows(V, weights, B)


def decode_corrections(
    letters: Sequence[Letter],
    X: Float[np.ndarray, "N d"],
    B: float,
    epsilon: float,
    k: int,
    /,
    *,
    ratio: float = 2.0,
) -> Matrix:
    """Decode a member of the cover from its list of corrections, without use of W."""
    V, weights = np.zeros((k, X.shape[1])), np.ones(k)
    step = epsilon / (np.linalg.norm(X, axis=1).max() ** 2 or 1.0)
    for letter in letters:
        V = _decode(V, weights, letter, X, B, step, ratio)
    return V


def encode_corrections(
    W: Matrix, X: Float[np.ndarray, "N d"], B: float, epsilon: float, /, *, ratio: float = 2.0
) -> tuple[Letter, ...]:
    """Encode a member of the cover whose outputs are within `epsilon` of those of W, in l_2.

    W has ||W^T||_{2,1} <= B, the points are the rows of X, and `ratio` is the number q > 1 of the
    module's docstring.

    Raises:
        Refused: if the norm is above B, epsilon is not positive, or q is not above 1.
    """
    lengths = np.linalg.norm(W, axis=1)
    require_norm(lengths.sum(), B, of="||W^T||_{2,1}")
    if not (epsilon > 0 and ratio > 1):
        raise Refused(
            f"epsilon={epsilon} and ratio={ratio}, expected epsilon > 0 and a ratio > 1 of "
            f"neighbouring levels. Try ratio=2"
        )
    present = lengths > 0
    exact = np.log2(B / np.where(present, lengths, B)) / math.log2(ratio)
    # A row of norm B q^-l must get level l although the computed logarithm is rounded.
    near = np.abs(exact - np.round(exact)) < 1e-12
    levels = np.where(near, np.round(exact), np.ceil(exact)).astype(int)
    resolutions = np.where(present, epsilon * ratio ** (-levels / 2.0), np.inf)
    V, weights = np.zeros_like(W), np.ones(len(W))
    letters: list[Letter] = []
    step = epsilon / (np.linalg.norm(X, axis=1).max() ** 2 or 1.0)
    while True:
        errors = (W - V) @ X.T
        point = int(np.argmax(np.linalg.norm(errors, axis=0)))
        if np.linalg.norm(errors[:, point]) < epsilon:
            return tuple(letters)
        row = int(np.argmax(np.abs(errors[:, point]) / resolutions))
        sign = 1 if errors[row, point] > 0 else -1
        letters.append(Letter(row, point, sign, int(levels[row])))
        V = _decode(V, weights, letters[-1], X, B, step, ratio)
