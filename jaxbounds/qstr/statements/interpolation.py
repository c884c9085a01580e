"""Statements of Appendix C.4: small networks through n points, for Theorem 9's memorising RNN."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Domain,
    Form,
    Instance,
    Sides,
    Size,
    Statement,
)
from jaxbounds.qstr import interpolator
from jaxbounds.qstr.links import sphere
from jaxbounds.qstr.statements.common import DRAWS


def _points_sample(key: Array, size: Size) -> Instance:
    keys = jax.random.split(key, 5)
    n, N, d = size["n"], size["N"], size["d"]
    x = jax.random.normal(keys[0], (n, N, d))
    t = jax.random.randint(keys[1], (n,), 0, N)
    j = jax.random.randint(keys[2], (n,), 0, N)
    rows = jnp.arange(n)
    y = x[rows, t] @ sphere(keys[3], d)
    return {"x": x[rows, j], "y": y, "v": sphere(keys[4], d)}


def _interpolating_norm(i: Instance, size: Size) -> Sides:
    norm = interpolator.interpolate(i["x"] @ i["v"], i["y"]).squared_norm()
    return Sides(lhs=norm, rhs={"derived": 20.0 * size["n"] ** 3, "control": 0.01 * size["n"] ** 3})


INTERPOLATING_NORM = Statement(
    id="qstr.lem36",
    label="Lemma 36",
    formula="P(|a|^2 + |W|_F^2 + |b|^2 > 20 n^3) <= 5/6 for the network through n labelled tokens",
    tex=r"\mathbb{P}\left(\|a\|_2^2 + \|W\|_F^2 + \|b\|_2^2 > 20\, n^3\right) \le \frac{5}{6}",
    kind="probability",
    level=5 / 6,
    judges=(interpolator.interpolate,),
    sample=_points_sample,
    evaluate=_interpolating_norm,
    forms=(
        Form(
            name="derived",
            note="The bound on the squared norm is the paper's O(n^3) with the constant 20. The "
            "network projects all points onto one random direction v.",
        ),
    ),
    control="0.01 n^3",
    sizes=({"n": 10, "N": 4, "d": 3}, {"n": 40, "N": 4, "d": 3}),
    budget=DRAWS,
    source="Lemma 36",
)


def _quantile(i: Instance, size: Size) -> Sides:
    n = size["n"]
    norms = jax.vmap(lambda x, y, v: interpolator.interpolate(x @ v, y).squared_norm())(
        i["x"], i["y"], i["v"]
    )
    sixth = jnp.sort(norms)[norms.shape[0] // 6]
    return Sides.pairs({"printed": (sixth, float(n) ** 3), "control": (sixth, float(n))})


def _data_sets(key: Array, size: Size) -> Instance:
    return jax.vmap(lambda k: _points_sample(k, size))(jax.random.split(key, 200))


INTERPOLATING_ORDER = Statement(
    id="qstr.lem36.order",
    label="Lemma 36 (the order in n)",
    formula="P(|a|^2 + |W|_F^2 + |b|^2 > C n^3) <= 5/6: the 1/6-quantile is O(n^3)",
    tex=r"\mathbb{P}\left(\|a\|_2^2 + \|W\|_F^2 + \|b\|_2^2 > C n^3\right) \le \frac{5}{6}",
    kind="rate",
    judges=(interpolator.interpolate,),
    sample=_data_sets,
    evaluate=_quantile,
    forms=(
        Form(
            name="printed",
            cites="Lemma 36, Appendix C.4",
            sense="at most",
            exponent=(0.7, 1.0),
            note="The network projects the points onto one random direction. The check takes the "
            "1/6-quantile of the network's squared norm over 200 data sets.",
        ),
    ),
    control="O(n)",
    sizes=tuple({"n": n, "N": 4, "d": 3} for n in (8, 16, 32, 64, 128)),
    budget=Budget(samples=8, restarts=0, steps=0, batch=8),
    source="Lemma 36",
)


def _separation_sample(key: Array, size: Size) -> Instance:
    key_x, key_v = jax.random.split(key)
    return {"x": jax.random.normal(key_x, (size["n"], size["d"])), "v": sphere(key_v, size["d"])}


def _separation(i: Instance, size: Size) -> Sides:
    n = size["n"]
    gap, square = interpolator.separated(i["x"], i["v"])
    worst = lambda scale: jnp.maximum(scale * interpolator.separation(n) / gap, square / (3 * n))
    return Sides.pairs({"printed": (worst(1.0), 1.0), "control": (worst(50.0), 1.0)})


SEPARATION = Statement(
    id="qstr.lem37",
    label="Lemma 37",
    formula="P(some |v^T(x_i - x_j)| < sqrt(pi)/(3n^2) or sum (v^T x)^2 > 3n) <= 2/3",
    tex=r"\mathbb{P}\left(\min_{i \ne j} |v^\top x^{(i)} - v^\top x^{(j)}| < "
    r"\frac{\sqrt{\pi}}{3 n^2} \; \text{or} \; \sum_{i=1}^n (v^\top x^{(i)})^2 > 3 n\right) \le "
    r"\frac{2}{3}",
    kind="probability",
    level=2 / 3,
    judges=(interpolator.separation, interpolator.separated),
    sample=_separation_sample,
    evaluate=_separation,
    forms=(
        Form(
            name="printed",
            cites="Lemma 37, with the constants of its proof",
            note=(
                "A union bound and Markov's inequality each add at most 1/3 to the probability on "
                "the left side."
            ),
        ),
    ),
    control="fifty times the separation",
    sizes=({"n": 6, "d": 2}, {"n": 40, "d": 5}),
    budget=DRAWS,
    source="Lemma 37",
)


def _line_sample(key: Array, size: Size) -> Instance:
    keys = jax.random.split(key, 3)
    n = size["n"]
    gaps = jax.random.exponential(keys[1], (n,)) + 0.05
    start = 3 * jax.random.normal(keys[0], (1,))
    return {"z": jnp.cumsum(gaps) + start, "y": jax.random.normal(keys[2], (n,))}


def _alternating_case(size: Size) -> Instance:
    z = np.arange(float(size["n"]))[None]
    return {"z": z, "y": (-1.0) ** z}


_apart = lambda i, size: {
    "gaps of at least 0.01": jnp.all(jnp.diff(i["z"]) >= 0.01),
    "y != 0": jnp.any(i["y"] != 0),
}
searched_on_a_line = functools.partial(
    Statement,
    kind="inequality",
    sample=_line_sample,
    hypotheses=_apart,
    project=lambda i, size: {**i, "z": jnp.sort(i["z"])},
    budget=Budget(samples=128, restarts=4, steps=80, batch=128),
)


def _interpolator_norm(i: Instance, size: Size) -> Sides:
    z, y = i["z"], i["y"]
    norm = lambda optimal: interpolator.interpolate(z, y, optimal=optimal).squared_norm()
    bound = lambda constant: interpolator.norm_bound(z, y, constant=constant)
    return Sides.pairs(
        {
            "printed": (norm(False), bound(19.0)),
            "sharpened": (norm(True), bound(2 * math.sqrt(48))),
            "control": (norm(False), bound(1.0)),
        }
    )


INTERPOLATOR_NORM = searched_on_a_line(
    id="qstr.lem38",
    label="Lemma 38 (C.16)",
    formula="|a|^2 + |w|^2 + |b|^2 <= C |y| sqrt(n + |z|^2) / eps",
    tex=r"\|a\|_2^2 + \|w\|_2^2 + \|b\|_2^2 \le C\, \frac{\|y\|_2 \sqrt{n + \|z\|_2^2}}"
    r"{\varepsilon}",
    judges=(
        interpolator.interpolate,
        interpolator.norm_bound,
        interpolator.printed_balance,
        interpolator.optimal_balance,
        interpolator.smallest_gap,
    ),
    cases=_alternating_case,
    evaluate=_interpolator_norm,
    forms=(
        Form(
            name="printed",
            cites="Lemma 38, (C.16), Appendix C.4",
            note="The hidden constant is at most 19, because |a'|^2 <= 16 |y|^2 / eps^2 and "
            "|w'|^2 + |b'|^2 <= 3 (n + |z|^2).",
        ),
        Form(
            name="sharpened",
            note="The constant of (C.16) is C = 2 sqrt(48) = 13.9 if the layers are balanced "
            "optimally.",
        ),
    ),
    control="C = 1",
    sizes=({"n": 5},),
    source="Lemma 38; eps = min(1, smallest gap)",
)


def _passes_through(i: Instance, size: Size) -> Sides:
    z, y = i["z"], i["y"]
    network = interpolator.interpolate(z, y)
    scale = jnp.max(jnp.abs(network.a)) * jnp.max(jnp.abs(network.b))
    return Sides(
        lhs=network(z),
        rhs={"printed": y, "control": jnp.roll(y, 1)},
        error=1e-14 * size["n"] * scale,
    )


PASSES_THROUGH = Statement(
    id="qstr.lem38.values",
    label="Lemma 38 (interpolation)",
    formula="g(z_i) = y_i",
    tex=r"g(z^{(i)}) = y^{(i)}, \quad i \in [n]",
    kind="construction",
    judges=(interpolator.interpolate, interpolator.unbalanced),
    evaluate=_passes_through,
    forms=(
        Form(
            name="printed",
            cites="Lemma 38, Appendix C.4, and the network of its proof",
            note="The network is piecewise linear. It has a breakpoint at each point, and joins "
            "neighbouring points by straight lines.",
        ),
    ),
    control="values one point off",
    sizes=({"n": 5},),
    budget=Budget(samples=64),
    tolerance=1e-9,
    source="Lemma 38",
    sample=_line_sample,
    hypotheses=_apart,
)


def _bias(i: Instance, size: Size) -> Sides:
    z = i["z"]
    return Sides(
        lhs=jnp.sum(interpolator.unbalanced(z, i["y"]).b ** 2),
        rhs={
            "derived as read": interpolator.bias_bound(z, printed=True),
            "corrected": interpolator.bias_bound(z),
            "control": 0.9 * jnp.sum(z**2),
        },
    )


BIAS = searched_on_a_line(
    id="qstr.lem38.bias",
    label="Lemma 38 (biases)",
    formula="|b'|^2 <= |z|^2 + 1, as the text at hand reads",
    tex=r"\|b'\|_2^2 \le \|z\|_2^2 + 1",
    judges=(interpolator.unbalanced, interpolator.bias_bound),
    evaluate=_bias,
    forms=(
        Form(
            name="derived as read",
            erratum="E10",
            counterexample=Counterexample(
                instance={"z": [-10.0, 0.0], "y": [1.0, 1.0]},
                size={"n": 2},
                ratio=2.1881188118811883,
                meets=lambda i, size: {
                    "points increasing ('without loss of generality', Lemma 38, proof)": jnp.all(
                        jnp.diff(jnp.asarray(i["z"])) > 0
                    ),
                    "eps < 1 and |z_i - z_j| > eps (Lemma 38)": interpolator.smallest_gap(
                        jnp.asarray(i["z"])
                    )
                    >= 1.0,
                    "y in R^n (Lemma 38)": jnp.all(jnp.isfinite(jnp.asarray(i["y"]))),
                },
            ),
            note="At z = (-10, 0) the biases are b' = (11, 10), so |b'|^2 = 221 > 101, because "
            "the network uses z_1 twice. In our copy of the paper the relation sign is unclear: "
            "it is <=, or an inequality up to a constant.",
        ),
        Form(
            name="corrected",
            note="The bound follows from (1 - z_1)^2 + z_1^2 + .. + z_{n-1}^2 <= 2 + 3 |z|^2. If "
            "z_1 = -1 and all other z tend to zero, the two sides become equal in the limit.",
            domains=(
                Domain(
                    name="n = 2, z_1 in [-1, 1], z_2 in [1.5, 3], y = (1, 2)",
                    chart=lambda point, size: {"z": point, "y": jnp.array([1.0, 2.0])},
                    size={"n": 2},
                    lower=(-1.0, 1.5),
                    upper=(1.0, 3.0),
                ),
            ),
        ),
    ),
    control="0.9 |z|^2",
    sizes=({"n": 3},),
    source="Lemma 38, proof",
)


STATEMENTS = (
    INTERPOLATING_NORM,
    INTERPOLATING_ORDER,
    SEPARATION,
    INTERPOLATOR_NORM,
    PASSES_THROUGH,
    BIAS,
)
