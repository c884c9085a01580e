"""The footnote to equation (1): the bounds for the read-outs "pooling" and "last token"."""

import math
from collections.abc import Callable

import jax
import numpy as np

from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Form,
    Instance,
    Sides,
    Size,
)
from jaxbounds.multihead.bounds import (
    inner_gradient_sharp,
    outer_gradient_bound,
    readout_inner_gradient,
    summed_scores,
)
from jaxbounds.multihead.derivatives import one_head
from jaxbounds.multihead.model import Readout, expand_readout
from jaxbounds.multihead.statements.common import (
    ANTIPODAL,
    IDENTICAL,
    on_data,
    on_model,
    tight,
    token_radius,
)
from jaxbounds.numerics.norms import vector_norm


def _pooled(readout: Readout, name: str) -> Callable[[Instance, Size], Sides]:
    def evaluate(instance: Instance, size: Size) -> Sides:
        tokens, T, radius = instance["X"], size["T"], token_radius(instance)
        output = lambda u: one_head(expand_readout(u, T, readout), instance["W"], tokens)
        printed = outer_gradient_bound(radius, T=T)
        right = outer_gradient_bound(radius, T=T, readout=readout)
        return tight(
            vector_norm(jax.grad(output)(instance["U"][0])), {"printed": printed, name: right}
        )

    return evaluate


POOLING = on_model(
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
            erratum="E14",
            reading="the same constants",
            note="This version of the claim uses the paper's constants for pooling. If u is "
            "trainable, the gradient of Phi in u is a sum over the tokens. For T identical tokens "
            "of norm R, this gradient has norm T R.",
            counterexample=Counterexample(
                instance={"X": [[1.0, 0.0]] * 2, "U": [[0.0, 0.0]] * 2, "W": [[0.0, 0.0]] * 2},
                size={"T": 2, "d": 2},
                ratio=1.414213562373095,
                meets=on_data,
            ),
        ),
        Form(
            name="corrected",
            note="For pooling, the bound on the norm of Phi's gradient in u is T R.",
            equality=IDENTICAL,
        ),
    ),
    control="the corrected bound times 0.9",
    source="Section 2, footnote to eq. (1); Proposition 5 (1)",
)
LAST = on_model(
    id="multihead.footnote1.last",
    label="footnote * (iii)",
    formula="last token U = e_T u^T: ||grad_u Phi|| <= sqrt(T) R",
    tex=r"U = e_T u^\top: \quad \|\nabla_u \Phi\| \le \sqrt{T} R",
    evaluate=_pooled("last", "sharpened"),
    judges=(outer_gradient_bound, expand_readout),
    forms=(
        Form(name="printed", cites="Section 2, footnote to eq. (1): '(iii) Last-token output'"),
        Form(
            name="sharpened",
            note=(
                "For the readout from the last token, the bound on the gradient in u is R, "
                "because this readout replaces T by 1 everywhere in the printed bound."
            ),
            equality=IDENTICAL,
        ),
    ),
    control="the sharpened bound times 0.9",
    source="Section 2, footnote to eq. (1); Proposition 5 (1)",
)


def _inner(readout: Readout, name: str) -> Callable[[Instance, Size], Sides]:
    def evaluate(instance: Instance, size: Size) -> Sides:
        tokens, T, radius = instance["X"], size["T"], token_radius(instance)
        u = instance["U"][0]
        full = expand_readout(u, T, readout)
        by_norm = lambda kind: readout_inner_gradient(radius, vector_norm(u), T=T, readout=kind)
        slope = jax.grad(lambda W: one_head(full, W, tokens))(instance["W"])
        rhs = {
            "printed": 2 * by_norm("full"),
            name: by_norm(readout),
            "sharpened S1": inner_gradient_sharp(radius, summed_scores(full, tokens)),
        }
        rhs["control"] = 0.5 * rhs["sharpened S1"]
        return Sides(vector_norm(slope.ravel()), rhs, error=1e-14 * rhs[name])

    return evaluate


def _attending_to_both(size: Size) -> Instance:
    """Return two sequences of tokens x and -x.

    In the first sequence, half of the tokens are -x, and W = 0. In the second sequence, one token
    is -x, and x attends to -x as much as to all other tokens together.
    """
    T, d = size["T"], size["d"]
    x, t = np.eye(d)[0], np.arange(T)
    signs = np.stack([(-1.0) ** t, np.where(t < T - 1, 1, -1)])
    W = -0.5 * math.log(T - 1) * np.outer(x, x)
    U = np.broadcast_to(x, (2, T, d))
    return {"X": signs[..., None] * x, "U": U, "W": np.stack([0.0 * W, W])}


FEW_STEPS = Budget(samples=64, restarts=2, steps=30)


POOLING_INNER = on_model(
    id="multihead.footnote1.pooling.w",
    label="footnote * (ii), grad_W",
    formula="pooling U = 1_T u^T: ||grad_W Phi||_F <= 2 sqrt(T) R^3 ||u||",
    tex=r"U = 1_T u^\top: \quad \|\nabla_W \Phi\|_F \le 2 \sqrt{T} R^3 \|u\|",
    evaluate=_inner("pooling", "corrected"),
    judges=(readout_inner_gradient, inner_gradient_sharp, summed_scores, expand_readout),
    forms=(
        Form(
            name="printed",
            cites="Section 2, footnote to eq. (1): 'our results also apply to (ii) Pooling'; (46)",
            erratum="E14",
            reading="the same constants",
            note=(
                "This version of the claim is (46) with ||u|| in place of ||U||_F, although "
                "||1_T u^T||_F = sqrt(T) ||u||. In the example, T - 1 tokens x attend to x and "
                "-x equally. The gradient is then slightly longer than (T - 1) R^3 ||u||."
            ),
            counterexample=Counterexample(
                instance={
                    "X": [[1.0, 0.0]] * 7 + [[-1.0, 0.0]],
                    "U": [[1.0, 0.0]] * 8,
                    "W": [[-0.97, 0.0], [0.0, 0.0]],
                },
                size={"T": 8, "d": 2},
                ratio=1.2234879203492146,
                meets=on_data,
            ),
        ),
        Form(
            name="corrected",
            note="The gradient of Phi in W has a norm of at most T R^3 ||u||. The factor 2 of (46) "
            "is unnecessary, as sharpening S1 explains.",
        ),
        Form(
            name="sharpened S1",
            note="The gradient of Phi in W has a norm of at most R^2 T ||X u||_inf. The gradient "
            "is a sum of T terms x_t Cov_t u, and each term has a norm of at most R^2 ||X u||_inf.",
        ),
    ),
    control="half of the bound of the form 'sharpened S1'",
    source="Section 2, footnote to eq. (1); Proposition 5 (1), eqs. (43), (46)",
    cases=_attending_to_both,
    budget=FEW_STEPS,
)

LAST_INNER = on_model(
    id="multihead.footnote1.last.w",
    label="footnote * (iii), grad_W",
    formula="last token U = e_T u^T: ||grad_W Phi||_F <= 2 sqrt(T) R^3 ||u||",
    tex=r"U = e_T u^\top: \quad \|\nabla_W \Phi\|_F \le 2 \sqrt{T} R^3 \|u\|",
    evaluate=_inner("last", "sharpened"),
    judges=(readout_inner_gradient, inner_gradient_sharp, summed_scores, expand_readout),
    forms=(
        Form(
            name="printed", cites="Section 2, footnote to eq. (1): '(iii) Last-token output'; (46)"
        ),
        Form(
            name="sharpened",
            note="The gradient of Phi in W has a norm of at most R^3 ||u||.",
            equality=ANTIPODAL,
        ),
        Form(
            name="sharpened S1",
            note="The gradient of Phi in W has a norm of at most R^2 ||X u||_inf.",
            equality=ANTIPODAL,
        ),
    ),
    control="half of the bound of the form 'sharpened S1'",
    source="Section 2, footnote to eq. (1); Proposition 5 (1), eqs. (43), (46)",
    cases=_attending_to_both,
    budget=FEW_STEPS,
)

STATEMENTS = (POOLING, LAST, POOLING_INNER, LAST_INNER)
