"""Describe a compiled network: each layer's purpose, and the step that wrote each read symbol."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from jaxbounds.ground.exceptions import Refused
from jaxbounds.smapprox.compile_machine import Compiled
from jaxbounds.smapprox.execute import Decoded, execute
from jaxbounds.smapprox.layers import Layer
from jaxbounds.smapprox.machines import simulate
from jaxbounds.smapprox.transformer import Attention

TIES_SHOWN = Attention(tie_tolerance=1e-4)
"""Hard attention that treats nearly equal scores as ties, so that float32 rounding does not change
the attention maps."""


def show(compiled: Compiled, /, *, equations: bool = False) -> str:
    """Describe each layer: its name, purpose and attention, and its formulas with `equations`."""
    layout, rounding = compiled.layout, compiled.correction
    sizes = ", ".join(f"{name} {len(places)}" for name, places in layout.groups.items())
    lines = [
        f"{compiled.machine.name}: T = {compiled.T}, w_pos = {layout.bits}, width {layout.width}, "
        f"depth {compiled.depth}",
        f"coordinates: {sizes}" + (f", padding {layout.padding}" if layout.padding else ""),
        "correction: "
        + (
            "none"
            if rounding is None
            else f"slope {rounding.slope:g}, radius {rounding.radius:.4g}"
        ),
    ]
    for i, layer in enumerate(compiled.layers, start=1):
        lines.append(f"layer {i:2d}  {layer.name:11s}  {layer.purpose}")
        lines += [f"          {text}" for text in _attentions(layer)]
        if equations:
            lines += [f"          {text}" for text in layer_equations(layer)]
    return "\n".join(lines)


def _attentions(layer: Layer) -> list[str]:
    names = layer.layout.names
    lines = []
    for kind, word in (("dec", "past steps"), ("enc", "input")):
        if kind not in layer.attends:
            continue
        p = getattr(layer, kind)
        matched = [
            f"{names[q.argmax()]}={names[k.argmax()]}" if q.any() else f"{names[k.argmax()]}=1"
            for q, k in zip(p["Wq"], p["Wk"])
            if k.any()
        ]
        targets = [names[i] for i in np.flatnonzero(p["bv"])]
        targets += [f"{names[i]} from {names[j]}" for i, j in np.argwhere(p["Wv"])]
        lines.append(
            f"attends to {word} where {', '.join(matched)}; null score {p['K0'].max():g}; "
            f"adds {', '.join(targets)}"
        )
    return lines


def layer_equations(layer: Layer, /) -> list[str]:
    """Return a line "target = relu(terms)" per computed coordinate, and a line of copied groups."""
    names = layer.layout.names
    copied, computed = [], []
    for i, (row, bias) in enumerate(zip(layer.W1, layer.b1)):
        sources = np.flatnonzero(row)
        if not len(sources) and not bias:
            continue
        if list(sources) == [i] and row[i] == 1.0 and not bias:
            copied.append(i)
            continue
        terms = " ".join(
            f"{'+' if row[j] > 0 else '-'} {_factor(row[j])}{names[j]}" for j in sources
        )
        constant = f" {'+' if bias > 0 else '-'} {abs(bias):g}" if bias else ""
        computed.append(f"{names[i]} = relu({terms.removeprefix('+ ')}{constant})")
    if not copied:
        return computed
    whole = {g: set(at) for g, at in layer.layout.groups.items() if set(at) <= set(copied)}
    apart = [names[i] for i in copied if not any(i in at for at in whole.values())]
    return [*computed, f"copies {', '.join([*whole, *apart])}"]


def _factor(weight: float) -> str:
    return "" if abs(weight) == 1.0 else f"{abs(weight):g} "


class Read(NamedTuple):
    """The place from which a step reads the symbol under the head, found in the attention maps.

    Attributes:
        step: the number i of the step.
        cell: the head's cell l_i modulo 2^w_pos.
        source: "step" for a past step, "input" or "blank".
        index: the past timestep i' (from 1, as in the paper) or the input position; 0 for a blank.
        symbol: the symbol under the head.
    """

    step: int
    cell: int
    source: str
    index: int  # type: ignore[assignment]
    symbol: str


class Attended(NamedTuple):
    """The attention maps of one run.

    Attributes:
        decoder: the attention weights of each search layer, with axes (layers, steps, keys). The
            keys are the null key and the timesteps 1..T.
        encoder: the attention weights to the input, with axes (steps, keys). The keys are the null
            key and the input positions.
        layers: a description of each search layer in words.
        reads: the source of the symbol under the head, one `Read` for each step.
    """

    decoder: Float[np.ndarray, "L T1 T1"]
    encoder: Float[np.ndarray, "T1 m1"]
    layers: tuple[str, ...]
    reads: tuple[Read, ...]


def attended(
    compiled: Compiled, word: Sequence[str], /, *, attention: Attention = TIES_SHOWN
) -> Attended:
    """Run one word and recover the source of every symbol from attention alone."""
    run = execute(compiled, [word], record=True, attention=attention)
    search = [i for i, layer in enumerate(compiled.layers) if "dec" in layer.attends]
    decoder = run.record.decoder_weights[0][:, search].transpose(1, 0, 2)
    encoder = run.record.encoder_weights[0][:, search[-1]]
    layout, hidden = compiled.layout, run.record.hidden[0]
    part = lambda row, group: row[layout.groups[group].start : layout.groups[group].stop]
    powers = 2 ** np.arange(layout.bits)[::-1]
    reads = []
    for i in range(compiled.T + 1):
        before = hidden[i, search[-1] - 1]
        cell = int(np.rint(part(before, "pos3")) @ powers)
        past, place = int(decoder[-1, i].argmax()), int(encoder[i].argmax())
        if past:
            symbol = layout.symbols[int(part(hidden[past, search[-1] - 1], "sym2").argmax())]
            reads.append(Read(i, cell, "step", past, symbol))
        elif place:
            reads.append(Read(i, cell, "input", place, word[place - 1]))
        else:
            reads.append(Read(i, cell, "blank", 0, compiled.machine.blank))
    purposes = tuple(compiled.layers[i].purpose for i in search)
    return Attended(np.asarray(decoder), np.asarray(encoder), purposes, tuple(reads))


def recovered_tape(compiled: Compiled, seen: Attended, /) -> np.ndarray:
    """Return the tape that the network has read at each step, with "?" for unread cells.

    The symbol read at step i is the content of cell l_i from step i until the next read of that
    cell. The rows of the result are the steps 0..T, and the columns are the cells modulo 2^w_pos,
    from 0.

    Raises:
        Refused: if the network's states encode a head position outside the tape.
    """
    cells = 2**compiled.layout.bits
    table = np.full((compiled.T + 1, cells), "?", dtype="<U8")
    for read in seen.reads:
        if not 0 <= read.cell < cells:
            raise Refused(
                f"head cell={read.cell} at step {read.step} is outside the tape"
                f" 0..{cells - 1}: the states of the network are no longer binary. Try"
                " compiling with a correction"
            )
        table[read.step :, read.cell] = read.symbol
    return table


def side_by_side(compiled: Compiled, word: Sequence[str], decoded: Decoded, row: int, /) -> str:
    """Write a table with the network's and the simulator's state, head and symbol at every step."""
    machine = compiled.machine
    trace = simulate(machine, word, compiled.T)
    lines = [f"{'step':>4}  {'network':<28}  {'machine':<28}"]
    for i in range(compiled.T + 1):
        pair = []
        for z, l, a in (
            (decoded.states[row, i], decoded.heads[row, i], decoded.symbols[row, i]),
            (trace.states[i], trace.heads[i] % 2**compiled.layout.bits, trace.symbols[i]),
        ):
            pair.append(f"{machine.states[z]:<12} {l:>5} {machine.alphabet[a]:>5}")
        mark = "" if pair[0] == pair[1] else "  <- differ"
        lines.append(f"{i:>4}  {pair[0]:<28}  {pair[1]:<28}{mark}".rstrip())
    return "\n".join(lines)
