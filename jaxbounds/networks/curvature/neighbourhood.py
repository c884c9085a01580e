"""Find the largest rise of a loss in a ball around the parameters: the sharpness of SAM.

Sharpness-aware minimisation, SAM (Foret, Kleiner, Mobahi and Neyshabur, ICLR 2021), defines the
sharpness at parameters w as the maximum of L(w + e) - L(w) over |e| <= radius. SAM approximates
the maximum by e = radius g / |g|, where g is the gradient of L at w.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.memory import LIMIT
from jaxbounds.ground.tables import Table, number, with_table
from jaxbounds.networks.curvature.batches import named
from jaxbounds.networks.curvature.filters import Filter
from jaxbounds.networks.curvature.paths import Params
from jaxbounds.networks.curvature.products import Loss, Problem
from jaxbounds.networks.curvature.programs import Point, as_key

STARTS = 4
"""The number of gradient ascents in the ball around the parameters. One ascent starts along the
gradient, and the other ascents start at random points. A larger number of ascents may find a higher
maximum, and takes longer.
"""


@with_table
class Sharpness(NamedTuple):
    """The rise of a loss L in a ball around the parameters w.

    Attributes:
        rise: the largest L(w + e) - L(w) that the ascents found, which is a lower bound of the
            sharpness.
        spread: the rise of the best ascent minus the median rise. A large spread means that the
            loss has several local maxima in the ball, and that `rise` may be far below the
            sharpness.
        last_gain: the rise that the last step of the best ascent added. If the last gain is large,
            more steps may find a higher rise.
        one_step: the rise at e = radius g / |g|, which SAM uses; 0 if the gradient g vanishes.
        radius: the radius of the ball around the parameters in which the loss is maximised.
        direction: the step e with the largest rise found, a pytree like the parameters.
    """

    rise: Float[Array, ""]
    spread: Float[Array, ""]
    last_gain: Float[Array, ""]
    one_step: Float[Array, ""]
    radius: float
    direction: Any

    def _table(self) -> Table:
        return Table(
            f"the loss rises by at least {number(self.rise)} within {number(self.radius)} (by "
            f"{number(self.one_step)} along the gradient)"
        )


def _to_sphere(vector: Array, radius: Array, other: Array) -> Array:
    norm = jnp.linalg.norm(vector)
    return jnp.where(norm > 0, radius / jnp.where(norm > 0, norm, 1) * vector, other)


def _ascent_kernel(problem: Problem, static: dict, dynamic: dict) -> tuple:
    """Return the loss, its rise in each ascent, the last gain, the rise of SAM, the best point."""
    origin, radius = problem.point, dynamic["radius"]
    at = lambda e: problem.value(origin + e)
    loss, slope = jax.value_and_grad(at)(jnp.zeros_like(origin))
    zero = jnp.zeros_like(origin)
    first = _to_sphere(slope, radius, zero)
    drawn = jax.random.normal(dynamic["key"], (STARTS - 1, origin.size), origin.dtype)
    starts = [first, *(_to_sphere(one, radius, zero) for one in drawn)]

    def ascend(start: Array) -> tuple[Array, Array, Array]:
        # The step goes to the highest point of the tangent plane over the ball.
        def step(carry: tuple, _: None) -> tuple[tuple, None]:
            e, best, high, _ = carry
            value, slope = jax.value_and_grad(at)(e)
            better = value > high
            gain = jnp.where(better, value - high, 0)
            best, high = jnp.where(better, e, best), jnp.maximum(value, high)
            return (_to_sphere(slope, radius, e), best, high, gain), None

        begin = (start, zero, loss, jnp.zeros_like(loss))
        (_, best, high, gain), _ = jax.lax.scan(step, begin, None, length=static["steps"])
        return best, high - loss, gain

    found = [ascend(start) for start in starts]
    rises = jnp.stack([rise for _, rise, _ in found])
    index = jnp.argmax(rises)
    best = jnp.stack([point for point, _, _ in found])[index]
    gain = jnp.stack([gain for _, _, gain in found])[index]
    return loss, rises, gain, at(first) - loss, best


def sharpness(
    loss: Loss,
    params: Params,
    data: Any = None,
    *,
    radius: float = 0.05,
    steps: int = 20,
    key: jax.Array | None = None,
    batches: Any = None,
    batch_size: int | None = None,
    filter: Filter | None = None,
    memory_limit: float = LIMIT,
) -> Sharpness:
    """Search for the largest rise of the loss in a ball around the parameters, by four ascents.

    Args:
        loss: `loss(params)`, or `loss(params, batch)` if data are given.
        params: the parameters of the network; see `Curvature`.
        data: the data, one batch or several; see `Curvature`.
        radius: the radius of the ball, in units of the parameters; SAM's default is 0.05.
        steps: the number of steps of each ascent; more steps come nearer to the maximum.
        key: the random key that draws the starts of three ascents; `jax.random.key(0)` unless
            given.
        batches: a list of batches; see `Curvature`.
        batch_size: the number of examples in a batch; see `Curvature`.
        filter: a filter that selects the parameters that the ascents change; the default selects
            all parameters.
        memory_limit: the largest number of bytes that the search may need.

    Raises:
        Refused: if the radius is not positive, `steps` is below 1, the loss is not finite, or
            more memory is needed than the limit.
    """
    if not radius > 0 or steps < 1:
        raise Refused(
            f"radius={radius} and steps={steps}: expected a positive radius and at least one "
            "step. Try radius=0.05, steps=20"
        )
    point = Point(loss, params, named(data, batches), batch_size=batch_size, filter=filter)
    dtype = point.selection.dtype
    value, rises, gain, one, best = point.run(
        _ascent_kernel, {"steps": int(steps)},
        {"radius": jnp.asarray(radius, dtype), "key": as_key(key)},
        limit=memory_limit, what="the sharpness in a ball",
    )  # fmt: skip
    point.refuse_not_finite(value)
    point.refuse_constant(rises)
    tree = point.selection.tree(best)
    return Sharpness(jnp.max(rises), jnp.max(rises) - jnp.median(rises), gain, one, radius, tree)
