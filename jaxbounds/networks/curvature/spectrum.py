"""Estimate the density of a Hessian's eigenvalues by stochastic Lanczos quadrature.

For a random unit vector v, k Lanczos steps give the Gauss quadrature of the measure v^T delta(x -
A) v (Golub and Welsch). The nodes are the Ritz values (eigenvalues of the k x k Lanczos matrix),
and the weights are the squared first components of its eigenvectors. The mean of the measure v^T
delta(x - A) v over v is the density of the eigenvalues of A.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.tables import Table, number, with_table
from jaxbounds.networks.curvature.engine import run_hosted
from jaxbounds.networks.curvature.lanczos import _ritz, _unit, default_basis, started, steps
from jaxbounds.networks.curvature.products import Problem
from jaxbounds.networks.curvature.programs import Point, as_key
from jaxbounds.networks.options import function as as_function
from jaxbounds.networks.options import number as as_number
from jaxbounds.networks.options import shown, whole

PROBES = 4
"""The number n of random vectors that `spectrum` draws by default. A larger number costs more
products, and the error falls as 1 / sqrt(n)."""

MANY = 100_000
"""The number of parameters at or above which `spectrum` draws one random vector by default. A
larger number lets `spectrum` draw more vectors for large networks, although one vector already
gives a small error.
"""

ITERATIONS = 60
"""The default of the largest number of nodes that `spectrum` computes for a random vector. A larger
number of nodes resolves the density more finely, and costs more products."""

STORED_BYTES = 256 * 2**20
"""`spectrum` keeps the Krylov basis, and orthogonalises against it, up to this size in bytes.

A larger size needs more memory, and avoids spurious copies of converged eigenvalues for larger
networks.
"""


@with_table
class Spectrum(NamedTuple):
    """The nodes and weights of the quadrature; the weights of each random vector sum to one.

    Attributes:
        nodes: the Ritz values for each probe, of shape (probes, k).
        weights: the weight of each quadrature node, of shape (probes, k).
        size: the number of parameters, which is the number of eigenvalues.
        residuals: the residual norm ||A u - node u|| for the unit Ritz vector u of each node, of
            shape (probes, k). The residual measures the spread of the eigenvalues that the node
            represents. None means that all residuals are 0 and each node is an eigenvalue.
    """

    nodes: Float[Array, "probes k"]
    weights: Float[Array, "probes k"]
    size: int
    residuals: Float[Array, "probes k"] | None = None

    def share_below(self, x: float) -> tuple[float, float]:
        """Return the share of eigenvalues below `x`, and its error.

        A quadrature node stands for several eigenvalues near it; their variance is r^2, where r is
        the node's residual. If the node lies at the distance d from `x`, at most the fraction r^2 /
        (r^2 + d^2) of the node's weight lies beyond `x` (Cantelli's inequality). The method counts
        half of the fraction r^2 / (r^2 + d^2) on each side of `x`. The returned error combines two
        errors: the sum over the nodes of half of this fraction of the weight, and the standard
        error over the probes. For a single probe, the method estimates the standard error from the
        nodes and weights of this probe.

        Raises:
            Refused: if `x` is not a real number.
        """
        x = as_number("x", x, example="0.0")
        nodes, weights = (np.asarray(a, np.float64) for a in (self.nodes, self.weights))
        residuals = 0.0 if self.residuals is None else np.asarray(self.residuals, np.float64)
        weights = weights / weights.sum(axis=1, keepdims=True)
        # The rounding error of a node.
        unit = 4 * float(jnp.finfo(self.nodes.dtype).eps)
        spread = residuals + unit * np.abs(nodes).max(axis=1, keepdims=True)
        if self.residuals is None:
            spread = np.zeros_like(nodes)
        beyond = weights * spread**2 / np.maximum(spread**2 + (nodes - x) ** 2, 1e-300) / 2
        shares = np.sum(np.where(nodes < x, weights - beyond, beyond), axis=1)
        half = float(np.mean(np.sum(beyond, axis=1)))
        share = float(shares.mean())
        error = _error(shares) if len(shares) > 1 else self._of_one(share, share)
        return share, float(np.hypot(error, half))

    def _of_one(self, first: float, second: float) -> float:
        """Return the standard error of one probe (a random direction), from the means of f and f^2.

        A random direction in n dimensions gives an estimate of the mean of f over the n
        eigenvalues. The variance of this estimate is 2 / (n + 2) times the variance of f over the
        eigenvalues.
        """
        return float(np.sqrt(2 / (self.size + 2) * max(second - first**2, 0.0)))

    def _mean(self, values: np.ndarray) -> tuple[float, float]:
        weights = np.asarray(self.weights, np.float64)
        samples = np.sum(np.where(weights > 0, weights * values, 0.0), axis=1)
        if len(samples) > 1:
            return float(samples.mean()), _error(samples)
        second = float(np.sum(np.where(weights > 0, weights * values**2, 0.0)))
        return float(samples[0]), self._of_one(float(samples[0]), second)

    def moment(self, power: int) -> tuple[float, float]:
        """Return the mean of a power of the eigenvalues, with the standard error over the probes.

        The quadrature with k nodes is exact for powers up to 2k - 1.
        """
        as_number("power", power, example="2")
        with np.errstate(all="ignore"):
            values = np.asarray(self.nodes, np.float64) ** power
        return self._mean(self._finite(values, f"the power {power:g}"))

    def trace_of(self, function: Callable[[np.ndarray], np.ndarray], /) -> tuple[float, float]:
        """Return the trace of f(A), and its standard error over the probes.

        If f is `np.log`, the trace of f(A) is the log-determinant of the positive definite matrix
        A. The quadrature with k nodes is exact for polynomials up to the degree 2k - 1 (Ubaru, Chen
        and Saad, SIAM J. Matrix Anal. Appl. 38, 2017).

        Args:
            function: f, a NumPy function of the array of quadrature nodes.

        Raises:
            Refused: if f is not finite at a node of positive weight.
        """
        nodes = np.asarray(self.nodes, np.float64)
        as_function("function", function, "nodes, in NumPy")
        with np.errstate(all="ignore"):
            values = np.asarray(function(nodes))
        if values.shape != nodes.shape:
            raise Refused(
                f"f gives an array with shape={values.shape} for nodes {nodes.shape}. "
                "Try to return one number for each node"
            )
        mean, error = self._mean(self._finite(values, "f"))
        return self.size * mean, self.size * error

    def _finite(self, values: np.ndarray, name: str) -> np.ndarray:
        nodes, weights = (np.asarray(a, np.float64) for a in (self.nodes, self.weights))
        lost = (weights > 0) & ~np.isfinite(values)
        if lost.any():
            raise Refused(
                f"{name} is not finite at the estimated eigenvalue node={nodes[lost][0]:.6g}. Try "
                "a function that is "
                "defined there, as lambda x: np.log(x + 1)"
            )
        return np.where(weights > 0, values, 0.0)

    def density(self, grid: ArrayLike, *, width: float | None = None) -> Float[Array, " points"]:
        """Return the density on a grid: the weighted sum of a normal distribution around each node.

        Args:
            grid: the points at which to evaluate the density, an array (points,).
            width: the standard deviation of each normal distribution; 1% of the range of the nodes
                by default.

        Raises:
            Refused: if the grid is not an array of numbers, or the width is not positive.
        """
        if width is not None:
            as_number("width", width, above=0, example="0.1")
        low, high = jnp.min(self.nodes), jnp.max(self.nodes)
        spread = 0.01 * (high - low) + jnp.finfo(self.nodes.dtype).tiny if width is None else width
        try:
            grid = jnp.asarray(grid, self.nodes.dtype)
        except (TypeError, ValueError):
            raise Refused(
                f"grid={shown(grid)}, expected an array of numbers. Try np.linspace(-1, 1)"
            ) from None
        z = (grid[:, None, None] - self.nodes[None]) / spread
        bell = jnp.exp(-(z**2) / 2) / (spread * jnp.sqrt(2 * jnp.asarray(jnp.pi, grid.dtype)))
        return jnp.mean(jnp.sum(bell * self.weights[None], axis=2), axis=1)

    def plot(self, *, points: int = 400, width: float | None = None) -> Any:
        """Plot the density on a logarithmic axis, with the nodes below it; return the figure."""
        import matplotlib.pyplot as plt

        low, high = float(jnp.min(self.nodes)), float(jnp.max(self.nodes))
        room = 0.05 * (high - low) or 1.0
        grid = np.linspace(low - room, high + room, points)
        figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
        axes.semilogy(grid, np.maximum(self.density(grid, width=width), 1e-12), color="black")
        nodes = np.ravel(self.nodes)
        axes.plot(nodes, np.full(nodes.shape, 1e-6), "|", color="C1")
        axes.set(xlabel="eigenvalue", ylabel="density", ylim=(3e-7, None))
        axes.set_title(f"{self.size:,} eigenvalues, {len(self.nodes)} probes", fontsize="medium")
        return figure

    def _table(self) -> Table:
        probes, k = self.nodes.shape
        ends = f"{number(jnp.min(self.nodes))} to {number(jnp.max(self.nodes))}"
        return Table(f"spectrum of {self.size:,} eigenvalues: {probes} x {k} nodes, {ends}")


def _error(samples: np.ndarray) -> float:
    count = len(samples)
    return float(np.std(samples, ddof=1) / np.sqrt(count)) if count > 1 else float("inf")


def _stored(operator: Any, start: Array, key: Array, k: int) -> tuple[Array, Array, Array]:
    state = steps(operator, key, started(start, k), k, hosted=False, mask=None)
    values, vectors, residuals = _ritz(state)
    return values, vectors[0] ** 2, residuals


def _recurred(carry: tuple, image: Array) -> tuple[tuple, tuple[Array, Array]]:
    before, vector, coupling, scale = carry
    eps = jnp.finfo(vector.dtype).eps
    scale = jnp.maximum(scale, jnp.linalg.norm(image))
    alpha = vector @ image
    rest = image - alpha * vector - coupling * before
    beta = jnp.linalg.norm(rest)
    # An exhausted space ends the recurrence: later nodes have no weight.
    beta = jnp.where(beta <= 64 * eps * scale, 0, beta)
    following = jnp.where(beta > 0, rest / jnp.where(beta > 0, beta, 1), 0)
    return (vector, following, beta, scale), (alpha, beta)


_recurred_once = jax.jit(_recurred)


@jax.jit
def _of_recurrence(alpha: Array, beta: Array) -> tuple[Array, Array, Array]:
    matrix = jnp.diag(alpha) + jnp.diag(beta[:-1], 1) + jnp.diag(beta[:-1], -1)
    values, vectors = jnp.linalg.eigh(matrix)
    return values, vectors[0] ** 2, jnp.abs(beta[-1] * vectors[-1])


def _bare(
    operator: Any, start: Array, k: int, *, hosted: bool = False
) -> tuple[Array, Array, Array]:
    """Run Lanczos without storing the basis; a converged eigenvalue may appear several times."""
    zero = jnp.zeros((), start.dtype)
    carry = (jnp.zeros_like(start), start, zero, zero)
    if hosted:
        pairs = []
        for _ in range(k):
            carry, pair = _recurred_once(carry, operator(carry[1]))
            pairs.append(pair)
        return _of_recurrence(*map(jnp.stack, zip(*pairs)))
    step = lambda carry, _: _recurred(carry, operator(carry[1]))
    return _of_recurrence(*jax.lax.scan(step, carry, length=k)[1])


def _keys(key: Array, probes: int) -> Array:
    """Return a random key for each probe; the Krylov run for all methods uses the first key."""
    return jnp.stack([key, *(jax.random.fold_in(key, 1000 + i) for i in range(1, probes))])


def _start(key: Array, size: int, dtype: Any) -> Array:
    """Draw a uniform random unit vector: the start vector that a `Run` with an equal key has."""
    return _unit(jax.random.normal(jax.random.split(key)[0], (size,), dtype))


def _spectrum_kernel(problem: Problem, static: dict, dynamic: dict) -> tuple[Array, ...]:
    operator, size, dtype = problem.operator(), problem.selection.size, problem.selection.dtype

    def probe(key: Array) -> tuple[Array, Array, Array]:
        start = _start(key, size, dtype)
        if static["stored"]:
            return _stored(operator, start, jax.random.split(key)[1], static["k"])
        return _bare(operator, start, static["k"])

    found = jax.lax.map(probe, _keys(dynamic["key"], static["probes"]))
    return *found, problem.value()


def _hosted(product: Any, selection: Any, static: dict, dynamic: dict) -> tuple:
    size, dtype, k = selection.size, selection.dtype, static["k"]
    found = []
    for i, key in enumerate(_keys(dynamic["key"], static["probes"])):
        if not static["stored"]:
            found.append(_bare(product, _start(key, size, dtype), k, hosted=True))
            continue
        rows = static["rows"]
        run = product.fresh_run(product, key, rows) if i else product.run(key, rows)
        look = run.look(k)
        found.append((look.values, look.vectors[0] ** 2, look.estimates))
    return *(jnp.asarray(np.stack(parts), dtype) for parts in zip(*found)), product.value


def spectrum_at(
    point: Point,
    /,
    *,
    memory_limit: float,
    key: jax.Array | None = None,
    probes: int | None = None,
    iterations: int | None = None,
) -> Spectrum:
    """Estimate the density of the Hessian's eigenvalues; see `Curvature.spectrum`.

    Raises:
        Refused: in the cases that `Curvature.spectrum` lists.
    """
    size, dtype = point.selection.size, point.selection.dtype
    rows = default_basis(size, 200, dtype)
    probes = (PROBES if size < MANY else 1) if probes is None else probes
    iterations = min(ITERATIONS, rows) if iterations is None else iterations
    probes, iterations = whole("probes", probes), whole("iterations", iterations)
    k = min(iterations, size)
    fits = lambda rows: rows * size * dtype.itemsize <= STORED_BYTES
    stored = fits(k)
    rows = max(k, rows) if fits(max(k, rows)) else k
    static = {"probes": probes, "k": k, "stored": stored, "rows": rows}
    key = as_key(key)
    nodes, weights, residuals, value = run_hosted(
 point,
        _spectrum_kernel, static, {"key": key}, limit=memory_limit,
        what="the spectrum of the Hessian", advice="lower iterations, ", hosted=_hosted,
        rows=(rows if stored else 0) * min(probes, 2) + 8,
    )  # fmt: skip
    point.refuse_not_finite(value, nodes)
    point.refuse_constant(nodes)
    return Spectrum(nodes, weights, size, residuals)
