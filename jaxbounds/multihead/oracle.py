"""The oracle parameters U*, W* of DM1 and the margins that the paper derives from them.

Patterns are the rows mu_+, mu_-, nu_1, ..., nu_M: orthogonal, each of norm S. Every function
returns a value, with explicit constants; scalars may be traced. `sparsity` is zeta.
"""

import math

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

Patterns = Float[Array, "patterns d"]


def oracle_classifier(patterns: Patterns, /) -> Float[Array, " d"]:
    """u* = mu_+ - mu_-."""
    return patterns[0] - patterns[1]


def oracle_projection(patterns: Patterns, length: int, /) -> Float[Array, "T d"]:
    """U* = 1_T u*^T, eq. (105); ||U*||_F = S sqrt(2 T)."""
    return jnp.ones((length, 1)) * oracle_classifier(patterns)[None, :]


def oracle_weights(patterns: Patterns, /) -> Float[Array, "d d"]:
    """W* = mu_+ mu_+^T + mu_- mu_-^T + sum_l nu_l (mu_+ + mu_-)^T, eq. (104).

    ||W*||_F = S^2 sqrt(2 (M + 1)) and ||W*|| = S^2 sqrt(2 M + 1).
    """
    classes = patterns[:2]
    return classes.T @ classes + jnp.outer(jnp.sum(patterns[2:], 0), jnp.sum(classes, 0))


def oracle_direction(patterns: Patterns, length: int, /) -> dict[str, Array]:
    """U* and W*, each of norm one: theta_opt of eq. (9), theta* of Lemma 13 where alpha > 0."""
    projection, weights = oracle_projection(patterns, length), oracle_weights(patterns)
    return {
        "U": projection / jnp.linalg.norm(projection),
        "W": weights / jnp.linalg.norm(weights),
    }


def relevance_scores(
    tokens: Float[Array, "T d"], weights: Float[Array, "d d"], /
) -> Float[Array, "T T"]:
    """Row t is r_t = X W^T x_t: the softmax logits of query t."""
    return tokens @ weights @ tokens.T


def relevance_formula(
    patterns: Patterns,
    relevant: Bool[Array, " T"],
    noise: Float[Array, "T d"],
    label: ArrayLike,
    /,
) -> Float[Array, "T T"]:
    """The relevance scores under W* in terms of the noise, eqs. (108) and (110).

    Args:
        patterns: orthogonal, of norm S.
        relevant: the mask of R.
        noise: z_t; what it holds at relevant tokens does not matter.
        label: y, decides mu_y.
    """
    square = jnp.sum(patterns[0] ** 2)
    own = jnp.where(jnp.asarray(label) > 0, patterns[0], patterns[1])
    along_own, along = noise @ own, noise @ patterns[:2].T
    along_nu = jnp.sum(noise @ patterns[2:].T, axis=1)
    both = jnp.sum(along, axis=1)
    query = relevant[:, None] * jnp.ones_like(relevant)[None, :]
    token = relevant[None, :] * jnp.ones_like(relevant)[:, None]
    length = relevant.shape[0]
    as_rows = lambda column: jnp.broadcast_to(column[:, None], (length, length))
    from_relevant = jnp.where(token, square**2, square * as_rows(along_own).T)
    on_relevant = square**2 + square * as_rows(along_own + along_nu)
    off_relevant = along @ along.T + along_nu[:, None] * both[None, :] + square * as_rows(both).T
    return jnp.where(query, from_relevant, jnp.where(token, on_relevant, off_relevant))


def relevant_score(signal: ArrayLike, noise_mu: ArrayLike, noise_nu: ArrayLike, /) -> ArrayLike:
    """A = S^4 - S^2 (Z_mu + Z_nu), eq. (129): at most the score of a relevant token."""
    return signal**4 - signal**2 * (noise_mu + noise_nu)


def irrelevant_score(signal: ArrayLike, noise_mu: ArrayLike, noise_nu: ArrayLike, /) -> ArrayLike:
    """B = 2 (Z_mu^2 + Z_mu Z_nu + S^2 Z_mu), eq. (129): at least an irrelevant token's score."""
    return 2 * (noise_mu**2 + noise_mu * noise_nu + signal**2 * noise_mu)


def gamma_linear(
    signal: ArrayLike, sparsity: ArrayLike, noise_mu: ArrayLike, /, *, T: ArrayLike
) -> ArrayLike:
    """gamma_lin of eq. (132): the margin of the *oracle* linear classifier, not the largest one."""
    useful = sparsity - 2 * (1 - sparsity) * noise_mu / signal**2
    return signal * jnp.sqrt(T / 2) * useful


def gamma_attention(
    signal: ArrayLike, noise_mu: ArrayLike, tolerance: ArrayLike, /, *, T: ArrayLike
) -> ArrayLike:
    """gamma_attn(epsilon) of eq. (11); epsilon = 0 gives the limit S sqrt(T / 2)."""
    useful = signal**2 * (1 - tolerance) - 2 * tolerance * noise_mu
    return jnp.sqrt(T / 2) / signal * useful


def attention_part(
    signal: ArrayLike, sparsity: ArrayLike, noise: ArrayLike, /, *, T: ArrayLike, M: ArrayLike
) -> ArrayLike:
    """The first term of gamma*, eq. (7), with `noise` = Z_mu v Z_nu."""
    main = sparsity * signal**4 - 7 * noise * signal**2 - 12 * noise**2 - 16 * noise**3 / signal**2
    return T * (1 - sparsity) * sparsity * main / (4 * jnp.sqrt(2 * (M + 1.0)))


def deviation_part(
    deviation: ArrayLike, signal: ArrayLike, noise_norm: ArrayLike, /, *, T: ArrayLike
) -> ArrayLike:
    """P T^{5/2} (S + Z)^3, the second term of gamma*, eq. (7)."""
    return deviation * T**2.5 * (signal + noise_norm) ** 3


def deviation_part_sharp(
    deviation: ArrayLike, radius: ArrayLike, /, *, T: ArrayLike, M: ArrayLike
) -> ArrayLike:
    """P T R^3 ||W*|| / ||W*||_F: since ||X^T phi'(0) X|| <= R^2 (sharpening S13)."""
    return deviation * T * radius**3 * jnp.sqrt((2 * M + 1.0) / (2 * M + 2.0))


def gamma_star(
    signal: ArrayLike,
    sparsity: ArrayLike,
    noise_mu: ArrayLike,
    noise_nu: ArrayLike,
    noise_norm: ArrayLike,
    deviation: ArrayLike,
    /,
    *,
    T: ArrayLike,
    M: ArrayLike,
) -> ArrayLike:
    """gamma* of eqs. (7), (119): S, zeta, Z_mu, Z_nu, Z and P = ||p|| in this order.

    It bounds the NTK margin where alpha = +-1 and U^(1) = alpha 1_T ((zeta / 4) u* + p)^T.
    """
    largest = jnp.maximum(jnp.asarray(noise_mu), jnp.asarray(noise_nu))
    return (
        attention_part(signal, sparsity, largest, T=T, M=M)
        - deviation_part(deviation, signal, noise_norm, T=T)
        + gamma_linear(signal, sparsity, noise_mu, T=T)
    )


def saturation_scale(
    signal: ArrayLike, sparsity: ArrayLike, tolerance: ArrayLike, /, *, M: int
) -> ArrayLike:
    """The least Gamma of Proposition 3: 8 sqrt(2 (M+1)) / (3 S^2) log((1/zeta - 1) / epsilon).

    It is negative where the logarithm is; the proposition needs its positive part.
    """
    odds = jnp.log((1 / sparsity - 1) / tolerance)
    return 8 * math.sqrt(2 * (M + 1)) / (3 * signal**2) * odds
