"""Theorem 5.1 with explicit constants of the contraction inequality, and the proof's steps."""

import functools
import itertools
import math
import operator
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array

from jaxbounds.claims.sets import Box, Integers
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size
from jaxbounds.seqlength.masking import theorem_5_1_leading
from jaxbounds.seqlength.statements import instances as draw
from jaxbounds.seqlength.vector_contraction import (
    log_separated,
    scalar_entropy,
    shattered_points,
    theorem_5_1_infinity,
    theorem_5_1_l2,
)


def _subsets(points: int) -> Iterator[tuple[int, ...]]:
    for count in range(1, points + 1):
        yield from itertools.combinations(range(points), count)


def _largest_shattered(values: np.ndarray, levels: list[np.ndarray], gap: float) -> int:
    """Return the largest number of points that the functions shatter with the margin `gap`.

    Each point has a level. Points are shattered if, for every choice of sides (above or below),
    some function is on the chosen side of each level, at least `gap` away.
    """
    # The functions above, and the functions below, as bits of one whole number.
    bits = lambda flags: int.from_bytes(np.packbits(flags).tobytes(), "big")
    sides = [[(bits(v >= at + gap), bits(v <= at - gap)) for at in levels[i]]
             for i, v in enumerate(values.T)]  # fmt: skip

    def shattered(chosen: tuple[int, ...]) -> bool:
        return any(
            all(functools.reduce(operator.and_, pattern) for pattern in itertools.product(*at))
            for at in itertools.product(*(sides[i] for i in chosen))
        )

    return max((len(c) for c in _subsets(len(sides)) if shattered(c)), default=0)


def _halfway(values: np.ndarray, gap: float) -> np.ndarray:
    """Return the midpoints between values at least 2 `gap` apart, the only levels to try."""
    ordered = np.unique(values)
    i, j = np.nonzero(ordered[None] - ordered[:, None] >= 2.0 * gap)
    return np.unique((ordered[i] + ordered[j]) / 2.0)


def _worst_complexity(F: np.ndarray, m: int) -> float:
    sums, probability, first = _sign_sums(F.shape[1], m)
    of_sums = probability * (sums @ F.T).max(axis=1)
    return float(np.add.reduceat(of_sums, first).max()) / m


@functools.cache
def _sign_sums(points: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the sums of the random signs at each point, with their probabilities.

    The sum over a point that a sample contains c times is c - 2 k with probability C(c, k) / 2^c.
    The third result is the first row of each sample in the array of sums.
    """
    sums: list[list[float]] = []
    probability: list[float] = []
    first: list[int] = []
    for sample in itertools.combinations_with_replacement(range(points), m):
        counts = [sample.count(point) for point in range(points)]
        first.append(len(sums))
        for minus in itertools.product(*(range(c + 1) for c in counts)):
            sums.append([c - 2.0 * k for c, k in zip(counts, minus)])
            probability.append(math.prod(math.comb(c, k) for c, k in zip(counts, minus)) / 2.0**m)
    return np.array(sums), np.array(probability), np.array(first)


def _largest_separated(G: np.ndarray) -> int:
    apart = np.abs(G[:, None] - G[None]).max(axis=-1) >= 2 - 1e-12
    sets = itertools.chain.from_iterable(
        itertools.combinations(range(len(G)), size) for size in range(len(G), 1, -1)
    )
    pairs = lambda s: itertools.combinations(s, 2)
    return next((len(s) for s in sets if all(apart[i, j] for i, j in pairs(s))), 1)


def _class(key: Array, size: Size) -> Instance:
    keys, shape = jax.random.split(key, 5), (2 ** size["points"], size["points"])
    which = jnp.arange(shape[0]) % jax.random.randint(keys[0], (), 2, shape[0] + 1)
    F, power = jax.random.uniform(keys[1], shape, minval=-1.0), jax.random.uniform(keys[2])
    levels = jax.random.randint(keys[3], shape, 1, size["b"] + 1)
    return {
        "F": (jnp.sign(F) * jnp.abs(F) ** power)[which],
        "over": 1.0 + draw.log_uniform(keys[4], -2.0, 0.3),
        "levels": levels[which],
    }


def _cubes(size: Size) -> Instance:
    """Return classes with every choice of signs at some points and 0 at the other points."""
    every, rows = np.array(list(itertools.product((-1.0, 1.0), repeat=size["points"]))), []
    for count in range(1, size["points"] + 1):
        F = np.where(np.arange(size["points"]) < count, every, 0.0)
        cube = {"F": F, "levels": np.where(F > 0, size["b"], 1)}
        rows += [{**cube, "over": g} for g in (1.0 / _worst_complexity(F, size["m"]), 1.02)]
    return draw.stacked(rows)


def _links(instance: Instance, size: Size) -> Sides:
    F, (over,), m, b = instance["F"], draw.numbers(instance, "over"), size["m"], size["b"]
    n, R = F.shape[1], _worst_complexity(F, m)
    margin, gap = over * R, over * R * (1.0 - 1e-12)
    shattered = _largest_shattered(F, [_halfway(F[:, i], gap) for i in range(n)], gap)
    bound, epsilon = shattered_points(R, m, margin), 4.0 * margin
    G = instance["levels"]
    strong = _largest_shattered(G, [np.arange(2, b)] * n, 1)
    return Sides.pairs(
        {
            "derived, shattered": (float(shattered), bound),
            "derived, separated": (
                math.log(_largest_separated(np.unique(G, axis=0))),
                log_separated(n, b, strong),
            ),
            "derived, scalar": (
                math.log(_largest_separated(2.0 * F / epsilon)),
                float(scalar_entropy(R, m, float(np.abs(F).max()))(epsilon)),
            ),
            "control": (float(shattered), bound / 4.0),
        }
    )


LINKS = draw.random_search_on_host(
    id="seqlength.thm5.1.links",
    label="Theorem 5.1, the links of its contraction",
    tex=r"n \le \frac{4 m R^2}{g^2}, \qquad |M| < 2 \left( n (b - 1)(b - 2) \right)^r, \quad 2^r > "
    r"\sum_{i=1}^d \binom{n}{i} (b - 2)^i",
    formula="n points shattered with margin g > R: n <= 4 m R^2 / g^2; 2-separated functions to b"
    " levels: |M| < 2 (n (b-1)(b-2))^r for the least r with 2^r > sum_{i <= d} C(n,i) (b-2)^i",
    budget=Budget(samples=16, restarts=4, steps=15),
    over={"F": Box(-1, 1, ("2**points", "points")), "over": Box(1.001, 5)},
    sample=_class,
    cases=_cubes,
    evaluate=_links,
    judges=(shattered_points, log_separated, scalar_entropy),
    sizes=({"points": 3, "m": 10, "b": 4},),
    assumptions="up to 8 functions at 3 points, and g = `over` R; R is the largest complexity "
    "over all samples of 10 of these points, with repetitions",
    forms=(
        Form(
            name="derived, shattered",
            note=(
                "Step 1 in the docstring of `jaxbounds.seqlength.vector_contraction` proves this "
                "bound."
            ),
        ),
        Form(
            name="derived, separated",
            note="Step 2 in the docstring of `vector_contraction` proves this bound, the lemma of "
            "Alon et al. (1997) with the factor (b-1)(b-2) for functions with b possible values.",
        ),
        Form(
            name="derived, scalar",
            note=(
                "Step 3 in the docstring of `vector_contraction` proves this bound, at the "
                "resolution epsilon = 4 g for the margin g."
            ),
        ),
    ),
    control="a quarter of the points",
    source="Theorem 5.1, from Foster and Rakhlin (2019)",
)


def _constant_functions(instance: Instance, size: Size) -> Sides:
    m, K, B = draw.numbers(instance, "m", "K", "B")
    walk = 1.0 / (math.sqrt(math.pi) * scipy.special.poch(m // 2 + 0.5, 0.5))  # E|S_m| / m, m even
    ends = [math.log1p((K - 1) * math.exp(sign * 2.0 * B)) for sign in (1.0, -1.0)]
    exact, R = (ends[0] - ends[1]) / 2.0 * walk, B * walk
    leading = theorem_5_1_leading(R, K)
    return Sides(
        exact,
        {
            "printed": leading,
            "derived": theorem_5_1_infinity(R, K, m, B),
            "sharpened": float(theorem_5_1_l2(np.full(K, R))),
            "control": leading / 20.0,
        },
        trivial=2.0 * B,
    )


WITH_CONSTANTS = draw.random_search_on_host(
    id="seqlength.thm5.1.constants",
    label="Theorem 5.1 with constants",
    tex=r"\mathrm{Rad}_m(\ell \circ \mathcal{H}) \le \min\left( 2 K \max_s R_s, \ "
    r"\inf_\delta 4 \delta + 12 \int_\delta^{2B} \sqrt{\tfrac{K}{m} \ln \mathcal{N}(\epsilon / 2)} "
    r"\, d\epsilon \right)",
    formula="Rad(CE o H) <= 2 K max_s R_s, and <= Dudley of K ln N(eps / 2), ln N from R_s as in"
    " `vector_contraction`",
    budget=Budget(samples=16, restarts=4, steps=7),
    over={"K": Integers(2, 40), "B": Box(0.001, 5)},
    sample=lambda key, size: {"m": 2 * draw.log_uniform(key, 0.0, 14.7).astype(int)},
    cases=draw.grid(m=(2, 10**6, 10**15), K=(3, 30), B=(0.1, 1.0)),
    hypotheses=lambda i, size: {"m is even": i["m"] % 2 == 0},
    evaluate=_constant_functions,
    judges=(theorem_5_1_infinity, theorem_5_1_l2, theorem_5_1_leading),
    sizes=({"largest": 10**15},),
    assumptions="all inputs are equal, so both complexities are known exactly; m is even",
    forms=(
        Form(
            name="printed",
            cites="Theorem 5.1, proof, the display",
            note="The bound on the loss's complexity is the leading term 2 sqrt K max_s Rad(F_s) "
            "with the hidden constant 1. K is the number of words, and F_s is the class of the "
            "scores of word s.",
        ),
        Form(
            name="derived",
            note=(
                "The bound on the loss's complexity has the factor sqrt(K) for K words, with "
                "every constant and every logarithm explicit."
            ),
        ),
        Form(
            name="sharpened",
            note="The bound of Maurer (2016) has no logarithm. Maurer's bound is smaller for every "
            "number K of words that is used in practice.",
        ),
    ),
    control="a twentieth of the leading term",
    source="Theorem 5.1, from Foster and Rakhlin (2019)",
)

STATEMENTS = (LINKS, WITH_CONSTANTS)
