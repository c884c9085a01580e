"""Bound Rademacher complexities by covering numbers at many scales (chaining)."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxbounds.ground.exceptions import Refused

LogCovering = Callable[[Any], Any]
"""The type of a function from a cover's scale (radius) to the logarithm of the covering number."""


def require_range(m: float, B: float, /) -> None:
    """Refuse a sample size m below 1, or a range B (largest value) that is negative or not finite.

    Raises:
        Refused: if m < 1 or B is negative or not finite.
    """
    if m < 1:
        raise Refused(f"chaining needs at least one sample, got m={m}. Try m >= 1")
    if not 0 <= B < math.inf:
        raise Refused(
            f"the bound B on the values of the class must be finite and not negative, got B={B}. "
            f"Try the largest |value|"
        )


def chaining(log_covering: LogCovering, m: float, B: float, /, *, depth: int = 30) -> float:
    """Bound the Rademacher complexity of a class with values in [-B, B] by two-term chaining.

    Let N(e) be the covering number at scale e. The scales are e_j = B rho^j, with ln N(e_0) = 0.
    Let v_j = ln N(e_j) + ln N(e_{j-1}). The bound is the least value, over rho and J, of
    sum_{j=1..J} (e_j + e_{j-1}) sqrt(2 v_j / m) + e_J.

    For a function f of the class, let f_j be the nearest element of the cover at scale e_j.
    Massart's lemma bounds the complexity of the set of links (differences) f_j - f_{j-1}. A link
    f_j - f_{j-1} has size at most e_j + e_{j-1}, and each j has at most N(e_j) N(e_{j-1}) links.
    The formula hides no constant.

    Args:
        log_covering: ln N, as a function of an array of scales.
        m: the number of samples.
        B: a bound on the absolute values of the functions of the class.
        depth: the largest number of scales J that the minimum over J tries.

    Raises:
        Refused: if m < 1 or B is negative or not finite.
    """
    require_range(m, B)
    if B == 0:
        return 0.0
    # Each row of scales has one rho; scales below 1e-9 B are too small to matter.
    scales = B * np.linspace(0.05, 0.9, 24)[:, None] ** np.arange(depth + 1)
    kept = scales > 1e-9 * B
    kept[:, 0] = False
    sizes = np.zeros(scales.shape)
    sizes[kept] = log_covering(scales[kept])
    links = (scales[:, 1:] + scales[:, :-1]) * np.sqrt(2.0 * (sizes[:, 1:] + sizes[:, :-1]) / m)
    sums = np.cumsum(links, axis=1) + scales[:, 1:]
    return float(sums.min(initial=B, where=kept[:, 1:]))
