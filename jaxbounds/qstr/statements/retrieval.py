"""Lemma 11: the attention that retrieves the relevant tokens."""

import math

import jax
import jax.numpy as jnp

from jaxbounds.norms import vector_norm
from jaxbounds.qstr import data, retrieval
from jaxbounds.qstr.links import TwoLayer, sphere
from jaxbounds.qstr.statements.common import QUICK, encodings, signs
from jaxbounds.statements import Budget, Form, Sides, Statement


def _tail_sample(key, size):
    key_x, key_t, key_l = jax.random.split(key, 3)
    N, d, q = size["N"], size["d"], size["q"]
    return {
        "x": jax.random.normal(key_x, (N, d)),
        "t": data.sample_positions(key_t, (), N, q),
        "signs": jnp.asarray(signs(N, size["de"])),
        "alpha": jax.random.uniform(key_l, (), minval=4.0, maxval=20.0) * (q / d),
    }


def _tail(i):
    x, t, alpha, omega = i["x"], i["t"], i["alpha"], encodings(i["signs"])
    (N, d), q = x.shape, t.shape[1]
    coherence = jnp.max(jnp.where(jnp.eye(N, dtype=bool), -1.0, omega @ omega.T))
    bound = lambda mu: retrieval.retrieval_error_bound(x, omega, alpha, q=q, coherence=mu)
    tail = jnp.exp(alpha * (d / q) * (omega @ omega.T - 1.0))
    gaps = x[:, None, :] - x[None, :, :]
    each = jnp.sum(tail * vector_norm(gaps), axis=1)
    # retrieve(..) - x_t as an average of differences, so that nothing cancels.
    attended = jax.nn.softmax((alpha * (d / q)) * (omega @ omega.T), axis=-1)
    error = jnp.einsum("ij,ijd->id", attended, -gaps)[t]
    lengths = vector_norm(error.reshape(N, q * d))
    row = jnp.max(vector_norm(each[t]))
    return Sides(
        lhs=jnp.max(lengths),
        rhs={
            "printed": bound(0.5),
            "sharpened coherence": bound(coherence),
            "sharpened rows": row,
            "control": bound(0.0),
        },
    )


RETRIEVAL_TAIL = Statement(
    id="qstr.lem11.tail",
    label="Lemma 11 (softmax tail)",
    formula="|retrieved - wanted| <= 2 sqrt(q) r_x (N - 1) exp(-alpha d / (2q))",
    kind="inequality",
    sample=_tail_sample,
    evaluate=_tail,
    project=lambda i: {**i, "alpha": jnp.clip(i["alpha"], 0.5, 20.0)},
    hypotheses=lambda i: {"alpha > 0": i["alpha"] > 0},
    forms=(
        Form(name="printed", note="Coherence at most 1/2 (Assumption 3)."),
        Form(name="sharpened coherence", note="exp(-alpha (1 - mu) d / q), mu signed, measured."),
        Form(
            name="sharpened rows",
            note="sum_j exp(alpha (d/q)(<w_t, w_j> - 1)) |x_j - x_t| for each relevant token: the "
            "softmax normaliser is at least the wanted token's own weight.",
        ),
    ),
    control="coherence 0 assumed: exp(-alpha d / q)",
    sizes=({"N": 8, "d": 3, "q": 2, "de": 12},),
    budget=QUICK,
    source="Lemma 11, proof; (A.2)",
)

_EPS = 1e-2


def _accuracy_sample(key, size):
    keys = jax.random.split(key, 5)
    N, d, q, m = size["N"], size["d"], size["q"], 3
    return {
        "x": jax.random.normal(keys[0], (N, d)),
        "t": data.sample_positions(keys[1], (), N, q),
        "signs": jnp.asarray(signs(N, size["de"])),
        "a": sphere(keys[2], m),
        "W": jax.random.normal(keys[3], (m, q * d)),
        "b": jax.random.normal(keys[4], (m,)),
    }


def _accuracy(i):
    x, t, omega = i["x"], i["t"], encodings(i["signs"])
    (N, d), q = x.shape, t.shape[1]
    network = TwoLayer(i["a"], i["W"], i["b"])
    r_a, r_w = network.radii()
    r_x = jnp.max(vector_norm(x))
    inside = 2 * r_a * r_w * r_x * N * math.sqrt(q) / math.sqrt(_EPS)
    alpha = 2 * q / d * jnp.log(inside)
    error = lambda a: jnp.max(jnp.abs(network(retrieval.retrieve(x, t, omega, a)) - network(x[t])))
    root = jnp.asarray(math.sqrt(_EPS))
    return Sides(
        lhs={"printed": error(alpha), "control": error(alpha / 10)},
        rhs={"printed": root, "control": root},
    )


ACCURACY = Statement(
    id="qstr.lem11",
    label="Lemma 11",
    formula="alpha = (2q/d) log(2 r_a r_w r_x N sqrt(q/eps)) gives |g - yhat_i| <= sqrt(eps)",
    kind="inequality",
    sample=_accuracy_sample,
    evaluate=_accuracy,
    forms=(
        Form(name="printed", note="For g of Assumption 2 itself; with its error, 2 sqrt(eps)."),
    ),
    control="alpha / 10",
    sizes=({"N": 8, "d": 3, "q": 2, "de": 12},),
    budget=QUICK,
    assumptions="g a two-layer network, coherence <= 1/2, eps = 0.01",
    source="Lemma 11, Appendix A.1",
)


def _norms(i):
    q, d, de = 2, 3, 4
    W = retrieval.retrieval_weights(1.0, q=q, d=d, de=de) * i["alpha"]
    got = jnp.stack(
        [jnp.sum(jnp.sqrt(jnp.sum(W[0] ** 2, axis=0))), jnp.sqrt(jnp.sum(W[0] ** 2)), jnp.sum(W**2)]
    )
    a = i["alpha"]
    want = jnp.stack([de * a, math.sqrt(de) * a, q * de * a**2])
    return Sides(lhs=got, rhs={"printed": want, "control": want / math.sqrt(de)})


NORMS = Statement(
    id="qstr.lem11.norms",
    label="Lemma 11 (norms)",
    formula="|W_QK|_{2,1} = de alpha, |W_QK|_F = alpha sqrt(de), sum over heads q de alpha^2",
    kind="construction",
    sample=lambda key, size: {"alpha": jax.random.uniform(key, (), minval=0.1, maxval=9.0)},
    evaluate=_norms,
    forms=(Form(name="printed", note="q blocks alpha I of size de."),),
    control="a factor sqrt(de) dropped",
    sizes=({"q": 2},),
    budget=Budget(samples=8),
    source="Lemma 11; Theorem 10",
)

STATEMENTS = (ACCURACY, RETRIEVAL_TAIL, NORMS)
