"""The tokenized mixture DM1 of Section 5: a sequence, its constants, the oracle and its margins."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ..intervals import (
    interval,
    norm,
    sqrt,
)
from ..jets import variables
from ..witness import Witness
from .losses import model, model_jet

SEQUENCE = {"S": "f", "y": "i", "relevant": "b T", "choice": "i T", "z": "f T d", "p": "f d"}
"""The arrays that describe one sequence, and p, the part of U that is off its centre."""

SEQUENCES = {
    "S": "f",
    "y": "i n",
    "relevant": "b n T",
    "choice": "i n T",
    "z": "f n T d",
    "p": "f d",
}
"""The same of n sequences."""


@dataclass(frozen=True)
class Mixture:
    """One sequence of DM1 with patterns S e_1 = mu_+, S e_2 = mu_-, S e_{2+l} = nu_l.

    Of d dimensions one is outside of the patterns' span: M = d - 3. Z_mu, Z_nu and Z are the least
    that the noise allows.

    Attributes:
        S: the norm of the patterns.
        y: the label.
        relevant: by token, whether it is mu_y.
        choice: by token, which nu it is where it is not relevant.
        z: the noise of tokens that are not relevant, (T, d).
    """

    S: Fraction
    y: Fraction
    relevant: np.ndarray
    choice: np.ndarray
    z: np.ndarray

    @property
    def valid(self) -> bool:
        """Whether this is DM1: a label, tokens of both kinds, of which mu_y has no noise."""
        flags = set(self.relevant)
        return (
            self.S > 0
            and self.M >= 1
            and self.y in (1, -1)
            and flags == {Fraction(0), Fraction(1)}
            and not self.z[self.relevant == 1].any()
            and all(c.denominator == 1 and 0 <= c < self.M for c in self.choice)
        )

    @property
    def T(self) -> int:
        return len(self.relevant)

    @property
    def M(self) -> int:
        return self.z.shape[-1] - 3

    @property
    def zeta(self) -> Fraction:
        """The share of relevant tokens."""
        return sum(self.relevant) / Fraction(self.T)

    @property
    def pattern(self) -> np.ndarray:
        """mu_+, mu_-, nu_1, ..., nu_M."""
        return self.S * np.eye(self.z.shape[-1], dtype=int).astype(object)[: self.M + 2]

    @cached_property
    def X(self) -> np.ndarray:
        """The tokens, (T, d), exact."""
        mu = self.pattern[0 if self.y == 1 else 1]
        rows = [
            mu if flag else self.pattern[2 + int(c)] + z
            for flag, c, z in zip(self.relevant, self.choice, self.z)
        ]
        return np.stack(rows)

    @property
    def noise(self) -> np.ndarray:
        """z of the tokens that have some."""
        return self.z[self.relevant == 0]

    @property
    def Z_mu(self) -> Fraction:
        return self.S * abs(self.noise[:, :2]).max()

    @property
    def Z_nu(self) -> Fraction:
        return self.M * self.S * abs(self.noise[:, 2 : 2 + self.M]).max()

    @property
    def Z_bar(self) -> Fraction:
        return max(self.Z_mu, self.Z_nu)

    @property
    def Z_squared(self) -> Fraction:
        return max(sum(z**2) for z in self.noise)

    @property
    def R(self) -> Any:
        """sqrt(S^2 + Z^2 + 2 Z_nu / M), Assumption 3."""
        return sqrt(self.S**2 + self.Z_squared + 2 * self.Z_nu / self.M)

    @property
    def classifier(self) -> np.ndarray:
        """u* = mu_+ - mu_-."""
        return self.pattern[0] - self.pattern[1]

    @property
    def oracle(self) -> tuple[np.ndarray, np.ndarray]:
        """U* = 1_T u*^T and W* of (104), exact."""
        plus, minus, *nus = self.pattern
        W = np.outer(plus, plus) + np.outer(minus, minus)
        W = W + sum(np.outer(nu, plus + minus) for nu in nus)
        return np.stack([self.classifier] * self.T), W

    @property
    def unit_oracle(self) -> tuple[np.ndarray, np.ndarray]:
        """Both at Frobenius norm one."""
        U, W = self.oracle
        return interval(U) / norm(U), interval(W) / norm(W)

    def gamma_star(self, P: Any) -> Any:
        """(7), (119), where the roots go over 2 (M + 1) and over 2."""
        S, T, zeta, Z = interval(self.S), self.T, interval(self.zeta), interval(self.Z_bar)
        gain = zeta * S**4 - 7 * Z * S**2 - 12 * Z**2 - 16 * Z**3 / S**2
        first = T * (1 - zeta) * zeta * gain / (4 * sqrt(2 * (self.M + 1)))
        second = interval(P) * sqrt(T) ** 5 * (S + sqrt(self.Z_squared)) ** 3
        third = S * sqrt(T) / sqrt(2) * (zeta - 2 * (1 - zeta) * interval(self.Z_mu) / S**2)
        return first - second + third

    def margins(self, row: np.ndarray) -> tuple[Any, Any]:
        """y <grad Phi, (U*, 0)> and y <grad Phi, (0, W*)> where U = 1_T row^T and W = 0.

        The first by linearity in U, the second by jets along W*.
        """
        U, W = self.unit_oracle
        rows, nothing = np.stack([row] * self.T), 0 * self.oracle[1]
        (s,) = variables(np.array([Fraction(0)], object))
        along = model_jet(self.X, interval(rows), W * s)
        return int(self.y) * model(self.X, U, nothing), int(self.y) * along.gradient[0]


def sequences(w: Witness) -> list[Mixture]:
    """The sequences of an instance: one, or as many as y has labels."""
    y = w["y"] if isinstance(w["y"], np.ndarray) else np.array([w["y"]], object)
    T = w.size["T"]
    rows = zip(y, *(w[name].reshape(len(y), T, -1) for name in ("relevant", "choice", "z")))
    return [Mixture(w["S"], label, flags[:, 0], c[:, 0], z) for label, flags, c, z in rows]


def one_sequence(w: Witness) -> Mixture:
    """The only sequence of an instance."""
    (found,) = sequences(w)
    return found
