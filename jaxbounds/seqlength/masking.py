"""The prediction of a masked word: the loss of Section 5 and Appendix G, and Theorem 5.1."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.arrays import array_module

Scalar = Float[Array, ""]


def cross_entropy(logits: Float[Array, "K"], label: int | Int[Array, ""], /) -> Scalar:
    """Compute -log softmax(logits)[label]."""
    return jax.nn.logsumexp(logits) - logits[label]


def gradient_l1(logits: Float[Array, "K"], label: int | Int[Array, ""], /) -> Scalar:
    """Compute 2 (1 - softmax(logits)[label]) <= 2, the cross entropy's ||gradient||_1.

    The loss is therefore 2-Lipschitz in l_infinity (Appendix G).
    """
    others = jnp.where(jnp.arange(logits.shape[0]) == label, -jnp.inf, logits)
    return 2.0 * jnp.exp(jax.nn.logsumexp(others) - jax.nn.logsumexp(logits))


def lipschitz_constant(K: int, bound: ArrayLike = math.inf, /) -> Array:
    """Compute the l_infinity Lipschitz constant of the cross entropy over [-bound, bound]^K.

    The Lipschitz constant is 2 (1 - 1 / (1 + (K - 1) exp(2 bound))), and 2 without a bound.

    Raises:
        Refused: if K < 2 or the bound is negative.
    """
    if K < 2 or not (isinstance(bound, jax.core.Tracer) or np.all(np.asarray(bound) >= 0)):
        raise Refused(f"K={K} and bound={bound}, expected K >= 2 words and bound >= 0. Try K=2")
    return 2.0 / (1.0 + jnp.exp(-2.0 * jnp.asarray(bound, float)) / (K - 1))


def clipped(loss: Callable[..., Array], c: float, /) -> Callable[..., Array]:
    """Return min(loss, c), a bounded loss with the same Lipschitz constant as `loss`.

    Raises:
        Refused: if c is not positive.
    """
    if not c > 0:
        raise Refused(f"c={c}, expected a positive clipping value. Try c=1")
    return lambda *arguments: jnp.minimum(loss(*arguments), c)


def theorem_5_1_leading(
    scalar_rademacher: ArrayLike, K: int, /, *, hidden_constant: float = 1.0
) -> Array | np.ndarray | np.float64:
    """Compute 2 hidden_constant sqrt K max_s Rad(class_s), the leading term of Theorem 5.1.

    The value is no proved bound: the contraction inequality of Foster and Rakhlin also contains
    powers of log m, and the *largest* Rademacher complexity over all samples of size m.

    Raises:
        Refused: if K < 2.
    """
    if K < 2:
        raise Refused(f"K={K}, expected at least 2 words. Try K=2")
    xp = array_module(scalar_rademacher)
    return 2.0 * hidden_constant * math.sqrt(K) * xp.asarray(scalar_rademacher, float)


def binary_loss(difference: Float[Array, "..."], label: Int[Array, "..."], /) -> Array:
    """Compute the cross entropy for K = 2: a logistic loss that is 1-Lipschitz in x_1 - x_0.

    The loss's Rademacher complexity is therefore at most that of the class {w^T Y : ||w||_1 <= 2
    B_w} with w = W_1 - W_0.
    """
    sign = 1.0 - 2.0 * label.astype(difference.dtype)
    return jax.nn.softplus(sign * difference)
