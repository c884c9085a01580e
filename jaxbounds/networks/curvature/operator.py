"""Define `Curvature`, the Hessian of a loss as an operator; each method computes one property."""

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

    The constructor traces the loss once, so later changes of the loss do not change H. Operators of
    losses with equal traces share compiled programs, for any parameters and batches of equal
    shapes. A `Curvature` may also be made inside of `jit` and `vmap`. Checks that need the values
    of arrays, such as the check that the loss is finite, do not run inside of `jit` and `vmap`.

    Args:
        loss: a function that returns one real number, `loss(params)`, or `loss(params, batch)` if
            batches are given.
        params: any pytree, linen variables, an nnx module or state, an Equinox module. Arrays of
            real numbers are differentiated. All other leaves are held fixed, and so are statistics
            (linen's batch_stats, nnx variables other than `nnx.Param`) and the state of an optax
            optimiser. Parameters in bfloat16 are converted to float32. If a loss rounds to fewer
            digits than its parameters have (mixed precision), neither extreme eigenvalue counts as
            converged; see `Extremes.noise`.
        data: one batch (any pytree: a tuple (x, y) is one batch), or a list of batches of equal
            shape, [(x1, y1), (x2, y2)]. For a list, the mean loss needs the memory of only one
            batch. A list [x, y] of arrays of equal length is refused, since the list may mean one
            batch or two batches. `data` may also be a re-iterable of batches (a Dataset, a
            DataLoader), or a function that makes an iterator of batches. Each product then iterates
            over the batches again, one batch at a time. The least eigenvalue over one minibatch is
            usually several times more negative than the least eigenvalue over all data.
        batches: a list of batches, for batches that `data` would mistake for one batch:
            batches=[x1, x2].
        batch_size: the number of examples in a batch, if `data` is one pytree of arrays (n, ...)
            with n examples. The constructor cuts this pytree into batches.
        filter: a filter that selects parameters; all other parameters are held fixed. A filter is a
            part of the parameters' path, a pattern ("block_*/kernel"), or a sequence of such texts.
            A filter may also be a function of the path, a kind of `nnx.Variable`, or a pytree of
            booleans. If a filter is given, the matrix is the diagonal block of the selected
            parameters.
        of: the matrix: "hessian", or "ggn" for the generalised Gauss-Newton matrix of a
            `Composite`.
        memory_limit: the largest number of bytes that each call may need; `memory` returns the
            bytes of `extremes`.

    Attributes:
        size: the number of selected parameters; the matrix has shape (size, size).

    Raises:
        Refused: if the loss is not a real number, or draws random numbers from a state that it
            holds; if no parameter is left; if batches differ in shape. A method raises `Refused` if
            the loss is not finite or changes from call to call. A method also raises `Refused`
            before it runs if the method needs more memory than the limit.
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
        """Return the product with a vector (size,), or with a pytree like the parameters.

        The function finds leaves of a pytree by path. The function ignores leaves that are held
        fixed, and returns None in their place.

        Raises:
            Refused: if the vector has another length; if the pytree lacks a parameter, has an
                unknown leaf, or a leaf has another shape.
        """
        selection, shape = self._point.selection, getattr(v, "shape", None)
        flat = shape == (self.size,)
        if shape is not None and not flat and selection.places != (("",),):
            raise Refused(
                f"v.shape={shape} does not fit the matrix, which has {self.size} columns. Try a "
                f"vector of shape ({self.size},), or a pytree like the parameters"
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
        vector = jnp.asarray(v)
        if jnp.issubdtype(vector.dtype, jnp.complexfloating):
            raise Refused(
                f"v.dtype={vector.dtype} is complex, expected real numbers. Try a product with the "
                "real part of v, and another with the imaginary part"
            )
        return vector

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (size, size) of the matrix, for SciPy."""
        return self.size, self.size

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the product of the matrix with a vector, for SciPy."""
        return np.dtype(self._point.selection.dtype)

    def matvec(self, v: Any, /) -> np.ndarray:
        """Return the product with a vector (size,) or (size, 1), in NumPy.

        `scipy.sparse.linalg.aslinearoperator(H)` calls this method.

        Raises:
            Refused: if `v` holds no numbers, or has another size.
        """
        try:
            flat = np.asarray(v, self.dtype)
        except (TypeError, ValueError):
            raise Refused(
                f"v={shown(v)} is not an array of real numbers. Try an array of shape "
                f"({self.size},)"
            ) from None
        if flat.size != self.size:
            raise Refused(
                f"v.shape={flat.shape} does not fit the matrix, which has {self.size} columns. Try "
                f"a vector of shape ({self.size},)"
            )
        return np.asarray(self @ jnp.asarray(flat.reshape(self.size))).reshape(flat.shape)

    rmatvec = matvec
    """The transposed matrix times a vector, for SciPy; the matrix equals its transpose."""

    def diagonal(self, *, key: jax.Array | None = None, products: int = 30) -> Diagonal:
        """Estimate the diagonal, with the standard error of each entry.

        Args:
            key: the random key that draws the probes (random vectors); `jax.random.key(0)` unless
                given.
            products: the number n of random vectors; the error falls as 1 / sqrt(n).

        Raises:
            Refused: if the number of products with the Hessian is below 2.
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
        """Return f(H) v by Lanczos: `H.apply(lambda x: 1 / (x + 1), v)` solves (H + 1) u = v.

        Args:
            function: f, a traceable function from an array (k,) of eigenvalues to an array (k,).
            v: a vector (size,), or a pytree like the parameters.
            iterations: the number of products of the matrix with vectors.

        Raises:
            Refused: if the function is not finite at the eigenvalues that are found, there are
                fewer than 2 iterations, or v does not match the parameters.
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
        """Return the least and the greatest eigenvalue, with residuals and eigenvectors.

        The method forms the matrix for up to `dense_limit` parameters, and uses Lanczos with thick
        restarts for more. Check the result's `converged` before using the values.

        Args:
            key: the random key that draws the start vector of Lanczos; `jax.random.key(0)` unless
                given.
            iterations: the largest number of products of the matrix with vectors (two more products
                measure the residuals). Lanczos stops when both ends have converged.
            tolerance: the residual that counts as converged, relative to the largest absolute
                eigenvalue; max(1e-8, eps max(32, sqrt(size))) unless given. If the tolerance is 0,
                the method computes all `iterations` products.
            basis: the number of rows of the Krylov basis, each a vector (size,). The default is the
                larger of 32 and the number of rows that fit into 8 MiB. A basis with more rows
                needs fewer iterations.
            dense_limit: the largest number of parameters for which the matrix is formed.
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
        """Return the result of `extremes` and the mean loss at the parameters, from one program.

        Args:
            key: the random key; see `extremes`.
            iterations: the largest number of matrix-vector products; see `extremes`.
            tolerance: the residual that counts as converged; see `extremes`.
            basis: the number of vectors in the Krylov basis; see `extremes`.
            dense_limit: the largest number of parameters for a dense matrix; see `extremes`.
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
        """Return the k greatest, or k least, eigenvalues, with residuals and eigenvectors.

        The method forms the matrix for up to `dense_limit` parameters. For more parameters, Lanczos
        finds the eigenpairs. A second Lanczos run looks for eigenvalues that the first run missed,
        such as copies of a repeated eigenvalue. The second run moves the found eigenvalues to the
        other end of the spectrum. The method stores k more vectors than `extremes`, each with one
        number for each parameter.

        Args:
            k: the number of eigenvalues to compute.
            end: the end of the spectrum, "greatest" or "least".
            copies: whether the second run takes place; it costs 20 products or more.
            key: the random key; see `extremes`.
            iterations: the largest number of matrix-vector products; see `extremes`.
            tolerance: the residual that counts as converged; see `extremes`.
            basis: the number of vectors in the Krylov basis; see `extremes`.
            dense_limit: the largest number of parameters for a dense matrix; see `extremes`.
        """
        return top_at(
            self._point, k, memory_limit=self._limit, end=end, copies=copies, key=key,
            iterations=iterations, tolerance=tolerance, basis=basis, dense_limit=dense_limit,
        )  # fmt: skip

    def trace(
        self, *, key: jax.Array | None = None, products: int = 30, method: Method = "auto"
    ) -> Trace:
        """Estimate the trace, with its standard error.

        "hutchinson" uses only random vectors (probes). "krylov" computes the trace on the Krylov
        space of `extremes` exactly, with four fifths of the products (Chen and Hallman, SIAM J.
        Matrix Anal. Appl. 44, 2023). The last fifth of the products estimates the trace outside
        this space, with probes. A call of `extremes` with an equal key shares the products of the
        Krylov space. "krylov" is accurate if few eigenvalues hold most of the Frobenius norm, as
        for Hessians of networks. "hutch++" spends two thirds of the products on a sketch (a random
        subspace) and the exact trace in the sketch. The last third are probes outside the sketch
        (Meyer, Musco, Musco, Woodruff, SOSA 2021). "auto" means "hutchinson" below 15 products, or
        if a sketch exceeds 256 MiB. In all other cases "auto" means "hutch++" inside of `jit` and
        "krylov" outside.

        Args:
            key: the random key that draws the probes (random vectors); `jax.random.key(0)` unless
                given.
            products: the number of products of the matrix with vectors, which includes the shared
                products.
            method: the name of the method, "auto", "hutchinson", "hutch++" or "krylov".

        Raises:
            Refused: if the method is unknown, or there are too few products for a standard error
                ("hutchinson" needs 2, "hutch++" 6 and "krylov" 10).
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
        """Estimate the density of the eigenvalues, as nodes and weights.

        The method computes `probes * iterations` products. A call of `extremes` with an equal key
        shares the products of the first random vector (probe). The method orthogonalises the Krylov
        basis if the basis fits into 256 MiB.

        Args:
            key: the random key that draws the probes (random vectors); `jax.random.key(0)` unless
                given.
            probes: the number n of random vectors; the error falls as 1 / sqrt(n). The default is
                4; for 100,000 parameters or more it is 1, because one vector then gives a small
                error.
            iterations: the number of quadrature nodes of each probe (random vector). The default is
                60, or the number of rows of the basis of `extremes` if that number is smaller (32
                for many parameters). More nodes resolve the density more finely.

        Raises:
            Refused: if the number of probes (random vectors) or of iterations is below 1.
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
        """Return lower estimates of -lambda_min / L and of kappa, at this point and on these data.

        Args:
            heads: the number H of heads of the network, 1 unless given. A mapping from a pattern of
                paths to the axis that runs over the heads adds `by_head` to the result.
                `head_axes(params)` finds the axes of Flax's attention.
            kappa: the constant kappa of the tested condition lambda_min >= -kappa L / sqrt(H).
            key: the random key; see `extremes`.
            iterations: the largest number of products of the matrix with vectors.
            tolerance: the residual that counts as converged, relative to the largest absolute
                eigenvalue. The default is 8 eps, because lambda_min is much smaller than lambda_max
                late in training.
            basis: the number of vectors in the Krylov basis; see `extremes`.
            dense_limit: the largest number of parameters for a dense matrix; see `extremes`.

        Raises:
            Refused: if the loss is not positive, or `heads` is neither a number nor a mapping.
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
        """Return a dictionary from each diagonal block's name to the block's extreme eigenvalues.

        Args:
            blocks: a dictionary from each block's name to a filter that selects the block's
                parameters, as {"first": "block_0"}.
            heads: a mapping from a pattern of paths to the axis that runs over the heads. If
                `heads` is given, the result also has a block for each head, with the names "head
                0", "head 1", ... `head_axes(params)` finds the axes of Flax's attention.
            key: the random key; see `extremes`.
            iterations: the largest number of matrix-vector products; see `extremes`.
            tolerance: the residual that counts as converged; see `extremes`.
            basis: the number of vectors in the Krylov basis; see `extremes`.
            dense_limit: the largest number of parameters for a dense matrix; see `extremes`.

        Raises:
            Refused: if a block of the Hessian has no parameter. The error message names the nearest
                paths of parameters.
        """
        if blocks is None and heads is None:
            raise Refused("blocks=None and heads=None name no block. Try blocks={'name': 'a path'}")
        if not isinstance(blocks or {}, Mapping):
            raise Refused(
                f"blocks must be a dict from names of blocks to filters, got {blocks!r}. Try "
                f"{{'name': 'a path'}}"
            )
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
        """Return the matrix over the ravelled parameters, leaf by leaf in the pytree's order.

        The method computes `columns` columns at a time, so the peak of memory is the matrix plus
        `columns` gradients. The method returns the mean of the matrix and its transpose, which is
        symmetric. Parameters that are held fixed have no rows or columns.

        Args:
            limit_bytes: the largest number of bytes that the matrix may need.
            columns: the number of columns that the method computes at a time.

        Raises:
            Refused: if the matrix needs more than `limit_bytes`; nothing is allocated in that case.
        """
        return dense_at(self._point, limit_bytes=limit_bytes, columns=columns)

    def memory(self, *, basis: int | None = None, dense_limit: int = DENSE_LIMIT) -> int:
        """Return the bytes that `extremes` with these options needs, parameters and data included.

        The method compiles the program, and does not run it.

        Args:
            basis: the number of vectors in the Krylov basis; see `extremes`.
            dense_limit: the largest number of parameters for a dense matrix; see `extremes`.
        """
        return memory_at(self._point, basis=basis, dense_limit=dense_limit)

    def _table(self) -> Table:
        name = {"hessian": "Hessian", "ggn": "Gauss-Newton matrix"}[self._point.of]
        streamed = self._point.stream is not None
        mean = "over a stream" if streamed else told(self._point.arguments[2])
        of = f"{self.size:,} parameters in {self._point.selection.dtype.name}"
        return Table(f"{name} of {of}, {mean}")
