"""The settings of the sparse majority experiment, and its presets."""

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from jaxbounds.experiments.experiment import refuse_unless_increasing, refuse_unless_positive
from jaxbounds.ground.exceptions import Refused
from jaxbounds.seqlength.majority_model import sigmoid_loss, softmax_loss
from jaxbounds.seqlength.sparse_majority import Embedding

Loss = Literal["sigmoid", "softmax"]
Rule = Literal["adam", "momentum"]

LOSSES = {"sigmoid": sigmoid_loss, "softmax": softmax_loss}


@dataclass(frozen=True, kw_only=True)
class SparseMajority:
    """The settings of the experiment; the defaults take about a minute on two cores.

    Attributes:
        lengths: the sequence lengths T.
        seeds: the number of runs at each length, each with its own data.
        sparsity: |I|, the number of hidden indices.
        train: the number of training samples.
        validation: the number of validation samples, which the paper also calls the test set.
        epochs: the largest number of epochs.
        every: the number of epochs between validations. A larger number takes less time, leaves the
            training unchanged, and finds the best epoch among fewer epochs.
        chunk: the number of validations between two checkpoints. Training stops early only at a
            checkpoint.
        group: the number of runs trained side by side on a device.
        batch: the batch size; the last batch of an epoch may be smaller.
        loss: "sigmoid" (the public code's mean of two binary cross entropies) or "softmax" (the
            paper's cross entropy).
        rule: the optimiser: "adam", or "momentum" (SGD with momentum 0.9, which the public code
            uses). The paper names no optimiser.
        rate: the learning rate.
        decay: the factor by which the learning rate is multiplied after each epoch.
        floor: the least learning rate; the decay stops there.
        stop: whether to stop a run after the first epoch with training accuracy 1, as the public
            code does and the paper does not say.
        hidden: the width of the dense layer that the paper does not mention; 0 omits the layer.
        embedding: the map from bits to tokens.
    """

    lengths: tuple[int, ...] = (20, 40, 80, 160)
    seeds: int = 5
    sparsity: int = 9
    train: int = 300
    validation: int = 2000
    epochs: int = 600
    every: int = 10
    chunk: int = 20
    group: int = 5
    batch: int = 128
    loss: Loss = "sigmoid"
    rule: Rule = "adam"
    rate: float = 0.003
    decay: float = 0.999
    floor: float = 0.0
    stop: bool = True
    hidden: int = 64
    embedding: Embedding = field(
        default_factory=lambda: Embedding(symbols="l2", symbol_scale=3.0, position_scale=0.5)
    )

    def __post_init__(self) -> None:
        if self.loss not in get_args(Loss) or self.rule not in get_args(Rule):
            raise Refused(
                f"loss={self.loss!r} and rule={self.rule!r}, expected loss 'sigmoid' or"
                " 'softmax' and rule 'adam' or 'momentum'. Try loss='sigmoid'"
            )
        sizes = ("seeds", "train", "validation", "epochs", "every", "chunk", "group", "batch")
        refuse_unless_positive(self, *sizes)
        refuse_unless_increasing(self, "lengths")


REDUCED = SparseMajority()
"""The default preset, smaller than the paper's experiment: Adam, 600 epochs, symbol vectors of norm
3, and a positional code with the factor 1/2."""

QUICK = replace(REDUCED, lengths=(20, 80), seeds=2, epochs=200)
"""A fast preset: two lengths with two runs each."""

LENGTHS = replace(REDUCED, lengths=tuple(range(20, 201, 20)))
"""A preset with the paper's ten lengths and the training of `REDUCED`."""

EASY = replace(REDUCED, sparsity=3, epochs=300, lengths=(20, 80, 160))
"""A preset with only three hidden indices, so that training succeeds at every length."""

PUBLISHED = SparseMajority(
    lengths=tuple(range(20, 201, 20)),
    validation=10_000,
    epochs=200_000,
    every=50,
    chunk=100,
    rule="momentum",
    rate=0.01,
    floor=0.001,
    embedding=Embedding(),
)
"""A preset with the paper's sizes. The optimiser, the loss and the early stop are those of the
public code."""

TEXT = replace(PUBLISHED, loss="softmax", stop=False, hidden=0)
"""A preset from the paper's text alone: its loss, 200000 epochs, and a network of attention and one
linear map."""

PRESETS = {"quick": QUICK, "published": PUBLISHED, "lengths": LENGTHS, "easy": EASY, "text": TEXT}
