"""Lemmas 3.2, 3.3, 3.6 and Appendix A: covers of linear maps."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.norms import vector_norm
from jaxbounds.seqlength import linear_bounds, linear_covers
from jaxbounds.seqlength.counting import count_signed
from jaxbounds.seqlength.covering_numbers import covering_number, sup_distances
from jaxbounds.seqlength.sparsification import sparsify_radius
from jaxbounds.seqlength.statements import instances as draw
from jaxbounds.statements import Counterexample, Form, Instance, Sides, Size, Statement

ORDERS = (1.0, 2.0, 4.0, math.inf)


def _lemma_3_2(instance: Instance, size: Size) -> Sides:
    W, x, epsilon = draw.numbers(instance, "W", "x", "epsilon")
    basis = np.eye(size["d"])

    def counts(points: np.ndarray) -> list[int]:
        values = np.einsum("fkd,nd->fnk", W, points)
        distances = [sup_distances(values, q, quasi=True) for q in (*ORDERS, 0.5)]
        return [covering_number(table, epsilon) for table in distances]

    *many, half = counts(basis)
    *on_all, half_on_all = counts(np.concatenate([basis, x]))
    far = counts(np.concatenate([basis, 3.0 * x]))[:-1]
    return Sides.pairs(
        {
            "printed": (half_on_all, half),
            "corrected": (np.array(on_all), np.array(many)),
            "control": (np.array(far), np.array(many)),
        }
    )


def _lemma_3_2_sample(key: Array, size: Size) -> Instance:
    a, b, c = jax.random.split(key, 3)
    k, d = size["k"], size["d"]
    W = jnp.concatenate([jnp.zeros((1, k, d)), jax.random.normal(a, (3, k, d))])
    epsilon = jax.random.uniform(c, (), minval=0.5, maxval=4.0)
    return {"W": W, "x": draw.l1_sphere(b, (4, d)), "epsilon": epsilon}


LEMMA_3_2 = Statement(
    id="seqlength.lemma3.2",
    label="Lemma 3.2",
    formula="N(F, eps, N, q) = N(F, eps, {B_x e_1, .., B_x e_d}, q), ||x||_1 <= B_x, N >= d",
    **draw.SAME_ON_HOST,
    sample=_lemma_3_2_sample,
    evaluate=_lemma_3_2,
    judges=(covering_number, sup_distances),
    hypotheses=lambda i, size: {"||x||_1 <= 1": jnp.max(jnp.sum(jnp.abs(i["x"]), 1)) <= 1 + 1e-12},
    sizes=({"k": 2, "d": 3},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E13",
            note="Section 2.4 allows any q > 0; at q = 1/2 the identity's columns have norm 1, but"
            " its value at (1/2, 1/2) has 2",
            counterexample=Counterexample(
                instance={
                    "W": [[[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]] * 2,
                    "x": [[0.5, 0.5]],
                    "epsilon": 1.5,
                },
                size={"k": 2, "d": 2},
                ratio=0.5,
            ),
        ),
        Form(name="corrected", note="q = 1, 2, 4, infinity; on the basis and four more points"),
    ),
    control="points of norm 3 B_x",
    source="Lemma 3.2, Appendix B",
)


def _columns(key: Array, size: Size) -> Instance:
    return {"W": draw.l1_sphere(key, (size["d"], size["k"])).T}


def _column_vertices(size: Size) -> Instance:
    """Every column at one and the same vertex of the l_1 ball."""
    return draw.stacked(
        [{"W": np.outer(v, np.ones(size["d"]))} for v in draw.signed_vertices(size["k"])]
    )


def _radii(K: int, error: Array) -> Sides:
    radius = sparsify_radius(1.0, K)
    sides = {"printed": K**-0.5, "sharpened S1": radius, "control": 0.9 * radius}
    return Sides(error, sides, error=1e-15)


def _lemma_3_3(instance: Instance, size: Size) -> Sides:
    W, K = instance["W"], size["K"]
    return _radii(K, linear_covers.error_on_l1_ball(W, linear_covers.cover_columns(W, 1.0, K), 1.0))


COVERED: dict[str, Any] = {
    "forms": (
        Form(name="printed", note="B_w B_x / sqrt K, from Maurey", equality=""),
        Form(
            name="sharpened S1",
            note="B_w B_x / (1 + sqrt K): the next K <= x^2 always suffices, strictly, without"
            " ceiling",
            equality="columns (or W) at a vertex of the l_1 ball",
        ),
    ),
    "control": "nine tenths of the sharpened radius",
}

LEMMA_3_3 = Statement(
    id="seqlength.lemma3.3",
    label="Lemma 3.3, the cover",
    formula="for ||W||_{1,inf} <= B_w a product of column covers has"
    " max_i B_x ||(W - What) e_i|| <= eps",
    **draw.INEQUALITY,
    **COVERED,
    sample=_columns,
    cases=_column_vertices,
    evaluate=_lemma_3_3,
    judges=(linear_covers.cover_columns, linear_covers.error_on_l1_ball, sparsify_radius),
    sizes=({"k": 4, "d": 3, "K": 5},),
)


def _entries(key: Array, size: Size) -> Instance:
    k, d = size["k"], size["d"]
    return {"W": draw.l1_sphere(key, (k * d,)).reshape(k, d)}


def _entry_vertices(size: Size) -> Instance:
    """One entry, +1 or -1."""
    k, d = size["k"], size["d"]
    return {"W": draw.signed_vertices(k * d).reshape(-1, k, d)}


def _lemma_3_6(instance: Instance, size: Size) -> Sides:
    W, K = instance["W"], size["K"]
    return _radii(K, linear_covers.error_on_l2_ball(W, linear_covers.cover_entries(W, 1.0, K), 1.0))


LEMMA_3_6 = Statement(
    id="seqlength.lemma3.6",
    label="Lemma 3.6, the cover",
    formula="for ||W||_{1,1} <= B_w the flattened cover has sup_{||x||_2 <= B_x} ||(W - What) x||"
    " <= eps",
    **draw.INEQUALITY,
    **COVERED,
    sample=_entries,
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


def _sizes_of_covers(instance: Instance, size: Size) -> Sides:
    x, k, d = draw.numbers(instance, "x", "k", "d")
    K, at = int(linear_bounds.sparsity_needed(x)), {"k": k, "d": d}
    columns = float(linear_bounds.lemma_3_3_sharp(x, **at))
    entries = float(linear_bounds.lemma_3_6_sharp(x, **at))
    # The covers are counted, where they are small enough to be listed.
    off = [1.0]
    if count_signed(k * d, K) <= 20_000:
        off.append(len(linear_covers.entries_cover(k, d, 1.0, K)) / math.exp(entries))
    if count_signed(k, K) ** d <= 20_000:
        off.append(len(linear_covers.columns_cover(k, d, 1.0, K)) / math.exp(columns))
    printed = linear_bounds.lemma_3_3(x, **at), linear_bounds.lemma_3_6(x, **at)
    whole = linear_bounds.lemma_3_3_ceil(x, **at), linear_bounds.lemma_3_6_ceil(x, **at)
    by_maurey = [math.log(count_signed(n, math.ceil(x**2))) for n in (k, k * d)]
    return Sides.pairs(
        {
            "printed (Lemma 3.3)": (columns, printed[0]),
            "printed (Lemma 3.6)": (entries, printed[1]),
            "sharpened S2": (max(*off, *(1.0 / ratio for ratio in off)), 1.0),
            "derived (Lemma 3.3)": (d * by_maurey[0], whole[0]),
            "derived (Lemma 3.6)": (by_maurey[1], whole[1]),
            "control": (columns, printed[0] / d / 2.0),
        }
    )


def _size_cases(size: Size) -> Instance:
    shapes = ((1, 1), (2, 3), (5, 2), (16, 16))
    scales = (0.5, 1.0, 1.4, 2.0, 2.5, 4.0, 9.0)
    return draw.stacked([{"x": x, "k": k, "d": d} for k, d in shapes for x in scales])


COVER_SIZES = Statement(
    id="seqlength.lemma3.6-size",
    label="Lemmas 3.3 and 3.6, the sizes",
    formula="ln N <= d x^2 ln(2k + 1) and ln N <= x^2 ln(2dk + 1), x = B_w B_x / eps",
    **draw.ON_HOST,
    cases=_size_cases,
    evaluate=_sizes_of_covers,
    judges=(
        *(linear_bounds.lemma_3_3, linear_bounds.lemma_3_3_ceil, linear_bounds.lemma_3_3_sharp),
        *(linear_bounds.lemma_3_6, linear_bounds.lemma_3_6_ceil, linear_bounds.lemma_3_6_sharp),
        linear_bounds.sparsity_needed,
    ),
    sizes=({"k": 16, "d": 16},),
    forms=(
        Form(name="printed (Lemma 3.3)", equality="x = 1, where K = 1"),
        Form(name="printed (Lemma 3.6)", equality="x = 1, where K = 1"),
        Form(name="sharpened S2", note="as many as are listed", equality="always"),
        Form(
            name="derived (Lemma 3.3)",
            note="ceil(x^2) for x^2: the sparsity that Maurey's own radius needs",
            equality="x = 1, where K = 1",
        ),
        Form(name="derived (Lemma 3.6)", note="the same", equality="x = 1, where K = 1"),
    ),
    control="half of it and without the factor d",
    source="Lemmas 3.3 and 3.6",
)


def _whole_covers(instance: Instance, size: Size) -> Sides:
    """The distance of random W to the listed covers, and the lists' logarithms."""
    x, seed = draw.numbers(instance, "x", "seed")
    rng, k, d = np.random.default_rng(seed), size["k"], size["d"]
    K, W = int(linear_bounds.sparsity_needed(x)), rng.normal(size=(k, d))
    columns, entries = (
        linear_covers.columns_cover(k, d, 1.0, K),
        linear_covers.entries_cover(k, d, 1.0, K),
    )
    per_column = np.linalg.norm(W / np.abs(W).sum(axis=0) - columns, axis=1).max(axis=1).min()
    flat = np.linalg.norm(W / np.abs(W).sum() - entries, ord=2, axis=(1, 2)).min()
    return Sides.pairs(
        {
            "derived (Lemma 3.3)": (per_column, 1.0 / x),
            "derived (Lemma 3.6)": (flat, 1.0 / x),
            "control": (per_column, 0.2 / x),
        }
    )


WHOLE_COVERS = Statement(
    id="seqlength.lemma3.6-lists",
    label="Lemmas 3.3 and 3.6, the covers as lists",
    formula="some member of the list is within eps of W, K = floor((x - 1)^2) + 1, x = B_w B_x/eps",
    **draw.ON_HOST,
    cases=lambda size: {"x": np.repeat([1.5, 1.9], 8), "seed": np.arange(16)},
    evaluate=_whole_covers,
    judges=(linear_covers.columns_cover, linear_covers.entries_cover),
    sizes=({"k": 2, "d": 2},),
    forms=(Form(name="derived (Lemma 3.3)"), Form(name="derived (Lemma 3.6)")),
    control="a fifth of the radius",
)


def _rows(key: Array, size: Size) -> Instance:
    key_W, key_x = jax.random.split(key)
    return {
        "W": draw.l1_sphere(key_W, (size["k"], size["d"])),
        "x": draw.l2_sphere(key_x, (size["d"],)),
    }


def _appendix_a(instance: Instance, size: Size) -> Sides:
    W, x, k = instance["W"], instance["x"], size["k"]
    moved = (W - linear_covers.cover_each_row(W, 1.0, size["K"])) @ x
    epsilon = sparsify_radius(1.0, size["K"])
    lengths = [(vector_norm(moved, q), k ** (1.0 / q) * epsilon) for q in (1.0, 2.0, math.inf)]
    worst = jnp.max(jnp.stack([length / bound for length, bound in lengths]))
    return Sides.pairs({"printed": (worst, 1.0), "control": (lengths[0][0], epsilon)})


def _row_vertices(size: Size) -> Instance:
    """Every row at one and the same vertex v of the l_1 ball, and x = v."""
    vertices = draw.signed_vertices(size["d"])
    return draw.stacked([{"W": np.outer(np.ones(size["k"]), v), "x": v} for v in vertices])


APPENDIX_A = Statement(
    id="seqlength.appendix-a",
    label="Appendix A",
    formula="a scalar cover at eps for each row gives ||(W - What) x||_q <= k^{1/q} eps",
    **draw.INEQUALITY,
    sample=_rows,
    cases=_row_vertices,
    evaluate=_appendix_a,
    judges=(linear_covers.cover_each_row, sparsify_radius),
    sizes=({"k": 3, "d": 2, "K": 2},),
    forms=(Form(name="printed", equality="all rows at the same vertex e_1, x = e_1"),),
    control="without k^{1/q}",
    source="Appendix A (|.|^q is meant for (.)^q)",
)

STATEMENTS = (LEMMA_3_2, LEMMA_3_3, LEMMA_3_6, COVER_SIZES, WHOLE_COVERS, APPENDIX_A)
