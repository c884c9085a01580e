"""Draw random bits from keys in NumPy: Threefry-2x32 with the counters of `jax.random`.

A key is one 64-bit integer, so a rule that moves the entries of an array can also move keys.
Threefry comes from Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
"""

import math
from typing import Any

import jax
import numpy as np

from jaxbounds.programs.interpreted.values import NotInterpreted, Rule

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = np.uint32(0x1BD11BDA)
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
BLOCK = 2**13
"""The number of counters (inputs of JAX's random generator Threefry) that one step turns into
random bits. A larger block does not fit into the processor's cache.
"""


def as_numbers(keys: Any, /) -> np.ndarray:
    """Return JAX's keys as 64-bit integers, one for each key."""
    words = np.asarray(jax.random.key_data(keys)).astype(np.uint64)
    return (words[..., 0] << HALF) | words[..., 1]


def is_threefry(dtype: Any, /) -> bool:
    """Tell whether `dtype` belongs to Threefry's keys and `jax_threefry_partitionable` is on."""
    config: Any = jax.config
    return str(dtype) == "key<fry>" and bool(config.jax_threefry_partitionable)


def threefry(keys: np.ndarray, counts: np.ndarray, /) -> np.ndarray:
    """Apply Threefry-2x32 with 20 rounds to keys and counts, which are 64-bit integers."""
    flags: Any = ("external_loop", "buffered", "zerosize_ok")
    sides: Any = (["readonly"], ["readonly"], ["writeonly", "allocate"])
    with np.nditer([keys, counts, None], flags, sides, buffersize=BLOCK, order="C") as blocks:
        for key, count, out in blocks:
            out[...] = _mixed(key, count)
        return np.asarray(blocks.operands[2])


def _mixed(keys: np.ndarray, counts: np.ndarray) -> np.ndarray:
    words = lambda x: ((x >> HALF).astype(np.uint32), (x & LOW).astype(np.uint32))
    (one, two), (x, y) = words(keys), words(counts)
    schedule, turned = (one, two, one ^ two ^ PARITY), np.empty_like(y)
    x += one
    y += two
    for i in range(5):
        for turn in ROTATIONS[i % 2]:
            x += y
            np.left_shift(y, np.uint32(turn), out=turned)
            y >>= np.uint32(32 - turn)
            y |= turned
            y ^= x
        x += schedule[(i + 1) % 3]
        y += schedule[(i + 2) % 3]
        y += np.uint32(i + 1)
    return (x.astype(np.uint64) << HALF) | y


def _of_shape(keys: Any, shape: tuple[int, ...]) -> np.ndarray:
    keys = np.asarray(keys)
    counts = np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
    return threefry(keys.reshape(keys.shape + (1,) * len(shape)), counts)


def _bits(keys: Any, *, bit_width: int, shape: Any, **_: Any) -> Any:
    found = _of_shape(keys, tuple(shape))
    if bit_width == 64:
        return found
    folded = ((found >> HALF) ^ found) & LOW
    return folded.astype(f"u{bit_width // 8}")


def _folded_in(keys: Any, data: Any, **_: Any) -> Any:
    keys, data = np.asarray(keys), np.asarray(data)
    if np.issubdtype(data.dtype, np.signedinteger) and np.any(data < 0):
        raise NotInterpreted(
            "the program folds a negative number into a random key, for which NumPy has no rule"
        )
    return threefry(*np.broadcast_arrays(keys, data.astype(np.uint64) & LOW))


def _unwrapped(keys: Any, **_: Any) -> Any:
    keys = np.asarray(keys)
    return np.stack([keys >> HALF, keys & LOW], axis=-1).astype(np.uint32)


def _wrapped(words: Any, **_: Any) -> Any:
    words = np.asarray(words).astype(np.uint64)
    return (words[..., 0] << HALF) | words[..., 1]


RULES: dict[str, Rule] = {
    "random_bits": _bits,
    "random_split": lambda keys, *, shape, **_: _of_shape(keys, tuple(shape)),
    "random_fold_in": _folded_in,
    "random_wrap": _wrapped,
    "random_unwrap": _unwrapped,
}
