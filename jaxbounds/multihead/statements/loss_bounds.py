"""Corollary 1 / Lemma 6: bounds on the training loss, its gradient and its Hessian."""

import math

import jax
import jax.numpy as jnp

from jaxbounds.multihead.bounds import beta1, beta1_sharp, beta2, beta2_sharp, beta3, beta3_sharp
from jaxbounds.multihead.calculus import loss_hessian
from jaxbounds.multihead.instances import LOSS
from jaxbounds.multihead.loss import (
    empirical_risk,
    logistic,
    logistic_curvature,
    logistic_slope,
    margins,
)
from jaxbounds.multihead.statements.common import (
    data_of,
    loss_statement,
    params_of,
    shape_of,
    sizes_of,
)
from jaxbounds.statements import Budget, Form, Instance, Sides


def _slope_bound(instance: Instance) -> Sides:
    margin = margins(params_of(instance), data_of(instance))
    loss, slope = jnp.mean(logistic(margin)), jnp.mean(logistic_slope(margin))
    return Sides(lhs=slope, rhs={"printed": loss, "control": loss**2})


def _loss_bound(instance: Instance) -> Sides:
    margin = margins(params_of(instance), data_of(instance))
    loss, slope = jnp.mean(logistic(margin)), jnp.mean(logistic_slope(margin))
    return Sides(
        lhs={"printed": loss, "corrected": slope, "control": slope},
        rhs={"printed": 1.0, "corrected": jnp.minimum(loss, 1.0), "control": 0.5},
    )


def _curvature_bound(instance: Instance) -> Sides:
    margin = margins(params_of(instance), data_of(instance))
    slope, curvature = jnp.mean(logistic_slope(margin)), jnp.mean(logistic_curvature(margin))
    return Sides(
        lhs=curvature,
        rhs={"printed": 0.25, "sharpened": jnp.minimum(slope, 0.25), "control": slope / 2},
    )


def _gradient_bound(instance: Instance) -> Sides:
    params, T = params_of(instance), instance["X"].shape[1]
    loss, slope = jax.value_and_grad(empirical_risk)(params, data_of(instance))
    radius, size, largest, squares = sizes_of(params, instance["X"])
    return Sides(
        lhs=jnp.sqrt(jnp.sum(slope["U"] ** 2) + jnp.sum(slope["W"] ** 2)),
        rhs={
            "printed": beta1(size, radius, T=T) * loss,
            "printed, Lemma 6": beta1(largest, radius, T=T) * loss,
            "sharpened S2": beta1_sharp(squares, radius, T=T) * loss,
            "control": beta1_sharp(squares, radius, T=T) * loss**2,
        },
    )


def _eigenvalues(params, data):
    return jnp.linalg.eigvalsh(loss_hessian(params, data))


def _smoothness_bound(instance: Instance) -> Sides:
    params, data, shape = params_of(instance), data_of(instance), shape_of(instance)
    heads, T = instance["U"].shape[0], shape["T"]
    values = _eigenvalues(params, data)
    radius, size, largest, squares = sizes_of(params, instance["X"])
    root, sharp_1 = math.sqrt(heads), beta1_sharp(squares, radius, T=T)
    sharp_3 = beta3_sharp(largest, radius, T=T)
    loss = empirical_risk(params, data)
    return Sides(
        lhs=jnp.max(jnp.abs(values)),
        rhs={
            "printed": beta2(size, radius, H=heads, **shape),
            "printed, Lemma 6": beta2(largest, radius, H=heads, **shape),
            "sharpened S6": beta2_sharp(largest, squares, radius, T=T, H=heads),
            "sharpened S6, self-bounded": (sharp_3 / root + sharp_1**2) * loss,
            "control": (sharp_3 / root + sharp_1**2) * loss**2,
        },
    )


def _weak_convexity(instance: Instance) -> Sides:
    params, data, shape = params_of(instance), data_of(instance), shape_of(instance)
    root = math.sqrt(instance["U"].shape[0])
    values, loss = _eigenvalues(params, data), empirical_risk(params, data)
    radius, size, largest, _ = sizes_of(params, instance["X"])
    sharp = beta3_sharp(largest, radius, T=shape["T"]) / root
    return Sides(
        lhs=-values[0],
        rhs={
            "printed": beta3(size, radius, **shape) * loss / root,
            "printed, Lemma 6": beta3(largest, radius, **shape) * loss / root,
            "sharpened S6": sharp * loss,
            "control": sharp * loss**2,
        },
        # Rounding of a symmetric eigenvalue problem.
        error=1e-14 * jnp.max(jnp.abs(values)),
    )


_MISFIT = {
    "X": [[[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]],
    "y": [-1],
    "U": [[[10.0, 0.0], [10.0, 0.0], [10.0, 0.0]]],
    "W": [[[0.0, 0.0], [0.0, 0.0]]],
}

_STATIC = {name: LOSS[name] for name in ("generic", "extremal")}

_SMALL = Budget(samples=128, restarts=4, steps=100)

STATEMENTS = (
    loss_statement(
        "eq24.slope",
        "eq. (24), first part",
        "L' := mean |l'(y Phi)| <= L",
        _slope_bound,
        (Form(name="printed", equality="the limit of large margins", note="log(1+x) >= x/(1+x)."),),
        "L is replaced by L^2",
        "Appendix A, eq. (24)",
        sample=_STATIC,
        sizes=({"n": 1, "T": 2, "d": 2, "H": 1},),
        budget=_SMALL,
    ),
    loss_statement(
        "eq24.loss",
        "eq. (24), second part",
        "L' <= L <= 1",
        _loss_bound,
        (
            Form(
                name="printed",
                expected="fails",
                erratum="E1",
                note="L is unbounded: three equal tokens, rows of U equal to (10, 0), y = -1.",
                counterexample=_MISFIT,
            ),
            Form(
                name="corrected",
                equality="the limits of large margins of either sign",
                note="L' <= min(L, 1), which is all that (66) and Theorem 3 use.",
            ),
        ),
        "L' <= 1/2",
        "Appendix A, eq. (24)",
        sample=_STATIC,
        sizes=({"n": 1, "T": 2, "d": 2, "H": 1},),
        budget=_SMALL,
    ),
    loss_statement(
        "eq24.curvature",
        "eq. (24), third part",
        "L'' := mean |l''(y Phi)| <= 1/4",
        _curvature_bound,
        (
            Form(name="printed", equality="Phi = 0"),
            Form(
                name="sharpened",
                equality="Phi = 0, and the limit of large margins",
                note="l'' = |l'| (1 - |l'|), so L'' <= min(L', 1/4).",
            ),
        ),
        "half of L'",
        "Appendix A, eq. (24)",
        sample=_STATIC,
        sizes=({"n": 1, "T": 2, "d": 2, "H": 1},),
        budget=_SMALL,
    ),
    loss_statement(
        "cor1.1",
        "Corollary 1 (1)",
        "||grad L|| <= beta_1 L, beta_1 = sqrt(T) R (2 R^2 ||theta||_{2,inf} + 1)",
        _gradient_bound,
        (
            Form(name="printed"),
            Form(name="printed, Lemma 6", note="max_h ||U_h||_F for ||theta||_{2,inf}."),
            Form(
                name="sharpened S2",
                equality="the limit of large margins at equality of the model's gradient",
                note="sqrt(T) R sqrt(1 + R^4 mean_h ||U_h||_F^2).",
            ),
        ),
        "L is replaced by L^2",
        "Section 3; restated as Lemma 6 (1), eq. (64)",
    ),
    loss_statement(
        "cor1.2",
        "Corollary 1 (2)",
        "||Hess L|| <= beta_2 = beta_3 / sqrt(H) + beta_1^2 / 4",
        _smoothness_bound,
        (
            Form(name="printed"),
            Form(name="printed, Lemma 6", note="max_h ||U_h||_F for ||theta||_{2,inf}."),
            Form(name="sharpened S6", note="beta_3# / sqrt(H) + beta_1#^2 / 4."),
            Form(
                name="sharpened S6, self-bounded",
                note="l'' <= |l'| <= l gives (beta_3# / sqrt(H) + beta_1#^2) L.",
            ),
        ),
        "L is replaced by L^2 in the self-bounded form",
        "Section 3; restated as Lemma 6 (2), eq. (66)",
    ),
    loss_statement(
        "cor1.3",
        "Corollary 1 (3)",
        "lambda_min(Hess L) >= -beta_3 L / sqrt(H), "
        "beta_3 = 2 sqrt(T d) R^3 (3 sqrt(d) R^2 ||theta||_{2,inf} + 1)",
        _weak_convexity,
        (
            Form(name="printed"),
            Form(name="printed, Lemma 6", note="max_h ||U_h||_F for ||theta||_{2,inf}."),
            Form(
                name="sharpened S6",
                equality="the limit of large margins at equality of the model's Hessian",
                note="sqrt(T) R^3 (c* R^2 max_h ||U_h||_F + 1): smaller by 2 sqrt(d) and 7.8 d.",
            ),
        ),
        "L is replaced by L^2",
        "Section 3; restated as Lemma 6 (3)",
        budget=Budget(samples=192, restarts=16, steps=300),
    ),
)
