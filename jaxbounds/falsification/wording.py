"""Describe an instance in a few words, for the reason that a verdict gives."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxbounds.claims.statements import Instance
from jaxbounds.claims.statements.statement import ALONE
from jaxbounds.falsification.moves import is_float

SHOWN = 9
"""A verdict's reason lists the entries of an array of at most this many entries. A larger number
lists longer arrays."""


def in_words(instance: Instance, /) -> str:
    """Describe an instance in short words, such as "x = (0, 1), y = x" or "x = 0.707 (rounded)"."""
    paths = jax.tree_util.tree_flatten_with_path(dict(instance))[0]
    named = {jax.tree_util.keystr(p, simple=True, separator="."): np.asarray(x) for p, x in paths}
    if set(named) == {ALONE}:  # the claim is about sizes alone
        return "some size"
    parts, said = list[str](), dict[str, Any]()
    for name, leaf in named.items():
        twin = next((n for n, x in said.items() if leaf.size > 1 and np.array_equal(x, leaf)), "")
        said[name] = leaf
        parts.append(f"{name} = {twin or _entries(leaf)}")
    rounded = any(map(_is_rounded, named.values()))
    return ", ".join(parts) + " (rounded)" * rounded


def _digits(number: Any) -> str:
    """Return a number in three digits, or in more digits where three look like an exact number."""
    texts = [f"{float(number):.{places}g}" for places in range(3, 18)]
    exact = next((text for text in texts[:4] if type(number)(float(text)) == number), "")
    short = len(texts[0].strip("-0.").replace(".", "")) < 3  # such as 1, 0.5 and 2e+03
    longer = (text for text in texts if float(text) != float(texts[0]))
    return exact or (next(longer, texts[0]) if short else texts[0])


def _is_rounded(leaf: np.ndarray) -> bool:
    if not is_float(leaf) or (leaf.size > SHOWN and np.any(leaf != leaf.flat[0])):
        return False
    return any(type(x)(float(_digits(x))) != x and x == x for x in leaf.flat)


def _entries(leaf: np.ndarray) -> str:
    digits = _digits if is_float(leaf) else str
    if leaf.size and np.all(leaf == leaf.flat[0]):
        return digits(leaf.flat[0]) + " in every entry" * (leaf.size > 1)
    if leaf.size <= SHOWN:
        rows: Callable[[Any], str] = lambda x: (
            f"({', '.join(map(rows, x))})" if np.ndim(x) else digits(x[()])
        )
        return rows(leaf)
    return f"an array of shape {leaf.shape}"
