"""Appendix C: removing w, W_c, the sign, the activation and W_v."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxbounds.seqlength.norms import column_norm, row_norm
from jaxbounds.seqlength.rademacher import empirical_rademacher, linear_support, with_negation
from jaxbounds.seqlength.statements.instances import INEQUALITY, functions, l1_vertices, normals
from jaxbounds.statements import Counterexample, Form, Instance, Sides, Size, Statement


def _holder(instance: Instance, size: Size) -> Sides:
    v, u = instance["v"], instance["u"]
    support = lambda B: linear_support(jnp.eye(size["d"]), B)(u)
    whole = support(jnp.sum(jnp.abs(v)))
    return Sides(v @ u, {"printed": support(1.0), "corrected": whole, "control": whole / 2.0})


def _holder_sample(key: Array, size: Size) -> Instance:
    a, b = jax.random.split(key)
    u = jax.random.normal(b, (size["d"],))
    return {"v": 3.0 * l1_vertices(a, (size["d"],)), "u": u}


HOLDER = Statement(
    id="seqlength.appc-holder",
    label="Appendix C, the first display",
    formula="v.u <= B_v max_j |u_j| = max_{j,s} s u_j, ||v||_1 <= B_v",
    **INEQUALITY,
    sample=_holder_sample,
    evaluate=_holder,
    judges=(linear_support,),
    sizes=({"d": 3},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E16",
            note="the second expression drops B_v",
            counterexample=Counterexample(
                instance={"v": [2.0], "u": [1.0]}, size={"d": 1}, ratio=2.0
            ),
        ),
        Form(name="corrected", equality="v = B_v s e_j at the largest |u_j|"),
    ),
    control="half of it",
)


def _peeling(instance: Instance, size: Size) -> Sides:
    w, W_c, W_v, z = (instance[name] for name in ("w", "W_c", "W_v", "z"))
    outer = jnp.sum(jnp.abs(w)) * jnp.max(jnp.abs(z))
    bound = lambda norm: outer * norm(W_c, 1, math.inf) * norm(W_v, 1, math.inf)
    right = bound(column_norm)
    return Sides(
        jnp.abs(w @ (W_c.T @ (W_v.T @ z))),
        {"printed": bound(row_norm), "corrected": right, "control": right / 2.0},
    )


def _peeling_sample(key: Array, size: Size) -> Instance:
    a, b, c = jax.random.split(key, 3)
    d, k = size["d"], size["k"]
    z = jax.random.rademacher(c, (d,), float)
    return {"w": l1_vertices(a, (d,)), **normals(b, {"W_c": (k, d), "W_v": (d, k)}), "z": z}


PEELING = Statement(
    id="seqlength.appc-peeling",
    label="Appendix C, removing w, W_c and W_v",
    formula="|w.W_c^T W_v^T z| <= ||w||_1 ||W_c^T||_{1,inf} ||W_v^T||_{1,inf} max_j |z_j|",
    **INEQUALITY,
    sample=_peeling_sample,
    evaluate=_peeling,
    judges=(column_norm, row_norm),
    hypotheses=lambda i, size: {
        "nothing is zero": jnp.min(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in i.values()]))
        > 1e-6
    },
    sizes=({"d": 2, "k": 2},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E4",
            note="the first display is applied to e_j^T W_c^T, a column of W_c",
            counterexample=Counterexample(
                instance={
                    "w": [1.0, 0.0],
                    "W_c": [[1.0, 0.0], [1.0, 0.0]],
                    "W_v": [[1.0, 0.0], [0.0, 1.0]],
                    "z": [1.0, 1.0],
                },
                size={"d": 2, "k": 2},
                ratio=2.0,
            ),
        ),
        Form(name="corrected", note="columns of W_c and of W_v", equality="nonnegative columns"),
    ),
    control="half the corrected product",
)


def _sign_removal(instance: Instance, size: Size) -> Sides:
    F = jnp.concatenate([jnp.zeros((1, size["m"])), with_negation(instance["F"])])
    plain = empirical_rademacher(F)
    two = empirical_rademacher(with_negation(jax.nn.relu(F)))
    odd = empirical_rademacher(with_negation(jnp.tanh(F)))
    return Sides.pairs(
        {"printed": (two, 2.0 * plain), "sharpened": (odd, plain), "control": (two, plain / 2.0)}
    )


SIGN = Statement(
    id="seqlength.appc-sign",
    label="Appendix C, removing s and sigma",
    formula="E sup_{s,f} s sum sigma_i sigma(f(x_i)) <= 2 L_sigma E sup_f sum sigma_i f(x_i)",
    **INEQUALITY,
    sample=functions,
    evaluate=_sign_removal,
    judges=(with_negation, empirical_rademacher),
    sizes=({"functions": 2, "m": 6},),
    forms=(
        Form(name="printed", note="sigma = relu, F symmetric with 0"),
        Form(name="sharpened", note="no factor 2 for odd sigma, as tanh: -sigma(f) = sigma(-f)"),
    ),
    control="half the complexity of F",
)

STATEMENTS = (HOLDER, PEELING, SIGN)
