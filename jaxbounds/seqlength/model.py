"""The Transformer of Section 2.6: pure functions, and Flax modules around them.

The weights have the names and shapes of Section 4.1: W_c in R^{k x d}, W_v in R^{d x k}, W_QK in
R^{d x d}. W_QK is W_Q W_K^T. The scores have no factor 1/sqrt(d_k); the user multiplies W_QK by
this factor.
"""

from collections.abc import Callable, Mapping

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.numerics.norms import project_rows

Tokens = Float[Array, "*batch T d"]
Activation = Callable[[Array], Array]
LayerWeights = Mapping[str, Array]


def attention_scores(
    X: Tokens, W_QK: Float[Array, "d d"], query: Float[Array, "*batch d"], /
) -> Float[Array, "*batch T"]:
    """Compute X W_QK^T x, the scores of all tokens for one query x."""
    return jnp.einsum("...td,ed,...e->...t", X, W_QK, query)


def attend(X: Tokens, W_QK: Float[Array, "d d"], /) -> Tokens:
    """Compute RowSoftmax(X W_QK X^T) X."""
    logits = jnp.einsum("...sd,de,...te->...st", X, W_QK, X)
    return jax.nn.softmax(logits, axis=-1) @ X


def attend_from(X: Tokens, W_QK: Float[Array, "d d"], cls: int, /) -> Float[Array, "*batch d"]:
    """Compute X^T softmax(X W_QK^T x_cls): row `cls` of `attend` in O(T d) instead of O(T^2 d)."""
    weights = jax.nn.softmax(attention_scores(X, W_QK, X[..., cls, :]), axis=-1)
    return jnp.einsum("...t,...td->...d", weights, X)


def head(
    X: Tokens,
    W_QK: Float[Array, "d d"],
    W_v: Float[Array, "d k"],
    W_c: Float[Array, "k d"],
    /,
    *,
    activation: Activation = jax.nn.relu,
) -> Tokens:
    """Compute sigma(RowSoftmax(X W_QK X^T) X W_v) W_c."""
    return activation(attend(X, W_QK) @ W_v) @ W_c


def head_at(
    X: Tokens,
    W_QK: Float[Array, "d d"],
    W_v: Float[Array, "d k"],
    W_c: Float[Array, "k d"],
    cls: int,
    /,
    *,
    activation: Activation = jax.nn.relu,
) -> Float[Array, "*batch d"]:
    """Compute Y_cls = W_c^T sigma(W_v^T X^T softmax(X W_QK^T x_cls)) of Section 4.1."""
    return activation(attend_from(X, W_QK, cls) @ W_v) @ W_c


def block(
    g: Tokens, layer: LayerWeights, /, *, activation: Activation = jax.nn.relu, radius: float = 1.0
) -> Tokens:
    """Compute g^(i+1) = Pi(sigma(Pi(f(g^(i); W^(i)))) W_c); Pi projects rows on the l_2 ball.

    Pi divides v by max(1, ||v|| / radius).
    """
    mixed = project_rows(attend(g, layer["W_QK"]) @ layer["W_v"], radius)
    return project_rows(activation(mixed) @ layer["W_c"], radius)


def blocks(
    X: Tokens, layers: LayerWeights, /, *, activation: Activation = jax.nn.relu
) -> Float[Array, "steps *batch T d"]:
    """Compute g^(1) = X, ..., g^(L+1); the leaves of `layers` have a leading axis of length L."""

    def step(g: Tokens, layer: LayerWeights) -> tuple[Tokens, Tokens]:
        following = block(g, layer, activation=activation)
        return following, following

    _, later = jax.lax.scan(step, X, dict(layers))
    return jnp.concatenate([X[None], later])


def _dimension(X: Tokens, cls: int) -> int:
    T, d = X.shape[-2:]
    if not -T <= cls < T:
        raise Refused(f"cls={cls} is outside a sequence of length T={T}. Try cls=0")
    return d


class SingleLayer(nn.Module):
    """A layer of H heads with the output w . sum_h Y_h at the CLS index (Sections 4.1 and 4.2).

    Attributes:
        hidden: the number k of columns of W_v.
        activation: the activation sigma, with sigma(0) = 0.
    """

    hidden: int
    heads: int = 1
    cls: int = 0
    activation: Activation = nn.relu

    @nn.compact
    def __call__(self, X: Tokens) -> Float[Array, "*batch"]:
        """Compute the scalar output of each sequence; the CLS index must be inside the sequence."""
        d = _dimension(X, self.cls)
        init = nn.initializers.lecun_normal()
        many = nn.initializers.lecun_normal(batch_axis=(0,))
        W_QK = self.param("W_QK", many, (self.heads, d, d))
        W_v = self.param("W_v", many, (self.heads, d, self.hidden))
        W_c = self.param("W_c", many, (self.heads, self.hidden, d))
        w = self.param("w", init, (d, 1))[:, 0]
        one = lambda a, b, c: head_at(X, a, b, c, self.cls, activation=self.activation)
        outputs = jax.vmap(one)(W_QK, W_v, W_c)
        return jnp.sum(outputs, axis=0) @ w


class MultiLayer(nn.Module):
    """Compute the output of L blocks, each followed by the projection of tokens on the unit ball.

    The output is w . g^(L+1) at the CLS index.

    Attributes:
        hidden: the number k of columns of W_v.
        activation: the activation sigma, with sigma(0) = 0.
    """

    hidden: int
    layers: int
    cls: int = 0
    activation: Activation = nn.relu

    @nn.compact
    def __call__(self, X: Tokens) -> Float[Array, "*batch"]:
        """Compute the scalar output of each sequence; the CLS index must be inside the sequence."""
        d = _dimension(X, self.cls)
        many = nn.initializers.lecun_normal(batch_axis=(0,))
        shapes = {"W_QK": (d, d), "W_v": (d, self.hidden), "W_c": (self.hidden, d)}
        layers = {
            name: self.param(name, many, (self.layers, *shape)) for name, shape in shapes.items()
        }
        w = self.param("w", nn.initializers.lecun_normal(), (d, 1))[:, 0]
        return blocks(X, layers, activation=self.activation)[-1][..., self.cls, :] @ w
