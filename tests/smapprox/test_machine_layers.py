"""Lemmas C.1-C.8 one by one, on all their inputs, evaluated by plain NumPy."""

import itertools

import numpy as np
import pytest

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


def through(layers, h):
    for layer in layers:
        h = np.maximum(layer.W1 @ h + layer.b1, 0)
    return h


def state(layout, **groups):
    h = np.zeros(layout.width)
    for name, value in groups.items():
        h[list(layout.groups[name])] = value
    return h


def part(layout, h, group):
    return h[list(layout.groups[group])]


@pytest.mark.parametrize("name", ["equal_blocks", "two_way_walker"])
def test_transition(name):
    machine = LIBRARY[name]().machine
    layout = Layout((START, *machine.states), machine.alphabet, 4)
    layers = transition(layout, machine, START)
    for z, a in itertools.product(layout.states, layout.symbols):
        h = state(layout, pos1=layout.binary(5), pos2=layout.binary(9))
        h[layout.at("st", z)] = h[layout.at("sym1", a)] = 1
        out = through(layers, h)
        after, write, move = (machine.start, "_", 1) if z == START else machine.action(z, a)
        want = state(layout, pos1=layout.binary(5), pos2=layout.binary(9))
        want[layout.at("st", after)] = want[layout.at("sym2", write)] = 1
        want[layout.groups["scr4"][0]], want[layout.groups["scr4"][1]] = move < 0, move > 0
        np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("bits", [2, 3, 4, 6])
@pytest.mark.parametrize(
    "adder, depth", [(ripple_adder, lambda b: 2 * b + 1), (lookahead_adder, lambda b: 3)]
)
def test_adders_on_every_position_and_move(bits, adder, depth):
    layout = Layout(("p", "q"), ("0", "_"), bits)
    layers = adder(layout)
    assert len(layers) == depth(bits)
    for head, move in itertools.product(range(2**bits), (-1, 0, 1)):
        groups = {"st": [0, 1], "sym2": [1, 0], "pos1": layout.binary(3)}
        kept = groups | {"pos2": layout.binary(head)}
        h = state(layout, **kept, scr4=[move < 0, move > 0, 0])
        out = through(layers, h)
        np.testing.assert_array_equal(out, state(layout, **kept, pos3=layout.binary(head + move)))
        # every intermediate value is binary, which is what the corrections need
        for i in range(1, len(layers)):
            assert set(np.unique(through(layers[:i], h))) <= {0.0, 1.0}


def test_last_visit_by_binary_search(plain_numpy):
    """C.3-C.6 on random walks of 63 steps, against a scan over the past."""
    layout = Layout(("p",), ("0", "1", "_"), 6)
    layers = find_last_visit(layout)
    rng = np.random.default_rng(1)
    for _ in range(2):
        heads = (20 + np.concatenate([[0], np.cumsum(rng.choice([-1, 1], 63))])).tolist()
        written = rng.integers(0, 3, 64)
        memory = []
        for i in range(1, 64):  # timestep i sees the head before and after its move
            h = state(layout, pos1=layout.binary(i), pos2=layout.binary(heads[i - 1]))
            h[layout.groups["sym2"][written[i - 1]]] = 1
            h[list(layout.groups["pos3"])] = layout.binary(heads[i])
            memory.append(h)
        for i in range(1, 64):
            visits = [t for t in range(1, i + 1) if heads[t - 1] == heads[i]]
            last = max(visits, default=0)
            h = memory[i - 1]
            for layer in layers:
                # keys read pos1, pos2 and sym2, which all search layers keep
                h, scores, best = plain_numpy.attend(layer.dec, h, memory[:i])
                distinct = np.unique(scores)
                assert np.diff(distinct).min(initial=1) >= 1
                if layer is layers[-1]:
                    assert best == [last]
                    found = part(layout, h, "scr1")
                h = np.maximum(layer.W1 @ h + layer.b1, 0)
                if layer is layers[0]:
                    assert h[layout.at("scr4", "left")] == (last > 0)
            bits = 2 ** np.arange(6)[::-1]
            written_there = np.zeros(3)
            if last:
                written_there[written[last - 1]] = 1
            np.testing.assert_array_equal(found, written_there)
            if last:
                before = memory[i - 1]
                for layer in layers[:-1]:
                    before, _, _ = plain_numpy.attend(layer.dec, before, memory[:i])
                    before = np.maximum(layer.W1 @ before + layer.b1, 0)
                assert part(layout, before, "scr3") @ bits == last


@pytest.mark.parametrize("m", range(6))
def test_input_lookup(plain_numpy, m):
    layout = Layout(("p",), ("0", "1", "_"), 4)
    copy = find_last_visit(layout)[-1]
    word = np.random.default_rng(m).integers(0, 2, m)
    encoded = []
    for i, a in enumerate(word, start=1):
        e = state(layout, pos1=layout.binary(i))
        e[layout.groups["sym1"][a]] = 1
        encoded.append(e)
    for cell in range(16):
        h = state(layout, pos3=layout.binary(cell))
        out, scores, _ = plain_numpy.attend(copy.enc, h, encoded)
        inside = 1 <= cell <= m
        want = np.zeros(3)
        if inside:
            want[word[cell - 1]] = 1
        np.testing.assert_array_equal(part(layout, out, "scr2"), want)
        assert out[layout.at("scr4", "right")] == inside
        assert np.diff(np.unique(scores)).min(initial=1) >= 1


def test_combining_on_every_flag_and_symbol():
    layout = Layout(("p", "q"), ("0", "1", "_"), 3)
    layers = combine(layout, "_")
    one_hot = np.eye(3)
    for visited, inside, a, b in itertools.product((0, 1), (0, 1), range(3), range(3)):
        h = state(
            layout,
            st=[0, 1],
            sym2=[1, 0, 0],
            pos1=[1, 0, 1],
            pos3=[0, 1, 1],
            scr1=visited * one_hot[a],
            scr2=inside * one_hot[b],
            scr3=[1, 1, 0],
            scr4=[visited, inside, 0],
        )
        symbol = one_hot[a] if visited else one_hot[b] if inside else one_hot[2]
        want = state(layout, st=[0, 1], sym1=symbol, pos2=[0, 1, 1])
        np.testing.assert_array_equal(through(layers, h), want)


def test_layout_names():
    layout = Layout(("p", "q"), ("0", "1", "_"), 4, padding=2)
    assert layout.width == 2 + 4 * 3 + 4 * 4 + 3 + 6 + 2
    assert len(layout.names) == layout.width == len(set(layout.names))
    assert layout.names[layout.low_bit("pos2", 3)] == "pos2[8]"
    assert layout.names[layout.pair("q", "1")] == "za[q,1]"
    assert layout.binary(-1).tolist() == [1, 1, 1, 1]
