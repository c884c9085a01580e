"""The architectures that the experiments compare, by name, and the place to add one.

An architecture is a factory: from the prompt's length N and token dimension d to a Flax module
that maps encoded tokens (..., N, De) to predictions (..., N). It is deterministic (no dropout) and
holds parameters only (no batch statistics). `LinearStateSpace` is an example of one that the paper
lacks; one of your own in a file is used by `jaxbounds run qstr.fig1a --import FILE`.
"""

import difflib
from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.errors import FlaxError

from jaxbounds.qstr.gated import BidirectionalGated
from jaxbounds.qstr.layers import FeedForward
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

    Args:
        name: what experiments call it.
        factory: from N and d to a Flax module, as this module's docstring says.

    Raises:
        ValueError: if the name is taken.
    """
    if name in ARCHITECTURES:
        raise ValueError(f"there already is an architecture {name!r}: choose another name")
    ARCHITECTURES[name] = factory


def refuse_unknown(*names: str) -> None:
    """Check that there are architectures of these names.

    Raises:
        ValueError: if there is none of some name, with the nearest one or those there are.
    """
    for name in names:
        if name not in ARCHITECTURES:
            near = difflib.get_close_matches(name, ARCHITECTURES, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(ARCHITECTURES)}"
            raise ValueError(f"no architecture {name!r}; {hint} (your own need --import FILE)")


def build(name: str, /, *, N: int, d: int) -> nn.Module:
    """The module of that name for prompts of N tokens in R^d.

    Raises:
        ValueError: if there is none, or its factory gives none.
    """
    refuse_unknown(name)
    try:
        module = ARCHITECTURES[name](N, d)
    except TypeError as problem:
        raise ValueError(f"the factory of architecture {name!r} fails: {problem}") from problem
    if not isinstance(module, nn.Module):
        raise ValueError(f"the factory of architecture {name!r} must give a Flax module: {module}")
    return module


def outline(name: str, /, *, N: int, d: int, De: int) -> str:
    """The shapes of its parameters, in words, found without computing anything.

    Raises:
        ValueError: if it is not what an architecture has to be.
    """
    module = build(name, N=N, d=d)
    z = jax.ShapeDtypeStruct((2, N, De), jnp.float32)
    try:
        variables = jax.eval_shape(module.init, jax.random.key(0), z)
        if set(variables) - {"params"}:
            others = ", ".join(sorted(set(variables) - {"params"}))
            raise ValueError(f"it holds {others} besides parameters")
        made = jax.eval_shape(module.apply, variables, z)  # as in training: without random keys
        if getattr(made, "shape", None) != (2, N):
            raise ValueError(f"it makes {getattr(made, 'shape', made)} of them, not (2, {N})")
    except (FlaxError, TypeError, ValueError) as problem:
        why = (str(problem).splitlines() or [""])[0]
        raise ValueError(
            f"architecture {name!r} does not map encoded tokens {z.shape} to predictions (2, {N}): "
            f"{type(problem).__name__}: {why}"
        ) from problem
    leaves = jax.tree_util.tree_leaves_with_path(variables)
    return "; ".join(f"{jax.tree_util.keystr(path)} {leaf.shape}" for path, leaf in leaves)
