"""Statements about the Transformer model of Sections 2.6, 4.1 and 4.2."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets import Reals
from jaxbounds.claims.statements import Counterexample, Form, Instance, Sides, Size
from jaxbounds.numerics.norms import vector_norm
from jaxbounds.seqlength import model
from jaxbounds.seqlength.statements.instances import identity, inequality

HEAD = {"X": Reals(("T", "d")), "W_QK": Reals(("d", "d"))}
HEAD |= {"W_v": Reals(("d", "k")), "W_c": Reals(("k", "d"))}


def _cls_row(instance: Instance, size: Size) -> Sides:
    X, W_QK, W_v, W_c = (instance[name] for name in ("X", "W_QK", "W_v", "W_c"))
    return Sides(
        model.head(X, W_QK, W_v, W_c)[0],
        {
            "printed": model.head_at(X, W_QK, W_v, W_c, 0),
            "printed (complexity)": model.head_at(X, W_QK.T, W_v, W_c, 0),
            "control": model.head_at(X, W_QK, W_v, W_c, 1),
        },
    )


def _shapes(instance: Instance, size: Size) -> dict[str, Any]:
    d, k = size["d"], size["k"]
    shapes = {"W_QK": (d, d), "W_v": (d, k), "W_c": (k, d), "X": (size["T"], d)}
    z, columns = np.linspace(-3.0, 3.0, 61), lambda W: np.abs(W).sum(axis=0).max()
    given = {name: np.asarray(instance[name], float) for name in shapes}
    return {
        f"{name} in R^{shape} (Section 2.6)": given[name].shape == shape
        for name, shape in shapes.items()
    } | {
        "W_QK = W_Q W_K^T of W_Q, W_K in R^{d x T} (Section 2.6)": np.linalg.matrix_rank(
            given["W_QK"]
        )
        <= size["T"],
        "sigma = relu: sigma(0) = 0, 1-Lipschitz (Section 2.6)": float(jax.nn.relu(0.0)) == 0
        and bool(np.all(np.abs(np.diff(np.asarray(jax.nn.relu(z)))) <= np.diff(z) + 1e-12)),
        "||x||_2 < B_x = 2 (Theorem 4.1)": np.linalg.norm(given["X"], axis=1).max() < 2,
        "||W_c^T||_{1,inf}, ||W_v^T||_{1,inf} <= 1 (Section 4.1)": max(
            columns(given["W_c"].T), columns(given["W_v"].T)
        )
        <= 1,
        "||W_QK||_{1,1} <= 1 (Corollary 4.1.1)": np.abs(given["W_QK"]).sum() <= 1,
    }


CLS_ROW = identity(
    id="seqlength.sec4.1.cls",
    label="Section 4.1, Y_[CLS]",
    tex=r"\left( \sigma\left( \mathrm{RowSoftmax}(X W_{QK} X^\top) X W_v \right) W_c "
    r"\right)_{\mathrm{[CLS]}} = W_c^\top \sigma\left( W_v^\top X^\top \mathrm{softmax}(X "
    r"W_{QK}^\top x_{\mathrm{[CLS]}}) \right)",
    formula="row [CLS] of sigma(RowSoftmax(X W_QK X^T) X W_v) W_c"
    " = W_c^T sigma(W_v^T X^T softmax(X W_QK^T x_[CLS]))",
    over=HEAD,
    evaluate=_cls_row,
    judges=(model.head, model.head_at, model.attend, model.attention_scores),
    sizes=({"T": 4, "d": 3, "k": 2},),
    forms=(
        Form(
            name="printed",
            cites="Section 4.1, the display of Y_[CLS], and Section 2.6, the head",
            note="The check uses W_QK^T, as the paper's definition of Y_[CLS] does.",
        ),
        Form(
            name="printed (complexity)",
            cites="Section 4.1, the display of the Rademacher complexity",
            erratum="E17",
            note="The display of the Rademacher complexity and Appendix C print W_QK in place of "
            "W_QK^T.",
            counterexample=Counterexample(
                instance={
                    "X": [[0.0, 1.0], [1.0, 0.0]],
                    "W_QK": [[0.0, 1.0], [0.0, 0.0]],
                    "W_v": [[1.0], [0.0]],
                    "W_c": [[1.0, 0.0]],
                },
                size={"T": 2, "d": 2, "k": 1},
                ratio=0.31606027941427883,
                meets=_shapes,
            ),
        ),
    ),
    control="the row of the next token",
    source="Sections 2.6 and 4.1",
)


def _block_norm(instance: Instance, size: Size) -> Sides:
    following = model.block(instance["X"], instance, activation=jnp.tanh)
    return Sides(jnp.max(vector_norm(following)), {"printed": 1.0, "control": 0.5})


BLOCK_NORM = inequality(
    id="seqlength.sec2.6.block",
    label="Section 2.6, the projections",
    tex=r"\max_t \left\| g_{\mathrm{block}}^{(i+1)}(X)_t \right\|_2 \le 1, \quad i \ge 1",
    formula="every token of g^(i+1), i >= 1, has l_2 norm at most 1",
    over=HEAD,
    evaluate=_block_norm,
    judges=(model.block,),
    sizes=({"T": 4, "d": 3, "k": 2},),
    assumptions="one block, sigma = tanh, T = 4, d = 3, k = 2; Pi_norm projects onto the l_2 unit "
    "ball, since the text does not name the norm",
    forms=(
        Form(
            name="printed",
            cites="Section 2.6, 'Pi_norm projects each row onto the unit ball'",
            equality="the projection is active",
        ),
    ),
    control="1/2",
)


def _networks(instance: Instance, size: Size) -> Sides:
    X, w = instance["X"], instance["w"]
    layers = {name: instance[name] for name in ("W_QK", "W_v", "W_c")}
    params = {"params": {**layers, "w": w[:, None]}}
    many, k = size["layers"], size["k"]
    heads = jax.vmap(model.head, (None, 0, 0, 0))(X, *layers.values())
    g = X
    for i in range(many):
        g = model.block(g, {name: leaf[i] for name, leaf in layers.items()})
    single: Any = model.SingleLayer(hidden=k, heads=many, cls=1).apply(params, X)
    multi: Any = model.MultiLayer(hidden=k, layers=many, cls=1).apply(params, X)
    found = jnp.stack([single, multi, model.blocks(X, layers)[-1][1] @ w])
    one, all_ = jnp.sum(heads, axis=0) @ w, g @ w
    expected = jnp.stack([one[1], all_[1], all_[1]])
    control = jnp.stack([one[0] / many, all_[0], all_[0]])
    return Sides(found, {"printed": expected, "control": control})


NETWORKS = identity(
    id="seqlength.sec4.2.networks",
    label="Sections 4.2 and 4.3, the scalar outputs",
    tex=r"w^\top \sum_{h=1}^H Y_h(X)_{\mathrm{[CLS]}}, \quad g_{\mathrm{scalar}}(X) = w^\top "
    r"g_{\mathrm{block}}^{(L+1)}(X)_{\mathrm{[CLS]}}",
    formula="SingleLayer is w.sum_h Y_h and MultiLayer w.g^(L+1), at the [CLS] token",
    over={"X": Reals(("T", "d")), "w": Reals("d"), "W_QK": Reals(("layers", "d", "d"))}
    | {"W_v": Reals(("layers", "d", "k")), "W_c": Reals(("layers", "k", "d"))},
    evaluate=_networks,
    judges=(model.blocks, model.block, model.head),
    sizes=({"layers": 2, "T": 3, "d": 2, "k": 2},),
    forms=(
        Form(
            name="printed",
            cites="Section 2.6, the displays of several heads and of g^(i+1); Section 4.2",
            note="The check compares the outputs of the Flax modules with a separate computation "
            "of each head and each block.",
        ),
    ),
    control="the output at the first token, and the mean over heads",
)

STATEMENTS = (BLOCK_NORM, CLS_ROW, NETWORKS)
