"""One product with the Hessian for all questions at a point: compiled once, driven from Python.

A network takes long to compile and a step of Lanczos does not. So the product is a program by
itself, and each method is a loop around it. With one batch the gradient is linearised first: its
intermediate values are arrays that a second program, the linear map, takes beside the vector. With
several batches each product differentiates anew, in the memory of one batch.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.networks.curvature.batches import count, single
from jaxbounds.networks.curvature.causes import explained
from jaxbounds.networks.curvature.products import Problem
from jaxbounds.networks.curvature.programs import Kernel, Point, Program, bytes_of_program
from jaxbounds.networks.curvature.streams import StreamedProduct, shape_of
from jaxbounds.networks.curvature.traced import Part


def _whole(problem: Problem, static: dict, dynamic: dict) -> tuple[Array, Array]:
    """The image of a vector, and the loss."""
    return problem.image_and_value(dynamic["vector"])


class Linear:
    """The two programs for one batch: what is computed once, and the map of vectors."""

    def __init__(self, point: Point) -> None:
        self._map: Part | None = None

        def prepare(problem: Problem, static: dict, dynamic: dict) -> tuple[Array, list[Array]]:
            self._map, held = Part.of(problem.operator(), problem.point)
            return problem.value(), held

        self._prepare = point.program(prepare, ())
        self._compiled: dict[Any, tuple[Any, int]] = {}

    def at(self, arguments: tuple, /) -> tuple[Callable[[Array], Array], Array, int]:
        """The map at a point, the loss, and the bytes that one product needs."""
        program, first = self._prepare.compiled(arguments)
        value, held = program(*arguments)
        mark = self._prepare.mark(arguments)
        if mark not in self._compiled:
            linear = self._map
            assert linear is not None
            vector = jax.ShapeDtypeStruct(linear.shape, linear.dtype)
            with explained(None, differentiated=True):
                lowered = jax.jit(lambda held, v: linear.at(held, [v])).lower(held, vector)
            compiled = lowered.compile()
            self._compiled[mark] = compiled, bytes_of_program(compiled)
        apply, second = self._compiled[mark]
        return lambda v: apply(held, v), value, max(first, second)


def _streamed(point: Point, zero: Array) -> tuple[Callable[[Array], Array], Array, int]:
    """The product over a stream: one program for each shape of a batch."""
    assert point.stream is not None
    points = {shape_of(point.stream.first): point}
    needs: list[int] = [0]

    def part(batch: Any, vector: Array) -> tuple[Array, Array]:
        shape = shape_of(batch)
        if shape not in points:
            points[shape] = point.on(batch)
        at = points[shape]
        constants, own, fixed, _, head, dynamic = at.program_arguments({"vector": vector})
        arguments = (constants, own, fixed, single(batch), head, dynamic)
        arguments = jax.tree.map(jnp.asarray, arguments)
        run, need = at.made(_whole, {}).compiled(arguments)
        needs.append(need)
        return run(*arguments)

    product = StreamedProduct(point.stream, part, zero)
    return product, product.value, max(needs)


class Product:
    """The product at a point as a function of vectors.

    Attributes:
        value: the loss.
        bytes: what one product needs, with parameters and data.
    """

    def __init__(self, point: Point) -> None:
        zero = jnp.zeros(point.selection.size, point.selection.dtype)
        if point.stream is not None:
            self._apply, self.value, self.bytes = _streamed(point, zero)
            return
        groups = point.arguments[2]
        if groups is None or count(groups) == 1:
            linear: Linear = point.kept("linear", lambda: Linear(point))
            self._apply, self.value, self.bytes = linear.at(point.program_arguments({}))
            return
        program: Program = point.made(_whole, {})
        run, self.bytes = program.compiled(point.program_arguments({"vector": zero}))
        both = lambda v: run(*point.program_arguments({"vector": v}))
        self._apply = lambda v: both(v)[0]
        self.value = both(zero)[1]

    def __call__(self, vector: Float[Array, " n"]) -> Float[Array, " n"]:
        """The matrix times a vector."""
        return self._apply(vector)


def product_at(point: Point, /, *, limit: float, rows: int, what: str, advice: str = "") -> Product:
    """The product at a point, made once.

    Args:
        point: the loss, where; not inside of a transformation.
        limit: bytes that may be needed.
        rows: vectors that the caller keeps beside it.
        what: is computed, for messages.
        advice: for one that needs more.

    Raises:
        ValueError: if it needs more than the limit; before compiling where the rows alone do.
    """
    each = point.selection.size * point.selection.dtype.itemsize
    point.refuse(rows * each, limit, what, advice)
    if point.product is None:
        point.product = Product(point)
    point.refuse(point.product.bytes + rows * each, limit, what, advice)
    return point.product


def hosted_bytes(point: Point, rows: int, /) -> int:
    """Bytes that a loop around the product needs with so many vectors; it is compiled, not run."""
    product = product_at(point, limit=float("inf"), rows=rows, what="a product")
    return product.bytes + rows * point.selection.size * point.selection.dtype.itemsize


def run_hosted(
    point: Point,
    kernel: Kernel,
    static: dict,
    dynamic: dict,
    *,
    limit: float,
    what: str,
    hosted: Callable[..., Any] | None,
    rows: int,
    advice: str = "",
    head: Any = None,
) -> Any:
    """Run a method as its loop in Python around the product that all methods share.

    Args:
        point: the loss, where.
        kernel: see `Point.run`; it runs inside of a transformation, and where `hosted` is None.
        static: options that its program depends on.
        dynamic: options that are arguments of its program.
        limit: bytes that it may need.
        what: it computes, for messages.
        hosted: `hosted(product, selection, static, dynamic)`, which gives what the kernel gives.
        rows: vectors that `hosted` keeps.
        advice: for one that needs more.
        head: which head, where the point is of one.

    Raises:
        ValueError: if it needs more memory than the limit; nothing has been run then.
    """
    if hosted is None or point.is_transformed(head, dynamic):
        return point.run(kernel, static, dynamic, limit=limit, what=what, advice=advice, head=head)
    product = product_at(point, limit=limit, rows=rows, what=what, advice=advice)
    return hosted(product, point.selection, dict(static), dynamic)
