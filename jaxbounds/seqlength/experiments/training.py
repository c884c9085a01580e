"""Resumable training on the sparse majority task.

One compiled program trains all runs of one sequence length together, on the fast formula of
`majority_model.reduced_logits`.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxbounds.experiments.provenance import fingerprint
from jaxbounds.experiments.sweeps import sweep
from jaxbounds.ground.files import Place
from jaxbounds.networks.training import Training, begin, optimizer, train_step
from jaxbounds.seqlength.experiments.config import LOSSES, SparseMajority
from jaxbounds.seqlength.majority_model import MajorityTransformer, reduced_logits, total_l1
from jaxbounds.seqlength.sparse_majority import Task, draw_bits, draw_task, majority_label


class Data(NamedTuple):
    """The training and validation data of one run."""

    task: Task
    bits: Bool[Array, "n T"]
    labels: Int[Array, "n"]
    validation_bits: Bool[Array, "v T"]
    validation_labels: Int[Array, "v"]


class Lane(NamedTuple):
    """The inputs of one run: random key, initial parameters, data, learning rates."""

    key: Array
    params: Any
    data: Data
    rate: Float[Array, ""]
    decay: Float[Array, ""]
    floor: Float[Array, ""]


class Best(NamedTuple):
    """The measurements of one run at the epoch with the least validation loss."""

    validation_loss: Float[Array, ""]
    train_loss: Float[Array, ""]
    accuracy: Float[Array, ""]
    l1: Float[Array, ""]
    epoch: Int[Array, ""]
    params: Any


class Run(NamedTuple):
    """The training state of one run, its latest measurements, and its best epoch."""

    training: Training
    epoch: Int[Array, ""]
    done: Bool[Array, ""]
    train_accuracy: Float[Array, ""]
    validation_loss: Float[Array, ""]
    initial_l1: Float[Array, ""]
    best: Best


class Trained(NamedTuple):
    """The last states and the data of all runs of one length, stacked along a leading axis.

    The field `diverged` holds the first validated epoch with a loss that is not finite, or -1.
    """

    runs: Run
    data: Data
    diverged: Int[np.ndarray, "seeds"]


def draw_data(key: Array, config: SparseMajority, T: int, /) -> Data:
    """Draw the symbols' embeddings, the relevant positions, and training and validation samples."""
    key_task, key_train, key_validation = jax.random.split(key, 3)
    task = draw_task(key_task, config.embedding, T=T, sparsity=config.sparsity)
    bits = draw_bits(key_train, n=config.train, T=T)
    held_out = draw_bits(key_validation, n=config.validation, T=T)
    labels = majority_label(bits, task.relevant)
    return Data(task, bits, labels, held_out, majority_label(held_out, task.relevant))


def draw_params(keys: Array, config: SparseMajority, /) -> Any:
    """Draw a set of initial parameters for each key; no parameter's shape depends on T."""
    net = MajorityTransformer(hidden=config.hidden)
    one = jnp.zeros((1, 1, config.embedding.d))
    return jax.vmap(lambda key: net.init(key, one)["params"])(keys)


_draw_params = jax.jit(draw_params, static_argnums=1)
_draw_data = jax.jit(jax.vmap(draw_data, (0, None, None)), static_argnums=(1, 2))


def lanes(config: SparseMajority, key: Array, T: int, /) -> Lane:
    """Return the inputs of all training runs of sequence length T, stacked along a leading axis.

    The key of a run depends only on T and the run's number.
    """
    keys = jax.random.split(jax.random.fold_in(key, T), config.seeds)
    split = jax.vmap(lambda key: jax.random.split(key, 3), out_axes=1)
    key_data, key_start, key_epochs = split(keys)
    schedule = (jnp.full(config.seeds, x) for x in (config.rate, config.decay, config.floor))
    params, data = _draw_params(key_start, config), _draw_data(key_data, config, T)
    return Lane(key_epochs, params, data, *schedule)


def start(config: SparseMajority, lane: Lane, /) -> Run:
    """Return the state before the first epoch."""
    training = begin(lane.params, optimizer(config.rule, lane.rate))
    zero, l1 = jnp.zeros(()), total_l1(lane.params)
    best = Best(jnp.float32(jnp.inf), zero, zero, l1, jnp.int32(0), lane.params)
    return Run(training, jnp.int32(0), jnp.bool_(False), zero, zero, l1, best)


def epoch(config: SparseMajority, lane: Lane, run: Run, /) -> Run:
    """Train for one epoch, with the data in random order.

    The last batch may be smaller; its loss is the mean over its own examples.
    """
    data, n, batch = lane.data, config.train, min(config.batch, config.train)
    count = -(-n // batch)
    # The key depends on the epoch's number, so rounds of any length give equal runs.
    order = jax.random.permutation(jax.random.fold_in(lane.key, run.epoch), n)
    padded = jnp.concatenate([order, jnp.zeros(count * batch - n, order.dtype)])
    real = (jnp.arange(count * batch) < n).astype(jnp.float32)
    rate = jnp.maximum(lane.rate * lane.decay ** run.epoch.astype(jnp.float32), lane.floor)
    # Keras' momentum averages gradients that are already multiplied by the learning rate.
    inside, outside = (rate, 1.0) if config.rule == "momentum" else (1.0, rate)
    rule = optimizer(config.rule, outside)

    def step(training: Training, part: tuple[Array, Array]) -> tuple[Training, Array]:
        rows, weight = part
        logits = lambda params: reduced_logits(params, data.task, data.bits[rows])
        labels = data.labels[rows]

        def loss(params: Any) -> Array:
            each = LOSSES[config.loss](logits(params), labels)
            return inside * jnp.sum(weight * each) / jnp.sum(weight)

        # The compiler merges this forward pass with the one inside the gradient.
        right = jnp.argmax(logits(training.params), axis=1) == labels
        return train_step(loss, rule, training), jnp.sum(weight * right.astype(jnp.float32))

    parts = (padded.reshape(count, batch), real.reshape(count, batch))
    training, right = jax.lax.scan(step, run.training, parts)
    accuracy = jnp.sum(right) / n
    last = run.epoch + 1 >= config.epochs
    return run._replace(
        training=training,
        epoch=run.epoch + 1,
        done=last | (accuracy >= 1.0) if config.stop else last,
        train_accuracy=accuracy,
    )


def validate(config: SparseMajority, lane: Lane, run: Run, /) -> Run:
    """Measure a run's losses, and store the state if its validation loss is the least so far."""
    data, params, loss = lane.data, run.training.params, LOSSES[config.loss]
    logits = reduced_logits(params, data.task, data.validation_bits)
    held_out = jnp.mean(loss(logits, data.validation_labels))
    right = jnp.argmax(logits, axis=1) == data.validation_labels
    fitted = jnp.mean(loss(reduced_logits(params, data.task, data.bits), data.labels))
    accuracy = jnp.mean(right.astype(jnp.float32))
    now = Best(held_out, fitted, accuracy, total_l1(params), run.epoch, params)
    better = held_out < run.best.validation_loss
    best = jax.tree.map(lambda a, b: jnp.where(better, a, b), now, run.best)
    return run._replace(validation_loss=held_out, best=best)


def round_(config: SparseMajority, lane: Lane, run: Run, every: Int[Array, ""], /) -> Run:
    """Train for `every` epochs (fewer at the end of the run), and then validate."""

    def live(_: Array, run: Run) -> Run:
        after = epoch(config, lane, run)
        return jax.tree.map(lambda a, b: jnp.where(run.done, a, b), run, after)

    return validate(config, lane, jax.lax.fori_loop(0, every, live, run))


def train_length(
    config: SparseMajority,
    key: Array,
    T: int,
    /,
    *,
    folder: Place | None = None,
    resume: bool = False,
) -> Trained:
    """Train all runs of one length.

    Args:
        config: the settings of the experiment.
        key: the random key.
        T: the sequence length.
        folder: the folder of this length's checkpoints; None writes no checkpoint.
        resume: whether to continue from the checkpoints in `folder` instead of deleting them.

    Raises:
        Refused: if T is not above the number of hidden indices, the checkpoints are damaged or have
            another configuration or key, or the program needs too much memory.
    """
    shown = f"validation loss at T = {T}"
    own = lanes(config, key, T)
    # Neither the other lengths nor the chunks change what is computed.
    mark = fingerprint(replace(config, lengths=(T,), chunk=1), key)
    swept = sweep(
        lambda lane, every: start(config, lane),
        lambda lane, run, every: round_(config, lane, run, every),
        lambda lane, run, every: {shown: run.validation_loss},
        own,
        -(-config.epochs // config.every),
        chunk=config.chunk,
        group=config.group,
        finished=lambda run: run.done,
        shared=jnp.int32(config.every),
        folder=folder,
        fingerprint=mark,
        resume=resume,
        show=shown,
    )
    diverged = np.where(swept.diverged < 0, -1, swept.diverged * config.every)
    return Trained(swept.state, own.data, diverged)
