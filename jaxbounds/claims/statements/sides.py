"""Values that one measurement of a claim returns."""

from collections.abc import Mapping
from typing import NamedTuple

from jax.typing import ArrayLike

CONTROL = "control"
"""The key under which `Sides.rhs` holds the deliberately false variant."""


class Sides(NamedTuple):
    """Both sides of a statement on one instance.

    Attributes:
        lhs: the measured side; a mapping from form names (and `"control"`) to values where the
            forms measure different things. Scalar for `<=`, of any shape for `=`.
        rhs: for each form, and for `"control"`, what the form says about the measured side.
        error: absolute uncertainty of `lhs - rhs` (rounding after cancellation, a Lanczos
            residual, a Monte Carlo half-width), for each form where they differ. Sides that are
            both smaller than it tell nothing.
        trivial: a bound on `lhs` that needs no theory; a form that never beats it is vacuous.
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
        """Sides of forms that each compare two things of their own: {form: (lhs, rhs)}."""
        lhs = {name: left for name, (left, _) in pairs.items()}
        rhs = {name: right for name, (_, right) in pairs.items()}
        return cls(lhs=lhs, rhs=rhs, error=error, trivial=trivial)
