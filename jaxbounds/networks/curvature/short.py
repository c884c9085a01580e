"""Do a Krylov run on short vectors in NumPy, without compiled programs for its steps.

For a block of a few thousand parameters, compiled steps would take longer to compile than to run.
The memory holds one short vector for each product, so a Krylov run on short vectors never restarts.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxbounds.networks.curvature.lanczos import BASIS_BYTES, Operator
from jaxbounds.networks.curvature.shared import Look, Run


def is_short(size: int, rows: int, /) -> bool:
    """Return whether `rows` vectors of length `size` in float64 fit into the processor's caches."""
    return size * rows * 8 <= BASIS_BYTES


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / max(float(np.linalg.norm(vector)), 1e-300)


class ShortRun(Run):
    """A Krylov run with the basis vectors as NumPy arrays in float64; products have type `dtype`.

    `rows` must be at least the number of products that a caller needs.
    """

    def __init__(
        self, operator: Operator, key: jax.Array, rows: int, *, dtype: Any, size: int
    ) -> None:
        self._operator, self.rows, self._dtype = operator, rows, np.dtype(dtype)
        self._random = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
        self._vector = _unit(self._random.normal(size=size))
        self._rows, self._small = np.zeros((rows, size)), np.zeros((rows, rows))
        self._coupling = self._scale = 0.0
        self.filled, self.used, self.is_restarted = 0, 0, False
        self._pairs: dict[tuple[int, int], tuple[Array, Any, Any]] = {}

    def _image(self, vector: np.ndarray) -> np.ndarray:
        return np.asarray(self._operator(jnp.asarray(vector, self._dtype)), np.float64)

    def _less(self, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows, column = self._rows[: self.filled], np.zeros(self.filled)
        for _ in range(2):
            part = rows @ vector
            vector, column = vector - part @ rows, column + part
        return vector, column

    def _extend(self, k: int) -> None:
        while self.filled < k:
            image = self._image(self._vector)
            self._rows[self.filled] = self._vector
            self.filled, self.used = self.filled + 1, self.used + 1
            rest, column = self._less(image)
            self._small[: self.filled, self.filled - 1] = column
            self._coupling = float(np.linalg.norm(rest))
            self._scale = max(self._scale, float(np.linalg.norm(image)))
            self._vector = _unit(rest)
            # As in `Run`: the rest is rounding noise, or it points to an eigenvector.
            if self._coupling <= 16 * float(np.finfo(self._dtype).eps) * self._scale:
                self._vector, self._coupling = self._fresh(self._vector), 0.0

    def _fresh(self, left: np.ndarray) -> np.ndarray:
        noise = self._random.normal(size=left.size)
        for _ in range(2):
            noise = _unit(self._less(noise)[0])
        vector = noise + (-left if noise @ left < 0 else left)
        for _ in range(2):
            vector = _unit(self._less(vector)[0])
        return vector

    def _projected(self) -> tuple[np.ndarray, float]:
        return np.triu(self._small), self._coupling

    def exhausted_at(self) -> int:
        """Return how many basis rows exhaust the Krylov space; 2^62 if they do not exhaust it."""
        beside = np.append(np.diagonal(self._small, 1)[: self.filled - 1], self._coupling)
        eps = float(np.finfo(self._dtype).eps)
        gone = np.flatnonzero(np.abs(beside) <= 16 * eps * np.abs(np.triu(self._small)).max())
        return int(gone[0]) + 1 if gone.size else 2**62

    def pair(self, look: Look, index: int, /) -> tuple[Array, np.floating, np.floating]:
        """Return a unit Ritz vector, its Rayleigh quotient and its residual."""
        k = look.values.size
        if (k, index) not in self._pairs:
            vector = _unit(look.vectors[:, index] @ self._rows[:k])
            image = self._image(vector)
            value = vector @ image
            residual = np.linalg.norm(image - value * vector)
            numbers = (self._dtype.type(number) for number in (value, residual))
            self._pairs[k, index] = jnp.asarray(vector, self._dtype), *numbers
        return self._pairs[k, index]

    def vector(self, look: Look, index: int, /) -> Array:
        """Return the unit Ritz vector of the Ritz value with this index."""
        return self.pair(look, index)[0]

    @property
    def basis(self) -> Array:
        """The Krylov basis, of shape (rows, n); the rows after the filled rows are zero."""
        return jnp.asarray(self._rows, self._dtype)
