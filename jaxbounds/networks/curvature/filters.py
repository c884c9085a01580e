"""Select parameters by a part of a path, a pattern, a function, a kind of variable, or a mask."""

import difflib
import fnmatch
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxbounds.ground.exceptions import Refused
from jaxbounds.networks.curvature.paths import Params, leaves_of

Filter = str | type | Sequence[str] | Callable[[str], bool] | Any
"""A filter selects parameters. A filter is a part of a path or a pattern ("attention",
"block_*/kernel"), a sequence of such texts, a function of the path, a kind of `flax.nnx.Variable`,
or a mask. A mask is a pytree of booleans with the structure of the parameters, or of the upper part
of their tree."""


def is_mask(pattern: Filter, /) -> bool:
    """Return whether a filter is a mask, a pytree of booleans.

    Raises:
        Refused: if the filter is a dictionary that holds something other than booleans, or has a
            boolean for each number of an array.
    """
    if pattern is None or isinstance(pattern, str | type):
        return False
    leaves = jax.tree.leaves(pattern)
    whole = [isinstance(leaf, bool | np.bool_) for leaf in leaves]
    if leaves and all(whole):
        return True
    if any(str(getattr(leaf, "dtype", "")) == "bool" for leaf in leaves):
        raise Refused(
            f"filter has type={type(pattern).__name__} with an array of booleans, expected a "
            "single boolean for each parameter array. Try True or False in place of each array"
        )
    if isinstance(pattern, Mapping) or any(whole):
        kinds = ", ".join(sorted({type(leaf).__name__ for leaf in leaves})) or "nothing"
        raise Refused(
            f"filter has type={type(pattern).__name__} with leaves of type {kinds}, expected a "
            "mask: a pytree with booleans as leaves. Try True or False for each array, or a part "
            "of a "
            "path as a string"
        )
    return False


def masked(mask: Any, params: Params, /) -> list[bool]:
    """Return, for each leaf of the parameters, whether a mask selects the leaf.

    Raises:
        Refused: if the mask's tree does not match the tree of the parameters.
    """
    spread = lambda taken, part: [bool(taken)] * len(jax.tree.leaves(part))
    try:
        return jax.tree.leaves(jax.tree.map(spread, mask, params))
    except (ValueError, TypeError):
        names = lambda tree: listed([path for path, _, _ in leaves_of(tree)])
        raise Refused(
            f"filter is a mask with leaves={names(mask)}, expected the leaves of the parameters, "
            f"{names(params)}. Try a mask made by jax.tree.map from the parameters"
        ) from None


def listed(names: Sequence[str], /, most: int = 4) -> str:
    """Return paths as text for a message: the first few paths, and the number of further paths."""
    shown = ", ".join(repr(name) if name else "the array" for name in names[:most]) or "none"
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def matches(pattern: Filter, path: str, variable: Any = None) -> bool:
    """Return whether a filter selects the leaf at `path`.

    Raises:
        Refused: if the filter is empty or has a type that cannot name parameters.
    """
    if isinstance(pattern, type):
        return isinstance(variable, pattern)
    if isinstance(pattern, str):
        if not pattern:
            raise Refused(
                "filter='' is an empty text, expected a part of a path. Try filter=None for all "
                "parameters"
            )
        exact = any(c in pattern for c in "*?[")
        return fnmatch.fnmatchcase(path, pattern if exact else f"*{pattern}*")
    if callable(pattern):
        return bool(pattern(path))
    if not isinstance(pattern, Sequence | set | frozenset):
        raise Refused(
            f"filter is {pattern!r}, which names no parameter. Try a part of a path, a function of "
            "the path, or a pytree of booleans"
        )
    return any(matches(one, path, variable) for one in pattern)


def said(pattern: Any, /) -> str:
    """Return a filter (selection of parameters) as text for an error message."""
    return getattr(pattern, "__name__", repr(pattern))


def nearest(pattern: Any, paths: Sequence[str], /) -> str:
    """Return, for an error message, the parameters' paths most similar to the user's text."""
    wanted = pattern if isinstance(pattern, str) else ""
    names = {part for path in paths for part in (path, *path.split("/"))}
    close = difflib.get_close_matches(wanted.strip("*"), sorted(names), n=3, cutoff=0.4)
    those = close or list(paths)[:3]
    more = f" and {len(paths) - 3} more" if not close and len(paths) > 3 else ""
    return ("nearest: " if close else "there are: ") + ", ".join(those) + more
