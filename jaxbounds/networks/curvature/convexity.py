"""Estimate the weak convexity of a loss L relative to its value: -lambda_min(Hess L) / L.

A loss L is self-bounded weakly convex with constant kappa, for a network of H heads, if
lambda_min(Hess L) >= -kappa L / sqrt(H). Lanczos overestimates lambda_min, so this module gives
lower estimates of -lambda_min / L. A violation that Lanczos finds is certain, but finding no
violation proves nothing. The function `convexity_certificate` bounds -lambda_min / L from above.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.memory import LIMIT
from jaxbounds.ground.tables import Table, number, with_table
from jaxbounds.networks.curvature.extremes import DENSE_LIMIT, extremes_at
from jaxbounds.networks.curvature.lanczos import Extremes, default_basis, lanczos_extremes
from jaxbounds.networks.curvature.leaves import select
from jaxbounds.networks.curvature.paths import Params
from jaxbounds.networks.curvature.products import Composite, Problem
from jaxbounds.networks.curvature.programs import Point, as_key
from jaxbounds.networks.curvature.shares import head_shares


@with_table
class WeakConvexity(NamedTuple):
    """Weak convexity at one point: lower estimates of the ratio -lambda_min / L.

    Attributes:
        loss: L, the mean loss over the batches.
        heads: H, the number of heads.
        minimum: an upper estimate of lambda_min, the least eigenvalue of the Hessian.
        residual: the residual norm ||A v - minimum v|| for the Hessian A and the unit vector v =
            `direction`. At least one eigenvalue of A differs from `minimum` by at most the residual
            norm.
        resolved: whether the residual and the rounding error are at most a tenth of |`minimum`|.
        ratio_at_least: max(0, -minimum) / L, a lower estimate of -lambda_min / L.
        kappa_at_least: `ratio_at_least` times sqrt(H); for every smaller kappa, lambda_min >=
            -kappa L / sqrt(H) fails at this point.
        kappa: the constant kappa of the condition that the caller asked to test, or None.
        violated: whether -minimum exceeds kappa L / sqrt(H) by more than the rounding error; None
            without a kappa.
        verdict: a text that says whether the loss violates the condition with `kappa` at this
            point.
        direction: the unit vector v with Rayleigh quotient `minimum`, a pytree like the parameters.
        by_head: the share of the direction's squared norm in each head; None if `heads` is only a
            number.
        extremes: the least and the greatest eigenvalue, as Lanczos estimates them, with residuals.
    """

    loss: Float[Array, ""]
    heads: int
    minimum: Float[Array, ""]
    residual: Float[Array, ""]
    resolved: bool
    ratio_at_least: Float[Array, ""]
    kappa_at_least: Float[Array, ""]
    kappa: float | None
    violated: bool | None
    verdict: str
    direction: Params
    by_head: Float[Array, " H"] | None
    extremes: Extremes

    def _table(self) -> Table:
        about = {
            "loss L": self.loss,
            "lambda_min, at most": self.minimum,
            "its residual": self.residual,
            "resolved": "yes" if self.resolved else "NO: residual or rounding above a tenth of it",
            "-lambda_min / L, at least": self.ratio_at_least,
            f"kappa, at least (H = {self.heads})": self.kappa_at_least,
        }
        if self.kappa is not None:
            about[f"kappa = {number(self.kappa)}"] = self.verdict
        rows = [(name, number(value)) for name, value in about.items()]
        return Table("weak convexity at one point", ("", ""), rows)


def weak_convexity_at(
    point: Point,
    /,
    *,
    memory_limit: float,
    heads: int | Mapping[str, int] | None = None,
    kappa: float | None = None,
    key: jax.Array | None = None,
    iterations: int = 200,
    tolerance: float | None = None,
    basis: int | None = None,
    dense_limit: int = DENSE_LIMIT,
) -> WeakConvexity:
    """Return lower estimates of -lambda_min / L and of kappa; see `Curvature.weak_convexity`.

    Raises:
        Refused: in the cases that `Curvature.weak_convexity` lists.
    """
    counted = isinstance(heads, int | np.integer) and heads >= 1
    if not (counted or isinstance(heads, Mapping | None)):
        raise Refused(
            "heads must be the number of heads, or a dict from patterns of paths to the axis of "
            f"the heads, got heads={heads!r}. Try heads=1"
        )
    usual = isinstance(kappa, int | float | np.number | jax.Array)
    if kappa is not None and not (usual and np.isfinite(kappa) and kappa > 0):
        raise Refused(f"kappa={kappa}, expected a positive number. Try 1.0, or leave kappa out")
    if tolerance is None:
        tolerance = 8 * float(jnp.finfo(point.selection.dtype).eps)
    ends, value = extremes_at(
        point,
        memory_limit=memory_limit,
        key=key,
        iterations=iterations,
        tolerance=tolerance,
        basis=basis,
        dense_limit=dense_limit,
    )
    if not float(value) > 0:
        raise Refused(
            f"self-bounded weak convexity needs a loss above 0, got loss={float(value)}. Try to "
            "subtract the infimum of the loss"
        )
    by_head, H = None, 1
    if isinstance(heads, Mapping):
        H = select(point.params, heads=heads).heads or 1
        by_head = head_shares(ends.vector_minimum, heads)
    elif heads is not None:
        H = int(heads)
    minimum, low = ends.minimum, float(ends.minimum)
    ratio = jnp.maximum(-minimum, 0) / value
    # The error that rounding may have added to a product of this norm.
    scale = max(abs(low), abs(float(ends.maximum)))
    rounding = 32 * max(float(jnp.finfo(minimum.dtype).eps) * scale, float(ends.noise))
    resolved = bool(max(ends.residual_minimum, ends.noise) <= 0.1 * abs(low))
    violated, verdict = None, "no kappa was asked about"
    products = int(ends.iterations)
    if kappa is not None:
        violated = -low - rounding > kappa * float(value) / H**0.5
        searched = f"in {products} products" if products else "in the whole spectrum"
        verdict = "violated" if violated else f"no direction found {searched}"
    return WeakConvexity(
        value, H, minimum, ends.residual_minimum, resolved, ratio, ratio * H**0.5, kappa, violated,
        verdict, ends.vector_minimum, by_head, ends,
    )  # fmt: skip


class ConvexityCertificate(NamedTuple):
    """The bound lambda_min(Hess L) >= -B for a loss L = outer(z) with outputs z and convex `outer`.

    B is the sum over the outputs z_k of |d outer / d z_k| ||Hess z_k||.

    Attributes:
        bound: the bound B; Lanczos estimates the norms in B from below. B may be too small if a
            norm has not converged. B is exact up to rounding if the estimate of every norm has
            converged.
        loss: L, the value of the loss outer(z).
        ratio: B / L, the factor of the loss in the bound lambda_min >= -(B / L) L.
        norms: the norm ||Hess z_k|| for each output z_k, shaped like the outputs.
        slopes: the slope d outer / d z_k for each output z_k, shaped like the outputs.
        converged: whether Lanczos estimated every norm with a small residual.
    """

    bound: Float[Array, ""]
    loss: Float[Array, ""]
    ratio: Float[Array, ""]
    norms: Array
    slopes: Array
    converged: bool


def _certificate_kernel(problem: Problem, static: dict, dynamic: dict) -> tuple:
    loss: Any = problem.loss
    groups = problem.groups
    batch = () if groups is None else (jax.tree.map(lambda x: x[0], groups[0].stacked),)
    point, size, dtype = problem.point, problem.selection.size, problem.selection.dtype
    outputs = lambda x: jnp.asarray(loss.outputs(problem.params(x), *batch))
    z = outputs(point)
    value, slopes = jax.value_and_grad(lambda z: loss.outer(z, *batch))(z)

    def norm(k: Array) -> tuple[Array, Array]:
        single = lambda x: outputs(x).ravel()[k]
        product = lambda v: jax.jvp(jax.grad(single), (point,), (v,))[1]
        ends = lanczos_extremes(
            product, size, jax.random.fold_in(dynamic["key"], k),
            iterations=dynamic["iterations"], basis=static["basis"], dtype=dtype,
        )  # fmt: skip
        larger = jnp.maximum(jnp.abs(ends.minimum), jnp.abs(ends.maximum))
        below = jnp.abs(ends.minimum) > jnp.abs(ends.maximum)
        return larger, jnp.where(below, ends.converged_minimum, ends.converged_maximum)

    norms, flags = jax.lax.map(norm, jnp.arange(z.size))
    bound = jnp.sum(jnp.abs(slopes).ravel() * norms.astype(slopes.dtype))
    return bound, value, norms.reshape(z.shape), slopes, jnp.all(flags)


def convexity_certificate(
    loss: Composite,
    params: Params,
    batch: Any = None,
    /,
    *,
    key: jax.Array | None = None,
    iterations: int = 60,
    filter: Any = None,
    memory_limit: float = LIMIT,
) -> ConvexityCertificate:
    """Bound lambda_min(Hess L) from below for any network, by a sum over its outputs.

    The loss is L = outer(z), where z are the outputs, J is their Jacobian, and outer is convex.
    The Hessian is Hess L = J^T (Hess outer) J + sum_k (d outer / d z_k) Hess z_k. The matrix J^T
    (Hess outer) J has no negative eigenvalue. Example: let L be the mean of n logistic losses l.
    The slopes d outer / d z_i are l'_i / n, and |l'| <= l, so -lambda_min <= L max_i ||Hess f_i||
    (`jaxbounds.multihead.self_bounded`). In this bound, f_i is the output of the network for
    example i. For each output, the function computes `iterations` products with the whole batch, so
    the function suits a few dozen examples.

    Args:
        loss: `Composite(outputs, outer)` with a convex outer; convexity is not checked.
        params: the parameters at which the loss is evaluated.
        batch: one batch.
        key: the random key that draws the start vectors of Lanczos.
        iterations: the number of products of Hess z_k with vectors, for each output z_k.
        filter: a filter that selects the parameters; the default selects all parameters.
        memory_limit: the largest number of bytes that a program may need.

    Raises:
        Refused: if the loss is not a `Composite`, or `batch` is a list of batches.
    """
    if isinstance(batch, list):
        raise Refused(
            f"batch has type={type(batch).__name__} of length {len(batch)}, expected one batch. "
            "Try the tuple (x, y), or another pytree that is not a list"
        )
    point = Point(loss, params, batch, filter=filter, of="ggn")
    selection = point.selection
    basis = default_basis(selection.size, 64, selection.dtype)
    dynamic = {
        "key": as_key(key),
        "iterations": jnp.asarray(iterations, jnp.int32),
    }
    what = "the certificate of weak convexity"
    found = point.run(_certificate_kernel, {"basis": basis}, dynamic, limit=memory_limit, what=what)
    bound, value, norms, slopes, flags = found
    return ConvexityCertificate(bound, value, bound / value, norms, slopes, bool(np.asarray(flags)))
