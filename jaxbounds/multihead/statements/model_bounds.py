"""Proposition 1 / 5 and Lemma 5: bounds on the gradient and the Hessian of the model."""

import jax
import jax.numpy as jnp

from jaxbounds.multihead.bounds import (
    C_STAR,
    beta1,
    beta1_sharp,
    beta3,
    beta3_sharp,
    summed_scores,
    two_block_norm,
)
from jaxbounds.multihead.calculus import cumulants, head_hessian, third_cumulant
from jaxbounds.multihead.instances import loss_generic
from jaxbounds.multihead.model import head_output, model_output
from jaxbounds.multihead.statements.common import (
    ANTIPODAL,
    IDENTICAL,
    model_statement,
    token_radius,
)
from jaxbounds.norms import frobenius_norm, max_entry, max_row_norm, vector_norm
from jaxbounds.statements import Form, Instance, Sides

TWO_SIZES = ({"T": 2, "d": 2}, {"T": 4, "d": 3})


def _symmetric_norm(matrix):
    return jnp.max(jnp.abs(jnp.linalg.eigvalsh(matrix)))


def _hessian(instance: Instance):
    """Hess Phi by automatic differentiation, U then W."""
    projection, weights, tokens = instance["U"], instance["W"], instance["X"]
    split = projection.size

    def flat_output(flat):
        return head_output(
            flat[:split].reshape(projection.shape), flat[split:].reshape(weights.shape), tokens
        )

    return jax.hessian(flat_output)(jnp.concatenate([projection.ravel(), weights.ravel()]))


def _gradients(instance: Instance):
    outer, inner = jax.grad(head_output, argnums=(0, 1))(
        instance["U"], instance["W"], instance["X"]
    )
    return frobenius_norm(outer), frobenius_norm(inner)


def _outer_gradient(instance: Instance) -> Sides:
    bound = jnp.sqrt(1.0 * instance["X"].shape[0]) * token_radius(instance)
    return Sides(lhs=_gradients(instance)[0], rhs={"printed": bound, "control": 0.9 * bound})


def _inner_gradient(instance: Instance) -> Sides:
    bound = token_radius(instance) ** 2 * summed_scores(instance["U"], instance["X"])
    rhs = {"printed": 2 * bound, "sharpened S1": bound, "control": 0.9 * bound}
    return Sides(lhs=_gradients(instance)[1], rhs=rhs, error=1e-14 * bound)


def _whole_gradient(instance: Instance) -> Sides:
    radius, T = token_radius(instance), instance["X"].shape[0]
    inner = radius**2 * summed_scores(instance["U"], instance["X"])
    outer = jnp.sqrt(1.0 * T) * radius
    sharp = jnp.sqrt(outer**2 + inner**2)
    return Sides(
        lhs=jnp.sqrt(sum(norm**2 for norm in _gradients(instance))),
        rhs={"printed": 2 * inner + outer, "sharpened S2": sharp, "control": 0.9 * sharp},
    )


def _certificate(instance: Instance):
    """S11: computable bounds on the two blocks of the Hessian, between it and S5."""
    moments = cumulants(instance["W"], instance["X"])
    third = third_cumulant(moments, instance["U"])
    squares = jnp.sum(instance["X"] ** 2, axis=1)
    spectral = jax.vmap(_symmetric_norm)
    mixed = jnp.sqrt(jnp.sum(squares * spectral(moments.covariance) ** 2))
    return jnp.sum(squares * spectral(third)), mixed


def _whole_hessian(instance: Instance) -> Sides:
    tokens, (T, d) = instance["X"], instance["X"].shape
    radius, entry = token_radius(instance), max_entry(tokens)
    scores = summed_scores(instance["U"], tokens)
    printed = 6 * d * radius**2 * entry**2 * scores + 2 * jnp.sqrt(1.0 * T * d) * radius**2 * entry
    sharp = two_block_norm(C_STAR * radius**4 * scores, jnp.sqrt(1.0 * T) * radius**3)
    return Sides(
        lhs=_symmetric_norm(_hessian(instance)),
        rhs={
            "printed": printed,
            "sharpened S5": sharp,
            "sharpened S11": two_block_norm(*_certificate(instance)),
            "control": 0.9 * sharp,
        },
        error=1e-13 * sharp,
    )


def _resolved(instance: Instance) -> dict:
    """Where covariances vanish, S11 is rounding noise beside the scale S5 of the Hessian."""
    scale = token_radius(instance) ** 3
    return {"S11 above rounding": two_block_norm(*_certificate(instance)) > 1e-8 * scale}


def _gradient_by_norm(instance: Instance) -> Sides:
    radius, T = token_radius(instance), instance["X"].shape[0]
    size = frobenius_norm(instance["U"])
    sharp = beta1_sharp(size**2, radius, T=T)
    return Sides(
        lhs=jnp.sqrt(sum(norm**2 for norm in _gradients(instance))),
        rhs={
            "printed": beta1(size, radius, T=T),
            "sharpened S2": sharp,
            "control": 0.9 * sharp,
        },
    )


def _hessian_by_norm(instance: Instance) -> Sides:
    radius, (T, d) = token_radius(instance), instance["X"].shape
    size, root = frobenius_norm(instance["U"]), jnp.sqrt(1.0 * instance["X"].shape[0])
    sharp = two_block_norm(C_STAR * root * radius**5 * size, root * radius**3)
    return Sides(
        lhs=_symmetric_norm(_hessian(instance)),
        rhs={
            "printed": beta3(size, radius, T=T, d=d),
            "sharpened S5": sharp,
            "sharpened S6": beta3_sharp(size, radius, T=T),
            "control": 0.9 * sharp,
        },
        error=1e-13 * sharp,
    )


def _head_sizes(instance: Instance):
    squares = jnp.sum(instance["U"] ** 2, axis=(1, 2))
    return vector_norm(jnp.sqrt(squares + 1e-300), jnp.inf), jnp.mean(squares)


def _many_heads_gradient(instance: Instance) -> Sides:
    tokens, T = instance["X"][0], instance["X"].shape[1]
    slopes = jax.grad(model_output)({"U": instance["U"], "W": instance["W"]}, tokens)
    largest, squares = _head_sizes(instance)
    radius = max_row_norm(tokens)
    sharp = beta1_sharp(squares, radius, T=T)
    return Sides(
        lhs=jnp.sqrt(jnp.sum(slopes["U"] ** 2) + jnp.sum(slopes["W"] ** 2)),
        rhs={"printed": beta1(largest, radius, T=T), "sharpened S2": sharp, "control": 0.9 * sharp},
    )


def _many_heads_hessian(instance: Instance) -> Sides:
    tokens, heads = instance["X"][0], instance["U"].shape[0]
    T, d = tokens.shape
    blocks = jax.vmap(head_hessian, in_axes=(0, 0, None))(instance["U"], instance["W"], tokens)
    largest, _ = _head_sizes(instance)
    radius, root = max_row_norm(tokens), jnp.sqrt(1.0 * heads)
    sharp = beta3_sharp(largest, radius, T=T) / root
    return Sides(
        lhs=jnp.max(jax.vmap(_symmetric_norm)(blocks)) / root,
        rhs={
            "printed": beta3(largest, radius, T=T, d=d) / root,
            "sharpened S6": sharp,
            "control": sharp / root,
        },
        error=1e-13 * sharp,
    )


STATEMENTS = (
    model_statement(
        "prop5.1",
        "Proposition 5 (1)",
        "||grad_U Phi||_F <= sqrt(T) ||X||_{2,inf}",
        _outer_gradient,
        (Form(name="printed", equality=IDENTICAL),),
        "the bound times 0.9",
        "Appendix A.1, eq. (37)",
    ),
    model_statement(
        "prop5.2",
        "Proposition 5 (2)",
        "||grad_W Phi||_F <= 2 ||X||_{2,inf}^2 sum_t ||X u_t||_inf",
        _inner_gradient,
        (
            Form(name="printed"),
            Form(name="sharpened S1", equality=ANTIPODAL, note="S1 under the sum over t."),
        ),
        "the sharpened bound times 0.9",
        "Appendix A.1, eq. (43)",
    ),
    model_statement(
        "prop1.1",
        "Proposition 1 (1)",
        "||grad Phi|| <= 2 ||X||_{2,inf}^2 sum_t ||X u_t||_inf + sqrt(T) ||X||_{2,inf}",
        _whole_gradient,
        (
            Form(name="printed", equality=IDENTICAL + " with U = 0"),
            Form(
                name="sharpened S2",
                equality=IDENTICAL + " with U = 0",
                note="The two blocks of the gradient are orthogonal: "
                "sqrt(T R^2 + (R^2 sum_t ||X u_t||_inf)^2).",
            ),
        ),
        "the sharpened bound times 0.9",
        "Section 3; restated as Proposition 5 (3), eq. (44)",
    ),
    model_statement(
        "prop1.2",
        "Proposition 1 (2)",
        "||Hess Phi|| <= 6 d ||X||_{2,inf}^2 ||X||_{1,inf}^2 sum_t ||X u_t||_inf "
        "+ 2 sqrt(T d) ||X||_{2,inf}^2 ||X||_{1,inf}",
        _whole_hessian,
        (
            Form(
                name="printed",
                erratum="E13",
                note="True, though the proof bounds a rearranged matrix; implied by S5.",
            ),
            Form(
                name="sharpened S5",
                equality=ANTIPODAL + ", U = W = 0",
                note="||Hess_WW|| <= C = c* R^4 sum_t ||X u_t||_inf (S4: S3 applied to "
                "kappa_3(u_t.x, b_t.x, b_t.x), ||b_t|| <= R ||dW||), ||Hess_UW|| <= B = "
                "sqrt(T) R^3, Hess_UU = 0; so ||Hess|| <= (C + sqrt(C^2 + 4 B^2)) / 2. No d.",
            ),
            Form(
                name="sharpened S11",
                hypotheses=_resolved,
                equality="one-dimensional token spreads, where each block is attained",
                note="||Hess_UW||^2 <= sum_t ||x_t||^2 ||Cov_t||^2, ||Hess_WW|| <= "
                "sum_t ||x_t||^2 ||K3_t(u_t)||: computable in T^2 d^2, between Hess and S5.",
            ),
        ),
        "S5 times 0.9",
        "Section 3; restated as Proposition 5 (4), eq. (58)",
        sizes=TWO_SIZES,
    ),
    model_statement(
        "prop5.a1",
        "Proposition 5, Assumption 1 (1)",
        "||grad Phi|| <= sqrt(T) R (2 R^2 ||U||_F + 1)",
        _gradient_by_norm,
        (
            Form(name="printed", equality=IDENTICAL + " with U = 0"),
            Form(
                name="sharpened S2",
                equality=IDENTICAL + " with U = 0",
                note="S2 with sum_t ||X u_t||_inf <= sqrt(T) R ||U||_F.",
            ),
        ),
        "the sharpened bound times 0.9",
        "Appendix A.1, eq. (46)",
    ),
    model_statement(
        "prop5.a2",
        "Proposition 5, Assumption 1 (2)",
        "||Hess Phi|| <= 2 sqrt(T d) R^3 (3 sqrt(d) R^2 ||U||_F + 1)",
        _hessian_by_norm,
        (
            Form(name="printed"),
            Form(name="sharpened S5", equality=ANTIPODAL + ", U = W = 0", note="S5 by norms."),
            Form(
                name="sharpened S6",
                equality=ANTIPODAL + ", U = W = 0",
                note="(C + sqrt(C^2 + 4 B^2)) / 2 <= C + B: sqrt(T) R^3 (c* R^2 ||U||_F + 1).",
            ),
        ),
        "S5 times 0.9",
        "Appendix A.1, eq. (60)",
        sizes=TWO_SIZES,
    ),
    model_statement(
        "lemma5.1",
        "Lemma 5 (1)",
        "||grad Phi~|| <= sqrt(T) R (2 R^2 max_h ||U_h||_F + 1)",
        _many_heads_gradient,
        (
            Form(name="printed", equality=IDENTICAL + " with U = 0"),
            Form(
                name="sharpened S2",
                equality=IDENTICAL + " with U = 0",
                note="Gradients of heads are orthogonal: the root mean square over heads.",
            ),
        ),
        "the sharpened bound times 0.9",
        "Appendix A.1, Lemma 5, eq. (62)",
        sample=loss_generic,
        sizes=({"n": 1, "T": 2, "d": 2, "H": 4},),
    ),
    model_statement(
        "lemma5.2",
        "Lemma 5 (2)",
        "||Hess Phi~|| <= 2 sqrt(T d) R^3 (3 sqrt(d) R^2 max_h ||U_h||_F + 1) / sqrt(H)",
        _many_heads_hessian,
        (
            Form(name="printed"),
            Form(
                name="sharpened S6",
                equality=ANTIPODAL + ", U = W = 0",
                note="The Hessian is block-diagonal over heads, so the largest block decides.",
            ),
        ),
        "S6 divided by sqrt(H) once more",
        "Appendix A.1, Lemma 5, eq. (63)",
        sample=loss_generic,
        sizes=({"n": 1, "T": 2, "d": 2, "H": 4},),
    ),
)
