"""The two sides of a claim, as `evaluate` returns them for one instance."""

from collections.abc import Mapping
from typing import NamedTuple

from jax.typing import ArrayLike

CONTROL = "control"
"""The key of the control, a deliberately false right side, in `Sides.rhs`."""


class Sides(NamedTuple):
    """Both sides of a statement on one instance.

    Attributes:
        lhs: the measured side: a scalar for `<=`, an array of any shape for `=`. If the forms
            (versions of the claim) measure different quantities, a mapping from form names (and
            `"control"`, the false variant) to values.
        rhs: a dict from each form's name, and from `"control"`, to the right side.
        error: the absolute uncertainty of `lhs - rhs` (rounding after cancellation, a Lanczos
            residual, a Monte Carlo half-width); a mapping if the forms differ. An instance decides
            nothing if both of its sides are smaller than the stated error.
        trivial: a bound on `lhs` that holds trivially; a form that is never below this bound is
            vacuous.
    """

    lhs: ArrayLike | Mapping[str, ArrayLike]
    rhs: Mapping[str, ArrayLike]
    error: ArrayLike | Mapping[str, ArrayLike] = 0.0
    trivial: ArrayLike | None = None

    @classmethod
    def pairs(
        cls,
        pairs: Mapping[str, tuple[ArrayLike, ArrayLike]],
        /,
        *,
        error: ArrayLike | Mapping[str, ArrayLike] = 0.0,
        trivial: ArrayLike | None = None,
    ) -> "Sides":
        """Make `Sides` from a dict that maps each form's (claim version's) name to (lhs, rhs)."""
        lhs = {name: left for name, (left, _) in pairs.items()}
        rhs = {name: right for name, (_, right) in pairs.items()}
        return cls(lhs=lhs, rhs=rhs, error=error, trivial=trivial)
