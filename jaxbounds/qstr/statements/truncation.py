"""Statements about the truncation error of Lemmas 20 and 34 with every constant."""

import functools
import itertools
import math

import jax
import numpy as np
import scipy

from jaxbounds.claims.sets import Box, Integers
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, stacked
from jaxbounds.qstr import covers, data, excess
from jaxbounds.qstr.statements.common import gauss_hermite, searched_on_host
from jaxbounds.qstr.statements.lipschitz import WEIGHTS, predict

_PAIR = {"H": 1, "De": 5, "m": 2}


def _truncation_cases(size: Size) -> Instance:
    rows = []
    grid = itertools.product((1.0, 2.0, 4.0, 8.0), (1e-3, 0.3, 1.0), (-3.0, 2.0), (0, 1))
    for tail, scale, low, seed in grid:
        draw = functools.partial(np.random.default_rng(seed).uniform, low, 3.0)
        row = {name: draw(one.shape_at(_PAIR)) for name, one in WEIGHTS.items()}
        row |= {"a": scale * row["a"], "tail": tail, "log_N": tail / 2, "d": 1 + seed}
        rows.append(row)
    return stacked(rows)


def _largest_exceeds(v: float, N: int, d: int) -> float:
    """Return P(max_j |x_j|^2 > v) = 1 - F(v)^N, where F is the law of chi squared."""
    return -np.expm1(scipy.special.xlog1py(N, -scipy.special.gammaincc(0.5 * d, 0.5 * v)))


@functools.lru_cache
def _largest_moment(N: int, d: int) -> float:
    """Return (E max |x_j|^4)^{1/2}, the integral of 2 v P(max |x_j|^2 > v)."""
    weighted = lambda v: 2.0 * v * _largest_exceeds(v, N, d)
    return math.sqrt(scipy.integrate.quad(weighted, 0.0, 400.0, limit=200)[0])


@functools.lru_cache
def _normal_pairs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x, mass = gauss_hermite(2, nodes=40)
    prompts = jax.jit(jax.vmap(data.encode, (0, None, None)))
    return x, mass, np.asarray(prompts(x[:, :, None], np.ones((2, 1), int), np.eye(2)))


_first_predictions = jax.jit(lambda params, z: predict(params, z, _PAIR)[:, 0])


def _truncated(i: Instance, size: Size) -> Sides:
    tail, N, d = float(i["tail"]), round(math.exp(i["log_N"])), int(i["d"])
    setting, many = excess.Setting(N=2, d=1, q=1), excess.Setting(N=N, d=d, q=1)
    r_x, params = setting.token_radius(tail), {name: i[name] for name in WEIGHTS}
    length = lambda *names: math.sqrt(sum(np.sum(params[name] ** 2) for name in names))
    f = covers.TransformerClass(
        **_PAIR, r_a=length("a"), R_w=length("W", "b"), r_QK=0.0, r_z=math.sqrt(r_x**2 + 2.0)
    )
    x, mass, z = _normal_pairs()
    predicted = np.asarray(_first_predictions(params, z))
    square = (predicted - x[:, 1]) ** 2
    tau = (f.largest_prediction + setting.label_radius(tail)) ** 2
    lost = mass @ np.maximum(square - tau, 0.0)
    moment, tokens = _largest_moment(N, d), excess.largest_token_moment(N=N, d=d)
    fourth = excess.prediction_moment(setting, heads=1, slope=f.r_a * f.R_w)
    bound = excess.truncation_error(setting, tail=tail, fourth=fourth)
    normal = math.erfc(setting.label_radius(tail) / math.sqrt(2.0))
    outside = _largest_exceeds(many.token_radius(tail) ** 2, N, d)
    return Sides.pairs(
        {
            "derived": (lost, bound),
            "derived moment": (moment, tokens),
            "derived prediction": ((mass @ predicted**4) ** 0.25, fourth),
            "derived label radius": (normal, math.exp(-tail)),
            "derived token radius": (outside, math.exp(-tail)),
            "control": (moment, tokens / 10),
        }
    )


TRUNCATION = searched_on_host(
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
        excess.prediction_moment,
    ),
    over={
        "tail": Box(0.5, 12),  # the lower end belongs to the least order of a moment
        "log_N": Box(0, 7),
        "d": Integers(1, 6),
        **{name: Box(-5, 5, one.shape_at(_PAIR)) for name, one in WEIGHTS.items()},
    },
    cases=_truncation_cases,
    evaluate=_truncated,
    forms=(
        Form(
            name="derived",
            note="The proof applies the Cauchy-Schwarz inequality on the event "
            "that |yhat - y| exceeds sqrt tau.",
        ),
        Form(
            name="derived moment",
            note="The moment satisfies (E max |x_j|^4)^{1/2} <= N^{2/r} C_x d r.",
        ),
        Form(
            name="derived prediction",
            note="The prediction satisfies |yhat|_4 <= r_a R_w (H (m "
            "+ d (1 + 1/q)) + 1)^{1/2}, where m bounds the "
            "moment (E max |x_j|^4)^{1/2}.",
        ),
        Form(
            name="derived label radius",
            note="A normal label exceeds the radius of Assumption "
            "1 with probability at most exp(-tail), where the number `tail` determines the radius.",
        ),
        Form(
            name="derived token radius",
            note="The largest of N normal tokens exceeds the token radius with probability at "
            "most exp(-tail), where the number `tail` determines the radius.",
        ),
    ),
    control="a tenth of the moment of the tokens",
    sizes=({},),
    assumptions="one head, d = 1, N = 2, y = x_2, expectations by Gauss-Hermite quadrature; up to "
    "1097 tokens of at most six dimensions for the second and the last",
    source="Lemmas 20 and 34",
    budget=Budget(samples=24, restarts=6, steps=40),
)

STATEMENTS = (TRUNCATION,)
