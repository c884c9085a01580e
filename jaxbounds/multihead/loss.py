"""The logistic loss and the empirical risk (Section 2)."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.multihead.model import Params, model_output

Data = Mapping[str, Array]


def logistic(margin: Float[Array, "..."], /) -> Float[Array, "..."]:
    """Return the logistic loss log(1 + exp(-z)), accurate for large |z|."""
    return jnp.logaddexp(jnp.zeros((), margin.dtype), -margin)


def logistic_slope(margin: Float[Array, "..."], /) -> Float[Array, "..."]:
    """Return |l'(z)| = 1 / (1 + exp(z)), the absolute slope of the logistic loss."""
    return jax.nn.sigmoid(-margin)


def logistic_curvature(margin: Float[Array, "..."], /) -> Float[Array, "..."]:
    """Return l''(z) = |l'(z)| (1 - |l'(z)|), the second derivative of the logistic loss."""
    return jax.nn.sigmoid(margin) * jax.nn.sigmoid(-margin)


def margins(params: Params, data: Data, /) -> Float[Array, " n"]:
    """Return the margins y_i Phi(X_i; theta), shape (n,).

    Raises:
        AssertionError: if y does not have shape (n,).
    """
    import chex  # slow to import

    # Labels of shape (n, 1) would give n^2 margins.
    chex.assert_shape(data["y"], (data["X"].shape[0],))
    outputs = jax.vmap(model_output, in_axes=(None, 0))(params, data["X"])
    return data["y"].astype(outputs.dtype) * outputs


def empirical_risk(params: Params, data: Data, /) -> Float[Array, ""]:
    """Return the training loss: the mean of l(y_i Phi(X_i; theta))."""
    return jnp.mean(logistic(margins(params, data)))
