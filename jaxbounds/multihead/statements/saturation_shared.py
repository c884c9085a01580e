"""Instances and hypotheses of Lemma 18 and Proposition 3: sequences whose noise is small."""

import jax
import jax.numpy as jnp

from jaxbounds.multihead.statements.contexts import keep_context, sequence, unfold
from jaxbounds.statements import Instance, Size

NOISE_LIMIT = 2**-0.5 - 0.5
"""S^4 - 4 S^2 Z - 4 Z^2 > 0 means Z < .2071 S^2 (S14); Proposition 3 asks for Z <= S^2 / 8."""


def limit_noise(instance: Instance) -> Instance:
    """Clip the noise so that Z_mu and Z_nu stay below .207 S^2."""
    instance = keep_context(instance)
    signal, d = instance["S"], instance["z"].shape[-1]
    bound = 0.999 * NOISE_LIMIT * signal * jnp.where(jnp.arange(d) < 2, 1.0, 1.0 / (d - 3))
    bound = jnp.where(jnp.arange(d) == d - 1, 2 * signal, bound)[None, :]
    level = jnp.clip(instance["log_eps"], -8.0, 0.0)
    return {**instance, "z": jnp.clip(instance["z"], -bound, bound), "log_eps": level}


def quiet_sequence(key: jax.Array, size: Size) -> Instance:
    """A sequence within the limit, and log epsilon."""
    data_key, level_key = jax.random.split(key)
    level = jax.random.uniform(level_key, (), minval=-8.0, maxval=-0.05)
    return limit_noise(sequence(data_key, size) | {"log_eps": level})


def common_noise(c):
    """Z_mu v Z_nu."""
    return jnp.maximum(c.Z_mu, c.Z_nu)


def noise_eighth(instance: Instance) -> dict:
    """The condition of Proposition 3."""
    c = unfold(instance)
    return {"Z_mu = Z_nu <= S^2 / 8": common_noise(c) <= c.S**2 / 8}


def noise_limit(instance: Instance) -> dict:
    """The condition of S14."""
    c = unfold(instance)
    return {"S^4 - 4 S^2 Z - 4 Z^2 > 0": common_noise(c) < NOISE_LIMIT * c.S**2}


def noiseless(relevant, level, z=None):
    """An instance written by hand, with S = 1 and log epsilon = level."""
    T = len(relevant)
    return {
        "S": 1.0,
        "y": 1,
        "relevant": relevant,
        "choice": [0] * T,
        "z": z or [[0.0] * 4] * T,
        "p": [0.0] * 4,
        "log_eps": level,
    }


PROP3 = {
    "sample": quiet_sequence,
    "project": limit_noise,
    "hypotheses": noise_limit,
    "assumptions": "DM1, Assumption 3; Z_mu = Z_nu <= S^2 / 8 except where relaxed",
}
