"""The formulas of the paper, each written once.

The statements call these formulas, and the tests check the formulas.
"""

import jax
import jax.numpy as jnp


def softmax_jacobian(scores: jax.Array) -> jax.Array:
    """Return the Jacobian of softmax, diag(p) - p p^T. Section 1, eq. (1).

    Args:
        scores: the scores of T tokens, shape (T,).

    Returns:
        The Jacobian, shape (T, T).
    """
    p = jax.nn.softmax(scores)
    return jnp.diag(p) - jnp.outer(p, p)


def attend(scores: jax.Array, values: jax.Array) -> jax.Array:
    """Return the attention of one query: the values' mean under softmax. Section 2, eq. (2).

    Args:
        scores: the scores of T tokens, shape (T,).
        values: the value vectors of the tokens, shape (T, d).

    Returns:
        The weighted mean of the values, shape (d,).
    """
    return jax.nn.softmax(scores) @ values


def largest_norm(values: jax.Array) -> jax.Array:
    """Return the bound of Lemma 2: max_t |v_t|_2, the largest norm of a value vector.

    Args:
        values: the value vectors of T tokens, shape (T, d).
    """
    return jnp.max(jnp.linalg.norm(values, axis=-1))
