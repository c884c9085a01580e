"""A limit on what n labels reveal about the link function, stated after Theorem 4 (Section 3.2).

For the linear link y = <u, (x_{t_1}, .., x_{t_q})>, with |u| = 1 in R^{qd}, a label is one linear
equation for u. So no learner can distinguish two directions u that satisfy the equations of all n
labels.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.qstr.span import span_rows


def mirrored_direction(
    tokens: Float[Array, "n qd"], u: Float[Array, "qd"], /
) -> Float[Array, "qd"]:
    """Return the direction farthest from u among directions with u's length and u's labels.

    This direction is 2 P u - u, where P projects onto the span of the n vectors of relevant tokens.
    """
    rows = span_rows(tokens)[0]
    return 2.0 * rows.T @ (rows @ u) - u


def hidden_risk(tokens: Float[Array, "n qd"], u: Float[Array, "qd"], /) -> Float[Array, ""]:
    """Return |u - P u|^2, a bound on any estimate's squared distance from u or its mirror image.

    Let b = 2 P u - u be the mirror image of u, where P projects onto the span of the n vectors of
    relevant tokens. For any estimate v, the mean of |u - v|^2 and |b - v|^2 is |u - b|^2 / 4 + |v -
    (u + b) / 2|^2. This mean is at least |u - b|^2 / 4 = |u - P u|^2. If new relevant tokens have
    covariance I, the squared distance of an estimate from u is its risk. The estimate P u, which
    the labels determine, attains the bound |u - P u|^2.
    """
    return jnp.sum((u - mirrored_direction(tokens, u)) ** 2) / 4.0


def label_limit(n: int, /, *, q: int, d: int) -> float:
    """Return the least possible risk 1 - n/(qd) after n labels, on average over u.

    The average of `hidden_risk` over the sphere of u is 1 - rank/(qd), with the rank of the n
    vectors of relevant tokens. For some u, the risk is at least this average. So a learner with
    risk r needs (1 - r) q d labels, the order Omega(qd) that the paper states. A prompt contains
    one label for the risk (2.3) or for simple-qSTR, and up to N labels for the averaged risk (2.2)
    of other models.

    Raises:
        Refused: if n is negative, or q or d is not positive.
    """
    if n < 0 or min(q, d) < 1:
        raise Refused(f"n={n}, q={q}, d={d}: expected n >= 0 labels and q, d >= 1. Try n=0")
    return max(0.0, 1.0 - n / (q * d))
