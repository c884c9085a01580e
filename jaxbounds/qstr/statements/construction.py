"""Appendix C.1: the RNN that solves simple-qSTR, piece by piece."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.norms import vector_norm
from jaxbounds.qstr import data, relu_networks, rnn_construction
from jaxbounds.qstr.links import TwoLayer, sphere
from jaxbounds.qstr.recurrent import exclusive_states
from jaxbounds.qstr.relu_networks import evaluate
from jaxbounds.qstr.statements.common import QUICK, signs
from jaxbounds.statements import Budget, Form, Sides, Statement


def _product_sample(key, size):
    w, v = sphere(key, 2, size["de"])
    return {"w": w, "v": v}


_KNOTS = 8


def _inner_product(i):
    kappa, beta = (jnp.asarray(v) for v in relu_networks.square_hinges(2.0, _KNOTS))
    w, v = i["w"], i["v"]
    hinge = lambda s: jax.nn.relu(jnp.abs(s)[:, None] - kappa[None, :]) @ beta
    error = jnp.abs(jnp.sum(hinge(w + v) - hinge(w - v)) / 4 - w @ v)
    bound = w.shape[0] * (2.0 / _KNOTS) ** 2 / 16
    one = jnp.ones_like(error)
    return Sides(lhs=error, rhs={"derived": bound * one, "control": bound / 50 * one}, error=1e-14)


INNER_PRODUCT = Statement(
    id="qstr.lem22",
    label="Lemma 22 (piecewise-linear)",
    formula="|net(w, v) - <w, v>| <= de s^2/16, s the spacing of the knots",
    kind="inequality",
    sample=_product_sample,
    evaluate=_inner_product,
    project=lambda i: {name: v / vector_norm(v) for name, v in i.items()},
    hypotheses=lambda i: {
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
    budget=QUICK,
    source="Lemmas 22, 23; the paper's own network is not explicit",
)


def _network(q: int, d: int):
    a, W = np.linspace(-1.0, 1.0, 4), np.cos(np.arange(4 * q * d)).reshape(4, q * d)
    return TwoLayer(jnp.asarray(a), jnp.asarray(W), jnp.asarray(0.3 * a))


def _prompt_sample(simple: bool):
    def sample(key, size):
        N, d, q, de = (size[name] for name in ("N", "d", "q", "de"))
        key_x, key_t = jax.random.split(key)
        return {
            "x": jnp.clip(jax.random.normal(key_x, (N, d)), -4.0, 4.0),
            "t": data.sample_positions(key_t, (), N, q, simple=simple),
            "signs": jnp.asarray(signs(N, de)),
        }

    return sample


def _tokens(i):
    omega = i["signs"].astype(i["x"].dtype) / math.sqrt(i["signs"].shape[1])
    (N, d), q = i["x"].shape, i["t"].shape[1]
    z = data.encode(i["x"], i["t"], omega, scale=False)
    sizes = {"q": q, "d": d, "de": omega.shape[1], "radius": 4.0}
    return z, sizes, N


def _gate(i):
    z, sizes, N = _tokens(i)
    got = evaluate(rnn_construction.exact_transition(**sizes), z)
    here = i["t"] == jnp.arange(N, dtype=i["t"].dtype)[:, None]
    shape = (N, sizes["q"], sizes["d"])
    own = jnp.broadcast_to(i["x"][:, None, :], shape)
    want = jnp.where(jnp.broadcast_to(here[:, :, None], shape), own, jnp.zeros(shape))
    return Sides(
        lhs=got, rhs={"sharpened": want.reshape(got.shape), "control": own.reshape(got.shape)}
    )


GATE = Statement(
    id="qstr.prop26",
    label="Proposition 26",
    formula="f(z_i)(l) = x_i if t_il = i, else 0",
    kind="construction",
    sample=_prompt_sample(False),
    evaluate=_gate,
    forms=(
        Form(
            name="sharpened",
            note="eps = 0: for Rademacher encodings of coherence <= 1/2 the inner product is "
            "|w + v|_1/sqrt(de) - 1, and x - B(1 - c) passes or closes a ReLU exactly.",
        ),
    ),
    control="the gate always open",
    sizes=({"N": 6, "d": 2, "q": 2, "de": 12},),
    budget=Budget(samples=64),
    source="Proposition 26, Lemmas 23-25",
)


def _states(i):
    z, sizes, N = _tokens(i)
    network = rnn_construction.exact_transition(**sizes)
    q, d = sizes["q"], sizes["d"]
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
    kind="construction",
    sample=_prompt_sample(True),
    evaluate=_states,
    forms=(
        Form(
            name="corrected",
            erratum="E7",
            note="The first case must read t_l >= i: with > the case t_l = i has no value.",
        ),
    ),
    control="states that include token i",
    sizes=({"N": 6, "d": 2, "q": 2, "de": 12},),
    budget=Budget(samples=64),
    source="Corollary 27",
)


def _rnn(i):
    z, sizes, _ = _tokens(i)
    network = _network(sizes["q"], sizes["d"])
    got = rnn_construction.constructed_rnn(rnn_construction.exact_transition(**sizes), network, z)
    shifted = jnp.roll(i["x"], 1, axis=0)[i["t"]]
    return Sides(lhs=got, rhs={"sharpened": network(i["x"][i["t"]]), "control": network(shifted)})


RNN = Statement(
    id="qstr.prop28",
    label="Proposition 28",
    formula="the constructed RNN computes g on simple-qSTR at every position",
    kind="construction",
    sample=_prompt_sample(True),
    evaluate=_rnn,
    forms=(
        Form(name="sharpened", note="Exactly, for g of Assumption 2, transitions and f_y ReLU."),
    ),
    control="tokens one place off",
    sizes=({"N": 6, "d": 2, "q": 2, "de": 12},),
    budget=Budget(samples=64),
    source="Proposition 28",
)

STATEMENTS = (INNER_PRODUCT, GATE, STATES, RNN)
