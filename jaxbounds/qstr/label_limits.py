"""The limit of the information in labels, named after Theorem 4 (Section 3.2).

For the linear link y = <u, (x_{t_1}, .., x_{t_q})>, |u| = 1 in R^{qd}, a label is one linear
equation for u. Two directions that agree on all of them are told apart by no learner.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.qstr.span import span_rows


def mirrored_direction(
    tokens: Float[Array, "n qd"], u: Float[Array, "qd"], /
) -> Float[Array, "qd"]:
    """The direction of the same length and the same labels as u that is farthest from it.

    2 P u - u, P the projection onto the span of the relevant tokens of the n labels.
    """
    rows = span_rows(tokens)[0]
    return 2.0 * rows.T @ (rows @ u) - u


def hidden_risk(tokens: Float[Array, "n qd"], u: Float[Array, "qd"], /) -> Float[Array, ""]:
    """|u - P u|^2: any estimate is at least that far, squared, from u or from its mirror image.

    Half of |a - v|^2 + |b - v|^2 is |a - b|^2 / 4 + |v - (a + b) / 2|^2. With fresh relevant tokens
    of covariance I that is a risk; explicit, and attained by P u, which the labels tell.
    """
    return jnp.sum((u - mirrored_direction(tokens, u)) ** 2) / 4.0


def label_limit(n: int, /, *, q: int, d: int) -> float:
    """The risk 1 - n/(qd) that n labels leave on average over u, and hence for some u. Explicit.

    The average of `hidden_risk` over the sphere is 1 - rank/(qd). So risk r needs (1 - r) q d
    labels: Omega(qd). One for each prompt as in (2.3), or in simple-qSTR; the averaged risk (2.2)
    of other models has up to N to a prompt.

    Raises:
        ValueError: if n is negative, or q or d is not positive.
    """
    if n < 0 or min(q, d) < 1:
        raise ValueError(f"n >= 0 labels and q, d >= 1 are needed, got n={n}, q={q}, d={d}")
    return max(0.0, 1.0 - n / (q * d))
