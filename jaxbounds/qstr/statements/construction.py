"""Appendix C.1: the RNN that solves simple-qSTR, piece by piece."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.norms import vector_norm
from jaxbounds.qstr import data, relu_networks, rnn_construction
from jaxbounds.qstr.links import TwoLayer, sphere
from jaxbounds.qstr.recurrent import exclusive_states, exclusive_sums
from jaxbounds.qstr.relu_networks import evaluate
from jaxbounds.qstr.statements.common import SEARCHED, encodings, prompt
from jaxbounds.statements import Budget, Form, Sides, Statement

_KNOTS = 8
_RADIUS = 4.0


def _product_sample(key, size):
    w, v = sphere(key, 2, size["de"])
    return {"w": w, "v": v}


def _inner_product(i, size):
    kappa, beta = (jnp.asarray(v) for v in relu_networks.square_hinges(2.0, _KNOTS))
    w, v = i["w"], i["v"]
    hinge = lambda s: jax.nn.relu(jnp.abs(s)[:, None] - kappa[None, :]) @ beta
    error = jnp.abs(jnp.sum(hinge(w + v) - hinge(w - v)) / 4 - w @ v)
    bound = size["de"] * relu_networks.product_error(2.0, _KNOTS)
    return Sides(lhs=error, rhs={"derived": bound, "control": bound / 50}, error=1e-14)


INNER_PRODUCT = Statement(
    id="qstr.lem22",
    label="Lemma 22 (piecewise-linear)",
    formula="|net(w, v) - <w, v>| <= de s^2/16, s the spacing of the knots",
    judges=(relu_networks.square_hinges, relu_networks.product_error),
    sample=_product_sample,
    evaluate=_inner_product,
    project=lambda i, size: {name: v / vector_norm(v) for name, v in i.items()},
    hypotheses=lambda i, size: {
        "unit": jnp.abs(vector_norm(i["w"]) - 1) + jnp.abs(vector_norm(i["v"]) - 1) < 1e-9
    },
    forms=(
        Form(
            name="derived",
            equality="every w_k + v_k at a knot and w_k - v_k halfway between two, or the reverse",
            note="An explicit network in place of Lemma 42's; each square errs by at most s^2/4, "
            "above only.",
        ),
    ),
    control="the bound / 50",
    sizes=({"de": 3},),
    source="Lemmas 22, 23; the paper's own network is not explicit",
    **SEARCHED,
)


def _prompt_sample(key, size):
    drawn = prompt(jax.random.split(key), size, simple=bool(size["simple"]))
    return {**drawn, "x": jnp.clip(drawn["x"], -_RADIUS, _RADIUS)}


_SIZES = {"N": 6, "d": 2, "q": 2, "de": 12}
ON_SIMPLE: dict[str, Any] = {
    "kind": "construction",
    "sample": _prompt_sample,
    "sizes": ({**_SIZES, "simple": 1},),
    "budget": Budget(samples=64),
}
ON_GENERAL: dict[str, Any] = {**ON_SIMPLE, "sizes": ({**_SIZES, "simple": 0},)}


def _tokens(i, size):
    """Encoded tokens without the factor sqrt(d/q), and what a transition needs to know."""
    z = data.encode(i["x"], i["t"], encodings(i["signs"]), scale=False)
    return z, {"q": size["q"], "d": size["d"], "de": size["de"], "radius": _RADIUS}


def _gated(i, size):
    """x_i in every slot, and x_i where t_il = i else 0."""
    N, q, d = size["N"], size["q"], size["d"]
    here = i["t"] == jnp.arange(N, dtype=i["t"].dtype)[:, None]
    own = jnp.broadcast_to(i["x"][:, None, :], (N, q, d))
    open_ = jnp.broadcast_to(here[:, :, None], own.shape)
    return own.reshape(N, q * d), jnp.where(open_, own, 0.0 * own).reshape(N, q * d)


def _gate(i, size):
    z, sizes = _tokens(i, size)
    own, want = _gated(i, size)
    eps = 0.01
    noise = eps * np.linspace(0.5, 1.0, own.shape[1])
    biased = lambda rectified: evaluate(
        rnn_construction.biased_transition(noise, rectified=rectified, eps=eps, **sizes), z
    )
    err = want + jnp.broadcast_to(jnp.asarray(noise), want.shape)
    return Sides.pairs(
        {
            "sharpened": (evaluate(rnn_construction.exact_transition(**sizes), z), want),
            "derived biased": (biased(False), err),
            "derived rectified": (biased(True), jnp.sign(err) * jax.nn.relu(jnp.abs(err) - eps)),
            "control": (evaluate(rnn_construction.exact_transition(**sizes), z), own),
        }
    )


GATE = Statement(
    id="qstr.prop26",
    label="Proposition 26",
    formula="f(z_i)(l) = x_i if t_il = i, else 0",
    judges=(
        rnn_construction.exact_transition,
        rnn_construction.biased_transition,
        relu_networks.shift_output,
    ),
    evaluate=_gate,
    forms=(
        Form(
            name="sharpened",
            note="eps = 0: for Rademacher encodings of coherence <= 1/2 the inner product is "
            "|w + v|_1/sqrt(de) - 1, and x - B(1 - c) passes or closes a ReLU exactly.",
        ),
        Form(name="derived biased", note="(C.1): a constant error in every step."),
        Form(name="derived rectified", note="(C.2): only where t_il = i."),
    ),
    control="the gate always open",
    source="Proposition 26, Lemmas 23-25",
    **ON_GENERAL,
)


def _interpolated(i, size):
    z, sizes = _tokens(i, size)
    knots, mu = 16, 0.5 + size["de"] * relu_networks.product_error(2.0, 16)
    network = rnn_construction.interpolated_transition(**sizes, knots=knots, coherence=mu)
    error = jnp.max(jnp.abs(evaluate(network, z) - _gated(i, size)[1]))
    bound = rnn_construction.interpolated_error(**sizes, knots=knots, coherence=mu)
    return Sides(lhs=error, rhs={"derived": bound, "control": bound / 50}, error=1e-13)


INTERPOLATED = Statement(
    id="qstr.prop26.interpolated",
    label="Proposition 26 (any unit encodings)",
    formula="|f(z_i)(l) - x_i 1{t_il = i}| <= B de s^2/(16 (1 - mu)) + s'^2/16",
    judges=(rnn_construction.interpolated_transition, rnn_construction.interpolated_error),
    evaluate=_interpolated,
    forms=(
        Form(
            name="derived",
            note="The inner product errs by de s^2/16, s = 2/knots, the gate by that over 1 - mu, "
            "the product by s'^2/16, s' = (B + 1.5)/knots.",
        ),
    ),
    control="the bound / 50",
    source="library: an explicit network in place of Lemma 42's in Proposition 26",
    **{**ON_GENERAL, "kind": "inequality", "search": "none"},
)


def _states(i, size):
    z, sizes = _tokens(i, size)
    network = rnn_construction.exact_transition(**sizes)
    N, q, d = size["N"], size["q"], size["d"]
    run = lambda reverse: exclusive_states(
        lambda h, token: evaluate(network, token), z, q * d, radius=50.0, reverse=reverse
    ).reshape(N, q, d)
    t, place = i["t"], jnp.arange(N, dtype=i["t"].dtype)[:, None]
    token = i["x"][t]
    only = lambda kept: jnp.where(jnp.broadcast_to(kept[:, :, None], token.shape), token, 0 * token)
    got = jnp.stack([run(False), run(True)])
    return Sides(
        lhs=got,
        rhs={
            "corrected": jnp.stack([only(t < place), only(t > place)]),
            "control": jnp.stack([only(t <= place), only(t >= place)]),
        },
    )


STATES = Statement(
    id="qstr.cor27",
    label="Corollary 27",
    formula="h->_i(l) = x_{t_l} if t_l < i, 0 if t_l >= i; the mirror image for h<-",
    judges=(rnn_construction.exact_transition, exclusive_states),
    evaluate=_states,
    forms=(
        Form(
            name="corrected",
            erratum="E7",
            note="The first case must read t_l >= i: with > the case t_l = i has no value.",
        ),
    ),
    control="states that include token i",
    source="Corollary 27",
    **ON_SIMPLE,
)


def _rnn(i, size):
    z, sizes = _tokens(i, size)
    q, d, t = size["q"], size["d"], i["t"]
    a, W = np.linspace(-1.0, 1.0, 4), np.cos(np.arange(4 * q * d)).reshape(4, q * d)
    g = TwoLayer(jnp.asarray(a), jnp.asarray(W), jnp.asarray(0.3 * a))
    transition = rnn_construction.exact_transition(**sizes)
    steps = evaluate(transition, z)
    tokens = rnn_construction.recovered_tokens(
        exclusive_sums(steps), exclusive_sums(steps, reverse=True), steps, q=q
    )
    got = rnn_construction.constructed_rnn(transition, g, z)
    return Sides.pairs(
        {
            "sharpened": (got, g(i["x"][t])),
            "derived tokens": (tokens, i["x"][t]),
            "control": (got, g(jnp.roll(i["x"], 1, axis=0)[t])),
        }
    )


RNN = Statement(
    id="qstr.prop28",
    label="Proposition 28",
    formula="the constructed RNN computes g on simple-qSTR at every position",
    judges=(
        rnn_construction.constructed_rnn,
        rnn_construction.readout,
        rnn_construction.recovered_tokens,
        exclusive_sums,
    ),
    evaluate=_rnn,
    forms=(
        Form(name="sharpened", note="Exactly, for g of Assumption 2, transitions and f_y ReLU."),
        Form(name="derived tokens", note="h-> + h<- + f(z_i) is every relevant token."),
    ),
    control="tokens one place off",
    source="Proposition 28",
    **ON_SIMPLE,
)

STATEMENTS = (INNER_PRODUCT, GATE, INTERPOLATED, STATES, RNN)
