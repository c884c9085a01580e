"""The footnote to eq. (1): do the bounds apply to pooling and to the last token?"""

import jax
import jax.numpy as jnp

from jaxbounds.multihead.model import expand_readout, head_output
from jaxbounds.multihead.statements.common import IDENTICAL, model_statement, token_radius
from jaxbounds.norms import vector_norm
from jaxbounds.statements import Form, Instance, Sides


def _pooled(readout: str):
    def evaluate(instance: Instance) -> Sides:
        tokens, T = instance["X"], instance["X"].shape[0]

        def output(u):
            return head_output(expand_readout(u, T, readout), instance["W"], tokens)

        radius = token_radius(instance)
        printed = jnp.sqrt(1.0 * T) * radius
        right = T * radius if readout == "pooling" else radius
        name = "corrected" if readout == "pooling" else "sharpened"
        lhs = vector_norm(jax.grad(output)(instance["U"][0]))
        return Sides(lhs=lhs, rhs={"printed": printed, name: right, "control": 0.9 * right})

    return evaluate


STATEMENTS = (
    model_statement(
        "footnote1.pooling",
        "footnote * (ii)",
        "pooling U = 1_T u^T: ||grad_u Phi|| <= sqrt(T) R",
        _pooled("pooling"),
        (
            Form(
                name="printed",
                expected="fails",
                erratum="E14",
                note="'Our results also apply': with a trainable u the gradient sums over tokens. "
                "T identical tokens of norm R give T R.",
                counterexample={
                    "X": [[1.0, 0.0], [1.0, 0.0]],
                    "U": [[0.0, 0.0], [0.0, 0.0]],
                    "W": [[0.0, 0.0], [0.0, 0.0]],
                },
            ),
            Form(name="corrected", note="T R.", equality=IDENTICAL),
        ),
        "the corrected bound times 0.9",
        "Section 2, footnote to eq. (1); Proposition 5 (1)",
    ),
    model_statement(
        "footnote1.last",
        "footnote * (iii)",
        "last token U = e_T u^T: ||grad_u Phi|| <= sqrt(T) R",
        _pooled("last"),
        (
            Form(name="printed"),
            Form(name="sharpened", note="R: T becomes 1 everywhere.", equality=IDENTICAL),
        ),
        "the sharpened bound times 0.9",
        "Section 2, footnote to eq. (1); Proposition 5 (1)",
    ),
)
