"""The logistic loss and the empirical risk (Section 2)."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.multihead.model import Params, model_output

Data = Mapping[str, Array]


def logistic(margin: Float[Array, "..."], /) -> Float[Array, "..."]:
    """log(1 + exp(-z)), accurate for large |z|."""
    return jnp.logaddexp(jnp.zeros((), margin.dtype), -margin)


def logistic_slope(margin: Float[Array, "..."], /) -> Float[Array, "..."]:
    """|l'(z)| = 1 / (1 + exp(z))."""
    return jax.nn.sigmoid(-margin)


def logistic_curvature(margin: Float[Array, "..."], /) -> Float[Array, "..."]:
    """l''(z) = |l'(z)| (1 - |l'(z)|)."""
    return jax.nn.sigmoid(margin) * jax.nn.sigmoid(-margin)


def margins(params: Params, data: Data, /) -> Float[Array, " n"]:
    """y_i Phi(X_i; theta).

    Raises:
        AssertionError: if y is not (n,).
    """
    import chex  # slow to import

    chex.assert_shape(data["y"], (data["X"].shape[0],))  # (n, 1) would make n^2 margins
    outputs = jax.vmap(model_output, in_axes=(None, 0))(params, data["X"])
    return data["y"].astype(outputs.dtype) * outputs


def empirical_risk(params: Params, data: Data, /) -> Float[Array, ""]:
    """The training loss: the mean of l(y_i Phi(X_i; theta))."""
    return jnp.mean(logistic(margins(params, data)))
