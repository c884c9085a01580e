"""Appendix D: norms, Gaussian integration and packing numbers."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.norms import entrywise_norm
from jaxbounds.qstr import heads, packing
from jaxbounds.qstr.statements.common import QUICK, stacked
from jaxbounds.statements import Budget, Form, Sides, Statement


def _matrices(key, size):
    keys = jax.random.split(key)
    k = size["k"]
    return {"A": jax.random.normal(keys[0], (k, k)), "B": jax.random.normal(keys[1], (k, k))}


def _aligned(size):
    one = np.full((size["k"], size["k"]), 0.5)
    return {"A": one[None], "B": one[None]}


_R, _S, _P = 3.0, 1.5, 4.0
_Q = _P / (_P - 1)


def _norms(i):
    A, B = i["A"], i["B"]
    return Sides(
        lhs=entrywise_norm(A @ B, _R, _S),
        rhs={
            "printed": entrywise_norm(A, _R, _P) * entrywise_norm(B, _Q, _S),
            "control": entrywise_norm(A, _R, _P) * entrywise_norm(B, _P, _S),
        },
    )


NORMS = Statement(
    id="qstr.lem39",
    label="Lemma 39",
    formula="|AB|_{r,s} <= |A|_{r,p} |B|_{q,s}, 1/p + 1/q = 1 (r, s, p = 3, 1.5, 4)",
    kind="inequality",
    sample=_matrices,
    cases=_aligned,
    evaluate=_norms,
    forms=(Form(name="printed", equality="A rank one, B aligned with its column norms"),),
    control="p in place of its conjugate q",
    sizes=({"k": 3},),
    budget=QUICK,
    source="Lemma 39",
)


def _gaussian(key, size):
    keys = jax.random.split(key)
    n = size["n"]
    return {"mean": jax.random.normal(keys[0], (n,)), "root": jax.random.normal(keys[1], (n, n))}


def _variance(i):
    mean, root = i["mean"], i["root"]
    n = mean.shape[0]
    # A product rule with 3 nodes per axis is exact up to degree 5 in each variable.
    points, weights = np.polynomial.hermite_e.hermegauss(3)
    grid = np.stack(np.meshgrid(*[points] * n, indexing="ij"), -1).reshape(-1, n)
    mass = np.stack(np.meshgrid(*[weights] * n, indexing="ij"), -1).reshape(-1, n).prod(axis=1)
    mass = jnp.asarray(mass / mass.sum())
    x = jnp.asarray(grid) @ root.T
    square = jnp.sum((x + jnp.broadcast_to(mean, x.shape)) ** 2, axis=1)
    average = mass @ square
    covariance = root @ root.T
    return Sides(
        lhs=mass @ (square - average) ** 2,
        rhs={
            "printed": heads.square_norm_variance(mean, covariance),
            "control": heads.square_norm_variance(0 * mean, covariance),
        },
    )


VARIANCE = Statement(
    id="qstr.lem40",
    label="Lemma 40",
    formula="Var |x|^2 = 2 tr(S^T S) + 4 mu^T S mu, x ~ N(mu, S)",
    kind="identity",
    sample=_gaussian,
    evaluate=_variance,
    forms=(Form(name="printed", note="Against an exact quadrature of degree 5 per variable."),),
    control="the term 4 mu^T S mu dropped",
    sizes=({"n": 3},),
    budget=Budget(samples=64),
    source="Lemma 40",
)


def _packing(d: int, points: int, above: int, below: int) -> dict:
    """`points` points of the unit ball of R^d, at least sqrt(above/below) apart; all integers."""
    return {name: np.int64(v) for name, v in locals().items()}


def _packing_cases(size):
    explicit = (
        (np.linspace(-1, 1, 5)[:, None], 1, 4),
        (packing.golay_points(), 4, 3),
        (packing.cross_polytope(3), 2, 1),
        (packing.cross_polytope(100), 2, 1),
    )
    for points, above, below in explicit:
        if packing.smallest_distance(points) ** 2 < above / below * (1 - 1e-9):
            raise ValueError(f"{len(points)} points are closer than sqrt({above}/{below})")
    measured = [_packing(p.shape[1], len(p), above, below) for p, above, below in explicit]
    # A maximal packing at distance 1/2 covers the ball, hence has at least 2^d points.
    return stacked(*measured, *[_packing(d, 2**d, 1, 4) for d in (4, 24, 60)])


def _packing_bound(i):
    d, points, above, below = (
        i[name].astype(jnp.float64) for name in ("d", "points", "above", "below")
    )
    eps = jnp.sqrt(above / below)
    volume = d * jnp.log1p(2 / eps)
    maurey = (1 + jnp.log1p(2 * d * eps**2)) / eps**2
    return Sides(
        lhs=jnp.log(points),
        rhs={"printed": jnp.minimum(volume, maurey), "corrected": volume, "control": volume / 2},
    )


PACKING = Statement(
    id="qstr.lem41",
    label="Lemma 41",
    formula="log P <= min(d log(1 + 2/eps), (1 + log(1 + 2 d eps^2))/eps^2)",
    kind="inequality",
    cases=_packing_cases,
    evaluate=_packing_bound,
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E2",
            counterexample=_packing(100, 200, 2, 1),
            note="The 200 points +-e_i of R^100 are sqrt(2) apart: log 200 = 5.30 > 3.50. The "
            "second branch is Maurey's covering bound of the l_1 ball.",
        ),
        Form(
            name="corrected",
            note="The volume branch alone.",
            equality="equally spaced points on a segment",
        ),
    ),
    control="half the volume branch",
    sizes=({"d": 1},),
    search="none",
    source="Lemma 41",
)

STATEMENTS = (NORMS, VARIANCE, PACKING)
