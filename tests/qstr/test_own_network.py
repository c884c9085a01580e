"""Which networks of one's own Theorem 6 speaks of, and all reasons why it does not of others."""

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from jaxbounds.qstr import span
from jaxbounds.qstr.architectures import build
from jaxbounds.qstr.own_network import weights_of

N, d, n, m = 4, 3, 5, 6
RNG = np.random.default_rng(0)
X = RNG.standard_normal((n, N, d))
IN_SPAN = RNG.standard_normal((m, n)) @ X.reshape(n, N * d)
OFF_SPAN = RNG.standard_normal((m, N * d))
SECOND = RNG.standard_normal((1, m))


class Linen(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(1, name="out")(nn.relu(nn.Dense(m, name="hidden")(x)))


class OfNnx(nnx.Module):
    def __init__(self):
        rngs = nnx.Rngs(0)
        self.hidden, self.out = nnx.Linear(N * d, m, rngs=rngs), nnx.Linear(m, 1, rngs=rngs)
        self.drop = nnx.Dropout(0.1, rngs=rngs)


def in_all_libraries(W):
    """The network a relu(W x + b) + c in every form, with these rows."""
    variables = jax.jit(Linen().init)(jax.random.key(0), np.ones((1, N * d), np.float32))
    params = variables["params"]
    params["hidden"]["kernel"], params["out"]["kernel"] = jnp.asarray(W.T), jnp.asarray(SECOND.T)
    module = OfNnx()
    module.hidden.kernel[...], module.out.kernel[...] = W.T, SECOND.T
    torch = {"hidden": {"weight": W, "bias": np.ones(m)}, "out": {"weight": SECOND}}
    return {
        "linen": variables,
        "params": params,
        "nnx": module,
        "nnx state": nnx.state(module),
        "pure": nnx.to_pure_dict(nnx.state(module)),
        "weight": torch,
        "layers": [(W, np.ones(m)), (SECOND, np.ones(1))],
    }


@pytest.fixture(scope="module")
def networks():
    """A network in the span and another off it, each in every form."""
    return in_all_libraries(IN_SPAN), in_all_libraries(OFF_SPAN)


FORMS = ("linen", "params", "nnx", "nnx state", "pure", "weight", "layers")


@pytest.mark.parametrize("form", FORMS)
def test_one_network_in_every_form_has_one_answer(form, networks):
    u = np.array([1.0, 0.0, 0.0])
    yes = span.applicable(networks[0][form], X, u)
    assert yes.reasons == () and yes.off_span < 1e-12
    chex.assert_trees_all_equal(yes.bound._asdict(), span.feedforward_certificate(X, u)._asdict())
    no = span.applicable(networks[1][form], X, u)
    # Independent: what least squares on the prompts leaves of each row.
    A = X.reshape(n, N * d).T
    left = OFF_SPAN.T - A @ np.linalg.lstsq(A, OFF_SPAN.T)[0]
    assert no.off_span == pytest.approx(np.sum(left**2) / np.sum(OFF_SPAN**2), rel=1e-5)
    assert no.bound is None and no.first == yes.first
    (reason,) = no.reasons
    assert reason.where == no.first and "l2 penalty" in reason.change


def test_an_equinox_module():
    equinox = pytest.importorskip("equinox")
    mlp = equinox.nn.MLP(N * d, 1, m, depth=1, key=jax.random.key(0))
    at = lambda tree: tree.layers[0].weight
    moved = equinox.tree_at(at, mlp, jnp.asarray(IN_SPAN, jnp.float32))
    assert span.applicable(moved, X).reasons == ()
    assert span.applicable(mlp, X).first == span.applicable(moved, X).first == "layers/0/weight"
    assert "outside the span" in span.applicable(mlp, X).reasons[0].what


def trained(penalty, optimiser, steps=600):
    """A network of four hidden units on the prompts, by full gradients."""
    x, y = jnp.asarray(X.reshape(n, N * d)), jnp.asarray(X[:, 0, 0])
    key_1, key_2 = jax.random.split(jax.random.key(1))
    params = {
        "hidden": {"kernel": 0.25 * jax.random.normal(key_1, (N * d, 4)), "bias": jnp.zeros(4)},
        "out": {"kernel": 0.5 * jax.random.normal(key_2, (4, 1))},
    }

    def loss(p):
        hidden = jnp.tanh(x @ p["hidden"]["kernel"] + p["hidden"]["bias"][None])
        squares = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(p))
        return jnp.mean((hidden @ p["out"]["kernel"][:, 0] - y) ** 2) + 0.5 * penalty * squares

    def step(state, _):
        updates, inner = optimiser.update(jax.grad(loss)(state[0]), state[1], state[0])
        return (optax.apply_updates(state[0], updates), inner), None

    with jax.numpy_dtype_promotion("standard"):  # optax counts in integers
        descend = lambda p: jax.lax.scan(step, (p, optimiser.init(p)), None, length=steps)[0][0]
        return jax.jit(descend)(params)


def test_what_training_puts_into_the_span(x64):
    """Definition 5: a penalty in the loss does, plain descent and AdamW's decay do not."""
    penalised = span.applicable(trained(0.1, optax.sgd(0.2)), X)
    assert penalised.reasons == () and penalised.bound.average == pytest.approx(1 - n / (N * d))
    for params in (trained(0.0, optax.sgd(0.2)), trained(0.0, optax.adamw(0.01, weight_decay=0.1))):
        assert span.applicable(params, X).off_span > 1e-3


def test_all_reasons_come_at_once():
    class Block(nnx.Module):
        def __init__(self, rngs):
            self.ln1, self.ln2 = nnx.LayerNorm(8, rngs=rngs), nnx.LayerNorm(8, rngs=rngs)
            self.attention = nnx.MultiHeadAttention(2, 8, rngs=rngs, decode=False)
            self.mlp = nnx.Linear(8, 8, rngs=rngs)

    class Transformer(nnx.Module):
        def __init__(self, rngs):
            self.embed = nnx.Linear(d, 8, rngs=rngs)
            self.blocks = nnx.List([Block(rngs), Block(rngs)])

    module = Transformer(nnx.Rngs(0))
    module.embed.kernel[...] = jnp.nan
    got = span.applicable(module, X[0])
    said = " | ".join(f"{r.where}: {r.what}" for r in got.reasons)
    assert got.bound is None and np.isnan(got.off_span) and got.first == ""
    for words in (
        "embed/kernel: some weights are not finite",
        "(n, N, d)",
        "attention may receive",
        "normalisation",
    ):
        assert words in said
    got = span.applicable(module, X)
    assert "no matrix has the 12 entries" in " | ".join(r.what for r in got.reasons)
    assert all(reason.change for reason in got.reasons)


def test_what_comes_after_is_mapped_or_promised():
    after = {"attention": {"query": np.ones((m, 2, 3))}, "scale": np.ones(d)}
    params = {"first": {"kernel": IN_SPAN.T}, "out": {"kernel": SECOND.T}, **after}
    found = span.applicable(params, X)
    assert [r.where for r in found.reasons] == ["attention/query", "scale"]
    assert all("first='first/kernel'" in r.change for r in found.reasons)
    assert span.applicable(params, X, first="first/kernel").reasons == ()
    why = lambda params, **options: span.applicable(params, X, **options).reasons[0]
    twice = why({"a": {"kernel": np.eye(N * d)}, "b": {"kernel": np.eye(N * d)}})
    assert twice.where == "a/kernel, b/kernel" and "first=PATH" in twice.change
    assert "square" in why({"W": np.eye(N * d)}).what
    assert "first='V' is no parameter; matrices: W" in why({"W": IN_SPAN}, first="V").what
    assert "(1, 6)" in why({"W": IN_SPAN, "a": SECOND}, first="a").what


def test_encoded_tokens_lead_each_token():
    model, De = build("feedforward", N=N, d=d), 9
    variables = model.init(jax.random.key(0), jnp.ones((1, N, De)))
    got = span.applicable(variables, X, encoded=De)
    assert got.first == "params/mlp/W0" and [r.where for r in got.reasons] == [got.first]
    rows = np.asarray(RNG.standard_normal((N * d, N, De)))
    rows[..., :d] = (RNG.standard_normal((N * d, n)) @ X.reshape(n, -1)).reshape(-1, N, d)
    variables["params"]["mlp"]["W0"] = rows.reshape(N * d, -1)
    assert span.applicable(variables, X, encoded=De).reasons == ()
    assert "encoded=2, but" in span.applicable(variables, X, encoded=2).reasons[0].what


@pytest.mark.parametrize("model", [None, 3.0, "net", jax.nn.relu, nn.Dense(3), {}, {1: 2, "a": 3}])
@pytest.mark.parametrize("x", [X, None, "prompts", np.ones((2, 0, 3)), [[1.0], [2.0, 3.0]]])
def test_whatever_comes_is_answered(model, x):
    got = span.applicable(model, x)
    assert got.bound is None and got.reasons[0].where == "the model"
    assert ("the prompts" in [reason.where for reason in got.reasons]) == (x is not X)


def test_weights_are_the_floats():
    tree = {"a": jnp.ones(2, jnp.bfloat16), "key": jax.random.key(0), "count": np.arange(3)}
    chex.assert_trees_all_equal(weights_of(tree), {"a": np.ones(2)})
