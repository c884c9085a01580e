"""Lower bounds on recurrent networks: Proposition 8, printed and repaired, and Theorem 9's chain.

All constants are hidden in the paper; those that its own proof yields are explicit here where a
function says so.
"""

import math
from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.norms import spectral_norm
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
