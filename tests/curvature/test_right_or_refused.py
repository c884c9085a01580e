"""The curvature of a network as practitioners write it is right, or refused with the cause.

The oracle is `jax.hessian`, or `nnx.grad`, of the same loss without the library.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.experimental.ode import odeint

import jaxbounds as jb
from jaxbounds.networks.curvature import (
    head_shares,
    hessian_vector_product,
    lanczos_extremes,
    shares,
)
from jaxbounds.networks.curvature.leaves import select

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(8, 3)), RNG.normal(size=(8, 3))


@pytest.fixture(autouse=True)
def lenient():
    """The promotions that JAX has by itself, and users rely on."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


def ends(H):
    found = H.extremes()
    return [float(found.minimum), float(found.maximum)]


LIST = getattr(nnx, "List", list)
"""A list of modules; before Flax 0.12 a plain one."""


class Tied(nnx.Module):
    """A layer that stands in two attributes and in a list."""

    def __init__(self):
        self.first = nnx.Linear(3, 3, rngs=nnx.Rngs(0), param_dtype=jnp.float64)
        self.second = self.first
        other = nnx.Linear(3, 3, rngs=nnx.Rngs(1), param_dtype=jnp.float64)
        self.layers = LIST([self.first, other])

    def __call__(self, x):
        return self.second(jnp.tanh(self.first(x)))


def tied_loss(model, batch):
    return jnp.mean((model(batch[0]) - batch[1]) ** 2)


def penalty(model, batch):
    """Counts each Variable once, as nnx.state does."""
    return sum(jnp.sum(leaf**4) for leaf in jax.tree.leaves(nnx.state(model, nnx.Param)))


def truth_of(model, loss, batch):
    graph, state = nnx.split(model)
    flat, back = jax.flatten_util.ravel_pytree(state)
    return np.asarray(jax.hessian(lambda v: loss(nnx.merge(graph, back(v)), batch))(flat))


@pytest.mark.slow_cases("tied_loss")
@pytest.mark.parametrize("loss", [tied_loss, penalty])
def test_a_shared_variable_is_one_parameter(loss, x64):
    model = Tied()
    H = jb.Curvature(loss, model, (X, Y))
    expected = truth_of(model, loss, (X, Y))
    assert H.size == len(expected) == 24
    values = np.linalg.eigvalsh(expected)
    np.testing.assert_allclose(ends(H), values[[0, -1]], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(H.dense(), expected, atol=1e-12)
    product = nnx.state(H @ model)
    flat = jax.flatten_util.ravel_pytree(nnx.state(model))[0]
    np.testing.assert_allclose(
        jax.flatten_util.ravel_pytree(product)[0], expected @ flat, atol=1e-12
    )


def test_a_filter_takes_a_shared_variable_by_any_of_its_places(x64):
    model = Tied()
    sizes = {f: jb.Curvature(tied_loss, model, (X, Y), filter=f).size for f in ("first", "second")}
    assert sizes == {"first": 12, "second": 12}
    # The eigenvector is a module that shares, too: each layer counts once.
    vector = jb.Curvature(tied_loss, model, (X, Y), filter="second").extremes().vector_maximum
    assert vector.first.kernel is vector.second.kernel
    assert sum(shares(vector).values()) == pytest.approx(1) and len(shares(vector)) == 2
    assert float(jnp.sum(head_shares(vector, {"first/kernel": 1, "first/bias": 0}))) <= 1 + 1e-9


def test_two_values_for_one_parameter_are_refused(x64):
    model, other = Tied(), Tied()
    other.second = nnx.Linear(3, 3, rngs=nnx.Rngs(5))
    with pytest.raises(
        ValueError, match="'first/kernel' and path='second/kernel' are one shared parameter"
    ):
        jb.Curvature(tied_loss, model, (X, Y)) @ other
    with pytest.raises(ValueError, match="different axes of heads"):
        select(model, heads={"first/kernel": 0, "second/kernel": 1})


def squares(w, batch):
    x, y = batch.values() if isinstance(batch, dict) else batch
    return jnp.mean((x @ w["a"] - y) ** 2)


@pytest.mark.parametrize("turn", [1, -1])
def test_losses_on_batches_of_other_trees_do_not_meet(turn, x64):
    w = {"a": jnp.ones((3, 3))}
    batches = [(X, Y), {"x": X, "y": Y}, [[X, Y]], [(X, Y)]][::turn]
    found = [ends(jb.Curvature(squares, w, batch)) for batch in batches]
    np.testing.assert_allclose(found, [found[0]] * 4, rtol=1e-12)


W = {"a": jnp.ones((3, 2)), "b": jnp.ones(2)}


def two_layers(w, batch):
    return jnp.mean((jnp.tanh(batch[0] @ w["a"]) + w["b"] - batch[1][:, :2]) ** 2)


@pytest.mark.parametrize(
    "v, words",
    [
        ({"a": jnp.ones((2, 3)), "b": jnp.ones(2)}, "'a' of the pytree has shape"),
        ({"c": jnp.ones((3, 2)), "b": jnp.ones(2)}, "lacks 'a' and has 'c'"),
        ({"b": jnp.ones(2)}, "lacks 'a'"), (jnp.ones(7), "has 8 columns"),
        ({"a": jnp.ones((3, 2)), "b": jnp.ones(2), "z": jnp.ones(1)}, "has 'z'"),
        ({"a": np.ones((3, 2), int), "b": jnp.ones(2)}, "'a' of the pytree is int64"),
        ([jnp.ones((3, 2)), jnp.ones(2)], "lacks 'a', 'b' and has '0', '1'"),
    ],
)  # fmt: skip
def test_a_vector_that_is_not_like_the_parameters(v, words, unannotated):
    with pytest.raises(ValueError, match=words):
        jb.Curvature(two_layers, W, (X, Y)) @ v
    if isinstance(v, dict):
        with pytest.raises(ValueError, match=words):
            hessian_vector_product(two_layers, W, (X, Y))(v)


def test_a_vector_by_path(x64):
    wide = {"a": jnp.ones((3, 2)), "b": jnp.ones(2)}
    H = jb.Curvature(two_layers, wide, (X, Y))
    v = {"b": jnp.arange(2.0), "a": jnp.arange(6.0).reshape(3, 2)}
    flat = np.r_[v["a"].ravel(), v["b"]]
    image = H @ v
    np.testing.assert_allclose(np.r_[image["a"].ravel(), image["b"]], H.dense() @ flat, atol=1e-12)
    np.testing.assert_allclose(jax.jit(lambda u: H @ u)(flat), H.dense() @ flat, atol=1e-12)


def test_a_list_of_arrays_of_one_length_is_refused():
    loss = lambda w, x: jnp.mean((x @ w["a"]) ** 2)
    for ask in (jb.Curvature, jb.hessian_extremes, lambda *a: jb.CurvatureMonitor(a[0])(0, *a[1:])):
        with pytest.raises(ValueError, match=r"Try the tuple .* or the keyword batches="):
            ask(loss, W, [X, Y])
    with pytest.raises(ValueError, match="both given"):
        jb.Curvature(loss, W, X, batches=[X, Y])
    filtered = jb.Curvature(loss, W, batches=[X, Y], filter="a")
    whole = jb.Curvature(loss, W, np.concatenate([X, Y]), filter="a")
    np.testing.assert_allclose(ends(filtered), ends(whole), rtol=1e-4, atol=1e-5)
    assert "2 batches (float32[8, 3])" in repr(filtered) and "1 batch (float32[16, 3])" in repr(
        whole
    )
    assert "without batches" in repr(jb.Curvature(lambda w: jnp.sum(w["a"] ** 2), W))
    cut = repr(jb.Curvature(two_layers, W, (X, Y), batch_size=3))
    assert "2 batches (float32[3, 3], float32[3, 3]) and 1 batch (float32[2, 3]" in cut


FORGETS = {
    "a forgotten argument": lambda w, b: jnp.mean(b[0]),
    "stop_gradient": lambda w, b: two_layers(jax.lax.stop_gradient(w), b),
    "argmax": lambda w, b: jnp.mean(1.0 * (jnp.argmax(b[0] @ w["a"], 1) == 0)),
    "a constant": lambda w, b: 3.0,
    "rounding": lambda w, b: jnp.sum(jnp.round(w["a"])) + jnp.sum(w["b"] > 0),
}


@pytest.mark.default_cases("stop_gradient")
@pytest.mark.parametrize("name", FORGETS)
def test_a_gradient_that_vanishes_everywhere_is_reported(name):
    H = jb.Curvature(FORGETS[name], W, (X, Y))
    asks = (H.extremes, H.trace, H.spectrum, H.dense, lambda: H.top(1), lambda: H @ W)
    for ask in asks:
        with pytest.raises(ValueError, match="does not depend on params='a', 'b'"):
            ask()
    with pytest.raises(ValueError, match="does not depend on"):
        jb.CurvatureMonitor(FORGETS[name])(0, W, (X, Y))


def test_a_gradient_that_vanishes_somewhere_is_none():
    for loss in (
        lambda w: jnp.sum(w**4), jnp.sum, lambda w: jnp.sum(jax.nn.relu(-1 - w)) + 0 * w[0],
        lambda w: 0.0 * jnp.sum(w**2),
    ):  # fmt: skip
        assert ends(jb.Curvature(loss, jnp.zeros(3))) == [0, 0]
    with pytest.raises(ValueError, match="does not depend on params='b'"):
        jb.Curvature(lambda w: jnp.sum(w["a"] ** 2), W).blocks({"b": "b"})


@pytest.mark.parametrize(
    "mask, size", [({"a": True, "b": False}, 6), ({"a": False, "b": True}, 2), (True, 8)]
)
def test_a_tree_of_booleans_is_a_mask(mask, size):
    assert jb.Curvature(two_layers, W, (X, Y), filter=mask).size == size
    block = jb.Curvature(two_layers, W, (X, Y)).blocks({"one": mask})["one"]
    assert (block.vector_maximum["a"] is None) == (size == 2)


def test_a_mask_of_a_module_and_of_a_part_of_a_tree(x64):
    model = Tied()
    mask = jax.tree.map(lambda leaf: leaf.ndim == 2, model)
    assert jb.Curvature(tied_loss, model, (X, Y), filter=mask).size == 18
    nested = {"net": W, "head": jnp.ones(2)}
    loss = lambda w, b: two_layers(w["net"], b) + jnp.sum(w["head"] ** 2)
    assert jb.Curvature(loss, nested, (X, Y), filter={"net": True, "head": False}).size == 8


@pytest.mark.parametrize(
    "mask, words",
    [
        ({"b": False}, "mask with leaves='b'"), ({"a": True}, "the leaves of the parameters"),
        ({"a": False, "b": False}, "selects no parameter"), (3, "names no parameter"),
        ({"a": True, "b": "x"}, "expected a mask"),
        ({"a": np.ones((3, 2), bool), "b": True}, "single boolean for each"),
        (lambda leaf: False, "a function gets the path"),
    ],
)  # fmt: skip
def test_masks_that_do_not_fit(mask, words, unannotated):
    with pytest.raises(ValueError, match=words):
        jb.Curvature(two_layers, W, (X, Y), filter=mask)


def test_the_error_of_a_share_covers_the_truth():
    """A spectrum with a null space of 65%, whose other eigenvalues crowd around it."""
    rng = np.random.default_rng(0)
    n = 1500
    low, high = int(0.168 * n), int(0.182 * n)
    tail = lambda count: np.abs(rng.normal(size=count)) * 10.0 ** rng.uniform(-4, 0, count)
    values = np.concatenate([np.zeros(n - low - high), -tail(low), 10 * tail(high)])
    d = jnp.asarray(values, jnp.float32)
    H = jb.Curvature(lambda w: 0.5 * jnp.sum(d * w * w), jnp.ones(n))
    spectra = [H.spectrum(key=jax.random.key(k)) for k in range(12)]
    for x in (-1e-1, -1e-4, 1e-2, 5.0):
        found = np.array([s.share_below(x) for s in spectra])
        z = (found[:, 0] - np.mean(values < x)) / found[:, 1]
        assert np.sqrt(np.mean(z**2)) < 1.7 and np.abs(z).max() < 4, (x, z)
    for x, share in ((-100.0, 0.0), (100.0, 1.0)):
        found, error = spectra[0].share_below(x)
        assert abs(found - share) < 1e-5 and error < 1e-5
    # The error is no way out: far from the crowd it is small.
    assert spectra[0].share_below(1.0)[1] < 0.02
    with pytest.raises(ValueError, match="x=nan"):
        spectra[0].share_below(float("nan"))


@jax.custom_vjp
def tutorial(x, y):
    """JAX's own tutorial on custom derivatives: its forward rule calls the function."""
    return jnp.sin(x) * y


tutorial.defvjp(
    lambda x, y: (tutorial(x, y), (jnp.cos(x), jnp.sin(x), y)),
    lambda kept, slope: (kept[0] * slope * kept[2], kept[1] * slope),
)
RULED = {
    "linear": lambda w, b: jnp.mean(tutorial(b @ w, 2 * jnp.ones(len(b)))),
    "nonlinear": lambda w, b: jnp.mean(tutorial(b @ w, 2 * jnp.ones(len(b))) ** 3),
    "odeint": lambda w, b: jnp.mean(
        odeint(lambda v, t: jnp.sin(v * b[0]), w, jnp.linspace(0.0, 1.0, 3))[-1] ** 2
    ),
}
PLAIN = {
    "linear": lambda w, b: jnp.mean(jnp.sin(b @ w) * 2.0),
    "nonlinear": lambda w, b: jnp.mean((jnp.sin(b @ w) * 2.0) ** 3),
}


@pytest.mark.default_cases("linear-2", "nonlinear-4")
@pytest.mark.parametrize(
    "name, parts", [(n, p) for n in PLAIN for p in (1, 2, 4)] + [("odeint", 2)]
)
def test_a_custom_vjp_in_any_number_of_batches(name, parts, x64):
    w = jnp.array([0.3, -0.2, 0.5])
    batches = [jnp.asarray(x) for x in np.split(X, parts)]
    found = jb.Curvature(RULED[name], w, batches=batches).extremes()
    if name in PLAIN:
        second = sum(jax.hessian(PLAIN[name])(w, b) for b in batches) / parts
    else:
        second = sum(jax.jacrev(jax.grad(RULED[name]))(w, b) for b in batches) / parts
    expected = np.linalg.eigvalsh((second + second.T) / 2)[[0, -1]]
    close = {"rtol": 1e-9, "atol": 1e-12} if name in PLAIN else {"rtol": 1e-5, "atol": 1e-6}
    np.testing.assert_allclose([found.minimum, found.maximum], expected, **close)


def test_a_custom_vjp_in_the_network_of_a_gauss_newton_matrix(x64):
    net = jb.Composite(
        lambda w, b: tutorial(b @ w, 2 * jnp.ones(len(b))), lambda z, b: jnp.mean(z**2)
    )
    plain = jb.Composite(lambda w, b: jnp.sin(b @ w) * 2.0, lambda z, b: jnp.mean(z**2))
    w = jnp.array([0.3, -0.2, 0.5])
    for batches in ([jnp.asarray(X)], [jnp.asarray(x) for x in np.split(X, 2)]):
        one, two = (jb.Curvature(f, w, batches=batches, of="ggn").dense() for f in (net, plain))
        np.testing.assert_allclose(one, two, atol=1e-12)


@pytest.mark.slow_cases("0.0001", "-0.0001")
@pytest.mark.parametrize("gap", [1e-4, -1e-4, 1e-5])
def test_one_eigenvalue_beside_many_equal_ones(gap):
    d = jnp.ones(100_000, jnp.float32).at[7].set(1 + gap)
    ask = jax.jit(lambda key: lanczos_extremes(lambda v: d * v, d.size, key))
    for seed in range(2):
        found = ask(jax.random.key(seed))
        np.testing.assert_allclose(
            [found.minimum, found.maximum], sorted([1.0, 1 + gap]), rtol=0, atol=1e-6
        )
