"""Appendix A.1: the steps in the proof of Proposition 1, as printed, corrected and sharpened."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxbounds.claims.sets import Box, Reals
from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Form,
    Instance,
    Sides,
    Size,
    Statement,
)
from jaxbounds.multihead import bounds
from jaxbounds.multihead.derivatives import one_head
from jaxbounds.multihead.statements.boxes import signs, two_tokens
from jaxbounds.multihead.statements.common import (
    ANTIPODAL,
    on_data,
    on_model,
    on_tokens,
    tight,
    token_radius,
)
from jaxbounds.numerics.norms import spectral_norm, vector_norm


def _covariance(instance: Instance, size: Size) -> Sides:
    tokens, radius = instance["X"], token_radius(instance)
    scores = tokens @ instance["U"][0]
    logits = tokens @ instance["W"].T @ tokens[0]
    rhs = {
        "printed": bounds.covariance_bound(scores, radius),
        "sharpened S1, half range": bounds.covariance_half_range(scores, radius),
        "sharpened S1": bounds.covariance_sharp(scores, radius),
    }
    _, moved = jax.jvp(jax.nn.softmax, (logits,), (scores,))
    lhs = vector_norm(tokens.T @ moved)
    return tight(lhs, rhs, error=1e-14 * rhs["sharpened S1"])


EQ_42 = on_tokens(
    id="multihead.eq42",
    label="eq. (42)",
    formula="||X^T phi'(g) X u|| <= 2 ||X u||_inf ||X||_{2,inf}",
    tex=r"\|X^\top \varphi'(g) X u\| \le 2 \|X u\|_\infty \|X\|_{2,\infty}",
    evaluate=_covariance,
    judges=(
        bounds.covariance_bound,
        bounds.covariance_sharp,
        bounds.covariance_half_range,
    ),
    forms=(
        Form(
            name="printed",
            cites="eq. (42), Appendix A.1",
            note=(
                "The paper's proof uses the triangle inequality for a sum of two terms, and "
                "thereby loses a factor of 2."
            ),
            domains=(two_tokens(),),
        ),
        Form(
            name="sharpened S1",
            equality=ANTIPODAL,
            note="The vector X^T phi' X u is the covariance Cov(x, u.x). Along a unit vector v, "
            "|Cov(v.x, u.x)| <= sd(v.x) sd(u.x) <= R ||X u||_inf, where sd is the standard "
            "deviation.",
            domains=(two_tokens(slack=1e-6),),
        ),
        Form(
            name="sharpened S1, half range",
            equality=ANTIPODAL,
            note="Popoviciu's inequality bounds the standard deviation of u.x, in the proof of S1, "
            "by half the range of u.x.",
        ),
    ),
    control="the sharpened bound times 0.9",
    source="Appendix A.1, eq. (42)",
)


def _third_moment(instance: Instance, size: Size) -> Sides:
    weights, A, B = jax.nn.softmax(instance["logits"]), instance["A"], instance["B"]
    centre = lambda values: values - weights @ values
    scale = jnp.max(jnp.abs(A)) * jnp.max(jnp.abs(B)) ** 2
    return Sides(
        lhs=jnp.abs(jnp.sum(weights * centre(A) * centre(B) ** 2)),
        rhs={"sharpened S3": bounds.third_moment_bound(A, B), "control": 0.75 * scale},
        error=1e-15 * scale,
    )


KAPPA_3 = Statement(
    id="multihead.kappa3",
    label="Sharpening S3",
    formula="|kappa_3(A, B, B)| <= c* max|A| max|B|^2, c* = 4 / (3 sqrt(3))",
    tex=r"|\kappa_3(A, B, B)| \le c_* \max |A| \, \max |B|^2, \quad c_* = \frac{4}{3 "
    r"\sqrt{3}}",
    kind="inequality",
    over={"logits": Reals("S"), "A": Box(-1, 1, "S"), "B": Box(-1, 1, "S")},
    sizes=({"S": 2}, {"S": 4}),
    evaluate=_third_moment,
    judges=(bounds.third_moment_bound,),
    forms=(
        Form(
            name="sharpened S3",
            equality="A = B = +-1 with P(+1) = (3 - sqrt(3)) / 6",
            note=(
                "The cumulant kappa_3 is linear in A, so kappa_3 is largest for some A = +-1. Let "
                "P and Q be the probabilities of A = 1 and A = -1, and C = (B - EB)^2. Then "
                "kappa_3 = 2 P Q (E[C | A = 1] - E[C | A = -1]). Let r = Q - P. For r <= 0, "
                "kappa_3 is at most 1/2. For 0 < r <= 1/2, kappa_3 is at most (1 + r) / 2 <= 3/4. "
                "For larger r, kappa_3 is at most 2 r (1 - r^2), which is largest at r = 1/sqrt(3)."
            ),
            domains=(signs(2, slack=1e-9), signs(3, slack=3e-3)),
        ),
    ),
    control="the constant 0.75 in place of 0.7698",
    assumptions="A, B random variables on a finite probability space",
    source="not in the paper: the lemma behind S4, S5 and S6",
)


def _realigned(which: int) -> Callable[[Instance, Size], Sides]:
    """Return an `evaluate` that tests the misplaced indices of erratum E13.

    The paper's matrix has row indices (i, k) and column indices (j, l), where the Hessian's block
    has (i, j) and (k, l). `which` = 0 selects d^2 Phi / dU_ij dW_kl (49), and 1 selects d^2 Phi /
    dW_ij dW_kl (51).
    """

    def evaluate(instance: Instance, size: Size) -> Sides:
        radius = token_radius(instance)
        scores = bounds.summed_scores(instance["U"], instance["X"])
        inner = jax.grad(one_head, argnums=which)
        block = jax.jacobian(inner, argnums=1)(instance["U"], instance["W"], instance["X"])
        i, j, k, l = block.shape
        printed = spectral_norm(jnp.transpose(block, (0, 2, 1, 3)).reshape(i * k, j * l))
        mixed = bounds.mixed_hessian_sharp(radius, T=size["T"])
        sharp = (mixed, bounds.inner_hessian_sharp(radius, scores))[which]
        return Sides(
            lhs=spectral_norm(block.reshape(i * j, k * l)),
            rhs={"printed": printed, "corrected": sharp, "control": 0.5 * printed},
            error=1e-13 * sharp,
        )

    return evaluate


EQ_51 = on_model(
    id="multihead.eq51",
    label="eq. (51)",
    formula="||Hess_WW Phi|| <= ||(51)||, the matrix that the proof of Proposition 1 bounds",
    tex=r"\|\nabla^2_W \Phi\| \le \|M\|, \quad M_{(i,k),(j,l)} = \frac{\partial^2 "
    r"\Phi}{\partial W_{ij} \partial W_{kl}}",
    evaluate=_realigned(1),
    judges=(bounds.inner_hessian_sharp,),
    forms=(
        Form(
            name="printed",
            cites="eq. (51), Appendix A.1; (49) and (52) have the same slip",
            erratum="E13",
            note="The matrix (51) has d^2 Phi / dW_ij dW_kl at row (i, k) and column (j, l). This "
            "matrix is a rearrangement of the Hessian, and its norm can be smaller than that of "
            "the Hessian.",
            counterexample=Counterexample(
                instance={
                    "X": [[0.0, 3.0], [2.0, -2.0], [-3.0, -1.0]],
                    "U": [[1.0, -1.0], [0.0, 1.0], [-1.0, 0.0]],
                    "W": [[0.03, 0.0], [0.03, -0.03]],
                },
                ratio=1.1060115924607041,
                meets=on_data,
            ),
        ),
        Form(
            name="corrected",
            note="Sharpening S4 proves the bound c* R^4 sum_t ||X u_t||_inf on the Hessian in W.",
            equality="S4's instance",
        ),
    ),
    control="half the norm of (51)",
    source="Appendix A.1, eqs. (49), (51), (52)",
    sizes=({"T": 3, "d": 2},),
)


EQ_49 = on_model(
    id="multihead.eq49",
    label="eq. (49)",
    formula="||Hess_UW Phi|| <= ||(49)||, the matrix that the proof of Proposition 1 bounds",
    tex=r"\|\nabla^2_{UW} \Phi\| \le \|M\|, \quad M_{(t,k),(j,l)} = \frac{\partial^2 "
    r"\Phi}{\partial U_{tj} \partial W_{kl}}",
    evaluate=_realigned(0),
    judges=(bounds.mixed_hessian_sharp,),
    forms=(
        Form(
            name="printed",
            cites="eq. (49), Appendix A.1",
            erratum="E13",
            note="The matrix (49) has the block x_t X_{:,j}^T phi' X at row t and column j. In "
            "the Hessian the entries of this block, written as one vector, form the row (t, j). "
            "The printed matrix is a rearrangement of the Hessian, and its norm can be smaller.",
            counterexample=Counterexample(
                instance={
                    "X": [[-2.0, 1.3], [1.66, -1.06], [-3.6, 0.3]],
                    "U": [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]],
                    "W": [[2.05, 1.17], [-0.15, 0.59]],
                },
                size={"T": 3, "d": 2},
                ratio=1.0985513188122498,
                meets=on_data,
            ),
        ),
        Form(
            name="corrected",
            note="Sharpening S5 proves the bound sqrt(T) R^3 on ||Hess_UW Phi||.",
            equality="antipodal tokens at W = 0",
        ),
    ),
    control="half the norm of (49)",
    source="Appendix A.1, eqs. (48), (49)",
    sizes=({"T": 4, "d": 2},),
    search="none",
    budget=Budget(samples=64, restarts=0, steps=0),
)

STATEMENTS = (EQ_42, KAPPA_3, EQ_49, EQ_51)
