"""The least sample size at which each theorem's bound is below its trivial value."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from jaxbounds.seqlength import comparisons
from jaxbounds.seqlength.comparisons import Setting, first_informative
from jaxbounds.seqlength.dudley import CERTIFIED, best_certified
from jaxbounds.seqlength.linear_bounds import (
    LogCovering,
    at_scale,
    lemma_3_5_sharp,
    lemma_3_6,
    lemma_3_6_sharp,
)
from jaxbounds.seqlength.logarithmic_entropy import (
    corollary_D_0_2_explicit,
    entropy_F_0_2,
    logarithmic_dudley,
)
from jaxbounds.seqlength.multi_layer import (
    Constants,
    NetworkNorms,
    Terms,
    constants_4_2_1_corrected,
    covering_constant,
    divide_scale,
    rademacher_multi_layer,
    terms_corrected,
    theorem_4_2,
)
from jaxbounds.seqlength.single_layer import residual_range, single_layer_bound
from jaxbounds.seqlength.vector_contraction import terms_word_masking, theorem_5_1_l2

Bound = Callable[[int], float]


class Onset(NamedTuple):
    """The bounds of one theorem as functions of the sample size.

    Attributes:
        printed: the paper's bound at a sample size. For a printed O(.), the constants are those of
            the paper's proof, with Dudley's constant c = 12.
        sharpened: the smallest of this library's proved bounds at a sample size.
        trivial: a value that the complexity never exceeds.
    """

    printed: Bound
    sharpened: Bound
    trivial: float

    @property
    def samples(self) -> tuple[int | None, int | None]:
        """The least sample size at which each bound is below its trivial value, to 0.1%.

        The value is None above 2^80.
        """
        at = lambda bound: first_informative(bound, self.trivial, largest=2**80)
        return at(self.printed), at(self.sharpened)


def _constant(terms: Terms) -> float:
    return float(covering_constant(terms.C, terms.beta))


def onsets(setting: Setting, /, *, layers: int = 2, words: int = 10) -> dict[str, Onset]:
    """Return every main theorem's bounds as functions of the sample size.

    Norms that `setting` does not contain are 1; the dimensions are k = d, and K = `words`. The
    bound that Theorem 4.2 prints is false (erratum E10). The printed bound of Theorem 5.1 stands
    here without its logarithms.
    """
    return _onsets(setting, layers, words)


@functools.lru_cache(maxsize=4)
def _onsets(setting: Setting, layers: int, words: int) -> dict[str, Onset]:
    s, norms = setting, NetworkNorms(1.0, 1.0, 1.0, 1.0, 1.0, setting.B_x)
    x, d = s.B_QK * s.B_x, s.d
    C = float(lemma_3_6(1.0, k=d, d=d))
    each = constants_4_2_1_corrected(1.0, d, d)
    printed = float(theorem_4_2(norms, C, C * s.B_x**2, layers))
    listed = terms_corrected(norms, each, layers, softmax_constant=1.0)
    masked = terms_word_masking(listed, words)
    network, masking = _constant(listed), _constant(masked)
    plain = terms_corrected(norms, Constants(*[1.0] * 4), layers, softmax_constant=1.0)
    ys = np.sqrt(plain.C) / divide_scale(plain.C, plain.beta, 1.0).scales
    logarithms = entropy_F_0_2(norms, 1.0, d, d, layers)

    def at(bound: Callable[[Setting], float]) -> Bound:
        return lambda m: bound(replace(s, m=m))

    def inverse_square(A: float, m: int, B: float) -> float:
        return best_certified(lambda epsilon: A / np.asarray(epsilon) ** 2, m, B)

    # Lemma 3.4 for w and for every matrix at the scales of Lemma E.1.
    outputs = [1, *[d] * (3 * layers)]
    parts = [at_scale(lemma_3_5_sharp, y, k=k, points=d) for y, k in zip(ys.tolist(), outputs)]
    beside = residual_range(s.B_x, s.B_x, x)

    def single_layer(covering: LogCovering) -> Bound:
        about = {"outer": s.outer, "B_x": s.B_x, "heads": s.heads, "residual": beside}
        return lambda m: single_layer_bound(covering, m, d, **about)

    by_entries = single_layer(at_scale(lemma_3_6_sharp, x, k=d, d=d))
    by_rows = single_layer(at_scale(lemma_3_5_sharp, x, k=d, points=d))
    scalar = 2.0 * words**0.5
    return {
        "Theorem 4.1": Onset(at(comparisons.theorem_bound), by_entries, s.trivial),
        "Corollary D.0.2": Onset(
            lambda m: s.heads * corollary_D_0_2_explicit(s.outer.product, s.B_x, s.B_QK, m, d),
            by_rows,
            s.trivial,
        ),
        f"Theorem 4.2, L = {layers}": Onset(
            lambda m: float(rademacher_multi_layer(printed, float(m), 1.0)),
            lambda m: inverse_square(network, m, 1.0),
            1.0,
        ),
        f"Corollary F.0.2, L = {layers}": Onset(
            lambda m: CERTIFIED * logarithmic_dudley(logarithms, m, 1.0),
            lambda m: best_certified(lambda epsilon: sum(part(epsilon) for part in parts), m, 1.0),
            1.0,
        ),
        f"Theorem 5.1 by 4.1, K = {words}": Onset(
            lambda m: scalar * comparisons.theorem_bound(replace(s, m=m)),
            lambda m: float(theorem_5_1_l2(np.full(words, by_entries(m)))),
            2.0 * s.trivial,
        ),
        f"Theorem 5.1 by 4.2, L = {layers}, K = {words}": Onset(
            lambda m: scalar * float(rademacher_multi_layer(printed, float(m), 1.0)),
            lambda m: inverse_square(masking, m, 2.0),
            2.0,
        ),
    }


def smallest_samples(
    setting: Setting | None = None,
    /,
    *,
    layers: int = 2,
    words: int = 10,
    theorems: Sequence[str] = (),
) -> dict[str, tuple[int | None, int | None]]:
    """Compute the least sample sizes at which each bound is below its trivial value.

    Each value is a pair: for the printed and for the sharpened bound. The argument `theorems` lists
    the theorems to compute; the default is all theorems of `onsets`.
    """
    found = onsets(setting or Setting(), layers=layers, words=words)
    return {theorem: found[theorem].samples for theorem in theorems or found}
