"""Prompts of q-sparse token regression (Definition 2) and their encoded tokens z_i.

A prompt holds N tokens x_i in R^d, each with q positions t_i in [N]. The label at position i is the
link function, applied to the tokens at the positions t_i. In the paper's simple task (simple-qSTR),
all positions i share one t.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import scipy
from jaxtyping import Array, Float, Int

from jaxbounds.ground.exceptions import Refused
from jaxbounds.qstr.links import Link, Parameters


class Prompts(NamedTuple):
    """A batch of prompts: tokens x, positions t and labels y."""

    x: Float[Array, "*batch N d"]
    t: Int[Array, "*batch N q"]
    y: Float[Array, "*batch N"]


def sample_positions(
    key: Array,
    shape: tuple[int, ...],
    N: int,
    q: int,
    /,
    *,
    simple: bool = False,
    distinct: bool = False,
) -> Int[Array, "*shape N q"]:
    """Draw positions t uniformly over [N]^q; if `simple`, all positions of a prompt share t.

    The option `distinct` draws the q positions that are relevant to a token without replacement;
    the paper draws with replacement.

    Raises:
        Refused: if `distinct` is set and q exceeds N.
    """
    rows = (*shape, 1 if simple else N)
    if distinct:
        if q > N:
            raise Refused(
                f"q={q} exceeds N={N}, expected q distinct positions among N. Try a smaller q"
            )
        # The q largest of N iid uniforms are at a uniformly random q-subset, in random order.
        t = jax.lax.top_k(jax.random.uniform(key, (*rows, N)), q)[1]
    else:
        t = jax.random.randint(key, (*rows, q), 0, N)
    return jnp.broadcast_to(t, (*shape, N, q)).astype(jnp.int32)


def relevant_tokens(
    x: Float[Array, "*batch N d"], t: Int[Array, "*batch N q"], /
) -> Float[Array, "*batch N q d"]:
    """Return the tokens x_{t_i1}, .., x_{t_iq} that determine the label at each position i."""
    *batch, N, q = t.shape
    flat = t.reshape(*batch, N * q, 1)
    return jnp.take_along_axis(x, flat, axis=-2).reshape(*batch, N, q, x.shape[-1])


def sample_prompts(
    key: Array,
    link: Link,
    parameters: Parameters,
    /,
    *,
    shape: tuple[int, ...],
    N: int,
    d: int,
    q: int = 1,
    simple: bool = False,
    distinct: bool = False,
) -> Prompts:
    """Draw prompts with independent standard normal tokens.

    The shape `()` gives one prompt. If `simple` is set, all positions of a prompt share t. If
    `distinct` is set, the q positions t_i of each token i are drawn without replacement.

    Raises:
        Refused: if N, d or q is not positive, or `distinct` is set and q exceeds N.
    """
    if min(N, d, q) < 1:
        raise Refused(f"N={N}, d={d}, q={q}: expected at least 1 for each. Try q=1")
    key_x, key_t = jax.random.split(key)
    x = jax.random.normal(key_x, (*shape, N, d))
    t = sample_positions(key_t, shape, N, q, simple=simple, distinct=distinct)
    return Prompts(x, t, link.apply(parameters, relevant_tokens(x, t)))


def averaged_risk(predicted: Float[Array, "n N"], y: Float[Array, "n N"], /) -> Float[Array, ""]:
    """Return the risk (2.2), the squared error averaged over n prompts and all positions."""
    return jnp.mean((predicted - y) ** 2)


def pointwise_risk(
    predicted: Float[Array, "n N"], y: Float[Array, "n N"], positions: Int[Array, "n"], /
) -> Float[Array, ""]:
    """Return the risk (2.3): the mean over n prompts of the squared error at one position."""
    return jnp.mean(jnp.take_along_axis((predicted - y) ** 2, positions[:, None], axis=1))


def encode(
    x: Float[Array, "*batch N d"],
    t: Int[Array, "*batch N q"],
    omega: Float[Array, "M de"],
    /,
    *,
    scale: bool = True,
) -> Float[Array, "*batch N De"]:
    """Return encoded tokens z_i = (x_i; s w_i; s w_{t_i1}; ..; s w_{t_iq}), De = d + (q + 1) de.

    If `scale` is true, s = sqrt(d/q) as in Section 3. For unit encodings, the encodings in z_i then
    have the total squared norm d (1 + 1/q). If `scale` is false, s = 1 as in Section 5 and in the
    public code.

    Raises:
        Refused: if the number of encodings differs from the number of tokens.
    """
    *batch, N, d = x.shape
    q, de = t.shape[-1], omega.shape[1]
    if omega.shape[0] != N:
        raise Refused(
            f"omega has {omega.shape[0]} encodings, expected one for each of N={N} tokens. Try"
            " encodings for N tokens"
        )
    own = jnp.broadcast_to(omega, (*batch, N, de))
    wanted = omega[t].reshape(*batch, N, q * de)
    factor = math.sqrt(d / q) if scale else 1.0
    return jnp.concatenate([x, factor * own, factor * wanted], axis=-1)


def gaussian_moment_ratio(d: int, r: float, /) -> float:
    """Return (E|x|^r)^{2/r} / (d r) for x ~ N(0, I_d).

    For normal tokens, Assumption 1 holds with C_x equal to the supremum of this number over r >= 1.
    """
    log_moment = (
        0.5 * r * math.log(2.0) + scipy.special.gammaln((d + r) / 2) - scipy.special.gammaln(d / 2)
    )
    return math.exp(2.0 * log_moment / r) / (d * r)
