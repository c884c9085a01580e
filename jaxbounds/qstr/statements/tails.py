"""Statements about Lemma 12: the largest norm of a token."""

import math

import numpy as np
import scipy
from jax.typing import ArrayLike

from jaxbounds.claims.statements import Counterexample, Form, Instance, Sides, Size
from jaxbounds.numerics.arrays import array_module
from jaxbounds.qstr import bounds
from jaxbounds.qstr.statements.common import cases_on_host


def _radius_cases(size: Size) -> Instance:
    law, r = np.meshgrid([EXCLUSIVE, INDEPENDENT, GAUSSIAN], np.linspace(1.01, 4.0, 9))
    radius = math.sqrt(math.e * size["d"]) * r.ravel()
    return {"law": law.ravel(), "r": radius}


EXCLUSIVE, INDEPENDENT, GAUSSIAN = range(3)
"""Integers for three laws (distributions) of the nN tokens x; an instance stores one integer.

EXCLUSIVE: |x| in {0, r}, and at most one token is not 0. INDEPENDENT: |x| in {0, r}, with
independent tokens. GAUSSIAN: independent normal tokens.
"""


def _radius(i: Instance, size: Size) -> Sides:
    n, N, d, r = size["n"], size["N"], size["d"], float(i["r"])
    law = int(i["law"])
    # The probability for one token: the largest that Assumption 1 allows, or that of the chi law.
    beyond = (
        scipy.special.gammaincc(d / 2, r**2 / 2) if law == GAUSSIAN else bounds.largest_tail(r, d=d)
    )
    if law == EXCLUSIVE:
        exact = min(1.0, n * N * beyond)
    else:
        exact = -math.expm1(n * N * math.log1p(-beyond))
    at_r_x = bounds.largest_tail(bounds.token_radius(**size), d=d)
    return Sides.pairs(
        {
            "printed": (exact, bounds.token_tail(r, **size)),
            "printed r_x": (min(1.0, n * N * at_r_x), (n * N) ** -0.5),
            "control": (exact, bounds.token_tail(r, **size, C_x=0.8)),
        }
    )


TOKEN_TAIL = cases_on_host(
    id="qstr.lem12",
    label="Lemma 12",
    formula="P(max |x_j| >= r) <= nN exp(-r^2/(2 C_x e d))",
    tex=r"\mathbb{P}\left(\max_{i \in [n], j \in [N]} \|x_j^{(i)}\|_2 \ge r_x\right) \le "
    r"n N e^{-r_x^2 / (2 C_x e d)}",
    kind="inequality",
    judges=(bounds.token_tail, bounds.token_radius, bounds.largest_tail),
    cases=_radius_cases,
    evaluate=_radius,
    forms=(
        Form(
            name="printed",
            cites="Lemma 12, first display",
            equality="|x| in {0, r} with the largest probability that Assumption 1 allows, at most "
            "one of the nN tokens not 0 (the prompts may be dependent)",
            note="The check compares the bound with exact probabilities. Dependent tokens attain "
            "the bound at every radius for which the bound is below 1.",
        ),
        Form(
            name="printed r_x",
            cites="Lemma 12, second display",
            equality="|x| in {0, r_x} with the largest probability that Assumption 1 allows, at "
            "most one of the nN tokens not 0",
            note="At r_x = sqrt(3 C_x e d log(nN)) the bound on the probability is (nN)^{-1/2}.",
        ),
    ),
    control="C_x = 4/5",
    sizes=({"n": 1, "N": 4, "d": 2}, {"n": 10, "N": 10, "d": 5}),
    assumptions="C_x = 1; r^2 >= C_x e d, below which the bound exceeds 1 for nN >= 2",
    source="Lemma 12",
)


def _small_radius(i: Instance, size: Size) -> Sides:
    n, N, d = size["n"], size["N"], size["d"]
    xp = array_module(i["r"])
    r = xp.sqrt(float(d)) * i["r"]
    bound = lambda r: bounds.token_tail(r, n=n, N=N, d=d, checked=False)
    exact = xp.minimum(1.0, n * N * bounds.largest_tail(r, d=d))
    return Sides.pairs(
        {
            "printed": (exact, bound(r)),
            "corrected": (exact, bound(r)),
            "control": (exact, bound(1.25 * r)),
        }
    )


def _meets_lemma_12(i: Instance, size: Size) -> dict[str, ArrayLike]:
    """Return a dictionary: each hypothesis of Lemma 12, and whether the example below meets it.

    The example has n = N = 1, x uniform on the sphere of radius sqrt(d), and y = <u, x>. The
    example violates q < N (Section 2), and the proof of Lemma 34 does not use q < N.
    """
    d = size["d"]
    orders = np.array([1.0, 1.5, 2.0, 4.0, 16.0, 256.0])
    # |x| = sqrt(d) surely, and |<u, x>| never exceeds it.
    return {
        "(E|x|^r)^(1/r) <= sqrt(C_x d r) for r >= 1, C_x = 1 (Assumption 1)": (
            np.all(math.sqrt(d) <= np.sqrt(d * orders))
        ),
        "(E|y|^r)^(1/r) <= sqrt(C_y r^s) for r >= 1, C_y = d, s = 1 (Assumption 1)": (
            np.all(math.sqrt(d) <= np.sqrt(d * orders))
        ),
        "any r_x > 0 (Lemma 12)": i["r"] > 0,
        "q < N (Section 2) dropped as in the proof of Lemma 34, 'with n = N = 1'": (
            size["n"] == size["N"] == 1
        ),
    }


SMALL_RADIUS = cases_on_host(
    id="qstr.lem12.small",
    label="Lemma 12 (any r > 0)",
    formula="P(max |x_j| >= r) <= nN exp(-r^2/(2 C_x e d)) for every r > 0, n = N = 1 too",
    tex=r"\mathbb{P}\left(\max_{i \in [n], j \in [N]} \|x_j^{(i)}\|_2 \ge r_x\right) \le "
    r"n N e^{-r_x^2 / (2 C_x e d)} \quad (r_x > 0)",
    kind="inequality",
    judges=(bounds.token_tail, bounds.largest_tail),
    cases=lambda size: {"r": np.array([0.3, 0.99, 1.65, 2.0, 2.25, 2.5, 3.0])},
    evaluate=_small_radius,
    forms=(
        Form(
            name="printed",
            cites="Lemma 12: 'for any r_x > 0 we have'",
            erratum="E6",
            reading="N may be 1",
            counterexample=Counterexample(
                instance={"r": 0.99}, ratio=1.197551816758194, meets=_meets_lemma_12
            ),
            note="The counterexample has nN = 1, with x uniform on the sphere of radius sqrt(d). "
            "The counterexample meets Assumption 1 with C_x = 1. The event |x| > r has probability "
            "one, but the bound on its probability is "
            "exp(-0.99^2/(2e)) = 0.835. The counterexample violates only q < N (Section 2), a "
            "hypothesis that the proof of Lemma 34 drops.",
        ),
        Form(
            name="corrected",
            hypotheses=lambda i, size: {
                "nN >= 2 or r^2 >= C_x e d": (size["n"] * size["N"] >= 2 or i["r"] ** 2 >= math.e)
            },
            equality="|x| in {0, r} with the largest probability that Assumption 1 allows, one "
            "token",
            note="This version of Lemma 12 assumes nN >= 2 or r^2 >= C_x e d. If nN >= 2 and "
            "r^2 < C_x e d, the bound exceeds 2 exp(-1/2) > 1. If r^2 >= C_x e d, the proof uses "
            "the moment E|x|^p with p = r^2 / (C_x e d) >= 1, as Assumption 1 allows.",
        ),
    ),
    control="the bound at 5/4 of the radius",
    sizes=({"n": 1, "N": 1, "d": 3}, {"n": 1, "N": 2, "d": 3}),
    assumptions="one token, with the law that has the largest tail at r; r is in units of "
    "sqrt(d), and C_x = 1",
    source="Lemma 12; used at nN = 1 in Lemma 34",
)


STATEMENTS = (TOKEN_TAIL, SMALL_RADIUS)
