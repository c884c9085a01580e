"""Programs for calls, scans, loops and branches; oracle: the same in Python, on fractions."""

from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from oracle.programs import Program, floats, signs

ONE, LIST = floats(()), floats((4,))


def _cubed(x: Any) -> Any:
    return x * x * x + x


@jax.custom_jvp
def _own_jvp(x: jax.Array) -> jax.Array:
    return _cubed(x)


@jax.custom_vjp
def _own_vjp(x: jax.Array) -> jax.Array:
    return _cubed(x)


_own_jvp.defjvp(lambda x, t: (_own_jvp(*x), t[0]))
_own_vjp.defvjp(lambda x: (_own_vjp(x), None), lambda _, g: (g,))


def _two(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Of a called program one result is used, the other is not."""
    inner = jax.jit(lambda v: (v + 1, v > 0, jnp.argmax(v)))
    more, sign, _ = inner(x)
    return more, sign


def _running(x: np.ndarray) -> tuple[Any, ...]:
    total, totals = Fraction(0), []
    for v in x:
        total = total / 2 + v
        totals.append(total)
    return np.asarray(total, dtype=object), np.array(totals, dtype=object), signs(x), np.arange(4)


def _scanned(x: jax.Array) -> Any:
    def step(carry: tuple[Any, Any], v: Any) -> Any:
        total, i = carry
        new = total / 2 + v
        return (new, i + 1), (new, v > 0, i)

    (total, _), (totals, signs, steps) = lax.scan(step, (jnp.zeros(()), 0), x)
    return total, totals, signs, steps


def _backward(x: jax.Array) -> Any:
    return lax.scan(lambda c, v: (c / 2 + v, c), jnp.zeros(()), x, reverse=True)


def _backward_oracle(x: np.ndarray) -> tuple[Any, Any]:
    carry, befores = Fraction(0), []
    for v in x[::-1]:
        befores.append(carry)
        carry = carry / 2 + v
    return np.asarray(carry, dtype=object), np.array(befores[::-1], dtype=object)


def _halved(x: jax.Array) -> Any:
    """Until it is at most one; how often."""
    return lax.while_loop(lambda s: s[0] > 1, lambda s: (s[0] / 2, s[1] + 1), (x, 0))


def _halved_oracle(x: Any) -> Any:
    x, n = x.item(), 0
    while x > 1:
        x, n = x / 2, n + 1
    return np.asarray(x, dtype=object), np.asarray(n)


def _summed(x: jax.Array) -> Any:
    return lax.fori_loop(0, 4, lambda i, s: s + i * x[i], jnp.zeros(()))


def _chosen(x: jax.Array, y: jax.Array) -> Any:
    return lax.cond(x > 0, lambda v: v + 1, lambda v: 2 * v, y)


def _switched(i: np.ndarray, x: np.ndarray) -> Any:
    return (x + 1, 2 * x, -x)[min(max(int(i[0]), 0), 2)]


def _recurring(n: np.ndarray, x: np.ndarray) -> Any:
    found = x[1]
    for _ in range(2 + int(n[0])):
        found = found * x[0] + int(n[1])
    return np.asarray(found, dtype=object)


def _index(rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.integers(-1, 4, size=1).astype(np.int32), *floats((3,))(rng)]


def _unchanged(function: Any) -> tuple[Program, ...]:
    return (Program(function, lambda x: x, LIST),)


def _called(function: Any, renamed: str = "") -> tuple[Program, ...]:
    return (Program(function, _cubed, LIST, renamed=renamed),)


def _places(x: np.ndarray) -> np.ndarray:
    return np.array([sum(v > at for at in (-2, 0, 1)) for v in x], np.int32)


PROGRAMS: dict[str, tuple[Program, ...]] = {
    "jit": (
        *_called(lambda x: jax.jit(_cubed)(x)),
        Program(_two, lambda x: (x + 1, signs(x)), LIST),
    ),
    "custom_jvp_call": _called(_own_jvp),
    "custom_vjp_call": _called(_own_vjp),
    "remat2": _called(jax.checkpoint(_cubed)),
    "closed_call": _called(_own_jvp, renamed="custom_jvp_call"),
    "call_hi_primitive": (
        Program(
            lambda x: jnp.searchsorted(jnp.array([-2.0, 0.0, 1.0]), x).astype(jnp.int32),
            _places,
            LIST,
            forks=True,
        ),
    ),
    "stop_gradient": _unchanged(lambda x: lax.stop_gradient(x)),
    "copy": _unchanged(jnp.copy),
    "device_put": _unchanged(lambda x: jax.device_put(x, jax.devices("cpu")[0])),
    "optimization_barrier": _unchanged(lambda x: lax.optimization_barrier(x)),
    "sharding_constraint": _unchanged(
        lambda x: lax.with_sharding_constraint(
            x, jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])
        )
    ),
    "name": _unchanged(lambda x: checkpoint_name(x, "here")),
    "scan": (
        Program(_scanned, _running, LIST),
        Program(_backward, _backward_oracle, LIST),
        Program(
            lambda x: lax.scan(lambda c, v: (c + v, c), jnp.zeros(3), x)[0],
            lambda x: x.sum(axis=0),
            floats((2, 3)),
        ),
    ),
    "while": (
        Program(_halved, _halved_oracle, ONE, forks=True),
        Program(
            lambda x: lax.while_loop(
                lambda s: s[1] < 3, lambda s: (s[0] * s[0] - 1, s[1] + 1), (x, 0)
            )[0],
            lambda x: (((x * x - 1) * (x * x - 1) - 1) ** 2) - 1,
            floats((), low=-1, high=1),
        ),
        Program(
            lambda n, x: lax.while_loop(
                lambda s: s[1] < 2 + n[0],
                lambda s: (s[0] * x[0] + n[1].astype(float), s[1] + 1),
                (x[1], 0),
            )[0],
            _recurring,
            lambda rng: [rng.integers(0, 3, size=2), *floats((2,), low=-1, high=1)(rng)],
        ),
    ),
    "cond": (
        Program(
            _chosen,
            lambda x, y: np.asarray(y.item() + 1 if x.item() > 0 else 2 * y.item(), dtype=object),
            floats((), ()),
            forks=True,
        ),
        Program(
            lambda x: lax.cond(x > 0, lambda: (1, x < 2), lambda: (7, x < -2)),
            lambda x: (np.asarray(1 if x > 0 else 7), np.asarray(bool(x > 0))),
            floats((), low=-1, high=1),
            forks=True,
        ),
        Program(
            lambda i, x: lax.switch(i[0], [lambda v: v + 1, lambda v: 2 * v, lambda v: -v], x),
            _switched,
            _index,
        ),
    ),
}
