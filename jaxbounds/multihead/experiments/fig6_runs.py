"""What Figure 6 trains: sentences by trial, networks by arm and head count, one sweep for each."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from jaxbounds.files import digest
from jaxbounds.multihead.experiments.fig6_baselines import baselines
from jaxbounds.multihead.grammar import draw_sentences
from jaxbounds.multihead.roberta import (
    Roberta,
    RobertaShape,
    init_roberta,
    prune_heads,
    recut_heads,
)
from jaxbounds.multihead.roberta_files import load_roberta, read_shape
from jaxbounds.multihead.text import FETCH_SNIPPETS, Sentences, read_text
from jaxbounds.multihead.tokens import (
    Tokenizer,
    byte_pairs,
    stored_tokenizer,
    to_arrays,
    word_table,
)
from jaxbounds.results import fingerprint
from jaxbounds.sweeps import Swept, sweep
from jaxbounds.training import Training, begin, optimizer, train_step

if TYPE_CHECKING:
    from jaxbounds.multihead.experiments.fig6 import Figure6

EVALUATED = 128
"""Sentences that are evaluated at once."""


class Prepared(NamedTuple):
    """The data of all trials.

    Attributes:
        lanes: what a lane of the sweep holds, stacked over trials.
        vocabulary: kinds of tokens, the largest of the trials.
        found: what simple rules reach, and the share of sentences cut, each (trials,).
        mark: a digest of the data.
    """

    lanes: dict
    vocabulary: int
    found: dict[str, np.ndarray]
    mark: str


class State(NamedTuple):
    """A run in the middle; `done` steps were done."""

    training: Training
    done: Array


def _divided(config: "Figure6", key: Array, stored: dict[str, Sentences]) -> tuple[Sentences, ...]:
    """Training and test sentences of one trial."""
    if not stored:
        both = draw_sentences(config.grammar, key, config.n + config.test)
        return both.take(np.arange(config.n)), both.take(np.arange(config.n, len(both.texts)))
    whole, given = stored.get("all"), stored.get("test")
    rest = stored["train"] if whole is None else whole
    order = np.asarray(jax.random.permutation(key, len(rest.texts)))
    test = config.test
    if whole is not None:
        if not test:
            raise ValueError(f"{config.data} is one file: say how many of its rows test (--test)")
        given, order = rest.take(order[:test]), order[test:]
    n = config.n or len(order)
    if given is None or len(order) < n or len(given.texts) < test:
        have = f"{len(order)} and {0 if given is None else len(given.texts)}"
        raise ValueError(
            f"{config.data}: n = {n} training and test = {test} test sentences were asked for, "
            f"there are {have}: ask for fewer"
        )
    return rest.take(order[:n]), given.take(np.arange(test or len(given.texts)))


def _tokenizer(config: "Figure6", texts: Sequence[str]) -> Tokenizer:
    if config.weights:
        return stored_tokenizer(config.weights)
    train = word_table if config.code == "words" else byte_pairs
    return train(texts, size=config.vocabulary)


def _orders(config: "Figure6", key: Array, n: int, batches: int) -> np.ndarray:
    """(steps, batch) rows of the training set; each epoch is a permutation, its rest left out."""
    rows = [np.asarray(jax.random.permutation(k, n)) for k in jax.random.split(key, config.epochs)]
    return np.stack(rows)[:, : batches * config.batch].reshape(-1, config.batch).astype(np.int32)


def _for_looks(data: dict[str, np.ndarray], count: int) -> dict[str, np.ndarray]:
    """The first `count` rows in groups of `EVALUATED`, filled up with rows without a label."""
    fill = -count % EVALUATED
    rows = np.minimum(np.arange(count + fill), count - 1)
    labels = np.where(np.arange(count + fill) < count, data["labels"][rows], -1)
    whole = {name: leaf[rows] for name, leaf in data.items()} | {"labels": labels}
    return {name: leaf.reshape(-1, EVALUATED, *leaf.shape[1:]) for name, leaf in whole.items()}


def batches_of(config: "Figure6", n: int, /) -> int:
    """Steps of an epoch over n sentences, a multiple of the looks.

    Raises:
        ValueError: if there are fewer batches than looks.
    """
    batches = n // config.batch // config.looks * config.looks
    if not batches:
        raise ValueError(
            f"{n} training sentences make {n // config.batch} batches of {config.batch}, fewer "
            f"than looks = {config.looks}: take more sentences or fewer looks"
        )
    return batches


def prepare(config: "Figure6", key: Array, /) -> Prepared:
    """Read or draw the sentences of every trial, and code them.

    Args:
        config: the settings.
        key: of all draws. A trial's data, order and first weights do not depend on H or the arm.

    Raises:
        ValueError: if no file was given where one is read, or it holds too little.
    """
    if config.source == "file" and not config.data:
        raise ValueError(
            "this configuration reads sentences: add --data FOLDER (SST-2: train.tsv and dev.tsv, "
            f"or Parquet) or --data FILE, the archive that this fetches: {FETCH_SNIPPETS}"
        )
    stored = read_text(config.data) if config.source == "file" else {}
    lanes: list[dict] = []
    found: list[dict[str, float]] = []
    sizes: list[int] = []
    for trial_key in jax.random.split(key, config.trials):
        data_key, start_key, order_key, drop_key = jax.random.split(trial_key, 4)
        train, test = _divided(config, data_key, stored)
        tokenizer = _tokenizer(config, train.texts)
        (rows, cut), (held, _) = (
            to_arrays(part, tokenizer, config.length) for part in (train, test)
        )
        count = len(train.texts)
        sizes.append(tokenizer.size)
        batches = batches_of(config, count)
        found.append(
            baselines(train, test, lexicon=config.source == "file")
            | {"share_cut": cut, "tokens_used": float(np.mean(rows["mask"].sum(1)))}
        )
        lanes.append(
            {
                "start": np.asarray(jax.random.key_data(start_key)),
                "drop": np.asarray(jax.random.key_data(drop_key)),
                "data": rows,
                "order": _orders(config, order_key, count, batches),
                "train": _for_looks(rows, min(count, len(test.texts))),
                "test": _for_looks(held, len(test.texts)),
            }
        )
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *lanes)
    flat = {jax.tree_util.keystr(p): v for p, v in jax.tree_util.tree_leaves_with_path(stacked)}
    measured = {name: np.asarray([each[name] for each in found]) for name in found[0]}
    return Prepared(stacked, max(sizes), measured, digest(flat))


def network(config: "Figure6", arm: str, heads: int, vocabulary: int, /) -> RobertaShape:
    """The network of an arm at one head count.

    Raises:
        ValueError: if the arm has no network with so many heads.
    """
    if arm in ("recut", "prune"):
        stored = replace(read_shape(config.weights), labels=2, dropout=config.dropout)
        if vocabulary > stored.vocabulary or config.length > stored.length:
            raise ValueError(
                f"{config.weights} has {stored.vocabulary} tokens and room for {stored.length}, "
                f"the data {vocabulary} and {config.length}: the tokenizer is another's, or "
                "shorten --length"
            )
        if arm == "recut":
            return recut_heads(stored, heads)
        if heads > stored.heads:
            raise ValueError(f"pruning {stored.heads} heads cannot leave {heads}: lower --heads")
        return replace(stored, heads=heads)
    if arm == "split" and config.width % heads:
        raise ValueError(f"{heads} heads do not divide {config.width} columns: change --heads")
    fixed = arm == "fixed"
    return RobertaShape(
        vocabulary=vocabulary,
        width=config.width,
        layers=config.layers,
        heads=heads,
        head_width=config.head_width if fixed else config.width // heads,
        gain=heads**-0.5 if fixed else 1.0,
        inner=config.inner,
        positions=config.length + 2,
        dropout=config.dropout,
        deviation=config.deviation,
    )


def _first_weights(config: "Figure6", arm: str, heads: int, key: Array) -> dict:
    """Pretrained weights of one trial, and a classifier of its own where they have none."""
    shape, params = load_roberta(
        config.weights, key, labels=2, memory_limit=config.memory_gib * 2**30
    )
    if arm == "recut":
        return params
    keep = [
        jax.random.permutation(jax.random.fold_in(key, layer), shape.heads)[:heads]
        for layer in range(shape.layers)
    ]
    return prune_heads(shape, params, np.sort(np.stack(keep)))


def _weights_mark(folder: str) -> str:
    if not folder:
        return ""
    with open(Path(folder) / "model.safetensors", "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def train_arm(
    config: "Figure6",
    key: Array,
    data: Prepared,
    arm: str,
    heads: int,
    /,
    *,
    folder: Path | None,
    resume: bool,
) -> Swept:
    """All trials of one arm at one head count.

    Args:
        config: the settings.
        key: of the experiment, for the fingerprint.
        data: from `prepare`.
        arm: its name.
        heads: H.
        folder: where progress is kept.
        resume: continue what it holds.

    Returns:
        The records; no states, which are on disk where there is a folder.
    """
    shape = network(config, arm, heads, data.vocabulary)
    mark = f"{fingerprint(config, key)}/{arm}/{heads}/{data.mark}/{_weights_mark(config.weights)}"
    batches = batches_of(config, data.lanes["data"]["tokens"].shape[1])
    pretrained = arm in ("recut", "prune")
    # Pretrained networks are large: one at a time, its weights a part of the lane.
    groups = [[t] for t in range(config.trials)] if pretrained else [list(range(config.trials))]
    parts = []
    for trials in groups:
        lanes = jax.tree.map(lambda leaf, rows=trials: jnp.asarray(leaf[rows]), data.lanes)
        place = folder
        if pretrained:
            start_key = jax.random.wrap_key_data(lanes["start"][0])
            params = _first_weights(config, arm, heads, start_key)
            lanes["params"] = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], params)
            place = None if folder is None else folder / f"trial{trials[0]}"
        start, step, measure = _program(config, shape)
        swept = sweep(
            start,
            step,
            measure,
            lanes,
            config.epochs * batches,
            every=batches // config.looks,
            chunk=batches // config.looks,
            group=1,  # the matrices of one lane fill the cores: benchmarks/roberta_lanes.py
            folder=place,
            fingerprint=mark,
            resume=resume,
            memory_limit=config.memory_gib * 2**30,
            show="train_loss",
        )
        parts.append(swept._replace(state=None))
    metrics = {name: np.concatenate([p.metrics[name] for p in parts]) for name in parts[0].metrics}
    diverged = np.concatenate([part.diverged for part in parts])
    return Swept(None, metrics, parts[0].steps, diverged)


def _program(config: "Figure6", shape: RobertaShape):
    """How a lane starts, steps and is measured."""
    net = Roberta(shape)
    rule = optimizer("adamw", config.step_size, weight_decay=config.weight_decay)

    def start(lane: dict) -> State:
        if "params" in lane:
            params = lane["params"]
        else:
            params = init_roberta(shape, jax.random.wrap_key_data(lane["start"]))
        return State(begin(params, rule), jnp.zeros((), jnp.int32))

    def step(lane: dict, state: State) -> State:
        rows = lane["order"][state.done]
        batch = {name: leaf[rows] for name, leaf in lane["data"].items()}
        drop_key = jax.random.fold_in(jax.random.wrap_key_data(lane["drop"]), state.done)

        def loss(params: dict) -> Array:
            rngs = {"dropout": drop_key} if config.dropout else {}
            logits = net.apply(
                {"params": params}, batch["tokens"], batch["mask"], train=True, rngs=rngs
            )
            return jnp.mean(_cross_entropy(logits, batch["labels"]))

        return State(train_step(loss, rule, state.training), state.done + 1)

    def measure(lane: dict, state: State) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for name in ("train", "test"):
            loss, right = _judged(net, state.training.params, lane[name])
            found |= {f"{name}_loss": loss, f"{name}_accuracy": right}
        return found

    return start, step, measure


def _cross_entropy(logits: Any, labels: Array) -> Array:
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels)


def _judged(net: Roberta, params: dict, groups: dict[str, Array]) -> tuple[Array, Array]:
    """Mean loss and accuracy over the rows with a label."""

    def one(group: dict[str, Array]) -> tuple[Array, Array]:
        logits: Any = net.apply({"params": params}, group["tokens"], group["mask"])
        labels = group["labels"]
        counts = labels >= 0
        losses = jnp.where(counts, _cross_entropy(logits, jnp.maximum(labels, 0)), 0.0)
        return jnp.sum(losses), jnp.sum(jnp.argmax(logits, axis=1) == labels)

    losses, right = jax.lax.map(one, groups)
    count = jnp.sum(groups["labels"] >= 0).astype(losses.dtype)
    return jnp.sum(losses) / count, jnp.sum(right).astype(losses.dtype) / count
