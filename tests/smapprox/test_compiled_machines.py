"""Whole machines: every step on every input, against the simulator and a plain NumPy network."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.smapprox import execute, readout
from jaxbounds.smapprox.compile_machine import (
    compile_machine,
    compile_together,
    paper_position_bits,
    position_bits,
)
from jaxbounds.smapprox.correction import DYADIC, THIRDS
from jaxbounds.smapprox.encoder_decoder import EncoderDecoder
from jaxbounds.smapprox.feedforward import l1_norm
from jaxbounds.smapprox.machine_formats import from_compact
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.machines import TuringMachine, halting_time, simulate, words
from jaxbounds.smapprox.softmax import inverse_temperature
from jaxbounds.smapprox.straight_through import hard_attention
from jaxbounds.smapprox.transformer import Attention, run

PARITY = LIBRARY["parity"]()


def check(compiled, inputs, exact, **options):
    result = execute.execute(compiled, inputs, **options)
    network = execute.decode(compiled, result)
    machine = execute.simulated(compiled, inputs)
    for name in ("states", "heads", "symbols"):
        np.testing.assert_array_equal(getattr(network, name), getattr(machine, name))
    assert network.error.max() <= exact
    np.testing.assert_allclose(network.decision, machine.decision, atol=exact)


def test_every_step_on_all_inputs_up_to_length_four():
    examples = [make() for make in LIBRARY.values()]
    machines = [example.machine for example in examples]
    together = compile_together(machines, max(example.steps(4) for example in examples))
    for compiled in together:
        check(compiled, words(compiled.machine, 4), 0.0)
    # Networks of one shape and one list of segments share their compiled run.
    assert len({compiled.used for compiled in together}) == 1
    shapes = [jax.tree.map(np.shape, compiled.params) for compiled in together]
    assert all(shape == shapes[0] for shape in shapes)


@pytest.mark.slow_cases("float64")
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_uncorrected_networks_are_exact_on_long_runs(precision):
    # Up to 120 keys tie; k (1/k) is not 1 for k = 41, 49, ..., so the sum must be divided by k.
    beaver = from_compact("1RB1LB_1LA0LC_1RZ1LD_1RD0RA")  # halts after 107 steps
    assert halting_time(beaver, "", 120) == 107
    machines = [LIBRARY["equal_blocks"]().machine, beaver]
    together = compile_together(machines, 120, correction=None)
    # As many inputs for both: one program.
    for compiled, inputs in zip(together, (["a" * 9 + "b" * 9, "ab"], ["", "0110"])):
        check(compiled, inputs, 0.0, precision=precision, length=18)


@pytest.mark.parametrize("k", [41, 49, 55, 120])
def test_the_mean_of_equal_values_is_exact(k):
    attend = jax.jit(hard_attention)
    mean = attend(np.zeros(k, np.float32), np.ones(k, np.float32))
    assert mean == 1.0  # integers below 2^24, and k / k
    uneven = attend(jnp.array([2.0, 1.0, 2.0]), jnp.array([[1.0], [9.0], [4.0]]))
    assert np.asarray(uneven) == pytest.approx(2.5)


def test_ripple_adder():
    example = LIBRARY["equal_blocks"]()
    compiled = compile_machine(example.machine, example.steps(4), adder="ripple", correction=None)
    check(compiled, words(example.machine, 4), 0, precision="float64")


def test_full_network_and_padding_change_nothing():
    example = LIBRARY["increment"]()
    compiled = compile_machine(example.machine, 10, padding=5)
    check(compiled, words(example.machine, 3), 0.0, params=compiled.params, length=5)


def test_against_plain_numpy_on_perturbed_weights(plain_numpy):
    compiled = compile_machine(PARITY.machine, 4, correction=THIRDS)
    rng = np.random.default_rng(0)
    params = jax.tree.map(lambda w: w + 1e-3 * rng.normal(size=w.shape), compiled.params)
    inputs = execute.encode(compiled, ["101"])
    want = plain_numpy.transformer(
        params, inputs.tokens[0], inputs.encoder_codes, inputs.decoder_codes
    )
    got = execute.execute(compiled, ["101"], params=params, precision="float64")
    np.testing.assert_allclose(got.outputs[0], want, atol=1e-11)
    assert np.abs(want - np.rint(want)).max() > 1e-4


@pytest.mark.parametrize("T", [1, 2, 7, 8, 20])
def test_depth_width_and_l1_norm(T):
    machine = LIBRARY["palindrome"]().machine
    nz, na, wp = 9, 3, position_bits(T)
    ripple, look = (
        compile_machine(machine, T, adder=a, correction=None) for a in ("ripple", "lookahead")
    )
    assert (ripple.depth, look.depth) == (3 * wp + 8, wp + 10)
    assert look.layout.width == nz + 4 * na + 4 * wp + 3 + nz * na
    for compiled in (ripple, look):
        thirds, dyadic = (
            compile_machine(machine, T, adder=a, correction=c)
            for c in (THIRDS, DYADIC)
            for a in ["ripple" if compiled is ripple else "lookahead"]
        )
        content, w = l1_norm(compiled.params), compiled.layout.width
        assert l1_norm(thirds.params) - content == pytest.approx(9 * w * compiled.depth)
        assert l1_norm(dyadic.params) - content == pytest.approx(7 * w * compiled.depth)
    assert l1_norm(look.params) == lookahead_l1(machine, wp)


def test_corrections_make_up_most_of_the_norm():
    # A remark of the paper's page, over the nine machines and both adders.
    for correction, least, most in ((THIRDS, 0.865, 0.935), (DYADIC, 0.835, 0.915)):
        for make in LIBRARY.values():
            example = make()
            for adder in ("ripple", "lookahead"):
                build = lambda zeta, e=example, a=adder: l1_norm(
                    compile_machine(e.machine, e.steps(4), adder=a, correction=zeta).params
                )
                assert least <= 1 - build(None) / build(correction) <= most


def lookahead_l1(machine, wp):
    """The l1 norm of the lookahead network, counted by hand from the text of its layers."""
    nz, na = len(machine.states) + 1, len(machine.alphabet)
    pair = 2 * wp + 3 * nz * na
    moves = sum(1 for z in machine.states for a in machine.alphabet if machine.action(z, a)[2]) + na
    act = 2 * wp + 2 * nz * na + moves
    kept = nz + na + 2 * wp
    carries = kept + sum((1 + t + t) + (1 + t) for t in range(wp))
    halves, sums = kept + 6 * wp, kept + 2 * wp
    c4 = (3 + 3) * wp + 1 + (wp - 1) + 1 + (nz + na + 3 * wp + 3)
    c5 = sum(
        6 * (wp + j) + (1 + 3) + 1 + (wp + j) + 1 + (nz + na + 3 * wp) + (wp - 1 + 1) + 2
        for j in range(wp)
    )
    copy_dec = 12 * wp + 1 + (2 * wp - 1) + na
    copy_enc = 6 * wp + 1 + (wp - 1) + na + 1
    copy = copy_dec + copy_enc + (nz + 3 * na + 3 * wp + 3)
    choose = nz + wp + 2 * na + 1 + 2 + 3
    gate = nz + wp + 3 * 2 * na + 1
    total = nz + 2 * na + 1 + wp
    outside = na + 2 + 2
    return pair + act + carries + halves + sums + c4 + c5 + copy + choose + gate + total + outside


def test_position_bits():
    assert [position_bits(T) for T in (1, 2, 5, 7, 8, 20)] == [2, 3, 4, 4, 5, 6]
    assert [position_bits(T, tape="one_way") for T in (1, 3, 4, 7, 8)] == [2, 2, 3, 3, 4]
    assert [paper_position_bits(T) for T in (4, 5, 8)] == [2, 3, 3]


def test_one_way_tape_is_checked():
    compiled = compile_machine(PARITY.machine, 5, tape="one_way")
    check(compiled, words(PARITY.machine, 4), 0.0)
    grower = compile_machine(LIBRARY["increment"]().machine, 8, tape="one_way")
    with pytest.raises(ValueError, match="left of cell 1, where a one-way tape begins"):
        execute.execute(grower, ["11"])
    assert execute.encode(grower, ["01", "0"]).tokens.shape == (2, 2, 3)


def test_encoder_codes_from_zero_read_the_wrong_cells():
    # E5: with the head starting on cell 1, the input must be coded from 1.
    compiled = compile_machine(LIBRARY["equal_blocks"]().machine, 13)
    inputs = execute.encode(compiled, words(compiled.machine, 4))
    shifted = inputs._replace(encoder_codes=np.roll(inputs.encoder_codes, 1, axis=0))
    shifted.encoder_codes[0] = 0.0
    want = [simulate(compiled.machine, w, 13).verdict for w in words(compiled.machine, 4)]
    cast = lambda a: jnp.asarray(a, bool if a.dtype == bool else jnp.float32)
    weights = jax.tree.map(cast, compiled.params)

    def F(tokens, present, encoder_codes, decoder_codes):
        codes = encoder_codes, decoder_codes
        return run(weights, tokens, present, *codes, segments=compiled.used).output

    batched = jax.jit(jax.vmap(F, (0, 0, None, None)))
    for given, wrong in ((inputs, False), (shifted, True)):
        output = batched(*map(cast, given))
        verdicts = np.where(np.asarray(output) > 0, "accept", "reject")
        assert (verdicts != np.array(want)).any() == wrong


def test_stay_moves():
    machine = TuringMachine(
        states=("a", "b", "accept"),
        alphabet=("0", "1", "_"),
        blank="_",
        transitions={
            ("a", "0"): ("b", "1", 0),
            ("a", "1"): ("a", "0", 1),
            ("a", "_"): ("accept", "_", 0),
            ("b", "0"): ("a", "0", 1),
            ("b", "1"): ("a", "1", 1),
            ("b", "_"): ("accept", "_", -1),
        },
        start="a",
        reject=(),
    )
    check(compile_machine(machine, 9), words(machine, 3), 0.0)


@pytest.mark.parametrize("correction", [THIRDS, DYADIC])
def test_softmax_attention_is_exact_when_cold_enough(correction):
    example = LIBRARY["equal_blocks"]()
    compiled = compile_machine(example.machine, 13, correction=correction)
    inputs = words(example.machine, 4)
    tau = inverse_temperature(13, correction)
    options = {"attention": Attention("soft"), "length": 4}
    check(compiled, inputs, 1e-6, inverse_temperature=tau, **options)
    warm = execute.decode(
        compiled, execute.execute(compiled, inputs, inverse_temperature=0.3, **options)
    )
    assert warm.error.max() > 0.1


def test_attention_maps_tell_where_symbols_came_from():
    example = LIBRARY["equal_blocks"]()
    compiled = compile_machine(example.machine, 13)
    trace = simulate(example.machine, "aabb", 13)
    seen = readout.attended(compiled, "aabb")
    visited = {}
    for i, read in enumerate(seen.reads):
        if i:
            visited[trace.heads[i - 1]] = i
        cell = trace.heads[i]
        source = ("step", visited[cell]) if cell in visited else ("input", cell)
        if source[0] == "input" and not 1 <= cell <= 4:
            source = ("blank", 0)
        assert (read.source, read.index, read.cell) == (*source, cell)
        assert read.symbol == example.machine.alphabet[trace.symbols[i]]
    np.testing.assert_allclose(seen.decoder.sum(axis=-1), 1.0, atol=1e-6)
    assert len(seen.layers) == compiled.layout.bits + 2
    tape = readout.recovered_tape(compiled, seen)
    assert "".join(tape[-1, 1:5]) == "XXYY"
    astray = seen._replace(reads=(*seen.reads[:-1], seen.reads[-1]._replace(cell=35)))
    with pytest.raises(ValueError, match="head cell=35 at step 13 is outside the tape"):
        readout.recovered_tape(compiled, astray)


def test_show_prints_every_layer():
    compiled = compile_machine(PARITY.machine, 5)
    text = readout.show(compiled, equations=True)
    assert text.count("\nlayer ") == compiled.depth
    assert "za[even,1] = relu(st[even] + sym1[1] - 1)" in text
    assert "st[odd] = relu(" in text
    assert "copies st, sym2, pos1, pos2" in text and "pos1[1] = " not in text
    decoded = execute.decode(compiled, execute.execute(compiled, ["101"]))
    table = readout.side_by_side(compiled, "101", decoded, 0)
    assert table.count("\n") == 6 and "differ" not in table
    wrong = decoded._replace(symbols=decoded.symbols * 0)
    assert "differ" in readout.side_by_side(compiled, "101", wrong, 0)


def test_undecided_words_warn():
    compiled = compile_machine(PARITY.machine, 3)
    assert execute.decide(compiled, ["1", "11"], length=3) == ["accept", "reject"]
    with pytest.warns(UserWarning, match="larger T"):
        assert execute.decide(compiled, ["1", "101"]) == ["accept", "undecided"]


def test_messages():
    with pytest.raises(ValueError, match="T=0, expected at least 1"):
        compile_machine(PARITY.machine, 0)
    with pytest.raises(ValueError, match="adder"):
        compile_machine(PARITY.machine, 3, adder="magic")
    with pytest.raises(ValueError, match="at least 2 for the circuit that adds"):
        compile_machine(PARITY.machine, 3, bits=1)
    taken = dataclasses.replace(
        PARITY.machine,
        states=("<pre>", *PARITY.machine.states),
        transitions={**PARITY.machine.transitions, **{("<pre>", a): ("even", a, 1) for a in "01_"}},
    )
    with pytest.raises(ValueError, match="another name"):
        compile_machine(taken, 3)
    compiled = compile_machine(PARITY.machine, 3)
    with pytest.raises(ValueError, match="outside the input alphabet"):
        execute.execute(compiled, ["0a"])
    with pytest.raises(ValueError, match="symbols"):
        execute.execute(compiled, ["0101"])
    inputs = execute.encode(compiled, ["01"])
    with pytest.raises(ValueError, match="record=True"):
        one = (inputs.tokens[0], inputs.present[0], *inputs[2:])
        arrays = jax.tree.map(jnp.asarray, (compiled.params, *one))
        run(*arrays, segments=compiled.used, record=True)
    with pytest.raises(ValueError, match="tie_tolerance"):
        Attention(tie_tolerance=0.5)
    with pytest.raises(ValueError, match="'hard' or 'soft'"):
        Attention("medium")


def test_module_takes_compiled_weights(key):
    compiled = compile_machine(PARITY.machine, 4)
    inputs = jax.tree.map(
        lambda a: jnp.asarray(a, bool if a.dtype == bool else jnp.float32),
        execute.encode(compiled, ["101"]),
    )
    net = EncoderDecoder(compiled.layout.width, compiled.depth, 2 * compiled.layout.bits + 1)
    one = (inputs.tokens[0], inputs.present[0], inputs.encoder_codes, inputs.decoder_codes)
    shapes = jax.eval_shape(net.init, key, *one)["params"]["theta"]
    weights = jax.tree.map(lambda w: jnp.asarray(w, jnp.float32), compiled.params)
    assert jax.tree.map(np.shape, shapes) == jax.tree.map(np.shape, weights)
    output = jax.jit(net.apply)({"params": {"theta": weights}}, *one)
    assert np.asarray(output) == pytest.approx(-1.0, abs=1e-6)


@pytest.mark.slow
def test_share_of_the_corrections_in_the_norm_falls_with_the_length():
    # The remark on the norms of the corrections: per adder the ends at T = 7 and 2^19 - 1.
    def share(name, adder, T):
        machine, known = LIBRARY[name]().machine, {"adder": adder}
        whole = l1_norm(compile_machine(machine, T, correction=THIRDS, **known).params)
        return (
            1 - float(l1_norm(compile_machine(machine, T, correction=None, **known).params)) / whole
        )

    ends = {"ripple": (0.897, 0.931, 0.855, 0.891), "lookahead": (0.882, 0.918, 0.780, 0.833)}
    for adder, wanted in ends.items():
        at = lambda T, adder=adder: [float(share(name, adder, T)) for name in LIBRARY]
        short, long = at(7), at(2**19 - 1)
        found = min(short), max(short), min(long), max(long)
        assert found == pytest.approx(wanted, abs=6e-4)
        assert all(a > b for a, b in zip(short, long))
