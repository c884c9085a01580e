"""Lemma 3.1: Maurey's sparsification, its counts, and the cover of the l_1 ball."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Form,
    Instance,
    Sides,
    Size,
    Statement,
)
from jaxbounds.seqlength import counting
from jaxbounds.seqlength.linear_covers import l1_ball_cover
from jaxbounds.seqlength.sparsification import (
    best_squared_error,
    maurey,
    maurey_corrected,
    shrinkage,
    sparsify,
    sparsify_radius,
)
from jaxbounds.seqlength.statements import instances as draw


def _maurey_sample(key: Array, size: Size) -> Instance:
    a, b, c = jax.random.split(key, 3)
    weights = jnp.abs(draw.l1_sphere(a, (size["n"],))) * jax.random.uniform(b, ())
    return {"vectors": jax.random.normal(c, (size["n"], size["dim"])), "weights": weights}


def _maurey_project(instance: Instance, size: Size) -> Instance:
    longest = jnp.max(jnp.linalg.norm(instance["vectors"], axis=1))
    return {
        "vectors": instance["vectors"] / jnp.maximum(longest, 1e-6),
        "weights": draw.into_l1_ball(jnp.maximum(instance["weights"], 0.0)),
    }


def _maurey_cases(size: Size) -> Instance:
    V = np.eye(1, size["dim"])
    vectors = np.concatenate([V, -V, np.repeat(V, size["n"] - 2, axis=0)])
    weights = np.zeros((3, size["n"]))
    weights[:, :2] = [[0.5, 0.0], [0.5, 0.5], [1.0, 0.0]]
    return {"vectors": np.stack([vectors] * 3), "weights": weights}


def _simplex(instance: Instance, size: Size) -> dict[str, Array]:
    return {
        "weights are not negative": jnp.min(instance["weights"]) >= 0,
        "gamma <= 1": jnp.sum(instance["weights"]) <= 1 + 1e-15,
    }


def _lemma_3_1(instance: Instance, size: Size) -> dict[str, Any]:
    weights = np.asarray(instance["weights"])
    return {
        "alpha_i >= 0 (Lemma 3.1)": weights.min() >= 0,
        "gamma = ||alpha||_1 <= 1 (Lemma 3.1)": weights.sum() <= 1,
        "||V_i|| <= b, the largest of them (Lemma 3.1)": np.isfinite(instance["vectors"]).all(),
        "k in N (Lemma 3.1)": size["k"] >= 1,
    }


def _maurey(instance: Instance, size: Size) -> Sides:
    vectors, weights, k = instance["vectors"], instance["weights"], size["k"]
    f, gamma = weights @ vectors, jnp.sum(weights)
    b = jnp.max(jnp.linalg.norm(vectors, axis=1))
    # The claim asserts existence, so an enumeration finds the best of all choices.
    best, s = best_squared_error(vectors, weights, k), shrinkage(k)
    shrunk = best_squared_error(vectors, weights, k, scale=s)
    rescaled = best_squared_error(vectors, weights, k, use_all=True)
    printed, corrected = maurey(gamma, b, f, k), maurey_corrected(gamma, b, f, k)
    return Sides.pairs(
        {
            "printed": (best, printed),
            "corrected": (best, corrected),
            "sharpened rescaled": (rescaled, printed),
            "sharpened S1": (shrunk, sparsify_radius(b, k) ** 2),
            "sharpened S1 scaled": (shrunk, maurey_corrected(gamma, b, f, k, scale=s)),
            "control": (best, corrected / 2.0),
        },
        error=1e-15 * b**2,
    )


OPPOSITE = "V, -V with weights 1/2, k = 1"

MAUREY = Statement(
    id="seqlength.lemma3.1",
    label="Lemma 3.1 (Maurey)",
    tex=r"\exists k_i \in \mathbb{Z}_{\ge 0}, \ \sum_i k_i \le k : \quad \left\| f - "
    r"\frac{1}{k} \sum_i k_i V_i \right\|^2 \le \frac{\gamma^2 b^2 - \|f\|^2}{k}",
    formula="exists k_i >= 0, sum k_i <= k: ||f - (1/k) sum k_i V_i||^2"
    " <= (gamma^2 b^2 - ||f||^2) / k",
    kind="inequality",
    sample=_maurey_sample,
    cases=_maurey_cases,
    project=_maurey_project,
    hypotheses=_simplex,
    evaluate=_maurey,
    judges=(best_squared_error, maurey, maurey_corrected, shrinkage, sparsify_radius),
    sizes=({"n": 3, "dim": 2, "k": 1},),
    assumptions="the check sets k = 1, where the bound can be attained; "
    "seqlength.lemma3.1.greedy checks larger k",
    forms=(
        Form(
            name="printed",
            cites="Lemma 3.1, its display",
            erratum="E1",
            note="The factor gamma^2 is right for the approximation (gamma/k) sum k_i V_i. For "
            "the printed (1/k) sum k_i V_i the variance has gamma in place of gamma^2.",
            counterexample=Counterexample(
                instance={"vectors": [[1.0]], "weights": [0.5]},
                size={"n": 1, "dim": 1, "k": 1},
                ratio=2.0,
                meets=_lemma_3_1,
            ),
        ),
        Form(
            name="corrected",
            note="The bound on the squared error is (gamma b^2 - ||f||^2)/k, where gamma is the "
            "sum of the weights a_i and b bounds the norms of the V_i. The proof draws V_i with "
            "probability a_i, and 0 with probability 1 - gamma.",
            equality="one vector, gamma = 1/2, k = 1",
        ),
        Form(
            name="sharpened rescaled",
            note="For the approximation (gamma/k) sum k_i V_i with sum k_i = k, the printed "
            "factor gamma^2 in the bound is correct.",
            equality=OPPOSITE,
        ),
        Form(
            name="sharpened S1",
            note="For every f, the approximation (s/k) sum k_i V_i with s = 1/(1 + k^-1/2) is "
            "within b/(1 + sqrt k) of f.",
            equality="f = V_1, a vertex",
        ),
        Form(
            name="sharpened S1 scaled",
            note="The squared error is at most s^2 gamma b^2/k + ||f||^2 ((1-s)^2 - s^2/k). The "
            "chosen s makes the second term zero.",
            equality="f = V_1, a vertex",
        ),
    ),
    control="half the corrected bound",
    budget=Budget(samples=64, restarts=4, steps=60, batch=64),
    source="Lemma 3.1, first used for covers by Zhang (2002)",
)


def _greedy(instance: Instance, size: Size) -> Sides:
    vectors, weights, k = instance["vectors"], instance["weights"], size["k"]
    f, gamma = weights @ vectors, jnp.sum(weights)
    b = jnp.max(jnp.linalg.norm(vectors, axis=1))
    chosen = sparsify(vectors, weights, k)
    combined = chosen.multiplicities.astype(vectors.dtype) @ vectors / k
    corrected = maurey_corrected(gamma, b, f, k)
    error = lambda approximation: jnp.sum((f - approximation) ** 2)
    return Sides.pairs(
        {
            "derived": (jnp.maximum(error(combined), chosen.squared_error), corrected),
            "derived rescaled": (
                error(sparsify(vectors, weights, k, use_all=True).approximation),
                maurey(gamma, b, f, k),
            ),
            "control": (error(combined), corrected / 40.0),
        },
        error=1e-15 * b**2,
    )


GREEDY = draw.inequality(
    id="seqlength.lemma3.1.greedy",
    label="Lemma 3.1, without drawing",
    tex=r"\left\| f - \frac{1}{k} \sum_i k_i V_i \right\|^2 \le \frac{\gamma b^2 - \|f\|^2}{k}",
    formula="choosing each V_i by conditional expectations has at most the mean error",
    sample=_maurey_sample,
    cases=_maurey_cases,
    hypotheses=_simplex,
    evaluate=_greedy,
    judges=(sparsify, maurey_corrected, maurey),
    sizes=({"n": 3, "dim": 2, "k": 1}, {"n": 3, "dim": 2, "k": 3}),
    forms=(
        Form(
            name="derived",
            note="The approximation of f is (1/k) sum k_i V_i, where V_i is chosen k_i times.",
            equality="one vector, gamma = 1/2, k = 1",
        ),
        Form(
            name="derived rescaled",
            note="The approximation of f is (gamma/k) sum k_i V_i, where V_i is chosen k_i times "
            "and sum k_i = k.",
            equality=OPPOSITE,
        ),
    ),
    control="a fortieth of the right side",
    source="library: how the covers of Section 3 find their members",
)


def _count(instance: Instance, size: Size) -> Sides:
    n, K = draw.numbers(instance, "n", "K")
    listed, exact = counting.nonnegative_vectors(n, K).tolist(), counting.count_nonnegative(n, K)
    count = len({tuple(k) for k in listed if min(k) >= 0 and sum(k) <= K})
    return Sides.pairs(
        {
            "printed": (count, n**K),
            "corrected": (count, (n + 1) ** K),
            # This form is an identity, so neither side may be larger.
            "sharpened": (max(count / exact, exact / max(count, 1)), 1.0),
            "control": (count, n**K + 0.5),
        }
    )


def _naturals(instance: Instance, size: Size) -> dict[str, Any]:
    return {"d, k in N (Lemma 3.1)": min(instance["n"], instance["K"]) >= 1}


COUNT = draw.on_host(
    id="seqlength.lemma3.1.count",
    label="after Lemma 3.1, the number of (k_1, .., k_d)",
    tex=r"\left| \left\{ (k_1, \ldots, k_d) \in \mathbb{Z}_{\ge 0}^d : \sum_i k_i \le k "
    r"\right\} \right| \le d^k",
    formula="#{k in Z_{>=0}^d : sum k_i <= K} <= d^K",
    cases=draw.grid(n=range(1, 5), K=range(1, 5)),
    evaluate=_count,
    judges=(counting.nonnegative_vectors, counting.count_nonnegative),
    sizes=({"largest": 4},),
    forms=(
        Form(
            name="printed",
            cites="Section 3, the sentence after Lemma 3.1",
            erratum="E2",
            note="At d = K = 1 there are two tuples, (0) and (1), but d^K = 1. The number d^K "
            "bounds the number of tuples with sum k_i = K.",
            counterexample=Counterexample(instance={"n": 1, "K": 1}, ratio=2.0, meets=_naturals),
        ),
        Form(
            name="corrected",
            note="(d + 1)^K bounds the number of tuples (k_1, .., k_d) with sum k_i <= K.",
            equality="K = 1",
        ),
        Form(
            name="sharpened",
            note="The exact number of tuples (k_1, .., k_d) with sum k_i <= K is "
            "the binomial coefficient C(d + K, K).",
            equality="always",
        ),
    ),
    control="d^K + 1/2",
    source="Section 3, after Lemma 3.1",
)


def _signed_count(instance: Instance, size: Size) -> Sides:
    n, K = draw.numbers(instance, "n", "K")
    listed = counting.signed_vectors(n, K).tolist()
    return Sides(
        len({tuple(z) for z in listed if sum(map(abs, z)) <= K}),
        {
            "sharpened S2": counting.count_signed(n, K),
            "sharpened S2 logs": math.exp(counting.log_counts_signed(n, np.float64(K))),
            "control": counting.count_nonnegative(n, K),
        },
    )


SIGNED_COUNT = draw.identity_on_host(
    id="seqlength.lemma3.3.count",
    label="Lemmas 3.3 and 3.6, the number of signed sparsifications",
    tex=r"\left| \left\{ z \in \mathbb{Z}^n : \|z\|_1 \le K \right\} \right| = \sum_j 2^j "
    r"\binom{n}{j} \binom{K}{j}",
    formula="#{z in Z^n : ||z||_1 <= K} = sum_j 2^j C(n,j) C(K,j)",
    cases=draw.grid(n=range(1, 5), K=range(5)),
    evaluate=_signed_count,
    judges=(counting.count_signed, counting.log_counts_signed, counting.signed_vectors),
    sizes=({"largest": 4},),
    forms=(
        Form(
            name="sharpened S2",
            note="The proof counts the integer vectors z with ||z||_1 <= K. The support, the signs "
            "and the absolute values of the entries determine z.",
        ),
        Form(
            name="sharpened S2 logs",
            note="This version of the claim checks the logarithm of the number of integer vectors "
            "z in Z^n with ||z||_1 <= K.",
        ),
    ),
    control="without signs",
    source="not in the paper, which uses (2n + 1)^K",
)


def _radius(instance: Instance, size: Size) -> Sides:
    n, K = draw.numbers(instance, "n", "K")
    rng, cover = np.random.default_rng([n, K]), l1_ball_cover(n, 1.0, K)
    points = rng.dirichlet(np.full(n, 0.4), size=1000) * rng.choice([-1, 1], size=(1000, n))
    faces = np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]
    points = np.concatenate([points, faces])
    nearest = np.linalg.norm(points[:, None] - cover[None], axis=2).min(axis=1)
    radius = sparsify_radius(1.0, K)
    return Sides(nearest.max(), {"sharpened S1": radius, "control": 1.0 / math.sqrt(K)})


RADIUS = Statement(
    id="seqlength.lemma3.3.radius",
    label="Lemmas 3.3 and 3.6, the cover of the l_1 ball",
    tex=r"\max_{\|v\|_1 \le B} \ \min_{\|z\|_1 \le K} \left\| v - \frac{s B}{K} z \right\|_2 "
    r"= \frac{B}{1 + \sqrt{K}}, \quad s = \frac{1}{1 + K^{-1/2}}",
    formula="max over ||v||_1 <= B of the distance to {s B z/K : ||z||_1 <= K} is B / (1 + sqrt K)",
    kind="construction",
    host=True,
    cases=lambda size: {
        "n": np.array([1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6]),
        "K": np.array([1, 2, 5, 1, 2, 3, 1, 2, 2, 4, 3, 2]),
    },
    evaluate=_radius,
    judges=(l1_ball_cover, sparsify_radius, shrinkage),
    sizes=({"n": 6},),
    forms=(
        Form(
            name="sharpened S1",
            note="The vertex e_1 of the l_1 ball attains the sharpened radius B / (1 + sqrt K). "
            "Maurey's own radius is B / sqrt K.",
        ),
    ),
    control="B / sqrt K",
    source="behind Lemmas 3.3 and 3.6",
)

STATEMENTS = (MAUREY, GREEDY, COUNT, SIGNED_COUNT, RADIUS)
