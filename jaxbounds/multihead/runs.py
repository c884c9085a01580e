"""Gradient descent with certified head counts and step sizes: what Section 4's statements run on.

An instance holds the data {"X", "y"}, a start {"U0", "W0"}, a target {"U", "W"} (the theta of the
theorems), `copies` (how many heads each group of equal heads stands for, as floats), `step` (eta)
and `K`. Every run takes `STEPS` steps, of which the first K count. Samplers take (key, size) with
size = {"n", "T", "d"}; there are two groups of heads, equal where the start is zero.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from jaxbounds.multihead.data import SparseContext
from jaxbounds.multihead.descent import (
    PRINTED_WEIGHT,
    STABILITY,
    TRAINING,
    largest_step,
    reach,
    rho,
    rho_sharp,
    rho_sharp_largest,
    root_heads,
    root_heads_sharp,
    root_heads_spread,
    sharp_weight,
)
from jaxbounds.multihead.loss import Data
from jaxbounds.multihead.model import Params, head_norm
from jaxbounds.multihead.tied import per_head, tied_distance, tied_risk
from jaxbounds.norms import max_row_norm
from jaxbounds.statements import Instance, Size

STEPS = 60
"""Steps of every run; K is at most that."""


class Setting(NamedTuple):
    """What the constants of Section 4 depend on.

    Attributes:
        distance: D = ||theta - theta_0||.
        size: ||theta||_{2,infinity}.
        largest: max_h ||U_h||_F of theta.
        squares: mean_h ||U_h||_F^2 of theta.
        radius: R = max ||x_t||.
        heads: H.
        loss_target: L(theta).
        loss_start: L(theta_0).
        shape: T and d.
    """

    distance: Float[Array, ""]
    size: Float[Array, ""]
    largest: Float[Array, ""]
    squares: Float[Array, ""]
    radius: Float[Array, ""]
    heads: Float[Array, ""]
    loss_target: Float[Array, ""]
    loss_start: Float[Array, ""]
    shape: dict[str, int]


class Run(NamedTuple):
    """A run, k = 0, ..., STEPS along the leading axes.

    Attributes:
        params: theta_k, one head per group.
        losses: L(theta_k).
        slopes: ||grad L(theta_k)|| over all heads.
    """

    params: Params
    losses: Float[Array, " k"]
    slopes: Float[Array, " k"]


def data_of(instance: Instance, /) -> Data:
    """The training set."""
    return {"X": instance["X"], "y": instance["y"]}


def start_of(instance: Instance, /) -> Params:
    """theta_0."""
    return {"U": instance["U0"], "W": instance["W0"]}


def target_of(instance: Instance, /) -> Params:
    """The theta of the theorems."""
    return {"U": instance["U"], "W": instance["W"]}


def head_sizes(params: Params, copies: Float[Array, " G"], /):
    """||theta||_{2,infinity}, max_h ||U_h||_F and mean_h ||U_h||_F^2."""
    squares = jnp.sum(params["U"] ** 2, (1, 2))
    largest = jnp.sqrt(jnp.max(squares))
    return head_norm(params), largest, jnp.sum(copies * squares) / jnp.sum(copies)


def setting(instance: Instance, /) -> Setting:
    """D, R, H and the rest, measured."""
    start, target, copies = start_of(instance), target_of(instance), instance["copies"]
    tokens, data = instance["X"], data_of(instance)
    return Setting(
        tied_distance(target, start, copies),
        *head_sizes(target, copies),
        max_row_norm(tokens.reshape(-1, tokens.shape[-1])),
        jnp.sum(copies),
        tied_risk(target, copies, data),
        tied_risk(start, copies, data),
        {"T": tokens.shape[1], "d": tokens.shape[2]},
    )


def gradient_descent(
    risk: Callable[[Params], Float[Array, ""]],
    start: Params,
    copies: Float[Array, " G"],
    step: Float[Array, ""],
    /,
) -> Run:
    """`STEPS` steps of gradient descent on H heads in groups, with losses and gradient norms."""

    def advance(params, _):
        loss, slope = jax.value_and_grad(risk)(params)
        slope = per_head(slope, copies)
        still = jax.tree.map(jnp.zeros_like, slope)
        moved = jax.tree.map(lambda leaf, g: leaf - step * g, params, slope)
        return moved, Run(params, loss, tied_distance(slope, still, copies))

    return jax.lax.scan(advance, start, length=STEPS + 1)[1]


@jax.jit
def descend(instance: Instance, /) -> Run:
    """The run of an instance; jitted so that hypotheses and measurement share one trace."""
    risk = lambda params: tied_risk(params, instance["copies"], data_of(instance))
    return gradient_descent(risk, start_of(instance), instance["copies"], instance["step"])


def distances(run: Run, point: Params, copies: Float[Array, " G"], /) -> Float[Array, " k"]:
    """||theta_k - point||."""
    return jax.vmap(tied_distance, in_axes=(0, None, None))(run.params, point, copies)


def sizes_along(run: Run, copies: Float[Array, " G"], /):
    """`head_sizes` of every iterate."""
    return jax.vmap(head_sizes, in_axes=(0, None))(run.params, copies)


def within(instance: Instance, /, *, last: int) -> Bool[Array, " k"]:
    """For k = 0, ..., STEPS: whether k < K + last."""
    return jnp.arange(STEPS + 1) < instance["K"] + last


def averaged(losses: Float[Array, " k"], instance: Instance, /) -> Float[Array, ""]:
    """(1/K) sum_{k=1}^K L(theta_k)."""
    counted = within(instance, last=1).at[0].set(False)
    return jnp.sum(jnp.where(counted, losses, 0.0)) / instance["K"].astype(losses.dtype)


def printed_step(s: Setting, K: Array, /) -> Float[Array, ""]:
    """The largest eta of Theorem 3."""
    smoothness = rho(s.distance, s.size, s.radius, s.heads, **s.shape)
    return largest_step(smoothness, s.distance, s.loss_target, s.loss_start, K, cap=1.0)


def sharp_step(
    s: Setting, K: Array, /, *, largest_head: bool, weight: ArrayLike | None = None
) -> Float[Array, ""]:
    """The largest eta of S10, with the largest head or with the root mean square (S2).

    The weight q is 2/3 for the former, and the one of S8 for the latter unless given.
    """
    T = s.shape["T"]
    if largest_head:
        far = reach(PRINTED_WEIGHT)
        smoothness = rho_sharp_largest(s.distance, s.largest, s.radius, s.heads, T=T, far=far)
    else:
        far = reach(sharp_weight(0.5) if weight is None else weight)
        smoothness = rho_sharp(s.distance, s.largest, s.squares, s.radius, s.heads, T=T, far=far)
    return largest_step(smoothness, s.distance, s.loss_target, s.loss_start, K)


def _tokens_and_labels(key: jax.Array, size: Size) -> dict[str, Array]:
    """DM1 at a scale from 1 to 1.5 (so R >= 1), one label in ten flipped."""
    data_key, scale_key, flip_key = jax.random.split(key, 3)
    model = SparseContext(
        tokens=size["T"],
        dimension=size["d"],
        relevant=1,
        distractors=size["d"] - 2,
        signal=1.0,
        noise_mu=0.2,
        noise_nu=0.2,
    )
    data = model.sample(data_key, size["n"])
    scale = jax.random.uniform(scale_key, (), minval=1.0, maxval=1.5)
    flips = jnp.where(jax.random.bernoulli(flip_key, 0.1, data["y"].shape), -1, 1)
    return {"X": scale * data["X"], "y": data["y"] * flips}


def _start_and_direction(key: jax.Array, data: Data) -> tuple[Params, Params, Array]:
    """Two groups of heads: theta_0, a direction to the target, and whether to move one head only.

    The start is zero, or random with Phi = 0 (the second group has the sign of U reversed). The
    direction is the class direction in U, steepest descent, or random in (U, W).
    """
    keys = jax.random.split(key, 7)
    T, d = data["X"].shape[1:]
    outer = jax.random.normal(keys[0], (1, T, d))
    inner = jax.random.normal(keys[1], (1, d, d))
    scale = jnp.where(jax.random.bernoulli(keys[2]), 0.0, 0.3)
    start = {
        "U": scale * jnp.concatenate([outer, -outer]),
        "W": scale * jnp.concatenate([inner, inner]),
    }
    alone = jax.random.bernoulli(keys[3], 0.25) & (scale == 0)
    classes = jnp.zeros(d).at[0].set(1.0).at[1].set(-1.0)
    oracle = {"U": jnp.broadcast_to(classes, (2, T, d)), "W": jnp.zeros((2, d, d))}
    slope = jax.grad(tied_risk)(start, jnp.ones(2), data)
    wild = {
        "U": jax.random.normal(keys[4], (2, T, d)),
        "W": jax.random.normal(keys[5], (2, d, d)),
    }
    kind = jax.random.randint(keys[6], (), 0, 3)
    choose = lambda a, b, c: jnp.stack([a, -b, 0.3 * a + c])[kind]
    direction = jax.tree.map(choose, oracle, slope, wild)
    return start, direction, alone


def _target(start: Params, direction: Params, copies: Array, alone: Array, distance: Array):
    """The point at that distance from theta_0; only the first group moves if `alone`."""
    mask = jnp.stack([jnp.ones(()), jnp.where(alone, 0.0, 1.0)])[:, None, None]
    direction = jax.tree.map(lambda leaf: leaf * mask, direction)
    still = jax.tree.map(jnp.zeros_like, direction)
    length = tied_distance(direction, still, copies)
    move = lambda leaf, way: leaf + distance / length * way
    return jax.tree.map(move, start, direction)


def _copies(heads: Array, alone: Array) -> Array:
    """Two equal groups, or a single head and the rest."""
    half = jnp.ceil(heads / 2)
    return jnp.where(
        alone, jnp.stack([jnp.ones(()), jnp.maximum(heads - 1, 1.0)]), jnp.stack([half, half])
    )


def certified_roots(
    start: Params, radius: Array, distance: Array, alone: Array, weight, size: Size
):
    """The least certified sqrt(H): printed and sharpened, for training, then for stability."""
    base = head_norm(start) + jnp.where(alone, distance, 0.0)
    # Groups may differ: half of the heads may carry all of the displacement.
    spread = jnp.where(alone, 0.0, math.sqrt(2.0) * distance)
    shape = {"T": size["T"], "d": size["d"]}
    roots = []
    for factor, stability in ((TRAINING, False), (STABILITY, True)):
        printed = lambda extra, factor=factor: root_heads(
            distance, base + extra, radius, factor=factor, **shape
        )
        sharp = lambda extra, stability=stability: root_heads_sharp(
            distance, base + extra, radius, T=size["T"], weight=weight, stability=stability
        )
        roots += [root_heads_spread(printed, spread), root_heads_spread(sharp, spread)]
    return jnp.stack(roots)


def certified_or_loose(key: jax.Array, size: Size) -> Instance:
    """H and eta as certified, to within rounding, or not certified at all.

    H is the least that the printed or the sharpened constants allow, for training or for
    stability, and eta up to the largest that goes with it; or H is log-uniform from 2 to 1e5 and
    eta from 0.1 to 4 over the smoothness bound at the start.
    """
    data_key, start_key, number_key, kind_key = jax.random.split(key, 4)
    data = _tokens_and_labels(data_key, size)
    start, direction, alone = _start_and_direction(start_key, data)
    radius = max_row_norm(data["X"].reshape(-1, size["d"]))
    numbers = jax.random.uniform(number_key, (5,))
    log_uniform = lambda u, low, high: low * (high / low) ** u
    K = jnp.clip(jnp.floor(log_uniform(numbers[0], 1.0, STEPS + 1.0)).astype(int), 1, STEPS)
    time = K.astype(radius.dtype)
    # 0, 1: printed, sharpened; 2, 3: the same for stability; 4: loose.
    kind = jax.random.randint(kind_key, (), 0, 5)
    distance = log_uniform(numbers[1], jnp.where(kind == 4, 0.05, 0.2), 4.0)
    largest_head = numbers[2] < 0.5
    weight = jnp.where(largest_head, PRINTED_WEIGHT, sharp_weight(0.5))
    roots = certified_roots(start, radius, distance, alone, weight, size)
    heads = jnp.where(kind == 4, log_uniform(numbers[3], 2.0, 1e5), roots[kind % 4] ** 2)
    copies = _copies(jnp.ceil(heads), alone)
    target = _target(start, direction, copies, alone, distance)
    instance = {
        **data,
        "U0": start["U"],
        "W0": start["W"],
        **target,
        "copies": copies,
        "step": jnp.ones(()),
        "K": K,
    }
    s = setting(instance)
    sharp = jnp.where(
        largest_head,
        sharp_step(s, time, largest_head=True),
        sharp_step(s, time, largest_head=False),
    )
    certified = jnp.where(kind % 2 == 0, printed_step(s, time), sharp)
    part = jnp.minimum(0.3 + 1.4 * numbers[4], 1.0)
    at_start = rho_sharp(0.0, head_norm(start), head_norm(start) ** 2, radius, s.heads, T=size["T"])
    loose = log_uniform(numbers[4], 0.1, 4.0) / at_start
    step = jnp.where(kind == 4, loose, (1 - 1e-12) * part * certified)
    return {**instance, "step": step}


RUNS = {"gradient descent": certified_or_loose}
