"""`bounds_for`: what the papers say of a network of any library, and all reasons why not."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from flax.training.train_state import TrainState

import jaxbounds as jb
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.multihead.model import MultiHeadAttention
from jaxbounds.seqlength.certificate import generalization_bound
from jaxbounds.seqlength.network_bound import token_norms, with_readout

D, HEADS, VOCABULARY = 4, 2, 7
IDS = np.zeros((5, 3), int)
RNG = np.random.default_rng(0)


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
        x = nn.Embed(VOCABULARY, D, name="embed")(ids)
        for number in range(2):
            x = LinenBlock(name=f"blocks_{number}")(x)
        return nn.Dense(2, name="readout")(nn.LayerNorm(name="last")(x)[:, 0])


class NnxBlock(nnx.Module):
    def __init__(self, rngs):
        self.ln1, self.ln2 = nnx.LayerNorm(D, rngs=rngs), nnx.LayerNorm(D, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(HEADS, D, D, decode=False, rngs=rngs)
        self.up, self.down = nnx.Linear(D, 6, rngs=rngs), nnx.Linear(6, D, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)


class NnxTransformer(nnx.Module):
    def __init__(self, rngs):
        self.embed = nnx.Embed(VOCABULARY, D, rngs=rngs)
        self.blocks = nnx.List([NnxBlock(rngs) for _ in range(2)])
        self.last = nnx.LayerNorm(D, rngs=rngs)
        self.readout = nnx.Linear(D, 2, rngs=rngs)


def of_linen():
    return jax.jit(LinenTransformer().init)(jax.random.key(0), jnp.asarray(IDS))


def of_nnx():
    return NnxTransformer(nnx.Rngs(0))


def of_equinox():
    eqx = pytest.importorskip("equinox")
    key = jax.random.key(0)

    class Block(eqx.Module):
        ln1: eqx.nn.LayerNorm
        ln2: eqx.nn.LayerNorm
        attention: eqx.nn.MultiheadAttention
        up: eqx.nn.Linear
        down: eqx.nn.Linear

        def __init__(self):
            self.ln1, self.ln2 = eqx.nn.LayerNorm(D), eqx.nn.LayerNorm(D)
            self.attention = eqx.nn.MultiheadAttention(HEADS, D, dropout_p=0.1, key=key)
            self.up, self.down = (eqx.nn.Linear(*io, key=key) for io in ((D, 6), (6, D)))

    class Transformer(eqx.Module):
        embed: eqx.nn.Embedding
        blocks: list
        last: eqx.nn.LayerNorm
        readout: eqx.nn.Linear

        def __init__(self):
            self.embed = eqx.nn.Embedding(VOCABULARY, D, key=key)
            self.blocks, self.last = [Block(), Block()], eqx.nn.LayerNorm(D)
            self.readout = eqx.nn.Linear(D, 2, key=key)

    return Transformer()


@pytest.mark.parametrize(
    "model, block, table",
    [(of_linen, "blocks_", "embedding"), (of_nnx, "blocks/", "embedding"),
     (of_equinox, "blocks/", "weight")],
)  # fmt: skip
def test_two_pre_ln_blocks_in_each_library(model, block, table):
    """LayerNorm, embedding, two blocks, dense layers, and token ids for data, all at once."""
    found = jb.bounds_for(model(), IDS)
    assert found.applying == () and all(one.value is None for one in found.papers)
    said = {
        one.paper: {reason.what.split(":")[0]: reason.paths for reason in one.reasons}
        for one in found.papers
    }
    norms = (*(f"{block}{n}/ln{k}" for n in range(2) for k in (1, 2)), "last")
    attention = tuple(f"{block}{n}/attention" for n in range(2))
    dense = tuple(f"{block}{n}/{name}" for n in range(2) for name in ("down", "up"))
    ids = {"the data have shape (5, 3), expected (n, T, d) with tokens as vectors": ("data",)}
    both = {
        "LayerNorm, RMSNorm or BatchNorm": norms,
        "the model contains embeddings": (f"embed/{table}",),
    } | ids
    assert said["seqlength"] == both | {"the model has more than one block": attention}
    heads = said["multihead"]
    projections = "the attention has parameters query, key, value and out instead of U and W"
    layers = "the network has dense layers, but model (2) is linear in the attention's output"
    assert {*heads.pop(layers)} == {*dense, "readout"}
    blocks = {
        "the network has more than one block, but model (2) has a single attention layer": attention
    }
    assert heads == both | blocks | {projections: attention}
    kinds = {what.partition(" may receive")[0]: paths for what, paths in said["qstr"].items()}
    assert set(kinds) == {"attention", "a normalisation", "an embedding", *ids}
    assert all(path.startswith(attention) for path in kinds["attention"])
    assert all(path.startswith(norms) for path in kinds["a normalisation"])
    assert kinds["an embedding"] == (f"embed/{table}",)
    assert len(said["smapprox"]) == 1
    assert all(reason.change for one in found.papers for reason in one.reasons)
    assert f"residual connections: possible around attention at {attention[0]}" in str(found)
    assert repr(found).startswith("none of 4 bounds applies; nearest: seqlength, ")
    assert str(found).splitlines()[0] == found.verdict and len(str(found).splitlines()) <= 30
    # Each reason stands once, whatever the number of papers and paths.
    for reason in {one.what for paper in found.papers for one in paper.reasons}:
        shown = 0 if "all-layer margin" in reason or "U and W" in reason else 1
        assert " ".join(str(found).split()).count(reason) <= max(shown, 1), reason
    assert "smapprox" not in str(found) and "jb.weak_convexity" in str(found)
    assert max(map(len, repr(found).splitlines())) <= 100 and len(repr(found)) < 5000


def _one_attention():
    part = lambda *shape: {"kernel": 0.3 * RNG.normal(size=shape), "bias": np.zeros(shape[1:])}
    heads = {name: part(D, HEADS, 3) for name in ("query", "key", "value")}
    out = {"kernel": 0.3 * RNG.normal(size=(HEADS, 3, D)), "bias": np.zeros(D)}
    return {"attend": heads | {"out": out}, "first": part(D, 5), "last": part(5, 2)}


def test_the_gap_of_one_attention_layer_and_from_which_sample_size_on():
    params, X = _one_attention(), RNG.normal(size=(20, 3, D))
    found = jb.bounds_for(params, X)["seqlength"]
    assert found.applies and found.trivial == 1.0 < found.value
    # The same bound at other sample sizes: norms are powers of two, and delta is shared among them.
    norms = found.details.certificate.norms
    shares = [(np.log2(norm) + 1) * (np.log2(norm) + 2) for norm in norms.values()]
    network, tokens = with_readout(found.details.network, np.array([-1.0, 1.0])), token_norms(X, 0)
    options = {"loss_range": 1.0, "delta": 0.05 / np.prod(shares)}
    at = lambda m: generalization_bound(network, norms, tokens, m, **options)
    assert at(20) == pytest.approx(found.value, rel=1e-12)
    assert at(found.from_size) < 1.0 < at(int(0.998 * found.from_size))
    assert f"{found.value:.6g} (trivial: 1); says something from n = " in str(found)
    assert f"says something from n = {found.from_size:,} on" in repr(found)
    assert any("taken as relu" in one for one in found.unseen) and "relu" in str(found)
    wider = jb.bounds_for(params, X, loss_range=2.0)["seqlength"]
    assert wider.trivial == 2.0 and wider.from_size < found.from_size
    # Without data, and as a training state: what it is, is the same.
    state = TrainState.create(apply_fn=None, params=params, tx=optax.adam(0.1))
    for given in (params, {"params": params}, state):
        bare = jb.bounds_for(given)["seqlength"]
        assert bare.applies and bare.value is None and "give data" in repr(bare)
    other = jb.bounds_for(params, X, outputs=np.ones((20, 2)))["seqlength"]
    assert [reason.what.split(",")[0] for reason in other.reasons] == [
        "the given outputs differ from these layers' outputs"
    ]
    (refused,) = jb.bounds_for(params, X, cls=9)["seqlength"].reasons
    assert "cls=9 is no token of a sequence of length T=3" in refused.what


def test_one_attention_layer_of_equinox():
    """Settings of its dropout are no parameters, and its projections are matrices."""
    eqx = pytest.importorskip("equinox")
    key = jax.random.key(0)

    class Small(eqx.Module):
        attention: eqx.nn.MultiheadAttention
        readout: eqx.nn.Linear

        def __call__(self, x):
            return self.readout(self.attention(x, x, x, inference=True)[0])

    attention = eqx.nn.MultiheadAttention(HEADS, D, dropout_p=0.1, key=key)
    model = Small(attention, eqx.nn.Linear(D, 1, key=key))
    X = RNG.normal(size=(8, 3, D)).astype(np.float32)
    found = jb.bounds_for(model, X, outputs=jax.vmap(model)(jnp.asarray(X)))["seqlength"]
    assert found.applies and found.unseen == () and found.value > 0


def test_the_floor_of_a_layer_on_the_whole_prompt():
    X = RNG.normal(size=(5, 4, 3))
    rows = RNG.normal(size=(6, 5)) @ X.reshape(5, 12)
    params = {"params": {"hidden": {"kernel": rows.T}, "out": {"kernel": np.ones((6, 1))}}}
    found = jb.bounds_for(params, X)
    assert [one.paper for one in found.applying] == ["qstr"]
    assert found["qstr"].value == pytest.approx(1 - 5 / 12)
    assert found["qstr"].to_size == 11 and "says something up to n = 11" in str(found)
    for first in ("hidden/kernel", "params/hidden/kernel"):
        assert jb.bounds_for(params, X, first=first)["qstr"].applies
    (missing,) = jb.bounds_for(params)["qstr"].reasons
    assert missing.what == "the prompts are not given" and missing.paths == ("the prompts",)


def test_model_2_has_a_bound_on_its_curvature():
    H, T, d, n = 2, 3, 2, 6
    X, y = RNG.normal(size=(n, T, d)), np.where(RNG.normal(size=n) > 0, 1.0, -1.0)
    module = MultiHeadAttention(heads=H, scale=1.5)
    variables = jax.jit(module.init)(jax.random.key(1), jnp.asarray(X[0]))
    U = np.asarray(variables["params"]["U"], np.float64)
    R, largest = np.linalg.norm(X, axis=2).max(), np.linalg.norm(U.reshape(H, -1), axis=1).max()
    by_hand = T**0.5 * R**3 * (4 / 27**0.5 * R**2 * largest + 1) / H**0.5
    found = jb.bounds_for(variables, X)
    assert [one.paper for one in found.applying] == ["multihead"]
    assert found["multihead"].value == pytest.approx(by_hand, rel=1e-12)
    assert "says something at every n" in repr(found["multihead"])

    def loss(flat):
        params = {"U": flat[: U.size].reshape(U.shape), "W": flat[U.size :].reshape(H, d, d)}
        outputs = jax.vmap(lambda x: module.apply({"params": params}, x))(jnp.asarray(X))
        return jnp.mean(jnp.log1p(jnp.exp(-jnp.asarray(y) * outputs)))

    with enable_x64(True):
        W = np.asarray(variables["params"]["W"], np.float64)
        point = jnp.asarray(np.concatenate([U.ravel(), W.ravel()]))
        ratio = -np.linalg.eigvalsh(jax.jit(jax.hessian(loss))(point))[0] / float(loss(point))
    assert 0 < ratio <= by_hand
    assert jb.bounds_for(variables)["multihead"].value is None
    outputs = jax.jit(jax.vmap(lambda x: module.apply(variables, x)))(jnp.float32(X))
    for seen, unseen in ((None, 2), (outputs, 1)):
        alike = jb.bounds_for(variables, X, outputs=seen)["multihead"]
        assert alike.value == found["multihead"].value and len(alike.unseen) == unseen
    (other,) = jb.bounds_for(variables, X, outputs=1.01 * outputs)["multihead"].reasons
    assert other.what == "the given outputs differ from those of model (2)"
    reasons = lambda params, *data: jb.bounds_for(params, *data)["multihead"].reasons
    (pooled,) = reasons({"U": np.ones((H, d)), "W": np.ones((H, d, d))})
    assert "U has shape (2, 2)" in pooled.what and "E14" in pooled.change
    (longer,) = reasons(variables, X[:, :2])
    assert longer.what == "the data have shape (6, 2, 2), but U needs (n, 3, 2)"
    (wild,) = reasons({"U": np.full((H, T, d), np.nan), "W": np.ones((H, d, d))}, X)
    assert wild.paths == ("U", "W") and "NaN or infinite" in wild.what


STRANGE = (None, 3.0, "text", {}, [], object(), nn.Dense(2), jnp.tanh, np, {1: 2, "a": 3},
           np.ones(3), {"a": np.array(["b"])}, {"p": 0.5}, type("Frame", (), {"ndim": 2})(),
           jax.ShapeDtypeStruct((2, 3), jnp.float32), {"U": 1.0, "W": "x"})  # fmt: skip


USELESS = (None, "prompts", {"x": 1}, [[1.0], [2.0, 3.0]], np.ones((2, 0, 3)),
           np.full((2, 3, 4), np.nan), object())  # fmt: skip


@pytest.mark.parametrize("data", [*USELESS, np.ones((2, 3, 4))])
def test_whatever_comes_is_answered(data):
    for model in STRANGE:
        found = jb.bounds_for(model, data)
        assert found.applying == () and all(one.reasons for one in found.papers), model
        assert repr(found) and str(found) and "<table>" in found._repr_html_()
        assert all("does not apply" in repr(one) for one in found.papers)


def test_under_a_trace_and_with_bad_options():
    params = _one_attention()
    told = []

    @jax.jit
    def inside(p):
        told.append(jb.bounds_for(p))
        return 0

    inside(params)
    assert told[0].applying == () and "traced" in told[0]["seqlength"].reasons[0].what
    for options in ({"delta": 1.0}, {"loss_range": 0.0}, {"lipschitz": np.inf}):
        with pytest.raises(ValueError, match="positive, finite loss_range"):
            jb.bounds_for(params, **options)
    with pytest.raises(
        KeyError, match=r"paper='bert' has no answer\. Try one of: seqlength, qstr, multihead"
    ):
        jb.bounds_for(params)["bert"]
