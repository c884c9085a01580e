"""Read Turing machines from JSON, turingmachine.io's YAML, or strings like "1RB1LC_0LA1RZ"."""

import difflib
import json
import re
import reprlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from jaxbounds.ground.exceptions import Refused
from jaxbounds.smapprox.machines import Action, TuringMachine, total

LONGEST = 100
"""The largest number of characters of a name or symbol; a larger number accepts longer names."""
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 100
_shown = _SHORT.repr
"""Quote a value for a message, and shorten a long value."""
MOVES = {"L": -1, "R": 1, "S": 0}
ACCEPTING = ("accept", "yes", "halt", "done")
REJECTING = ("reject", "no", "error")
"""Names of terminal states that need no transitions and no mention under "accept" or "reject"."""


def load_machine(path: str, /, *, missing: str = "error") -> TuringMachine:
    """Load a machine from a file: .json, .yaml, .yml, or a text file with one compact string.

    Raises:
        Refused: if the file does not exist, or describes no machine.
    """
    file = Path(path)
    if not file.is_file():
        raise Refused(
            f"no file path={path}, expected a .json, .yaml or compact machine description. Try the"
            " path of such a file"
        )
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"path={path} is no UTF-8 text ({error}). Try saving it as UTF-8") from error
    if file.suffix == ".json":
        return from_json(text, name=file.stem, missing=missing)
    if file.suffix in (".yaml", ".yml"):
        return from_yaml(text, name=file.stem, missing=missing)
    return from_compact(text.strip(), name=file.stem)


def from_json(text: str, /, *, name: str = "machine", missing: str = "error") -> TuringMachine:
    """Read a machine from the JSON form of turingmachine.io's YAML (see `from_description`).

    Raises:
        Refused: if the text is not JSON or describes no machine.
    """
    try:
        data = json.loads(text, object_pairs_hook=_mapping)
    except (json.JSONDecodeError, RecursionError) as error:
        raise Refused(
            f"this text is not JSON ({error}), got {_shown(text)}. Try to correct this text"
        ) from error
    return from_description(data, name=name, missing=missing)


def from_yaml(text: str, /, *, name: str = "machine", missing: str = "error") -> TuringMachine:
    """Read a machine from turingmachine.io's YAML (see `from_description`).

    Numbers are read as strings, and an empty value as None. A key may be a list, for example [0,
    1].

    Raises:
        Refused: if the text is not YAML, repeats a key, holds anything but mappings, lists and
            strings, or describes no machine. The error names the line if it is known.
    """
    try:
        data = yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "unknown"
        raise Refused(f"line={line}: {error.problem}. Try to correct this line") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise Refused(
            f"this text is not YAML ({error}), got {_shown(text)}. Try to correct this text"
        ) from error
    return from_description(data, name=name, missing=missing)


_PLAIN = [f"tag:yaml.org,2002:{kind}" for kind in ("map", "seq", "str", "null")]


class _Loader(yaml.SafeLoader):
    """A YAML loader that keeps numbers as strings and refuses repeated keys."""

    yaml_implicit_resolvers = {"": [(_PLAIN[-1], re.compile("^$"))]}  # noqa: RUF012
    yaml_constructors = {  # noqa: RUF012
        tag: yaml.SafeLoader.yaml_constructors[tag] for tag in (*_PLAIN, None)
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        make = lambda part: self.construct_object(part, deep=True)
        try:
            return _mapping((make(key), make(value)) for key, value in node.value)
        except Refused as error:
            mark = node.start_mark
            raise yaml.constructor.ConstructorError(
                problem=str(error), problem_mark=mark
            ) from error


def _mapping(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return a dict of (key, value) pairs, with list keys as tuples; refuse a repeated key."""
    result: dict[Any, Any] = {}
    for key, value in pairs:
        key = tuple(key) if isinstance(key, list) else key
        if not isinstance(key, str | tuple) or not all(isinstance(part, str) for part in key):
            raise Refused(
                f"key={_shown(key)}, expected a name or a list of names. Try quotes around the key"
            )
        if key in result:
            raise Refused(f"key={_shown(key)} is given twice. Try to remove one")
        result[key] = value
    return result


def from_description(
    data: Any, /, *, name: str = "machine", missing: str = "error"
) -> TuringMachine:
    """Build a machine from {"blank", "start state", "table"} and optional "accept", "reject".

    The table maps each state to a dictionary. This dictionary maps a symbol (or several: "0,1" or
    "[0, 1]") to "L" or "R", or to {"write": symbol, "L": next state}. Without "write", the symbol
    does not change. Without a next state, the state does not change. States without an entry in the
    table are terminal. A terminal state rejects if "reject" names the state, and accepts otherwise.
    Without "reject", the states with the names reject, no and error reject.

    The function refuses an unknown next state, as a probable typing error. A known state has an
    entry in the table, stands under "accept" or "reject", or is named accept, yes, halt, done,
    reject, no or error.

    Args:
        data: the machine's description, as a parsed YAML or JSON object.
        name: the name of the machine in messages.
        missing: "error" refuses a machine that lacks the transition of a pair (state, symbol);
            "reject" makes it reject there.

    Raises:
        Refused: if the description is incomplete or ill formed.
    """
    if missing not in ("error", "reject"):
        raise Refused(
            f"missing={missing!r} is unknown, expected 'error' or 'reject'. Try missing='error'"
        )
    needed = ("blank", "start state", "table")
    if not isinstance(data, dict) or any(key not in data for key in needed):
        raise Refused(
            f"description={_shown(data)}, expected a mapping with the keys {', '.join(needed)}."
            " Try the format in the docstring of `from_description`"
        )
    table = data["table"]
    if not isinstance(table, dict) or any(
        not isinstance(row, dict | None) for row in table.values()
    ):
        raise Refused(
            f"table={_shown(table)}, expected a map from each state to a row, and in a row from"
            " symbols to actions. Try the format in the docstring of `from_description`"
        )
    blank, start = _text("blank", data["blank"]), _text("start state", data["start state"])
    given: dict[tuple[str, str], Action] = {}
    for state, row in table.items():
        _text("state", state)
        for key, action in (row or {}).items():
            for symbol in _symbols(key):
                if (str(state), symbol) in given:
                    raise Refused(
                        f"transition=({state}, {symbol}) is given twice. Try to remove one"
                    )
                given[str(state), symbol] = _action(str(state), symbol, action)
    rows = [str(state) for state, row in table.items() if row]
    listed = [start, *map(str, table)]
    reject, accept = (
        _names("reject", data.get("reject", ())),
        _names("accept", data.get("accept", ())),
    )
    states = [*listed, *(after for after, _, _ in given.values()), *accept, *reject]
    states = list(dict.fromkeys(states))
    usual = () if "accept" in data else (*ACCEPTING, *REJECTING)
    for state in states:
        if state not in (*listed, *accept, *reject, *usual):
            near = difflib.get_close_matches(state, [*listed, *accept, *reject], 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise Refused(
                f"state={state!r} has no row in the table{hint}. Try an empty row if the state is "
                f"terminal, or name it in 'accept'"
            )
    terminal = [z for z in states if z not in rows]
    if "reject" not in data:
        reject = [z for z in terminal if z.lower() in REJECTING and z not in accept]
    if "accept" not in data:
        accept = [z for z in terminal if z not in reject]
    alphabet = list(
        dict.fromkeys([*(a for _, a in given), *(u for _, u, _ in given.values()), blank])
    )
    if missing == "reject":
        reject = reject or ["reject"]
        states = list(dict.fromkeys([*states, reject[0]]))
        given = total(given, states, alphabet, terminal=[*accept, *reject], to=reject[0])
    inputs = data.get("input alphabet")
    symbols = {} if inputs is None else {"input_alphabet": _names("input alphabet", inputs)}
    return TuringMachine(
        name=name,
        states=states,
        alphabet=alphabet,
        blank=blank,
        transitions=given,
        start=start,
        accept=accept,
        reject=reject,
        **symbols,
    )


def _names(key: str, value: Any) -> list[str]:
    if not isinstance(value, list | tuple):
        raise Refused(f"{_shown(key)}={_shown(value)}, expected a list. Try [...]")
    return [_text(key, name) for name in value]


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise Refused(
            f"{what!r} of a machine is {_shown(value)}, expected text. Try quotes around it"
        )
    if len(str(value)) > LONGEST:
        raise Refused(
            f"{what!r} of a machine is longer than {LONGEST} characters, got {_shown(value)}. Try"
            " a shorter name"
        )
    return str(value)


def _symbols(key: Any) -> list[str]:
    if isinstance(key, tuple):
        return [_text("symbol", part) for part in key]
    text = _text("symbol", key)
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
            written = _text("write", action.get("write", symbol))
            return (state if after is None else _text(moves[0], after)), written, MOVES[moves[0]]
    raise Refused(
        f"transition ({state}, {symbol})={_shown(action)}, expected 'L', 'R' or"
        " {write: symbol, L: next state}. Try 'R'"
    )


def from_compact(text: str, /, *, name: str | None = None) -> TuringMachine:
    """Read a machine from the busy-beaver notation "1RB1LC_1RC1RB_...".

    Each of the states A, B, ... has a block of (write, move, next) for the symbols 0, 1, ...; "---"
    and "1RZ" or "1RH" halt. The machine starts in state A on a tape of zeros, and halting counts as
    acceptance.

    Raises:
        Refused: if the string has another form.
    """
    blocks = text.split("_")
    sizes = {len(block) for block in blocks}
    if len(sizes) != 1 or any(size % 3 or size < 6 for size in sizes):
        raise Refused(
            f"text={_shown(text)} is no compact machine, expected blocks of 3 characters per"
            " symbol. Try '1RB1LB_1LA1RZ'"
        )
    symbols = [str(i) for i in range(sizes.pop() // 3)]
    names = [chr(ord("A") + i) for i in range(len(blocks))]
    table: dict[tuple[str, str], Action] = {}
    for state, block in zip(names, blocks):
        for i, symbol in enumerate(symbols):
            part = block[3 * i : 3 * i + 3]
            write, move, after = (symbol, "R", "H") if part == "---" else tuple(part)
            if write not in symbols or move not in MOVES or not (after in names or after in "HZ"):
                raise Refused(
                    f"{_shown(text)}: block={_shown(part)}, expected a symbol, then L or R, then a"
                    " state. Try '1RB'"
                )
            table[state, symbol] = (after if after in names else "H", write, MOVES[move])
    return TuringMachine(
        name=name or text[:LONGEST],
        states=(*names, "H"),
        alphabet=symbols,
        blank="0",
        transitions=table,
        start="A",
        accept=("H",),
        reject=(),
        input_alphabet=symbols,
    )
