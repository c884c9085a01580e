"""Appendix A.1: the steps of the proof of Proposition 1, printed, rearranged and sharpened."""

import jax
import jax.numpy as jnp

from jaxbounds.multihead.bounds import C_STAR, summed_scores
from jaxbounds.multihead.calculus import head_hessian_blocks
from jaxbounds.multihead.statements.common import ANTIPODAL, model_statement, token_radius
from jaxbounds.norms import max_row_norm, spectral_norm, vector_norm
from jaxbounds.statements import Form, Instance, Sides


def _covariance_bound(instance: Instance) -> Sides:
    tokens, u = instance["X"], instance["U"][0]
    scores = tokens @ u
    weights = jax.nn.softmax(tokens @ instance["W"].T @ tokens[0])
    derivative = jnp.diag(weights) - weights[:, None] * weights[None, :]
    radius, largest = max_row_norm(tokens), jnp.max(jnp.abs(scores))
    return Sides(
        lhs=vector_norm(tokens.T @ derivative @ scores),
        rhs={
            "printed": 2 * largest * radius,
            "sharpened S1": largest * radius,
            "sharpened S1, half range": (jnp.max(scores) - jnp.min(scores)) / 2 * radius,
            "control": 0.9 * largest * radius,
        },
        error=1e-14 * largest * radius,
    )


def _third_moment(instance: Instance) -> Sides:
    weights = jax.nn.softmax(instance["logits"])
    centre = lambda values: values - weights @ values
    first, second = instance["A"], instance["B"]
    moment = jnp.abs(jnp.sum(weights * centre(first) * centre(second) ** 2))
    scale = jnp.max(jnp.abs(first)) * jnp.max(jnp.abs(second)) ** 2
    return Sides(
        lhs=moment,
        rhs={"sharpened S3": C_STAR * scale, "control": 0.75 * scale},
        error=1e-15 * scale,
    )


def _third_moment_sample(key, size) -> Instance:
    keys = jax.random.split(key, 3)
    shape = (size["S"],)
    return {
        "logits": 2 * jax.random.normal(keys[0], shape),
        "A": jnp.clip(2 * jax.random.normal(keys[1], shape), -1, 1),
        "B": jnp.clip(2 * jax.random.normal(keys[2], shape), -1, 1),
    }


def _rearranged(instance: Instance) -> Sides:
    """E13: (51) puts d^2 Phi / dW_ij dW_kl at row (i, k), column (j, l)."""
    arguments = instance["U"], instance["W"], instance["X"]
    _, inner = head_hessian_blocks(*arguments)
    square = inner.shape[0] ** 2
    hessian = inner.reshape(square, square)
    rearranged = jnp.transpose(inner, (0, 2, 1, 3)).reshape(square, square)
    scores = summed_scores(instance["U"], instance["X"])
    sharp = C_STAR * token_radius(instance) ** 4 * scores
    printed = spectral_norm(rearranged)
    return Sides(
        lhs=spectral_norm(hessian),
        rhs={"printed": printed, "corrected": sharp, "control": 0.5 * printed},
        error=1e-13 * sharp,
    )


STATEMENTS = (
    model_statement(
        "eq42",
        "eq. (42)",
        "||X^T phi'(g) X u|| <= 2 ||X u||_inf ||X||_{2,inf}",
        _covariance_bound,
        (
            Form(name="printed", note="The triangle inequality over two terms costs the 2."),
            Form(
                name="sharpened S1",
                equality=ANTIPODAL,
                note="X^T phi' X u = Cov(x, u.x); along a unit v, |Cov(v.x, u.x)| <= "
                "sd(v.x) sd(u.x) <= R ||X u||_inf.",
            ),
            Form(
                name="sharpened S1, half range",
                equality=ANTIPODAL,
                note="Popoviciu: sd(u.x) is at most half the range of u.x.",
            ),
        ),
        "the sharpened bound times 0.9",
        "Appendix A.1, eq. (42)",
    ),
    model_statement(
        "kappa3",
        "Sharpening S3",
        "|kappa_3(A, B, B)| <= c* max|A| max|B|^2, c* = 4 / (3 sqrt(3))",
        _third_moment,
        (
            Form(
                name="sharpened S3",
                equality="A = B = +-1 with P(+1) = (3 - sqrt(3)) / 6",
                note="Linear in A, so A is +-1; then kappa_3 = 2 P Q (E[C|+] - E[C|-]) with "
                "C = (B - EB)^2, at most 2 r (1 - r^2) for r = Q - P, largest at r = 1/sqrt(3).",
            ),
        ),
        "the constant 0.75 in place of 0.7698",
        "not in the paper: the lemma behind S4, S5 and S6",
        sample=_third_moment_sample,
        sizes=({"S": 2}, {"S": 4}),
        project=lambda x: {**x, "A": jnp.clip(x["A"], -1, 1), "B": jnp.clip(x["B"], -1, 1)},
        hypotheses=None,
        assumptions="A, B random variables on a finite probability space",
    ),
    model_statement(
        "eq51",
        "eq. (51)",
        "||Hess_WW Phi|| <= ||(51)||, the matrix that the proof of Proposition 1 bounds",
        _rearranged,
        (
            Form(
                name="printed",
                expected="fails",
                erratum="E13",
                note="(51) puts d^2 Phi / dW_ij dW_kl at row (i, k), column (j, l): a realignment "
                "of the Hessian, whose norm can be smaller.",
                counterexample={
                    "X": [[0.0, 3.0], [2.0, -2.0], [-3.0, -1.0]],
                    "U": [[1.0, -1.0], [0.0, 1.0], [-1.0, 0.0]],
                    "W": [[0.03, 0.0], [0.03, -0.03]],
                },
            ),
            Form(
                name="corrected", note="S4: c* R^4 sum_t ||X u_t||_inf.", equality="S4's instance"
            ),
        ),
        "half the norm of (51)",
        "Appendix A.1, eqs. (49), (51), (52)",
        sizes=({"T": 3, "d": 2},),
    ),
)
