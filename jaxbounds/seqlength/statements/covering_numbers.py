"""Lemma 3.2: covering numbers of linear maps on a basis."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.seqlength.statements.instances import l1_sphere
from jaxbounds.statements import Budget, Form, Sides, Statement

SUBSETS = np.array([[mask >> j & 1 for j in range(4)] for mask in range(1, 16)], bool)
ORDERS = (1.0, 2.0, 4.0, math.inf)


def _covering_numbers(values, epsilon, orders):
    """N of four functions, values (4, points, k), for each q, by trying all sets of centres."""
    difference = jnp.abs(values[:, None] - values[None])
    size = lambda q: (
        jnp.max(difference, -1) if q == math.inf else jnp.sum(difference**q, -1) ** (1.0 / q)
    )
    near = jnp.stack([jnp.max(size(q), axis=-1) < epsilon for q in orders])
    reached = jnp.any(SUBSETS[None, :, :, None] & near[:, None], axis=2)
    count = jnp.asarray(SUBSETS.sum(axis=1), values.dtype)
    return jnp.min(jnp.where(jnp.all(reached, axis=-1), count[None], 4.0), axis=1)


def _lemma_3_2(instance):
    W, x, epsilon = instance["W"], instance["x"], instance["epsilon"]
    d = W.shape[2]
    basis = jnp.eye(d, dtype=W.dtype)
    numbers = lambda points: _covering_numbers(
        jnp.einsum("fkd,nd->fnk", W, points), epsilon, (*ORDERS, 0.5)
    )
    on_basis, on_all = numbers(basis), numbers(jnp.concatenate([basis, x]))
    far = numbers(jnp.concatenate([basis, 3.0 * x]))
    many = on_basis[:-1]
    return Sides(
        lhs={"printed": on_all[-1], "corrected": on_all[:-1], "control": far[:-1]},
        rhs={"printed": on_basis[-1], "corrected": many, "control": many},
    )


def _lemma_3_2_sample(key, size):
    a, b, c = jax.random.split(key, 3)
    W = jnp.concatenate([jnp.zeros((1, size["k"], size["d"])),
                         jax.random.normal(a, (3, size["k"], size["d"]))])  # fmt: skip
    epsilon = jax.random.uniform(c, (), minval=0.5, maxval=4.0)
    return {"W": W, "x": l1_sphere(b, (4, size["d"])), "epsilon": epsilon}


LEMMA_3_2 = Statement(
    id="seqlength.lemma3.2",
    label="Lemma 3.2",
    formula="N(F, eps, N, q) = N(F, eps, {B_x e_1, .., B_x e_d}, q), ||x||_1 <= B_x, N >= d",
    kind="identity",
    sample=_lemma_3_2_sample,
    evaluate=_lemma_3_2,
    hypotheses=lambda i: {"||x||_1 <= 1": jnp.max(jnp.sum(jnp.abs(i["x"]), 1)) <= 1 + 1e-12},
    sizes=({"k": 2, "d": 3},),
    forms=(
        Form(
            name="printed",
            expected="fails",
            erratum="E13",
            note="Section 2.4 allows any q > 0; at q = 1/2 the identity's columns have norm 1, but"
            " its value at (1/2, 1/2) has 2",
            counterexample={
                "W": [[[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]] * 2,
                "x": [[0.5, 0.5]],
                "epsilon": 1.5,
            },
        ),
        Form(name="corrected", note="q = 1, 2, 4, infinity; on the basis and four more points"),
    ),
    control="points of norm 3 B_x",
    budget=Budget(samples=192, restarts=0, steps=0, batch=64),
    source="Lemma 3.2, Appendix B",
)


STATEMENTS = (LEMMA_3_2,)
