"""Definitions 2.1 and 2.2 and Proposition 2.3 on finite classes, with expectations as finite sums.

The table losses[f, x] holds the loss of model f at point x for one target G.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from jaxbounds.ground.exceptions import Refused


def classical_error(
    losses: Float[Array, "F X"], distribution: Float[Array, "X"], /
) -> Float[Array, ""]:
    """Compute the smallest expected loss of a model, the least epsilon of Definition 2.1."""
    return (losses @ distribution).min()


def draw(key: PRNGKeyArray, distribution: Float[Array, "X"], n: int, /) -> Int[Array, "n"]:
    """Draw the indices of n i.i.d. points by inverting the cumulative distribution function."""
    steps = jnp.cumsum(distribution)
    uniform = jax.random.uniform(key, (n, 1), steps.dtype)
    passed = steps[None, :-1] <= steps[-1] * uniform
    return jnp.sum(passed, axis=1, dtype=jnp.int32)  # the default takes twice the memory


def empirical_risk_minimiser(
    surrogate: Float[Array, "F X"], sample: Int[Array, "n"], /
) -> Int[Array, ""]:
    """Return the first model with the least mean surrogate loss on the sample."""
    return surrogate[:, sample].mean(axis=1).argmin()


def erm_risk(
    surrogate: Float[Array, "F X"],
    losses: Float[Array, "F X"],
    distribution: Float[Array, "X"],
    sample: Int[Array, "n"],
    /,
) -> Float[Array, ""]:
    """Compute the expected loss of the model that minimises the surrogate loss on the sample."""
    return losses[empirical_risk_minimiser(surrogate, sample)] @ distribution


def empirical_rademacher(
    losses: Float[Array, "F X"] | np.ndarray, sample: Int[Array, "n"] | np.ndarray, /
) -> Float[Array, ""] | float:
    """Compute E_sigma max_f (1/n) sum_i sigma_i loss_f(x_i) exactly, over all 2^n signs.

    Raises:
        Refused: if n > 16.
    """
    n = sample.shape[0]
    if n > 16:
        raise Refused(
            f"n={n} gives 2^{n} signs, expected n <= 16 to enumerate them. Try a smaller sample"
        )
    signs = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
    return (losses[:, sample] @ signs.T.astype(losses.dtype)).max(axis=0).mean() / n


def exact_rademacher(
    losses: Float[np.ndarray, "F X"], distribution: Float[np.ndarray, "X"], n: int, /
) -> float:
    """Compute Rad_{n,P}, the mean of `empirical_rademacher` over samples of n points.

    The sums of signs at the points of X form a random walk on Z^X with steps +-e_x, each of
    probability P(x)/2. The Fourier transform of its distribution after n steps is the n-th power of
    one step's transform.

    Raises:
        Refused: if (2n + 1)^X exceeds 2 10^7 for X points.
    """
    points, side = losses.shape[1], 2 * n + 1
    if side**points > 2e7:
        raise Refused(
            f"n={n} and X={points} give {side}^{points} sums of signs, expected at most 2e7."
            " Try a smaller n or X"
        )
    step = np.zeros((side,) * points)
    for x, mass in enumerate(distribution):
        for sign in (1, -1):
            step[(0,) * x + (sign,) + (0,) * (points - x - 1)] += 0.5 * mass
    law = np.fft.irfftn(np.fft.rfftn(step) ** n, step.shape, range(points))
    sums = np.fft.fftfreq(side, 1.0 / side)  # points of the torus as integers from -n to n
    largest = np.full(law.shape, -np.inf)
    for row in losses:
        place = sum(np.ix_(*(loss * sums for loss in row)), np.zeros(()))
        np.maximum(largest, place, out=largest)
    return float(np.sum(law * largest)) / n


def massart_bound(models: int, n: int, /) -> float:
    """Compute Massart's bound sqrt(2 log |F| / n) on Rad_{n,P}, for losses in [0, 1]."""
    return math.sqrt(2.0 * math.log(models) / n)


def uniform_deviation_bound(rademacher: float | Array, n: float, delta: float, /) -> float | Array:
    """Compute the right side of (A.1), sup |L - L-hat| <= 2 Rad + sqrt(log(2/delta)/n)."""
    return 2.0 * rademacher + math.sqrt(math.log(2.0 / delta) / n)


def uniform_deviation_bound_sharpened(
    rademacher: float | Array, n: float, delta: float, /
) -> float | Array:
    """Compute (A.1) with McDiarmid's own constant: 2 Rad + sqrt(log(2/delta)/(2n)).

    Each of sup (L - L-hat) and sup (L-hat - L) exceeds its bound with probability at most delta/2.
    A change of one example changes each supremum by at most 1/n.
    """
    return 2.0 * rademacher + math.sqrt(math.log(2.0 / delta) / (2 * n))


def erm_bound(
    best: float | Array, rademacher: float | Array, n: float, delta: float, /
) -> float | Array:
    """Compute Proposition 2.3's bound L(F*) + 4 Rad + 2 sqrt(log(2/delta)/n) on L(F-hat).

    For L(F*) <= epsilon and Rad <= epsilon, the bound is 5 epsilon + 2 sqrt(log(2/delta)/n).
    """
    return best + 2.0 * uniform_deviation_bound(rademacher, n, delta)
