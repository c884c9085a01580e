"""Upper estimates of the all-layer margin: perturbations that do flip the network.

Compiled networks have zero gradients almost everywhere (rounding saturates), so the search follows
straight-through gradients, restricted to blocks of parameters, and refines on the decision
boundary. Whatever it finds is re-evaluated on the true network. It is never the margin itself:
searches miss by factors of two to four, so carry perturbations over between depths.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

SHRINKINGS = (1.0, 0.5, 0.25, 0.1, 0.03)
"""How far a refinement moves towards the nearest point of the linearised boundary."""


class UpperEstimate(NamedTuple):
    """A perturbation that flips the decision.

    Attributes:
        radius: its norm, an upper estimate of the all-layer margin; inf if none was found.
        perturbation: as parameters.
        signed_output: (2y - 1) F at the perturbed parameters, re-evaluated; not positive.
        evaluations: how many rays were tried.
    """

    radius: float
    perturbation: Any
    signed_output: float
    evaluations: int


def _flip_radius(
    signed_output: Callable[[Array], Array], theta: Array, direction: Array, best: Array
) -> tuple[Array, Array]:
    """The smallest flipping radius found on a ray, at most `best`; inf if no probe flips."""
    unit = direction / jnp.maximum(jnp.linalg.norm(direction), 1e-300)
    flips = lambda r: signed_output(theta + r * unit) <= 0
    probes = best * jnp.array([1.0, 0.7, 0.4], theta.dtype)
    hit = jax.lax.map(flips, probes)
    high = jnp.where(hit, probes, jnp.inf).min()

    def bisect(high: Array) -> Array:
        def body(_: Any, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = bounds
            middle = jnp.where(low < 0.5 * high, jnp.sqrt(low * high), 0.5 * (low + high))
            flipped = flips(middle)
            return jnp.where(flipped, low, middle), jnp.where(flipped, middle, high)

        return jax.lax.fori_loop(0, 24, body, (high * 1e-14, high))[1]

    return jax.lax.cond(jnp.isfinite(high), bisect, lambda high: high, high), unit


def margin_upper(
    signed_output: Callable[[Any], Float[Array, ""]],
    surrogate: Callable[[Any], Float[Array, ""]],
    params: Any,
    blocks: Sequence[Any],
    /,
    *,
    starts: Sequence[Any] = (),
    refinements: int = 8,
    largest: float = 2.0,
) -> UpperEstimate:
    """Search for a small perturbation of the parameters that flips the decision.

    Args:
        signed_output: (2y - 1) F(x, .) of the true network, positive at `params`.
        surrogate: the same value with useful derivatives (straight-through).
        params: theta; use float64.
        blocks: pytrees of 0/1 arrays like `params`; one ray is tried along the surrogate gradient
            on each of them, and one along it normalised per leaf.
        starts: perturbations to try too, such as those found at other depths.
        refinements: steps along the boundary from the best perturbation.
        largest: no radius above it is tried.

    Raises:
        ValueError: if the network is wrong at `params` already (the margin is then 0).
    """
    theta, unravel = ravel_pytree(params)
    flat = lambda tree: ravel_pytree(tree)[0].astype(theta.dtype)
    true = lambda v: signed_output(unravel(v))
    slope = jax.grad(lambda v: surrogate(unravel(v)))
    if not float(true(theta)) > 0:
        raise ValueError("the network is wrong at these parameters: its all-layer margin is 0")
    masks = jnp.stack([flat(block) for block in blocks])
    first = -slope(theta)
    rays = [*(first * mask for mask in masks), *(flat(start) for start in starts)]
    shoot = jax.jit(lambda rays: try_rays(true, theta, rays, largest))
    best, delta, delta_mask = shoot(jnp.stack(rays))
    owner = jnp.where(delta_mask < len(blocks), delta_mask, 0)
    mask = masks[owner]
    if refinements and np.isfinite(best):
        best, delta = _refine(true, slope, theta, delta, best, mask, refinements)
    found = bool(np.isfinite(best))
    return UpperEstimate(
        radius=float(best),
        perturbation=unravel(delta if found else jnp.zeros_like(theta)),
        signed_output=float(true(theta + delta)) if found else float("nan"),
        evaluations=len(rays) + refinements * len(SHRINKINGS),
    )


def try_rays(
    signed_output: Callable[[Float[Array, "p"]], Float[Array, ""]],
    theta: Float[Array, "p"],
    rays: Float[Array, "k p"],
    largest: float,
    /,
) -> tuple[Float[Array, ""], Float[Array, "p"], Int[Array, ""]]:
    """The smallest flipping radius on any of the rays, its perturbation, and which ray it was.

    The pure part of `margin_upper`, on flat parameters. The radius is inf, the perturbation zero
    and the index -1 if none flips within `largest`.
    """

    def visit(carry: Any, ray: Any) -> Any:
        best, delta, which = carry
        index, direction = ray
        radius, unit = _flip_radius(signed_output, theta, direction, best)
        better = radius < best
        choose = lambda new, old: jnp.where(better, new, old)
        return (
            choose(radius, best),
            choose(jnp.where(better, radius, 0.0) * unit, delta),
            choose(index, which),
        ), None

    start = (jnp.asarray(largest, theta.dtype), jnp.zeros_like(theta), jnp.asarray(-1))
    found, _ = jax.lax.scan(visit, start, (jnp.arange(rays.shape[0]), rays))
    best, delta, which = found
    return jnp.where(which >= 0, best, jnp.inf), delta, which


def _refine(
    true: Any, slope: Any, theta: Array, delta: Array, best: Array, mask: Array, steps: int
) -> tuple[Array, Array]:
    def step(carry: tuple[Array, Array], eta: Array) -> Any:
        best, delta = carry
        g = slope(theta + delta) * mask
        nearest = g * ((g @ delta) / jnp.maximum(g @ g, 1e-300))
        radius, unit = _flip_radius(true, theta, (1.0 - eta) * delta + eta * nearest, best)
        better = radius < best
        delta = jnp.where(better, jnp.where(better, radius, 0.0) * unit, delta)
        return (jnp.where(better, radius, best), delta), None

    etas = jnp.tile(jnp.array(SHRINKINGS, theta.dtype), steps)
    (best, delta), _ = jax.jit(lambda c: jax.lax.scan(step, c, etas))((best, delta))
    return best, delta


def recertify(
    signed_output: Callable[[Any], Float[Array, ""]], params: Any, perturbation: Any, /
) -> float:
    """The norm at which a perturbation found elsewhere flips this network; inf if it never does.

    Only the ray up to twice the perturbation's own norm is looked at.
    """
    theta, unravel = ravel_pytree(params)
    delta = ravel_pytree(perturbation)[0].astype(theta.dtype)
    true = lambda v: signed_output(unravel(v))
    largest = 2.0 * jnp.linalg.norm(delta)
    radius, _ = jax.jit(lambda: _flip_radius(true, theta, delta, largest))()
    return float(radius)


def blocks_by_layer(params: Any, layered: Callable[[tuple], bool], /) -> list:
    """0/1 masks: everything, every leaf alone, and every layer of the stacked leaves.

    Args:
        params: a pytree.
        layered: for a leaf's path, whether its leading axis counts layers.
    """
    paths, tree = jax.tree_util.tree_flatten_with_path(params)
    ones = [np.ones(np.shape(leaf)) for _, leaf in paths]
    zeros = [np.zeros(np.shape(leaf)) for _, leaf in paths]
    build = lambda leaves: jax.tree.unflatten(tree, leaves)
    masks = [build(ones)]
    for i in range(len(paths)):
        masks.append(build([ones[j] if j == i else zeros[j] for j in range(len(paths))]))
    stacked = [i for i, (path, _) in enumerate(paths) if layered(path)]
    depth = max((np.shape(paths[i][1])[0] for i in stacked), default=0)
    for layer in range(depth):
        leaves = [zero.copy() for zero in zeros]
        for i in stacked:
            leaves[i][layer] = 1.0
        masks.append(build(leaves))
    return masks
