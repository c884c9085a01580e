"""RoBERTa against transformers (stored numbers, and live where it is installed) and NumPy."""

import functools
import json
import math
from dataclasses import replace
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.multihead.roberta import (
    Roberta,
    RobertaShape,
    init_roberta,
    prune_heads,
    recut_heads,
)
from jaxbounds.multihead.roberta_files import draw_classifier, load_roberta, save_roberta

FOLDER = Path(__file__).parent / "tiny_roberta"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf8"))
KEY = jax.eval_shape(lambda: jax.random.key(0))
TOKENS, MASK = np.asarray(EXPECTED["tokens"], np.int32), np.asarray(EXPECTED["mask"], bool)
SMALL = RobertaShape(
    vocabulary=11, width=6, layers=2, heads=5, head_width=3, inner=7, positions=12, gain=5**-0.5
)


def _drawn(shape):
    """Parameters of this shape from NumPy: compiling `init_roberta` takes longer."""
    rng, tree = np.random.default_rng(0), jax.eval_shape(lambda key: init_roberta(shape, key), KEY)
    return jax.tree.map(lambda leaf: 0.5 * rng.normal(size=leaf.shape).astype(leaf.dtype), tree)


@functools.partial(jax.jit, static_argnums=0)
def _apply(shape, params, tokens, mask):
    return Roberta(shape).apply({"params": params}, tokens, mask)


def _logits(shape, params, tokens=TOKENS, mask=MASK):
    return np.asarray(_apply(shape, params, jnp.asarray(tokens), jnp.asarray(mask)))


@pytest.fixture(scope="module")
def tiny():
    pytest.importorskip("safetensors")
    with enable_x64(True):
        return load_roberta(FOLDER, jax.random.key(0))


def test_the_stored_network_gives_the_numbers_of_transformers(x64, tiny):
    shape, params = tiny
    for heads in (1, 4):
        got = _logits(recut_heads(shape, heads), params)
        np.testing.assert_allclose(got, EXPECTED["logits"][str(heads)], rtol=0, atol=1e-12)
    # Heads matter here: the re-cut network is another function.
    assert np.abs(np.subtract(EXPECTED["logits"]["1"], EXPECTED["logits"]["4"])).max() > 0.1


def test_in_single_precision_it_is_as_close_as_that_allows(tiny):
    params = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, np.float32)), tiny[1])
    got = _logits(tiny[0], params)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, EXPECTED["logits"]["4"], rtol=0, atol=1e-5)


def _numpy_roberta(shape, params, tokens, mask):
    """One sentence, no padding, in loops over heads and tokens."""
    norm = lambda x, p: (
        (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + shape.eps) * p["scale"]
        + p["bias"]
    )
    dense = lambda x, p: x @ p["kernel"] + p["bias"]
    erf = np.vectorize(math.erf)
    rows = tokens[mask]
    x = np.stack([params["tokens"]["embedding"][token] for token in rows])
    x = x + params["positions"]["embedding"][shape.pad + 1 : shape.pad + 1 + len(rows)]
    x = norm(x + params["types"]["embedding"][0], params["norm"])
    for index in range(shape.layers):
        layer = params[f"layer{index}"]
        attention, total = layer["attention"], np.zeros_like(x)
        for head in range(shape.heads):
            part = slice(head * shape.head_width, (head + 1) * shape.head_width)
            q, k, v = (dense(x, attention[n])[:, part] for n in ("query", "key", "value"))
            for i in range(len(rows)):
                scores = np.exp(k @ q[i] / math.sqrt(shape.head_width))
                mixed = scores @ v / scores.sum()
                total[i] += shape.gain * mixed @ attention["output"]["kernel"][part]
        x = norm(x + total + attention["output"]["bias"], layer["attention_norm"])
        inner = dense(x, layer["inner"])
        inner = inner * (1 + erf(inner / math.sqrt(2))) / 2
        x = norm(x + dense(inner, layer["outer"]), layer["norm"])
    first = np.tanh(dense(x[0], params["classifier_dense"]))
    return dense(first, params["classifier_out"])


def test_heads_of_a_fixed_width_are_summed_with_their_gain(x64):
    """NumPy, head by head, one sentence at a time."""
    params = _drawn(SMALL)
    tokens = np.asarray([[0, 4, 9, 7, 2, 1, 1], [0, 3, 2, 1, 1, 1, 1]], np.int32)
    got = _logits(SMALL, params, tokens, tokens != 1)
    for row, logits in zip(tokens, got):
        expected = _numpy_roberta(SMALL, params, row, row != 1)
        np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-12)


def test_padding_changes_nothing(x64, tiny):
    shape, params = tiny
    whole = _logits(shape, params)
    for row, logits in zip(range(len(TOKENS)), whole):
        count = MASK[row].sum()
        alone = _logits(shape, params, TOKENS[row : row + 1, :count], MASK[row : row + 1, :count])
        np.testing.assert_allclose(alone[0], logits, rtol=0, atol=1e-13)
    more = np.full((len(TOKENS), 2), 5, np.int32)  # any token, as the mask leaves it out
    wider = np.concatenate([TOKENS, more], 1), np.concatenate([MASK, more < 0], 1)
    np.testing.assert_allclose(_logits(shape, params, *wider), whole, rtol=0, atol=1e-13)
    nothing = _logits(shape, params, TOKENS, np.zeros_like(MASK))
    assert np.all(np.isfinite(nothing))


def test_recutting_at_the_pretrained_head_count_is_the_identity(tiny):
    shape, _ = tiny
    assert recut_heads(shape, shape.heads) == shape
    with pytest.raises(ValueError, match=r"heads=3, expected a divisor of .* 16 attention columns"):
        recut_heads(shape, 3)


def test_pruning_is_the_whole_network_with_the_other_heads_silenced(x64, tiny):
    shape, params = tiny
    keep = np.asarray([[0, 2], [1, 3]])
    silenced = jax.tree.map(np.array, params)
    for index, kept in enumerate(keep):
        kernel = silenced[f"layer{index}"]["attention"]["output"]["kernel"]
        for head in set(range(4)) - set(kept.tolist()):
            kernel[head * 4 : (head + 1) * 4] = 0
    pruned = prune_heads(shape, params, keep)
    assert pruned["layer0"]["attention"]["query"]["kernel"].shape == (16, 8)
    got = _logits(replace(shape, heads=2), pruned)
    np.testing.assert_allclose(got, _logits(shape, silenced), rtol=0, atol=1e-13)
    everything = prune_heads(shape, params, np.tile(np.arange(4), (2, 1)))
    chex.assert_trees_all_equal(everything, params)
    for wrong in (keep[:1], keep + 3, keep[:, :0]):
        with pytest.raises(ValueError, match="with indices of heads below 4"):
            prune_heads(shape, params, wrong)


def test_first_weights_of_the_output_do_not_depend_on_how_heads_are_cut(key):
    """Of scale 1 / sqrt(H w gain^2): the sum over heads is as large at every H."""
    for shape in (SMALL, replace(SMALL, heads=1, head_width=15, gain=1.0)):
        shape = replace(shape, width=300, deviation=0.0)
        first = jax.jit(lambda key, shape=shape: init_roberta(shape, key)["layer0"]["attention"])
        kernel = first(key)["output"]["kernel"]
        fan = 3 if shape.heads == 5 else 15
        assert np.std(np.asarray(kernel)) * np.sqrt(fan) == pytest.approx(1.0, abs=0.06)


def test_dropout_acts_in_training_only():
    shape = replace(SMALL, dropout=0.5)
    params, tokens = _drawn(SMALL), jnp.asarray(np.array([[0, 4, 9, 2]], np.int32))
    mask = jnp.asarray(np.ones((1, 4), bool))
    apply = lambda train, key: Roberta(shape).apply(
        {"params": params}, tokens, mask, train=train, rngs={"dropout": key}
    )
    both = jax.jit(lambda key: (apply(False, key), apply(True, key)))
    first, second = both(jax.random.key(0)), both(jax.random.key(1))
    np.testing.assert_array_equal(first[0], second[0])
    assert not np.array_equal(first[1], second[1])


def test_sizes_that_are_no_network_are_refused(unannotated):
    with pytest.raises(ValueError, match="heads = 0"):
        replace(SMALL, heads=0)
    with pytest.raises(ValueError, match="positions > pad"):
        replace(SMALL, positions=2)
    with pytest.raises(ValueError, match="dropout"):
        replace(SMALL, dropout=1.0)
    with pytest.raises(ValueError, match="expected at most 10"):
        _logits(SMALL, _drawn(SMALL), np.zeros((1, 11), np.int32), np.ones((1, 11), bool))


# Files ------------------------------------------------------------------------------------------


def _stored():
    from safetensors.numpy import load_file

    return load_file(FOLDER / "model.safetensors")


def _folder(path, tensors=None, **entries):
    """The fixture with other tensors or other entries of its configuration."""
    from safetensors.numpy import save_file

    config = json.loads((FOLDER / "config.json").read_text(encoding="utf8")) | entries
    config = {name: value for name, value in config.items() if value != "absent"}
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config), encoding="utf8")
    save_file(_stored() if tensors is None else tensors, path / "model.safetensors")
    return path


def _same(first, second):
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(np.asarray(a, np.float64), np.asarray(b, np.float64))


def test_a_missing_classifier_is_drawn_and_the_rest_is_kept(tiny, tmp_path):
    body = {k: v for k, v in _stored().items() if not k.startswith("classifier")}
    body["lm_head.bias"] = np.zeros(330, np.float32)
    shape, params = load_roberta(_folder(tmp_path, body), jax.random.key(3), labels=2)
    assert shape.labels == 2 and params["classifier_out"]["kernel"].shape == (16, 2)
    whole = lambda p: {k: v for k, v in p.items() if not k.startswith("classifier")}
    _same(whole(params), whole(tiny[1]))
    fresh = draw_classifier(shape, jax.random.key(3))["classifier_out"]["kernel"]
    np.testing.assert_allclose(fresh, params["classifier_out"]["kernel"], rtol=1e-6)
    other = load_roberta(tmp_path, jax.random.key(4), labels=2)[1]
    assert not np.array_equal(
        other["classifier_dense"]["kernel"], params["classifier_dense"]["kernel"]
    )


def test_older_names_and_half_precision_are_read(tiny, tmp_path):
    import ml_dtypes

    older = {
        name.removeprefix("roberta.")
        .replace("LayerNorm.weight", "LayerNorm.gamma")
        .replace("LayerNorm.bias", "LayerNorm.beta"): value
        for name, value in _stored().items()
    }
    _same(load_roberta(_folder(tmp_path, older), jax.random.key(0))[1], tiny[1])
    half = {name: value.astype(ml_dtypes.bfloat16) for name, value in _stored().items()}
    params = load_roberta(_folder(tmp_path, half), jax.random.key(0))[1]
    assert params["norm"]["scale"].dtype == np.float32
    chex.assert_trees_all_close(params, jax.tree.map(np.float32, tiny[1]), rtol=2**-8, atol=0)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"model_type": "bert"}, "model_type='bert', expected 'roberta'"),
        ({"hidden_act": "relu"}, "hidden_act='relu', expected gelu"),
        ({"layer_norm_eps": "absent"}, "lacks keys=layer_norm_eps"),
        ({"num_attention_heads": 3}, "heads=3 do not divide width=16"),
        ({"num_hidden_layers": 3}, "lacks tensors=16, the first is roberta.encoder.layer.2"),
        ({"num_hidden_layers": 1}, "unknown tensors=16"),
        ({"vocab_size": 331}, r"word_embeddings.weight has shape=\(330, 16\), expected \(331, 16"),
    ],
)
def test_configurations_that_do_not_fit_are_refused(entries, words, tmp_path):
    pytest.importorskip("safetensors")
    with pytest.raises(ValueError, match=words):
        load_roberta(_folder(tmp_path, **entries), jax.random.key(0))


def test_damaged_and_missing_files_are_refused(tmp_path):
    pytest.importorskip("safetensors")
    with pytest.raises(ValueError, match="expected a Hugging Face folder"):
        load_roberta(tmp_path / "nowhere", jax.random.key(0))
    path = _folder(tmp_path) / "model.safetensors"
    with pytest.raises(ValueError, match="more than the limit"):
        load_roberta(tmp_path, jax.random.key(0), memory_limit=1000.0)
    tensors = _stored()
    name = "roberta.encoder.layer.1.output.dense.weight"
    del tensors[name]
    with pytest.raises(ValueError, match=f"lacks tensors=1, the first is {name}"):
        load_roberta(_folder(tmp_path, tensors), jax.random.key(0))
    with pytest.raises(ValueError, match=r"lacks tensors=1, the first is classifier\.dense\.bias"):
        rest = {k: v for k, v in _stored().items() if k != "classifier.dense.bias"}
        load_roberta(_folder(tmp_path, rest), jax.random.key(0))
    with pytest.raises(ValueError, match="holds no RoBERTa"):
        load_roberta(_folder(tmp_path, {"bert.x": np.zeros(1)}), jax.random.key(0))
    path.write_bytes(path.read_bytes()[:30])
    with pytest.raises(ValueError, match="is damaged"):
        load_roberta(tmp_path, jax.random.key(0))
    path.unlink()
    with pytest.raises(ValueError, match="neither a pickle"):
        load_roberta(tmp_path, jax.random.key(0))


def test_what_is_saved_is_loaded(tmp_path, key):
    pytest.importorskip("safetensors")
    shape = replace(SMALL, heads=2, gain=1.0, labels=3)
    params = _drawn(shape)
    found, loaded = load_roberta(save_roberta(tmp_path, shape, params), key)
    assert found == shape
    _same(loaded, params)
    with pytest.raises(ValueError, match=r"heads \* head_width = width"):
        save_roberta(tmp_path, SMALL, params)


@pytest.mark.parametrize(
    "size", ["tiny", pytest.param("base", marks=[pytest.mark.slow, pytest.mark.timeout(600)])]
)
@pytest.mark.filterwarnings("ignore")  # of other packages
def test_parity_with_transformers_where_it_is_installed(size, x64, tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    small = {
        **{"vocab_size": 300, "hidden_size": 32, "num_hidden_layers": 2},
        **{"intermediate_size": 64, "max_position_embeddings": 42, "num_attention_heads": 16},
    }
    base = {"vocab_size": 50265, "max_position_embeddings": 514}
    config = transformers.RobertaConfig(
        **(small if size == "tiny" else base), type_vocab_size=1, layer_norm_eps=1e-5
    )
    torch.manual_seed(0)
    network = transformers.RobertaForSequenceClassification(config).eval()
    with torch.no_grad():
        for leaf in network.parameters():
            leaf.add_((0.1 if leaf.ndim == 1 else 0.02) * torch.randn_like(leaf))
    network.save_pretrained(tmp_path)
    lengths = np.asarray([40, 29, 5])
    mask = np.arange(40) < lengths[:, None]
    tokens = np.where(mask, np.random.default_rng(0).integers(4, 300, mask.shape), 1)
    rows = {"input_ids": torch.tensor(tokens), "attention_mask": torch.tensor(mask * 1)}
    shape, params = load_roberta(tmp_path, jax.random.key(0))
    with torch.no_grad():
        single, double = (net(**rows).logits.numpy() for net in (network, network.double()))
    assert double.dtype == np.float64
    tokens = tokens.astype(np.int32)
    np.testing.assert_allclose(_logits(shape, params, tokens, mask), double, rtol=0, atol=1e-12)
    with enable_x64(False):
        narrow = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, np.float32)), params)
        got = _logits(shape, narrow, tokens, mask)
    np.testing.assert_allclose(got, single, rtol=0, atol=1e-5)
