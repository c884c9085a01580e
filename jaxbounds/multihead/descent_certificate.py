"""Theorem 3 as a certificate: the number of heads, the step size and the loss bound."""

from typing import Any, NamedTuple

import numpy as np
from jax.typing import ArrayLike

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.multihead import descent

CONSTANTS = {
    "printed": descent.PRINTED,
    "sharpened": descent.LARGEST_HEAD,
    "sharpened S8": descent.SHARPEST,
}
"""The named sets of constants; `descent_certificate` returns one certificate for each name."""


class DescentCertificate(NamedTuple):
    """The guarantees that one set of constants gives for gradient descent.

    Attributes:
        heads: the least certified H, as a float (it can exceed every integer type).
        size: ||theta||_{2,infinity} of the target parameters theta at this H.
        smoothness: rho, an upper bound on the smoothness ||Hess L|| along the run.
        step_size: the largest certified step size eta.
        loss_bound: a bound on L(theta_K) and on (1/K) sum_{k=1}^K L(theta_k).
        distance_bound: a bound on ||theta_k - theta_0|| for k <= K.
    """

    heads: float
    size: float
    smoothness: float
    step_size: float
    loss_bound: float
    distance_bound: float

    @classmethod
    def of(cls, *values: ArrayLike) -> "DescentCertificate":
        """Make a certificate from scalars of any type, in the order of the attributes."""
        return cls(*(float(np.asarray(value)) for value in values))


def least_root(
    s: descent.Setting,
    constants: descent.Constants,
    spread: ArrayLike,
    /,
    *,
    stability: bool = False,
) -> ArrayLike:
    """Return the least sqrt(H) that Theorem 3 certifies, or Theorem 4 if `stability` is set.

    The target theta has ||theta||_{2,infinity} <= `s.size` + `spread` / sqrt(H).
    """
    threshold = lambda extra: descent.root_heads(
        s.of_size(s.size + extra), constants, stability=stability
    )
    return descent.root_heads_spread(threshold, spread)


def descent_certificate(
    *,
    T: int,
    d: int,
    radius: float,
    distance: float,
    K: int,
    loss_target: float,
    loss_start: float,
    size: float = 0.0,
    spread: float = 0.0,
    heads: float | None = None,
) -> dict[str, DescentCertificate]:
    """Compute the certificate of Theorem 3 for each set of constants in `CONSTANTS`.

    The name "sharpened" stands for the sharpenings S6, S7, S9 and S10 with Proposition 4's factor
    4/3. The name "sharpened S8" replaces 4/3 by sec(sqrt(kappa) / 2) = 1.0659 and adds S2's root
    mean square over heads. If the start is zero and the target is spread evenly over the heads,
    pass size = 0 and spread = D. If each head of the target has a fixed norm, independent of H,
    pass spread = 0.

    Args:
        T: the number of tokens.
        d: the dimension of a token.
        radius: R >= max ||x_t||, at least 1 (Assumption 1).
        distance: D = ||theta - theta_0||, positive.
        K: the number of gradient steps.
        loss_target: L(theta), the loss at the target; positive.
        loss_start: L(theta_0), the loss at the start; positive.
        size: the part of the upper bound on ||theta||_{2,infinity} that does not depend on H.
        spread: the numerator of the summand `spread` / sqrt(H) in the upper bound on
            ||theta||_{2,infinity}.
        heads: the number of heads H of a given model. If H is below the least certified number of
            heads, the function uses the least certified number instead.

    Raises:
        Refused: if R < 1, or a quantity that must be positive is not.
    """
    positive = {"T": T, "d": d, "distance": distance, "K": K}
    positive |= {"loss_target": loss_target, "loss_start": loss_start}
    wrong = [f"{name} = {value:g}" for name, value in positive.items() if not value > 0]
    if wrong:
        raise Refused(
            f"got {', '.join(wrong)}, expected positive quantities (Theorem 3). Try a positive"
            " value for each"
        )
    if not radius >= 1:
        raise Refused(
            f"radius={radius:g}, expected R >= 1 (Assumption 1). Try radius=1, which also bounds "
            f"shorter tokens"
        )
    # NumPy numbers overflow to infinity without raising an error.
    at_zero = descent.Setting.bounded(
        distance=np.float64(distance), size=np.float64(size), radius=np.float64(radius), T=T, d=d,
        loss_target=np.float64(loss_target), loss_start=np.float64(loss_start),
    )  # fmt: skip
    found = {}
    with enable_x64(True), np.errstate(all="ignore"):
        for name, constants in CONSTANTS.items():
            least: Any = np.ceil(least_root(at_zero, constants, spread) ** 2)
            enough = least if heads is None else max(least, heads)
            s = at_zero.of_size(size + spread / np.sqrt(enough), heads=enough)
            step = descent.largest_step(s, K, constants)
            bounds = descent.loss_bound(s, step, K, constants), descent.distance_bound(s, constants)
            found[name] = DescentCertificate.of(
                enough, s.size, descent.rho(s, constants), step, *bounds
            )
    return found


class GapCertificate(NamedTuple):
    """A bound on the expected generalization gap, and the heads and step size that the bound needs.

    Attributes:
        heads: the least even H that is certified, as a float.
        step_size: the largest certified step size eta.
        gap_bound: a bound on the expected gap E[L(theta_K) - L^(theta_K)] between the population
            loss L and the training loss L^, over training sets of n samples.
    """

    heads: float
    step_size: float
    gap_bound: float


def gap_certificate(
    n: int,
    constants: descent.Constants = descent.MEAN_SQUARE,
    /,
    *,
    T: int,
    d: int,
    radius: float,
    distance: float,
    K: int,
    loss_target: float,
    loss_start: float,
    size: float = 0.0,
    spread: float = 0.0,
) -> GapCertificate:
    """Compute Theorem 4's certificate at the least H and the largest eta that the theorem allows.

    The arguments are those of `descent_certificate`. The bounds on the target theta must be valid
    for every training set of n samples.

    Raises:
        Refused: if n < 1.
    """
    if n < 1:
        raise Refused(f"n={n} samples, expected at least 1. Try n=100")
    with enable_x64(True):
        s = descent.Setting.bounded(
            distance=distance, size=size, radius=radius, T=T, d=d,
            loss_target=loss_target, loss_start=loss_start,
        )  # fmt: skip
        heads = 2.0 * np.ceil(least_root(s, constants, spread, stability=True) ** 2 / 2.0)
        s = s.of_size(size + spread / np.sqrt(heads), heads=heads)
        step = descent.largest_step(s, K, constants)
        gap = descent.generalization_gap(s, step, K, n, constants)
        return GapCertificate(*(float(np.asarray(value)) for value in (heads, step, gap)))
