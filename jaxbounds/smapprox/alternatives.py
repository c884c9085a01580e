"""Two alternatives of Section 3 with constants: bounds by VC dimension and by products of norms.

The first bound depends on the number of parameters, the second on the product of the layers' norms,
which grows with the depth.
"""

import math
from collections.abc import Sequence

import numpy as np
import scipy
from jaxtyping import Float

from jaxbounds.ground.exceptions import Refused

LOG2 = math.log(2.0)


def sign_patterns_log_bound(parameters: Sequence[int], units: Sequence[int], n: float, /) -> float:
    """Bound the log of the number of sign patterns that ReLU networks have on n inputs.

    The bound is sum_i min(n k_i log 2, log 2 + W_i log(2 e n k_i i / W_i)). W_i counts the
    parameters of the layers 1 .. i, and k_i the units of layer i, the output included. If all units
    of earlier layers keep their signs, layer i has n k_i polynomials of degree i in W_i variables
    (Warren; Bartlett et al. 2019, Theorem 6).

    Args:
        parameters: for each layer, the number of parameters of this layer alone.
        units: the number of units of each layer.
        n: the number of inputs.

    Raises:
        Refused: if the lists differ in length or are empty.
    """
    if len(parameters) != len(units) or not parameters:
        raise Refused(
            f"parameters has length={len(parameters)} and units has length={len(units)}, expected "
            f"one entry for each layer. Try lists of equal length"
        )
    W, k = np.cumsum(np.asarray(parameters, float)), np.asarray(units, float)
    degree = np.arange(1, len(k) + 1)
    cells = np.maximum(n * k, W)  # Warren's bound is for at least as many polynomials as variables
    bound = LOG2 + W * np.log(2.0 * math.e * cells * degree / W)
    return float(np.minimum(n * k * LOG2, bound).sum())


def vc_sample_complexity_explicit(
    parameters: Sequence[int], units: Sequence[int], epsilon: float, /, *, delta: float = 0.01
) -> float:
    """Return a sample size n at which every model without training error has risk <= epsilon.

    The risk bound holds with probability 1 - delta.

    The number n satisfies 2 Pi(2n) 2^{-epsilon n / 2} <= delta and n >= 8 / epsilon (Blumer et al.
    1989, Theorem A2.1). Pi(m) is the largest number of sign patterns on m inputs
    (`sign_patterns_log_bound`).
    """

    def excess(log_n: float) -> float:
        n = math.exp(log_n)
        patterns = sign_patterns_log_bound(parameters, units, 2.0 * n)
        return (LOG2 + patterns - math.log(delta)) / (0.5 * LOG2 * epsilon * n) - 1.0

    low = math.log(8.0 / epsilon)
    high = low
    while excess(high) > 0:
        high += 1.0
    return math.exp(scipy.optimize.brentq(excess, high - 1.0, high) if high > low else low)


def norm_product_log_samples(
    weights: Sequence[Float[np.ndarray, "_ _"]],
    biases: Sequence[Float[np.ndarray, "_"]],
    epsilon: float,
    /,
    *,
    radius: float,
    delta: float = 0.01,
) -> float:
    """Return log n for the sample size n at which 2 Rad + 2 sqrt(log(2/delta)/(2n)) = epsilon.

    The output margin is 1. Golowich, Rakhlin, Shamir (2018, Theorem 1) prove Rad <= radius (sqrt(2
    L log 2) + 1) prod |W_i|_F / sqrt n for L layers without biases. A layer's bias b enters its
    weight matrix, as [W b; 0 1]. The inputs (x, 1) have norm at most `radius`. The number n itself
    would overflow.
    """
    L = len(weights)
    squares = [np.sum(np.square(W)) + np.sum(np.square(b)) for W, b in zip(weights, biases)]
    frobenius = [0.5 * math.log(s + (i < L - 1)) for i, s in enumerate(squares)]
    log_rad = math.log(radius * (math.sqrt(2.0 * L * LOG2) + 1.0)) + sum(frobenius)
    tail = 0.5 * math.log(2.0 * math.log(2.0 / delta))
    return 2.0 * (np.logaddexp(LOG2 + log_rad, tail) - math.log(epsilon))
