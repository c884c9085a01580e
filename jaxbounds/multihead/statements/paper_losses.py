"""Corollary 1 at the sizes of the paper's experiments, along runs like those of Figures 2 to 5.

The Lanczos method on the Hessian of the module's loss gives its extreme eigenvalues. An inertia
count (of negative eigenvalues) of the Hessian's closed form gives certified intervals for both. The
check's error bound is the distance of the measured eigenvalue from the ends of the interval.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.claims.statements import CONTROL, Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.multihead import bounds
from jaxbounds.multihead.calculus import loss_hessian_extremes
from jaxbounds.multihead.derivatives import network_risk, risk_gradient
from jaxbounds.multihead.loss import Data
from jaxbounds.multihead.model import Params
from jaxbounds.multihead.runs import training_set
from jaxbounds.multihead.statements.common import params_of, token_radius
from jaxbounds.multihead.statements.instances import POPULATIONS, radius_at_least_one
from jaxbounds.multihead.statements.loss_bounds import (
    convexity_sides,
    gradient_sides,
    smoothness_sides,
)
from jaxbounds.multihead.tied import tied_risk, untie
from jaxbounds.networks.curvature import CertifiedExtremes, Curvature, Extremes
from jaxbounds.numerics.norms import vector_norm

DM1, DM2 = {"n": 100, "T": 10, "d": 4}, {"n": 1000, "T": 10, "d": 5}
"""The sizes n, T and d of Figures 2 and 3, and of Figures 4 and 5."""
LOOKED_AT = (0, 40, 400)
"""The steps of a run at which the check measures: start, middle and end. More steps take more time.
"""
MANY, MOST = 10_000, 100_000
"""The limits on n H above which the check uses fewer instances and fewer Hessian-vector products,
because each instance takes seconds. Larger limits give more measurements.
"""
USUAL, FEW, FEWEST = 60, 12, 6
"""The numbers of Hessian-vector products: the usual number, and the numbers for n H above `MANY`
and above `MOST`. More products make the Lanczos estimates of the extreme eigenvalues more accurate.
"""


def _products(size: Size) -> int:
    many = size["n"] * size["H"]
    return USUAL if many < MANY else FEW if many < MOST else FEWEST


def copies_of(size: Size) -> tuple[int, int]:
    """Return the numbers of heads in two groups of heads; if H = 1, the second group is empty."""
    heads = int(size["H"])
    return heads - heads // 2, heads // 2


@functools.partial(jax.jit, static_argnames="steps")
def _run(start: Params, copies: Array, data: Data, step: Array, steps: int) -> Params:
    def advance(params: Params, _: None) -> tuple[Params, Params]:
        slope = jax.grad(tied_risk, argnums=3)(params, copies, data, params)
        return jax.tree.map(lambda leaf, g: leaf - step * g, params, slope), params

    return jax.lax.scan(advance, start, length=steps + 1)[1]


def runs(size: Size) -> Instance:
    """Return iterates of gradient descent with eta = sqrt(H).

    One run starts from zero, the other from random parameters. The heads form two groups of equal
    heads.
    """
    name = "DM1" if size["n"] == DM1["n"] else "DM2"
    keys = jax.random.split(jax.random.key(0), 3)
    data, (T, d) = POPULATIONS[name](keys[0], size), (size["T"], size["d"])
    start = {
        "U": jax.random.normal(keys[1], (2, T, d)) / T,
        "W": jax.random.normal(keys[2], (2, d, d)) / d,
    }
    looks: dict[float, tuple[int, ...]] = {0.0: LOOKED_AT, 1.0: LOOKED_AT}
    if _products(size) < USUAL:
        looks = {0.0: LOOKED_AT[:1], 1.0: LOOKED_AT[-1:]}
    found = []
    for scale in looks:
        first = jax.tree.map(lambda leaf, scale=scale: scale * leaf, start)
        copies, step = jnp.asarray(copies_of(size), float), jnp.sqrt(1.0 * size["H"])
        run = _run(first, copies, data, step, LOOKED_AT[-1])
        found += [jax.tree.map(lambda leaf, k=k: np.asarray(leaf[k]), run) for k in looks[scale]]
    repeated = {name: np.stack([np.asarray(leaf)] * len(found)) for name, leaf in data.items()}
    return repeated | {name: np.stack([one[name] for one in found]) for name in ("U", "W")}


_gradient = jax.jit(lambda params, data: vector_norm(risk_gradient(params, data)))
_bracket = jax.jit(lambda params, data: loss_hessian_extremes(params, data))


def measured(
    params: Params, data: Data, size: Size
) -> tuple[Extremes, Array, Array, CertifiedExtremes]:
    """Return the Hessian's extreme eigenvalues by autograd, their enclosures, L and ||grad L||."""
    operator = Curvature(network_risk, params, data)
    ends, loss = operator.extremes_and_loss(iterations=_products(size), dense_limit=0)
    return ends, loss, _gradient(params, data), _bracket(params, data)


def _corollary_1(instance: Instance, size: Size) -> Sides:
    instance = jax.tree.map(jnp.asarray, instance)
    groups, copies, data = params_of(instance), copies_of(size), training_set(instance)
    ends, loss, slope, bracket = measured(untie(groups, copies), data, size)
    present = int(np.count_nonzero(copies))
    own = jax.tree.map(lambda leaf: leaf[:present], groups)
    about = own, jnp.asarray(copies[:present], float), token_radius(instance), loss
    parts = {
        "(1)": (slope, gradient_sides(*about, int(size["T"])), 1e-13 * slope),
        "(2)": (_norm(ends), smoothness_sides(*about, size), _off_norm(ends, bracket)),
        "(3)": (-ends.minimum, convexity_sides(*about, size), _off_least(ends, bracket)),
    }
    sides = {
        f"{name} {part}": (lhs, rhs, error)
        for part, (lhs, rights, error) in parts.items()
        for name, rhs in rights.items()
        if name != CONTROL
    }
    # Without the part of rank n, the bound in (3) would equal the bound in (2).
    sides[CONTROL] = _norm(ends), parts["(3)"][1]["sharpened S6"], sides["sharpened S6 (2)"][2]
    return Sides.pairs(
        {name: (lhs, rhs) for name, (lhs, rhs, _) in sides.items()},
        error={name: error for name, (_, _, error) in sides.items()},
    )


def _norm(ends: Extremes) -> Array:
    return jnp.maximum(jnp.abs(ends.minimum), jnp.abs(ends.maximum))


def _off_norm(ends: Extremes, bracket: CertifiedExtremes) -> Array:
    outer = jnp.maximum(-bracket.bracket_minimum[0], bracket.bracket_maximum[1])
    return jnp.where(bracket.certified, jnp.abs(outer - _norm(ends)), jnp.inf)


def _off_least(ends: Extremes, bracket: CertifiedExtremes) -> Array:
    return jnp.where(
        bracket.certified, jnp.max(jnp.abs(bracket.bracket_minimum - ends.minimum)), jnp.inf
    )


_CITES = {
    "printed": "Corollary 1 {part}, Section 3",
    "printed, Lemma 6": "Lemma 6 {part}, Appendix A.2; the footnote to Corollary 1, Section 3",
}
"""The citation of each printed version of the claim: its place in the paper."""

COROLLARY_1 = Statement(
    id="multihead.cor1.sizes",
    label="Corollary 1, at the paper's sizes",
    kind="inequality",
    formula="||grad L|| <= beta_1 L; ||Hess L|| <= beta_2; lambda_min(Hess L) >= -beta_3 L / "
    "sqrt(H)",
    tex=r"\|\nabla \hat L\| \le \beta_1 \hat L, \quad \|\nabla^2 \hat L\| \le \beta_2, \quad "
    r"\lambda_{\min}(\nabla^2 \hat L) \ge -\frac{\beta_3}{\sqrt{H}} \hat L",
    evaluate=_corollary_1,
    judges=(
        bounds.beta1,
        bounds.beta2,
        bounds.beta3,
        bounds.beta1_sharp,
        bounds.beta2_sharp,
        bounds.beta3_sharp,
        loss_hessian_extremes,
    ),
    host=True,
    forms=tuple(
        Form(
            name=f"{name} {part}",
            cites=_CITES.get(name, "").format(part=part),
            note=(
                "This version of the claim checks, at the paper's sizes, a bound that the "
                "statements on Corollary 1 check at small sizes."
            ),
        )
        for part, names in (
            ("(1)", ("printed", "printed, Lemma 6", "sharpened S2")),
            (
                "(2)",
                ("printed", "printed, Lemma 6", "sharpened S6", "sharpened S6, self-bounded"),
            ),
            ("(3)", ("printed", "printed, Lemma 6", "sharpened S6")),
        )
        for name in names
    ),
    control="beta_3# L / sqrt(H), the bound of (3), in place of the bound of (2)",
    cases=runs,
    sizes=(
        *(DM1 | {"H": heads} for heads in (1, 16, 1024)),
        DM2 | {"H": 16},
    ),
    hypotheses=radius_at_least_one,
    assumptions="Assumption 1; GD with eta = sqrt(H) on DM1 (n = 100) and DM2 (n = 1000), from "
    "zero and from a random start, heads in two groups: at steps 0, 40 and 400, with 60 products "
    "of the Hessian; from n H = 10,000 on at the start of the one and the end of the other, with "
    "12 products; from 100,000 on with 6",
    search="none",
    budget=Budget(samples=1, restarts=0, batch=1),
    source="Section 3; T, d and n of Figures 2 to 5",
)

STATEMENTS = (COROLLARY_1,)
