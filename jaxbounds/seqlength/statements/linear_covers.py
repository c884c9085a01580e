"""Lemmas 3.2, 3.3 and 3.6: covers of linear maps."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.claims.sets import Ball
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
from jaxbounds.seqlength import linear_covers
from jaxbounds.seqlength.covering_numbers import covering_number, sup_distances
from jaxbounds.seqlength.sparsification import sparsify_radius
from jaxbounds.seqlength.statements import instances as draw

ORDERS, QUASI = (1.0, 2.0, 4.0, math.inf), 0.5


def _lemma_3_2(instance: Instance, size: Size) -> Sides:
    W, x, epsilon = draw.numbers(instance, "W", "x", "epsilon")
    xp = array_module(W, x, epsilon)
    basis = xp.eye(size["d"])

    def counts(points: Any) -> list[Any]:
        values = xp.einsum("fkd,nd->fnk", W, points)
        distances = [sup_distances(values, q, quasi=True) for q in (*ORDERS, QUASI)]
        return [covering_number(table, epsilon) for table in distances]

    *many, half = counts(basis)
    *on_all, half_on_all = counts(xp.concatenate([basis, x]))
    # The map 0 alone covers the class {0, W_1} if every column of W_1 is shorter than epsilon.
    columns = [xp.max(xp.linalg.norm(W[1], ord=q, axis=0)) for q in ORDERS]
    values = xp.einsum("fkd,nd->fnk", W[:2], xp.concatenate([basis, x]))
    two = [covering_number(sup_distances(values, q), epsilon) for q in ORDERS]
    far = counts(xp.concatenate([basis, 3.0 * x]))[:-1]
    return Sides.pairs(
        {
            "printed": (half_on_all, half),
            "corrected": (xp.array(on_all), xp.array(many)),
            "corrected, two maps": (xp.array(two), xp.where(xp.array(columns) >= epsilon, 2, 1)),
            "control": (xp.array(far), xp.array(many)),
        }
    )


def _lemma_3_2_meets(instance: Instance, size: Size) -> dict[str, Any]:
    W, x, d = np.asarray(instance["W"]), np.asarray(instance["x"]), size["d"]
    points = np.concatenate([np.eye(d), x])
    return {
        "W in R^{k x d} (Lemma 3.2)": W.shape[1:] == (size["k"], d),
        "||x||_1 <= B_x = 1 (Lemma 3.2)": np.abs(points).sum(axis=1).max() <= 1,
        "N >= d points, all distinct (Lemma 3.2)": len(np.unique(points, axis=0))
        == len(points)
        >= d,
        "q = 1/2 in R_{>0} (Section 2.4)": QUASI > 0,
        "eps > 0 (Section 2.4)": instance["epsilon"] > 0,
    }


def _lemma_3_2_sample(key: Array, size: Size) -> Instance:
    a, b, c = jax.random.split(key, 3)
    k, d = size["k"], size["d"]
    W = jnp.concatenate([jnp.zeros((1, k, d)), jax.random.normal(a, (3, k, d))])
    epsilon = jax.random.uniform(c, (), minval=0.5, maxval=4.0)
    return {"W": W, "x": draw.l1_sphere(b, (4, d)), "epsilon": epsilon}


def _zero_and_identity(size: Size) -> Instance:
    k, d = size["k"], size["d"]
    average = np.stack([np.where(np.arange(d) < n, 1.0 / n, 0.0) for n in (2, 2, 3, 3)])
    scales = np.array([0.5, 1.0, 2.0])
    W = np.stack([np.zeros((3, k, d)), scales[:, None, None] * np.eye(k, d)] * 2, axis=1)
    return {"W": W, "x": np.stack([average] * 3), "epsilon": 1.5 * scales}


LEMMA_3_2 = draw.identity_on_host(
    id="seqlength.lemma3.2",
    label="Lemma 3.2",
    tex=r"\mathcal{N}_\infty(\mathcal{F}, \epsilon, N, \|\cdot\|_q) = "
    r"\mathcal{N}_\infty(\mathcal{F}, \epsilon, \{B_x e_1, \ldots, B_x e_d\}, "
    r"\|\cdot\|_q), \quad N \ge d",
    formula="N(F, eps, N, q) = N(F, eps, {B_x e_1, .., B_x e_d}, q), ||x||_1 <= B_x, N >= d",
    sample=_lemma_3_2_sample,
    cases=_zero_and_identity,
    evaluate=_lemma_3_2,
    judges=(covering_number, sup_distances),
    hypotheses=lambda i, size: {"||x||_1 <= 1": jnp.max(jnp.sum(jnp.abs(i["x"]), 1)) <= 1 + 1e-12},
    sizes=({"k": 2, "d": 3},),
    assumptions="the check sets B_x = 1",
    forms=(
        Form(
            name="printed",
            cites="Lemma 3.2, its display, with Section 2.4's q",
            erratum="E13",
            reading="q may be any positive number",
            note="Section 2.4 allows any exponent q > 0. At q = 1/2 the columns of the identity "
            "matrix have norm 1, but the identity matrix maps (1/2, 1/2) to a vector of norm 2.",
            counterexample=Counterexample(
                instance={
                    "W": [[[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]] * 2,
                    "x": [[0.5, 0.5]],
                    "epsilon": 1.5,
                },
                size={"k": 2, "d": 2},
                ratio=0.5,
                meets=_lemma_3_2_meets,
            ),
        ),
        Form(
            name="corrected",
            note="The check uses q = 1, 2, 4 and infinity, on the basis vectors and four more "
            "points.",
        ),
        Form(
            name="corrected, two maps",
            note="The class is {0, W}. The covers of {0, W} depend only on the longest column of "
            "W, so the check computes no covering number.",
        ),
    ),
    control="points of norm 3 B_x",
    source="Lemma 3.2, Appendix B",
)


def _column_vertices(size: Size) -> Instance:
    return {"W": np.stack([draw.signed_vertices(size["k"])] * size["d"], axis=2)}


def _radii(K: int, error: Array) -> Sides:
    radius = sparsify_radius(1.0, K)
    sides = {"derived": K**-0.5, "sharpened S1": radius, "control": 0.9 * radius}
    return Sides(error, sides, error=1e-15)


def _lemma_3_3(instance: Instance, size: Size) -> Sides:
    W, K = instance["W"], size["K"]
    return _radii(K, linear_covers.error_on_l1_ball(W, linear_covers.cover_columns(W, 1.0, K), 1.0))


covered = functools.partial(
    Statement,
    kind="inequality",
    search="random",
    budget=Budget(samples=64, restarts=4, steps=30, batch=64),
    forms=(
        Form(
            name="derived",
            note="The cover consists of sums of K terms, as in Maurey's lemma, and has the radius "
            "B_w B_x / sqrt K.",
        ),
        Form(
            name="sharpened S1",
            note="The radius of the cover is B_w B_x / (1 + sqrt K) for sums of K terms. Some "
            "whole number K <= x^2 = (B_w B_x / eps)^2 always makes this radius smaller than eps. "
            "So x^2 needs no rounding up.",
            equality="columns (or W) at a vertex of the l_1 ball",
        ),
    ),
    control="nine tenths of the sharpened radius",
)

LEMMA_3_3 = covered(
    id="seqlength.lemma3.3",
    label="Lemma 3.3, the cover",
    tex=r"\max_i B_x \left\| (W - \hat{W}) e_i \right\|_2 \le \epsilon, \quad "
    r"\|W\|_{1,\infty} \le B_w",
    formula="for ||W||_{1,inf} <= B_w a product of column covers has"
    " max_i B_x ||(W - W_hat) e_i|| <= eps",
    hypotheses=lambda i, size: {
        "||W||_{1,inf} <= 1": jnp.max(jnp.sum(jnp.abs(i["W"]), axis=0)) <= 1 + 1e-12
    },
    project=lambda i, size: {"W": draw.into_l1_ball(i["W"].T).T},
    sample=lambda key, size: {"W": draw.l1_sphere(key, (size["d"], size["k"])).T},
    cases=_column_vertices,
    evaluate=_lemma_3_3,
    judges=(linear_covers.cover_columns, linear_covers.error_on_l1_ball, sparsify_radius),
    sizes=({"k": 4, "d": 3, "K": 5},),
)


def _entry_vertices(size: Size) -> Instance:
    k, d = size["k"], size["d"]
    return {"W": draw.signed_vertices(k * d).reshape(-1, k, d)}


def _lemma_3_6(instance: Instance, size: Size) -> Sides:
    W, K = instance["W"], size["K"]
    return _radii(K, linear_covers.error_on_l2_ball(W, linear_covers.cover_entries(W, 1.0, K), 1.0))


LEMMA_3_6 = covered(
    id="seqlength.lemma3.6",
    label="Lemma 3.6, the cover",
    tex=r"\sup_{\|x\|_2 \le B_x} \left\| (W - \hat{W}) x \right\|_2 \le \epsilon, \quad "
    r"\|W\|_{1,1} \le B_w",
    formula="for ||W||_{1,1} <= B_w the flattened cover has sup_{||x||_2 <= B_x} ||(W - W_hat) x||"
    " <= eps",
    over={"W": Ball(1, ("k", "d"), 1)},
    cases=_entry_vertices,
    evaluate=_lemma_3_6,
    judges=(
        linear_covers.cover_entries,
        linear_covers.cover_l1_ball,
        linear_covers.error_on_l2_ball,
        sparsify_radius,
    ),
    sizes=({"k": 3, "d": 4, "K": 5},),
)

STATEMENTS = (LEMMA_3_2, LEMMA_3_3, LEMMA_3_6)
