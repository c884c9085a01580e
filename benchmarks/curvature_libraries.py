"""Four libraries of curvature behind one interface, for `curvature_against_others.py`.

Each function gets a case, and returns what makes a fresh operator with its questions, and the
efforts to try for each question: a tolerance, iterations or probes. No library is imported before
it is asked.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from same_network import Case, jax_loss, torch_module

TOLERANCE = 1e-3
"""The residual that each eigenpair must reach, relative to the greatest eigenvalue; a larger one
asks less of every library."""
NODES = 32
"""Nodes of the density, from one probe; more of them cost every library a product each."""
STEPS = (16, 24, 32, 48, 56, 64, 80, 96, 128, 192, 256)
"""Iterations to try where a library does not stop by itself."""
PROBES = (12, 18, 24, 30, 42, 60, 84, 120, 168, 240)
"""Products to try for a trace."""
ARPACK = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
"""Tolerances to try of SciPy's eigsh, which are relative to each eigenvalue."""


class Answer(NamedTuple):
    """The answer of a library.

    Attributes:
        vectors: (k, n), eigenvectors.
        value: the trace.
        error: the standard error of the trace, NaN where the library gives none.
        products: with the matrix.
    """

    vectors: np.ndarray
    value: float = 0.0
    error: float = 0.0
    products: int = 0


Ask = dict[str, Callable[[Any], Any]]
"""An answer for an effort by question; "product" gives the image (n,) of a vector (n,)."""
NONE = np.zeros((0, 0))


def ours(one: Case) -> tuple[Callable[[], Ask], dict[str, tuple]]:
    import jaxbounds as jb
    from jaxbounds.networks.curvature.engine import Product

    params = {name: jnp.asarray(leaf) for name, leaf in one.params.items()}
    batch = jnp.asarray(one.tokens), jnp.asarray(one.targets)
    used, plain = [0], Product.__call__

    def counted(self: Product, vector: Any) -> Any:
        used[0] += 1
        return plain(self, vector)

    Product.__call__ = counted  # type: ignore[method-assign]
    flat = lambda tree: np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])

    def asks() -> Ask:
        H, used[0] = jb.Curvature(jax_loss, params, batch), 0

        def extremes(tolerance: float) -> Answer:
            ends = H.extremes(tolerance=tolerance)
            both = [flat(ends.vector_minimum), flat(ends.vector_maximum)]
            return Answer(np.stack(both), products=used[0])

        def top(tolerance: float) -> Answer:
            found = H.top(5, tolerance=tolerance, copies=False)  # no other library looks for them
            return Answer(np.stack([flat(v) for v in found.vectors]), products=used[0])

        def trace(products: int) -> Answer:
            found = H.trace(products=products)
            value, error = float(found.estimate), float(found.standard_error)
            return Answer(NONE, value, error, used[0])

        def density(nodes: int) -> Answer:
            jax.block_until_ready(H.spectrum(probes=1, iterations=nodes).nodes)
            return Answer(NONE, products=used[0])

        image = lambda v: np.asarray(H @ jnp.asarray(v))
        return {"extremes": extremes, "top 5": top, "trace": trace, "density": density,
                "product": image}  # fmt: skip

    ladders = {"extremes": (TOLERANCE,), "top 5": (TOLERANCE,), "trace": PROBES}
    return asks, ladders | {"density": (NODES,)}


def matfree(one: Case) -> tuple[Callable[[], Ask], dict[str, tuple]]:
    from matfree import decomp, eig, stochtrace

    params = {name: jnp.asarray(leaf) for name, leaf in one.params.items()}
    point, back = jax.flatten_util.ravel_pytree(params)
    batch = jnp.asarray(one.tokens), jnp.asarray(one.targets)
    key = jax.random.key(0)

    def product(x: Any, batch: Any) -> Callable:
        return jax.linearize(jax.grad(lambda x: jax_loss(back(x), batch)), x)[1]

    @jax.jit
    def image(x: Any, batch: Any, v: Any) -> Any:
        return product(x, batch)(v)

    @partial(jax.jit, static_argnums=2)
    def pairs(x: Any, batch: Any, m: int) -> Any:
        start = jax.random.normal(key, x.shape)
        return eig.eigh_partial(decomp.tridiag_sym(m))(product(x, batch), start)

    @partial(jax.jit, static_argnums=2)
    def quadrature(x: Any, batch: Any, m: int) -> Any:
        start = jax.random.normal(key, x.shape)
        small = decomp.tridiag_sym(m)(product(x, batch), start).J_small
        nodes, vectors = jnp.linalg.eigh(small)
        return nodes, vectors[0] ** 2

    @partial(jax.jit, static_argnums=2)
    def traced(x: Any, batch: Any, probes: int) -> Any:
        sampler = stochtrace.sampler_normal(x, num=probes)
        integrand = stochtrace.leave_one_out_xtrace()
        estimate = stochtrace.estimator_leave_one_out_mean_and_sem(integrand, sampler)
        return estimate(product(x, batch), key)

    def asks() -> Ask:
        kept: dict[int, Any] = {}
        used = [0]

        def all_of(m: int) -> Any:
            if m not in kept:
                kept[m] = jax.block_until_ready(pairs(point, batch, m)[1])
                used[0] += m
            return kept[m]

        def trace(products: int) -> Answer:
            value, error = traced(point, batch, products // 2)
            used[0] += products // 2 * 2
            return Answer(NONE, float(value), float(error), used[0])

        def density(m: int) -> Answer:
            if kept:  # the weights of a decomposition that is there
                start = jax.random.normal(key, point.shape)
                jax.block_until_ready((kept[max(kept)] @ (start / jnp.linalg.norm(start))) ** 2)
            else:
                jax.block_until_ready(quadrature(point, batch, m))
                used[0] += m
            return Answer(NONE, products=used[0])

        ends = lambda m: Answer(np.asarray(all_of(m)[jnp.asarray([0, -1])]), products=used[0])
        top = lambda m: Answer(np.asarray(all_of(m)[-5:]), products=used[0])
        own = lambda v: np.asarray(image(point, batch, jnp.asarray(v)))
        return {"extremes": ends, "top 5": top, "trace": trace, "density": density, "product": own}

    return asks, {"extremes": STEPS, "top 5": STEPS, "trace": PROBES, "density": (NODES,)}


def curvlinops(one: Case) -> tuple[Callable[[], Ask], dict[str, tuple]]:
    import torch
    from curvlinops import HessianLinearOperator, hutchpp_trace, lanczos_approximate_spectrum
    from scipy.sparse.linalg import eigsh

    model, data = torch_module(one), [(torch.tensor(one.tokens), torch.tensor(one.targets))]
    start = np.random.default_rng(1).normal(size=one.size).astype(np.float32)
    used = [0]

    class Counted(HessianLinearOperator):
        def _matmat(self, X: Any) -> Any:
            used[0] += X[0].shape[-1]
            return super()._matmat(X)

    def asks() -> Ask:
        used[0] = 0
        H = Counted(
            model, torch.nn.CrossEntropyLoss(), list(model.parameters()), data,
            check_deterministic=False, num_data=len(one.tokens),
        )  # fmt: skip

        def found(k: int, which: str, tol: float) -> Answer:
            vectors = eigsh(H.to_scipy(dtype=np.float32), k=k, which=which, tol=tol, v0=start)[1]
            return Answer(vectors.T, products=used[0])

        def trace(products: int) -> Answer:
            torch.manual_seed(0)
            return Answer(NONE, float(hutchpp_trace(H, products)), float("nan"), used[0])

        def density(nodes: int) -> Answer:
            lanczos_approximate_spectrum(H, nodes)
            return Answer(NONE, products=used[0])

        ends, top = (lambda tol: found(2, "BE", tol)), (lambda tol: found(5, "LA", tol))
        own = lambda v: (H @ torch.tensor(v)).numpy()
        return {"extremes": ends, "top 5": top, "trace": trace, "density": density, "product": own}

    ladders = {"extremes": ARPACK, "top 5": ARPACK, "trace": PROBES, "density": (NODES,)}
    return asks, ladders


def eigenthings(one: Case) -> tuple[Callable[[], Ask], dict[str, tuple]]:
    import torch
    from hessian_eigenthings import (
        HessianOperator,
        lanczos,
        spectral_density,
        supervised_loss,
        trace,
    )

    model, data = torch_module(one), [(torch.tensor(one.tokens), torch.tensor(one.targets))]

    def asks() -> Ask:
        H = HessianOperator(model, data, supervised_loss(torch.nn.CrossEntropyLoss()))
        kept: dict[int, np.ndarray] = {}
        used = [0]

        def all_of(m: int) -> np.ndarray:
            # One run for both ends: all Ritz pairs, which costs less than a run for each end.
            if m not in kept:
                found = lanczos(H, k=m, max_iter=m, which="LA", seed=0, reorthogonalize=True)
                kept[m] = found.eigenvectors.numpy()
                used[0] += m
            return kept[m]

        def traced(products: int) -> Answer:
            found = trace(H, num_matvecs=products, seed=0)
            used[0] += products
            return Answer(NONE, found.estimate, found.stderr, used[0])

        def density(nodes: int) -> Answer:
            spectral_density(H, num_runs=1, lanczos_steps=nodes, seed=0)
            used[0] += nodes
            return Answer(NONE, products=used[0])

        ends = lambda m: Answer(all_of(m)[[-1, 0]], products=used[0])
        top = lambda m: Answer(all_of(m)[:5], products=used[0])
        own = lambda v: H.matvec(torch.tensor(v)).numpy()
        return {"extremes": ends, "top 5": top, "trace": traced, "density": density, "product": own}

    ladders = {"extremes": STEPS, "top 5": STEPS, "trace": PROBES, "density": (NODES,)}
    return asks, ladders


LIBRARIES: dict[str, tuple[Callable, str]] = {
    "jaxbounds": (ours, "jaxbounds"),
    "matfree": (matfree, "matfree"),
    "hessian-eigenthings": (eigenthings, "hessian_eigenthings"),
    "curvlinops": (curvlinops, "curvlinops"),
}
PACKAGES = {"curvlinops": "curvlinops-for-pytorch"}
