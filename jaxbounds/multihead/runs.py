"""Gradient descent on groups of equal heads, and the constants of Section 4 for this descent.

A problem is a dict with:

- the data {"X", "y"};
- a start {"U0", "W0"};
- a target {"U", "W"}, the theta of the theorems;
- `copies`, the number of heads in each group of equal heads, stored as floats;
- `step`, the step size eta, and `K`, the number of steps that the claims are about.

Every run makes `STEPS` steps, but the claims are only about its first K steps.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxbounds.claims.statements import Instance
from jaxbounds.multihead.descent import Setting
from jaxbounds.multihead.loss import Data
from jaxbounds.multihead.model import Params, head_norm
from jaxbounds.multihead.tied import tied_distance, tied_norm, tied_risk
from jaxbounds.numerics.norms import max_row_norm

STEPS = 60
"""The number of steps of every run, at least K; more steps take more time."""


class Run(NamedTuple):
    """A run of gradient descent; the leading axis of each array is the step k = 0, ..., STEPS.

    Attributes:
        params: the parameters theta_k; equal heads form a group, which stores one head.
        losses: the training losses L(theta_k) at all steps k.
        slopes: the gradient norms ||grad L(theta_k)|| over all heads.
    """

    params: Params
    losses: Float[Array, " k"]
    slopes: Float[Array, " k"]


def training_set(problem: Instance, /) -> Data:
    """Return the sequences X and the labels y of the problem."""
    return {"X": problem["X"], "y": problem["y"]}


def start_of(problem: Instance, /) -> Params:
    """Return the start parameters theta_0 of the descent."""
    return {"U": problem["U0"], "W": problem["W0"]}


def target_of(problem: Instance, /) -> Params:
    """Return the target parameters theta of the theorems."""
    return {"U": problem["U"], "W": problem["W"]}


def horizon(problem: Instance, /) -> Float[Array, ""]:
    """Return K, the number of steps that the claims are about, as a float."""
    return jnp.asarray(problem["K"], jnp.zeros(()).dtype)


def head_sizes(
    params: Params, copies: Float[Array, " G"], /
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """Return ||theta||_{2,infinity}, max_h ||U_h||_F and mean_h ||U_h||_F^2."""
    squares = jnp.sum(params["U"] ** 2, (1, 2))
    largest = jnp.sqrt(jnp.max(squares) + 1e-300)
    return head_norm(params), largest, jnp.sum(copies * squares) / jnp.sum(copies)


def setting(problem: Instance, /) -> Setting:
    """Return the `Setting` (D, R, H and further quantities) of a problem."""
    start, target, copies = start_of(problem), target_of(problem), problem["copies"]
    _, T, d = problem["X"].shape
    return Setting(
        tied_distance(target, start, copies),
        *head_sizes(target, copies),
        max_row_norm(problem["X"].reshape(-1, d)),
        jnp.sum(copies),
        tied_risk(target, copies, training_set(problem)),
        tied_risk(start, copies, training_set(problem)),
        T,
        d,
    )


def gradient_descent(
    risk: Callable[[Params, Params], Float[Array, ""]],
    start: Params,
    copies: Float[Array, " G"],
    step: Float[Array, ""],
    /,
) -> Run:
    """Run `STEPS` steps of gradient descent on H heads in groups of equal heads.

    `risk` is the loss as a function of the groups' parameters and of one head's parameters in each
    group. The gradient of `risk` in the second argument is the gradient of each head of a group.
    `start` holds one head for each group, and `copies` the number of heads in each group. The run
    records the loss and the gradient norm of every step.
    """

    def advance(params: Params, _: None) -> tuple[Params, Run]:
        loss, slope = jax.value_and_grad(risk, argnums=1)(params, params)
        moved = jax.tree.map(lambda leaf, g: leaf - step * g, params, slope)
        return moved, Run(params, loss, tied_norm(slope, copies))

    return jax.lax.scan(advance, start, length=STEPS + 1)[1]


@jax.jit
def descend(problem: Instance) -> Run:
    """Run gradient descent on a problem."""
    data, copies = training_set(problem), problem["copies"]
    risk = lambda params, single: tied_risk(params, copies, data, single)
    return gradient_descent(risk, start_of(problem), problem["copies"], problem["step"])


def distances(run: Run, point: Params, copies: Float[Array, " G"], /) -> Float[Array, " k"]:
    """Return ||theta_k - point|| for every iterate theta_k of a run."""
    return jax.vmap(tied_distance, in_axes=(0, None, None))(run.params, point, copies)


def sizes_along(
    run: Run, copies: Float[Array, " G"], /
) -> tuple[Float[Array, " k"], Float[Array, " k"], Float[Array, " k"]]:
    """Return three norms of every iterate theta_k of a run, as `head_sizes` defines them."""
    return jax.vmap(head_sizes, in_axes=(0, None))(run.params, copies)


def within(problem: Instance, /, *, last: int) -> Bool[Array, " k"]:
    """Return a mask of the steps k = 0, ..., STEPS: true if k < K + last, for the instance's K."""
    return jnp.arange(STEPS + 1) < problem["K"] + last


def average_over(
    values: Float[Array, " k"], problem: Instance, /, *, first: int
) -> Float[Array, ""]:
    """Return the mean of `values` over K consecutive indices, starting at `first` (0 or 1)."""
    counted = within(problem, last=first) & (jnp.arange(STEPS + 1) >= first)
    return jnp.sum(jnp.where(counted, values, 0.0)) / horizon(problem)


def largest_until(
    values: Float[Array, " k"], problem: Instance, /, *, last: int
) -> Float[Array, ""]:
    """Return the largest of `values` over the steps k < K + last."""
    return jnp.max(jnp.where(within(problem, last=last), values, 0.0))
