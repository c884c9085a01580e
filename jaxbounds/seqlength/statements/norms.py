"""Sections 2.1 and 3.4: matrix norms."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.norms import frobenius_norm, induced_norm, spectral_norm, vector_norm
from jaxbounds.seqlength.norms import column_norm, literal_norm, operator_norm_lower, row_norm
from jaxbounds.seqlength.statements import instances as draw
from jaxbounds.statements import Counterexample, Form, Instance, Sides, Size, Statement


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


MATRIX_NORM = Statement(
    id="seqlength.sec2.1-norm",
    label="Section 2.1, ||W||_{q,p}",
    formula="||W||_{q,p} = || (||W_{:,1}||_q, .., ||W_{:,d}||_q) ||_p",
    **draw.IDENTITY,
    sample=draw.matrix,
    evaluate=_norm_definition,
    judges=(column_norm, literal_norm),
    sizes=({"k": 2, "d": 3},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E14",
            note="the outer norm is printed as l_r, r the number of rows",
            counterexample=Counterexample(
                instance={"W": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]},
                size={"k": 2, "d": 3},
                ratio=0.40714763819101274,
            ),
        ),
        Form(name="corrected", note="the outer norm is l_p"),
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
    """Matrices with each vertex of the l_1 ball: one of them attains the norm from l_1."""
    drawn = np.random.default_rng(0).normal(size=(8, size["k"], size["d"]))
    return draw.stacked([{"W": W, "x": x} for W in drawn for x in draw.signed_vertices(size["d"])])


OPERATOR_NORM = Statement(
    id="seqlength.sec2.1-operator",
    label="Section 2.1, ||W||_{q->p}",
    formula="||Wx||_p <= ||W||_{q->p} ||x||_q, closed forms for 1->3, 3->inf, 2->2, inf->1",
    **draw.INEQUALITY,
    sample=lambda key, size: draw.normals(key, {"W": (size["k"], size["d"]), "x": (size["d"],)}),
    cases=_operator_cases,
    evaluate=_operator_norm,
    judges=(induced_norm, operator_norm_lower),
    sizes=({"k": 3, "d": 2},),
    forms=(
        Form(name="printed", equality="x the maximiser, as e_i for 1->p"),
        Form(
            name="derived search",
            note="Boyd's power iteration, for pairs without a closed form, here for 4->inf",
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


SPECTRAL = Statement(
    id="seqlength.sec2.1-frobenius",
    label="Section 2.1, ||W||_{2->2} <= ||W||_F",
    formula="the largest singular value is at most ||W||_F",
    **draw.INEQUALITY,
    sample=draw.matrix,
    cases=_rank_one,
    evaluate=_spectral,
    judges=(spectral_norm, frobenius_norm),
    sizes=({"k": 2, "d": 3},),
    forms=(Form(name="printed", equality="W of rank one"),),
    control="||W||_F / sqrt 2",
)


def _observation(instance: Instance, size: Size) -> Sides:
    W, d = instance["W"], size["d"]
    ratios = [column_norm(W, p, 1) / column_norm(W, p, math.inf) for p in (1, 2, 3)]
    return Sides(jnp.max(jnp.stack(ratios)), {"printed": float(d), "control": d - 1.0})


def _equal_columns(size: Size) -> Instance:
    columns = np.random.default_rng(0).normal(size=(8, size["k"], 1))
    return {"W": columns * np.ones((1, 1, size["d"]))}


OBSERVATION = Statement(
    id="seqlength.sec3.4",
    label="Section 3.4, ||W||_{p,1} <= d ||W||_{p,inf}",
    formula="||W||_{p,1} <= d ||W||_{p,infinity}, p = 1, 2, 3",
    **draw.INEQUALITY,
    sample=draw.matrix,
    cases=_equal_columns,
    evaluate=_observation,
    judges=(column_norm,),
    sizes=({"k": 2, "d": 3},),
    forms=(Form(name="printed", equality="columns of equal norm"),),
    control="d - 1 for d",
)


STATEMENTS = (MATRIX_NORM, OPERATOR_NORM, SPECTRAL, OBSERVATION)
