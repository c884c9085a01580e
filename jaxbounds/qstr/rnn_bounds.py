"""Lower bounds on recurrent networks: Proposition 8, printed and repaired, and Theorem 9's chain.

All constants are hidden in the paper; those that its own proof yields are explicit here where a
function says so.
"""

import math
from collections.abc import Sequence

import jax.numpy as jnp
import scipy
from jaxtyping import Array, Float

from jaxbounds.numerics.norms import spectral_norm
from jaxbounds.qstr.relu_networks import Layer


def width_lower_bound(*, N: int, lipschitz: float, operator_norm: float) -> float:
    """N / log(1 + L^2 |U|_op^2): dh is at least a constant times this (Proposition 8, valid)."""
    return N / math.log1p((lipschitz * operator_norm) ** 2)


def printed_norm_lower_bound(*, N: int, lipschitz: float, width: int) -> float:
    """N / (L^2 log(1 + dh)), which Proposition 8 claims |U|_op^2 to exceed up to a constant: false.

    The random-code RNN (`jaxbounds.qstr.code_rnn`) violates it at any constant.
    """
    return N / (lipschitz**2 * math.log1p(width))


def repaired_norm_lower_bound(*, N: int, lipschitz: float) -> float:
    """N / L^2: |U|_F^2 is at least a constant times this, with no logarithm.

    {(U-> h->, U<- h<-)} has Gaussian width at most sqrt(2) r_h |U|_F; Sudakov's inequality then
    bounds its packing number, which the proof of Proposition 35 shows to be exp(c N). It does not
    ask how large dh is, so that Theorem 9's d_h <= exp(N^c) is superfluous.
    """
    return N / lipschitz**2


def sudakov_log_packing(frobenius_norm: float, separation: float, /) -> float:
    """Upper bound on log packing of {U h: |h->|, |h<-| <= 1} at distance `separation`: explicit.

    Comparison with M independent normals, whose maximum has mean >= sqrt(log M / (pi log 2)) for
    M >= 2, gives separation sqrt(log M / (2 pi log 2)) <= sqrt(2) |U|_F, the width of that set.
    """
    return 4 * math.pi * math.log(2) * (frobenius_norm / separation) ** 2


def unlearned_risk(product: float, /, *, N: int) -> float:
    """The least risk on 1STR of RNNs with L^2 |U|_F^2 <= product and r_h = 1: explicit.

    Some position j, x_j and t_{-j} have risk at most r' = r N/(N - 1) on average over the other
    t_j = k, where the predictions are L-Lipschitz in V = U h_j. A net of {U h} of fineness s/L has
    log size at most S L^2 |U|_F^2/s^2 (`sudakov_log_packing`, S = 4 pi log 2), and its nearest
    point to V gives N - 1 independent normal tokens up to sqrt(r') + s on average; the
    rate-distortion function of a normal asks for log size >= (N - 1) log 1/(sqrt(r') + s). The best
    s is tau e^{-tau/2} for sqrt(r') = (1 - tau) e^{-tau/2}, and then L^2 |U|_F^2 >= (N - 1) tau^3
    e^{-tau}/(2 S). At product = 0 it is 1 - 1/N, the risk of reading x_j where t_j = j.

    Raises:
        ValueError: if N < 2 or the product is negative.
    """
    if N < 2 or not product >= 0:
        raise ValueError(f"N >= 2 tokens and a product >= 0 are needed, got {N} and {product}")
    cube = 2 * sudakov_log_packing(1.0, 1.0) * product / (N - 1)
    if cube >= math.exp(-1):  # tau >= 1: any risk may be reached
        return 0.0
    # tau e^{-tau/3} is the cube root, and W inverts w e^w.
    tau = -3 * float(scipy.special.lambertw(-(cube ** (1 / 3)) / 3).real)
    return (1 - 1 / N) * (1 - tau) ** 2 * math.exp(-tau)


def shortest_length(product: float, /, *, risk: float) -> int:
    """The least N at which `unlearned_risk(product)` reaches the risk. Explicit.

    Raises:
        ValueError: if the risk is not between 0 and 1.
    """
    if not 0 < risk < 1:
        raise ValueError(f"a risk between 0 and 1 is needed, got {risk}")
    high = 2
    while unlearned_risk(product, N=high) < risk:
        high *= 2
    low = high // 2  # too short, or 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if unlearned_risk(product, N=middle) >= risk else (middle, high)
    return high


def weight_norm_lower_bound(
    lipschitz_norm_square: Float[Array, ""] | float, depth: int, /
) -> Float[Array, ""] | float:
    """The bound depth * (L^2 |U|_F^2)^{1/depth} <= |vec Theta|^2, by AM-GM over layers."""
    return depth * lipschitz_norm_square ** (1.0 / depth)


def lipschitz_and_norm(
    U: Float[Array, "m dh"], layers: Sequence[Layer], /
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """(L, |vec Theta|^2) for L the product of the operator norms of W_2, .., W_{L_y}."""
    lipschitz = jnp.prod(jnp.stack([spectral_norm(jnp.asarray(W)) for W, _ in layers]))
    return lipschitz, jnp.sum(U**2) + sum(jnp.sum(W**2) + jnp.sum(b**2) for W, b in layers)


def sample_exponent(*, depth: int, width_exponent: float = 0.0, repaired: bool = True) -> float:
    """c_1 of Theorem 9: min-norm learners fail while n is below a constant times N^{c_1}.

    Memorising costs |vec|^2 = O(n^3) (Lemma 36); generalising costs (N / log dh)^{1/depth} with the
    printed Proposition 8 and dh <= exp(N^c), N^{1/depth} with the repaired one.

    Args:
        depth: L_y.
        width_exponent: c, of dh <= exp(N^c).
        repaired: which form of Proposition 8 to use.

    Raises:
        ValueError: if the depth is below 2 or c is outside [0, 1).
    """
    if depth < 2 or not 0 <= width_exponent < 1:
        raise ValueError(
            f"Theorem 9 needs depth >= 2 and 0 <= c < 1, got depth={depth}, c={width_exponent}"
        )
    gained = 1.0 if repaired else 1.0 - width_exponent
    return gained / (3 * depth)
