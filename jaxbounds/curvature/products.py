"""Products with the Hessian, or the Gauss-Newton matrix, of a mean of losses over batches."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.curvature.batches import Group, count, group
from jaxbounds.curvature.leaves import Filter, Params, Selection, select

Loss = Callable[..., Float[Array, ""]]
"""`loss(params)`, or `loss(params, batch)` where batches are given."""

Of = Literal["hessian", "ggn"]


@dataclass(frozen=True)
class Composite:
    """A loss in two parts, `outer(outputs(params, batch), batch)`, for Gauss-Newton products.

    Attributes:
        outputs: the network: parameters (and a batch) to outputs of any structure.
        outer: the scalar loss of the outputs (and the batch), convex as a rule.
    """

    outputs: Callable[..., Any]
    outer: Callable[..., Array]

    def __call__(self, params: Params, *batch: Any) -> Array:
        """The loss."""
        return self.outer(self.outputs(params, *batch), *batch)


def real(loss: Any, /) -> Array:
    """A loss that is one real number.

    Raises:
        ValueError: if it is none.
    """
    if loss is None or isinstance(loss, tuple | list | dict):
        raise ValueError(
            f"the loss must be one real number, got a {type(loss).__name__}: return it alone, "
            "without what else was computed"
        )
    loss = jnp.asarray(loss)
    if loss.shape != () or not jnp.issubdtype(loss.dtype, jnp.floating):
        raise ValueError(f"the loss must be one real number, got {loss.dtype}{list(loss.shape)}")
    return loss


class Problem(NamedTuple):
    """A loss at a point: what the kernels of this package work on, inside of a trace.

    Attributes:
        loss: the loss of one batch.
        selection: which leaves are parameters.
        of: which matrix.
        own: the parameters.
        fixed: the arrays held fixed.
        groups: the batches, or None.
        head: which head, where the selection is of one.
    """

    loss: Loss
    selection: Selection
    of: Of
    own: list[Array]
    fixed: list[Array]
    groups: tuple[Group, ...] | None
    head: Array | None

    @property
    def point(self) -> Float[Array, " n"]:
        """The parameters as a vector."""
        return self.selection.vector(self.own, self.head)

    def params(self, vector: Float[Array, " n"]) -> Params:
        """The pytree at another point."""
        return self.selection.params(vector, self.own, self.fixed, self.head)

    def value(self) -> Array:
        """The mean loss."""
        return self._mean(lambda *batch: real(self.loss(self.params(self.point), *batch)))

    def operator(self) -> Callable[[Float[Array, " n"]], Float[Array, " n"]]:
        """The map v -> A v.

        With one batch the derivative is linearised once: a product then costs about one gradient,
        and the intermediate values of the gradient stay in memory. With several, each product
        differentiates anew, one batch after the other.
        """
        if self.groups is None:
            return self._linear()
        if count(self.groups) == 1:
            return self._linear(jax.tree.map(lambda leaf: leaf[0], self.groups[0].stacked))
        return lambda v: self._mean(lambda batch: self._product(v, batch))

    def _mean(self, function: Callable[..., Any]) -> Any:
        if self.groups is None:
            return function()
        total: Any = 0.0
        for stacked, weight in self.groups:
            first = jax.tree.map(lambda leaf: leaf[0], stacked)
            start = jax.tree.map(
                lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(function, first)
            )
            add = lambda sums, batch: (jax.tree.map(jnp.add, sums, function(batch)), None)
            sums = jax.lax.scan(add, start, stacked)[0]
            total = total + sums * jnp.asarray(weight, sums.dtype)
        return total

    def _slope(self, batch: tuple) -> Callable:
        return jax.grad(lambda x: self.loss(self.params(x), *batch))

    def _outputs(self, batch: tuple) -> Callable:
        return lambda x: self.loss.outputs(self.params(x), *batch)  # type: ignore[attr-defined]

    def _bend(self, outputs: Any, batch: tuple) -> Callable:
        """Products with the Hessian of the outer loss."""
        outer = self.loss.outer  # type: ignore[attr-defined]
        return lambda z: jax.jvp(jax.grad(lambda o: outer(o, *batch)), (outputs,), (z,))[1]

    def _linear(self, *batch: Any) -> Callable:
        if self.of == "hessian":
            return jax.linearize(self._slope(batch), self.point)[1]
        outputs, push = jax.linearize(self._outputs(batch), self.point)
        pull = jax.linear_transpose(push, self.point)
        bend = self._bend(outputs, batch)
        return lambda v: pull(bend(push(v)))[0]

    def _product(self, v: Array, batch: Any) -> Array:
        if self.of == "hessian":
            return jax.jvp(self._slope((batch,)), (self.point,), (v,))[1]
        outputs, pushed = jax.jvp(self._outputs((batch,)), (self.point,), (v,))
        pull = jax.vjp(self._outputs((batch,)), self.point)[1]
        return pull(self._bend(outputs, (batch,))(pushed))[0]


def check_matrix(loss: Loss, of: str, /) -> None:
    """Refuse a matrix that cannot be had.

    Raises:
        ValueError: if `of` is unknown, or "ggn" of a loss that is no `Composite`.
    """
    if of not in get_args(Of):
        raise ValueError(f"of must be one of {', '.join(get_args(Of))}, got {of!r}")
    if of == "ggn" and not isinstance(loss, Composite):
        raise ValueError("of='ggn' needs the loss in two parts: Composite(outputs, outer)")


def _product_of(of: Of, loss: Loss, params: Params, batches: Any, filter: Filter | None):
    check_matrix(loss, of)
    selection = select(params, filter)
    problem = Problem(loss, selection, of, *selection.arrays(params), group(batches, None), None)
    operator = problem.operator()

    def product(direction: Params) -> Params:
        leaves = selection.structure.flatten_up_to(direction)
        own = [jnp.asarray(x) for x, chosen in zip(leaves, selection.chosen) if chosen]
        return selection.tree(operator(selection.vector(own)))

    return product


def hessian_vector_product(
    loss: Loss, params: Params, batches: Any = None, /, *, filter: Filter | None = None
) -> Callable[[Params], Params]:
    """The map v -> (Hessian of `loss` at `params`) v, on pytrees shaped like `params`.

    The gradient is linearised once, so that each product costs about one gradient; the
    linearisation keeps the intermediate values of the gradient in memory (of one batch; with a list
    of batches each product differentiates anew). Fixed leaves of v are ignored, and None comes in
    their place.
    """
    return _product_of("hessian", loss, params, batches, filter)


def ggn_vector_product(
    loss: Composite, params: Params, batches: Any = None, /, *, filter: Filter | None = None
) -> Callable[[Params], Params]:
    """The map v -> J^T (Hessian of `loss.outer`) J v with the Jacobian J of `loss.outputs`.

    The Hessian is this generalised Gauss-Newton matrix plus the curvature of the network itself.

    Raises:
        ValueError: if the loss is no `Composite`.
    """
    return _product_of("ggn", loss, params, batches, filter)
