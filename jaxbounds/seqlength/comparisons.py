"""A comparison of the paper's single-layer bounds with a log(T) bound and parameter counting.

The log(T) bound is by Edelman et al. and grows with the logarithm of the sequence length T. All
compared bounds are for one class of networks; they differ only in the covering number of the
attention map x -> W_QK^T x.
"""

import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy

from jaxbounds.ground.exceptions import Refused
from jaxbounds.ground.extras import require
from jaxbounds.seqlength.linear_bounds import (
    LogCovering,
    at_scale,
    lemma_3_5_corrected_leading,
    lemma_3_6,
    lemma_3_6_sharp,
    volumetric,
)
from jaxbounds.seqlength.single_layer import (
    OuterNorms,
    residual_range,
    single_layer_bound,
    theorem_4_1_corrected,
)

if TYPE_CHECKING:  # slow to import, and needed for tables only
    import xarray


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The norms, dimensions and sample size of a class of single-layer Transformers.

    Attributes:
        m: the number of samples.
        T: the sequence length; only the log(T) bound depends on it.
        d: the embedding dimension.
        B_x: the largest l_2 norm of a token.
        B_QK: the bound on ||W_QK||_{1,1}. The other bounds use ||W_QK||_{2,1} over rows and
            ||W_QK||_F; both are at most ||W_QK||_{1,1}.
        heads: H, the number of heads.
        outer: the norms of all matrices except W_QK.
        hidden_constant: the constant factor that the O(.) of the log(T) bound hides.
    """

    m: int = 100_000
    T: int = 128
    d: int = 64
    B_x: float = 1.0
    B_QK: float = 1.0
    heads: int = 1
    outer: OuterNorms = field(default_factory=OuterNorms)
    hidden_constant: float = 1.0

    @property
    def trivial(self) -> float:
        """The trivial bound on the complexity, H B_w B_Wc L_sigma B_Wv B_x."""
        return self.heads * self.outer.product * self.B_x


def theorem_bound(setting: Setting, /) -> float:
    """Compute the bound of the corrected Theorem 4.1, capped at the trivial value.

    The cover of W_QK is that of Lemma 3.6, and Dudley's integral has the factor c = 12.
    """
    s = setting
    C = lemma_3_6(s.B_QK * s.B_x, k=s.d, d=s.d)
    one = float(theorem_4_1_corrected(s.outer.product, s.B_x, C, s.m, s.d))
    return min(s.trivial, s.heads * one)


def _bound(setting: Setting, covering: LogCovering, **sharpenings: float) -> float:
    s = setting
    return single_layer_bound(
        covering, s.m, s.d, outer=s.outer, B_x=s.B_x, heads=s.heads, **sharpenings
    )


def sharpened_bound(setting: Setting, /) -> float:
    """Compute this library's bound, with smaller constants than the paper's.

    It uses Lemma 3.6 with an exact count of the cover's members, the Lipschitz constant 1 of
    softmax, and Massart's lemma for uniform attention.
    """
    s = setting
    covering = at_scale(lemma_3_6_sharp, s.B_QK * s.B_x, k=s.d, d=s.d)
    residual = residual_range(s.B_x, s.B_x, s.B_QK * s.B_x)
    return _bound(s, covering, residual=residual)


def same_method_bound(setting: Setting, /) -> float:
    """Compute the bound from the printed Lemma 3.6, integrated as in `log_length_bound`."""
    s = setting
    return _bound(s, at_scale(lemma_3_6, s.B_QK * s.B_x, k=s.d, d=s.d))


def log_length_bound(setting: Setting, /) -> float:
    """Compute the log(T) bound of Edelman et al., with Lemma 3.5's cover on all m T tokens.

    The bound has no proved constant: it contains only the leading term of the log covering number.
    """
    s = setting
    covering = at_scale(
        lemma_3_5_corrected_leading,
        s.B_QK * s.B_x,
        k=s.d,
        points=s.m * s.T,
        hidden_constant=s.hidden_constant,
    )
    return _bound(s, covering)


def parameter_counting_bound(setting: Setting, /) -> float:
    """Compute the bound by parameter counting, from a volumetric cover of W_QK's Frobenius ball.

    The log size of the cover is proportional to d^2, the number of parameters.
    """
    s = setting
    return _bound(s, at_scale(volumetric, s.B_QK * s.B_x, parameters=s.d**2))


class Bound(NamedTuple):
    """A bound on the complexity, its name, and whether it is certified with explicit constants."""

    value: Callable[[Setting], float]
    certified: bool
    label: str


BOUNDS = {
    "theorem_4_1_corrected": Bound(theorem_bound, True, "Theorem 4.1"),
    "sharpened": Bound(sharpened_bound, True, "sharpened"),
    "lemma_3_6": Bound(same_method_bound, True, "Lemma 3.6"),
    "log_length": Bound(log_length_bound, False, "Edelman et al., leading term"),
    "parameter_counting": Bound(parameter_counting_bound, True, "parameter counting"),
}
"""The compared bounds by name. All but the first assume that softmax has the Lipschitz constant 1.
"""


def compare(
    setting: Setting, /, *, over: str, values: Sequence[float], bounds: Sequence[str] = ()
) -> "xarray.Dataset":
    """Evaluate every bound at several settings.

    The field `over` takes the given `values`. The dataset has one variable for each bound, and the
    variables "trivial" (the trivial bound) and "winner". A winner is the name of the least bound,
    or "trivial" if no bound is below the trivial value.

    Raises:
        Refused: if `over` is not a field of the setting, or a bound is unknown.
    """
    if over not in ("m", "T", "d", "B_x", "B_QK", "heads", "hidden_constant"):
        raise Refused(
            f"over={over!r} is unknown, expected m, T, d, B_x, B_QK, heads or hidden_constant. Try"
            " over='T'"
        )
    names = tuple(bounds) or tuple(BOUNDS)
    unknown = sorted(set(names) - set(BOUNDS))
    if unknown:
        raise Refused(
            f"bounds={', '.join(unknown)} are unknown, expected some of {', '.join(BOUNDS)}. Try"
            " one of these names"
        )
    whole = over in ("m", "T", "d", "heads")
    changes: list[dict[str, Any]] = [{over: int(v) if whole else float(v)} for v in values]
    settings = [replace(setting, **change) for change in changes]
    table = {name: np.array([BOUNDS[name].value(s) for s in settings]) for name in names}
    trivial = np.array([s.trivial for s in settings])
    least = np.argmin(np.stack([*table.values()]), axis=0)
    informative = np.min(np.stack([*table.values()]), axis=0) < trivial
    winner = np.where(informative, np.array(names)[least], "trivial")
    require("xarray", why="data sets")
    import xarray

    data = xarray.Dataset(
        {name: (over, column) for name, column in table.items()}, {over: list(values)}
    )
    for name in names:
        data[name].attrs["certified"] = int(BOUNDS[name].certified)
    return data.assign(trivial=(over, trivial), winner=(over, winner))


def covering_crossover(parameters: int, /) -> float:
    """Compute the x = B_w B_x / epsilon with x^2 ln(2n + 1) = n ln(1 + 2x), for n parameters.

    Lemma 3.6 gives the smaller cover below this x, parameter counting above it.

    Raises:
        Refused: if there is no parameter.
    """
    if parameters < 1:
        raise Refused(f"parameters={parameters}, expected at least 1. Try parameters=1")
    n = parameters
    gap = lambda x: (lemma_3_6(x, k=n, d=1) - volumetric(x, parameters=n)) / x
    return float(scipy.optimize.brentq(gap, 1e-9, 4.0 * n + 4.0))


def first_informative(
    bound: Callable[[int], float], trivial: float, /, *, largest: int = 2**60
) -> int | None:
    """Return m*, the least sample size at which a bound is below `trivial`, up to an error of 0.1%.

    The bound must not increase with the sample size. None means that m* is above `largest`.

    Raises:
        Refused: if `trivial` is not positive.
    """
    if not trivial > 0:
        raise Refused(f"trivial={trivial}, expected a positive value. Try trivial=1")
    below = lambda m: bound(m) < trivial * (1.0 - 1e-12)
    powers = range(largest.bit_length())
    high = 2 ** bisect.bisect_left(powers, True, key=lambda power: below(2**power))
    if high > largest:
        return None
    low = high // 2
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if below(middle) else (middle, high)
    return high
