"""The texts that accompany Figure 6's numbers: cost, training, and confounders."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxbounds.multihead.experiments.fig6.config import PRETRAINED, Figure6
from jaxbounds.multihead.experiments.fig6.data import Prepared
from jaxbounds.multihead.roberta import RobertaShape, init_roberta
from jaxbounds.multihead.roberta_files import read_shape

ARMS = {
    "split": "H heads of width d / H, from scratch",
    "fixed": "H heads of width {width}, summed and divided by sqrt(H), from scratch",
    "recut": "pretrained weights, the same matrices read as H heads",
    "prune": "pretrained weights, H heads kept at random",
}
CONFOUNDS = {
    "split": "from scratch, not the paper's weights",
    "fixed": "from scratch, not the paper's weights; capacity grows with H",
    "recut": "only H = {heads} is the pretrained function, every other H starts from a broken one: "
    "better up to {heads} is expected whatever the theory says",
    "prune": "more heads are more of the pretrained function and more capacity: better with more "
    "is expected whatever the theory says",
}
SPEEDS = (("10 TFLOP/s", 1e13), ("50 GFLOP/s", 5e10))
"""Assumed speeds of a GPU and of a CPU, in floating-point operations a second; `cost` divides by
them.
"""


def parameter_count(shape: RobertaShape, /) -> int:
    """Count all parameters, embeddings included, without allocating memory for them."""
    outline = jax.eval_shape(lambda: init_roberta(shape, jax.random.key(0)))
    return sum(leaf.size for leaf in jax.tree.leaves(outline))


def operations(shape: RobertaShape, sentences: int, length: int, /) -> float:
    """Count the multiplications and additions of a forward pass: matrix products and attention."""
    columns = shape.heads * shape.head_width
    layer = 4 * shape.width * columns + 2 * shape.width * shape.inner
    attention = 2 * length * columns
    return 2.0 * sentences * length * shape.layers * (layer + attention)


def cost(config: Figure6, shapes: Mapping[str, RobertaShape], batches: int, /) -> str:
    """Return one line of text: the amount of training, and estimates of its duration."""
    runs = len(config.arms) * len(config.heads) * config.trials
    steps = config.epochs * batches
    total = sum(operations(shape, config.batch, config.length) for shape in shapes.values())
    total *= 3.0 * steps * len(config.heads) * config.trials
    largest = max(parameter_count(shape) for shape in shapes.values())
    times = ", ".join(f"{_duration(total / speed)} at {name}" for name, speed in SPEEDS)
    # The memory holds weights, gradient and AdamW's two moments; a chunk's state exists twice,
    # before and after.
    at_once = 1 if set(shapes) & set(PRETRAINED) else config.trials
    memory = 4.0 * largest * (1 + at_once * 6)
    return (
        f"{runs} runs of {steps} steps on {largest:,} parameters: {total:.1e} operations "
        f"({times}), {memory / 2**30:.2g} GiB without activations"
    )


def _duration(seconds: float) -> str:
    if seconds >= 7200:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"


def about(
    config: Figure6, data: Prepared, shapes: Mapping[str, RobertaShape], n: int, words: str, /
) -> dict[str, Any]:
    """Return the attributes of a result: arms (ways to vary H), confounders, settings, text."""
    pretrained = _stored_heads(config)
    fill = {"width": config.head_width, "heads": pretrained}
    arms = {arm: ARMS[arm].format(**fill) for arm in config.arms}
    confounds = {arm: CONFOUNDS[arm].format(**fill) for arm in config.arms}
    means = {name: float(np.mean(values)) for name, values in data.found.items()}
    rules = {"majority": "the larger class", "bag_of_words": "naive Bayes on a bag of words"}
    rules["lexicon"] = "VADER's lexicon"
    reached = [f"{text} {means[name]:.3f}" for name, text in rules.items() if name in means]
    source = "a grammar of ours" if config.source == "grammar" else config.data
    shape = next(iter(shapes.values()))
    settings = (
        f"{n} sentences, T = {config.length}; layers: {shape.layers}, d = {shape.width}; AdamW "
        f"{config.step_size:g}, batches of {config.batch}, {config.epochs} epochs"
    )
    lines = [
        *(f"arm {arm}: {text} ({confounds[arm]})" for arm, text in arms.items()),
        f"sentences: {source}; {n} to train on, T = {config.length}, {means['share_cut']:.0%} cut, "
        f"{data.vocabulary} kinds of tokens; {shape.layers} layers, d = {shape.width}",
        f"test accuracy without a network: {'; '.join(reached)}",
    ]
    return {
        "arms": arms,
        "confounds": confounds,
        "baselines": {name: means[name] for name in rules if name in means},
        "source": source,
        "settings": settings,
        "sentences": n,
        "shape": [shape.layers, shape.width],
        "cost": words,
        "precision": "float32",
        "text": "\n".join(lines),
    }


def _stored_heads(config: Figure6) -> int:
    return read_shape(config.weights).heads if config.weights else 0
