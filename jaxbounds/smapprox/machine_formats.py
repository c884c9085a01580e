"""Machines from text: JSON, the YAML of turingmachine.io, and strings like "1RB1LC_0LA1RZ"."""

import json
import re
from pathlib import Path
from typing import Any

from jaxbounds.smapprox.machines import Action, TuringMachine, total
from jaxbounds.smapprox.small_yaml import parse_yaml

MOVES = {"L": -1, "R": 1, "S": 0}


def load_machine(path: str, /, *, missing: str = "error") -> TuringMachine:
    """The machine in a file: .json, .yaml or .yml, or a text file with one compact string.

    Raises:
        ValueError: if there is no such file or it describes no machine.
    """
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"no file {path}: give a .json, .yaml or compact machine description")
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no UTF-8 text: {error}") from error
    if file.suffix == ".json":
        return from_json(text, name=file.stem, missing=missing)
    if file.suffix in (".yaml", ".yml"):
        return from_yaml(text, name=file.stem, missing=missing)
    return from_compact(text.strip(), name=file.stem)


def from_json(text: str, /, *, name: str = "machine", missing: str = "error") -> TuringMachine:
    """A machine from the JSON twin of turingmachine.io's YAML (see `from_description`).

    Raises:
        ValueError: if the text is not JSON or describes no machine.
    """
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"this is not JSON: {error}") from error
    return from_description(data, name=name, missing=missing)


def from_yaml(text: str, /, *, name: str = "machine", missing: str = "error") -> TuringMachine:
    """A machine from turingmachine.io's YAML (see `from_description`).

    Raises:
        ValueError: if the text is outside the subset of YAML read here, or describes no machine.
    """
    return from_description(parse_yaml(text), name=name, missing=missing)


def from_description(
    data: Any, /, *, name: str = "machine", missing: str = "error"
) -> TuringMachine:
    """A machine from {"blank", "start state", "table"} and, optionally, "accept" and "reject".

    The table maps a state to its row, a row maps a symbol (or several: "0,1" or "[0, 1]") to
    "L" or "R", or to {"write": symbol, "L": next state}; without "write" the symbol stays, without
    a next state the state stays. States without a row are terminal: they reject if named in
    "reject" (by default those called reject, no or error), and accept otherwise.

    Args:
        data: the parsed description.
        name: for messages.
        missing: "error" refuses a machine that is not total, "reject" sends the missing pairs to
            a rejecting state.

    Raises:
        ValueError: if the description is incomplete or ill formed.
    """
    if missing not in ("error", "reject"):
        raise ValueError(f"missing must be 'error' or 'reject', got {missing!r}")
    needed = ("blank", "start state", "table")
    if not isinstance(data, dict) or any(key not in data for key in needed):
        raise ValueError(f"a machine description is a mapping with the keys {', '.join(needed)}")
    table = data["table"]
    if not isinstance(table, dict) or any(
        not isinstance(row, dict | None) for row in table.values()
    ):
        raise ValueError("the table of a machine maps each state to a row, and a row maps symbols")
    blank, start = str(data["blank"]), str(data["start state"])
    given: dict[tuple[str, str], Action] = {}
    states = [start]
    for state, row in table.items():
        states.append(str(state))
        for key, action in (row or {}).items():
            for symbol in _symbols(key):
                given[str(state), symbol] = _action(str(state), symbol, action)
    states = list(dict.fromkeys([*states, *(after for after, _, _ in given.values())]))
    rows = {str(state) for state, row in table.items() if row}
    terminal = [z for z in states if z not in rows]
    named = lambda key, otherwise: _names(key, data.get(key, otherwise))
    reject = named("reject", [z for z in terminal if z.lower() in ("reject", "no", "error")])
    accept = named("accept", [z for z in terminal if z not in reject])
    alphabet = list(
        dict.fromkeys([*(a for _, a in given), *(u for _, u, _ in given.values()), blank])
    )
    if missing == "reject":
        reject = reject or ["reject"]
        states = list(dict.fromkeys([*states, reject[0]]))
        given = total(given, states, alphabet, terminal=[*accept, *reject], to=reject[0])
    inputs = data.get("input alphabet")
    inputs = None if inputs is None else _names("input alphabet", inputs)
    return TuringMachine(
        name=name,
        states=states,
        alphabet=alphabet,
        blank=blank,
        transitions=given,
        start=start,
        accept=accept,
        reject=reject,
        input_alphabet=inputs,
    )


def _names(key: str, value: Any) -> list[str]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{key!r} of a machine is a list, got {value!r}")
    return [str(name) for name in value]


def _symbols(key: Any) -> list[str]:
    if isinstance(key, tuple):
        return [str(part) for part in key]
    text = str(key)
    if re.fullmatch(r"\[.*\]", text):
        text = text[1:-1]
    if len(text) > 1 and "," in text:
        return [part.strip().strip("'\"") or " " for part in text.split(",")]
    return [text]


def _action(state: str, symbol: str, action: Any) -> Action:
    if isinstance(action, str) and action in MOVES:
        return state, symbol, MOVES[action]
    if isinstance(action, dict):
        moves = [key for key in action if key in MOVES]
        if len(moves) == 1 and set(action) <= {"write", moves[0]}:
            after = action[moves[0]]
            written = str(action.get("write", symbol))
            return (state if after is None else str(after)), written, MOVES[moves[0]]
    raise ValueError(
        f"transition ({state}, {symbol}) is {action!r}: expected 'L', 'R' or "
        "{write: symbol, L: next state}"
    )


def from_compact(text: str, /, *, name: str | None = None) -> TuringMachine:
    """A machine from the busy-beaver notation "1RB1LC_1RC1RB_...": one block per state A, B, ...

    Each block holds (write, move, next) for the symbols 0, 1, ...; "---" and "1RZ" or "1RH" halt.
    The machine starts in A on blank 0 and accepts by halting.

    Raises:
        ValueError: if the string has another form.
    """
    blocks = text.split("_")
    sizes = {len(block) for block in blocks}
    if len(sizes) != 1 or any(size % 3 or size < 6 for size in sizes):
        raise ValueError(
            f"{text!r} is no compact machine: expected blocks of 3 characters per symbol, "
            "as in '1RB1LB_1LA1RZ'"
        )
    symbols = [str(i) for i in range(sizes.pop() // 3)]
    names = [chr(ord("A") + i) for i in range(len(blocks))]
    table: dict[tuple[str, str], Action] = {}
    for state, block in zip(names, blocks):
        for i, symbol in enumerate(symbols):
            write, move, after = block[3 * i : 3 * i + 3]
            if block[3 * i : 3 * i + 3] == "---":
                write, move, after = symbol, "R", "H"
            if write not in symbols or move not in MOVES or not (after in names or after in "HZ"):
                raise ValueError(
                    f"{text!r}: {block[3 * i : 3 * i + 3]!r} is no (symbol, L or R, state)"
                )
            table[state, symbol] = (after if after in names else "H", write, MOVES[move])
    return TuringMachine(
        name=name or text,
        states=(*names, "H"),
        alphabet=symbols,
        blank="0",
        transitions=table,
        start="A",
        accept=("H",),
        reject=(),
        input_alphabet=symbols,
    )
