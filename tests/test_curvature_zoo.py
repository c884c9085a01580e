"""Twelve kinds of networks against the dense Hessian in float64, computed without the library.

In float64 all values agree to 1e-6 of the spectral scale. In lower precision the residual and the
noise that are reported cover the distance to the float64 truth.
"""

import functools
from typing import NamedTuple

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import jaxbounds as jb

X = np.random.default_rng(0).normal(size=(8, 4))
Y = np.tanh(X[:, :2] + X[:, 2:])
SEQUENCE = np.random.default_rng(1).normal(size=(4, 5, 4))
TOKENS = np.random.default_rng(2).integers(0, 5, (4, 6))


class Network(NamedTuple):
    """A loss at a point, and the loss of one vector that is the truth."""

    loss: object
    params: object
    batch: object
    flat: object
    vector: object
    options: dict


def square(outputs, wanted):
    return jnp.mean((outputs - wanted) ** 2)


def of_tree(loss, params, batch, **options):
    """The whole pytree is differentiated."""
    vector, back = ravel_pytree(params)
    return Network(loss, params, batch, lambda v: loss(back(v), batch), vector, options)


def of_module(loss, module, batch, kind=nnx.Param, **options):
    """The Variables of a kind are differentiated, a shared one once."""
    graph, own, rest = nnx.split(module, kind, ...)
    vector, back = ravel_pytree(own)
    flat = lambda v: loss(nnx.merge(graph, back(v), rest), batch)
    return Network(loss, module, batch, flat, vector, options)


def cast(tree, dtype):
    """The same numbers in another type: everything is drawn in float32."""
    is_real = lambda x: hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating)
    return jax.tree.map(lambda x: jnp.asarray(x, dtype) if is_real(x) else x, tree)


def module(make, dtype):
    """An nnx module of another type with the numbers of float32."""
    graph = nnx.split(nnx.eval_shape(lambda: make(dtype)))[0]
    drawn = nnx.jit(lambda: make(jnp.float32))()
    return nnx.merge(graph, cast(nnx.split(drawn)[1], dtype))


X, Y, SEQUENCE = (x.astype(np.float32) for x in (X, Y, SEQUENCE))


def linen(dtype):
    model = nn.Sequential([nn.Dense(5), jnp.tanh, nn.Dense(2)])
    x, y = cast((X, Y), dtype)
    params = cast(jax.jit(model.init)(jax.random.key(0), X), dtype)
    return of_tree(lambda p, b: square(model.apply(p, b[0]), b[1]), params, (x, y))


class Attention(nnx.Module):
    """Two heads; Flax's own layer computes the softmax in float32 at best."""

    def __init__(self, dtype):
        rngs = nnx.Rngs(0)
        dense = lambda: nnx.Linear(4, 4, param_dtype=dtype, rngs=rngs)
        self.query, self.key, self.value, self.out = dense(), dense(), dense(), dense()

    def __call__(self, x):
        split = lambda z: z.reshape(*z.shape[:2], 2, 2)
        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        weights = jax.nn.softmax(jnp.einsum("nthd,nshd->nhts", q, k))
        return self.out(jnp.einsum("nhts,nshd->nthd", weights, v).reshape(x.shape))


def nnx_attention(dtype):
    model, x = module(Attention, dtype), jnp.asarray(SEQUENCE, dtype)
    return of_module(lambda m, b: square(m(b), jnp.flip(b, 1)), model, x)


def equinox(dtype):
    model = eqx.nn.MLP(4, 2, 6, 1, activation=jnp.tanh, dtype=jnp.float32, key=jax.random.key(0))
    model = cast(model, dtype)
    loss = lambda m, b: square(jax.vmap(m)(b[0]), b[1])
    batch = cast((X, Y), dtype)
    own, rest = eqx.partition(model, eqx.is_inexact_array)
    vector, back = ravel_pytree(own)
    return Network(
        loss, model, batch, lambda v: loss(eqx.combine(back(v), rest), batch), vector, {}
    )


def plain(dtype):
    """A recurrent network: lax.scan over time."""
    rng = np.random.default_rng(3)
    params = {
        "in": rng.normal(size=(4, 6)),
        "self": rng.normal(size=(6, 6)) / 3,
        "out": [X[:6, :2]],
    }

    def loss(w, batch):
        step = lambda h, x: (jnp.tanh(x @ w["in"] + h @ w["self"]), None)
        last, _ = jax.lax.scan(step, jnp.zeros((4, 6), batch.dtype), jnp.swapaxes(batch, 0, 1))
        return square(last @ w["out"][0], batch[:, 0, :2])

    return of_tree(loss, cast(params, dtype), jnp.asarray(SEQUENCE, dtype))


class Tied(nnx.Module):
    """The embedding is the head, and one layer stands in two places."""

    def __init__(self, dtype):
        rngs = nnx.Rngs(0)
        self.embed = nnx.Embed(5, 4, param_dtype=dtype, rngs=rngs)
        layer = nnx.Linear(4, 4, param_dtype=dtype, rngs=rngs)
        self.layers = nnx.List([layer, layer])
        self.head = self.embed

    def __call__(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = x + jnp.tanh(layer(x))
        return self.head.attend(x)


def tied(dtype):
    def loss(model, tokens):
        logits = jax.nn.log_softmax(model(tokens[:, :-1]))
        return -jnp.mean(jnp.take_along_axis(logits, tokens[:, 1:, None], axis=2))

    return of_module(loss, module(Tied, dtype), jnp.asarray(TOKENS))


def batch_norm(dtype):
    """The statistics of the batch are differentiated, and the running ones are fixed."""

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.Dense(5)(x)
            x = nn.BatchNorm(use_running_average=False)(x)
            return nn.Dense(2)(jnp.tanh(x))

    model, (x, y) = Net(), cast((X, Y), dtype)
    variables = cast(jax.jit(model.init)(jax.random.key(0), X), dtype)

    def loss(v, batch):
        return square(model.apply(v, batch[0], mutable=["batch_stats"])[0], batch[1])

    vector, back = ravel_pytree(variables["params"])
    flat = lambda v: loss({**variables, "params": back(v)}, (x, y))
    return Network(loss, variables, (x, y), flat, vector, {})


def dropout(dtype):
    """Dropout in train mode, with the key in the batch."""

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.Dropout(0.4, deterministic=False)(jnp.tanh(nn.Dense(8)(x)))
            return nn.Dense(2)(x)

    model, (x, y), keys = Net(), cast((X, Y), dtype), jax.random.split(jax.random.key(5), 2)
    params = cast(jax.jit(model.init)({"params": keys[0], "dropout": keys[1]}, X), dtype)

    def loss(p, batch):
        x, y, key = batch
        return square(model.apply(p, x, rngs={"dropout": key}), y)

    return of_tree(loss, params, (x, y, keys[1]))


class Adapted(nnx.Module):
    """A frozen layer with a low-rank addition."""

    def __init__(self, dtype):
        rngs = nnx.Rngs(0)
        self.base = nnx.Linear(4, 6, param_dtype=dtype, rngs=rngs)
        self.lora = nnx.LoRA(4, 2, 6, param_dtype=dtype, rngs=rngs)
        self.lora.lora_b[...] = jnp.asarray(0.3 * X[:2, :3].repeat(2, 1), dtype)
        self.out = nnx.Linear(6, 2, param_dtype=dtype, rngs=rngs)

    def __call__(self, x):
        return self.out(jnp.tanh(self.base(x) + self.lora(x)))


def lora(dtype):
    loss = lambda m, b: square(m(b[0]), b[1])
    kind = nnx.LoRAParam
    return of_module(loss, module(Adapted, dtype), cast((X, Y), dtype), kind, filter=kind)


def bfloat16(dtype):
    """Activations in bfloat16 where the parameters are in float32."""
    inner = jnp.bfloat16 if dtype == jnp.float32 else dtype
    dense = functools.partial(nn.Dense, dtype=inner)
    model, (x, y) = nn.Sequential([dense(5), jnp.tanh, dense(2)]), cast((X, Y), dtype)
    params = cast(jax.jit(model.init)(jax.random.key(0), X), dtype)
    loss = lambda p, b: square(model.apply(p, b[0]).astype(dtype), b[1])
    return of_tree(loss, params, (x, y))


def scan(dtype):
    """Stacked layers under lax.scan."""
    stack = np.random.default_rng(4).normal(size=(3, 4, 4)) / 2

    def loss(w, batch):
        x, _ = jax.lax.scan(lambda x, layer: (x + jnp.tanh(x @ layer), None), batch[0], w["stack"])
        return square(x @ w["out"], batch[1])

    return of_tree(loss, cast({"stack": stack, "out": X[:4, :2]}, dtype), cast((X, Y), dtype))


def remat(dtype):
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            for _ in range(2):
                x = jnp.sin(nn.remat(nn.Dense)(4)(x))
            return nn.Dense(2)(x)

    model, (x, y) = Net(), cast((X, Y), dtype)
    params = cast(jax.jit(model.init)(jax.random.key(0), X), dtype)
    return of_tree(lambda p, b: square(model.apply(p, b[0]), b[1]), params, (x, y))


def sharded(dtype):
    """Examples and columns lie on two devices, where there are two."""
    mesh = Mesh(np.asarray(jax.devices()[:2]), ("devices",))
    put = lambda x, *axes: jax.device_put(
        jnp.asarray(x, dtype), NamedSharding(mesh, PartitionSpec(*axes))
    )
    rng = np.random.default_rng(5)
    params = {
        "w": put(rng.normal(size=(4, 8)) / 2, None, "devices"),
        "v": put(rng.normal(size=(8, 2)) / 3, "devices", None),
    }
    batch = put(X, "devices", None), put(Y, "devices", None)
    loss = lambda p, b: square(jnp.tanh(b[0] @ p["w"]) @ p["v"], b[1])
    away = jax.tree.map(np.asarray, (params, batch))
    vector, back = ravel_pytree(jax.tree.map(jnp.asarray, away[0]))
    return Network(loss, params, batch, lambda v: loss(back(v), away[1]), vector, {})


ZOO = {
    "linen": linen, "nnx": nnx_attention, "equinox": equinox, "plain": plain, "tied": tied,
    "batch norm": batch_norm, "dropout": dropout, "lora": lora, "bfloat16": bfloat16,
    "scan": scan, "remat": remat, "sharded": sharded,
}  # fmt: skip
# As users have it; the draws of dropout depend on x64.
pytestmark = [pytest.mark.usefixtures("x64", "standard")]
KINDS = pytest.mark.parametrize("kind", ZOO)


@pytest.fixture
def standard():
    with jax.numpy_dtype_promotion("standard"):
        yield


@functools.cache
def truth(kind):
    """The eigenvalues of the dense Hessian in float64, ascending."""
    network = ZOO[kind](jnp.float64)
    matrix = np.asarray(jax.jit(jax.hessian(network.flat))(network.vector))
    assert np.abs(matrix).max() > 0 and matrix.dtype == np.float64
    return np.linalg.eigvalsh((matrix + matrix.T) / 2)


@pytest.mark.default_cases("tied", "scan")
@KINDS
def test_float64_agrees_with_the_dense_truth(kind):
    network, values = ZOO[kind](jnp.float64), truth(kind)
    H = jb.Curvature(network.loss, network.params, network.batch, **network.options)
    scale = np.abs(values).max()
    near = lambda found, wanted: np.testing.assert_allclose(
        found, wanted, rtol=0, atol=1e-6 * scale
    )
    assert H.size == values.size
    ends = H.extremes(dense_limit=0)
    assert ends.converged
    near([ends.minimum, ends.maximum], values[[0, -1]])
    near(H.top(3, dense_limit=0).values, values[:-4:-1])
    near(H.top(2, end="least", dense_limit=0).values, values[:2])
    near(np.linalg.eigvalsh(np.asarray(H.dense())), values)
    # As many rows as there are parameters: nothing is left to estimate.
    trace = H.trace(products=H.size + H.size // 4 + 5)
    near(float(trace.estimate) / H.size, values.mean())
    moment, error = H.spectrum().moment(1)
    assert abs(moment - values.mean()) <= 5 * error + 1e-6 * scale


@pytest.mark.default_cases("lora", "bfloat16", "sharded")
@KINDS
def test_the_reported_error_covers_the_truth_in_lower_precision(kind):
    network, values = ZOO[kind](jnp.float32), truth(kind)
    H = jb.Curvature(network.loss, network.params, network.batch, **network.options)
    ends = H.extremes(dense_limit=0)
    for value, residual, wanted in (
        (ends.minimum, ends.residual_minimum, values[0]),
        (ends.maximum, ends.residual_maximum, values[-1]),
    ):
        allowed = float(residual) + 8 * float(ends.noise)
        assert abs(float(value) - wanted) <= allowed
    rough = kind == "bfloat16"
    assert bool(ends.converged) is not rough
    # The noise is no excuse: it is small beside the scale, as the precision says.
    assert float(ends.noise) <= (2e-2 if rough else 4e-7) * np.abs(values).max()
