"""The architectures that the experiments compare, and a function that registers further ones.

An architecture is a function of the prompt's length N and the token dimension d that returns a Flax
module. The module maps encoded tokens (..., N, De) to predictions (..., N), without dropout or
batch statistics; `LinearStateSpace` is an example that the paper does not have. The command
`jaxbounds run qstr.fig1a --import FILE` trains an architecture that FILE registers.
"""

import difflib
from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.errors import FlaxError

from jaxbounds.ground.exceptions import Refused
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
"""A dictionary from the name of each architecture of this library to its factory.

The paper's experiments compare "transformer", "feedforward" and "gru500".
"""


def register(name: str, factory: Factory, /) -> None:
    """Register an architecture of your own under a name that experiments can use.

    Args:
        name: the name by which experiments refer to the architecture.
        factory: a function from the prompt's length N and the token dimension d to a Flax module.

    Raises:
        Refused: if another architecture already has this name.
    """
    if name in ARCHITECTURES:
        raise Refused(f"architecture name={name!r} is taken, expected a new name. Try another name")
    ARCHITECTURES[name] = factory


def refuse_unknown(*names: str) -> None:
    """Check that each name is the name of an architecture.

    Raises:
        Refused: for an unknown name; the message gives the nearest name, or all names.
    """
    for name in names:
        if name not in ARCHITECTURES:
            near = difflib.get_close_matches(name, ARCHITECTURES, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(ARCHITECTURES)}"
            raise Refused(
                f"architecture={name!r} is unknown; {hint}. Try --import FILE with the file that"
                " registers your own"
            )


def build(name: str, /, *, N: int, d: int) -> nn.Module:
    """Build the module of an architecture for prompts of N tokens in R^d.

    Raises:
        Refused: if the name is unknown, or the factory fails or returns no Flax module.
    """
    refuse_unknown(name)
    try:
        module = ARCHITECTURES[name](N, d)
    except TypeError as problem:
        raise Refused(
            f"the factory of architecture={name!r} fails: {problem}. Try a factory that takes"
            " N and d"
        ) from problem
    if not isinstance(module, nn.Module):
        raise Refused(
            f"the factory of architecture={name!r} returns {module}, expected a Flax module. Try"
            " returning an instance of nn.Module"
        )
    return module


def outline(name: str, /, *, N: int, d: int, De: int) -> str:
    """Return a text with the shapes of an architecture's parameters, without drawing parameters.

    Raises:
        Refused: if the module does not map encoded tokens to predictions as required.
    """
    module = build(name, N=N, d=d)
    z = jax.ShapeDtypeStruct((2, N, De), jnp.float32)
    try:
        variables = jax.eval_shape(module.init, jax.random.key(0), z)
        if set(variables) - {"params"}:
            others = ", ".join(sorted(set(variables) - {"params"}))
            raise Refused(f'the module has variables={others}, expected "params" alone')
        # Training applies the module without random keys too.
        made = jax.eval_shape(module.apply, variables, z)
        if getattr(made, "shape", None) != (2, N):
            raise Refused(f"the output has shape={getattr(made, 'shape', made)}, expected (2, {N})")
    except (FlaxError, TypeError, ValueError) as problem:
        why = (str(problem).splitlines() or [""])[0]
        raise Refused(
            f"architecture={name!r} does not map encoded tokens {z.shape} to predictions (2,"
            f" {N}): {type(problem).__name__}: {why}. Try a module whose `apply` gives one"
            " prediction per token"
        ) from problem
    leaves = jax.tree_util.tree_leaves_with_path(variables)
    return "; ".join(f"{jax.tree_util.keystr(path)} {leaf.shape}" for path, leaf in leaves)
