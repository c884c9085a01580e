"""The Hessian of a loss as an operator, and what one asks of it."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.memory import LIMIT
from jaxbounds.ground.tables import Table, with_table
from jaxbounds.networks.curvature.batches import named, told
from jaxbounds.networks.curvature.blocks import block_at
from jaxbounds.networks.curvature.convexity import WeakConvexity, weak_convexity_at
from jaxbounds.networks.curvature.diagonal import Applied, Diagonal, applied_at, diagonal_at
from jaxbounds.networks.curvature.engine import run_hosted
from jaxbounds.networks.curvature.extremes import DENSE_LIMIT, dense_at, extremes_at, memory_at
from jaxbounds.networks.curvature.filters import Filter
from jaxbounds.networks.curvature.lanczos import Extremes
from jaxbounds.networks.curvature.paths import Params
from jaxbounds.networks.curvature.products import Loss, Of, Problem
from jaxbounds.networks.curvature.programs import Point
from jaxbounds.networks.curvature.spectrum import Spectrum, spectrum_at
from jaxbounds.networks.curvature.top import End, Top, top_at
from jaxbounds.networks.curvature.trace import Method, Trace, trace_at
from jaxbounds.networks.options import number, shown


def _product_kernel(problem: Problem, static: dict, dynamic: dict) -> Float[Array, " n"]:
    return problem.operator()(dynamic["vector"])


@with_table
class Curvature:
    """The Hessian, or the Gauss-Newton matrix, of a loss at a point, averaged over batches.

    ```python
    H = jb.Curvature(loss, params, batches)
    H.extremes(), H.trace(), H.spectrum(), H.weak_convexity(kappa=1.0), H.top(5), H @ v
    ```

    The loss is traced once, here: H is of the loss as it was when H was made. What is compiled
    serves all operators whose trace is the same, with other numbers, parameters and batches of
    those shapes. It may also be made inside of `jit` and `vmap`, where what needs values is not
    checked.

    Args:
        loss: `loss(params)`, or `loss(params, batch)` where batches are given: one real number.
        params: any pytree, linen variables, an nnx module or state, an Equinox module. Arrays of
            real numbers are differentiated, all else is held fixed, and so are statistics (linen's
            batch_stats, nnx variables other than `nnx.Param`) and the state of an optax optimiser;
            bfloat16 parameters compute in float32. A loss that rounds to fewer digits than its
            parameters have (mixed precision) never converges: see `Extremes.noise`.
        data: one batch (any pytree: a tuple (x, y) is one), or a list of batches of one shape,
            [(x1, y1), (x2, y2)], whose losses are averaged in the memory of one of them. A list
            [x, y] of arrays of one length is refused, since it may be either. A re-iterable of
            batches (a Dataset, a DataLoader), or a function that makes an iterator of batches, is
            read again at each product, one batch at a time. The extremes of one
            minibatch are not those of the data: its least eigenvalue is as a rule several times too
            negative.
        batches: the batches, where they would be mistaken for one: batches=[x1, x2].
        batch_size: cuts one pytree of examples (n, ...) into batches instead.
        filter: which parameters, the rest held fixed: a part of their path or a pattern
            ("attention", "block_*/kernel"), several, a function of the path, a kind of
            `nnx.Variable`, or a mask (a pytree of booleans). The matrix is then that block.
        of: "hessian", or "ggn" (then `loss` is a `Composite`).
        memory_limit: in bytes, for each call; `memory` says what one needs.

    Attributes:
        size: parameters: the matrix is (size, size).

    Raises:
        Refused: if the loss is no real number, or draws random numbers from a state that it
            holds; if no parameter is left; if batches differ in shape. From the methods: if the
            loss is not finite, or another one at each call, or a call needs more memory than the
            limit (nothing has been run then).
    """

    def __init__(
        self,
        loss: Loss,
        params: Params,
        data: Any = None,
        *,
        batches: Any = None,
        batch_size: int | None = None,
        filter: Filter | None = None,
        of: Of = "hessian",
        memory_limit: float = LIMIT,
    ) -> None:
        self._limit = number("memory_limit", memory_limit, example="4e9, in bytes")
        data = named(data, batches)
        self._at = functools.partial(Point, loss, params, data, batch_size=batch_size, of=of)
        self._point = self._at(filter=filter)
        self.size = self._point.selection.size

    def __matmul__(self, v: Any) -> Any:
        """The product with a vector (size,), or with a pytree like the parameters.

        Leaves of a pytree are found by path. Leaves that were held fixed are ignored, and None
        comes in their place.

        Raises:
            Refused: if the vector has another length; if the pytree lacks a parameter, has an
                unknown leaf, or a leaf has another shape.
        """
        selection, shape = self._point.selection, getattr(v, "shape", None)
        flat = shape == (self.size,)
        if shape is not None and not flat and selection.places != (("",),):
            raise Refused(
                f"v has shape {shape}, and the matrix has {self.size} columns. Try a vector "
                f"({self.size},), or a pytree like the parameters"
            )
        vector = self._real(v) if flat else selection.vector_of(v)
        vector = vector.astype(selection.dtype)
        image = run_hosted(
            self._point, _product_kernel, {}, {"vector": vector}, limit=self._limit,
            what="a product with the Hessian", rows=2,
            hosted=lambda product, selection, static, dynamic: product(dynamic["vector"]),
        )  # fmt: skip
        if not isinstance(vector, jax.core.Tracer) and jnp.any(vector != 0):
            self._point.refuse_constant(image)
        return image if flat else selection.tree(image)

    @staticmethod
    def _real(v: Any) -> Array:
        """Refuse a vector that is none of real numbers."""
        vector = jnp.asarray(v)
        if jnp.issubdtype(vector.dtype, jnp.complexfloating):
            raise Refused(f"v.dtype={vector.dtype} is complex. Try its real and imaginary parts")
        return vector

    @property
    def shape(self) -> tuple[int, int]:
        """(size, size), for SciPy."""
        return self.size, self.size

    @property
    def dtype(self) -> np.dtype:
        """The dtype of a product, for SciPy."""
        return np.dtype(self._point.selection.dtype)

    def matvec(self, v: Any, /) -> np.ndarray:
        """The product with a vector (size,) or (size, 1) in NumPy.

        `scipy.sparse.linalg.aslinearoperator(H)` asks for it.

        Raises:
            Refused: if `v` holds no numbers, or has another size.
        """
        try:
            flat = np.asarray(v, self.dtype)
        except (TypeError, ValueError):
            raise Refused(
                f"v={shown(v)} is no array of numbers. Try an array ({self.size},)"
            ) from None
        if flat.size != self.size:
            raise Refused(
                f"v.shape={flat.shape}, and the matrix has {self.size} columns. Try a vector "
                f"({self.size},)"
            )
        return np.asarray(self @ jnp.asarray(flat.reshape(self.size))).reshape(flat.shape)

    rmatvec = matvec
    """The matrix is symmetric."""

    def diagonal(self, *, key: jax.Array | None = None, products: int = 30) -> Diagonal:
        """The diagonal, with the standard error of each entry.

        Args:
            key: draws the probes; `jax.random.key(0)` unless given.
            products: random vectors; the error falls as their root.

        Raises:
            Refused: if there are fewer than 2 products.
        """
        return diagonal_at(self._point, memory_limit=self._limit, key=key, products=products)

    def apply(
        self,
        function: Callable[[Float[Array, " k"]], Float[Array, " k"]],
        v: Any,
        /,
        *,
        iterations: int = 60,
    ) -> Applied:
        """f(H) v by Lanczos from v, as `H.apply(lambda x: 1 / (x + 1), v)` solves (H + 1) u = v.

        Args:
            function: of eigenvalues (k,), traceable.
            v: a vector (size,), or a pytree like the parameters.
            iterations: products.

        Raises:
            Refused: if the function is not finite at the eigenvalues that are found, there are
                fewer than 2 iterations, or v is not like the parameters.
        """
        selection, flat = self._point.selection, getattr(v, "shape", None) == (self.size,)
        vector = self._real(v) if flat else selection.vector_of(v)
        value, error, k = applied_at(
            self._point, function, vector.astype(selection.dtype), memory_limit=self._limit,
            iterations=iterations,
        )  # fmt: skip
        return Applied(value if flat else selection.tree(value), float(error), k)

    def extremes(
        self,
        *,
        key: jax.Array | None = None,
        iterations: int = 200,
        tolerance: float | None = None,
        basis: int | None = None,
        dense_limit: int = DENSE_LIMIT,
    ) -> Extremes:
        """The least and the greatest eigenvalue, with residuals and eigenvectors.

        Dense up to `dense_limit` parameters, Lanczos with thick restarts beyond. Look at
        `converged` before using the values.

        Args:
            key: starts Lanczos; `jax.random.key(0)` unless given.
            iterations: products at most (two more measure the residuals); it stops when both ends
                have converged.
            tolerance: of the residuals, relative to the spectral scale; max(1e-8, eps max(32,
                sqrt(size))) unless given. 0 does all iterations.
            basis: rows of the Krylov basis, each as long as the parameters; unless given 32, or
                what 8 MiB hold. More rows, fewer iterations.
            dense_limit: see above.
        """
        return self.extremes_and_loss(
            key=key, iterations=iterations, tolerance=tolerance, basis=basis,
            dense_limit=dense_limit,
        )[0]  # fmt: skip

    def extremes_and_loss(
        self,
        *,
        key: jax.Array | None = None,
        iterations: int = 200,
        tolerance: float | None = None,
        basis: int | None = None,
        dense_limit: int = DENSE_LIMIT,
    ) -> tuple[Extremes, Float[Array, ""]]:
        """`extremes` and the mean loss at the same point, from one program.

        Args:
            key: see `extremes`.
            iterations: see `extremes`.
            tolerance: see `extremes`.
            basis: see `extremes`.
            dense_limit: see `extremes`.
        """
        return extremes_at(
            self._point, memory_limit=self._limit, key=key, iterations=iterations,
            tolerance=tolerance, basis=basis, dense_limit=dense_limit,
        )  # fmt: skip

    def top(
        self,
        k: int,
        *,
        end: End = "greatest",
        copies: bool = True,
        key: jax.Array | None = None,
        iterations: int = 200,
        tolerance: float | None = None,
        basis: int | None = None,
        dense_limit: int = DENSE_LIMIT,
    ) -> Top:
        """The k greatest, or k least, eigenvalues, with residuals and eigenvectors.

        Dense up to `dense_limit` parameters; beyond, Lanczos finds one after the other, those
        before moved to the other end. It holds k more vectors as long as the parameters.

        Args:
            k: how many.
            end: "greatest" or "least".
            copies: whether a second run looks for eigenvalues that the first one has passed over,
                as it does with copies of one eigenvalue. The second run costs 20 products or more.
            key: see `extremes`.
            iterations: see `extremes`.
            tolerance: see `extremes`.
            basis: see `extremes`.
            dense_limit: see `extremes`.
        """
        return top_at(
            self._point, k, memory_limit=self._limit, end=end, copies=copies, key=key,
            iterations=iterations, tolerance=tolerance, basis=basis, dense_limit=dense_limit,
        )  # fmt: skip

    def trace(
        self, *, key: jax.Array | None = None, products: int = 30, method: Method = "auto"
    ) -> Trace:
        """The trace, with its standard error.

        From 15 products on, "auto" takes the Krylov space of `extremes` (Chen and Hallman, SIAM J.
        Matrix Anal. Appl. 44, 2023): the trace in the space is exact, four fifths of the products
        span it, and a run of `extremes` with the same key has made them. The others are probes of
        the rest. It pays where few eigenvalues hold most of the Frobenius norm, as Hessians of
        networks do. "hutch++" (Meyer, Musco, Musco, Woodruff, SOSA 2021) spends a third of the
        products on a sketch, a third on its exact part and a third on probes of the rest; "auto"
        takes it inside of `jit`. Below 15 products, or where a sketch exceeds 256 MiB, "auto" is
        "hutchinson".

        Args:
            key: draws the probes; `jax.random.key(0)` unless given.
            products: in all.
            method: "auto", "hutchinson", "hutch++" or "krylov".

        Raises:
            Refused: if the method is unknown, or there are too few products for a standard error
                (2, of Hutch++ 6, of Krylov 10).
        """
        return trace_at(
            self._point, memory_limit=self._limit, key=key, products=products, method=method
        )

    def spectrum(
        self,
        *,
        key: jax.Array | None = None,
        probes: int | None = None,
        iterations: int | None = None,
    ) -> Spectrum:
        """The density of the eigenvalues, as nodes and weights.

        `probes * iterations` products; the first probe is the run of `extremes` with this key. The
        basis is orthogonalised while it takes at most 256 MiB.

        Args:
            key: draws the probes; `jax.random.key(0)` unless given.
            probes: random vectors; the error falls as their root. Unless given 4, and 1 from
                100,000 parameters on, whose number makes the error small.
            iterations: nodes for each; 60 unless given, or the rows of the basis of `extremes`
                where it has fewer (32 for many parameters). More resolve the density more finely.

        Raises:
            Refused: if probes or iterations is below 1.
        """
        return spectrum_at(
            self._point, memory_limit=self._limit, key=key, probes=probes, iterations=iterations
        )

    def weak_convexity(
        self,
        *,
        heads: int | Mapping[str, int] | None = None,
        kappa: float | None = None,
        key: jax.Array | None = None,
        iterations: int = 200,
        tolerance: float | None = None,
        basis: int | None = None,
        dense_limit: int = DENSE_LIMIT,
    ) -> WeakConvexity:
        """Lower estimates of -lambda_min / L and of kappa, at this point and on these data.

        Args:
            heads: H, or the axis of the heads for each pattern of a path (`head_axes(params)` finds
                those of Flax's attention), which also gives `by_head`; 1 unless given.
            kappa: of the condition that is tested, lambda_min >= -kappa L / sqrt(H).
            key: see `extremes`.
            iterations: products at most.
            tolerance: of the residuals relative to the spectral scale. Unless given, 8 eps: late in
                training lambda_min is small beside lambda_max.
            basis: see `extremes`.
            dense_limit: see `extremes`.

        Raises:
            Refused: if the loss is not positive, or `heads` no number.
        """
        return weak_convexity_at(
            self._point, memory_limit=self._limit, heads=heads, kappa=kappa, key=key,
            iterations=iterations, tolerance=tolerance, basis=basis, dense_limit=dense_limit,
        )  # fmt: skip

    def blocks(
        self,
        blocks: Mapping[str, Filter] | None = None,
        *,
        heads: Mapping[str, int] | None = None,
        key: jax.Array | None = None,
        iterations: int = 200,
        tolerance: float | None = None,
        basis: int | None = None,
        dense_limit: int = DENSE_LIMIT,
    ) -> dict[str, Extremes]:
        """The extremes of diagonal blocks, by name.

        Args:
            blocks: for each name which parameters ({"attention": "attention", "first": "block_0"}).
            heads: the axis of the heads for each pattern of a path; adds the blocks "head 0", "head
                1", ... of the parameters of each head. `head_axes(params)` finds those of Flax's
                attention.
            key: see `extremes`.
            iterations: see `extremes`.
            tolerance: see `extremes`.
            basis: see `extremes`.
            dense_limit: see `extremes`.

        Raises:
            Refused: if a block matches nothing (the nearest paths are named).
        """
        if blocks is None and heads is None:
            raise Refused("blocks=None and heads=None name no block. Try blocks={'name': 'a path'}")
        if not isinstance(blocks or {}, Mapping):
            raise Refused(f"blocks must give a filter for each name, got {blocks!r}")
        found = {
            name: block_at(
                self._point, self._at, chosen, memory_limit=self._limit, key=key,
                iterations=iterations, tolerance=tolerance, basis=basis, dense_limit=dense_limit,
            )[0]
            for name, chosen in (blocks or {}).items()
        }  # fmt: skip
        if heads:
            one = self._at(heads=heads)
            for head in range(one.selection.heads or 0):
                found[f"head {head}"] = extremes_at(
                    one, head=head, memory_limit=self._limit, key=key, iterations=iterations,
                    tolerance=tolerance, basis=basis, dense_limit=dense_limit,
                )[0]  # fmt: skip
        return found

    def dense(self, *, limit_bytes: float = 2**30, columns: int = 64) -> Float[Array, "P P"]:
        """The matrix over the ravelled parameters, leaf by leaf in the pytree's order.

        Columns are computed `columns` at a time, so that the peak is the matrix itself plus that
        many gradients. The result is symmetrised; fixed leaves have no rows.

        Args:
            limit_bytes: of the matrix.
            columns: at a time.

        Raises:
            Refused: if the matrix needs more than `limit_bytes`; nothing was allocated then.
        """
        return dense_at(self._point, limit_bytes=limit_bytes, columns=columns)

    def memory(self, *, basis: int | None = None, dense_limit: int = DENSE_LIMIT) -> int:
        """Bytes that `extremes` with these options needs, parameters and data included.

        The program is compiled, and not run.

        Args:
            basis: see `extremes`.
            dense_limit: see `extremes`.
        """
        return memory_at(self._point, basis=basis, dense_limit=dense_limit)

    def _table(self) -> Table:
        name = {"hessian": "Hessian", "ggn": "Gauss-Newton matrix"}[self._point.of]
        streamed = self._point.stream is not None
        mean = "over a stream" if streamed else told(self._point.arguments[2])
        of = f"{self.size:,} parameters in {self._point.selection.dtype.name}"
        return Table(f"{name} of {of}, {mean}")
