"""The layers of Appendix C, each as weights on a `Layout` (Lemmas C.1-C.8).

Every function returns a list of layers, in the order in which the network applies them. A layer
puts zero in every coordinate that it neither copies (`keep`) nor computes (`row`). The attention
adds its values to the state, in coordinates that are zero before the layer.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxbounds.smapprox.layout import Layout
from jaxbounds.smapprox.machines import TuringMachine

Weights = dict[str, np.ndarray]


@dataclass
class Layer:
    """One layer of the network; the compiler sets its weights one by one.

    Attributes:
        name: the part of the proof to which the layer belongs.
        purpose: the quantity that the layer computes, in words.
        W1: the weights of relu(W1 h + b1).
        b1: the biases of relu(W1 h + b1).
        dec: the weights of the attention to past steps.
        enc: the weights of the attention to the input.
        attends: "dec", "enc" or both, for the attentions that the layer uses.
    """

    name: str
    purpose: str
    layout: Layout
    W1: Float[np.ndarray, "w w"] = field(init=False)
    b1: Float[np.ndarray, "w"] = field(init=False)
    dec: Weights = field(init=False)
    enc: Weights = field(init=False)
    attends: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        w, k = self.layout.width, 2 * self.layout.bits + 1
        self.W1, self.b1 = np.zeros((w, w)), np.zeros(w)
        empty = lambda: {
            "Wq": np.zeros((k, w)),
            "bq": np.zeros(k),
            "Wk": np.zeros((k, w)),
            "bk": np.zeros(k),
            "K0": np.zeros(k),
            "Wv": np.zeros((w, w)),
            "bv": np.zeros(w),
            "V0": np.zeros(w),
        }
        self.dec, self.enc = empty(), empty()

    @property
    def params(self) -> dict[str, Any]:
        """Return the layer's weights for `transformer.attend` and `transformer.feed_forward`."""
        return {"dec": self.dec, "enc": self.enc, "W1": self.W1, "b1": self.b1}

    def keep(self, *groups: str) -> "Layer":
        """Make the layer copy all coordinates of the named groups, such as the states."""
        for group in groups:
            for i in self.layout.groups[group]:
                self.W1[i, i] = 1.0
        return self

    def row(self, target: int, terms: dict[int, float], bias: float = 0.0) -> "Layer":
        """Make the layer compute the coordinate target = relu(sum of weight * source + bias)."""
        self.W1[target] = 0.0
        for source, weight in terms.items():
            self.W1[target, source] += weight
        self.b1[target] = bias
        return self

    def match(self, kind: str, query: list[int], key: list[int], null: float) -> Weights:
        """Set the weights such that a key gets the score sum_b (2 query_b - 1)(2 key_b - 1).

        The null key has the score `null`.
        """
        weights, n = getattr(self, kind), len(key)
        for b, source in enumerate(query):
            weights["Wq"][b, source], weights["bq"][b] = 2.0, -1.0
        for b, source in enumerate(key):
            weights["Wk"][b, source], weights["bk"][b] = 2.0, -1.0
        weights["bq"][len(query) :][: n + 1 - len(query)] = 1.0
        weights["K0"][n] = null
        self.attends = (*self.attends, kind)
        return weights


def transition(layout: Layout, machine: TuringMachine, start: str, /) -> list[Layer]:
    """Build the two ReLU layers of Lemma C.1.

    They compute the next state, the written symbol and the head's move. At timestep 0, in the extra
    state `start`, the network goes to the machine's initial state, writes a blank and moves to cell
    1.
    """
    first = Layer("C.1 pair", "za = one-hot of (state, symbol read)", layout).keep("pos1", "pos2")
    second = Layer("C.1 act", "st = next state, sym2 = symbol written, scr4 = move", layout)
    second.keep("pos1", "pos2")
    for z in layout.states:
        for a in layout.symbols:
            pair = layout.pair(z, a)
            terms = {layout.at("st", z): 1.0, layout.at("sym1", a): 1.0}
            first.row(pair, terms, -1.0)
            after, write, move = (
                (machine.start, machine.blank, 1) if z == start else machine.action(z, a)
            )
            second.W1[layout.at("st", after), pair] = 1.0
            second.W1[layout.at("sym2", write), pair] = 1.0
            if move:
                second.W1[layout.at("scr4", "left" if move < 0 else "right"), pair] = 1.0
    return [first, second]


def ripple_adder(layout: Layout, /) -> list[Layer]:
    """Build Lemma C.2's layers, bit by bit: subtract the left-move flag, add the right-move flag.

    The XOR of a bit b and a carry c is relu(b - c) + relu(c - b); the next layer adds the two
    terms. The sum b + c can be 2, which a correction would round. The adder has 2 w_pos + 1 layers.
    """
    wp, bit = layout.bits, layout.low_bit
    left, right = layout.at("scr4", "left"), layout.at("scr4", "right")
    kept = ("st", "sym2", "pos1", "pos2", "pos3", "scr3", "scr4")
    result = []

    def finish(layer: Layer, t: int) -> None:
        layer.row(bit("pos3", t), {bit("pos3", t): 1.0, bit("scr3", t): 1.0})
        layer.row(bit("scr3", t), {})

    for flag, source, sign in ((left, "pos2", -1.0), (right, "pos3", 1.0)):
        word = "subtract left from" if sign < 0 else "add right to"
        for t in range(wp):
            layer = Layer("C.2 ripple", f"{word} bit {t} of the head", layout).keep(*kept)
            if t or sign > 0:
                finish(layer, (t - 1) % wp)
            b = bit(source, t)
            layer.row(bit("pos3", t), {b: 1.0, flag: -1.0})
            layer.row(bit("scr3", t), {flag: 1.0, b: -1.0})
            carry = {flag: 1.0, b: sign}
            layer.row(flag, carry, -1.0 if sign > 0 else 0.0)
            result.append(layer)
    last = Layer("C.2 ripple", "pos3 = head after the move; clear the carries", layout)
    last.keep("st", "sym2", "pos1", "pos2", "pos3")
    finish(last, wp - 1)
    return [*result, last]


def lookahead_adder(layout: Layout, /) -> list[Layer]:
    """Build the addition of Lemma C.2 in three layers.

    The first layer computes all carries, the second both halves of every XOR, and the third the
    sums. If the head moves right (right = 1), the carry into bit t of the position is relu(right +
    sum of lower bits - t). If the head moves left (left = 1), the borrow from bit t is relu(left -
    sum of lower bits).
    """
    wp, bit = layout.bits, layout.low_bit
    kept = ("st", "sym2", "pos1", "pos2")
    carries = Layer("C.2 carries", "pos3 = carry into, scr3 = borrow from each bit", layout)
    halves = Layer("C.2 halves", "pos3, scr3 = the two halves of bit XOR carry", layout)
    sums = Layer("C.2 sums", "pos3 = head after the move", layout)
    for layer in (carries, halves, sums):
        layer.keep(*kept)
    for t in range(wp):
        lower = [bit("pos2", s) for s in range(t)]
        up = {layout.at("scr4", "right"): 1.0} | dict.fromkeys(lower, 1.0)
        carries.row(bit("pos3", t), up, -float(t))
        carries.row(bit("scr3", t), {layout.at("scr4", "left"): 1.0} | dict.fromkeys(lower, -1.0))
        b, c, d = bit("pos2", t), bit("pos3", t), bit("scr3", t)
        halves.row(bit("pos3", t), {b: 1.0, c: -1.0, d: -1.0})
        halves.row(bit("scr3", t), {c: 1.0, d: 1.0, b: -1.0})
        sums.row(bit("pos3", t), {c: 1.0, d: 1.0})
    return [carries, halves, sums]


def find_last_visit(layout: Layout, /) -> list[Layer]:
    """Build the layers of Lemma C.3, which find a cell's last visit i' and the symbol written then.

    One layer decides whether the head visited the cell before (Claim C.4). After this decision,
    w_pos layers find the bits of i' by binary search (Claim C.5). The last of these layers copies
    the symbol that the machine wrote at step i' (Claim C.6). The last layer also reads the input
    symbol of the cell from the encoder (Lemma C.7).
    """
    wp = layout.bits
    group = lambda name: list(layout.groups[name])
    visited = Layer("C.4", "scr4[left] = was the cell visited before?", layout)
    visited.match("dec", group("pos3"), group("pos2"), wp - 1.0)["bv"][
        layout.at("scr4", "left")
    ] = 1.0
    visited.keep("st", "sym2", "pos1", "pos2", "pos3", "scr4")
    result = [visited]
    third = layout.at("scr4", "third")
    for j in range(wp):
        value = 2 ** (wp - 1 - j)
        layer = Layer("C.5", f"scr3 = the bit worth {value} of the last visit", layout)
        weights = layer.match(
            "dec",
            group("pos3") + group("scr3")[:j],
            group("pos2") + group("pos1")[: j + 1],
            float(wp + j),
        )
        weights["bv"][third] = 1.0
        layer.keep("st", "sym2", "pos1", "pos2", "pos3", "scr3", "scr4").row(third, {})
        layer.row(layout.at("scr3", j), {third: 1.0})
        result.append(layer)
    copy = Layer("C.6, C.7", "scr1 = symbol of the last visit, scr2 = input symbol", layout)
    weights = copy.match(
        "dec", group("pos3") + group("scr3"), group("pos2") + group("pos1"), 2.0 * wp - 1.0
    )
    for a in layout.symbols:
        weights["Wv"][layout.at("scr1", a), layout.at("sym2", a)] = 1.0
    weights = copy.match("enc", group("pos3"), group("pos1"), wp - 1.0)
    for a in layout.symbols:
        weights["Wv"][layout.at("scr2", a), layout.at("sym1", a)] = 1.0
    weights["bv"][layout.at("scr4", "right")] = 1.0
    copy.keep("st", "sym2", "pos1", "pos2", "pos3", "scr1", "scr2", "scr4")
    return [*result, copy]


def combine(layout: Layout, blank: str, /) -> list[Layer]:
    """Build the layers of Lemma C.8, which find the tape symbol that the moved head reads.

    The symbol is the last one written in the cell if the head visited it before, else the cell's
    input symbol, else the blank. The layers copy the state and the head's position, and clear all
    other groups.
    """
    flag = lambda name: layout.at("scr4", name)
    choose = Layer("C.8 choose", "scr4 = visited / input / blank, exactly one", layout)
    choose.keep("st", "pos3", "scr1", "scr2")
    choose.row(flag("left"), {flag("left"): 1.0})
    choose.row(flag("right"), {flag("right"): 1.0, flag("left"): -1.0})
    choose.row(flag("third"), {flag("left"): -1.0, flag("right"): -1.0}, 1.0)
    gate = Layer("C.8 gate", "drop the symbols that do not count", layout).keep("st", "pos3")
    gate.row(flag("third"), {flag("third"): 1.0})
    total = Layer("C.8 sum", "sym1 = symbol under the head, pos2 = head", layout).keep("st")
    for a in layout.symbols:
        for scratch, name in (("scr1", "left"), ("scr2", "right")):
            source = layout.at(scratch, a)
            gate.row(source, {source: 1.0, flag(name): 1.0}, -1.0)
        terms = {layout.at("scr1", a): 1.0, layout.at("scr2", a): 1.0}
        if a == blank:
            terms[flag("third")] = 1.0
        total.row(layout.at("sym1", a), terms)
    for b in range(layout.bits):
        total.row(layout.at("pos2", b), {layout.at("pos3", b): 1.0})
    return [choose, gate, total]
