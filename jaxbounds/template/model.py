"""The formulas of the paper, each written once. Statements call them, and tests check them."""

import jax
import jax.numpy as jnp


def softmax_jacobian(scores: jax.Array) -> jax.Array:
    """The Jacobian of softmax, diag(p) - p p^T. Section 1, eq. (1).

    Args:
        scores: shape (T,).

    Returns:
        Shape (T, T).
    """
    p = jax.nn.softmax(scores)
    return jnp.diag(p) - jnp.outer(p, p)


def attend(scores: jax.Array, values: jax.Array) -> jax.Array:
    """The attention of one query: the mean of the values under softmax. Section 2, eq. (2).

    Args:
        scores: shape (T,).
        values: shape (T, d).

    Returns:
        Shape (d,).
    """
    return jax.nn.softmax(scores) @ values


def largest_norm(values: jax.Array) -> jax.Array:
    """The bound of Lemma 2: max_t |v_t|_2, the largest norm of a value.

    Args:
        values: shape (T, d).
    """
    return jnp.max(jnp.linalg.norm(values, axis=-1))
