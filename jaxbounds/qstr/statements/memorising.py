"""Statements about Theorem 9's network that memorises, and about the network's norm."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets import Reals, Sphere
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.numerics.norms import spectral_norm
from jaxbounds.qstr import interpolator, memorisers, rnn_bounds
from jaxbounds.qstr.links import TwoLayer
from jaxbounds.qstr.relu_networks import Layer, evaluate
from jaxbounds.qstr.statements.common import reals, searched


def _equal_case(size: Size) -> Instance:
    one = np.zeros((size["k"], size["k"]))
    one[0, 0] = 1.7
    return {"U": one[None], "W": np.stack([one, one])[None]}


def _am_gm(i: Instance, size: Size) -> Sides:
    U, none = i["U"], jnp.zeros(size["k"])
    L, total = rnn_bounds.lipschitz_and_norm(U, [Layer(W, none) for W in i["W"]])
    mean = lambda square: rnn_bounds.weight_norm_lower_bound(L**2 * square, 3)
    frobenius = mean(jnp.sum(U**2))
    return Sides.pairs(
        {
            "printed": (mean(spectral_norm(U) ** 2), total),
            "sharpened": (frobenius, total),
            "control": (2 * frobenius, total),
        }
    )


AM_GM = searched(
    id="qstr.thm9.amgm",
    label="Theorem 9 (AM-GM step)",
    formula="L_y (L^2 |U|_op^2)^{1/L_y} <= |vec Theta|^2, L_y = 3",
    tex=r"(\mathfrak{L}^2 \|U\|_{\mathrm{op}}^2)^{1 / L_y} \le \frac{1}{L_y} "
    r"\|\mathrm{vec}(\Theta_{\mathrm{RNN}})\|_2^2",
    judges=(rnn_bounds.weight_norm_lower_bound, rnn_bounds.lipschitz_and_norm),
    over=reals("U: k k, W: 2 k k"),
    cases=_equal_case,
    evaluate=_am_gm,
    forms=(
        Form(
            name="printed",
            cites="Theorem 9, proof: 'Using the AM-GM inequality'",
            equality="equal rank-one layers",
        ),
        Form(
            name="sharpened",
            equality="equal rank-one layers",
            note="This version of the claim has |U|_F in place of |U|_op.",
        ),
    ),
    control="twice the left side",
    sizes=({"k": 2},),
    assumptions="L_y = 3; biases and W_y left out, which only add to |vec|^2",
    source="Theorem 9, proof in Appendix C.4",
)


def _embedding(i: Instance, size: Size) -> Sides:
    network = interpolator.interpolate(i["x"] @ i["v"], i["y"])
    layers = interpolator.embed_in_rnn(network, i["v"], size["depth"])
    total = sum(jnp.sum(jnp.asarray(entry) ** 2) for entry in jax.tree.leaves(layers))
    stated = network.squared_norm() + jnp.sum(network.a**2) + 2 * (size["depth"] - 3) + 2
    value = evaluate(layers, i["x"])[:, 0]
    return Sides.pairs(
        {
            "printed": (value, i["y"]),
            "derived norm": (total, stated),
            "control": (total, stated - 2),
        },
        error={"printed": 1e-14 * total, "derived norm": 0.0, "control": 0.0},
    )


EMBEDDING = Statement(
    id="qstr.thm9.embedding",
    label="Theorem 9 (memorising RNN)",
    formula="f_y of L_y layers computes the interpolator; norm 2|a|^2 + |w|^2 + |b|^2 + 2 L_y - 4",
    tex=r"f_y(U^\to h^\to, U^\leftarrow h^\leftarrow, z^{(i)}_{j^{(i)}}; \Theta_y) = "
    r"y^{(i)}_{j^{(i)}}, \quad "
    r"\|\mathrm{vec}(\Theta)\|_2^2 = 2 \|a\|_2^2 + \|w\|_2^2 + \|b\|_2^2 + 2 L_y - 4",
    kind="construction",
    judges=(interpolator.embed_in_rnn, evaluate),
    over={"y": Reals("n"), "v": Sphere(1, "d")},
    sample=lambda key, size: {"x": jax.random.normal(key, (size["n"], size["d"]))},
    hypotheses=lambda i, size: {
        "the x_i are distinct along v": interpolator.smallest_gap(i["x"] @ i["v"]) > 0
    },
    evaluate=_embedding,
    forms=(
        Form(
            name="printed",
            cites="Theorem 9, proof, case d_h >= n",
            note="In the network that memorises the samples, all transitions and the matrix U are "
            "zero.",
        ),
        Form(
            name="derived norm",
            note="The middle layers of the readout f_y leave relu(v) and relu(-v) unchanged.",
        ),
    ),
    control="the last layer not counted",
    sizes=({"n": 5, "d": 3, "depth": 4},),
    budget=Budget(samples=16, batch=16),
    tolerance=1e-9,
    assumptions="L_y = 4; the printed weights need L_y >= 3",
    source="Theorem 9, proof in Appendix C.4",
)


def _deep(i: Instance, size: Size) -> Sides:
    network, depth = TwoLayer(i["a"], i["W"], i["b"]), size["depth"]
    layers = memorisers.deep_readout(network, depth)
    total = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(layers))
    product = memorisers.memorising_product(memorisers.variation(network), depth)
    least = rnn_bounds.weight_norm_lower_bound(product, depth)
    value, want = evaluate(layers, i["x"])[:, 0], network(i["x"][:, None, :])
    return Sides.pairs(
        {"sharpened": (value, want), "sharpened norm": (total, least),
         "control": (total, 1.01 * least)}
    )  # fmt: skip


DEEP = Statement(
    id="qstr.thm9.memoriser",
    label="Theorem 9 (memorising RNN, balanced)",
    formula="f_y of L_y layers computes a two-layer network at |vec|^2 = L_y (2^{L_y - 2} "
    "V^2)^{1/L_y}",
    tex=r"\|\mathrm{vec}(\Theta)\|_2^2 = L_y \left(2^{L_y - 2} V^2\right)^{1 / L_y}, \quad V = "
    r"\sum_j |a_j| \|(w_j, b_j)\|_2",
    kind="construction",
    judges=(
        memorisers.deep_readout,
        memorisers.memorising_product,
        memorisers.variation,
        rnn_bounds.weight_norm_lower_bound,
    ),
    over=reals("a: m, W: m d, b: m, x: 4 d"),
    evaluate=_deep,
    forms=(
        Form(
            name="sharpened",
            note="The readout sums the units with a_j > 0 and the units with a_j < 0 separately. "
            "Every later ReLU leaves the absolute values of the two sums unchanged.",
        ),
        Form(
            name="sharpened norm",
            note="All layers have the same norm, so that the AM-GM inequality is an equality. "
            "The squared norm is at most L_y O(n^6)^{1/L_y}, in place of O(n^3). This bound proves "
            "Theorem 9 with any exponent c_1 < 1/6, at every depth.",
        ),
    ),
    control="one percent more",
    sizes=({"m": 5, "d": 3, "depth": 4},),
    budget=Budget(samples=16, batch=16),
    source="Theorem 9, proof in Appendix C.4",
)


STATEMENTS = (AM_GM, EMBEDDING, DEEP)
