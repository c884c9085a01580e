"""The oracle parameters U*, W* of DM1, their norms and their relevance scores.

Patterns are the rows mu_+, mu_-, nu_1, ..., nu_M: orthogonal, each of norm S.
"""

from dataclasses import dataclass

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from jaxbounds.multihead.data import SparseContext

Patterns = Float[Array, "patterns d"]
Real = Array | float


@dataclass(frozen=True, kw_only=True)
class Assumption3:
    """The constants of DM1 under Assumption 3, in the paper's letters.

    Attributes:
        S: the signal strength, the norm of each pattern.
        zeta: the sparsity, the share of relevant tokens.
        Z_mu: the largest |<z, mu>| of the noise z, over mu = mu_+ and mu_-.
        Z_nu: M times the largest |<z, nu>|.
        Z: the largest norm ||z|| of the noise.
    """

    S: Real
    zeta: Real
    Z_mu: Real
    Z_nu: Real
    Z: Real
    T: Real
    M: Real

    @classmethod
    def of(cls, model: SparseContext, /) -> "Assumption3":
        """Return the constants of Assumption 3 that the data model `SparseContext` guarantees."""
        Z_mu, Z_nu, Z = model.noise_mu, model.noise_nu, model.noise_norm
        S, zeta, T, M = model.signal, model.sparsity, model.tokens, model.distractors
        return cls(S=S, zeta=zeta, Z_mu=Z_mu, Z_nu=Z_nu, Z=Z, T=T, M=M)

    @property
    def R(self) -> Real:
        """sqrt(S^2 + Z^2 + 2 Z_nu / M), a bound on every token's norm."""
        return jnp.sqrt(self.S**2 + self.Z**2 + 2 * self.Z_nu / jnp.maximum(self.M, 1))

    @property
    def noise(self) -> Real:
        """The larger of the noise bounds Z_mu and Z_nu."""
        return jnp.maximum(jnp.asarray(self.Z_mu), jnp.asarray(self.Z_nu))


def oracle_classifier(patterns: Patterns, /) -> Float[Array, " d"]:
    """Return u* = mu_+ - mu_-."""
    return patterns[0] - patterns[1]


def oracle_projection(patterns: Patterns, length: int, /) -> Float[Array, "T d"]:
    """Return U* = 1_T u*^T, equation (105)."""
    return jnp.ones((length, 1)) * oracle_classifier(patterns)[None, :]


def oracle_weights(patterns: Patterns, /) -> Float[Array, "d d"]:
    """Return W* = mu_+ mu_+^T + mu_- mu_-^T + sum_l nu_l (mu_+ + mu_-)^T, equation (104)."""
    classes = patterns[:2]
    return classes.T @ classes + jnp.outer(jnp.sum(patterns[2:], 0), jnp.sum(classes, 0))


def projection_norm(dm1: Assumption3, /) -> Real:
    """Return ||U*||_F = S sqrt(2 T), equation (9); equation (123) prints S sqrt(T)."""
    return dm1.S * jnp.sqrt(2.0 * dm1.T)


def weights_norm(dm1: Assumption3, /) -> Real:
    """Return ||W*||_F = S^2 sqrt(2 (M + 1)), equation (9)."""
    return dm1.S**2 * jnp.sqrt(2.0 * (dm1.M + 1))


def weights_spectral_norm(dm1: Assumption3, /) -> Real:
    """Return ||W*|| = S^2 sqrt(2 M + 1)."""
    return dm1.S**2 * jnp.sqrt(2.0 * dm1.M + 1)


def oracle_direction(patterns: Patterns, length: int, /) -> dict[str, Array]:
    """Return U* and W*, each scaled to norm one: theta_opt of equation (9).

    For a head with alpha > 0, the pair (U*, W*) is also Lemma 13's theta*, up to the factor 1 /
    sqrt(H).
    """
    projection, weights = oracle_projection(patterns, length), oracle_weights(patterns)
    return {
        "U": projection / jnp.linalg.norm(projection),
        "W": weights / jnp.linalg.norm(weights),
    }


def separating_direction(
    patterns: Patterns, step_sizes: Float[Array, " H"], length: int, /
) -> dict[str, Array]:
    """Return theta* of Lemma 13, of norm sqrt(2).

    The part of head h is (U*, sign(alpha_h) W*) / sqrt(H), with U* and W* scaled to norm one.
    """
    one, heads = oracle_direction(patterns, length), step_sizes[:, None, None]
    signs = {"U": jnp.ones_like(heads), "W": jnp.sign(heads)}
    return {name: signs[name] * one[name][None] / len(step_sizes) ** 0.5 for name in signs}


def relevance_scores(
    tokens: Float[Array, "T d"], weights: Float[Array, "d d"], /
) -> Float[Array, "T T"]:
    """Return the relevance scores; row t is r_t = X W^T x_t, the softmax logits of query t."""
    return tokens @ weights @ tokens.T


def relevance_formula(
    patterns: Patterns,
    relevant: Bool[Array, " T"],
    noise: Float[Array, "T d"],
    label: ArrayLike,
    /,
) -> Float[Array, "T T"]:
    """Compute the relevance scores under W* by a formula in the noise, equations (108) and (110).

    `patterns` are orthogonal rows of norm S, and `relevant` is the mask of the relevant tokens. The
    function ignores the rows of `noise` that belong to relevant tokens.
    """
    square = jnp.sum(patterns[0] ** 2)
    own = jnp.where(jnp.asarray(label) > 0, patterns[0], patterns[1])
    along_own, along = noise @ own, noise @ patterns[:2].T
    along_nu = jnp.sum(noise @ patterns[2:].T, axis=1)
    both = jnp.sum(along, axis=1)
    query, token = relevant[:, None], relevant[None, :]
    from_relevant = jnp.where(token, square**2, square * along_own[None, :])
    on_relevant = square**2 + square * (along_own + along_nu)[:, None]
    off_relevant = along @ along.T + along_nu[:, None] * both[None, :] + square * both[None, :]
    return jnp.where(query, from_relevant, jnp.where(token, on_relevant, off_relevant))


def relevant_score(dm1: Assumption3, /) -> Real:
    """Return A = S^4 - S^2 (Z_mu + Z_nu) of (129), a lower bound on a relevant token's score."""
    return dm1.S**4 - dm1.S**2 * (dm1.Z_mu + dm1.Z_nu)


def irrelevant_score(dm1: Assumption3, /) -> Real:
    """Return B = 2 (Z_mu^2 + Z_mu Z_nu + S^2 Z_mu) of (129), a bound on irrelevant scores."""
    return 2 * dm1.Z_mu * (dm1.Z_mu + dm1.Z_nu + dm1.S**2)
