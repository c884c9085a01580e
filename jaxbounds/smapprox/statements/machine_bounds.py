"""Theorem 4.1: the sizes of compiled machines and of their states."""

import functools
import math
from typing import Any

import numpy as np

from jaxbounds.claims.statements import (
    Budget,
    Counterexample,
    Form,
    Instance,
    Sides,
    Size,
    Statement,
)
from jaxbounds.smapprox import execute
from jaxbounds.smapprox.certified_machine import state_norm
from jaxbounds.smapprox.compile_machine import compile_machine, paper_position_bits, position_bits
from jaxbounds.smapprox.correction import THIRDS
from jaxbounds.smapprox.feedforward import l1_norm
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.machines import halting_time, simulate
from jaxbounds.smapprox.readout import TIES_SHOWN
from jaxbounds.smapprox.statements.margin_cases import every


def _growing(size: Size) -> Instance:
    return {"log_T": np.array([k for k in (*range(3, 11), 12, 16, 20) if k <= size["log_T"]])}


def _size(i: Instance, size: Size) -> Sides:
    log_T = float(i["log_T"])
    machine = LIBRARY["palindrome"]().machine
    compiled = compile_machine(machine, 2 ** int(log_T) - 1, adder="ripple", correction=THIRDS)
    wp, pairs = compiled.layout.bits, len(compiled.layout.states) * len(machine.alphabet)
    return Sides.pairs(
        {
            "printed depth": (compiled.depth, log_T),
            "derived norm": (l1_norm(compiled.params), wp * (pairs + wp)),
            "control": (2.0**log_T, log_T),
        }
    )


SIZE = Statement(
    id="smapprox.thm4.1.size",
    label="Theorem 4.1, d ~ log T, alpha = poly(k, |A|, log T)",
    formula="depth and l1 norm grow at most as log T and w_pos (k|A| + w_pos)",
    tex=r"d \asymp \log T, \quad \alpha = O(w_{\mathrm{pos}} (k |\mathcal{A}| + w_{\mathrm{pos}}))",
    kind="rate",
    evaluate=_size,
    judges=(compile_machine, l1_norm),
    host=True,
    cases=_growing,
    sizes=({"log_T": 20},),
    forms=(
        Form(
            name="printed depth",
            cites="Theorem 4.1: d ~ log T",
            sense="at most",
            exponent=(0.6, 0.75),
            note="The network with the ripple adder has depth D = 3 w_pos + 8 (w_pos: position "
            "bits), so the depth is at "
            "most of the order log T. Identity layers can be added, so every larger depth is "
            "possible too.",
        ),
        Form(
            name="derived norm",
            sense="at most",
            exponent=(0.9, 1.05),
            note=(
                "The l_1 norm of the parameters includes the corrections (rounding layers), which "
                "contribute 9 w D for width w and depth D."
            ),
        ),
    ),
    control="unary positions: T against log T",
    assumptions="the palindrome machine, T from 7 to 2^20 - 1; k and |A| vary in "
    "smapprox.thm4.1.width; for the printed depth the other half of d ~ log T, by D = 3 w_pos + 8 "
    "and identity layers, is not checked",
    source="Section 4",
)


def _times(size: Size) -> Instance:
    times = np.exp(np.random.default_rng(0).uniform(0, math.log(1e6), size["times"] - 1))
    return every(T=[1, *times.astype(int)], machine=range(len(LIBRARY)))


def _width(i: Instance, size: Size) -> Sides:
    machine = [*LIBRARY.values()][i["machine"]]().machine
    compiled = compile_machine(machine, int(i["T"]))
    layout = compiled.layout
    order = len(layout.states) * len(layout.symbols) + layout.bits
    return Sides.pairs(
        {
            "printed": (layout.width, 4 * order),
            "printed norm": (l1_norm(compiled.params), 60 * (layout.bits + 10) * order),
            "control": (layout.width, order),
        }
    )


WIDTH = Statement(
    id="smapprox.thm4.1.width",
    label="Theorem 4.1, w >~ k|A| + log T, alpha = poly(k, |A|, log T)",
    formula="w <= 4 (k|A| + w_pos), alpha <= 60 (w_pos + 10) (k|A| + w_pos)",
    tex=r"w \gtrsim k |\mathcal{A}| + \log T: \quad "
    r"w \le 4 (k |\mathcal{A}| + w_{\mathrm{pos}}), \quad "
    r"\|\theta\|_1 \le 60 (w_{\mathrm{pos}} + 10) (k |\mathcal{A}| + w_{\mathrm{pos}})",
    kind="inequality",
    evaluate=_width,
    judges=(compile_machine, position_bits, l1_norm),
    host=True,
    cases=_times,
    search="random",
    budget=Budget(restarts=2, steps=10),
    sizes=({"times": 3},),
    forms=(
        Form(
            name="printed",
            cites="Theorem 4.1: w >~ k|A| + log T suffices",
            note="The network's width is w = k|A| + k + 4|A| + 4 w_pos + 3, for k >= 3 states and "
            "|A| >= 2 symbols. The number k includes the extra state of timestep 0.",
        ),
        Form(
            name="printed norm",
            cites="Theorem 4.1: alpha = poly(k, |A|, log T)",
            note="The network has depth w_pos + 10. In each layer the correction has norm 7 w, "
            "and the other weights have norm at most 8 w.",
        ),
    ),
    control="without the 4",
    assumptions="the nine machines (k from 4 to 10, |A| from 3 to 5), T up to a million; the "
    "least width: padding to larger w is not checked",
    source="Section 4",
)

WORDS = tuple("1" * n for n in range(30, -1, -1))


@functools.cache
def _recorded(T: int) -> tuple[Any, Any]:
    machine = LIBRARY["parity"]().machine
    compiled = compile_machine(machine, T, tape="one_way", bits=paper_position_bits(T))
    run = execute.execute(compiled, list(WORDS), record=True, attention=TIES_SHOWN)
    return compiled, run.record.hidden.astype(float)


def _norm(i: Instance, size: Size) -> Sides:
    compiled, hidden = _recorded(size["T"])
    own, machine = hidden[i["word"]], compiled.machine
    nonzero = (own > 0.5).sum(axis=-1)
    # The paper prints the states after these layers in (C.8) and (C.11).
    printed = [layer.name.startswith(("C.4", "C.5")) for layer in compiled.layers]
    count = nonzero[:, printed].max()
    bits = compiled.layout.bits
    return Sides.pairs(
        {
            "printed": (count, len(machine.states) + len(machine.alphabet) + bits),
            "derived": (np.linalg.norm(own, axis=-1).max(), state_norm(bits)),
            "derived count": (nonzero.max(), 4 * bits + 5),
            "control": (np.linalg.norm(own, axis=-1).max(), bits**0.5),
        },
        error=1e-6,
    )


def _parity_in_class(i: Instance, size: Size) -> dict[str, Any]:
    machine, T = LIBRARY["parity"]().machine, size["T"]
    word = WORDS[int(i["word"])]
    return {
        "terminates within T steps (4.1)": halting_time(machine, word, T) <= T,
        "inputs have at most T symbols (Section 4)": len(word) <= T,
        "w_pos = ceil(log2 T) (Appendix C.1)": _recorded(T)[0].layout.bits
        == paper_position_bits(T),
        "the head never leaves the one-way tape (Section 4)": simulate(machine, word, T).heads.min()
        >= 1,
    }


NORMS = Statement(
    id="smapprox.thm4.1.norms",
    label="Condition D.4 for Theorem 4.1",
    formula="every state of the network has at most |Z| + |A| + log T entries that are not 0",
    tex=r"\|h\|_0 \le |\mathcal{Z}| + |\mathcal{A}| + \log T, \quad "
    r"\|h\|_2 \le \lambda = \sqrt{4 w_{\mathrm{pos}} + 5}",
    kind="inequality",
    evaluate=_norm,
    judges=(state_norm, execute.execute),
    host=True,
    cases=lambda size: {"word": np.arange(len(WORDS))},
    enumerates="the words 1^n of at most 30 symbols",
    sizes=({"T": 31},),
    forms=(
        Form(
            name="printed",
            cites='Appendix C.2, proof of Theorem 4.1: "sparse binary vectors with at most '
            '|Z| + |A| + log T nonzero entries"',
            erratum="E20",
            reading="has no hidden constant",
            note="By (C.11), each of pos1, pos2, pos3 and scr3 holds w_pos bits. The parity "
            "machine at T = 31 has a state with 15 nonzero entries, but the printed number is 4 + "
            "3 + 5 = 12. Of the 15 entries, 13 are position bits: two copies of Bin(30) have 4 "
            "each, and Bin(31) has 5.",
            counterexample=Counterexample(instance={"word": 0}, ratio=1.25, meets=_parity_in_class),
        ),
        Form(
            name="derived",
            note="In a hidden state, each one-hot group contains a single 1, and each binary "
            "position contains at most w_pos ones.",
        ),
        Form(
            name="derived count",
            note="A state has at most 4 w_pos + 5 nonzero entries, and 4 w_pos + 5 is of the "
            "order of log T. So lambda has the order that the paper claims.",
        ),
    ),
    control="sqrt(w_pos)",
    assumptions="the check uses the parity machine, whose head moves do not depend on the symbols",
    source="Appendices C.2 and D",
)


STATEMENTS = (SIZE, WIDTH, NORMS)
