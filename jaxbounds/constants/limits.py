"""Suprema that no instance attains: what happens when a scale grows or shrinks without end.

The families are the scalings of each array, of all of them, of each group of tied coordinates, and
the contraction of one array onto another of its shape (difference quotients). Along each, exact
numbers in ball arithmetic tell a ratio that still rises from one that stays.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from flint import arb

from jaxbounds.certification.interpreter import precision
from jaxbounds.certification.values import NotSupported, Undecided
from jaxbounds.constants.enclosure import BITS, Ratio
from jaxbounds.constants.polish import Point
from jaxbounds.constants.problem import Problem, flat, is_float, unflat
from jaxbounds.statements import Instance

FAR, NEAR = 2**8, 1e-6
"""The scale at which float64 says which families are worth a look, and how near they must come."""
STEPS = (1, 2, 2**3, 2**6, 2**12)
FARTHEST = 2**100
Family = Callable[[Any], Instance]
"""From a scale to an instance; at one the instance itself."""


class Limit(NamedTuple):
    """Where the ratio still rises when a scale grows.

    Attributes:
        words: which scale ("W -> infinity", "a - b -> 0").
        instance: far along, in float64.
        ratio: at the farthest scale: a lower estimate.
        settled: whether it has stopped to change there by more than 1e-12; else it has no limit.
    """

    words: str
    instance: Instance
    ratio: arb
    settled: bool


_ball = np.frompyfunc(lambda x: arb(float(x)), 1, 1)


def _families(point: Point, exact: bool) -> Iterator[tuple[str, Family]]:
    """The families through a point, in floats or in balls of radius zero."""
    leaves, structure = jax.tree.flatten_with_path(point.instance)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]
    given = [np.asarray(leaf) for _, leaf in leaves]
    floats = [i for i, leaf in enumerate(given) if is_float(leaf) and np.any(leaf)]
    balls = lambda leaf: np.asarray(_ball(leaf), object).reshape(leaf.shape)
    # Balls: scales beyond the range of floats are exact too.
    values = [balls(leaf) if exact and is_float(leaf) else leaf for leaf in given]

    def rebuilt(changed: dict[int, Any]) -> Instance:
        return jax.tree.unflatten(structure, [changed.get(i, v) for i, v in enumerate(values)])

    def scaled(group: tuple[int, ...], scale: Any) -> Instance:
        return rebuilt({i: values[i] * scale for i in group})

    def shrunk(group: tuple[int, ...], scale: Any) -> Instance:
        return scaled(group, 1 / scale)

    def closer(i: int, j: int, scale: Any) -> Instance:
        middle, half = (values[i] + values[j]) / 2, (values[i] - values[j]) / 2 * (1 / scale)
        return rebuilt({i: middle + half, j: middle - half})

    def larger(mine: np.ndarray, scale: Any) -> Instance:
        moved = np.where(mine, flat(rebuilt({})) * scale, flat(rebuilt({})))
        return unflat(point.instance, moved)

    groups = [(i,) for i in floats] + ([tuple(floats)] if len(floats) > 1 else [])
    for group in groups:
        words = ", ".join(names[i] for i in group)
        yield f"{words} -> infinity", partial(scaled, group)
        yield f"{words} -> 0", partial(shrunk, group)
    for i, j in itertools.combinations(floats, 2):
        if values[i].shape == values[j].shape and values[i].shape:
            yield f"{names[i]} - {names[j]} -> 0", partial(closer, i, j)
    sizes = np.abs(flat(point.instance))
    for value in np.unique(sizes[sizes > 0]):
        yield f"entries of size {value:.2g} -> infinity", partial(larger, sizes == value)


def limit(problem: Problem, ratio: Ratio, point: Point, /) -> Limit | None:
    """The family along which the certified ratio rises, never to fall, and farthest."""
    found: list[Limit] = []
    families = list(_families(point, False))
    if not families:
        return None
    with np.errstate(all="ignore"):
        far = [family(float(FAR)) for _, family in families]
        reached = problem.ratios(far)
    together = zip(_families(point, True), far, reached, strict=True)
    for (words, exact), instance, high in together:
        if high < point.ratio * (1 - NEAR):
            continue
        with precision(BITS):
            try:
                rising = [ratio(exact(arb(s))) for s in STEPS]
                middle, end = (ratio(exact(arb(s)), "ulp") for s in (FARTHEST / 2**20, FARTHEST))
                steps = list(itertools.pairwise([*rising, middle, end]))
                if any(b < a for a, b in steps) or not any(b > a for a, b in steps):
                    continue
                # What falls between the farthest steps has passed its largest value on the way.
                if not end >= rising[0] or end < middle * (1 - arb("1e-12")):
                    continue
            except (Undecided, NotSupported):
                continue
            settled = bool(end < middle * (1 + arb("1e-12")))
            found.append(Limit(words, instance, end, settled))
    return max(found, key=lambda f: float(f.ratio.lower()), default=None)
