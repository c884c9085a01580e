"""The limit on the information in n labels, as stated after Theorem 4 (Section 3.2).

For the linear link y = <u, (x_{t_1}, .., x_{t_q})>, with |u| = 1 in R^{qd}, a label is one linear
equation for u. No learner can distinguish two directions u that satisfy all n equations.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.qstr.span import span_rows


def mirrored_direction(
    tokens: Float[Array, "n qd"], u: Float[Array, "qd"], /
) -> Float[Array, "qd"]:
    """Return the direction farthest from u among directions with u's length and u's labels.

    The direction is 2 P u - u, with the projection P onto the span of the relevant tokens of the n
    labels.
    """
    rows = span_rows(tokens)[0]
    return 2.0 * rows.T @ (rows @ u) - u


def hidden_risk(tokens: Float[Array, "n qd"], u: Float[Array, "qd"], /) -> Float[Array, ""]:
    """Return |u - P u|^2, a bound on any estimate's squared distance from u or its mirror image.

    Let b = 2 P u - u be the mirror image of u, with the projection P of `mirrored_direction`. The
    mean of |u - v|^2 and |b - v|^2 is |u - b|^2 / 4 + |v - (u + b) / 2|^2. So an estimate v misses
    u or b by at least |u - b|^2 / 4 = |u - P u|^2. If the relevant tokens are fresh and have
    covariance I, this squared distance is a risk. The estimate P u, which the labels determine,
    attains this risk. All constants are explicit.
    """
    return jnp.sum((u - mirrored_direction(tokens, u)) ** 2) / 4.0


def label_limit(n: int, /, *, q: int, d: int) -> float:
    """Return the risk 1 - n/(qd) that n labels leave on average over u. All constants are explicit.

    Some u has at least the average risk. The average of `hidden_risk` over the sphere is 1 -
    rank/(qd). So a learner with risk r needs (1 - r) q d labels, the order Omega(qd) that the paper
    states. A prompt gives one label in (2.3) or in simple-qSTR. The averaged risk (2.2) of other
    models has up to N labels for each prompt.

    Raises:
        Refused: if n is negative, or q or d is not positive.
    """
    if n < 0 or min(q, d) < 1:
        raise Refused(f"n={n}, q={q}, d={d}: expected n >= 0 labels and q, d >= 1. Try n=0")
    return max(0.0, 1.0 - n / (q * d))
