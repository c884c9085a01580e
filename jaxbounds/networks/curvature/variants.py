"""Define losses for which `Curvature` is the Fisher matrix or a preconditioned Hessian."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxbounds.ground.exceptions import Refused
from jaxbounds.networks.curvature.paths import Params
from jaxbounds.networks.curvature.products import Composite, Loss, real

HALF = 0.5
"""The function `empirical_fisher` multiplies the mean of n squared losses by this factor. The
factor 1/2 makes the Hessian in the n losses equal to the identity divided by n. A larger factor
would make the Gauss-Newton matrix a multiple of the Fisher matrix.
"""


def empirical_fisher(loss: Loss, /) -> Composite:
    """Return a loss whose Gauss-Newton matrix is the empirical Fisher matrix of `loss`.

    The matrix is the mean over the examples of g g^T, where g is the gradient of one example's
    loss (Kunstner, Balles and Hennig, NeurIPS 2019, eq. (3)).

    ```python
    F = jb.Curvature(curvature.empirical_fisher(loss), params, data, of="ggn")
    ```

    The true Fisher matrix needs no call of `empirical_fisher`. If the outer loss of a `Composite`
    is a negative log-likelihood in natural parameters, `Curvature` with `of="ggn"` is the true
    Fisher matrix. Examples are softmax with cross entropy, logistic loss, or half the squared error
    (Martens, JMLR 2020, Section 9.2).

    Args:
        loss: `loss(params, batch)`, the mean loss over the examples of the batch; each array of the
            batch has shape (n, ...).

    Raises:
        Refused: raised later, by `Curvature`, if the loss of one example is not one real number.
    """

    def outputs(params: Params, batch: Any) -> jax.Array:
        one = lambda example: real(loss(params, jax.tree.map(lambda x: x[None], example)))
        return jax.vmap(one)(batch)

    return Composite(outputs, lambda losses, batch: HALF * jnp.mean(losses**2))


def preconditioned(
    loss: Loss,
    params: Params,
    state: Any,
    /,
    *,
    decay: float = 0.999,
    epsilon: float = 1e-8,
) -> tuple[Callable, Params]:
    """Return a loss whose gradient descent steps are the steps of an adaptive optimiser.

    Let nu be the optimiser's second moment and P = diag(sqrt(nu) + epsilon). The Hessian of the
    returned loss at the returned point is P^(-1/2) H P^(-1/2). The greatest eigenvalue of this
    Hessian is the sharpness that limits Adam's learning rate. Adam becomes unstable if the greatest
    eigenvalue of this Hessian exceeds (1 + beta_1) / (1 - beta_1) * 2 / learning rate (Cohen et
    al., arXiv 2207.14484, Section 2).

    ```python
    scaled, origin = curvature.preconditioned(loss, params, optimiser_state)
    jb.Curvature(scaled, origin, data).extremes().maximum
    ```

    Args:
        loss: `loss(params)` or `loss(params, batch)`.
        params: the pytree of arrays with which the optimiser was initialised.
        state: the state of an Optax optimiser with one second moment `nu`: adam, adamw, rmsprop,
            lamb.
        decay: the decay rate beta_2 of the optimiser's second moment. A larger decay rate corrects
            the bias of early moments more strongly. If the state does not count steps (rmsprop),
            the function uses the second moment without bias correction.
        epsilon: the constant epsilon of the optimiser, in units of the gradient. A larger epsilon
            lowers the sharpness.

    Returns:
        The loss as a function of a step in the new coordinates, and the step of zeros, a pytree
        like `params`.

    Raises:
        Refused: if the state holds no second moment or several, its count of steps is 0, or the
            moment has another structure than the parameters.
    """
    has = lambda node: hasattr(node, "nu")
    found = [node for node in jax.tree.leaves(state, is_leaf=has) if has(node)]
    if len(found) != 1:
        raise Refused(
            f"state must hold exactly one second moment `nu`, got {len(found)}. Try the state of "
            "optax.adam, or the part of a larger state that belongs to adam"
        )
    counts = "count" in getattr(found[0], "_fields", ())  # every tuple has a method `count`
    moment, count = found[0].nu, found[0].count if counts else None
    shapes = lambda tree: jax.tree.map(jnp.shape, tree)
    if shapes(moment) != shapes(params):
        raise Refused(
            f"params of type={type(params).__name__} has other leaves or shapes than the "
            f"optimiser's second moment `nu`. Try the parameters with which the optimiser was "
            f"initialised"
        )
    young: Any = 1.0
    if count is not None:
        if not isinstance(count, jax.core.Tracer) and count == 0:
            raise Refused(
                "state.count=0, so the second moment is still 0. Try the state after at least one "
                "step"
            )
        young = 1 - decay ** jnp.asarray(count, jnp.float32)
    scale = jax.tree.map(
        lambda nu: 1 / jnp.sqrt(jnp.sqrt(nu / jnp.asarray(young, nu.dtype)) + epsilon), moment
    )

    def scaled(step: Params, *batch: Any) -> jax.Array:
        return loss(jax.tree.map(lambda p, d, u: p + d * u, params, scale, step), *batch)

    return scaled, jax.tree.map(jnp.zeros_like, params)
