"""Corollaries D.0.2 and F.0.2 with the omitted logarithms: Dudley's integral in closed form.

Lemma 3.4 with constants (`linear_bounds.lemma_3_4_explicit`) is at most

    ln N(epsilon) <= (A / epsilon^2) ln s(epsilon),
    s(epsilon) = letters (log2(2 kappa^2 / epsilon^2) + 2) + 1

for epsilon <= kappa, and ln N(epsilon) = 0 for larger epsilon. Here kappa = B_w B_x, A = 2 kappa^2
and letters = 2 d k. The function s is linear in t = ln(1 / epsilon). If D is Dawson's function,
then

    int sqrt(ln s) ds = G(s) = s (sqrt(ln s) - D(sqrt(ln s))),

so int_delta^U sqrt(ln N / m) d epsilon = sqrt(A / m) (ln 2 / (2 letters)) (G(s(delta)) - G(s(U))).
In a network, kappa and `letters` are the largest values over its matrices, and A = 2 gamma^3 by
Lemma E.1.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.renamed import renamed
from jaxbounds.seqlength.dudley import CERTIFIED
from jaxbounds.seqlength.multi_layer import (
    Constants,
    NetworkNorms,
    covering_constant,
    terms_corrected,
)
from jaxbounds.seqlength.single_layer import attention_lipschitz


class LogarithmicEntropy(NamedTuple):
    """The bound ln N(epsilon) <= (A / epsilon^2) ln s(epsilon) for epsilon <= kappa, and 0 beyond.

    Attributes:
        kappa: the scale above which a single function covers the class.
        letters: the factor in s = letters (log2(2 kappa^2 / epsilon^2) + 2) + 1, equal to 2 d k for
            one matrix.
    """

    A: float
    kappa: float
    letters: float

    def argument(self, epsilon: float) -> float:
        """Compute s(epsilon), the argument of the logarithm in the bound, for epsilon <= kappa."""
        return self.letters * (2.0 * math.log2(self.kappa / epsilon) + 3.0) + 1.0


def log_integral(s: float, /) -> float:
    """Compute G(s) = s (sqrt(ln s) - D(sqrt(ln s))) for s >= 1; its derivative is sqrt(ln s)."""
    root = math.sqrt(math.log(s))
    return s * (root - float(scipy.special.dawsn(root)))


def entropy_integral(entropy: LogarithmicEntropy, delta: float, upper: float, m: int, /) -> float:
    """Compute int_delta^upper sqrt(ln N / m) d epsilon in closed form, for 0 < delta <= upper."""
    upper = min(upper, entropy.kappa)
    if delta >= upper:
        return 0.0
    grown = log_integral(entropy.argument(delta)) - log_integral(entropy.argument(upper))
    return math.sqrt(entropy.A / m) * math.log(2.0) / (2.0 * entropy.letters) * grown


def logarithmic_dudley(
    entropy: LogarithmicEntropy, m: int, B: float, /, *, signs: int = 1
) -> float:
    """Minimise delta + (B - delta) sqrt(ln(signs) / m) + int_delta^B sqrt(ln N / m) over delta.

    For each member of the cover, the class contains `signs` functions, one for each sign and
    coordinate (Appendix C). The Rademacher complexity is at most 12 times the returned minimum,
    which is at most B.

    Raises:
        Refused: if m < 1, B or kappa is not positive, or `signs` is below 1.
    """
    if m < 1 or not (B > 0 and entropy.kappa > 0 and signs >= 1):
        raise Refused(
            f"m={m}, signs={signs}, B={B}, entropy={entropy}: expected m, signs >= 1 and B, "
            f"entropy.kappa > 0. Try m=1"
        )
    a, upper = math.sqrt(math.log(signs) / m), min(B, entropy.kappa)
    value = lambda delta: delta + (B - delta) * a + entropy_integral(entropy, delta, B, m)
    # The derivative, 1 - a - sqrt(ln N / m), changes sign once.
    slope = lambda delta: (
        delta * (1.0 - a) - math.sqrt(entropy.A * math.log(entropy.argument(delta)) / m)
    )
    if a >= 1.0:
        return B
    if slope(upper) <= 0.0:
        return min(B, value(upper))
    low = 1e-12 * upper
    return min(B, value(low if slope(low) >= 0.0 else scipy.optimize.brentq(slope, low, upper)))


def entropy_D_0_2(
    B_x: float, B_QK: float, d: int, /, *, softmax_constant: float = 2.0, B_inf: float | None = None
) -> LogarithmicEntropy:
    """Return the entropy of {X -> e_j^T X^T softmax(X W_QK^T x_cls)} for ||W_QK||_{2,1} <= B_QK.

    The number B_QK bounds the sum of the l_2 norms of W_QK's columns. The columns of W_QK are the
    rows of the map x -> W_QK^T x (erratum E3). The CLS tokens have l_1 norm at most B_x.
    """
    kappa = float(attention_lipschitz(B_x, B_inf, softmax_constant=softmax_constant)) * B_QK * B_x
    return LogarithmicEntropy(2.0 * kappa**2, kappa, 2.0 * d**2)


def corollary_D_0_2_explicit(
    product: float, B_x: float, B_QK: float, m: int, d: int, /, *, softmax_constant: float = 2.0
) -> float:
    """Compute 2 B min(B_x, 12 E), Corollary D.0.2 with its logarithms.

    The number E is the value of `logarithmic_dudley`. The argument `product` is B = B_w B_Wc
    L_sigma B_Wv, with the norms of B over columns (erratum E4).
    """
    entropy = entropy_D_0_2(B_x, B_QK, d, softmax_constant=softmax_constant)
    E = logarithmic_dudley(entropy, m, B_x, signs=2 * d)
    return 2.0 * product * min(B_x, CERTIFIED * E)


def entropy_F_0_2(
    norms: NetworkNorms, B: float, d: int, k: int, layers: int, /, *, softmax_constant: float = 2.0
) -> LogarithmicEntropy:
    """Return the entropy of the multi-layer network by Lemma E.1, for row norms at most B.

    The row norms of each matrix sum to at most B. Tokens have l_1 norm at most 1 after every layer
    and at most B_x before the first layer (erratum E18). The cover of matrix i has the argument x_i
    = (gamma / epsilon) sqrt(w_i), with w_i = C_i^{1/3} beta_i^{2/3} and gamma = sum w_i.
    """
    constants = Constants(*[B**2] * 4)
    listed = terms_corrected(norms, constants, layers, softmax_constant=softmax_constant)
    weights = np.cbrt(listed.C) * np.cbrt(listed.beta) ** 2
    kappa = weights.sum() * math.sqrt(weights.max())
    total = float(covering_constant(listed.C, listed.beta))
    return LogarithmicEntropy(2.0 * total, float(kappa), 2.0 * d * max(d, k))


def corollary_F_0_2_explicit(
    norms: NetworkNorms,
    B: float,
    m: int,
    d: int,
    k: int,
    layers: int,
    /,
    *,
    softmax_constant: float = 2.0,
) -> float:
    """Compute Corollary F.0.2 with its logarithms: 12 times the result of `logarithmic_dudley`.

    The result is at most `norms.B_w`, which bounds ||w||_2. The tokens after every layer are in the
    l_1 unit ball.
    """
    entropy = entropy_F_0_2(norms, B, d, k, layers, softmax_constant=softmax_constant)
    B_w = float(np.asarray(norms.B_w))
    return min(B_w, CERTIFIED * logarithmic_dudley(entropy, m, B_w))


__getattr__ = renamed(
    __name__,
    {
        "corollary_D_0_2": "corollary_D_0_2_explicit",
        "corollary_F_0_2": "corollary_F_0_2_explicit",
    },
)
