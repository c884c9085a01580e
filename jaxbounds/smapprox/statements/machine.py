"""Section 4 and Theorem 4.1: networks that simulate Turing machines, compared step by step."""

import functools
import json
from typing import Any

import numpy as np

from jaxbounds.claims.statements import Counterexample, Form, Instance, Sides, Size, Statement
from jaxbounds.smapprox import execute
from jaxbounds.smapprox import machine_formats as formats
from jaxbounds.smapprox.compile_machine import (
    compile_machine,
    compile_together,
    paper_position_bits,
    position_bits,
)
from jaxbounds.smapprox.correction import DYADIC, THIRDS
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.machines import TuringMachine, halting_time, simulate, words
from jaxbounds.smapprox.readout import attended, recovered_tape
from jaxbounds.smapprox.statements.margin_cases import every

EXAMPLES = tuple(make() for make in LIBRARY.values())
LENGTH = 4
"""The number of symbols of the longest words on which machines run; a larger number runs longer
words."""
by_machine = functools.partial(Statement, kind="construction", host=True, source="Section 4")


VERDICTS = {"accept": 1.0, "reject": -1.0, "undecided": 0.0}


@functools.cache
def _traces(bits: int) -> list[tuple[Any, Any]]:
    T = max(example.steps(LENGTH) for example in EXAMPLES)
    compiled = compile_together(
        [example.machine for example in EXAMPLES],
        T,
        adder="ripple" if bits == 64 else "lookahead",
        correction=THIRDS if bits == 64 else DYADIC,
    )
    rows = []
    for network, example in zip(compiled, EXAMPLES):
        inputs = words(example.machine, LENGTH)
        result = execute.execute(network, inputs, precision=f"float{bits}", length=LENGTH)
        traces = [simulate(example.machine, word, T) for word in inputs]
        rows.append((execute.decode(network, result), traces))
    return rows


def _simulated(i: Instance, size: Size) -> Sides:
    example, word = EXAMPLES[i["machine"]], i["word"]
    network, traces = _traces(size["bits"])[i["machine"]]
    trace = traces[word]
    cells = 2 ** position_bits(len(trace.states) - 1)
    accepted = example.accepts(words(example.machine, LENGTH)[word])
    verdict = VERDICTS[trace.verdict]
    language = verdict if accepted is None else 2.0 * accepted - 1.0
    end = network.decision[word]
    found = np.stack([network.states[word], network.heads[word], network.symbols[word]])
    wanted = np.stack([trace.states, trace.heads % cells, trace.symbols])
    tell = lambda steps, *rest: np.append(steps.ravel(), rest)
    return Sides(
        tell(found, end, end, network.error[word]),
        {
            "corrected": tell(wanted, verdict, language, 0.0),
            "control": tell(np.roll(wanted, 1, axis=1), verdict, language, 0.0),
        },
    )


THEOREM_41 = by_machine(
    id="smapprox.thm4.1",
    label="Theorem 4.1, the simulation (Lemmas C.1-C.8 together)",
    formula="o_i encodes state, head and symbol of step i, for i = 0..T, and F = 2 TM(x) - 1",
    tex=r"o_i^{\mathrm{st}} = \mathbf{1}(z_i(x)), \; o_i^{\mathrm{sym}_1} = \mathbf{1}(a_i(x)), \; "
    r"o_i^{\mathrm{pos}_2} = \mathrm{Bin}(l_i(x)) \; (0 \le i \le T), \quad "
    r"\theta_{\mathrm{cls}}^\top o_T = 2 \, \mathrm{TM}(x) - 1",
    evaluate=_simulated,
    judges=(compile_together, compile_machine, execute.execute, execute.decode, simulate),
    cases=lambda size: every(machine=range(len(EXAMPLES)), word=range(2 ** (LENGTH + 1) - 1)),
    enumerates="all words of length at most 4, on each of nine machines",
    sizes=({"bits": 32}, {"bits": 64}),
    forms=(
        Form(
            name="corrected",
            note="As errata E4, E5 and E3 require, the network executes timestep 0, starts at cell "
            "l_0 = 1, and has position bits for a two-way tape. The float32 run uses the lookahead "
            "adder and corrections of slope 2, whose weights float32 represents exactly. The "
            "float64 run uses the paper's ripple adder and the paper's corrections, of slope 3.",
        ),
    ),
    control="the machine one step late",
    assumptions="nine machines, all inputs of length at most 4, every step; their languages",
)


def _shorter(machine: TuringMachine, T: int) -> list[str]:
    return sorted(words(machine, T - 1), key=len, reverse=True)


@functools.cache
def _positions_table(T: int, bits: int | None) -> tuple[Any, Any, Any]:
    machine = LIBRARY["parity"]().machine
    inputs = _shorter(machine, T)
    compiled = compile_machine(machine, T, tape="one_way", bits=bits)
    # given explicit weights, every layer runs all of its attention: the second way to run the
    # network
    whole: Any = {} if bits is None else {"params": compiled.params}
    found = execute.decode(compiled, execute.execute(compiled, inputs, **whole))
    verdicts = execute.decide(compiled, inputs, **whole)
    decided = np.array([VERDICTS[verdict] for verdict in verdicts])
    return found.symbols, decided, execute.simulated(compiled, inputs)


def _positions(i: Instance, size: Size) -> Sides:
    T, word = size["T"], i["word"]
    printed, decided, _ = _positions_table(T, paper_position_bits(T))
    corrected, both, wanted = _positions_table(T, None)
    truth, verdict = wanted.symbols[word].astype(float), wanted.decision[word]
    return Sides.pairs(
        {
            "printed": (printed[word], truth),
            "printed decision": (decided[word], verdict),
            "corrected": (np.append(corrected[word], both[word]), np.append(truth, verdict)),
            "control": (corrected[word], np.roll(truth, 1)),
        }
    )


def _in_class(i: Instance, size: Size) -> dict[str, Any]:
    machine, T = LIBRARY["parity"]().machine, size["T"]
    inputs = _shorter(machine, T)
    heads = simulate(machine, inputs[int(i["word"])], T).heads
    return {
        "terminates within T steps on every input of the class (4.1)": all(
            halting_time(machine, word, T) <= T for word in inputs
        ),
        "inputs have at most T symbols (Section 4)": max(map(len, inputs)) <= T,
        "the input is at the left-most positions, the head never left of them (Section 4)": (
            heads.min() >= 1
        ),
        "moves are -1 or +1 (Section 4)": set(np.diff(heads)) <= {-1, 1},
        "one fixed initial state (Appendix C.1)": machine.start in machine.states,
    }


POSITIONS = by_machine(
    id="smapprox.thm4.1.positions",
    label="Appendix C.1, w_pos = ceil(log2 T)",
    formula="the symbols at steps 0..T are right with w_pos position bits",
    tex=r"w_{\mathrm{pos}} = \lceil \log_2 T \rceil \Rightarrow o_i^{\mathrm{sym}_1} = "
    r"\mathbf{1}(a_i(x)) \quad (0 \le i \le T)",
    evaluate=_positions,
    judges=(paper_position_bits, compile_machine, execute.execute, execute.decode),
    cases=lambda size: {"word": np.arange(2 ** size["T"] - 1)},
    enumerates="all words of length at most 3",
    sizes=({"T": 4},),
    forms=(
        Form(
            name="printed",
            cites="Appendix C.1: w_pos = ceil(log2 T), with (C.2) for each i",
            erratum="E3",
            note="At T = 4 the position bits of cell 5 equal those of cell 1, since 5 = 1 modulo "
            "4. The network therefore returns the first input symbol for cell 5 instead of the "
            "blank.",
            counterexample=Counterexample(instance={"word": 0}, ratio=1.0, meets=_in_class),
        ),
        Form(
            name="printed decision",
            cites="Appendix C.2, proof of Theorem 4.1: F(x) = 2 G(x) - 1",
            note="The last state z_T does not depend on the last symbol a_T, so the erratum does "
            "not affect Theorem 4.1.",
        ),
        Form(
            name="corrected",
            note="On a one-way tape, the right number w_pos of position bits is the bit length of "
            "T.",
        ),
    ),
    control="the symbols one step late",
    assumptions="the check uses the parity machine on inputs of fewer than T symbols",
    source="Appendix C.1",
)


def _maps(i: Instance, size: Size) -> Sides:
    machine = LIBRARY["equal_blocks"]().machine
    compiled = compile_machine(machine, size["T"])
    word = [w for w in words(machine, LENGTH) if len(w) == LENGTH][i["word"]]
    seen, trace = attended(compiled, word), simulate(machine, word, size["T"])
    tape, symbol = recovered_tape(compiled, seen)[-1], machine.alphabet.index
    cells = trace.heads % len(tape)
    last = dict(zip(cells, trace.symbols))
    read = [(read.cell, symbol(read.symbol), symbol(tape[read.cell])) for read in seen.reads]
    want = [(cell, a, last[cell]) for cell, a in zip(cells, trace.symbols)]
    found, right = np.array(read, float), np.array(want, float)
    weights, ones = seen.decoder[-1].max(axis=1), np.ones(len(cells))
    return Sides(
        np.append(found, weights),
        {"derived": np.append(right, ones), "control": np.append(np.roll(right, 1, axis=0), ones)},
    )


MAPS = by_machine(
    id="smapprox.claimc.6.maps",
    label="Claim C.6 and Lemma C.7, read off the attention maps",
    formula="the weights of the last search layer tell where each symbol comes from",
    tex=r"\mathcal{J} = \{i'\} \text{ if } i' > 0, \quad "
    r"a_i \in \{u_{i'}, x_{l_i}, \varnothing\}",
    evaluate=_maps,
    judges=(attended, recovered_tape),
    cases=lambda size: {"word": np.arange(2**LENGTH)},
    enumerates="all words of length 4",
    sizes=({"T": 13},),
    forms=(
        Form(
            name="derived",
            note="For each symbol that the network reads, the attention has weight 1 on the "
            "symbol's source: a step, an input cell, or the null key (blank).",
        ),
    ),
    control="one step late",
    assumptions="the machine for a^n b^n on every word",
)


def _description(machine: TuringMachine) -> dict[str, Any]:
    table: dict[str, Any] = {z: {} for z in machine.states}
    for (z, a), (after, write, move) in machine.transitions.items():
        table[z][a] = {"write": write, "L" if move < 0 else "R": after}
    names = {"accept": machine.accept, "reject": machine.reject}
    given = {"blank": machine.blank, "start state": machine.start, "table": table}
    return names | given | {"input alphabet": machine.input_alphabet}


def _read_back(i: Instance, size: Size) -> Sides:
    example = EXAMPLES[i["machine"]]
    machine, text = example.machine, json.dumps(_description(example.machine))
    compact = "1RB1LB_1LA1RH" if machine.name == "busy_beaver" else None
    readings = [
        formats.from_json(text),
        formats.from_yaml(text),
        formats.from_compact(compact) if compact else machine,
    ]
    inputs = words(machine, size["length"])
    T = example.steps(size["length"])

    def told(m: TuringMachine) -> list[Any]:
        traces = [simulate(m, word, T) for word in inputs]
        of = lambda t: zip(
            [m.states[z] for z in t.states], t.heads, [m.alphabet[a] for a in t.symbols]
        )
        return [step for trace in traces for step in of(trace)]

    right = told(machine)
    differ = lambda other: sum(a != b for a, b in zip(other, right, strict=True))
    halting = [w for w in inputs if example.accepts(w) is not None]
    late = [max(halting_time(machine, w, T) - example.steps(len(w)), 0) for w in halting]
    zero = np.zeros(len(readings) + 1)
    found = np.array([*(differ(told(m)) for m in readings), max(late)], float)
    stale = np.append(found[:-1] + differ(right[1:] + right[:1]), 0.0)
    return Sides.pairs({"derived": (found, zero), "control": (stale, zero)})


DESCRIPTIONS = by_machine(
    id="smapprox.sec4.descriptions",
    label="Section 4, machines as text",
    formula="a machine written as JSON, YAML or 1RB1LB_1LA1RH and read again runs alike",
    tex=r"\mathrm{TM}_{\text{read back}}(x) = \mathrm{TM}(x), \text{ step by step}",
    evaluate=_read_back,
    judges=(
        formats.from_json,
        formats.from_yaml,
        formats.from_compact,
        formats.from_description,
        halting_time,
    ),
    cases=lambda size: {"machine": np.arange(len(EXAMPLES))},
    enumerates="the nine machines of the library, each on all words of length at most 2",
    sizes=({"length": 2},),
    forms=(
        Form(
            name="derived",
            note="Every example machine also halts within the number of steps that "
            "`machine_library` lists for the machine.",
        ),
    ),
    control="one step late",
    source="library: its machines and file formats",
)


def _stepped(machine: TuringMachine, word: str, T: int) -> list[int]:
    tape, state, head = dict(enumerate(word, 1)), machine.start, 1
    states, heads, symbols = [state], [head], list[str]()
    for _ in range(T):
        symbols.append(tape.get(head, machine.blank))
        state, tape[head], move = machine.action(state, symbols[-1])
        head += move
        states.append(state)
        heads.append(head)
    return [*map(machine.states.index, states), *heads, *map(machine.alphabet.index, symbols)]


def _longer_inputs(i: Instance, size: Size) -> Sides:
    machine, T = EXAMPLES[i["machine"]].machine, size["T"]
    long = [word for word in words(machine, T + 2) if len(word) > T]
    told = lambda t: np.concatenate([t.states, t.heads, t.symbols[:-1]])

    def off(kept: int) -> float:
        pairs = ((_stepped(machine, w, T), told(simulate(machine, w[:kept], T))) for w in long)
        return float(sum(np.sum(np.array(a) != b) for a, b in pairs))

    return Sides.pairs({"printed": (off(T), 0.0), "control": (off(0), 0.0)})


INPUTS = by_machine(
    id="smapprox.sec4.inputs",
    label="Section 4, inputs of length at most T",
    formula="TM run for T steps on x does what it does on x_1 ... x_T",
    tex=r"\mathrm{TM}_T(x) = \mathrm{TM}_T(x_1 \cdots x_T)",
    evaluate=_longer_inputs,
    judges=(simulate,),
    cases=lambda size: {"machine": np.arange(len(EXAMPLES))},
    enumerates="the nine machines of the library, each on all words of 4 and 5 symbols",
    sizes=({"T": 3},),
    forms=(
        Form(
            name="printed",
            cites="Section 4, below (4.1): 'we can assume the input sequences x also have length "
            "at most T'",
            note="The head starts on cell 1 and moves by one cell per step. Before step T it can "
            "only read cells 1 to T, and the symbol that it reads at step T decides nothing.",
        ),
    ),
    control="the empty word",
)

STATEMENTS = (DESCRIPTIONS, INPUTS, THEOREM_41, POSITIONS, MAPS)
