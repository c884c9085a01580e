"""Section 4 and Appendix B: Theorem 6 and the span of the training prompts."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.qstr import span
from jaxbounds.qstr.links import sphere
from jaxbounds.qstr.statements.common import QUICK
from jaxbounds.statements import Budget, Form, Sides, Statement


def _projection(x):
    """V^T (V V^T)^+ V of the flattened prompts, and its rank, without a change of shape."""
    n = x.shape[0]
    singular, rows = jnp.linalg.svd(x.reshape(n, -1), full_matrices=False)[1:]
    kept = (singular > 1e-10 * singular[0]).astype(x.dtype)
    return rows * kept[:, None], jnp.sum(kept)


def _generic(key, size):
    return {"x": jax.random.normal(key, (size["n"], size["N"], size["d"]))}


def _duplicates(key, size):
    x = _generic(key, size)["x"]
    return {"x": x.at[-1].set(x[0])}


def _theorem_6(i):
    n, N, d = i["x"].shape
    basis, rank = _projection(i["x"])
    spectrum = jnp.linalg.eigvalsh(span.diagonal_block_mean(basis, d=d))
    worst, easiest = 1 - spectrum[0], 1 - spectrum[-1]
    return Sides(
        lhs={
            "printed": 1 - n / (N * d),
            "sharpened": 1 - rank / (N * d),
            "control": 1 - n / (N * d),
        },
        rhs={"printed": worst, "sharpened": worst, "control": easiest},
        error=1e-13,
    )


THEOREM_6 = Statement(
    id="qstr.thm6",
    label="Theorem 6",
    formula="sup_u R(u) >= 1 - n/(N d) for first layers in the span of n prompts",
    kind="inequality",
    sample={"generic": _generic, "duplicates": _duplicates},
    evaluate=_theorem_6,
    forms=(
        Form(
            name="printed",
            equality="(1/N) sum_k P_kk a multiple of the identity",
            note="R(u) = 1 - u^T ((1/N) sum_k P_kk) u exactly; its mean over u is 1 - rank/(Nd).",
        ),
        Form(
            name="sharpened",
            equality="(1/N) sum_k P_kk a multiple of the identity",
            note="The rank of the prompts in place of n.",
        ),
    ),
    control="inf_u in place of sup_u",
    sizes=({"n": 4, "N": 3, "d": 2},),
    budget=QUICK,
    assumptions="simple-1STR, linear link, N(0, I) tokens; n < N d (else the bound is 0)",
    source="Theorem 6, Appendix B",
)


def _risk_sample(key, size):
    key_x, key_u = jax.random.split(key)
    return {**_generic(key_x, size), "u": sphere(key_u, size["d"])}


def _risk(i):
    n, N, d = i["x"].shape
    V, u = i["x"].reshape(n, N * d), i["u"]
    basis = _projection(i["x"])[0]
    # Conditional variance by a Schur complement: no orthonormal basis, no projection.
    placed = jnp.einsum("ij,k->ijk", jnp.eye(N), u).reshape(N, N * d)
    seen = placed @ V.T
    explained = jnp.sum(seen * jnp.linalg.solve(V @ V.T, seen.T).T, axis=1)
    risk = span.direction_risk(basis, u)
    return Sides(
        lhs=jnp.mean(u @ u - explained),
        rhs={"printed": risk, "control": 1 - n / (N * d) + 0 * risk},
    )


EXACT_RISK = Statement(
    id="qstr.thm6.risk",
    label="Theorem 6 (risk at one direction)",
    formula="min over f of R(u) = |u|^2 - u^T ((1/N) sum_k P_kk) u",
    kind="identity",
    sample=_risk_sample,
    evaluate=_risk,
    forms=(Form(name="printed", note="E[<u, x_k> | P x] = <u, (P x)_k>."),),
    control="the average 1 - n/(Nd) at every u",
    sizes=({"n": 4, "N": 3, "d": 2},),
    tolerance=1e-8,
    budget=Budget(samples=64),
    source="Appendix B",
)

_ETA, _DECAY, _STEPS = 0.02, 0.3, 40


def _descent_sample(key, size):
    keys = jax.random.split(key, 4)
    n, k, m = size["n"], size["k"], size["m"]
    return {
        "x": jax.random.normal(keys[0], (n, k)),
        "y": jax.random.normal(keys[1], (n,)),
        "W": jax.random.normal(keys[2], (m, k)),
        "a": jax.random.normal(keys[3], (m,)) / np.sqrt(m),
    }


def _descent(i):
    x, y, a = i["x"], i["y"], i["a"]
    basis = _projection(x[:, None, :])[0]
    outside = lambda W: W - (W @ basis.T) @ basis
    loss = lambda W: jnp.mean((jax.nn.relu(x @ W.T) @ a - y) ** 2)

    def step(carry, _):
        W, power = carry
        W = W - _ETA * (jax.grad(loss)(W) + _DECAY * W)
        power = power * (1 - _ETA * _DECAY)
        return (W, power), (outside(W), power)

    start = outside(i["W"])
    measured, power = jax.lax.scan(step, (i["W"], jnp.ones(())), length=_STEPS)[1]
    want = jnp.einsum("t,mk->tmk", power, start)
    return Sides(
        lhs=measured, rhs={"printed": want, "control": jnp.broadcast_to(start, want.shape)}
    )


OFF_SPAN = Statement(
    id="qstr.def5.span",
    label="Definition 5 (stationary points)",
    formula="W_k outside the span = (1 - eta lambda)^k W_0 outside the span",
    kind="trajectory",
    relation="=",
    sample=_descent_sample,
    evaluate=_descent,
    forms=(
        Form(
            name="printed",
            note="The gradient in W lies in the span of the prompts, so off it gradient descent "
            "with l2 only shrinks, and a stationary point has nothing there.",
        ),
    ),
    control="no shrinkage",
    sizes=({"n": 4, "k": 7, "m": 5},),
    budget=Budget(samples=16),
    source="Definition 5; Appendix B",
)

STATEMENTS = (OFF_SPAN, THEOREM_6, EXACT_RISK)
