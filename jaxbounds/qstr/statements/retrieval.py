"""Statements about Lemma 11: the attention that retrieves the relevant tokens."""

import math

import jax.numpy as jnp
from jaxtyping import Array

from jaxbounds.claims.sets import Box
from jaxbounds.claims.statements import Budget, Domain, Form, Instance, Sides, Size, Statement
from jaxbounds.numerics.norms import entrywise_norm, frobenius_norm, vector_norm
from jaxbounds.qstr import data, retrieval
from jaxbounds.qstr.encodings import coherence
from jaxbounds.qstr.links import TwoLayer
from jaxbounds.qstr.statements.common import encodings, positions, reals, searched
from jaxbounds.qstr.transformer import SparseTransformer

_EPS = 1e-2
"""The squared error that attention may cause, in units of the label's variance. A larger value
allows a smaller alpha in Lemma 11.
"""
NETWORKS = ({"N": 8, "d": 3, "q": 2, "de": 12},)
SPARSITIES = tuple({"N": 8, "d": 2, "q": q, "de": 12} for q in (1, 3))


def _accuracy(i: Instance, size: Size) -> Sides:
    x, t, omega, network = i["x"], i["t"], encodings(i["signs"]), TwoLayer(i["a"], i["W"], i["b"])
    N, q, d, de = (size[name] for name in ("N", "q", "d", "de"))
    r_a, r_w = network.radii()
    r_x = jnp.max(vector_norm(x))
    alpha = retrieval.inverse_temperature(N=N, q=q, d=d, r_a=r_a, r_w=r_w, r_x=r_x, eps=_EPS)
    parameters = retrieval.transformer_parameters(network, alpha, q=q, d=d, de=de)
    predicted = SparseTransformer(heads=q, width=3).apply(parameters, data.encode(x, t, omega))
    retrieved = lambda a: network(retrieval.retrieve(x, t, omega, a))
    root = math.sqrt(_EPS)
    # A link g of Assumption 2 may differ from the network by sqrt(eps), in either direction.
    error = lambda values: root + jnp.max(jnp.abs(values - network(x[t])))
    return Sides.pairs(
        {
            "printed": (error(predicted), 2 * root),
            "derived by one softmax": (error(retrieved(alpha)), 2 * root),
            "control": (error(retrieved(alpha / 2)), 2 * root),
        }
    )


ACCURACY = searched(
    id="qstr.lem11",
    label="Lemma 11",
    formula="sup |g(x_{t_i}) - yhat_i| <= 2 sqrt(eps), alpha = (2q/d) log(2 r_a r_w r_x N "
    "sqrt(q/eps))",
    tex=r"\sup_{\|x_j\|_2 \le r_x, \forall j \in [N]} \left| g(x_{t_{i1}}, \ldots, x_{t_{iq}}) - "
    r"\hat y_{\mathrm{TR}}(p; \Theta_{\mathrm{TR}})_i \right| \le 2 \sqrt{\epsilon_{\mathrm{2NN}}}",
    judges=(
        retrieval.inverse_temperature,
        retrieval.transformer_parameters,
        SparseTransformer.__call__,
        retrieval.retrieve,
    ),
    over=reals("x: N d, a: 3, W: 3 q*d, b: 3"),
    sample=positions,
    evaluate=_accuracy,
    forms=(
        Form(
            name="printed",
            cites="Lemma 11, Appendix A.1",
            note="Assumption 2 lets the label function g differ from a two-layer network by at "
            "most sqrt(eps_2NN). The check takes the g with the largest left side of Lemma 11.",
        ),
        Form(
            name="derived by one softmax",
            note="The check computes one softmax for the N distinct queries, and does not form "
            "W_QK.",
        ),
    ),
    control="alpha / 2: the factor 2 forgotten",
    assumptions="r_x the largest |x_j| rather than sqrt(3 C_x e d log(nN)); eps_2NN = 0.01",
    source="Lemma 11, Appendix A.1",
    sizes=SPARSITIES,
    budget=Budget(samples=128, restarts=2, steps=30, batch=128),
)


def _tail(i: Instance, size: Size) -> Sides:
    x, t, alpha, omega = i["x"], i["t"], i["alpha"], encodings(i["signs"])
    bound = lambda mu: retrieval.retrieval_error_bound(x, omega, alpha, q=size["q"], coherence=mu)
    return Sides(
        lhs=retrieval.retrieval_error(x, t, omega, alpha),
        rhs={
            "printed": bound(0.5) * (size["N"] / (size["N"] - 1)),
            "sharpened N - 1": bound(0.5),
            "sharpened coherence": bound(coherence(omega)),
            "sharpened rows": retrieval.retrieval_error_bound_by_row(x, t, omega, alpha),
            "control": bound(coherence(omega) / 2),
        },
    )


CODES = (
    (1, 1, 1, 1, -1, -1, -1, -1, 1, 1, -1, -1),
    (1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1),
    (-1, -1, 1, 1, 1, 1, -1, -1, -1, 1, 1, 1),
)
THREE_TOKENS = Domain(
    name="N = 3 tokens e_1, e_2, -e_1, q = 1, alpha in [1/16, 20]",
    chart=lambda point, size: {
        "x": jnp.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]),
        "t": jnp.array([[0], [1], [2]], jnp.int32),
        "signs": jnp.array(CODES, jnp.int8),
        "alpha": point[0],
    },
    size={"N": 3, "d": 2, "q": 1, "de": 12},
    lower=(1 / 16,),
    upper=(20.0,),
    slack=1e-9,
)

RETRIEVAL_TAIL = searched(
    id="qstr.lem11.tail",
    label="Lemma 11 (softmax tail)",
    formula="|retrieved - wanted| <= 2 sqrt(q) r_x N exp(-alpha d / (2q))",
    tex=r"\sqrt{\sum_{h=1}^q \left\| A f_{\mathrm{Attn}}(p; W_{\mathrm{QK}}^{(h)})_i - A z_{t_{ih}}"
    r" \right\|_2^2} \le 2 \sqrt{q}\, r_x N e^{-\alpha d / (2 q)}",
    judges=(
        retrieval.retrieval_error,
        retrieval.retrieval_error_bound,
        retrieval.retrieval_error_bound_by_row,
        coherence,
    ),
    over=reals("x: N d") | {"alpha": Box(1 / 16, 20)},
    sample=positions,
    evaluate=_tail,
    forms=(
        Form(
            name="printed",
            cites="Lemma 11, proof: eps_Attn <= 2 r_a r_w r_x N sqrt(q) exp(-alpha d/(2q))",
            note="The coherence is at most 1/2 (Assumption 3). Both sides of the check omit the "
            "readout's Lipschitz constant r_a r_w.",
            domains=(THREE_TOKENS,),
        ),
        Form(
            name="sharpened N - 1",
            note="The relevant token itself causes no retrieval error, so the factor N - 1 "
            "replaces N.",
            domains=(THREE_TOKENS,),
        ),
        Form(
            name="sharpened coherence",
            note="The bound on the retrieval error has the factor exp(-alpha (1 - mu) d / q), "
            "where mu is the measured largest inner product, with its sign.",
        ),
        Form(
            name="sharpened rows",
            equality="alpha to infinity, one other token nearest to each wanted one",
            note="The bound on the retrieval error is sum_j exp(alpha (d/q)(<w_t, w_j> - 1)) |x_j "
            "- x_t| for each relevant token. The bound uses that the softmax normaliser is at "
            "least the weight of the relevant token.",
            domains=(THREE_TOKENS,),
        ),
    ),
    control="half the coherence",
    source="Lemma 11, proof; (A.2)",
    sizes=NETWORKS,
    budget=Budget(samples=128, restarts=6, steps=80, batch=128),
)


def _inside(i: Instance, size: Size) -> Array:
    r_a, r_w = TwoLayer(i["a"], i["W"], i["b"]).radii()
    return 2 * r_a * r_w * i["r_x"] * size["N"] * math.sqrt(size["q"] / _EPS)


def _norms(i: Instance, size: Size) -> Sides:
    q, d, de, N, r_x = size["q"], size["d"], size["de"], size["N"], i["r_x"]
    network = TwoLayer(i["a"], i["W"], i["b"])
    r_a, r_w = network.radii()
    alpha = retrieval.inverse_temperature(N=N, q=q, d=d, r_a=r_a, r_w=r_w, r_x=r_x, eps=_EPS)
    p = retrieval.transformer_parameters(network, alpha, q=q, d=d, de=de)["params"]
    columns = jnp.stack([entrywise_norm(head, 2, 1) for head in p["W_QK"]])
    rows = jnp.stack([entrywise_norm(head.T, 2, 1) for head in p["W_QK"]])
    limit = (2 * q * de / d) * jnp.log(_inside(i, size))
    root = math.sqrt(size["m"])
    inner = jnp.sqrt(frobenius_norm(p["W"]) ** 2 + jnp.sum(p["b"] ** 2))
    got = jnp.append(columns, jnp.stack([vector_norm(p["a"]), inner]))
    want = jnp.append(jnp.full(q, limit), jnp.stack([r_a / root, root * r_w]))
    ratio = lambda scale: jnp.max(got / (scale * want))
    F = jnp.stack([frobenius_norm(head) for head in p["W_QK"]]) / (math.sqrt(de) * alpha)
    return Sides.pairs(
        {
            "printed": (ratio(1.0), 1.0),
            "printed, rows": (jnp.max(rows / limit), 1.0),
            "derived Frobenius": (jnp.max(F), 1.0),
            "control": (ratio(1 / math.sqrt(de)), 1.0),
        }
    )


NORMS = Statement(
    id="qstr.lem11.norms",
    label="Lemma 11 (norms)",
    formula="|a| <= r_a/sqrt(m), |(W, b)|_F <= sqrt(m) r_w, |W_QK|_{2,1} <= (2 q de/d) log(2 r_a "
    "r_w r_x N sqrt(q/eps))",
    tex=r"\|a_{\mathrm{2NN}}\|_2 \le \frac{r_a}{\sqrt{m}}, \; \|(W_{\mathrm{2NN}}, "
    r"b_{\mathrm{2NN}})\|_F \le \sqrt{m}\, r_w, \; \|W_{\mathrm{QK}}^{(h)}\|_{2,1} \le "
    r"\frac{2 q d_e}{d} \log\left(\frac{2 r_a r_w r_x N \sqrt{q}}{\sqrt{\epsilon_{\mathrm{2NN}}}}"
    r"\right)",
    kind="inequality",
    judges=(
        retrieval.transformer_parameters,
        retrieval.retrieval_weights,
        retrieval.inverse_temperature,
    ),
    over=reals("a: m, W: m q*d, b: m") | {"r_x": Box(1, math.inf)},
    hypotheses=lambda i, size: {"alpha > 0": _inside(i, size) > 1},
    evaluate=_norms,
    forms=(
        Form(
            name="printed",
            cites="Lemma 11, second display; ||.||_{2,1} over columns",
            equality="always: each W_QK holds one block alpha I of size de, and r_a, r_w are the "
            "network's own",
        ),
        Form(
            name="printed, rows",
            cites="Lemma 11, second display, were it ||W_QK^T||_{2,1}: rows",
            equality="always",
            note="For the block alpha I, the sum of the norms of the rows equals the sum of the "
            "norms of the columns.",
        ),
        Form(
            name="derived Frobenius",
            equality="always",
            note="The Frobenius norm of a head is |W_QK|_F = alpha sqrt(de).",
        ),
    ),
    control="a factor sqrt(de) dropped",
    sizes=({"N": 8, "d": 3, "q": 2, "de": 12, "m": 3},),
    search="none",
    budget=Budget(samples=12, batch=12),
    source="Lemma 11; Theorem 10",
)

STATEMENTS = (ACCURACY, RETRIEVAL_TAIL, NORMS)
