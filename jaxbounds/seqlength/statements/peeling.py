"""Appendix C: the steps of the proof of Theorem 4.1."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from scipy import integrate, optimize

from jaxbounds.norms import vector_norm
from jaxbounds.seqlength.dudley import with_offset
from jaxbounds.seqlength.model import attend_from
from jaxbounds.seqlength.norms import column_norm, row_norm
from jaxbounds.seqlength.perturbation import softmax_distance
from jaxbounds.seqlength.rademacher import empirical_rademacher, with_negation
from jaxbounds.seqlength.statements.instances import l1_vertices, log_uniform, stacked
from jaxbounds.statements import Budget, Form, Sides, Statement

FEW = Budget(samples=64, restarts=0, steps=0, batch=64)
SEARCHED = Budget(samples=128, restarts=4, steps=80, batch=64)


def _holder(instance):
    v, u = instance["v"], instance["u"]
    largest, B = jnp.max(jnp.abs(u)), jnp.sum(jnp.abs(v))
    return Sides(
        v @ u, {"printed": largest, "corrected": B * largest, "control": B * largest / 2.0}
    )


def _holder_sample(key, size):
    a, b = jax.random.split(key)
    u = jax.random.normal(b, (size["d"],))
    return {"v": 3.0 * l1_vertices(a, (size["d"],)), "u": u}


HOLDER = Statement(
    id="seqlength.appc-holder",
    label="Appendix C, the first display",
    formula="v.u <= B_v max_j |u_j| = max_{j,s} s u_j, ||v||_1 <= B_v",
    kind="inequality",
    sample=_holder_sample,
    evaluate=_holder,
    search="none",
    sizes=({"d": 3},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E16",
            note="the second expression drops B_v",
            counterexample={"v": [2.0], "u": [1.0]},
        ),
        Form(name="corrected", equality="v = B_v s e_j at the largest |u_j|"),
    ),
    control="half of it",
    budget=FEW,
    source="Appendix C",
)


def _softmax_sample(key, size):
    a, b, c = jax.random.split(key, 3)
    scale = log_uniform(c, -2.0, 1.0)
    p = size["p"]
    return {"theta": jax.random.normal(a, (p,)), "step": scale * jax.random.normal(b, (p,))}


def _two_blocks(key, size):
    p = size["p"]
    half = log_uniform(key, -2.0, 1.0) * jnp.where(jnp.arange(p) < p // 2, 0.5, -0.5)
    return {"theta": -half, "step": 2.0 * half}


def _softmax(instance):
    theta, step = instance["theta"], instance["step"]
    moved = jnp.sum(jnp.abs(jax.nn.softmax(theta + step) - jax.nn.softmax(theta)))
    largest = jnp.max(jnp.abs(step))
    return Sides(
        moved,
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
    kind="inequality",
    sample={"normal": _softmax_sample, "two blocks": _two_blocks},
    evaluate=_softmax,
    hypotheses=lambda i: {"they differ by 1e-3": jnp.max(jnp.abs(i["step"])) >= 1e-3},
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
    budget=SEARCHED,
    source="Lemma C.1",
)


def _peeling(instance):
    w, W_c, W_v, z = (instance[name] for name in ("w", "W_c", "W_v", "z"))
    product = lambda norm: (
        jnp.sum(jnp.abs(w)) * norm(W_c, 1, math.inf) * norm(W_v, 1, math.inf) * jnp.max(jnp.abs(z))
    )
    right = product(column_norm)
    return Sides(
        jnp.abs(w @ (W_c.T @ (W_v.T @ z))),
        {"printed": product(row_norm), "corrected": right, "control": right / 2.0},
    )


def _peeling_sample(key, size):
    a, b, c, e = jax.random.split(key, 4)
    d, k = size["d"], size["k"]
    return {
        "w": l1_vertices(a, (d,)),
        "W_c": jax.random.normal(b, (k, d)),
        "W_v": jax.random.normal(c, (d, k)),
        "z": jax.random.rademacher(e, (d,), float),
    }


PEELING = Statement(
    id="seqlength.appc-peeling",
    label="Appendix C, removing w, W_c and W_v",
    formula="|w.W_c^T W_v^T z| <= ||w||_1 ||W_c^T||_{1,inf} ||W_v^T||_{1,inf} max_j |z_j|",
    kind="inequality",
    sample=_peeling_sample,
    evaluate=_peeling,
    hypotheses=lambda i: {
        "nothing is zero": jnp.min(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in i.values()]))
        > 1e-6
    },
    search="none",
    sizes=({"d": 2, "k": 2},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E4",
            note="the first display is applied to e_j^T W_c^T, a column of W_c",
            counterexample={
                "w": [1.0, 0.0],
                "W_c": [[1.0, 0.0], [1.0, 0.0]],
                "W_v": [[1.0, 0.0], [0.0, 1.0]],
                "z": [1.0, 1.0],
            },
        ),
        Form(name="corrected", note="columns of W_c and of W_v", equality="nonnegative columns"),
    ),
    control="half the corrected product",
    budget=SEARCHED,
    source="Appendix C",
)


def _sign_sample(key, size):
    return {"F": jax.random.normal(key, (size["functions"], size["m"]))}


def _sign_removal(instance):
    zero = jnp.zeros((1, instance["F"].shape[1]), instance["F"].dtype)
    F = jnp.concatenate([zero, with_negation(instance["F"])])
    plain = empirical_rademacher(F)
    two = empirical_rademacher(with_negation(jax.nn.relu(F)))
    return Sides(
        lhs={
            "printed": two,
            "sharpened": empirical_rademacher(with_negation(jnp.tanh(F))),
            "control": two,
        },
        rhs={"printed": 2.0 * plain, "sharpened": plain, "control": plain / 2.0},
    )


SIGN = Statement(
    id="seqlength.appc-sign",
    label="Appendix C, removing s and sigma",
    formula="E sup_{s,f} s sum sigma_i sigma(f(x_i)) <= 2 L_sigma E sup_f sum sigma_i f(x_i)",
    kind="inequality",
    sample=_sign_sample,
    evaluate=_sign_removal,
    search="none",
    sizes=({"functions": 2, "m": 6},),
    forms=(
        Form(name="printed", note="sigma = relu, F symmetric with 0"),
        Form(name="sharpened", note="no factor 2 for odd sigma, as tanh: -sigma(f) = sigma(-f)"),
    ),
    control="half the complexity of F",
    budget=FEW,
    source="Appendix C",
)


def _attention_sample(key, size):
    a, b, c, e = jax.random.split(key, 4)
    T, d = size["T"], size["d"]
    step = log_uniform(e, -2.0, 0.5) * jax.random.normal(c, (d, d))
    scale = log_uniform(b, -1.0, 1.0)
    return {
        "X": scale * jax.random.normal(a, (T, d)),
        "W": jax.random.normal(b, (d, d)),
        "step": step,
    }


def _two_tokens(key, size):
    """The CLS token v, its opposite, and a map along v: where the derivative is largest."""
    a, b = jax.random.split(key)
    v = log_uniform(a, -0.5, 0.5) * jnp.eye(size["d"])[0]
    X = jnp.stack([v if t % 2 == 0 else -v for t in range(size["T"])])
    slope = log_uniform(b, -2.0, 0.0) * jnp.outer(v, v)
    return {"X": X, "W": -slope / 2.0, "step": slope}


def _attention_step(instance):
    X, W, step = instance["X"], instance["W"], instance["step"]
    change = attend_from(X, W + step, 0) - attend_from(X, W, 0)
    B_x, B_inf = jnp.max(vector_norm(X)), jnp.max(jnp.abs(X))
    moved = vector_norm(step.T @ X[0])
    return Sides(
        jnp.max(jnp.abs(change)),
        {
            "printed": 2.0 * B_x**2 * moved,
            "sharpened S5": B_inf * B_x * moved,
            "control": B_inf * B_x * moved / 2.0,
        },
        error=1e-14 * B_inf,
    )


ATTENTION_STEP = Statement(
    id="seqlength.appc-cover",
    label="Appendix C, the cover of the attention class",
    formula="|e_j^T X^T (softmax(X W x) - softmax(X What x))| <= 2 B_x^2 ||(W - What) x||_2",
    kind="inequality",
    sample={"normal": _attention_sample, "two tokens": _two_tokens},
    evaluate=_attention_step,
    hypotheses=lambda i: {
        "the scores move by 1e-3": jnp.max(vector_norm(i["X"]))
        * vector_norm(i["step"].T @ i["X"][0])
        >= 1e-3
    },
    sizes=({"T": 4, "d": 2},),
    forms=(
        Form(name="printed"),
        Form(
            name="sharpened S5",
            note="max |X_tj| B_x, and softmax constant 1; approached by X = (v, -v), small W",
        ),
    ),
    control="half the sharpened bound",
    budget=SEARCHED,
    source="Appendix C, before 'Therefore, we can see the log covering number of S'",
)


def _optimum_cases(size):
    rng, rows = np.random.default_rng(0), []
    for _ in range(24):
        a, b, B = rng.uniform(0, 1.3), np.exp(rng.uniform(-4, 1)), np.exp(rng.uniform(-1, 1))
        objective = lambda x, a=a, b=b, B=B: x + (B - x) * a + b * math.log(B / x)
        inner = optimize.minimize_scalar(
            objective, bounds=(1e-9, B), method="bounded", options={"xatol": 1e-12}
        )
        rows.append({"a": a, "b": b, "B": B, "minimum": min(inner.fun, B)})
    return stacked(rows)


def _optimum(instance):
    a, b, B = instance["a"], instance["b"], instance["B"]
    inside = b + B * a + b * jnp.log(jnp.maximum(B * (1.0 - a), 1e-300) / b)
    return Sides(
        instance["minimum"],
        {"printed": inside, "corrected": with_offset(a, b, B), "control": with_offset(a, 2 * b, B)},
    )


OPTIMUM = Statement(
    id="seqlength.appc-optimum",
    label="Appendix C, the minimum over delta",
    formula="min_delta delta + (B-delta) a + b ln(B/delta) = b + B a + b ln(B (1-a)/b),"
    " a = sqrt(ln 2d / m), b = 2 B_x^2 sqrt(C / m), B = B_x",
    kind="identity",
    cases=_optimum_cases,
    evaluate=_optimum,
    tolerance=1e-9,
    sizes=({"draws": 24},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E5",
            note="needs b < B (1 - a); here C = 1000, m = 100, d = 10, B_x = 1 give -6.4",
            counterexample={"a": 0.17308, "b": 6.3246, "B": 1.0, "minimum": 1.0},
        ),
        Form(name="corrected", note="otherwise delta = B_x and the minimum is B_x"),
    ),
    control="b doubled",
    budget=FEW,
    source="Appendix C; behind Theorem 4.1",
)


def _integral_cases(size):
    rng, rows = np.random.default_rng(1), []
    for _ in range(16):
        m, d = float(10 ** rng.uniform(2, 7)), float(rng.integers(1, 200))
        B_x, C = float(np.exp(rng.uniform(-1, 1))), float(np.exp(rng.uniform(0, 5)))
        height = lambda e, m=m, d=d, B=B_x, C=C: math.sqrt(
            (math.log(2 * d) + 4 * B**4 * C / e**2) / m
        )
        area = lambda x, B=B_x, h=height: x + integrate.quad(h, x, B, epsabs=1e-13, limit=200)[0]
        inner = optimize.minimize_scalar(area, bounds=(1e-6 * B_x, B_x), method="bounded")
        joint = min(inner.fun, B_x)
        rows.append({"m": m, "d": d, "B_x": B_x, "C": C, "joint": joint})
    return stacked(rows)


def _integral(instance):
    m, d, B_x, C = (instance[name] for name in ("m", "d", "B_x", "C"))
    a, b = jnp.sqrt(jnp.log(2.0 * d) / m), 2.0 * B_x**2 * jnp.sqrt(C / m)
    return Sides(
        instance["joint"],
        {"printed": with_offset(a, b, B_x), "control": with_offset(a / 4.0, b / 4.0, B_x)},
    )


INTEGRAL = Statement(
    id="seqlength.appc-dudley",
    label="Appendix C, splitting Dudley's integral",
    formula="min_delta delta + int_delta^{B_x} sqrt((ln 2d + 4 B_x^4 C/eps^2)/m) d eps"
    " <= the closed form",
    kind="inequality",
    cases=_integral_cases,
    evaluate=_integral,
    search="none",
    sizes=({"draws": 16},),
    forms=(
        Form(
            name="printed",
            note="with 1/m on both terms (E6) and clipped (E5)",
            equality="delta = B_x, both sides B_x",
        ),
    ),
    control="a quarter of a and b",
    budget=FEW,
    source="Appendix C",
)


STATEMENTS = (
    HOLDER,
    LEMMA_C_1,
    PEELING,
    SIGN,
    ATTENTION_STEP,
    OPTIMUM,
    INTEGRAL,
)
