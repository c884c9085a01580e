"""Section 2 and Appendix A: SM-approximation and generalization, on finite classes."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.claims.sets import Box, Integers, Simplex
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.smapprox import finite_classes as finite

POINTS = np.array([0.3, 0.25, 0.2, 0.15, 0.1])
"""The probabilities of the five points on which the finite class is defined."""
LOSSES = np.array(
    [
        [0.0, 0.0, 0.0, 0.1, 1.0],
        [0.0, 0.0, 0.1, 0.0, 1.0],
        [0.1, 0.0, 0.0, 0.0, 0.9],
        [1.0, 1.0, 0.0, 0.0, 1.0],
        [0.0, 1.0, 1.0, 1.0, 0.0],
        [0.6, 0.2, 0.9, 0.4, 0.0],
    ]
)
"""The surrogate losses of six models (rows) at five points (columns). The first three models have
nearly equal risks, so chance decides which is best on a sample."""
DEVIATION_LEVEL, ERM_LEVEL = 0.1, 0.01
THREE_POINTS = np.array([0.5, 0.3, 0.2])
"""The probabilities of three points, few enough to compute Rad exactly for large samples."""
THREE_LOSSES = np.array(
    [
        [0.0, 0.0, 1.0],
        [0.0, 0.1, 0.9],
        [1.0, 0.0, 0.0],
        [0.0, 1.0, 1.0],
        [0.6, 0.2, 0.0],
        [1.0, 1.0, 0.0],
    ]
)
"""The losses of six models (rows) on the points of `THREE_POINTS`."""


@functools.cache
def _rademacher(n: int) -> float:
    return finite.exact_rademacher(THREE_LOSSES, THREE_POINTS, n)


def _largest_deviation() -> float:
    """Return the largest deviation of a mean over a sample from its expectation, without (A.1)."""
    risks = THREE_LOSSES @ THREE_POINTS
    return max(np.max(risks - THREE_LOSSES.min(axis=1)), np.max(THREE_LOSSES.max(axis=1) - risks))


WRONG = np.array([[0.0, 1.0], [1.0, 0.0]])
"""The losses of two models on two points; each model is wrong on one point."""


def _with_coins(key: Array, size: Size) -> Instance:
    own, coins = jax.random.split(key)
    sample = finite.draw(own, jnp.asarray(THREE_POINTS), size["n"])
    return {"sample": sample, "coins": jax.random.bernoulli(coins, shape=(size["n"],))}


def _pair(n: int) -> Array:
    """Return a law on two points; n samples favour the worse model with probability <= 0.01."""
    gap = 1.0001 * math.sqrt(2 * math.log(1 / ERM_LEVEL) / n)
    return jnp.array([1 + gap, 1 - gap]) / 2


def _with_pair(key: Array, size: Size) -> Instance:
    laws = {"sample": jnp.asarray(POINTS), "pair": _pair(size["n"])}
    keys = jax.random.split(key)
    return {name: finite.draw(own, law, size["n"]) for own, (name, law) in zip(keys, laws.items())}


def _deviation(i: Instance, size: Size) -> Sides:
    n, losses = size["n"], jnp.asarray(THREE_LOSSES)
    population, empirical = losses @ jnp.asarray(THREE_POINTS), losses[:, i["sample"]].mean(axis=1)
    supremum = jnp.abs(population - empirical).max()
    printed, sharpened = finite.uniform_deviation_bound, finite.uniform_deviation_bound_sharpened
    coin = jnp.abs(i["coins"].astype(float).mean() - 0.5)  # a mean of booleans would be float32
    root = math.sqrt(2 * DEVIATION_LEVEL)
    return Sides.pairs(
        {
            "printed": (supremum, printed(_rademacher(n), n, DEVIATION_LEVEL)),
            "sharpened": (supremum, sharpened(_rademacher(n), n, DEVIATION_LEVEL)),
            "derived coin": (coin, printed(0.0, n, root)),
            "sharpened coin": (coin, sharpened(0.0, n, DEVIATION_LEVEL)),
            "control": (supremum, 0.1 * printed(0.0, n, DEVIATION_LEVEL)),
        },
        trivial=_largest_deviation(),
    )


DEVIATION = Statement(
    id="smapprox.eqa.1",
    label="(A.1)",
    formula="sup_F |L(F) - L-hat(F)| <= 2 Rad + sqrt(log(2/delta)/n) with probability 1-delta",
    tex=r"\sup_{F \in \mathcal{F}} |L(F) - \hat L(F)| \le 2 \mathrm{Rad}_{n,P}(\mathcal{L}_G) + "
    r"\sqrt{\frac{\log(2/\delta)}{n}} \quad \text{with probability } 1 - \delta",
    kind="probability",
    evaluate=_deviation,
    judges=(finite.uniform_deviation_bound, finite.uniform_deviation_bound_sharpened),
    sample=_with_coins,
    sizes=({"n": 40}, {"n": 80}),
    forms=(
        Form(name="printed", cites="(A.1), first line"),
        Form(
            name="sharpened",
            note="The tail term (the term that contains delta) is sqrt(log(2/delta)/(2n)), as in "
            "McDiarmid's inequality.",
        ),
        Form(
            name="derived coin",
            note="The class has one model, which errs with probability 1/2, so Rad = 0. With the "
            "printed constant, the level sqrt(2 delta) in place of delta already gives "
            "probability 1 - delta. The bound fails on some drawn samples, and the level delta "
            "allows this fraction of failures.",
        ),
        Form(
            name="sharpened coin",
            note="The bound has the constant of McDiarmid's inequality. The class has one model, "
            "which errs with probability 1/2. The bound fails on some drawn samples, and the level "
            "delta allows this fraction of failures.",
        ),
    ),
    control="no Rademacher term, and a tenth of the other",
    assumptions="six models on three points, for which no sample mean deviates by more than 0.8, "
    "and their exact Rademacher complexity; and one model, a fair coin",
    level=DEVIATION_LEVEL,
    budget=Budget(samples=1500, restarts=0),
    source="Appendix A",
)


def _tails(i: Instance, size: Size) -> Sides:
    n, models = size["n"], size["models"]
    delta, rademacher, best = (float(i[name]) for name in ("delta", "rademacher", "best"))
    printed = finite.uniform_deviation_bound(rademacher, n, delta) - 2 * rademacher
    sharpened = finite.uniform_deviation_bound_sharpened(rademacher, n, delta) - 2 * rademacher
    erm = (finite.erm_bound(best, rademacher, n, delta) - best - 4 * rademacher) / 2
    tail = lambda t: 2 * math.exp(-2 * n * t**2)
    massart = models * math.exp(-n * finite.massart_bound(models, n) ** 2 / 2)
    return Sides.pairs(
        {
            "derived": (tail(printed), delta**2 / 2),
            "sharpened": (tail(sharpened), delta),
            "derived erm": (tail(erm), delta**2 / 2),
            "derived massart": (massart, 1.0),
            "control": (tail(printed), delta),
        }
    )


TAILS = Statement(
    id="smapprox.eqa.1.tails",
    label="(A.1) and Proposition 2.3, their constants",
    formula="2 exp(-2 n t^2) = delta^2 / 2 at t = sqrt(log(2/delta)/n)",
    tex=r"2 \exp(-2 n t^2) = \frac{\delta^2}{2} \quad \text{at } "
    r"t = \sqrt{\frac{\log(2/\delta)}{n}}",
    kind="identity",
    evaluate=_tails,
    judges=(
        finite.uniform_deviation_bound,
        finite.uniform_deviation_bound_sharpened,
        finite.erm_bound,
        finite.massart_bound,
    ),
    host=True,
    over=dict.fromkeys(("delta", "rademacher", "best"), Box(0.01, 0.5)),
    budget=Budget(samples=16),
    sizes=({"n": 7, "models": 6},),
    forms=(
        Form(
            name="derived",
            note="At the printed deviation, McDiarmid's bound on the failure probability is "
            "delta^2 / 2. So the printed deviation in (A.1) is larger than necessary.",
        ),
        Form(
            name="sharpened",
            note="With the constant of McDiarmid's inequality, the probability bound of the tail "
            "equals the level delta exactly.",
        ),
        Form(
            name="derived erm",
            note="The bound of Proposition 2.3 contains the printed deviation twice.",
        ),
        Form(
            name="derived massart",
            note="For a class of |F| models, Massart's deviation t satisfies |F| exp(-n t^2 / 2) = "
            "1.",
        ),
    ),
    control="the printed constant gives the level exactly",
    source="Appendix A",
)


@jax.jit
def _on_sample(losses: Array, law: Array, sample: Array) -> list[Array]:
    return [
        finite.classical_error(losses, law),
        finite.erm_risk(losses, losses, law, sample),
        finite.empirical_risk_minimiser(losses, sample),
    ]


def _by_enumeration(i: Instance, size: Size) -> Sides:
    n, losses, points, sample = size["n"], i["losses"], i["law"], i["sample"]
    samples = np.array(list(itertools.product(range(size["points"]), repeat=n)))
    signs = np.array(list(itertools.product((-1, 1), repeat=n)))
    largest = np.max([[row[s] @ signs.T / n for s in samples] for row in losses], axis=0)
    of_sample = dict(zip(map(tuple, samples), largest.mean(axis=1)))
    expected = sum(points[list(s)].prod() * value for s, value in of_sample.items())
    risks, means = [row @ points for row in losses], [row[sample].mean() for row in losses]
    chosen = min(range(len(means)), key=means.__getitem__)
    found = [
        *_on_sample(losses, points, sample),
        finite.empirical_rademacher(losses, sample),
        finite.exact_rademacher(losses, points, n),
    ]
    wanted = [min(risks), risks[chosen], chosen, of_sample[tuple(sample)], expected]
    return Sides(
        np.array(found), {"derived": np.array(wanted), "control": np.array([*wanted[:3], 0, 0])}
    )


DEFINITIONS = Statement(
    id="smapprox.def2.2",
    label="Definitions 2.1, 2.2 and Rademacher complexity, on finite classes",
    formula="least risk, empirical minimiser, its risk, Rad-hat and Rad = their sums written out",
    tex=r"\mathrm{Rad}_{n,P}(\mathcal{F}) = \mathbb{E}_{(x_i)} \mathbb{E}_{\xi} \left[\sup_{F \in "
    r"\mathcal{F}} \frac{1}{n} \sum_{i=1}^{n} \xi_i F(x_i)\right], \quad \hat F = "
    r"\mathrm{argmin}_{F \in \mathcal{F}} \frac{1}{n} \sum_{i=1}^{n} \bar\ell(F, x_i, G(x_i))",
    kind="identity",
    evaluate=_by_enumeration,
    judges=(
        finite.classical_error,
        finite.empirical_risk_minimiser,
        finite.erm_risk,
        finite.empirical_rademacher,
        finite.exact_rademacher,
    ),
    host=True,
    over={"losses": Box(0, 1, ("models", "points")), "law": Simplex("points")}
    | {"sample": Integers(0, "points - 1", "n")},
    budget=Budget(samples=24),
    sizes=({"models": 4, "points": 3, "n": 3},),
    forms=(
        Form(
            name="derived",
            note="The check computes Rad exactly: it enumerates all samples and all sign vectors.",
        ),
    ),
    control="no Rademacher complexity",
    source="Section 2.1",
)


def _minimiser(i: Instance, size: Size) -> Sides:
    n, surrogate, points = size["n"], jnp.asarray(LOSSES), jnp.asarray(POINTS)
    best = finite.classical_error(surrogate, points)
    rademacher = finite.massart_bound(len(LOSSES), n)
    evaluation = (surrogate >= 1.0).astype(surrogate.dtype)
    risk = finite.erm_risk(surrogate, evaluation, points, i["sample"])
    own = finite.erm_risk(surrogate, surrogate, points, i["sample"])
    epsilon = jnp.maximum(best, rademacher)
    wrong, law = jnp.asarray(WRONG), _pair(n)
    of_pair = finite.erm_risk(wrong, wrong, law, i["pair"])
    least, root = finite.classical_error(wrong, law), 2 * math.sqrt(ERM_LEVEL)
    return Sides.pairs(
        {
            "printed": (risk, finite.erm_bound(epsilon, epsilon, n, ERM_LEVEL)),
            "sharpened": (own, finite.erm_bound(best, rademacher, n, ERM_LEVEL)),
            "derived pair": (of_pair, finite.erm_bound(least, 0.0, n, root)),
            "control": (own, best * (1 - 1e-6)),
        },
        # The largest risk, with either loss, of a model in the class.
        trivial=jnp.maximum(jnp.max(surrogate @ points), jnp.max(evaluation @ points)),
    )


MINIMISER = Statement(
    id="smapprox.prop2.3",
    label="Proposition 2.3",
    formula="E l(F-hat) <= 5 epsilon + 2 sqrt(log 200 / n) with probability 0.99",
    tex=r"\mathbb{E}_{x \sim P}[\ell(\hat F(x), G(x))] \le 5 \epsilon + "
    r"2 \sqrt{\frac{\log 200}{n}} \quad \text{with probability } 0.99",
    kind="probability",
    evaluate=_minimiser,
    judges=(finite.erm_bound, finite.erm_risk, finite.classical_error, finite.massart_bound),
    sample=_with_pair,
    sizes=({"n": 6400},),
    forms=(
        Form(
            name="printed",
            cites="Proposition 2.3, with the constants of its proof (Appendix A, after (A.1))",
            note="The check sets epsilon to the larger of Rad and the smallest surrogate risk.",
        ),
        Form(
            name="sharpened",
            note="The proof gives L-bar(F-hat) <= L-bar(F*) + 4 Rad + 2 sqrt(log 200/n), before it "
            "replaces L-bar(F*) and Rad by epsilon.",
        ),
        Form(
            name="derived pair",
            note="For a class of two models, Hoeffding's inequality gives E l(F-hat) <= E l(F*) + "
            "sqrt(2 log(1/delta)/n). This bound is the printed bound without Rad, at level 2 "
            "sqrt(delta). The risks of the two models differ by slightly more than the bound "
            "allows, so some samples violate the bound.",
        ),
    ),
    control="the empirical minimiser is the population minimiser",
    assumptions="six models; only the worst model, with risk 0.65, could violate the printed "
    "bound (0.633); Massart's bound replaces the Rademacher complexity; and two "
    "models",
    level=ERM_LEVEL,
    budget=Budget(samples=3000, restarts=0),
    source="Section 2.1, Appendix A",
)

STATEMENTS = (DEFINITIONS, DEVIATION, TAILS, MINIMISER)
