"""Groups of equal heads, which training keeps equal.

Heads with equal start parameters stay equal under every optimiser that applies one rule to all
coordinates. One stored head and one number of copies per group therefore represent all H heads, at
a cost that does not depend on H. The parameters are {"U": (G, T, d), "W": (G, d, d)}, one head for
each group. `copies` (G,) is the number of heads in each group, as floats, because certified head
counts can exceed every integer type.
"""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.multihead.loss import Data, logistic
from jaxbounds.multihead.model import Params, head_output

if TYPE_CHECKING:  # slow to import
    import optax


def tied_output(
    params: Params,
    copies: Float[Array, " G"],
    tokens: Float[Array, "T d"],
    single: Params | None = None,
    /,
) -> Float[Array, ""]:
    """Return H^{-1/2} sum_g copies_g Phi(X; theta_g) with H = sum_g copies_g, equation (2).

    `params` holds one head for each group, and `tokens` is one sequence of shape (T, d). At
    `single` = `params` (the default), the derivative with respect to `single` is the gradient of a
    single head.

    Raises:
        AssertionError: if the parameters and `copies` have different numbers of groups.
    """
    import chex  # slow to import

    chex.assert_shape(copies, (params["U"].shape[0],))  # (1,) would give all groups one count
    each = jax.vmap(head_output, in_axes=(0, 0, None))
    outputs = each(params["U"], params["W"], tokens)
    total = copies * outputs
    if single is not None:
        total = total + (each(single["U"], single["W"], tokens) - outputs)
    return jnp.sum(total) / jnp.sqrt(jnp.sum(copies))


def tied_margins(
    params: Params, copies: Float[Array, " G"], data: Data, single: Params | None = None, /
) -> Float[Array, " n"]:
    """Return the margins y_i Phi(X_i; theta).

    Raises:
        AssertionError: if y does not have shape (n,).
    """
    import chex  # slow to import

    chex.assert_shape(data["y"], (data["X"].shape[0],))
    output = lambda tokens: tied_output(params, copies, tokens, single)
    outputs = jax.vmap(output)(data["X"])
    return data["y"].astype(outputs.dtype) * outputs


def tied_risk(
    params: Params, copies: Float[Array, " G"], data: Data, single: Params | None = None, /
) -> Float[Array, ""]:
    """Return the training loss of the H heads."""
    return jnp.mean(logistic(tied_margins(params, copies, data, single)))


def per_head(slope: Params, copies: Float[Array, " G"], /) -> Params:
    """Return a head's gradient: its group's gradient divided by the group's number of heads."""
    return jax.tree.map(lambda g: g / copies.reshape(-1, *[1] * (g.ndim - 1)), slope)


def tied(
    rule: "optax.GradientTransformation", copies: Float[Array, " G"], /
) -> "optax.GradientTransformation":
    """Return an optimiser for groups of equal heads.

    The head that stands for a group moves as each head of the group would move under `rule`.
    """
    import optax

    return optax.chain(optax.stateless(lambda slope, _: per_head(slope, copies)), rule)


def tied_norm(params: Params, copies: Float[Array, " G"], /) -> Float[Array, ""]:
    """Return ||theta|| over all H heads, with gradient zero at theta = 0."""
    square = lambda leaf: jnp.sum(leaf**2, tuple(range(1, leaf.ndim)))
    total = jnp.sum(copies * sum(square(leaf) for leaf in jax.tree.leaves(params)))
    return jnp.where(total > 0, jnp.sqrt(jnp.where(total > 0, total, 1.0)), 0.0)


def tied_distance(params: Params, other: Params, copies: Float[Array, " G"], /) -> Float[Array, ""]:
    """Return ||theta - theta'|| over all H heads."""
    return tied_norm(jax.tree.map(jnp.subtract, params, other), copies)


def untie(params: Params, copies: tuple[int, ...], /) -> Params:
    """Return the parameters of all H heads; equal heads are neighbours."""
    repeats = jnp.asarray(copies)
    repeat = lambda leaf: jnp.repeat(leaf, repeats, axis=0, total_repeat_length=sum(copies))
    return jax.tree.map(repeat, params)


def tie(params: Params, /) -> tuple[Params, Float[Array, " 1"]]:
    """Return H equal heads as one group: the parameters of one head, and the number of copies.

    Raises:
        Refused: if two heads have different parameters.
    """
    for name, leaf in params.items():
        heads = np.asarray(leaf)
        if not np.array_equal(heads, np.broadcast_to(heads[:1], heads.shape)):
            raise Refused(
                f"heads={len(heads)} of {name} differ, expected equal heads. Try the module"
                " MultiHeadAttention, which trains heads that differ"
            )
    one = {name: leaf[:1] for name, leaf in params.items()}
    return one, jnp.full(1, params["U"].shape[0], params["U"].dtype)
