"""Self-bounded weak convexity beyond the paper's model: it holds for every network, with what c.

Checked on the paper's heads and on a two-layer network, whose Hessians are formed whole.
"""

import jax
import jax.numpy as jnp

from jaxbounds.multihead.calculus import head_hessian, loss_hessian
from jaxbounds.multihead.loss import empirical_risk, logistic, margins
from jaxbounds.multihead.self_bounded import loss_weighted_curvature, slope_weighted_curvature
from jaxbounds.multihead.statements.common import ON_LOSS
from jaxbounds.statements import Budget, Form, Instance, Sides, Size, Statement

_DERIVED = (
    "Hess L = (1/n) sum [l''_i grad f_i grad f_i^T + l'_i y_i Hess f_i], whose first part has no "
    "negative eigenvalue."
)


def _sides(values, margin, norms, loss) -> Sides:
    bound, weaker = slope_weighted_curvature(margin, norms), loss_weighted_curvature(margin, norms)
    # Rounding of a symmetric eigenvalue problem. Where the first part outweighs the second so far
    # that fewer than four digits of lambda_min are left, the instance decides nothing.
    rounding = 1e-14 * jnp.max(jnp.abs(values))
    everything = 2 * (jnp.abs(values[0]) + bound + weaker)
    error = jnp.where(rounding > 1e-4 * bound, everything, rounding)
    return Sides(
        lhs=-values[0],
        rhs={"derived": bound, "derived, with the loss": weaker, "control": bound * loss},
        error=jax.lax.stop_gradient(error),
    )


def _of_the_model(instance: Instance, size: Size) -> Sides:
    params = {"U": instance["U"], "W": instance["W"]}
    data = {"X": instance["X"], "y": instance["y"]}
    of_sample = lambda X: jax.vmap(lambda U, W: head_hessian(U, W, X))(params["U"], params["W"])
    blocks = jax.vmap(of_sample)(data["X"])
    # Hess f is block-diagonal over the heads, each divided by sqrt(H).
    norms = jnp.max(jnp.abs(jnp.linalg.eigvalsh(blocks)), axis=(1, 2)) / size["H"] ** 0.5
    values = jnp.linalg.eigvalsh(loss_hessian(params, data))
    return _sides(values, margins(params, data), norms, empirical_risk(params, data))


def _network(weights, x):
    """A two-layer network whose weights are one vector: v . tanh(A x)."""
    d = x.shape[0]
    hidden = weights.reshape(-1, d + 1)
    return hidden[:, d] @ jnp.tanh(hidden[:, :d] @ x)


def _of_a_network(instance: Instance, size: Size) -> Sides:
    weights, x = instance["weights"], instance["x"]
    y = instance["y"].astype(x.dtype)
    margin_of = lambda w: y * jax.vmap(_network, in_axes=(None, 0))(w, x)
    risk = lambda w: jnp.mean(logistic(margin_of(w)))
    curvatures = jax.vmap(jax.hessian(_network), in_axes=(None, 0))(weights, x)
    norms = jnp.max(jnp.abs(jnp.linalg.eigvalsh(curvatures)), axis=1)
    values = jnp.linalg.eigvalsh(jax.hessian(risk)(weights))
    return _sides(values, margin_of(weights), norms, risk(weights))


def _weights_and_data(key: jax.Array, size: Size) -> Instance:
    scale_key, weight_key, data_key, label_key = jax.random.split(key, 4)
    scale = jnp.exp(jax.random.uniform(scale_key, (2,), minval=-2.0, maxval=2.0))
    count = size["m"] * (size["d"] + 1)
    return {
        "weights": scale[0] * jax.random.normal(weight_key, (count,)),
        "x": scale[1] * jax.random.normal(data_key, (size["n"], size["d"])),
        "y": jax.random.rademacher(label_key, (size["n"],), dtype=int),
    }


_FORMS = (
    Form(
        name="derived",
        equality="one sample with a large negative margin and the right sign of its curvature",
        note=_DERIVED,
    ),
    Form(
        name="derived, with the loss",
        equality="one sample with a large positive margin",
        note=_DERIVED + " Then |l'| <= l: self-bounded for every network.",
    ),
)

STATEMENTS = (
    Statement(
        id="multihead.selfbounded.model",
        label="Corollary 1 (3), what every network has",
        formula="-lambda_min(Hess L) <= (1/n) sum |l'_i| ||Hess f_i|| <= L max_i ||Hess f_i||",
        evaluate=_of_the_model,
        forms=_FORMS,
        control="the sum is multiplied by L",
        judges=(slope_weighted_curvature, loss_weighted_curvature),
        source="ours; Section 3 has it for its model",
        **ON_LOSS,
    ),
    Statement(
        id="multihead.selfbounded.network",
        label="Corollary 1 (3), on a two-layer network",
        formula="-lambda_min(Hess L) <= (1/n) sum |l'_i| ||Hess f_i|| <= L max_i ||Hess f_i||",
        kind="inequality",
        evaluate=_of_a_network,
        sample=_weights_and_data,
        sizes=({"n": 1, "d": 1, "m": 1}, {"n": 5, "d": 3, "m": 4}),
        forms=_FORMS,
        control="the sum is multiplied by L",
        judges=(slope_weighted_curvature, loss_weighted_curvature),
        budget=Budget(samples=192, restarts=8, steps=200),
        source="ours; Section 3 has it for its model",
    ),
)
