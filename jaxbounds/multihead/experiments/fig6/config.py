"""The configuration of Figure 6: networks, data, and named settings."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from jaxbounds.experiments.experiment import refuse_unless_increasing, refuse_unless_positive
from jaxbounds.ground.exceptions import Refused
from jaxbounds.multihead.grammar import Grammar

Arm = Literal["split", "fixed", "recut", "prune"]
PRETRAINED = ("recut", "prune")
_ARMS = set(get_args(Arm))


@dataclass(frozen=True, kw_only=True)
class Figure6:
    """The configuration of Figure 6.

    The paper states only the optimiser AdamW, the step size, the epochs and the batch size.

    Attributes:
        arms: the ways to vary the number of heads: "split", "fixed", "recut", "prune" (the package
            `fig6` explains them).
        heads: the numbers of heads H, increasing.
        trials: the number of runs; each run has other data, another order of the data and other
            first weights.
        epochs: the number of passes over the training sentences.
        batch: the number of sentences of a step; an epoch omits sentences that do not fill a batch.
        looks: how often in each epoch the run records losses and accuracies.
        step_size: the step size of AdamW.
        weight_decay: the weight decay of AdamW, on all parameters.
        dropout: the dropout rate in training.
        source: the source of the sentences: "grammar" or "file".
        data: the folder or file of sentences (see `jaxbounds guide figures`).
        weights: a Hugging Face folder of a RoBERTa, for "recut" and "prune".
        n: the number of training sentences; 0 stands for all.
        test: the number of test sentences; 0 stands for all sentences of a given test split.
        length: T, the number of tokens of a sentence with its start and end tokens; longer
            sentences are cut to T tokens.
        code: the tokenizer: "words" or "byte-pairs"; pretrained weights have their own tokenizer.
        vocabulary: the largest number of ids of the tokenizer.
        width: d, for networks trained from scratch.
        layers: the number of layers, for networks trained from scratch.
        inner: the width of the feedforward layers, for networks trained from scratch.
        head_width: the width of each head in the arm "fixed".
        deviation: the standard deviation of first weights, for networks trained from scratch; 0
            stands for 1 / sqrt(fan in).
        memory_gib: the largest memory that the run may use on one device, in GiB.
        grammar: the grammar from which the source "grammar" draws sentences.
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
    memory_gib: float = 8.0
    grammar: Grammar = field(default_factory=Grammar)

    def __post_init__(self) -> None:
        if not self.arms or len(set(self.arms)) < len(self.arms) or set(self.arms) - _ARMS:
            raise Refused(
                f"arms={self.arms}, expected one or more ways to vary the number of heads from"
                f" {', '.join(sorted(_ARMS))}, each at most once. Try a shorter list"
            )
        refuse_unless_increasing(self, "heads")
        positive = (
            *("trials", "epochs", "batch", "looks", "length", "vocabulary", "width"),
            *("layers", "inner", "head_width", "step_size", "memory_gib"),
        )
        refuse_unless_positive(self, *positive)
        if min(self.n, self.test, self.weight_decay, self.deviation) < 0:
            raise Refused(
                f"n={self.n}, test={self.test}, weight_decay={self.weight_decay},"
                f" deviation={self.deviation}: expected no negative number. Try 0"
            )
        if not 0 <= self.dropout < 1:
            raise Refused(f"dropout={self.dropout}, expected 0 <= dropout < 1. Try dropout=0.1")
        if self.source == "grammar" and not (self.n and self.test):
            raise Refused(
                f"n={self.n} and test={self.test}, expected positive numbers: 0 means all "
                f"sentences, and the grammar has infinitely many. Try --n 1000 --test 500"
            )
        if self.source == "grammar" and self.data:
            raise Refused(
                f"data={self.data} was given with source='grammar', which reads no file. Try"
                " --source file"
            )
        scratch = [arm for arm in self.arms if arm not in PRETRAINED]
        if self.weights and scratch:
            raise Refused(
                f"weights={self.weights} was given, but arm={scratch[0]} (a way to vary the number "
                f"of heads) starts from random weights. Try without --weights, or without "
                f"arm={scratch[0]}"
            )


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
    memory_gib=20.0,
)
"""The settings of the paper, as far as the paper states them; a run needs a GPU."""

SNIPPETS = Figure6(
    source="file", n=8568, test=2000, epochs=4, code="byte-pairs", inner=256, heads=(1, 2, 4, 16)
)
"""A preset that trains networks from scratch on real film-review sentences."""
