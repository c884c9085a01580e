"""Upper estimates of the all-layer margin: perturbations that flip the network's decision.

Rounding gives a compiled network zero gradients almost everywhere. The search therefore uses
straight-through gradients, restricted to blocks of parameters. It evaluates every perturbation
again on the network without surrogate derivatives. Typical estimates are two to four times too
large.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from jaxbounds.ground.exceptions import Refused

PROBES = (1.0, 0.7, 0.4)
"""The multiples of the smallest known radius that the search tries in each direction before it
bisects."""
BISECTIONS = 24
"""The number of bisections in each direction; a larger number gives a more exact radius."""
SHRINKINGS = (1.0, 0.5, 0.25, 0.1, 0.03)
"""The lengths of a refinement's steps, as fractions of the distance to the linearised decision
boundary."""


class UpperEstimate(NamedTuple):
    """A perturbation that flips the decision.

    Attributes:
        radius: the norm of the perturbation, an upper estimate of the all-layer margin; inf if no
            perturbation was found.
        perturbation: the perturbation, a pytree with the structure of the parameters.
        signed_output: the value (2y - 1) F <= 0 at the perturbed parameters, without surrogates.
        evaluations: the number of directions of perturbation that were tried.
    """

    radius: float
    perturbation: Any
    signed_output: float
    evaluations: int


class OnRay(NamedTuple):
    """The result of the search along one direction of perturbations.

    Attributes:
        radius: the least tried norm that flips the decision; inf if none does.
        perturbation: the perturbation with norm `radius`, as a flat array, or zero.
        signed_output: the value (2y - 1) F at this perturbation, or at the first tried perturbation
            if none flips the decision.
    """

    radius: Float[Array, ""]
    perturbation: Float[Array, "p"]
    signed_output: Float[Array, ""]


def along_ray(
    signed_output: Callable[[Float[Array, "p"]], Float[Array, ""]],
    theta: Float[Array, "p"],
    direction: Float[Array, "p"],
    best: Float[Array, ""],
    /,
) -> OnRay:
    """Try norms up to `best` along a direction, and bisect below the least that flips the decision.

    The decision may flip more than once along the direction. A single loop does both searches, so
    JAX compiles the network only once.
    """
    unit = direction / jnp.maximum(jnp.linalg.norm(direction), 1e-300)
    probes = best * jnp.array(PROBES, theta.dtype)

    def step(state: Any) -> Any:
        k, low, high, value = state
        middle = jnp.where(low < 0.5 * high, jnp.sqrt(low * high), 0.5 * (low + high))
        probing = k < len(PROBES)
        radius = jnp.where(probing, probes[jnp.minimum(k, len(PROBES) - 1)], middle)
        found = signed_output(theta + radius * unit)
        flipped = found <= 0
        first = jnp.where(k == len(PROBES) - 1, jnp.where(flipped, radius, high) * 1e-14, low)
        low = jnp.where(probing, first, jnp.where(flipped, low, middle))
        high = jnp.where(flipped, radius, high)
        return k + 1, low, high, jnp.where(flipped | (k == 0), found, value)

    more = lambda state: (
        (state[0] < len(PROBES)) | (jnp.isfinite(state[2]) & (state[0] < len(PROBES) + BISECTIONS))
    )
    zero = jnp.zeros((), theta.dtype)
    start = (jnp.zeros((), int), zero, zero + jnp.inf, zero)
    _, _, radius, value = jax.lax.while_loop(more, step, start)
    return OnRay(radius, jnp.where(jnp.isfinite(radius), radius, 0.0) * unit, value)


def try_rays(
    signed_output: Callable[[Float[Array, "p"]], Float[Array, ""]],
    theta: Float[Array, "p"],
    rays: Float[Array, "k p"],
    largest: float,
    /,
) -> tuple[Float[Array, ""], Float[Array, "p"], Int[Array, ""]]:
    """Return the least norm, over directions, of a perturbation that flips the decision.

    Return also this perturbation, as a flat array, and the direction's index. If no perturbation of
    norm at most `largest` flips the decision, the results are inf, zero and -1.
    """

    def visit(carry: Any, ray: Any) -> Any:
        best, delta, which = carry
        index, direction = ray
        found = along_ray(signed_output, theta, direction, best)
        better = found.radius < best
        choose = lambda new, old: jnp.where(better, new, old)
        return (
            choose(found.radius, best),
            choose(found.perturbation, delta),
            choose(index, which),
        ), None

    start = (jnp.asarray(largest, theta.dtype), jnp.zeros_like(theta), jnp.asarray(-1))
    found, _ = jax.lax.scan(visit, start, (jnp.arange(rays.shape[0]), rays))
    best, delta, which = found
    return jnp.where(which >= 0, best, jnp.inf), delta, which


@partial(jax.jit, static_argnums=0)
def _shoot(signed_output: Any, params: Any, data: Any, direction: Array, best: Array) -> OnRay:
    theta, unravel = ravel_pytree(params)
    return along_ray(lambda v: signed_output(unravel(v), *data), theta, direction, best)


@partial(jax.jit, static_argnums=0)
def _slope(surrogate: Any, params: Any, data: Any, delta: Array) -> Array:
    theta, unravel = ravel_pytree(params)
    return jax.grad(lambda v: surrogate(unravel(v), *data))(theta + delta)


def margin_upper(
    signed_output: Callable[..., Float[Array, ""]],
    surrogate: Callable[..., Float[Array, ""]],
    params: Any,
    blocks: Sequence[Any],
    /,
    *,
    data: tuple = (),
    starts: Iterable[Any] = (),
    refinements: int = 8,
    largest: float = 2.0,
    tried: Callable[[], None] = lambda: None,
) -> UpperEstimate:
    """Search for a small perturbation of the parameters that flips the network's decision.

    Two calls with equal functions and equal array shapes use the same compiled programs.

    Args:
        signed_output: `signed_output(params, *data)` is (2y - 1) F(x, .) of the true network,
            positive at `params`.
        surrogate: a function with the values of `signed_output`, whose derivatives are surrogates
            that do not vanish (straight-through).
        params: the parameters theta, preferably in float64.
        blocks: pytrees of 0/1 arrays with the structure of `params`. For each, the search tries the
            direction of the surrogate's gradient times these arrays.
        data: further arguments of `signed_output` and `surrogate`, for example an input and its
            label.
        starts: further perturbations to try after `blocks`, for example those found at other
            depths.
        refinements: the number of moves along the decision boundary from the best perturbation.
        largest: the largest norm of a perturbation that the search tries.
        tried: a function that the search calls after each direction.

    Raises:
        Refused: if the network already errs at `params`, where the margin is 0.
    """
    theta, unravel = ravel_pytree(params)
    flat = lambda tree: np.concatenate(
        [np.ravel(leaf) for leaf in jax.tree.leaves(tree)], dtype=theta.dtype
    )
    shoot = lambda direction, best: _shoot(
        signed_output, params, data, direction, jnp.asarray(best, theta.dtype)
    )
    still = jnp.zeros_like(theta)
    if not float(shoot(still, largest).signed_output) > 0:
        raise Refused(
            f"output={float(shoot(still, largest).signed_output)} (times the label), expected a "
            f"positive number: the network errs on this input, so its all-layer margin is 0. Try "
            f"another input"
        )
    slope = lambda delta: _slope(surrogate, params, data, delta)
    best = OnRay(jnp.asarray(jnp.inf), still, jnp.asarray(jnp.nan))
    within = mask = jnp.ones_like(theta)
    evaluations = 0

    def visit(direction: Array) -> bool:
        nonlocal best, evaluations
        evaluations += 1
        found = shoot(direction, min(float(best.radius), largest))
        better = float(found.radius) < float(best.radius)
        best = found if better else best
        tried()
        return better

    descent = -slope(still)
    for block in blocks:
        within = jnp.asarray(flat(block))
        if visit(descent * within):
            mask = within
    for start in starts:
        if visit(jnp.asarray(flat(start))):
            mask = jnp.asarray(flat(blocks[0]))
    if np.isfinite(best.radius):
        for eta in SHRINKINGS * refinements:
            normal = slope(best.perturbation) * mask
            scale = (normal @ best.perturbation) / jnp.maximum(normal @ normal, 1e-300)
            visit((1.0 - eta) * best.perturbation + eta * scale * normal)
    return UpperEstimate(
        radius=float(best.radius),
        perturbation=unravel(best.perturbation),
        signed_output=float(best.signed_output),
        evaluations=evaluations,
    )


def recertify(
    signed_output: Callable[..., Float[Array, ""]],
    params: Any,
    perturbation: Any,
    /,
    *,
    data: tuple = (),
) -> float:
    """Return the norm at which another network's perturbation flips this network's decision.

    The function tries multiples of the perturbation, up to twice its norm. The result is inf if
    none flips the decision.
    """
    delta = ravel_pytree(perturbation)[0].astype(ravel_pytree(params)[0].dtype)
    largest = 2.0 * jnp.linalg.norm(delta)
    return float(_shoot(signed_output, params, data, delta, largest).radius)


def blocks_by_layer(params: Any, layered: Callable[[tuple], bool], /) -> list:
    """Return 0/1 masks: one for all parameters, one for each leaf, and one for each layer.

    The mask of a layer is 1 on the layer's entries, in all leaves whose leading axis runs over the
    layers.

    Args:
        params: the parameters, a pytree.
        layered: a function of a leaf's path that tells whether the leaf's first axis has one entry
            for each layer.
    """
    paths, tree = jax.tree_util.tree_flatten_with_path(params)
    ones = [np.ones(np.shape(leaf), np.int8) for _, leaf in paths]
    zeros = [np.zeros_like(one) for one in ones]
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
