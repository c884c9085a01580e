"""What the bounds say about a model of one's own, of any library, and all reasons where nothing."""

from dataclasses import dataclass, field

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from jaxbounds.seqlength.certificate import applicable, generalization_certificate
from jaxbounds.seqlength.extract_norms import extract_network, extract_norms
from jaxbounds.seqlength.parameters import leaves_by_path, read_layers

D, HEADS = 4, 2


def _draw(shapes, seed=0):
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda s: jnp.float32(0.4 * rng.normal(size=s.shape)), shapes)


def _plain():
    """Attention and two dense layers as nested dicts of the names that Flax uses."""
    part = lambda *shape: {"kernel": np.zeros(shape), "bias": np.zeros(shape[1:])}
    heads = {name: part(D, HEADS, 3) for name in ("query", "key", "value")}
    out = {"kernel": np.zeros((HEADS, 3, D)), "bias": np.zeros(D)}
    return _draw({"attend": heads | {"out": out}, "a_last": part(5, 2), "first": part(D, 5)})


class One(nn.Module):
    residual: bool = False

    @nn.compact
    def __call__(self, x):
        y = nn.MultiHeadDotProductAttention(HEADS, qkv_features=6, name="attend")(x, x)
        y = (y + x if self.residual else y)[:, 0]
        return nn.Dense(2, name="a_last")(jnp.tanh(nn.Dense(5, name="first")(y)))


@pytest.fixture(scope="module")
def x():
    return np.asarray(jax.random.normal(jax.random.key(3), (40, 3, D)), np.float64)


def test_nested_dicts_map_and_give_norms_and_the_bound(x):
    params = _plain()
    found = applicable(params, x)
    dense = [("first", "relu"), ("a_last", "relu")]
    network = extract_network(params, attention="attend", dense=dense)
    assert found.reasons == () and found.norms == extract_norms(network)
    sure = generalization_certificate(network, x, readout=np.array([-1.0, 1.0]), loss_range=1.0)
    assert found.certificate == sure and found.certificate.bound > 1.0
    assert any("possible around attention at attend" in one for one in found.unseen)
    assert any("taken as relu" in one for one in found.unseen)
    assert "gap at most" in str(found) and "not seen: residual connections: possible" in str(found)
    # Norms need no data, and variables of linen are the same leaves.
    norms = applicable({"params": params})
    assert norms.norms == found.norms and norms.certificate is None
    assert str(norms).startswith("applies\nnorms only: give X")
    # What is assumed of activations bounds whatever they are.
    known = applicable(params, x, dense=[("first", "identity"), ("a_last", "tanh")])
    assert known.certificate.bound < found.certificate.bound
    assert not any("relu" in one for one in known.unseen)


def test_outputs_decide_what_parameters_do_not_show(x):
    params = _plain()
    outputs = One().apply({"params": params}, jnp.float32(x))
    found = applicable(params, x, outputs=outputs)
    assert found.reasons == () and found.unseen == ()
    assert [layer.activation for layer in found.network.dense] == ["identity", "tanh"]
    other = applicable(
        params, x, outputs=One(residual=True).apply({"params": params}, jnp.float32(x))
    )
    (reason,) = other.reasons
    assert other.network is None and other.certificate is None and other.norms == {}
    assert reason.what.startswith("the given outputs differ from these layers' outputs, by ")
    assert "residual connection" in reason.change and "attend" in reason.paths


class LinenBlock(nn.Module):
    @nn.compact
    def __call__(self, x):
        y = nn.LayerNorm(name="ln1")(x)
        x = x + nn.MultiHeadDotProductAttention(HEADS, name="attention")(y, y)
        y = nn.Dense(6, name="up")(nn.LayerNorm(name="ln2")(x))
        return x + nn.Dense(D, name="down")(nn.relu(y))


class LinenTransformer(nn.Module):
    @nn.compact
    def __call__(self, ids):
        x = nn.Embed(7, D, name="embed")(ids)
        for number in range(2):
            x = LinenBlock(name=f"blocks_{number}")(x)
        return nn.Dense(2, name="readout")(nn.LayerNorm(name="last")(x)[:, 0])


class NnxBlock(nnx.Module):
    def __init__(self, rngs):
        self.ln1, self.ln2 = (nnx.LayerNorm(D, rngs=rngs) for _ in range(2))
        self.attention = nnx.MultiHeadAttention(HEADS, D, D, decode=False, rngs=rngs)
        self.up, self.down = nnx.Linear(D, 6, rngs=rngs), nnx.Linear(6, D, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)


class NnxTransformer(nnx.Module):
    def __init__(self, rngs):
        self.embed = nnx.Embed(7, D, rngs=rngs)
        self.blocks = nnx.List([NnxBlock(rngs) for _ in range(2)])
        self.last = nnx.LayerNorm(D, rngs=rngs)
        self.readout = nnx.Linear(D, 2, rngs=rngs)


def _reasons(found):
    assert found.network is None and found.certificate is None and found.norms == {}
    return {reason.what.split(":")[0]: reason.paths for reason in found.reasons}


def _two_blocks(block):
    norms = [f"{block}{n}/ln{k}" for n in range(2) for k in (1, 2)]
    return {
        "LayerNorm, RMSNorm or BatchNorm": (*norms, "last"),
        "the model contains embeddings": ("embed/embedding",),
        "the model has more than one block": tuple(f"{block}{n}/attention" for n in range(2)),
    }


def test_two_pre_ln_blocks_of_linen_give_every_reason_at_once():
    shapes = jax.eval_shape(LinenTransformer().init, jax.random.key(0), jnp.zeros((2, 3), int))
    found = applicable(_draw(shapes))
    assert _reasons(found) == _two_blocks("blocks_")
    assert all(reason.change for reason in found.reasons)
    said = str(found)
    assert "at blocks_0/ln1, blocks_0/ln2, blocks_1/ln1" in said and "multi_layer." in said
    assert (
        "residual connections: possible around attention at blocks_0/attention, because it keeps"
        in said
    )
    # Shapes alone have the same reasons, and one more.
    assert set(_reasons(applicable(shapes))) == {
        *_two_blocks(""),
        "the parameters are shapes without values",
    }


def test_two_pre_ln_blocks_of_nnx_as_module_state_and_dict():
    graph, shapes = nnx.split(nnx.eval_shape(lambda: NnxTransformer(nnx.Rngs(0))))
    params, random = nnx.split_state(shapes, nnx.Param, ...)
    streams = jax.tree.map(lambda s: jax.random.key(0) if "key" in str(s.dtype) else 0, random)
    module = nnx.merge(graph, _draw(params), streams)
    state = nnx.state(module, nnx.Param)
    for model in (module, nnx.state(module), state, nnx.to_pure_dict(state)):
        assert _reasons(applicable(model)) == _two_blocks("blocks/")


def _tree(*static):
    def decorate(cls):
        cls = dataclass(cls)
        data = [name for name in cls.__dataclass_fields__ if name not in static]
        return jax.tree_util.register_dataclass(cls, data, list(static))

    return decorate


@_tree()
class Linear:
    """As Equinox stores it: outputs first."""

    weight: jax.Array
    bias: jax.Array | None = None

    def __call__(self, x):
        y = self.weight @ x
        return y if self.bias is None else y + self.bias


@_tree("num_heads")
class Attention:
    """As Equinox stores it: projections are matrices, and how many heads is no leaf."""

    query_proj: Linear
    key_proj: Linear
    value_proj: Linear
    output_proj: Linear
    num_heads: int

    def __call__(self, x):
        cut = lambda proj: jax.vmap(proj)(x).reshape(len(x), self.num_heads, -1)
        q, k, v = map(cut, (self.query_proj, self.key_proj, self.value_proj))
        weights = jax.nn.softmax(jnp.einsum("ihc,jhc->hij", q, k) / np.sqrt(q.shape[-1]))
        mixed = jnp.einsum("hij,jhc->ihc", weights, v)
        return jax.vmap(self.output_proj)(mixed.reshape(len(x), -1))


@_tree()
class Model:
    attention: Attention
    layers: list
    activation: object = field(default=jnp.tanh)

    def __call__(self, x):
        return self.layers[1](self.activation(self.layers[0](self.attention(x)[-1])))


def _model():
    rng = np.random.default_rng(5)
    normal = lambda *shape: jnp.float32(0.4 * rng.normal(size=shape))
    draw = lambda k, d: Linear(normal(k, d), normal(k))
    bare = lambda k, d: Linear(normal(k, d))
    parts = draw(6, D), bare(6, D), draw(4, D), draw(3, 4)  # value heads are narrower
    return Model(Attention(*parts, HEADS), [draw(5, 3), draw(1, 5)])


def test_modules_in_the_layout_of_equinox_map(x):
    model = _model()
    outputs = jax.vmap(model)(jnp.float32(x))
    found = applicable(model, x, cls=-1, outputs=outputs)
    assert found.reasons == () and found.unseen == ()
    np.testing.assert_allclose(found.network(x), outputs, atol=1e-5)
    unseen = applicable(model, x).unseen
    assert any("none around attention" in one for one in unseen)
    # Without the module nobody knows how many heads there are.
    leaves = {path.replace("/", "."): leaf for path, leaf in leaves_by_path(model).items()}
    nested = {"attention": {}, "layers": {}}
    for path, leaf in leaves.items():
        first, second, name = path.split(".")
        nested[first].setdefault(second, {})[name] = leaf
    assert _reasons(applicable(nested)) == {
        "the parameters do not show the number of heads": ("attention",)
    }
    assert applicable(nested, heads=HEADS).norms == found.norms
    assert "heads" in next(iter(_reasons(applicable(nested, heads=5))))


def test_nothing_that_is_given_raises_an_attribute_error():
    nothing = (
        None,
        3.0,
        "text",
        {},
        [],
        object(),
        One(),
        jnp.tanh,
        np,
        {"params": {}},
        np.arange(3),
    )
    for model in nothing:
        assert next(iter(_reasons(applicable(model)))).startswith("no parameters in a ")
    for model in (np.ones(3), [np.ones((2, 2, 2))], {"a": np.ones(2), "b": "text", "c": 1j}):
        assert "some leaves belong to no attention or dense layer" in _reasons(applicable(model))


def test_each_reason_alone(x):
    params = _plain()
    reasons = lambda change, *arguments, **more: _reasons(
        applicable(params | change, *arguments, **more)
    )
    assert reasons({"first": {}, "a_last": {}}) == {
        "the model has no dense layer after the attention": ()
    }
    assert (
        reasons({"attend": {}})[
            "the model has no attention with projections query, key, value and out"
        ]
        == ()
    )
    same = {"kernel": np.ones((D, D)), "bias": np.ones(D)}
    assert reasons({"first": same, "a_last": same}) == {
        "the widths do not determine the order of the dense layers": (
            "a_last (4 to 4)",
            "first (4 to 4)",
        )
    }
    # One of a dozen that cannot follow is found without trying every order.
    many = {f"layer{n}": same for n in range(11)} | {"first": same}
    unclear = ["the widths do not determine the order of the dense layers"]
    assert list(reasons(many | {"a_last": {}})) == unclear
    assert list(reasons(many)) == unclear  # thirteen are too many to say more
    (what,) = reasons(many | {"first": {}, "a_last": {"kernel": np.ones((9, 2))}})
    assert what.startswith("no order of the dense layers fits")
    said = [("first", "tanh"), ("a_last", "tanh")]
    assert applicable(
        params | {"first": same, "a_last": same}, dense=said, readout=np.ones(4)
    ).norms
    before = {"kernel": np.ones((7, D)), "bias": np.ones(D)}
    (what,) = reasons({"before": before})
    assert what.startswith("no order of the dense layers fits")
    needs = "but the attention needs (m, T, 4)"
    for shape in ((40, 3, 2), (3, 5)):
        assert list(reasons({}, np.ones(shape))) == [f"the inputs have shape {shape}, {needs}"]
    three = {"kernel": np.ones((5, 3)), "bias": np.ones(3)}
    assert reasons({"a_last": three}) == {
        "the network has 3 outputs, but the bound needs a scalar output": ()
    }
    assert applicable(params | {"a_last": three}, readout=np.eye(3)[0]).reasons == ()
    (what,) = reasons({}, dense=[("nowhere", "relu")])
    assert what.startswith("no parameter nowhere/kernel")
    broken = {"kernel": np.full((D, 5), np.nan), "bias": np.ones(5)}
    assert reasons({"first": broken}) == {"some values are NaN or infinite": ("first/kernel",)}
    assert reasons({"qkv": same})["one matrix contains query, key and value"] == (
        "qkv/bias",
        "qkv/kernel",
    )
    assert reasons({"cls": np.ones(D)}) == {
        "some leaves belong to no attention or dense layer": ("cls",)
    }
    state = {"params": params, "batch_stats": {"norm": {"mean": np.ones(D), "var": np.ones(D)}}}
    assert list(_reasons(applicable(state)).values()) == [("batch_stats/norm",)]
    stacked = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), params["attend"])
    assert "the model has more than one block" in reasons({"attend": stacked})
    with pytest.raises(ValueError, match="expected all entries"):
        applicable(params, np.full((2, 3, D), np.nan))


def test_training_states_are_read_for_their_parameters():
    params, zeros = _plain(), jnp.zeros(3)
    state = {"step": 3, "params": {"params": params}, "opt_state": ({"mu": zeros},)}
    assert applicable(state).norms == applicable(params).norms
    assert set(read_layers(params).dense) == {"first", "a_last"}
