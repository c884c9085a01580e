"""Appendices D.2 and F: each term of the oracle's NTK margin at zero and at theta^(1)."""

from collections.abc import Callable
from dataclasses import replace

import jax.numpy as jnp
from jaxtyping import Array

from jaxbounds.claims.statements import Form, Instance, Sides, Size
from jaxbounds.multihead.ntk import ntk_margins
from jaxbounds.multihead.oracle import (
    oracle_classifier,
    oracle_projection,
    oracle_weights,
    projection_norm,
    relevance_formula,
    relevance_scores,
    weights_norm,
)
from jaxbounds.multihead.oracle_bounds import (
    deviation_part,
    deviation_part_sharp,
    gamma_linear,
    term_one_bounds,
    term_two_bound,
)
from jaxbounds.multihead.statements.contexts import (
    DRAWS,
    Context,
    on_sequence,
    searched_sequence,
    searched_sequences,
    unfold,
)
from jaxbounds.numerics.norms import vector_norm


def _above_linear(c: Context, form: str, margin: Array) -> Sides:
    bound, wrong = (gamma_linear(replace(c, Z_mu=share * c.Z_mu)) for share in (1, 0.5))
    pairs = {form: (bound, margin), "control": (wrong, margin)}
    return Sides.pairs(pairs, error=1e-14 * c.T * (c.S + c.Z))


def _projection_margin(instance: Instance, size: Size) -> Sides:
    c = unfold(instance)
    # At W = 0 the gradient in U is the same for every U.
    return _above_linear(c, "printed", jnp.min(c.margins_at(instance["p"])[0]))


EQ_106 = searched_sequence(
    id="multihead.eq106",
    label="eq. (106)",
    formula="y <grad_U Phi(X; U, 0), U*> >= S sqrt(T/2) (zeta - 2 (1 - zeta) Z_mu / S^2)",
    tex=r"y \langle \nabla_U \Phi(X; \theta^{(1)}), \bar U_\star \rangle \ge \frac{S "
    r"\sqrt{T}}{\sqrt{2}} \left( \zeta - 2 (1 - \zeta) \frac{Z_\mu}{S^2} \right)",
    evaluate=_projection_margin,
    judges=(gamma_linear, ntk_margins),
    forms=(
        Form(
            name="printed",
            cites="eq. (106), Appendix D.2.3",
            equality="every irrelevant token at -y Z_mu, +y Z_mu, or no noise",
        ),
    ),
    control="half of Z_mu",
    source="Appendix D.2.3; the first half of Section 5.2",
)


def _linear_margin(instance: Instance, size: Size) -> Sides:
    c = unfold(instance)
    direction = oracle_projection(c.patterns, c.T) / projection_norm(c)
    return _above_linear(c, "printed", c.y * jnp.sum(direction * c.X))


EQ_132 = searched_sequence(
    id="multihead.eq132",
    label="eq. (132)",
    formula="y <U*, X> >= gamma_lin = S sqrt(T/2) (zeta - 2 (1 - zeta) Z_mu / S^2)",
    tex=r"y \langle \bar U_\star, X \rangle \ge \gamma_{\mathrm{lin}} = \frac{S "
    r"\sqrt{T}}{\sqrt{2}} \left( \zeta - 2 (1 - \zeta) \frac{Z_\mu}{S^2} \right)",
    evaluate=_linear_margin,
    judges=(gamma_linear, oracle_projection, oracle_classifier, projection_norm),
    forms=(
        Form(
            name="printed",
            cites="eq. (132), Appendix F",
            equality="every irrelevant token at -y Z_mu, +y Z_mu, or no noise",
            note="The bound is about the margin of the oracle U*. The linear classifier of largest "
            "margin may have a larger margin than U*.",
        ),
    ),
    control="half of Z_mu",
    source="Appendix F",
    search="none",
)


def _zero_start(instance: Instance, size: Size) -> Sides:
    c = unfold(instance)
    margin = 2**0.5 * jnp.min(c.margins_at(jnp.zeros_like(instance["p"]))[0])
    bound = 2**0.5 * gamma_linear(c)
    return Sides.pairs(
        {"derived": (bound, margin), "control": (2**0.5 * bound, margin)},
        error=1e-14 * c.T * (c.S + c.Z),
    )


ZERO_START = searched_sequences(
    id="multihead.sec5.1.zero",
    label="Section 5.1, theta^(0) = 0",
    formula="zero is a good initialisation: B_2 = B_Phi = 1 and NTK margin sqrt(2) gamma_lin",
    tex=r"\tilde\theta^{(0)} = 0: \quad B_2 = B_\Phi = 1, \quad \gamma = \sqrt{2} \, "
    r"\gamma_{\mathrm{lin}}",
    evaluate=_zero_start,
    judges=(gamma_linear, ntk_margins),
    forms=(
        Form(
            name="derived",
            equality="as eq. (106)",
            note="The paper says 'We cannot directly show that 0 is good'. But (106) holds at U = "
            "W = 0, with theta* = sqrt(2/H) (U*, 0) on every head. So theta = 0 is a good "
            "initialisation if gamma_lin > 0.",
        ),
    ),
    control="2 gamma_lin",
    source="Section 5.1, first paragraph",
    search="none",
)


def _scores(instance: Instance, size: Size) -> Sides:
    c = unfold(instance)
    formula = relevance_formula(c.patterns, instance["relevant"], instance["z"], c.y)
    return Sides(
        lhs=relevance_scores(c.X, oracle_weights(c.patterns)),
        rhs={"printed": formula, "control": formula.T},
        error=1e-14 * (c.S + c.Z) ** 4,
    )


EQ_110 = on_sequence(
    id="multihead.eq110",
    label="eqs. (108), (110)",
    formula="the relevance scores X W*^T x_t in terms of the noise",
    tex=r"[r_t]_{t'} = S^4 \; (t, t' \in \mathcal{R}), \quad S^2 \mu_y^\top z_{t'} \; (t \in "
    r"\mathcal{R}, t' \in \mathcal{R}^c), \quad S^4 + S^2 \mu_y^\top z_t + S^2 "
    r"\sum_{\ell} \nu_\ell^\top z_t \; (t \in \mathcal{R}^c, t' \in \mathcal{R}), \quad "
    r"(\mu_+^\top z_t)(\mu_+^\top z_{t'}) + (\mu_-^\top z_t)(\mu_-^\top z_{t'}) + "
    r"\sum_{\ell} (\nu_\ell^\top z_t)(\mu_+ + \mu_-)^\top z_{t'} + S^2 (\mu_+ + \mu_-)^\top "
    r"z_{t'} \; (t, t' \in \mathcal{R}^c)",
    kind="identity",
    evaluate=_scores,
    judges=(relevance_scores, relevance_formula, oracle_weights),
    forms=(Form(name="printed", cites="eqs. (108), (110), Appendix D.2.3"),),
    control="queries and tokens exchanged",
    source="Appendix D.2.3; again in Appendix E.1",
    budget=DRAWS,
)


def _term_one(which: int) -> Callable[[Instance, Size], Sides]:
    def evaluate(instance: Instance, size: Size) -> Sides:
        c = unfold(instance)
        scores = jnp.sum(relevance_scores(c.X, oracle_weights(c.patterns)), axis=0)
        classes = c.X @ c.classifier
        first = c.y / c.T * jnp.sum(classes * scores)
        part = (first, -c.y / c.T**2 * jnp.sum(classes) * jnp.sum(scores))[which]
        bound = term_one_bounds(c)[which]
        wrong = bound + c.T * c.zeta * (1 - c.zeta) * c.Z_mu * c.S**4
        pairs = {"printed": (bound, part), "control": (wrong, part)}
        return Sides.pairs(pairs, error=1e-14 * c.T * (c.S + c.Z) ** 6)

    return evaluate


EQ_112 = searched_sequence(
    id="multihead.eq112",
    label="eq. (112)",
    formula="(y/T) sum_t u*^T X^T r_t >= T (zeta S^6 - zeta (1-zeta) (Z_mu + Z_nu) S^4 - ...)",
    tex=r"\frac{y}{T} \sum_{t} u_\star^\top X^\top r_t \ge T \left[ \zeta S^6 - \zeta (1 - "
    r"\zeta) (Z_\mu + Z_\nu) S^4 - 2 (1 - \zeta) (\zeta + 2 (1 - \zeta)) Z_\mu^2 S^2 - 4 "
    r"(1 - \zeta)^2 Z_\mu^2 (Z_\mu + Z_\nu) \right]",
    evaluate=_term_one(0),
    judges=(term_one_bounds, relevance_scores),
    forms=(Form(name="printed", cites="eq. (112), Appendix D.2.3", equality="no noise"),),
    control="Z_mu counted once less in the second term",
    source="Appendix D.2.3",
)


EQ_113 = searched_sequence(
    id="multihead.eq113",
    label="eq. (113)",
    formula="-(y/T^2) sum_t u*^T X^T 1 1^T r_t >= -T (zeta^2 S^6 + ...)",
    tex=r"-\frac{y}{T^2} \sum_{t} u_\star^\top X^\top 1 1^\top r_t \ge T \left[ -\zeta^2 S^6 "
    r"- \zeta (1 - \zeta) (4 Z_\mu + \zeta Z_\nu) S^4 - 2 (1 - \zeta)^2 ((2 + \zeta) "
    r"Z_\mu + 2 \zeta Z_\nu) Z_\mu S^2 - 4 (1 - \zeta)^3 Z_\mu^2 (Z_\mu + Z_\nu) \right]",
    evaluate=_term_one(1),
    judges=(term_one_bounds, relevance_scores),
    forms=(Form(name="printed", cites="eq. (113), Appendix D.2.3", equality="no noise"),),
    control="Z_mu counted once less in the second term",
    source="Appendix D.2.3",
)


def _term_two(instance: Instance, size: Size) -> Sides:
    c, p = unfold(instance), instance["p"]
    centred = c.X - jnp.mean(c.X, axis=0)[None, :]
    covariance = c.X.T @ centred / c.T
    P, weights = vector_norm(p), oracle_weights(c.patterns)
    printed = term_two_bound(c, P)
    sharp = weights_norm(c) * deviation_part_sharp(c, P)
    return Sides(
        lhs=jnp.abs(p @ covariance @ weights.T @ jnp.sum(c.X, axis=0)),
        rhs={
            "printed": printed,
            "sharpened, ||R_0||": printed * (c.T - 1) ** 0.5 / c.T**1.5,
            "sharpened S13": sharp,
            "printed, as in (7)": weights_norm(c) * deviation_part(c, P),
            "control": sharp / c.T**2,
        },
        error=c.rounding * P,
    )


EQ_114 = searched_sequence(
    id="multihead.eq114",
    label="eq. (114)",
    formula="|<sum_t x_t p^T X^T R_0 X, W*>| <= sqrt(2 (M+1)) S^2 P T^{5/2} "
    "(zeta S + (1-zeta)(S+Z)) (zeta S^2 + (1-zeta)(S+Z)^2)",
    tex=r"\left| \left\langle \sum_{t} x_t p^\top X^\top R_0 X, W_\star \right\rangle "
    r"\right| \le \sqrt{2 (M + 1)} S^2 P T^{5/2} (\zeta S + (1 - \zeta) (S + Z)) (\zeta "
    r"S^2 + (1 - \zeta) (S + Z)^2)",
    evaluate=_term_two,
    judges=(term_two_bound, deviation_part, deviation_part_sharp, weights_norm),
    forms=(
        Form(name="printed", cites="eq. (114), Appendix D.2.3; eq. (7)"),
        Form(
            name="sharpened, ||R_0||",
            note=(
                "The matrix R_0 = phi'(0) has ||R_0||_F = sqrt(T-1) / T, so the bound contains "
                "T^{3/2} in place of T^{5/2}."
            ),
        ),
        Form(
            name="sharpened S13",
            note=(
                "The bound on Term II uses ||X^T R_0 X|| <= R^2 for R_0 = phi'(0), ||sum_t x_t|| "
                "<= T R and ||W*|| = S^2 sqrt(2 M + 1)."
            ),
        ),
        Form(
            name="printed, as in (7)",
            cites="eq. (7), Section 5.1; eq. (116)",
            note="The bound on Term II is P T^{5/2} (S + Z)^3 times ||W*||_F.",
        ),
    ),
    control="the sharpened bound over T^2",
    source="Appendix D.2.3",
)

STATEMENTS = (EQ_106, EQ_132, ZERO_START, EQ_110, EQ_112, EQ_113, EQ_114)
