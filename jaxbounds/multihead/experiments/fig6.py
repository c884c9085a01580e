"""Figure 6: head counts on text, with pretrained weights or from scratch.

The paper fine-tunes `roberta-base` on SST-2 (AdamW, 5e-6, 5 epochs, batches of 32) "with varying
number of heads"; which, and how heads were varied, it does not say. A result records its arm:

- `split`: from scratch, H heads share out the width, d / H columns each;
- `fixed`: from scratch, H heads of one width, summed and divided by sqrt(H): the paper's scaling;
- `recut`: pretrained weights, the same matrices read as H heads;
- `prune`: pretrained weights, H heads kept at random.

The default runs from scratch on sentences of a grammar of ours and fetches nothing.
"""

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import jax
import xarray as xr
from jaxtyping import Array
from rich.console import Console

from jaxbounds.experiments import Experiment
from jaxbounds.files import Place, locate
from jaxbounds.multihead.experiments.fig6_claims import claims
from jaxbounds.multihead.experiments.fig6_data import Prepared, batches_of, prepare
from jaxbounds.multihead.experiments.fig6_drawing import figure
from jaxbounds.multihead.experiments.fig6_runs import network, train_arm
from jaxbounds.multihead.experiments.fig6_words import about, cost
from jaxbounds.multihead.grammar import Grammar
from jaxbounds.multihead.roberta import RobertaShape
from jaxbounds.sweeps import shares

Arm = Literal["split", "fixed", "recut", "prune"]
PRETRAINED = ("recut", "prune")


@dataclass(frozen=True, kw_only=True)
class Figure6:
    """What is trained on what. Not stated in print: all but AdamW, its rate, epochs and batch.

    Attributes:
        arms: what H heads are: "split", "fixed", "recut", "prune" (see the module).
        heads: H, increasing.
        trials: runs with data, order and first weights of their own.
        epochs: passes over the training sentences.
        batch: sentences of a step; what does not fill the last one of an epoch is left out of it.
        looks: records in an epoch.
        step_size: AdamW's.
        weight_decay: AdamW's, on all parameters.
        dropout: in training.
        source: of the sentences: "grammar", or "file".
        data: the folder or file of sentences (see README).
        weights: a Hugging Face folder of a RoBERTa, for "recut" and "prune".
        n: training sentences; 0 stands for all.
        test: test sentences; 0 stands for all of a given test split.
        length: T, tokens of a sentence with start and end; longer ones are cut.
        code: of the sentences: "words" or "byte-pairs"; with weights their own.
        vocabulary: the most tokens that the code may have.
        width: d, from scratch.
        layers: from scratch.
        inner: width of the feedforward layers, from scratch.
        head_width: of the arm "fixed".
        deviation: of first weights, from scratch; 0 stands for 1 / sqrt(fan in).
        matmul_precision: as JAX names it.
        memory_gib: that one device may be asked for.
        grammar: of the sentences drawn.
    """

    arms: tuple[Arm, ...] = ("split",)
    heads: tuple[int, ...] = (1, 2, 4, 8, 16)
    trials: int = 5
    epochs: int = 6
    batch: int = 32
    looks: int = 2
    step_size: float = 1e-3
    weight_decay: float = 0.01
    dropout: float = 0.0
    source: Literal["grammar", "file"] = "grammar"
    data: str = ""
    weights: str = ""
    n: int = 4096
    test: int = 1024
    length: int = 32
    code: Literal["words", "byte-pairs"] = "words"
    vocabulary: int = 4096
    width: int = 64
    layers: int = 2
    inner: int = 128
    head_width: int = 8
    deviation: float = 0.0
    matmul_precision: Literal["default", "high", "highest"] = "highest"
    memory_gib: float = 8.0
    grammar: Grammar = field(default_factory=Grammar)

    def __post_init__(self) -> None:
        """Refuse settings that no run could have.

        Raises:
            ValueError: naming what is wrong.
        """
        if not self.arms or len(set(self.arms)) < len(self.arms) or set(self.arms) - _ARMS:
            raise ValueError(f"arms must be some of {', '.join(sorted(_ARMS))}, got {self.arms}")
        if not self.heads or list(self.heads) != sorted(set(self.heads)) or self.heads[0] < 1:
            raise ValueError(f"heads must be positive and increase, got {self.heads}")
        positive = (
            *("trials", "epochs", "batch", "looks", "length", "vocabulary", "width"),
            *("layers", "inner", "head_width", "step_size", "memory_gib"),
        )
        small = [name for name in positive if getattr(self, name) <= 0]
        if small:
            raise ValueError(f"these must be positive: {', '.join(small)}")
        if min(self.n, self.test, self.weight_decay, self.deviation) < 0:
            raise ValueError("n, test, weight_decay and deviation cannot be negative")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"expected 0 <= dropout < 1, got {self.dropout}")
        if self.source == "grammar" and not (self.n and self.test):
            raise ValueError("the grammar has no end: n and test must be positive")
        if self.source == "grammar" and self.data:
            raise ValueError(f"data {self.data} was given but source is grammar: add --source file")
        scratch = [arm for arm in self.arms if arm not in PRETRAINED]
        if self.weights and scratch:
            raise ValueError(f"{scratch[0]} starts from scratch: leave --weights out, or that arm")


_ARMS = set(get_args(Arm))


def _refuse_what_cannot_run(config: Figure6, data: Prepared) -> None:
    """Everything that a later cell would trip over, before the first one starts."""
    for arm in config.arms:
        for heads in config.heads:
            network(config, arm, heads, data.vocabulary)


def run(
    config: Figure6, key: Array, /, *, folder: Place | str | None = None, resume: bool = False
) -> xr.Dataset:
    """Train every (arm, H, trial) and record losses and accuracies.

    Args:
        config: the settings.
        key: of all draws; a trial's data and order do not depend on the arm or H.
        folder: where progress is kept.
        resume: continue what the folder holds, instead of clearing it.

    Returns:
        `train_loss` (on as many training sentences as there are test sentences), `test_loss`,
        `train_accuracy`, `test_accuracy` over (panel, H, trial, step), a panel being an arm; test
        accuracies of simple rules over (trial,).

    Raises:
        ValueError: if data or weights are missing, damaged or do not fit, or the folder to resume
            from is of another run.
    """
    missing = [arm for arm in config.arms if arm in PRETRAINED and not config.weights]
    if missing:
        raise ValueError(
            f"arm {missing[0]} starts from pretrained weights: add --weights FOLDER (config.json, "
            "model.safetensors and tokenizer.json of roberta-base)"
        )
    data = prepare(config, key)
    _refuse_what_cannot_run(config, data)
    n = data.lanes["data"]["tokens"].shape[1]
    batches = batches_of(config, n)
    shapes: dict[str, RobertaShape] = {
        arm: network(config, arm, config.heads[-1], data.vocabulary) for arm in config.arms
    }
    words = cost(config, shapes, batches)
    Console(stderr=True).print(words, highlight=False, soft_wrap=True)
    panels = []
    with jax.default_matmul_precision(config.matmul_precision):
        for arm in config.arms:
            cells = []
            for heads in config.heads:
                place = None if folder is None else locate(folder) / arm / f"H{heads}"
                swept = train_arm(config, key, data, arm, heads, folder=place, resume=resume)
                values = {name: (("trial", "step"), v) for name, v in swept.metrics.items()}
                cell = xr.Dataset(values, coords={"step": swept.steps})
                cells.append(cell.assign(diverged=("trial", swept.diverged)))
            panels.append(xr.concat(cells, dim=xr.Variable("H", list(config.heads))))
    shares.whole()
    dataset = xr.concat(panels, dim=xr.Variable("panel", list(config.arms)))
    dataset = dataset.assign_coords(epoch=("step", dataset.step.values / batches))
    dataset = dataset.assign({name: (("trial",), v) for name, v in data.found.items()})
    return dataset.assign_attrs(about(config, data, shapes, n, words))


PUBLISHED = Figure6(
    arms=("recut",),
    heads=(1, 3, 6, 12, 24),
    trials=3,
    epochs=5,
    looks=4,
    step_size=5e-6,
    dropout=0.1,
    source="file",
    n=0,
    test=0,
    length=64,
    matmul_precision="default",
    memory_gib=20.0,
)
"""The setting in print, as far as it is stated; a GPU's work."""

SNIPPETS = Figure6(
    source="file", n=8568, test=2000, epochs=4, code="byte-pairs", inner=256, heads=(1, 2, 4, 16)
)
"""Real film-review sentences, from scratch."""

EXPERIMENT = Experiment(
    id="multihead.fig6",
    label="Figure 6",
    title="AdamW on sentences, against the number of heads: from scratch, or pretrained weights",
    config=Figure6(),
    presets={
        "quick": Figure6(heads=(1, 4, 16), trials=3, epochs=2, n=1024, test=256, layers=1),
        "paper-scaling": replace(Figure6(), arms=("fixed",)),
        "snippets": SNIPPETS,
        "published": PUBLISHED,
    },
    run=run,
    figure=figure,
    claims=claims,
    resumable=True,
)
"""Figure 6."""
