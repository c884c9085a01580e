"""The density of a Hessian's eigenvalues, by stochastic Lanczos quadrature (Golub and Welsch).

For a random unit vector v the values and first components of k Lanczos steps are the Gauss
quadrature of the measure v^T delta(x - A) v, whose mean over v is the density of the eigenvalues.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from jaxbounds.curvature.lanczos import _Krylov, _ritz, _step, _unit
from jaxbounds.curvature.products import Problem
from jaxbounds.curvature.programs import Point
from jaxbounds.shown import Table, number, shown

STORED_BYTES = 256 * 2**20
"""Up to this size the Krylov basis is kept and orthogonalised; beyond it the recurrence is bare."""


@shown
class Spectrum(NamedTuple):
    """Quadrature nodes and weights: each probe's weights sum to one.

    Attributes:
        nodes: (probes, k), Ritz values.
        weights: (probes, k).
        size: parameters, the number of eigenvalues.
    """

    nodes: Float[Array, "probes k"]
    weights: Float[Array, "probes k"]
    size: int

    def share_below(self, x: float) -> tuple[float, float]:
        """The share of eigenvalues below `x`, and its standard error over the probes.

        Eigenvalues next to `x` may be counted on either side: a node stands for its surroundings.
        """
        shares = jnp.sum(jnp.where(self.nodes < x, self.weights, 0), axis=1)
        return float(jnp.mean(shares)), _error(np.asarray(shares))

    def moment(self, power: int) -> tuple[float, float]:
        """The mean of the eigenvalues' powers and its standard error; exact up to 2k - 1."""
        moments = jnp.sum(self.weights * self.nodes**power, axis=1)
        return float(jnp.mean(moments)), _error(np.asarray(moments))

    def density(self, grid: ArrayLike, *, width: float | None = None) -> Float[Array, " points"]:
        """The density on a grid, each node smeared to a normal of standard deviation `width`.

        1% of the range of the nodes unless given.
        """
        low, high = jnp.min(self.nodes), jnp.max(self.nodes)
        spread = 0.01 * (high - low) + jnp.finfo(self.nodes.dtype).tiny if width is None else width
        grid = jnp.asarray(grid, self.nodes.dtype)
        z = (grid[:, None, None] - self.nodes[None]) / spread
        bell = jnp.exp(-(z**2) / 2) / (spread * jnp.sqrt(2 * jnp.asarray(jnp.pi, grid.dtype)))
        return jnp.mean(jnp.sum(bell * self.weights[None], axis=2), axis=1)

    def plot(self, *, points: int = 400, width: float | None = None) -> Any:
        """The density on a logarithmic axis, and the nodes below it, as a figure."""
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
    """The standard error of the mean; infinite from one sample."""
    count = len(samples)
    return float(np.std(samples, ddof=1) / np.sqrt(count)) if count > 1 else float("inf")


def _stored(operator: Any, start: Array, key: Array, k: int) -> tuple[Array, Array]:
    zero, dtype = jnp.zeros((), start.dtype), start.dtype
    state = _Krylov(
        jnp.zeros((k, start.size), dtype), jnp.zeros((k, k), dtype), start, zero,
        jnp.int32(0), jnp.int32(0), zero,
    )  # fmt: skip
    state = jax.lax.fori_loop(0, k, lambda _, state: _step(operator, key, state), state)
    values, vectors, _ = _ritz(state)
    return values, vectors[0] ** 2


def _bare(operator: Any, start: Array, k: int) -> tuple[Array, Array]:
    """Three vectors of memory; copies of converged values share their weight."""
    eps = jnp.finfo(start.dtype).eps

    def step(carry, _):
        before, vector, coupling, scale = carry
        image = operator(vector)
        scale = jnp.maximum(scale, jnp.linalg.norm(image))
        alpha = vector @ image
        rest = image - alpha * vector - coupling * before
        beta = jnp.linalg.norm(rest)
        # An exhausted space ends the recurrence: what follows has no weight.
        beta = jnp.where(beta <= 64 * eps * scale, 0, beta)
        following = jnp.where(beta > 0, rest / jnp.where(beta > 0, beta, 1), 0)
        return (vector, following, beta, scale), (alpha, beta)

    zero = jnp.zeros((), start.dtype)
    _, (alpha, beta) = jax.lax.scan(step, (jnp.zeros_like(start), start, zero, zero), length=k)
    matrix = jnp.diag(alpha) + jnp.diag(beta[:-1], 1) + jnp.diag(beta[:-1], -1)
    values, vectors = jnp.linalg.eigh(matrix)
    return values, vectors[0] ** 2


def _spectrum_kernel(problem: Problem, static: dict, dynamic: dict) -> tuple[Array, Array, Array]:
    operator, size, dtype = problem.operator(), problem.selection.size, problem.selection.dtype

    def probe(key):
        start_key, fresh_key = jax.random.split(key)
        start = _unit(jax.random.rademacher(start_key, (size,), dtype))
        if static["stored"]:
            return _stored(operator, start, fresh_key, static["k"])
        return _bare(operator, start, static["k"])

    nodes, weights = jax.lax.map(probe, jax.random.split(dynamic["key"], static["probes"]))
    return nodes, weights, problem.value()


def spectrum_at(
    point: Point,
    /,
    *,
    memory_limit: float,
    key: jax.Array | None = None,
    probes: int = 4,
    iterations: int = 60,
) -> Spectrum:
    """The density of the Hessian's eigenvalues; see `Curvature.spectrum`.

    Raises:
        ValueError: as there.
    """
    if probes < 1 or iterations < 1:
        raise ValueError(f"probes and iterations must be positive, got {probes}, {iterations}")
    size, k = point.selection.size, min(iterations, point.selection.size)
    stored = k * size * point.selection.dtype.itemsize <= STORED_BYTES
    static = {"probes": probes, "k": k, "stored": stored}
    key = jax.random.key(0) if key is None else key
    nodes, weights, value = point.run(
        _spectrum_kernel, static, {"key": key}, limit=memory_limit,
        what="the spectrum of the Hessian", advice="lower iterations, ",
    )  # fmt: skip
    if not point.is_traced and not bool(jnp.all(jnp.isfinite(nodes)) & jnp.isfinite(value)):
        raise ValueError(
            f"the loss, or a product with its Hessian, is not finite; the loss is {float(value)}"
        )
    return Spectrum(nodes, weights, size)
