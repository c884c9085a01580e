"""Every network has self-bounded weak convexity for some c, also outside the paper's model.

The statements check this convexity on the paper's heads and on a two-layer network, with the full
Hessians.
"""

import functools

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.sets import Reals
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.multihead.bounds import beta1, beta3, beta3_sharp
from jaxbounds.multihead.derivatives import (
    flatten,
    network,
    network_hessian,
    risk_hessian,
    unflatten,
)
from jaxbounds.multihead.loss import empirical_risk, logistic, margins
from jaxbounds.multihead.model import head_norm
from jaxbounds.multihead.self_bounded import loss_weighted_curvature, slope_weighted_curvature
from jaxbounds.multihead.statements.common import (
    LOSS_ASSUMED,
    on_loss,
    params_of,
    sizes_of,
    token_radius,
)
from jaxbounds.multihead.statements.instances import STATIC, keep_radius, radius_at_least_one
from jaxbounds.numerics.norms import vector_norm

_DERIVED = (
    "Hess L = (1/n) sum [l''_i grad f_i grad f_i^T + l'_i y_i Hess f_i]. The first part has no "
    "negative eigenvalue."
)


def _sides(
    values: Array, margin: Array, norms: Array, loss: Array, unsaturated: ArrayLike = 0.0
) -> Sides:
    bound, weaker = slope_weighted_curvature(margin, norms), loss_weighted_curvature(margin, norms)
    # The rounding errors of a symmetric eigenvalue problem, and of 1 - tanh^2 or of a covariance if
    # a unit or the attention is saturated. If the rounding errors leave fewer than four digits of
    # lambda_min, `error` is so large that the instance decides no form.
    rounding = 1e-14 * (jnp.max(jnp.abs(values)) + unsaturated)
    everything = 2 * (jnp.abs(values[0]) + bound + weaker)
    error = jnp.where(rounding > 1e-4 * bound, everything, rounding)
    return Sides(
        lhs=-values[0],
        rhs={"derived": bound, "derived, with the loss": weaker, "control": 0.9 * bound},
        error=jax.lax.stop_gradient(error),
    )


def _of_the_model(instance: Instance, size: Size) -> Sides:
    params = {"U": instance["U"], "W": instance["W"]}
    data = {"X": instance["X"], "y": instance["y"]}
    hessians = jax.vmap(network_hessian, in_axes=(None, 0))(params, data["X"])
    norms = jnp.max(jnp.abs(jnp.linalg.eigvalsh(hessians)), axis=1)
    values = jnp.linalg.eigvalsh(risk_hessian(params, data))
    margin, (_, largest, _) = margins(params, data), sizes_of(params)
    # About ||Hess f_i|| if no attention were saturated.
    free = beta3_sharp(largest, token_radius(instance), T=size["T"]) / size["H"] ** 0.5
    unsaturated = slope_weighted_curvature(margin, free * jnp.ones_like(norms))
    # An eigenvalue of the size of rounding counts as zero, so that its sign depends on no
    # processor.
    rounding = 1e-14 * (jnp.max(jnp.abs(values)) + unsaturated)
    values = jnp.where(jnp.abs(values) > rounding, values, 0.0)
    return _sides(values, margin, norms, empirical_risk(params, data), unsaturated)


def _network(weights: Array, x: Array) -> Array:
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
    # About ||Hess f_i|| if no unit were saturated: |v| ||x||^2 + ||x||.
    length, outer = vector_norm(x), jnp.max(jnp.abs(weights.reshape(-1, size["d"] + 1)[:, -1]))
    unsaturated = slope_weighted_curvature(margin_of(weights), length * (1 + outer * length))
    return _sides(values, margin_of(weights), norms, risk(weights), unsaturated)


def _one_free_unit(size: Size) -> Instance:
    """Return an instance at which the bound is an equality.

    One saturated hidden unit gives all samples the margin 9, and the weights of the other units are
    zero. As a function of the weights of a unit with zero weights, the output has gradient zero and
    Hessian eigenvalues +-||x||.
    """
    n, d, m = size["n"], size["d"], size["m"]
    units = jnp.zeros((m, d + 1))
    units = units.at[0, 0].set(20.0).at[0, d].set(9.0) if m > 1 else units
    x = jnp.broadcast_to(jnp.eye(1, d), (1, n, d))
    return {"weights": units.reshape(1, -1), "x": x, "y": jnp.ones((1, n), int)}


def _other_loss(instance: Instance, size: Size) -> Sides:
    """Compare both sides for the loss sqrt(1 + z^2) - z.

    This loss is convex, smooth and Lipschitz, and |l'| <= l.
    """
    tokens, labels = instance["X"], instance["y"].astype(instance["X"].dtype)

    def risk(flat: Array) -> Array:
        params = unflatten(flat, params_of(instance))
        margin = labels * jax.vmap(network, in_axes=(None, 0))(params, tokens)
        # This form has no cancellation for large margins.
        root = jnp.sqrt(1 + margin**2)
        return jnp.mean(jnp.where(margin > 0, 1 / (root + jnp.abs(margin)), root - margin))

    point = flatten(params_of(instance))
    values, loss = jnp.linalg.eigvalsh(jax.hessian(risk)(point)), risk(point)
    norm, radius, T = head_norm(params_of(instance)), token_radius(instance), size["T"]
    weak = beta3(norm, radius, T=T, d=size["d"]) / size["H"] ** 0.5
    slope = jnp.linalg.norm(jax.grad(risk)(point))
    return Sides.pairs(
        {
            "printed": (slope, beta1(norm, radius, T=T) * loss),
            "printed, curvature": (-values[0], weak * loss),
            "control": (slope, 0.2 * beta1(norm, radius, T=T) * loss),
        },
        error=1e-13 * jnp.max(jnp.abs(values)),
    )


def _moderate(instance: Instance, size: Size) -> dict[str, Array]:
    if "weights" in instance:
        found = jax.vmap(_network, in_axes=(None, 0))(instance["weights"], instance["x"])
    else:
        found = margins(params_of(instance), {"X": instance["X"], "y": instance["y"]})
    return {"|y f| <= 15": jnp.max(jnp.abs(found)) <= 15}


_every_network = functools.partial(
    Statement,
    formula="-lambda_min(Hess L) <= (1/n) sum |l'_i| ||Hess f_i|| <= L max_i ||Hess f_i||",
    tex=r"-\lambda_{\min}(\nabla^2 \hat L) \le \frac{1}{n} \sum_{i} |\ell'_i| \|\nabla^2 "
    r"f_i\| \le \hat L \max_{i} \|\nabla^2 f_i\|",
    forms=(
        Form(
            name="derived",
            equality="a head or unit at zero, where the gradient vanishes and the curvature does "
            "not",
            note=_DERIVED,
        ),
        Form(
            name="derived, with the loss",
            hypotheses=_moderate,
            note=_DERIVED + " The logistic loss l has |l'| <= l, and |l'| and l are nearly equal "
            "for large margins. So for every network the least eigenvalue of the Hessian is at "
            "least a negative constant times the loss.",
        ),
    ),
    control="0.9 of the sum",
    judges=(slope_weighted_curvature, loss_weighted_curvature),
    source="ours; Section 3 has it for its model",
)

STATEMENTS = (
    on_loss(
        id="multihead.footnote2",
        label="footnote to Section 2",
        formula="||grad L|| <= beta_1 L and lambda_min(Hess L) >= -beta_3 L / sqrt(H) for another "
        "self-bounded loss",
        tex=r"|\ell'| \le \ell: \quad \|\nabla \hat L\| \le \beta_1 \hat L, \quad "
        r"\lambda_{\min}(\nabla^2 \hat L) \ge -\frac{\beta_3}{\sqrt{H}} \hat L",
        evaluate=_other_loss,
        forms=(
            Form(
                name="printed",
                cites="Section 2: 'Our analysis extends to any convex, smooth, Lipschitz and "
                "self-bounded loss'",
                note="The check uses the loss l(z) = sqrt(1 + z^2) - z, whose constant of "
                "self-boundedness is 1.",
            ),
            Form(
                name="printed, curvature", cites="Section 2, the same; Corollary 1 (3), Section 3"
            ),
        ),
        control="a fifth of beta_1 L",
        judges=(beta1, beta3),
        source="Section 2, footnote on self-bounded losses",
        search="random",
        sample=STATIC,
        sizes=({"n": 2, "T": 2, "d": 2, "H": 2},),
        assumptions="Assumption 1; one loss other than the logistic, of Corollary 1 alone",
        budget=Budget(samples=64, restarts=2, steps=60),
    ),
    _every_network(
        id="multihead.selfbounded.model",
        label="Corollary 1 (3), what every network has",
        evaluate=_of_the_model,
        search="random",
        assumptions=LOSS_ASSUMED,
        hypotheses=radius_at_least_one,
        project=keep_radius,
        kind="inequality",
        sample=STATIC,
        # The size n = 1 is left out, because a mean of one term is a sum.
        sizes=({"n": 2, "T": 2, "d": 2, "H": 1}, {"n": 2, "T": 2, "d": 2, "H": 2}),
        budget=Budget(samples=128, restarts=1, steps=20),
    ),
    _every_network(
        id="multihead.selfbounded.network",
        label="Corollary 1 (3), on a two-layer network",
        kind="inequality",
        evaluate=_of_a_network,
        over={"weights": Reals("m*(d+1)"), "x": Reals(("n", "d"))},
        sample=lambda key, size: {"y": jax.random.rademacher(key, (size["n"],), dtype=int)},
        cases=_one_free_unit,
        sizes=({"n": 2, "d": 1, "m": 1}, {"n": 5, "d": 3, "m": 4}),
        budget=Budget(samples=128, restarts=3, steps=60),
    ),
)
