"""Multiply a loss's Hessian by vectors, with a program compiled once and called in Python loops.

The product takes long to compile and the steps of Lanczos do not, so this module compiles the
product alone. For one batch, a first program linearises the gradient, and a second program
evaluates the linear map. For several batches, each product differentiates the loss again, one batch
after the other, in the memory of one batch.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.ground.jax_internals import Jaxpr, Literal, programs_inside
from jaxbounds.networks.curvature.batches import count, single
from jaxbounds.networks.curvature.causes import explained
from jaxbounds.networks.curvature.lanczos import Operator
from jaxbounds.networks.curvature.leaves import Selection
from jaxbounds.networks.curvature.products import Problem
from jaxbounds.networks.curvature.programs import Kernel, Point, Program, bytes_of_program
from jaxbounds.networks.curvature.shared import Run
from jaxbounds.networks.curvature.streams import StreamedProduct, shape_of
from jaxbounds.networks.curvature.traced import Part
from jaxbounds.programs.traces import equations

SHORT = 8
"""The factor that decides whether a block of parameters gets a compiled program of its own.

A block gets its own program if this program has fewer equations than the program for all
parameters, divided by this factor. A larger factor means that fewer programs are compiled, and that
products with blocks are slower.
"""


_masked = jax.jit(jnp.multiply)


def _whole(problem: Problem, static: dict, dynamic: dict) -> tuple[Array, Array]:
    return problem.image_and_value(dynamic["vector"])


def _of_leaves(selection: Selection, linear: Part) -> Callable[..., Array]:

    def apply(held: list[Any], vector: Array) -> Array:
        return selection.vector(linear.at(held, _cut(selection, vector)))

    return apply


def _cut(selection: Selection, vector: Array) -> list[Array]:
    dtypes = [entry[2] for entry in selection.chosen if entry]
    return [piece.astype(d) for piece, d in zip(selection.pieces(vector), dtypes)]


def _of_block(
    selection: Selection, linear: Part, taken: tuple[bool, ...], block: Selection | None
) -> Callable[..., Array]:
    """Differentiate a linear map along the block's leaves; the derivative is the map itself.

    The derivative omits equations that depend only on leaves outside the block. The result is a map
    on vectors of all parameters if `block` is None.
    """
    entries = [entry for entry in selection.chosen if entry]
    zero = lambda entry: jnp.zeros(entry[1], entry[2])

    def apply(held: list[Any], vector: Array) -> Array:
        if block is None:
            own = [p for p, inside in zip(_cut(selection, vector), taken) if inside]
        else:
            own = _cut(block, vector)

        def image(own: list[Array]) -> list[Array]:
            left = iter(own)
            leaves = [next(left) if t else zero(e) for e, t in zip(entries, taken)]
            return [x for x, inside in zip(linear.at(held, leaves), taken) if inside]

        images = jax.jvp(image, (own,), (own,))[1]
        if block is not None:
            return block.vector(images)
        found = iter(images)
        return selection.vector([next(found) if t else zero(e) for e, t in zip(entries, taken)])

    return apply


class Linear:
    """Two programs for a batch: one linearises the gradient, one evaluates the linear map."""

    def __init__(self, point: Point) -> None:
        self._map: Part | None = None
        self._selection = point.selection

        def prepare(problem: Problem, static: dict, dynamic: dict) -> tuple[Array, list[Array]]:
            self._map, held = Part.of(problem.leafwise(), problem.own)
            return problem.value(), held

        self._prepare = point.program(prepare, ())
        self._compiled: dict[Any, tuple[Any, int]] = {}

    def at(self, arguments: tuple, /) -> "Mapped":
        """Linearise the gradient; return the linear map, the loss and the bytes of a product."""
        program, first = self._prepare.compiled(arguments)
        value, held = program(*arguments)
        mark = self._prepare.mark(arguments)
        if mark not in self._compiled:
            assert self._map is not None
            self._compiled[mark] = self._made(_of_leaves(self._selection, self._map), held)
        apply, second = self._compiled[mark]
        return Mapped(lambda v: apply(held, v), value, max(first, second), mark, held)

    def _made(
        self, apply: Callable, held: list[Any], of: Selection | None = None
    ) -> tuple[Any, int]:
        of = of or self._selection
        with explained(None, differentiated=True):
            lowered = jax.jit(apply).lower(held, jax.ShapeDtypeStruct((of.size,), of.dtype))
        compiled = lowered.compile()
        return compiled, bytes_of_program(compiled)

    def block(
        self, mapped: "Mapped", taken: tuple[bool, ...], block: Selection | None
    ) -> Callable[[Array], Array] | None:
        """Return the map of a diagonal block if the program for this block is short, else None.

        For each leaf of the parameters, `taken` says whether the block contains the leaf. If
        `block` is None, the map takes vectors of all parameters.
        """
        mark = (mapped.mark, taken, block is None)
        if mark not in self._compiled:
            assert self._map is not None
            every = (True,) * len(taken)
            program = self._map.closed.jaxpr
            short = SHORT * _length(program, taken) < _length(program, every)
            apply = _of_block(self._selection, self._map, taken, block)
            self._compiled[mark] = self._made(apply, mapped.held, block) if short else (None, 0)
        run = self._compiled[mark][0]
        return None if run is None else lambda v: run(mapped.held, v)


def _length(program: Jaxpr, taken: tuple[bool, ...]) -> int:
    reached = {v for v, inside in zip(program.invars, taken) if inside}
    named = lambda variables: {v for v in variables if not isinstance(v, Literal)}
    passed = []
    for eqn in program.eqns:
        if reached & named(eqn.invars):
            passed.append(eqn)
            reached |= set(eqn.outvars)
    needed = named(v for v, inside in zip(program.outvars, taken) if inside)
    found = 0
    for eqn in reversed(passed):
        if needed & set(eqn.outvars):
            needed |= named(eqn.invars)
            found += 1 + sum(1 for inner in programs_inside(eqn) for _ in equations(inner))
    return found


class Mapped(NamedTuple):
    """The Hessian (or Gauss-Newton matrix) at a point, as a linear map.

    Attributes:
        apply: the matrix as a map: vector -> matrix times vector.
        mark: the key under which the cache stores the map's compiled program.
        held: the arrays that the linearisation computed, which are inputs of the map's program.
    """

    apply: Callable[[Array], Array]
    value: Array
    bytes: int
    mark: Any
    held: list[Any]


def _streamed(point: Point, zero: Array) -> tuple[Callable[[Array], Array], Array, int]:
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
    """The product of a vector with the Hessian (or Gauss-Newton matrix) at a point, as a function.

    Attributes:
        bytes: the bytes of memory that one product needs, with parameters and data.
    """

    def __init__(self, point: Point) -> None:
        zero = jnp.zeros(point.selection.size, point.selection.dtype)
        self._ones = jnp.ones_like(zero)
        self._run: tuple[Any, Run] | None = None
        self._linear: tuple[Linear, Mapped] | None = None
        if point.stream is not None:
            self._apply, self.value, self.bytes = _streamed(point, zero)
            return
        groups = point.arguments[2]
        if groups is None or count(groups) == 1:
            linear: Linear = point.kept("linear", lambda: Linear(point))
            mapped = linear.at(point.program_arguments({}))
            self._apply, self.value, self.bytes = mapped.apply, mapped.value, mapped.bytes
            self._linear = linear, mapped
            return
        program: Program = point.made(_whole, {})
        run, self.bytes = program.compiled(point.program_arguments({"vector": zero}))
        both = lambda v: run(*point.program_arguments({"vector": v}))
        self._apply = lambda v: both(v)[0]
        self.value = both(zero)[1]

    def __call__(self, vector: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return the matrix times a vector."""
        return self._apply(vector)

    def run(self, key: jax.Array, rows: int, /) -> Run:
        """Return the Krylov run (Lanczos) from a random vector; store the run for later methods."""
        mark = np.asarray(jax.random.key_data(key)).tobytes(), rows
        kept = self._run
        if kept is None or kept[0] != mark or kept[1].is_restarted:
            kept = self._run = mark, self.fresh_run(self, key, rows)
        return kept[1]

    def fresh_run(self, operator: Operator, key: jax.Array, rows: int, /) -> Run:
        """Return a new Krylov run of another operator, which the engine does not store."""
        return Run(operator, key, rows, dtype=self._ones.dtype, mask=self._ones)

    def forget(self) -> None:
        """Drop the stored Krylov run (Lanczos factorisation) and free its memory."""
        self._run = None

    @property
    def held_rows(self) -> int:
        """Return the number of stored vectors: one mask and the vectors of the last Krylov run."""
        return 1 + (0 if self._run is None else self._run[1].rows + 1)

    def block(self, taken: tuple[bool, ...], mask: Array, /) -> Operator:
        """Return the operator that multiplies vectors of all parameters by a diagonal block.

        For each leaf of the parameters, `taken` says whether the block contains the leaf. `mask` is
        1 for each parameter of the block, and 0 elsewhere.
        """
        if self._linear is not None:
            linear, mapped = self._linear
            own = linear.block(mapped, taken, None)
            if own is not None:
                return own
        return lambda vector: _masked(self._apply(vector), mask)

    def short_block(self, taken: tuple[bool, ...], block: Selection, /) -> Operator | None:
        """Return the operator that multiplies vectors of one block by this diagonal block.

        The result is None if the program for the block is not much shorter than the program for the
        whole matrix.
        """
        if self._linear is None:
            return None
        linear, mapped = self._linear
        return linear.block(mapped, taken, block)


def product_at(point: Point, /, *, limit: float, rows: int, what: str, advice: str = "") -> Product:
    """Return the function that multiplies vectors by the Hessian at a point.

    The first call compiles the product, and later calls reuse it. No transformation of JAX may
    trace the point. `limit` is the number of bytes for the product and the caller's `rows` vectors.

    Raises:
        Refused: if the product and the `rows` vectors need more memory than the limit. If the
            `rows` vectors alone need more memory than the limit, the function compiles nothing.
    """
    each = point.selection.size * point.selection.dtype.itemsize
    point.refuse(rows * each, limit, what, advice)
    if point.product is None:
        point.product = Product(point)
    need = point.product.bytes + rows * each
    if need + point.product.held_rows * each > limit:
        point.product.forget()
    point.refuse(need, limit, what, advice)
    return point.product


def hosted_bytes(point: Point, rows: int, /) -> int:
    """Return the bytes that a product and `rows` vectors need; the product is compiled, not run."""
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
    """Run a method as a Python loop around a compiled matrix-vector product, or as one program.

    The loop is `hosted(product, selection, static, dynamic)`, which holds `rows` vectors. The
    program `kernel` returns the same results; it runs if `hosted` is None, or if JAX traces
    `point`. The program is compiled for the `static` options, and takes the `dynamic` options as
    arguments. `limit` is a number of bytes.

    Raises:
        Refused: if the method needs more bytes than the memory limit; nothing runs in that case.
    """
    if hosted is None or point.is_transformed(head, dynamic):
        return point.run(kernel, static, dynamic, limit=limit, what=what, advice=advice, head=head)
    product = product_at(point, limit=limit, rows=rows, what=what, advice=advice)
    return hosted(product, point.selection, dict(static), dynamic)
