"""Tries of features of the libraries for JAX."""

import importlib
import tempfile
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from features_case import (
    BACK,
    BATCH,
    DENSE,
    FISHER,
    FLAT,
    GGN,
    HALVES,
    PARAMS,
    SHIFT,
    SLOPE,
    VALUES,
    A,
    Again,
    Try,
    V,
    X,
    by_hand,
    check,
    jax_loss,
    slope_of_greatest,
    truth_of,
    within,
)
from jax.flatten_util import ravel_pytree


def ours() -> dict[str, Try]:
    import jaxbounds as jb
    from jaxbounds.networks import curvature as c

    H = jb.Curvature(jax_loss, PARAMS, BATCH)
    v = jnp.asarray(V)
    outputs = lambda p, batch: jnp.tanh(batch[0] @ p["a"]) @ p["b"]
    nll = lambda z, batch: (
        -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(z), batch[1][:, None], axis=1))
    )

    def tied() -> tuple[str, str]:
        from flax import nnx

        class Tied(nnx.Module):
            def __init__(self) -> None:
                self.first = nnx.Param(jnp.asarray(A[:, :3]))
                self.last = self.first

        square = lambda w: jnp.mean((jnp.tanh(X @ w) @ w.T) ** 2)
        found = jb.Curvature(lambda m: jnp.mean((jnp.tanh(X @ m.first[...]) @ m.last[...].T) ** 2),
                             Tied())  # fmt: skip
        return check(found.dense(), jax.hessian(square)(jnp.asarray(A[:, :3])).reshape(9, 9))

    def once() -> tuple[str, str]:
        found = jb.Curvature(jax_loss, PARAMS, (batch for batch in HALVES))
        return check([found @ v, found @ v], [DENSE @ V] * 2)

    def flags() -> tuple[str, str]:
        top = H.top(3)
        state, said = check(top.values, VALUES[::-1][:3])
        return state, f"{said}, residuals {float(top.residuals.max()):.0e}, converged flags"

    def ends() -> tuple[str, str]:
        found = H.extremes()
        return check([found.minimum, found.maximum], VALUES[[0, -1]])

    def density() -> tuple[str, str]:
        share, error = H.spectrum(probes=30).share_below(0.0)
        return within(share, error, float(np.mean(VALUES < 0)))

    def diagonal() -> tuple[str, str]:
        found = H.diagonal(products=200)
        errors = ravel_pytree(found.standard_error)[0]
        state = check(ravel_pytree(found.estimate)[0], np.diag(DENSE), tolerance=0.5)[0]
        return state, f"errors {float(errors.min()):.0e} and up"

    def logdet() -> tuple[str, str]:
        found = H.spectrum(probes=30).trace_of(lambda x: np.log(x + SHIFT))
        return within(*found, float(np.trace(truth_of(np.log))))

    def adam() -> tuple[str, str]:
        import optax

        state = optax.adam(1e-2).init(PARAMS)
        _, state = optax.adam(1e-2).update(jax.grad(jax_loss)(PARAMS, BATCH), state)
        found = jb.Curvature(*c.preconditioned(jax_loss, PARAMS, state), BATCH).extremes().maximum
        slope = np.abs(ravel_pytree(jax.grad(jax_loss)(PARAMS, BATCH))[0]) + 1e-8
        return check(found, np.linalg.eigvalsh(DENSE / np.sqrt(np.outer(slope, slope)))[-1])

    def noise() -> tuple[str, str]:
        found = c.gradient_noise(jax_loss, PARAMS, BATCH, batch_size=1)
        return "works", str(found).splitlines()[0]

    def heads() -> tuple[str, str]:
        from flax import linen

        layer = linen.MultiHeadDotProductAttention(num_heads=2, qkv_features=4)
        q = jnp.ones((2, 3, 4)) * jnp.arange(3)[:, None]
        params = layer.init(jax.random.key(0), q, q, q)
        found = c.block_extremes(
            lambda p: jnp.mean(layer.apply(p, q, q, q) ** 2), params, heads=c.head_axes(params)
        )
        return "works", f"{len(jax.tree.leaves(found))} arrays, by head"

    def monitor() -> tuple[str, str]:
        with tempfile.TemporaryDirectory() as folder:
            make = partial(jb.CurvatureMonitor, jax_loss, every=1, file=f"{folder}/m.jsonl")
            first = make()
            first(0, PARAMS, BATCH)
            second = make()
            second(1, PARAMS, BATCH)
            return ("works" if len(second.dataset().step) == 2 else "wrong"), "2 records of 2 runs"

    def devices() -> tuple[str, str]:
        mesh = jax.sharding.Mesh(np.array(jax.devices()), ("n",))
        spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("n"))
        found = jb.Curvature(jax_loss, PARAMS, jax.device_put(BATCH, spread)) @ v
        return check(found, DENSE @ V)

    def bad() -> tuple[str, str]:
        try:
            jb.Curvature(lambda p: jnp.log(-jnp.sum(p["a"] ** 2)), PARAMS).extremes()
        except jb.Refused as refusal:
            return "works", str(refusal)
        return "wrong", "no error"

    def memory() -> tuple[str, str]:
        try:
            jb.Curvature(lambda w: jnp.sum(w**4), jnp.ones(10**6)).dense()
        except jb.Refused as refusal:
            return "works", str(refusal)
        return "wrong", "no refusal"

    def greatest(scale: Any) -> Any:
        scaled = jax.tree.map(lambda p: scale * p, PARAMS)
        return jb.Curvature(jax_loss, scaled, BATCH).extremes(dense_limit=0).maximum

    return {
        "tied weights": tied,
        "batches of 8 and 4 examples": lambda: check(
            jb.Curvature(jax_loss, PARAMS, lambda: iter(HALVES)) @ v, DENSE @ V),
        "a DataLoader, read again": lambda: check(
            jb.Curvature(jax_loss, PARAMS, Again(HALVES)) @ v, DENSE @ V),
        "a generator, read once": once,
        "greatest eigenvalues, residuals, flag": flags,
        "both ends from one call": ends,
        "density": density,
        "trace with its error": lambda: within(
            *(lambda t: (float(t.estimate), float(t.standard_error)))(H.trace()), VALUES.sum()),
        "diagonal with its error": diagonal,
        "log-determinant with its error": logdet,
        "f(H) v": lambda: check(
            H.apply(lambda x: 1 / (x + SHIFT), v).value, truth_of(lambda x: 1 / x) @ V),
        "Gauss-Newton matrix": lambda: check(
            jb.Curvature(jb.Composite(outputs, nll), PARAMS, BATCH, of="ggn").dense(), GGN),
        "empirical Fisher matrix": lambda: check(
            jb.Curvature(c.empirical_fisher(jax_loss), PARAMS, BATCH, of="ggn").dense(), FISHER),
        "Adam's sharpness": adam,
        "gradient noise": noise,
        "block of a layer": lambda: check(
            jb.Curvature(jax_loss, PARAMS, BATCH, filter="b").dense(), DENSE[12:, 12:]),
        "block of an attention head": heads,
        "monitor of a run, resumed": monitor,
        "SciPy operator": lambda: check(
            importlib.import_module("scipy.sparse.linalg").aslinearoperator(H) @ V, DENSE @ V),
        "several vectors at once": lambda: check(H @ jnp.stack([v, v], 1), DENSE @ np.c_[V, V]),
        "sums of operators": lambda: check((H + H) @ v, 2 * DENSE @ V),  # type: ignore[operator]
        "several devices": devices,
        "an error where the loss is NaN": bad,
        "refusal before memory is short": memory,
        "inside of jit and vmap": lambda: check(
            jax.jit(jax.vmap(greatest))(jnp.ones(2)), [VALUES[-1]] * 2),
        "derivative of an eigenvalue": lambda: check(
            jax.grad(greatest)(1.0), slope_of_greatest()),
    }  # fmt: skip


def matfree() -> dict[str, Try]:
    from matfree import decomp, eig, funm, stochtrace

    key, v = jax.random.key(0), jnp.asarray(V)
    product = lambda u, x=FLAT: jax.jvp(jax.grad(lambda x: jax_loss(BACK(x), BATCH)), (x,), (u,))[1]
    shifted = lambda u: product(u) + SHIFT * u

    def mean(u: jax.Array) -> jax.Array:
        one = lambda batch: jax.grad(lambda x: jax_loss(BACK(x), batch))
        parts = [len(b[1]) / 12 * jax.jvp(one(b), (FLAT,), (u,))[1] for b in HALVES]
        return parts[0] + parts[1]

    pairs = eig.eigh_partial(decomp.tridiag_sym(20))
    signs = stochtrace.sampler_signs(FLAT, num=400)
    sampled = lambda integrand: stochtrace.estimator_monte_carlo_mean_and_sem(integrand, signs)
    number = lambda pair: (float(pair[0]), float(pair[1]))

    def diagonal() -> tuple[str, str]:
        found, error = sampled(stochtrace.monte_carlo_diagonal())(product, key)
        state = check(found, np.diag(DENSE), tolerance=0.5)[0]
        return state, f"errors {float(jnp.min(error)):.0e} and up"

    def density() -> tuple[str, str]:
        vectors = jax.random.normal(key, (30, 20))
        share = lambda u: jnp.sum(jnp.where(
            (e := jnp.linalg.eigh(decomp.tridiag_sym(20)(product, u).J_small))[0] < 0,
            e[1][0] ** 2, 0))  # fmt: skip
        shares = np.asarray(jax.lax.map(share, vectors))
        error = float(shares.std() / len(shares) ** 0.5)
        return by_hand(within(float(shares.mean()), error, float(np.mean(VALUES < 0))))

    def greatest(scale: Any) -> Any:
        return pairs(lambda u: product(u, scale * FLAT), v)[0][-1]

    solve = funm.funm_lanczos_sym(
        funm.dense_funm_sym_eigh(lambda x: 1 / (x + SHIFT)), decomp.tridiag_sym(20)
    )
    logdet = funm.monte_carlo_funm_sym_logdet(decomp.tridiag_sym(10))
    jacobian = lambda u: jax.jvp(lambda x: jnp.tanh(X @ BACK(x)["a"]).ravel(), (FLAT,), (u,))[1]
    scaled = lambda u: (
        product(u / jnp.sqrt(jnp.abs(SLOPE) + 1e-8)) / jnp.sqrt(jnp.abs(SLOPE) + 1e-8)
    )
    truth = DENSE / np.sqrt(np.outer(np.abs(SLOPE) + 1e-8, np.abs(SLOPE) + 1e-8))
    values = lambda: pairs(product, v)[0]
    return {
        "batches of 8 and 4 examples": lambda: by_hand(check(mean(v), DENSE @ V)),
        "greatest eigenvalues, residuals, flag": lambda: (
            "no residual", check(values()[-3:], VALUES[-3:])[1]),
        "both ends from one call": lambda: check(values()[jnp.array([0, -1])], VALUES[[0, -1]]),
        "density": density,
        "trace with its error": lambda: within(
            *number(sampled(stochtrace.monte_carlo_trace())(product, key)), VALUES.sum()),
        "diagonal with its error": diagonal,
        "log-determinant with its error": lambda: within(
            *number(sampled(logdet)(shifted, key)), float(np.trace(truth_of(np.log)))),
        "f(H) v": lambda: check(solve(product, v), truth_of(lambda x: 1 / x) @ V),
        "Adam's sharpness": lambda: by_hand(
            check(pairs(scaled, v)[0][-1], np.linalg.eigvalsh(truth)[-1])),
        "block of a layer": lambda: by_hand(check(
            jax.vmap(lambda u: product(jnp.zeros(20).at[12:].set(u))[12:])(jnp.eye(8)),
            DENSE[12:, 12:])),
        "sums of operators": lambda: by_hand(
            check((lambda u: product(u) + product(u))(v), 2 * DENSE @ V)),
        "several vectors at once": lambda: by_hand(
            check(jax.vmap(product)(jnp.stack([v, v])), [DENSE @ V] * 2)),
        "an error where the loss is NaN": lambda: (
            "wrong", f"no error: {pairs(lambda u: product(u) * jnp.nan, v)[0][-1]}"),
        "inside of jit and vmap": lambda: check(
            jax.jit(jax.vmap(greatest))(jnp.ones(2)), [VALUES[-1]] * 2),
        "derivative of an eigenvalue": lambda: check(
            jax.grad(greatest)(1.0), slope_of_greatest(), tolerance=1e-2),
        "Jacobian and its singular values": lambda: check(
            eig.svd_partial(decomp.bidiag(12))(jacobian, v)[1][0],
            np.linalg.norm(jax.vmap(jacobian, out_axes=1)(jnp.eye(20)), 2)),
    }  # fmt: skip
