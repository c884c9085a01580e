"""Settings of the sparse majority experiment: reduced, easy, and the published sizes."""

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from jaxbounds.experiments.experiment import refuse_unless_increasing, refuse_unless_positive
from jaxbounds.seqlength.majority_model import sigmoid_loss, softmax_loss
from jaxbounds.seqlength.sparse_majority import Embedding

Loss = Literal["sigmoid", "softmax"]
Rule = Literal["adam", "momentum"]

LOSSES = {"sigmoid": sigmoid_loss, "softmax": softmax_loss}


@dataclass(frozen=True, kw_only=True)
class SparseMajority:
    """One run of the experiment; the defaults are the reduced preset, about a minute on 2 cores.

    Attributes:
        lengths: the sequence lengths T; each has its own compiled program.
        seeds: runs at each length, each with its own data.
        sparsity: |I|.
        train: training samples.
        validation: validation samples; also what the paper calls the test set.
        epochs: at most so many.
        every: validate after so many epochs. Training does not depend on it: a validation is that
            of the same epoch at any `every`. A larger number takes less time, and finds the best
            epoch among fewer.
        chunk: validations between checkpoints, each of which may end the length.
        group: runs trained side by side on a device.
        batch: the batch size; the last batch of an epoch may be smaller.
        loss: "sigmoid" (the code's mean of two binary cross entropies) or "softmax" (the paper's).
        rule: "adam", or "momentum": SGD with momentum 0.9 (the code's; the paper names none).
        rate: the learning rate.
        decay: its factor per epoch.
        floor: and its least value.
        stop: stop a run after the first epoch with training accuracy 1, as the code does and the
            paper does not say.
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
        """Refuse settings that no run could have.

        Raises:
            ValueError: naming what is wrong.
        """
        if self.loss not in get_args(Loss) or self.rule not in get_args(Rule):
            raise ValueError(
                f"loss={self.loss!r} and rule={self.rule!r}, expected loss 'sigmoid' or"
                " 'softmax' and rule 'adam' or 'momentum'. Try loss='sigmoid'"
            )
        sizes = ("seeds", "train", "validation", "epochs", "every", "chunk", "group", "batch")
        refuse_unless_positive(self, *sizes)
        refuse_unless_increasing(self, "lengths")


REDUCED = SparseMajority()
"""Deviates from the paper: Adam, unit symbols times 3, half the positional code, 600 epochs."""

QUICK = replace(REDUCED, lengths=(20, 80), seeds=2, epochs=200)
"""A look: two lengths, two runs each."""

LENGTHS = replace(REDUCED, lengths=tuple(range(20, 201, 20)))
"""The paper's ten lengths with the reduced training."""

EASY = replace(REDUCED, sparsity=3, epochs=300, lengths=(20, 80, 160))
"""Three relevant indices: learned at every length."""

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
"""The paper's numbers, and where it is silent the public code's optimiser, loss and early stop."""

TEXT = replace(PUBLISHED, loss="softmax", stop=False, hidden=0)
"""The paper's text alone: its loss, all 200000 epochs, attention and one linear map."""

PRESETS = {"quick": QUICK, "published": PUBLISHED, "lengths": LENGTHS, "easy": EASY, "text": TEXT}
