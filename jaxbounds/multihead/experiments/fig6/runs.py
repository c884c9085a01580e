"""The training of Figure 6's networks, for each arm (way to vary H) and each number H of heads."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from jaxbounds.experiments.provenance import fingerprint
from jaxbounds.experiments.sweeps import Swept, sweep
from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.files import Place
from jaxbounds.multihead.experiments.fig6.config import PRETRAINED, Figure6
from jaxbounds.multihead.experiments.fig6.data import Prepared, batches_of
from jaxbounds.multihead.roberta import (
    Roberta,
    RobertaShape,
    init_roberta,
    prune_heads,
    recut_heads,
)
from jaxbounds.multihead.roberta_files import load_roberta, read_shape
from jaxbounds.networks.training import Training, begin, optimizer, train_step


class State(NamedTuple):
    """The state of a training run; `done` is the number of completed steps."""

    training: Training
    done: Array


def network(config: Figure6, arm: str, heads: int, vocabulary: int, /) -> RobertaShape:
    """Return the network of an arm (a way to vary the number of heads) at one head count.

    Raises:
        Refused: if the arm has no network with this number of heads.
    """
    if arm in PRETRAINED:
        stored = replace(read_shape(config.weights), labels=2, dropout=config.dropout)
        if vocabulary > stored.vocabulary or config.length > stored.length:
            raise Refused(
                f"the data have vocabulary={vocabulary} and length={config.length}, but"
                f" {config.weights} has only {stored.vocabulary} tokens and positions for"
                f" length {stored.length}. Try the tokenizer of these weights, or a smaller"
                " --length"
            )
        if arm == "recut":
            return recut_heads(stored, heads)
        if heads > stored.heads:
            raise Refused(
                f"heads={heads}, but the pretrained network has only {stored.heads} heads to prune"
                " from. Try a smaller --heads"
            )
        return replace(stored, heads=heads)
    if arm == "split" and config.width % heads:
        raise Refused(
            f"heads={heads} do not divide width={config.width}. Try a divisor of the width for"
            " --heads"
        )
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


def _first_weights(config: Figure6, arm: str, heads: int, key: Array) -> dict:
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
    config: Figure6,
    key: Array,
    data: Prepared,
    arm: str,
    heads: int,
    /,
    *,
    folder: Place | None,
    resume: bool,
) -> Swept:
    """Train all trials of one arm (a way to vary the number of heads) at one head count.

    A stored run in `folder` continues only with the same `key`. If `resume` is False, the run
    clears the folder first.

    Returns:
        The recorded losses and accuracies of the runs; the networks' states are only in the folder.
    """
    shape = network(config, arm, heads, data.vocabulary)
    mark = f"{fingerprint(config, key)}/{arm}/{heads}/{data.mark}/{_weights_mark(config.weights)}"
    batches = batches_of(config, data.lanes["data"]["tokens"].shape[1])
    pretrained = arm in PRETRAINED
    # Pretrained networks are large, so one trains at a time, and the lane holds the weights.
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
            # The matrices of one lane fill a CPU's cores: benchmarks/roberta_lanes.py.
            group=1 if jax.default_backend() == "cpu" else None,
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


def _program(config: Figure6, shape: RobertaShape) -> tuple[Callable, Callable, Callable]:
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
    def one(group: dict[str, Array]) -> tuple[Array, Array]:
        logits: Any = net.apply({"params": params}, group["tokens"], group["mask"])
        labels = group["labels"]
        counts = labels >= 0
        losses = jnp.where(counts, _cross_entropy(logits, jnp.maximum(labels, 0)), 0.0)
        return jnp.sum(losses), jnp.sum(jnp.argmax(logits, axis=1) == labels)

    losses, right = jax.lax.map(one, groups)
    count = jnp.sum(groups["labels"] >= 0).astype(losses.dtype)
    return jnp.sum(losses) / count, jnp.sum(right).astype(losses.dtype) / count
