"""Lower bounds on the size of recurrent networks: Proposition 8 (printed, repaired), Theorem 9.

The paper hides all constants of these bounds. A formula of this module is complete unless its
docstring says "up to a constant".
"""

import math
from collections.abc import Sequence

import jax.numpy as jnp
import scipy
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.norms import spectral_norm
from jaxbounds.qstr.relu_networks import Layer


def width_lower_bound(*, N: int, lipschitz: float, operator_norm: float) -> float:
    """Return N / log(1 + L^2 |U|_op^2), Proposition 8's lower bound on d_h up to a constant.

    This bound on d_h is valid; the bound of `printed_norm_lower_bound` on |U|_op^2 is not.
    """
    return N / math.log1p((lipschitz * operator_norm) ** 2)


def printed_norm_lower_bound(*, N: int, lipschitz: float, width: int) -> float:
    """Return N / (L^2 log(1 + d_h)), the lower bound on |U|_op^2 that Proposition 8 wrongly claims.

    Proposition 8 claims this bound up to a constant factor, with the Lipschitz constant L of the
    readout. The random-code RNN (`jaxbounds.qstr.code_rnn`) violates the bound, whatever the
    constant.
    """
    return N / (lipschitz**2 * math.log1p(width))


def repaired_norm_lower_bound(*, N: int, lipschitz: float) -> float:
    """Return N / L^2, the repaired lower bound on |U|_F^2, up to a constant factor.

    The set {(U-> h->, U<- h<-)} has Gaussian width at most sqrt(2) r_h |U|_F. Sudakov's inequality
    then bounds the set's packing number from above. The proof of Proposition 35 shows that the
    set's packing number is at least exp(c N). The bound does not depend on d_h, so Theorem 9's
    condition d_h <= exp(N^c) is superfluous.
    """
    return N / lipschitz**2


def sudakov_log_packing(frobenius_norm: float, separation: float, /) -> float:
    """Bound the log packing number of {U h: |h->|, |h<-| <= 1} at distance `separation`.

    The proof compares a packing of M points with M independent standard normal numbers. For M >= 2,
    the maximum of these numbers has a mean of at least sqrt(log M / (pi log 2)). Therefore
    `separation` times sqrt(log M / (2 pi log 2)) is at most sqrt(2) |U|_F, an upper bound on the
    Gaussian width of the set.
    """
    return 4 * math.pi * math.log(2) * (frobenius_norm / separation) ** 2


def unlearned_risk(product: float, /, *, N: int) -> float:
    """Return a lower bound on the risk (q = 1) of every RNN with L^2 |U|_F^2 <= product, r_h = 1.

    Proof: let r be the risk. Fix a position j, its token x_j, and the position t_i of the relevant
    token for every i except j. For some choice of t_i (i != j), the risk averaged over t_j != j is
    at most r' = r N/(N - 1). The predictions at position j are L-Lipschitz in V = U h_j. The set {U
    h} has a net of fineness s/L whose log size is at most S L^2 |U|_F^2/s^2 (`sudakov_log_packing`,
    S = 4 pi log 2). The net's point nearest to V determines N - 1 independent normal tokens up to
    sqrt(r') + s on average. The rate-distortion function of normal tokens then shows that the log
    size of the net is at least (N - 1) log 1/(sqrt(r') + s). Let tau solve sqrt(r') = (1 - tau)
    e^{-tau/2}. At s = tau e^{-tau/2}, the two bounds on the log size show L^2 |U|_F^2 >= (N - 1)
    tau^3 e^{-tau}/(2 S). If product = 0, the lower bound is 1 - 1/N, the risk of a network that is
    right at position j only if t_j = j.

    Raises:
        Refused: if N < 2 or the product is negative.
    """
    if N < 2 or not product >= 0:
        raise Refused(
            f"N={N} and product={product} (L^2 |U|_F^2), expected N >= 2 tokens and product >= 0. "
            f"Try N=2"
        )
    cube = 2 * sudakov_log_packing(1.0, 1.0) * product / (N - 1)
    # For tau >= 1, any risk may be reached.
    if cube >= math.exp(-1):
        return 0.0
    # The cube root of tau^3 e^{-tau} is tau e^{-tau/3}, and Lambert's W inverts w e^w.
    tau = -3 * float(scipy.special.lambertw(-(cube ** (1 / 3)) / 3).real)
    return (1 - 1 / N) * (1 - tau) ** 2 * math.exp(-tau)


def shortest_length(product: float, /, *, risk: float) -> int:
    """Return the least N at which the lower bound `unlearned_risk(product)` is at least `risk`.

    Raises:
        Refused: if `risk` is not between 0 and 1.
    """
    if not 0 < risk < 1:
        raise Refused(f"risk={risk}, expected a number between 0 and 1. Try risk=0.5")
    high = 2
    while unlearned_risk(product, N=high) < risk:
        high *= 2
    # The length `low` is always too short, or 1.
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if unlearned_risk(product, N=middle) >= risk else (middle, high)
    return high


def weight_norm_lower_bound(
    lipschitz_norm_square: Float[Array, ""] | float, depth: int, /
) -> Float[Array, ""] | float:
    """Bound |vec Theta|^2 from below by depth * (L^2 |U|_F^2)^{1/depth}.

    The proof applies the inequality of arithmetic and geometric means to the norms of the layers.
    """
    return depth * lipschitz_norm_square ** (1.0 / depth)


def lipschitz_and_norm(
    U: Float[Array, "m dh"], layers: Sequence[Layer], /
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the product L of the operator norms of W_2, .., W_{L_y}, and |vec Theta|^2."""
    lipschitz = jnp.prod(jnp.stack([spectral_norm(jnp.asarray(W)) for W, _ in layers]))
    return lipschitz, jnp.sum(U**2) + sum(jnp.sum(W**2) + jnp.sum(b**2) for W, b in layers)


def sample_exponent(*, depth: int, width_exponent: float = 0.0, repaired: bool = True) -> float:
    """Return the exponent c_1 of Theorem 9.

    Theorem 9 says that learners that minimise the norm fail if n is below a constant times N^{c_1}.
    Memorising n labels needs only |vec Theta|^2 = O(n^3) (Lemma 36). A small risk, however, needs
    |vec Theta|^2 of order (N / log d_h)^{1/depth} with d_h <= exp(N^c) by the printed Proposition
    8, and of order N^{1/depth} by the repaired one. `depth` is the number L_y of layers of the
    readout, and `width_exponent` is c.

    Raises:
        Refused: if the depth is below 2 or c is outside [0, 1).
    """
    if depth < 2 or not 0 <= width_exponent < 1:
        raise Refused(
            f"depth={depth} and c={width_exponent}, expected depth >= 2 and 0 <= c < 1"
            " (Theorem 9). Try depth=2"
        )
    gained = 1.0 if repaired else 1.0 - width_exponent
    return gained / (3 * depth)
