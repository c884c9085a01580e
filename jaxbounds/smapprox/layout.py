"""The named coordinate groups of a compiled network's hidden states (Appendix C.1).

The paper's groups are:

- st: the state of the machine;
- sym1 and sym2: the symbol read and the symbol written;
- pos1: the number of the timestep;
- pos2 and pos3: the head's position before and after the move;
- scr1..scr4: four groups of scratch space for intermediate results;

The extra group za holds the one-hot pair (state, symbol), an intermediate result of Lemma C.1.
Positions are binary, most significant bit first.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

FLAGS = ("left", "right", "third")
"""The names of the coordinates of the scratch group scr4: first the head's direction, later the
flags of the search."""


@dataclass(frozen=True)
class Layout:
    """The positions of all coordinate groups in the hidden state.

    Attributes:
        states: the names of the states, one for each coordinate of the group st.
        symbols: the names of the tape symbols.
        bits: the number w_pos of position bits.
        padding: the number of zero coordinates after all groups.
    """

    states: tuple[str, ...]
    symbols: tuple[str, ...]
    bits: int
    padding: int = 0

    @cached_property
    def groups(self) -> dict[str, range]:
        """List the coordinates of each group, in the order of the layout."""
        nz, na, wp = len(self.states), len(self.symbols), self.bits
        sizes = {"st": nz, "sym1": na, "sym2": na, "pos1": wp, "pos2": wp, "pos3": wp}
        sizes |= {"scr1": na, "scr2": na, "scr3": wp, "scr4": 3, "za": nz * na}
        starts = np.cumsum([0, *sizes.values()]).tolist()
        return {name: range(i, i + n) for (name, n), i in zip(sizes.items(), starts)}

    @property
    def live(self) -> int:
        """The number of coordinates in use.

        It is nz + 4 na + 4 w_pos + 3 + nz na for nz states and na symbols.
        """
        return self.groups["za"].stop

    @property
    def width(self) -> int:
        """The width w of a hidden state, padding included."""
        return self.live + self.padding

    def at(self, group: str, name: str | int, /) -> int:
        """Return the index of the coordinate for a state, a symbol, a position bit or a flag."""
        if isinstance(name, str):
            names = {"st": self.states, "scr4": FLAGS}.get(group, self.symbols)
            name = names.index(name)
        return self.groups[group][name]

    def pair(self, state: str, symbol: str, /) -> int:
        """Return the coordinate of the pair (state, symbol) in the coordinate group za."""
        place = self.states.index(state) * len(self.symbols) + self.symbols.index(symbol)
        return self.groups["za"][place]

    def low_bit(self, group: str, t: int, /) -> int:
        """Return the coordinate that holds the bit with value 2^t of a group's binary number."""
        return self.groups[group][self.bits - 1 - t]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return a readable name for every coordinate, for example "st[even]" or "pos1[8]"."""
        of_bit = [str(2**t) for t in reversed(range(self.bits))]
        pairs = [f"{z},{a}" for z in self.states for a in self.symbols]
        inside = {"st": self.states, "scr4": FLAGS, "za": pairs}
        inside |= dict.fromkeys(("pos1", "pos2", "pos3", "scr3"), of_bit)
        result = [
            f"{group}[{name}]" for group in self.groups for name in inside.get(group, self.symbols)
        ]
        return (*result, *(f"pad[{i}]" for i in range(self.padding)))

    def binary(self, position: Any, /) -> Any:
        """Return the bits of position mod 2^w_pos, most significant bit first: (bits,)."""
        return (position % 2**self.bits >> np.arange(self.bits)[::-1] & 1).astype(np.float64)
