"""Appendices D.2, F: the margin of the oracle at zero and at theta^(1), term by term."""

import jax.numpy as jnp

from jaxbounds.multihead.oracle import (
    deviation_part_sharp,
    gamma_linear,
    oracle_weights,
    relevance_formula,
    relevance_scores,
)
from jaxbounds.multihead.statements.contexts import DATA_SIZES, Context, sequences, unfold
from jaxbounds.multihead.statements.phase_shared import (
    DRAWS,
    euclidean,
    margin_parts,
    margin_scale,
    phase_statement,
)
from jaxbounds.statements import Form, Instance, Sides


def _projection_margin(instance: Instance) -> Sides:
    c = unfold(instance)
    # At W = 0 the gradient in U is the same for every U.
    outer, _ = margin_parts(c, instance["p"])
    bound = gamma_linear(c.S, c.zeta, c.Z_mu, T=c.T)
    wrong = gamma_linear(c.S, c.zeta, c.Z_mu / 2, T=c.T)
    return Sides(
        lhs={"printed": bound, "control": wrong},
        rhs={"printed": outer, "control": outer},
        error=1e-14 * c.T * (c.S + c.Z),
    )


def _linear_margin(instance: Instance) -> Sides:
    c = unfold(instance)
    margin = c.y * jnp.sum(c.direction["U"] * c.X)
    bound = gamma_linear(c.S, c.zeta, c.Z_mu, T=c.T)
    wrong = gamma_linear(c.S, c.zeta, c.Z_mu / 2, T=c.T)
    return Sides(
        lhs={"printed": bound, "control": wrong},
        rhs={"printed": margin, "control": margin},
        error=1e-14 * c.T * (c.S + c.Z),
    )


def _zero_start(instance: Instance) -> Sides:
    c = unfold(instance)
    outer, _ = margin_parts(c, 0.0 * instance["p"])
    margin = 2**0.5 * jnp.min(outer)
    bound = 2**0.5 * gamma_linear(c.S, c.zeta, c.Z_mu, T=c.T)
    return Sides(
        lhs={"derived": bound, "control": 2**0.5 * bound},
        rhs={"derived": margin, "control": margin},
        error=1e-14 * c.T * (c.S + c.Z),
    )


def _scores(instance: Instance) -> Sides:
    c = unfold(instance)
    weights = oracle_weights(c.patterns)
    formula = relevance_formula(c.patterns, instance["relevant"], instance["z"], c.y)
    return Sides(
        lhs=relevance_scores(c.X, weights),
        rhs={"printed": formula, "control": formula.T},
        error=1e-14 * (c.S + c.Z) ** 4,
    )


def _term_one(c: Context):
    """The two parts of Term I in (107), each with its lower bound (112), (113)."""
    scores = jnp.sum(relevance_scores(c.X, oracle_weights(c.patterns)), axis=0)
    classes = c.X @ c.classifier
    first = c.y / c.T * jnp.sum(classes * scores)
    second = -c.y / c.T**2 * jnp.sum(classes) * jnp.sum(scores)
    S, z, m, v, _ = c.arguments
    off = 1 - z
    first_bound = c.T * (
        z * S**6
        - z * off * (m + v) * S**4
        - 2 * off * (z + 2 * off) * m**2 * S**2
        - 4 * off**2 * m**2 * (m + v)
    )
    second_bound = c.T * (
        -(z**2) * S**6
        - z * off * (4 * m + z * v) * S**4
        - 2 * off**2 * ((2 + z) * m + 2 * z * v) * m * S**2
        - 4 * off**3 * m**2 * (m + v)
    )
    return (first, first_bound), (second, second_bound)


def _term_one_part(which: int):
    def evaluate(instance: Instance) -> Sides:
        c = unfold(instance)
        measured, bound = _term_one(c)[which]
        wrong = bound + c.T * c.zeta * (1 - c.zeta) * c.Z_mu * c.S**4
        return Sides(
            lhs={"printed": bound, "control": wrong},
            rhs={"printed": measured, "control": measured},
            error=1e-14 * c.T * (c.S + c.Z) ** 6,
        )

    return evaluate


def _term_two(instance: Instance) -> Sides:
    c = unfold(instance)
    p, S, z, weights = instance["p"], c.S, c.zeta, oracle_weights(c.patterns)
    centred = c.X - jnp.mean(c.X, axis=0)[None, :]
    covariance = c.X.T @ centred / c.T
    measured = jnp.abs(p @ covariance @ weights.T @ jnp.sum(c.X, axis=0))
    longest, P = S + (1 - z) * c.Z, euclidean(p)
    squares = z * S**2 + (1 - z) * (S + c.Z) ** 2
    shared = (2 * (c.M + 1)) ** 0.5 * S**2 * P * longest * squares
    norm = (2 * (c.M + 1)) ** 0.5 * S**2
    sharp = norm * deviation_part_sharp(P, c.R, T=c.T, M=c.M)
    return Sides(
        lhs=measured,
        rhs={
            "printed": shared * c.T**2.5,
            "sharpened E4": shared * c.T * (c.T - 1) ** 0.5,
            "sharpened S13": sharp,
            "control": sharp / c.T**2,
        },
        error=1e-14 * margin_scale(c) * euclidean(p),
    )


QUIET = "no noise"

STATEMENTS = (
    phase_statement(
        "eq106",
        "eq. (106)",
        "y <grad_U Phi(X; U, 0), U*> >= S sqrt(T/2) (zeta - 2 (1 - zeta) Z_mu / S^2)",
        "inequality",
        _projection_margin,
        (Form(name="printed", equality="every irrelevant token at -y Z_mu, +y Z_mu, or no noise"),),
        "half of Z_mu",
        "Appendix D.2.3; the first half of Section 5.2",
    ),
    phase_statement(
        "eq132",
        "eq. (132)",
        "y <U*, X> >= gamma_lin = S sqrt(T/2) (zeta - 2 (1 - zeta) Z_mu / S^2)",
        "inequality",
        _linear_margin,
        (
            Form(
                name="printed",
                equality="every irrelevant token at -y Z_mu, +y Z_mu, or no noise",
                note="The margin of the oracle U*, not the largest of a linear classifier.",
            ),
        ),
        "half of Z_mu",
        "Appendix F",
        search="none",
    ),
    phase_statement(
        "sec5.1-zero",
        "Section 5.1, theta^(0) = 0",
        "zero is a good initialisation: B_2 = B_Phi = 1 and NTK margin sqrt(2) gamma_lin",
        "inequality",
        _zero_start,
        (
            Form(
                name="derived",
                erratum="E19",
                equality="as eq. (106)",
                note="'We cannot directly show that 0 is good', yet (106) holds at U = W = 0: "
                "theta* = sqrt(2/H) (U*, 0) on every head. It is good where gamma_lin > 0.",
            ),
        ),
        "2 gamma_lin",
        "Section 5.1, first paragraph",
        sample=sequences,
        sizes=DATA_SIZES,
        search="none",
    ),
    phase_statement(
        "eq110",
        "eqs. (108), (110)",
        "the relevance scores X W*^T x_t in terms of the noise",
        "identity",
        _scores,
        (Form(name="printed"),),
        "queries and tokens exchanged",
        "Appendix D.2.3; again in Appendix E.1",
        budget=DRAWS,
    ),
    phase_statement(
        "eq112",
        "eq. (112)",
        "(y/T) sum_t u*^T X^T r_t >= T (zeta S^6 - zeta (1-zeta) (Z_mu + Z_nu) S^4 - ...)",
        "inequality",
        _term_one_part(0),
        (Form(name="printed", equality=QUIET),),
        "Z_mu counted once less in the second term",
        "Appendix D.2.3",
    ),
    phase_statement(
        "eq113",
        "eq. (113)",
        "-(y/T^2) sum_t u*^T X^T 1 1^T r_t >= -T (zeta^2 S^6 + ...)",
        "inequality",
        _term_one_part(1),
        (Form(name="printed", equality=QUIET),),
        "Z_mu counted once less in the second term",
        "Appendix D.2.3",
    ),
    phase_statement(
        "eq114",
        "eq. (114)",
        "|<sum_t x_t p^T X^T R_0 X, W*>| <= sqrt(2 (M+1)) S^2 P T^{5/2} "
        "(zeta S + (1-zeta)(S+Z)) (zeta S^2 + (1-zeta)(S+Z)^2)",
        "inequality",
        _term_two,
        (
            Form(name="printed"),
            Form(name="sharpened E4", note="||R_0||_F = sqrt(T-1) / T: T^{3/2} for T^{5/2}."),
            Form(
                name="sharpened S13",
                note="||X^T R_0 X|| <= R^2, ||sum_t x_t|| <= T R and ||W*|| = S^2 sqrt(2 M + 1).",
            ),
        ),
        "the sharpened bound over T^2",
        "Appendix D.2.3",
    ),
)
