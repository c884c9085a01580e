"""Lemma 11: the attention that retrieves the relevant tokens."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from jaxbounds.norms import entrywise_norm, frobenius_norm, vector_norm
from jaxbounds.qstr import data, retrieval
from jaxbounds.qstr.encodings import coherence
from jaxbounds.qstr.links import TwoLayer, sphere
from jaxbounds.qstr.statements.common import SEARCHED, encodings, prompt
from jaxbounds.qstr.transformer import SparseTransformer
from jaxbounds.statements import Budget, Form, Sides, Statement

_EPS = 1e-2
ON_NETWORKS: dict[str, Any] = {"sizes": ({"N": 8, "d": 3, "q": 2, "de": 12},)}


def _network_sample(key, size):
    keys = jax.random.split(key, 5)
    m = 3
    return prompt(keys[:2], size) | {
        "a": sphere(keys[2], m),
        "W": jax.random.normal(keys[3], (m, size["q"] * size["d"])),
        "b": jax.random.normal(keys[4], (m,)),
    }


def _accuracy(i, size):
    x, t, omega, network = i["x"], i["t"], encodings(i["signs"]), TwoLayer(i["a"], i["W"], i["b"])
    N, q, d, de = (size[name] for name in ("N", "q", "d", "de"))
    r_a, r_w = network.radii()
    r_x = jnp.max(vector_norm(x))
    alpha = retrieval.inverse_temperature(N=N, q=q, d=d, r_a=r_a, r_w=r_w, r_x=r_x, eps=_EPS)
    parameters = retrieval.transformer_parameters(network, alpha, q=q, d=d, de=de)
    predicted = SparseTransformer(heads=q, width=3).apply(parameters, data.encode(x, t, omega))
    retrieved = lambda a: network(retrieval.retrieve(x, t, omega, a))
    error = lambda values: jnp.max(jnp.abs(values - network(x[t])))
    root = math.sqrt(_EPS)
    return Sides.pairs(
        {
            "printed": (error(predicted), root),
            "derived by one softmax": (error(retrieved(alpha)), root),
            "control": (error(retrieved(alpha / 10)), root),
        }
    )


ACCURACY = Statement(
    id="qstr.lem11",
    label="Lemma 11",
    formula="alpha = (2q/d) log(2 r_a r_w r_x N sqrt(q/eps)) gives |g - yhat_i| <= sqrt(eps)",
    judges=(
        retrieval.inverse_temperature,
        retrieval.transformer_parameters,
        SparseTransformer.__call__,
        retrieval.retrieve,
    ),
    sample=_network_sample,
    evaluate=_accuracy,
    forms=(
        Form(name="printed", note="For g of Assumption 2 itself; with its error, 2 sqrt(eps)."),
        Form(name="derived by one softmax", note="Over the N distinct queries, no W_QK formed."),
    ),
    control="alpha / 10",
    assumptions="g a two-layer network, coherence <= 1/2, eps = 0.01",
    source="Lemma 11, Appendix A.1",
    **ON_NETWORKS,
    **SEARCHED,
)


def _tail_sample(key, size):
    keys = jax.random.split(key, 3)
    alpha = jax.random.uniform(keys[2], (), minval=4.0, maxval=20.0) * (size["q"] / size["d"])
    return prompt(keys[:2], size) | {"alpha": alpha}


def _tail(i, size):
    x, t, alpha, omega = i["x"], i["t"], i["alpha"], encodings(i["signs"])
    bound = lambda mu: retrieval.retrieval_error_bound(x, omega, alpha, q=size["q"], coherence=mu)
    return Sides(
        lhs=retrieval.retrieval_error(x, t, omega, alpha),
        rhs={
            "printed": bound(0.5),
            "sharpened coherence": bound(coherence(omega)),
            "sharpened rows": retrieval.retrieval_error_bound_by_row(x, t, omega, alpha),
            "control": bound(0.0),
        },
    )


RETRIEVAL_TAIL = Statement(
    id="qstr.lem11.tail",
    label="Lemma 11 (softmax tail)",
    formula="|retrieved - wanted| <= 2 sqrt(q) r_x (N - 1) exp(-alpha d / (2q))",
    judges=(
        retrieval.retrieval_error,
        retrieval.retrieval_error_bound,
        retrieval.retrieval_error_bound_by_row,
        coherence,
    ),
    sample=_tail_sample,
    evaluate=_tail,
    project=lambda i, size: {**i, "alpha": jnp.clip(i["alpha"], 0.5, 20.0)},
    hypotheses=lambda i, size: {"alpha > 0": i["alpha"] > 0},
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
    source="Lemma 11, proof; (A.2)",
    **ON_NETWORKS,
    **SEARCHED,
)


def _norms(i, size):
    q, d, de, alpha = size["q"], size["d"], size["de"], i["alpha"]
    W = retrieval.retrieval_weights(alpha, q=q, d=d, de=de)
    got = jnp.stack([entrywise_norm(W[0], 2, 1), frobenius_norm(W[0]), jnp.sum(W**2)])
    want = jnp.stack([de * alpha, math.sqrt(de) * alpha, q * de * alpha**2])
    return Sides(lhs=got, rhs={"printed": want, "control": want / math.sqrt(de)})


NORMS = Statement(
    id="qstr.lem11.norms",
    label="Lemma 11 (norms)",
    formula="|W_QK|_{2,1} = de alpha, |W_QK|_F = alpha sqrt(de), sum over heads q de alpha^2",
    kind="construction",
    judges=(retrieval.retrieval_weights,),
    sample=lambda key, size: {"alpha": jax.random.uniform(key, (), minval=0.1, maxval=9.0)},
    evaluate=_norms,
    forms=(Form(name="printed", note="q blocks alpha I of size de."),),
    control="a factor sqrt(de) dropped",
    sizes=({"q": 2, "d": 3, "de": 4},),
    budget=Budget(samples=8, batch=8),
    source="Lemma 11; Theorem 10",
)

STATEMENTS = (ACCURACY, RETRIEVAL_TAIL, NORMS)
