"""Multiply vectors by the Hessian, or the Gauss-Newton matrix, of a mean of losses over batches."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from jaxbounds.ground.exceptions import Refused
from jaxbounds.networks.curvature.batches import Group, count, group
from jaxbounds.networks.curvature.filters import Filter
from jaxbounds.networks.curvature.leaves import Selection, select
from jaxbounds.networks.curvature.paths import Params

Loss = Callable[..., Float[Array, ""]]
"""A function `loss(params)`, or `loss(params, batch)` if batches are given, that returns a real
number."""
Of = Literal["hessian", "ggn"]


@dataclass(frozen=True)
class Composite:
    """A loss in two parts, `outer(outputs(params, batch), batch)`, for Gauss-Newton products.

    Attributes:
        outputs: the network, `outputs(params)` or `outputs(params, batch)`: any pytree.
        outer: the scalar loss, `outer(outputs)` or `outer(outputs, batch)`, usually convex.
    """

    outputs: Callable[..., Any]
    outer: Callable[..., Array]

    def __call__(self, params: Params, *batch: Any) -> Array:
        """Return the loss."""
        return self.outer(self.outputs(params, *batch), *batch)


def real(loss: Any, /) -> Array:
    """Return the value of a loss as an array, if the value is one real number.

    Raises:
        Refused: if the loss is anything other than one real number.
    """
    if loss is None or isinstance(loss, tuple | list | dict):
        raise Refused(
            f"the loss must be one real number, got type={type(loss).__name__}. Try to return "
            "only the number"
        )
    loss = jnp.asarray(loss)
    if loss.shape != () or not jnp.issubdtype(loss.dtype, jnp.floating):
        raise Refused(
            f"the loss must be one real number, got {loss.dtype}{list(loss.shape)}. Try jnp.mean "
            "of this array"
        )
    return loss


def _has_no_forward(problem: TypeError) -> bool:
    return "custom_vjp" in str(problem)


def _look(linear: Callable, point: Any) -> None:
    """Raise an error if a linear map calls a custom_vjp, which JAX detects only under vmap."""
    batch = jax.tree.map(lambda x: jax.ShapeDtypeStruct((1, *x.shape), x.dtype), point)
    jax.eval_shape(jax.vmap(linear), batch)


def _linearized(slope: Callable, point: Any, *, ruled: bool = True) -> Callable:
    """Return the derivative of a gradient at a point, as a linear map.

    A custom_vjp rule that calls its own function has no forward derivative. If the gradient does
    not use the result of this call, linearisation drops the call. Otherwise the function returns
    the reverse derivative, which equals the forward derivative because a Hessian is symmetric.
    """
    try:
        linear = jax.linearize(slope, point)[1]
        if ruled:
            _look(linear, point)
        return linear
    except TypeError as problem:
        if not _has_no_forward(problem):
            raise
    pull = jax.vjp(slope, point)[1]
    return lambda v: pull(v)[0]


def slope_product(slope: Callable, point: Any, v: Any, /, *, ruled: bool = True) -> Any:
    """Differentiate a gradient at a point along `v`, with less memory than `_linearized` needs."""
    product = lambda v: jax.jvp(slope, (point,), (v,))[1]
    try:
        if ruled:
            _look(product, point)
        return product(v)
    except TypeError as problem:
        if not _has_no_forward(problem):
            raise
    return _linearized(slope, point)(v)


def _both_ways(
    outputs: Callable, point: PyTree, *, ruled: bool = True
) -> tuple[Any, Callable, Callable]:
    try:
        value, push = jax.linearize(outputs, point)
        if ruled:
            _look(push, point)
        return value, push, jax.linear_transpose(push, point)
    except TypeError as problem:
        if not _has_no_forward(problem):
            raise
    value, pull = jax.vjp(outputs, point)
    forth = jax.linear_transpose(lambda slopes: pull(slopes)[0], value)
    return value, lambda v: forth(v)[0], pull


class Problem(NamedTuple):
    """A loss at a point, as the tuple that this package's functions inside of `jit` receive.

    Attributes:
        loss: the loss of one batch as a function of the parameters.
        selection: the leaves of the pytree that are parameters.
        of: the matrix of second derivatives to use, "hessian" or "ggn".
        own: the values of the parameters at the point.
        fixed: the arrays in the parameters' pytree that are held fixed.
        groups: the groups of batches over which the loss is averaged; None without batches.
        head: the index of the head, if the selection covers the parameters of one head.
        ruled: whether the loss may have a custom_vjp, so that a product must be tried first.
    """

    loss: Loss
    selection: Selection
    of: Of
    own: list[Array]
    fixed: list[Array]
    groups: tuple[Group, ...] | None
    head: Array | None
    ruled: bool = True

    @property
    def point(self) -> Float[Array, " n"]:
        """The parameters as a vector."""
        return self.selection.vector(self.own, self.head)

    def params(self, vector: Float[Array, " n"]) -> Params:
        """Return the pytree of the parameters, with the numbers of a vector as values."""
        return self.selection.params(vector, self.own, self.fixed, self.head)

    def value(self, at: Array | None = None) -> Array:
        """Return the mean loss at the vector `at`, or at the present parameters if `at` is None."""
        vector = self.point if at is None else at
        return self._mean(lambda *batch: real(self.loss(self.params(vector), *batch)))

    def operator(self) -> Callable[[Float[Array, " n"]], Float[Array, " n"]]:
        """Return the map v -> A v, where A is the matrix.

        For one batch the function linearises the derivative once, so a product costs about one
        gradient. The intermediate values of the gradient stay in memory between products. For
        several batches each product differentiates the loss again, one batch after the other.
        """
        if self.groups is None:
            return self._linear()
        if count(self.groups) == 1:
            return self._linear(jax.tree.map(lambda leaf: leaf[0], self.groups[0].stacked))
        return lambda v: self._mean(lambda batch: self._product(v, batch))

    def image_and_value(self, v: Array) -> tuple[Array, Array]:
        """Return the curvature matrix times v, and the mean loss, from shared forward passes."""
        value = lambda *batch: real(self.loss(self.params(self.point), *batch))
        if self.groups is None or count(self.groups) == 1:
            return self.operator()(v), self.value()
        return self._mean(lambda batch: (self._product(v, batch), value(batch)))

    def _mean(self, function: Callable[..., Any]) -> Any:
        if self.groups is None:
            return function()
        total: Any = None
        for stacked, weight in self.groups:
            first = jax.tree.map(lambda leaf: leaf[0], stacked)
            start = jax.tree.map(
                lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(function, first)
            )
            add = lambda sums, batch: (jax.tree.map(jnp.add, sums, function(batch)), None)
            sums = jax.lax.scan(add, start, stacked)[0]
            part = jax.tree.map(lambda s, w=weight: s * jnp.asarray(w, s.dtype), sums)
            total = part if total is None else jax.tree.map(jnp.add, total, part)
        return total

    def leafwise(self) -> Callable[[list[Array]], list[Array]]:
        """Return the product v -> A v with the matrix A, as a function of lists of arrays.

        The loss has at most one batch.
        """
        batch = () if self.groups is None else (
            jax.tree.map(lambda leaf: leaf[0], self.groups[0].stacked),
        )  # fmt: skip
        return self._linear(*batch, leaves=True)

    def _slope(self, batch: tuple, at: Callable | None = None) -> Callable:
        at = at or self.params
        return jax.grad(lambda x: self.loss(at(x), *batch))

    def _outputs(self, batch: tuple, at: Callable | None = None) -> Callable:
        at = at or self.params
        return lambda x: self.loss.outputs(at(x), *batch)  # type: ignore[attr-defined]

    def _bend(self, outputs: Any, batch: tuple) -> Callable:
        """Return a function that multiplies by the Hessian of the loss in the network's outputs."""
        outer = self.loss.outer  # type: ignore[attr-defined]
        return lambda z: slope_product(
            jax.grad(lambda o: outer(o, *batch)), outputs, z, ruled=self.ruled
        )

    def _linear(self, *batch: Any, leaves: bool = False) -> Callable:
        at: Callable = self.params
        point: Any = self.point
        if leaves:
            at, point = lambda own: self.selection.rebuilt(own, self.fixed), self.own
        if self.of == "hessian":
            return _linearized(self._slope(batch, at), point, ruled=self.ruled)
        outputs, push, pull = _both_ways(self._outputs(batch, at), point, ruled=self.ruled)
        bend = self._bend(outputs, batch)
        return lambda v: pull(bend(push(v)))[0]

    def _product(self, v: Array, batch: Any) -> Array:
        if self.of == "hessian":
            return slope_product(self._slope((batch,)), self.point, v, ruled=self.ruled)
        outputs, push, pull = _both_ways(self._outputs((batch,)), self.point, ruled=self.ruled)
        return pull(self._bend(outputs, (batch,))(push(v)))[0]


def check_matrix(loss: Loss, of: str, /) -> None:
    """Refuse a name `of` for a matrix that does not exist for this loss.

    Raises:
        Refused: if `of` is unknown, or "ggn" with a loss that is not a `Composite`.
    """
    if of not in get_args(Of):
        raise Refused(f"of={of!r}, expected one of {', '.join(get_args(Of))}. Try of='hessian'")
    if of == "ggn" and not isinstance(loss, Composite):
        raise Refused(
            "of='ggn' needs a loss in two parts, network and outer loss. Try "
            "loss=Composite(outputs, outer)"
        )


def _product_of(
    of: Of, loss: Loss, params: Params, batches: Any, filter: Filter | None
) -> Callable[[Params], Params]:
    check_matrix(loss, of)
    selection = select(params, filter)
    problem = Problem(loss, selection, of, *selection.arrays(params), group(batches, None), None)
    operator = problem.operator()

    def product(direction: Params) -> Params:
        return selection.tree(operator(selection.vector_of(direction)))

    return product


def hessian_vector_product(
    loss: Loss, params: Params, batches: Any = None, /, *, filter: Filter | None = None
) -> Callable[[Params], Params]:
    """Return the map v -> (Hessian of `loss` at `params`) v, on pytrees shaped like `params`.

    For one batch the function linearises the gradient once and keeps its intermediate values in
    memory, so that each product costs about one gradient. For a list of batches each product
    differentiates the loss again. The map ignores fixed leaves of v, and returns None in their
    place.
    """
    return _product_of("hessian", loss, params, batches, filter)


def ggn_vector_product(
    loss: Composite, params: Params, batches: Any = None, /, *, filter: Filter | None = None
) -> Callable[[Params], Params]:
    """Return the map v -> J^T (Hessian of `loss.outer`) J v, with the Jacobian J of `loss.outputs`.

    The Hessian is the generalised Gauss-Newton matrix J^T (Hessian of `loss.outer`) J plus the
    curvature of the network itself.

    Raises:
        Refused: if the loss is not a `Composite`.
    """
    return _product_of("ggn", loss, params, batches, filter)
