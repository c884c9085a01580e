"""Sections 2.1 and 3.4: matrix norms."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.claims.sets import Reals
from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Form,
    Instance,
    Sides,
    Size,
)
from jaxbounds.numerics.norms import frobenius_norm, induced_norm, spectral_norm, vector_norm
from jaxbounds.seqlength.linear_bounds import lemma_3_3, lemma_3_4_leading, lemma_3_6
from jaxbounds.seqlength.norms import column_norm, literal_norm, operator_norm_lower, row_norm
from jaxbounds.seqlength.statements import instances as draw


def _norm_definition(instance: Instance, size: Size) -> Sides:
    W = instance["W"]
    columns = jnp.sqrt(jnp.sum(W**2, axis=0))
    sums = jnp.sum(jnp.abs(W), axis=0)
    by_hand = jnp.stack([jnp.sum(columns), jnp.max(sums), jnp.sum(sums), jnp.sum(W**2) ** 0.5])
    pairs = ((2, 1), (1, math.inf), (1, 1), (2, 2))
    every = lambda norm: jnp.stack([norm(W, q, p) for q, p in pairs])
    literal = jnp.stack([literal_norm(W, q) for q, _ in pairs])
    return Sides.pairs(
        {
            "printed": (literal, by_hand),
            "corrected": (every(column_norm), by_hand),
            "control": (every(row_norm), by_hand),
        }
    )


MATRICES, SIZES = {"W": Reals(("k", "d"))}, ({"k": 2, "d": 3},)


def _any_matrix(instance: Instance, size: Size) -> dict[str, Any]:
    W = np.asarray(instance["W"])
    return {"W is a real r x d matrix, q and p in N (Section 2.1)": W.ndim == 2 and W.size > 0}


MATRIX_NORM = draw.identity(
    id="seqlength.sec2.1.norm",
    label="Section 2.1, ||W||_{q,p}",
    tex=r"\|W\|_{q,p} = \left\| \left( \|W_{:,1}\|_q, \ldots, \|W_{:,d}\|_q \right) \right\|_r",
    formula="||W||_{q,p} = || (||W_{:,1}||_q, .., ||W_{:,d}||_q) ||_r; l_p is meant",
    over=MATRICES,
    sizes=SIZES,
    evaluate=_norm_definition,
    judges=(column_norm, literal_norm),
    forms=(
        Form(
            name="printed",
            cites="Section 2.1, the definition of ||W||_{q,p}",
            erratum="E14",
            note="The paper prints the outer norm as l_r, where r is the number of rows.",
            counterexample=Counterexample(
                instance={"W": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]},
                ratio=0.40714763819101274,
                meets=_any_matrix,
            ),
        ),
        Form(
            name="corrected",
            note="The outer norm, which combines the norms of the columns, is l_p.",
        ),
    ),
    control="the same norm over rows",
)


OPERATOR_PAIRS = ((1, 3), (3, math.inf), (2, 2), (math.inf, 1))


def _operator_norm(instance: Instance, size: Size) -> Sides:
    W, x = instance["W"], instance["x"]

    def worst(V: Array) -> Array:
        norms = [vector_norm(x, q) * induced_norm(V, float(q), float(p)) for q, p in OPERATOR_PAIRS]
        images = [vector_norm(W @ x, p) for _, p in OPERATOR_PAIRS]
        return jnp.max(jnp.stack(images) / jnp.stack(norms))

    exact = induced_norm(W, 4.0, math.inf)
    found = operator_norm_lower(jax.random.key(0), W, 4.0, math.inf, starts=8, steps=20)
    return Sides.pairs(
        {
            "printed": (worst(W), 1.0),
            "derived search": (found, exact),
            "control": (worst(W / 1.5), 1.0),
        }
    )


def _operator_cases(size: Size) -> Instance:
    drawn = np.random.default_rng(0).normal(size=(8, size["k"], size["d"]))
    return draw.stacked([{"W": W, "x": x} for W in drawn for x in draw.signed_vertices(size["d"])])


OPERATOR_NORM = draw.inequality(
    id="seqlength.sec2.1.operator",
    label="Section 2.1, ||W||_{q->p}",
    tex=r"\|W x\|_p \le \|W\|_{q \to p} \|x\|_q",
    formula="||Wx||_p <= ||W||_{q->p} ||x||_q, closed forms for l_1 to l_3, l_3 to"
    " l_inf, l_2, l_inf to l_1",
    over={"W": Reals(("k", "d")), "x": Reals("d")},
    cases=_operator_cases,
    evaluate=_operator_norm,
    judges=(induced_norm, operator_norm_lower),
    sizes=({"k": 3, "d": 2},),
    assumptions="the definition is a supremum; the check tests its upper bound for all pairs, and "
    "its attainment only for l_1 to l_3",
    forms=(
        Form(
            name="printed",
            cites="Section 2.1, the definition of ||W||_{q->p}",
            equality="x the maximiser, as e_i for 1->p",
        ),
        Form(
            name="derived search",
            note="Boyd's power iteration estimates norms without a closed form. The check runs it "
            "for 4->inf, which has a closed form.",
            equality="every W, at the row of largest norm",
        ),
    ),
    control="norms divided by 1.5",
)


def _spectral(instance: Instance, size: Size) -> Sides:
    whole = frobenius_norm(instance["W"])
    return Sides(
        spectral_norm(instance["W"]), {"printed": whole, "control": whole / math.sqrt(2.0)}
    )


def _rank_one(size: Size) -> Instance:
    rng = np.random.default_rng(0)
    return {"W": rng.normal(size=(8, size["k"], 1)) * rng.normal(size=(8, 1, size["d"]))}


SPECTRAL = draw.inequality(
    id="seqlength.sec2.1.frobenius",
    label="Section 2.1, ||W||_{2->2} <= ||W||_F",
    tex=r"\|W\|_{2 \to 2} \le \|W\|_F",
    formula="the largest singular value is at most ||W||_F",
    over=MATRICES,
    sizes=SIZES,
    cases=_rank_one,
    evaluate=_spectral,
    judges=(spectral_norm, frobenius_norm),
    forms=(
        Form(
            name="printed",
            cites="Section 2.1, 'we have ||W||_{2->2} <= ||W||_F for any matrix W'",
            equality="W of rank one",
        ),
    ),
    control="||W||_F / sqrt 2",
)


def _observation(instance: Instance, size: Size) -> Sides:
    W, d = instance["W"], size["d"]
    ratios = [column_norm(W, p, 1) / column_norm(W, p, math.inf) for p in (1, 2, 3)]
    return Sides(jnp.max(jnp.stack(ratios)), {"printed": float(d), "control": d - 1.0})


def _equal_columns(size: Size) -> Instance:
    columns = np.random.default_rng(0).normal(size=(8, size["k"], 1))
    return {"W": columns * np.ones((1, 1, size["d"]))}


OBSERVATION = draw.inequality(
    id="seqlength.sec3.4",
    label="Section 3.4, ||W||_{p,1} <= d ||W||_{p,inf}",
    tex=r"\|W\|_{p,1} \le d \, \|W\|_{p,\infty}",
    formula="||W||_{p,1} <= d ||W||_{p,infinity}, p = 1, 2, 3",
    over=MATRICES,
    sizes=SIZES,
    cases=_equal_columns,
    evaluate=_observation,
    judges=(column_norm,),
    forms=(
        Form(
            name="printed",
            cites="Section 3.4, 'for any matrix W, ||W||_{p,1} <= d ||W||_{p,inf}'",
            equality="columns of equal norm",
        ),
    ),
    control="d - 1 for d",
)


def _converted(instance: Instance, size: Size) -> Sides:
    x, k, d = draw.numbers(instance, "x", "k", "d")
    direct = lemma_3_3(x, k=k, d=d)
    return Sides.pairs(
        {
            "printed (Lemma 3.4)": (direct, lemma_3_4_leading(d * x, k=k, d=d)),
            "printed (Lemma 3.6)": (direct, lemma_3_6(d * x, k=k, d=d)),
            "control": (direct, lemma_3_6(d * x, k=k, d=d) / d**2),
        }
    )


STRONGER = (
    "Section 3.4, 'we would have a d^2 B_w^2 term' and 'lemma 3.3 is a stronger bound than it lets"
    " on'"
)

CONVERTED = draw.random_search_on_host(
    id="seqlength.sec3.4.converted",
    label="Section 3.4, the lemmas converted",
    tex=r"d \, x^2 \ln(2k + 1) \le (d x)^2 \ln(2dk + 1), \quad d \, x^2 \ln(2k + 1) \le (d "
    r"x)^2 \ln(dk), \quad x = \frac{B_w B_x}{\epsilon}",
    formula="d x^2 ln(2k + 1) <= (d x)^2 ln(2dk + 1), (d x)^2 ln(dk) for ||W||_{p,1} <= d B_w",
    budget=Budget(samples=1, restarts=4, steps=20),
    cases=draw.grid(x=(0.5, 2.0, 10.0), k=(1, 4, 1000), d=(2, 3, 50)),
    project=draw.positive("x"),
    evaluate=_converted,
    judges=(lemma_3_3, lemma_3_4_leading, lemma_3_6),
    assumptions="d >= 2; the check compares the bounds only as numbers, because their inputs are "
    "in different balls",
    sizes=({"largest": 1000},),
    forms=(
        Form(
            name="printed (Lemma 3.4)",
            cites=STRONGER,
            note="The check compares the bound of Lemma 3.3 with the leading term of Lemma 3.4's "
            "bound.",
        ),
        Form(name="printed (Lemma 3.6)", cites=STRONGER),
    ),
    control="without the factor d^2",
)

STATEMENTS = (MATRIX_NORM, OPERATOR_NORM, SPECTRAL, OBSERVATION, CONVERTED)
