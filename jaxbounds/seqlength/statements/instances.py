"""How instances are drawn: scales, points of norm balls, and their extreme points."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def log_uniform(key: Array, low: float, high: float, /, shape: tuple[int, ...] = ()) -> Array:
    """10 to a uniform power between `low` and `high`."""
    return 10.0 ** jax.random.uniform(key, shape, minval=low, maxval=high)


def l1_sphere(key: Array, shape: tuple[int, ...], /) -> Array:
    """Points with l_1 norm 1 along the last axis: uniform directions, often nearly sparse."""
    size_key, sign_key, power_key = jax.random.split(key, 3)
    power = jax.random.uniform(power_key, (*shape[:-1], 1), minval=1.0, maxval=6.0)
    sizes = jax.random.exponential(size_key, shape) ** power
    sizes = sizes / jnp.sum(sizes, axis=-1, keepdims=True)
    return sizes * jax.random.rademacher(sign_key, shape, float)


def l1_vertices(key: Array, shape: tuple[int, ...], /) -> Array:
    """Signed unit vectors along the last axis."""
    place_key, sign_key = jax.random.split(key)
    place = jax.random.randint(place_key, shape[:-1], 0, shape[-1])
    signs = jax.random.rademacher(sign_key, (*shape[:-1], 1), float)
    return signs * jax.nn.one_hot(place, shape[-1], dtype=float)


def l2_sphere(key: Array, shape: tuple[int, ...], /) -> Array:
    """Uniform directions along the last axis."""
    x = jax.random.normal(key, shape)
    return x / jnp.linalg.norm(x, axis=-1, keepdims=True)


def into_l1_ball(x: Float[Array, "*batch n"], /) -> Float[Array, "*batch n"]:
    """Scale down to l_1 norm at most 1 along the last axis."""
    return x / jnp.maximum(1.0, jnp.sum(jnp.abs(x), axis=-1, keepdims=True))


def stacked(rows: list[dict], /) -> dict:
    """Cases with a leading axis, from a list of instances of one shape."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(x) for x in leaves]), *rows)
