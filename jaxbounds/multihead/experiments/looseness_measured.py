"""The quantities that Section 3 bounds, by autograd, with their printed and sharpened bounds.

The Hessian of the loss is blockdiag(blocks) + F F^T with a block for each head. Autograd gives the
blocks (`jax.hessian` of a head's slope-weighted output) and F (`jax.jacrev` of the outputs). The
function `structured_extremes` then encloses the least and the greatest eigenvalue, at any H.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float

from jaxbounds.multihead.bounds import beta1, beta1_sharp, beta2, beta2_sharp, beta3, beta3_sharp
from jaxbounds.multihead.loss import (
    Data,
    empirical_risk,
    logistic_curvature,
    logistic_slope,
    margins,
)
from jaxbounds.multihead.model import MultiHeadAttention, Params, head_norm, head_output
from jaxbounds.networks.curvature import structured_extremes
from jaxbounds.numerics.norms import max_row_norm

QUANTITIES = ("|grad Phi|", "|Hess Phi|", "|grad L| / L", "max Hess L", "-min Hess L / L")
"""The names of the quantities that Lemma 6 (the model) and Corollary 1 (the loss) bound."""


class Measured(NamedTuple):
    """Every quantity of `QUANTITIES` and its bounds, measured at one network.

    Attributes:
        left: the measured quantities, which the bounds limit, in the order of `QUANTITIES`;
            automatic differentiation computes them.
        printed: the printed bounds on the quantities, in the order of `QUANTITIES`: beta_1, beta_3
            / sqrt(H), beta_1, beta_2, beta_3 / sqrt(H).
        sharp: the sharpened bounds on the quantities in `left`.
        error: for each entry of `left`, the width of its certified interval divided by its value; 0
            for an entry without a certified interval.
        certified: whether the least and the greatest eigenvalue are both proved to lie in their
            intervals.
        loss: the training loss L of the network.
    """

    left: Float[Array, " quantity"]
    printed: Float[Array, " quantity"]
    sharp: Float[Array, " quantity"]
    error: Float[Array, " quantity"]
    certified: Bool[Array, ""]
    loss: Float[Array, ""]


def _head(flat: Float[Array, " p"], tokens: Float[Array, "T d"]) -> Float[Array, ""]:
    length, d = tokens.shape
    outer = length * d
    return head_output(flat[:outer].reshape(length, d), flat[outer:].reshape(d, d), tokens)


def _rows(params: Params) -> Float[Array, "H p"]:
    heads = params["U"].shape[0]
    return jnp.concatenate([params[name].reshape(heads, -1) for name in ("U", "W")], axis=1)


def loss_parts(params: Params, data: Data, /) -> tuple[Array, Array]:
    """Return B (H, p, p) and A (H, p, n) with the loss Hessian diag(B_1, .., B_H) + A A^T."""
    rows, n = _rows(params), data["X"].shape[0]
    root = rows.shape[0] ** 0.5
    margin = margins(params, data)
    weights = -logistic_slope(margin) * data["y"].astype(margin.dtype) / (n * root)
    outputs = jax.vmap(_head, in_axes=(None, 0))
    weighted = lambda row: jnp.sum(weights * outputs(row, data["X"]))
    # One head after the other, because the samples of one head already take much memory.
    blocks = jax.lax.map(jax.hessian(weighted), rows)
    slopes = jax.lax.map(jax.jacrev(lambda row: outputs(row, data["X"])), rows)
    stretch = jnp.sqrt(logistic_curvature(margin) / n) / root
    return blocks, jnp.swapaxes(slopes, 1, 2) * stretch[None, None, :]


def _model_norms(params: Params, tokens: Float[Array, "n T d"]) -> tuple[Array, Array]:
    heads = params["U"].shape[0]
    apply = lambda p, x: MultiHeadAttention(heads).apply({"params": p}, x)
    slopes = jax.vmap(jax.grad(apply), in_axes=(None, 0))(params, tokens)
    squares = sum(jnp.sum(leaf**2, axis=(1, 2, 3)) for leaf in slopes.values())
    # Phi is a sum over heads, so its Hessian has a block for each head.
    every = lambda row: jax.vmap(jax.hessian(_head), in_axes=(None, 0))(row, tokens)
    norms = jax.lax.map(
        lambda row: jnp.max(jnp.abs(jnp.linalg.eigvalsh(every(row)))), _rows(params)
    )
    return jnp.sqrt(jnp.max(squares)), jnp.max(norms) / heads**0.5


def measured(params: Params, data: Data, samples: int, /) -> Measured:
    """Measure every quantity with its bounds at one network.

    The function measures the model's Hessian only at the first `samples` samples.
    """
    heads, length, d = params["U"].shape
    loss, slope = jax.value_and_grad(empirical_risk)(params, data)
    gradient, hessian = _model_norms(params, data["X"][:samples])
    ends = structured_extremes(*loss_parts(params, data))
    radius = max_row_norm(data["X"].reshape(-1, d))
    squares = jnp.sum(params["U"] ** 2, axis=(1, 2))
    size, mean = jnp.sqrt(jnp.max(squares)), jnp.mean(squares)
    root, one = heads**0.5, head_norm(params)
    convexity = beta3(one, radius, T=length, d=d) / root
    convexity_sharp = beta3_sharp(size, radius, T=length) / root
    self_bounded, self_bounded_sharp = (
        beta1(one, radius, T=length), beta1_sharp(mean, radius, T=length),
    )  # fmt: skip
    smooth = beta2(one, radius, T=length, d=d, H=heads)
    smooth_sharp = beta2_sharp(size, mean, radius, T=length, H=heads)
    stack = lambda *values: jnp.stack([jnp.asarray(value, loss.dtype) for value in values])
    widths = [b[1] - b[0] for b in (ends.bracket_maximum, ends.bracket_minimum)]
    least = jnp.maximum(-ends.minimum, 0.0)
    norm = jnp.linalg.norm(ravel_pytree(slope)[0])
    return Measured(
        left=stack(gradient, hessian, norm / loss, ends.maximum, least / loss),
        printed=stack(self_bounded, convexity, self_bounded, smooth, convexity),
        sharp=stack(
            self_bounded_sharp, convexity_sharp, self_bounded_sharp, smooth_sharp, convexity_sharp
        ),
        error=stack(0.0, 0.0, 0.0, widths[0], widths[1] / loss),
        certified=ends.certified,
        loss=loss,
    )
