"""Tie coordinates: near-zero coordinates become zero, and near-equal coordinates become equal.

If a bound contains maxima, its worst instances often have coinciding entries: corners of a box,
antipodal tokens, equal logits. The ratio lhs/rhs has a kink at an instance with coinciding entries,
which an ascent by slopes does not reach. If equal coordinates are tied, the ratio lhs/rhs is smooth
in the remaining coordinates.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from jaxbounds.claims.statements import Instance
from jaxbounds.constants.problem import UNCOUNTED, Problem, filled, flat, floats_of, unflat

TOLERANCES = (0.3, 0.1, 0.03, 0.003, 0.0)
"""The search ties two entries of a leaf (makes them equal) if their distance is at most one of
these values times the largest entry. The search tries each of these values; at the value 0, the
search ties only entries that are already equal.
"""

COSTS = 1e3
"""The search keeps a tie (of coordinates that become equal) only if the tie makes the ratio lhs/rhs
smaller by at most this factor. If this factor is larger, the search tries more ties.
"""


class Basis(NamedTuple):
    """A change of basis: a coordinate is an entry of x, or a pair's mean or half difference.

    The entries are x_i = own_i y_i + other_i y_(partner_i), where y are the coordinates.
    """

    own: Any
    other: Any
    partner: Any

    def expand(self, y: Any) -> Any:
        """Return the entries x that have the coordinates y."""
        return y * self.own + y[self.partner] * self.other

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        """Return the coordinates y of the entries x."""
        return np.where(self.other == 0, 1.0, 0.5) * self.expand(x)


class Ties(NamedTuple):
    """Coordinates that are signed copies of fewer values: y_i = signs_i * values_(labels_i).

    Each sign is -1, 0 or 1.
    """

    signs: Any
    labels: Any
    basis: Basis

    def expand(self, values: Any) -> Any:
        """Return all entries of the instance, shape (n,), from its free coordinates."""
        return self.basis.expand(self.signs * values[self.labels])


def bases(instance: Instance, /) -> list[Basis]:
    """Return the basis of single entries, and a basis of pairs if two leaves have equal shapes.

    In the basis of pairs, one coordinate moves two leaves by equal amounts.
    """
    sizes = [leaf.size for leaf in floats_of(instance)]
    shapes = [leaf.shape for leaf in floats_of(instance)]
    rows = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    plain = Basis(np.ones(sum(sizes)), np.zeros(sum(sizes)), np.arange(sum(sizes)))
    paired = Basis(*(part.copy() for part in plain))
    free = list(range(len(shapes)))
    while free:
        i = free.pop(0)
        j = next((j for j in free if shapes[j] == shapes[i] and sizes[i] > 1), None)
        if j is not None:
            free.remove(j)
            paired.own[rows[j]] = -1.0
            for mine, others in ((rows[i], rows[j]), (rows[j], rows[i])):
                paired.other[mine], paired.partner[mine] = 1.0, others
    return [plain, paired] if paired.other.any() else [plain]


def tied(
    instance: Instance, tolerance: float, /, basis: Basis | None = None
) -> tuple[Ties, np.ndarray]:
    """Group coordinates of nearly equal size in each array; return the groups and mean sizes."""
    x = np.asarray(flat(instance), float)
    basis = bases(instance)[0] if basis is None else basis
    coordinates = basis.coordinates(x)
    sizes = [leaf.size for leaf in floats_of(instance)]
    signs, labels = np.sign(coordinates), np.zeros(len(x), int)
    values = list[float]()
    for rows in np.split(np.arange(len(x)), np.cumsum(sizes)[:-1]):
        size = np.abs(coordinates[rows])
        near = tolerance * np.max(size, initial=0.0)
        signs[rows[size <= near]] = 0.0
        order = [i for i in np.argsort(size, kind="stable") if size[i] > near]
        groups = np.split(order, 1 + np.flatnonzero(np.diff(size[order]) > near)) if order else []
        for group in groups:
            labels[rows[group]] = len(values)
            values.append(float(np.mean(size[group])))
    return Ties(signs, labels, basis), np.array(values)


def snapped(problem: Problem, instance: Instance, /) -> Iterator[tuple[Ties, np.ndarray]]:
    """Yield ties of coordinates that keep the hypotheses true, fewest free values first."""
    seen = set[bytes]()
    free, own = tied(instance, 0.0)
    if not len(own):
        return
    least = max(problem.slope(own, free, instance)[0] - np.log(COSTS), -UNCOUNTED)
    for tolerance in TOLERANCES:
        for basis in bases(instance):
            ties, values = tied(instance, tolerance, basis)
            name = b"".join(part.tobytes() for part in (ties.signs, ties.labels, basis.own))
            if name not in seen and len(values):
                seen.add(name)
                if problem.slope(values, ties, instance)[0] > least:
                    yield ties, values


def neighbours(instance: Instance, rng: np.random.Generator, /) -> Iterator[Instance]:
    """Yield nearby instances: one float is larger or smaller, or all floats move at random."""
    x = flat(instance)
    largest = [np.full(v.shape, np.max(np.abs(v), initial=0.0) or 1.0) for v in floats_of(instance)]
    scale = flat(filled(instance, largest))
    for amount in (1e-2, 1e-4):
        for i in range(len(x)):
            for sign in (-1, 1):
                yield unflat(instance, x + sign * amount * scale * (np.arange(len(x)) == i))
        for _ in range(16):
            yield unflat(instance, x + amount * scale * rng.normal(size=len(x)))
