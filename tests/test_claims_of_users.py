"""Claims as users write them, half of them false by 1% to 10%: no strong word may be wrong.

Each claim is data: a name, what builds its statement, its truth with one line of mathematics, and
where it is tried. What is true is never said to fail, nor disproved; what is false never holds, nor
is it proved on a box that contains a violation. Undecided is allowed.
"""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import pytest
from flax import nnx

import jaxbounds as jb

SMALL = jb.Budget(samples=64, restarts=4, steps=100)
MANY = jb.Budget(samples=20_000, restarts=1, steps=1, batch=20_000)


@dataclass(frozen=True)
class Claim:
    """One claim; `point` is its equality case or a violation, `box` contains that."""

    name: str
    build: Callable[[], jb.Statement]
    truth: bool
    reason: str
    point: Mapping[str, Any] | None = None
    box: jb.Domain | None = None
    form: str = "printed"


CLAIMS: list[Claim] = []
FALSE = "printed, false"
"""The form of the smaller factor."""


def statement(
    name, sample, sides, factor, /, *, control=0.5, equality="", form=None, false=None, **options
):
    """`sides(instance, size)` gives lhs and rhs, and the error if there is one.

    A second form has the factor `false`.
    """
    factors = {"printed": factor} | ({} if false is None else {FALSE: false})

    def evaluate(instance, size):
        lhs, rhs, *error = sides(instance, size)
        told = {"error": error[0]} if error else {}
        bounds = {name: factor * rhs for name, factor in factors.items()}
        return jb.Sides(lhs=lhs, rhs={**bounds, "control": control * rhs}, **told)

    return jb.Statement(
        id=f"claims.{name}",
        label=name,
        formula=name,
        sample=sample,
        evaluate=evaluate,
        forms=tuple(
            jb.Form(name=name, equality=equality if name == "printed" else "", **(form or {}))
            for name in factors
        ),
        control=f"a factor {control}",
        **{"kind": "inequality", "judges": (), "sizes": ({"d": 3},), "budget": SMALL, **options},
    )


def pair(name, sample, sides, true, false, /, *, point=None, box=None, equality="", **options):
    """The same two sides with a factor for which the claim is true, and with one that is not.

    Whoever believes the smaller factor knows of no equality case.
    """
    build = partial(
        statement, name, sample, sides, true[0], false=false[0], equality=equality, **options
    )
    CLAIMS.append(Claim(f"{name}.true", build, True, true[1], point, box))
    CLAIMS.append(Claim(f"{name}.false", build, False, false[1], point, box, FALSE))


def normals(key, size):
    return {"x": jax.random.normal(key, (size["d"],))}


def two_normals(key, size):
    x, y = jax.random.normal(key, (2, size["d"]))
    return {"x": x, "y": y}


def matrices(key, size):
    x, y = jax.random.normal(key, (2, size["d"], size["d"]))
    return {"x": x, "y": y}


def vector(*before):
    """A chart of one coordinate, or more, before fixed ones."""
    fixed = jnp.asarray(before, float)
    return lambda point, size: {"x": jnp.concatenate([point, fixed.astype(point.dtype)])}


def norm(x):
    return jnp.sqrt(jnp.sum(x**2))


# Norms of vectors.

pair(
    "norms.one-two",
    normals,
    lambda i, s: (jnp.sum(jnp.abs(i["x"])), math.sqrt(s["d"]) * norm(i["x"])),
    (1.0, "Cauchy-Schwarz with the signs of x"),
    (0.97, "equality at x = (1, ..., 1) with factor 1"),
    equality="all |x_i| equal",
    point={"x": jnp.ones(3)},
    box=jb.Domain(
        name="(a, 1, 1)",
        chart=vector(1.0, 1.0),
        size={"d": 3},
        lower=(0.5,),
        upper=(2.0,),
        slack=1e-6,
    ),
)
pair(
    "norms.two-one-sparse",
    normals,
    lambda i, s: (norm(i["x"]), jnp.sum(jnp.abs(i["x"]))),
    (1.0, "|x|_2^2 <= (sum |x_i|)^2, cross terms are positive"),
    (0.95, "equality at x = e_1 with factor 1"),
    equality="one entry",
    sizes=({"d": 4},),
    point={"x": jnp.array([1.0, 0.0, 0.0, 0.0])},
)


HADAMARD = ((1.0, 1, 1, 1), (1.0, -1, 1, -1), (1.0, 1, -1, -1), (1.0, -1, -1, 1))
pair(
    "norms.hadamard",
    normals,
    lambda i, s: (
        jnp.sum(jnp.abs(jnp.asarray(HADAMARD, i["x"].dtype) @ i["x"])),
        jnp.max(jnp.abs(i["x"])),
    ),
    (8.0, "|H x|_1 <= 2 |H x|_2 = 4 |x|_2 <= 8 |x|_inf"),
    (7.7, "8 at the bent signs (1, 1, 1, -1), 4 at (1, 1, 1, 1)"),
    sizes=({"d": 4},),
    point={"x": jnp.array([1.0, 1.0, 1.0, -1.0])},
)
pair(
    "norms.all-differences",
    normals,
    lambda i, s: (
        jnp.sum(jnp.abs(i["x"][:, None] - i["x"][None])) / 2,
        jnp.sum(jnp.abs(i["x"])),
    ),
    (3.0, "|x_i - x_j| <= |x_i| + |x_j|, each entry is in three pairs"),
    (2.85, "3 at e_1, only 2 at (1, 1, -1, -1)"),
    sizes=({"d": 4},),
    point={"x": jnp.array([1.0, 0.0, 0.0, 0.0])},
)
pair(
    "norms.scales",
    two_normals,
    lambda i, s: (
        jnp.abs(i["x"][0] * i["y"][0]),
        (1e4 * i["x"][0] ** 2 + 1e-4 * i["y"][0] ** 2) / 2,
    ),
    (1.0, "a b <= (a^2 + b^2) / 2"),
    (0.95, "equality at y = 10^4 x with factor 1"),
    equality="y = 10^4 x",
    control=1e-3,
    sizes=({"d": 1},),
)
pair(
    "order.orthant",
    normals,
    lambda i, s: (jnp.min(i["x"]), norm(i["x"]) / 3),
    (1.0, "min x_i <= |x| / sqrt 9"),
    (0.96, "equality at (1, ..., 1) with factor 1, in one orthant of 512"),
    equality="(1, ..., 1)",
    control=0.1,
    sizes=({"d": 9},),
)
pair(
    "order.median-of-five",
    normals,
    lambda i, s: (
        jnp.abs(jnp.sort(i["x"])[2] - jnp.mean(i["x"])),
        jnp.sqrt(jnp.mean((i["x"] - jnp.mean(i["x"])) ** 2)),
    ),
    (1.0, "the median minimises E|x - c|, so |mean - median| <= E|x - mean| <= std"),
    (0.79, "sqrt(2/3) = .8165 at the copies (0, 0, 0, 1, 1)"),
    control=0.3,
    sizes=({"d": 5},),
)

# Softmax, attention, activations.


def jacobian(i, s):
    p = jax.nn.softmax(i["x"])
    return jnp.max(jnp.linalg.eigvalsh(jnp.diag(p) - p[:, None] * p[None])), jnp.ones(())


pair(
    "softmax.jacobian",
    normals,
    jacobian,
    (0.5, "lambda_max <= max_i 2 p_i (1 - p_i) <= 1/2 (Gershgorin)"),
    (0.48, "1/2 in the limit of two equal logits, the others at -infinity"),
    equality="two logits equal, the others at -infinity",
    control=0.2,
)
pair(
    "softmax.lipschitz-one",
    two_normals,
    lambda i, s: (
        jnp.sum(jnp.abs(jax.nn.softmax(i["x"]) - jax.nn.softmax(i["y"]))),
        jnp.max(jnp.abs(i["x"] - i["y"])),
    ),
    (1.0, "sum_i p_i |v_i - <p, v>| <= 1 for |v|_inf <= 1: the mean deviation on [-1, 1]"),
    (0.93, "1 in the limit x -> y at two equal logits, the others at -infinity"),
    control=0.3,
)
pair(
    "softmax.log-sum-exp",
    normals,
    lambda i, s: (jax.nn.logsumexp(i["x"]) - jnp.max(i["x"]), jnp.log(float(s["d"]))),
    (1.0, "each of d terms is at most the largest"),
    (0.95, "equality at equal entries with factor 1"),
    equality="equal entries",
    control=0.4,
    box=jb.Domain(
        name="(a, 0, 0)",
        chart=vector(0.0, 0.0),
        size={"d": 3},
        lower=(-2.0,),
        upper=(2.0,),
        slack=1e-6,
    ),
)


def head(key, size):
    k, v = jax.random.normal(key, (2, size["T"], size["d"]))
    return {"k": k, "v": v}


def attention(i, s):
    k, v = i["k"], i["v"]
    masked = jnp.where(jnp.tri(s["T"], dtype=bool), k @ k.T, -jnp.inf)
    out = jax.nn.softmax(masked, axis=-1) @ v
    return jnp.max(jnp.sum(out**2, axis=-1)), jnp.max(jnp.sum(v**2, axis=-1))


pair(
    "attention.hull",
    head,
    attention,
    (1.0, "rows are averages of values"),
    (0.95, "the first row of a causal head is v_0"),
    equality="v_0 is the longest",
    sizes=({"T": 3, "d": 2},),
)


def last_row(i, s):
    k, v = i["k"], i["v"]
    out = jax.nn.softmax(k[-1] @ k.T) @ v
    return norm(out - jnp.mean(v, axis=0)), jnp.max(jnp.sqrt(jnp.sum(v**2, axis=-1)))


pair(
    "attention.from-mean",
    head,
    last_row,
    (
        4 / 3,
        "|p - 1/T|_1 max |v| with |p - 1/T|_1 <= 2 (1 - 1/T) = 4/3 at T = 3",
    ),
    (1.25, "4/3 where p -> e_j, v_j = -v_i: p one-hot at the last token needs long keys"),
    control=0.5,
    sizes=({"T": 3, "d": 2},),
)
pair(
    "gelu.slope",
    two_normals,
    lambda i, s: (
        jnp.abs(jnp.sum(jax.nn.gelu(i["x"], False) - jax.nn.gelu(i["y"], False))),
        jnp.sum(jnp.abs(i["x"] - i["y"])),
    ),
    (1.13, "gelu' is largest at sqrt 2: Phi + sqrt 2 phi = .92135 + .20755 = 1.12890"),
    (1.10, "1.1289 in the limit x, y -> sqrt 2"),
    sizes=({"d": 1},),
)
pair(
    "silu.minimum",
    normals,
    lambda i, s: (-jnp.sum(jax.nn.silu(i["x"])), jnp.ones(())),
    (0.2785, "the minimum is -.278465 at -1.2785"),
    (0.27, "the minimum is -.278465 at -1.2785"),
    control=0.1,
    sizes=({"d": 1},),
    point={"x": jnp.array([-1.2785])},
    box=jb.Domain(
        name="[-3, 1]",
        chart=lambda p, s: {"x": p},
        size={"d": 1},
        lower=(-3.0,),
        upper=(1.0,),
    ),
)


def layer_norm(i, s):
    x = i["x"]
    centred = x - jnp.mean(x)
    return jnp.max(centred / jnp.sqrt(jnp.mean(centred**2) + 1e-5)), math.sqrt(s["d"] - 1)


pair(
    "layernorm.outlier",
    normals,
    layer_norm,
    (1.0, "x_1 = t, the others -t/(d-1) after centring: t / sqrt(t^2 / (d-1)) (Samuelson)"),
    (0.97, "one outlier, the others copies of one number"),
    equality="one outlier, long",
    sizes=({"d": 4},),
)

# Matrices.

pair(
    "matrix.rank-one",
    matrices,
    lambda i, s: (jnp.linalg.norm(i["x"], 2), norm(i["x"])),
    (1.0, "largest singular value, root of the sum of all squares"),
    (0.97, "equality at rank one (copies of one row) with factor 1"),
    equality="rank one",
    point={"x": jnp.ones((3, 3)), "y": jnp.ones((3, 3))},
)
pair(
    "matrix.product",
    matrices,
    lambda i, s: (norm(i["x"] @ i["y"]), norm(i["x"]) * norm(i["y"])),
    (1.0, "Cauchy-Schwarz, entry by entry"),
    (0.92, "equality with factor 1 where rows of x are copies along one column of y"),
    control=0.3,
    equality="rank one, aligned",
    point={"x": jnp.ones((3, 3)), "y": jnp.ones((3, 3))},
)


def log_determinant(i, s):
    x = i["x"]
    return jnp.linalg.slogdet(jnp.eye(s["d"]) + x @ x.T)[1], jnp.sum(x**2)


pair(
    "matrix.log-determinant",
    matrices,
    log_determinant,
    (1.0, "log(1 + t) <= t for the eigenvalues of x x^T"),
    (0.95, "the ratio tends to 1 as x -> 0"),
    control=0.2,
)


def cosines(i, s):
    gram = i["x"] @ i["x"].T
    length = jnp.sqrt(jnp.diag(gram))
    top = jnp.max(jnp.linalg.eigvalsh(gram / (length[:, None] * length[None])))
    return top, jnp.asarray(3.0)


pair(
    "matrix.cosines",
    matrices,
    cosines,
    (1.0, "lambda_max <= trace = 3"),
    (0.96, "3 at copies of one token"),
    equality="copies of one token",
)

# Entropies.


def divergence(i, s):
    p, q = jax.nn.softmax(i["x"]), jax.nn.softmax(i["y"])
    return 0.5 * jnp.sum(jnp.abs(p - q)) ** 2, jnp.sum(
        p * (jax.nn.log_softmax(i["x"]) - jax.nn.log_softmax(i["y"]))
    )


pair(
    "entropy.pinsker",
    two_normals,
    divergence,
    (1.0, "Pinsker"),
    (0.96, "the ratio tends to 1 at p, q -> (1/2, 1/2)"),
    sizes=({"d": 2},),
)


def binary_entropy(i, s):
    x = i["x"][0]
    a, b = jax.nn.log_sigmoid(x), jax.nn.log_sigmoid(-x)
    p, q = jnp.exp(a), jnp.exp(b)
    return -(p * a + q * b) / math.log(2), 4 * p * q


CLAIMS += [
    Claim(
        f"entropy.binary.{exponent}",
        partial(
            statement,
            f"entropy.binary.{exponent}".replace(".", "-"),
            normals,
            lambda i, s, e=exponent: (
                binary_entropy(i, s)[0],
                binary_entropy(i, s)[1] ** e,
            ),
            1.0,
            equality="p = 1/2",
            sizes=({"d": 1},),
        ),
        truth,
        reason,
    )
    for exponent, truth, reason in (
        (0.72, True, "h(p) <= (4 p q)^(1 / log 4), 1 / log 4 = .7213 (Topsoee)"),
        (0.78, False, "p = .1: .4690 over .36^.78 = .4507"),
    )
]

# Hypotheses and projections.


def simplex(key, size):
    return {"x": jax.random.dirichlet(key, jnp.ones(size["d"]))}


def onto_simplex(i, s):
    x = jnp.abs(i["x"])
    return {"x": x / jnp.sum(x)}


def on_simplex(i, s):
    x = i["x"]
    return {"simplex": (jnp.min(x) >= 0) & (jnp.abs(jnp.sum(x) - 1) <= 1e-9)}


SIMPLEX: dict[str, Any] = {"hypotheses": on_simplex, "project": onto_simplex, "sizes": ({"d": 4},)}
pair(
    "simplex.logits-vertex",
    normals,
    lambda i, s: (jnp.sum(jax.nn.softmax(i["x"]) ** 2), jnp.ones(())),
    (1.0, "p_i^2 <= p_i"),
    (0.97, "1 in the limit of a vertex"),
    equality="a vertex, at infinity",
    sizes=({"d": 4},),
)
pair(
    "simplex.product",
    simplex,
    lambda i, s: (i["x"][0] * i["x"][1], jnp.ones(())),
    (0.25, "u v <= (u + v)^2 / 4 <= 1/4"),
    (0.235, "1/4 at the middle of an edge"),
    equality="(1/2, 1/2, 0, 0)",
    control=0.05,
    point={"x": jnp.array([0.5, 0.5, 0.0, 0.0])},
    **SIMPLEX,
)
pair(
    "ball.corner",
    lambda key, size: {"x": 0.3 * jax.random.normal(key, (size["d"],))},
    lambda i, s: (jnp.sum(i["x"]), jnp.asarray(2.0)),
    (1.0, "<1, x> <= sqrt(4) |x|"),
    (0.96, "2 at x = (1, 1, 1, 1) / 2, which is in the ball"),
    hypotheses=lambda i, s: {"ball": jnp.sum(i["x"] ** 2) <= 1.0},
    project=lambda i, s: {"x": i["x"] / jnp.maximum(norm(i["x"]), 1.0)},
    equality="(1, 1, 1, 1) / 2",
    control=0.2,
    sizes=({"d": 4},),
    point={"x": jnp.full(4, 0.5)},
)


def kantorovich(key, size):
    one, two = jax.random.split(key)
    p = jax.random.dirichlet(one, jnp.ones(3))
    return {"p": p, "x": jax.random.uniform(two, (3,), minval=1.0, maxval=9.0)}


pair(
    "hypotheses.kantorovich",
    kantorovich,
    lambda i, s: (jnp.sum(i["p"] * i["x"]) * jnp.sum(i["p"] / i["x"]), jnp.asarray(100 / 36)),
    (1.0, "(1 + 9)^2 / (4 * 1 * 9)"),
    (0.97, "equality with weight 1/2 at 1 and at 9"),
    equality="weight 1/2 at both ends",
    hypotheses=lambda i, s: {
        "weights": (jnp.min(i["p"]) >= 0) & (jnp.abs(jnp.sum(i["p"]) - 1) < 1e-9),
        "range": (jnp.min(i["x"]) >= 1) & (jnp.max(i["x"]) <= 9),
    },
    project=lambda i, s: {
        "p": onto_simplex({"x": i["p"]}, s)["x"],
        "x": jnp.clip(i["x"], 1.0, 9.0),
    },
)
pair(
    "box.corner",
    lambda key, size: {"x": jax.random.uniform(key, (size["d"],))},
    lambda i, s: (jnp.mean(i["x"] ** 2), jnp.ones(())),
    (1.0, "x_i^2 <= 1"),
    (0.95, "1 at (1, ..., 1)"),
    equality="(1, ..., 1)",
    hypotheses=lambda i, s: {"box": (jnp.min(i["x"]) >= 0) & (jnp.max(i["x"]) <= 1)},
    project=lambda i, s: {"x": jnp.clip(i["x"], 0.0, 1.0)},
    point={"x": jnp.ones(3)},
)


def orthogonal(i, s):
    x, y = i["x"], i["y"]
    return {"x": x, "y": y - x * (jnp.sum(x * y) / jnp.sum(x**2))}


pair(
    "hypotheses.orthogonal",
    lambda key, size: orthogonal(two_normals(key, size), size),
    lambda i, s: (norm(i["x"]) + norm(i["y"]), math.sqrt(2) * norm(i["x"] - i["y"])),
    (1.0, "a + b <= sqrt 2 (a^2 + b^2)^.5, and |x - y|^2 = a^2 + b^2"),
    (0.98, "equality at |x| = |y| with factor 1"),
    equality="|x| = |y|",
    hypotheses=lambda i, s: {
        "orthogonal": jnp.abs(jnp.sum(i["x"] * i["y"])) <= 1e-9 * norm(i["x"]) * norm(i["y"])
    },
    project=orthogonal,
)

# Whole numbers, masks.


def numbers(first, last):
    return {
        "cases": lambda size: {"n": jnp.arange(first, last + 1)},
        "enumerates": f"n from {first} to {last}",
        "sizes": ({"d": 1},),
        "search": "none",
    }


def real(n):
    return n.astype(jnp.result_type(float))


pair(
    "whole.floor-square",
    {},
    lambda i, s: (real((i["n"] // 2) * ((i["n"] + 1) // 2)), real(i["n"]) ** 2 / 4),
    (1.0, "floor(n/2) ceil(n/2) <= n^2 / 4"),
    (0.97, "equality at even n with factor 1"),
    equality="even n",
    **numbers(2, 12),
)
pair(
    "whole.power-of-two",
    {},
    lambda i, s: (
        2.0 ** jnp.sum(real(2 ** jnp.arange(6) < i["n"])),
        2 * real(i["n"] - 1),
    ),
    (1.0, "n = 2^k + r, 1 <= r <= 2^k: 2^(k+1) <= 2 (n - 1)"),
    (0.97, "equality at n = 2^k + 1 with factor 1"),
    equality="n = 2^k + 1",
    control=0.4,
    **numbers(2, 60),
)
pair(
    "whole.central-binomial",
    {},
    lambda i, s: (
        jnp.exp(
            jax.lax.lgamma(2 * real(i["n"]) + 1)
            - 2 * jax.lax.lgamma(real(i["n"]) + 1)
            - 2 * real(i["n"]) * math.log(2)
        ),
        1 / jnp.sqrt(math.pi * real(i["n"])),
    ),
    (1.0, "C(2n, n) < 4^n / sqrt(pi n)"),
    (0.98, "1 - 1/(8n) is .9896 at n = 12"),
    **numbers(1, 12),
)
pair(
    "whole.factorial",
    {},
    lambda i, s: (
        jnp.exp(jax.lax.lgamma(real(i["n"]) + 1)),
        jnp.sqrt(2 * math.pi * real(i["n"])) * (real(i["n"]) / math.e) ** real(i["n"]),
    ),
    (1.085, "the ratio falls in n, at n = 1 it is e / sqrt(2 pi) = 1.0844"),
    (1.05, "1.0844 at n = 1, 1.042 at n = 2"),
    **numbers(1, 10),
)
for modulus, truth in ((13, True), (15, False)):
    name = f"whole.floor-sum.{modulus}"
    build = partial(
        statement,
        name.replace(".", "-"),
        {},
        lambda i, s, p=modulus: (
            real(jnp.sum(i["n"] * jnp.arange(p) // p)),
            real(i["n"] - 1) * (p - 1) / 2,
        ),
        1.0,
        kind="identity",
        **numbers(2, modulus - 1),
    )
    why = "sum of floor(a i / p) = (a-1)(p-1)/2 for a prime to p"
    CLAIMS.append(Claim(name, build, truth, why if truth else why + "; a = 3: 15, not 14"))


def masks(key, size):
    one, two = jax.random.split(key)
    return {
        "x": jax.random.normal(one, (4, 2)),
        "n": jax.random.randint(two, (), 1, 5),
    }


def masked_mean(i, s):
    keep = real(jnp.arange(4) < i["n"])
    return norm(keep @ i["x"] / real(i["n"])), norm(i["x"] * keep[:, None]) / jnp.sqrt(real(i["n"]))


pair(
    "mask.mean",
    masks,
    masked_mean,
    (1.0, "Jensen"),
    (0.97, "equality at copies of one token, or n = 1, with factor 1"),
    equality="copies of one token",
)
for word, leak, truth in (("infinite", -jnp.inf, True), ("finite", -5.0, False)):

    def causal(i, s, leak=leak):
        scores, seen = i["x"], jnp.tri(3, dtype=bool)
        by_hand = jnp.where(seen, jnp.exp(scores), 0.0)
        return (
            jax.nn.softmax(jnp.where(seen, scores, leak), axis=-1)[0, 0],
            (by_hand / jnp.sum(by_hand, axis=-1, keepdims=True))[0, 0],
        )

    why = "the same quotient" if truth else "row 0: e^a / (e^a + 2 e^-5), not 1"
    build = partial(statement, f"mask.{word}", matrices, causal, 1.0, kind="identity")
    CLAIMS.append(Claim(f"mask.{word}", build, truth, why))

# Identities with cancellation.

TWENTY: dict[str, Any] = {"kind": "identity", "sizes": ({"d": 20},)}


def variance(i, s):
    x = i["x"]
    error = 1e-12 * jnp.sum(x**2)
    return jnp.mean(x**2) - jnp.mean(x) ** 2, jnp.sum((x - jnp.mean(x)) ** 2) / 20, error


pair(
    "cancels.variance",
    lambda key, size: {"x": 1e3 + jax.random.normal(key, (size["d"],))},
    variance,
    (1.0, "E (x - E x)^2 = E x^2 - (E x)^2"),
    (20 / 19, "divided by n - 1 = 19 instead of n = 20"),
    tolerance=1e-4,
    **TWENTY,
)
pair(
    "cancels.cosine",
    lambda key, size: {"x": jax.random.uniform(key, (1,), minval=0.01, maxval=0.1)},
    lambda i, s: (1 - jnp.cos(i["x"][0]), 2 * jnp.sin(i["x"][0] / 2) ** 2, jnp.asarray(1e-15)),
    (1.0, "half angles"),
    (1.02, "half angles: the factor is 1"),
    kind="identity",
    sizes=({"d": 1},),
)


def rank_one_update(i, s):
    a, u = jnp.eye(3) + i["x"] @ i["x"].T, i["y"][0]
    inverse = jnp.linalg.inv(a)
    ratio = jnp.linalg.det(a + u[:, None] * u[None]) / jnp.linalg.det(a)
    return ratio, 1 + u @ inverse @ u


pair(
    "cancels.determinant-lemma",
    matrices,
    rank_one_update,
    (1.0, "det(A + u u^T) = det A (1 + u^T A^-1 u)"),
    (1.03, "the factor is 1"),
    kind="identity",
    tolerance=1e-8,
)

# Low precision inside.


def rounding(dtype, bits):
    def sides(i, s):
        x = i["x"]
        return jnp.max(jnp.abs(x - x.astype(dtype).astype(x.dtype)) / jnp.abs(x)), 2.0**-bits

    return sides


pair(
    "precision.bfloat16",
    normals,
    rounding(jnp.bfloat16, 8),
    (1.0, "half a unit of eight bits: at most u / (1 + u)"),
    (0.9, "u / (1 + u) at 1 + 2^-8, half between two neighbours"),
    sizes=({"d": 4},),
    budget=jb.Budget(samples=512, restarts=2, steps=50),
)
pair(
    "precision.float32-sum",
    normals,
    lambda i, s: (
        jnp.abs(jnp.sum(i["x"].astype(jnp.float32)).astype(i["x"].dtype)),
        jnp.sum(jnp.abs(i["x"])),
    ),
    (1.0 + 1e-6, "triangle inequality, and four roundings of 6e-8"),
    (0.98, "equality of the triangle inequality at one sign"),
    sizes=({"d": 4},),
    point={"x": jnp.ones(4)},
)

# Probabilities: the event `lhs > rhs` has at most the level.


def tail(name, sample, lhs, threshold, levels, reason):
    for level, truth in zip(levels, (True, False), strict=True):
        label = f"{name}.{truth}".lower()
        build = partial(
            statement,
            label,
            sample,
            lambda i, s: (lhs(i["x"]), jnp.asarray(threshold)),
            1.0,
            control=0.2,
            kind="probability",
            level=level,
            budget=MANY,
            sizes=({"d": 4},),
        )
        CLAIMS.append(Claim(label, build, truth, f"{reason}, level {level}"))


def uniforms(key, size):
    return {"x": jax.random.uniform(key, (size["d"],))}


def signs(key, size):
    return {"x": jax.random.rademacher(key, (size["d"],), dtype=jnp.result_type(float))}


tail("tail.gauss", normals, lambda x: jnp.abs(x[0]), 1.0, (0.33, 0.30), "P(|Z| > 1) = .3173")
tail(
    "tail.signs",
    signs,
    lambda x: jnp.abs(jnp.sum(x)),
    3.0,
    (0.131, 0.115),
    "P(|S_4| = 4) = 1/8",
)

# Expectations: the mean of `lhs` is at most that of `rhs`.


def mean(name, sample, lhs, values, reason, control=0.3):
    for value, truth in zip(values, (True, False), strict=True):
        label = f"{name}.{truth}".lower()
        build = partial(
            statement,
            label,
            sample,
            lambda i, s: (lhs(i["x"]), jnp.ones(())),
            value,
            control=control,
            kind="expectation",
            budget=MANY,
            sizes=({"d": 2},),
        )
        CLAIMS.append(Claim(label, build, truth, f"{reason}, claimed {value}"))


mean("mean.maximum", normals, jnp.max, (0.59, 0.54), "E max of two normals = 1/sqrt(pi) = .5642")
mean(
    "mean.pareto",
    uniforms,
    lambda x: x[0] ** (-1 / 1.5),
    (3.2, 2.85),
    "E U^(-2/3) = 3, no variance",
    control=1.0,
)
mean(
    "mean.rare",
    uniforms,
    lambda x: jnp.where(x[0] < 1e-3, 1000.0, 0.0),
    (1.08, 0.93),
    "1000 at probability 1/1000",
    control=0.2,
)

# A Monte Carlo side with its error.


def half_normal(i, s):
    w = i["x"]
    z = jax.random.normal(jax.random.key(7), (4000, 2), w.dtype)
    values = jax.nn.relu(z @ w)
    return jnp.mean(values), norm(w) / math.sqrt(2 * math.pi), 5 * jnp.std(values) / math.sqrt(4000)


pair(
    "montecarlo.relu",
    normals,
    half_normal,
    (1.0, "E relu<w, z> = |w| / sqrt(2 pi)"),
    (0.9, "the same without the factor, errors of 5 sigma are 11%"),
    equality="all w",
    sizes=({"d": 2},),
)

# Rates.


def rate(name, lhs, rhs, truth, reason, sense="at most"):
    wrong = 0.5 if sense == "at most" else 2.0

    def evaluate(instance, size):
        n = float(size["n"]) + 0 * instance["x"][0]
        return jb.Sides(lhs=lhs(n), rhs={"printed": rhs(n), "control": rhs(n) ** wrong})

    def build():
        return jb.Statement(
            id=f"claims.rate-{name}",
            label=name,
            formula=name,
            kind="rate",
            judges=(),
            sample=lambda key, size: {"x": jax.random.normal(key, (1,))},
            evaluate=evaluate,
            sizes=tuple({"n": 4**k} for k in range(2, 8)),
            forms=(jb.Form(name="printed", sense=sense),),
            control="the rate to another power",
            budget=jb.Budget(samples=8),
        )

    CLAIMS.append(Claim(f"rate.{name}", build, truth, reason))


rate("plus-root", lambda n: n + 5 * jnp.sqrt(n), lambda n: n, True, "n + 5 sqrt n <= 6 n")
rate("power", lambda n: n**1.08, lambda n: n, False, "n^1.08 is no O(n)")
rate(
    "inverse-plus",
    lambda n: 1 / n + 3 / n**2,
    lambda n: 1 / n,
    True,
    "1/n + 3/n^2 <= 4/n",
    sense="at least",
)
rate("inverse", lambda n: n**-0.93, lambda n: 1 / n, False, "n^-.93 is no O(1/n)", sense="at least")

# Networks.


class Mlp(nn.Module):
    @nn.compact
    def __call__(self, x):
        dense = partial(nn.Dense, use_bias=False, param_dtype=x.dtype)
        return dense(2)(nn.relu(dense(3)(x)))


def linen_pair(key, size):
    a, b = jax.random.split(key)
    x, y = jax.random.normal(b, (2, 2))
    return {"params": Mlp().init(a, x)["params"], "x": x, "y": y}


def linen_lipschitz(i, s):
    apply = partial(Mlp().apply, {"params": i["params"]})
    kernels = [i["params"][f"Dense_{k}"]["kernel"] for k in (0, 1)]
    gap = norm(apply(i["x"]) - apply(i["y"]))
    bound = jnp.linalg.norm(kernels[0], 2) * jnp.linalg.norm(kernels[1], 2)
    return gap.astype(i["x"].dtype), bound.astype(i["x"].dtype) * norm(i["x"] - i["y"])


pair(
    "linen.lipschitz",
    linen_pair,
    linen_lipschitz,
    (1.0, "relu is 1-Lipschitz, and operator norms multiply"),
    (0.95, "equality with factor 1 where the top singular vectors agree and are positive"),
    equality="aligned, positive",
    control=0.1,
    sizes=({"d": 2},),
)


def nnx_pair(key, size):
    a, b = jax.random.split(key)
    model = nnx.Linear(2, 2, use_bias=False, rngs=nnx.Rngs(a))
    x = jax.random.normal(b, (4, 2))
    return {"kernel": model.kernel[...].astype(x.dtype), "x": x}


def nnx_curvature(of):
    def sides(i, s):
        model = nnx.Linear(2, 2, use_bias=False, rngs=nnx.Rngs(0))
        model.kernel = nnx.Param(i["kernel"].astype(i["x"].dtype))
        ends = jb.hessian_extremes(lambda m: of(m, i["x"]), model)
        bound = jnp.max(jnp.sum(i["x"] ** 2, axis=-1))
        return ends.maximum, bound.astype(ends.maximum.dtype)

    return sides


def squares(model, x):
    return jnp.mean(jnp.sum(model(x) ** 2, axis=-1)) / 2


pair(
    "nnx.least-squares",
    nnx_pair,
    nnx_curvature(squares),
    (1.0, "the Hessian is I (x) X^T X / n, lambda_max <= max |x_i|^2"),
    (0.96, "equality with factor 1 at copies of one row"),
    equality="copies of one row",
    control=0.2,
    sizes=({"d": 2},),
    budget=jb.Budget(samples=32, restarts=2, steps=60),
)


def drop(x):
    return nnx.Dropout(0.5)(x, rngs=nnx.Rngs(dropout=3))


def dropped(model, x):
    return squares(model, drop(x))


KEPT = int(jnp.max(jnp.sum(drop(jnp.ones((4, 2))) > 0, axis=0)))


pair(
    "nnx.dropout",
    nnx_pair,
    nnx_curvature(dropped),
    (4.0, "kept entries are doubled: at most four times max |x_i|^2"),
    (0.95 * KEPT, "rows of modulus one in the column that is kept KEPT times: 4 KEPT / 4"),
    control=0.1,
    sizes=({"d": 2},),
    budget=jb.Budget(samples=32, restarts=2, steps=60),
)


# Eigenvalues: what is said to have converged is right.


def diagonal(*parts, **options):
    """Lanczos on a diagonal quadratic form."""
    d = jnp.concatenate([jnp.asarray(part, float) for part in parts])
    quadratic = lambda w: 0.5 * jnp.sum(d * w**2)
    ends = jb.hessian_extremes(quadratic, jnp.ones_like(d), dense_limit=0, **options)
    return ends, (float(jnp.min(d)), float(jnp.max(d)))


class Counting(nnx.Module):
    """Counts its calls in its state, which is then part of the value."""

    def __init__(self, dtype):
        self.layer = nnx.Linear(2, 2, use_bias=False, rngs=nnx.Rngs(0), param_dtype=dtype)
        self.count = nnx.Variable(jnp.zeros((), dtype))

    def __call__(self, x):
        self.count[...] = self.count[...] + 1.0
        return jnp.sqrt(1 + 0.05 * self.count[...]) * self.layer(x)


def tokens():
    return jax.random.normal(jax.random.key(5), (4, 2))


def second_moment(x):
    values = jnp.linalg.eigvalsh(x.T @ x / 4)
    return float(values[0]), float(values[-1])


def counted():
    x = tokens()
    ends = jb.hessian_extremes(lambda m: squares(m, x), Counting(x.dtype), filter="layer")
    return ends, tuple(1.05 * v for v in second_moment(x))


def changed_in_place():
    x = tokens()
    model = nnx.Linear(2, 2, use_bias=False, rngs=nnx.Rngs(0), param_dtype=x.dtype)
    loss = lambda m: jnp.sum(m.kernel[...] ** 4)
    jb.hessian_extremes(loss, model)
    model.kernel[...] = 2 * model.kernel[...]
    second = 12 * model.kernel[...] ** 2
    return jb.hessian_extremes(loss, model), (float(jnp.min(second)), float(jnp.max(second)))


def half_precision():
    x = tokens()
    narrow = x.astype(jnp.bfloat16)
    loss = lambda w: jnp.sum((narrow @ w.astype(jnp.bfloat16)).astype(w.dtype) ** 2) / 8
    return jb.hessian_extremes(loss, jnp.ones((2, 2))), second_moment(x)


CURVATURES = {
    "outlier below": lambda: diagonal(jnp.linspace(0, 1, 300), [-1e-3]),
    "little outlier": lambda: diagonal(jnp.zeros(300), [1.0, -1e-7]),
    "two scales": lambda: diagonal([1e8, -1e-2], jnp.linspace(1, 2, 300)),
    "cluster": lambda: diagonal(jnp.ones(300), [1 + 1e-5, 0.5]),
    "few products": lambda: diagonal(jnp.linspace(0, 1, 300), [1.02], iterations=8),
    "state counts": counted,
    "changed in place": changed_in_place,
    "bfloat16": half_precision,
}


@pytest.mark.parametrize("name", CURVATURES)
def test_converged_eigenvalues_are_right(name):
    with jb.float64_on_cpu():
        ends, (least, greatest) = CURVATURES[name]()
    scale = 1e-8 * max(abs(least), abs(greatest))
    assert not ends.converged_minimum or abs(float(ends.minimum) - least) <= scale
    assert not ends.converged_maximum or abs(float(ends.maximum) - greatest) <= scale


def test_a_loss_that_is_another_at_each_call_is_refused():
    calls = iter(range(100))
    with pytest.raises(ValueError, match="another function at each call"):
        jb.hessian_extremes(lambda w: (1 + 0.05 * next(calls)) * w @ w, jnp.ones(2))


@functools.lru_cache(1)
def judged(build):
    """A statement, and the verdict of each of its forms."""
    made = build()
    return made, {verdict.form: verdict for verdict in jb.falsify(made)}


def words(claim):
    """All that the library says about a claim: falsified, at its point, on its box."""
    made, verdicts = judged(claim.build)
    verdict = verdicts[claim.form]
    said = {"falsify": verdict.status, "evidence": verdict.evidence, "reason": verdict.reason}
    said["ratio"] = verdict.worst_ratio
    if claim.point is not None:
        said["disprove"] = jb.disprove(made, claim.form, claim.point, made.sizes[0]).word
    if claim.box is not None:
        said["prove"] = jb.prove(made, claim.form, claim.box, boxes=300, seconds=3).word
    return said


WRONG = {
    True: {"fails", "inconsistent", "disproved", "disproved as coded", "false on D"},
    False: {"holds", "consistent", "proved on D", "proved on D as coded"},
}


# Minutes are left to others: relatives of claims that are tried by default.
SLOW = [
    "norms.two-one-sparse",
    "norms.scales",
    "order.orthant",
    "attention.from-mean",
    "layernorm",
    "matrix.rank-one",
    "matrix.cosines",
    "box.corner",
    "simplex.logits",
    "whole.floor-square",
    "rate.inverse",
    "nnx.least-squares",
    "softmax.jacobian",
    "ball.corner",
    "silu",
]


def parameters():
    for claim in CLAIMS:
        slow = any(claim.name.startswith(part) for part in SLOW)
        yield pytest.param(claim, id=claim.name, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.slow_cases(
    "nnx.dropout.true",
    "montecarlo.relu.true",
    "hypotheses.kantorovich.true",
    "matrix.log-determinant.true",
    "norms.one-two.true",
    "simplex.product.true",
    "softmax.lipschitz-one.true",
)
@pytest.mark.parametrize("claim", tuple(parameters()))
def test_no_strong_word_is_wrong(claim):
    said = words(claim)
    strong = {said[by] for by in ("falsify", "disprove", "prove") if by in said}
    assert not strong & WRONG[claim.truth], (said, claim.reason)
    assert said["falsify"] != "error", said
