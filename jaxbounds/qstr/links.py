"""Links g of Definition 2, and the two-layer networks of Assumption 2 that represent them.

A link maps the q relevant tokens to a label, g: R^{q x d} -> R. Each link has a function `init`
that draws its parameters and a pure function `apply`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused

Parameters = Mapping[str, Array]


class TwoLayer(NamedTuple):
    """The network a_g^T relu(W_g (x_1; ..; x_q) + b_g) of Assumption 2, with m_g hidden units."""

    a: Float[Array, "m"]
    W: Float[Array, "m qd"]
    b: Float[Array, "m"]

    def __call__(self, tokens: Float[Array, "*batch q d"], /) -> Float[Array, "*batch"]:
        """Return the network's value at `tokens`."""
        flat = tokens.reshape(*tokens.shape[:-2], -1)
        hidden = jnp.einsum("...k,mk->...m", flat, self.W)
        hidden = jax.nn.relu(hidden + jnp.broadcast_to(self.b, hidden.shape))
        return jnp.einsum("...m,m->...", hidden, self.a)

    def radii(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Return the smallest r_a = sqrt(m)|a| and r_w = |(W, b)|_F / sqrt(m) of Assumption 2."""
        root = math.sqrt(self.a.shape[0])
        weights = jnp.sqrt(jnp.sum(self.W**2) + jnp.sum(self.b**2))
        return root * jnp.sqrt(jnp.sum(self.a**2)), weights / root

    def with_unit_weights(self) -> "TwoLayer":
        """Rescale the weights to (W, b) / r_w and r_w a; the network computes the same function."""
        _, r_w = self.radii()
        return TwoLayer(r_w * self.a, self.W / r_w, self.b / r_w)


@dataclass(frozen=True)
class Link:
    """A link function with its name.

    Attributes:
        name: the link's name, its key in `LINKS`.
        init: the function `init(key, q, d) -> parameters` that draws the link's parameters.
        apply: the function `apply(parameters, tokens (..., q, d)) -> labels (...)`.
        two_layer: a function from parameters to the exact network of Assumption 2 (eps_2NN = 0), or
            None if there is no exact network.
    """

    name: str
    init: Callable[[Array, int, int], Parameters]
    apply: Callable[[Parameters, Array], Array]
    two_layer: Callable[[Parameters], TwoLayer] | None = None


def sphere(key: Array, /, *shape: int) -> Float[Array, "*shape"]:
    """Draw uniform unit vectors; the last axis of `shape` holds a vector's coordinates."""
    direction = jax.random.normal(key, shape)
    return direction / jnp.sqrt(jnp.sum(direction**2, axis=-1, keepdims=True))


def _direction(key: Array, q: int, d: int) -> Parameters:
    return {"u": sphere(key, q * d)}


def _token_direction(key: Array, q: int, d: int) -> Parameters:
    return {"u": sphere(key, d)}


def _random_network(key: Array, q: int, d: int) -> Parameters:
    key_a, key_w, key_b = jax.random.split(key, 3)
    width = 2 * q
    bias = jax.random.uniform(key_b, (width,), minval=-1.0, maxval=1.0)
    return {"a": sphere(key_a, width), "W": sphere(key_w, width, q * d), "b": bias}


def _projection(p: Parameters, tokens: Array) -> Array:
    return jnp.einsum("...k,k->...", tokens.reshape(*tokens.shape[:-2], -1), p["u"])


def _mean_projection(p: Parameters, tokens: Array) -> Array:
    return jnp.einsum("...qd,d->...", tokens, p["u"]) / tokens.shape[-2]


def _quadratic(p: Parameters, tokens: Array) -> Array:
    count = tokens.shape[-2] * tokens.shape[-1]
    return (jnp.sum(tokens**2, axis=(-2, -1)) - count) / math.sqrt(count)


def _xor(p: Parameters, tokens: Array) -> Array:
    return jnp.prod(jnp.sign(jnp.einsum("...qd,d->...q", tokens, p["u"])), axis=-1)


def _signed_pair(row: Array) -> TwoLayer:
    # v = relu(v) - relu(-v).
    return TwoLayer(
        a=jnp.array([1.0, -1.0], row.dtype), W=jnp.stack([row, -row]), b=jnp.zeros(2, row.dtype)
    )


def _single_relu(row: Array) -> TwoLayer:
    return TwoLayer(jnp.ones(1, row.dtype), row[None, :], jnp.zeros(1, row.dtype))


LINKS: Mapping[str, Link] = MappingProxyType(
    {
        link.name: link
        for link in (
            Link("linear", _direction, _projection, lambda p: _signed_pair(p["u"])),
            Link("mean_linear", _token_direction, _mean_projection),
            Link("quadratic", lambda key, q, d: {}, _quadratic),
            Link(
                "two_layer",
                _random_network,
                lambda p, tokens: TwoLayer(p["a"], p["W"], p["b"])(tokens),
                lambda p: TwoLayer(p["a"], p["W"], p["b"]),
            ),
            Link("sine_index", _direction, lambda p, tokens: jnp.sin(_projection(p, tokens))),
            Link(
                "relu_index",
                _direction,
                lambda p, tokens: jax.nn.relu(_projection(p, tokens)),
                lambda p: _single_relu(p["u"]),
            ),
            Link("xor", _token_direction, _xor),
        )
    }
)
"""A dictionary from the name of each link of this library to the link.

`quadratic` is Proposition 3's link for standard normal tokens; `xor` is the product of sign<u, x_t>
over the relevant tokens.
"""


def find_link(name: str, /) -> Link:
    """Return the link with the name `name` from `LINKS`.

    Raises:
        Refused: if the name is unknown; the message lists all names.
    """
    if name not in LINKS:
        raise Refused(
            f"link name={name!r} is unknown, expected one of {', '.join(LINKS)}. Try"
            f" {next(iter(LINKS))!r}"
        )
    return LINKS[name]
