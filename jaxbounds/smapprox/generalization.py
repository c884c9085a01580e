"""Lemma 2.4 and Corollary A.1 with every constant: certified sample sizes from all-layer margins.

The all-layer margin is 1-Lipschitz in the parameters. A cover of {|theta|_1 <= alpha} in l_2
therefore covers the losses of all these parameters. The paper chains covers at all scales, which
needs a number of samples of order 1/epsilon^2. If (2.3) has epsilon = 0, as in Theorems 3.1 and
4.1, a single cover, finer than half of the margin, and Chernoff's bound need only the order
1/epsilon.
"""

import math
from collections.abc import Callable

import numpy as np
import scipy
from jaxtyping import Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.chaining import chaining
from jaxbounds.smapprox.finite_classes import erm_bound

RATIO = 4.0
"""The ratio of neighbouring scales in the chaining of covers; a larger ratio uses fewer scales. The
ratio 4 nearly minimises the constant for log N(e) = A/e^2."""
PER_SCALE = (1.0 + RATIO) * math.sqrt(2.0 * (1.0 + RATIO**-2))
"""The term that each scale of the chaining adds to the bound on the Rademacher complexity, as a
multiple of sqrt(A/n) for log N(e) <= A/e^2."""
WEIGHT = math.pi**2 / 3.0 - 1.0
"""The sum of (1 + |k|)^-2 over all integers k.

Bounds at all scales k divide the failure probability delta in proportion to (1 + |k|)^-2.
"""


def _positive(**values: float) -> None:
    bad = [f"{name}={value}" for name, value in values.items() if not value > 0]
    if bad:
        raise Refused(f"got {', '.join(bad)}, expected positive numbers. Try 1 for each of them")


def shrinkage(K: float, /) -> float:
    """Compute sqrt K / (1 + sqrt K), which scales the mean of K vertices in `l1_log_covering`."""
    return math.sqrt(K) / (1.0 + math.sqrt(K))


def l1_log_covering(
    scale: float | Float[np.ndarray, "*k"], p: float, /
) -> Float[np.ndarray, "*k"] | np.float64:
    """Bound the log of the number of l_2 balls of radius r that cover {|theta|_1 <= alpha} in R^p.

    The centres are inside the l_1 ball, and scale = alpha / r. Maurey's method draws V = +-alpha
    e_j with probabilities |theta_j| / alpha; half of the missing probability goes to e_1, half to
    -e_1. V-bar is the mean of K copies of V, and c = `shrinkage(K)`. Then E |c V-bar - theta|^2 <=
    alpha^2 / (1 + sqrt K)^2, and there are C(2p + K - 1, K) <= (2p)^K such means. The distance of
    some scaled mean c V-bar from theta is less than r if K = floor((scale - 1)^2) + 1. This K is at
    most scale^2, so the cover's size N satisfies log N <= scale^2 log 2p. The volume bound p
    log(1 + 2 scale) may be smaller. For scale < 1, a single ball covers the set.

    Raises:
        Refused: if scale or p is not positive.
    """
    _positive(p=p, scale=float(np.min(scale)))
    scale = np.asarray(scale, float)
    K = np.floor((np.maximum(scale, 1.0) - 1.0) ** 2) + 1.0
    maurey = -np.log(K) - scipy.special.betaln(2.0 * p, K)
    return np.where(scale < 1, 0.0, np.minimum(maurey, p * np.log1p(2.0 * scale)))[()]


def rademacher_by_chaining(alpha: float, p: float, gamma: float, n: float, /) -> float:
    """Bound the Rademacher complexity Rad_n(L_G) of Lemma 2.4 by `chaining`.

    The losses differ from 1/2 by at most 1/2. A change of the parameters by gamma e changes a loss
    by at most e, so covers of the parameters at scale gamma e cover the losses at scale e.
    """
    _positive(alpha=alpha, p=p, gamma=gamma, n=n)
    return chaining(lambda e: l1_log_covering(alpha / (gamma * e), p), n, 0.5)


def rademacher_explicit(alpha: float, p: float, gamma: float, n: float, /) -> float:
    """Compute Lemma 2.4's bound C alpha log n sqrt(log p) / (gamma sqrt n) with its constant.

    The bound is sqrt(A/n) (7.8 + 2.63 log(n/A)) with A = (alpha/gamma)^2 log 2p, and 1/2 for n < A.
    At scale e_j = 4^-j of the chaining, the log covering number is at most A / e_j^2. Every scale
    of the chaining therefore adds `PER_SCALE` sqrt(A/n) = 7.29 sqrt(A/n) to the bound. The chaining
    ends at the least J with 4^-J <= sqrt(A/n); this J satisfies J < 1 + log_16(n/A).
    """
    _positive(alpha=alpha, p=p, gamma=gamma, n=n)
    A = (alpha / gamma) ** 2 * math.log(2 * p)
    if n < A:
        return 0.5
    depth = 1.0 + math.log(n / A) / (2.0 * math.log(RATIO))
    return min(0.5, math.sqrt(A / n) * (0.5 + PER_SCALE * depth))


def erm_risk(rademacher: float, n: float, /, *, delta: float = 0.01) -> float:
    """Bound the risk of the model that minimises the surrogate loss, if (2.3) has epsilon = 0.

    The risk is at most 2 Rad + 2 sqrt(log(2/delta) / (2n)) with probability 1 - delta. Proposition
    2.3 prints 4 Rad. The factor 2 suffices, because L(F-hat) - L(F*) depends only on the one-sided
    supremum of L - L-hat, and on L-hat - L of the single model F*.
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
    """Return the least n at which Proposition 2.3 gives risk epsilon, if (2.3) has the error 0.

    The printed condition is 4 Rad + 2 sqrt(log(2/delta)/n) <= epsilon; `sharp` uses `erm_risk`
    instead. The argument `rademacher` is `rademacher_explicit` or `rademacher_by_chaining`.
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
    """Bound a risk by the P > q that solves n kl(q, P) = log_size + log(1/delta).

    Here q is the argument `fraction`. Consider exp(log_size) events. Each that contains at most a
    fraction q of the n samples has probability <= P, for all at once with probability 1 - delta.
    Proof: If an event has probability P >= q, Chernoff's bound gives Pr(at most q n samples are in
    the event) <= exp(-n kl(q, P)). For q = 0 the bound is an equality: P = 1 - exp(-(log_size +
    log(1/delta)) / n).
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
    """Return the number of samples n that Lemma 2.4 needs if (2.3) has epsilon = 0.

    The number is n = (log N + log(1/delta)) / log(1/(1-epsilon)), where N is the size of a gamma/2
    cover. The order of n is alpha^2 log p / (gamma^2 epsilon). Proof: let theta have margin gamma
    on all samples, and let theta' be a member of the cover at distance less than gamma/2 from
    theta. Then rho(theta') > gamma/2 on all samples. The margin rho(theta') is below gamma/2 at all
    inputs at which theta errs. If the event rho(theta') < gamma/2 has a probability above epsilon,
    all n samples miss it with a probability below (1-epsilon)^n.
    """
    _positive(alpha=alpha, gamma=gamma, epsilon=epsilon, delta=delta)
    log_size = float(l1_log_covering(2.0 * alpha / gamma, p))
    return (log_size - math.log(delta)) / -math.log1p(-epsilon)


def margin_profile_bound(
    alpha: float, p: float, margins: Float[np.ndarray, "n"], /, *, delta: float = 0.01
) -> float:
    """Bound E l_0-1 from the margins on the samples, for all theta, with probability 1 - delta.

    The bound is the minimum of `risk_from_cover` over gamma_k = alpha 2^{-k/2}. For each k, the
    bound uses a gamma_k/2 cover, the fraction of margins below gamma_k, and delta / (`WEIGHT` (1 +
    |k|)^2). A sample on which theta errs has margin 0. Lower bounds may replace the margins.
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
    """Compute Corollary A.1, 8.83 alpha sqrt(log(2p)/n) sqrt(mean 1/rho^2) + xi, with constants.

    Here xi = sqrt(2 l/n) + 2 l/n with l = log(`WEIGHT` (1 + |k|)^2 / delta), and |k| is of the
    order of log n. Let M = mean 1/rho^2 over the sample, B = 4 alpha^2 log(2p)/n, and gamma =
    gamma_k of `margin_profile_bound`. A fraction q <= gamma^2 M of the sample's margins is below
    gamma, and the cover has log N / n <= B / gamma^2. The inequality kl(q, P) >= (P - q)^2 / (2P)
    gives P <= q + sqrt(2 q v) + 2v for v = B/gamma^2 + l/n. Therefore P <= gamma^2 M + sqrt(2 B M)
    plus 2 B / gamma^2 + sqrt(2 gamma^2 M l / n) + 2 l / n. If gamma^2 = sqrt(2B/M), the first three
    terms of the bound are 3 sqrt(2 B M). The nearest grid value gamma_k^2 differs from gamma^2 by
    at most a factor sqrt 2. The constant 3 in 3 sqrt(2 B M) becomes 1 + sqrt 2 + 1/sqrt 2 = 3.122
    for gamma_k in place of gamma. The constant of the bound is therefore 3.122 sqrt 8 = 8.83. If
    gamma^2 M > 1, the bound exceeds one and is trivial. The training error must be zero.
    """
    margins = np.asarray(margins, float)
    n = len(margins)
    _positive(alpha=alpha, p=p, delta=delta, n=n, smallest_margin=float(margins.min()))
    M, B = float(np.mean(margins**-2.0)), 4.0 * alpha**2 * math.log(2 * p) / n
    k = round(math.log2(alpha**2 / math.sqrt(2.0 * B / M)))
    part = (math.log(WEIGHT / delta) + 2.0 * math.log(1 + abs(k))) / n
    main = (1.0 + math.sqrt(2.0) + math.sqrt(0.5)) * math.sqrt(2.0 * B * M)
    return main + math.sqrt(2.0 * part) + 2.0 * part
