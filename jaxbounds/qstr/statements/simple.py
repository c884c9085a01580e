"""Statements of Appendix C.1 about the constructed RNN's states, predictions and norms."""

import math
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.norms import vector_norm
from jaxbounds.qstr import relu_networks, rnn_construction
from jaxbounds.qstr.links import TwoLayer
from jaxbounds.qstr.recurrent import exclusive_states, exclusive_sums
from jaxbounds.qstr.relu_networks import Network, evaluate
from jaxbounds.qstr.statements.construction import (
    RADIUS,
    SIMPLE,
    SIZES,
    searched_prompts,
    tokens_of,
)

_KNOTS_26, _MU = 16, 0.5 + SIZES["de"] * relu_networks.product_error(2.0, 16)
"""The number of knots of Proposition 26's network, and mu, the inner product up to which the gates
stay closed. More knots give a smaller error. The number mu is 1/2, the bound on the encodings'
coherence, plus the error of the inner product.
"""


def _states(i: Instance, size: Size) -> Sides:
    z, sizes = tokens_of(i, size)
    N, q, d = size["N"], size["q"], size["d"]
    interpolated: dict[str, Any] = {"knots": _KNOTS_26, "coherence": _MU}
    eps = rnn_construction.interpolated_error(**sizes, **interpolated)
    # B bounds the coordinates of a token, so r_x = sqrt(d) B bounds |x_j|.
    radius = math.sqrt(q) * (math.sqrt(d) * RADIUS + math.sqrt(d) * eps)
    networks = {
        "printed": rnn_construction.interpolated_transition(**sizes, **interpolated),
        "sharpened": rnn_construction.exact_transition(**sizes),
    }
    t, place = i["t"], jnp.arange(N, dtype=i["t"].dtype)[:, None]
    token = i["x"][t]
    only = lambda kept: jnp.where(kept[:, :, None], token, jnp.zeros_like(token))
    want = jnp.stack([only(t < place), only(t > place)])
    late = jnp.stack([only(t <= place), only(t >= place)])
    lhs = {}
    for name, network in networks.items():
        step = lambda h, token, network=network: evaluate(network, token)
        states = jnp.stack(
            [
                exclusive_states(step, z, q * d, radius=radius, reverse=way).reshape(N, q, d)
                for way in (False, True)
            ]
        )
        # Before the token is read, the state must be 0, not just small.
        weight = jnp.where(jnp.stack([t < place, t > place])[..., None], 1.0, 1e12)
        lhs[name] = jnp.max(weight * jnp.abs(states - want))
        lhs["control"] = jnp.max(jnp.abs(states - late))
    rhs = {"printed": eps, "sharpened": 1e-12, "control": eps}
    return Sides(lhs=lhs, rhs=rhs)


STATES = searched_prompts(
    id="qstr.cor27",
    label="Corollary 27",
    formula="h->_i(l) = 0 if t_l >= i, |h->_i(l) - x_{t_l}| <= eps if t_l < i; the mirror image",
    tex=r"h_i^\to(l) = 0_d \; \text{if } t_l \ge i, \quad \|h_i^\to(l) - x_{t_l}\|_\infty \le "
    r"\varepsilon \; \text{if } t_l < i",
    judges=(
        rnn_construction.interpolated_transition,
        rnn_construction.interpolated_error,
        rnn_construction.exact_transition,
        exclusive_states,
    ),
    evaluate=_states,
    forms=(
        Form(
            name="printed",
            cites="Corollary 27, Appendix C.1",
            note="The radius of the states is r_h = sqrt(q) (r_x + sqrt(d) eps), for forward and "
            "for backward states. The network of Proposition 26 is explicit. In the text at "
            "hand, the letter under the second root (d or q) and the index of the norm are only "
            "partly legible. In Proposition 26 each coordinate errs by up to eps, so the letter "
            "must be d.",
        ),
        Form(
            name="sharpened",
            note="For hypercube encodings, the states of the RNN are exact up to rounding.",
        ),
    ),
    control="states that include token i",
    source="Corollary 27",
    sizes=SIMPLE,
)


def _network_norms(i: Instance, size: Size) -> Sides:
    knots, q, d, de = size["knots"], size["q"], size["d"], size["de"]
    sizes = {"q": q, "d": d, "de": de, "radius": RADIUS, "knots": knots, "coherence": 0.75}
    network = rnn_construction.interpolated_transition(**sizes)
    eps = rnn_construction.interpolated_error(**sizes)
    largest = max(float(np.linalg.norm(W)) for W, _ in network)
    biases = max(float(np.linalg.norm(b)) for _, b in network)
    width = float(max(len(b) for _, b in network))
    names = ("printed |W|_F", "printed |b|", "printed width")
    lhs = dict(zip(names, (largest, biases, width), strict=True)) | {"control": width}
    return Sides(lhs=lhs, rhs={**dict.fromkeys(names, 1 / eps), "control": eps**-0.25})


KNOTS = (16, 20, 24, 32, 40, 48, 64, 80, 96, 128)

NORMS = Statement(
    id="qstr.prop26.norms",
    label="Proposition 26 (norms)",
    formula="|W_i|_F, |b_i|, m_i <= poly(r_x, De, 1/eps): at most 1/eps",
    tex=r"\|W_i\|_F,\; \|b_i\|_2,\; m_i \le \mathrm{poly}(r_x, D_e, \varepsilon^{-1})",
    kind="rate",
    judges=(rnn_construction.interpolated_transition, rnn_construction.interpolated_error),
    cases=lambda size: {"zero": np.zeros(1)},
    evaluate=_network_norms,
    forms=tuple(
        Form(
            name=f"printed {what}",
            sense="at most",
            exponent=exponent,
            cites="Proposition 26, Appendix C.1",
            note=f"The {grows}, because piecewise-linear approximations of squares replace the "
            f"networks of Lemma 42.",
        )
        for what, exponent, grows in (
            ("|W|_F", (0.2, 0.3), "largest |W_i|_F grows like (1/eps)^{1/4}"),
            ("|b|", (0.2, 0.3), "largest |b_i| grows like (1/eps)^{1/4}"),
            ("width", (0.45, 0.55), "width grows like (1/eps)^{1/2}"),
        )
    ),
    control="the width at most eps^{-1/4}",
    sizes=tuple({"knots": k, "q": 2, "d": 2, "de": 12} for k in KNOTS),
    assumptions="the degree in 1/eps alone, at fixed r_x and De; nothing depends on N but De",
    source="Proposition 26, (C.12)",
    host=True,
    budget=Budget(samples=1),
)


_EPS_2NN = 0.01
"""The squared error of Assumption 2, in units of the label's variance; a larger value allows a
larger error."""


def _within(eps: float, sizes: Mapping[str, Any]) -> Network:
    """Build Proposition 26's network with the fewest knots for an error of at most eps."""
    for knots in range(8, 1024):
        mu = 0.5 + sizes["de"] * relu_networks.product_error(2.0, knots)
        given = {**sizes, "knots": knots, "coherence": mu}
        if mu < 0.75 and rnn_construction.interpolated_error(**given) <= eps:
            return rnn_construction.interpolated_transition(**given)
    raise Refused(
        f"eps={eps} needs more than 1023 knots (points of interpolation). Try a larger eps"
    )


def _rnn(i: Instance, size: Size) -> Sides:
    z, sizes = tokens_of(i, size)
    q, d, t = size["q"], size["d"], i["t"]
    a, W = np.linspace(-0.5, 0.5, 4), 0.5 * np.cos(np.arange(4 * q * d)).reshape(4, q * d)
    g = TwoLayer(jnp.asarray(a), jnp.asarray(W), jnp.asarray(0.3 * a))
    transition = rnn_construction.exact_transition(**sizes)
    steps = evaluate(transition, z)
    forward, backward = exclusive_sums(steps), exclusive_sums(steps, reverse=True)
    tokens = rnn_construction.recovered_tokens(forward, backward, steps, q=q)
    got = rnn_construction.constructed_rnn(transition, g, z)
    root = math.sqrt(_EPS_2NN)
    # A link g of Assumption 2 may differ from the network by the root, in either direction.
    missed = jnp.max(jnp.abs(got - g(i["x"][t])))
    slope = float(np.linalg.norm(a) * np.linalg.norm(np.column_stack([W, 0.3 * a])))  # r_a r_w
    # The proof's eps_h, used in f_y too, for which the proof allows twice as much.
    step = _within(root / (4 * math.sqrt(q * d) * slope), sizes)
    near = rnn_construction.constructed_rnn(step, g, z)
    moved = jnp.max(jnp.abs(near - g(i["x"][t])))
    shifted = jnp.max(jnp.abs(got - g(jnp.roll(i["x"], 1, axis=0)[t])))
    radius = math.sqrt(q * d) * RADIUS + root / slope
    states = jnp.max(vector_norm(jnp.concatenate([forward, backward])))
    return Sides.pairs(
        {
            "printed": ((root + moved) ** 2, 4 * _EPS_2NN),
            "printed r_h": (states, radius),
            "sharpened": (missed, 1e-11),
            "derived tokens": (jnp.max(jnp.abs(tokens - i["x"][t])), 1e-12),
            "control": (root + shifted, 2 * root),
        }
    )


RNN = searched_prompts(
    id="qstr.prop28",
    label="Proposition 28 (C.11)",
    formula="sup_i |g(x_t) - yhat_i|^2 <= 4 eps_2NN on simple-qSTR, r_h >= sqrt(q) r_x + ..",
    tex=r"\sup_{i \in [N]} \left| g(x_{t_1}, \ldots, x_{t_q}) - \hat y(p; \Theta_{\mathrm{RNN}})_i "
    r"\right|^2 \le 4 \epsilon_{\mathrm{2NN}}",
    judges=(
        rnn_construction.constructed_rnn,
        rnn_construction.interpolated_transition,
        rnn_construction.readout,
        rnn_construction.recovered_tokens,
        exclusive_sums,
    ),
    evaluate=_rnn,
    forms=(
        Form(
            name="printed",
            cites="(C.11), Proposition 28",
            note="The check takes the worst target function g within sqrt(eps_2NN) of the network "
            "of Assumption 2. The RNN's transition is explicit, and errs by eps_h = "
            "sqrt(eps_2NN)/(4 sqrt(q d) r_a r_w).",
        ),
        Form(
            name="printed r_h",
            cites="Proposition 28: r_h >= sqrt(q) r_x + sqrt(eps_2NN)/(r_a r_w)",
            note=(
                "The states never leave the ball of radius r_h, so the projection onto this ball "
                "changes nothing."
            ),
        ),
        Form(
            name="sharpened",
            note="The prediction is exact, up to rounding, if g is a two-layer network and the "
            "transitions and f_y are ReLU networks.",
        ),
        Form(
            name="derived tokens",
            note="The sum h-> + h<- + f(z_i) of two states and a transition consists of the "
            "relevant tokens.",
        ),
    ),
    control="tokens one place off",
    assumptions="hypercube encodings of coherence <= 1/2; eps_2NN = 0.01; norms: qstr.prop26.norms",
    source="Proposition 28",
    sizes=SIMPLE,
)

STATEMENTS = (STATES, NORMS, RNN)
