"""Appendix C: Dudley's integral of the attention class, and its minimum over delta."""

import math

import jax.numpy as jnp
import numpy as np
from scipy import integrate, optimize

from jaxbounds.seqlength.dudley import with_offset
from jaxbounds.seqlength.statements.instances import FEW, stacked
from jaxbounds.statements import Form, Sides, Statement


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
    OPTIMUM,
    INTEGRAL,
)
