"""The sparse majority task of Section 6: bits, a hidden set of indices, embedded tokens.

A sequence of T bits has label 1 if more than half of its bits at the hidden indices I are 1. The
bits 0 and 1 become two orthogonal vectors. A [CLS] token follows, and all T + 1 tokens get a
positional code.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxbounds.ground.exceptions import Refused


@dataclass(frozen=True, kw_only=True)
class Embedding:
    """The map from bits to tokens.

    Attributes:
        symbols: "l1" divides the three symbol vectors by their l_1 norms, as the public code does
            (l_2 norms near 0.15). "l2" gives them the l_2 norm 1.
        symbol_scale: the factor that multiplies the symbol vectors.
        position_scale: the factor that multiplies the positional code.
        position: "code" has cos(j / 10000^(i/d)) at odd coordinates i, as the public code has by
            mistake. "vaswani" has the exponent (i - 1) / d of Vaswani et al.
    """

    d: int = 64
    symbols: str = "l1"
    symbol_scale: float = 1.0
    position_scale: float = 1.0
    position: str = "code"


class Task(NamedTuple):
    """One random instance of the task: its token vectors and hidden indices, without the bits.

    Attributes:
        base: the token of a bit 0 at each position; the [CLS] token comes last.
        difference: the vector that is added to a token if the token's bit is 1.
        relevant: the hidden indices I.
    """

    base: Float[Array, "tokens d"]
    difference: Float[Array, "d"]
    relevant: Int[Array, "s"]


def positional_code(length: int, d: int, /, *, kind: str = "code") -> Float[Array, "length d"]:
    """Compute sin(j / 10000^(i/d)) at even i and the cosine at odd i, for positions j from 0.

    Raises:
        Refused: if `kind` is neither "code" nor "vaswani".
    """
    if kind not in ("code", "vaswani"):
        raise Refused(
            f"position={kind!r} is unknown, expected 'code' or 'vaswani'. Try position='code'"
        )
    i = jnp.arange(d)
    exponent = i if kind == "code" else 2 * (i // 2)
    j = jnp.arange(length).astype(float)
    angle = j[:, None] / 10000.0 ** (exponent.astype(float) / d)[None, :]
    return jnp.where((i % 2 == 0)[None, :], jnp.sin(angle), jnp.cos(angle))


def draw_symbols(key: Array, embedding: Embedding, /) -> Float[Array, "3 d"]:
    """Draw three orthogonal vectors for 0, 1 and [CLS].

    The vectors have uniform entries before Gram-Schmidt and normalisation.

    Raises:
        Refused: if d < 3 or `symbols` is neither "l1" nor "l2".
    """
    if embedding.d < 3:
        raise Refused(f"d={embedding.d}, expected at least 3 for three orthogonal symbols. Try d=3")
    if embedding.symbols not in ("l1", "l2"):
        raise Refused(
            f"symbols={embedding.symbols!r} is unknown, expected 'l1' or 'l2'. Try symbols='l2'"
        )
    raw = jax.random.uniform(key, (3, embedding.d), minval=-1.0, maxval=1.0)
    zero = raw[0]
    one = raw[1] - (raw[1] @ zero) / (zero @ zero) * zero
    cls = raw[2] - (raw[2] @ zero) / (zero @ zero) * zero - (raw[2] @ one) / (one @ one) * one
    vectors = jnp.stack([zero, one, cls])
    order = 1 if embedding.symbols == "l1" else 2
    lengths = jnp.linalg.norm(vectors, ord=order, axis=1)
    return embedding.symbol_scale * vectors / lengths[:, None]


def draw_task(key: Array, embedding: Embedding, /, *, T: int, sparsity: int = 9) -> Task:
    """Draw the symbols and the hidden indices.

    Raises:
        Refused: if `sparsity` is even (ties), below 1, or not below T.
    """
    if sparsity % 2 == 0 or not 1 <= sparsity < T:
        raise Refused(
            f"sparsity={sparsity} and T={T}, expected an odd sparsity below T, so that no majority "
            f"ties. Try sparsity=3"
        )
    key_symbols, key_relevant = jax.random.split(key)
    zero, one, cls = draw_symbols(key_symbols, embedding)
    position = positional_code(T + 1, embedding.d, kind=embedding.position)
    symbols = jnp.concatenate([jnp.broadcast_to(zero, (T, embedding.d)), cls[None]])
    relevant = jax.random.permutation(key_relevant, T)[:sparsity]
    return Task(symbols + embedding.position_scale * position, one - zero, relevant)


def draw_bits(key: Array, /, *, n: int, T: int) -> Bool[Array, "n T"]:
    """Draw n sequences of independent fair bits."""
    return jax.random.bernoulli(key, 0.5, (n, T))


def majority_label(bits: Bool[Array, "n T"], relevant: Int[Array, "s"], /) -> Int[Array, "n"]:
    """Return 1 if more than half of the relevant bits are 1, else 0."""
    count = jnp.sum(bits[:, relevant].astype(jnp.int32), axis=1)
    return (2 * count > relevant.shape[0]).astype(jnp.int32)


def embed(task: Task, bits: Bool[Array, "n T"], /) -> Float[Array, "n tokens d"]:
    """Embed each sequence as T + 1 tokens, [CLS] last."""
    n = bits.shape[0]
    padded = jnp.concatenate([bits, jnp.zeros((n, 1), bool)], axis=1).astype(task.base.dtype)
    return task.base[None] + padded[:, :, None] * task.difference[None, None]
