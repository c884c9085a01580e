"""The footnote to eq. (1): do the bounds apply to pooling and to the last token?"""

from collections.abc import Callable

import jax

from jaxbounds.multihead.bounds import outer_gradient_bound
from jaxbounds.multihead.model import Readout, expand_readout, head_output
from jaxbounds.multihead.statements.common import (
    IDENTICAL,
    ON_MODEL,
    on_data,
    tight,
    token_radius,
)
from jaxbounds.norms import vector_norm
from jaxbounds.statements import Counterexample, Form, Instance, Sides, Size, Statement


def _pooled(readout: Readout, name: str) -> Callable[[Instance, Size], Sides]:
    def evaluate(instance: Instance, size: Size) -> Sides:
        tokens, T, radius = instance["X"], size["T"], token_radius(instance)
        output = lambda u: head_output(expand_readout(u, T, readout), instance["W"], tokens)
        printed = outer_gradient_bound(radius, T=T)
        right = outer_gradient_bound(radius, T=T, readout=readout)
        return tight(
            vector_norm(jax.grad(output)(instance["U"][0])), {"printed": printed, name: right}
        )

    return evaluate


POOLING = Statement(
    id="multihead.footnote1.pooling",
    label="footnote * (ii)",
    formula="pooling U = 1_T u^T: ||grad_u Phi|| <= sqrt(T) R",
    tex=r"U = 1_T u^\top: \quad \|\nabla_u \Phi\| \le \sqrt{T} R",
    evaluate=_pooled("pooling", "corrected"),
    judges=(outer_gradient_bound, expand_readout),
    forms=(
        Form(
            name="printed",
            cites="Section 2, footnote to eq. (1): 'our results also apply to (ii) Pooling'",
            expected="fails",
            erratum="E14",
            note="If they apply with the same constants: with a trainable u the gradient sums "
            "over tokens. T identical tokens of norm R give T R.",
            counterexample=Counterexample(
                instance={"X": [[1.0, 0.0]] * 2, "U": [[0.0, 0.0]] * 2, "W": [[0.0, 0.0]] * 2},
                size={"T": 2, "d": 2},
                ratio=1.414213562373095,
                meets=on_data,
            ),
        ),
        Form(name="corrected", note="T R.", equality=IDENTICAL),
    ),
    control="the corrected bound times 0.9",
    source="Section 2, footnote to eq. (1); Proposition 5 (1)",
    **ON_MODEL,
)
LAST = Statement(
    id="multihead.footnote1.last",
    label="footnote * (iii)",
    formula="last token U = e_T u^T: ||grad_u Phi|| <= sqrt(T) R",
    tex=r"U = e_T u^\top: \quad \|\nabla_u \Phi\| \le \sqrt{T} R",
    evaluate=_pooled("last", "sharpened"),
    judges=(outer_gradient_bound, expand_readout),
    forms=(
        Form(
            name="printed",
            cites="Section 2, footnote to eq. (1): '(iii) Last-token output'",
        ),
        Form(name="sharpened", note="R: T becomes 1 everywhere.", equality=IDENTICAL),
    ),
    control="the sharpened bound times 0.9",
    source="Section 2, footnote to eq. (1); Proposition 5 (1)",
    **ON_MODEL,
)

STATEMENTS = (POOLING, LAST)
