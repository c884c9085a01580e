"""Instances of DM1 for the statements of Section 5: one sequence, or n that share S and zeta.

Noise is drawn at independent scales along mu, along nu and outside the patterns' span: uniform, at
plus and minus the scale, or none. The constants Z_mu, Z_nu and Z of Assumption 3 are the least that
an instance's noise allows, which is where every bound is strongest. Of d dimensions M = d - 3 are
distractors, so that one is outside the span.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxbounds.multihead.oracle import oracle_classifier, oracle_direction
from jaxbounds.norms import vector_norm
from jaxbounds.statements import Instance, Size

SIZES = ({"T": 5, "d": 5},)
DATA_SIZES = ({"n": 3, "T": 4, "d": 4},)


class Context(NamedTuple):
    """What an instance says, in the paper's letters.

    Attributes:
        X: tokens, (T, d), or (n, T, d).
        y: labels as floats.
        patterns: mu_+, mu_-, nu_1, ..., nu_M.
        classifier: u*.
        direction: U* and W*, each of norm one.
        S: signal strength.
        zeta: sparsity.
        Z_mu: max |<z, mu>|.
        Z_nu: M max |<z, nu>|.
        Z: max ||z||.
        R: sqrt(S^2 + Z^2 + 2 Z_nu / M).
        T: tokens.
        M: distractors.
    """

    X: Array
    y: Array
    patterns: Array
    classifier: Array
    direction: dict[str, Array]
    S: Array
    zeta: Array
    Z_mu: Array
    Z_nu: Array
    Z: Array
    R: Array
    T: int
    M: int

    @property
    def arguments(self) -> tuple[Array, ...]:
        """S, zeta, Z_mu, Z_nu, Z, as `gamma_star` takes them."""
        return self.S, self.zeta, self.Z_mu, self.Z_nu, self.Z


def _scales(key, d):
    """One scale for mu_+, mu_-, one for each nu, one for the rest, relative to S."""
    scales = jnp.exp(jax.random.uniform(key, (3,), minval=-6.0, maxval=0.0))
    return jnp.concatenate([scales[:1], scales[:1], jnp.full(d - 3, scales[1]), scales[2:]])


def _draw(key: jax.Array, size: Size, shape: tuple[int, ...]) -> Instance:
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


def sequence(key: jax.Array, size: Size) -> Instance:
    """One sequence, and the deviation p of the first phase."""
    return _draw(key, size, ())


def sequences(key: jax.Array, size: Size) -> Instance:
    """A data set of n sequences, and the deviation p of the first phase."""
    return _draw(key, size, (size["n"],))


def keep_context(instance: Instance) -> Instance:
    """Project an instance of a search: 1/4 <= S <= 8, noise at most 2 S."""
    signal = jnp.clip(instance["S"], 0.25, 8.0)
    return {**instance, "S": signal, "z": jnp.clip(instance["z"], -2 * signal, 2 * signal)}


def unfold(instance: Instance) -> Context:
    """The sequence, or sequences, that an instance describes."""
    signal, relevant, noise = instance["S"], instance["relevant"], instance["z"]
    T, d = noise.shape[-2:]
    M = d - 3
    patterns = signal * jnp.eye(M + 2, d)
    own = jnp.where(instance["y"][..., None] > 0, patterns[0], patterns[1])
    irrelevant = jnp.where(relevant[..., None], 0.0, noise)
    others = patterns[2 + instance["choice"]] + irrelevant
    along = jnp.abs(irrelevant @ patterns.T).reshape(-1, M + 2)
    noise_nu = M * jnp.max(along[:, 2:])
    longest = jnp.max(vector_norm(irrelevant))
    return Context(
        X=jnp.where(relevant[..., None], own[..., None, :], others),
        y=instance["y"].astype(noise.dtype),
        patterns=patterns,
        classifier=oracle_classifier(patterns),
        direction=oracle_direction(patterns, T),
        S=signal,
        zeta=jnp.sum(relevant.reshape(-1, T)[0]).astype(noise.dtype) / T,
        Z_mu=jnp.max(along[:, :2]),
        Z_nu=noise_nu,
        Z=longest,
        R=jnp.sqrt(signal**2 + longest**2 + 2 * noise_nu / M),
        T=T,
        M=M,
    )
