"""The model of eq. (1), its loss and their derivatives: Sections 2 and 6, Appendix A."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from ..claims import checks
from ..intervals import (
    ONE,
    between,
    exp,
    greatest,
    interval,
    least_eigenvalue,
    norm,
    positive_definite,
    softmax,
    softplus,
    spectral_norm,
    sqrt,
    total,
)
from ..jets import Jet, softmax_of_jets, variables
from ..judge import Sides, assume
from ..witness import Witness

PIECES = 300
"""Of a segment so many are tried; a minimum at an end needs some 180."""


def attention(X: np.ndarray, W: np.ndarray) -> np.ndarray:
    """phi(X W X^T) by rows, (T, T)."""
    return np.stack([softmax(row) for row in interval(X) @ interval(W) @ interval(X).T])


def model(X: np.ndarray, U: np.ndarray, W: np.ndarray) -> Any:
    """Phi(X; W, U) = <U, phi(X W X^T) X>, eq. (1)."""
    return total((interval(U) * (attention(X, W) @ interval(X))).ravel())


def model_jet(X: np.ndarray, U: np.ndarray, W: np.ndarray) -> Jet:
    """The same of jets U and W."""
    X = interval(X)
    rows = np.stack([softmax_of_jets(row) for row in X @ W @ X.T])
    return (U * (rows @ X)).sum()


def radius(X: np.ndarray) -> Any:
    """R = max ||x_t|| over tokens, along the last axis."""
    return greatest(norm(token) for token in X.reshape(-1, X.shape[-1]))


def long_tokens(X: np.ndarray) -> bool:
    """R >= 1 (Assumption 1), exactly."""
    return any(sum(token**2) >= 1 for token in X.reshape(-1, X.shape[-1]))


def _signs(labels: np.ndarray) -> bool:
    return all(y in (1, -1) for y in np.ravel(labels))


@checks(
    "multihead.eq24.loss",
    "printed",
    ("L", "<=", "1"),
    formula="L' <= L <= 1",
    text="b16a56827c829b3031b0762b608790e3",
    size="n T d H",
    leaves={"X": "f n T d", "y": "i n", "U": "f H T d", "W": "f H d d"},
)
def loss_below_one(w: Witness) -> Sides:
    """Eq. (24): L <= 1, where L = mean log(1 + e^{-y Phi}) with Phi = H^{-1/2} sum over heads."""
    X, y, H = w["X"], w["y"], w.size["H"]
    assume({"R >= 1": long_tokens(X), "labels are signs": _signs(y)})
    outputs = [total(model(x, U, W) for U, W in zip(w["U"], w["W"])) / sqrt(H) for x in X]
    loss = total(softplus(-label * out) for label, out in zip(y, outputs)) / len(X)
    return Sides(loss, 1)


@checks(
    "multihead.eq25",
    "printed, early version",
    ("phi'(v)", "=", "diag(phi(v)) - v v^T"),
    formula="phi'(v) = diag(phi(v)) - phi(v) phi(v)^T",
    text="ff82cdc8d3c083f6a37686b81551d78b",
    size="T",
    leaves={"v": "f T"},
)
def softmax_derivative(w: Witness) -> Sides:
    """phi'(v) = diag(phi(v)) - v v^T, as the early version prints it; the left by jets."""
    v = interval(w["v"])
    truth = np.stack([entry.gradient for entry in softmax_of_jets(variables(w["v"]))])
    return Sides(truth, np.diag(softmax(v)) - np.outer(v, v))


@checks(
    "multihead.sec5.2.phi0",
    "printed",
    ("phi'(0)", "=", "I - (1/T) 1 1^T"),
    formula="phi'(0) = I - (1/T) 1 1^T",
    text="4a55d41f5076ac7a5b66c8f59732afad",
    size="T",
    leaves={"v": "f T"},
)
def softmax_derivative_at_zero(w: Witness) -> Sides:
    """phi'(0) = I - (1/T) 1 1^T, Section 5.2."""
    v, T = w["v"], w.size["T"]
    assume({"v = 0": not v.any(), "of T entries": len(v) == T})
    truth = np.stack([entry.gradient for entry in softmax_of_jets(variables(v))])
    printed = np.eye(T, dtype=int) - np.full((T, T), Fraction(1, T), object)
    return Sides(truth, printed)


@checks(
    "multihead.footnote1.pooling",
    "printed",
    ("||grad_u Phi|| for U = 1_T u^T", "<=", "sqrt(T) R"),
    formula="pooling U = 1_T u^T: ||grad_u Phi|| <= sqrt(T) R",
    text="dab4610b11a882bb186b3c9c83713298",
    size="T d",
    leaves={"X": "f T d", "U": "f T d", "W": "f d d"},
)
def pooled_gradient(w: Witness) -> Sides:
    """With U = 1_T u^T: grad_u Phi = sum over rows of phi(X W X^T) X, against sqrt(T) R."""
    X = w["X"]
    assume({"R >= 1": long_tokens(X)})
    pooled = (attention(X, w["W"]) @ interval(X)).sum(axis=0)
    bound = sqrt(len(X)) * radius(X)
    return Sides(norm(pooled), bound)


@checks(
    "multihead.footnote1.pooling.w",
    "printed",
    ("||grad_W Phi|| for U = 1_T u^T", "<=", "2 sqrt(T) R^3 ||u||"),
    formula="pooling U = 1_T u^T: ||grad_W Phi||_F <= 2 sqrt(T) R^3 ||u||",
    text="dd24e8238a065abea3c8b1e16aa7a580",
    size="T d",
    leaves={"X": "f T d", "U": "f T d", "W": "f d d"},
)
def pooled_inner_gradient(w: Witness) -> Sides:
    """With U = 1_T u^T: grad_W Phi, against 2 sqrt(T) R^3 ||u||; the model is linear in u."""
    X, u = w["X"], w["U"][0]
    assume({"R >= 1": long_tokens(X)})
    slope = model_jet(X, interval(np.broadcast_to(u, X.shape)), variables(w["W"])).gradient
    return Sides(norm(slope), 2 * sqrt(len(X)) * radius(X) ** 3 * norm(u))


@checks(
    "multihead.eq49",
    "printed",
    ("||d^2 Phi / dvec(U) dvec(W)||", "<=", "||(49)||"),
    formula="||Hess_UW Phi|| <= ||(49)||, the matrix that the proof of Proposition 1 bounds",
    text="fe99e1c2d6e2a57f3561fd1c9f65b09b",
    size="T d",
    leaves={"X": "f T d", "U": "f T d", "W": "f d d"},
)
def realigned_mixed_hessian(w: Witness) -> Sides:
    """The Hessian in vec(U), vec(W), and (49): d^2 Phi / dU_tj dW_kl at (t, k), (j, l)."""
    X, (T, d) = w["X"], w["X"].shape
    assume({"R >= 1": long_tokens(X)})
    point = variables(np.concatenate([w["U"].ravel(), w["W"].ravel()]))
    phi = model_jet(X, point[: T * d].reshape(T, d), point[T * d :].reshape(d, d))
    mixed = phi.hessian[: T * d, T * d :]
    moved = mixed.reshape(T, d, d, d).transpose(0, 2, 1, 3).reshape(T * d, d * d)
    return Sides(spectral_norm(mixed), spectral_norm(moved))


@checks(
    "multihead.eq51",
    "printed",
    ("||d^2 Phi / dvec(W)^2||", "<=", "||(51)||"),
    formula="||Hess_WW Phi|| <= ||(51)||, the matrix that the proof of Proposition 1 bounds",
    text="70de1f2df874f03fef05b16d5159ffa3",
    size="T d",
    leaves={"X": "f T d", "U": "f T d", "W": "f d d"},
)
def misarranged_hessian(w: Witness) -> Sides:
    """The Hessian in vec(W), and (51): in block (i, j) d^2 Phi / dW_ij dW_kl at (k, l)."""
    X, d = w["X"], w.size["d"]
    assume({"R >= 1": long_tokens(X)})
    hessian = model_jet(X, interval(w["U"]), variables(w["W"])).hessian
    blocks = hessian.reshape(d, d, d, d).transpose(0, 2, 1, 3).reshape(d * d, d * d)
    return Sides(spectral_norm(hessian), spectral_norm(blocks))


@checks(
    "multihead.eq14",
    "printed, early version",
    (
        "-(1/2) min lambda_min(Hess L) ||D||^2",
        "<=",
        "-(L(theta_k + D) - L(theta_k) - <grad L(theta_k), D>)",
    ),
    formula=(
        "L(theta) >= L(theta_k) + <grad L(theta_k), theta - theta_k> + (1/2) min lambda_min "
        "||theta - theta_k||^2"
    ),
    text="5eee9746c33f418bdee08891cc5e4a4e",
    size="n=1 T d H=1",
    leaves={
        "X": "f n T d",
        "y": "i n",
        "U": "f H T d",
        "W": "f H d d",
        "dU": "f H T d",
        "dW": "f H d d",
    },
)
def taylor_upper(w: Witness) -> Sides:
    """The early version's (14), with theta = theta_k + D on one sequence and one head:

    L(theta) - L(theta_k) - <grad L(theta_k), D> <= 1/2 min over the segment of lambda_min ||D||^2;
    both sides with their signs turned, as the witness has them. D does not move W, so that Phi is
    linear on the segment, and grad Phi and Hess Phi are affine.
    """
    (X,), (y,), (U,), (W,), (dU,), (dW,) = (w[name] for name in ("X", "y", "U", "W", "dU", "dW"))
    assume({"R >= 1": long_tokens(X), "labels are signs": _signs(w["y"])})
    if dW.any():
        raise ValueError("dW = 0 is expected: Phi is to be linear on the segment")
    step = interval(np.concatenate([dU, dW]).ravel())

    def model_at(outer: np.ndarray) -> Jet:
        theta = variables(np.concatenate([outer, W]))
        return model_jet(X, theta[: len(U)], theta[len(U) :]) * int(y)

    first, last = model_at(U), model_at(U + dU)

    def hessian(at: Any) -> np.ndarray:
        """Hess L = l''(m) g g^T + l'(m) Hess m of the margin m = y Phi, at theta_k + at D."""
        margin, gradient, curved = (
            a + at * (b - a)
            for a, b in (
                (first.value, last.value),
                (first.gradient, last.gradient),
                (first.hessian, last.hessian),
            )
        )
        slope = -ONE / (ONE + exp(margin))
        return slope * curved - slope * (ONE + slope) * np.outer(gradient, gradient)

    slope = -ONE / (ONE + exp(first.value))
    rise = softplus(-last.value) - softplus(-first.value) - slope * total(first.gradient * step)
    return Sides(-_least_curvature(hessian) * total(step**2) / 2, -rise)


def _least_curvature(hessian: Callable[[Any], np.ndarray]) -> Any:
    """min over [0, 1] of lambda_min: an end is above it; no piece of the segment is far below."""
    ends = [least_eigenvalue(hessian(interval(at))) for at in (0, 1)]
    upper = min(ends, key=lambda value: value.b)
    lower = upper - abs(upper) / 10**7
    pieces, tried = [(Fraction(0), Fraction(1))], 0
    while pieces:
        left, right = pieces.pop()
        tried += 1
        if tried > PIECES:
            raise ValueError("lambda_min is not least at an end of the segment, or hardly so")
        found = hessian(between(left, right))
        if not positive_definite(found - interval(lower.a) * np.eye(len(found), dtype=object)):
            middle = (left + right) / 2
            pieces += [(left, middle), (middle, right)]
    return between(lower, upper)
