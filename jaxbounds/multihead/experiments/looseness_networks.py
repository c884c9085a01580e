"""The networks at which the experiment measures bounds: random, aligned, and a run of Figure 2.

Each aligned network is built to show that some bound needs one of its factors. Half of its tokens
are R e_1, and half are -R e_1. In every second head, the attention gives these two points their
largest third cumulant, c* R^3 (sharpening S3). The rows of U are multiples of e_1 whose signs make
the cumulants of all queries add up. In the other heads, each query attends only to the tokens equal
to the query. The other heads dominate the output, so the margin is positive and the ratio |l'| / l
is almost one.
"""

import math
from typing import Literal, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.multihead.loss import Data
from jaxbounds.multihead.model import Params

Family = Literal["random", "aligned"]
FAMILIES: tuple[Family, ...] = get_args(Family)

SKEW = math.log((1 + 1 / math.sqrt(3)) / (1 - 1 / math.sqrt(3)))
"""The log odds log(p / (1 - p)) of the attention p with 8 p (1 - p) (2 p - 1) = 4 / (3 sqrt(3))."""
SHARE = 6.0
"""The log odds, in nats, of the attention in the heads that make the margin positive.

Larger log odds raise ||W||, and only the printed bounds depend on ||W||.
"""


def _of_norm(leaf: Array, norm: float, axes: tuple[int, ...]) -> Array:
    return norm * leaf / jnp.sqrt(jnp.sum(leaf**2, axes, keepdims=True))


def random_network(
    key: Array, radius: Float[Array, ""], size: float, /, *, H: int, T: int, d: int, n: int
) -> tuple[Params, Data]:
    """Draw a network with normal random directions, token norms R and ||U_h|| = ||W_h|| = size.

    Labels are random signs.
    """
    X_key, y_key, U_key, W_key = jax.random.split(key, 4)
    draw = jax.random.normal
    params = {
        "U": _of_norm(draw(U_key, (H, T, d)), size, (1, 2)),
        "W": _of_norm(draw(W_key, (H, d, d)), size, (1, 2)),
    }
    tokens = radius * _of_norm(draw(X_key, (n, T, d)), 1.0, (2,))
    return params, {"X": tokens, "y": jax.random.rademacher(y_key, (n,), dtype=int)}


def aligned_network(
    radius: Float[Array, ""], size: float, /, *, H: int, T: int, d: int, n: int
) -> tuple[Params, Data]:
    """Return a network with aligned tokens and weights, and n copies of a sequence."""
    sign = jnp.where(jnp.arange(T) % 2 == 0, 1.0, -1.0)
    first = jnp.zeros(d).at[0].set(1.0)
    along = sign[:, None] * first[None, :]
    tokens = radius * along
    curved = jnp.arange(H) % 2 == 0
    # A query R e_1 scores R e_1 and -R e_1 by plus and minus R^2 w: the log odds are 2 R^2 w.
    weight = jnp.where(curved, -SKEW, SHARE) / (2 * radius**2)
    W = weight[:, None, None] * (first[:, None] * first[None, :])[None]
    U = jnp.broadcast_to(size / math.sqrt(T) * along[None], (H, T, d))
    data = {"X": jnp.broadcast_to(tokens[None], (n, T, d)), "y": jnp.ones(n, int)}
    return {"U": U, "W": W}, data
