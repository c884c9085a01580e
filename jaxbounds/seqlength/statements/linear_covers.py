"""Lemmas 3.2, 3.3, 3.6 and Appendix A: covers of linear maps that are built."""

import math
from functools import partial

import jax
import jax.numpy as jnp

from jaxbounds.norms import vector_norm
from jaxbounds.seqlength import linear_bounds, linear_covers
from jaxbounds.seqlength.counting import (
    count_signed,
)
from jaxbounds.seqlength.statements.instances import (
    l1_sphere,
    l1_vertices,
    l2_sphere,
    stacked,
)
from jaxbounds.statements import Budget, Form, Sides, Statement

FEW = Budget(samples=64, restarts=0, steps=0, batch=64)
SUBSETS = tuple(sorted(range(1, 16), key=lambda mask: bin(mask).count("1")))


def _covering_number(values, epsilon, q):
    """N of four functions, values (4, points, k), by trying all subsets of centres."""
    difference = jnp.abs(values[:, None] - values[None])
    size = jnp.max(difference, -1) if q == math.inf else jnp.sum(difference**q, -1) ** (1.0 / q)
    near = jnp.max(size, axis=-1) < epsilon
    sizes = []
    for mask in SUBSETS:
        chosen = [j for j in range(4) if mask >> j & 1]
        whole = jnp.all(jnp.any(near[jnp.array(chosen)], axis=0))
        sizes.append(jnp.where(whole, float(len(chosen)), 4.0))
    return jnp.min(jnp.stack(sizes))


def _lemma_3_2(instance):
    W, x, epsilon = instance["W"], instance["x"], instance["epsilon"]
    d = W.shape[2]
    basis = jnp.eye(d, dtype=W.dtype)
    number = lambda points, q: _covering_number(jnp.einsum("fkd,nd->fnk", W, points), epsilon, q)
    all_points = jnp.concatenate([basis, x])
    far = jnp.concatenate([basis, 3.0 * x])
    many = lambda points: jnp.stack([number(points, q) for q in (1.0, 2.0, 4.0, math.inf)])
    return Sides(
        lhs={
            "printed": number(all_points, 0.5),
            "corrected": many(all_points),
            "control": many(far),
        },
        rhs={"printed": number(basis, 0.5), "corrected": many(basis), "control": many(basis)},
    )


def _lemma_3_2_sample(key, size):
    a, b, c = jax.random.split(key, 3)
    W = jnp.concatenate([jnp.zeros((1, size["k"], size["d"])),
                         jax.random.normal(a, (3, size["k"], size["d"]))])  # fmt: skip
    epsilon = jax.random.uniform(c, (), minval=0.5, maxval=4.0)
    return {"W": W, "x": l1_sphere(b, (4, size["d"])), "epsilon": epsilon}


LEMMA_3_2 = Statement(
    id="seqlength.lemma3.2",
    label="Lemma 3.2",
    formula="N(F, eps, N, q) = N(F, eps, {B_x e_1, .., B_x e_d}, q), ||x||_1 <= B_x, N >= d",
    kind="identity",
    sample=_lemma_3_2_sample,
    evaluate=_lemma_3_2,
    hypotheses=lambda i: {"||x||_1 <= 1": jnp.max(jnp.sum(jnp.abs(i["x"]), 1)) <= 1 + 1e-12},
    sizes=({"k": 2, "d": 3},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E13",
            note="Section 2.4 allows any q > 0; at q = 1/2 the identity's columns have norm 1, but"
            " its value at (1/2, 1/2) has 2",
            counterexample={
                "W": [[[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]] * 2,
                "x": [[0.5, 0.5]],
                "epsilon": 1.5,
            },
        ),
        Form(name="corrected", note="q = 1, 2, 4, infinity; on the basis and four more points"),
    ),
    control="points of norm 3 B_x",
    budget=Budget(samples=192, restarts=0, steps=0, batch=64),
    source="Lemma 3.2, Appendix B",
)


def _matrix_sample(draw, key, size, *, by):
    """A k x d matrix from draws in l_1 balls, by columns, by rows, or as a whole."""
    k, d = size["k"], size["d"]
    if by == "columns":
        W = draw(key, (d, k)).T
    elif by == "rows":
        W = draw(key, (k, d))
    else:
        W = draw(key, (k * d,)).reshape(k, d)
    return {"W": W, "slots": jnp.zeros(size["K"], jnp.int32)}


def _samplers(by):
    return {
        "spread": partial(_matrix_sample, l1_sphere, by=by),
        "vertices": partial(_matrix_sample, l1_vertices, by=by),
    }


def _lemma_3_3(instance):
    W, K = instance["W"], instance["slots"].shape[0]
    error = linear_covers.error_on_l1_ball(W, linear_covers.cover_columns(W, 1.0, K), 1.0)
    radius = 1.0 / (1.0 + math.sqrt(K))
    return Sides(
        error, {"printed": K**-0.5, "sharpened S1": radius, "control": 0.9 * radius}, error=1e-15
    )


COLUMNS = (
    Form(name="printed", note="B_w B_x / sqrt K, from Maurey", equality=""),
    Form(
        name="sharpened S1",
        note="B_w B_x / (1 + sqrt K): the next K <= x^2 always suffices, strictly, without ceiling",
        equality="columns (or W) at a vertex of the l_1 ball",
    ),
)

LEMMA_3_3 = Statement(
    id="seqlength.lemma3.3",
    label="Lemma 3.3, the cover",
    formula="for ||W||_{1,inf} <= B_w a product of column covers has"
    " max_i B_x ||(W - What) e_i|| <= eps",
    kind="inequality",
    sample=_samplers("columns"),
    evaluate=_lemma_3_3,
    search="none",
    sizes=({"k": 3, "d": 2, "K": 2}, {"k": 4, "d": 3, "K": 5}),
    forms=COLUMNS,
    control="nine tenths of the sharpened radius",
    budget=FEW,
    source="Lemma 3.3",
)


def _lemma_3_6(instance):
    W, K = instance["W"], instance["slots"].shape[0]
    error = linear_covers.error_on_l2_ball(W, linear_covers.cover_entries(W, 1.0, K), 1.0)
    radius = 1.0 / (1.0 + math.sqrt(K))
    return Sides(
        error, {"printed": K**-0.5, "sharpened S1": radius, "control": 0.9 * radius}, error=1e-15
    )


LEMMA_3_6 = Statement(
    id="seqlength.lemma3.6",
    label="Lemma 3.6, the cover",
    formula="for ||W||_{1,1} <= B_w the flattened cover has sup_{||x||_2 <= B_x} ||(W - What) x||"
    " <= eps",
    kind="inequality",
    sample=_samplers("whole"),
    evaluate=_lemma_3_6,
    search="none",
    sizes=({"k": 3, "d": 2, "K": 2}, {"k": 3, "d": 4, "K": 5}),
    forms=COLUMNS,
    control="nine tenths of the sharpened radius",
    budget=FEW,
    source="Lemma 3.6",
)


def _size_cases(size):
    rows = []
    for k, d in ((1, 1), (2, 3), (5, 2), (16, 16)):
        for x in (1.0, 1.4, 2.0, 2.5, 4.0, 9.0):
            K = linear_covers.sparsity_needed(x)
            # The covers are counted, where they are small enough to be listed.
            listed = count_signed(k * d, K) <= 20_000
            cover = linear_covers.entries_cover(k, d, 1.0, K) if listed else ()
            columns = len(linear_covers.l1_ball_cover(k, 1.0, K)) if listed else 0
            rows.append(
                {
                    "x": x,
                    "k": float(k),
                    "d": float(d),
                    "columns": d * math.log(columns)
                    if listed
                    else linear_bounds.lemma_3_3_sharp(x, k=k, d=d),
                    "entries": math.log(len(cover))
                    if listed
                    else linear_bounds.lemma_3_6_sharp(x, k=k, d=d),
                }
            )
    return stacked(rows)


def _sizes_of_covers(instance):
    x, k, d = instance["x"], instance["k"], instance["d"]
    columns = d * x**2 * jnp.log(2.0 * k + 1.0)
    entries = x**2 * jnp.log(2.0 * d * k + 1.0)
    return Sides(
        lhs={
            "printed (Lemma 3.3)": instance["columns"],
            "printed (Lemma 3.6)": instance["entries"],
            "control": instance["columns"],
        },
        rhs={
            "printed (Lemma 3.3)": columns,
            "printed (Lemma 3.6)": entries,
            "control": columns / d / 2.0,
        },
    )


COVER_SIZES = Statement(
    id="seqlength.lemma3.6-size",
    label="Lemmas 3.3 and 3.6, the sizes",
    formula="ln N <= d x^2 ln(2k + 1) and ln N <= x^2 ln(2dk + 1), x = B_w B_x / eps",
    kind="inequality",
    cases=_size_cases,
    evaluate=_sizes_of_covers,
    search="none",
    sizes=({"k": 16, "d": 16},),
    forms=(
        Form(name="printed (Lemma 3.3)", equality="x = 1, where K = 1"),
        Form(name="printed (Lemma 3.6)", equality="x = 1, where K = 1"),
    ),
    control="half of it and without the factor d",
    budget=FEW,
    source="Lemmas 3.3 and 3.6",
)


def _row_product_sample(draw, key, size):
    key_W, key_x = jax.random.split(key)
    drawn = _matrix_sample(draw, key_W, size, by="rows")
    return {**drawn, "x": l2_sphere(key_x, (size["d"],))}


def _appendix_a(instance):
    W, x, K = instance["W"], instance["x"], instance["slots"].shape[0]
    k = W.shape[0]
    moved = (W - linear_covers.cover_each_row(W, 1.0, K)) @ x
    epsilon = 1.0 / (1.0 + math.sqrt(K))
    sizes = [(vector_norm(moved, q), k ** (1.0 / q) * epsilon) for q in (1.0, 2.0, math.inf)]
    worst = jnp.max(jnp.stack([size / bound for size, bound in sizes]))
    return Sides(
        lhs={"printed": worst, "control": sizes[0][0]}, rhs={"printed": 1.0, "control": epsilon}
    )


def _appendix_a_cases(size):
    row = jnp.eye(size["d"])[0]
    shape = (1, size["k"], size["d"])
    slots = jnp.zeros((1, size["K"]), jnp.int32)
    return {"W": jnp.broadcast_to(row, shape), "slots": slots, "x": row[None]}


APPENDIX_A = Statement(
    id="seqlength.appendix-a",
    label="Appendix A",
    formula="a scalar cover at eps for each row gives ||(W - What) x||_q <= k^{1/q} eps",
    kind="inequality",
    sample={
        "spread": partial(_row_product_sample, l1_sphere),
        "vertices": partial(_row_product_sample, l1_vertices),
    },
    cases=_appendix_a_cases,
    evaluate=_appendix_a,
    search="none",
    sizes=({"k": 3, "d": 2, "K": 2},),
    forms=(Form(name="printed", equality="all rows at the same vertex e_1, x = e_1"),),
    control="without k^{1/q}",
    budget=FEW,
    source="Appendix A (|.|^q is meant for (.)^q)",
)


STATEMENTS = (
    LEMMA_3_2,
    LEMMA_3_3,
    LEMMA_3_6,
    COVER_SIZES,
    APPENDIX_A,
)
