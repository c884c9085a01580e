"""Statements of Section 4 and Appendix B: Theorem 6 and the span of the training prompts."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.claims.sets import Sphere
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.qstr import span
from jaxbounds.qstr.statements.common import reals, searched


def _span(x: Array) -> tuple[Array, Array]:
    return span.span_rows(x.reshape(x.shape[0], -1), tolerance=1e-10)


def _theorem_6(i: Instance, size: Size) -> Sides:
    n, N, d = size["n"], size["N"], size["d"]
    rows, rank = _span(i["x"])
    worst, _ = span.extreme_risks(rows, d=d)
    return Sides.pairs(
        {
            "printed": (1 - n / (N * d), worst),
            "sharpened": (1 - rank / (N * d), worst),
            "control": (1 - (n - 1) / (N * d), worst),
        },
        error=1e-13,
    )


THEOREM_6 = searched(
    id="qstr.thm6",
    label="Theorem 6",
    formula="sup_u R(u) >= 1 - n/(N d) for first layers in the span of n prompts",
    tex=r"\inf_{A \in \mathcal{A}} \sup_{u \in \mathbb{S}^{d-1}} R^{\mathrm{FFN}}(f_{A(S_n)}, "
    r"W_{A(S_n)}) \ge 1 - \frac{n}{N d}",
    judges=(span.extreme_risks, span.span_rows, span.diagonal_block_mean),
    over=reals("x: n N d"),
    evaluate=_theorem_6,
    forms=(
        Form(
            name="printed",
            cites="Theorem 6, Section 4",
            equality="(1/N) sum_k P_kk a multiple of the identity",
            note="The least risk is exactly R(u) = 1 - u^T ((1/N) sum_k P_kk) u, where P projects "
            "onto the span of the prompts and P_kk is its d x d block for token k. Its mean over "
            "the sphere of u is 1 - rank/(Nd), where rank is the rank of the prompts.",
        ),
        Form(
            name="sharpened",
            equality="(1/N) sum_k P_kk a multiple of the identity",
            note="The rank of the n prompts replaces n in the lower bound on the risk.",
        ),
    ),
    control="n - 1 in place of n",
    sizes=({"n": 4, "N": 3, "d": 2}, {"n": 2, "N": 2, "d": 3}, {"n": 5, "N": 6, "d": 1}),
    assumptions="simple-1STR, linear link, N(0, I) tokens; n < N d (else the bound is 0)",
    source="Theorem 6, Appendix B",
    budget=Budget(samples=128, restarts=2, steps=40, batch=128),
)


def _risk(i: Instance, size: Size) -> Sides:
    n, N, d = size["n"], size["N"], size["d"]
    u, V = i["u"], i["x"].reshape(n, N * d)
    got = span.feedforward_certificate(i["x"], u)
    # Conditional variance by a Schur complement: no orthonormal basis, no projection.
    placed = np.einsum("ij,k->ijk", np.eye(N), u).reshape(N, N * d)
    seen = placed @ V.T
    explained = np.sum(seen * np.linalg.solve(V @ V.T, seen.T).T, axis=1)
    rows = np.asarray(span.span_rows(jnp.asarray(V))[0])
    blocks = (np.linalg.pinv(V) @ V).reshape(N, d, N, d)
    spectrum = np.linalg.eigvalsh(np.einsum("kakb->ab", blocks) / N)
    # Predictions are linear in the prompt, so predictions on the standard basis give the risk.
    basis = jnp.eye(N * d).reshape(N * d, N, d)
    predicted = span.best_prediction(jnp.asarray(rows), jnp.asarray(u), basis)
    return Sides.pairs(
        {
            "printed": (u @ u - explained, u @ u - np.sum((rows @ placed.T) ** 2, axis=0)),
            "derived mean": (np.mean(u @ u - explained), got.direction),
            "derived worst": (
                np.array([1 - spectrum[0], 1 - spectrum[-1], 1 - n / (N * d)]),
                np.array([got.worst, got.easiest, got.average]),
            ),
            "derived attained": (np.sum((placed.T - predicted) ** 2) / N, got.direction),
            "control": (np.mean(u @ u - explained), 1 - n / (N * d)),
        }
    )


EXACT_RISK = Statement(
    id="qstr.thm6.risk",
    label="Theorem 6 (risk at one direction)",
    formula="Var(<P_{t_1} u, x> | u, t_1, V x) = 1 - |V P_{t_1} u|^2; its mean over t_1 is the "
    "least risk at u",
    tex=r"\mathrm{Var}(\langle P_{t_1} u, x \rangle \mid u, t_1, V x) = 1 - \|V P_{t_1} u\|_2^2",
    kind="identity",
    judges=(
        span.feedforward_certificate,
        span.direction_risk,
        span.best_prediction,
        span.span_rows,
    ),
    host=True,
    over={"u": Sphere(1, "d")},
    sample=lambda key, size: {"x": jax.random.normal(key, (size["n"], size["N"], size["d"]))},
    evaluate=_risk,
    forms=(
        Form(
            name="printed",
            cites="Theorem 6, proof: Var(<P_{t_1} u, x> | u, t_1, V x) = 1 - |V P_{t_1} u|^2",
            note="The identity holds for every value of t_1, because E[<u, x_k> | P x] = <u, (P "
            "x)_k> for the projection P onto the span of the prompts.",
        ),
        Form(
            name="derived mean",
            note="The least risk at the direction u is the mean over t_1 of the label's variance "
            "given t_1 and P x, where P projects onto the span of the prompts.",
        ),
        Form(
            name="derived worst",
            note="The check computes the directions u of largest and least risk, and the average "
            "risk over all u, with a pseudo-inverse.",
        ),
        Form(
            name="derived attained",
            note="The predictions E[y | t, P x] attain the least risk; P projects onto the span "
            "of the prompts.",
        ),
    ),
    control="the average 1 - n/(Nd) at every u",
    sizes=({"n": 4, "N": 3, "d": 2},),
    tolerance=1e-8,
    budget=Budget(samples=12, batch=12),
    source="Appendix B",
)

_ETA, _DECAY = 0.02, 0.3


def _descent_sample(key: Array, size: Size) -> Instance:
    n, k, m = size["n"], size["k"], size["m"]
    x, W = jnp.split(jax.random.normal(key, (n + m, k + 1)), [n])
    return {"x": x[:, :k], "y": x[:, k], "W": W[:, :k], "a": W[:, k] / np.sqrt(m)}


def _descent(i: Instance, size: Size) -> Sides:
    x, y, a = i["x"], i["y"], i["a"]
    basis = _span(x)[0]
    outside = lambda W: W - (W @ basis.T) @ basis
    loss = lambda W: jnp.mean((jax.nn.relu(x @ W.T) @ a - y) ** 2)

    def step(
        carry: tuple[Array, Array], _: None
    ) -> tuple[tuple[Array, Array], tuple[Array, Array, Array]]:
        W, power = carry
        W = W - _ETA * (jax.grad(loss)(W) + _DECAY * W)
        power = power * (1 - _ETA * _DECAY)
        share = span.off_span_fraction(W, basis) * jnp.sum(W**2)
        return (W, power), (outside(W), share, power)

    start = outside(i["W"])
    first = (i["W"], jnp.ones(()))
    measured, share, power = jax.lax.scan(step, first, length=size["steps"])[1]
    want = jnp.einsum("t,mk->tmk", power, start)
    return Sides.pairs(
        {
            "derived": (measured, want),
            "derived share": (share, power**2 * jnp.sum(start**2)),
            "control": (measured, jnp.broadcast_to(start, want.shape)),
        }
    )


OFF_SPAN = Statement(
    id="qstr.def5.span",
    label="Definition 5 (descent towards A_SP)",
    formula="W_k outside the span = (1 - eta lambda)^k W_0 outside the span",
    tex=r"W_k (I - P) = (1 - \eta \lambda)^k W_0 (I - P)",
    kind="trajectory",
    relation="=",
    judges=(span.off_span_fraction, span.span_rows),
    sample=_descent_sample,
    evaluate=_descent,
    forms=(
        Form(
            name="derived",
            note="The gradient in W lies in the span of the prompts. Outside the span, gradient "
            "descent with an l2 penalty therefore only shrinks W. A stationary point has no "
            "part outside the span.",
        ),
        Form(
            name="derived share",
            note="The check multiplies |W - W P|_F^2 / |W|_F^2, the share "
            "of W outside the span, by |W|_F^2.",
        ),
    ),
    control="no shrinkage",
    sizes=({"n": 4, "k": 7, "m": 5, "steps": 40},),
    horizon="steps",
    budget=Budget(samples=16, batch=16),
    source="Definition 5; Appendix B",
)


def _algorithms(i: Instance, size: Size) -> Sides:
    n, N, d, m = (size[name] for name in ("n", "N", "d", "m"))
    x, y, W = i["x"].reshape(n, N * d), i["y"], i["W"]
    t = jnp.arange(n) % m  # the positions of the n prompts
    basis = _span(i["x"])[0]
    inside = (W @ basis.T) @ basis

    def loss(W: Array) -> Array:
        hidden = jnp.tanh(x @ W.T + i["c"][t][:, None])
        out = jax.nn.relu(hidden @ i["A"].T) @ i["B"].T
        return jnp.mean(jnp.logaddexp(0.0, out - y[:, None]))

    gradient = jax.grad(loss)(W)
    share = span.off_span_fraction(gradient, basis)
    square = lambda V: jnp.sum(V**2)
    return Sides.pairs(
        {
            "printed A_SP": (1 + share, 1.0),
            "printed A_ERM": (loss(W), loss(inside)),
            "derived shorter": (square(W), square(inside) + square(W - inside)),
            "control": (loss(W), loss(2 * inside)),
        }
    )


ALGORITHMS = Statement(
    id="qstr.def5",
    label="Definition 5 (A_SP and A_ERM)",
    formula="the gradient in W lies in the span of the prompts; the loss at W is that at W P",
    tex=r"\nabla_{w_k} \mathcal{L}^{\mathrm{FFN}}(f, W) \in \mathrm{span}(x^{(1)}, \ldots, "
    r"x^{(n)}), \quad \mathcal{L}^{\mathrm{FFN}}(f, W) = \mathcal{L}^{\mathrm{FFN}}(f, W P)",
    kind="identity",
    judges=(span.span_rows, span.off_span_fraction),
    over=reals("x: n N d, y: n, W: m k, A: m m, B: N m, c: m"),
    evaluate=_algorithms,
    forms=(
        Form(
            name="printed A_SP",
            cites="Appendix B: nabla_{w_k} L^FFN(f, W) in span(x^(1), .., x^(n))",
            note="At a stationary point of the loss with the l2 penalty lambda |W|^2/2, W equals "
            "-gradient / lambda. So the rows of W lie in the span of the prompts.",
        ),
        Form(
            name="printed A_ERM",
            cites="Appendix B: 'L^FFN only depends on w_k through its projection on span(..)'",
        ),
        Form(
            name="derived shorter",
            note="The squared norm of W is the sum of the squared norms inside and outside the "
            "span of the prompts. So a W of minimal norm has no part outside the span.",
        ),
    ),
    control="the loss at 2 W P",
    sizes=({"n": 3, "N": 3, "d": 2, "m": 4, "k": 6},),
    budget=Budget(samples=16, batch=16),
    assumptions="one smooth loss, one readout of two further layers that sees t_1",
    source="Definition 5, Appendix B",
)

STATEMENTS = (ALGORITHMS, OFF_SPAN, THEOREM_6, EXACT_RISK)
