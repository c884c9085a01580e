"""Appendix D: norms, Gaussian integration and packing numbers."""

import functools
import math

import jax.numpy as jnp
import numpy as np

from jaxbounds.norms import entrywise_norm
from jaxbounds.qstr import heads, packing
from jaxbounds.qstr.statements.common import (
    CASES_ON_HOST,
    SEARCHED,
    gauss_hermite,
    normals,
    stacked,
)
from jaxbounds.statements import Budget, Counterexample, Form, Sides, Statement


def _aligned(size):
    one = np.full((size["k"], size["k"]), 0.5)
    return {"A": one[None], "B": one[None]}


_R, _S, _P = 3.0, 1.5, 4.0
_Q = _P / (_P - 1)


def _norms(i, size):
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
    judges=(entrywise_norm,),
    sample=normals("A: k k", "B: k k"),
    cases=_aligned,
    evaluate=_norms,
    forms=(Form(name="printed", equality="A rank one, B aligned with its column norms"),),
    control="p in place of its conjugate q",
    sizes=({"k": 3},),
    source="Lemma 39",
    **SEARCHED,
)


def _variance(i, size):
    mean, root = i["mean"], i["root"]
    # A product rule with 3 nodes per axis is exact up to degree 5 in each variable.
    grid, mass = (jnp.asarray(v) for v in gauss_hermite(size["n"], nodes=3))
    x = grid @ root.T
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
    judges=(heads.square_norm_variance,),
    sample=normals("mean: n", "root: n n"),
    evaluate=_variance,
    forms=(Form(name="printed", note="Against an exact quadrature of degree 5 per variable."),),
    control="the term 4 mu^T S mu dropped",
    sizes=({"n": 3},),
    budget=Budget(samples=64),
    source="Lemma 40",
)


SEGMENT, CROSS, GOLAY, MAXIMAL = range(4)


@functools.lru_cache
def _family(family: int, d: int) -> tuple[float, float]:
    """The log of the number of points of a packing of the unit ball of R^d, and their distance."""
    if family == MAXIMAL:  # at distance 1/2; only a lower bound on their number is known
        return packing.volume_lower(d, 0.5), 0.5
    if family == SEGMENT:
        points = np.linspace(-1.0, 1.0, 5)[:, None]
    else:
        points = packing.golay_points() if family == GOLAY else packing.cross_polytope(d)
    return math.log(len(points)), packing.smallest_distance(points)


def _packing_cases(size):
    known = (
        (SEGMENT, 1),
        (GOLAY, 24),
        (CROSS, 3),
        (CROSS, 100),
        *((MAXIMAL, d) for d in (4, 24, 60)),
    )
    return stacked(*({"family": family, "d": d} for family, d in known))


def _packing_bound(i, size):
    d = int(i["d"])
    points, eps = _family(int(i["family"]), d)
    volume = packing.volume_upper(d, eps)
    return Sides(
        lhs=points,
        rhs={
            "printed": min(volume, packing.maurey_printed(d, eps)),
            "corrected": volume,
            "corrected (Golay)": volume,
            "control": volume / 2,
        },
    )


PACKING = Statement(
    id="qstr.lem41",
    label="Lemma 41",
    formula="log P <= min(d log(1 + 2/eps), (1 + log(1 + 2 d eps^2))/eps^2)",
    kind="inequality",
    judges=(
        packing.volume_upper,
        packing.maurey_printed,
        packing.volume_lower,
        packing.golay_points,
        packing.cross_polytope,
        packing.smallest_distance,
    ),
    cases=_packing_cases,
    evaluate=_packing_bound,
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E2",
            counterexample=Counterexample(
                instance={"family": CROSS, "d": 100}, size={}, ratio=1.515111978130672
            ),
            note="The 200 points +-e_i of R^100 are sqrt(2) apart: log 200 = 5.30 > 3.50. The "
            "second branch is Maurey's covering bound of the l_1 ball.",
        ),
        Form(
            name="corrected",
            note="The volume branch alone.",
            equality="equally spaced points on a segment",
        ),
        Form(
            name="corrected (Golay)",
            hypotheses=lambda i, size: {"Golay code": i["family"] == GOLAY},
            note="The volume branch on the code's 4096 words.",
        ),
    ),
    control="half the volume branch",
    sizes=({},),
    source="Lemma 41",
    **CASES_ON_HOST,
)

STATEMENTS = (NORMS, VARIANCE, PACKING)
