"""Appendix C: Lemma C.1, the cover of the attention class, and its entropy integral."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy import integrate, optimize

from jaxbounds.norms import vector_norm
from jaxbounds.seqlength.dudley import best_delta, interior_value, with_offset
from jaxbounds.seqlength.linear_bounds import at_scale, lemma_3_6
from jaxbounds.seqlength.model import attend_from
from jaxbounds.seqlength.perturbation import softmax_distance
from jaxbounds.seqlength.single_layer import (
    attention_expectation,
    attention_lipschitz,
    attention_log_covering,
    entropy_terms,
    residual_range,
)
from jaxbounds.seqlength.statements import instances as draw
from jaxbounds.statements import Counterexample, Form, Instance, Sides, Size, Statement


def _softmax_sample(key: Array, size: Size) -> Instance:
    a, b = jax.random.split(key)
    drawn = draw.normals(a, {"theta": (size["p"],), "step": (size["p"],)})
    return {**drawn, "step": draw.log_uniform(b, -2.0, 1.0) * drawn["step"]}


def _two_blocks(size: Size) -> Instance:
    """theta_2 = -theta_1 with two equal blocks of opposite signs."""
    sign = np.where(np.arange(size["p"]) < size["p"] // 2, 0.5, -0.5)
    half = np.geomspace(1e-2, 10.0, 24)[:, None] * sign[None]
    return {"theta": -half, "step": 2.0 * half}


def _softmax(instance: Instance, size: Size) -> Sides:
    theta, step = instance["theta"], instance["step"]
    largest = jnp.max(jnp.abs(step))
    return Sides(
        jnp.sum(jnp.abs(jax.nn.softmax(theta + step) - jax.nn.softmax(theta))),
        {
            "printed": 2.0 * largest,
            "sharpened S4": largest,
            "sharpened S4 tanh": softmax_distance((jnp.max(step) - jnp.min(step)) / 2.0),
            "control": largest / 2.0,
        },
        error=4e-15,
    )


LEMMA_C_1 = Statement(
    id="seqlength.lemma-c.1",
    label="Lemma C.1",
    formula="||softmax(theta_1) - softmax(theta_2)||_1 <= 2 ||theta_1 - theta_2||_infinity",
    **draw.INEQUALITY,
    sample=_softmax_sample,
    cases=_two_blocks,
    evaluate=_softmax,
    judges=(softmax_distance,),
    sizes=({"p": 6},),
    forms=(
        Form(name="printed", note="attributed to Edelman et al. (2022), Corollary A.7"),
        Form(
            name="sharpened S4",
            note="the Jacobian's norm from l_inf to l_1 is 1 - min_s (p.s)^2 <= 1",
        ),
        Form(
            name="sharpened S4 tanh",
            note="2 tanh(range / 4): the finite form, blind to shifts",
            equality="two equal blocks, theta_2 = -theta_1",
        ),
    ),
    control="constant 1/2",
)


def _scores_step(instance: Instance) -> Array:
    """The largest step of a score of the [CLS] token."""
    return jnp.max(vector_norm(instance["X"])) * vector_norm(instance["step"].T @ instance["X"][0])


def _attention_sample(key: Array, size: Size) -> Instance:
    a, b = jax.random.split(key)
    T, d = size["T"], size["d"]
    drawn = draw.normals(a, {"X": (T, d), "W": (d, d), "step": (d, d)})
    scale, amount = draw.log_uniform(b, jnp.array([-1.0, -2.0]), jnp.array([1.0, 0.5]), (2,))
    moved = {**drawn, "X": scale * drawn["X"]}
    # The scores of the CLS token move by up to `amount`.
    return {**moved, "step": amount / _scores_step(moved) * drawn["step"]}


def _two_tokens(size: Size) -> Instance:
    """The CLS token v, its opposite, and a map along v: where the derivative is largest."""
    rng, rows = np.random.default_rng(0), []
    for amount in np.geomspace(1e-2, 1.0, 24):
        v = 10.0 ** rng.uniform(-0.5, 0.5) * np.eye(size["d"])[0]
        X = (-1.0) ** np.arange(size["T"])[:, None] * v
        slope = amount * np.outer(v, v) / np.sum(v**2) ** 2
        rows.append({"X": X, "W": -slope / 2.0, "step": slope})
    return draw.stacked(rows)


def _attention_step(instance: Instance, size: Size) -> Sides:
    X, W, step = instance["X"], instance["W"], instance["step"]
    change = attend_from(X, W + step, 0) - attend_from(X, W, 0)
    B_x, B_inf = jnp.max(vector_norm(X)), jnp.max(jnp.abs(X))
    moved = vector_norm(step.T @ X[0])
    sharp = attention_lipschitz(B_x, B_inf, softmax_constant=1.0) * moved
    jump = jnp.max(jnp.abs(change))
    from_uniform = jnp.max(jnp.abs(attend_from(X, step, 0) - jnp.mean(X, axis=0)))
    return Sides.pairs(
        {
            "printed": (jump, attention_lipschitz(B_x) * moved),
            "sharpened S5": (jump, sharp),
            "sharpened S7": (from_uniform, residual_range(B_inf, B_x, moved)),
            "control": (jump, sharp / 2.0),
        },
        error=1e-14 * B_inf,
    )


ATTENTION_STEP = Statement(
    id="seqlength.appc-cover",
    label="Appendix C, the cover of the attention class",
    formula="|e_j^T X^T (softmax(X W x) - softmax(X What x))| <= 2 B_x^2 ||(W - What) x||_2",
    **draw.INEQUALITY,
    sample=_attention_sample,
    cases=_two_tokens,
    evaluate=_attention_step,
    judges=(attention_lipschitz, residual_range, attend_from),
    hypotheses=lambda i, size: {"the scores move by 1e-3": _scores_step(i) >= 1e-3},
    sizes=({"T": 4, "d": 2},),
    forms=(
        Form(name="printed"),
        Form(
            name="sharpened S5",
            note="max |X_tj| B_x, and softmax constant 1; approached by X = (v, -v), small W",
        ),
        Form(
            name="sharpened S7",
            note="beside uniform attention, W = 0: 2 B_inf tanh(B_x ||What x||_2 / 2)",
        ),
    ),
    control="half the sharpened bound",
    source="Appendix C, before 'Therefore, we can see the log covering number of S'",
)


def _optimum(instance: Instance, size: Size) -> Sides:
    a, b, B = draw.numbers(instance, "a", "b", "B")
    objective = lambda x: x + (B - x) * a + b * math.log(B / x)
    inner = optimize.minimize_scalar(
        objective, bounds=(1e-9, B), method="bounded", options={"xatol": 1e-12}
    )
    least = min(inner.fun, B)
    return Sides(
        least,
        {
            "printed": interior_value(a, b, B),
            "corrected": with_offset(a, b, B),
            "corrected delta": objective(float(best_delta(a, b, B))),
            "control": with_offset(a, 2 * b, B),
        },
    )


def _optimum_cases(size: Size) -> Instance:
    rng = np.random.default_rng(0)
    one = lambda: (rng.uniform(0, 1.3), np.exp(rng.uniform(-4, 1)), np.exp(rng.uniform(-1, 1)))
    return dict(zip(("a", "b", "B"), np.array([one() for _ in range(24)]).T))


OPTIMUM = Statement(
    id="seqlength.appc-optimum",
    label="Appendix C, the minimum over delta",
    formula="min_delta delta + (B-delta) a + b ln(B/delta) = b + B a + b ln(B (1-a)/b),"
    " a = sqrt(ln 2d / m), b = 2 B_x^2 sqrt(C / m), B = B_x",
    **draw.SAME_ON_HOST,
    cases=_optimum_cases,
    evaluate=_optimum,
    judges=(with_offset, interior_value, best_delta),
    tolerance=1e-9,
    sizes=({"draws": 24},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E5",
            note="needs b < B (1 - a); here C = 1000, m = 100, d = 10, B_x = 1 give -6.4",
            hypotheses=lambda i, size: {"a < 1, to have a logarithm": i["a"] < 1},
            counterexample=Counterexample(
                instance={"a": 0.17308, "b": 6.3246, "B": 1.0},
                size={"draws": 24},
                ratio=1.1569937214054875,
            ),
        ),
        Form(name="corrected", note="otherwise delta = B_x and the minimum is B_x"),
        Form(name="corrected delta", note="attained at delta = b / (1 - a), or B_x"),
    ),
    control="b doubled",
    source="Appendix C; behind Theorem 4.1",
)


def _integral(instance: Instance, size: Size) -> Sides:
    m, d, B_x, C = draw.numbers(instance, "m", "d", "B_x", "C")
    factor, one = attention_lipschitz(B_x), float(lemma_3_6(1.0, k=1, d=1))

    def least(C: float, shortest: float) -> float:
        # A map of one entry, at the scale where Lemma 3.6 has C / eps^2.
        map_covering = at_scale(lemma_3_6, math.sqrt(C / one), k=1, d=1)
        covering = attention_log_covering(map_covering, factor, int(d))
        height = lambda e: math.sqrt(float(covering(e)) / m)
        area = lambda x: x + integrate.quad(height, x, B_x, epsabs=1e-13, limit=200)[0]
        bounds = (shortest * B_x, B_x)
        inner = optimize.minimize_scalar(area, bounds=bounds, method="bounded")
        return min(inner.fun, area(bounds[0]), B_x)

    a, b, B = entropy_terms(B_x, C, m, d)
    alone = least(0.0, 0.0) / attention_expectation(B_x, 0.0, m, d)
    both = least(C, 1e-6)
    return Sides.pairs(
        {
            "printed": (both, attention_expectation(B_x, C, m, d)),
            "printed, C = 0": (jnp.maximum(alone, 1.0 / alone), 1.0),
            "control": (both, with_offset(a / 4.0, b / 4.0, B)),
        }
    )


def _integral_cases(size: Size) -> Instance:
    rng = np.random.default_rng(1)
    one = lambda: (
        float(10 ** rng.uniform(2, 7)),
        float(rng.integers(1, 200)),
        float(np.exp(rng.uniform(-1, 1))),
        float(np.exp(rng.uniform(0, 5))),
    )
    return dict(zip(("m", "d", "B_x", "C"), np.array([one() for _ in range(16)]).T))


INTEGRAL = Statement(
    id="seqlength.appc-dudley",
    label="Appendix C, splitting Dudley's integral",
    formula="min_delta delta + int_delta^{B_x} sqrt((ln 2d + 4 B_x^4 C/eps^2)/m) d eps"
    " <= the closed form",
    **draw.ON_HOST,
    cases=_integral_cases,
    evaluate=_integral,
    judges=(attention_expectation, attention_log_covering, attention_lipschitz, entropy_terms),
    sizes=({"draws": 16},),
    forms=(
        Form(
            name="printed",
            note="with 1/m on both terms (E6) and clipped (E5)",
            equality="delta = B_x, both sides B_x",
        ),
        Form(
            name="printed, C = 0",
            note="delta = 0 and B_x sqrt(ln 2d / m): neither side is larger",
            equality="always",
        ),
    ),
    control="a quarter of a and b",
)

STATEMENTS = (LEMMA_C_1, ATTENTION_STEP, OPTIMUM, INTEGRAL)
