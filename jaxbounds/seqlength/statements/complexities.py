"""Sections 2.2 to 2.4: generalization, Rademacher complexities, Dudley's integral."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.seqlength.covering_numbers import covering_staircase, smallest_cover, sup_distances
from jaxbounds.seqlength.dudley import best_certified, chaining, dudley, one_scale, staircase_dudley
from jaxbounds.seqlength.generalization import deviation, generalization_gap
from jaxbounds.seqlength.rademacher import (
    empirical_rademacher,
    linear_support,
    massart_linear,
    rademacher_monte_carlo,
    sign_vectors,
    support_rademacher,
    with_negation,
)
from jaxbounds.seqlength.statements import instances as draw
from jaxbounds.statements import Budget, Form, Instance, Sides, Size, Statement


def _points(key: Array, size: Size) -> Instance:
    return {"X": jax.random.normal(key, (size["m"], size["d"]))}


def _linear_rad(instance: Instance, size: Size) -> Sides:
    X, m = instance["X"], size["m"]
    vertices = empirical_rademacher(with_negation(X.T))
    exact = support_rademacher(linear_support(X, 1.0), m, X.dtype)
    return Sides(exact, {"printed": vertices, "control": m * vertices})


RADEMACHER = Statement(
    id="seqlength.sec2.3-linear",
    label="Section 2.3, Rademacher complexity of an l_1 ball",
    formula="Rad {w.x : ||w||_1 <= 1} = (1/m) E ||sum sigma_i x_i||_infinity = Rad of its vertices",
    **draw.IDENTITY,
    sample=_points,
    evaluate=_linear_rad,
    judges=(linear_support, with_negation),
    sizes=({"m": 6, "d": 3},),
    forms=(Form(name="printed", note="a linear function is largest at a vertex"),),
    control="without the factor 1/m",
    source="Section 2.3; used in Appendix C",
)


def _monte_carlo(instance: Instance, size: Size) -> Sides:
    X, m, key = instance["X"], size["m"], jax.random.wrap_key_data(instance["seed"])
    support = linear_support(X, 1.0)
    exact = support_rademacher(support, m, X.dtype)
    found = rademacher_monte_carlo(key, support, m, draws=400)
    off = jnp.abs(found.mean - exact)
    return Sides.pairs(
        {
            "derived": (off, 6.0 * found.standard_error),
            "control": (jnp.abs(m * found.mean - exact), 6.0 * found.standard_error),
        }
    )


MONTE_CARLO = Statement(
    id="seqlength.sec2.3-monte-carlo",
    label="Section 2.3, Rademacher complexity by drawing signs",
    formula="the mean over 400 sign vectors is within 6 of its standard errors of Rad",
    **draw.INEQUALITY,
    sample=lambda key, size: {**_points(key, size), "seed": jax.random.key_data(key)},
    evaluate=_monte_carlo,
    judges=(rademacher_monte_carlo, support_rademacher, sign_vectors),
    sizes=({"m": 6, "d": 3},),
    forms=(Form(name="derived"),),
    control="without the factor 1/m",
    source="library: where 2^m sign vectors are too many",
)


def _massart(instance: Instance, size: Size) -> Sides:
    X = instance["X"]
    bound = massart_linear(X, 1.0)
    exact = support_rademacher(linear_support(X, 1.0), size["m"], X.dtype)
    return Sides(exact, {"derived": bound, "control": bound / 2.0})


MASSART = Statement(
    id="seqlength.appc-massart",
    label="Appendix C, the term sqrt(ln 2d / m)",
    formula="(1/m) E ||sum sigma_i x_i||_inf <= max_j ||X_{:,j}||_2 sqrt(2 ln 2d) / m",
    kind="inequality",
    sample=_points,
    evaluate=_massart,
    judges=(massart_linear, support_rademacher, sign_vectors),
    hypotheses=lambda i, size: {"X is not zero": jnp.max(jnp.abs(i["X"])) > 1e-6},
    sizes=({"m": 6, "d": 3},),
    forms=(Form(name="derived", note="Massart's lemma for the 2d signed coordinates"),),
    control="half of it",
    budget=draw.SEARCHED,
    source="Appendix C (used implicitly)",
)


def _finite_class(key: Array, size: Size) -> Instance:
    a, b = jax.random.split(key)
    scale = draw.log_uniform(b, -2.0, 0.0, (size["functions"], 1))
    return {"F": scale * jax.random.normal(a, (size["functions"], size["m"]))}


def _one_function(size: Size) -> Instance:
    F = np.zeros((8, size["functions"], size["m"]))
    F[:, 0] = np.random.default_rng(0).normal(size=(8, size["m"]))
    return {"F": F}


def _negation(instance: Instance, size: Size) -> Sides:
    F = jnp.concatenate([jnp.zeros((1, size["m"])), instance["F"]])
    plain = empirical_rademacher(F)
    return Sides(empirical_rademacher(with_negation(F)), {"printed": 2 * plain, "control": plain})


NEGATION = Statement(
    id="seqlength.appc-negation",
    label="Appendix C, Rad(F u -F) <= 2 Rad(F)",
    formula="Rad(F u -F) <= 2 Rad(F) where 0 is in F",
    **draw.INEQUALITY,
    sample=_finite_class,
    cases=_one_function,
    evaluate=_negation,
    judges=(with_negation, empirical_rademacher),
    sizes=({"functions": 3, "m": 5},),
    forms=(Form(name="printed", equality="F = {0, f}"),),
    control="without the factor 2",
)


def _contraction(instance: Instance, size: Size) -> Sides:
    F = instance["F"]
    plain = empirical_rademacher(F)
    # Linear functions are left out: their ratio is one whatever F is, and would hide the others'.
    over = jnp.maximum(empirical_rademacher(jax.nn.relu(F)), empirical_rademacher(jnp.tanh(F)))
    doubled = empirical_rademacher(2.0 * F)
    return Sides.pairs({"printed": (over, plain), "control": (doubled, plain)})


CONTRACTION = Statement(
    id="seqlength.appc-contraction",
    label="Appendix C, contraction",
    formula="Rad(sigma o F) <= L_sigma Rad(F), sigma = relu, tanh",
    **draw.INEQUALITY,
    sample=_finite_class,
    cases=_one_function,
    evaluate=_contraction,
    judges=(empirical_rademacher,),
    sizes=({"functions": 3, "m": 5},),
    forms=(Form(name="printed", equality="sigma linear on the values of F"),),
    control="L = 1 for sigma(z) = 2z",
    source="Appendix C, from Ledoux and Talagrand",
)


def _dudley(instance: Instance, size: Size) -> Sides:
    F = instance["F"]
    steps = covering_staircase(sup_distances(F[:, :, None], 2.0))
    m, B = F.shape[1], float(np.abs(F).max())
    integral = lambda near: staircase_dudley(steps, m, B, near=near, far=12.0)
    return Sides(
        empirical_rademacher(jnp.asarray(F)),
        {
            "printed": integral(12.0),
            "sharpened": integral(4.0),
            "sharpened grid": dudley(steps.log_covering, m, B, near=4.0),
            "sharpened S6 chaining": chaining(steps.log_covering, m, B),
            "sharpened S6 one scale": one_scale(steps.log_covering, m, B),
            "sharpened S6": best_certified(steps.log_covering, m, B),
            "control": integral(12.0) / 100.0,
        },
    )


def _dudley_cases(size: Size) -> Instance:
    rng, rows = np.random.default_rng(0), []
    for _ in range(24):
        values = rng.normal(size=(8, 8)) * np.exp(rng.normal(size=(8, 1)))
        values[0] = 0.0
        rows.append({"F": values})
    return draw.stacked(rows)


DUDLEY = Statement(
    id="seqlength.sec2.4-dudley",
    label="Section 2.4, Dudley's integral",
    formula="Rad <= c inf_delta (delta + int_delta^B sqrt(ln N(eps) / m) d eps), exact N(eps)",
    **draw.ON_HOST,
    cases=_dudley_cases,
    evaluate=_dudley,
    judges=(
        *(staircase_dudley, covering_staircase, sup_distances, smallest_cover),
        *(dudley, chaining, one_scale, best_certified, empirical_rademacher),
    ),
    sizes=({"functions": 8},),
    forms=(
        Form(name="printed", note="the paper leaves c open; c = 12"),
        Form(name="sharpened", note="4 delta + 12 times the integral"),
        Form(name="sharpened grid", note="its upper sum on a geometric grid, clipped at B"),
        Form(name="sharpened S6 chaining", note="two-term chaining"),
        Form(name="sharpened S6 one scale", note="one cover and Massart's lemma"),
        Form(name="sharpened S6", note="the least of the three and B"),
    ),
    control="c = 0.12",
)


THRESHOLDS, DELTA = 16, 0.05


def _gap_sample(key: Array, size: Size) -> Instance:
    x_key, flip_key, sign_key = jax.random.split(key, 3)
    m = size["m"]
    return {
        "x": jax.random.uniform(x_key, (m,)),
        "flip": jax.random.bernoulli(flip_key, 0.2, (m,)),
        "seed": jax.random.key_data(sign_key),
    }


def _gap(instance: Instance, size: Size) -> Sides:
    x, m, key = instance["x"], size["m"], jax.random.wrap_key_data(instance["seed"])
    grid = (jnp.arange(THRESHOLDS).astype(x.dtype) + 0.5) / THRESHOLDS
    truth = (x > 0.5) ^ instance["flip"]
    loss = ((x[None] > grid[:, None]) != truth[None]).astype(x.dtype)
    # A threshold t errs where x lies between t and 1/2, unless the label was flipped.
    population = 0.2 + 0.6 * jnp.abs(grid - 0.5)
    rad = rademacher_monte_carlo(key, lambda signs: jnp.max(loss @ signs), m, draws=64).mean
    bound = lambda sharp: generalization_gap(rad, c=1.0, m=m, delta=DELTA, sharp=sharp)
    return Sides(
        jnp.max(jnp.abs(population - jnp.mean(loss, axis=1))),
        {
            "printed": bound(False),
            "sharpened S10": bound(True),
            "control": deviation(1.0, m, DELTA) / 20.0,
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
    judges=(generalization_gap,),
    sizes=({"m": 400},),
    forms=(
        Form(
            name="printed", note="m is printed where the sample size is n; Rad from 64 sign draws"
        ),
        Form(name="sharpened S10", note="3 c sqrt(2 ln(3/delta)/m): McDiarmid thrice at delta/3"),
    ),
    control="a twentieth of the tail and no complexity",
    budget=Budget(samples=400, restarts=0, steps=0, batch=100),
)


def _tail(instance: Instance, size: Size) -> Sides:
    """A mean of m terms in [-c, c] exceeds its mean by t with probability exp(-m t^2 / (2 c^2))."""
    c, m, delta, rad, lipschitz = draw.numbers(instance, "c", "m", "delta", "rad", "lipschitz")
    given = {"c": c, "m": m, "delta": delta, "lipschitz": lipschitz}
    fails = lambda t: math.exp(-m * t**2 / (2.0 * c**2))
    spent = {}
    for form, parts, sharp in (("printed", 4, False), ("sharpened S10", 3, True)):
        tail = float(generalization_gap(rad, **given, sharp=sharp)) - 2.0 * lipschitz * rad
        spent[form] = (parts * fails(tail / parts), delta)
    return Sides.pairs({**spent, "control": (spent["printed"][0], delta / 2.0)})


TAIL = Statement(
    id="seqlength.sec2.3-tail",
    label="Section 2.3, the tail",
    formula="McDiarmid at a quarter of the printed tail has probability delta / 4",
    **draw.SAME_ON_HOST,
    cases=lambda size: {
        "c": np.array([1.0, 0.5, 3.0]),
        "m": np.array([100, 7, 10_000]),
        "delta": np.array([0.05, 0.5, 1e-4]),
        "rad": np.array([0.1, 0.0, 2.0]),
        "lipschitz": np.array([1.0, 1.0, 0.5]),
    },
    evaluate=_tail,
    judges=(deviation, generalization_gap),
    sizes=({"cases": 3},),
    forms=(
        Form(name="printed", note="four events; 4 c sqrt(2 ln(4/delta) / m)"),
        Form(name="sharpened S10", note="the gap's two signs, and Rad, which counts twice"),
    ),
    control="half of delta",
)

STATEMENTS = (
    *(RADEMACHER, MONTE_CARLO, GENERALIZATION, TAIL, DUDLEY),
    *(NEGATION, CONTRACTION, MASSART),
)
