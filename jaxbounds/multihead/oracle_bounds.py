"""Margins and scales of weights that the paper derives from the oracle U*, W* (Section 5).

The argument `dm1` holds the constants of Assumption 3, `size` is P, the norm of the first phase's
deviation p, and `tolerance` is epsilon.
"""

from dataclasses import replace
from typing import NamedTuple

import jax.numpy as jnp

from jaxbounds.multihead.oracle import (
    Assumption3,
    Real,
    irrelevant_score,
    relevant_score,
    weights_norm,
    weights_spectral_norm,
)


def gamma_linear(dm1: Assumption3, /) -> Real:
    """Return gamma_lin of (132), the margin that the *oracle* linear classifier is certain to have.

    The best linear classifier may have a margin larger than gamma_lin.
    """
    useful = dm1.zeta - 2 * (1 - dm1.zeta) * dm1.Z_mu / dm1.S**2
    return dm1.S * jnp.sqrt(dm1.T / 2) * useful


def gamma_attention(dm1: Assumption3, tolerance: Real, /) -> Real:
    """Return gamma_attn(epsilon) of equation (11); epsilon = 0 gives the limit S sqrt(T / 2)."""
    useful = dm1.S**2 * (1 - tolerance) - 2 * tolerance * dm1.Z_mu
    return jnp.sqrt(dm1.T / 2) / dm1.S * useful


def term_one_bounds(dm1: Assumption3, /) -> tuple[Real, Real]:
    """Return the lower bounds (112) and (113) on the two parts of Term I in (107).

    Term I is the part of y <grad_W Phi, W*> that does not contain the deviation p. The bounds (112)
    and (113) are for U = U*.
    """
    S, z, m, v, off = dm1.S, dm1.zeta, dm1.Z_mu, dm1.Z_nu, 1 - dm1.zeta
    first = (
        z * S**6
        - z * off * (m + v) * S**4
        - 2 * off * (z + 2 * off) * m**2 * S**2
        - 4 * off**2 * m**2 * (m + v)
    )
    second = (
        -(z**2) * S**6
        - z * off * (4 * m + z * v) * S**4
        - 2 * off**2 * ((2 + z) * m + 2 * z * v) * m * S**2
        - 4 * off**3 * m**2 * (m + v)
    )
    return dm1.T * first, dm1.T * second


def term_two_bound(dm1: Assumption3, size: Real, /) -> Real:
    """Return the upper bound (114) on Term II in (107), the part of the margin due to p."""
    z, S, far = dm1.zeta, dm1.S, dm1.S + dm1.Z
    lengths = (z * S + (1 - z) * far) * (z * S**2 + (1 - z) * far**2)
    return weights_norm(dm1) * size * dm1.T**2.5 * lengths


def attention_part(dm1: Assumption3, /) -> Real:
    """Return the first term of the margin gamma* in equation (7)."""
    z, S, Z = dm1.zeta, dm1.S, dm1.noise
    main = z * S**4 - 7 * Z * S**2 - 12 * Z**2 - 16 * Z**3 / S**2
    return dm1.T * (1 - z) * z * main / (4 * jnp.sqrt(2 * (dm1.M + 1.0)))


def deviation_part(dm1: Assumption3, size: Real, /) -> Real:
    """Return P T^{5/2} (S + Z)^3, the second term of the margin gamma* in equation (7)."""
    return size * dm1.T**2.5 * (dm1.S + dm1.Z) ** 3


def deviation_part_sharp(dm1: Assumption3, size: Real, /) -> Real:
    """Return P T R^3 ||W*|| / ||W*||_F, the second term of the margin gamma* in sharpening S13.

    The proof of sharpening S13 uses ||X^T phi'(0) X|| <= R^2.
    """
    return size * dm1.T * dm1.R**3 * weights_spectral_norm(dm1) / weights_norm(dm1)


def weights_margin_bound(dm1: Assumption3, size: Real, /) -> Real:
    """Return a lower bound on y <grad_W Phi, W*> / ||W*||, from the expression in braces in (115).

    The bound is valid at alpha = 1, for U^(1) centred at the printed (zeta / 2) u*. Equation (116)
    multiplies the bound by |alpha| and then by 1/2; the result is the first two terms of gamma*.
    """
    z, S, Z = dm1.zeta, dm1.S, dm1.noise
    main = z * S**6 - 7 * Z * S**4 - 12 * Z**2 * S**2 - 16 * Z**3
    loss = 2 * weights_norm(dm1) * size * dm1.T**2.5 * (S + dm1.Z) ** 3
    return (dm1.T * (1 - z) * z / 2 * main - loss) / weights_norm(dm1)


def gamma_star(dm1: Assumption3, size: Real, /) -> Real:
    """Return gamma* of (7) and (119), a lower bound on the NTK margin of Lemma 13's direction.

    The bound is valid if alpha = +-1 and U^(1) = alpha 1_T ((zeta / 4) u* + p)^T.
    """
    return attention_part(dm1) - deviation_part(dm1, size) + gamma_linear(dm1)


def lemma_18(lowest: Real, share: Real, tolerance: Real, /) -> Real:
    """Return the least Gamma of Lemma 18, (2 / A) log((T / L - 1) / epsilon), with `share` = L / T.

    `lowest` is A, which bounds the scores of the L relevant tokens from below. The formula gives a
    negative Gamma if exactly one of A and the logarithm is negative. Lemma 18 is correct only for A
    > 0 and Gamma >= 0 (erratum E25).
    """
    return 2 / lowest * jnp.log((1 / share - 1) / tolerance)


def lemma_18_sharp(gap: Real, share: Real, tolerance: Real, /, *, exact: bool = False) -> Real:
    """Return log_+((T / L - 1) / epsilon) / (A - B), for any A > B (sharpening S14).

    `gap` is A - B, the least relevant score minus the largest irrelevant score. `share` is L / T,
    the share of relevant tokens, and `tolerance` is epsilon, the attention that irrelevant tokens
    may keep. If `exact` is set, 1 / epsilon - 1 replaces 1 / epsilon; this bound is an equality if
    the scores take only two values.
    """
    odds = 1 / jnp.asarray(tolerance)
    odds = jnp.maximum(odds - 1, 1e-300) if exact else odds
    return jnp.maximum(jnp.log((1 / share - 1) * odds), 0.0) / gap


def saturation_scale(dm1: Assumption3, tolerance: Real, /) -> Real:
    """Return Proposition 3's least Gamma, 8 sqrt(2 (M+1)) / (3 S^2) log((1/zeta - 1) / epsilon).

    The formula is Lemma 18's formula for the weights W_opt, with 3 S^4 / 4 as the lower bound A on
    relevant scores. The formula gives a negative Gamma if log((1/zeta - 1) / epsilon) is negative.
    Proposition 3 is true only if max(Gamma, 0) replaces Gamma.
    """
    return weights_norm(dm1) * lemma_18(0.75 * dm1.S**4, dm1.zeta, tolerance)


def saturation_scale_sharp(dm1: Assumption3, tolerance: Real, /) -> Real:
    """Return Proposition 3's Gamma from A - B in (129) with noise max(Z_mu, Z_nu) (sharpening S14).

    Here A - B must be positive. For Z_mu = Z_nu = S^2 / 8, this Gamma contains the number 16/7
    where the paper's Gamma contains 8/3.
    """
    alike = replace(dm1, Z_mu=dm1.noise, Z_nu=dm1.noise)
    gap = relevant_score(alike) - irrelevant_score(alike)
    return weights_norm(dm1) * lemma_18_sharp(gap, dm1.zeta, tolerance)


class TargetSlacks(NamedTuple):
    """The factors by which Section 5.3's target exceeds its requirements, as logarithms.

    A negative logarithm means that the target violates the requirement "quantity >= 1", with all
    hidden constants set to one.

    Attributes:
        saturates: the logarithm of S^2 H^{-p} C; the attention of the heads saturates if S^2 H^{-p}
            C is at least one.
        heads: the logarithm of H^c / (S^5 ||theta||^3), the requirement of equation (12) at c =
            1/2.
        heads_sharp: the logarithm of H^c / (S^3 ||theta||^2), which must be at least one if the
            sharpened bound S5 replaces the paper's.
        heads_product: the logarithm of H^c / (S^5 ||theta||_{2,inf} ||theta||^3), the requirement
            of equation (3) at c = 1/2.
    """

    saturates: Real
    heads: Real
    heads_sharp: Real
    heads_product: Real


def target_slacks(
    log_signal: Real,
    log_heads: Real,
    log_scale: Real,
    power: Real,
    log_n: Real,
    /,
    *,
    scaling: Real = 0.5,
) -> TargetSlacks:
    """Return the factors by which Section 5.3's target exceeds its requirements, as logarithms.

    The target is U_h = log(n) H^{c-1} / S U_opt, W_h = C H^{-p} W_opt.

    The arguments are log S, log H, log C, p, log n and c. S is the norm of the patterns, and H^{-c}
    is the model's normalization (c = 1/2 in the paper).
    """
    outer = jnp.log(log_n) - log_signal + (scaling - 0.5) * log_heads
    inner = log_scale + (0.5 - power) * log_heads
    length = jnp.logaddexp(2 * outer, 2 * inner) / 2
    heads = scaling * log_heads - 5 * log_signal - 3 * length
    return TargetSlacks(
        2 * log_signal + log_scale - power * log_heads,
        heads,
        scaling * log_heads - 3 * log_signal - 2 * length,
        heads - (length - log_heads / 2),  # equal heads: ||theta|| = sqrt(H) ||theta_h||
    )


def log_target_scale(log_heads: Real, power: Real, log_n: Real, /) -> Real:
    """Return log C for C = log(n)^{5/2} H^{p - 3/4}, where H^{1/2} = log(n)^5 C^{-2} H^{2 p - 1}.

    The text below equation (12) prints H^{p - 1/4} in place of H^{p - 3/4}.
    """
    return 2.5 * jnp.log(log_n) + (power - 0.75) * log_heads
