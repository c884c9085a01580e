"""Proposition 7 itself: the distance of a theta of small loss from a good start.

For one sequence of one token, the model is linear in U, so the least loss within a distance of the
start has a closed form. The check therefore decides whether any theta at all satisfies the
proposition.
"""

from typing import NamedTuple

import jax
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
from jaxbounds.multihead.certificate import GoodInitialisation, realized_distance, realizing_heads
from jaxbounds.multihead.loss import Data
from jaxbounds.multihead.model import Params
from jaxbounds.multihead.statements.realizable_starts import definition_1, enough_for_proposition_7
from jaxbounds.multihead.tied import tied_risk
from jaxbounds.numerics.norms import vector_norm


def _one_token(key: jax.Array, size: Size) -> Instance:
    token_key, number_key = jax.random.split(key)
    numbers = jax.random.uniform(number_key, (4,))
    x = jax.random.normal(token_key, (size["d"],))
    return {
        "x": (1 + 2 * numbers[0]) * x / vector_norm(x),
        "offset": 5 * jnp.maximum(numbers[1] - 0.5, 0.0),
        "part": jnp.minimum(0.2 + 1.3 * numbers[2], 1.0),
        "log_eps": -8 * numbers[3],
    }


class _Line(NamedTuple):
    """The start U = -offset x / ||x||^2, spread over equal heads, with Definition 1's constants."""

    good: GoodInitialisation
    heads: Array
    unit: Array
    data: Data

    def at(self, length: ArrayLike) -> Params:
        d = self.unit.shape[-1]
        share = jnp.asarray(length) / jnp.sqrt(self.heads)
        return {"U": share * self.unit, "W": jnp.zeros((1, d, d))}


def _line(instance: Instance, size: Size) -> _Line:
    x, offset = jnp.asarray(instance["x"]), instance["offset"]
    radius = vector_norm(x)
    gamma = instance["part"] * 2**0.5 * radius
    good = GoodInitialisation(jnp.maximum(offset / radius, 1.0), jnp.maximum(offset, 1.0), gamma)
    heads = realizing_heads(good, jnp.exp(instance["log_eps"]), radius, T=1, d=size["d"])
    data = {"X": x[None, None, :], "y": jnp.ones(1)}
    return _Line(good, jnp.ceil(heads), x[None, None, :] / radius, data)


def _nearest(instance: Instance, size: Size) -> Sides:
    line, level = _line(instance, size), jnp.exp(instance["log_eps"])
    start = -instance["offset"] / vector_norm(instance["x"])
    heads = jnp.reshape(line.heads, (1,))
    least = lambda distance: tied_risk(line.at(start + distance), heads, line.data)
    within = {
        "printed": realized_distance(line.good, level, corrected=False),
        "corrected": realized_distance(line.good, level),
    }
    lhs = {name: least(distance) for name, distance in within.items()}
    return Sides(
        lhs={**lhs, "control": least(0.9 * within["printed"])},
        rhs=dict.fromkeys((*within, "control"), level),
        error=1e-9 * level,
    )


def _keep_good(instance: Instance, size: Size) -> Instance:
    length = jnp.maximum(vector_norm(instance["x"]), 1e-3)
    return {
        "x": instance["x"] * jnp.clip(length, 1 + 1e-9, 3.0) / length,
        "offset": jnp.clip(instance["offset"], 0.0, 3.0),
        "part": jnp.clip(instance["part"], 0.1, 1.0),
        "log_eps": jnp.clip(instance["log_eps"], -8.0, 0.0),
    }


def _one_token_good(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    return {
        "R = ||x|| >= 1": vector_norm(instance["x"]) >= 1 - 1e-12,
        "Phi(theta_0) <= 0": instance["offset"] >= 0,
        "0 < gamma <= sqrt(2) ||x||": (instance["part"] > 0) & (instance["part"] <= 1),
        "0 < eps <= 1": instance["log_eps"] <= 0,
    }


def _everything(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    line, radius = _line(instance, size), vector_norm(instance["x"])
    heads, shape = jnp.reshape(line.heads, (1,)), Size({"T": 1, "d": size["d"]})
    level = jnp.exp(instance["log_eps"])
    start, direction = line.at(-instance["offset"] / radius), line.at(2**0.5)
    return {
        "y in {-1, +1} (Assumption 1, Section 3)": jnp.all(jnp.abs(line.data["y"]) == 1),
        "R = ||x|| >= 1 (Assumption 1)": radius >= 1 - 1e-12,
        **definition_1(line.good, start, heads, line.data, direction),
        **enough_for_proposition_7(line.good, level, radius, line.heads, shape),
    }


PROPOSITION_7 = Statement(
    id="multihead.prop7.exists",
    label="Proposition 7",
    formula="good theta_0 and (98) imply L(theta) <= eps for some theta with "
    "||theta - theta_0|| <= g_0(eps) = (2 B_Phi + log(1/eps)) / gamma",
    tex=r"\sqrt{H} \ge 5 \sqrt{T d} R^3 \frac{B_2}{B_\Phi} (3 \sqrt{d} R^2 + 1) "
    r"g_0(\epsilon)^2 \max(1, g_0(\epsilon)) \implies \exists \theta: \quad \hat L(\theta) \le "
    r"\epsilon, \quad \|\theta - \theta_0\| \le g_0(\epsilon) = \frac{2 B_\Phi + "
    r"\ln(1/\epsilon)}{\gamma}, \quad \|\theta\|_{2,\infty} \le g(\epsilon) = B_2 + "
    r"g_0(\epsilon)",
    kind="inequality",
    sample=_one_token,
    evaluate=_nearest,
    judges=(realized_distance, tied_risk),
    sizes=({"d": 1}, {"d": 3}),
    hypotheses=_one_token_good,
    forms=(
        Form(
            name="printed",
            cites="Proposition 7, Appendix C.3",
            erratum="E5",
            note=(
                "The instance has x = 1, theta_0 = 0, gamma = sqrt(2), B_Phi = 1 and eps = e^-7, "
                "so the printed g_0 is 6.364. Every theta within the distance g_0 of theta_0 has "
                "a margin of at most 6.364 by Cauchy-Schwarz, for every H. The loss of such a "
                "theta is therefore at least .00172, which exceeds eps = .00091."
            ),
            counterexample=Counterexample(
                instance={"x": [1.0], "offset": 0.0, "part": 1.0, "log_eps": -7.0},
                ratio=1.8873586685306487,
                meets=_everything,
            ),
        ),
        Form(
            name="corrected",
            note="This version of the claim bounds ||theta - theta_0|| by g_0 = sqrt(2) G.",
        ),
    ),
    control="within 0.9 g_0",
    assumptions="n = T = 1, where attention is the identity and the nearest theta is known; every "
    "gamma up to the best, every Phi(theta_0) <= 0; (98); the check does not measure the bound "
    "||theta||_{2,inf} <= g(eps), which follows from the distance",
    project=_keep_good,
    budget=Budget(samples=128, restarts=2, steps=40),
    source="Appendix C.3",
)

STATEMENTS = (PROPOSITION_7,)
