"""Section 4 and Appendix C: the layers that simulate one step of a Turing machine."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from jaxbounds.smapprox.compile_machine import START
from jaxbounds.smapprox.layers import (
    combine,
    find_last_visit,
    lookahead_adder,
    ripple_adder,
    transition,
)
from jaxbounds.smapprox.layout import Layout
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.statements import Form, Sides, Statement

SYMBOLS = ("0", "1", "_")


def _states(layout: Layout, count: int, **groups) -> np.ndarray:
    """States (count, w) from a table for each group."""
    h = np.zeros((count, layout.width))
    for name, table in groups.items():
        h[:, list(layout.groups[name])] = table
    return h


def _through(layers, h):
    """The content layers in a row: relu(W1 h + b1) each."""
    for layer in layers:
        h = jnp.maximum(jnp.asarray(layer.W1) @ h + jnp.asarray(layer.b1), 0.0)
    return h


def _bits(layout: Layout, positions) -> np.ndarray:
    return np.stack([layout.binary(int(p)) for p in positions])


@functools.cache
def _transition_layers():
    machine = LIBRARY["equal_blocks"]().machine
    layout = Layout((START, *machine.states), machine.alphabet, 4)
    return machine, layout, transition(layout, machine, START)


def _c1_cases(size):
    machine, layout, _ = _transition_layers()
    pairs = list(itertools.product(layout.states, layout.symbols))
    n = len(pairs)
    positions = np.arange(n) % 16
    kept = {"pos1": _bits(layout, positions), "pos2": _bits(layout, 5 * positions)}
    h, want = _states(layout, n, **kept), _states(layout, n, **kept)
    for row, (z, a) in enumerate(pairs):
        h[row, [layout.at("st", z), layout.at("sym1", a)]] = 1
        after, write, move = (machine.start, "_", 1) if z == START else machine.action(z, a)
        want[row, [layout.at("st", after), layout.at("sym2", write)]] = 1
        want[row, layout.at("scr4", "left" if move < 0 else "right")] = 1
    return {"h": h.astype(int), "want": want.astype(int)}


def _c1(i):
    _, layout, layers = _transition_layers()
    want = i["want"].astype(float)
    left, right = layout.at("scr4", "left"), layout.at("scr4", "right")
    swapped = want.at[left].set(want[right]).at[right].set(want[left])
    return Sides(_through(layers, i["h"].astype(float)), {"printed": want, "control": swapped})


ADDER_BITS = 5


@functools.cache
def _adders():
    layout = Layout(("p", "q"), SYMBOLS, ADDER_BITS)
    return layout, ripple_adder(layout), lookahead_adder(layout)


def _c2_cases(size):
    layout, _, _ = _adders()
    pairs = list(itertools.product(range(2**ADDER_BITS), (-1, 1)))
    heads, moves = map(np.array, zip(*pairs))
    n = len(pairs)
    kept = {
        "st": [[0, 1]] * n,
        "sym2": [[0, 1, 0]] * n,
        "pos1": _bits(layout, heads[::-1]),
        "pos2": _bits(layout, heads),
    }
    flags = np.stack([moves < 0, moves > 0, 0 * moves], axis=1)
    want = lambda shift: _states(layout, n, **kept, pos3=_bits(layout, heads + shift))
    return {
        "h": _states(layout, n, **kept, scr4=flags).astype(int),
        "want": want(moves).astype(int),
        "unmoved": want(0).astype(int),
    }


def _c2(i):
    _, ripple, lookahead = _adders()
    h, want = i["h"].astype(float), i["want"].astype(float)
    by_ripple, at_once = _through(ripple, h), _through(lookahead, h)
    return Sides(
        {"printed": by_ripple, "derived lookahead": at_once, "control": by_ripple},
        {"printed": want, "derived lookahead": want, "control": i["unmoved"].astype(float)},
    )


LOOKUP_BITS = 4


def _c7_cases(size):
    grid = itertools.product(range(2**LOOKUP_BITS), range(6))
    rows = []
    for cell, m in grid:
        word = np.random.default_rng(m).integers(0, 2, 5)
        symbol = np.zeros(3, int)
        if 1 <= cell <= m:
            symbol[word[cell - 1]] = 1
        rows.append((cell, m, word, symbol))
    cell, m, word, symbol = (np.stack(column) for column in zip(*rows))
    return {"cell": cell, "m": m, "word": word, "symbol": symbol}


def _c7(i):
    layout = Layout(("p",), SYMBOLS, LOOKUP_BITS)
    p = jax.tree.map(jnp.asarray, find_last_visit(layout)[-1].enc)
    place = lambda name: np.array(layout.groups[name])
    powers = jnp.arange(LOOKUP_BITS)[::-1]
    spread = lambda n: jnp.expand_dims(n, -1) >> powers.reshape((1,) * n.ndim + (-1,))
    binary = lambda n: (spread(n) & 1).astype(float)
    encoded = jnp.zeros((5, layout.width)).at[:, place("pos1")].set(binary(jnp.arange(1, 6)))
    encoded = encoded.at[:, place("sym1")].set(jax.nn.one_hot(i["word"], 3))
    h = jnp.zeros(layout.width).at[place("pos3")].set(binary(i["cell"]))
    allowed = jnp.append(True, jnp.arange(1, 6) <= i["m"])

    def look(query):
        keys = encoded @ p["Wk"].T + p["bk"][None, :]
        scores = jnp.where(allowed, jnp.append(query @ p["K0"], keys @ query), -jnp.inf)
        best = (scores == scores.max()).astype(float)
        values = encoded @ p["Wv"].T + p["bv"][None, :]
        out = h + best[1:] @ values / best.sum()
        return jnp.append(out[place("scr2")], out[layout.at("scr4", "right")])

    signed = p["Wq"] @ h + p["bq"]
    as_printed = jnp.where(jnp.arange(signed.shape[0]) < LOOKUP_BITS, (signed + 1) / 2, signed)
    symbol = i["symbol"].astype(float)
    inside = (i["cell"] >= 1) & (i["cell"] <= i["m"])
    want = jnp.append(symbol, inside.astype(float))
    upper_only = jnp.append(symbol, (i["cell"] <= i["m"]).astype(float))
    return Sides(
        {
            "printed": look(as_printed),
            "printed flag": look(signed),
            "corrected": look(signed),
            "control": look(signed),
        },
        {"printed": want, "printed flag": upper_only, "corrected": want, "control": 1 - want},
    )


@functools.cache
def _combining():
    layout = Layout(("p", "q"), SYMBOLS, 3)
    return layout, combine(layout, "_")


def _c8_cases(size):
    layout, _ = _combining()
    flags = np.array(list(itertools.product((0, 1), (0, 1), range(3), range(3))))
    visited, inside, a, b = flags.T
    n, one_hot = len(flags), np.eye(3, dtype=int)
    h = _states(
        layout,
        n,
        st=[[0, 1]] * n,
        sym2=one_hot[a],
        pos1=[[1, 0, 1]] * n,
        pos3=[[0, 1, 1]] * n,
        scr1=visited[:, None] * one_hot[a],
        scr2=inside[:, None] * one_hot[b],
        scr3=[[1, 1, 0]] * n,
        scr4=np.stack([visited, inside, 0 * a], axis=1),
    )
    symbol = np.where(visited > 0, a, np.where(inside > 0, b, 2))
    want = lambda s: _states(layout, n, st=[[0, 1]] * n, sym1=one_hot[s], pos2=[[0, 1, 1]] * n)
    input_first = np.where(inside > 0, b, np.where(visited > 0, a, 2))
    return {
        "h": h.astype(int),
        "want": want(symbol).astype(int),
        "input_first": want(input_first).astype(int),
    }


def _c8(i):
    _, layers = _combining()
    return Sides(
        _through(layers, i["h"].astype(float)),
        {"printed": i["want"].astype(float), "control": i["input_first"].astype(float)},
    )


_LOOK = {"word": np.array([1, 0, 0, 0, 0]), "symbol": np.array([0, 1, 0])}
STATEMENTS = (
    Statement(
        id="smapprox.lemmac.1",
        label="Lemma C.1",
        formula="two ReLU layers map (z, a) to the next state, written symbol and move",
        kind="construction",
        evaluate=_c1,
        cases=_c1_cases,
        sizes=({"all": 1},),
        forms=(Form(name="printed"),),
        control="left and right exchanged",
        assumptions="the machine for a^n b^n, all pairs of state and symbol",
        source="Appendix C.2",
    ),
    Statement(
        id="smapprox.lemmac.2",
        label="Lemma C.2",
        formula="O(w_pos) ReLU layers map Bin(l) to Bin(l - 1) or Bin(l + 1)",
        kind="construction",
        evaluate=_c2,
        cases=_c2_cases,
        sizes=({"all": 1},),
        forms=(
            Form(name="printed", note="The ripple adder, 2 w_pos + 1 layers."),
            Form(
                name="derived lookahead",
                note="Three layers: the carry into bit t is relu(right + lower bits - t), the "
                "borrow relu(left - lower bits); XOR with two halves.",
            ),
        ),
        control="the head does not move",
        assumptions="all positions of five bits, both moves",
        source="Appendix C.2",
    ),
    Statement(
        id="smapprox.lemmac.7",
        label="Lemma C.7",
        formula="encoder attention gives x_l and 1(1 <= l <= m)",
        kind="construction",
        evaluate=_c7,
        cases=_c7_cases,
        sizes=({"all": 1},),
        forms=(
            Form(
                name="printed",
                expected="fails",
                erratum="E9",
                note="With Q = Bin(l) for 2 Bin(l) - 1 the null key wins at l = 1, m = 1.",
                counterexample=_LOOK | {"cell": np.array(1), "m": np.array(1)},
            ),
            Form(
                name="printed flag",
                expected="fails",
                erratum="E9",
                note="1(l <= m) is 1 at l = 0, where there is no input.",
                counterexample=_LOOK
                | {"cell": np.array(0), "m": np.array(1), "symbol": np.array([0, 0, 0])},
            ),
            Form(name="corrected"),
        ),
        control="the complement",
        assumptions="four-bit cells, inputs of length 0 to 5",
        source="Appendix C.2",
    ),
    Statement(
        id="smapprox.lemmac.8",
        label="Lemma C.8",
        formula="sym1 = the visited, else the input, else the blank symbol; all else cleared",
        kind="construction",
        evaluate=_c8,
        cases=_c8_cases,
        sizes=({"all": 1},),
        forms=(Form(name="printed"),),
        control="the input before the last visit",
        assumptions="all flags and symbols",
        source="Appendix C.2",
    ),
)
