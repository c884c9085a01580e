"""Section 4 and Appendix C: the layers that simulate one step of a Turing machine."""

import functools
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.claims.statements import Form, Instance, Sides, Size, Statement
from jaxbounds.smapprox.compile_machine import START
from jaxbounds.smapprox.layers import (
    Layer,
    combine,
    find_last_visit,
    lookahead_adder,
    ripple_adder,
    transition,
)
from jaxbounds.smapprox.layout import Layout
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.statements.margin_cases import every
from jaxbounds.smapprox.transformer import attend, feed_forward, keys_and_values

SYMBOLS = ("0", "1", "_")
in_c2 = functools.partial(Statement, kind="construction", source="Appendix C.2")


def two_states(bits: int) -> Layout:
    """Return a layout of two states and three symbols, for statements that need no machine."""
    return Layout(("p", "q"), SYMBOLS, bits)


def _state(layout: Layout, **groups: Any) -> np.ndarray:
    h = np.zeros(layout.width)
    for name, values in groups.items():
        h[list(layout.groups[name])] = values
    return h


def _through(layers: Iterable[Layer], h: Any) -> np.ndarray:
    for layer in layers:
        h = np.asarray(feed_forward(layer.params, jnp.asarray(h)))
    return h


@functools.cache
def _transition_layers(bits: int) -> tuple[Any, Layout, list[Layer]]:
    machine = LIBRARY["equal_blocks"]().machine
    layout = Layout((START, *machine.states), tuple(machine.alphabet), bits)
    return machine, layout, transition(layout, machine, START)


def _pairs(size: Size) -> Instance:
    _, layout, _ = _transition_layers(size["bits"])
    return every(state=range(len(layout.states)), symbol=range(len(layout.symbols)))


def _c1(i: Instance, size: Size) -> Sides:
    machine, layout, layers = _transition_layers(size["bits"])
    z, a = layout.states[i["state"]], layout.symbols[i["symbol"]]
    place = i["state"] + 7 * i["symbol"]
    kept = {"pos1": layout.binary(place), "pos2": layout.binary(5 * place)}
    h, want = _state(layout, **kept), _state(layout, **kept)
    h[[layout.at("st", z), layout.at("sym1", a)]] = 1
    after, write, move = (machine.start, "_", 1) if z == START else machine.action(z, a)
    want[[layout.at("st", after), layout.at("sym2", write)]] = 1
    sides = [layout.at("scr4", "left"), layout.at("scr4", "right")]
    want[sides] = move < 0, move > 0
    swapped = want.copy()
    swapped[sides] = want[sides[::-1]]
    return Sides(_through(layers, h), {"printed": want, "control": swapped})


LEMMA_C1 = in_c2(
    id="smapprox.lemmac.1",
    label="Lemma C.1",
    formula="two ReLU layers map (z, a) to the next state, written symbol and move",
    tex=r"f(h, \theta)^{\mathrm{st}} = \mathbf{1}(z_i), \; f(h, \theta)^{\mathrm{sym}_2} = "
    r"\mathbf{1}(u_i), \; f(h, \theta)^{\mathrm{pos}_1} = \mathrm{Bin}(i), \; "
    r"f(h, \theta)^{\mathrm{pos}_2} = \mathrm{Bin}(l_{i-1})",
    evaluate=_c1,
    judges=(transition, feed_forward),
    host=True,
    cases=_pairs,
    enumerates="all pairs of a state and a symbol",
    sizes=({"bits": 4},),
    forms=(
        Form(name="printed", cites="(C.4) and the sentence after it: all other coordinates are 0"),
    ),
    control="left and right exchanged",
    assumptions="the machine for a^n b^n, all pairs of state and symbol; norm: smapprox.appc.norms",
)


def _c2(i: Instance, size: Size) -> Sides:
    layout = two_states(size["bits"])
    head, move = i["head"], i["move"]
    kept = {"st": [0, 1], "sym2": [0, 1, 0], "pos1": layout.binary(-1 - head)}
    kept["pos2"] = layout.binary(head)
    h = _state(layout, **kept, scr4=[move < 0, move > 0, 0])
    want = _state(layout, **kept, pos3=layout.binary(head + move))
    unmoved = _state(layout, **kept, pos3=layout.binary(head))
    by_ripple, at_once = (_through(adder(layout), h) for adder in (ripple_adder, lookahead_adder))
    return Sides.pairs(
        {
            "printed": (by_ripple, want),
            "derived lookahead": (at_once, want),
            "control": (by_ripple, unmoved),
        }
    )


LEMMA_C2 = in_c2(
    id="smapprox.lemmac.2",
    label="Lemma C.2",
    formula="O(w_pos) ReLU layers map Bin(l) to Bin(l - 1) or Bin(l + 1)",
    tex=r"f(h, \theta)^{\mathrm{pos}_3} = \mathrm{Bin}(l_i), \quad l_i = l_{i-1} - v_1 + v_2",
    evaluate=_c2,
    judges=(ripple_adder, lookahead_adder, feed_forward),
    host=True,
    cases=lambda size: every(head=range(2 ** size["bits"]), move=(-1, 1)),
    enumerates="all positions of five bits, both moves",
    sizes=({"bits": 5},),
    forms=(
        Form(
            name="printed",
            cites="(C.5) and the sentence after it",
            note="The network uses the paper's ripple adder, which has 2 w_pos + 1 layers for "
            "w_pos position bits.",
        ),
        Form(
            name="derived lookahead",
            note="The lookahead adder has three layers. A move to the right sets right = 1 and "
            "left = 0, and a move to the left the opposite. The carry into bit t is relu(right + "
            "sum of lower bits - t), and the borrow is relu(left - sum of lower bits). The "
            "network computes XOR as a sum of two terms.",
        ),
    ),
    control="the head does not move",
    assumptions="all positions of five bits, both moves; norm: smapprox.appc.norms",
)

LONGEST = 5
"""The number of symbols of the longest input that the check tries; a larger number tries more
inputs."""


def _look_ups(size: Size) -> Instance:
    cases = every(cell=range(2 ** size["bits"]), m=range(LONGEST + 1))
    inputs = np.array([np.random.default_rng(m).integers(0, 2, LONGEST) for m in cases["m"]])
    return {**cases, "word": inputs}


def _c7(i: Instance, size: Size) -> Sides:
    """Run the state (C.6) through the encoder attention, and compare the result with (C.15)."""
    layout = two_states(size["bits"])
    p = jax.tree.map(jnp.asarray, find_last_visit(layout)[-1].enc)
    place = lambda name: np.array(layout.groups[name])
    cells, cell = jnp.arange(1, LONGEST + 1), i["cell"]
    visited = (i["m"] % 2).astype(float)
    letters = jax.nn.one_hot(i["word"], len(SYMBOLS))
    encoded = jnp.zeros((LONGEST, layout.width)).at[:, place("sym1")].set(letters)
    encoded = encoded.at[:, place("pos1")].set(jax.vmap(layout.binary)(cells))
    memory = jax.vmap(keys_and_values, (None, 0))(p, encoded)
    h = jnp.zeros(layout.width).at[layout.at("st", "q")].set(1.0)
    for name, position in (("pos1", 3 * cell + 1), ("pos2", cell + 1), ("pos3", cell)):
        h = h.at[place(name)].set(layout.binary(position))
    h = h.at[layout.at("sym2", "1")].set(1.0).at[layout.at("scr1", "0")].set(visited)
    h = h.at[layout.at("scr4", "left")].set(visited)
    flag = lambda holds: jnp.where(holds, 1.0, 0.0)
    here, inside = flag(cells == cell), flag((cell >= 1) & (cell <= i["m"]))
    symbol = (letters * here[:, None]).sum(axis=0) * inside
    second = layout.at("scr4", "right")
    tell = lambda holds: h.at[place("scr2")].set(symbol).at[second].set(holds)
    found, _ = attend(p, h, memory, cells <= i["m"])
    return Sides.pairs(
        {
            "printed": (found, tell(flag(cell <= i["m"]))),
            "derived": (found, tell(inside)),
            "control": (found, tell(1 - inside)),
        }
    )


LEMMA_C7 = in_c2(
    id="smapprox.lemmac.7",
    label="Lemma C.7",
    formula="encoder attention gives x_l and 1(l <= m), and leaves all else as it is",
    tex=r"f(h, (e_1, \ldots, e_m), \theta)^{\mathrm{scr}_2} = \mathbf{1}(x_{l_i}) \text{ if } "
    r"l_i \le m, \; \mathbf{0} \text{ otherwise}, \quad "
    r"f(h, (e_1, \ldots, e_m), \theta)^{\mathrm{scr}_4}_2 = \mathbb{1}(l_i \le m)",
    evaluate=_c7,
    judges=(find_last_visit, attend, keys_and_values, Layout.binary),
    cases=_look_ups,
    sizes=({"bits": 4},),
    forms=(
        Form(
            name="printed",
            cites="(C.15), all nine lines and the sentence after them; Q and K as in the first "
            "display of its proof",
            hypotheses=lambda i, size: {"1 <= l: the tape starts at cell 1": i["cell"] >= 1},
        ),
        Form(
            name="derived",
            note="A two-way tape has a cell 0. If the head is on cell 0, the attention selects the "
            "null key, as for cells beyond the input.",
        ),
    ),
    control="the complement of the flag",
    assumptions="four-bit cells, inputs of length 0 to 5; norm: smapprox.appc.norms",
)


def _c8(i: Instance, size: Size) -> Sides:
    layout, one_hot = two_states(size["bits"]), np.eye(len(SYMBOLS))
    visited, inside, a, b = i["visited"], i["inside"], i["written"], i["input"]
    h = _state(
        layout,
        st=[0, 1],
        sym2=one_hot[i["last"]],
        pos1=layout.binary(5),
        pos2=layout.binary(4),
        pos3=layout.binary(3),
        scr1=visited * one_hot[a],
        scr2=inside * one_hot[b],
        scr3=layout.binary(6),
        scr4=[visited, inside, 0],
    )
    want = lambda s: _state(layout, st=[0, 1], sym1=one_hot[s], pos2=layout.binary(3))
    symbol = a if visited else b if inside else SYMBOLS.index("_")
    input_first = b if inside else symbol
    found = _through(combine(layout, "_"), h)
    return Sides(found, {"printed": want(symbol), "control": want(input_first)})


LEMMA_C8 = in_c2(
    id="smapprox.lemmac.8",
    label="Lemma C.8",
    formula="sym1 = the visited, else the input, else the blank symbol; all else cleared",
    tex=r"f(h, \theta)^{\mathrm{st}} = \mathbf{1}(z_i), \quad f(h, \theta)^{\mathrm{sym}_1} = "
    r"\mathbf{1}(a_i), \quad f(h, \theta)^{\mathrm{pos}_2} = \mathrm{Bin}(l_i)",
    evaluate=_c8,
    judges=(combine, feed_forward),
    host=True,
    cases=lambda size: every(
        visited=(0, 1),
        inside=(0, 1),
        **dict.fromkeys(("written", "input", "last"), range(len(SYMBOLS))),
    ),
    enumerates="all flags and symbols, that of step i included",
    sizes=({"bits": 3},),
    forms=(Form(name="printed", cites="(C.16) and the sentence after it"),),
    control="the input before the last visit",
    assumptions="all flags and symbols; norm: smapprox.appc.norms",
)

STATEMENTS = (LEMMA_C1, LEMMA_C2)
LATER = (LEMMA_C7, LEMMA_C8)
