"""Lemmas 3.4 and 3.5 (covers for row norms), and Section 2.5 (a bound by parameter counting)."""

import functools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets import Box, Integers, Matrices
from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Form,
    Instance,
    Sides,
    Size,
    Statement,
)
from jaxbounds.numerics.arrays import array_module
from jaxbounds.seqlength.comparisons import covering_crossover
from jaxbounds.seqlength.linear_bounds import (
    lemma_3_4_explicit,
    lemma_3_4_leading,
    lemma_3_5_corrected_leading,
    lemma_3_6,
    volumetric,
    volumetric_lower_column,
)
from jaxbounds.seqlength.linear_covers import cover_by_truncation, error_on_l1_ball
from jaxbounds.seqlength.statements import instances as draw
from jaxbounds.seqlength.statements.corrections import log_codes


def _row_cases(size: Size) -> Instance:
    rng, rows, k, d = np.random.default_rng(0), [], size["k"], size["d"]
    for _ in range(16):
        row, x = rng.normal(size=d), np.exp(rng.uniform(0.0, 2.0))
        for one in (row / np.linalg.norm(row), np.eye(d)[0]):
            rows.append({"W": np.outer(np.eye(k)[0], one), "x": x})
    # Two rows of norm just below B / 2 (level 2), with each entry at its step B / (2 x).
    x = math.sqrt(d) * (1.0 + 1e-7)
    step = np.full((k, d), (0.5 + 1e-9) / x) * (np.arange(k) < 2)[:, None]
    rows.append({"W": step, "x": x})
    # One row of norm B, with one entry just below its step B / x.
    near = math.cos(1e-6) * np.eye(d)[0] + math.sin(1e-6) * np.eye(d)[1]
    rows.append({"W": np.outer(np.eye(k)[0], near), "x": 1.0})
    return draw.stacked(rows)


def _lemma_3_4(instance: Instance, size: Size) -> Sides:
    W, x = instance["W"], instance["x"]
    What, code = cover_by_truncation(W, 1.0, 1.0 / x)
    error = error_on_l1_ball(W, What, 1.0)
    return Sides.pairs(
        {
            "sharpened S3": (error, 1.0 / x),
            "sharpened S3 code": (jnp.sum(jnp.abs(code)), 2.0 * x**2),
            "control": (error, 0.3 / x),
        }
    )


LEMMA_3_4 = draw.random_search(
    id="seqlength.lemma3.4",
    label="Lemma 3.4, an explicit cover",
    tex=r"\max_i B_x \left\| (W - \hat{W}) e_i \right\|_2 \le \epsilon, \quad \sum_{j,i} "
    r"|Z_{ji}| \le 2 x^2, \quad \|W^\top\|_{2,1} \le B_w",
    formula="||W^T||_{2,1} <= B_w: truncating rows moves columns by less than eps / B_x,"
    " with integer codes sum |Z| <= 2 x^2",
    budget=Budget(samples=256, restarts=2, steps=30, batch=128),
    over={"W": Matrices(("k", "d"), norm="row sum"), "x": Box(1, math.inf)},
    cases=_row_cases,
    evaluate=_lemma_3_4,
    judges=(cover_by_truncation, error_on_l1_ball),
    sizes=({"k": 4, "d": 3},),
    forms=(
        Form(
            name="sharpened S3",
            note="The cover rounds row j with the step eta_j = eps' 2^(-l_j/2). The "
            "integers l_j satisfy sum 2^(-l_j) <= 1, so sum eta_j^2 <= eps'^2. Rounding thus moves "
            "each column by at most eps' = eps / B_x.",
            equality="one row of norm B, an entry just below its step B / x",
        ),
        Form(
            name="sharpened S3 code",
            note="The code of a matrix has at most 2x^2 letters, so ln N <= floor(2x^2) "
            "ln(2kd levels + 1). Here `levels` counts the possible levels (ranges of the norm) of "
            "a row.",
            equality="two rows just below B / 2 with entries at their steps",
        ),
    ),
    control="three tenths of the radius",
    source="Lemma 3.4, proved without Lemma 3.5",
)


def _codes(instance: Instance, size: Size) -> Sides:
    x, k, d = draw.numbers(instance, "x", "k", "d")
    listed, control = log_codes(x, k, d, 2.0), 1.0 + log_codes(x, k, d, 2.0, (1,))
    explicit = lemma_3_4_explicit(x, k=k, d=d)
    return Sides(explicit, {"sharpened S3": listed, "control": control})


CODES = draw.identity_on_host(
    id="seqlength.lemma3.4.count",
    label="Lemma 3.4, the number of codes",
    tex=r"\ln \mathcal{N} = \lfloor 2 x^2 \rfloor \ln\left( 2 k d \left( \lceil \log_2(2 x^2) "
    r"\rceil + 1 \right) + 1 \right)",
    formula="ln N = floor(2 x^2) ln(2kd levels + 1), levels = ceil(log2(2 x^2)) + 1; 0 for x < 1",
    cases=draw.grid(x=(0.5, 1.0, 1.3, 2.0, 5.0), k=(1, 4), d=(1, 3)),
    evaluate=_codes,
    judges=(lemma_3_4_explicit,),
    sizes=({"k": 4, "d": 3},),
    forms=(
        Form(
            name="sharpened S3",
            note="The cover encodes each matrix as a word. The check lists and counts all letters; "
            "a letter names an entry of the matrix, a sign and a level.",
        ),
    ),
    control="without signs",
    source="Lemma 3.4, proved without Lemma 3.5",
)


def _row_sizes(instance: Instance, size: Size) -> Sides:
    x, k, d = draw.numbers(instance, "x", "k", "d")
    explicit = lemma_3_4_explicit(x, k=k, d=d)
    packing, leading = volumetric_lower_column(x, k=k), lemma_3_4_leading(x, k=k, d=d)
    # No open ball of radius eps contains two points at distance 2 eps.
    xp = array_module(x, k, d)
    points = xp.where(x >= 2, xp.log(2 * k * d), 0.0)
    return Sides.pairs(
        {
            "printed": (packing, leading),
            "printed, constant 100": (packing, 100.0 * leading),
            "sharpened S3": (points, explicit),
            "control": (points, explicit / 10.0),
        }
    )


def _in_the_class(instance: Instance, size: Size) -> dict[str, Any]:
    k, d = int(instance["k"]), int(instance["d"])
    v = np.ones(k) / math.sqrt(k)
    columns = np.array([np.linalg.norm(v), *[0.0] * (d - 1)])
    inputs = np.concatenate([np.eye(d), np.zeros((1, d))])
    return {
        "||W||_{2,1} <= B_w = 1 (Lemma 3.4; columns: Section 2.1)": columns.sum() <= 1 + 1e-12,
        "||x||_1, ||x||_2 <= B_x = 1 on the inputs e_1, .., e_d, 0": np.abs(inputs).sum(1).max()
        <= 1,
        "N > d points (Lemma 3.4)": len(inputs) > d,
        "k, d >= 1": min(k, d) >= 1,
        "eps = 1 / x > 0": instance["x"] > 0,
    }


def _spread(k: int, ratio: float) -> Counterexample:
    instance = {"x": 2.0, "k": k, "d": 2}
    return Counterexample(instance=instance, ratio=ratio, meets=_in_the_class)


by_columns = functools.partial(
    Statement,
    kind="inequality",
    host=True,
    search="random",
    budget=Budget(samples=16, restarts=2, steps=20),
    cases=draw.grid(x=(0.5, 1.5, 2.0, 4.0, 10.0), k=(1, 4, 100, 10**6), d=(1, 2, 64)),
    project=draw.positive("x"),
    sizes=({"d": 64},),
)
"""Declare a statement about the printed Lemma 3.4 or 3.5, with column norms and any number k of
rows."""

LEMMA_3_4_SIZE = by_columns(
    id="seqlength.lemma3.4.size",
    label="Lemma 3.4",
    tex=r"\ln \mathcal{N}_\infty(\mathcal{F}, \epsilon, N, \|\cdot\|_2) \lesssim \frac{B_w^2 "
    r"B_x^2}{\epsilon^2} \ln(dk), \quad \|W\|_{2,1} \le B_w, \ \|x\|_1 \le B_x",
    formula="ln N <~ x^2 ln(dk) for ||W||_{2,1} <= B_w, ||x||_1 <= B_x",
    evaluate=_row_sizes,
    judges=(lemma_3_4_leading, lemma_3_4_explicit, volumetric_lower_column),
    forms=(
        Form(
            name="printed",
            cites="Lemma 3.4, its display",
            erratum="E3",
            reading="columns",
            note="If the norms are over columns, the class contains the matrix v e_1^T for every "
            "vector v with |v| <= B_w. The covering number N then satisfies ln N >= k ln x, with x "
            "= B_w B_x / eps.",
            counterexample=_spread(100, 3.2706005161953193),
        ),
        Form(
            name="printed, constant 100",
            cites="Lemma 3.4, its display, and 'hides logarithmic dependencies'",
            erratum="E3",
            reading="columns",
            note="No constant factor and no logarithm of x, B_w or eps repairs the bound: ln N "
            "grows like the number k of rows, and the bound grows like ln k.",
            counterexample=_spread(10**6, 119.43682059565394),
        ),
        Form(
            name="sharpened S3",
            note="The norms are over rows. The check compares the bound with the packing of the "
            "2kd matrices +-B_w e_j e_i^T; any two of these matrices are at least B_w B_x apart.",
        ),
    ),
    control="a tenth of the explicit bound",
)


def _lemma_3_5(instance: Instance, size: Size) -> Sides:
    x, k, d = draw.numbers(instance, "x", "k", "d")
    # The point e_1, one of e_1, .., e_d, 0, already separates the matrices v e_1^T. The print has d
    # in place of k.
    printed = lemma_3_5_corrected_leading(x, k=d, points=d + 1)
    counted = volumetric(x, parameters=k * d)
    return Sides(
        volumetric_lower_column(x, k=k),
        {
            "printed": printed,
            "printed, constant 100": 100.0 * printed,
            "corrected, counting": counted,
            "control": counted / 2.0,
        },
    )


LEMMA_3_5 = by_columns(
    id="seqlength.lemma3.5",
    label="Lemma 3.5",
    tex=r"\ln \mathcal{N}_\infty(\mathcal{F}, \epsilon, \{x_i\}_{i=1}^n, \|\cdot\|_2) "
    r"\lesssim \frac{B_w^2 B_x^2}{\epsilon^2} \ln(dn), \quad \|W\|_{2,1} \le B_w, \ "
    r"\|x_i\|_2 \le B_x",
    formula="ln N <~ x^2 ln(dn) for ||W||_{2,1} <= B_w, ||x_i||_2 <= B_x, n points",
    evaluate=_lemma_3_5,
    judges=(lemma_3_5_corrected_leading, volumetric_lower_column, volumetric),
    forms=(
        Form(
            name="printed",
            cites="Lemma 3.5, its display",
            erratum="E3",
            reading="columns",
            note="Lemma 3.5 has the fault of Lemma 3.4: the norms must be over rows, not over "
            "columns. With norms over rows, ln(kn) in place of ln(dn) is right. The "
            "counterexample has n = d + 1 points.",
            counterexample=_spread(100, 9.67132018086354),
        ),
        Form(
            name="printed, constant 100",
            cites="Lemma 3.5, its display, and 'hides logarithmic dependencies' (Lemma 3.4)",
            erratum="E3",
            reading="columns",
            note="No constant factor and no logarithm of x, B_w or eps repairs the bound: ln N "
            "grows like k, and the bound does not depend on k.",
            counterexample=_spread(10**6, 967.1320180863539),
        ),
        Form(
            name="corrected, counting",
            note="As in Section 2.5, the class lies in an l_2 ball of R^{kd}, and ||W x|| <= "
            "||W||_F B_x.",
        ),
    ),
    control="half of the parameters",
    source="Lemma 3.5, from Edelman et al. (2022), Lemma 4.6",
)


def _parameters(instance: Instance, size: Size) -> Sides:
    x, p = draw.numbers(instance, "x", "p")
    counted, cross = volumetric(x, parameters=p), covering_crossover(p)
    there = lemma_3_6(cross, k=p, d=1) / volumetric(cross, parameters=p)
    return Sides.pairs(
        {
            # Open intervals of length 2 cover an interval of length 2x, in units of epsilon.
            "derived": (p * math.log(math.floor(x) + 1) if p == 1 else p * math.log(x), counted),
            "derived crossover": (max(there, 1.0 / there), 1.0),
            "control": (p * math.log(2.0 * x), counted / 2.0),
        }
    )


COUNTING = draw.random_search_on_host(
    id="seqlength.sec2.5.counting",
    label="Section 2.5, parameter counting",
    tex=r"p \ln x \le \ln \mathcal{N} \le p \ln(1 + 2x)",
    formula="p ln x <= ln N <= p ln(1 + 2x); equal to x^2 ln(2p + 1) at the crossover",
    over={"x": Box(1, 1e6), "p": Integers(1, "p")},
    cases=draw.grid(x=(1.0, 1.9, 10.0, 1e3), p=(1, 2, 16, 1000)),
    evaluate=_parameters,
    judges=(volumetric, covering_crossover, lemma_3_6),
    sizes=({"p": 4096},),
    forms=(
        Form(
            name="derived",
            note="A comparison of volumes proves the lower and the upper bound on ln N. For p = 1 "
            "parameter the check uses the exact ln N.",
        ),
        Form(
            name="derived crossover",
            note="Lemma 3.6 and parameter counting agree at the crossover. For larger x = B_w B_x "
            "/ eps, parameter counting gives the smaller bound.",
            equality="always, to the tolerance of the root",
        ),
    ),
    control="half of the upper bound, at 2x",
)

STATEMENTS = (COUNTING, LEMMA_3_4, CODES, LEMMA_3_4_SIZE, LEMMA_3_5)
