"""Theorem 4.1: whole machines as networks, step by step."""

import jax.numpy as jnp
import numpy as np

from jaxbounds.smapprox import execute
from jaxbounds.smapprox.compile_machine import (
    compile_machine,
    compile_together,
    paper_position_bits,
)
from jaxbounds.smapprox.correction import DYADIC, THIRDS
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.machines import words
from jaxbounds.statements import Form, Sides, Statement


def _trace_cases(size):
    """Every word of at most four symbols on every machine of the library, by both routes."""
    examples = [make() for make in LIBRARY.values()]
    compiled = compile_together(
        [example.machine for example in examples],
        max(example.steps(4) for example in examples),
        adder="ripple" if size["bits"] == 64 else "lookahead",
        correction=THIRDS if size["bits"] == 64 else DYADIC,
    )
    table = lambda d: np.stack([d.states, d.heads, d.symbols], axis=-1)
    rows = {"network": [], "machine": [], "decision": [], "verdict": [], "error": []}
    for network in compiled:
        inputs = words(network.machine, 4)
        result = execute.execute(network, inputs, precision=f"float{size['bits']}", length=4)
        found, wanted = execute.decode(network, result), execute.simulated(network, inputs)
        rows["network"].append(table(found)), rows["machine"].append(table(wanted))
        rows["decision"].append(found.decision), rows["verdict"].append(wanted.decision)
        rows["error"].append(found.error)
    columns = {name: np.concatenate(parts) for name, parts in rows.items()}
    return columns | {name: columns[name].astype(np.float64) for name in ("decision", "error")}


def _traces(i):
    network, machine = (i[name].astype(float).ravel() for name in ("network", "machine"))
    late = jnp.roll(i["machine"].astype(float), 1, axis=0).ravel()
    end = lambda decision, error: jnp.stack([decision, error])
    return Sides(
        jnp.append(network, end(i["decision"], i["error"])),
        {
            "corrected": jnp.append(machine, end(i["verdict"], jnp.zeros(()))),
            "control": jnp.append(late, end(i["verdict"], jnp.zeros(()))),
        },
    )


def _position_cases(size):
    T = size["T"]
    machine = LIBRARY["parity"]().machine
    inputs = [word for word in words(machine, T) if len(word) == T][:16]
    columns = {}
    for name, bits in (("printed", paper_position_bits(T)), ("corrected", None)):
        compiled = compile_machine(machine, T, tape="one_way", bits=bits)
        found = execute.decode(compiled, execute.execute(compiled, inputs))
        columns[name] = found.symbols
        columns[f"decision {name}"] = np.rint(found.decision).astype(int)
    wanted = execute.simulated(compiled, inputs)
    return columns | {"truth": wanted.symbols, "verdict": wanted.decision.astype(int)}


def _positions(i):
    i = {name: value.astype(float) for name, value in i.items()}
    truth = i["truth"]
    return Sides(
        {
            "printed": i["printed"],
            "printed decision": i["decision printed"],
            "corrected": jnp.append(i["corrected"], i["decision corrected"]),
            "control": i["corrected"],
        },
        {
            "printed": truth,
            "printed decision": i["verdict"],
            "corrected": jnp.append(truth, i["verdict"]),
            "control": jnp.roll(truth, 1),
        },
    )


STATEMENTS = (
    Statement(
        id="smapprox.thm4.1",
        label="Theorem 4.1, the simulation (Lemmas C.1-C.8 together)",
        formula="o_i encodes state, head and symbol of step i, for i = 0..T, and F = 2 TM(x) - 1",
        kind="construction",
        evaluate=_traces,
        cases=_trace_cases,
        sizes=({"bits": 32}, {"bits": 64}),
        forms=(
            Form(
                name="corrected",
                note="With timestep 0 executed (E4), l_0 = 1 (E5) and two-way positions (E3). In "
                "float32 with the lookahead adder and dyadic rounding, in float64 with the paper's "
                "ripple adder and thirds.",
            ),
        ),
        control="the machine one step late",
        assumptions="nine machines, all inputs of length at most 4, every step",
        source="Section 4, Appendix C",
    ),
    Statement(
        id="smapprox.thm4.1-positions",
        label="Appendix C.1, w_pos = ceil(log2 T)",
        formula="the symbols at steps 0..T are right with w_pos position bits",
        kind="construction",
        evaluate=_positions,
        cases=_position_cases,
        sizes=({"T": 8},),
        forms=(
            Form(
                name="printed",
                expected="fails",
                erratum="E3",
                note="At T = 4, cell 5 = cell 1 modulo 4: the head reads the first input symbol "
                "instead of the blank.",
                counterexample={
                    "printed": np.array([0, 0, 0, 0, 0]),
                    "corrected": np.array([0, 0, 0, 0, 2]),
                    "truth": np.array([0, 0, 0, 0, 2]),
                    "decision printed": np.array(0),
                    "decision corrected": np.array(0),
                    "verdict": np.array(0),
                },
            ),
            Form(name="printed decision", note="z_T does not depend on a_T."),
            Form(name="corrected", note="w_pos = the bit length of T, on a one-way tape."),
        ),
        control="the symbols one step late",
        assumptions="the parity machine on inputs of length T",
        source="Appendix C.1",
    ),
)
