"""Lemma 2.4 and Corollary A.1 with every constant: sample sizes from all-layer margins, certified.

The all-layer margin is 1-Lipschitz in the parameters, so a cover of {|theta|_1 <= alpha} in l_2
covers all losses at once. Two ways lead on. The paper's chains covers at all scales and bounds a
Rademacher complexity: samples of order 1/epsilon^2. The short one takes a single cover, finer than
half of the margin, and Chernoff's bound: of order 1/epsilon where (2.3) has epsilon = 0, as in
Theorems 3.1 and 4.1, and no logarithm of n. Constants are explicit throughout.
"""

import math
from collections.abc import Callable

import numpy as np
import scipy
from jaxtyping import Float

from jaxbounds.numerics.chaining import chaining
from jaxbounds.smapprox.finite_classes import erm_bound

RATIO = 4.0
"""Ratio of neighbouring scales, about the one with the least constant where log N(e) = A/e^2. A
larger ratio uses fewer scales.
"""
PER_SCALE = (1.0 + RATIO) * math.sqrt(2.0 * (1.0 + RATIO**-2))
"""The contribution of each scale, in units of sqrt(A/n), where log N(e) <= A/e^2."""
WEIGHT = math.pi**2 / 3.0 - 1.0
"""The sum of (1 + |k|)^-2 over the integers: confidence is shared in these parts."""


def _positive(**values: float) -> None:
    bad = [f"{name} = {value}" for name, value in values.items() if not value > 0]
    if bad:
        raise ValueError(
            f"not positive, got {', '.join(bad)}. Expected positive numbers. Try 1 for each"
        )


def shrinkage(K: float, /) -> float:
    """The factor sqrt K / (1 + sqrt K), which shrinks the mean of K vertices. Explicit.

    The shrunk means are the centres of the cover that `l1_log_covering` counts.
    """
    return math.sqrt(K) / (1.0 + math.sqrt(K))


def l1_log_covering(
    scale: float | Float[np.ndarray, "*k"], p: float, /
) -> Float[np.ndarray, "*k"] | np.float64:
    """The log of how many l_2 balls of radius r, centres inside, cover {|theta|_1 <= alpha} in R^p.

    scale = alpha / r. Maurey: for V = +-alpha e_j with probabilities |theta_j| / alpha (what is
    missing is split between e_1 and -e_1), V-bar the mean of K copies and c = `shrinkage` of K

        E |c V-bar - theta|^2 <= (1-c)^2 |theta|^2 + c^2 (alpha^2 - |theta|^2) / K
                              <= alpha^2 / (1 + sqrt K)^2,

    and there are C(2p + K - 1, K) <= (2p)^K such means. K = floor((scale - 1)^2) + 1 gives less
    than r, and K <= scale^2, so that log N <= scale^2 log 2p. Or, if that is less, by volume
    p log(1 + 2 scale). One ball is enough for scale < 1. Covers are strict: all distances are < r.
    Explicit.

    Raises:
        ValueError: if scale or p is not positive; so for all functions here.
    """
    _positive(p=p, scale=float(np.min(scale)))
    scale = np.asarray(scale, float)
    K = np.floor((np.maximum(scale, 1.0) - 1.0) ** 2) + 1.0
    maurey = -np.log(K) - scipy.special.betaln(2.0 * p, K)
    return np.where(scale < 1, 0.0, np.minimum(maurey, p * np.log1p(2.0 * scale)))[()]


def rademacher_by_chaining(alpha: float, p: float, gamma: float, n: float, /) -> float:
    """Lemma 2.4's Rad_n(L_G), certified: `chaining` with gamma e covers of the parameters.

    Losses lie within 1/2 of the constant 1/2, and move by e where parameters move by gamma e.
    Explicit.
    """
    _positive(alpha=alpha, p=p, gamma=gamma, n=n)
    return chaining(lambda e: l1_log_covering(alpha / (gamma * e), p), n, 0.5)


def rademacher_explicit(alpha: float, p: float, gamma: float, n: float, /) -> float:
    """Lemma 2.4's Rad <= C alpha log n sqrt(log p) / (gamma sqrt n) with its constant.

    sqrt(A/n) (7.8 + 2.63 log(n/A)), A = (alpha/gamma)^2 log 2p, and 1/2 for n < A. In the chain
    h_j <= A / e_j^2, so every scale adds `PER_SCALE` sqrt(A/n) = 7.29 sqrt(A/n); the least J with
    4^-J <= sqrt(A/n) is below 1 + log_16(n/A). Explicit.
    """
    _positive(alpha=alpha, p=p, gamma=gamma, n=n)
    A = (alpha / gamma) ** 2 * math.log(2 * p)
    if n < A:
        return 0.5
    depth = 1.0 + math.log(n / A) / (2.0 * math.log(RATIO))
    return min(0.5, math.sqrt(A / n) * (0.5 + PER_SCALE * depth))


def erm_risk(rademacher: float, n: float, /, *, delta: float = 0.01) -> float:
    """The risk of the minimiser of the surrogate where (2.3) has epsilon = 0, w.p. 1 - delta.

    2 Rad + 2 sqrt(log(2/delta) / (2n)), half of Proposition 2.3's 4 Rad: L(F-hat) - L(F*) needs the
    one-sided supremum of L - L-hat and a single model's L-hat - L. Explicit.
    """
    _positive(n=n, delta=delta)
    return 2.0 * rademacher + math.sqrt(2.0 * math.log(2.0 / delta) / n)


def chained_sample_complexity(
    alpha: float,
    p: float,
    gamma: float,
    epsilon: float,
    /,
    *,
    delta: float = 0.01,
    rademacher: Callable[[float, float, float, float], float] = rademacher_explicit,
    sharp: bool = False,
) -> float:
    """The n from which on Proposition 2.3 gives risk epsilon, for (2.3) with epsilon = 0.

    As printed 4 Rad + 2 sqrt(log(2/delta)/n) <= epsilon, or with `sharp` by `erm_risk`;
    `rademacher` is either of the functions above. Explicit.
    """
    _positive(epsilon=epsilon, delta=delta)

    def excess(log_n: float) -> float:
        n = math.exp(log_n)
        rad = rademacher(alpha, p, gamma, n)
        found = erm_risk(rad, n, delta=delta) if sharp else erm_bound(0.0, rad, n, delta)
        return math.log(found / epsilon)

    high = 1.0
    while excess(high) > 0:
        high += 1.0
    return math.exp(scipy.optimize.brentq(excess, high - 1.0, high, xtol=1e-13))


def risk_from_cover(fraction: float, log_size: float, n: float, /, *, delta: float) -> float:
    """The largest risk that n samples leave: P > q with n kl(q, P) = log_size + log(1/delta).

    Of exp(log_size) events, w.p. 1 - delta, none has a larger probability if a `fraction` q of the
    samples is in it: by Chernoff Pr(at most q n) <= exp(-n kl(q, P)) for P >= q. For q = 0 this is
    an equality: 1 - exp(-(log_size + log(1/delta)) / n). Explicit.
    """
    _positive(n=n, delta=delta)
    allowed = (log_size - math.log(delta)) / n
    if fraction >= 1:
        return 1.0
    if fraction <= 0:
        return -math.expm1(-allowed)
    entropy = fraction * math.log(fraction) + (1.0 - fraction) * math.log1p(-fraction)

    def excess(logit: float) -> float:
        log_P, log_rest = -np.logaddexp(0.0, -logit), -np.logaddexp(0.0, logit)
        return entropy - fraction * log_P - (1.0 - fraction) * log_rest - allowed

    low, step = math.log(fraction) - math.log1p(-fraction), 1.0
    while excess(low + step) <= 0:
        step *= 2.0
    return float(scipy.special.expit(scipy.optimize.brentq(excess, low, low + step, xtol=1e-13)))


def realizable_sample_complexity(
    alpha: float, p: float, gamma: float, epsilon: float, /, *, delta: float = 0.01
) -> float:
    """The n of Lemma 2.4 where (2.3) has epsilon = 0: of order alpha^2 log p / (gamma^2 epsilon).

    (log N + log(1/delta)) / log(1/(1-epsilon)), N the size of a gamma/2 cover. Let theta have
    margin gamma on all samples and theta' in the cover be nearer than gamma/2. Then rho(theta') >
    gamma/2 on all samples, and where theta errs rho(theta') < gamma/2. That event, if it has
    probability above epsilon, is missed by all samples with probability below (1-epsilon)^n.
    Explicit.
    """
    _positive(alpha=alpha, gamma=gamma, epsilon=epsilon, delta=delta)
    log_size = float(l1_log_covering(2.0 * alpha / gamma, p))
    return (log_size - math.log(delta)) / -math.log1p(-epsilon)


def margin_profile_bound(
    alpha: float, p: float, margins: Float[np.ndarray, "n"], /, *, delta: float = 0.01
) -> float:
    """A bound on E l_0-1 from the margins on the samples, for all theta at once w.p. 1 - delta.

    The least of `risk_from_cover` over gamma_k = alpha 2^{-k/2}, with a gamma_k/2 cover, the
    fraction of margins below gamma_k, and delta / (`WEIGHT` (1 + |k|)^2). Errors on samples are
    allowed: their margin is 0. Margins may be certified lower bounds. Explicit.
    """
    margins = np.sort(np.asarray(margins, float))
    n = len(margins)
    _positive(alpha=alpha, p=p, delta=delta, n=n)

    def at(k: int) -> float:
        gamma = alpha * 2.0 ** (-k / 2)
        log_size = float(l1_log_covering(2.0 * alpha / gamma, p))
        part = delta / (WEIGHT * (1 + abs(k)) ** 2)
        return risk_from_cover(np.searchsorted(margins, gamma) / n, log_size, n, delta=part)

    return min(map(at, range(-8, 80)))


def corollary_a1_explicit(
    alpha: float, p: float, margins: Float[np.ndarray, "n"], /, *, delta: float = 0.01
) -> float:
    """Corollary A.1 with its constants: 8.83 alpha sqrt(log(2p)/n) sqrt(mean 1/rho^2) + xi.

    xi = sqrt(2 l/n) + 2 l/n with l = log(`WEIGHT` (1 + |k|)^2 / delta), |k| of the order of log n.

    Let M = mean 1/rho^2, B = 4 alpha^2 log(2p)/n, and gamma = gamma_k of the above. A fraction
    q <= gamma^2 M of the margins is below gamma, log N / n <= B / gamma^2, and kl(q, P) >=
    (P - q)^2 / (2P) gives P <= q + sqrt(2 q v) + 2v for v = B/gamma^2 + l/n, so

        P <= gamma^2 M + sqrt(2 B M) + 2 B / gamma^2 + sqrt(2 gamma^2 M l / n) + 2 l / n.

    At gamma^2 = sqrt(2B/M) the first three are 3 sqrt(2 B M); the nearest gamma_k is off by at most
    sqrt 2 in gamma^2, for 1 + sqrt 2 + 1/sqrt 2 = 3.122 in place of 3, and 3.122 sqrt 8 = 8.83.
    Where gamma^2 M > 1 the bound exceeds one. Explicit; zero training error.
    """
    margins = np.asarray(margins, float)
    n = len(margins)
    _positive(alpha=alpha, p=p, delta=delta, n=n, smallest_margin=float(margins.min()))
    M, B = float(np.mean(margins**-2.0)), 4.0 * alpha**2 * math.log(2 * p) / n
    k = round(math.log2(alpha**2 / math.sqrt(2.0 * B / M)))
    part = (math.log(WEIGHT / delta) + 2.0 * math.log(1 + abs(k))) / n
    main = (1.0 + math.sqrt(2.0) + math.sqrt(0.5)) * math.sqrt(2.0 * B * M)
    return main + math.sqrt(2.0 * part) + 2.0 * part
