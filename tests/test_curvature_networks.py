"""Curvature of pytrees of any kind, on batches, in blocks; spectra, traces, weak convexity.

The oracle is `jax.hessian` of a plain function of one vector, with numpy's eigenvalues.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from flax.training.train_state import TrainState

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.networks import curvature
from jaxbounds.networks.curvature import programs
from jaxbounds.networks.curvature.leaves import select

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 6))
Y = np.sign(X[:, 0])
W, V = RNG.normal(size=(6, 8)), RNG.normal(size=(8,))


def outputs(params, batch):
    """A two-layer network with eight hidden units, which play the heads."""
    return jnp.tanh(batch["x"] @ params["w"]) @ params["v"]


def outer(z, batch):
    """The mean logistic loss."""
    return jnp.mean(jnp.logaddexp(jnp.zeros_like(z), -batch["y"] * z))


LOSS = curvature.Composite(outputs, outer)


@pytest.fixture
def network(x64):
    """Parameters and a batch in float64."""
    return {"v": jnp.asarray(V), "w": jnp.asarray(W)}, {"x": jnp.asarray(X), "y": jnp.asarray(Y)}


def flat_loss(flat):
    """The same loss of one vector, without the library: v, then w."""
    z = jnp.tanh(X @ flat[8:].reshape(6, 8)) @ flat[:8]
    return jnp.mean(jax.nn.softplus(-Y * z))


@pytest.fixture(scope="module")
def truth():
    """The Hessian as a matrix, v first."""
    with enable_x64(True):
        return np.asarray(jax.jit(jax.hessian(flat_loss))(np.r_[V, W.ravel()]))


def test_products_and_matrix(network, truth):
    params, batch = network
    np.testing.assert_allclose(curvature.dense_hessian(LOSS, params, batch), truth, atol=1e-12)
    v = jax.tree.map(lambda leaf: np.random.default_rng(1).normal(size=leaf.shape), params)
    found = jax.jit(curvature.hessian_vector_product(LOSS, params, batch))(v)
    expected = truth @ np.r_[v["v"], v["w"].ravel()]
    np.testing.assert_allclose(np.r_[found["v"], found["w"].ravel()], expected, atol=1e-12)


def test_gauss_newton(network):
    params, batch = network
    hidden = np.tanh(X @ W)
    by_w = X[:, :, None] * ((1 - hidden**2) * V)[:, None]
    jacobian = np.concatenate([hidden, by_w.reshape(12, 48)], axis=1)
    bend = np.diag(1 / (2 + 2 * np.cosh(hidden @ V)) / 12)
    expected = jacobian.T @ bend @ jacobian
    found = curvature.dense_hessian(LOSS, params, batch, of="ggn")
    np.testing.assert_allclose(found, expected, atol=1e-12)
    v = {"v": np.ones(8), "w": np.zeros((6, 8))}
    product = jax.jit(curvature.ggn_vector_product(LOSS, params, batch))(v)
    np.testing.assert_allclose(product["v"], expected[:8, :8].sum(1), atol=1e-12)
    ends = curvature.hessian_extremes(
        LOSS, params, batch, of="ggn", dense_limit=0, batch_size=5, basis=56
    )
    top = np.linalg.eigvalsh(expected)[[0, -1]]
    np.testing.assert_allclose([ends.minimum, ends.maximum], top, atol=1e-8)
    with pytest.raises(ValueError, match="two parts"):
        curvature.hessian_extremes(lambda p: jnp.sum(p), jnp.ones(3), of="ggn")


@pytest.mark.slow_cases("one batch", "cut")
@pytest.mark.parametrize("how", ["one batch", "list", "cut", "cut unevenly", "dense, cut"])
def test_batches_are_averaged(how, network, truth):
    params, batch = network
    parts = [jax.tree.map(lambda leaf, i=i: leaf[i : i + 4], batch) for i in (0, 4, 8)]
    data = parts if how == "list" else batch
    options = {"cut": {"batch_size": 4}, "cut unevenly": {"batch_size": 5}}.get(how, {})
    if how == "dense, cut":
        options = {"batch_size": 5, "dense_limit": 100}
    ends = curvature.hessian_extremes(LOSS, params, data, **({"dense_limit": 0} | options))
    expected = np.linalg.eigvalsh(truth)[[0, -1]]
    np.testing.assert_allclose([ends.minimum, ends.maximum], expected, rtol=1e-9)
    assert ends.converged


def test_blocks_by_path_and_by_head(network, truth):
    params, batch = network
    found = curvature.block_extremes(
        LOSS, params, batch, blocks={"v": "v", "w": lambda path: path == "w"},
        heads={"w": 1, "v": 0}, dense_limit=0,
    )  # fmt: skip
    place = np.arange(56)
    blocks = {"v": place[:8], "w": place[8:]}
    blocks |= {f"head {h}": np.r_[h, 8 + h + 8 * np.arange(6)] for h in range(8)}
    assert set(found) == set(blocks)
    for name, rows in blocks.items():
        expected = np.linalg.eigvalsh(truth[np.ix_(rows, rows)])[[0, -1]]
        values = [found[name].minimum, found[name].maximum]
        np.testing.assert_allclose(values, expected, atol=1e-9)
    assert found["v"].vector_minimum["w"] is None
    vector = found["head 3"].vector_minimum
    assert curvature.head_shares(vector, {"w": 1, "v": 0})[3] == pytest.approx(1)


def test_shares_of_a_direction():
    direction = {"a": {"b": jnp.asarray([3.0, 0.0]), "c": None}, "d": jnp.asarray([[0.0, 4.0]])}
    assert curvature.shares(direction) == pytest.approx({"d": 16 / 25, "a/b": 9 / 25})
    assert curvature.shares(direction, depth=1) == pytest.approx({"d": 16 / 25, "a": 9 / 25})
    found = curvature.head_shares(direction, {"d": 1})
    np.testing.assert_allclose(found, [0, 16 / 25], rtol=1e-6)


def test_only_real_numbers_are_differentiated():
    params = {"a": jnp.ones(3), "i": jnp.arange(3), "f": jnp.tanh, "n": 2, "k": jax.random.key(0)}
    ends = curvature.hessian_extremes(lambda p: jnp.sum(p["a"] ** p["n"]), params)
    assert ends.minimum == pytest.approx(2) and ends.converged
    assert ends.vector_minimum["i"] is None and ends.vector_minimum["a"].shape == (3,)


def test_bfloat16_is_computed_in_float32():
    params = {"a": jnp.asarray([1.0, 2.0], jnp.bfloat16), "b": jnp.asarray([1.0])}
    ends = curvature.hessian_extremes(lambda p: jnp.sum(p["a"] ** 3) + jnp.sum(p["b"] ** 2), params)
    assert ends.minimum.dtype == jnp.float32
    np.testing.assert_allclose([ends.minimum, ends.maximum], [2, 12], rtol=1e-6)


def test_flax_and_equinox():
    equinox = pytest.importorskip("equinox")
    x = jnp.asarray(X, jnp.float32)
    linen = nn.Dense(2)
    variables = linen.init(jax.random.key(0), x)
    of_linen = lambda v, x: jnp.mean(linen.apply(v, x) ** 2)
    # Quadratic: the Hessian is the second moment of (x, 1), once for each output.
    moments = np.c_[X, np.ones(12)]
    expected = np.linalg.eigvalsh(moments.T @ moments / 12)[[0, -1]]
    for module, loss in (
        (variables, of_linen),
        (nnx.Linear(6, 2, rngs=nnx.Rngs(0)), lambda m, x: jnp.mean(m(x) ** 2)),
        (
            equinox.nn.Linear(6, 2, key=jax.random.key(0)),
            lambda m, x: jnp.mean(jax.vmap(m)(x) ** 2),
        ),
    ):
        ends = curvature.hessian_extremes(loss, module, x)
        np.testing.assert_allclose([ends.minimum, ends.maximum], expected, rtol=1e-4)
    with pytest.raises(ValueError, match="type=Dense, a linen module, which holds no parameters"):
        curvature.hessian_extremes(of_linen, linen, x)


def test_nnx_statistics_are_held_fixed_and_filters_take_kinds():
    class Normed(nnx.Module):
        def __init__(self, rngs):
            self.dense = nnx.Linear(6, 2, rngs=rngs)
            self.norm = nnx.BatchNorm(2, rngs=rngs)
            self.attention = nnx.MultiHeadAttention(2, 4, rngs=rngs, decode=False)

    module = Normed(nnx.Rngs(0))
    assert select(module, "dense").size == 14 and select(module, "norm").size == 4
    assert select(module, nnx.BatchStat).size == 4
    assert select(module, nnx.Param).size == select(module).size
    axes = curvature.head_axes(module)
    assert axes["attention/query/kernel"] == 1 and axes["attention/out/kernel"] == 0
    assert select(module, heads=axes).heads == 2


@pytest.fixture
def compilations():
    """How many programs of kernels were compiled since it was last asked."""
    programs._programs.clear()
    return lambda: sum(len(p._compiled) for p in programs._programs.values())


def test_one_program_for_many_calls(network, compilations):
    params, batch = network
    for i in range(4):
        moved = jax.tree.map(lambda leaf, i=i: leaf * (1 + i), params)
        key = jax.random.key(i)
        curvature.hessian_extremes(
            LOSS, moved, batch, dense_limit=0, key=key, iterations=20 + i, tolerance=10.0**-i
        )
    assert compilations() == 1


def scaled(params, batch):
    """A loss that reads a global number."""
    return SCALE * jnp.sum(params**2) * batch


SCALE = 1.0


def test_a_loss_is_what_it_refers_to(monkeypatch):
    # 2 s b is the Hessian of s b |p|^2, whatever was compiled before.
    ends = lambda loss: float(curvature.hessian_extremes(loss, jnp.ones(3), jnp.float32(2)).maximum)
    assert ends(scaled) == pytest.approx(4)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert ends(scaled) == pytest.approx(12)
    held = jnp.float32(1)

    def inner(params, batch):
        return jnp.sum(params**2) * held * batch

    assert ends(inner) == pytest.approx(4)
    held = jnp.float32(5)
    assert ends(inner) == pytest.approx(20)


def test_a_loss_made_anew_is_not_compiled_anew(compilations):
    """A lambda in a loop is another object each time, of the same program with other numbers."""
    values = []
    for scale in (1, 1, 2.0, 3.0):
        data = scale * np.ones(3, np.float32)
        ends = curvature.hessian_extremes(lambda p, d=data: jnp.sum(p * d) ** 2, jnp.ones(3))
        values.append(float(ends.maximum))
    np.testing.assert_allclose(values, [6, 6, 24, 54], rtol=1e-5)
    assert compilations() == 1


class Holder:
    """An object whose contents somebody changes in place, as nnx modules are."""

    def __init__(self, scale):
        self.scale = scale


def test_what_is_changed_in_place_is_seen(compilations):
    """2 s is the Hessian of s |p|^2, read from an array, a dict, an object, an nnx module."""
    array, table, holder = np.ones(1, np.float32), {"scale": 1.0}, Holder(1.0)
    module = nnx.Linear(1, 1, rngs=nnx.Rngs(0))
    kernel = lambda value: jnp.full((1, 1), value, jnp.float32)
    module.kernel[...] = kernel(1.0)
    losses = {
        "array": lambda p: jnp.sum(array * p**2),
        "dict": lambda p: jnp.sum(table["scale"] * p**2),
        "object": lambda p: jnp.sum(holder.scale * p**2),
        "module": lambda p: jnp.sum(module(p[:, None] ** 2)),
    }
    for name, loss in losses.items():
        assert float(curvature.hessian_extremes(loss, jnp.ones(3)).maximum) == pytest.approx(2)
        array[:], table["scale"], holder.scale = 20.0, 20.0, 20.0
        module.kernel[...] = kernel(20.0)
        for measured in (
            curvature.hessian_extremes(loss, jnp.ones(3)).maximum,
            curvature.spectrum(loss, jnp.ones(3), probes=1).nodes.max(),
            curvature.trace(loss, jnp.ones(3), products=2, method="hutchinson").estimate / 3,
            curvature.weak_convexity(loss, jnp.ones(3)).extremes.maximum,
        ):
            assert float(measured) == pytest.approx(40, rel=1e-4), name
        array[:], table["scale"], holder.scale = 1.0, 1.0, 1.0
        module.kernel[...] = kernel(1.0)


def test_a_rule_of_ones_own_for_a_derivative_is_part_of_the_loss():
    """Two functions with one program and other rules: x^2, with f'' = 2 c by its rule."""

    def loss_of(factor):
        @jax.custom_jvp
        def square(x):
            return x * x

        slope = lambda x, t: 2 * factor * x * t
        square.defjvp(lambda at, along: (square(*at), slope(*at, *along)))
        return lambda p: jnp.sum(square(p))

    ends = lambda factor: float(curvature.hessian_extremes(loss_of(factor), jnp.ones(2)).maximum)
    assert (ends(1.0), ends(3.0)) == pytest.approx((2.0, 6.0))


@pytest.mark.parametrize("held", ["closure", "parameters"])
def test_dropout_in_train_mode_is_refused(held):
    class Net(nnx.Module):
        def __init__(self, rngs):
            self.first, self.drop = nnx.Linear(3, 4, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x):
            return self.drop(self.first(x))

    model, x = Net(nnx.Rngs(0)), jnp.ones((2, 3))
    graph, params, rest = nnx.split(model, nnx.Param, ...)
    everything = nnx.split(model)

    def loss(state):
        parts = (graph, state, rest) if held == "closure" else (everything[0], state)
        return jnp.mean(nnx.merge(*parts, copy=True)(x) ** 2)

    with pytest.raises(ValueError, match="dropout in train mode"):
        curvature.hessian_extremes(loss, params if held == "closure" else everything[1])
    model.eval()
    graph, params, rest = nnx.split(model, nnx.Param, ...)
    everything = nnx.split(model)
    assert curvature.hessian_extremes(
        loss, params if held == "closure" else everything[1]
    ).converged


def test_a_key_in_the_batch_or_in_the_program_is_a_fixed_loss():
    noisy = lambda p, key: jnp.sum((p + 0 * jax.random.normal(key, (3,))) ** 2)
    assert curvature.hessian_extremes(noisy, jnp.ones(3), jax.random.key(0)).converged
    fixed = lambda p: noisy(p, jax.random.key(7))
    assert curvature.hessian_extremes(fixed, jnp.ones(3)).converged


@pytest.mark.parametrize("dense_limit", [1000, 0])
def test_narrow_operations_never_converge(dense_limit):
    """Products in bfloat16 are a Hessian of rounded numbers, whatever its residuals say."""
    x = jnp.asarray(X, jnp.float32)

    def loss(p, dtype):
        hidden = jnp.tanh(x.astype(dtype) @ p["w"].astype(dtype)).astype(jnp.float32)
        return jnp.mean((hidden @ p["v"] - 1) ** 2)

    size = x.shape[1]
    params = {"w": jnp.full((size, 3), 0.3) + 0.1 * jnp.eye(size, 3), "v": jnp.ones(3)}
    ends = lambda dtype: curvature.hessian_extremes(
        lambda p: loss(p, dtype), params, dense_limit=dense_limit
    )
    wide, narrow = ends(jnp.float32), ends(jnp.bfloat16)
    assert bool(wide.converged) and not narrow.converged_minimum and not narrow.converged_maximum
    scale = max(abs(float(narrow.minimum)), abs(float(narrow.maximum)))
    assert float(narrow.noise) == pytest.approx(2.0**-7 * scale)
    assert abs(float(narrow.minimum - wide.minimum)) < 10 * float(narrow.noise)


def test_the_state_of_an_optimiser_is_no_parameter():
    params = {"w": jnp.ones(3)}
    state = optax.adam(1e-3).init(params)
    assert select({"params": params, "state": state}).size == 3
    trained = TrainState.create(apply_fn=lambda p: p, params=params, tx=optax.adam(1e-3))
    assert select(trained).size == 3
    spectrum = curvature.spectrum(lambda t: jnp.sum(t.params["w"] ** 2), trained, probes=1)
    assert spectrum.size == 3


def test_statistics_of_linen_are_held_fixed():
    class Normed(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.BatchNorm(use_running_average=True)(nn.Dense(2)(x))
            return nn.Dense(1)(x)

    variables = Normed().init(jax.random.key(0), jnp.asarray(X, jnp.float32))
    chosen = select(variables)
    assert chosen.size == 6 * 2 + 2 + 2 * 2 + 2 + 1
    with pytest.raises(ValueError, match=r"no parameter matches filter='batch_stats"):
        select(variables, "batch_stats/*")
    # Without "params" beside it a name is only a name.
    assert select({"cache": jnp.ones(2)}).size == 2


def test_spectrum_against_the_eigenvalues(network, truth, monkeypatch):
    params, batch = network
    values = np.linalg.eigvalsh(truth)
    for stored in (2**28, 0):
        module = __import__("sys").modules["jaxbounds.networks.curvature.spectrum"]
        monkeypatch.setattr(module, "STORED_BYTES", stored)
        found = curvature.spectrum(LOSS, params, batch, probes=16)
        np.testing.assert_allclose(jnp.sum(found.weights, axis=1), 1, rtol=1e-12)
        for power in (1, 2, 3):
            mean, error = found.moment(power)
            assert abs(mean - np.mean(values**power)) <= 4 * error
        share, error = found.share_below(-0.05)
        assert abs(share - np.mean(values < -0.05)) <= 4 * error
        grid = np.linspace(-2, 2, 4001)
        assert np.trapezoid(found.density(grid), grid) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("method", ["hutchinson", "hutch++", "krylov"])
def test_trace_is_unbiased_and_its_error_is_honest(method, network, truth):
    params, batch = network
    found = [
        curvature.trace(LOSS, params, batch, key=jax.random.key(i), products=30, method=method)
        for i in range(20)
    ]
    errors = np.asarray([float(t.estimate) for t in found]) - np.trace(truth)
    stated = np.asarray([float(t.standard_error) for t in found])
    assert abs(errors.mean()) <= 4 * errors.std() / 20**0.5
    assert 0.5 < errors.std() / np.sqrt(np.mean(stated**2)) < 2


def test_hutch_plus_plus_pays_on_low_rank():
    factor = jnp.asarray(RNG.normal(size=(3, 500)), jnp.float32)
    loss = lambda w: jnp.sum((factor @ w) ** 2) / 2
    plain, better = (
        curvature.trace(loss, jnp.ones(500), products=30, method=m) for m in ("hutchinson", "auto")
    )
    expected = float(jnp.sum(factor**2))
    assert better.method == "krylov" and better.estimate == pytest.approx(expected, rel=1e-4)
    assert plain.standard_error > 100 * better.standard_error


def test_weak_convexity(network, truth):
    params, batch = network
    least, loss = np.linalg.eigvalsh(truth)[0], float(flat_loss(np.r_[V, W.ravel()]))
    found = curvature.weak_convexity(LOSS, params, batch, heads={"w": 1, "v": 0}, dense_limit=0)
    assert found.heads == 8 and found.resolved and found.violated is None
    assert found.ratio_at_least == pytest.approx(-least / loss, rel=1e-9)
    assert found.kappa_at_least == pytest.approx(-least / loss * 8**0.5, rel=1e-9)
    assert jnp.sum(found.by_head) == pytest.approx(1)
    kappa = -least / loss
    ask = lambda k: curvature.weak_convexity(LOSS, params, batch, kappa=k, dense_limit=0)
    assert ask(0.999 * kappa).violated and ask(0.999 * kappa).verdict == "violated"
    beyond = ask(1.001 * kappa)
    assert not beyond.violated and "no direction found in" in beyond.verdict
    assert "products" in beyond.verdict
    # The direction shows it without the library: numpy's quadratic form.
    v = np.r_[found.direction["v"], found.direction["w"].ravel()]
    assert v @ truth @ v == pytest.approx(least, rel=1e-9)
    with pytest.raises(ValueError, match="above 0"):
        curvature.weak_convexity(lambda w: -jnp.sum(w**2), jnp.ones(2))


def test_certificate(network, truth):
    params, batch = network
    found = curvature.convexity_certificate(LOSS, params, batch, iterations=56)
    single = lambda flat, x: flat[:8] @ jnp.tanh(x @ flat[8:].reshape(6, 8))
    hessians = jax.jit(jax.vmap(jax.hessian(single), (None, 0)))(np.r_[V, W.ravel()], X)
    norms = np.abs(np.linalg.eigvalsh(np.asarray(hessians))).max(axis=1)
    margin = Y * (np.tanh(X @ W) @ V)
    np.testing.assert_allclose(found.norms, norms, rtol=1e-9)
    assert found.bound == pytest.approx(np.mean(norms / (1 + np.exp(margin))), rel=1e-9)
    assert found.converged and found.bound >= -np.linalg.eigvalsh(truth)[0]


def _drawn(w):
    """Draws while it runs, not while it is traced."""
    shape = jax.ShapeDtypeStruct((), jnp.float32)
    return jnp.sum(w) * jax.pure_callback(lambda: np.float32(RNG.random()), shape)


@pytest.mark.parametrize(
    "loss, params, options, message",
    [
        (lambda w: w, jnp.ones(3), {}, r"one real number, got float32\[3\]"),
        (lambda w: (jnp.sum(w), w), jnp.ones(3), {}, "got type=tuple. Try to return"),
        (lambda w: None, jnp.ones(3), {}, "got type=NoneType. Try to return"),
        (
            lambda w, batch: jnp.sum(w),
            jnp.ones(3),
            {},
            r"the loss must take \(params\).* not given",
        ),
        (lambda w: jnp.sum(w), jnp.ones(3), {"tolerance": -1.0}, "spectral scale, got -1.0"),
        (lambda w: jnp.sum(w), jnp.ones(3), {"iterations": 0}, "positive integer, got 0"),
        (lambda w: jnp.log(-jnp.sum(w)), jnp.ones(3), {}, "the loss is nan"),
        (lambda w: jnp.sqrt(0 * jnp.sum(w)), jnp.ones(3), {}, "not finite. Try to avoid a root"),
        (lambda w: jnp.sum(w) * RNG.normal(), jnp.ones(3), {}, "another function at each call"),
        (_drawn, jnp.ones(3), {}, "another function at each call"),
        (lambda w: jnp.float32(0), {"i": jnp.arange(3)}, {}, "no array of real numbers"),
        (lambda w: jnp.float32(0), {"w": jnp.ones(2, jnp.complex64)}, {}, "w is complex"),
        (
            lambda w: jnp.sum(w["attention"]["kernel"]),
            {"attention": {"kernel": jnp.ones(3)}},
            {"filter": "atention"},
            "no parameter matches filter='atention'; nearest: attention",
        ),
    ],
)
def test_bad_input_is_refused_in_a_sentence(loss, params, options, message):
    with pytest.raises(ValueError, match=message) as refusal:
        curvature.hessian_extremes(loss, params, **options)
    assert len(str(refusal.value)) < 250


def test_bad_blocks_and_heads_are_refused(network, unannotated):
    params, batch = network
    for options, message in (
        ({"blocks": ["w"]}, "from names of blocks to filters"),
        ({"blocks": {"out": "u"}}, "no parameter matches filter='u'; there are: v, w"),
        ({"heads": {"u": 0}}, "no parameter matches heads='u'; there are: v, w"),
        ({"heads": {"u": 0, "x": 0}}, r"no parameter matches heads=\['u', 'x'\]; there are"),
        ({"heads": 8}, "to the axis of the heads"),
        ({"heads": {"w": 2}}, r"w has shape=\(6, 8\), which has no axis=2"),
        ({"heads": {"w": 0, "v": 0}}, "equal numbers of heads, got 8 in v, 6 in w"),
    ):
        with pytest.raises(ValueError, match=message):
            curvature.block_extremes(LOSS, params, batch, **options)
    for heads in (0, "w", 1.5):
        with pytest.raises(ValueError, match="heads must be the number"):
            curvature.weak_convexity(LOSS, params, batch, heads=heads)


def test_bad_batches_are_refused(network):
    params, batch = network
    short = jax.tree.map(lambda leaf: leaf[:3], batch)
    for data, options, message in (
        ([batch, short], {}, r"batch 1 and batch 0 differ in shape: expected \(float64\[12, 6\]"),
        ([], {}, "is empty"),
        (batch, {"batch_size": 0}, "batch_size cuts"),
        (None, {"batch_size": 2}, "without data"),
        (iter([batch]), {}, r"type=list_iterator, an iterator .* Try list\(batches\)"),
        ({}, {}, "hold no arrays"),
    ):
        with pytest.raises(ValueError, match=message):
            curvature.hessian_extremes(LOSS, params, data, **options)
