"""Lemmas 13 to 15: the data are NTK separable at theta^(1) with margin gamma* (P3)."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbounds.multihead.first_phase import centre, equal_rows, heads_for_margin, margin_loss
from jaxbounds.multihead.ntk import ntk_margins
from jaxbounds.multihead.oracle import Real, oracle_direction, separating_direction
from jaxbounds.multihead.oracle_bounds import (
    attention_part,
    deviation_part,
    deviation_part_sharp,
    gamma_star,
)
from jaxbounds.multihead.statements.contexts import (
    ON_DATA,
    ON_SEQUENCE,
    SEARCHED,
    SEARCHED_SEQUENCE,
    Context,
    by_hand,
    sequence,
    sequences,
    unfold,
)
from jaxbounds.norms import vector_norm
from jaxbounds.statements import Budget, Counterexample, Form, Instance, Sides, Size, Statement


def _gamma_star(c: Context, instance: Instance) -> Real:
    return gamma_star(c, vector_norm(instance["p"]))


def _ntk_margin(instance: Instance, size: Size) -> Sides:
    c, p = unfold(instance), instance["p"]
    outer, inner = c.margins_at(centre(c.classifier, c.zeta) + p)
    _, at_half = c.margins_at(c.zeta / 2 * c.classifier + p)
    printed, P = _gamma_star(c, instance), vector_norm(p)
    sharper = deviation_part(c, P) - deviation_part_sharp(c, P)
    wrong = printed + c.T * (1 - c.zeta) * c.S**2 * c.Z_mu
    margin = lambda inner: jnp.min(outer + inner)
    return Sides.pairs(
        {
            "printed": (printed, margin(at_half / 2)),
            "printed, alpha in [-1, 1], recentred": (printed, margin(inner / 2)),
            "corrected": (printed, margin(inner)),
            "sharpened S13": (printed + sharper, margin(inner)),
            "control": (wrong, margin(inner)),
        },
        error=c.rounding,
    )


LEMMA_13 = Statement(
    id="multihead.lem13",
    label="Lemma 13, eqs. (7), (119)",
    formula="E_alpha y <grad Phi(X; theta^(1)), theta*> >= gamma*",
    evaluate=_ntk_margin,
    judges=(
        gamma_star,
        attention_part,
        deviation_part,
        deviation_part_sharp,
        oracle_direction,
        centre,
        ntk_margins,
    ),
    forms=(
        Form(
            name="printed",
            equality="no noise and p = 0",
            note="Read as (116) divides: alpha uniform on [-1, 1], U^(1) = alpha 1_T "
            "((zeta/2) u* + p)^T. But by E2 this p is at least zeta S sqrt(2) / 4, and then "
            "gamma* < gamma_lin.",
        ),
        Form(
            name="printed, alpha in [-1, 1], recentred",
            expected="fails",
            erratum="E3",
            note="With the true centre (zeta/4) u* and E|alpha| = 1/2 the first term of gamma* "
            "is twice too large.",
            counterexample=Counterexample(
                instance=by_hand([True, False]), size={"T": 2, "d": 4}, ratio=1.0303030303030303
            ),
        ),
        Form(
            name="corrected",
            equality="no noise and p = 0",
            note="alpha = +-1 and the centre (zeta/4) u*: both factors of two cancel.",
        ),
        Form(
            name="sharpened S13",
            equality="no noise and p = 0",
            note="P T R^3 ||W*|| / ||W*||_F for P T^{5/2} (S + Z)^3.",
        ),
    ),
    control="the noise Z_mu counted in the wrong direction",
    source="Section 5.1, Proposition 2; Appendix D.2.3",
    **SEARCHED_SEQUENCE | {"budget": Budget(samples=256, restarts=4, steps=80)},
)


def _with_signs(key: jax.Array, size: Size) -> Instance:
    """A quiet sequence: gamma* is positive and its first term dominates."""
    data_key, sign_key = jax.random.split(key)
    instance = sequence(data_key, size)
    signs = jax.random.rademacher(sign_key, (size["H"],)).astype(float)
    quiet = {"z": 1e-3 * instance["z"], "p": 1e-4 * instance["p"], "S": 2 + 0 * instance["S"]}
    return {**instance, **quiet, "alpha": signs, "delta": 0.1 * jnp.ones(())}


def _separability(instance: Instance, size: Size) -> Sides:
    c, p, alpha = unfold(instance), instance["p"], instance["alpha"]
    start = equal_rows(centre(c.classifier, c.zeta) + p, alpha, c.T)
    directions = (separating_direction(c.patterns, signs, c.T) for signs in (alpha, alpha**2))
    found, unsigned = (jnp.min(ntk_margins(start, c.data, v)) for v in directions)
    star = _gamma_star(c, instance)
    loss = margin_loss(c, vector_norm(p), instance["delta"], size["H"])
    return Sides.pairs(
        {
            "printed": (star - loss, found),
            "sharpened S12": (star, found),
            "control": (star, unsigned),
        },
        error=c.rounding,
    )


LEMMA_14 = Statement(
    id="multihead.lem14",
    label="Lemma 14",
    formula="y <grad Phi, theta*> >= gamma* - 2 (2 R^3 T (S+P) + sqrt(T) R) sqrt(2 log(1/delta)/H) "
    "with probability 1 - delta",
    kind="probability",
    evaluate=_separability,
    judges=(gamma_star, separating_direction, ntk_margins),
    forms=(
        Form(name="printed"),
        Form(
            name="sharpened S12",
            note="alpha = +-1: sign(alpha) grad_W does not depend on alpha, so gamma* is "
            "reached surely, for every H.",
        ),
    ),
    control="theta* without sign(alpha)",
    source="Appendix D.2.3",
    level=0.1,
    **ON_SEQUENCE
    | {
        "sample": _with_signs,
        "sizes": ({"T": 5, "d": 5, "H": 4},),
        "budget": Budget(samples=1000, restarts=0),
    },
)


def _with_groups(key: jax.Array, size: Size) -> Instance:
    """Quiet data, and the share of heads with alpha = +1."""
    data_key, share_key = jax.random.split(key)
    instance = sequences(data_key, size)
    quiet = {"z": 0.05 * instance["z"], "p": 1e-3 * instance["p"]}
    return {**instance, **quiet, "share": jax.random.uniform(share_key)}


def _positive_margin(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    return {"gamma* > 0": _gamma_star(unfold(instance), instance) > 0}


def _margin_lemma(instance: Instance, size: Size) -> Sides:
    c, p, failure = unfold(instance), instance["p"], 0.1 / size["n"]
    row, P, star = centre(c.classifier, c.zeta) + p, vector_norm(p), _gamma_star(c, instance)
    heads = heads_for_margin(c, P, star, failure)
    left = star - margin_loss(c, P, failure, heads)
    # Groups alpha = +1 and alpha = -1; theta* takes sign(alpha) W*.
    (up, up_inner), (down, down_inner) = c.margins_at(row), c.margins_at(-row)
    total, plus = jnp.ceil(heads), jnp.round(instance["share"] * heads)
    found = plus * (up + up_inner) + (total - plus) * (down - down_inner)
    margin = jnp.min(found) / total
    return Sides.pairs(
        {
            "printed": (left, margin),
            "sharpened S12": (star, margin),
            "control": (1.5 * star, margin),
        },
        error=10 * c.rounding,
    )


LEMMA_15 = Statement(
    id="multihead.lem15",
    label="Lemma 15",
    formula="P3 holds with gamma*/2 if sqrt(H) >= 4 (2 R^3 T (S+P) + sqrt(T) R) / gamma* "
    "sqrt(2 log(n/delta))",
    evaluate=_margin_lemma,
    judges=(gamma_star, heads_for_margin, margin_loss, ntk_margins),
    forms=(
        Form(
            name="printed",
            note="At the least H, where Lemma 14 with delta / n leaves gamma*/2; Proposition 2 "
            "prints R^4 for R^3.",
        ),
        Form(
            name="sharpened S12",
            equality="no noise and p = 0",
            note="gamma*, surely and for every H.",
        ),
    ),
    control="3/2 gamma*",
    source="Section 5.1, Proposition 2; Appendix D.2.3",
    search="none",
    hypotheses=_positive_margin,
    **ON_DATA | SEARCHED | {"sample": _with_groups, "assumptions": "DM1, Assumption 3; gamma* > 0"},
)

STATEMENTS = (LEMMA_13, LEMMA_14, LEMMA_15)
