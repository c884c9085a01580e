"""Positional encodings w_1, ..., w_N: draw them, and measure their coherence (Assumption 3)."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused


def published_encoding_dimension(N: int, /) -> int:
    """Return floor(5 log N), the encoding dimension of the paper's experiments.

    Raises:
        Refused: if N < 2, because floor(5 log N) is then 0 or undefined.
    """
    if N < 2:
        raise Refused(
            f"N={N}, expected at least 2 for the paper's encoding dimension int(5 log N). Try N=2"
        )
    return int(5 * math.log(N))


def rademacher_encodings(key: Array, N: int, de: int, /) -> Float[Array, "N de"]:
    """Draw N vertices of the hypercube {-1, +1}^de / sqrt(de), with replacement.

    The encodings satisfy Assumption 3 with high probability only if de is about 16 log N. At the
    paper's own de = int(5 log N), the encodings almost never satisfy Assumption 3.
    """
    return jax.random.rademacher(key, (N, de)).astype(jnp.float32) / math.sqrt(de)


def greedy_signs(
    rng: np.random.Generator, N: int, de: int, /, *, target: float = 0.5, patience: int = 20_000
) -> np.ndarray:
    """Draw N sign vectors with |<s_i, s_j>| <= target * de for all pairs, as int8 of shape (N, de).

    `target` is the largest allowed coherence |<s_i, s_j>| / de, and `patience` is the largest
    number of candidates for each vector.

    Raises:
        Refused: if the target is outside [0, 1), or if `patience` candidates for a vector all
            exceed the target coherence.
    """
    if not 0 <= target < 1:
        raise Refused(f"target={target}, expected a coherence in [0, 1). Try target=0.5")
    kept, block = np.zeros((N, de), dtype=np.int64), 256
    for i in range(N):
        for _ in range(0, patience, block):
            candidates = 2 * rng.integers(0, 2, size=(block, de)) - 1
            fits = np.all(np.abs(candidates @ kept[:i].T) <= target * de, axis=1)
            if fits.any():
                kept[i] = candidates[np.argmax(fits)]
                break
        else:
            raise Refused(
                f"found only {i} of N={N} hypercube encodings with de={de} and coherence <= "
                f"target={target}: none of patience={patience} candidates for the next fits. Try a "
                "larger de, target or patience"
            )
    return kept.astype(np.int8)


def greedy_encodings(
    key: Array, N: int, de: int, /, *, target: float = 0.5, patience: int = 20_000
) -> Float[Array, "N de"]:
    """Return unit encodings `greedy_signs` / sqrt(de), drawn from a JAX key outside jit.

    Raises:
        Refused: if the target is outside [0, 1), or if `patience` candidates for a vector all
            exceed the target coherence.
    """
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    signs = greedy_signs(rng, N, de, target=target, patience=patience)
    return jnp.asarray(signs / math.sqrt(de), dtype=jnp.zeros(()).dtype)


def coherence(omega: Float[Array, "N de"], /, *, signed: bool = True) -> Float[Array, ""]:
    """Return the maximum of <w_i, w_j> over i != j, or of |<w_i, w_j>| if not `signed`.

    Attention needs only a signed coherence below 1. Assumption 3 needs an absolute coherence of at
    most 1/2.

    Raises:
        Refused: if there are fewer than two encodings.
    """
    N = omega.shape[0]
    if N < 2:
        raise Refused(
            f"N={N} encodings, expected at least 2, because coherence compares two. Try N=2"
        )
    gram = omega @ omega.T
    gram = gram if signed else jnp.abs(gram)
    return jnp.max(jnp.where(jnp.eye(N, dtype=bool), -jnp.inf, gram))


def satisfies_assumption_3(omega: Float[Array, "N de"], /, *, tolerance: float = 1e-6) -> Array:
    """Return whether |w_i| = 1 and |<w_i, w_j>| <= 1/2 for all i != j, up to rounding."""
    unit = jnp.all(jnp.abs(jnp.sum(omega**2, axis=1) - 1.0) <= tolerance)
    return unit & (coherence(omega, signed=False) <= 0.5 + tolerance)
