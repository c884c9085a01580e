"""Sections 2.3 and 2.4: Rademacher complexities and Dudley's integral."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets import Reals
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.numerics.chaining import chaining
from jaxbounds.seqlength.covering_numbers import covering_staircase, smallest_cover, sup_distances
from jaxbounds.seqlength.dudley import best_certified, dudley, one_scale, staircase_dudley
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


def _linear_rad(instance: Instance, size: Size) -> Sides:
    X, m = instance["X"], size["m"]
    vertices = empirical_rademacher(with_negation(X.T))
    exact = support_rademacher(linear_support(X, 1.0), m, X.dtype)
    return Sides(exact, {"derived": vertices, "control": m * vertices})


RADEMACHER = draw.identity(
    id="seqlength.sec2.3.linear",
    label="Section 2.3, Rademacher complexity of an l_1 ball",
    tex=r"\frac{1}{m} \mathbb{E}_\sigma \sup_{\|w\|_1 \le 1} \sum_{i=1}^m \sigma_i w^\top x_i "
    r"= \frac{1}{m} \mathbb{E}_\sigma \left\| \sum_{i=1}^m \sigma_i x_i \right\|_\infty",
    formula="Rad {w.x : ||w||_1 <= 1} = (1/m) E ||sum sigma_i x_i||_infinity = Rad of its vertices",
    over={"X": Reals(("m", "d"))},
    sizes=({"m": 6, "d": 3},),
    evaluate=_linear_rad,
    judges=(linear_support, with_negation),
    forms=(
        Form(
            name="derived",
            note="A linear function on the l_1 ball is largest at a vertex, so the set of vertices "
            "alone has an equal Rad.",
        ),
    ),
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
            "derived": (off, 2.75 * found.standard_error),
            "control": (jnp.abs(m * found.mean - exact), 2.75 * found.standard_error),
        }
    )


MONTE_CARLO = Statement(
    id="seqlength.sec2.3.signs",
    label="Section 2.3, Rademacher complexity by drawing signs",
    tex=r"\left| \frac{1}{400} \sum_{j=1}^{400} \sup_{h} \frac{1}{m} \sum_{i=1}^m "
    r"\sigma_i^{(j)} h(x_i) - \mathrm{Rad}_m(\mathcal{H}, S) \right| \le 2.75 \, s",
    formula="the mean over 400 sign vectors is within 2.75 of its standard errors of Rad, w.p. 95%",
    kind="probability",
    level=0.05,
    budget=Budget(samples=512, restarts=0, steps=0, batch=128),
    sample=lambda key, size: {
        "X": jax.random.normal(key, (size["m"], size["d"])),
        "seed": jax.random.key_data(key),
    },
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
    id="seqlength.appc.massart",
    label="Appendix C, the term sqrt(ln 2d / m)",
    tex=r"\frac{1}{m} \mathbb{E}_\sigma \left\| \sum_{i=1}^m \sigma_i x_i \right\|_\infty \le "
    r"\max_j \|X_{:,j}\|_2 \frac{\sqrt{2 \ln(2d)}}{m}",
    formula="(1/m) E ||sum sigma_i x_i||_inf <= max_j ||X_{:,j}||_2 sqrt(2 ln 2d) / m",
    kind="inequality",
    over={"X": Reals(("m", "d"))},
    sizes=({"m": 6, "d": 3},),
    evaluate=_massart,
    judges=(massart_linear, support_rademacher, sign_vectors),
    hypotheses=lambda i, size: {"X is not zero": jnp.max(jnp.abs(i["X"])) > 1e-6},
    forms=(
        Form(
            name="derived",
            note="The proof applies Massart's lemma to the class of the 2d signed coordinates x -> "
            "+-x_j.",
        ),
    ),
    control="half of the right side",
    budget=draw.SEARCHED,
    source="Appendix C (used implicitly)",
)


def _one_function(size: Size) -> Instance:
    F = np.zeros((8, size["functions"], size["m"]))
    F[:, 0] = np.random.default_rng(0).normal(size=(8, size["m"]))
    F[0] = np.abs(F[0])  # relu is linear on nonnegative values
    return {"F": F}


on_functions = functools.partial(
    Statement,
    kind="inequality",
    search="none",
    budget=draw.FEW,
    over={"F": Reals(("functions", "m"))},
    cases=_one_function,
    sizes=({"functions": 3, "m": 5},),
)


def _negation(instance: Instance, size: Size) -> Sides:
    F = jnp.concatenate([jnp.zeros((1, size["m"])), instance["F"]])
    plain = empirical_rademacher(F)
    return Sides(empirical_rademacher(with_negation(F)), {"printed": 2 * plain, "control": plain})


NEGATION = on_functions(
    id="seqlength.appc.negation",
    label="Appendix C, Rad(F u -F) <= 2 Rad(F)",
    tex=r"\mathrm{Rad}_m(\mathcal{F} \cup -\mathcal{F}, S) \le 2 \, "
    r"\mathrm{Rad}_m(\mathcal{F}, S), \quad 0 \in \mathcal{F}",
    formula="Rad(F with -F) <= 2 Rad(F) where 0 is in F",
    evaluate=_negation,
    judges=(with_negation, empirical_rademacher),
    forms=(
        Form(
            name="printed",
            cites="Appendix C, Rad_m(F u -F, S) <= 2 Rad_m(F, S)",
            equality="F = {0, f}",
        ),
    ),
    control="without the factor 2",
)


def _contraction(instance: Instance, size: Size) -> Sides:
    F = instance["F"]
    plain = empirical_rademacher(F)
    # Linear functions are left out: their ratio is 1 for every F and would hide the other ratios.
    over = jnp.maximum(empirical_rademacher(jax.nn.relu(F)), empirical_rademacher(jnp.tanh(F)))
    doubled = empirical_rademacher(2.0 * F)
    return Sides.pairs({"derived": (over, plain), "control": (doubled, plain)})


CONTRACTION = on_functions(
    id="seqlength.appc.contraction",
    label="Appendix C, contraction",
    tex=r"\mathrm{Rad}_m(\sigma \circ \mathcal{F}, S) \le L_\sigma "
    r"\mathrm{Rad}_m(\mathcal{F}, S)",
    formula="Rad(sigma o F) <= L_sigma Rad(F), sigma = relu, tanh",
    evaluate=_contraction,
    judges=(empirical_rademacher,),
    assumptions="the check uses only sigma = relu and tanh (L_sigma = 1), and finite classes of "
    "three functions at five points; the supremum has no absolute values",
    forms=(
        Form(
            name="derived",
            note="Appendix C names the contraction inequality without a formula. The statement "
            "seqlength.appc.sign checks the display that Appendix C prints for this step.",
            cites="Appendix C, 'the contraction inequality Ledoux and Talagrand (1991)'",
            equality="sigma linear on the values of F",
        ),
    ),
    control="L = 1 for sigma(z) = 2z",
    source="Appendix C, from Ledoux and Talagrand",
)


ALL_SIGNS = "all functions with values -B and B: both sides are B"


def _dudley(instance: Instance, size: Size) -> Sides:
    F = instance["F"]
    steps = covering_staircase(sup_distances(F[:, :, None], 2.0))
    m, B = F.shape[1], float(np.abs(F).max())
    integral = lambda near: staircase_dudley(steps, m, B, near=near, far=12.0)
    return Sides(
        empirical_rademacher(F),
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
    rng, rows, m = np.random.default_rng(0), [], size["m"]
    for _ in range(12):
        values = rng.normal(size=(8, m)) * np.exp(rng.normal(size=(8, 1)))
        values[0] = 0.0
        rows.append({"F": values})
    if 2**m == size["functions"]:
        rows.append({"F": np.array(list(itertools.product((-1.0, 1.0), repeat=m)))})
    return draw.stacked(rows)


DUDLEY = draw.random_search_on_host(
    id="seqlength.sec2.4.dudley",
    label="Section 2.4, Dudley's integral",
    tex=r"\mathrm{Rad}_m(\mathcal{F}, S) \le c \inf_{\delta \ge 0} \left( \delta + "
    r"\int_\delta^B \sqrt{\frac{\ln \mathcal{N}_\infty(\mathcal{F}, \epsilon, m)}{m}} \, "
    r"d\epsilon \right)",
    formula="Rad <= c inf_delta (delta + int_delta^B sqrt(ln N(eps) / m) d eps), exact N(eps)",
    budget=Budget(samples=1, restarts=2, steps=3),
    cases=_dudley_cases,
    evaluate=_dudley,
    judges=(
        *(staircase_dudley, covering_staircase, sup_distances, smallest_cover),
        *(dudley, chaining, one_scale, best_certified, empirical_rademacher),
    ),
    sizes=({"functions": 8, "m": 3}, {"functions": 8, "m": 8}),
    forms=(
        Form(
            name="printed",
            cites="Section 2.4, the last display, with 'the infinity in the integral limit can"
            " become the upper bound of the function class' for B",
            note=(
                "The paper does not give the constant c in front of Dudley's integral. The check "
                "uses c = 12."
            ),
        ),
        Form(
            name="sharpened",
            note="The bound on Rad is 4 delta plus 12 times Dudley's integral over the scales "
            "above delta.",
        ),
        Form(
            name="sharpened grid",
            note="An upper sum on a geometric grid replaces Dudley's integral, and the bound on "
            "Rad is at most the range B.",
            equality=ALL_SIGNS,
        ),
        Form(
            name="sharpened S6 chaining",
            note="A chaining sum bounds Rad in place of Dudley's integral; each term of the sum "
            "uses the covers at two neighbouring scales.",
            equality=ALL_SIGNS,
        ),
        Form(
            name="sharpened S6 one scale",
            note="The bound on Rad uses a single cover, at a single scale, and Massart's lemma.",
            equality=ALL_SIGNS,
        ),
        Form(
            name="sharpened S6",
            note="The bound on Rad is the smallest of four values: B, Dudley's integral on a "
            "grid, the chaining sum, and the bound from one cover.",
            equality=ALL_SIGNS,
        ),
    ),
    control="c = 0.12",
)


STATEMENTS = (RADEMACHER, MONTE_CARLO, DUDLEY, NEGATION, CONTRACTION, MASSART)
