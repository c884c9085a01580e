"""The data models of the paper: DM1 (sparse context, Section 5) and DM2 (planted, Appendix G)."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.multihead.loss import Data
from jaxbounds.multihead.model import head_output
from jaxbounds.numerics.arrays import traced

Noise = Literal["uniform", "extreme", "none"]


def validate_data(data: Data, /, *, radius: float | None = None) -> None:
    """Check Assumption 1: labels are -1 or +1, and token norms are at most R.

    Args:
        data: {"X": (n, T, d), "y": (n,)}.
        radius: R, the largest allowed token norm; None skips the check of the norms.

    Raises:
        Refused: if an array has a wrong rank or length, or contains NaN, other labels, or a token
            longer than R.
    """
    tokens, labels = np.asarray(data["X"]), np.asarray(data["y"])
    if tokens.ndim != 3 or labels.shape != tokens.shape[:1]:
        raise Refused(
            f"data has X.shape={tokens.shape} and y.shape={labels.shape}, expected (n, T, d)"
            " and (n,). Try X[None] and y[None] for a single sequence"
        )
    if not np.all(np.isfinite(tokens)):
        raise Refused(
            f"X of shape={tokens.shape} holds NaN or infinity, expected finite tokens. Try removing"
            " the sequences concerned"
        )
    strangers = sorted(set(labels.tolist()) - {-1, 1})
    if strangers:
        raise Refused(
            f"y holds the labels={strangers[:5]}, expected -1 and +1 only. Try 2 * y - 1 for"
            " labels 0 and 1"
        )
    if radius is not None:
        longest = float(np.max(np.linalg.norm(tokens, axis=-1), initial=0.0))
        if longest > radius * (1 + 1e-12):
            raise Refused(
                f"radius={radius:g} is less than the largest token norm={longest:g}, expected"
                " ||x_t|| <= R (Assumption 1). Try a larger radius, or rescale the data"
            )


@dataclass(frozen=True, kw_only=True)
class SparseContext:
    """DM1: `relevant` tokens equal the class pattern mu_y; the other tokens are noisy distractors.

    The patterns are the first M + 2 basis vectors times S (mu_+, mu_-, nu_1, ...); a sampler may
    rotate them. The noise z along each mu has length at most noise_mu / S, so |<z, mu>| <=
    noise_mu. Along each nu, and along each coordinate outside the span of the patterns, the noise
    has length at most noise_nu / (M S).

    Attributes:
        tokens: T, number of tokens.
        dimension: d, dimension of a token, at least M + 2.
        relevant: |R| = zeta T, number of relevant tokens, an integer between 1 and T.
        distractors: M, number of distractor patterns.
        signal: S, norm of each pattern.
        noise_mu: Z_mu, the bound on |<z, mu>| over mu = mu_+ and mu_-.
        noise_nu: Z_nu, where |<z, nu>| is at most Z_nu / M for each distractor nu.
        noise: the law of the noise coordinates within their bounds: "uniform", "extreme" (each
            coordinate at plus or minus its bound, the adversarial case) or "none".

    Raises:
        Refused: if the sizes contradict each other or the kind of noise is unknown.
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
        if self.noise not in get_args(Noise):
            raise Refused(
                f"noise={self.noise!r} is unknown, expected one of {', '.join(get_args(Noise))}."
                " Try noise='uniform'"
            )
        if not (traced(self.relevant) or 1 <= self.relevant <= self.tokens):
            raise Refused(
                f"relevant={self.relevant} (zeta T), expected an integer from 1 to"
                f" tokens={self.tokens}. Try relevant=1"
            )
        if self.dimension < self.distractors + 2:
            raise Refused(
                f"dimension={self.dimension}, expected at least distractors +"
                f" 2={self.distractors + 2} for orthogonal patterns. Try a larger dimension or"
                " fewer distractors"
            )

    @property
    def sparsity(self) -> float:
        """zeta, the number of relevant tokens of a sequence divided by the number of tokens."""
        return self.relevant / self.tokens

    @property
    def noise_norm(self) -> float:
        """The largest norm Z that the noise can have under the bounds on its coordinates."""
        if self.noise == "none":
            return 0.0
        other = self.noise_nu / max(self.distractors, 1)
        squares = 2 * self.noise_mu**2 + (self.dimension - 2) * other**2
        return math.sqrt(squares) / self.signal

    @property
    def radius(self) -> float:
        """R = sqrt(S^2 + Z^2 + 2 Z_nu / M), Assumption 3's bound on the token norms."""
        cross = 0.0 if self.noise == "none" else 2 * self.noise_nu / max(self.distractors, 1)
        return math.sqrt(self.signal**2 + self.noise_norm**2 + cross)

    def patterns(self) -> Float[Array, "patterns d"]:
        """Return the patterns mu_+, mu_-, nu_1, ..., nu_M as rows, each of norm S."""
        return self.signal * jnp.eye(self.distractors + 2, self.dimension)

    def sample(self, key: jax.Array, n: int, /) -> Data:
        """Draw n sequences with equally likely labels and relevant tokens at random positions."""
        return self.sample_marked(key, n)[0]

    def sample_marked(self, key: jax.Array, n: int, /) -> tuple[Data, Bool[Array, "n T"]]:
        """Draw sequences like `sample`, and also return the mask of the relevant tokens."""
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
    """The data model DM2: standard normal tokens, labelled by the sign of a teacher's output.

    The teacher is a single head. The sampler drops sequences whose teacher output is at most
    `threshold` in absolute value.

    Attributes:
        tokens: T, number of tokens.
        dimension: d, dimension of a token.
        threshold: the absolute value that the teacher's output on a kept sequence exceeds; 0.2 in
            the paper.
    """

    tokens: int
    dimension: int
    threshold: float = 0.2

    def teacher(self, key: jax.Array, /) -> dict[str, Array]:
        """Draw a teacher: standard normal U* of shape (T, d) and W* of shape (d, d).

        The paper does not state the distribution of its teacher.
        """
        projection_key, weights_key = jax.random.split(key)
        return {
            "U": jax.random.normal(projection_key, (self.tokens, self.dimension)),
            "W": jax.random.normal(weights_key, (self.dimension, self.dimension)),
        }

    def sample(self, key: jax.Array, teacher: dict[str, Array], n: int, /) -> Data:
        """Draw 2 n + 64 sequences, and return the first n whose |output| exceeds `threshold`.

        If fewer than n outputs exceed the threshold, the function adds the sequences with the
        largest absolute outputs.
        """
        tokens = jax.random.normal(key, (2 * n + 64, self.tokens, self.dimension))
        output = jax.vmap(head_output, in_axes=(None, None, 0))(teacher["U"], teacher["W"], tokens)
        order = jnp.argsort(-jnp.minimum(jnp.abs(output), self.threshold), stable=True)[:n]
        labels = jnp.where(output[order] > 0, 1, -1)
        return {"X": tokens[order], "y": labels}
