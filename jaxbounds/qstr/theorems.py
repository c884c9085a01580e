"""Theorems 4, 7 and 10: the paper's bounds with the hidden constants as arguments.

Each function has an argument for each constant that the theorem hides. A function whose name ends
in `_explicit` instead computes all constants from the lemmas of the paper's proof, which the module
`excess` implements.
"""

import math
from collections.abc import Callable

from jaxbounds.qstr.bounds import transformer_excess_rate
from jaxbounds.qstr.covers import TransformerClass, ball_log_covering, transformer_lipschitz
from jaxbounds.qstr.excess import (
    RecurrentClass,
    Setting,
    minimiser_risk,
    prediction_moment,
    recurrent_risk,
    transformer_risk,
)
from jaxbounds.qstr.retrieval import inverse_temperature


def theorem_4(
    n: float,
    /,
    *,
    q: int,
    d: int,
    m_g: int,
    R: float,
    eps_2nn: float,
    approximation: float,
    estimation: float,
    power: int = 2,
) -> float:
    """Return `approximation` eps_2NN + `estimation` C_1 sqrt((m_g q (d + q) + q^3 + q d^2) / n).

    This bound is Theorem 4's, where C_1 is R^2 q d in the theorem, and R^4 q d in Appendix A
    (erratum E12).

    Args:
        n: the number of training prompts, with one labelled position each.
        q: the number of relevant tokens of each position.
        d: the dimension of a token.
        m_g: the width of the two-layer network in Assumption 2.
        R: the radius of the class {|vec Theta| <= R}.
        eps_2nn: the squared error eps_2NN of Assumption 2.
        approximation: the constant in front of eps_2NN, which the theorem hides.
        estimation: the factor in front of C_1: the constant and the logarithms that O~ hides.
        power: the power of R in C_1: 2 as in the theorem, or 4 as in Appendix A.
    """
    sizes = m_g * q * (d + q) + q**3 + q * d**2
    return approximation * eps_2nn + estimation * R**power * q * d * math.sqrt(sizes / n)


def theorem_7(
    n: float,
    /,
    *,
    N: int,
    eps_2nn: float,
    approximation: float,
    polynomial: Callable[[float], float],
) -> float:
    """Return Theorem 7's bound, `approximation` eps_2NN + sqrt(poly(.., log(nN)) / n).

    `polynomial` is the theorem's polynomial as a function of log(nN) alone; its other variables d,
    q, m_g, 1/eps_2NN, r_a and r_w are fixed. `approximation` is the constant in front of eps_2NN.
    """
    return approximation * eps_2nn + math.sqrt(polynomial(math.log(n * N)) / n)


def theorem_10(
    n: float,
    /,
    *,
    q: int,
    d: int,
    m_g: int,
    r_a: float,
    r_w: float,
    r_x: float,
    eps_2nn: float,
    approximation: float,
    estimation: float,
) -> float:
    """Return `approximation` eps_2NN + `estimation` C_1 sqrt((m_g q (d + q) + min(..)) / n).

    This bound is Theorem 10's, where C_1 is q r_a^2 r_w^2 r_x^2. The minimum min(..) is over r_x^6
    r_a^2 r_w^2 q^4 / d^2 and q (q^2 + d^2).

    Assumption 2 gives sqrt(m_g) |a| <= r_a and |(W, b)|_F / sqrt(m_g) <= r_w. The radius r_x =
    sqrt(3 C_x e d log(nN)) bounds the norms of all tokens with high probability. The other
    arguments are those of `theorem_4`.
    """
    excess = transformer_excess_rate(n, q=q, d=d, m_g=m_g, r_a=r_a, r_w=r_w, r_x=r_x)
    return approximation * eps_2nn + estimation * excess


def theorem_4_explicit(
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
) -> float:
    """Return Theorem 4's bound, with every constant of the paper's lemmas, for the least R.

    The least radius R is the norm of Lemma 11's network: R^2 = r_a^2 / m + m r_w^2 + q alpha^2 de.
    The proof covers the ball {|vec Theta| <= R} as in Corollary 19. In this ball, |a| |(W, b)|_F <=
    R^2 / 2. The bound holds with probability 1 - delta - 2 n^-3.

    Args:
        n: the number of training prompts, with one labelled position each.
        setting: the data model; its q is also the number of heads.
        de: the dimension of an encoding; the encodings have coherence at most 1/2.
        m: the width of the two-layer network in Assumption 2.
        r_a: Assumption 2's bound on sqrt(m) |a|.
        r_w: Assumption 2's bound on |(W, b)|_F / sqrt(m).
        eps: the squared prediction error that attention may cause.
        eps_2nn: the squared error eps_2NN of Assumption 2.
        delta: the allowed probability that the bound on the gap between risk and empirical risk
            fails.
    """
    tail, (_, d, q, *_) = 4.0 * math.log(n), setting
    r_x = setting.token_radius(tail)
    R, _ = least_radius(n, setting, de=de, m=m, r_a=r_a, r_w=r_w, eps=eps)
    r_z, slope = math.sqrt(r_x**2 + d + d / q), R**2 / 2
    f = TransformerClass(m=m, H=q, De=d + (q + 1) * de, r_a=slope, R_w=1.0, r_QK=R, r_z=r_z)
    lipschitz = transformer_lipschitz(R, H=q, r_z=r_z)
    of = {"parameters": sum(f.parameters), "radius": R, "lipschitz": lipschitz}
    return minimiser_risk(
        lambda scale: ball_log_covering(scale, **of),
        n,
        setting=setting,
        largest=f.largest_prediction,
        fourth=prediction_moment(setting, heads=q, slope=slope),
        fitted=(math.sqrt(eps_2nn) + math.sqrt(eps)) ** 2,
        tail=tail,
        delta=delta,
    )


def least_radius(
    n: float, setting: Setting, /, *, de: int, m: int, r_a: float, r_w: float, eps: float
) -> tuple[float, float]:
    """Return the least R at which Theorem 4's class contains Lemma 11's network, and its alpha.

    The arguments are those of `theorem_4_explicit`. A token's norm exceeds the token radius with
    probability at most n^-4.
    """
    N, d, q, *_ = setting
    r_x = setting.token_radius(4.0 * math.log(n))
    alpha = float(inverse_temperature(N=N, q=q, d=d, r_a=r_a, r_w=r_w, r_x=r_x, eps=eps))
    return math.sqrt(r_a**2 / m + m * r_w**2 + q * alpha**2 * de), alpha


def theorem_7_explicit(
    n: float, setting: Setting, f: RecurrentClass, /, *, delta: float = 0.01
) -> float:
    """Return Theorem 7's bound with every constant of the paper's lemmas (`recurrent_risk`).

    The bound holds with probability 1 - delta - 2 n^-3.

    `f` is the class of RNNs, from `recurrent_class`. The other arguments are those of
    `theorem_4_explicit`.
    """
    return recurrent_risk(n, setting, f, delta=delta, form="symmetrised")


def theorem_10_explicit(
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
) -> float:
    """Return Theorem 10's bound with every constant of the paper's lemmas (`transformer_risk`).

    The bound holds with probability 1 - delta - 2 n^-3. The arguments are those of
    `theorem_4_explicit`.
    """
    return transformer_risk(
        n, setting, de=de, m=m, r_a=r_a, r_w=r_w, eps=eps, eps_2nn=eps_2nn, delta=delta,
        form="symmetrised",
    )  # fmt: skip
