"""Corollary 1 / Lemma 6: bounds on the training loss, its gradient and its Hessian."""

import functools

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

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
from jaxbounds.multihead.derivatives import (
    loss_curvature,
    loss_slope,
    risk_gradient,
    risk_hessian,
)
from jaxbounds.multihead.loss import (
    empirical_risk,
    logistic,
    margins,
)
from jaxbounds.multihead.model import Params
from jaxbounds.multihead.runs import head_sizes, training_set
from jaxbounds.multihead.statements.boxes import up_to
from jaxbounds.multihead.statements.common import (
    LOSS_ASSUMED,
    on_data,
    on_loss,
    params_of,
    tight,
    token_radius,
)
from jaxbounds.multihead.statements.instances import STATIC, keep_radius, radius_at_least_one
from jaxbounds.numerics.norms import vector_norm

on_margins = functools.partial(
    Statement,
    kind="inequality",
    sample=STATIC,
    sizes=({"n": 3, "T": 2, "d": 2, "H": 1},),
    project=keep_radius,
    hypotheses=radius_at_least_one,
    assumptions=f"{LOSS_ASSUMED}. Margins go up to 15, which approximates the limit of "
    "large margins",
    budget=Budget(samples=128, restarts=4, steps=100),
)
"""Settings of statements that bound the loss by the margins, at n = 3: for n = 1, a sum and a mean
of losses do not differ.
"""


BY_SIZE = (
    Form(name="printed", cites="Corollary 1, Section 3"),
    Form(
        name="printed, Lemma 6",
        cites="Lemma 6, Appendix A.2; the footnote to Corollary 1, Section 3",
        note="This version of the bound has the largest norm max_h ||U_h||_F in place of "
        "||theta||_{2,inf}.",
    ),
)
"""The versions of Corollary 1 and of Lemma 6 that the statements check."""


def _derivatives(instance: Instance) -> tuple[Array, Array, Array]:
    margin = margins(params_of(instance), training_set(instance))
    slope, curvature = jnp.abs(loss_slope(margin)), jnp.abs(loss_curvature(margin))
    return jnp.mean(logistic(margin)), jnp.mean(slope), jnp.mean(curvature)


def _moderate(instance: Instance, size: Size) -> dict[str, Array]:
    """Return the hypothesis that no margin exceeds 15 in absolute value.

    At larger margins, rounding errors hide the difference between the sides of the claim.
    """
    margin = margins(params_of(instance), training_set(instance))
    return {"|y Phi| <= 15": jnp.max(jnp.abs(margin)) <= 15}


def _slope_bound(instance: Instance, size: Size) -> Sides:
    loss, slope, _ = _derivatives(instance)
    return tight(slope, {"printed": loss})


EQ_24_SLOPE = on_margins(
    id="multihead.eq24.slope",
    label="eq. (24), first part",
    formula="L' := mean |l'(y Phi)| <= L",
    tex=r"\hat L'(\theta) = \frac{1}{n} \sum_{i} |\ell'(y_i \Phi(X_i, \theta))| \le \hat "
    r"L(\theta)",
    evaluate=_slope_bound,
    judges=(loss_slope, logistic),
    forms=(
        Form(
            name="printed",
            cites="eq. (24), Appendix A",
            hypotheses=_moderate,
            note="The proof uses log(1+x) >= x/(1+x). The ratio L' / L (slope over loss) tends to "
            "one as the margins grow.",
            domains=(
                up_to(8.0, n=1, beyond="u = exp(-t): log(1+u) >= u - u^2/2 >= u/(1+u) for u <= 1"),
                up_to(4.0, n=2, beyond="the mean of two single margins, each by the line above"),
            ),
        ),
    ),
    control="0.9 L",
    source="Appendix A, eq. (24)",
)


def _loss_bound(instance: Instance, size: Size) -> Sides:
    loss, slope, _ = _derivatives(instance)
    return Sides.pairs(
        {
            "printed": (loss, 1.0),
            "corrected": (slope, jnp.minimum(loss, 1.0)),
            "control": (slope, 0.5),
        }
    )


EQ_24_LOSS = on_margins(
    id="multihead.eq24.loss",
    label="eq. (24), second part",
    formula="L' <= L <= 1",
    tex=r"\hat L'(\theta) \le \hat L(\theta) \le 1",
    evaluate=_loss_bound,
    judges=(logistic, loss_slope, margins),
    forms=(
        Form(
            name="printed",
            cites="eq. (24), Appendix A",
            erratum="E1",
            note="The loss L has no upper bound. Example: three equal tokens, rows of U equal to "
            "(10, 0), and y = -1.",
            counterexample=Counterexample(
                instance={
                    "X": [[[1.0, 0.0]] * 3],
                    "y": [-1],
                    "U": [[[10.0, 0.0]] * 3],
                    "W": [[[0.0, 0.0]] * 2],
                },
                size={"n": 1, "T": 3, "d": 2, "H": 1},
                ratio=30.000000000000092,
                meets=on_data,
            ),
        ),
        Form(
            name="corrected",
            hypotheses=_moderate,
            note=(
                "The inequality L' <= min(L, 1) is all that (66) and Theorem 3 use. The ratio of "
                "L' to min(L, 1) tends to one as margins of either sign grow in absolute value."
            ),
            domains=(up_to(8.0, n=1, beyond="L' <= L as in the first part; |l'| < 1 always"),),
        ),
    ),
    control="L' <= 1/2",
    source="Appendix A, eq. (24)",
)


def _curvature_bound(instance: Instance, size: Size) -> Sides:
    _, slope, curvature = _derivatives(instance)
    return Sides(
        lhs=curvature,
        rhs={"printed": 0.25, "sharpened": jnp.minimum(slope, 0.25), "control": slope / 2},
    )


EQ_24_CURVATURE = on_margins(
    id="multihead.eq24.curvature",
    label="eq. (24), third part",
    formula="L'' := mean |l''(y Phi)| <= 1/4",
    tex=r"\hat L''(\theta) = \frac{1}{n} \sum_{i} |\ell''(y_i \Phi(X_i, \theta))| \le "
    r"\frac{1}{4}",
    evaluate=_curvature_bound,
    judges=(loss_curvature,),
    forms=(
        Form(
            name="printed",
            cites="eq. (24), Appendix A",
            equality="Phi = 0",
            domains=(
                up_to(30.0, n=1, slack=1e-12, beyond="l'' <= exp(-|t|) < 1e-13"),
                up_to(20.0, n=2, slack=1e-9, beyond="l'' <= exp(-|t|), and each mean is of two"),
            ),
        ),
        Form(
            name="sharpened",
            equality="Phi = 0",
            note="The logistic loss l has l'' = |l'| (1 - |l'|), so L'' <= min(L', 1/4) for L' = "
            "mean |l'|.",
        ),
    ),
    control="half of L'",
    source="Appendix A, eq. (24)",
)


def gradient_sides(
    params: Params, copies: Array, radius: Array, loss: Array, T: int, /
) -> dict[str, ArrayLike]:
    """Return the right sides of Corollary 1 (1) and of a false variant, for heads in groups.

    Group g consists of `copies[g]` equal heads.
    """
    norm, largest, squares = head_sizes(params, copies)
    return {
        "printed": bounds.beta1(norm, radius, T=T) * loss,
        "printed, Lemma 6": bounds.beta1(largest, radius, T=T) * loss,
        "sharpened S2": bounds.beta1_sharp(squares, radius, T=T) * loss,
        "control": bounds.beta1_sharp(squares, radius, T=1) * loss,
    }


def smoothness_sides(
    params: Params, copies: Array, radius: Array, loss: Array, size: Size, /
) -> dict[str, ArrayLike]:
    """Return the right sides of Corollary 1 (2) and of a false variant of it, for heads in groups.

    Group g consists of `copies[g]` equal heads.
    """
    T, d, H = size["T"], size["d"], size["H"]
    norm, largest, squares = head_sizes(params, copies)
    bounded = lambda T: bounds.self_bounded_smoothness(largest, squares, radius, T=T, H=H)
    return {
        "printed": bounds.beta2(norm, radius, T=T, d=d, H=H),
        "printed, Lemma 6": bounds.beta2(largest, radius, T=T, d=d, H=H),
        "sharpened S6": bounds.beta2_sharp(largest, squares, radius, T=T, H=H),
        "sharpened S6, self-bounded": bounded(T) * loss,
        "control": bounded(1) * loss,
    }


def convexity_sides(
    params: Params, copies: Array, radius: Array, loss: Array, size: Size, /
) -> dict[str, ArrayLike]:
    """Return the right sides of Corollary 1 (3) and of a false variant, for heads in groups.

    Group g consists of `copies[g]` equal heads.
    """
    T, d, root = size["T"], size["d"], size["H"] ** 0.5
    norm, largest, _ = head_sizes(params, copies)
    sharp = bounds.beta3_sharp(largest, radius, T=T) / root
    return {
        "printed": bounds.beta3(norm, radius, T=T, d=d) * loss / root,
        "printed, Lemma 6": bounds.beta3(largest, radius, T=T, d=d) * loss / root,
        "sharpened S6": sharp * loss,
        "control": sharp * loss / T**0.5,
    }


def _alone(instance: Instance) -> tuple[Params, Array, Array, Array]:
    params = params_of(instance)
    loss = empirical_risk(params, training_set(instance))
    return params, jnp.ones(params["U"].shape[0]), token_radius(instance), loss


def _gradient_bound(instance: Instance, size: Size) -> Sides:
    gradient = risk_gradient(params_of(instance), training_set(instance))
    return Sides(vector_norm(gradient), gradient_sides(*_alone(instance), size["T"]))


COROLLARY_1_1 = on_loss(
    id="multihead.cor1.1",
    label="Corollary 1 (1)",
    formula="||grad L|| <= beta_1 L, beta_1 = sqrt(T) R (2 R^2 ||theta||_{2,inf} + 1)",
    tex=r"\|\nabla \hat L(\theta)\| \le \beta_1(\theta) \hat L(\theta), \quad \beta_1 = "
    r"\sqrt{T} R (2 R^2 \|\theta\|_{2,\infty} + 1)",
    evaluate=_gradient_bound,
    judges=(bounds.beta1, bounds.beta1_sharp, empirical_risk),
    forms=(
        *BY_SIZE,
        Form(
            name="sharpened S2",
            note="The sharpened constant is beta_1# = sqrt(T) R sqrt(1 + R^4 mean_h ||U_h||_F^2).",
        ),
    ),
    control="the factor sqrt(T) of the sharpened bound is dropped",
    source="Section 3; restated as Lemma 6 (1), eq. (64)",
)


def _smoothness_bound(instance: Instance, size: Size) -> Sides:
    hessian = risk_hessian(params_of(instance), training_set(instance))
    norm = jnp.max(jnp.abs(jnp.linalg.eigvalsh(hessian)))
    return Sides(norm, smoothness_sides(*_alone(instance), size))


COROLLARY_1_2 = on_loss(
    id="multihead.cor1.2",
    label="Corollary 1 (2)",
    formula="||Hess L|| <= beta_2 = beta_3 / sqrt(H) + beta_1^2 / 4",
    tex=r"\|\nabla^2 \hat L(\theta)\| \le \beta_2(\theta) = \frac{\beta_3(\theta)}{\sqrt{H}} "
    r"+ \frac{\beta_1(\theta)^2}{4}",
    evaluate=_smoothness_bound,
    judges=(bounds.beta2, bounds.beta2_sharp, bounds.self_bounded_smoothness),
    forms=(
        *BY_SIZE,
        Form(
            name="sharpened S6",
            note=(
                "The bound on ||Hess L|| is beta_3# / sqrt(H) + beta_1#^2 / 4. The proof is the "
                "proof of Corollary 1 (3), with |l'| <= 1, l'' <= 1/4 and sharpening S2."
            ),
            equality="two opposite tokens of one head, W = 0, U along them and large",
        ),
        Form(
            name="sharpened S6, self-bounded",
            note="The inequalities l'' <= |l'| <= l give the bound ||Hess L|| <= (beta_3# / "
            "sqrt(H) + beta_1#^2) L.",
        ),
    ),
    control="T is taken to be one in the self-bounded form",
    source="Section 3; restated as Lemma 6 (2), eq. (66)",
    budget=Budget(samples=128, restarts=10, steps=200),
)


def _weak_convexity(instance: Instance, size: Size) -> Sides:
    hessian = risk_hessian(params_of(instance), training_set(instance))
    values = jnp.linalg.eigvalsh(hessian)
    # The rounding error of a symmetric eigenvalue problem.
    error = 1e-14 * jnp.max(jnp.abs(values))
    return Sides(-values[0], convexity_sides(*_alone(instance), size), error=error)


COROLLARY_1_3 = on_loss(
    id="multihead.cor1.3",
    label="Corollary 1 (3)",
    formula="lambda_min(Hess L) >= -beta_3 L / sqrt(H), beta_3 = 2 sqrt(T d) R^3 (3 sqrt(d) R^2 "
    "||theta||_{2,inf} + 1)",
    tex=r"\lambda_{\min}(\nabla^2 \hat L(\theta)) \ge -\frac{\beta_3(\theta)}{\sqrt{H}} \hat "
    r"L(\theta), \quad \beta_3 = 2 \sqrt{T d} R^3 (3 \sqrt{d} R^2 \|\theta\|_{2,\infty} "
    r"+ 1)",
    evaluate=_weak_convexity,
    judges=(bounds.beta3, bounds.beta3_sharp),
    forms=(
        *BY_SIZE,
        Form(
            name="sharpened S6",
            note="Hess L = mean l''_i grad Phi_i grad Phi_i^T + mean l'_i y_i Hess Phi_i. The "
            "first term is positive semidefinite, and |l'| <= l. The Hessian of Phi has no blocks "
            "that mix heads, so ||Hess Phi|| is the largest H^{-1/2} ||Hess Phi_h||. S5 bounds "
            "||Hess Phi_h|| by C + B (Proposition 1 (2)), with B = sqrt(T) R^3 and C = c* R^4 "
            "sum_t ||X u_t||_inf <= c* sqrt(T) R^5 ||U_h||_F. So beta_3# = sqrt(T) R^3 (c* R^2 "
            "max_h ||U_h||_F + 1). The two terms of beta_3# are smaller than those of beta_3 by "
            "factors of 7.8 d and 2 sqrt(d).",
        ),
    ),
    control="the factor sqrt(T) of the sharpened bound is dropped",
    source="Section 3; restated as Lemma 6 (3)",
    budget=Budget(samples=128, restarts=8, steps=200),
)

STATEMENTS = (
    EQ_24_SLOPE,
    EQ_24_LOSS,
    EQ_24_CURVATURE,
    COROLLARY_1_1,
    COROLLARY_1_2,
    COROLLARY_1_3,
)
