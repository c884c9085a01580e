"""The architectures that the experiments compare, by name, and the place to add one.

An architecture is a factory: from the prompt's length N and token dimension d to a Flax module
that maps encoded tokens (..., N, De) to predictions (..., N).
"""

from collections.abc import Callable

import flax.linen as nn

from jaxbounds.qstr.feedforward import FeedForward
from jaxbounds.qstr.gated import BidirectionalGated
from jaxbounds.qstr.recurrent import BidirectionalRNN
from jaxbounds.qstr.state_space import LinearStateSpace
from jaxbounds.qstr.transformer import PublishedTransformer, SparseTransformer

Factory = Callable[[int, int], nn.Module]

ARCHITECTURES: dict[str, Factory] = {
    "transformer": lambda N, d: PublishedTransformer(),
    "sparse_transformer": lambda N, d: SparseTransformer(heads=1, width=100),
    "feedforward": lambda N, d: FeedForward((N * d, 1000)),
    "feedforward256": lambda N, d: FeedForward((N * d, 256)),
    "gru128": lambda N, d: BidirectionalGated(128),
    "gru500": lambda N, d: BidirectionalGated(500),
    "lstm128": lambda N, d: BidirectionalGated(128, "lstm"),
    "rnn": lambda N, d: BidirectionalRNN(hidden=64),
    "state_space": lambda N, d: LinearStateSpace(),
}
"""The shipped architectures; "transformer", "feedforward" and "gru500" are the paper's figures'."""


def register(name: str, factory: Factory, /) -> None:
    """Add an architecture of your own, so that experiments can name it.

    Raises:
        ValueError: if the name is taken.
    """
    if name in ARCHITECTURES:
        raise ValueError(f"there already is an architecture {name!r}: choose another name")
    ARCHITECTURES[name] = factory


def build(name: str, /, *, N: int, d: int) -> nn.Module:
    """The module of that name for prompts of N tokens in R^d.

    Raises:
        ValueError: if there is none; the message lists those there are.
    """
    if name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ValueError(f"unknown architecture {name!r}: choose one of {known}, or register it")
    return ARCHITECTURES[name](N, d)
