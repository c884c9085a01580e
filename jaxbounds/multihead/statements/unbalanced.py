"""Statements of Corollary 5 with B_Phi > 1: unequal numbers of heads with alpha = +1 and -1."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.multihead.certificate import corollary5, realized_distance, target_scale
from jaxbounds.multihead.descent_certificate import DescentCertificate, descent_certificate
from jaxbounds.multihead.model import head_norm
from jaxbounds.multihead.runs import gradient_descent
from jaxbounds.multihead.statements.contexts import DATA_SIZES, quieter
from jaxbounds.multihead.statements.realizable_starts import (
    Start,
    definition_1,
    even,
    good_start_of,
    shared,
)
from jaxbounds.multihead.tied import tied_risk

SHARP = "sharpened S2, S6, S8, S10"
FORMS = ("printed", "corrected", SHARP)


def _unbalanced(key: jax.Array, size: Size) -> Instance:
    data_key, excess_key, sign_key = jax.random.split(key, 3)
    instance = quieter(p=0.1)(data_key, size)
    excess = jax.random.uniform(excess_key, (), minval=6.0, maxval=12.0)
    return {
        **instance,
        "S": 1 + instance["S"] / 10,
        "log_eps": -jnp.log(1.0 * size["K"]),
        "excess": excess * jax.random.rademacher(sign_key, (), dtype=float),
    }


@jax.jit
def _started(instance: Instance, K: ArrayLike) -> tuple[Start, dict[str, Any]]:
    start = good_start_of(instance)
    return start, {
        "radius": start.radius,
        "distance": realized_distance(start.good, 1 / K),
        "loss_start": tied_risk(start.params, shared(start, 1e4)[1], start.data),
        "size": start.good.head_bound,
        # The theta* of two heads, spread over H heads, is divided by sqrt(H / 2) in each head.
        "spread": jnp.sqrt(2.0) * target_scale(start.good, 1 / K) * head_norm(start.direction),
    }


def _certificate(
    start: Start, given: Mapping[str, Any], size: Size, form: str
) -> DescentCertificate:
    K, shape = size["K"], {"T": size["T"], "d": size["d"]}
    if form != SHARP:
        return corollary5(start.good, start.radius, K, **shape, corrected=form == "corrected")
    about: Any = {name: float(value) for name, value in given.items()}
    return descent_certificate(**shape, K=K, loss_target=1 / K, **about)["sharpened S8"]


@jax.jit
def _losses(start: Start, heads: ArrayLike, step: ArrayLike) -> Array:
    copies = shared(start, even(heads))[1]
    risk = lambda params, single: tied_risk(params, copies, start.data, single)
    return gradient_descent(risk, start.params, copies, jnp.asarray(step)).losses


def _observed(instance: Instance, size: Size) -> Sides:
    (start, given), pairs = _started(dict(instance), float(size["K"])), {}
    for name in FORMS:
        found = _certificate(start, given, size, name)
        losses = np.asarray(_losses(start, found.heads, found.step_size))
        pairs[name] = losses[size["K"]], found.loss_bound
    return Sides.pairs(pairs | {"control": (pairs[SHARP][0], 2 / size["K"])})


@jax.jit
def _meets(start: Start, heads: ArrayLike) -> dict[str, ArrayLike]:
    copies = shared(start, even(heads))[1]
    share, _ = shared(start, jnp.sum(copies))
    found = definition_1(start.good, start.params, copies, start.data, share)
    return {**found, "B_Phi > 1": start.good.model_bound > 1}


def _good(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    start, given = _started(dict(instance), float(size["K"]))
    return _meets(start, _certificate(start, given, size, SHARP).heads)


UNBALANCED = Statement(
    id="multihead.cor5.unbalanced",
    label="Corollary 2 / Corollary 5, B_Phi > 1",
    formula="L(theta_K) <= 2/K + 5 (2 B_Phi + log K)^2 / (4 gamma^2 eta K) where Phi(theta_0) != 0",
    tex=r"\hat L(\theta_K) \le \frac{2}{K} + \frac{5 (2 B_\Phi + \ln K)^2}{4 \gamma^2 \eta "
    r"K}, \quad B_\Phi = \max_i |\tilde\Phi(X_i; \theta_0)| > 1",
    kind="trajectory",
    sample=_unbalanced,
    hypotheses=_good,
    evaluate=_observed,
    judges=(corollary5, descent_certificate),
    host=True,
    relation="<=",
    horizon="K",
    sizes=tuple({**DATA_SIZES[0], "K": K} for K in (3, 30)),
    forms=(
        Form(
            name="printed",
            cites="Corollary 5, eq. (101), Appendix C.4",
            note=(
                "The check uses the least H and the largest eta that the corollary allows. One of "
                "the upper limits of eta is 4 B_Phi^2 / (gamma^2 log(1 + e^{B_Phi})). The printed "
                "bound is unproved, as erratum E5 explains."
            ),
        ),
        Form(
            name="corrected",
            note="This version of the claim bounds the distance of theta(eps) from theta_0 by "
            "sqrt(2) G, where the paper prints G = (2 B_Phi + log K) / gamma.",
        ),
        Form(
            name=SHARP,
            note="The bound on the loss is that of the sharpened Theorem 3 at D = sqrt(2) G, as "
            "in multihead.cor5.",
        ),
    ),
    control="2/K alone",
    assumptions="DM1 at theta^(1) with b sqrt(H) more heads of one sign, 6 <= |b| <= 12; theta* of "
    "Lemma 13 with its measured margin gamma > 0; K = 3 and 30",
    budget=Budget(samples=16),
    source="Section 4.3; Appendix C.4, eq. (101)",
)

STATEMENTS = (UNBALANCED,)
