"""Lemmas 3.3 and 3.6, Appendix A: the sizes of covers, and covers as lists."""

import math

import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets import Ball, Box, Reals
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size
from jaxbounds.numerics.norms import vector_norm
from jaxbounds.seqlength import linear_bounds, linear_covers
from jaxbounds.seqlength.counting import count_signed
from jaxbounds.seqlength.sparsification import sparsify_radius
from jaxbounds.seqlength.statements import instances as draw


def _sizes_of_covers(instance: Instance, size: Size) -> Sides:
    x, k, d = draw.numbers(instance, "x", "k", "d")
    K, at = int(linear_bounds.sparsity_needed(x)), {"k": k, "d": d}
    entries = float(linear_bounds.lemma_3_6_sharp(x, **at))
    # The code counts the members of a cover that is small enough to be listed.
    off = [1.0]
    if count_signed(k * d, K) <= 20_000:
        off.append(len(linear_covers.entries_cover(k, d, 1.0, K)) / math.exp(entries))
    # Appendix A covers each of the k rows in R^d; the product of these covers is Lemma 3.3's cover
    # of W^T.
    rows = float(linear_bounds.lemma_3_3_sharp(x, k=d, d=k))
    listed = rows
    if count_signed(d, K) ** k <= 20_000:
        listed = math.log(len(linear_covers.columns_cover(d, k, 1.0, K)))
    printed = linear_bounds.lemma_3_6(x, **at)
    by_maurey = math.log(count_signed(k * d, math.ceil(x**2)))
    return Sides.pairs(
        {
            "printed (Lemma 3.6)": (entries, printed),
            "printed (Appendix A)": (listed, rows),
            "sharpened S2": (max(*off, *(1.0 / ratio for ratio in off)), 1.0),
            "derived (Lemma 3.6)": (by_maurey, linear_bounds.lemma_3_6_ceil(x, **at)),
            "control": (entries, printed / 4.0),
        }
    )


def _sizes_of_columns(instance: Instance, size: Size) -> Sides:
    x, k, d = draw.numbers(instance, "x", "k", "d")
    K, at = int(linear_bounds.sparsity_needed(x)), {"k": k, "d": d}
    columns, off = float(linear_bounds.lemma_3_3_sharp(x, **at)), 1.0
    if count_signed(k, K) ** d <= 20_000:
        off = len(linear_covers.columns_cover(k, d, 1.0, K)) / math.exp(columns)
    by_maurey = d * math.log(count_signed(k, math.ceil(x**2)))
    printed = linear_bounds.lemma_3_3(x, **at)
    return Sides.pairs(
        {
            "printed": (columns, printed),
            "sharpened S2": (max(off, 1.0 / off), 1.0),
            "derived": (by_maurey, linear_bounds.lemma_3_3_ceil(x, **at)),
            "control": (columns, printed / d / 2.0),
        }
    )


K_IS_ONE = "x = 1, where K = 1"

COLUMN_SIZES = draw.on_host(
    id="seqlength.lemma3.3.size",
    label="Lemma 3.3, the size",
    tex=r"\ln \mathcal{N} \le d \, x^2 \ln(2k + 1), \quad x = \frac{B_w B_x}{\epsilon}",
    formula="ln N <= d x^2 ln(2k + 1), x = B_w B_x / eps",
    cases=draw.grid(x=(0.5, 1.0, 1.4, 2.5, 9.0), k=(1, 2, 16), d=(1, 3, 16)),
    evaluate=_sizes_of_columns,
    judges=(
        *(linear_bounds.lemma_3_3, linear_bounds.lemma_3_3_ceil, linear_bounds.lemma_3_3_sharp),
        linear_bounds.sparsity_needed,
    ),
    sizes=({"k": 16, "d": 16},),
    assumptions="the check compares the counted members of the proof's cover with the printed "
    "number, for x up to 9, k and d up to 16; seqlength.lemma3.3 and "
    "seqlength.lemma3.6.lists check that it covers at radius eps, for any N points",
    forms=(
        Form(name="printed", cites="Lemma 3.3, its display", equality=K_IS_ONE),
        Form(
            name="sharpened S2",
            note="The formula for the cover's size equals the number of members that the check "
            "lists.",
            equality="always",
        ),
        Form(
            name="derived",
            note="The bound has ceil(x^2) in place of x^2, because Maurey's method averages a "
            "whole number of vectors.",
            equality=K_IS_ONE,
        ),
    ),
    control="half of the right side, without the factor d",
    source="Lemma 3.3",
)

COVER_SIZES = draw.on_host(
    id="seqlength.lemma3.6.size",
    label="Lemma 3.6 and Appendix A, the sizes",
    tex=r"\ln \mathcal{N} \le x^2 \ln(2dk + 1), \quad x = \frac{B_w B_x}{\epsilon}",
    formula="ln N <= x^2 ln(2dk + 1), x = B_w B_x / eps",
    cases=draw.grid(x=(0.5, 1.0, 1.4, 2.5, 9.0), k=(1, 2, 16), d=(1, 3, 16)),
    evaluate=_sizes_of_covers,
    judges=(
        *(linear_bounds.lemma_3_6, linear_bounds.lemma_3_6_ceil, linear_bounds.lemma_3_6_sharp),
        *(linear_bounds.lemma_3_3_sharp, linear_bounds.sparsity_needed),
    ),
    sizes=({"k": 16, "d": 16},),
    assumptions="the check compares the counted members of the proofs' covers with the printed "
    "numbers, for x up to 9, k and d up to 16; seqlength.lemma3.3, seqlength.lemma3.6 "
    "and seqlength.lemma3.6.lists check that they cover at radius eps, for any N "
    "points",
    forms=(
        Form(name="printed (Lemma 3.6)", cites="Lemma 3.6, its display", equality=K_IS_ONE),
        Form(
            name="printed (Appendix A)",
            cites="Appendix A, the last display",
            note="The check covers each row of a matrix by Lemma 3.1, for rows in the l_1 ball "
            "only. If the cover of one row has the log size C, the product of all k rows' covers "
            "has the log size k C. The check lists a small product.",
            equality="always",
        ),
        Form(
            name="sharpened S2",
            note="The formula for the cover's size equals the number of members that the check "
            "lists.",
            equality="always",
        ),
        Form(
            name="derived (Lemma 3.6)",
            note="The bound has ceil(x^2) in place of x^2, because Maurey's method averages a "
            "whole number of vectors.",
            equality=K_IS_ONE,
        ),
    ),
    control="a quarter of the right side",
    source="Lemma 3.6 and Appendix A",
)


def _whole_covers(instance: Instance, size: Size) -> Sides:
    (x, W), k, d = draw.numbers(instance, "x", "W"), size["k"], size["d"]
    K = int(linear_bounds.sparsity_needed(x))
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


WHOLE_COVERS = draw.random_search_on_host(
    id="seqlength.lemma3.6.lists",
    label="Lemmas 3.3 and 3.6, the covers as lists",
    tex=r"\min_{\hat{W}} \sup_x \left\| (W - \hat{W}) x \right\|_2 \le \epsilon, \quad K = "
    r"\lfloor (x - 1)^2 \rfloor + 1, \quad x = \frac{B_w B_x}{\epsilon}",
    formula="some member of the list is within eps of W, K = floor((x - 1)^2) + 1, x = B_w B_x/eps",
    budget=Budget(samples=48, restarts=4, steps=60),
    over={"x": Box(1, 2.4), "W": Reals(("k", "d"))},
    hypotheses=lambda i, size: {"no column is zero": np.abs(i["W"]).sum(axis=0).min() > 1e-6},
    evaluate=_whole_covers,
    judges=(linear_covers.columns_cover, linear_covers.entries_cover),
    sizes=({"k": 2, "d": 2},),
    forms=(Form(name="derived (Lemma 3.3)"), Form(name="derived (Lemma 3.6)")),
    control="a fifth of the radius",
)


def _appendix_a(instance: Instance, size: Size) -> Sides:
    W, x, k = instance["W"], instance["x"], size["k"]
    moved = (W - linear_covers.cover_each_row(W, 1.0, size["K"])) @ x
    epsilon = sparsify_radius(1.0, size["K"])
    lengths = [(vector_norm(moved, q), k ** (1.0 / q) * epsilon) for q in (1.0, 2.0, math.inf)]
    worst = jnp.max(jnp.stack([length / bound for length, bound in lengths]))
    # For every cover of the rows and every q > 0, each output moves by at most epsilon.
    steps = jnp.abs((W - instance["moved"]) @ x)
    largest = jnp.max(steps)
    powers = [(jnp.sum(steps**q), k * largest**q) for q in (0.5, 1.0, 2.0, 4.0)]
    any_cover = jnp.max(jnp.stack([length / bound for length, bound in powers]))
    return Sides.pairs(
        {"printed": (any_cover, 1.0), "derived": (worst, 1.0), "control": (lengths[0][0], epsilon)}
    )


def _row_vertices(size: Size) -> Instance:
    vertices = draw.signed_vertices(size["d"])
    W = np.stack([vertices] * size["k"], axis=1)
    return {"W": W, "moved": 0.0 * W, "x": vertices}


APPENDIX_A = draw.inequality(
    id="seqlength.appa",
    label="Appendix A",
    tex=r"\left\| (W - \hat{W}) x_t \right\|_q^q \le k \epsilon^q, \quad \ln "
    r"\mathcal{N}_\infty\left( \mathcal{F}, k^{1/q} \epsilon, N, \|\cdot\|_q \right) \le "
    r"k C",
    formula="a scalar cover of log size C at eps for each row gives ||(W - W_hat) x||_q <= k^{1/q}"
    " eps with log size kC",
    over={"x": Ball(1, "d"), "moved": Reals(("k", "d"))},
    sample=lambda key, size: {"W": draw.l1_sphere(key, (size["k"], size["d"]))},
    cases=_row_vertices,
    evaluate=_appendix_a,
    judges=(linear_covers.cover_each_row, sparsify_radius),
    sizes=({"k": 3, "d": 2, "K": 2},),
    assumptions="the check uses the first display, at one input and q = 1/2, 1, 2, 4, k = 3, d = "
    "2; seqlength.lemma3.6.size checks that the product of the rows' covers has the "
    "log size kC",
    forms=(
        Form(
            name="printed",
            cites="Appendix A, the display before the last",
            note=(
                "The inequality holds for any cover of the rows of W, and for any norm exponents "
                "r, s and q > 0."
            ),
            equality="all outputs moved alike",
        ),
        Form(
            name="derived",
            note=(
                "The rows have the cover of Lemma 3.1 with r = 1 and s = 2: the bound on the rows "
                "is in the l_1 norm, and the bound on the inputs in the l_2 norm."
            ),
            equality="all rows at the same vertex e_1, x = e_1",
        ),
    ),
    control="without k^{1/q}",
    source="Appendix A (|.|^q is meant for (.)^q)",
)

STATEMENTS = (COLUMN_SIZES, COVER_SIZES, WHOLE_COVERS, APPENDIX_A)
