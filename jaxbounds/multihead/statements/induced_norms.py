"""Section 2: formulas for induced matrix norms, and the variance of the model's output."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.sets import Reals
from jaxbounds.claims.statements import Budget, Form, Instance, Sides, Size, Statement
from jaxbounds.multihead.model import model_output
from jaxbounds.numerics.norms import induced_norm, vector_norm

_NORMS = "Section 2, Notation: 'the induced matrix norm ||A||_{p,q} = max_{||v||_p = 1} ||Av||_q'"


def _induced(i: Instance, size: Size) -> Sides:
    A = i["A"]
    rows, vertices = vector_norm(A), jnp.eye(A.shape[1])
    row = A[jnp.argmax(rows)]
    unit = row / jnp.maximum(vector_norm(row), 1e-30)
    largest = lambda w: jnp.max(jnp.abs(w))
    of_two, of_columns, of_entries = (
        induced_norm(A, p, q) for p, q in ((2, math.inf), (1, 2), (1, math.inf))
    )
    return Sides.pairs(
        {
            "printed ||A||_{2,inf}": (largest(A @ unit), of_two),
            "printed ||A||_{1,2}": (jnp.max(vector_norm((A @ vertices).T)), of_columns),
            "printed ||A||_{1,inf}": (largest(A @ vertices), of_entries),
            "control": (largest(A @ unit), of_columns),
        },
        error=1e-14 * jnp.sum(jnp.abs(A)),
    )


INDUCED = Statement(
    id="multihead.sec2.norms",
    label="Section 2, induced norms",
    formula="||A||_{2,inf} = max_i ||A_i,:||, ||A||_{1,2} = max_j ||A_:,j||, ||A||_{1,inf} = "
    "max_j ||A_:,j||_inf",
    tex=r"\|A\|_{2,\infty} = \max_i \|A_{i,:}\|, \quad \|A\|_{1,2} = \max_j \|A_{:,j}\|, \quad "
    r"\|A\|_{1,\infty} = \max_j \|A_{:,j}\|_\infty",
    kind="identity",
    judges=(induced_norm,),
    over={"A": Reals((3, 4))},
    evaluate=_induced,
    forms=(
        *(
            Form(
                name=f"printed {norm}",
                cites=_NORMS,
                note="The check evaluates ||A v||_q at a vector v that attains the norm. "
                "Cauchy-Schwarz and the triangle inequality bound every other v.",
            )
            for norm in ("||A||_{2,inf}", "||A||_{1,2}", "||A||_{1,inf}")
        ),
    ),
    control="the largest column for the largest row",
    sizes=({},),
    budget=Budget(samples=64),
    source="Section 2, Notation",
)


def _variance(i: Instance, size: Size) -> Sides:
    H, T, d = size["H"], size["T"], size["d"]
    signs = jnp.asarray(list(itertools.product((-1.0, 1.0), repeat=H * T * d)))
    outputs = jax.vmap(lambda s: model_output({"U": s.reshape(H, T, d), "W": i["W"]}, i["X"]))(
        signs
    )
    attended = [jax.nn.softmax(i["X"] @ W @ i["X"].T, axis=-1) @ i["X"] for W in i["W"]]
    squares = [jnp.sum(one**2) for one in attended]
    R = jnp.max(vector_norm(i["X"]))
    return Sides.pairs(
        {
            "printed": (jnp.mean(outputs**2), T * R**2),
            "derived": (jnp.mean(outputs**2), sum(squares) / H),
            "control": (jnp.mean(outputs**2), T * R**2 / H**2),
        },
        error=1e-12 * T * R**2,
    )


VARIANCE = Statement(
    id="multihead.sec2.variance",
    label="Section 2, the model's variance",
    formula="Var Phi(X; theta) = (1/H) sum_h ||phi(X W_h X^T) X||_F^2 <= T R^2, signs U_h",
    tex=r"\operatorname{Var} \tilde\Phi(X; \tilde\theta) = \frac{1}{H} \sum_h \|\phi(X W_h X^\top) "
    r"X\|_F^2 \le T R^2",
    kind="inequality",
    judges=(model_output,),
    over={"X": Reals(("T", "d")), "W": Reals(("H", "d", "d"))},
    cases=lambda size: {
        "X": np.ones((1, size["T"], size["d"])), "W": np.zeros((1, size["H"], size["d"], size["d"]))
    },
    evaluate=_variance,
    forms=(
        Form(
            name="printed",
            cites="Section 2, below (2): 'ensuring the model variance is of constant order when "
            "U_h is initialized O_H(1)'",
            equality="equal tokens",
            note="The bound T R^2 on the variance of the model's output does not grow with H.",
        ),
        Form(name="derived", equality="always", note="The entries of U_h are uncorrelated and "
        "equal to +1 or -1, so the variance equals the printed sum."),
    ),
    control="T R^2 / H^2",
    sizes=({"H": 2, "T": 2, "d": 2}, {"H": 4, "T": 2, "d": 1}),
    budget=Budget(samples=64, restarts=2, steps=30),
    assumptions="entries of U_h independent signs; any W_h",
    source="Section 2, below (2)",
)  # fmt: skip

STATEMENTS = (INDUCED, VARIANCE)
