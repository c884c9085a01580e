"""A random-code RNN that refutes Proposition 8's second bound: |U|_op does not grow with N.

The RNN rounds each scalar <u, x_j> to one of 2^b levels, which gives b bits. The RNN's state is a
unit vector, the codeword of the bits of all tokens so far, in a random linear code of length D = 8
b N. A transition decodes the state, appends the new bits, and encodes the result. Any two codewords
are far apart, so the Lipschitz constant of the readout does not grow with N. McShane's formula
extends the readout from the codewords to all states. The matrix U = [I I] has |U|_op^2 = 2.
"""

import functools
import math
from typing import NamedTuple

import jax
import numpy as np
import scipy
from jaxtyping import Float

from jaxbounds.ground.exceptions import Refused


class Quantiser(NamedTuple):
    """A quantiser of N(0, 1): Lloyd-Max levels, thresholds between them, mean squared error."""

    levels: Float[np.ndarray, "k"]
    thresholds: Float[np.ndarray, "k-1"]
    error: float


@functools.cache
def lloyd_max(bits: int, /, *, iterations: int = 2000) -> Quantiser:
    """Return the 2^bits levels of least mean squared error for N(0, 1), by Lloyd's iteration.

    Raises:
        Refused: if bits is not between 1 and 6.
    """
    if not 1 <= bits <= 6:
        raise Refused(f"bits={bits}, expected an integer from 1 to 6. Try bits=3")
    density = lambda v: np.exp(-(v**2) / 2) / math.sqrt(2 * math.pi)
    levels = scipy.special.ndtri((np.arange(2**bits) + 0.5) / 2**bits)
    for _ in range(iterations):
        edges = np.concatenate([[-np.inf], (levels[1:] + levels[:-1]) / 2, [np.inf]])
        # E[v; a < v < b] = phi(a) - phi(b).
        levels = -np.diff(density(edges)) / np.diff(scipy.special.ndtr(edges))
    mass = np.diff(scipy.special.ndtr(edges))
    return Quantiser(levels, edges[1:-1], float(1.0 - np.sum(mass * levels**2)))


class CodeRNN(NamedTuple):
    """A random-code RNN for prompts of N tokens, with the norms that Proposition 8's bound needs.

    Attributes:
        generator: the generator matrix of the code over the two-element field, with a row for each
            bit.
        distance: the smallest distance between two of the RNN's states (unit vectors).
        lipschitz: the Lipschitz constant L of the readout as a function of the states (h->, h<-),
            for states of norm r_h = 1.
        frobenius_norm: the Frobenius norm |U|_F of the input matrix U = [I I]; this norm grows with
            N.
        width: the dimension d_h = D of a state.
    """

    generator: np.ndarray
    quantiser: Quantiser
    distance: float
    lipschitz: float
    operator_norm: float
    frobenius_norm: float
    width: int


def _words(generator: np.ndarray) -> np.ndarray:
    words = np.zeros((1, generator.shape[1]), dtype=np.uint8)
    for row in generator:
        words = np.concatenate([words, words ^ row[None, :]])
    return words


def _least_weight(generator: np.ndarray) -> int:
    words = np.zeros((1, generator.shape[1] // 8), dtype=np.uint8)
    for row in np.packbits(generator, axis=1):
        words = np.concatenate([words, words ^ row[None, :]])
    return int(np.bitwise_count(words)[1:].sum(axis=1, dtype=np.int64).min())


def code_rnn(key: jax.Array, N: int, /, *, bits: int = 3, redundancy: int = 8) -> CodeRNN:
    """Draw a random code for N tokens and measure its smallest distance over all codewords.

    `bits` is the number b of bits of a quantised token. `redundancy` is the length D of a codeword
    divided by the number b N of encoded bits; D must be a multiple of eight.

    Raises:
        Refused: if there are more than 2^20 codewords to enumerate, N < 2, or two messages have the
            same codeword.
    """
    if N < 2:
        raise Refused(
            f"N={N}, expected at least 2 tokens, so that there is a token to remember. Try N=4"
        )
    if bits * N > 20:
        raise Refused(
            f"bits * N = {bits * N} gives 2^{bits * N} codewords, too many to enumerate: expected"
            " bits * N <= 20. Try smaller bits or N"
        )
    quantiser = lloyd_max(bits)
    length = 8 * math.ceil(redundancy * bits * N / 8)
    generator = np.asarray(jax.random.bernoulli(key, 0.5, (bits * N, length)), dtype=np.uint8)
    # Entries of words are +-1 / sqrt(D), so words at Hamming distance w are 2 sqrt(w / D) apart.
    distance = 2.0 * math.sqrt(_least_weight(generator) / length)
    if distance == 0.0:
        raise Refused(
            f"the code has distance={distance}: two messages share a codeword. Try another key"
        )
    spread = float(quantiser.levels[-1] - quantiser.levels[0])
    return CodeRNN(
        generator=generator,
        quantiser=quantiser,
        distance=distance,
        lipschitz=spread / distance,
        operator_norm=math.sqrt(2.0),
        frobenius_norm=math.sqrt(2.0 * length),
        width=length,
    )


def encode_tokens(rnn: CodeRNN, values: Float[np.ndarray, "n"], /) -> Float[np.ndarray, "D"]:
    """Return the RNN's state after the tokens with these scalars <u, x_j>.

    The message bits of later tokens are zero.
    """
    indices = np.searchsorted(rnn.quantiser.thresholds, values)
    bits = int(math.log2(len(rnn.quantiser.levels)))
    message = ((indices[:, None] >> np.arange(bits)[None, :]) & 1).reshape(-1)
    padded = np.zeros(rnn.generator.shape[0], dtype=np.int64)
    padded[: len(message)] = message
    word = (padded @ rnn.generator.astype(np.int64)) % 2
    return (1.0 - 2.0 * word) / math.sqrt(rnn.width)


def read_token(rnn: CodeRNN, state: Float[np.ndarray, "D"], k: int, /) -> float:
    """Decode the k-th token's quantised scalar from the codeword nearest to a state.

    Raises:
        Refused: if the prompt has no k-th token.
    """
    bits = int(math.log2(len(rnn.quantiser.levels)))
    if not 0 <= k < rnn.generator.shape[0] // bits:
        raise Refused(
            f"token k={k} is outside the prompt, which has {rnn.generator.shape[0] // bits}"
            " tokens. Try k=0"
        )
    words = 1.0 - 2.0 * _words(rnn.generator).astype(np.float64)
    nearest = int(np.argmax(words @ state))
    return float(rnn.quantiser.levels[(nearest >> (bits * k)) & (2**bits - 1)])


def number_rnn_lipschitz(N: int, /, *, bits: int = 3, numbers: int = 1) -> float:
    """Return the readout's Lipschitz constant when a state of k numbers stores all b N bits.

    The input matrix is U = [I I], and `bits` is b. The state has k = `numbers` entries in [-1,
    1]/sqrt(k), so d_h = k. Each entry holds b N/k bits, so two states are at least 2 / ((2^{bN/k} -
    1) sqrt(k)) apart. McShane's formula extends the readout from the states that occur to all
    states. Up to a constant factor, this width is the least that Proposition 8's bound on d_h
    allows. In this bound, log(1 + L^2 |U|^2) is (2 b N/k) log 2 up to an additive constant.

    Raises:
        Refused: if k does not divide the number b N of bits.
    """
    if numbers < 1 or (bits * N) % numbers:
        raise Refused(
            f"numbers={numbers}, expected a divisor of bits * N = {bits * N}. Try {bits * N} or 1"
        )
    levels = lloyd_max(bits).levels
    steps = (2.0 ** (bits * N / numbers) - 1.0) * math.sqrt(numbers) / 2.0
    return float(levels[-1] - levels[0]) * steps


def light_words(N: int, /, *, bits: int, share: float) -> float:
    """Return log2 of the expected number of light words in a random code of length 8 b N.

    A codeword is light if it is nonzero and its share of ones is at most `share`, below 1/2. The
    expected number is exactly (2^{bN} - 1) P(Bin(8 b N, 1/2) <= share 8 b N), with b = `bits`. If
    this number is below 1, some code has no light codeword and therefore L^2 |U|_op^2 <= spread^2 /
    (2 share). Here `spread` is the distance between the quantiser's largest and smallest level.
    """
    length = 8 * bits * N
    terms = [
        math.lgamma(length + 1) - math.lgamma(j + 1) - math.lgamma(length - j + 1)
        for j in range(math.floor(share * length) + 1)
    ]
    least = scipy.special.logsumexp(terms) - length * math.log(2.0)
    nonzero = math.log1p(-(2.0 ** -(bits * N))) + bits * N * math.log(2.0)
    return float((nonzero + least) / math.log(2.0))
