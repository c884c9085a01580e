"""The softmax map: its derivative (25), at zero (Section 5.2), and the remainder (26)."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxbounds.claims.statements import Counterexample, Form, Instance, Sides, Size, Statement
from jaxbounds.multihead.calculus import softmax_derivative
from jaxbounds.multihead.statements.boxes import two_logits
from jaxbounds.multihead.statements.common import unrestricted

TWO = {"T": 2}


def _softmax_derivative(instance: Instance, size: Size) -> Sides:
    logits = instance["v"]
    weights = jax.nn.softmax(logits)
    return Sides(
        lhs=jax.jacobian(jax.nn.softmax)(logits),
        rhs={
            "printed": softmax_derivative(weights),
            "printed, early version": jnp.diag(weights) - jnp.outer(logits, logits),
            "control": jnp.diag(weights) + jnp.outer(weights, weights),
        },
    )


EQ_25 = Statement(
    id="multihead.eq25",
    label="eq. (25)",
    formula="phi'(v) = diag(phi(v)) - phi(v) phi(v)^T",
    tex=r"\varphi'(v) = \mathrm{diag}(\varphi(v)) - \varphi(v) \varphi(v)^\top",
    kind="identity",
    sample=lambda key, size: {"v": 2 * jax.random.normal(key, (size["T"],))},
    evaluate=_softmax_derivative,
    judges=(softmax_derivative,),
    sizes=(TWO, {"T": 5}),
    forms=(
        Form(
            name="printed",
            cites="eq. (25), Appendix A.1; Notation, Section 2",
            domains=(two_logits(slack=1e-4),),
        ),
        Form(
            name="printed, early version",
            cites="Notation, Section 2 of the early version",
            note="The early version of the paper prints v v^T in place of phi(v) phi(v)^T.",
            counterexample=Counterexample(
                instance={"v": [0.0, 1.0]}, ratio=1.731058578630005, meets=unrestricted
            ),
        ),
    ),
    control="plus in place of minus",
    source="Appendix A.1, eq. (25)",
)


def _softmax_at_zero(instance: Instance, size: Size) -> Sides:
    T = size["T"]
    centring = jnp.eye(T) - jnp.ones((T, T)) / T
    return Sides(
        lhs=jax.jacobian(jax.nn.softmax)(instance["v"]),
        rhs={
            "printed": centring,
            "corrected": centring / T,
            "derived": softmax_derivative(jax.nn.softmax(instance["v"])),
            "control": jnp.eye(T) / T,
        },
    )


def _in_the_proof(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    v = jnp.asarray(instance["v"])
    return {
        "v = 0 in R^T (phi'(0), Section 5.2)": jnp.all(v == 0) & (v.shape == (size["T"],)),
        "T >= 2 (0 < zeta < 1, Assumption 3)": size["T"] >= 2,
    }


AT_ZERO = Statement(
    id="multihead.sec5.2.phi0",
    label="Section 5.2, phi'(0)",
    formula="phi'(0) = I - (1/T) 1 1^T",
    tex=r"\varphi'(0) = I_T - \frac{1}{T} 1_T 1_T^\top",
    kind="identity",
    cases=lambda size: {"v": jnp.zeros((1, size["T"]))},
    evaluate=_softmax_at_zero,
    judges=(softmax_derivative,),
    sizes=tuple({"T": T} for T in range(2, 12)),
    forms=(
        Form(
            name="printed",
            cites="Section 5.2: 'Note that phi'(0) ='",
            erratum="E15",
            note="The printed formula for phi'(0), the softmax's derivative at 0, lacks the factor "
            "1/T.",
            counterexample=Counterexample(
                instance={"v": [0.0, 0.0]}, size=TWO, ratio=0.5, meets=_in_the_proof
            ),
        ),
        Form(name="corrected"),
        Form(
            name="derived",
            note="This version of the claim evaluates eq. (25), the derivative of the softmax, at "
            "zero.",
        ),
    ),
    control="without the rank-one term",
    source="Section 5.2, before eq. (8)",
)


def _remainder(instance: Instance, size: Size) -> Sides:
    logits, step = instance["v"], instance["delta"]
    softmax = jax.nn.softmax(logits)
    _, first = jax.jvp(jax.nn.softmax, (logits,), (step,))
    rest = jnp.linalg.norm(jax.nn.softmax(logits + step) - softmax - first)
    length = jnp.linalg.norm(step)
    return Sides(
        lhs=rest,
        rhs={"printed": length**3, "corrected": length**2, "control": length**4},
        error=jnp.linalg.norm(softmax_derivative(softmax) @ step - first),
    )


EQ_26 = Statement(
    id="multihead.eq26",
    label="eq. (26)",
    formula="phi(v + delta) = phi(v) + phi'(v) delta + o(||delta||^2)",
    tex=r"\varphi(v + \delta) = \varphi(v) + \varphi'(v) \delta + o(\|\delta\|^2)",
    kind="rate",
    cases=lambda size: {
        "v": jnp.tile(jnp.arange(1.0 * size["T"]), (17, 1)),
        "delta": jnp.logspace(-4, -2, 17)[:, None] * jnp.eye(1, size["T"]),
    },
    evaluate=_remainder,
    judges=(softmax_derivative,),
    sizes=({"T": 3},),
    forms=(
        Form(
            name="printed",
            cites="eq. (26), Appendix A.1; again (32), (34)",
            expected="inconsistent",
            sense="at least",
            exponent=(0.6, 0.73),
            erratum="E17",
            note="Since phi is analytic, a remainder o(||delta||^2) would be O(||delta||^3). The "
            "check finds that the remainder grows as (||delta||^3)^{2/3}, that is, as "
            "||delta||^2.",
        ),
        Form(
            name="corrected",
            expected="consistent",
            sense="at least",
            exponent=(0.95, 1.05),
            note="The remainder is O(||delta||^2), hence o(||delta||). This order suffices for "
            "the gradient formulas.",
        ),
    ),
    control="a remainder of order ||delta||^4",
    source="Appendix A.1, eq. (26); also (32), (34)",
)

STATEMENTS = (EQ_25, AT_ZERO, EQ_26)
