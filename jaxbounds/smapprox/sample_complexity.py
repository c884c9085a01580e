"""Sample sizes and generalization bounds from all-layer margins (Section 2.1, Appendix A).

The paper does not state the absolute constants, which are arguments here, by default 1. The values
show how a bound depends on its arguments, and are no valid bounds.
"""

import math
from typing import Any

import jax.numpy as jnp
import scipy
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.arrays import array_module, log, traced


def log_covering_number(
    alpha: float, p: int, gamma: float, epsilon: float, /, *, constant: float = 1.0
) -> float:
    """Bound log N_inf(epsilon, L_G) by log N_2(gamma epsilon, Theta), as in the proof of Lemma 2.4.

    The bound is constant * floor(alpha^2 log p / (gamma epsilon)^2), for an l1 ball Theta of radius
    alpha in p dimensions.
    """
    _positive(alpha=alpha, gamma=gamma, epsilon=epsilon, p=p)
    return constant * math.floor(alpha**2 * math.log(p) / (gamma * epsilon) ** 2)


def rademacher_bound(
    alpha: float, p: int, gamma: float, n: float, /, *, constant: float = 1.0
) -> float:
    """Compute C alpha log n sqrt(log p) / (gamma sqrt n), Lemma 2.4's bound on Rad_{n,P}(L_G)."""
    _positive(alpha=alpha, gamma=gamma, n=n, p=p)
    return constant * alpha * math.log(n) * math.sqrt(math.log(p)) / (gamma * math.sqrt(n))


def sample_complexity(
    alpha: ArrayLike,
    p: ArrayLike,
    gamma: ArrayLike,
    epsilon: ArrayLike,
    /,
    *,
    constant: ArrayLike = 1.0,
    log_power: ArrayLike = 0.0,
) -> Any:
    """Compute the n of Lemma 2.4, C (alpha^2 log p / gamma^2 + 1) / epsilon^2 times a log factor.

    The paper's O-tilde hides C and the power of the logarithm.
    """
    _positive(alpha=alpha, gamma=gamma, epsilon=epsilon, p=p)
    values = (alpha, p, gamma, epsilon, constant, log_power)
    core, xp = alpha**2 * log(p, *values) / gamma**2, array_module(*values)
    hidden = xp.maximum(1.0, log(xp.maximum(1.0, core / epsilon**2))) ** log_power
    return constant * (core + 1.0) * hidden / epsilon**2


def unseen_difference(difference: Any, n: ArrayLike, /) -> Any:
    """Compute (1 - difference)^n / 2, a lower bound on the failure probability of a learning rule.

    The two targets differ on points of total probability `difference`, and no model has a small
    enough error for both targets. As long as no sample falls on a point where the targets differ,
    the labelled data are equal. Every learning rule then returns one model, which is wrong for one
    of the targets. The argument is for any surrogate loss, as in Definition 2.2.

    Raises:
        Refused: if `difference` is not in [0, 1].
    """
    if not (traced(difference) or 0 <= difference <= 1):
        raise Refused(
            f"difference={difference}, expected a number in [0, 1], the mass on which two targets"
            " differ. Try difference=0.1"
        )
    return 0.5 * (1.0 - difference) ** n


def solve_sample_complexity(
    alpha: float, p: int, gamma: float, epsilon: float, /, *, constant: float = 1.0
) -> float:
    """Return the n at which the Rademacher bound, with its factor log n, equals epsilon.

    log n / sqrt n decreases for n >= e^2, so the result is at least e^2.
    """
    excess = lambda log_n: math.log(
        rademacher_bound(alpha, p, gamma, math.exp(log_n), constant=constant) / epsilon
    )
    if excess(2.0) <= 0:
        return math.exp(2.0)
    high = 4.0
    while excess(high) > 0:
        high *= 2.0
    return math.exp(scipy.optimize.brentq(excess, 2.0, high, xtol=1e-13, rtol=1e-13))


def margin_generalization_bound(
    alpha: float,
    p: int,
    margins: Float[Array, "n"],
    /,
    *,
    delta: float = 0.01,
    constant: float = 1.0,
    low_order: float = 1.0,
) -> Float[Array, ""]:
    """Compute Corollary A.1: C alpha sqrt(log p / n) sqrt(mean 1/rho_i^2) + xi.

    Here xi = C' (log(1/delta) + log n)/sqrt n. The bound needs the margins themselves or lower
    bounds on them; with upper estimates the result may be too small.
    """
    n = margins.shape[0]
    _positive(alpha=alpha, p=p, delta=delta)
    root = jnp.sqrt(jnp.mean(1.0 / margins**2))
    xi = low_order * (math.log(1.0 / delta) + math.log(n)) / math.sqrt(n)
    return constant * alpha * math.sqrt(math.log(p) / n) * root + xi


def vc_sample_complexity(parameters: int, depth: int, epsilon: float, /) -> float:
    """Compute the sample size p d log p / epsilon^2 from the VC dimension (with constant 1)."""
    _positive(parameters=parameters, depth=depth, epsilon=epsilon)
    return parameters * depth * math.log(max(parameters, 2)) / epsilon**2


def norm_product_sample_complexity(spectral_norms: list[float], epsilon: float, /) -> float:
    """Compute log n for the sample size n = (product of spectral norms)^2 / epsilon^2.

    The function returns log n because n itself may overflow.
    """
    _positive(epsilon=epsilon)
    return 2.0 * sum(math.log(norm) for norm in spectral_norms) - 2.0 * math.log(epsilon)


def _positive(**values: Any) -> None:
    bad = {name: value for name, value in values.items() if not (traced(value) or value > 0)}
    if bad:
        raise Refused(
            f"got {', '.join(f'{name}={value}' for name, value in bad.items())}, expected positive"
            " numbers. Try 1 for each of them"
        )
