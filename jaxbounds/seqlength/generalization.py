"""The step from a Rademacher complexity to a generalization gap (Section 2.2)."""

from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.arrays import array_module
from jaxbounds.seqlength.linear_bounds import Values


def deviation(c: ArrayLike, m: int, delta: float, /, *, sharp: bool = True) -> Values | Array:
    """Compute the tail 3 c sqrt(2 ln(3/delta) / m), or as printed 4 c sqrt(2 ln(4/delta) / m).

    The loss has values in [-c, c]. McDiarmid's inequality at delta/3 bounds the gap from above, the
    gap from below, and the empirical Rademacher complexity, which counts twice.

    Raises:
        Refused: if m < 1 or delta is outside (0, 1).
    """
    if m < 1:
        raise Refused(f"m={m} samples, expected at least 1. Try m=100")
    if not 0 < delta < 1:
        raise Refused(f"delta={delta}, expected a number strictly between 0 and 1. Try delta=0.05")
    n = 3.0 if sharp else 4.0
    xp = array_module(c, m, delta)
    return n * xp.asarray(c, float) * xp.sqrt(2.0 * xp.log(n / delta) / m)


def generalization_gap(
    rademacher: ArrayLike,
    /,
    *,
    c: ArrayLike,
    m: int,
    delta: float,
    lipschitz: ArrayLike = 1.0,
    sharp: bool = True,
) -> Values | Array:
    """Bound |L_D - L_S| for all hypotheses at once, with probability 1 - delta.

    L_D is the expected loss and L_S the mean loss on the sample. The bound is 2 `lipschitz` Rad
    plus `deviation`. The loss has values in [-c, c] and is `lipschitz`-Lipschitz in the scalar
    output. `sharp=False` uses the printed `deviation`.

    Raises:
        Refused: if m < 1 or delta is outside (0, 1).
    """
    xp = array_module(rademacher, lipschitz)
    twice = 2.0 * xp.asarray(lipschitz, float) * xp.asarray(rademacher, float)
    return twice + deviation(c, m, delta, sharp=sharp)
