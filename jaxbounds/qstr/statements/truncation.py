"""Lemmas 20 and 34 with every constant: what cutting a loss leaves out."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.qstr import covers, data, excess
from jaxbounds.qstr.statements.common import (
    CASES_ON_HOST,
    gauss_hermite,
    stacked,
)
from jaxbounds.qstr.statements.lipschitz import predict, shapes
from jaxbounds.statements import Budget, Form, Sides, Statement


def _truncation_cases(size):
    rows = itertools.product((2.0, 4.0, 8.0), (0.01, 0.3, 1.0), (0, 1))
    return stacked(*({"tail": t, "scale": c, "seed": k} for t, c, k in rows))


@functools.lru_cache
def _normal_pairs():
    """Nodes and weights for two normal tokens, and the prompts in which both want the second."""
    x, mass = gauss_hermite(2, nodes=40)
    wanted = jnp.ones((2, 1), int)
    return (
        x,
        mass,
        np.asarray(jax.vmap(lambda v: data.encode(v, wanted, jnp.eye(2)))(x[:, :, None])),
    )


_PAIR = {"H": 1, "De": 5, "m": 2}
_first_predictions = jax.jit(lambda params, z: predict(params, z, _PAIR)[:, 0])


def _truncated(i, size):
    """One head on two normal tokens; fourth moments and tails by quadrature."""
    tail, N = float(i["tail"]), 2
    setting = excess.Setting(N=N, d=1, q=1)
    r_x = setting.token_radius(tail)
    rng = np.random.default_rng(int(i["seed"]))
    params = {name: rng.normal(size=shape) for name, shape in shapes(_PAIR).items()}
    params["a"] *= float(i["scale"])
    length = lambda *names: math.sqrt(sum(np.sum(params[name] ** 2) for name in names))
    f = covers.TransformerClass(
        **_PAIR, r_a=length("a"), R_w=length("W", "b"), r_QK=0.0, r_z=math.sqrt(r_x**2 + 2.0)
    )
    x, mass, z = _normal_pairs()
    predicted = np.asarray(_first_predictions(params, z))
    square = (predicted - x[:, 1]) ** 2
    tau = (f.largest_prediction + setting.label_radius(tail)) ** 2
    lost = mass @ np.maximum(square - tau, 0.0)
    tokens = excess.largest_token_moment(N=N, d=1)
    moment = math.sqrt(mass @ np.max(np.abs(x), axis=1) ** 4)
    fourth = f.r_a * f.R_w * math.sqrt(tokens + 3.0)
    bound = excess.truncation_error(setting, tail=tail, fourth=fourth)
    normal = math.erfc(setting.label_radius(tail) / math.sqrt(2.0))
    exact = math.erfc(r_x / math.sqrt(2.0))
    return Sides.pairs(
        {
            "derived": (lost, bound),
            "derived moment": (moment, tokens),
            "derived prediction": ((mass @ predicted**4) ** 0.25, fourth),
            "derived label radius": (normal, math.exp(-tail)),
            "derived token radius": (1.0 - (1.0 - exact) ** N, math.exp(-tail)),
            "control": (moment, tokens / 10),
        }
    )


TRUNCATION = Statement(
    id="qstr.lem20",
    label="Lemmas 20 and 34",
    formula="R - R_tau <= sqrt 2 (|y|_4 + |yhat|_4)^2 exp(-tail/2), tau = (r_a R_w s + B)^2",
    tex=r"R - R_\tau \le \sqrt{2} \left( \|y\|_4 + \|\hat y\|_4 \right)^2 e^{-t/2}, \quad \tau = "
    r"(r_a R_w s + B)^2, \quad P(|y| > B) \le e^{-t}",
    kind="inequality",
    judges=(
        excess.truncation_error,
        excess.moment_radius,
        excess.largest_token_moment,
    ),
    cases=_truncation_cases,
    evaluate=_truncated,
    forms=(
        Form(name="derived", note="Cauchy-Schwarz on where |yhat - y| exceeds sqrt tau."),
        Form(name="derived moment", note="(E max |x_j|^4)^{1/2} <= N^{2/r} C_x d r."),
        Form(name="derived prediction", note="|yhat|_4 <= r_a R_w (.. + d (1 + 1/q) + 1)^{1/2}."),
        Form(name="derived label radius", note="Assumption 1's radius, for a normal label."),
        Form(name="derived token radius", note="The same for two tokens."),
    ),
    control="a tenth of the moment of the tokens",
    sizes=({},),
    assumptions="one head, d = 1, N = 2, y = x_2; expectations by Gauss-Hermite quadrature",
    source="Lemmas 20 and 34",
    **{**CASES_ON_HOST, "budget": Budget(samples=1)},
)

STATEMENTS = (TRUNCATION,)
