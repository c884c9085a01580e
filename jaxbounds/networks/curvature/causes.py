"""Explain in one sentence why a loss cannot be used, with the cause and the user's line of code."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.tracing_errors import OWN, trace_fault, users_line
from jaxbounds.networks.curvature.filters import listed
from jaxbounds.networks.curvature.paths import Params, leaves_of

_LOOP = (
    "the loss has a while_loop, which has no reverse derivative",
    "lax.scan, or fori_loop with fixed ends",
)
_NO_DERIVATIVE = (
    ("Reverse-mode differentiation does not work for lax.while_loop", *_LOOP),
    ("operand type(s) for +: 'NoneType' and 'tuple'", *_LOOP),  # the words of JAX 0.7
    ("callback", "the loss calls Python through a callback, which has no derivative",
     "jax.custom_jvp around the callback, or jax.numpy"),
    ("custom_vjp", "the loss has a custom_vjp whose rule cannot be differentiated again",
     "jax.custom_jvp"),
    ("leaked", "the loss uses an array of an earlier trace", "to pass all arrays as arguments"),
    ("has been deleted", "the loss uses an array that was donated to a jitted function",
     "the array that the function returned"),
    ("eigenvector", "eigenvalues of a nonsymmetric matrix have no second derivative here",
     "jnp.linalg.eigvalsh of a symmetric matrix"),
    ("ifferentiation rule", "one of its operations has no derivative",
     "another operation, or jax.custom_jvp"),
)  # fmt: skip
"""Known errors, as triples: a part of JAX's message, the cause in plain words, the change to
try."""


def _cause(problem: Exception, params: Params) -> tuple[str, str]:
    if fault := trace_fault(problem):
        return f"the loss {fault[0]}", fault[1]
    text = str(problem).strip()
    if "has been deleted" in text:
        return (
            "the loss uses an array that was donated to a jitted function",
            "the array that the function returned",
        )
    first = text.splitlines()[0] if text else "no message"
    if isinstance(problem, KeyError | AttributeError | IndexError):
        names = listed([path for path, _, _ in leaves_of(params)])
        return (
            f"{first}; params has the leaves {names}",
            "the parameters, and the batch, for which the loss is written",
        )
    return first, "to call the loss alone at these parameters"


@contextmanager
def explained(params: Params, /, *, differentiated: bool = False) -> Iterator[None]:
    """Turn an exception of the user's loss into one sentence with the cause and the user's line.

    If `differentiated` is true, the loss has already run, so that only its derivative can fail.

    Raises:
        Refused: in place of any exception that the loss raises.
    """
    try:
        yield
    except Exception as problem:
        text, line, raised = str(problem), users_line(problem), type(problem).__name__
        if differentiated:
            known = [said for said in _NO_DERIVATIVE if said[0] in text]
            if not known:
                raise
            _, cause, cure = known[0]
            raise Refused(
                f"the Hessian of the loss fails{line} with error={raised}: {cause}. Try {cure}"
            ) from problem
        if isinstance(problem, ValueError) and _is_ours(problem):
            raise
        cause, cure = _cause(problem, params)
        raise Refused(f"the loss fails{line} with error={raised}: {cause}. Try {cure}") from problem


def _is_ours(problem: Exception) -> bool:
    frames = traceback.extract_tb(problem.__traceback__)
    return frames[-1].filename.startswith(OWN)


def _odd(path: str, leaf: Any) -> str | None:
    array = np.asarray(leaf)
    if array.dtype.kind not in "fcV" or array.size == 0:
        return None
    bad = ~np.isfinite(array.astype(np.float32) if array.dtype.kind == "V" else array)
    if not bad.any():
        return None
    first = np.unravel_index(int(np.argmax(bad)), array.shape)
    place = f"[{', '.join(map(str, first))}]" if array.ndim else ""
    few = f"{int(bad.sum())} of {array.size} numbers are not finite"
    return f"{path}{place} is {array[tuple(first)]} ({few})"


def why_not_finite(params: Params, batches: Any, /) -> str | None:
    """Return the reason why a loss is not finite; None if parameters and batches show no reason."""
    for path, leaf, _ in leaves_of(params):
        if hasattr(leaf, "dtype") and not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            found = _odd(f"the parameter {path!r}", leaf)
            if found:
                return f"{found}. Try the parameters before they diverged"
    for path, leaf, _ in leaves_of(batches):
        if not hasattr(leaf, "dtype") or jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            continue
        name = f"the batch at {path!r}" if path else "the batch"
        if 0 in np.shape(leaf):
            return f"{name} has shape {np.shape(leaf)}, without examples. Try one or more"
        found = _odd(name, leaf)
        if found:
            return f"{found}. Try finite data"
    return None
