"""Sections 2.6 and 4.1: the model."""

import jax
import jax.numpy as jnp

from jaxbounds.norms import vector_norm
from jaxbounds.seqlength.model import attend_from, block, head, head_at
from jaxbounds.seqlength.statements.instances import FEW, normals
from jaxbounds.statements import Form, Sides, Statement


def _head_sample(key, size):
    T, d, k = size["T"], size["d"], size["k"]
    return normals(key, {"X": (T, d), "W_QK": (d, d), "W_v": (d, k), "W_c": (k, d)})


def _cls_row(instance):
    X, W_QK, W_v, W_c = (instance[name] for name in ("X", "W_QK", "W_v", "W_c"))
    row = head(X, W_QK, W_v, W_c)[0]
    straight = jax.nn.relu(attend_from(X, W_QK.T, 0) @ W_v) @ W_c
    return Sides(
        row,
        {
            "printed": head_at(X, W_QK, W_v, W_c, 0),
            "printed (4.3)": straight,
            "control": head_at(X, W_QK, W_v, W_c, 1),
        },
    )


CLS_ROW = Statement(
    id="seqlength.sec4.1-cls",
    label="Section 4.1, Y_[CLS]",
    formula="row [CLS] of sigma(RowSoftmax(X W_QK X^T) X W_v) W_c"
    " = W_c^T sigma(W_v^T X^T softmax(X W_QK^T x_[CLS]))",
    kind="identity",
    sample=_head_sample,
    evaluate=_cls_row,
    sizes=({"T": 4, "d": 3, "k": 2},),
    forms=(
        Form(name="printed", note="the definition of Y_[CLS], with W_QK^T"),
        Form(
            name="printed (4.3)",
            expected="fails",
            erratum="E17",
            note="display 4.3 and Appendix C have W_QK for W_QK^T",
            counterexample={
                "X": [[0.0, 1.0], [1.0, 0.0]],
                "W_QK": [[0.0, 1.0], [0.0, 0.0]],
                "W_v": [[1.0], [0.0]],
                "W_c": [[1.0, 0.0]],
            },
        ),
    ),
    control="the row of the next token",
    budget=FEW,
    source="Sections 2.6 and 4.1",
)


def _block_norm(instance):
    layer = {name: instance[name] for name in ("W_QK", "W_v", "W_c")}
    longest = jnp.max(vector_norm(block(instance["X"], layer, activation=jnp.tanh)))
    return Sides(longest, {"printed": 1.0, "control": 0.5})


BLOCK_NORM = Statement(
    id="seqlength.sec2.6-block",
    label="Section 2.6, the projections",
    formula="every token of g^(i+1), i >= 1, has l_2 norm at most 1",
    kind="inequality",
    sample=_head_sample,
    evaluate=_block_norm,
    search="none",
    sizes=({"T": 4, "d": 3, "k": 2},),
    forms=(Form(name="printed", equality="the projection is active"),),
    control="1/2",
    budget=FEW,
    source="Section 2.6",
)


STATEMENTS = (
    BLOCK_NORM,
    CLS_ROW,
)
