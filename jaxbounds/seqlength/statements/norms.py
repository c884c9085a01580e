"""Sections 2.1 and 3.4: matrix norms."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.norms import frobenius_norm, induced_norm, spectral_norm, vector_norm
from jaxbounds.seqlength.norms import column_norm, literal_norm, row_norm
from jaxbounds.seqlength.statements.instances import FEW, normals, signed_vertices, stacked
from jaxbounds.statements import Form, Sides, Statement


def _matrix(key, size):
    return {"W": jax.random.normal(key, (size["k"], size["d"]))}


def _norm_definition(instance):
    W = instance["W"]
    columns = jnp.sqrt(jnp.sum(W**2, axis=0))
    sums = jnp.sum(jnp.abs(W), axis=0)
    by_hand = jnp.stack([jnp.sum(columns), jnp.max(sums), jnp.sum(sums), jnp.sum(W**2) ** 0.5])
    pairs = ((2, 1), (1, math.inf), (1, 1), (2, 2))
    literal = jnp.stack([literal_norm(W, q) for q, _ in pairs])
    return Sides(
        lhs={
            "printed": literal,
            "corrected": jnp.stack([column_norm(W, q, p) for q, p in pairs]),
            "control": jnp.stack([row_norm(W, q, p) for q, p in pairs]),
        },
        rhs={"printed": by_hand, "corrected": by_hand, "control": by_hand},
    )


MATRIX_NORM = Statement(
    id="seqlength.sec2.1-norm",
    label="Section 2.1, ||W||_{q,p}",
    formula="||W||_{q,p} = || (||W_{:,1}||_q, .., ||W_{:,d}||_q) ||_p",
    kind="identity",
    sample=_matrix,
    evaluate=_norm_definition,
    sizes=({"k": 2, "d": 3},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E14",
            note="the outer norm is printed as l_r, r the number of rows",
            counterexample={"W": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]},
        ),
        Form(name="corrected", note="the outer norm is l_p"),
    ),
    control="the same norm over rows",
    budget=FEW,
    source="Section 2.1",
)

OPERATOR_PAIRS = ((1, 3), (3, math.inf), (2, 2), (math.inf, 1))


def _operator_norm(instance):
    W, x = instance["W"], instance["x"]
    worst = lambda V: jnp.max(
        jnp.stack(
            [
                vector_norm(W @ x, p) / (vector_norm(x, q) * induced_norm(V, float(q), float(p)))
                for q, p in OPERATOR_PAIRS
            ]
        )
    )
    return Sides(
        lhs={"printed": worst(W), "control": worst(W / 1.5)}, rhs={"printed": 1.0, "control": 1.0}
    )


def _operator_cases(size):
    """Matrices with each vertex of the l_1 ball: one of them attains the norm from l_1."""
    rng = np.random.default_rng(0)
    return stacked(
        [
            {"W": W, "x": x}
            for W in rng.normal(size=(8, size["k"], size["d"]))
            for x in signed_vertices(size["d"])
        ]
    )


OPERATOR_NORM = Statement(
    id="seqlength.sec2.1-operator",
    label="Section 2.1, ||W||_{q->p}",
    formula="||Wx||_p <= ||W||_{q->p} ||x||_q, closed forms for 1->3, 3->inf, 2->2, inf->1",
    kind="inequality",
    sample=lambda key, size: normals(key, {"W": (size["k"], size["d"]), "x": (size["d"],)}),
    cases=_operator_cases,
    evaluate=_operator_norm,
    search="none",
    sizes=({"k": 3, "d": 2},),
    forms=(Form(name="printed", equality="x the maximiser, as e_i for 1->p"),),
    control="norms divided by 1.5",
    budget=FEW,
    source="Section 2.1",
)


def _rank_one(size):
    rng = np.random.default_rng(0)
    return {"W": rng.normal(size=(8, size["k"], 1)) * rng.normal(size=(8, 1, size["d"]))}


SPECTRAL = Statement(
    id="seqlength.sec2.1-frobenius",
    label="Section 2.1, ||W||_{2->2} <= ||W||_F",
    formula="the largest singular value is at most ||W||_F",
    kind="inequality",
    sample=_matrix,
    cases=_rank_one,
    evaluate=lambda i: Sides(
        spectral_norm(i["W"]),
        {"printed": frobenius_norm(i["W"]), "control": frobenius_norm(i["W"]) / math.sqrt(2.0)},
    ),
    search="none",
    sizes=({"k": 2, "d": 3},),
    forms=(Form(name="printed", equality="W of rank one"),),
    control="||W||_F / sqrt 2",
    budget=FEW,
    source="Section 2.1",
)


def _observation(instance):
    W = instance["W"]
    d = W.shape[1]
    worst = jnp.max(
        jnp.stack([column_norm(W, p, 1) / column_norm(W, p, math.inf) for p in (1, 2, 3)])
    )
    return Sides(worst, {"printed": float(d), "control": d - 1.0})


def _equal_columns(size):
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(8, size["k"], 1))
    return {"W": columns * np.ones((1, 1, size["d"]))}


OBSERVATION = Statement(
    id="seqlength.sec3.4",
    label="Section 3.4, ||W||_{p,1} <= d ||W||_{p,inf}",
    formula="||W||_{p,1} <= d ||W||_{p,infinity}, p = 1, 2, 3",
    kind="inequality",
    sample=_matrix,
    cases=_equal_columns,
    evaluate=_observation,
    search="none",
    sizes=({"k": 2, "d": 3},),
    forms=(Form(name="printed", equality="columns of equal norm"),),
    control="d - 1 for d",
    budget=FEW,
    source="Section 3.4",
)


STATEMENTS = (
    MATRIX_NORM,
    OPERATOR_NORM,
    SPECTRAL,
    OBSERVATION,
)
