"""Lemmas 3.3, 3.6 and Appendix A: covers of linear maps that are built."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.norms import vector_norm
from jaxbounds.seqlength import linear_bounds, linear_covers
from jaxbounds.seqlength.counting import count_signed
from jaxbounds.seqlength.statements.instances import (
    FEW,
    l1_sphere,
    l2_sphere,
    signed_vertices,
    stacked,
)
from jaxbounds.statements import Form, Sides, Statement


def _slots(size):
    """K as a shape."""
    return np.zeros(size["K"], np.int32)


def _columns(key, size):
    return {"W": l1_sphere(key, (size["d"], size["k"])).T, "slots": _slots(size)}


def _column_vertices(size):
    """Every column at one and the same vertex of the l_1 ball."""
    rows = [np.outer(v, np.ones(size["d"])) for v in signed_vertices(size["k"])]
    return stacked([{"W": W, "slots": _slots(size)} for W in rows])


def _entries(key, size):
    k, d = size["k"], size["d"]
    return {"W": l1_sphere(key, (k * d,)).reshape(k, d), "slots": _slots(size)}


def _entry_vertices(size):
    """One entry, +1 or -1."""
    k, d = size["k"], size["d"]
    return stacked([{"W": v.reshape(k, d), "slots": _slots(size)} for v in signed_vertices(k * d)])


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
    sample=_columns,
    cases=_column_vertices,
    evaluate=_lemma_3_3,
    search="none",
    sizes=({"k": 4, "d": 3, "K": 5},),
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
    sample=_entries,
    cases=_entry_vertices,
    evaluate=_lemma_3_6,
    search="none",
    sizes=({"k": 3, "d": 4, "K": 5},),
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


def _rows(key, size):
    key_W, key_x = jax.random.split(key)
    W, x = l1_sphere(key_W, (size["k"], size["d"])), l2_sphere(key_x, (size["d"],))
    return {"W": W, "slots": _slots(size), "x": x}


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
    """Every row at one and the same vertex v of the l_1 ball, and x = v."""
    return stacked(
        [
            {"W": np.outer(np.ones(size["k"]), v), "slots": _slots(size), "x": v}
            for v in signed_vertices(size["d"])
        ]
    )


APPENDIX_A = Statement(
    id="seqlength.appendix-a",
    label="Appendix A",
    formula="a scalar cover at eps for each row gives ||(W - What) x||_q <= k^{1/q} eps",
    kind="inequality",
    sample=_rows,
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
    LEMMA_3_3,
    LEMMA_3_6,
    COVER_SIZES,
    APPENDIX_A,
)
