"""The softmax map: its derivative (25), at zero (Section 5.2), and the remainder (26)."""

import jax
import jax.numpy as jnp

from jaxbounds.statements import Form, Instance, Sides, Statement


def _softmax_derivative(instance: Instance) -> Sides:
    logits = instance["v"]
    weights = jax.nn.softmax(logits)
    outer = lambda x: x[:, None] * x[None, :]
    return Sides(
        lhs=jax.jacobian(jax.nn.softmax)(logits),
        rhs={
            "printed": jnp.diag(weights) - outer(weights),
            "printed, early version": jnp.diag(weights) - outer(logits),
            "control": jnp.diag(weights) + outer(weights),
        },
    )


def _softmax_at_zero(instance: Instance) -> Sides:
    logits = instance["v"]
    T = logits.shape[0]
    centring = jnp.eye(T) - jnp.ones((T, T)) / T
    return Sides(
        lhs=jax.jacobian(jax.nn.softmax)(logits),
        rhs={"printed": centring, "corrected": centring / T, "control": jnp.eye(T) / T},
    )


def _remainder(instance: Instance) -> Sides:
    logits, step = instance["v"], instance["delta"]
    softmax, first = jax.jvp(jax.nn.softmax, (logits,), (step,))
    rest = jnp.linalg.norm(jax.nn.softmax(logits + step) - softmax - first)
    size = jnp.linalg.norm(step)
    return Sides(
        lhs=rest,
        rhs={"printed": size**3, "corrected": size**2, "control": size**4},
    )


def _remainder_cases(size) -> Instance:
    steps = jnp.logspace(-4, -2, 9)
    direction = jnp.zeros(size["T"]).at[0].set(1.0)
    logits = jnp.arange(size["T"]).astype(float)
    return {
        "v": jnp.broadcast_to(logits[None], (9, size["T"])),
        "delta": steps[:, None] * direction[None, :],
    }


STATEMENTS = (
    Statement(
        id="multihead.eq25",
        label="eq. (25)",
        formula="phi'(v) = diag(phi(v)) - phi(v) phi(v)^T",
        kind="identity",
        sample=lambda key, size: {"v": 2 * jax.random.normal(key, (size["T"],))},
        evaluate=_softmax_derivative,
        sizes=({"T": 2}, {"T": 5}),
        forms=(
            Form(name="printed"),
            Form(
                name="printed, early version",
                expected="fails",
                erratum="E23",
                note="The early version prints v v^T for phi(v) phi(v)^T.",
                counterexample={"v": [0.0, 1.0]},
            ),
        ),
        control="plus in place of minus",
        source="Appendix A.1, eq. (25)",
    ),
    Statement(
        id="multihead.sec5.2-phi0",
        label="Section 5.2, phi'(0)",
        formula="phi'(0) = (1/T) (I - (1/T) 1 1^T)",
        kind="identity",
        cases=lambda size: {"v": jnp.zeros((1, size["T"]))},
        evaluate=_softmax_at_zero,
        sizes=({"T": 2}, {"T": 5}),
        forms=(
            Form(
                name="printed",
                expected="fails",
                erratum="E15",
                note="The factor 1/T in front is missing.",
                counterexample={"v": [0.0, 0.0]},
            ),
            Form(name="corrected"),
        ),
        control="without the rank-one term",
        source="Section 5.2, before eq. (8)",
    ),
    Statement(
        id="multihead.eq26",
        label="eq. (26)",
        formula="phi(v + delta) = phi(v) + phi'(v) delta + o(||delta||^2)",
        kind="rate",
        cases=_remainder_cases,
        evaluate=_remainder,
        sizes=({"T": 3},),
        forms=(
            Form(
                name="printed",
                expected="inconsistent",
                sense="at least",
                erratum="E17",
                note="phi is analytic, so o(||delta||^2) would be O(||delta||^3): measured against "
                "||delta||^3 the exponent is 2/3.",
            ),
            Form(
                name="corrected",
                expected="consistent",
                sense="at least",
                note="O(||delta||^2), which is o(||delta||): enough for the gradient formulas.",
            ),
        ),
        control="a remainder of order ||delta||^4",
        source="Appendix A.1, eq. (26); also (32), (34)",
    ),
)
