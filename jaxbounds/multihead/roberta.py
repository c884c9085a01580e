"""RoBERTa for classifying sentences (Liu et al. 2019), with any number of heads.

The network computes the function of Hugging Face's `RobertaForSequenceClassification`, but the
number of heads need not divide the width. The attributes `head_width` and `gain` allow heads of a
fixed width, as in the paper, and networks after pruning of heads.
"""

from dataclasses import dataclass, replace
from math import sqrt

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxbounds.ground.exceptions import Refused


@dataclass(frozen=True, kw_only=True)
class RobertaShape:
    """The sizes and constants of a network; the defaults describe `roberta-base`.

    Attributes:
        vocabulary: the size of the vocabulary, the number of different token ids.
        width: d, the width of the residual stream.
        head_width: the number of columns of a head; `width / heads` if the heads divide the width.
        positions: the number of rows of the position table; no token uses the first pad + 1 rows.
        types: the number of rows of the table of token types; only the first row is used.
        pad: the id of the token that fills up a sentence; positions are counted from pad + 1.
        gain: the factor by which the sum over heads is multiplied.
        dropout: the dropout rate in training, on embeddings, attention weights, both branches and
            the classifier.
        deviation: the standard deviation of normal initial weights. 0 stands for 1 / sqrt(fan in).
            For the attention's output, the fan in is heads * head_width * gain^2, so the output's
            scale does not depend on H.
    """

    vocabulary: int = 50265
    width: int = 768
    layers: int = 12
    heads: int = 12
    head_width: int = 64
    inner: int = 3072
    positions: int = 514
    types: int = 1
    pad: int = 1
    labels: int = 2
    eps: float = 1e-5
    gain: float = 1.0
    dropout: float = 0.0
    deviation: float = 0.02

    def __post_init__(self) -> None:
        sizes = ("vocabulary", "width", "layers", "heads", "head_width", "inner", "types", "labels")
        small = [f"{name} = {getattr(self, name)}" for name in sizes if getattr(self, name) < 1]
        if small:
            raise Refused(
                f"got {', '.join(small)}, expected positive sizes for a RoBERTa. Try 1 or more for"
                " each"
            )
        if not 0 <= self.pad < self.vocabulary or self.length < 1:
            raise Refused(
                f"pad={self.pad}, vocabulary={self.vocabulary}, positions={self.positions}:"
                " expected 0 <= pad < vocabulary and positions > pad + 1. Try pad=1"
            )
        if not 0 <= self.dropout < 1 or self.deviation < 0:
            raise Refused(
                f"dropout={self.dropout} and deviation={self.deviation}, expected 0 <= dropout"
                " < 1 and deviation >= 0. Try dropout=0.1"
            )

    @property
    def length(self) -> int:
        """The largest number of tokens that a sequence may have."""
        return self.positions - self.pad - 1


class _Norm(nn.Module):
    """A layer that scales rows (B, T, d) to mean 0 and variance 1, then scales and shifts them.

    The result has the dtype of the input, unlike that of Flax's layer.
    """

    eps: float

    @nn.compact
    def __call__(self, x: Array) -> Array:
        scale = self.param("scale", nn.initializers.ones, x.shape[-1:], x.dtype)
        bias = self.param("bias", nn.initializers.zeros, x.shape[-1:], x.dtype)
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.mean(centred**2, axis=-1, keepdims=True)
        return centred * jax.lax.rsqrt(variance + self.eps) * scale[None, None] + bias[None, None]


class _Attention(nn.Module):
    """Attention: softmax(Q K^T / sqrt(w)) V summed over the heads, times `gain`, plus a bias."""

    shape: RobertaShape

    @nn.compact
    def __call__(self, x: Array, mask: Array, train: bool) -> Array:
        shape = self.shape
        split = lambda rows: rows.reshape(*rows.shape[:-1], shape.heads, shape.head_width)
        dense = lambda name: split(
            _dense(shape, shape.heads * shape.head_width, shape.width, name)(x)
        )
        query, key, value = dense("query"), dense("key"), dense("value")
        logits = jnp.einsum("bqhw,bkhw->bhqk", query, key) / sqrt(shape.head_width)
        # The mask uses the least finite number, so that a row without any token is uniform and not
        # NaN.
        logits = jnp.where(mask[:, None, None, :], logits, jnp.finfo(logits.dtype).min)
        weights = nn.Dropout(shape.dropout)(nn.softmax(logits), deterministic=not train)
        heads = jnp.einsum("bhqk,bkhw->bqhw", weights, value)
        joined = shape.gain * heads.reshape(*x.shape[:-1], -1)
        fan = shape.heads * shape.head_width * shape.gain**2
        return _dense(shape, shape.width, fan, "output")(joined)


class _Layer(nn.Module):
    shape: RobertaShape

    @nn.compact
    def __call__(self, x: Array, mask: Array, train: bool) -> Array:
        shape = self.shape
        drop = lambda rows: nn.Dropout(shape.dropout)(rows, deterministic=not train)
        attended = _Attention(shape, name="attention")(x, mask, train)
        x = _Norm(shape.eps, name="attention_norm")(x + drop(attended))
        inner = nn.gelu(_dense(shape, shape.inner, shape.width, "inner")(x), approximate=False)
        outer = _dense(shape, shape.width, shape.inner, "outer")(inner)
        return _Norm(shape.eps, name="norm")(x + drop(outer))


class Roberta(nn.Module):
    """RoBERTa with a classifier of sentences.

    The call `Roberta(shape).apply({"params": params}, tokens, mask)` returns the logits.
    """

    shape: RobertaShape

    @nn.compact
    def __call__(
        self, tokens: Int[Array, "B T"], mask: Bool[Array, "B T"], *, train: bool = False
    ) -> Float[Array, "B L"]:
        """Compute the classifier's logits.

        `mask` is True at the tokens of a sentence and False at padding, which does not affect the
        logits. If `train` is set, dropout draws from the key named "dropout".

        Raises:
            Refused: if the sentences have more tokens than `shape.length`.
        """
        shape = self.shape
        if tokens.shape[1] > shape.length:
            raise Refused(
                f"sentence length={tokens.shape[1]}, expected at most {shape.length}: the network "
                f"has {shape.positions} positions, and padding reserves positions 0 to "
                f"{shape.pad}. Try shorter sentences"
            )
        drop = lambda rows: nn.Dropout(shape.dropout)(rows, deterministic=not train)
        counts = mask.astype(tokens.dtype)
        places = jnp.cumsum(counts, axis=1) * counts + shape.pad
        table = lambda rows, name: nn.Embed(
            rows, shape.width, embedding_init=nn.initializers.normal(_scale(shape)), name=name
        )
        x = table(shape.vocabulary, "tokens")(tokens) + table(shape.positions, "positions")(places)
        x = x + table(shape.types, "types")(jnp.zeros_like(tokens))
        x = drop(_Norm(shape.eps, name="norm")(x))
        for index in range(shape.layers):
            x = _Layer(shape, name=f"layer{index}")(x, mask, train)
        first = jnp.tanh(_dense(shape, shape.width, shape.width, "classifier_dense")(drop(x[:, 0])))
        return _dense(shape, shape.labels, shape.width, "classifier_out")(drop(first))


def _scale(shape: RobertaShape) -> float:
    return shape.deviation or 1 / sqrt(shape.width)


def _dense(shape: RobertaShape, out: int, fan: float, name: str) -> nn.Dense:
    deviation = shape.deviation or 1 / sqrt(fan)
    return nn.Dense(out, kernel_init=nn.initializers.normal(deviation), name=name)


def init_roberta(shape: RobertaShape, key: Array, /) -> dict:
    """Draw random parameters in the current default precision."""
    tokens = jnp.zeros((1, 1), jnp.int32)
    params = Roberta(shape).init(key, tokens, jnp.ones((1, 1), bool))["params"]
    return jax.tree.map(lambda leaf: leaf.astype(jnp.zeros(()).dtype), dict(params))


def recut_heads(shape: RobertaShape, heads: int, /) -> RobertaShape:
    """Return the shape of a network that divides the same weight matrices among `heads` heads.

    The parameters themselves do not change.

    Raises:
        Refused: if `heads` does not divide the number of columns of all present heads, heads *
            head_width.
    """
    columns = shape.heads * shape.head_width
    if heads < 1 or columns % heads:
        raise Refused(
            f"heads={heads}, expected a divisor of the network's {columns} attention columns. "
            "Try heads=1"
        )
    return replace(shape, heads=heads, head_width=columns // heads)


def prune_heads(shape: RobertaShape, params: dict, keep: np.ndarray, /) -> dict:
    """Return the parameters of a network that keeps only the heads `keep` of each layer.

    The smaller network has the given shape with `heads=keep.shape[1]`.

    `keep` holds the indices of the kept heads, shape (layers, heads kept).

    Raises:
        Refused: if `keep` does not have one row for each layer, or contains the index of a head
            that does not exist.
    """
    keep = np.asarray(keep)
    inside = keep.size and keep.min() >= 0 and keep.max() < shape.heads
    if keep.ndim != 2 or len(keep) != shape.layers or not inside:
        raise Refused(
            f"keep.shape={keep.shape}, expected ({shape.layers}, heads kept) with indices of"
            f" heads below {shape.heads}. Try one row of indices for each layer"
        )

    def columns(leaf: Array, rows: np.ndarray) -> Array:
        parts = leaf.reshape(*leaf.shape[:-1], shape.heads, shape.head_width)[..., rows, :]
        return parts.reshape(*leaf.shape[:-1], -1)

    pruned = dict(params)
    for index, rows in enumerate(keep):
        layer = dict(params[f"layer{index}"])
        attention = dict(layer["attention"])
        for name in ("query", "key", "value"):
            attention[name] = {k: columns(leaf, rows) for k, leaf in attention[name].items()}
        output = attention["output"]
        kernel = columns(output["kernel"].T, rows).T
        layer["attention"] = attention | {"output": dict(output) | {"kernel": kernel}}
        pruned[f"layer{index}"] = layer
    return pruned
