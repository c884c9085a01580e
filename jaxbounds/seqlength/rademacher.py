"""Empirical Rademacher complexities: exact by enumerating the signs, or by Monte Carlo.

Rad_m(F, S) = E_sigma sup_f (1/m) sum_i sigma_i f(x_i) (Section 2.3), always with the factor 1/m.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused

Scalar = Float[Array, ""] | np.float64
Support = Callable[[Float[Array, "m"]], Scalar]

LARGEST_ENUMERATION = 18
"""The largest number of sample points for which all signs are enumerated; each further point, one
more, doubles the time."""


class Estimate(NamedTuple):
    """The mean and the standard error of a Monte Carlo estimate."""

    mean: Scalar
    standard_error: Scalar


def sign_vectors(m: int, /, dtype: DTypeLike = float) -> Float[np.ndarray, "signs m"]:
    """List all 2^m vectors of signs, as rows.

    Raises:
        Refused: if m is not between 1 and 18.
    """
    if not 1 <= m <= LARGEST_ENUMERATION:
        raise Refused(
            f"m={m} sample points, expected 1 <= m <= {LARGEST_ENUMERATION}, because all signs"
            " are enumerated. Try `rademacher_monte_carlo` for more"
        )
    bits = (np.arange(2**m)[:, None] >> np.arange(m)[None, :]) & 1
    return (1.0 - 2.0 * bits).astype(dtype)


def support_rademacher(support: Support, m: int, /, dtype: DTypeLike = float) -> Scalar:
    """Compute Rad exactly for a class with support(sigma) = sup_f sum_i sigma_i f(x_i).

    Raises:
        Refused: if m is not between 1 and 18.
    """
    return jnp.mean(jax.vmap(support)(jnp.asarray(sign_vectors(m, dtype)))) / m


def empirical_rademacher(values: Float[Array | np.ndarray, "functions m"], /) -> Scalar:
    """Compute the Rademacher complexity of a finite class from its values f(x_i), exactly.

    Raises:
        Refused: if m is not between 1 and 18.
    """
    m = values.shape[1]
    return (sign_vectors(m, values.dtype) @ values.T).max(axis=1).mean() / m


def rademacher_monte_carlo(key: Array, support: Support, m: int, /, *, draws: int) -> Estimate:
    """Estimate the Rademacher complexity from `draws` random sign vectors.

    Return also the standard error.

    Raises:
        Refused: if m < 1 or draws < 2.
    """
    if m < 1 or draws < 2:
        raise Refused(
            f"m={m} and draws={draws}, expected m >= 1 points and draws >= 2. Try draws=2"
        )
    sups = jax.vmap(support)(jax.random.rademacher(key, (draws, m), float)) / m
    return Estimate(jnp.mean(sups), jnp.std(sups, ddof=1) / jnp.sqrt(float(draws)))


def with_negation(values: Float[Array, "functions m"], /) -> Float[Array, "doubled m"]:
    """Return the values of the union of the classes F and -F on the sample."""
    return jnp.concatenate([values, -values])


def linear_support(X: Float[Array, "m d"], B: float | Scalar, /) -> Support:
    """Return the support function of the class {x -> w . x : ||w||_1 <= B} on the rows of X.

    The support function is B ||X^T sigma||_inf.
    """
    return lambda sigma: B * jnp.max(jnp.abs(X.T @ sigma))


def massart_linear(X: Float[Array, "m d"], B: float | Scalar, /) -> Scalar:
    """Compute Massart's bound B max_j ||X_{:,j}||_2 sqrt(2 ln 2d) / m on {w . x: ||w||_1 <= B}."""
    m, d = X.shape
    largest = jnp.sqrt(jnp.max(jnp.sum(X**2, axis=0)))
    return B * largest * jnp.sqrt(2.0 * jnp.log(2.0 * d)) / m
