"""Derivatives of the attention model's output and of its loss, by automatic differentiation."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.multihead.loss import Data, logistic
from jaxbounds.multihead.model import MultiHeadAttention, Params


def network(params: Params, tokens: Float[Array, "T d"], /) -> Float[Array, ""]:
    """Return the output of the module with H heads, through Flax's `apply`."""
    module = MultiHeadAttention(heads=params["U"].shape[0])
    return jnp.asarray(module.apply({"params": dict(params)}, tokens))


def one_head(
    projection: Float[Array, "T d"], weights: Float[Array, "d d"], tokens: Float[Array, "T d"], /
) -> Float[Array, ""]:
    """Return the output of a module with a single head."""
    return network({"U": projection[None], "W": weights[None]}, tokens)


def network_risk(params: Params, data: Data, /) -> Float[Array, ""]:
    """Return the training loss of the module."""
    outputs = jax.vmap(network, in_axes=(None, 0))(params, data["X"])
    return jnp.mean(logistic(data["y"].astype(outputs.dtype) * outputs))


def flatten(params: Params, /) -> Float[Array, " P"]:
    """Return the parameters as a vector: for each head first U, then W, row by row."""
    heads = params["U"].shape[0]
    rows = [params[name].reshape(heads, -1) for name in ("U", "W")]
    return jnp.concatenate(rows, axis=1).ravel()


def unflatten(point: Float[Array, " P"], like: Params, /) -> Params:
    """Invert `flatten`: return a vector as parameters with the shapes of `like`."""
    heads, outer = like["U"].shape[0], like["U"][0].size
    rows = point.reshape(heads, -1)
    return {
        "U": rows[:, :outer].reshape(like["U"].shape),
        "W": rows[:, outer:].reshape(like["W"].shape),
    }


def risk_gradient(params: Params, data: Data, /) -> Float[Array, " P"]:
    """Return the gradient of the training loss, as a vector."""
    return flatten(jax.grad(network_risk)(params, data))


def risk_hessian(params: Params, data: Data, /) -> Float[Array, "P P"]:
    """Return the Hessian of the training loss, as a matrix."""
    return jax.hessian(lambda point: network_risk(unflatten(point, params), data))(flatten(params))


def risk_hessian_product(
    params: Params, data: Data, vector: Float[Array, " P"], /
) -> Float[Array, " P"]:
    """Return the product of the loss's Hessian and a vector, using the memory of one gradient."""
    slope = jax.grad(lambda point: network_risk(unflatten(point, params), data))
    return jax.jvp(slope, (flatten(params),), (vector,))[1]


def network_gradient(params: Params, tokens: Float[Array, "T d"], /) -> Float[Array, " P"]:
    """Return the gradient of the module's output on one sequence."""
    return flatten(jax.grad(network)(params, tokens))


def network_hessian(params: Params, tokens: Float[Array, "T d"], /) -> Float[Array, "P P"]:
    """Return the Hessian of the module's output on one sequence."""
    return jax.hessian(lambda point: network(unflatten(point, params), tokens))(flatten(params))


def loss_slope(margin: Float[Array, " n"], /) -> Float[Array, " n"]:
    """Return the derivative of the logistic loss at each margin."""
    return jax.vmap(jax.grad(logistic))(margin)


def loss_curvature(margin: Float[Array, " n"], /) -> Float[Array, " n"]:
    """Return the second derivative of the logistic loss at each margin."""
    return jax.vmap(jax.grad(jax.grad(logistic)))(margin)
