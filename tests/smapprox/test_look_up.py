"""Runs by look-ups and all steps at once, against the dense network, NumPy and the simulator."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.ground.jax_internals import enable_x64
from jaxbounds.smapprox import execute, look_up
from jaxbounds.smapprox import learned_table as learned
from jaxbounds.smapprox.compile_machine import compile_machine, compile_together
from jaxbounds.smapprox.correction import DYADIC, THIRDS
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.machines import words
from jaxbounds.smapprox.teacher_forcing import every_step, verify
from jaxbounds.smapprox.transformer import run

ADDERS, CORRECTIONS = ("lookahead", "ripple"), (DYADIC, THIRDS, None)


def compiled_for(name, length, **options):
    example = LIBRARY[name]()
    compiled = compile_machine(example.machine, example.steps(length), **options)
    assert compiled.structure is not None
    return compiled, words(example.machine, length)


def arrays(compiled, inputs, precision):
    """Weights and `transformer.run`'s inputs of the first word."""
    cast = lambda a: jnp.asarray(a, bool if a.dtype == bool else precision)
    one = (inputs.tokens[0], inputs.present[0], inputs.encoder_codes, inputs.decoder_codes)
    return jax.tree.map(cast, (compiled.params, one))


@pytest.mark.parametrize("name", LIBRARY)
@pytest.mark.parametrize(
    "adder, correction", [("lookahead", DYADIC), ("ripple", THIRDS), ("lookahead", None)]
)
def test_every_shipped_machine_is_recognised(name, adder, correction):
    compiled, _ = compiled_for(name, 4, adder=adder, correction=correction)
    layers = compiled.structure.layers
    bits = compiled.layout.bits
    assert sum(s.past for layer in layers for s in layer.look_ups) == bits + 2  # Lemma C.3
    assert sum(not s.past for layer in layers for s in layer.look_ups) == 1  # Lemma C.7
    # what is computed is little: a layer multiplies by a few hundred numbers, not w^2
    sizes = [
        np.prod([sum(len(compiled.layout.groups[g]) for g in part) for part in layer[2:]])
        for layer in layers
    ]
    assert max(sizes) < 0.25 * compiled.layout.width**2


@pytest.mark.slow_cases("equal_blocks-lookahead-correction0-0.0")
@pytest.mark.parametrize(
    "name, adder, correction, exact",
    [("equal_blocks", "lookahead", DYADIC, 0.0), ("increment", "ripple", THIRDS, 1e-6)],
)
def test_against_the_dense_network_and_plain_numpy(plain_numpy, name, adder, correction, exact):
    compiled, inputs = compiled_for(name, 3, adder=adder, correction=correction)
    found = execute.execute(compiled, inputs)
    dense = execute.execute(compiled, inputs, params=compiled.params)
    np.testing.assert_allclose(found.outputs, dense.outputs, rtol=0, atol=exact)
    np.testing.assert_allclose(found.output, dense.output, rtol=0, atol=exact)
    # The oracle is a double loop over steps and layers, and knows of no structure.
    last = execute.encode(compiled, inputs[-1:])
    want = plain_numpy.transformer(
        compiled.params, last.tokens[0], last.encoder_codes, last.decoder_codes
    )
    np.testing.assert_allclose(found.outputs[-1], want, rtol=0, atol=max(exact, 1e-12))


@pytest.mark.slow
@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("adder", ADDERS)
def test_all_machines_entry_by_entry_against_the_dense_network(adder, correction):
    examples = [make() for make in LIBRARY.values()]
    machines, T = [e.machine for e in examples], max(e.steps(4) for e in examples)
    together = compile_together(machines, T, adder=adder, correction=correction)
    for machine, padded in zip(machines, together):
        compiled = compile_machine(machine, T, adder=adder, correction=correction)
        inputs = words(machine, 4)
        found = execute.execute(compiled, inputs)
        dense = execute.execute(padded, inputs).outputs[..., : compiled.layout.live]
        exact = 1e-6 if correction is THIRDS else 0.0
        np.testing.assert_allclose(found.outputs, dense, rtol=0, atol=exact)


def test_other_weights_have_no_structure_and_run_densely():
    compiled, inputs = compiled_for("parity", 2)
    for name, place in (("W1", (3, 0, 5)), ("b1", (2, 40)), ("W2", (0, 1, 1))):
        params = jax.tree.map(np.copy, compiled.params)
        params["layers"][name][place] += 0.25
        moved = dataclasses.replace(compiled, params=params)
        assert moved.structure is None
    params = jax.tree.map(np.copy, compiled.params)
    params["layers"]["dec"]["K0"] += 0.25
    moved = dataclasses.replace(compiled, params=params)
    assert moved.structure is None
    dense = execute.execute(compiled, inputs, params=params)
    np.testing.assert_array_equal(execute.execute(moved, inputs).outputs, dense.outputs)
    # with too few position bits several steps have one code
    short = compile_machine(compiled.machine, 9, bits=3)
    assert short.structure is None


def test_what_the_last_visit_cannot_tell_is_not_certain():
    # Timesteps of three bits; the last visit of the cell was at 5 = 101, earlier ones are unknown.
    cell_at_5 = jnp.array([5])

    def asked(bits, known, asks=False):
        s = look_up.LookUp(True, "pos3", "scr3", known, asks, -1, "", "")
        h = {"scr3": jnp.array(bits, jnp.float32)[:, None]}
        found, certain = look_up.matches(s, 3, h, cell_at_5)
        return bool(found[0]), bool(certain[0])

    yes, no, unknown = (True, True), (False, True), (False, False)
    assert asked((0, 0, 0), 0) == yes
    assert asked((1, 0, 1), 3) == asked((1, 0, 0), 2) == asked((1, 0, 0), 2, asks=True) == yes
    assert asked((1, 1, 0), 3) == asked((1, 1, 0), 2) == asked((1, 0, 0), 1, asks=True) == no
    assert asked((1, 0, 0), 3) == asked((0, 1, 1), 1) == asked((0, 1, 1), 2, asks=True) == unknown
    assert not asked((1, 0.4, 1), 3)[1]  # no bit
    assert not look_up.matches(
        look_up.LookUp(True, "pos3", "", 0, False, -1, "", ""), 3, {}, jnp.array([0])
    )[0]


@pytest.mark.slow_cases("correction0")
@pytest.mark.parametrize("correction", [DYADIC, None])
def test_a_trace_is_verified_and_each_change_is_found(correction):
    compiled, inputs = compiled_for("equal_blocks", 4, correction=correction)
    trace = execute.simulated(compiled, inputs)
    assert not verify(compiled, inputs, trace).any()
    assert not verify(
        compiled, inputs[:5], execute.simulated(compiled, inputs[:5]), precision="float64"
    ).any()
    rng = np.random.default_rng(0)
    for name in ("states", "heads", "symbols"):
        moved, n = getattr(trace, name).copy(), len(inputs)
        words_, steps = np.arange(n), rng.integers(0, compiled.T, n)
        moved[words_, steps] = (moved[words_, steps] + 1) % 4
        changed = trace._replace(**{name: moved})
        found = verify(compiled, inputs, changed)
        # step i is wrong, and up to it nothing is (later steps may start from it or read it)
        assert (found[words_, steps] > 0).all()
        assert not any(found[w, :i].any() for w, i in zip(words_, steps))
        dense = verify(compiled, inputs, changed, params=compiled.params)
        np.testing.assert_array_equal(found, dense)
    with pytest.raises(ValueError, match="T \\+ 1 = "):
        verify(compiled, inputs[1:], trace)


@pytest.mark.parametrize("correction", [THIRDS, None])
def test_runs_are_what_a_pass_over_all_steps_keeps(correction):
    example = LIBRARY["parity"]()
    compiled = compile_machine(example.machine, 6, correction=correction)
    rng = np.random.default_rng(1)
    params = jax.tree.map(lambda w: w + 1e-3 * rng.normal(size=w.shape), compiled.params)
    moved = dataclasses.replace(compiled, params=params)
    with enable_x64(True):
        weights, one = arrays(moved, execute.encode(compiled, ["101"]), "float64")
        own = jax.jit(lambda p: run(p, *one, segments=compiled.full).outputs)(weights)
        passed = jax.jit(lambda p, o: every_step(p, *one, o))(weights, own)
        np.testing.assert_allclose(passed, own, rtol=0, atol=1e-11)
        assert np.abs(own - np.rint(own)).max() > 1e-4


@pytest.mark.slow_cases("False")
@pytest.mark.parametrize("straight_through", [False, True])
def test_learned_tables_have_the_dense_values_and_derivatives(key, straight_through):
    machine = LIBRARY["parity"]().machine
    compiled = compile_machine(machine, 3, tape="one_way", correction=None)
    problem, where = learned.task(compiled, words(machine, 2)), learned.places(compiled)
    logits = jax.random.normal(key, (len(where.pairs), len(where.states)))
    of_table = lambda table: learned.soft_table(
        problem.params, where, table, straight_through=straight_through
    )
    dense = lambda table: learned.outputs(problem, of_table(table), compiled.used)
    sparse = lambda table: learned.outputs_by_look_up(problem, of_table(table), compiled.structure)
    found, want = (
        jax.jit(jax.value_and_grad(lambda t, F=F: problem.labels @ F(t)))(logits)
        for F in (sparse, dense)
    )
    np.testing.assert_allclose(found[0], want[0], atol=1e-5)
    np.testing.assert_allclose(found[1], want[1], atol=1e-5)
    assert np.abs(want[1]).max() > 1e-2


def test_memory_is_known_before_anything_runs():
    compiled, inputs = compiled_for("palindrome", 3)
    n, longest, symbols = 512, 3, 3
    shape = jax.ShapeDtypeStruct
    weights = jax.tree.map(lambda a: shape(a.shape, jnp.float32), compiled.params)
    tokens, present = shape((n, longest, symbols), jnp.float32), shape((n, longest), bool)
    run_words = lambda p, *w: look_up.run(compiled.structure, p, *w, compiled.T)
    # what the compiler says it will allocate, and the result on the host
    used = jax.jit(run_words).lower(weights, tokens, present).compile().memory_analysis()
    result = 4 * n * (compiled.T + 1) * compiled.layout.width
    sizes = (used.argument_size_in_bytes, used.temp_size_in_bytes, used.output_size_in_bytes)
    need = sum(sizes) + result
    assert 0.3 * execute.memory_needed(compiled, n) < need < execute.memory_needed(compiled, n)
    with pytest.raises(ValueError, match="fewer words at once"):
        execute.execute(compiled, inputs, memory_limit=1000)


@pytest.mark.slow
@pytest.mark.parametrize("name", LIBRARY)
def test_every_step_of_4096_is_exact(name):
    machine = LIBRARY[name]().machine
    compiled = compile_machine(machine, 4096)
    rng = np.random.default_rng(2)
    inputs = ["".join(rng.choice(machine.input_alphabet, 60)) for _ in range(4)]
    if name in ("equal_blocks", "balanced_parentheses", "palindrome"):
        half = machine.input_alphabet[0] * 40  # these run longest
        inputs.append(half + machine.input_alphabet[-1] * 40)
    network = execute.decode(compiled, execute.execute(compiled, inputs))
    truth = execute.simulated(compiled, inputs)
    for what in ("states", "heads", "symbols", "decision"):
        np.testing.assert_array_equal(getattr(network, what), getattr(truth, what))
    assert network.error.max() == 0.0
    assert not verify(compiled, inputs, truth).any()


def test_a_run_that_stops_early_has_the_same_steps(x64):
    """Perturbed weights, against the run that goes on: its scan is another loop."""
    compiled, inputs = compiled_for("increment", 3, correction=THIRDS)
    params, one = arrays(compiled, execute.encode(compiled, inputs[-1:]), "float64")
    noise = lambda w: 1e-6 * np.sin(1.7 * np.arange(w.size)).reshape(w.shape)
    params, last = jax.tree.map(lambda w: w + noise(w), params), compiled.T - 2
    whole = jax.jit(lambda: run(params, *one, segments=compiled.full).outputs)()
    stopping = lambda stop: run(params, *one, segments=compiled.full, stop=stop)
    early = jax.jit(stopping)(jnp.asarray(last))
    np.testing.assert_allclose(early.outputs[: last + 1], whole[: last + 1], rtol=0, atol=1e-9)
    np.testing.assert_allclose(early.output, params["head"] @ whole[last], rtol=0, atol=1e-9)
    assert np.abs(whole[last + 1]).max() > 0.5 and not early.outputs[last + 1 :].any()
    with pytest.raises(ValueError, match="expected stop=None"):
        run(params, *one, segments=compiled.full, record=True, stop=jnp.asarray(last))
