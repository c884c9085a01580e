"""Appendix C: the column norms that its proofs use, and the range of the attention class."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets import Reals
from jaxbounds.claims.statements import Counterexample, Form, Instance, Sides, Size
from jaxbounds.numerics.norms import max_row_norm, vector_norm
from jaxbounds.seqlength.model import attend_from
from jaxbounds.seqlength.norms import column_norm, row_norm
from jaxbounds.seqlength.statements import instances as draw


def _longest(size: Size) -> Instance:
    P = np.random.default_rng(0).normal(size=(8, size["d"], size["T"]))
    at = np.linalg.norm(P, axis=1).argmax(axis=1)
    columns = P[np.arange(8), :, at]
    return {"P": P, "v": -np.eye(size["T"])[at], "u": columns}


def _norms(instance: Instance, size: Size) -> Sides:
    P, v, u = (instance[name] for name in ("P", "v", "u"))
    taken, mass = vector_norm(P @ v), vector_norm(v, 1)
    columns = column_norm(P, 2, math.inf)
    return Sides.pairs(
        {
            "printed": (taken, columns * mass),
            "derived, over rows": (taken, row_norm(P, 2, math.inf) * mass),
            # X = P^T has the tokens as rows, and X^T has the norm over columns.
            "printed, ||X||_{2->inf}": (jnp.max(jnp.abs(P.T @ u)), columns * vector_norm(u)),
            "control": (taken, 0.9 * columns * mass),
        }
    )


def _any_matrix(instance: Instance, size: Size) -> dict[str, Any]:
    P, v = np.asarray(instance["P"]), np.asarray(instance["v"])
    return {"P is a matrix and v a vector of as many entries as it has columns": P.shape[1:]
            == v.shape}  # fmt: skip


NORMS = draw.inequality(
    id="seqlength.appc.norms",
    label="Appendix C, ||Pv|| and ||X||_{2->inf}",
    tex=r"\|P v\|_2 \le \|P\|_{2,\infty} \|v\|_1, \quad \|X\|_{2 \to \infty} = "
    r"\|X^\top\|_{2,\infty}",
    formula="||Pv||_2 <= ||P||_{2,inf} ||v||_1, and ||Xu||_inf <= ||X^T||_{2,inf} ||u||_2,"
    " attained",
    over={"P": Reals(("d", "T")), "v": Reals("T"), "u": Reals("d")},
    cases=_longest,
    evaluate=_norms,
    judges=(column_norm, row_norm),
    hypotheses=lambda i, size: {
        "nothing is zero": jnp.min(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in i.values()]))
        > 1e-6
    },
    sizes=({"d": 2, "T": 3},),
    forms=(
        Form(
            name="printed",
            cites="Appendix C, '||Pv|| <= ||P||_{2,inf} ||v||_1'",
            equality="v = s e_j at the longest column",
        ),
        Form(
            name="derived, over rows",
            cites="Appendix C, '||Pv|| <= ||P||_{2,inf} ||v||_1', with ||.||_{2,inf} over rows",
            erratum="E4",
            note="This version of the claim uses norms over rows. The proof of Theorem 4.1 "
            "uses norms over columns.",
            counterexample=Counterexample(
                instance={"P": [[1.0], [1.0]], "v": [1.0], "u": [1.0, 0.0]},
                size={"d": 2, "T": 1},
                ratio=math.sqrt(2.0),
                meets=_any_matrix,
            ),
        ),
        Form(
            name="printed, ||X||_{2->inf}",
            cites="Appendix C, '||X||_{2->inf} = ||X^T||_{2,inf}'",
            note="The Cauchy-Schwarz inequality proves the bound for each row. Equality holds if u "
            "is the longest row of X, so no smaller bound is true.",
            equality="u the longest row of X",
        ),
    ),
    control="nine tenths of the right side",
)


def _equal_tokens(size: Size) -> Instance:
    rng, rows = np.random.default_rng(0), []
    for vertex in draw.signed_vertices(size["d"], 3.0):
        W = rng.normal(size=(size["d"], size["d"]))
        rows.append({"X": np.tile(vertex, (size["T"], 1)), "W": W})
    return draw.stacked(rows)


def _range(instance: Instance, size: Size) -> Sides:
    X = instance["X"]
    # The class has both signs s and all e_j, so its range is the largest coordinate.
    value = jnp.max(jnp.abs(attend_from(X, instance["W"], 0)))
    longest = max_row_norm(X)
    return Sides(
        value,
        {
            "printed": longest,
            "sharpened S5": jnp.max(jnp.abs(X)),
            "control": 0.9 * jnp.max(jnp.abs(X)),
        },
    )


RANGE = draw.inequality(
    id="seqlength.appc.range",
    label="Appendix C, the largest value",
    tex=r"\left| s \, e_j^\top X^\top \mathrm{softmax}(X W x) \right| \le B_x",
    formula="|s e_j^T X^T softmax(X W x)| <= B_x, ||x||_2 <= B_x for all tokens",
    over={"X": Reals(("T", "d")), "W": Reals(("d", "d"))},
    cases=_equal_tokens,
    evaluate=_range,
    judges=(attend_from, max_row_norm),
    hypotheses=lambda i, size: {"a token is not 0": jnp.max(jnp.abs(i["X"])) > 1e-6},
    sizes=({"T": 4, "d": 2},),
    forms=(
        Form(
            name="printed",
            cites="Appendix C, 'the largest value the function class can be is B_x'",
            note="A convex mixture of tokens is no longer than the longest token.",
            equality="all tokens B_x s e_j",
        ),
        Form(
            name="sharpened S5",
            note=(
                "The bound on an output entry of the attention is the largest entry max |X_tj| of "
                "the tokens. The proof uses this largest entry as the upper end of Dudley's "
                "integral."
            ),
            equality="all tokens B_x s e_j",
        ),
    ),
    control="nine tenths of the sharpened bound",
)

STATEMENTS = (NORMS, RANGE)
