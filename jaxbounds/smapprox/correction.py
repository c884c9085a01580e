"""Correction functions zeta (Definition D.1, Proposition 3.4): rounding as two ReLU layers.

The network applies a correction after each layer whose intended output lies in {0, 1}^w:

    zeta(h) = slope relu(h - low) - slope relu(h - high) = clip(slope (h - low), 0, 1).

The correction returns the intended output if the error of every coordinate is at most `radius`.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused


@dataclass(frozen=True)
class Correction:
    """A rounding function with a given slope: 0 below `low`, 1 above `high`, linear in between.

    Attributes:
        slope: the slope of the linear part, above one. The paper's slope is 3 (`THIRDS`). A slope
            of 2 (`DYADIC`) gives weights that are powers of two, hence exact in float32.
    """

    slope: float

    def __post_init__(self) -> None:
        if not self.slope > 1:
            raise Refused(
                f"slope={self.slope}, expected more than 1, so that rounding shrinks errors. Try "
                f"slope=2"
            )

    @property
    def low(self) -> float:
        """1/2 - 1/(2 slope), the lower end of the interval on which the correction is linear."""
        return (self.slope - 1) / (2 * self.slope)

    @property
    def high(self) -> float:
        """1/2 + 1/(2 slope), the upper end of the interval on which the correction is linear."""
        return (self.slope + 1) / (2 * self.slope)

    @property
    def radius(self) -> float:
        """The radius sigma_zeta of Definition D.1: rounding removes errors up to this size."""
        return self.low

    def __call__(self, z: Float[Array, "*s"], /) -> Float[Array, "*s"]:
        """Compute slope relu(z - low) - slope relu(z - high) (Proposition 3.4)."""
        relu = lambda v: jnp.maximum(v, 0.0)
        return self.slope * relu(z - self.low) - self.slope * relu(z - self.high)

    def weights(self, width: int, live: int, /) -> dict[str, np.ndarray]:
        """Return W2, b2, W3, b3 with zeta(h) = relu(W3 relu(W2 h + b2) + b3) on `live` coordinates.

        The correction rounds the first `live` coordinates; the others become zero. W2 has shape (2
        width, width).
        """
        on = np.zeros(width)
        on[:live] = 1.0
        return {
            "W2": np.concatenate([np.diag(on), np.diag(on)]),
            "b2": np.concatenate([-self.low * on, -self.high * on]),
            "W3": np.concatenate([np.diag(self.slope * on), np.diag(-self.slope * on)], axis=1),
            "b3": np.zeros(width),
        }

    def parameter_lipschitz(self, r: float | Array, /) -> Any:
        """Compute Condition D.3's constant kappa_xi on a ball of radius r around the parameters.

        Let a be the hidden layer. Then zeta(h, xi') - zeta(h, xi) = W3 (a' - a) + dW3 a' + db3 with
        |W3| = slope sqrt 2. Here |a' - a| <= |d(W2, b2)| sqrt(|h|^2 + 1) and |a'| <= sqrt 2 (1 + r)
        max(|h|, 1).
        """
        return (4.0 * self.slope**2 + 2.0 * (1.0 + r) ** 2 + 1.0) ** 0.5


THIRDS = Correction(3.0)
"""The paper's rounding (Proposition 3.4), with radius 1/3."""
DYADIC = Correction(2.0)
"""The rounding function with radius 1/4; float32 represents its weights exactly."""
