"""Theorem 3 as a certificate: how many heads, which step size, what loss bound it guarantees."""

from typing import NamedTuple

import numpy as np
from jax.typing import ArrayLike

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.multihead import descent

CONSTANTS = {
    "printed": descent.PRINTED,
    "sharpened": descent.LARGEST_HEAD,
    "sharpened S8": descent.SHARPEST,
}
"""The constant sets of `descent_certificate`."""


class DescentCertificate(NamedTuple):
    """The guarantees for gradient descent with one constant set.

    Attributes:
        heads: the least H that is certified, as a float (it can exceed every integer type).
        size: ||theta||_{2,infinity} at that H.
        smoothness: rho, an upper bound on ||Hess L|| along the run.
        step_size: the largest certified eta.
        loss_bound: on L(theta_K) and on (1/K) sum_{k=1}^K L(theta_k).
        distance_bound: on ||theta_k - theta_0|| for k <= K.
    """

    heads: float
    size: float
    smoothness: float
    step_size: float
    loss_bound: float
    distance_bound: float

    @classmethod
    def of(cls, *values: ArrayLike) -> "DescentCertificate":
        """From scalars of any kind, in the order of the fields."""
        return cls(*(float(np.asarray(value)) for value in values))


def least_root(
    s: descent.Setting,
    constants: descent.Constants,
    spread: ArrayLike,
    /,
    *,
    stability: bool = False,
):
    """The least certified sqrt(H) for a target of size at most `s.size` + spread / sqrt(H)."""
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
    """Theorem 3 as a certificate, for each constant set of `CONSTANTS`. All constants are explicit.

    "printed" is Theorem 3; "sharpened" is S6, S7, S9 and S10 with the factor 4/3; "sharpened S8"
    takes the factor sec(sqrt(kappa) / 2) = 1.0659 and the root mean square of S2. The target has
    ||theta||_{2,infinity} <= size + spread / sqrt(H): a target D away from zero, spread evenly over
    the heads, has size 0 and spread D; one of fixed norm in each head has spread 0.

    Args:
        T: tokens.
        d: dimension.
        radius: R >= max ||x_t||, at least 1 (Assumption 1).
        distance: D = ||theta - theta_0||, positive.
        K: steps.
        loss_target: L(theta), positive.
        loss_start: L(theta_0), positive.
        size: the part of ||theta||_{2,infinity} that does not shrink with H.
        spread: the part that shrinks as 1 / sqrt(H).
        heads: H, if the model is given; it is replaced by the least certified one if too small.

    Raises:
        ValueError: if R < 1, or a quantity that must be positive is not.
    """
    positive = {"T": T, "d": d, "distance": distance, "K": K}
    positive |= {"loss_target": loss_target, "loss_start": loss_start}
    wrong = [f"{name} = {value:g}" for name, value in positive.items() if not value > 0]
    if wrong:
        raise ValueError(f"Theorem 3 needs positive quantities, got {', '.join(wrong)}")
    if not radius >= 1:
        raise ValueError(f"Assumption 1 needs R >= 1, got {radius:g}: use R = 1, it is a bound")
    # Numbers of NumPy: what is too large for a float is infinite, and no error.
    at_zero = descent.Setting.bounded(
        distance=np.float64(distance), size=np.float64(size), radius=np.float64(radius), T=T, d=d,
        loss_target=np.float64(loss_target), loss_start=np.float64(loss_start),
    )  # fmt: skip
    found = {}
    with enable_x64(True), np.errstate(all="ignore"):
        for name, constants in CONSTANTS.items():
            least = np.ceil(least_root(at_zero, constants, spread) ** 2)
            enough = least if heads is None else max(least, heads)
            s = at_zero.of_size(size + spread / np.sqrt(enough), heads=enough)
            step = descent.largest_step(s, K, constants)
            bounds = descent.loss_bound(s, step, K, constants), descent.distance_bound(s, constants)
            found[name] = DescentCertificate.of(
                enough, s.size, descent.rho(s, constants), step, *bounds
            )
    return found


class GapCertificate(NamedTuple):
    """A bound on the expected generalization gap, with the heads and the step it is for.

    Attributes:
        heads: the least even H that is certified, as a float.
        step_size: the largest certified eta.
        gap_bound: on E[L(theta_K) - L^(theta_K)], over training sets of n samples.
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
    """Theorem 4 as a certificate, at its own least H and largest eta. All constants are explicit.

    The target is as in `descent_certificate`; its numbers must hold for every training set.

    Raises:
        ValueError: if there is no sample.
    """
    if n < 1:
        raise ValueError(f"at least one sample is needed, got n={n}")
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
