"""Statements about Assumption 2: two-layer networks for the links that have no exact network."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets import Matrices, Reals, Sphere
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement, stacked
from jaxbounds.numerics.norms import vector_norm
from jaxbounds.qstr import link_networks
from jaxbounds.qstr.links import LINKS, TwoLayer

RADIUS = 2.0
"""The radius r_x of tokens in Assumption 2; a larger radius needs more knots for the same error."""


def _cases(size: Size) -> Instance:
    q, d = size["q"], size["d"]
    middle = np.zeros((q, d))
    middle[:, 0] = RADIUS / size["knots"] / 2
    shared = {"u": np.eye(q * d)[0], "network": np.ones((size["m"], d + 2))}
    return stacked({"x": x} | shared for x in (0 * middle, middle))


def _approximated(i: Instance, size: Size) -> Sides:
    q, d, knots = size["q"], size["d"], size["knots"]
    x, u = i["x"], i["u"]
    token = u[:d] / jnp.maximum(vector_norm(u[:d]), 1e-30)
    mean = link_networks.mean_network(token, q=q)
    sine = link_networks.sine_network(u, q=q, radius=RADIUS, knots=knots)
    square = link_networks.quadratic_network(q=q, d=d, radius=RADIUS, knots=knots)
    error = lambda name, parameters, found: (
        (LINKS[name].apply(parameters, x) - found.network(x)) ** 2
    )
    squares = error("quadratic", {}, square)
    # `xor` on both sides of its jump, at points where a network takes nearly equal values.
    a, b, W = i["network"][:, 0], i["network"][:, 1], i["network"][:, 2:]
    near = 1e-6 * token
    sides = jnp.stack([near, -near])
    value = jax.nn.relu(sides @ W.T + b[None]) @ a
    labels = LINKS["xor"].apply({"u": token}, sides[:, None, :])
    apart = jnp.max((labels - value) ** 2)
    moved = jnp.abs(value[0] - value[1]) / 2
    return Sides.pairs(
        {
            "derived mean": (error("mean_linear", {"u": token}, mean), mean.eps_2nn + 1e-20),
            "derived sine": (error("sine_index", {"u": u}, sine), sine.eps_2nn),
            "derived quadratic": (squares, square.eps_2nn),
            "derived xor": (jnp.maximum(1.0 - moved, 0.0) ** 2, apart),
            "control": (squares, square.eps_2nn / 2),
        },
        error={
            "derived mean": 1e-28, "derived sine": 1e-14, "derived quadratic": 1e-14,
            "derived xor": 1e-14, "control": 1e-14,
        },
    )  # fmt: skip


ASSUMPTION_2 = Statement(
    id="qstr.asm2",
    label="Assumption 2",
    formula="|g - a^T relu(W x + b)|^2 <= eps_2NN on |x_l| <= r_x: 0, h^4/64 and qd h^4/64 for "
    "means, sines and squares, and at least 1 for xor",
    tex=r"\sup_{\|x_l\|_2 \le r_x} \left| g(x_1, \ldots, x_q) - a_g^\top \sigma(W_g x + b_g) "
    r"\right|^2 \le \epsilon_{\mathrm{2NN}}",
    judges=(
        link_networks.mean_network,
        link_networks.sine_network,
        link_networks.quadratic_network,
    ),
    over={
        "x": Matrices(("q", "d"), norm="rows", at_most=RADIUS),
        "u": Sphere(1, "q*d"),
        "network": Reals(("m", "d+2")),
    },
    cases=_cases,
    evaluate=_approximated,
    forms=(
        Form(
            name="derived mean",
            note="The two-layer network computes the link (a mean of tokens) exactly.",
        ),
        Form(
            name="derived sine",
            note="The network interpolates the sine, a function with |f''| <= 1.",
        ),
        Form(
            name="derived quadratic",
            equality="the centre: a knot in every coordinate",
            note="The knots have the distance h. Each interpolated square, shifted by h^2/8, "
            "errs by at most h^2/8.",
        ),
        Form(
            name="derived xor",
            equality="on either side of the jump, where the network is 0",
            hypotheses=lambda i, size: {"there is a jump": vector_norm(i["u"][: size["d"]]) > 1e-6},
            note="The link jumps by 2, so that no continuous network has an approximation error "
            "eps_2NN below 1.",
        ),
    ),
    control="half of eps_2NN for the squares",
    sizes=({"q": 2, "d": 2, "knots": 6, "m": 3},),
    assumptions="r_x = 2, six knots; the other links ship their networks, with eps_2NN = 0",
    source="Assumption 2",
    kind="inequality",
    search="random",
    budget=Budget(samples=256, restarts=2, steps=20, batch=256),
)


def _homogeneous(i: Instance, size: Size) -> Sides:
    network = TwoLayer(i["a"], i["W"], i["b"])
    unit = network.with_unit_weights()
    (r_a, r_w), (other_a, other_w) = network.radii(), unit.radii()
    return Sides.pairs(
        {
            "printed": (unit(i["x"]), network(i["x"])),
            "printed r_w": (other_w, 1.0),
            "derived r_a": (other_a, r_a * r_w),
            "control": (other_a, r_a),
        },
        error=1e-14 * r_a * r_w * (1.0 + vector_norm(i["x"].reshape(-1))),
    )


HOMOGENEITY = Statement(
    id="qstr.asm2.homogeneity",
    label="Assumption 2, r_w = 1",
    formula="a^T relu(W x + b) = (r_w a)^T relu((W x + b)/r_w), of r_w = 1 and r_a r_w",
    tex=r"a^\top \sigma(W x + b) = (r_w a)^\top \sigma\left(\frac{W x + b}{r_w}\right)",
    judges=(TwoLayer.with_unit_weights, TwoLayer.radii),
    over={
        "a": Reals(("m",)), "W": Reals(("m", "q*d")), "b": Reals(("m",)), "x": Reals(("q", "d")),
    },
    evaluate=_homogeneous,
    hypotheses=lambda i, size: {"(W, b) is not 0": jnp.sum(i["W"] ** 2) > 1e-6},
    forms=(
        Form(
            name="printed",
            cites="Section 2, after Assumption 2: 'we can always have r_w = 1 by homogeneity'",
        ),
        Form(
            name="printed r_w",
            cites="Section 2, after Assumption 2: 'we can always have r_w = 1 by homogeneity'",
        ),
        Form(name="derived r_a", note=(
"The rescaling moves the factor r_w into r_a, so that the product r_a r_w does not "
"change."
)),
    ),
    control="r_a unchanged",
    sizes=({"q": 2, "d": 2, "m": 3},),
    source="Section 2, after Assumption 2",
    kind="identity",
    budget=Budget(samples=64),
)  # fmt: skip

STATEMENTS = (ASSUMPTION_2, HOMOGENEITY)
