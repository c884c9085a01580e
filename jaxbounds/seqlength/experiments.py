"""The experiment of Section 6: sparse majority at growing sequence lengths (Figures 1 to 3).

All runs of one length train side by side: epochs are scanned, runs are vmapped, validation happens
every few epochs, and the host looks in between chunks whether all runs have stopped. Training uses
the exact CLS reduction of `majority_model`.
"""

import functools
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Bool, Float, Int

from jaxbounds.results import Experiment
from jaxbounds.seqlength import trends
from jaxbounds.seqlength.certificate import (
    map_norms,
    network_rademacher,
    token_norms,
    with_readout,
)
from jaxbounds.seqlength.extract_norms import extract_network
from jaxbounds.seqlength.generalization import generalization_gap
from jaxbounds.seqlength.majority_model import (
    MajorityTransformer,
    reduced_logits,
    sigmoid_loss,
    softmax_loss,
    total_l1,
)
from jaxbounds.seqlength.sparse_majority import (
    Embedding,
    Task,
    draw_bits,
    draw_task,
    embed,
    majority_label,
)

LOSSES = {"sigmoid": sigmoid_loss, "softmax": softmax_loss}


@dataclass(frozen=True, kw_only=True)
class SparseMajority:
    """One run of the experiment; the defaults are the reduced preset, about a minute on 2 cores.

    Attributes:
        lengths: the sequence lengths T.
        seeds: runs at each length, each with its own data.
        sparsity: |I|.
        train: training samples.
        validation: validation samples.
        epochs: at most so many.
        every: validate after so many epochs.
        chunk: look whether to go on after so many validations.
        batch: the batch size; the last batch of an epoch may be smaller.
        loss: "sigmoid" (the code's mean of two binary cross entropies) or "softmax" (the paper's).
        optimiser: "adam", or "sgd" with momentum 0.9 (the code's; the paper names none).
        rate: the learning rate.
        decay: its factor per epoch.
        floor: and its least value.
        stop: stop a run after the first epoch with training accuracy 1, as the code does.
        hidden: the width of the dense layer that the paper does not mention; 0 leaves it out.
        embedding: how bits become tokens.
    """

    lengths: tuple[int, ...] = (20, 40, 80, 160)
    seeds: int = 5
    sparsity: int = 9
    train: int = 300
    validation: int = 2000
    epochs: int = 600
    every: int = 10
    chunk: int = 20
    batch: int = 128
    loss: str = "sigmoid"
    optimiser: str = "adam"
    rate: float = 0.003
    decay: float = 0.999
    floor: float = 0.0
    stop: bool = True
    hidden: int = 64
    embedding: Embedding = field(
        default_factory=lambda: Embedding(symbols="l2", symbol_scale=3.0, position_scale=0.5)
    )

    def __post_init__(self) -> None:
        """Refuse settings that no run could have."""
        if self.loss not in LOSSES or self.optimiser not in ("adam", "sgd"):
            raise ValueError(
                f"loss must be sigmoid or softmax and optimiser adam or sgd, got {self.loss!r} and "
                f"{self.optimiser!r}"
            )
        sizes = ("seeds", "train", "validation", "epochs", "every", "chunk", "batch")
        small = [name for name in sizes if getattr(self, name) < 1]
        if small or not self.lengths:
            raise ValueError(f"these must be positive: {', '.join(small) or 'lengths'}")


REDUCED = SparseMajority()
"""Deviates from the paper: Adam, unit symbols times 3, half the positional code, 600 epochs."""

EASY = replace(REDUCED, sparsity=3, epochs=300, lengths=(20, 80, 160))
"""Three relevant indices: learned at every length."""

FAITHFUL = SparseMajority(
    lengths=tuple(range(20, 201, 20)),
    validation=10_000,
    epochs=200_000,
    every=1,
    chunk=500,
    optimiser="sgd",
    rate=0.01,
    floor=0.001,
    embedding=Embedding(),
)
"""The paper's numbers with the public code's optimiser, loss and early stop; for a GPU."""


class Best(NamedTuple):
    """What is kept of the epoch with the least validation loss."""

    validation_loss: Float[Array, ""]
    train_loss: Float[Array, ""]
    accuracy: Float[Array, ""]
    l1: Float[Array, ""]
    epoch: Int[Array, ""]
    params: Any


class Run(NamedTuple):
    """The state of one run."""

    params: Any
    optimiser: Any
    epoch: Int[Array, ""]
    done: Bool[Array, ""]
    train_accuracy: Float[Array, ""]
    best: Best


class Data(NamedTuple):
    """The data of one run."""

    task: Task
    bits: Bool[Array, "n T"]
    labels: Int[Array, "n"]
    validation_bits: Bool[Array, "v T"]
    validation_labels: Int[Array, "v"]


def draw_data(key: Array, config: SparseMajority, T: int, /) -> Data:
    """New embeddings, hidden indices and samples."""
    key_task, key_train, key_validation = jax.random.split(key, 3)
    task = draw_task(key_task, config.embedding, T=T, sparsity=config.sparsity)
    bits = draw_bits(key_train, n=config.train, T=T)
    held_out = draw_bits(key_validation, n=config.validation, T=T)
    return Data(
        task,
        bits,
        majority_label(bits, task.relevant),
        held_out,
        majority_label(held_out, task.relevant),
    )


def _optimiser(config: SparseMajority) -> optax.GradientTransformation:
    # The learning rate multiplies gradients before momentum, as in Keras, but after Adam.
    return optax.trace(0.9) if config.optimiser == "sgd" else optax.scale_by_adam()


def _start(key: Array, data: Data, config: SparseMajority) -> Run:
    net = MajorityTransformer(hidden=config.hidden)
    params = net.init(key, embed(data.task, data.bits[:1]))["params"]
    nothing = jnp.zeros(())
    best = Best(nothing + jnp.inf, nothing, nothing, nothing, jnp.int32(0), params)
    state = _optimiser(config).init(params)
    return Run(params, state, jnp.int32(0), jnp.bool_(False), nothing, best)


def _epoch(key: Array, run: Run, data: Data, config: SparseMajority) -> Run:
    """One pass over the data in random order; the last batch is averaged over its own size."""
    n, batch = config.train, min(config.batch, config.train)
    count = -(-n // batch)
    order = jax.random.permutation(key, n)
    padded = jnp.concatenate([order, jnp.zeros(count * batch - n, order.dtype)])
    real = (jnp.arange(count * batch) < n).astype(jnp.float32).reshape(count, batch)
    rate = jnp.maximum(config.rate * config.decay ** run.epoch.astype(jnp.float32), config.floor)
    optimiser = _optimiser(config)

    def loss(params: Any, rows: Array, weight: Array) -> tuple[Array, Array]:
        logits = reduced_logits(params, data.task, data.bits[rows])
        labels = data.labels[rows]
        right = (jnp.argmax(logits, axis=1) == labels).astype(jnp.float32)
        each = LOSSES[config.loss](logits, labels)
        return jnp.sum(weight * each) / jnp.sum(weight), jnp.sum(weight * right)

    def step(carry: tuple, inputs: tuple) -> tuple[tuple, Array]:
        params, state = carry
        slope, right = jax.grad(loss, has_aux=True)(params, *inputs)
        scaled = lambda tree: jax.tree.map(lambda leaf: rate * leaf, tree)
        slope = scaled(slope) if config.optimiser == "sgd" else slope
        with jax.numpy_dtype_promotion("standard"):
            updates, state = optimiser.update(slope, state)
        updates = updates if config.optimiser == "sgd" else scaled(updates)
        params = jax.tree.map(lambda leaf, update: leaf - update, params, updates)
        return (params, state), right

    batches = (padded.reshape(count, batch), real)
    (params, state), right = jax.lax.scan(step, (run.params, run.optimiser), batches)
    accuracy = jnp.sum(right) / n
    done = (accuracy >= 1.0) if config.stop else jnp.bool_(False)
    return run._replace(
        params=params,
        optimiser=state,
        epoch=run.epoch + 1,
        done=done,
        train_accuracy=accuracy,
    )


def _validate(run: Run, data: Data, config: SparseMajority) -> Run:
    loss = LOSSES[config.loss]
    logits = reduced_logits(run.params, data.task, data.validation_bits)
    held_out = jnp.mean(loss(logits, data.validation_labels))
    right = jnp.argmax(logits, axis=1) == data.validation_labels
    fitted = jnp.mean(loss(reduced_logits(run.params, data.task, data.bits), data.labels))
    now = Best(
        held_out,
        fitted,
        jnp.mean(right.astype(jnp.float32)),
        total_l1(run.params),
        run.epoch,
        run.params,
    )
    better = held_out < run.best.validation_loss
    return run._replace(best=jax.tree.map(lambda a, b: jnp.where(better, a, b), now, run.best))


@functools.cache
def _chunk(config: SparseMajority, T: int):
    """`config.chunk` rounds of `config.every` epochs and a validation, for all runs at once."""

    def one(key: Array, run: Run, data: Data) -> Run:
        def round_(run: Run, _: None) -> tuple[Run, None]:
            def epoch(run: Run, _: None) -> tuple[Run, None]:
                # A key by epoch number: chunks of any length give the same run.
                after = _epoch(jax.random.fold_in(key, run.epoch), run, data, config)
                live = ~run.done & (run.epoch < config.epochs)
                return jax.tree.map(lambda a, b: jnp.where(live, a, b), after, run), None

            run, _ = jax.lax.scan(epoch, run, length=config.every)
            return _validate(run, data, config), None

        return jax.lax.scan(round_, run, length=config.chunk)[0]

    return jax.jit(jax.vmap(one), donate_argnums=1)


@functools.cache
def _prepare(config: SparseMajority, T: int):
    """From the keys of all runs to their data and first states."""

    def one(key: Array) -> tuple[Array, Data, Run]:
        key_data, key_start, key_epochs = jax.random.split(key, 3)
        data = draw_data(key_data, config, T)
        return key_epochs, data, _start(key_start, data, config)

    return jax.jit(jax.vmap(one))


def train_length(
    config: SparseMajority, key: Array, T: int, /
) -> tuple[Run, Data, Float[np.ndarray, "seeds"]]:
    """Train all runs of one length; returns their last states, data, and initial l_1 norms.

    The key of a run depends on T and its number only: not on the other lengths, nor on how many
    runs there are.
    """
    keys = jax.random.split(jax.random.fold_in(key, T), config.seeds)
    epochs, data, runs = _prepare(config, T)(keys)
    initial = np.asarray(jax.vmap(total_l1)(runs.params))
    advance = _chunk(config, T)
    for _ in range(-(-config.epochs // (config.every * config.chunk))):
        runs = advance(epochs, runs, data)
        if bool(jnp.all(runs.done)):
            break
    return runs, data, initial


def diagnostic_bound(run: Run, data: Data, config: SparseMajority, /) -> float:
    """The bound on the clipped gap for one run at its own norms: not certified (no union).

    For the cross entropy of the difference of the logits, clipped to [0, 1], delta = 0.05.
    """
    params = jax.tree.map(np.asarray, run.best.params)
    dense = [("hidden", "relu")] if config.hidden else []
    dense.append(("readout", "identity"))
    network = extract_network(params, attention="attention", dense=dense, cls=-1)
    network = with_readout(network, np.array([-1.0, 1.0]))
    X = np.asarray(embed(data.task, data.bits), np.float64)
    tokens, norms = token_norms(X, -1), map_norms(network, X)
    rademacher = network_rademacher(network, norms, tokens, config.train)
    return float(generalization_gap(rademacher, c=0.5, m=config.train, delta=0.05))


def run(config: SparseMajority, key: Array, /) -> xr.Dataset:
    """Train at every length; one value per length and seed of everything the figures show.

    Variables at the best epoch: gap (validation minus training loss), validation_loss, train_loss,
    accuracy, l1, l1_increase, epoch; `learned` (training loss below 0.6 there); and `bound`, the
    diagnostic bound of the run with the largest gap at each length.
    """
    columns: dict[str, list[np.ndarray]] = {}
    bounds = []
    for T in config.lengths:
        runs, data, initial = train_length(config, key, T)
        best = runs.best
        row = {
            "gap": best.validation_loss - best.train_loss,
            "validation_loss": best.validation_loss,
            "train_loss": best.train_loss,
            "accuracy": best.accuracy,
            "l1": best.l1,
            "l1_increase": np.asarray(best.l1) - initial,
            "epoch": best.epoch,
            "epochs_run": runs.epoch,
            "learned": np.asarray(best.train_loss) < 0.6,
        }
        for name, value in row.items():
            columns.setdefault(name, []).append(np.asarray(value))
        worst = int(np.argmax(np.abs(columns["gap"][-1])))
        pick = lambda tree, worst=worst: jax.tree.map(lambda leaf: leaf[worst], tree)
        bounds.append(diagnostic_bound(pick(runs), pick(data), config))
    table = {name: (("T", "seed"), np.stack(rows)) for name, rows in columns.items()}
    return xr.Dataset(
        {**table, "bound": ("T", np.array(bounds))},
        coords={"T": list(config.lengths), "seed": list(range(config.seeds))},
        attrs={"precision": "float32"},
    )


EXPERIMENTS = (
    Experiment(
        id="seqlength.majority",
        label="Figures 1 to 3",
        title="sparse majority: weights, generalisation gap and accuracy against the length",
        config=REDUCED,
        presets={"reduced": REDUCED, "easy": EASY, "faithful": FAITHFUL},
        run=run,
        figure=trends.figure,
        claims=trends.claims,
    ),
)
"""What `jaxbounds run` knows of this paper."""
