"""The first phase (Section 5.1): one gradient step from zero, and what it leaves.

All heads get U_h = alpha_h 1_T u1^T with u1 = (1 / 2 n1) sum_i y_i mean_t x_it, and W_h = 0.
On DM1 the mean of u1 is (zeta / 4) u*: E[y mu_y] = u* / 2.
"""

import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxbounds.multihead.loss import Data
from jaxbounds.multihead.model import Params


def first_direction(data: Data, /) -> Float[Array, " d"]:
    """u1 = (1 / 2 n1) sum_i y_i mean_t x_it, eq. (120)."""
    tokens = data["X"]
    signed = data["y"].astype(tokens.dtype)[:, None] * jnp.mean(tokens, axis=1)
    return jnp.mean(signed, axis=0) / 2


def first_step(data: Data, step_sizes: Float[Array, " H"], /) -> Params:
    """theta^(1): one step of size alpha_h sqrt(H) from zero on every head, in closed form."""
    _, length, dimension = data["X"].shape
    rows = jnp.broadcast_to(first_direction(data)[None, :], (length, dimension))
    return {
        "U": step_sizes[:, None, None] * rows[None, :, :],
        "W": jnp.zeros((step_sizes.shape[0], dimension, dimension), rows.dtype),
    }


def centre(classifier: Float[Array, " d"], sparsity: ArrayLike, /) -> Float[Array, " d"]:
    """(zeta / 4) u*, the mean of u1; print has zeta / 2."""
    return sparsity / 4 * classifier


def deviation(
    data: Data, classifier: Float[Array, " d"], sparsity: ArrayLike, /
) -> Float[Array, " d"]:
    """The deviation p = u1 - (zeta / 4) u*."""
    return first_direction(data) - centre(classifier, sparsity)


def deviation_bound(
    radius: ArrayLike, samples: ArrayLike, failure: ArrayLike, /
) -> Float[Array, ""]:
    """P# with ||p|| <= P# with probability 1 - delta (sharpening S13): explicit, no dimension.

    2 p is a mean of n1 independent centred vectors y xbar - E of norm at most R before centring:
    the expectation of its norm is at most R / sqrt(n1), and McDiarmid's inequality with differences
    2 R / n1 adds R sqrt(2 log(1/delta) / n1).
    """
    return radius / 2 * (1 + jnp.sqrt(2 * jnp.log(1 / jnp.asarray(failure)))) / jnp.sqrt(samples)


def model_bound(
    radius: ArrayLike, signal: ArrayLike, size: ArrayLike, failure: ArrayLike, /, *, T: int
) -> ArrayLike:
    """T R (S + P) sqrt(2 log(2 / delta)): B_Phi of P2 for every sample at once.

    Print has log(1/delta) for one sample and log(n/delta) for n (two-sided, so the 2 is missing);
    but W^(1) = 0 makes every output a multiple of the same sum of signs: no union bound is needed.

    Args:
        radius: R.
        signal: S.
        size: P.
        failure: delta.
        T: tokens.
    """
    return T * radius * (signal + size) * jnp.sqrt(2 * jnp.log(2 / jnp.asarray(failure)))


def random_signs(key: jax.Array, heads: int, /) -> Float[Array, " H"]:
    """Independent alpha_h = +-1."""
    return jax.random.rademacher(key, (heads,)).astype(jnp.zeros(()).dtype)


def balanced_signs(heads: int, /) -> Float[Array, " H"]:
    """As many +1 as -1: then the model vanishes at theta^(1) and P2 holds surely (S12).

    Raises:
        ValueError: if the number of heads is odd.
    """
    if heads < 2 or heads % 2:
        raise ValueError(f"balanced signs need an even number of heads, got {heads}")
    return jnp.tile(jnp.asarray([1.0, -1.0]), heads // 2)


def heads_for_margin(
    radius: ArrayLike,
    signal: ArrayLike,
    size: ArrayLike,
    margin: ArrayLike,
    failure: float,
    /,
    *,
    T: int,
    n: int,
) -> ArrayLike:
    """The H of Lemma 15 (it prints R^3, Proposition 2 prints R^4): not needed for alpha = +-1.

    Args:
        radius: R.
        signal: S.
        size: P.
        margin: gamma*, which must be positive.
        failure: delta.
        T: tokens.
        n: samples.
    """
    slope = 2 * radius**3 * T * (signal + size) + math.sqrt(T) * radius
    return (4 * slope / margin) ** 2 * 2 * math.log(n / failure)
