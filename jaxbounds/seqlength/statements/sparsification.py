"""Lemma 3.1: Maurey's sparsification, its counts, and the cover of the l_1 ball."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.seqlength import linear_covers
from jaxbounds.seqlength.counting import (
    count_nonnegative,
    count_signed,
    log_counts_signed,
    nonnegative_vectors,
    signed_vectors,
)
from jaxbounds.seqlength.sparsification import (
    maurey_corrected,
    maurey_printed,
    shrinkage,
    sparsify_radius,
)
from jaxbounds.seqlength.statements.instances import (
    FEW,
    SEARCHED,
    into_l1_ball,
    l1_sphere,
    stacked,
)
from jaxbounds.statements import Form, Sides, Statement


def _maurey_sample(key, size):
    a, b, c = jax.random.split(key, 3)
    weights = jnp.abs(l1_sphere(a, (size["n"],))) * jax.random.uniform(b, ())
    vectors = jax.random.normal(c, (size["n"], size["dim"]))
    return {"vectors": vectors, "weights": weights, "slots": jnp.zeros(size["k"], jnp.int32)}


def _maurey_project(instance):
    weights = into_l1_ball(jnp.maximum(instance["weights"], 0.0))
    longest = jnp.max(jnp.linalg.norm(instance["vectors"], axis=1))
    return {
        **instance,
        "weights": weights,
        "vectors": instance["vectors"] / jnp.maximum(longest, 1e-6),
    }


def _maurey(instance):
    vectors, weights = instance["vectors"], instance["weights"]
    n, k = weights.shape[0], instance["slots"].shape[0]
    f, gamma = weights @ vectors, jnp.sum(weights)
    b = jnp.max(jnp.linalg.norm(vectors, axis=1))
    counts = jnp.asarray(nonnegative_vectors(n, k), vectors.dtype)
    full = counts[np.flatnonzero(nonnegative_vectors(n, k).sum(axis=1) == k)]
    # The best of all choices, by enumeration: what "there exist" means.
    best = lambda choices, scale: jnp.min(
        jnp.sum((f[None] - scale / k * choices @ vectors) ** 2, axis=1)
    )
    plain, corrected = best(counts, 1.0), maurey_corrected(gamma, b, f, k)
    return Sides(
        lhs={
            "printed": plain,
            "corrected": plain,
            "sharpened rescaled": best(full, gamma),
            "sharpened S1": best(counts, shrinkage(k)),
            "control": plain,
        },
        rhs={
            "printed": maurey_printed(gamma, b, f, k),
            "corrected": corrected,
            "sharpened rescaled": maurey_printed(gamma, b, f, k),
            "sharpened S1": sparsify_radius(b, k) ** 2,
            "control": corrected / 2.0,
        },
        error=1e-15 * b**2,
    )


MAUREY = Statement(
    id="seqlength.lemma3.1",
    label="Lemma 3.1 (Maurey)",
    formula="exists k_i >= 0, sum k_i <= k: ||f - (1/k) sum k_i V_i||^2"
    " <= (gamma^2 b^2 - ||f||^2) / k",
    kind="inequality",
    sample=_maurey_sample,
    project=_maurey_project,
    hypotheses=lambda i: {
        "weights are not negative": jnp.min(i["weights"]) >= 0,
        "gamma <= 1": jnp.sum(i["weights"]) <= 1 + 1e-15,
    },
    evaluate=_maurey,
    sizes=({"n": 3, "dim": 2, "k": 2},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E1",
            note="gamma^2 needs (gamma/k) sum k_i V_i; with (1/k) the variance has gamma",
            counterexample={"vectors": [[1.0]], "weights": [0.5], "slots": [0]},
        ),
        Form(
            name="corrected",
            note="(gamma b^2 - ||f||^2)/k: draw V_i w.p. a_i, 0 w.p. 1 - gamma",
            equality="one vector, gamma = 1/2, k = 1",
        ),
        Form(
            name="sharpened rescaled",
            note="(gamma/k) sum k_i V_i with sum k_i = k keeps gamma^2",
            equality="V, -V with weights 1/2, k = 1",
        ),
        Form(
            name="sharpened S1",
            note="(s/k) sum k_i V_i with s = 1/(1 + k^-1/2) gives radius b/(1 + sqrt k) for any f",
            equality="f = V_1, a vertex",
        ),
    ),
    control="half the corrected bound",
    budget=SEARCHED,
    source="Lemma 3.1, first used for covers by Zhang (2002)",
)


def _count_cases(size):
    rows = []
    for n in range(1, 5):
        for K in range(1, 5):
            count = len(nonnegative_vectors(n, K))
            rows.append({"count": float(count), "n": float(n), "K": float(K)})
    return stacked(rows)


def _count(instance):
    n, K = instance["n"], instance["K"]
    exact = jnp.exp(jax.lax.lgamma(n + K + 1.0) - jax.lax.lgamma(n + 1.0) - jax.lax.lgamma(K + 1.0))
    return Sides(
        instance["count"],
        {"printed": n**K, "corrected": (n + 1.0) ** K, "sharpened": exact, "control": n**K + 0.5},
    )


COUNT = Statement(
    id="seqlength.lemma3.1-count",
    label="after Lemma 3.1, the number of (k_1, .., k_d)",
    formula="#{k in Z_{>=0}^d : sum k_i <= K} <= d^K",
    kind="inequality",
    cases=_count_cases,
    evaluate=_count,
    search="none",
    sizes=({"largest": 4},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E2",
            note="already two choices for d = K = 1",
            counterexample={"count": 2.0, "n": 1.0, "K": 1.0},
        ),
        Form(name="corrected", note="(d + 1)^K", equality="K = 1"),
        Form(name="sharpened", note="C(d + K, K)", equality="always"),
    ),
    control="d^K + 1/2",
    budget=FEW,
    source="Section 3, after Lemma 3.1",
)


def _signed_cases(size):
    rows = []
    for n in range(1, 5):
        for K in range(5):
            count = len(signed_vectors(n, K))
            logs = math.exp(log_counts_signed(n, np.float64(K)))
            rows.append(
                {
                    "count": float(count),
                    "delannoy": float(count_signed(n, K)),
                    "logs": logs,
                    "nonnegative": float(count_nonnegative(n, K)),
                }
            )
    return stacked(rows)


SIGNED_COUNT = Statement(
    id="seqlength.lemma3.3-count",
    label="Lemmas 3.3 and 3.6, the number of signed sparsifications",
    formula="#{z in Z^n : ||z||_1 <= K} = sum_j 2^j C(n,j) C(K,j)",
    kind="identity",
    cases=_signed_cases,
    evaluate=lambda i: Sides(
        i["count"],
        {
            "sharpened S2": i["delannoy"],
            "sharpened S2 logs": i["logs"],
            "control": i["nonnegative"],
        },
    ),
    sizes=({"largest": 4},),
    forms=(
        Form(name="sharpened S2", note="choose the support, its signs, and a composition"),
        Form(name="sharpened S2 logs", note="the same in logarithms"),
    ),
    control="without signs",
    budget=FEW,
    source="not in the paper, which uses (2n + 1)^K",
)


def _radius_cases(size):
    rng, rows = np.random.default_rng(0), []
    for n, K in ((2, 1), (2, 3), (3, 2), (4, 2), (4, 4), (5, 3), (6, 2)):
        cover = linear_covers.l1_ball_cover(n, 1.0, K)
        points = rng.dirichlet(np.full(n, 0.4), size=1000) * rng.choice([-1, 1], size=(1000, n))
        faces = np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]
        points = np.concatenate([points, faces])
        nearest = np.linalg.norm(points[:, None] - cover[None], axis=2).min(axis=1)
        rows.append({"measured": float(nearest.max()), "K": float(K)})
    return stacked(rows)


RADIUS = Statement(
    id="seqlength.lemma3.3-radius",
    label="Lemmas 3.3 and 3.6, the cover of the l_1 ball",
    formula="max over ||v||_1 <= B of the distance to {s B z/K : ||z||_1 <= K} is B / (1 + sqrt K)",
    kind="construction",
    cases=_radius_cases,
    evaluate=lambda i: Sides(
        i["measured"],
        {
            "sharpened S1": 1.0 / (1.0 + jnp.sqrt(i["K"])),
            "control": 1.0 / jnp.sqrt(i["K"]),
        },
    ),
    sizes=({"n": 6},),
    forms=(Form(name="sharpened S1", note="attained at the vertex e_1; Maurey's is B / sqrt K"),),
    control="B / sqrt K",
    budget=FEW,
    source="behind Lemmas 3.3 and 3.6",
)


STATEMENTS = (
    MAUREY,
    COUNT,
    SIGNED_COUNT,
    RADIUS,
)
