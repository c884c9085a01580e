"""Statements of Appendix D: norms, Gaussian integration and packing numbers."""

import functools
import math

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Form,
    Instance,
    Sides,
    Size,
    Statement,
    stacked,
)
from jaxbounds.numerics.arrays import array_module, number, traced
from jaxbounds.numerics.norms import dual_exponent, entrywise_norm
from jaxbounds.qstr import heads, packing
from jaxbounds.qstr.statements.common import gauss_hermite, reals, searched, searched_on_host

_EXPONENTS = {
    "printed": (3.0, 1.5, 4.0),
    "printed (2, 2; inf, 1)": (2.0, 2.0, math.inf),
    "printed (1, inf; 1, inf)": (1.0, math.inf, 1.0),
}
"""The triples of exponents (r, s, p) for which Lemma 39 is checked; Lemma 15 uses the second
triple."""


def _norms(i: Instance, size: Size) -> Sides:
    A, B = i["A"], i["B"]
    pairs = {
        name: (
            entrywise_norm(A @ B, r, s),
            entrywise_norm(A, r, p) * entrywise_norm(B, dual_exponent(p), s),
        )
        for name, (r, s, p) in _EXPONENTS.items()
    }
    r, s, p = _EXPONENTS["printed"]
    false = entrywise_norm(A, r, p) * entrywise_norm(B, p, s)
    return Sides.pairs({**pairs, "control": (pairs["printed"][0], false)})


_ALIGNED = "A of rank one with equal columns, B constant"
NORMS = searched(
    id="qstr.lem39",
    label="Lemma 39",
    formula="|AB|_{r,s} <= |A|_{r,p} |B|_{q,s}, 1/p + 1/q = 1",
    tex=r"\|A B\|_{r,s} \le \|A\|_{r,p} \|B\|_{q,s}, \quad \frac{1}{p} + \frac{1}{q} = 1",
    judges=(entrywise_norm,),
    over=reals("A: k k, B: k k"),
    cases=lambda size: {name: np.full((1, size["k"], size["k"]), 0.5) for name in "AB"},
    evaluate=_norms,
    forms=tuple(
        Form(
            name=name,
            cites="Lemma 39, Appendix D",
            equality=_ALIGNED,
            note="The check evaluates Lemma 39 at the exponents r, s, p = "
            f"{', '.join(f'{v:g}' for v in triple)}.",
        )
        for name, triple in _EXPONENTS.items()
    ),
    control="p in place of its conjugate q",
    sizes=({"k": 3},),
    assumptions="three triples (r, s, p), square matrices, k = 3",
    source="Lemma 39; Lemma 15 uses p infinite, q = 1",
    budget=Budget(samples=128, restarts=3, steps=40, batch=128),
)


def _variance(i: Instance, size: Size) -> Sides:
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
    tex=r"\mathrm{Var}(\|x\|_2^2) = 2 \mathrm{tr}(\Sigma^\top \Sigma) + 4 \mu^\top \Sigma \mu, "
    r"\quad x \sim \mathcal{N}(\mu, \Sigma)",
    kind="identity",
    judges=(heads.square_norm_variance,),
    over=reals("mean: n, root: n n"),
    evaluate=_variance,
    forms=(
        Form(
            name="printed",
            cites="Lemma 40, Appendix D",
            note="The check computes Var |x|^2 with a quadrature rule that is exact up to degree "
            "5 in each variable.",
        ),
    ),
    control="the term 4 mu^T S mu dropped",
    sizes=({"n": 3},),
    budget=Budget(samples=64),
    source="Lemma 40",
)


SEGMENT, GOLAY, MAXIMAL = range(3)
SHORTEST = 14
"""The statement uses shortened Golay codes of this length or longer. The code of this length has
four words; a longer code has more words.
"""


@functools.lru_cache
def _family(family: int, d: int) -> tuple[float, float]:
    if family == MAXIMAL:  # spaced by 1/2; only a lower bound on the points' number is known
        return packing.volume_lower(d, 0.5), 0.5
    if family == SEGMENT:
        points = np.linspace(-1.0, 1.0, 5)[:, None]
    else:  # the code's words that begin with 24 - d zeros, without these zeros
        words, fewer = packing.golay_points(), max(0, 24 - d)
        words = words[np.all(words[:, :fewer] > 0, axis=1), fewer:]
        points = words * math.sqrt(24 / (24 - fewer))  # scaled back to unit vectors
    return math.log(len(points)), packing.smallest_distance(points)


def _traced_family(family: Array, d: Array) -> tuple[Array, Array]:
    """Return the log size and the smallest distance of a packing, without building its points.

    The shortened Golay code of length d has 2^(d - 12) words, and any two words differ in at least
    8 places.
    """
    length = jnp.clip(jnp.asarray(d, float), SHORTEST, 24)
    of = lambda *each: jnp.select([family == SEGMENT, family == GOLAY], each[:2], each[2])
    sizes = (jnp.log(5.0), (length - 12) * jnp.log(2.0), packing.volume_lower(d, 0.5))
    return of(*sizes), of(0.5, jnp.sqrt(32.0 / length), 0.5)


def _packing_cases(size: Size) -> Instance:
    known = (
        (SEGMENT, 1),
        *((GOLAY, d) for d in range(24, SHORTEST - 1, -1)),
        *((MAXIMAL, d) for d in (4, 24, 60, 240)),
    )
    return stacked({"family": family, "d": d} for family, d in known)


def _packing_bound(i: Instance, size: Size) -> Sides:
    family, d = number(i["family"]), number(i["d"])
    points: ArrayLike
    eps: ArrayLike
    if traced(family, d):
        points, eps = _traced_family(family, d)
    else:
        points, eps = _family(family, min(max(d, SHORTEST), 24) if family == GOLAY else d)
    volume = packing.volume_upper(d, eps)
    return Sides(
        lhs=points,
        rhs={
            "printed": array_module(d, eps).minimum(volume, packing.maurey(d, eps)),
            "corrected": volume,
            "corrected (Golay)": volume,
            "control": volume / 2,
        },
    )


def _meets_lemma_41(i: Instance, size: Size) -> dict[str, ArrayLike]:
    d = int(i["d"])
    eps = _family(int(i["family"]), d)[1]
    return {
        "points of the unit ball of the 2-norm (Lemma 41; used so in Appendix C.3)": d >= 1,
        "at pairwise distance eps in (0, 2] (Lemma 41: an eps-packing)": 0 < eps <= 2,
        "so many points exist by the volume bound, for a maximal packing and eps < 1": (
            int(i["family"]) == MAXIMAL and eps < 1
        ),
    }


PACKING = searched_on_host(
    id="qstr.lem41",
    label="Lemma 41",
    formula="log P <= min(d log(1 + 2/eps), (1 + log(1 + 2 d eps^2))/eps^2)",
    tex=r"\log P \le \left\{ d \log\left(1 + \frac{2}{\epsilon}\right) \right\} \wedge \left\{ "
    r"\frac{1}{\epsilon^2} \left(1 + \log(1 + 2 d \epsilon^2)\right) \right\}",
    kind="inequality",
    judges=(
        packing.volume_upper,
        packing.maurey,
        packing.volume_lower,
        packing.golay_points,
        packing.smallest_distance,
    ),
    cases=_packing_cases,
    evaluate=_packing_bound,
    hypotheses=lambda i, size: {
        "the family fits into R^d": (i["family"] != GOLAY) | (i["d"] >= SHORTEST)
    },
    forms=(
        Form(
            name="printed",
            erratum="E2",
            cites="Lemma 41, Appendix D",
            counterexample=Counterexample(
                instance={"family": MAXIMAL, "d": 60},
                ratio=2.3448889743935233,
                meets=_meets_lemma_41,
            ),
            note=(
                "A maximal 1/2-packing of the unit ball of R^d has at least 2^d points. At d = "
                "60, d log 2 = 41.6 exceeds the printed bound 17.7. The log size of the packing, "
                "divided by the printed bound, grows like d / log d, so no constant repairs the "
                "bound. The second branch of the printed "
                "minimum is Maurey's bound, which covers the l_1 ball and not the l_2 ball."
            ),
        ),
        Form(
            name="corrected",
            note=(
                "The corrected bound is the first branch of the printed minimum; this branch "
                "compares volumes."
            ),
            equality="equally spaced points on a segment",
        ),
        Form(
            name="corrected (Golay)",
            hypotheses=lambda i, size: {"Golay code": i["family"] == GOLAY},
            note=(
                "The check applies the first branch of the minimum, the volume bound, to the 4096 "
                "words of the Golay code, and to shortened versions of this code."
            ),
        ),
    ),
    control="half the volume branch",
    sizes=({},),
    source="Lemma 41",
    budget=Budget(samples=8, restarts=4, steps=20),
)

STATEMENTS = (NORMS, VARIANCE, PACKING)
