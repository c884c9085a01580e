"""Appendix C: positions in binary, the attention of Claims C.4 to C.6, states of the network.

Cells count from 1, l_0 = 1; x_1, .., x_m lie on the left-most cells. `Bin` has w_pos bits, so that
positions are known modulo 2^w_pos.
"""

from fractions import Fraction
from typing import Any

from ..claims import checks
from ..intervals import interval
from ..judge import Sides, assume
from ..witness import Witness

PARITY_STATES, PARITY_SYMBOLS = 4, 3
"""Even, odd, accept, reject; 0, 1 and blank. Its head moves right in every step."""
BLANK = 2


def position_bits(T: int) -> int:
    """ceil(log2 T), Appendix C.1."""
    return (T - 1).bit_length()


@checks(
    "smapprox.claimc.5.case2",
    "printed",
    ("bit j + 1 of t", "=", "0"),
    formula="t <= i' and bit j+1 of i' zero  =>  bit j+1 of t zero",
    text="8ac56b8f8bba598fa6adb9ab4a41051d",
    size="bits=3",
    leaves={"j": "i", "last": "i", "t": "i"},
)
def bit_of_earlier(w: Witness) -> Sides:
    """Bit j + 1 of t, where t <= i' and bit j + 1 of i' is 0; the claim says 0.

    Claim C.5 finds i' bit by bit from the most significant, which is bit 1.
    """
    j, last, t, bits = w.whole("j"), w.whole("last"), w.whole("t"), w.size["bits"]
    bit = lambda number: number >> (bits - j - 1) & 1
    sure = {
        "0 <= j < w_pos": 0 <= j < bits,
        "1 <= t <= i' < 2^w_pos": 1 <= t <= last < 2**bits,
        "bit j + 1 of i' is 0": bit(last) == 0,
    }
    assume(sure)
    return Sides(bit(t), 0)


@checks(
    "smapprox.thm4.1.norms",
    "printed",
    ("the most entries of a state that are not 0", "<=", "|Z| + |A| + w_pos"),
    formula="every state of the network has at most |Z| + |A| + log T entries that are not 0",
    text="3d04a28babebda32bd336fbe06f342a8",
    size="T=31",
    leaves={"word": "i"},
)
def entries_of_states(w: Witness) -> Sides:
    """The most entries that are not 0 in a state (C.8), (C.11), against |Z| + |A| + w_pos.

    At step i: one in st, one in sym2, Bin(i) in pos1, Bin(l_{i-1}) in pos2, Bin(l_i) in pos3; the
    parity machine goes right only, l_i = i + 1, so that no earlier visit fills scr3 unless cells
    coincide modulo 2^w_pos, which they do at step T alone.
    """
    T = w.size["T"]
    bits = position_bits(T)
    ones = lambda number: (number % 2**bits).bit_count()
    counts = [2 + ones(i) + ones(i) + ones(i + 1) for i in range(1, T)]
    sure = {"the first word": w["word"] == 0, "T >= 2": T >= 2}
    assume(sure)
    return Sides(max(counts), PARITY_STATES + PARITY_SYMBOLS + bits)


@checks(
    "smapprox.thm4.1.positions",
    "printed",
    ("a_0, .., a_T as the network reads them", "=", "a_0, .., a_T"),
    formula="the symbols at steps 0..T are right with w_pos position bits",
    text="465ebfc2870276ac9b604ea862117742",
    size="T=4",
    leaves={"word": "i"},
)
def symbols_under_the_head(w: Witness) -> Sides:
    """a_0, .., a_T as the network reads them with w_pos = ceil(log2 T) bits, and as they are.

    (C.6), (C.15), (C.16): where some t <= i has l_{t-1} = l_i, the last such wrote a_i; else a_i is
    x at l_i where that is an input, else blank; all modulo 2^w_pos. The parity machine on (0, 0, 0)
    writes what it reads and goes right; step 0 is the start.
    """
    T = w.size["T"]
    period, x = 2 ** position_bits(T), [0] * (T - 1)
    head = lambda i: i + 1
    symbol = lambda cell: x[cell - 1] if cell <= len(x) else BLANK
    read = []
    for i in range(T + 1):
        same = lambda cell, i=i: (cell - head(i)) % period == 0
        visits = [t for t in range(1, i + 1) if same(head(t - 1))]
        cells = [cell for cell in range(1, len(x) + 1) if same(cell)]
        if visits:
            read.append(symbol(head(visits[-1] - 1)))
        else:
            read.append(symbol(cells[0]) if cells else BLANK)
    sure = {"the first word": w["word"] == 0, "T >= 2": T >= 2}
    assume(sure)
    return Sides(read, [symbol(head(i)) for i in range(T + 1)])


HEADS = (1, 2, 1, 2, 1)
"""l_0, .., l_4 of a machine that goes to and fro: step 4 ends on cell 1, as steps 0 and 2 did."""
STATES = SYMBOLS = W_POS = 3


def _tied_attention(key: Fraction, move: Fraction) -> list[int]:
    """The steps that Claim C.4's layer attends to at i = 4.

    Scores are <Q(h_4), K(h_t)> with Q = 2 Bin(l_4) - 1 and K = 2 Bin(l_{t-1}) - 1; `key` is added
    to the first row of W_K at the bit of pos1 that tells 1 from 3, `move` to the first bit of pos2
    in h_1. The null key has w_pos - 1.
    """
    bits = lambda number: [number >> k & 1 for k in reversed(range(W_POS))]
    query = [2 * bit - 1 for bit in bits(HEADS[4])]
    scores = {0: Fraction(W_POS - 1)}
    for t in range(1, 5):
        place = [Fraction(bit) for bit in bits(HEADS[t - 1])]
        place[0] += move if t == 1 else 0
        keys = [2 * p - 1 for p in place]
        keys[0] += key * bits(t)[1]
        scores[t] = sum(q * k for q, k in zip(query, keys))
    return [t for t, score in scores.items() if score == max(scores.values())]


TIES: Any = {
    "formula": (
        "the positions attended to at (theta-hat, H-hat) are those at (theta, H); |f(H, "
        "theta-hat) - f(H-hat, theta-hat)| <= mu |H - H-hat|"
    ),
    "size": "keys=4",
    "leaves": {"value": "f keys", "epsilon": "f"},
}


@checks(
    "smapprox.condd.3.ties",
    "printed",
    ("1 + the number of positions no longer attended to", "<=", "1"),
    text="2dd117eb2d439c98e350c7e20d5869f5",
    **TIES,
)
@checks(
    "smapprox.condd.3.ties",
    "printed condition",
    ("|f(H) - f(H^)|", "<=", "(|Z| |A| w_pos)^3 epsilon"),
    text="ceada2d231e322639cbc2311705aa547",
    **TIES,
)
def broken_tie(w: Witness) -> Sides:
    """One more than how many positions are no longer attended to, against one; or the jump.

    `printed`: the key weight is moved by epsilon. `printed condition`: the value map is moved by
    `value` (three weights on the bits of pos1, and a bias), h_1 by epsilon: |f(H) - f(H^)| with
    f = h + the mean value, against mu epsilon, mu = (|Z||A| w_pos)^3.
    """
    value, epsilon = w["value"], w["epsilon"]
    poly = STATES * SYMBOLS * W_POS
    still = _tied_attention(Fraction(0), Fraction(0))
    sure = {
        "steps 1 and 3 tie": still == [1, 3],
        "0 < epsilon < 1/poly": 0 < epsilon < Fraction(1, poly**2),
        "|value| < 1/poly": sum(value**2) < Fraction(1, poly**4),
    }
    if w.form == "printed":
        moved = _tied_attention(epsilon, Fraction(0))
        assume(sure)
        return Sides(1 + len(set(still) ^ set(moved)), 1)
    moved = _tied_attention(Fraction(0), epsilon)
    bits = lambda t: [t >> 2 & 1, t >> 1 & 1, t & 1, 1]
    # The unmoved value of every step is 1, which the difference of means does not see.
    mean = lambda steps: sum(value @ bits(t) for t in steps) / Fraction(len(steps))
    assume(sure)
    return Sides(interval(abs(mean(still) - mean(moved))), poly**3 * epsilon)
