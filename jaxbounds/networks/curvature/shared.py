"""Share one Krylov factorisation of a compiled product among all methods at a point.

The methods `extremes`, `top`, `spectrum` and `trace` all multiply one matrix with the same sequence
of orthonormal vectors. A `Run` stores these vectors as rows. Each method uses the first rows that
it needs, and adds missing rows. Therefore a method's result does not depend on the methods called
before. If a method needs more products than the basis has rows, the method replaces the rows by
fewer Ritz vectors, and adds rows to these vectors. Later methods cannot use such a basis, so they
start a new `Run`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.networks.curvature.lanczos import (
    Operator,
    Wanted,
    _dot,
    _Krylov,
    _taken,
    _unit,
    started,
)

STEP = 4
"""The number of products of the operator with vectors between two checks of a run's residuals.

If this number of products is larger, a run notices convergence later.
"""

CONFIRM = 2
"""A Krylov run trusts a small residual only if the residual is still small after this number of
further products.

A larger number makes a wrong decision less likely, and costs more time.
"""

FRESH = 10
"""The number of products in random directions after a run has exhausted its Krylov space.

A run with more products in random directions finds more of the eigenvalues that the exhausted
Krylov space has missed.
"""

_masked_unit = jax.jit(lambda vector, mask: _unit(vector * mask))
_combined = jax.jit(lambda coefficients, basis: _unit(_dot(coefficients, basis)))
_rotated = jax.jit(_dot, donate_argnums=1)


@jax.jit
def _measured(vector: Array, image: Array) -> Array:
    value = _dot(vector, image)
    return jnp.stack([value, jnp.linalg.norm(image - value * vector)])


def rayleigh(operator: Operator, vector: Array, /) -> tuple[np.floating, np.floating]:
    """Return a unit vector's Rayleigh quotient and residual, by one product."""
    value, residual = np.asarray(_measured(vector, operator(vector)))
    return value, residual


class Look(NamedTuple):
    """The Ritz values (approximate eigenvalues) from the leading k rows of a run, in float64.

    Attributes:
        values: the Ritz values in ascending order, of shape (k,).
        vectors: the coefficients of the Ritz vectors in the Krylov basis, one Ritz vector in each
            column; of shape (k, k).
        estimates: the residual of each Ritz pair, estimated from the last off-diagonal entry; of
            shape (k,).
    """

    values: np.ndarray
    vectors: np.ndarray
    estimates: np.ndarray

    def small(self, wanted: Wanted, tolerance: float, floor: float = -np.inf) -> tuple[bool, bool]:
        """Return, for each end of the spectrum, whether the wanted Ritz values converged.

        At the upper end, a Ritz value also counts as converged if it certainly lies below `floor`.
        """
        k = self.values.size
        if not tolerance > 0 or k < max(wanted.low + wanted.high, 1):
            return False, False
        small = self.estimates <= tolerance * np.abs(self.values[[0, -1]]).max()
        high = small | (self.values + self.estimates < floor)
        return bool(small[: wanted.low].all()), bool(high[k - wanted.high :].all())


class Run:
    """A partial Lanczos factorisation from a random start, which grows up to `rows` rows."""

    def __init__(
        self, operator: Operator, key: jax.Array, rows: int, *, dtype: Any, mask: Array
    ) -> None:
        """Draw the start vector; entries of the vectors stay 0 where `mask` is 0."""
        start_key, self._key = jax.random.split(key)
        self._operator, self._mask, self.rows = operator, mask, rows
        start = jax.random.normal(start_key, mask.shape, dtype)
        self._state: _Krylov = started(_masked_unit(start, mask), rows)
        self.filled, self.used, self.is_restarted = 0, 0, False
        self._seen: tuple[np.ndarray, float] | None = None
        self._pairs: dict[tuple[int, int], tuple[Array, Any, Any]] = {}

    def _extend(self, k: int) -> None:
        while self.filled < k:
            image = self._operator(self._state.vector)
            self._state = _taken(self._key, self._mask, self._state, image)
            self.filled, self.used, self._seen = self.filled + 1, self.used + 1, None

    def _projected(self) -> tuple[np.ndarray, float]:
        """Return the projected operator (upper triangle only), and its last off-diagonal entry."""
        if self._seen is None:
            upper = np.asarray(self._state.projected, np.float64)
            self._seen = np.triu(upper), float(self._state.coupling)
        return self._seen

    def matrix(self, k: int) -> np.ndarray:
        """Return the operator's (k, k) projection onto the first k rows of the Krylov basis."""
        self._extend(k)
        upper = self._projected()[0][:k, :k]
        return upper + np.triu(upper, 1).T

    def look(self, k: int) -> Look:
        """Return Ritz values and vectors of k basis rows; NaN if a product was not finite."""
        matrix = self.matrix(k)
        if not np.isfinite(matrix).all():
            nothing = np.full(k, np.nan)
            return Look(nothing, np.eye(k), nothing)
        values, vectors = np.linalg.eigh(matrix)
        upper, coupling = self._projected()
        beyond = upper[:k, k] if k < self.filled else coupling * (np.arange(k) == k - 1)
        return Look(values, vectors, np.abs(beyond @ vectors))

    def exhausted_at(self) -> int:
        """Return how many basis rows exhaust the Krylov space; 2^62 if they do not exhaust it."""
        upper, coupling = self._projected()
        eps = float(jnp.finfo(self._state.vector.dtype).eps)
        beside = np.abs(np.append(np.diagonal(upper, 1)[: self.filled - 1], coupling))
        gone = np.flatnonzero(beside <= 16 * eps * np.abs(upper).max())
        return int(gone[0]) + 1 if gone.size else 2**62

    def pair(self, look: Look, index: int, /) -> tuple[Array, np.floating, np.floating]:
        """Return a unit Ritz vector, its Rayleigh quotient and its residual.

        The first call for a Ritz pair multiplies the operator by one vector. `look` holds the Ritz
        values of the present Krylov basis.
        """
        k = look.values.size
        if (k, index) not in self._pairs:
            vector = self.vector(look, index)
            self._pairs[k, index] = vector, *rayleigh(self._operator, vector)
        return self._pairs[k, index]

    def vector(self, look: Look, index: int, /) -> Array:
        """Return the unit Ritz vector of the Ritz value with the given index."""
        wide = np.zeros(self.rows)
        wide[: look.values.size] = look.vectors[:, index]
        return _combined(jnp.asarray(wide, self._state.vector.dtype), self._state.basis)

    @property
    def basis(self) -> Array:
        """The Krylov basis, of shape (rows, n); the rows after the filled rows are zero."""
        return self._state.basis

    def restart(self, look: Look, low: int, kept: int) -> None:
        """Keep some Ritz vectors of a full basis, and drop the rest of the basis.

        The run keeps `low` Ritz vectors of the least Ritz values, and `kept - low` of the greatest.
        """
        m, dtype = self.rows, self._state.vector.dtype
        index = np.r_[np.arange(low), m - kept + np.arange(low, kept)].astype(int)
        turn, projected = np.zeros((2, m, m))
        turn[:kept] = look.vectors[:, index].T
        projected[range(kept), range(kept)] = look.values[index]
        self._state = self._state._replace(
            basis=_rotated(jnp.asarray(turn, dtype), self._state.basis),
            projected=jnp.asarray(projected, dtype),
            # The next image has a part in each kept row: the recurrence of two terms starts later.
            coupling=jnp.zeros((), dtype),
            filled=jnp.asarray(kept, jnp.int32),
        )
        self.filled, self._seen, self._pairs, self.is_restarted = kept, None, {}, True


class Found(NamedTuple):
    """The wanted Ritz pairs of both ends of a spectrum.

    Attributes:
        pairs: the tuple (unit vector, Rayleigh quotient, residual) for each wanted eigenpair, from
            the least eigenvalue to the greatest. The list `pairs` is empty if the upper end of the
            spectrum lies below `floor`.
        products: the number of products of the operator with vectors, not counting one further
            product for each pair's residual.
    """

    pairs: list[tuple[Array, np.floating, np.floating]]
    least: float
    greatest: float
    products: int


def pairs_of(
    run: Run,
    wanted: Wanted,
    /,
    *,
    tolerance: float,
    limit: int,
    least: int,
    floor: float = -np.inf,
) -> Found:
    """Extend a run until the residuals of the wanted Ritz pairs are small, and return the pairs.

    A residual counts as small only if it is still small `CONFIRM` products later. `tolerance` is
    relative to the largest absolute Ritz value; if it is 0, the function computes all `limit`
    products. Wanted eigenvalues at the upper end need not converge if they certainly lie below
    `floor`.
    """
    m = run.rows
    k = min(max(least, wanted.low + wanted.high + CONFIRM), m, limit)
    while True:
        look = run.look(k)
        before = run.look(max(k - CONFIRM, 1))
        small = look.small(wanted, tolerance, floor)
        again = before.small(wanted, tolerance, floor) if k > CONFIRM else (False, False)
        fresh = not run.is_restarted and k - FRESH < run.exhausted_at() <= k
        done = all(small) and all(again) and not fresh
        used = run.used if run.is_restarted else k
        if done or used >= limit or not np.isfinite(look.values).all():
            break
        if k == m:
            # The restart keeps Ritz vectors of the end that has not converged.
            kept = max(m // 2, 1)
            low = {(True, False): kept // 4, (False, True): kept - kept // 4}.get(small, kept // 2)
            run.restart(look, low, kept)
            k = kept
        k = min(k + max(STEP, k // 8), m, k + limit - used)
    below = done and bool(look.values[-1] + look.estimates[-1] < floor)
    index = [*range(wanted.low), *range(max(k - wanted.high, 0), k)]
    pairs = [] if below else [run.pair(look, i) for i in index]
    return Found(pairs, float(look.values[0]), float(look.values[-1]), used)
