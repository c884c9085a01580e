"""Risk bounds with every constant: Lemmas 18, 20, 32 and 34, Corollaries 19 and 33, Theorem 10.

An argument `covering` is a function from the scale eps (a number or an array) to log C(eps), the
log covering number of the class. The loss is (yhat - y)^2, truncated at tau. R_tau is the
expectation of the truncated loss, and R-hat_tau is its mean over the n samples. The square root of
the truncated loss is 1-Lipschitz in yhat and lies in [0, sqrt tau]. If some member of the class
fits the samples, a cover and Chernoff's bound prove a risk of order 1/n. The paper's proof by
symmetrisation shows only the order 1/sqrt n. No formula hides a constant.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.chaining import LogCovering
from jaxbounds.qstr.covers import (
    TransformerClass,
    ball_log_covering,
    recurrent_lipschitz,
    transformer_log_covering,
)
from jaxbounds.qstr.links import TwoLayer
from jaxbounds.qstr.retrieval import inverse_temperature
from jaxbounds.qstr.rnn_construction import exact_transition, readout


def _least(value: Callable[[np.ndarray], np.ndarray], largest: float) -> float:
    return float(np.min(value(largest * np.exp(np.linspace(-50.0, 0.0, 101)))))


def truncated_rademacher(covering: LogCovering, n: float, /, *, tau: float) -> float:
    """Return the least bound 2 sqrt(tau) eps + tau sqrt(log C(eps) / (2n)) on Rad_n(L_tau).

    Rad_n(L_tau) is the Rademacher complexity of the losses truncated at tau. The minimum is over
    the scale eps of a single cover, as in Lemmas 18 and 32. If yhat changes by eps, a loss changes
    by at most 2 sqrt(tau) eps. Massart's lemma has the factor tau/2, because all losses differ from
    tau/2 by at most tau/2.
    """
    bound = lambda eps: 2.0 * math.sqrt(tau) * eps + tau * np.sqrt(covering(eps) / (2.0 * n))
    return min(0.5 * tau, _least(bound, math.sqrt(tau)))


def truncated_gap(
    covering: LogCovering, n: float, /, *, tau: float, delta: float, sharp: bool = True
) -> float:
    """Bound sup |R_tau - R-hat_tau| over a class with probability 1 - delta.

    Corollaries 19 and 33 use symmetrisation, with the bound 2 Rad + tau sqrt(log(2/delta) / (2n)).
    If `sharp` is set, Hoeffding's inequality for the functions of a cover gives 4 sqrt(tau) eps +
    tau sqrt((log C(eps) + log(2/delta)) / (2n)).
    """
    tail = math.log(2.0 / delta)
    if not sharp:
        rademacher = truncated_rademacher(covering, n, tau=tau)
        return min(tau, 2.0 * rademacher + tau * math.sqrt(tail / (2.0 * n)))
    bound = lambda eps: (
        4.0 * math.sqrt(tau) * eps + tau * np.sqrt((covering(eps) + tail) / (2.0 * n))
    )
    return min(tau, _least(bound, math.sqrt(tau)))


def truncated_risk(
    covering: LogCovering, n: float, /, *, tau: float, delta: float, empirical: float = 0.0
) -> float:
    """Bound R_tau with probability 1 - delta, for each function with R-hat_tau = `empirical`.

    The bound is sqrt R_tau <= sqrt R-hat_tau + 2 eps + sqrt(2 tau (log C(eps) + log(1/delta)) / n).
    For a member of the cover, let P = R_tau / tau and P-hat = R-hat_tau / tau. Chernoff's bound
    gives P <= (sqrt P-hat + sqrt(2v))^2, where v = (log C(eps) + log(1/delta)) / n. The square root
    of a risk is the L2 norm of the square root of the loss. The L2 norms of a function and of the
    cover's nearest member differ by at most eps.
    """
    tail = -math.log(delta)
    bound = lambda eps: 2.0 * eps + np.sqrt(2.0 * tau * (covering(eps) + tail) / n)
    return min(tau, (math.sqrt(empirical) + _least(bound, math.sqrt(tau))) ** 2)


def moment_radius(tail: float, /, *, C: float, s: float = 1.0) -> float:
    """Return a radius B with P(|v| >= B) <= exp(-tail) for v of bounded moments.

    The moments satisfy (E|v|^r)^{1/r} <= sqrt(C r^s) for all r >= 1. Markov's inequality for the
    moment of order r = 2 tail / s gives B^2 = C (e r)^s. For C = C_x d and s = 1, B is the radius
    at which Lemma 12's bound for one token is exp(-tail).

    Raises:
        Refused: if the order r = 2 tail / s of the moment is below 1.
    """
    order = 2.0 * tail / s
    if not order >= 1:
        raise Refused(
            f"tail={tail} and s={s} give the moment order 2 tail / s = {order}, expected at least "
            f"1. Try a larger tail"
        )
    return math.sqrt(C * (math.e * order) ** s)


def largest_token_moment(*, N: int, d: int, C_x: float = 1.0) -> float:
    """Bound (E max_j |x_j|^4)^{1/2} by N^{2/r} C_x d r with r = max(4, 2 log N), for Lemma 20."""
    r = max(4.0, 2.0 * math.log(N))
    return N ** (2.0 / r) * C_x * d * r


class Setting(NamedTuple):
    """The data model of Section 2: its sizes, and the constants of Assumption 1.

    Attributes:
        N: the number of tokens in a prompt.
        d: the dimension of a token.
        q: the number of relevant tokens of each position.
        C_x: the constant in Assumption 1's bound on the moments of a token.
        C_y: the constant in Assumption 1's bound on the moments of a label.
        s: the exponent in Assumption 1's bound on the moments of a label.
    """

    N: int
    d: int
    q: int
    C_x: float = 1.0
    C_y: float = 1.0
    s: float = 1.0

    def token_radius(self, tail: float, /) -> float:
        """Return a radius that some token of a prompt exceeds with probability <= exp(-tail)."""
        return moment_radius(tail + math.log(self.N), C=self.C_x * self.d)

    def label_radius(self, tail: float, /) -> float:
        """Return a radius that a label's |y| exceeds with probability at most exp(-tail)."""
        return moment_radius(tail, C=self.C_y, s=self.s)


def truncation_error(setting: Setting, /, *, tail: float, fourth: float) -> float:
    """Bound the truncation error R - R_tau, Lemmas 20 and 34.

    R is the risk, and R_tau is the risk with the loss truncated at tau. Let A = |yhat - y|. The
    truncation error is at most |A|_4^2 P(A > sqrt tau)^{1/2}. Here sqrt tau is the label radius
    plus the largest prediction on prompts whose tokens lie within the token radius. So A exceeds
    sqrt tau only if the label or some token exceeds its radius, each with probability at most
    exp(-tail). The L4 norm satisfies |A|_4 <= |y|_4 + |yhat|_4, with |y|_4^2 <= 4^s C_y and
    |yhat|_4 <= `fourth`.
    """
    both = math.sqrt(setting.C_y * 4.0**setting.s) + fourth
    return both**2 * math.sqrt(2.0) * math.exp(-0.5 * tail)


def prediction_moment(setting: Setting, /, *, heads: int, slope: float) -> float:
    """Bound (E yhat^4)^{1/4} by slope sqrt(H (m + d (1 + 1/q)) + 1), Lemma 20.

    Here slope = |a| |(W, b)|_F. The vector h of all heads' outputs satisfies |yhat| <= slope |(h,
    1)| and |h|^2 <= H max |z_j|^2, where |z_j|^2 = |x_j|^2 + d (1 + 1/q). The number m =
    `largest_token_moment` bounds (E max |x_j|^4)^{1/2}.
    """
    tokens = largest_token_moment(N=setting.N, d=setting.d, C_x=setting.C_x)
    return slope * math.sqrt(heads * (tokens + setting.d + setting.d / setting.q) + 1.0)


FORMS = ("symmetrised", "covered", "clipped")


def minimiser_risk(
    covering: LogCovering,
    n: float,
    /,
    *,
    setting: Setting,
    largest: float,
    fourth: float,
    fitted: float,
    tail: float,
    delta: float = 0.01,
    form: str = "symmetrised",
) -> float:
    """Bound every empirical risk minimiser's risk, with probability 1 - delta - 2 n exp(-tail).

    The bound assumes that some member of the class has squared errors at most `fitted` on all
    prompts whose tokens lie within the token radius. So the empirical risk of a minimiser is at
    most `fitted`. A token or a label of one of the n prompts exceeds its radius with probability at
    most 2 n exp(-tail). Let sqrt tau be the label radius plus `largest`. The bound named
    "symmetrised" adds `fitted`, tau exp(-tail), and the results of `truncated_gap` and
    `truncation_error`. In the bounds named "covered" and "clipped", `truncated_risk` at the
    empirical risk `fitted` replaces `fitted` + `truncated_gap`.

    The function `covering` is for prompts whose tokens lie within the token radius; `largest` is
    the largest |yhat| on these prompts, and `fourth` is a bound on (E yhat^4)^{1/4}. In each
    prompt, the longest token exceeds the token radius with probability at most exp(-tail), and so
    does the label the label radius. `delta` is the allowed probability that the bound on the gap
    between risk and empirical risk fails. The bound "clipped" is "covered" for predictions clipped
    to the label radius (first remark after Theorem 4); the label radius then replaces `largest` and
    `fourth`.

    Raises:
        Refused: if `form` is not the name of a bound.
    """
    if form not in FORMS:
        raise Refused(
            f"form={form!r} is unknown, expected one of {', '.join(FORMS)}. Try"
            f" form={next(iter(FORMS))!r}"
        )
    B = setting.label_radius(tail)
    if form == "clipped":
        largest, fourth = B, B
    tau = (B + largest) ** 2
    if form == "symmetrised":
        cut = fitted + truncated_gap(covering, n, tau=tau, delta=delta, sharp=False)
    else:
        cut = truncated_risk(covering, n, tau=tau, delta=delta, empirical=fitted)
    beyond = truncation_error(setting, tail=tail, fourth=fourth)
    return cut + tau * math.exp(-tail) + beyond


def transformer_risk(
    n: float,
    setting: Setting,
    /,
    *,
    de: int,
    m: int,
    r_a: float,
    r_w: float,
    eps: float,
    eps_2nn: float = 0.0,
    delta: float = 0.01,
    form: str = "symmetrised",
) -> float:
    """Bound the risk of Theorem 10's learner, a Transformer with the least empirical risk.

    The bound is `minimiser_risk` for the class (A.1) with exp(-tail) = n^-4. Here r_z^2 = r_x^2 + d
    (1 + 1/q). The matrix W_QK of each head of (A.2) has the Frobenius norm alpha sqrt(de). The
    number alpha is so large that attention changes the prediction by at most sqrt(eps). Lemma 11's
    network therefore errs by at most sqrt(eps_2nn) + sqrt(eps).

    The encodings have dimension `de` and coherence at most 1/2. `m`, `r_a`, `r_w` and `eps_2nn` are
    the width, the norm bounds and the squared error of the two-layer network in Assumption 2. `eps`
    is the squared prediction error that attention may cause. `delta` and `form` are those of
    `minimiser_risk`.
    """
    tail, (N, d, q, *_) = 4.0 * math.log(n), setting
    r_x = setting.token_radius(tail)
    alpha = inverse_temperature(N=N, q=q, d=d, r_a=r_a, r_w=r_w, r_x=r_x, eps=eps)
    f = TransformerClass(
        m=m, H=q, De=d + (q + 1) * de, r_a=r_a / math.sqrt(m), R_w=r_w * math.sqrt(m),
        r_QK=float(alpha) * math.sqrt(de), r_z=math.sqrt(r_x**2 + d + d / q),
    )  # fmt: skip
    return minimiser_risk(
        lambda eps: transformer_log_covering(eps, f),
        n,
        setting=setting,
        largest=f.largest_prediction,
        fourth=prediction_moment(setting, heads=q, slope=r_a * r_w),
        fitted=(math.sqrt(eps_2nn) + math.sqrt(eps)) ** 2,
        tail=tail,
        delta=delta,
        form=form,
    )


class RecurrentClass(NamedTuple):
    """The class of RNNs in Theorem 7, with |vec Theta| <= R for the norm R of Proposition 28's RNN.

    The squared norm is R^2 = `constant` + `slope` r_x^2, where r_x is the radius of the tokens.
    """

    parameters: int
    constant: float
    slope: float
    depth_y: int
    depth_h: int


def recurrent_class(setting: Setting, network: TwoLayer, /, *, de: int) -> RecurrentClass:
    """Return the class that contains Proposition 28's RNN for the link `network`.

    The functions `exact_transition` and `readout` build the RNN, whose weights are constant or
    proportional to the tokens' radius. Therefore the squared norm R^2 of all weights at two radii
    determines R^2 at every radius.
    """
    parts: Any = map(np.asarray, network)
    network = TwoLayer(*parts)

    def built(radius: float) -> tuple[int, float, int, int]:
        transition = exact_transition(q=setting.q, d=setting.d, de=de, radius=radius)
        reading = readout(network, transition)
        weights = [np.asarray(v) for layer in (*transition, *transition, *reading) for v in layer]
        square = sum(float(np.sum(v**2)) for v in weights)
        return sum(v.size for v in weights), square, len(reading), len(transition)

    parameters, one, depth_y, depth_h = built(1.0)
    slope = (built(2.0)[1] - one) / 3.0
    return RecurrentClass(parameters, one - slope, slope, depth_y, depth_h)


def recurrent_risk(
    n: float,
    setting: Setting,
    f: RecurrentClass,
    /,
    *,
    delta: float = 0.01,
    form: str = "symmetrised",
) -> float:
    """Bound the risk of Theorem 7's learner by `minimiser_risk` for a class of RNNs.

    The largest probability of a token or label outside its radius is exp(-tail) = n^-4.

    The class contains an RNN that represents the link without error on tokens of norm at most r_x,
    with states of norm r_h = sqrt(q) r_x. The encodings are unit vectors, so z_i has norm
    sqrt(r_x^2 + q + 1).
    """
    tail, (N, d, q, *_) = 4.0 * math.log(n), setting
    r_x = setting.token_radius(tail)
    R = math.sqrt(f.constant + f.slope * r_x**2)
    r_h, r_z = math.sqrt(q) * r_x, math.sqrt(r_x**2 + q + 1)
    moved = recurrent_lipschitz(R, N=N, r_z=r_z, r_h=r_h, depth_y=f.depth_y, depth_h=f.depth_h)
    covering = lambda eps: ball_log_covering(
        eps, parameters=f.parameters, radius=R, lipschitz=moved
    )
    values = lambda r: R**f.depth_y * r + sum(R**k for k in range(1, f.depth_y))
    tokens = largest_token_moment(N=N, d=d, C_x=setting.C_x)
    return minimiser_risk(
        covering,
        n,
        setting=setting,
        largest=values(math.hypot(math.sqrt(2.0) * r_h, r_z)),
        fourth=values(math.sqrt(2.0 * r_h**2 + tokens + q + 1)),
        fitted=0.0,
        tail=tail,
        delta=delta,
        form=form,
    )


def samples_needed(risk: Callable[[float], float], target: float, /) -> float:
    """Return the least n, up to a factor 1.001, at which the bound `risk(n)` is at most `target`.

    The result is infinite if no n below 10^200 is enough.
    """
    high = 4.0
    while risk(high) > target:
        high *= 16.0
        if high > 1e200:
            return math.inf
    low = high / 16.0
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if risk(middle) <= target else (middle, high)
    return high
