"""Turing machines (Section 4) and a step simulator that is independent of the networks.

Cells are numbered from 1. The input occupies cells 1..m, and the head starts on cell 1. In terminal
states the simulator keeps the state and moves right, because the paper's machine cannot stay on a
cell.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Int

from jaxbounds.ground.exceptions import Refused

Action = tuple[str, str, int]
"""One transition: the next state, the symbol to write, and the move of the head: -1 left, +1 right,
0 stay (an extension)."""


_ALL_BUT_THE_BLANK: Any = None


@dataclass(frozen=True, kw_only=True)
class TuringMachine:
    """A deterministic one-tape machine that accepts, rejects, or does not halt.

    Attributes:
        states: the set Z of states, terminal states included.
        alphabet: the set A of tape symbols, the blank included.
        blank: the symbol of every cell outside the input.
        transitions: the `Action` of every pair of non-terminal state and symbol.
        start: the initial state.
        accept: the terminal states that accept.
        reject: the terminal states that reject.
        input_alphabet: the symbols that an input may use; by default all but the blank.
        name: the machine's name in messages and plots.
    """

    states: Sequence[str]
    alphabet: Sequence[str]
    blank: str
    transitions: Mapping[tuple[str, str], Action]
    start: str
    accept: Sequence[str] = ("accept",)
    reject: Sequence[str] = ("reject",)
    input_alphabet: Sequence[str] = _ALL_BUT_THE_BLANK
    name: str = "machine"

    def __post_init__(self) -> None:
        fill = lambda name, value: object.__setattr__(self, name, value)
        for name in ("states", "alphabet", "accept", "reject"):
            fill(name, tuple(getattr(self, name)))
        usual = [a for a in self.alphabet if a != self.blank]
        given = self.input_alphabet
        fill("input_alphabet", tuple(usual if given is _ALL_BUT_THE_BLANK else given))
        fill("transitions", MappingProxyType(dict(self.transitions)))
        problems = list(_problems(self))
        if problems:
            more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
            raise Refused(
                f"machine={self.name!r} is ill formed: {'; '.join(problems[:5])}{more}. Try to"
                " correct its description"
            )

    @property
    def terminal(self) -> tuple[str, ...]:
        """The accepting and rejecting states."""
        return (*self.accept, *self.reject)

    def action(self, state: str, symbol: str, /) -> Action:
        """Return the transition S(z, a); terminal states have the loop (z, a, +1)."""
        if state in self.terminal:
            return state, symbol, 1
        return self.transitions[state, symbol]

    def check_word(self, word: Sequence[str], /) -> None:
        """Refuse an input with a symbol outside the input alphabet.

        Raises:
            Refused: if the word has a symbol outside the input alphabet.
        """
        strange = sorted(set(word) - set(self.input_alphabet))
        if strange:
            raise Refused(
                f"word={''.join(word)!r} has symbols {strange} outside the input alphabet"
                f" {list(self.input_alphabet)} of machine {self.name!r}. Try a word over this"
                " alphabet"
            )


def _problems(machine: TuringMachine) -> Iterable[str]:
    states, alphabet = set(machine.states), set(machine.alphabet)
    for what, names in (("state", machine.states), ("symbol", machine.alphabet)):
        repeated = sorted({n for n in names if list(names).count(n) > 1})
        if repeated:
            yield f"repeated {what} {', '.join(repeated)}"
    if machine.blank not in alphabet:
        yield f"the blank {machine.blank!r} is not in the alphabet {list(machine.alphabet)}"
    if not set(machine.input_alphabet) <= alphabet:
        strange = sorted(set(machine.input_alphabet) - alphabet)
        yield f"input symbols {strange} are not in the alphabet"
    for what, names in (("start", [machine.start]), ("terminal", machine.terminal)):
        strange = [name for name in names if name not in states]
        if strange:
            yield f"{what} state {', '.join(strange)} is not in states"
    both = set(machine.accept) & set(machine.reject)
    if both or not machine.accept:
        yield f"needs accepting states, none of them rejecting; both: {sorted(both)}"
    for (z, a), action in machine.transitions.items():
        if z not in states or a not in alphabet:
            yield f"transition from unknown ({z!r}, {a!r})"
        elif z in machine.terminal:
            yield f"terminal state {z!r} has a transition on {a!r}: remove it, terminal states loop"
        if len(action) != 3 or action[0] not in states or action[1] not in alphabet:
            yield f"transition ({z!r}, {a!r}) -> {action} must be (state, symbol, move)"
        elif action[2] not in (-1, 0, 1):
            yield f"transition ({z!r}, {a!r}) moves by {action[2]}: use -1, 0 or +1"
    missing = [
        f"({z}, {a})"
        for z in machine.states
        for a in machine.alphabet
        if z not in machine.terminal and (z, a) not in machine.transitions
    ]
    if missing:
        yield (
            f"not total, no transition for {', '.join(missing[:6])}"
            + (f" and {len(missing) - 6} more" if len(missing) > 6 else "")
            + ": add them, or send them to a rejecting state (`total`; `--missing reject` on the "
            "command line)"
        )


def total(
    transitions: Mapping[tuple[str, str], Action],
    states: Sequence[str],
    alphabet: Sequence[str],
    /,
    *,
    terminal: Sequence[str],
    to: str = "reject",
) -> dict[tuple[str, str], Action]:
    """Add the missing transitions: they go to the state `to`, keep the symbol and move right."""
    return {
        (z, a): transitions.get((z, a), (to, a, 1))
        for z in states
        if z not in terminal
        for a in alphabet
    }


class Trace(NamedTuple):
    """The behaviour of a machine in steps 0..T.

    Attributes:
        states: the index of the state z_i in `machine.states`.
        heads: the number l_i of the head's cell, from 1; it may be zero or negative.
        symbols: the index in `machine.alphabet` of a_i, the symbol under the head.
        written: the index of u_i, the symbol that the machine writes at step i.
        tape: the symbols, after T steps, in all cells that were written or held input.
        verdict: "accept", "reject" or "undecided" after step T.
    """

    states: Int[np.ndarray, "T1"]
    heads: Int[np.ndarray, "T1"]
    symbols: Int[np.ndarray, "T1"]
    written: Int[np.ndarray, "T1"]
    tape: dict[int, str]
    verdict: Literal["accept", "reject", "undecided"]


def simulate(machine: TuringMachine, word: Sequence[str], T: int, /) -> Trace:
    """Run the machine for T steps.

    Raises:
        Refused: if the word uses a symbol outside the input alphabet.
    """
    machine.check_word(word)
    tape = dict(enumerate(word, start=1))
    state, head = machine.start, 1
    rows = []
    for _ in range(T + 1):
        symbol = tape.get(head, machine.blank)
        after, write, move = machine.action(state, symbol)
        rows.append((state, head, symbol, write))
        if len(rows) <= T:
            tape[head] = write
            state, head = after, head + move
    z, l, a, u = zip(*rows)
    index = lambda names, of: np.array([of.index(name) for name in names])
    return Trace(
        states=index(z, machine.states),
        heads=np.array(l),
        symbols=index(a, machine.alphabet),
        written=index(u, machine.alphabet),
        tape=tape,
        verdict=_verdict(machine, state),
    )


def _verdict(machine: TuringMachine, state: str) -> Literal["accept", "reject", "undecided"]:
    if state in machine.accept:
        return "accept"
    return "reject" if state in machine.reject else "undecided"


def halting_time(machine: TuringMachine, word: Sequence[str], limit: int, /) -> int:
    """Return the first step at which the machine is in a terminal state.

    Raises:
        Refused: if the machine has not halted after `limit` steps.
    """
    states = simulate(machine, word, limit).states
    halted = [machine.states[z] in machine.terminal for z in states]
    if not any(halted):
        raise Refused(
            f"machine={machine.name!r} has not halted on {''.join(word)!r} after {limit}"
            " steps. Try a larger T, or accept an undecided output"
        )
    return halted.index(True)


def words(machine: TuringMachine, longest: int, /) -> list[str]:
    """List all inputs of length 0..longest, shortest first (one-character symbols).

    Raises:
        Refused: if there are more than a million inputs.
    """
    count = sum(len(machine.input_alphabet) ** n for n in range(longest + 1))
    if count > 10**6:
        raise Refused(
            f"length={longest} gives {count} inputs, too many to enumerate. Try a smaller length"
        )
    result, layer = [""], [""]
    for _ in range(longest):
        layer = [word + a for word in layer for a in machine.input_alphabet]
        result += layer
    return result
