"""Leave-one-out runs of gradient descent, Section 6.2 and Appendix C, for one token of one number.

With T = d = 1 attention is the identity: Phi = H^{-1/2} sum_h u_h x, and W stays where it starts.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..claims import checks
from ..intervals import ONE, exp, greatest, interval, softplus, sqrt, total
from ..judge import Sides, assume
from ..witness import Witness
from .losses import long_tokens


@dataclass(frozen=True)
class Heads:
    """Groups of equal heads, each with one number of U and one of W.

    Attributes:
        U, W: one number a group, intervals.
        copies: how many heads a group has.
    """

    U: np.ndarray
    W: np.ndarray
    copies: np.ndarray

    @property
    def norm(self) -> Any:
        """||theta|| over all heads."""
        return sqrt(total(self.copies * (self.U**2 + self.W**2)))

    @property
    def largest(self) -> Any:
        """||theta||_{2,inf}: of one head."""
        return greatest(sqrt(u**2 + v**2) for u, v in zip(self.U, self.W))

    def less(self, other: "Heads") -> "Heads":
        """The difference."""
        return Heads(self.U - other.U, self.W - other.W, self.copies)


@dataclass(frozen=True)
class Run:
    """The data, H and the step of a run."""

    x: np.ndarray
    y: np.ndarray
    root: Any
    step: Any

    def margins(self, theta: Heads) -> np.ndarray:
        """y Phi of each sample."""
        return self.y * self.x * total(theta.copies * theta.U) / self.root

    def losses(self, theta: Heads) -> np.ndarray:
        """Logistic losses of each sample."""
        return np.array([softplus(-m) for m in self.margins(theta)], object)

    def moved(self, theta: Heads, left_out: int | None) -> Heads:
        """One step on (1/n) sum over the samples but the one that is left out."""
        slopes = np.array([ONE / (ONE + exp(m)) for m in self.margins(theta)], object)
        pulls = slopes * self.y * self.x
        kept = total(pull for j, pull in enumerate(pulls) if j != left_out)
        step = self.step * kept / (len(pulls) * self.root)
        return Heads(theta.U + step, theta.W, theta.copies)


EQ_21: Any = {
    "formula": (
        "||theta_{k+1} - theta_{k+1}^{-i}|| <= ((1 + eta beta~_3 / sqrt(H)) max L^{-i}) "
        "||theta_k - theta_k^{-i}|| + eta beta_1(theta_k) l_i(theta_k) / n"
    ),
    "size": "n T=1 d=1",
    "leaves": {
        "X": "f n T d",
        "y": "i n",
        "copies": "f G",
        "U": "f G T d",
        "W": "f G d d",
        "U0": "f G T d",
        "W0": "f G d d",
        "step": "f",
        "K": "i",
    },
}


@checks(
    "multihead.eq21",
    "printed",
    (
        "||theta_{k+1} - theta_{k+1}^{-i}||",
        "<=",
        (
            "(1 + eta beta_3 / sqrt(H)) max L^{-i} ||theta_k - theta_k^{-i}|| + eta "
            "beta_1(theta_k) l_i(theta_k) / n"
        ),
    ),
    text="d643cf4cbcbbb4334643cad501aa9a89",
    **EQ_21,
)
@checks(
    "multihead.eq21",
    "printed, (89)",
    (
        "||theta_{k+1} - theta_{k+1}^{-i}||",
        "<=",
        (
            "(1 + 4 eta beta_3 / (3 sqrt(H))) (L^{-i}(theta_k) + L^{-i}(theta_k^{-i})) ||theta_k "
            "- theta_k^{-i}|| + eta beta_1(theta_k) l_i(theta_k) / n"
        ),
    ),
    text="1b5ae2dfe58d87d7e1b8404b8bd70d91",
    **EQ_21,
)
def misparenthesised(w: Witness) -> Sides:
    """The last of K steps, sample 0 left out, with T = d = 1 in all constants.

    (21): (1 + eta b3 / sqrt(H)) max L^{-i} on the segment, which is at an end, as the model is
    linear in theta; (89): (1 + 4 eta b3 / (3 sqrt(H))) (L^{-i}(theta_k) + L^{-i}(theta_k^{-i})).
    """
    copies, K = w["copies"], w.whole("K")
    assume({"1 <= K <= 100, to go through all steps": 1 <= K <= 100})
    heads = lambda U, W: Heads(*(interval(w[name].ravel()) for name in (U, W)), interval(copies))
    target, theta0 = heads("U", "W"), heads("U0", "W0")
    H = interval(sum(copies))
    x, y = interval(w["X"].ravel()), interval(w["y"])
    run = Run(x, y, sqrt(H), interval(w["step"]))
    full = alone = theta0
    for _ in range(K - 1):
        full, alone = run.moved(full, None), run.moved(alone, 0)
    n, R = len(x), greatest(abs(token) for token in x)

    apart = target.less(theta0).norm
    reach = 3 * apart + target.largest
    beta3 = 2 * R**3 * (3 * R**2 * reach + 1)  # beta_3 of (87), T = d = 1
    beta1 = R * (2 * R**2 * full.largest + 1)
    without = [total(run.losses(theta)[1:]) / n for theta in (full, alone)]
    added = run.step * beta1 / n * run.losses(full)[0]
    if w.form == "printed":
        growth = (1 + run.step * beta3 / run.root) * greatest(without)
    else:
        growth = (1 + 4 * run.step * beta3 / (3 * run.root)) * sum(without)
    rhs = growth * full.less(alone).norm + added

    after = run.moved(full, None).less(run.moved(alone, 0)).norm
    alpha = 3 * R**2 * (3 * R**3 * reach + 2 * R)  # alpha and rho of Theorem 3
    rho = (2 * R**3 / run.root + R**2 / 4) * alpha**2
    mean = lambda theta: total(run.losses(theta)) / n
    step = run.step
    sure = {
        "R >= 1": long_tokens(w["X"]),
        "labels are signs": all(label in (1, -1) for label in w["y"]),
        "copies are counts": all(c >= 1 and c.denominator == 1 for c in copies),
        "(84)": bool((run.root - 128 * beta3 * apart**2).a >= 0),
        "0 < eta <= 1": 0 < w["step"] <= 1,
        "eta rho <= 1": bool((step * rho).b <= 1),
        "eta K L(theta) <= D^2": bool((step * K * mean(target) - apart**2).b <= 0),
        "eta L(theta_0) <= D^2": bool((step * mean(theta0) - apart**2).b <= 0),
    }
    assume(sure)
    return Sides(after, rhs)
