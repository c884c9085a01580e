"""Problems for gradient descent (Section 4), with certified or random head counts and steps.

The problems have the format that `jaxbounds.multihead.runs` describes, with two groups of equal
heads. A head count or step size is certified if it satisfies the conditions of a theorem. For
Corollaries 3 and 4, the problems also have fresh data and `slack`, the factor by which g_0 exceeds
||theta(eps) - theta_0||.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.statements import Budget, Hypotheses, Instance, Size, Statement
from jaxbounds.multihead import descent
from jaxbounds.multihead.descent_certificate import least_root
from jaxbounds.multihead.loss import Data
from jaxbounds.multihead.model import Params, head_norm
from jaxbounds.multihead.realizable import REALIZABLE, realizer, realizing_distance, realizing_size
from jaxbounds.multihead.runs import STEPS, horizon, setting
from jaxbounds.multihead.statements.common import token_radius
from jaxbounds.multihead.statements.instances import radius_at_least_one, sparse_context
from jaxbounds.multihead.tied import tied_norm, tied_risk

BELOW = 1 - 1e-12
"""The step size of a run is at most this factor times the largest certified step size. A larger
factor would let rounding errors violate the condition on the step."""


def _tokens_and_labels(key: jax.Array, size: Size) -> Data:
    data_key, scale_key, flip_key = jax.random.split(key, 3)
    data = sparse_context(size, signal=1.0, noise=0.2).sample(data_key, size["n"])
    scale = jax.random.uniform(scale_key, (), minval=1.0, maxval=1.5)
    flips = jnp.where(jax.random.bernoulli(flip_key, 0.1, data["y"].shape), -1, 1)
    return {"X": scale * data["X"], "y": data["y"] * flips}


def _start_and_direction(key: jax.Array, data: Data) -> tuple[Params, Params, Array]:
    """Draw the start theta_0 for two groups of heads, a direction to the target, and a flag.

    If the flag is true, only the first group of heads differs between the target and theta_0. A
    random start has Phi = 0, because the second group has the first group's U with the sign
    reversed.
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
    wild = {"U": jax.random.normal(keys[4], (2, T, d)), "W": jax.random.normal(keys[5], (2, d, d))}
    kind = jax.random.randint(keys[6], (), 0, 3)
    choose = lambda a, b, c: jnp.stack([a, -b, 0.3 * a + c])[kind]
    return start, jax.tree.map(choose, oracle, slope, wild), alone


def _target(
    start: Params, direction: Params, copies: Array, alone: Array, distance: Array
) -> Params:
    mask = jnp.stack([jnp.ones(()), jnp.where(alone, 0.0, 1.0)])[:, None, None]
    direction = jax.tree.map(lambda leaf: leaf * mask, direction)
    move = lambda leaf, way: leaf + distance / tied_norm(direction, copies) * way
    return jax.tree.map(move, start, direction)


def _least_roots(s: descent.Setting, spread: ArrayLike, sharpened: descent.Constants) -> Array:
    kinds = [(c, stable) for stable in (False, True) for c in (descent.PRINTED, sharpened)]
    return jnp.stack([least_root(s, c, spread, stability=stable) for c, stable in kinds])


def certified_or_loose(key: jax.Array, size: Size, only: int | None = None) -> Instance:
    """Draw a run whose H and eta are certified up to rounding, or a loose (not certified) run.

    A certified H is the least that the printed or the sharpened constants allow, for training or
    for stability; a certified eta is at most the largest that they allow. A loose run has H
    log-uniform from 2 to 1e5, and eta = c / (smoothness bound at the start) with c from 0.1 to 4.

    `only` selects how the run gets H: 0 (printed) and 1 (sharpened) for training, 2 (printed) and 3
    (sharpened) for stability, and 4 for a loose run. None selects one of the five at random.
    """
    data_key, start_key, number_key, kind_key = jax.random.split(key, 4)
    data = _tokens_and_labels(data_key, size)
    start, direction, alone = _start_and_direction(start_key, data)
    numbers = jax.random.uniform(number_key, (5,))
    log_uniform = lambda u, low, high: low * (high / low) ** u
    K = jnp.clip(jnp.floor(log_uniform(numbers[0], 1.0, STEPS + 1.0)).astype(int), 1, STEPS)
    # 0, 1: printed, sharpened; 2, 3: the same for stability; 4: loose.
    kind = jax.random.randint(kind_key, (), 0, 5) if only is None else jnp.asarray(only)
    distance = log_uniform(numbers[1], jnp.where(kind == 4, 0.05, 0.2), 4.0)
    largest_head = numbers[2] < 0.5
    base = head_norm(start)
    at_start = descent.Setting.bounded(
        distance=0.0, size=base, radius=token_radius(data), T=size["T"], d=size["d"]
    )
    # The groups may differ: half of the heads may make the whole displacement.
    spread = jnp.where(alone, 0.0, math.sqrt(2.0) * distance)
    bounds = at_start.of_size(base + jnp.where(alone, distance, 0.0), distance=distance)
    sharpened = lambda of: jnp.where(largest_head, of(descent.LARGEST_HEAD), of(descent.SHARPEST))
    roots = sharpened(lambda constants: _least_roots(bounds, spread, constants))
    certified_heads = roots[kind % 4] ** 2
    heads = jnp.ceil(jnp.where(kind == 4, log_uniform(numbers[3], 2.0, 1e5), certified_heads))
    # Two equal groups, or a single head and the rest.
    lonely = jnp.stack([jnp.ones(()), jnp.maximum(heads - 1, 1.0)])
    copies = jnp.where(alone, lonely, jnp.ceil(heads / 2))
    target = _target(start, direction, copies, alone, distance)
    instance = {**data, "U0": start["U"], "W0": start["W"], **target, "copies": copies, "K": K}
    s, time = setting(instance), horizon(instance)
    step = lambda constants: descent.largest_step(s, time, constants)
    certified = jnp.where(kind % 2 == 0, step(descent.PRINTED), sharpened(step))
    part = jnp.minimum(0.3 + 1.4 * numbers[4], 1.0)
    smoothness = descent.rho(at_start._replace(heads=s.heads), descent.MEAN_SQUARE)
    loose = log_uniform(numbers[4], 0.1, 4.0) / smoothness
    return {**instance, "step": jnp.where(kind == 4, loose, BELOW * part * certified)}


def realizable(key: jax.Array, size: Size) -> Instance:
    """Draw a run from zero on DM1 data with a target theta(1/K) and certified H and eta.

    H satisfies (81) for training or (95) for stability, or the sharpened conditions, with g(eps) =
    g_0(eps) / sqrt(H). There are sixteen times as many fresh sequences {"X_test", "y_test"} as
    training sequences.
    """
    data_key, test_key, number_key, kind_key = jax.random.split(key, 4)
    data = REALIZABLE.sample(data_key, size["n"])
    fresh = REALIZABLE.sample(test_key, 16 * size["n"])
    kind = jax.random.randint(kind_key, (), 0, 4)
    numbers = jax.random.uniform(number_key, (2,))
    K = jnp.floor(4.0 * 15.0 ** numbers[0])
    slack = jnp.maximum(1.0, 0.7 + 0.8 * numbers[1])
    distance = realizing_distance(1 / K, slack)
    bounds = descent.Setting.bounded(distance=distance, size=0.0, radius=1.0, T=3, d=2)
    roots = _least_roots(bounds, math.sqrt(2.0) * distance, descent.MEAN_SQUARE)
    heads = 2 * jnp.ceil(roots[kind] ** 2 / 2)
    s = bounds.of_size(realizing_size(1 / K, heads, slack), heads=heads)
    printed = jnp.minimum(1 / descent.rho(s), 1.0)
    certified = jnp.where(kind % 2 == 0, printed, 1 / descent.rho(s, descent.MEAN_SQUARE))
    copies = jnp.stack([heads / 2, heads / 2])
    return {
        **data,
        "X_test": fresh["X"],
        "y_test": fresh["y"],
        "U0": jnp.zeros((2, 3, 2)),
        "W0": jnp.zeros((2, 2, 2)),
        "copies": copies,
        "step": BELOW * jnp.minimum(certified, realizing_distance(1.0, slack) ** 2),
        "K": K.astype(int),
        "slack": slack,
        **realizer(1 / K, copies),
    }


def realized(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    """Check Assumption 2 at eps = 1/K: the loss, ||theta - theta_0|| and ||theta||_{2,inf}."""
    s, level, slack = setting(instance), 1 / horizon(instance), instance["slack"] * (1 + 1e-12)
    return {
        **radius_at_least_one(instance, size),
        "L(theta(1/K)) <= 1/K": s.loss_target <= level,
        "||theta(1/K) - theta_0|| <= g_0(1/K)": s.distance <= realizing_distance(level, slack),
        "||theta(1/K)||_{2,inf} <= g(1/K)": s.size <= realizing_size(level, s.heads, slack),
    }


def enough_heads(
    s: descent.Setting, constants: descent.Constants, equation: str
) -> dict[str, ArrayLike]:
    """Return the condition on H: (74) or (81) for training, (84) or (95) for stability.

    The sharpened condition on H has beta_3# in place of beta_3.
    """
    root = descent.root_heads(s, constants, stability=equation in ("(84)", "(95)"))
    name = equation if constants.printed else f"{equation} with beta_3#"
    return {name: jnp.asarray(s.heads) >= root**2}


def short_enough(
    s: descent.Setting, instance: Instance, constants: descent.Constants
) -> dict[str, ArrayLike]:
    """Return the step size condition of Theorem 3, or its sharpened version (sharpening S10)."""
    name = "eta of Theorem 3" if constants.printed else "eta <= 1 / rho# and (73)"
    return {name: instance["step"] <= descent.largest_step(s, horizon(instance), constants)}


def certified(constants: descent.Constants, equation: str = "(74)") -> Hypotheses:
    """Return a function that checks the conditions on H and eta with the given constants."""

    def hypotheses(instance: Instance, size: Size) -> dict[str, ArrayLike]:
        s = setting(instance)
        heads = enough_heads(s, constants, equation)
        return heads | short_enough(s, instance, constants)

    return hypotheses


def head_count(constants: descent.Constants) -> Hypotheses:
    """Return a check of condition (74) on the number of heads, without the step size."""
    return lambda instance, size: enough_heads(setting(instance), constants, "(74)")


RUN_SIZES = ({"n": 3, "T": 3, "d": 2, "steps": STEPS},)
RUN_ASSUMED = "Assumption 1 with R = max ||x_t||; gradient descent on the logistic loss"
on_runs = functools.partial(
    Statement,
    kind="trajectory",
    sample={"gradient descent": certified_or_loose},
    sizes=RUN_SIZES,
    horizon="steps",
    hypotheses=radius_at_least_one,
    assumptions=RUN_ASSUMED,
    budget=Budget(samples=256, restarts=0, steps=0, batch=128),
)
"""Settings of statements about gradient descent with a certified head count and step size."""

FROM_ZERO = {"DM1 from zero": realizable}
"""Samplers of certified training runs from zero parameters, on data that satisfy Assumption 2."""

CONDITIONS = "Assumption 1; (84); eta of Theorem 3. The sharpened form has its own H and eta"
SHARP = "sharpened S2, S6, S9, S10"


def worst_step(lhs: Array, rhs: Array, mask: Array, *others: ArrayLike) -> Any:
    """Return `lhs`, `rhs` and `others` at the largest lhs / rhs among entries with true `mask`."""
    mask = jnp.broadcast_to(mask, lhs.shape)
    at = jnp.argmax(jnp.where(mask, lhs / jnp.maximum(rhs, 1e-300), -jnp.inf))
    return tuple(jnp.ravel(x)[at] for x in (lhs, rhs, *others))
