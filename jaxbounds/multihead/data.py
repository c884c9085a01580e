"""The data models DM1 (sparse context, Section 5) and DM2 (planted attention, Appendix G)."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxbounds.multihead.loss import Data
from jaxbounds.multihead.model import head_output
from jaxbounds.numerics.arrays import traced

Noise = Literal["uniform", "extreme", "none"]


def validate_data(data: Data, /, *, radius: float | None = None) -> None:
    """Check Assumption 1: labels in {-1, +1} and token norms at most R.

    Args:
        data: {"X": (n, T, d), "y": (n,)}.
        radius: R; not checked unless given.

    Raises:
        ValueError: for a wrong rank or length, NaN, other labels, or a longer token.
    """
    tokens, labels = np.asarray(data["X"]), np.asarray(data["y"])
    if tokens.ndim != 3 or labels.shape != tokens.shape[:1]:
        raise ValueError(
            f"data must be X of shape (n, T, d) with y of shape (n,), got {tokens.shape} and "
            f"{labels.shape}: add a leading axis for a single sequence"
        )
    if not np.all(np.isfinite(tokens)):
        raise ValueError("X holds NaN or infinity: remove those sequences")
    strangers = sorted(set(labels.tolist()) - {-1, 1})
    if strangers:
        raise ValueError(f"labels must be -1 or +1, got also {strangers[:5]}: map them, as 2 y - 1")
    if radius is not None:
        longest = float(np.max(np.linalg.norm(tokens, axis=-1), initial=0.0))
        if longest > radius * (1 + 1e-12):
            raise ValueError(
                f"Assumption 1 needs ||x_t|| <= R = {radius:g}, but a token has norm {longest:g}: "
                "raise R or rescale the data"
            )


@dataclass(frozen=True, kw_only=True)
class SparseContext:
    """DM1: `relevant` tokens carry the class pattern mu_y, the others a distractor plus noise.

    The patterns are the first M + 2 basis vectors times S (mu_+, mu_-, nu_1, ...), optionally
    rotated by the sampler. Noise is bounded: its coordinates along mu and nu are at most
    noise_mu / S and noise_nu / (M S), so that |<z, mu>| <= noise_mu, |<z, nu>| <= noise_nu / M.
    Coordinates outside the patterns' span are bounded like those along nu.

    Attributes:
        tokens: T.
        dimension: d >= M + 2.
        relevant: |R| = zeta T, an integer between 1 and T.
        distractors: M.
        signal: S.
        noise_mu: Z_mu.
        noise_nu: Z_nu.
        noise: how coordinates fill their bounds: "uniform", "extreme" (all at plus or minus the
            bound, the adversarial case) or "none".

    Raises:
        ValueError: if the sizes contradict each other or the kind of noise is unknown.
    """

    tokens: int
    dimension: int
    relevant: int
    distractors: int
    signal: float = 2.0
    noise_mu: float = 0.1
    noise_nu: float = 0.1
    noise: Noise = "uniform"

    def __post_init__(self) -> None:
        """Check Assumption 3's arithmetic."""
        if self.noise not in get_args(Noise):
            raise ValueError(f"noise must be one of {', '.join(get_args(Noise))}: {self.noise!r}")
        if not (traced(self.relevant) or 1 <= self.relevant <= self.tokens):
            raise ValueError(
                f"zeta T must be an integer from 1 to T = {self.tokens}, got {self.relevant}"
            )
        if self.dimension < self.distractors + 2:
            raise ValueError(
                f"d must be at least M + 2 = {self.distractors + 2} for orthogonal patterns, got "
                f"{self.dimension}"
            )

    @property
    def sparsity(self) -> float:
        """Zeta."""
        return self.relevant / self.tokens

    @property
    def noise_norm(self) -> float:
        """Z: the largest norm that the noise's bounds allow."""
        if self.noise == "none":
            return 0.0
        other = self.noise_nu / max(self.distractors, 1)
        squares = 2 * self.noise_mu**2 + (self.dimension - 2) * other**2
        return math.sqrt(squares) / self.signal

    @property
    def radius(self) -> float:
        """R = sqrt(S^2 + Z^2 + 2 Z_nu / M), Assumption 3."""
        cross = 0.0 if self.noise == "none" else 2 * self.noise_nu / max(self.distractors, 1)
        return math.sqrt(self.signal**2 + self.noise_norm**2 + cross)

    def patterns(self) -> Float[Array, "patterns d"]:
        """mu_+, mu_-, nu_1, ..., nu_M as rows, each of norm S."""
        return self.signal * jnp.eye(self.distractors + 2, self.dimension)

    def sample(self, key: jax.Array, n: int, /) -> Data:
        """N sequences with equally likely labels and random positions of the relevant tokens."""
        return self.sample_marked(key, n)[0]

    def sample_marked(self, key: jax.Array, n: int, /) -> tuple[Data, Bool[Array, "n T"]]:
        """The same, with the mask of the relevant tokens R."""
        label_key, place_key, distractor_key, noise_key = jax.random.split(key, 4)
        patterns = self.patterns()
        labels = jax.random.rademacher(label_key, (n,), dtype=int)
        classes = patterns[jnp.where(labels > 0, 0, 1)]
        shape = (n, self.tokens)
        ranks = jnp.argsort(jax.random.uniform(place_key, shape), axis=1)
        count = max(self.distractors, 1)
        choice = jax.random.randint(distractor_key, shape, 0, count)
        mute = 0.0 if self.distractors == 0 else 1.0
        distractor = mute * patterns[jnp.minimum(2 + choice, patterns.shape[0] - 1)]
        along = jnp.arange(self.dimension)
        bound = jnp.where(along < 2, self.noise_mu, self.noise_nu / count) / self.signal
        noise = jax.random.uniform(noise_key, (*shape, self.dimension), minval=-1.0)
        filled = {"uniform": noise, "extreme": jnp.sign(noise), "none": jnp.zeros_like(noise)}
        relevant = ranks < self.relevant
        others = distractor + filled[self.noise] * bound[None, None, :]
        tokens = jnp.where(relevant[:, :, None], classes[:, None, :], others)
        return {"X": tokens, "y": labels}, relevant


@dataclass(frozen=True, kw_only=True)
class PlantedAttention:
    """DM2: standard normal tokens, labelled by the sign of a single-head teacher.

    Sequences whose teacher output is at most `threshold` in absolute value are dropped.

    Attributes:
        tokens: T.
        dimension: d.
        threshold: 0.2 in the paper.
    """

    tokens: int
    dimension: int
    threshold: float = 0.2

    def teacher(self, key: jax.Array, /) -> dict[str, Array]:
        """Standard normal U* of shape (T, d) and W* of shape (d, d) (their law is not stated)."""
        projection_key, weights_key = jax.random.split(key)
        return {
            "U": jax.random.normal(projection_key, (self.tokens, self.dimension)),
            "W": jax.random.normal(weights_key, (self.dimension, self.dimension)),
        }

    def sample(self, key: jax.Array, teacher: dict[str, Array], n: int, /) -> Data:
        """N sequences; 2 n + 64 are drawn and the first n above the threshold are kept.

        If fewer pass (a teacher with tiny outputs), the rest are those with the largest output.
        """
        tokens = jax.random.normal(key, (2 * n + 64, self.tokens, self.dimension))
        output = jax.vmap(head_output, in_axes=(None, None, 0))(teacher["U"], teacher["W"], tokens)
        order = jnp.argsort(-jnp.minimum(jnp.abs(output), self.threshold), stable=True)[:n]
        labels = jnp.where(output[order] > 0, 1, -1)
        return {"X": tokens[order], "y": labels}
