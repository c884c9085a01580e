"""Machines, their library and their file formats; languages are decided by plain Python."""

import json

import numpy as np
import pytest

from jaxbounds.smapprox import machine_formats as formats
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.machines import TuringMachine, halting_time, simulate, total, words

INCREMENT = """
# adds one to a binary number
input: '1011'
blank: ' '
start state: right
table:
  # scan to the right end
  right:
    [1,0]: R
    ' '  : {L: carry}
  carry:
    1      : {write: 0, L}
    [0,' ']: {write: 1, L: done}
  done:
"""


@pytest.mark.parametrize("name", LIBRARY)
def test_language_and_running_time(name):
    example = LIBRARY[name]()
    for word in words(example.machine, 6):
        steps = halting_time(example.machine, word, example.steps(len(word)))
        trace = simulate(example.machine, word, steps)
        wanted = example.accepts(word)
        if wanted is not None:
            assert trace.verdict == ("accept" if wanted else "reject"), word
        assert len(trace.states) == steps + 1


def test_a_trace_step_by_step():
    trace = simulate(LIBRARY["increment"]().machine, "11", 6)
    assert trace.heads.tolist() == [1, 2, 3, 2, 1, 0, 1]
    assert [trace.tape[c] for c in (0, 1, 2)] == ["1", "0", "0"]
    assert trace.verdict == "accept"


def test_busy_beaver_writes_four_ones_in_six_steps():
    machine = LIBRARY["busy_beaver"]().machine
    assert halting_time(machine, "", 20) == 6
    assert list(simulate(machine, "", 6).tape.values()).count("1") == 4


def test_compact_notation():
    assert halting_time(formats.from_compact("1RB1LB_1LA1RZ"), "", 20) == 6
    assert halting_time(formats.from_compact("1RB1RZ_1LB0RC_1LC1LA"), "", 50) == 21
    assert formats.from_compact("1RB---_1LA1RZ").action("A", "1") == ("H", "1", 1)
    for text in ("1RB", "1RB1L_1LA", "1XB1LB_1LA1RZ", "1RB1LB_1LA1RQ"):
        with pytest.raises(ValueError, match=r"compact|symbol"):
            formats.from_compact(text)


def test_yaml_and_json_agree_with_the_library():
    described = {
        "blank": " ",
        "start state": "right",
        "table": {
            "right": {"[1,0]": "R", " ": {"L": "carry"}},
            "carry": {"1": {"write": 0, "L": None}, "0, ": {"write": 1, "L": "done"}},
            "done": None,
        },
    }
    yaml, from_json = formats.from_yaml(INCREMENT), formats.from_json(json.dumps(described))
    assert yaml.transitions == from_json.transitions
    for word in ("", "0", "1011", "111"):
        tape = simulate(yaml, word, 20).tape
        digits = "".join(tape[c] for c in sorted(tape)).strip()
        assert int(digits, 2) == int(word or "0", 2) + 1
    assert yaml.accept == ("done",)


def test_files(tmp_path):
    (tmp_path / "m.yaml").write_text(INCREMENT)
    (tmp_path / "m.txt").write_text("1RB1LB_1LA1RZ\n")
    assert formats.load_machine(str(tmp_path / "m.yaml")).start == "right"
    assert formats.load_machine(str(tmp_path / "m.txt")).accept == ("H",)
    with pytest.raises(ValueError, match="no file"):
        formats.load_machine(str(tmp_path / "absent.json"))


@pytest.mark.parametrize(
    "text, message",
    [
        ("blank: ' '\ntable:\n  a: {0: R}\n", "keys"),
        ("blank: ' '\nstart state: a\ntable:\n  a:\n    0: {write: 1}\n", "expected 'L'"),
        ("blank: ' '\nstart state: a\ntable:\n  a:\n    0 R\n", "each state to a row"),
        ("blank: ' '\nstart state: a\ntable:\n  a:\n    [0: R\n", "line=6: expected ',' or ']'"),
        ("a: 1\n    b: 2\n", "line=2: mapping values are not allowed here"),
        ("a: 1\n--- \nb: 2\n", "another document"),
        ("- a\n- b\n", "a mapping with the keys"),
        ("{}: L\n", "line=1: key=.*a name or a list of names"),
        ("a: !!int 5\n", "line=1: could not determine a constructor"),
        ("a: &x [*x]\n", "recursive"),
        ("[" * 3000, "not YAML"),
        ("blank: ' '\nstart state: a\ntable:\n  a:\n    0: R\n    0: L\n", "'0' is given twice"),
        ("blank: _\nstart state: a\ntable:\n  a: {0: R}\n  a: {_: R}\n", "'a' is given twice"),
        ("blank: _\nstart state: a\ntable:\n  a: {[0, 1]: R, 0: L}\n", "is given twice"),
        ("blank: {}\nstart state: a\ntable: {a: {0: R}}\n", "'blank' of a machine.*expected text"),
        ("blank: ' '\nstart state: a\ntable:\n  a:\n    0: {R: b}\n  b:\n", "not total"),
    ],
)
def test_bad_yaml(text, message):
    with pytest.raises(ValueError, match=message):
        formats.from_yaml(text)


def test_json_repeats_no_key():
    with pytest.raises(ValueError, match="'blank' is given twice"):
        formats.from_json('{"blank": "_", "blank": "0"}')
    with pytest.raises(ValueError, match="not JSON"):
        formats.from_json("[" * 100000)


GO = "blank: _\nstart state: go\n{}table:\n  go: {{0: R, _: {{R: {}}}}}\n  carry: {{0: L, _: L}}\n"


def test_terminal_states_that_nothing_reaches():
    machine = formats.from_yaml(GO.format("accept: [ok]\nreject: [reject]\n", "ok"))
    assert machine.accept == ("ok",) and machine.reject == ("reject",)
    assert "reject" in machine.states
    usual = formats.from_yaml(GO.format("", "accept"))
    assert usual.accept == ("accept",) and usual.reject == ()


@pytest.mark.parametrize("named", ["", "accept: [ok]\n"])
def test_misspelt_states_are_refused(named):
    with pytest.raises(ValueError, match=r"state='carrry' has no row .*did you mean 'carry'\?"):
        formats.from_yaml(GO.format(named, "carrry"))
    with pytest.raises(ValueError, match="state='end' has no row in the table"):
        formats.from_yaml(GO.format("", "end"))


def test_missing_transitions_may_reject():
    text = "blank: ' '\nstart state: a\ntable:\n  a:\n    0: {R: b}\n  b:\n"
    machine = formats.from_yaml(text, missing="reject")
    assert simulate(machine, "0", 3).verdict == "accept"
    assert simulate(machine, "", 3).verdict == "reject"


def test_ill_formed_machines_name_every_reason():
    with pytest.raises(ValueError) as error:
        TuringMachine(
            states=("a", "accept"),
            alphabet=("0", "_"),
            blank="#",
            transitions={("a", "0"): ("b", "0", 2)},
            start="s",
            reject=(),
        )
    message = str(error.value)
    for part in ("blank '#'", "start state s", "must be (state", "not total", "(a, _)"):
        assert part in message


def test_messages_for_words_and_times():
    machine = LIBRARY["parity"]().machine
    with pytest.raises(ValueError, match="outside the input alphabet"):
        simulate(machine, "012", 5)
    with pytest.raises(ValueError, match="not halted"):
        halting_time(machine, "0101", 3)
    with pytest.raises(ValueError, match="too many"):
        words(machine, 30)
    assert simulate(machine, "0101", 3).verdict == "undecided"


def test_total_fills_only_what_is_missing():
    given = {("a", "0"): ("a", "0", -1)}
    filled = total(given, ("a", "reject"), ("0", "1"), terminal=("reject",))
    assert filled == {("a", "0"): ("a", "0", -1), ("a", "1"): ("reject", "1", 1)}
    assert np.all([len(action) == 3 for action in filled.values()])


def _run(table, state, tape, most, marked=None):
    """Sipser's machine: it starts leftmost, and a left move there stays. (state, steps, tape)."""
    tape, head = [*tape], 0
    for steps in range(most + 1):
        if state in ("accept", "reject"):
            return state, steps, tape
        symbol = tape[head] if head < len(tape) else "_"
        state, write, move = table[state, symbol]
        tape += ["_"] * (head + 1 - len(tape))
        tape[head] = write
        if head + move < 0:
            assert marked is None, "the marked machine never moves left of its first cell"
        head = max(0, head + move)
    return None, most + 1, tape


def _marked(table, symbols):
    """E5: it marks its leftmost cell, and steps right and back in place of staying there."""
    changed = {}
    for (state, symbol), (after, write, move) in table.items():
        changed[state, symbol] = after, write, move
        stays = after if after in ("accept", "reject") else after + " back"
        onto = (after, write + "*", 1) if move > 0 else (stays, write + "*", 1)
        changed[state, symbol + "*"] = onto
        if state == "0":
            changed["first", symbol] = onto
    for state in sorted({state for state, _ in table}):
        for symbol in (*symbols, *(symbol + "*" for symbol in symbols)):
            changed[state + " back", symbol] = state, symbol, -1
    return changed


def test_a_machine_that_marks_its_leftmost_cell_never_stays_there():
    rng, symbols, stayed = np.random.default_rng(0), ("0", "1", "_"), 0
    for _ in range(400):
        k = int(rng.integers(1, 4))
        ends = [*map(str, range(k)), "accept", "reject"]
        table = {
            (str(z), a): (str(rng.choice(ends)), str(rng.choice(symbols)), int(rng.choice([-1, 1])))
            for z in range(k)
            for a in symbols
        }
        changed = _marked(table, symbols)
        assert len({z for z, _ in changed}) == 2 * k + 1
        assert len({a for _, a in changed}) == 2 * len(symbols)
        for word in ("", "0", "10", "1101"):
            verdict, steps, tape = _run(table, "0", word, 40)
            if verdict is None:
                continue
            again, longer, other = _run(changed, "first", word, 80, marked=True)
            assert again == verdict and steps <= longer <= 2 * steps
            strip = lambda cells: "".join(cell[0] for cell in cells).rstrip("_")
            assert strip(other) == strip(tape)
            stayed += longer > steps
    assert stayed > 50
