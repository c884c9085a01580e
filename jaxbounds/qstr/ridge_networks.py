"""Find small two-layer networks that approximate a function on the disc, as in Lemma 42."""

from typing import NamedTuple

import numpy as np
import scipy
from jaxtyping import Float

from jaxbounds.ground.exceptions import Refused


class RidgeNetwork(NamedTuple):
    """A network sum_i a_i relu(<w_i, x> + b_i) with |w_i| <= 1/R and |b_i| <= 1."""

    a: Float[np.ndarray, "m"]
    W: Float[np.ndarray, "m d"]
    b: Float[np.ndarray, "m"]

    def __call__(self, x: Float[np.ndarray, "n d"], /) -> Float[np.ndarray, "n"]:
        """Return the network's outputs at points, which are the rows of `x`."""
        return np.maximum(x @ self.W.T + self.b, 0.0) @ self.a


def disc(*, radius: float, spacing: float) -> Float[np.ndarray, "n 2"]:
    """Return the points of a square lattice within a disc."""
    ticks = np.arange(-radius, radius + spacing / 2, spacing)
    square = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    return square[np.linalg.norm(square, axis=1) <= radius]


def least_ridge_network(
    x: Float[np.ndarray, "n 2"],
    values: Float[np.ndarray, "n"],
    /,
    *,
    eps: float,
    radius: float,
    directions: int,
    biases: int,
) -> RidgeNetwork:
    """Find the network of least |a|_1, from given units, that approximates values within eps.

    A linear program chooses among units with all combinations of `directions` and `biases`. The
    function then splits a unit of weight a_i into copies of equal weight, in numbers roughly
    proportional to |a_i|. So |a|_2 sqrt(m) is at most sqrt 2 |a|_1 for m units.

    `values` are the values of the approximated function at the points `x`, and `eps` is the largest
    allowed error there. `directions` is the number of directions on a half-circle; the function
    adds the opposite directions. The biases are equally spaced from -1 to 1.

    Raises:
        Refused: if every network of these units errs by more than `eps` at some point; more units
            may suffice.
    """
    angles = np.linspace(0.0, 2 * np.pi, 2 * directions, endpoint=False)
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1) / radius
    shifts = np.linspace(-1.0, 1.0, biases)
    W, b = np.repeat(rows, biases, axis=0), np.tile(shifts, len(rows))
    units = np.maximum(x @ W.T + b, 0.0)
    both = np.concatenate([units, -units], axis=1)
    found = scipy.optimize.linprog(
        np.ones(both.shape[1]),
        A_ub=np.concatenate([both, -both]),
        b_ub=np.concatenate([values + eps, eps - values]),
        method="highs",
    )
    if not found.success:
        raise Refused(
            f"no network of {len(b)} units is within eps={eps} at the points. Try a larger eps, "
            "more directions or more biases"
        )
    a = found.x[: len(b)] - found.x[len(b) :]
    used = np.flatnonzero(np.abs(a) > 1e-12)
    if not len(used):
        return RidgeNetwork(np.zeros(1), W[:1], b[:1])
    share = np.abs(a[used]) / np.sum(np.abs(a[used]))
    copies = np.ceil(len(used) * share).astype(int)
    each = np.repeat(used, copies)
    return RidgeNetwork(np.repeat(a[used] / copies, copies), W[each], b[each])


def printed_lipschitz_norms(
    *, lipschitz: float, radius: float, eps: float, dimension: int
) -> tuple[float, float]:
    """Return Lemma 42's bounds on m and |a|_2 sqrt(m), with the constants C_1 = C_2 = 1.

    Let B = L R (1 + log(L R/eps))/eps. The bounds are m <= C_1 B^d and |a|_2 sqrt(m) <= C_2 L R
    B^{(d + 1)/2}.
    """
    reach = lipschitz * radius
    unit = reach * (1 + np.log(reach / eps)) / eps
    return float(unit**dimension), float(reach * unit ** ((dimension + 1) / 2))
