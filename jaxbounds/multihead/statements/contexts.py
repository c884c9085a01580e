"""Instances (inputs of statements) from DM1: one sequence, or n sequences with equal S and zeta.

The noise has independent scales along mu, along nu and outside the patterns' span. A noise
coordinate is uniform within plus or minus its scale, equal to plus or minus its scale, or zero. The
constants Z_mu, Z_nu and Z of Assumption 3 are the least that an instance's noise allows, which
makes every bound as strong as possible. The data have M = d - 3 distractors, so one of the d
dimensions is outside the patterns' span.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxbounds.claims.statements import Budget, Instance, Sampler, Size, Statement
from jaxbounds.multihead.first_phase import equal_rows
from jaxbounds.multihead.ntk import ntk_margins
from jaxbounds.multihead.oracle import Assumption3, Real, oracle_classifier, oracle_direction
from jaxbounds.numerics.norms import vector_norm

SIZES = ({"T": 5, "d": 5},)
DATA_SIZES = ({"n": 3, "T": 4, "d": 4},)
NOISE_LIMIT = 2**-0.5 - 0.5
"""The largest noise ratio Z / S^2, .2071, for which sharpening S14 holds: S14 is proved for S^4 - 4
S^2 Z - 4 Z^2 > 0. A larger limit allows more noise; Proposition 3 requires Z <= S^2 / 8.
"""


@dataclass(frozen=True, kw_only=True)
class Context(Assumption3):
    """The data that an instance describes: the constants of Assumption 3, and the sequences.

    Attributes:
        X: the tokens, of shape (T, d) for one sequence or (n, T, d) for a data set.
        y: the labels +1 and -1, as floats.
        patterns: the patterns mu_+, mu_-, nu_1, ..., nu_M, as rows.
        classifier: the oracle classifier u* = mu_+ - mu_-.
        direction: the oracle parameters U* and W*, each scaled to norm one.
    """

    X: Array
    y: Array
    patterns: Array
    classifier: Array
    direction: dict[str, Array]
    T: int
    M: int

    @property
    def data(self) -> dict[str, Array]:
        """The sequences X, shape (n, T, d), and their labels; n = 1 for one sequence."""
        return {"X": self.X.reshape(-1, *self.X.shape[-2:]), "y": self.y.reshape(-1)}

    @property
    def rounding(self) -> Real:
        """A bound on the rounding error of a margin, proportional to the size of its terms."""
        return 1e-14 * self.T * (self.S + self.Z) ** 6 / self.S**2

    def margins_at(self, row: Array) -> tuple[Array, Array]:
        """Return each sequence's NTK margins along U* and W*, at U = 1_T row^T and W = 0."""
        start = equal_rows(row, jnp.ones(1), self.T)
        one = jax.tree.map(lambda leaf: leaf[None], self.direction)
        outer, inner = ({**jax.tree.map(jnp.zeros_like, one), name: one[name]} for name in "UW")
        return ntk_margins(start, self.data, outer), ntk_margins(start, self.data, inner)


def _scales(key: Array, d: int) -> Array:
    scales = jnp.exp(jax.random.uniform(key, (3,), minval=-6.0, maxval=0.0))
    return jnp.concatenate([scales[:1], scales[:1], jnp.full(d - 3, scales[1]), scales[2:]])


def _draw(key: Array, size: Size, shape: tuple[int, ...]) -> dict[str, Array]:
    keys = jax.random.split(key, 10)
    T, d = size["T"], size["d"]
    signal = jnp.exp(jax.random.uniform(keys[0], (), minval=-0.7, maxval=1.6))
    uniform = jax.random.uniform(keys[1], (*shape, T, d), minval=-1.0)
    kind = jax.random.randint(keys[2], (), 0, 5)
    filled = jnp.where(kind == 0, 0.0, jnp.where(kind < 3, jnp.sign(uniform), uniform))
    noise = signal * filled * _scales(keys[3], d).reshape((1,) * (filled.ndim - 1) + (d,))
    ranks = jnp.argsort(jax.random.uniform(keys[4], (*shape, T)), axis=-1)
    size_p = jnp.exp(jax.random.uniform(keys[5], (), minval=-9.0, maxval=0.0))
    present, direction = jax.random.split(keys[6])
    size_p = size_p * jax.random.bernoulli(present, 0.75).astype(float)
    return {
        "S": signal,
        "y": jax.random.rademacher(keys[7], shape, dtype=int),
        "relevant": ranks < jax.random.randint(keys[8], (), 1, T),
        "choice": jax.random.randint(keys[9], (*shape, T), 0, d - 3),
        "z": noise,
        "p": size_p * signal * jax.random.normal(direction, (d,)),
    }


def sequence(key: Array, size: Size) -> Instance:
    """Draw one sequence, and the deviation p of the first phase's direction u1 from its mean."""
    return _draw(key, size, ())


def sequences(key: Array, size: Size) -> Instance:
    """Draw n sequences, and the deviation p of the first phase's direction u1 from its mean."""
    return _draw(key, size, (size["n"],))


def quieter(*, p: float) -> Sampler:
    """Return a sampler like `sequences` that divides the noise by 20 and multiplies p by `p`."""

    def sample(key: Array, size: Size) -> Instance:
        instance = sequences(key, size)
        return {**instance, "z": 0.05 * instance["z"], "p": p * instance["p"]}

    return sample


def by_hand(
    relevant: Sequence[Any],
    *,
    S: float = 1.0,
    y: int | Sequence[int] = 1,
    z: Any = 0.0,
    p: Any = 0.0,
    **more: Any,
) -> dict[str, Any]:
    """Return an instance with d = 4 and one distractor, by default without noise and with p = 0."""
    shape = np.shape(relevant)
    along = lambda values, shape: np.broadcast_to(np.asarray(values, float), (*shape, 4))
    choice = np.zeros(shape, int)
    found = {"S": S, "y": y, "relevant": relevant, "choice": choice, "z": along(z, shape)}
    return {**found, "p": along(p, ()), **more}


def keep_context(instance: Instance, size: Size) -> Instance:
    """Clip an instance of the search to S in [1/4, 8] and to noise of norm at most 2 S."""
    signal = jnp.clip(instance["S"], 0.25, 8.0)
    return {**instance, "S": signal, "z": jnp.clip(instance["z"], -2 * signal, 2 * signal)}


def keep_quiet(instance: Instance, size: Size) -> Instance:
    """Limit Z_mu and Z_nu to .207 S^2, and epsilon to e^{1/2}, as sharpening S14 needs."""
    instance = keep_context(instance, size)
    signal, d = instance["S"], instance["z"].shape[-1]
    bound = 0.999 * NOISE_LIMIT * signal * jnp.where(jnp.arange(d) < 2, 1.0, 1.0 / (d - 3))
    bound = jnp.where(jnp.arange(d) == d - 1, 2 * signal, bound)[None, :]
    level = jnp.clip(instance["log_eps"], -8.0, 0.5)
    return {**instance, "z": jnp.clip(instance["z"], -bound, bound), "log_eps": level}


def quiet_sequence(key: Array, size: Size) -> Instance:
    """Draw a sequence with noise below `keep_quiet`'s limit; draw also log epsilon and `more`.

    `more` is S^2 times (Gamma minus the least Gamma that the statement allows), and is zero in half
    of the random draws.
    """
    data_key, level_key, more_key = jax.random.split(key, 3)
    level = jax.random.uniform(level_key, (), minval=-8.0, maxval=0.5)
    more = jnp.maximum(jax.random.uniform(more_key, (), minval=-4.0, maxval=4.0), 0.0)
    return keep_quiet({**sequence(data_key, size), "log_eps": level, "more": more}, size)


def unfold(instance: Instance) -> Context:
    """Return the sequence, or the data set, that an instance's entries (S, z, y, ...) describe."""
    signal, relevant, noise = instance["S"], instance["relevant"], instance["z"]
    T, d = noise.shape[-2:]
    M = d - 3
    patterns = signal * jnp.eye(M + 2, d)
    own = jnp.where(instance["y"][..., None] > 0, patterns[0], patterns[1])
    irrelevant = jnp.where(relevant[..., None], 0.0, noise)
    others = patterns[2 + instance["choice"]] + irrelevant
    along = jnp.abs(irrelevant @ patterns.T).reshape(-1, M + 2)
    return Context(
        X=jnp.where(relevant[..., None], own[..., None, :], others),
        y=instance["y"].astype(noise.dtype),
        patterns=patterns,
        classifier=oracle_classifier(patterns),
        direction=oracle_direction(patterns, T),
        S=signal,
        zeta=jnp.sum(relevant.reshape(-1, T)[0]).astype(noise.dtype) / T,
        Z_mu=jnp.max(along[:, :2]),
        Z_nu=M * jnp.max(along[:, 2:]),
        Z=jnp.max(vector_norm(irrelevant)),
        T=T,
        M=M,
    )


def assumption_3(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    """Return Section 5's assumptions on an instance of DM1."""
    c = unfold(instance)
    counts = jnp.sum(instance["relevant"].reshape(-1, c.T), axis=1)
    longest = jnp.max(vector_norm(c.X.reshape(-1, c.X.shape[-1])))
    return {
        "y in {-1, +1} (Assumption 1, Section 3)": jnp.all(jnp.abs(c.y) == 1),
        "R >= 1 (Assumption 1, Section 3)": c.R >= 1,
        "||x_t|| <= R (Assumptions 1 and 3)": longest <= c.R * (1 + 1e-12),
        "zeta in (0, 1) (Assumption 3, Section 5)": (c.zeta > 0) & (c.zeta < 1),
        "|R| = zeta T in every sequence (Assumption 3, Section 5)": jnp.all(counts == counts[0]),
    }


def quiet_context(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    """Return the conditions of Assumption 3 and the hypotheses of Proposition 3."""
    c = unfold(instance)
    return {
        **assumption_3(instance, size),
        "Z_mu = Z_nu <= S^2 / 8 for the larger of both (Proposition 3, Section 5.3)": c.noise
        <= c.S**2 / 8,
        "eps > 0 (Proposition 3, Section 5.3)": jnp.isfinite(instance["log_eps"]),
    }


def noise_eighth(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    """Return the noise condition of Proposition 3."""
    c = unfold(instance)
    return {"Z_mu = Z_nu <= S^2 / 8": c.noise <= c.S**2 / 8}


def noise_limit(instance: Instance, size: Size) -> dict[str, ArrayLike]:
    """Return the noise condition of sharpening S14."""
    c = unfold(instance)
    return {"S^4 - 4 S^2 Z - 4 Z^2 > 0": c.noise < NOISE_LIMIT * c.S**2}


on_sequence = functools.partial(
    Statement, sample=sequence, sizes=SIZES, assumptions="DM1, Assumption 3"
)
"""Settings of statements about one sequence."""
on_sequences = functools.partial(
    Statement, sample=sequences, sizes=DATA_SIZES, assumptions="DM1, Assumption 3"
)
"""Settings of statements about a data set."""
_FEW_STARTS = Budget(samples=128, restarts=4, steps=80)
searched_sequence = functools.partial(
    Statement,
    kind="inequality",
    sample=sequence,
    sizes=SIZES,
    project=keep_context,
    assumptions="DM1, Assumption 3",
    budget=_FEW_STARTS,
)
"""Settings of inequalities about one sequence, with few starting points of the search."""
searched_sequences = functools.partial(
    Statement,
    kind="inequality",
    sample=sequences,
    sizes=DATA_SIZES,
    project=keep_context,
    assumptions="DM1, Assumption 3",
    budget=_FEW_STARTS,
)

"""Settings of inequalities about a data set, with few starting points of the search."""
on_quiet = functools.partial(
    Statement,
    kind="inequality",
    sample=quiet_sequence,
    sizes=SIZES,
    project=keep_quiet,
    hypotheses=noise_limit,
    assumptions="DM1, Assumption 3; Z_mu = Z_nu <= S^2 / 8 unless a form relaxes it; every "
    "epsilon up to 1.6, and every Gamma that the form allows",
    budget=Budget(samples=256, restarts=4, steps=100),
)
"""Settings of the inequalities of Appendix E about a sequence with little noise."""
DRAWS = Budget(samples=256, restarts=0)
