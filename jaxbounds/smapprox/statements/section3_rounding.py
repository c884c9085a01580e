"""Section 3.1: rounding, and the deep product that rounding protects (Prop. 3.4, Claim 3.5)."""

import math

import jax.numpy as jnp
from jaxtyping import Array

from jaxbounds.claims.sets import Box, Reals
from jaxbounds.claims.statements import Budget, Domain, Form, Instance, Sides, Size, Statement
from jaxbounds.smapprox.all_layer_margin import naive_chain_margin
from jaxbounds.smapprox.correction import DYADIC, THIRDS, Correction


def _round(i: Instance, size: Size) -> Sides:
    z, relu = i["z"], lambda v: jnp.maximum(v, 0.0)
    p = THIRDS.weights(size["points"], size["points"])
    by_layers = relu(p["W3"] @ relu(p["W2"] @ z + p["b2"]) + p["b3"])
    line = lambda low, high: jnp.where(z < low, 0.0, jnp.where(z < high, 3 * z - 1, 1.0))
    slope_two = jnp.where(z < 1 / 4, 0.0, jnp.where(z < 3 / 4, 2 * z - 0.5, 1.0))
    clipped = line(1 / 3, 2 / 3)
    return Sides.pairs(
        {
            "printed": (THIRDS(z), clipped),
            "derived layers": (by_layers, clipped),
            "derived dyadic": (DYADIC(z), slope_two),
            "control": (DYADIC(z), clipped),
        },
        error=1e-14,
    )


ROUNDING = Statement(
    id="smapprox.prop3.4",
    label="Proposition 3.4",
    formula="round(z) = 3 relu(z - 1/3) - 3 relu(z - 2/3)",
    tex=r"\mathrm{round}(z) = 3 \phi(z - 1/3) - 3 \phi(z - 2/3) = "
    r"\begin{cases} 0 & z < 1/3 \\ 3z - 1 & 1/3 \le z < 2/3 \\ 1 & z \ge 2/3 \end{cases}",
    kind="identity",
    evaluate=_round,
    judges=(Correction.__call__, Correction.weights),
    over={"z": Box(-1, 2, "points")},
    sizes=({"points": 64},),
    forms=(
        Form(
            name="printed",
            cites="Proposition 3.4",
            note="The check replaces the printed 3x - 1 by 3z - 1, which the paper means (erratum "
            "E14).",
        ),
        Form(
            name="derived layers",
            note="The library computes the rounding function of Proposition 3.4 by two ReLU "
            "layers.",
        ),
        Form(
            name="derived dyadic",
            note="This rounding function has slope 2 and the thresholds 1/4 and 3/4.",
        ),
    ),
    control="slope 2 for slope 3",
    tolerance=1e-12,
    source="Section 3.1",
)


def _chain(i: Instance, size: Size) -> Sides:
    """Perturb the factors of F(x) = w_d ... w_1 x - 0.5 until their product is 1/2 (and F is 0)."""
    u, d = i["log_factors"], size["d"]
    delta = jnp.expm1(u - u.mean() - math.log(2) / d)
    root = math.sqrt(d)
    any_depth = jnp.exp(i["log_depth"])
    margin, any_root = naive_chain_margin(any_depth), jnp.sqrt(any_depth)
    return Sides.pairs(
        {
            "printed": (margin, 1 / any_root),
            "sharpened": (margin, math.log(2) / any_root),
            "derived": (naive_chain_margin(d), jnp.sqrt(delta @ delta)),
            "control": (naive_chain_margin(d), 0.4 / root),
        },
        error=1e-15,
    )


CHAINS = Domain(
    name="d = 2, logarithms of factors and depth within 1",
    chart=lambda point, size: {"log_factors": point[:2], "log_depth": point[2]},
    size={"d": 2},
    lower=(-1.0, -1.0, 0.0),
    upper=(1.0, 1.0, 1.0),
)

NAIVE_CHAIN = Statement(
    id="smapprox.claim3.5.naive",
    label="Section 3.1, the example before Proposition 3.4",
    formula="rho(f, (1,..,1), 1, 1) <= 1/sqrt(d) for f(x) = w_d ... w_1 x - 0.5",
    tex=r"\rho_f((1, \ldots, 1), 1, 1) \lesssim \frac{1}{\sqrt{d}}, \quad "
    r"f(x, (W_1, \ldots, W_d)) = \left(\prod_{i=1}^{d} W_i\right) x - 0.5",
    kind="inequality",
    evaluate=_chain,
    judges=(naive_chain_margin,),
    over={"log_factors": Reals("d"), "log_depth": Box(0, "log(10**6)")},
    sizes=({"d": 2}, {"d": 5}, {"d": 16}),
    budget=Budget(restarts=4, steps=60),
    forms=(
        Form(
            name="printed",
            cites="Section 3.1, the example before Proposition 3.4",
            note=(
                "The hidden constant 1 is enough; the least possible constant tends to ln 2 for "
                "large d."
            ),
            domains=(CHAINS,),
        ),
        Form(
            name="sharpened",
            note="The proof uses 1 - 2^(-1/d) <= ln 2 / d. The two sides become equal in the "
            "limit of large d.",
            domains=(CHAINS,),
        ),
        Form(
            name="derived",
            note="Every delta on the decision boundary satisfies rho = sqrt(d) (1 - 2^(-1/d)) <= "
            "|delta|. Because exp is convex, |delta| is smallest if all d factors of the network "
            "are equal.",
            equality="all factors equal",
        ),
    ),
    control="0.4 / sqrt(d)",
    source="Section 3.1",
)


def _rounded_chain(i: Instance, size: Size) -> Sides:
    def value(delta: Array) -> Array:
        z = jnp.ones(())
        for k in range(size["d"]):
            z = THIRDS((1 + delta[k]) * z)
        return z - 0.5

    moved = {"printed": value(i["delta"]), "control": value(2.2 * i["delta"])}
    return Sides.pairs({name: (z, jnp.full((), 0.5)) for name, z in moved.items()}, error=1e-14)


ROUNDED_CHAIN = Statement(
    id="smapprox.claim3.5",
    label="Claim 3.5",
    formula="|delta_i| <= 1/3 for all i leaves the rounded chain's output at 1/2; so rho >= 1/3",
    tex=r"\max_i |\delta_i| \le \frac{1}{3} \Rightarrow "
    r"\tilde f(1, (1 + \delta_1, \ldots, 1 + \delta_d)) = f(1, (1, \ldots, 1)) = \frac{1}{2}, "
    r"\quad \rho_{\tilde f}((1, \ldots, 1), 1, 1) \ge \frac{1}{3}",
    kind="identity",
    evaluate=_rounded_chain,
    judges=(Correction.__call__,),
    over={"delta": Box("-1/3", "1/3", "d")},
    sizes=({"d": 3}, {"d": 8}),
    forms=(
        Form(
            name="printed",
            cites="Claim 3.5 and the sentence after it",
            note="The claim gives rho >= 1/3. The paper's 'delta_i <= 1/3' means |delta_i| <= 1/3 "
            "(erratum E14).",
        ),
    ),
    control="perturbations 2.2 times as large",
    tolerance=1e-11,
    source="Section 3.1",
)

STATEMENTS = (ROUNDING, NAIVE_CHAIN, ROUNDED_CHAIN)
