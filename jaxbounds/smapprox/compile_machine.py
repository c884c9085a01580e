"""Turing machines compiled to the Transformer of Theorem 4.1."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import jax
import numpy as np

from jaxbounds.ground.exceptions import Refused
from jaxbounds.smapprox.correction import DYADIC, Correction
from jaxbounds.smapprox.layers import (
    Layer,
    combine,
    find_last_visit,
    lookahead_adder,
    ripple_adder,
    transition,
)
from jaxbounds.smapprox.layout import Layout
from jaxbounds.smapprox.machines import TuringMachine
from jaxbounds.smapprox.structure import Structure, read
from jaxbounds.smapprox.transformer import Segment

START = "<pre>"
"""The name of the compiler's extra state, in which the network starts at timestep 0."""

ADDERS: dict[str, Callable[[Layout], list[Layer]]] = {
    "ripple": ripple_adder,
    "lookahead": lookahead_adder,
}


@dataclass(frozen=True)
class Compiled:
    """A Turing machine compiled to a network.

    Attributes:
        T: the number of simulated steps; the network makes T + 1 passes.
        layout: the layout, which names the coordinates of a hidden state.
        params: the weights as NumPy arrays in float64, for `transformer.run`.
        correction: the rounding after every layer, or None.
        tape: "two_way" or "one_way", as in `compile_machine`.
        together: whether `compile_together` built the network; machines built together share one
            compiled run.
    """

    machine: TuringMachine
    T: int
    layout: Layout
    layers: tuple[Layer, ...]
    params: dict[str, Any]
    correction: Correction | None
    tape: str
    together: bool = False

    @property
    def depth(self) -> int:
        """The depth D: 3 w_pos + 8 layers with the ripple adder, w_pos + 10 with lookahead."""
        return len(self.layers)

    @property
    def full(self) -> tuple[Segment, ...]:
        """The network as the paper defines it, with both attentions in every layer.

        The all-layer margin is that of this network.
        """
        return (Segment(0, self.depth, True, True),)

    @property
    def used(self) -> tuple[Segment, ...]:
        """The layers of the compiled network, without the attentions whose weights are all zero."""
        uses = [("dec" in layer.attends, "enc" in layer.attends) for layer in self.layers]
        bounds = [0, *(i for i in range(1, self.depth) if uses[i] != uses[i - 1]), self.depth]
        targets = lambda i, j: None if self.together else self._targets(i, j)
        return tuple(Segment(i, j, *uses[i], targets(i, j)) for i, j in pairwise(bounds))

    @cached_property
    def structure(self) -> Structure | None:
        """The weights as `structure.read` recognises them for `look_up.run`, or None."""
        return read(self.params, self.layout, self.correction, T=self.T)

    def _targets(self, start: int, stop: int) -> tuple[int, ...]:
        maps = [layer.dec for layer in self.layers[start:stop]]
        changed = [np.any(p["Wv"], axis=1) | (p["bv"] != 0) for p in maps]
        return tuple(np.flatnonzero(np.any(changed, axis=0)).tolist())


def position_bits(T: int, /, *, tape: str = "two_way") -> int:
    """Return a number w_pos >= 2 of bits that can distinguish all cells reachable in T steps.

    On a two-way tape the head can reach the cells 1-T..1+T, which need ceil(log2(2T + 1)) bits. On
    a one-way tape it can reach the cells 1..T+1. Cell T + 1 may share the code of cell 0, which the
    head never reaches, so the bit length of T suffices.
    """
    return max(2, (2 * T).bit_length() if tape == "two_way" else T.bit_length())


def compile_machine(
    machine: TuringMachine,
    T: int,
    /,
    *,
    adder: str = "lookahead",
    correction: Correction | None = DYADIC,
    tape: str = "two_way",
    bits: int | None = None,
    padding: int = 0,
) -> Compiled:
    """Build the network whose output after T steps is +1 (accept), -1 (reject) or 0 (undecided).

    Args:
        machine: a machine with any number of accepting and rejecting states.
        T: the number of steps, at least one; inputs may have up to T symbols.
        adder: "ripple", the paper's adder, which adds bit by bit, or "lookahead", an adder of three
            layers.
        correction: the rounding after every layer; None gives the uncorrected network.
        tape: "two_way" allows cells of any sign. "one_way" needs one position bit less, and a
            machine that never goes left of cell 1.
        bits: the number w_pos of position bits, in place of `position_bits(T)`. Too few bits make
            the simulation wrong.
        padding: the number of extra coordinates with zero weights.

    Raises:
        Refused: if T < 1, if there are fewer than 2 position bits, or if the adder or the tape is
            unknown.
    """
    if T < 1:
        raise Refused(f"T={T}, expected at least 1 step. Try T=10")
    if adder not in ADDERS or tape not in ("one_way", "two_way"):
        raise Refused(
            f"adder={adder!r} and tape={tape!r}, expected one of {list(ADDERS)} and 'one_way' or"
            " 'two_way'. Try tape='one_way'"
        )
    wp = position_bits(T, tape=tape) if bits is None else bits
    if wp < 2:
        raise Refused(
            f"position bits={wp}, expected at least 2 for the circuit that adds positions. Try a "
            f"larger T"
        )
    if START in machine.states:
        raise Refused(
            f"state name={START!r} is reserved for the compiler. Try another name for this state"
        )
    layout = Layout((START, *machine.states), tuple(machine.alphabet), wp, padding)
    layers = (
        *transition(layout, machine, START),
        *ADDERS[adder](layout),
        *find_last_visit(layout),
        *combine(layout, machine.blank),
    )
    stacked: dict[str, Any] = jax.tree.map(
        lambda *leaves: np.stack(leaves), *(layer.params for layer in layers)
    )
    if correction is not None:
        rounding = correction.weights(layout.width, layout.live)
        stacked |= {n: np.tile(w, (len(layers),) + (1,) * w.ndim) for n, w in rounding.items()}
    embedding = np.zeros((layout.width, len(layout.symbols)))
    for i, a in enumerate(layout.symbols):
        embedding[layout.at("sym1", a), i] = 1.0
    start, head = np.zeros(layout.width), np.zeros(layout.width)
    start[layout.at("st", START)] = start[layout.at("sym1", machine.blank)] = 1.0
    for sign, states in ((1.0, machine.accept), (-1.0, machine.reject)):
        for z in states:
            head[layout.at("st", z)] = sign
    params = {"embedding": embedding, "start": start, "head": head, "layers": stacked}
    return Compiled(machine, T, layout, layers, params, correction, tape)


def compile_together(
    machines: Sequence[TuringMachine],
    T: int,
    /,
    *,
    adder: str = "lookahead",
    correction: Correction | None = DYADIC,
) -> list[Compiled]:
    """Build several machines as networks of one shape, whose runs share one compilation.

    Zeros fill the weights of narrower networks and of missing symbols.
    """
    build = lambda machine, padding: compile_machine(
        machine, T, adder=adder, correction=correction, padding=padding
    )
    names = lambda machine: ((START, *machine.states), tuple(machine.alphabet))
    widths = [Layout(*names(machine), position_bits(T)).width for machine in machines]
    columns = max(len(machine.alphabet) for machine in machines)
    result = []
    for machine, width in zip(machines, widths):
        compiled = build(machine, max(widths) - width)
        embedding = compiled.params["embedding"]
        padded = np.pad(embedding, ((0, 0), (0, columns - embedding.shape[1])))
        params = compiled.params | {"embedding": padded}
        result.append(replace(compiled, params=params, together=True))
    return result


def paper_position_bits(T: int, /) -> int:
    """Compute the printed number of position bits, w_pos = ceil(log2 T).

    The printed number is too small if T is a power of two (erratum E3).
    """
    return math.ceil(math.log2(T))
