"""Estimate the noise of stochastic gradients: the variance of single examples' gradients.

The simple noise scale tr(S) / |G|^2 is a batch size, where S is the covariance of one example's
gradient and G is the mean gradient. Below the noise scale, doubling the batch nearly halves the
number of training steps. Above the noise scale, doubling the batch saves few steps (McCandlish,
Kaplan, Amodei et al., arXiv 1812.06162, eq. (2.9)). The function `gradient_noise` estimates tr(S)
and |G|^2 from the gradients of batches of b examples. The gradient of a batch of b examples has the
covariance S / b.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.memory import LIMIT
from jaxbounds.ground.tables import Table, number, with_table
from jaxbounds.networks.curvature.batches import named
from jaxbounds.networks.curvature.filters import Filter
from jaxbounds.networks.curvature.paths import Params
from jaxbounds.networks.curvature.products import Loss, Problem, real
from jaxbounds.networks.curvature.programs import Point


@with_table
class GradientNoise(NamedTuple):
    """The noise of the stochastic gradient at a point, with the covariance S and the mean G.

    Attributes:
        trace: the unbiased estimate of tr(S), the variance of one example's gradient.
        trace_error: the standard error of `trace`, by the jackknife over batches.
        squared_norm: the unbiased estimate of |G|^2. The estimate may be negative if |G| is small
            relative to the noise.
        scale: the noise scale tr(S) / |G|^2, a number of examples; NaN if `squared_norm` is not
            positive.
        scale_error: the standard error of `scale`, by the jackknife over batches.
        batches: the number of batches of examples.
        examples: the number of examples in each batch.
    """

    trace: float
    trace_error: float
    squared_norm: float
    scale: float
    scale_error: float
    batches: int
    examples: int

    def _table(self) -> Table:
        scale = f"{number(self.scale)} +- {number(self.scale_error)} examples"
        trace = f"{number(self.trace)} +- {number(self.trace_error)}"
        of = f"({self.batches} batches of {self.examples})"
        return Table(f"noise scale {scale}, variance of a gradient {trace} {of}")


def _inner_kernel(problem: Problem, static: dict, dynamic: dict) -> tuple[Array, Array, Array]:
    """Return |g|^2 and <g, G> for each batch's gradient g, and |G|^2; G is the mean of all g."""
    assert problem.groups is not None
    (stacked, _), point = problem.groups[0], problem.point
    slope = lambda batch: jax.grad(lambda x: real(problem.loss(problem.params(x), batch)))(point)
    mean = jax.grad(problem.value)(point)

    def one(batch: Any) -> tuple[Array, Array]:
        found = slope(batch)
        return jnp.sum(found**2), jnp.sum(found * mean)

    return *jax.lax.map(one, stacked), jnp.sum(mean**2)


def _moments(squares: Any, mean_square: Any, count: int) -> tuple[Any, Any]:
    """Return the trace of the covariance of a batch's gradient, and |G|^2, both unbiased.

    `squares` is the sum of |g|^2 over the batches' gradients g; `mean_square` is the squared norm
    of the mean of all g.
    """
    trace = (squares - count * mean_square) / (count - 1)
    return trace, mean_square - trace / count


def _spread(leave_one_out: np.ndarray) -> float:
    count = len(leave_one_out)
    return float(np.sqrt((count - 1) * np.mean((leave_one_out - leave_one_out.mean()) ** 2)))


def gradient_noise(
    loss: Loss,
    params: Params,
    data: Any = None,
    *,
    batches: Any = None,
    batch_size: int | None = None,
    filter: Filter | None = None,
    memory_limit: float = LIMIT,
) -> GradientNoise:
    """Estimate the variance of an example's gradient and the noise scale, with standard errors.

    Args:
        loss: `loss(params, batch)`, a mean over the examples of the batch.
        params: the parameters of the network; see `Curvature`.
        data: a list of batches of equal shape, or one pytree of examples (n, ...).
        batches: the list of batches, if the argument `data` would read the list as one batch.
        batch_size: the number of examples in a batch that is cut from one pytree; for 1, the
            function compares the gradients of single examples.
        filter: the filter that selects the parameters; the default selects all parameters.
        memory_limit: the largest number of bytes that the computation may need.

    Raises:
        Refused: if there are fewer than 3 batches, batches differ in size, the loss is not
            finite, or more memory is needed than the limit.
    """
    point = Point(loss, params, named(data, batches), batch_size=batch_size, filter=filter)
    groups = point.arguments[2]
    sizes = [jax.tree.leaves(group.stacked)[0].shape[:2] for group in groups or ()]
    if len(sizes) != 1 or sizes[0][0] < 3 or len(sizes[0]) < 2:
        had = " and ".join(f"{n[0]} of {n[1] if len(n) > 1 else 1}" for n in sizes) or "none"
        raise Refused(
            f"the estimate of the gradient noise needs at least 3 batches of one size, got {had}. "
            f"Try batch_size=1, or another divisor of the number of examples"
        )
    count, examples = sizes[0]
    found = point.run(_inner_kernel, {}, {}, limit=memory_limit, what="the noise of the gradient")
    point.refuse_not_finite(np.sum(found[0]), found[0], found[1])
    point.refuse_constant(found[0])
    squares, inner, mean_square = (np.asarray(part, np.float64) for part in found)
    trace, norm = _moments(squares.sum(), mean_square, count)
    without = (count**2 * mean_square - 2 * count * inner + squares) / (count - 1) ** 2
    traces, norms = _moments(squares.sum() - squares, without, count - 1)
    with np.errstate(all="ignore"):
        scales = np.where(norms > 0, examples * traces / norms, np.nan)
        scale = examples * trace / norm if norm > 0 else np.nan
    return GradientNoise(
        trace=float(examples * trace), trace_error=examples * _spread(traces),
        squared_norm=float(norm), scale=float(scale), scale_error=_spread(scales),
        batches=count, examples=examples,
    )  # fmt: skip
