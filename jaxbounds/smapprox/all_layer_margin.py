"""The all-layer margin in parameter space (2.1), its ramp loss (2.2), and its closed forms.

The margin rho(theta, x, y) is the norm of the smallest perturbation delta of all parameters with
(y - 0.5) F(x, theta + delta) <= 0. This module holds closed forms for simple functions F.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused


def zero_one_loss(output: Float[Array, "*n"], y: Float[Array, "*n"], /) -> Float[Array, "*n"]:
    """Compute 1((y - 0.5) z <= 0): an output z = 0 is an error for both labels (Section 2.1)."""
    return ((y - 0.5) * output <= 0).astype(output.dtype)


def ramp_loss(margin: Float[Array, "*n"], gamma: float | Array, /) -> Float[Array, "*n"]:
    """Compute the ramp loss (2.2) of a margin.

    The loss is 1 for a margin <= 0 and 0 for a margin >= gamma, and is linear in between.

    Raises:
        Refused: if gamma is a number that is not positive.
    """
    if isinstance(gamma, (int, float)) and not gamma > 0:
        raise Refused(f"gamma={gamma}, expected a positive number. Try gamma=1")
    return jnp.clip(1.0 - margin / gamma, 0.0, 1.0)


def linear_margin(
    w: Float[Array, "m"], b: Float[Array, ""], x: Float[Array, "m"], y: Float[Array, ""], /
) -> Float[Array, ""]:
    """Compute the margin of F = w.x + b: |F| / sqrt(|x|^2 + 1) if F predicts y, else 0."""
    output = w @ x + b
    right = (y - 0.5) * output > 0
    return jnp.where(right, jnp.abs(output) / jnp.sqrt(x @ x + 1.0), 0.0)


def balls_margin(
    theta: Float[Array, "p"], centres: Float[Array, "k p"], radii: Float[Array, "k"], /
) -> Float[Array, ""]:
    """Compute the margin of a model F that errs exactly on a union of balls of parameters.

    The margin is min_k (|theta - c_k| - r_k), or 0 if theta is inside a ball. Unions of balls
    converge to every closed set of wrong parameters. A statement that holds for unions of balls at
    every p and k therefore holds for every F.
    """
    distance = jnp.sqrt(((theta[None] - centres) ** 2).sum(axis=1)) - radii
    return jnp.maximum(distance.min(), 0.0)


def naive_chain_margin(depth: int | Array, /) -> Float[Array, ""]:
    """Compute sqrt(d) (1 - 2^(-1/d)), the margin of F(x) = w_d ... w_1 x - 0.5 (Claim 3.5).

    The weights are w_i = 1, the input is x = 1 and the label y = 1. The smallest perturbation that
    changes the sign of F changes every factor by the same amount.
    """
    d = jnp.asarray(depth, float)
    return jnp.sqrt(d) * -jnp.expm1(-jnp.log(2.0) / d)


def head_margin(last: Float[Array, "w"], label: Float[Array, ""], /) -> Float[Array, ""]:
    """Compute the margin of the head z -> 2 z_1 - 1 alone: 1/sqrt(2) if z_1 = 1, and 1 if z_1 = 0.

    No margin of a compiled circuit is larger.
    """
    return linear_margin(
        jnp.zeros_like(last).at[0].set(2.0), jnp.asarray(-1.0, last.dtype), last, label
    )
