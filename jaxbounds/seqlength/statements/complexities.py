"""Sections 2.3 and 2.4: Rademacher complexities, generalization, Dudley's integral."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.seqlength.covering_numbers import covering_staircase, sup_distances
from jaxbounds.seqlength.dudley import staircase_dudley
from jaxbounds.seqlength.generalization import deviation_printed, deviation_sharp
from jaxbounds.seqlength.rademacher import (
    empirical_rademacher,
    linear_support,
    massart_linear,
    support_rademacher,
    with_negation,
)
from jaxbounds.seqlength.statements.instances import FEW, SEARCHED, log_uniform, stacked
from jaxbounds.statements import Budget, Form, Sides, Statement


def _points(key, size):
    return {"X": jax.random.normal(key, (size["m"], size["d"]))}


def _linear_rad(instance):
    X = instance["X"]
    m = X.shape[0]
    lhs = support_rademacher(linear_support(X, 1.0), m, X.dtype)
    vertices = empirical_rademacher(with_negation(X.T))
    return Sides(lhs, {"printed": vertices, "control": m * vertices})


RADEMACHER = Statement(
    id="seqlength.sec2.3-linear",
    label="Section 2.3, Rademacher complexity of an l_1 ball",
    formula="Rad {w.x : ||w||_1 <= 1} = (1/m) E ||sum sigma_i x_i||_infinity = Rad of its vertices",
    kind="identity",
    sample=_points,
    evaluate=_linear_rad,
    sizes=({"m": 6, "d": 3},),
    forms=(Form(name="printed", note="a linear function is largest at a vertex"),),
    control="without the factor 1/m",
    budget=FEW,
    source="Section 2.3; used in Appendix C",
)


def _massart(instance):
    X = instance["X"]
    bound = massart_linear(X, 1.0)
    lhs = support_rademacher(linear_support(X, 1.0), X.shape[0], X.dtype)
    return Sides(lhs, {"derived": bound, "control": bound / 2.0})


MASSART = Statement(
    id="seqlength.appc-massart",
    label="Appendix C, the term sqrt(ln 2d / m)",
    formula="(1/m) E ||sum sigma_i x_i||_inf <= max_j ||X_{:,j}||_2 sqrt(2 ln 2d) / m",
    kind="inequality",
    sample=_points,
    evaluate=_massart,
    hypotheses=lambda i: {"X is not zero": jnp.max(jnp.abs(i["X"])) > 1e-6},
    sizes=({"m": 6, "d": 3},),
    forms=(Form(name="derived", note="Massart's lemma for the 2d signed coordinates"),),
    control="half of it",
    budget=SEARCHED,
    source="Appendix C (used implicitly)",
)


def _finite_class(key, size):
    a, b = jax.random.split(key)
    scale = log_uniform(b, -2.0, 0.0, (size["functions"], 1))
    return {"F": scale * jax.random.normal(a, (size["functions"], size["m"]))}


def _one_function(size):
    F = np.zeros((8, size["functions"], size["m"]))
    F[:, 0] = np.random.default_rng(0).normal(size=(8, size["m"]))
    return {"F": F}


def _with_zero(F):
    return jnp.concatenate([jnp.zeros((1, F.shape[1]), F.dtype), F])


def _negation(instance):
    F = _with_zero(instance["F"])
    plain = empirical_rademacher(F)
    return Sides(empirical_rademacher(with_negation(F)), {"printed": 2 * plain, "control": plain})


NEGATION = Statement(
    id="seqlength.appc-negation",
    label="Appendix C, Rad(F u -F) <= 2 Rad(F)",
    formula="Rad(F u -F) <= 2 Rad(F) where 0 is in F",
    kind="inequality",
    sample=_finite_class,
    cases=_one_function,
    evaluate=_negation,
    search="none",
    sizes=({"functions": 3, "m": 5},),
    forms=(Form(name="printed", equality="F = {0, f}"),),
    control="without the factor 2",
    budget=FEW,
    source="Appendix C",
)


def _contraction(instance):
    F = instance["F"]
    plain = empirical_rademacher(F)
    # Linear functions are left out: their ratio is one whatever F is, and would hide the others'.
    over = jnp.maximum(empirical_rademacher(jax.nn.relu(F)), empirical_rademacher(jnp.tanh(F)))
    doubled = empirical_rademacher(2.0 * F)
    return Sides({"printed": over, "control": doubled}, {"printed": plain, "control": plain})


CONTRACTION = Statement(
    id="seqlength.appc-contraction",
    label="Appendix C, contraction",
    formula="Rad(sigma o F) <= L_sigma Rad(F), sigma = relu, tanh",
    kind="inequality",
    sample=_finite_class,
    cases=_one_function,
    evaluate=_contraction,
    search="none",
    sizes=({"functions": 3, "m": 5},),
    forms=(Form(name="printed", equality="sigma linear on the values of F"),),
    control="L = 1 for sigma(z) = 2z",
    budget=FEW,
    source="Appendix C, from Ledoux and Talagrand",
)


def _dudley_cases(size):
    rng, rows = np.random.default_rng(0), []
    for _ in range(24):
        values = rng.normal(size=(8, 8)) * np.exp(rng.normal(size=(8, 1)))
        values[0] = 0.0
        steps = covering_staircase(sup_distances(values[:, :, None], 2.0))
        B = float(np.abs(values).max())
        rows.append(
            {
                "F": values,
                "paper": staircase_dudley(steps, 8, B, near=12.0, far=12.0),
                "refined": staircase_dudley(steps, 8, B, near=4.0, far=12.0),
            }
        )
    return stacked(rows)


DUDLEY = Statement(
    id="seqlength.sec2.4-dudley",
    label="Section 2.4, Dudley's integral",
    formula="Rad <= c inf_delta (delta + int_delta^B sqrt(ln N(eps) / m) d eps), exact N(eps)",
    kind="inequality",
    cases=_dudley_cases,
    evaluate=lambda i: Sides(
        empirical_rademacher(i["F"]),
        {"printed": i["paper"], "sharpened": i["refined"], "control": i["paper"] / 100.0},
    ),
    search="none",
    sizes=({"functions": 8},),
    forms=(
        Form(name="printed", note="the paper leaves c open; c = 12"),
        Form(name="sharpened", note="4 delta + 12 times the integral"),
    ),
    control="c = 0.12",
    budget=FEW,
    source="Section 2.4",
)

THRESHOLDS, DELTA = 16, 0.05


def _gap_sample(key, size):
    x_key, flip_key, sign_key = jax.random.split(key, 3)
    m = size["m"]
    return {
        "x": jax.random.uniform(x_key, (m,)),
        "flip": jax.random.bernoulli(flip_key, 0.2, (m,)),
        "signs": jax.random.rademacher(sign_key, (64, m), float),
    }


def _gap(instance):
    x, m = instance["x"], instance["x"].shape[0]
    grid = (jnp.arange(THRESHOLDS).astype(x.dtype) + 0.5) / THRESHOLDS
    truth = (x > 0.5) ^ instance["flip"]
    loss = ((x[None] > grid[:, None]) != truth[None]).astype(x.dtype)
    # A threshold t errs where x lies between t and 1/2, unless the label was flipped.
    population = 0.2 + 0.6 * jnp.abs(grid - 0.5)
    rademacher = jnp.mean(jnp.max(instance["signs"] @ loss.T, axis=1)) / m
    gap = jnp.max(jnp.abs(population - jnp.mean(loss, axis=1)))
    return Sides(
        gap,
        {
            "printed": 2 * rademacher + deviation_printed(1.0, m, DELTA),
            "sharpened S10": 2 * rademacher + deviation_sharp(1.0, m, DELTA),
            "control": deviation_sharp(1.0, m, DELTA) / 20.0,
        },
        trivial=1.0,
    )


GENERALIZATION = Statement(
    id="seqlength.sec2.3-gap",
    label="Section 2.3, generalization from Rademacher complexity",
    formula="|L_D - L_S| <= 2 Rad(l o H, S) + 4 c sqrt(2 ln(4/delta) / m), all h, w.p. 1 - delta",
    kind="probability",
    level=DELTA,
    sample=_gap_sample,
    evaluate=_gap,
    sizes=({"m": 400},),
    forms=(
        Form(
            name="printed", note="m is printed where the sample size is n; Rad from 64 sign draws"
        ),
        Form(name="sharpened S10", note="3 c sqrt(2 ln(3/delta)/m): McDiarmid thrice at delta/3"),
    ),
    control="a twentieth of the tail and no complexity",
    budget=Budget(samples=400, restarts=0, steps=0, batch=100),
    source="Section 2.3",
)


STATEMENTS = (
    RADEMACHER,
    GENERALIZATION,
    DUDLEY,
    NEGATION,
    CONTRACTION,
    MASSART,
)
