"""Section 5.2, the proof sketch of P3: U* as a classifier of relevant tokens, and grad_W Phi."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxbounds.claims.sets import Box, Reals
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.multihead.calculus import softmax_derivative
from jaxbounds.multihead.derivatives import one_head
from jaxbounds.multihead.first_phase import equal_rows, printed_centre
from jaxbounds.multihead.oracle import (
    Assumption3,
    oracle_projection,
    oracle_weights,
    projection_norm,
    relevance_scores,
)
from jaxbounds.multihead.statements.contexts import DRAWS, on_sequence, unfold
from jaxbounds.numerics.norms import vector_norm


def _oracle(size: Size) -> Instance:
    one = jnp.asarray([1.0, -1.0] + [0.0] * (size["d"] - 2))
    return {"S": jnp.ones(1), "U": jnp.broadcast_to(one, (1, size["T"], size["d"]))}


def _relevant_tokens(instance: Instance, size: Size) -> Sides:
    U, patterns = instance["U"], instance["S"] * jnp.eye(2, size["d"])
    labels = jnp.asarray([1.0, -1.0])
    worst = lambda projection: jnp.min(projection @ patterns.T * labels[None, :])
    best = oracle_projection(patterns, size["T"])
    dm1 = Assumption3(S=instance["S"], zeta=1.0, Z_mu=0.0, Z_nu=0.0, Z=0.0, T=size["T"], M=0)
    bound = worst(best) * jnp.linalg.norm(U) / projection_norm(dm1)
    return Sides(lhs=worst(U), rhs={"printed": bound, "control": 0.99 * bound}, error=1e-14 * bound)


CLASSIFIER = Statement(
    id="multihead.sec5.2.classifier",
    label="Section 5.2, U* and the label-relevant tokens",
    formula="min_{t, y} y <u_t, mu_y> <= ||U|| / ||U*|| min_{t, y} y <u*, mu_y> for all U",
    tex=r"\min_{t, y} \, y \langle u_t, \mu_y \rangle \le \frac{\|U\|}{\|U_\star\|} \, \min_{y} "
    r"\, y \langle u_\star, \mu_y \rangle \quad \forall U \in \mathbb{R}^{T \times d}",
    kind="inequality",
    over={"S": Box(1e-3, math.inf), "U": Reals(("T", "d"))},
    cases=_oracle,
    evaluate=_relevant_tokens,
    judges=(oracle_projection, projection_norm),
    sizes=({"T": 4, "d": 4},),
    forms=(
        Form(
            name="printed",
            cites="Section 5.2: 'It is easy to see that U* is the optimal classifier for the "
            "label-relevant tokens'",
            equality="U = c U*, c > 0",
            note=(
                "The least y <u_t, mu_y> over t and y, times T, is at most sum_t <u_t, u*> / 2 <= "
                "||U|| ||U*|| / 2. U*, scaled to the norm of U, attains this bound. So the scaled "
                "U* has the largest margin among all U of this norm."
            ),
        ),
    ),
    control="0.99 of the margin of U*",
    source="Section 5.2, below the choice of W* and U*",
    budget=Budget(samples=128, restarts=4, steps=80),
)


def _at_first_step(instance: Instance, size: Size) -> Sides:
    c, p, alpha, T = unfold(instance), instance["p"], instance["alpha"], size["T"]
    flat = softmax_derivative(jnp.full(T, 1 / T))
    row = printed_centre(c.classifier, c.zeta) + p
    start = {name: leaf[0] for name, leaf in equal_rows(row, alpha[None], T).items()}
    slope = jax.grad(one_head, argnums=1)
    gradient = slope(start["U"], start["W"], c.X)

    def term(along: Array, centred: Array) -> Array:
        return jnp.outer(jnp.sum(c.X, axis=0), along @ c.X.T @ centred @ c.X)

    def display(centred: Array) -> Array:
        return alpha * c.zeta / 2 * term(c.classifier, centred) + alpha * term(p, centred)

    weights = oracle_weights(c.patterns)
    # At p = 0, the first term alone remains, along W*, in the logits of classes and of the softmax.
    dominant = slope(start["U"] - alpha * p[None, :], start["W"], c.X)
    logits = jnp.sum(relevance_scores(c.X, weights), axis=0)
    scores = alpha * c.zeta / 2 * (c.X @ c.classifier) @ flat @ logits
    small = 1e-15 * jnp.abs(alpha) * T * (c.S + c.Z) ** 3
    of_gradient = small * vector_norm(row)
    return Sides.pairs(
        {
            "printed": (gradient, display(flat)),
            "printed, logits": (jnp.sum(dominant * weights), scores),
            "control": (gradient, display(jnp.eye(T) / T)),
        },
        error={
            "printed": of_gradient,
            "printed, logits": small * c.zeta * (c.S + c.Z) ** 3,
            "control": of_gradient,
        },
    )


GRADIENT = on_sequence(
    id="multihead.sec5.2.gradient",
    label="Section 5.2, grad_W Phi at theta^(1)",
    formula="grad_W Phi(X; theta^(1)) = alpha zeta/2 sum_t x_t u*^T X^T phi'(0) X + alpha sum_t "
    "x_t p^T X^T phi'(0) X",
    tex=r"\nabla_W \Phi(X; \theta^{(1)}) = \frac{\alpha \zeta}{2} \sum_{t} x_t u_\star^\top "
    r"X^\top \varphi'(0) X + \alpha \sum_{t} x_t p^\top X^\top \varphi'(0) X",
    kind="identity",
    evaluate=_at_first_step,
    judges=(softmax_derivative, printed_centre, equal_rows, relevance_scores),
    forms=(
        Form(
            name="printed",
            cites="Section 5.2, the display below 'it follows from Lemma 1 that'",
            note=(
                "This version of the claim applies Lemma 1 at W = 0 and U = alpha 1_T ((zeta/2) u* "
                "+ p)^T. Here phi'(0) = (1/T) (I - 11^T / T); the paper omits the factor 1/T "
                "(erratum E15)."
            ),
        ),
        Form(
            name="printed, logits",
            cites="Section 5.2: 'governed by the following term'",
            note=(
                "This version of the claim is about the first term of the gradient's inner "
                "product with W*, which is alpha zeta/2 sum_t u*^T X^T phi'(0) r_t. Both sides "
                "omit the factor y."
            ),
        ),
    ),
    control="phi'(0) without its rank-one part",
    source="Section 5.2, the second step for P3",
    over={"alpha": Reals()},
    budget=DRAWS,
)

STATEMENTS = (CLASSIFIER, GRADIENT)
