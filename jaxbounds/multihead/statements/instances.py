"""Instances (inputs of statements) for Sections 2 and 3: networks, iterates of runs, and segments.

Each sampler is a function of (key, size). The argument `size` is {"T", "d"} for one head and one
sequence, or {"n", "T", "d", "H"} for a data set and H heads.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr
from jaxtyping import Array

from jaxbounds.claims.statements import Instance, Sampler, Size
from jaxbounds.multihead.data import PlantedAttention, SparseContext
from jaxbounds.multihead.loss import Data, empirical_risk
from jaxbounds.networks.training import Rule, optimizer, trajectory
from jaxbounds.numerics.norms import project_rows, vector_norm

if TYPE_CHECKING:  # slow to import
    import optax

STEPS = 100
"""The number of steps of the training runs whose iterates serve as instances. A larger number takes
more time.
"""

TIGHT_LOGIT = math.log((3 + math.sqrt(3)) / (3 - math.sqrt(3)))
"""The logit log((1 - p) / p) = 1.317 at the p = (3 - sqrt 3) / 6 that maximises |kappa_3| in S3.

Sharpening S3 bounds the third cumulant kappa_3, and a variable with two values attains the bound.
"""


def _log_uniform(key: jax.Array, low: float, high: float) -> Array:
    return jnp.exp(jax.random.uniform(key, (), minval=low, maxval=high))


def _tokens(key: jax.Array, shape: tuple[int, ...]) -> Array:
    direction_key, radius_key = jax.random.split(key)
    radius = jax.random.uniform(radius_key, (), minval=1.0, maxval=3.0)
    normal = 2 * jax.random.normal(direction_key, shape)
    return radius * project_rows(normal, 1.0)


def _head(key: jax.Array, T: int, d: int, radius: Array) -> dict[str, Array]:
    shape = (T + d + 1, d)
    normal = jax.random.normal(key, shape)
    scales = jnp.exp(7 * ndtr(normal[-1, :2]) - 4)
    return {"U": scales[0] * normal[:T], "W": scales[1] * normal[T : T + d] / radius**2}


def single_generic(key: jax.Array, size: Size) -> Instance:
    """Draw one head, with scales of U and W from e^-4 to e^3.

    Each bound on a head is closest to an equality at a different scale of U and W.
    """
    token_key, head_key = jax.random.split(key)
    T, d = size["T"], size["d"]
    tokens = _tokens(token_key, (T, d))
    return {"X": tokens} | _head(head_key, T, d, jnp.max(vector_norm(tokens)))


def single_extremal(key: jax.Array, size: Size) -> Instance:
    """Draw one head at which one of the bounds on a head is an equality.

    In the drawn instances, the tokens are antipodal or identical, or the attention is one-hot.
    """
    keys = jax.random.split(key, 5)
    T, d = size["T"], size["d"]
    direction = jax.random.normal(keys[0], (d,))
    direction = direction / vector_norm(direction)
    radius = jax.random.uniform(keys[1], (), minval=1.0, maxval=3.0)
    signs = jnp.where(jnp.arange(T) % 2 == 0, 1.0, -1.0)
    antipodal = radius * signs[:, None] * direction[None, :]
    strength = _log_uniform(keys[2], -4.0, 3.0)
    outer = direction[:, None] * direction[None, :]
    generic = single_generic(keys[3], size)
    kind = jax.random.randint(keys[4], (), 0, 4)
    identical = jnp.abs(signs)[:, None] * antipodal[:1]
    along, tight = -strength * signs[:, None] * direction[None, :], TIGHT_LOGIT / (2 * radius**2)
    choose = lambda *kinds: jnp.stack(kinds)[kind]
    return {
        "X": choose(antipodal, antipodal, identical, antipodal),
        "U": choose(along, 0.0 * antipodal, generic["U"], along),
        "W": choose(tight * outer, 0.0 * outer, generic["W"], 1e3 * outer),
    }


def keep_radius(instance: Instance, size: Size) -> Instance:
    """Rescale the tokens of an instance of the search so that 1 <= max ||x_t|| <= 3."""
    tokens = project_rows(instance["X"], 3.0)
    radius = jnp.max(vector_norm(tokens))
    return {**instance, "X": tokens / jnp.minimum(jnp.maximum(radius, 1e-3), 1.0)}


def radius_at_least_one(instance: Instance, size: Size) -> dict[str, jax.Array]:
    """Return whether R = max ||x_t||, the least R that the data allow, is >= 1 (Assumption 1)."""
    tokens = jnp.asarray(instance["X"])  # NumPy arrays, if a statement runs on the host
    return {"R >= 1": jnp.max(vector_norm(tokens)) >= 1 - 1e-12}


def loss_generic(key: jax.Array, size: Size) -> Instance:
    """Draw a data set with random labels and heads of very different scales."""
    data_key, label_key, head_key = jax.random.split(key, 3)
    n, T, d = size["n"], size["T"], size["d"]
    tokens = _tokens(data_key, (n, T, d))
    radius = jnp.max(vector_norm(tokens))
    heads = jax.vmap(lambda k: _head(k, T, d, radius))(jax.random.split(head_key, size["H"]))
    return {"X": tokens, "y": jax.random.rademacher(label_key, (n,), dtype=int)} | heads


def loss_extremal(key: jax.Array, size: Size) -> Instance:
    """Draw heads and sequences with random labels.

    All heads are equal, and at each head some bound on a single head is an equality.
    """
    head_key, label_key = jax.random.split(key)
    head = single_extremal(head_key, size)
    repeat = lambda leaf, times: jnp.broadcast_to(leaf[None], (times, *leaf.shape))
    return {
        "X": repeat(head["X"], size["n"]),
        "y": jax.random.rademacher(label_key, (size["n"],), dtype=int),
        "U": repeat(head["U"], size["H"]),
        "W": repeat(head["W"], size["H"]),
    }


def _trained(
    key: jax.Array, size: Size, data: Data, rule: "optax.GradientTransformation"
) -> Instance:
    start_key, scale_key, zero_key, time_key = jax.random.split(key, 4)
    heads, T, d = size["H"], size["T"], size["d"]
    scale = _log_uniform(scale_key, -3.0, 1.0) * jax.random.bernoulli(zero_key).astype(float)
    keys = jax.random.split(start_key)
    start = {
        "U": scale * jax.random.normal(keys[0], (heads, T, d)),
        "W": scale * jax.random.normal(keys[1], (heads, d, d)),
    }
    run = trajectory(lambda params: empirical_risk(params, data), start, rule, STEPS)
    time = jnp.floor(_log_uniform(time_key, 0.0, math.log(STEPS + 2.0))).astype(int) - 1
    return {**data, **jax.tree.map(lambda leaf: leaf[jnp.minimum(time, STEPS)], run)}


def sparse_context(size: Size, *, signal: float = 2.0, noise: float = 0.1) -> SparseContext:
    """Return the data model DM1 with one relevant token and d - 2 distractor patterns.

    The argument `noise` gives both bounds of DM1's noise, Z_mu and Z_nu.
    """
    return SparseContext(
        tokens=size["T"], dimension=size["d"], relevant=1, distractors=size["d"] - 2,
        signal=signal, noise_mu=noise, noise_nu=noise,
    )  # fmt: skip


def _dm1(key: jax.Array, size: Size) -> Data:
    return sparse_context(size).sample(key, size["n"])


def _dm2(key: jax.Array, size: Size) -> Data:
    model = PlantedAttention(tokens=size["T"], dimension=size["d"])
    teacher_key, data_key = jax.random.split(key)
    return model.sample(data_key, model.teacher(teacher_key), size["n"])


POPULATIONS: dict[str, Callable[[jax.Array, Size], Data]] = {"DM1": _dm1, "DM2": _dm2}
"""A dictionary from the name of each law to a sampler of data sets of n sequences."""


def _training(population: Callable, rule: Rule, low: float, high: float) -> Sampler:
    def sample(key: jax.Array, size: Size) -> Instance:
        data_key, rate_key, run_key = jax.random.split(key, 3)
        rate = _log_uniform(rate_key, low, high)
        return _trained(run_key, size, population(data_key, size), optimizer(rule, rate))

    return sample


def paired(
    sampler: Sampler, finish: Callable[[Instance, Size], Instance] = keep_radius, /
) -> Sampler:
    """Return a sampler of segments: `sampler` draws theta_1, and theta_2 - theta_1 is random."""

    def sample(key: jax.Array, size: Size) -> Instance:
        point_key, outer_key, inner_key, scale_key = jax.random.split(key, 4)
        instance = sampler(point_key, size)
        scale = _log_uniform(scale_key, -4.0, 1.0)
        step = {
            "dU": scale * jax.random.normal(outer_key, instance["U"].shape),
            "dW": scale * jax.random.normal(inner_key, instance["W"].shape),
        }
        return finish({**instance, **step}, size)

    return sample


SINGLE = {"generic": single_generic, "extremal": single_extremal}
LOSS = {
    "generic": loss_generic,
    "extremal": loss_extremal,
    "GD on DM1": _training(_dm1, "gd", -2.0, 2.0),
    "Adam on DM2": _training(_dm2, "adam", -5.0, -1.0),
}
STATIC = {name: LOSS[name] for name in ("generic", "extremal")}
STARTS = {name: LOSS[name] for name in ("generic", "GD on DM1", "Adam on DM2")}
