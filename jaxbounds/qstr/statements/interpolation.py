"""Appendix C.4: small networks through n points, for Theorem 9's memorising RNN."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.norms import vector_norm
from jaxbounds.qstr import interpolator
from jaxbounds.qstr.links import sphere
from jaxbounds.qstr.statements.common import DRAWS, QUICK
from jaxbounds.statements import Budget, Form, Sides, Statement


def _points_sample(key, size):
    keys = jax.random.split(key, 5)
    n, N, d = size["n"], size["N"], size["d"]
    x = jax.random.normal(keys[0], (n, N, d))
    t = jax.random.randint(keys[1], (n,), 0, N)
    j = jax.random.randint(keys[2], (n,), 0, N)
    rows = jnp.arange(n)
    y = x[rows, t] @ sphere(keys[3], d)
    return {"x": x[rows, j], "y": y, "v": sphere(keys[4], d)}


def _interpolating_norm(i):
    z = i["x"] @ i["v"]
    order = jnp.argsort(z)
    z, y = z[order], i["y"][order]
    raw = interpolator.unbalanced(z, y)
    eps = jnp.minimum(1.0, jnp.min(jnp.diff(z)))
    norm = interpolator.balance(raw, interpolator.printed_balance(z, y, eps)).squared_norm()
    n3 = jnp.asarray(float(z.shape[0]) ** 3)
    return Sides(lhs=norm, rhs={"derived": 20 * n3, "control": 0.01 * n3})


INTERPOLATING_NORM = Statement(
    id="qstr.lem36",
    label="Lemma 36",
    formula="P(|a|^2 + |W|_F^2 + |b|^2 > 20 n^3) <= 5/6 for the network through n labelled tokens",
    kind="probability",
    level=5 / 6,
    sample=_points_sample,
    evaluate=_interpolating_norm,
    forms=(Form(name="derived", note="The paper's O(n^3) with the constant 20, one random v."),),
    control="0.01 n^3",
    sizes=({"n": 10, "N": 4, "d": 3}, {"n": 40, "N": 4, "d": 3}),
    budget=DRAWS,
    source="Lemma 36",
)


def _separation_sample(key, size):
    key_x, key_v = jax.random.split(key)
    return {"x": jax.random.normal(key_x, (size["n"], size["d"])), "v": sphere(key_v, size["d"])}


def _separation(i):
    n = i["x"].shape[0]
    gap, square = interpolator.separated(i["x"], i["v"])
    one = jnp.ones_like(gap)
    worst = lambda scale: jnp.maximum(scale * interpolator.separation(n) / gap, square / (3 * n))
    return Sides(
        lhs={"printed": worst(1.0), "control": worst(50.0)}, rhs={"printed": one, "control": one}
    )


SEPARATION = Statement(
    id="qstr.lem37",
    label="Lemma 37",
    formula="P(some |v^T(x_i - x_j)| < sqrt(pi)/(3n^2) or sum (v^T x)^2 > 3n) <= 2/3",
    kind="probability",
    level=2 / 3,
    sample=_separation_sample,
    evaluate=_separation,
    forms=(Form(name="printed", note="1/3 + 1/3 by two union bounds."),),
    control="fifty times the separation",
    sizes=({"n": 6, "d": 2}, {"n": 40, "d": 5}),
    budget=DRAWS,
    source="Lemma 37",
)


def _line_sample(key, size):
    keys = jax.random.split(key, 3)
    n = size["n"]
    gaps = jax.random.exponential(keys[1], (n,)) + 0.05
    start = 3 * jax.random.normal(keys[0], (1,))
    return {"z": jnp.cumsum(gaps) + start, "y": jax.random.normal(keys[2], (n,))}


def _alternating_case(size):
    n = size["n"]
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return {"z": np.arange(float(n))[None], "y": y[None]}


def _line(i):
    return i["z"], i["y"], jnp.minimum(1.0, jnp.min(jnp.diff(i["z"])))


def _interpolator_norm(i):
    z, y, eps = _line(i)
    raw = interpolator.unbalanced(z, y)
    printed = interpolator.balance(raw, interpolator.printed_balance(z, y, eps))
    best = interpolator.balance(raw, interpolator.optimal_balance(raw))
    scale = vector_norm(y) * jnp.sqrt(z.shape[0] + jnp.sum(z**2)) / eps
    return Sides(
        lhs={
            "derived": printed.squared_norm(),
            "sharpened": best.squared_norm(),
            "control": printed.squared_norm(),
        },
        rhs={"derived": 19 * scale, "sharpened": 2 * math.sqrt(48) * scale, "control": scale},
    )


_POSITIVE = {
    "project": lambda i: {**i, "z": jnp.sort(i["z"])},
    "hypotheses": lambda i: {
        "gaps of at least 0.01": jnp.all(jnp.diff(i["z"]) >= 0.01),
        "y != 0": jnp.any(i["y"] != 0),
    },
}

INTERPOLATOR_NORM = Statement(
    id="qstr.lem38",
    label="Lemma 38 (C.16)",
    formula="|a|^2 + |w|^2 + |b|^2 <= C |y| sqrt(n + |z|^2) / eps",
    kind="inequality",
    sample=_line_sample,
    cases=_alternating_case,
    evaluate=_interpolator_norm,
    forms=(
        Form(
            name="derived", note="C = 19: |a'|^2 <= 16|y|^2/eps^2, |w'|^2 + |b'|^2 <= 3(n+|z|^2)."
        ),
        Form(name="sharpened", note="C = 2 sqrt(48) = 13.9 with the layers balanced optimally."),
    ),
    control="C = 1",
    sizes=({"n": 5},),
    budget=QUICK,
    source="Lemma 38; eps = min(1, smallest gap)",
    **_POSITIVE,
)


def _passes_through(i):
    z, y, eps = _line(i)
    raw = interpolator.unbalanced(z, y)
    balanced = interpolator.balance(raw, interpolator.printed_balance(z, y, eps))
    scale = jnp.max(jnp.abs(raw.a)) * jnp.max(jnp.abs(raw.b))
    return Sides(
        lhs=balanced(z),
        rhs={"printed": y, "control": jnp.roll(y, 1)},
        error=1e-14 * z.shape[0] * scale,
    )


PASSES_THROUGH = Statement(
    id="qstr.lem38.values",
    label="Lemma 38 (interpolation)",
    formula="g(z_i) = y_i",
    kind="construction",
    sample=_line_sample,
    evaluate=_passes_through,
    forms=(Form(name="printed", note="Slopes between neighbours, one breakpoint each."),),
    control="values one point off",
    sizes=({"n": 5},),
    budget=Budget(samples=64),
    tolerance=1e-9,
    source="Lemma 38",
    hypotheses=_POSITIVE["hypotheses"],
)


def _bias(i):
    z, y, _ = _line(i)
    square = jnp.sum(interpolator.unbalanced(z, y).b ** 2)
    total = jnp.sum(z**2)
    return Sides(
        lhs=square,
        rhs={"printed": total + 1, "corrected": 3 * total + 2, "control": 0.9 * total},
    )


BIAS = Statement(
    id="qstr.lem38.bias",
    label="Lemma 38 (biases)",
    formula="|b'|^2 <= |z|^2 + 1",
    kind="inequality",
    sample=_line_sample,
    evaluate=_bias,
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E10",
            counterexample={"z": np.array([-10.0, 0.0]), "y": np.array([1.0, 1.0])},
            note="z = (-10, 0): b' = (11, 10), |b'|^2 = 221 > 101. z_1 is used twice.",
        ),
        Form(
            name="corrected",
            note="(1 - z_1)^2 + z_1^2 + .. + z_{n-1}^2 <= 2 + 3 |z|^2.",
            equality="z_1 = -1 and all other z zero, in the limit of vanishing gaps",
        ),
    ),
    control="0.9 |z|^2",
    sizes=({"n": 3},),
    budget=QUICK,
    source="Lemma 38, proof",
    **_POSITIVE,
)

STATEMENTS = (INTERPOLATING_NORM, SEPARATION, INTERPOLATOR_NORM, PASSES_THROUGH, BIAS)
