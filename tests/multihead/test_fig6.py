"""Figure 6 at toy size: against a plain loop, resumed, with pretrained weights, its claims."""

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import xarray as xr

from jaxbounds.experiments.results import load, save
from jaxbounds.experiments.sweeps import Checkpoints
from jaxbounds.multihead.experiments import fig6
from jaxbounds.multihead.experiments.fig6 import experiment, runs
from jaxbounds.multihead.experiments.fig6.claims import _slopes, claims
from jaxbounds.multihead.experiments.fig6.data import prepare
from jaxbounds.multihead.experiments.fig6.drawing import figure
from jaxbounds.multihead.experiments.fig6.words import cost, parameter_count
from jaxbounds.multihead.grammar import Grammar, draw_sentences
from jaxbounds.multihead.roberta import Roberta, RobertaShape, init_roberta, recut_heads
from jaxbounds.multihead.roberta_files import load_roberta
from jaxbounds.multihead.text import read_text
from jaxbounds.multihead.tokens import stored_tokenizer, to_arrays

pytestmark = pytest.mark.usefixtures("kept_programs")

TINY = Path(__file__).parent / "tiny_roberta"
TOY = fig6.Figure6(
    heads=(2,),
    trials=2,
    epochs=2,
    batch=8,
    n=50,
    test=20,
    length=12,
    width=8,
    layers=1,
    inner=8,
    step_size=5e-3,
)
NAMES = ("train_loss", "train_accuracy", "test_loss", "test_accuracy")


@pytest.fixture(scope="module")
def toy():
    return fig6.run(TOY, jax.random.key(0))


def test_records_are_labelled(toy, capsys):
    assert toy.train_loss.dims == ("panel", "H", "trial", "step")
    # 50 sentences make 6 batches of 8; two looks in each of two epochs.
    assert toy.step.values.tolist() == [3, 6, 9, 12]
    assert toy.epoch.values.tolist() == [0.5, 1, 1.5, 2]
    assert toy.panel.values.tolist() == ["split"] and toy.H.values.tolist() == [2]
    assert toy.bag_of_words.dims == ("trial",) and "lexicon" not in toy
    assert np.all(toy.diverged == -1)
    text = toy.attrs["text"]
    assert "from scratch, not the paper's weights" in text and "a grammar of ours" in text
    assert "naive Bayes on a bag of words 0." in text and "2 runs of 12 steps" in toy.attrs["cost"]


def _plain_loop(config, key, trial, shape):
    """Losses and accuracies after each look: one network, optax, no sweep."""
    data_key, start_key, order_key, _ = jax.random.split(
        jax.random.split(key, config.trials)[trial], 4
    )
    data = prepare(config, key)
    rows = jax.tree.map(lambda leaf: leaf[trial], data.lanes["data"])
    both = draw_sentences(config.grammar, data_key, config.n + config.test)
    assert rows["labels"].tolist() == both.labels[: config.n].tolist()
    held = {k: v[trial].reshape(-1, *v.shape[3:])[:20] for k, v in data.lanes["test"].items()}
    assert held["labels"].tolist() == both.labels[config.n :].tolist()
    rule = optax.adamw(config.step_size, weight_decay=config.weight_decay)
    params, memory = jax.jit(lambda key: (p := init_roberta(shape, key), rule.init(p)))(start_key)
    found = []

    def losses(params, part):
        logits = Roberta(shape).apply({"params": params}, part["tokens"], part["mask"])
        chosen = jax.nn.log_softmax(logits)[jnp.arange(len(logits)), part["labels"]]
        return -jnp.mean(chosen), jnp.mean(
            (jnp.argmax(logits, 1) == part["labels"]).astype(jnp.float32)
        )

    @jax.jit
    def advance(params, memory, part):
        slope = jax.grad(lambda params: losses(params, part)[0])(params)
        with jax.numpy_dtype_promotion("standard"):
            updates, memory = rule.update(slope, memory, params)
            return optax.apply_updates(params, updates), memory

    judge, rows = jax.jit(losses), jax.tree.map(np.asarray, rows)
    for epoch_key in jax.random.split(order_key, config.epochs):
        order = np.asarray(jax.random.permutation(epoch_key, config.n))
        for step in range(6):
            batch = {k: v[order[8 * step : 8 * step + 8]] for k, v in rows.items()}
            params, memory = advance(params, memory, batch)
            if step % 3 == 2:
                first = {k: v[:20] for k, v in rows.items()}
                found.append([*judge(params, first), *judge(params, held)])
    return np.asarray(found, float).T


def test_a_cell_is_the_plain_loop_over_its_batches(toy):
    shape = RobertaShape(
        vocabulary=prepare(TOY, jax.random.key(0)).vocabulary,
        width=8, layers=1, heads=2, head_width=4, inner=8, positions=14, deviation=0.0,
    )  # fmt: skip
    expected = _plain_loop(TOY, jax.random.key(0), 1, shape)
    got = toy.isel(panel=0, trial=1).sel(H=2)
    for name, values in zip(
        ("train_loss", "train_accuracy", "test_loss", "test_accuracy"), expected
    ):
        np.testing.assert_allclose(got[name], values, atol=2e-4)


def test_trials_differ_and_heads_share_their_data(toy):
    assert len(np.unique(toy.train_loss.isel(step=0))) == 2
    lanes = prepare(TOY, jax.random.key(0)).lanes
    assert not np.array_equal(lanes["data"]["tokens"][0], lanes["data"]["tokens"][1])
    assert all(sorted(epoch) == sorted(set(epoch)) for epoch in lanes["order"].reshape(4, -1))


class Killed(Exception):
    """Stands for whatever ends a process."""


def test_resuming_within_a_cell_gives_the_same_bits(toy, tmp_path, monkeypatch):
    """Killed while the third record is written; benchmarks kill at random."""
    write, calls = Checkpoints._write, []

    def dying(self, name, arrays):
        calls.append(name)
        if len(calls) == 6:
            raise Killed
        write(self, name, arrays)

    key = jax.random.key(0)
    monkeypatch.setattr(Checkpoints, "_write", dying)
    with pytest.raises(Killed):
        fig6.run(TOY, key, folder=tmp_path)
    monkeypatch.setattr(Checkpoints, "_write", write)
    resumed = fig6.run(TOY, key, folder=tmp_path, resume=True)
    for name in NAMES:
        np.testing.assert_array_equal(resumed[name], toy[name])
    other = replace(TOY, step_size=1e-3)
    with pytest.raises(ValueError, match="belongs to another run"):
        fig6.run(other, key, folder=tmp_path, resume=True)


def test_the_papers_scaling_divides_by_the_root_of_h():
    shape = runs.network(replace(TOY, arms=("fixed",)), "fixed", 4, 100)
    assert (shape.heads, shape.head_width, shape.gain) == (4, 8, 0.5)
    split = runs.network(TOY, "split", 4, 100)
    assert (split.heads, split.head_width, split.gain) == (4, 2, 1.0)
    with pytest.raises(ValueError, match=r"heads=3 do not divide width=8\. Try a divisor"):
        runs.network(TOY, "split", 3, 100)


# Pretrained weights -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sst2(tmp_path_factory):
    """A folder like SST-2's, of sentences of ours."""
    folder = tmp_path_factory.mktemp("sst2")
    drawn = draw_sentences(Grammar(), jax.random.key(5), 60)
    for name, part in (("train", slice(40)), ("dev", slice(40, 60))):
        rows = [f"{t}\t{label}" for t, label in zip(drawn.texts[part], drawn.labels[part])]
        (folder / f"{name}.tsv").write_text("\n".join(["sentence\tlabel", *rows, ""]))
    return folder


@pytest.fixture(scope="module")
def tuned(sst2, tmp_path_factory):
    """One layer of four heads of width four, stored without a classifier."""
    stored = pytest.importorskip("safetensors.numpy")
    pytest.importorskip("tokenizers")
    weights = tmp_path_factory.mktemp("weights")
    shutil.copytree(TINY, weights, dirs_exist_ok=True)
    tensors = stored.load_file(TINY / "model.safetensors")
    left_out = ("classifier", "roberta.encoder.layer.1")
    body = {k: v for k, v in tensors.items() if not k.startswith(left_out)}
    stored.save_file(body, weights / "model.safetensors")
    about = json.loads((TINY / "config.json").read_text(encoding="utf8"))
    (weights / "config.json").write_text(json.dumps(about | {"num_hidden_layers": 1}))
    return replace(
        TOY,
        arms=("recut", "prune"),
        heads=(2, 4),
        trials=1,
        epochs=1,
        looks=1,
        n=0,
        test=0,
        source="file",
        data=str(sst2),
        weights=str(weights),
        dropout=0.1,
        step_size=1e-12,
    )


def test_pretrained_arms_start_from_the_stored_weights(tuned, tmp_path):
    """A step size of 1e-12 leaves the weights: the loss is that of the stored network, re-cut."""
    key = jax.random.key(1)
    config = replace(tuned, arms=("recut",), heads=(2,), dropout=0.0)
    dataset = fig6.run(config, key, folder=tmp_path)
    start_key = jax.random.split(jax.random.split(key, 1)[0], 4)[1]
    shape, params = load_roberta(tuned.weights, start_key, labels=2)
    held = read_text(tuned.data)["test"]
    arrays, _ = to_arrays(held, stored_tokenizer(tuned.weights), tuned.length)
    logits = jax.jit(Roberta(recut_heads(shape, 2)).apply)(
        {"params": params}, jnp.asarray(arrays["tokens"]), jnp.asarray(arrays["mask"])
    )
    logs = np.asarray(jax.nn.log_softmax(logits))
    expected = -np.mean(logs[np.arange(20), held.labels])
    np.testing.assert_allclose(dataset.test_loss.values.ravel(), [expected], rtol=1e-5)
    assert "only H = 4 is the pretrained function" in dataset.attrs["confounds"]["recut"]
    assert "only H = 4" in dataset.attrs["text"] and tuned.data in dataset.attrs["text"]
    assert (tmp_path / "recut" / "H2" / "trial0" / "state.npz").is_file()


def test_dropout_is_drawn_from_a_key_of_the_step(tuned):
    """Traced only; what dropout does is tested with the network."""
    lanes = prepare(tuned, jax.random.key(0)).lanes
    lane = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), lanes)
    start, step, _ = runs._program(tuned, runs.network(tuned, "recut", 2, 330))
    state = jax.eval_shape(start, lane)
    assert "random_bits" in str(jax.make_jaxpr(step)(lane, state))
    plain = replace(tuned, dropout=0.0)
    _, step, _ = runs._program(plain, runs.network(plain, "recut", 2, 330))
    assert "random_bits" not in str(jax.make_jaxpr(step)(lane, state))


def test_fewer_heads_are_the_same_matrices_or_some_of_them(tuned):
    recut = runs.network(tuned, "recut", 2, 330)
    assert (recut.heads, recut.head_width, recut.dropout) == (2, 8, 0.1)
    pruned = runs.network(tuned, "prune", 2, 330)
    assert (pruned.heads, pruned.head_width) == (2, 4)
    one, two = (
        runs._first_weights(tuned, "prune", heads, jax.random.key(0))["layer0"]["attention"]
        for heads in (1, 2)
    )
    value = "roberta.encoder.layer.0.attention.self.value.weight"
    whole = pytest.importorskip("safetensors.numpy").load_file(TINY / "model.safetensors")[value]
    rows = lambda kernel: {row.tobytes() for row in np.asarray(kernel)}
    one, two = (rows(leaf["value"]["kernel"].T) for leaf in (one, two))
    # The heads kept are nested, so that H is all that changes within a trial.
    assert one < two < rows(whole) and len(one) == 4


def test_what_cannot_run_is_refused_before_anything_is_trained(tuned, tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "train_arm", None)
    refused = {
        r"Try --weights FOLDER": replace(tuned, weights=""),
        r"Try --data FOLDER.*pip download": replace(TOY, source="file"),
        r"heads=3, expected a divisor": replace(tuned, heads=(2, 3)),
        r"heads=8, but the pretrained network has only 4 heads": replace(
            tuned, arms=("prune",), heads=(8,)
        ),
        r"positions for length 16": replace(tuned, length=17),
        r"n=41 training and test=0 test sentences.*40 and 20": replace(tuned, n=41),
        r"looks=4 records .* only 3 batches of size 16": replace(TOY, batch=16, looks=4),
        r"the number of rows to hold out": replace(
            TOY, source="file", data=f"{tuned.data}/dev.tsv", test=0
        ),
    }
    for words, config in refused.items():
        with pytest.raises(ValueError, match=words):
            fig6.run(config, jax.random.key(0))


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"arms": ("wide",)}, "ways to vary the number of heads from fixed, prune, recut, split"),
        ({"heads": (4, 2)}, "expected positive increasing"),
        ({"epochs": 0, "width": 0}, "epochs=0, expected a positive number"),
        ({"n": -1}, "expected no negative number"),
        ({"dropout": 1.0}, "dropout < 1"),
        ({"test": 0}, "the grammar has infinitely many"),
        ({"data": "x"}, "Try --source file"),
        ({"weights": "x", "source": "file"}, "starts from random weights"),
    ],
)
def test_settings_that_no_run_could_have_are_refused(entries, words, unannotated):
    with pytest.raises(ValueError, match=words):
        replace(TOY, **entries)


def test_a_single_file_is_divided_by_trial(sst2):
    config = replace(TOY, source="file", data=str(sst2 / "train.tsv"), n=30, test=10, batch=5)
    data = prepare(config, jax.random.key(0))
    labels = data.lanes["test"]["labels"].reshape(2, -1)
    assert np.all(np.sum(labels >= 0, axis=1) == 10)
    assert not np.array_equal(data.lanes["data"]["tokens"][0], data.lanes["data"]["tokens"][1])


# Claims and figure ------------------------------------------------------------------------------


def _dataset(train, test, accuracy, trials=5, arms=("recut",)):
    """Curves over H = 1, 4, 16 at epochs 1 and 2, with a spread of .002 over trials."""
    noise = 0.002 * np.linspace(-1, 1, trials)[None, None, :, None]
    values = lambda means: np.asarray(means)[None, :, None, None] + noise + np.zeros((1, 1, 1, 2))
    dims = ("panel", "H", "trial", "step")
    rows = {"train_loss": train, "test_loss": test, "test_accuracy": accuracy}
    data = {name: (dims, values(means)) for name, means in rows.items()}
    data["train_accuracy"] = data["test_accuracy"]
    coords = {"H": [1, 4, 16], "step": [10, 20], "panel": ["recut"]}
    found = xr.Dataset(data, coords=coords).assign_coords(epoch=("step", [1.0, 2.0]))
    found = found.assign(bag_of_words=("trial", np.full(trials, 0.6)))
    about = {arm: f"what {arm} is" for arm in arms}
    published = asdict(fig6.EXPERIMENT.presets["published"])
    here = {"config": published, "sentences": 67_349, "shape": [12, 768]}
    return found.assign_attrs(here, arms=about, confounds=about)


def test_claims_are_decided_by_slopes_and_thresholds():
    decisions = lambda *means, **more: [c.reproduced for c in claims(_dataset(*means, **more))]
    falling, slight = (0.6, 0.5, 0.4), (0.6, 0.599, 0.598)
    assert decisions(falling, falling, (0.7, 0.75, 0.8)) == [True, True, True]
    assert decisions(falling[::-1], falling[::-1], (0.8, 0.75, 0.7)) == [False, False, False]
    assert decisions(slight, slight, (0.7, 0.7, 0.7)) == [None, None, None]
    assert decisions(falling, falling, (0.7, 0.75, 0.8), trials=1) == [None, None, None]
    found = claims(_dataset(falling, falling, (0.7, 0.75, 0.8)))
    assert "epochs 1, 2, by 0.02" in found[0].text and "what recut is" in found[0].text
    assert "from H = 1 to 16 -0.200 +- 0.000" in found[0].number
    assert "slope in log2 H -0.050" in found[1].number
    assert claims(_dataset(falling, falling, falling).sel(H=[4])) == ()


def test_from_scratch_on_other_sentences_nothing_is_decided_about_the_paper():
    rising = (0.4, 0.5, 0.6)
    whole = _dataset(rising, rising, (0.8, 0.75, 0.7))
    assert [c.reproduced for c in claims(whole)] == [False] * 3
    scratch = whole.assign_coords(panel=["split"]).assign_attrs(confounds={"split": "scratch"})
    for other in (scratch, whole.assign_attrs(sentences=4096), whole.assign_attrs(shape=[2, 64])):
        assert [c.reproduced for c in claims(other)] == [None] * 3
    assert "not pretrained roberta-base" in claims(scratch)[0].number
    grammar = whole.assign_attrs(config=asdict(fig6.Figure6()))
    assert "source = grammar, not the paper's file" in claims(grammar)[0].number


def test_slopes_are_those_of_numpy():
    heads, values = np.asarray([1, 2, 4, 16]), np.random.default_rng(0).normal(size=(4, 3))
    expected = np.polyfit(np.log2(heads), values, 1)[0]
    np.testing.assert_allclose(_slopes(heads, values), expected, rtol=1e-10)


def test_the_figure_is_drawn_and_the_result_stored(toy, tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    stored = load(save(toy, tmp_path / "result.nc", experiment="multihead.fig6"))
    drawn = figure(stored)
    labels = [axis.get_ylabel() for axis in drawn.axes]
    assert labels == ["training loss", "test loss", "training accuracy", "test accuracy"]
    assert len(drawn.axes[0].lines) == 1 and len(drawn.axes[3].lines) == 2
    plt.close(drawn)
    both = xr.concat([toy, toy.assign_coords(panel=["fixed"])], dim="panel", data_vars="minimal")
    drawn = figure(both.assign_attrs(arms={"split": "a", "fixed": "b"}))
    assert len(drawn.axes) == 8
    plt.close(drawn)


def test_the_published_settings_are_those_in_print():
    config = fig6.EXPERIMENT.presets["published"]
    assert (config.step_size, config.epochs, config.batch) == (5e-6, 5, 32)
    assert config.arms == ("recut",) and 12 in config.heads
    base = RobertaShape()
    assert parameter_count(base) == 124_647_170
    line = cost(config, {"recut": base}, 2104)
    assert line.startswith("15 runs of 10520 steps on 124,647,170 parameters")
