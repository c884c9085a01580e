"""Statements about the largest gap between risk and empirical risk over a class of networks.

The statements check Lemmas 18 and 32, and Corollaries 19 and 33. Projected ascent estimates each
supremum over the class from below. The tokens are signs, so the check can list all prompts.
"""

import functools
import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.ground.jax_internals import ensure_compile_time_eval
from jaxbounds.numerics.ascent import projected_ascent
from jaxbounds.numerics.chaining import LogCovering
from jaxbounds.numerics.norms import vector_norm
from jaxbounds.qstr import covers, data, excess
from jaxbounds.qstr.statements.lipschitz import WEIGHTS, predict

LEVEL, TAU = 0.2, 2.0
RADIUS = 3.0
"""The radius of the ball that contains the parameters of the class. A larger radius gives a larger
class.
"""


@functools.lru_cache
def _all_prompts() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all 32 prompts: encoded tokens (32, 2, De), positions (32,) and labels (32,)."""
    pairs = lambda values: [*itertools.product(values, repeat=2)]
    rows = [*itertools.product(pairs((-1.0, 1.0)), pairs(range(2)), range(2))]
    x, t, which = (np.array(column) for column in zip(*rows))
    with ensure_compile_time_eval():
        z = jax.vmap(data.encode, (0, 0, None))(x[:, :, None], t[:, :, None], jnp.eye(2))  # type: ignore[arg-type]
    return np.asarray(z), which, x[np.arange(32), t[np.arange(32), which]]


def _counts_sample(key: Array, size: Size) -> Instance:
    law = jnp.full(32, 1.0 / 32)
    return {"counts": jax.random.multinomial(key, 2 ** size["log_n"], law).astype(int)}


def _network(size: Size) -> tuple[Array, Callable[[Array], dict[str, Array]]]:
    return ravel_pytree({name: jnp.zeros(one.shape_at(size)) for name, one in WEIGHTS.items()})


def _ball_climb(objective: Callable[[dict[str, Array]], Array], size: Size) -> Array:
    """Return the largest value that projected ascent finds in the ball, below the supremum."""
    flat, params = _network(size)
    drawn = np.random.default_rng(0).normal(size=(2, len(flat)))
    inside = lambda v: v * jnp.minimum(1.0, RADIUS / jnp.maximum(vector_norm(v), 1e-30))
    first = RADIUS * drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return projected_ascent(
        lambda v: objective(params(v)), inside, jnp.asarray(first), steps=15, rate=0.5 * RADIUS
    )


def _signs_covering(size: Size) -> LogCovering:
    lipschitz = covers.transformer_lipschitz(RADIUS, H=size["H"], r_z=math.sqrt(3.0))
    of = {"parameters": len(_network(size)[0]), "radius": RADIUS, "lipschitz": lipschitz}
    return lambda eps: covers.ball_log_covering(eps, **of)


def _losses(params: Mapping[str, Array], size: Size) -> Array:
    z, which, y = (jnp.asarray(v) for v in _all_prompts())
    predicted = predict(params, z, size)[jnp.arange(len(y)), which]
    return jnp.minimum((predicted - y) ** 2, TAU)


def _gaps(i: Instance, size: Size) -> Sides:
    n = 2 ** size["log_n"]
    root = lambda v: jnp.sqrt(jnp.maximum(v, 1e-12))

    def apart(params: Mapping[str, Array], kind: Array) -> Array:
        losses = _losses(params, size)
        mean, empirical = jnp.mean(losses), i["counts"] / n @ losses
        gap = mean - empirical
        return jnp.stack([gap, -gap, root(mean) - root(empirical)])[kind]

    climb = lambda kind: _ball_climb(lambda p: apart(p, kind), size)
    above, below, roots = jax.vmap(climb)(jnp.arange(3))
    covering = _signs_covering(size)
    given: dict[str, Any] = {"tau": TAU, "delta": LEVEL}
    worst = jnp.maximum(above, below)
    return Sides.pairs(
        {
            "derived": (worst, excess.truncated_gap(covering, n, sharp=False, **given)),
            "sharpened": (worst, excess.truncated_gap(covering, n, **given)),
            "sharpened roots": (roots, math.sqrt(excess.truncated_risk(covering, n, **given))),
            "control": (worst, 0.3 * math.sqrt(TAU / n)),
        },
        trivial=TAU,
    )


GAPS = Statement(
    id="qstr.cor19",
    label="Corollaries 19 and 33",
    formula="sup |R_tau - R-hat_tau| <= inf 4 sqrt(tau) eps + tau sqrt((log C(eps) + log(2/delta))/"
    "(2n)) with probability 1 - delta",
    tex=r"\sup_\Theta |R_\tau - \hat R_\tau| \le \inf_\epsilon \left( 4 \sqrt{\tau} \epsilon "
    r"+ \tau \sqrt{\frac{\log \mathcal{C}(\epsilon) + \log(2/\delta)}{2 n}} \right) \quad "
    r"\text{with probability } 1 - \delta",
    kind="probability",
    level=LEVEL,
    judges=(
        excess.truncated_gap,
        excess.truncated_risk,
        covers.ball_log_covering,
        covers.transformer_lipschitz,
    ),
    sample=_counts_sample,
    evaluate=_gaps,
    forms=(
        Form(
            name="derived",
            note="The proof uses symmetrisation and a cover at one scale, as Lemma 32 does.",
        ),
        Form(
            name="sharpened",
            note="The proof applies Hoeffding's inequality to the functions of a cover.",
        ),
        Form(
            name="sharpened roots",
            note="This version of the claim is sqrt R_tau - sqrt R-hat_tau <= 2 eps + sqrt(2 tau "
            "(log C + log(1/delta))/n).",
        ),
    ),
    control="0.3 sqrt(tau/n)",
    sizes=({"H": 1, "De": 5, "m": 2, "log_n": 17},),
    assumptions="Theorem 4's class, |vec Theta| <= 3, on all 32 prompts of two signs; "
    "the supremum by projected ascent, from below",
    budget=Budget(samples=40, restarts=0, steps=0, batch=40),
    source="Lemmas 18 and 32, Corollaries 19 and 33",
)


def _rademacher_sample(key: Array, size: Size) -> Instance:
    copies = 2 ** size["log_copies"]
    return {"sums": 2.0 * jax.random.binomial(key, copies, 0.5, (32,)) - copies}


def _rademacher(i: Instance, size: Size) -> Sides:
    n = 32 * 2 ** size["log_copies"]
    found = _ball_climb(lambda params: i["sums"] @ _losses(params, size) / n, size)
    bound = excess.truncated_rademacher(_signs_covering(size), n, tau=TAU)
    return Sides(found, {"derived": bound, "control": 0.1 * TAU / math.sqrt(n)}, trivial=TAU / 2)


RADEMACHER = Statement(
    id="qstr.lem18",
    label="Lemmas 18 and 32",
    formula="Rad_n(L_tau) <= inf 2 sqrt(tau) eps + tau sqrt(log C(eps) / (2n))",
    tex=r"\mathfrak{R}_n(\mathcal{L}_\tau) \le \inf_\epsilon \left( 2 \sqrt{\tau} \epsilon + \tau "
    r"\sqrt{\frac{\log \mathcal{C}(\epsilon)}{2 n}} \right)",
    kind="expectation",
    judges=(excess.truncated_rademacher, covers.ball_log_covering),
    sample=_rademacher_sample,
    evaluate=_rademacher,
    forms=(
        Form(
            name="derived",
            note="The proof uses a cover at one scale. Losses in [0, tau] differ from tau/2 by at "
            "most tau/2.",
        ),
    ),
    control="a tenth of tau/sqrt n",
    sizes=({"H": 1, "De": 5, "m": 2, "log_copies": 12},),
    assumptions="as in qstr.cor19",
    budget=Budget(samples=320, restarts=0, steps=0, batch=32),
    source="Lemmas 18 and 32",
)

STATEMENTS = (RADEMACHER, GAPS)
