"""Lemmas 3.4 and 3.5: covers for sums of column or row norms."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.norms import vector_norm
from jaxbounds.seqlength import linear_covers
from jaxbounds.seqlength.statements.instances import FEW, l1_sphere, l2_sphere, stacked
from jaxbounds.statements import Budget, Form, Sides, Statement


def _row_sample(key, size):
    a, b, c = jax.random.split(key, 3)
    lengths = jnp.abs(l1_sphere(a, (size["k"],)))
    W = lengths[:, None] * l2_sphere(b, (size["k"], size["d"]))
    return {"W": W, "x": jnp.exp(jax.random.uniform(c, (), minval=0.0, maxval=2.0))}


def _row_cases(size):
    """One row alone, random or with entries at multiples of its step."""
    rng, rows, k, d = np.random.default_rng(0), [], size["k"], size["d"]
    for _ in range(16):
        row, x = rng.normal(size=d), np.exp(rng.uniform(0.0, 2.0))
        corner = np.eye(d)[0]
        for one in (row / np.linalg.norm(row), corner):
            rows.append({"W": np.outer(np.eye(k)[0], one), "x": x})
    rows.append({"W": np.outer(np.eye(k)[0], np.eye(d)[0]), "x": 4.0})
    return stacked(rows)


def _lemma_3_4(instance):
    W, x = instance["W"], instance["x"]
    What, code = linear_covers.cover_by_truncation(W, 1.0, 1.0 / x)
    error = linear_covers.error_on_l1_ball(W, What, 1.0)
    weight = jnp.sum(jnp.abs(code))
    return Sides(
        lhs={"sharpened S3": error, "sharpened S3 code": weight, "control": error},
        rhs={"sharpened S3": 1.0 / x, "sharpened S3 code": 2.0 * x**2, "control": 0.3 / x},
    )


LEMMA_3_4 = Statement(
    id="seqlength.lemma3.4",
    label="Lemma 3.4, an explicit cover",
    formula="||W^T||_{2,1} <= B_w: truncating rows moves columns by less than eps / B_x,"
    " with integer codes sum |Z| <= 2 x^2",
    kind="inequality",
    sample=_row_sample,
    cases=_row_cases,
    hypotheses=lambda i: {
        "sum of row norms <= 1": jnp.sum(vector_norm(i["W"])) <= 1 + 1e-12,
        "x >= 1": i["x"] >= 1,
    },
    evaluate=_lemma_3_4,
    search="none",
    sizes=({"k": 4, "d": 3},),
    forms=(
        Form(name="sharpened S3", note="row steps eta_j = eps' 2^(-l_j/2), sum eta_j^2 <= eps'^2"),
        Form(
            name="sharpened S3 code",
            note="so ln N <= floor(2x^2) ln(2kd levels + 1)",
            equality="one row with entries at multiples of its step",
        ),
    ),
    control="three tenths of the radius",
    budget=Budget(samples=512, restarts=0, steps=0, batch=128),
    source="Lemma 3.4, proved without Lemma 3.5",
)


def _row_size_cases(size):
    rows = [
        {"x": x, "k": k, "d": d}
        for x in (2.0, 4.0, 10.0)
        for k in (1.0, 4.0, 100.0, 1e6)
        for d in (1.0, 2.0, 64.0)
    ]
    return stacked(rows)


def _row_sizes(instance):
    x, k, d = instance["x"], instance["k"], instance["d"]
    levels = jnp.ceil(jnp.log2(2.0 * x**2)) + 1.0
    explicit = jnp.floor(2.0 * x**2) * jnp.log(2.0 * k * d * levels + 1.0)
    packing = k * jnp.log(x)
    return Sides(
        lhs={
            "printed": packing,
            "printed, constant 100": packing,
            "sharpened S3": jnp.log(2.0 * k * d),
            "control": packing,
        },
        rhs={
            "printed": x**2 * jnp.log(d * k),
            "printed, constant 100": 100.0 * x**2 * jnp.log(d * k),
            "sharpened S3": explicit,
            "control": explicit,
        },
    )


_TALL = {"x": 2.0, "k": 1e6, "d": 2.0}

LEMMA_3_4_SIZE = Statement(
    id="seqlength.lemma3.4-size",
    label="Lemma 3.4",
    formula="ln N <~ x^2 ln(dk) for ||W||_{2,1} <= B_w, ||x||_1 <= B_x",
    kind="inequality",
    cases=_row_size_cases,
    evaluate=_row_sizes,
    search="none",
    sizes=({"d": 64},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E3",
            note="with column norms the class contains v e_1^T, |v| <= B_w, and ln N >= k ln x",
            counterexample={"x": 2.0, "k": 100.0, "d": 2.0},
        ),
        Form(
            name="printed, constant 100",
            expected="fails",
            erratum="E3",
            note="no constant or logarithm of x, B_w, eps helps: k grows freely",
            counterexample=_TALL,
        ),
        Form(
            name="sharpened S3",
            note="row norms; against the 2kd points +-B_w e_j e_i^T, pairwise B_w B_x apart",
        ),
    ),
    control="the explicit bound with column norms",
    budget=FEW,
    source="Lemma 3.4",
)

LEMMA_3_5 = Statement(
    id="seqlength.lemma3.5",
    label="Lemma 3.5",
    formula="ln N <~ x^2 ln(dn) for ||W||_{2,1} <= B_w, ||x_i||_2 <= B_x, n points",
    kind="inequality",
    cases=_row_size_cases,
    evaluate=lambda i: Sides(
        i["k"] * jnp.log(i["x"]),
        {
            # One point, B_x e_1, already separates the matrices v e_1^T.
            "printed": i["x"] ** 2 * jnp.log(2.0 * i["d"]),
            "control": i["x"] ** 2 * jnp.log(2.0 * i["d"]) / 2.0,
        },
    ),
    search="none",
    sizes=({"d": 64},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E3",
            note="the same transposition, with n = 2 points; true is ln(kn) with row norms",
            counterexample={"x": 2.0, "k": 100.0, "d": 2.0},
        ),
    ),
    control="half of it",
    budget=FEW,
    source="Lemma 3.5, from Edelman et al. (2022), Lemma 4.6",
)


STATEMENTS = (
    LEMMA_3_4,
    LEMMA_3_4_SIZE,
    LEMMA_3_5,
)
