"""Statements that compare the library's closed forms of derivatives with autograd.

The closed forms are this library's own; the paper does not print them.
"""

import jax
import jax.numpy as jnp

from jaxbounds.claims.sets import Box
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.multihead.calculus import head_hessian, loss_hessian_extremes
from jaxbounds.multihead.derivatives import (
    flatten,
    loss_curvature,
    loss_slope,
    network_hessian,
    risk_gradient,
    risk_hessian,
)
from jaxbounds.multihead.loss import logistic_curvature, logistic_slope
from jaxbounds.multihead.runs import training_set
from jaxbounds.multihead.statements.common import params_of
from jaxbounds.multihead.statements.instances import loss_generic
from jaxbounds.multihead.tied import per_head, tied_distance, tied_norm, tied_risk, untie
from jaxbounds.numerics.norms import vector_norm

WIDTH = 2e-9
"""The relative width of the intervals in which `structured_extremes` encloses each eigenvalue. A
larger width makes the interval less exact.
"""
COPIES = (1, 3)
"""The number of heads in each of the two groups of equal heads."""


def _logistic_derivatives(instance: Instance, size: Size) -> Sides:
    margin = instance["margin"]
    slope, curvature = logistic_slope(margin), logistic_curvature(margin)
    return Sides.pairs(
        {
            "derived, slope": (-loss_slope(margin), slope),
            "derived, curvature": (loss_curvature(margin), curvature),
            "control": (-loss_slope(margin), logistic_slope(-margin)),
        },
        error=1e-14,
    )


LOGISTIC = Statement(
    id="multihead.eq24.derivatives",
    label="eq. (24), the derivatives",
    formula="l'(z) = -1 / (1 + exp(z)), l''(z) = |l'(z)| (1 - |l'(z)|)",
    tex=r"\ell'(z) = -\frac{1}{1 + e^z}, \quad \ell''(z) = |\ell'(z)| (1 - |\ell'(z)|)",
    kind="identity",
    evaluate=_logistic_derivatives,
    judges=(logistic_slope, logistic_curvature),
    over={"margin": Box(-30, 30, "n")},
    sizes=({"n": 5},),
    forms=(
        Form(
            name="derived, slope",
            note="The check compares the closed form of l', the derivative "
            "of the logistic loss, with autograd.",
        ),
        Form(
            name="derived, curvature",
            note="The check compares the closed form of l'', the second derivative of the logistic "
            "loss, with autograd.",
        ),
    ),
    control="the sign of the margin is exchanged",
    source="library: the closed forms behind eq. (24)",
)


def _one_head(instance: Instance, size: Size) -> Sides:
    alone = {name: instance[name][:1] for name in "UW"}
    measured = network_hessian(alone, instance["X"][0])
    closed = lambda U, W: head_hessian(U, W, instance["X"][0])
    found = closed(instance["U"][0], instance["W"][0])
    return Sides(
        lhs=measured,
        rhs={"derived": found, "control": closed(-instance["U"][0], instance["W"][0])},
        error=1e-13 * jnp.max(jnp.abs(found)),
    )


HEAD_HESSIAN = Statement(
    id="multihead.lemma1.hessian",
    label="Lemma 4, as a matrix",
    formula="Hess Phi = [[0, N], [N^T, M]] with the blocks of Lemma 4 (3) and (4)",
    tex=r"\nabla^2_\theta \Phi = \begin{pmatrix} 0 & N \\ N^\top & M \end{pmatrix}",
    kind="identity",
    sample=loss_generic,
    evaluate=_one_head,
    judges=(head_hessian, network_hessian),
    sizes=({"n": 1, "T": 3, "d": 2, "H": 1},),
    forms=(
        Form(
            name="derived",
            note=(
                "The check assembles the Hessian from its blocks N and M, and compares this matrix "
                "with jax.hessian."
            ),
        ),
    ),
    control="U is replaced by -U",
    source="library: Lemma 4 (3) and (4), Appendix A.1, as one matrix",
    budget=Budget(samples=64),
)


@jax.jit
def _ends(instance: Instance) -> Sides:
    params, data = params_of(instance), training_set(instance)
    values = jnp.linalg.eigvalsh(risk_hessian(params, data))
    found = loss_hessian_extremes(params, data)
    ends = jnp.stack([found.minimum, found.maximum])
    return Sides(
        lhs=jnp.stack([values[0], values[-1]]),
        rhs={
            # A value outside the enclosure by inertia counts is no end of the spectrum.
            "derived": jnp.where(found.certified, ends, jnp.nan),
            "control": ends * jnp.asarray([1.0, 1.01]),
        },
        error=1e-13 * jnp.max(jnp.abs(values)),
    )


def _on_host(instance: Instance, size: Size) -> Sides:
    """Measure one instance alone; a batch would take as long as its slowest instance."""
    return _ends(jax.tree.map(jnp.asarray, instance))


ENDS = Statement(
    id="multihead.eq65.ends",
    label="eq. (65), both ends of the spectrum",
    formula="lambda_min and lambda_max of blockdiag(B_h) + F F^T, by counts of inertia",
    tex=r"\lambda_{\min}, \lambda_{\max} \left( \mathrm{blockdiag}(B_h) + F F^\top \right)",
    kind="identity",
    sample=loss_generic,
    evaluate=_on_host,
    host=True,
    judges=(loss_hessian_extremes,),
    sizes=({"n": 3, "T": 2, "d": 2, "H": 2},),
    forms=(
        Form(
            name="derived",
            note=(
                "The check compares the computed least and greatest eigenvalues with the "
                "eigenvalues of jax.hessian of the loss."
            ),
        ),
    ),
    control="the greatest eigenvalue is 1% larger",
    tolerance=WIDTH,
    source="library: the structure of eq. (65), Appendix A.2",
    budget=Budget(samples=32, restarts=0),
)


def _equal_heads(instance: Instance, size: Size) -> Sides:
    params, data = params_of(instance), training_set(instance)
    copies = jnp.asarray(COPIES, float)
    heads = untie(params, COPIES)
    measured = risk_gradient(heads, data)
    out = lambda slope: flatten(untie(slope, COPIES))
    group = jax.grad(tied_risk)(params, copies, data)
    single = jax.grad(tied_risk, argnums=3)(params, copies, data, params)
    moved = jax.tree.map(lambda leaf, g: leaf - g, params, single)
    norms = jnp.stack([tied_norm(params, copies), tied_distance(params, moved, copies)])
    plain = jnp.stack([vector_norm(flatten(heads)), vector_norm(out(single))])
    small = 1e-13 * jnp.max(jnp.abs(data["X"])) * (1 + jnp.max(jnp.abs(flatten(heads))))
    return Sides.pairs(
        {
            "derived, from the group's": (measured, out(per_head(group, copies))),
            "derived, one head": (measured, out(single)),
            "derived, norms": (plain, norms),
            "control": (measured, out(group)),
        },
        error=small,
    )


EQUAL_HEADS = Statement(
    id="multihead.sec4.tied",
    label="heads that are equal",
    formula="grad_{theta_h} L of H heads in groups of equal heads, and the norm over H heads",
    tex=r"\nabla_{\theta_h} \hat L = \frac{1}{c_g} \nabla_g \hat L, \quad \|\tilde\theta\|^2 = "
    r"\sum_{g} c_g \|\theta_g\|^2",
    kind="identity",
    sample=loss_generic,
    evaluate=_equal_heads,
    judges=(per_head, tied_risk, tied_norm, tied_distance),
    sizes=({"n": 2, "T": 2, "d": 2, "H": len(COPIES)},),
    forms=(
        Form(
            name="derived, from the group's",
            note="The gradient of each head equals the gradient of its group, divided by the "
            "group's number of copies.",
        ),
        Form(
            name="derived, one head",
            note="The check differentiates the loss in one head of each group, while the other "
            "heads stay fixed.",
        ),
        Form(
            name="derived, norms",
            note=(
                "The formula weights each group of heads by its number of copies. The formula "
                "gives ||theta|| and the norm of the gradient over all H heads."
            ),
        ),
    ),
    control="the gradient in the group's parameters, not divided",
    source="library: how Section 4's runs count H heads; against autograd of the module",
    budget=Budget(samples=64),
)

STATEMENTS = (LOGISTIC, HEAD_HESSIAN, ENDS, EQUAL_HEADS)
