"""Circuits and their networks; every oracle here is Python's own Boolean logic."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.smapprox import aiger, circuits
from jaxbounds.smapprox.circuits import Circuit, Gate
from jaxbounds.smapprox.correction import DYADIC, THIRDS, Correction
from jaxbounds.smapprox.feedforward import (
    FeedforwardNet,
    compile_circuit,
    feedforward,
    l1_norm,
    network_depth,
    parameter_count,
    straight_through_feedforward,
)

NETWORK = jax.jit(jax.vmap(feedforward, in_axes=(None, 0)))


def as_dtype(params, dtype):
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, dtype)), params)


def by_hand(circuit, bits):
    """Gate values from Python booleans, one input at a time."""
    logic = {
        "AND": lambda a, b: a and b,
        "OR": lambda a, b: a or b,
        "NOT": lambda a: not a,
        "ID": lambda a: a,
    }
    values = []
    for layer in circuit.layers:
        bits = [logic[op](*(bits[p] for p in parents)) for op, parents in layer]
        values.append(bits)
    return values


@pytest.mark.parametrize("correction", [None, THIRDS, DYADIC])
def test_every_gate_on_every_input(key, correction):
    per_layer, inputs = (2 if correction is None else 4), 6
    shapes = [(3, 1), (6, 2), (6, 3), (10, 4), (10, 5), (10, 8), (10, 12), (8, 12)]
    for k, (width, depth) in zip(jax.random.split(key, len(shapes)), shapes):
        circuit = circuits.random_circuit(k, inputs, width, depth)
        params = compile_circuit(circuit, correction=correction, width=20, depth=12 * per_layer)
        x = circuits.all_inputs(inputs)
        found = NETWORK(as_dtype(params, np.float32), np.asarray(x, np.float32))
        output, hidden = map(np.asarray, found)
        exact = 0.0 if correction is not THIRDS else 1e-6
        for n, bits in enumerate(itertools.product([False, True], repeat=inputs)):
            values = by_hand(circuit, bits)
            assert abs(output[n] - (1 if values[-1][0] else -1)) <= exact
            for i, gates in enumerate(values):
                state = hidden[n, per_layer * (i + 1) - 1]
                assert np.abs(state[: len(gates)] - np.array(gates)).max() <= exact
                assert not state[len(gates) :].any()


def test_thirds_are_exact_in_float64(key, x64):
    circuit = circuits.random_circuit(key, 5, 8, 6)
    x = circuits.all_inputs(5)
    output, _ = NETWORK(as_dtype(compile_circuit(circuit), jnp.float64), jnp.asarray(x, float))
    assert np.abs(output - (2.0 * circuit(x) - 1)).max() < 1e-14


def test_l1_norm_is_the_sum_over_gates(key):
    # 4 for AND, 5 for OR, 3 for NOT, 2 for ID; 1 + 1 + 1/3 + 2/3 + 3 + 3 = 9 per rounded gate;
    # 3 for the head.
    cost = {"AND": 4, "OR": 5, "NOT": 3, "ID": 2}
    circuit = circuits.random_circuit(key, 5, 8, 6)
    ops = [op for layer in circuit.layers for op, _ in layer]
    content = sum(cost[op] for op in ops)
    assert l1_norm(compile_circuit(circuit, correction=None)) == pytest.approx(
        content + 3, abs=1e-9
    )
    full = content + 9 * len(ops) + 3
    assert l1_norm(compile_circuit(circuit)) == pytest.approx(full, abs=1e-9)
    assert l1_norm(compile_circuit(circuit, width=40)) == pytest.approx(full, abs=1e-9)


def test_padding_changes_nothing(key):
    circuit = circuits.random_circuit(key, 4, 5, 3)
    x = jnp.asarray(circuits.all_inputs(4), jnp.float32)
    plain = as_dtype(compile_circuit(circuit, correction=DYADIC), jnp.float32)
    deep = as_dtype(compile_circuit(circuit, correction=DYADIC, width=31, depth=20), jnp.float32)
    want = 2.0 * circuit(circuits.all_inputs(4)) - 1.0
    for params in (plain, deep):
        np.testing.assert_allclose(NETWORK(params, x)[0], want, atol=1e-6)
    assert deep["hidden"]["b"].shape == (19, 31)


def test_module_and_parameter_count(key):
    net = FeedforwardNet(width=7, depth=4)
    x = jnp.ones(3)
    variables = jax.jit(net.init)(key, x)
    assert parameter_count(variables) == 7 * 3 + 7 + 3 * (49 + 7) + 7 + 1
    compiled = compile_circuit(
        Circuit(3, ((Gate("AND", (0, 2)), Gate("NOT", (1,))), (Gate("OR", (0, 1)),))),
        correction=None,
        width=7,
    )
    output = jax.jit(net.apply)({"params": as_dtype(compiled, np.float32)}, x)
    assert float(output) == pytest.approx(1.0, abs=1e-6)


def test_straight_through_keeps_the_value_and_frees_the_gradient(key, x64):
    circuit = circuits.random_circuit(key, 4, 5, 3)
    x = jnp.asarray(circuits.all_inputs(4)[5], float)
    noise = lambda leaf: 0.01 * np.cos(np.arange(leaf.size)).reshape(leaf.shape)
    for correction in (None, THIRDS):
        compiled = compile_circuit(circuit, correction=correction)
        params = as_dtype(jax.tree.map(lambda leaf: leaf + noise(leaf), compiled), np.float64)
        surrogate = lambda p, c=correction: straight_through_feedforward(
            p, x, corrected=c is not None
        )
        value, slope = jax.jit(jax.value_and_grad(surrogate))(params)
        plain = jax.jit(feedforward)(params, x)[0]
        assert float(value) == pytest.approx(float(plain), abs=1e-12)
        assert np.abs(slope["first"]["W"]).max() > 1e-3


def test_layering_keeps_the_function():
    x = circuits.all_inputs(5)
    np.testing.assert_array_equal(circuits.parity_circuit(5)(x), x.sum(axis=1) % 2 == 1)
    assert circuits.identity_chain(4).depth == 4
    chain = {i: ("NOT", [i - 1 or "x"]) for i in range(1, 3001)}  # deeper than Python's stack
    assert circuits.layered(["x"], chain, [3000]).depth == 3000
    with pytest.raises(ValueError, match="cycle"):
        circuits.layered(["x"], {"a": ("NOT", ["b"]), "b": ("NOT", ["a"])}, ["a"])
    with pytest.raises(ValueError, match=r"gate='z' is no gate and no input\. Try the"):
        circuits.layered(["x"], {"a": ("NOT", ["z"])}, ["a"])


def test_aiger_half_adder_and_constants():
    half_adder = "aag 7 2 0 2 3\n2\n4\n6\n12\n6 13 15\n12 2 4\n14 3 5\n"
    circuit = aiger.from_aiger(half_adder)
    x = circuits.all_inputs(2)
    total = circuit.gate_values(x)[-1] @ np.array([1, 2])
    np.testing.assert_array_equal(total, x.sum(axis=1))
    for literal, value in ((0, False), (1, True), (2, None), (3, None)):
        constant = aiger.from_aiger(f"aag 1 1 0 1 0\n2\n{literal}\n")
        wanted = [False, True] if literal == 2 else [True, False] if literal == 3 else [value] * 2
        np.testing.assert_array_equal(constant(circuits.all_inputs(1)), wanted)
    for text, message in (
        ("aig 1 1 0 1 0\n", "binary"),
        ("aag 1 0 1 0 0\n2 3\n", "latches"),
        ("hello", "aag M I L O A"),
        ("aag 3 2 0 1 1\n2\n4\n6\n6 2\n", "3 literals"),
        ("aag 3 2 0 1 1\n2\n\n6\n6 2 4\n", "3 literals"),
        ("aag 3 2 0 1 2\n2\n4\n6\n6 2 4\n6 3 5\n", "AND literal=6, expected an even literal"),
        ("aag 3 2 0 1 1\n2\n4\n2\n2 2 4\n", "AND literal=2, expected an even literal"),
    ):
        with pytest.raises(ValueError, match=message):
            aiger.from_aiger(text)


def test_json_round_trip(key):
    circuit = circuits.random_circuit(key, 4, 5, 3)
    assert circuits.from_json(circuit.to_json()) == circuit
    with pytest.raises(ValueError, match="inputs"):
        circuits.from_json('{"layers": []}')


@pytest.mark.parametrize(
    "layers, message",
    [
        ((), "at least one layer"),
        (((Gate("XOR", (0, 1)),),), "none of AND"),
        (((Gate("AND", (0,)),),), "has 2 parents"),
        (((Gate("ID", (7,)),),), "must be in"),
    ],
)
def test_ill_formed_circuits(layers, message):
    with pytest.raises(ValueError, match=message):
        Circuit(2, layers)


def test_bad_sizes(key):
    chain = circuits.identity_chain(2)
    with pytest.raises(ValueError, match="width"):
        compile_circuit(chain, width=1)
    with pytest.raises(ValueError, match="depth"):
        compile_circuit(chain, depth=network_depth(chain, corrected=True) + 1)
    with pytest.raises(ValueError, match=r"m=21 gives 2\^21 inputs, expected m <= 20 to"):
        circuits.all_inputs(21)
    with pytest.raises(ValueError, match="none had a fraction of outputs 1"):
        circuits.random_circuit(key, 1, 1, 1, balance=0.6, tries=3)
    with pytest.raises(ValueError, match="shape"):
        chain.gate_values(np.zeros((3, 2), bool))


@pytest.mark.parametrize("correction", [THIRDS, DYADIC, Correction(5.0)])
def test_rounding_is_a_clipped_line(x64, correction):
    z = np.linspace(-1, 2, 30001)
    slope, low = correction.slope, 0.5 - 0.5 / correction.slope
    np.testing.assert_allclose(
        correction(jnp.asarray(z)), np.clip(slope * (z - low), 0, 1), atol=1e-14
    )
    w = correction.weights(3, 2)
    h = np.array([0.9, 0.2, 0.7])
    relu = lambda v: np.maximum(v, 0)
    rounded = relu(w["W3"] @ relu(w["W2"] @ h + w["b2"]) + w["b3"])
    np.testing.assert_allclose(rounded, [1, 0, 0], atol=1e-14)
    with pytest.raises(ValueError, match="expected more than 1"):
        Correction(1.0)


def test_correction_lipschitz_constants_by_hand():
    # 4 slope^2 + 2 (1 + r)^2 + 1: 36 + 2 + 1, 36 + 8 + 1, 16 + 2 + 1.
    assert THIRDS.parameter_lipschitz(0.0) == pytest.approx(39**0.5, rel=1e-12)
    assert THIRDS.parameter_lipschitz(1.0) == pytest.approx(45**0.5, rel=1e-12)
    assert DYADIC.parameter_lipschitz(0.0) == pytest.approx(19**0.5, rel=1e-12)


def test_correction_lipschitz_constant_bounds_finite_changes(key, x64):
    # Condition D.3 on random states and perturbations of every size up to r: no derivative is used.
    zeta, w = THIRDS, THIRDS.weights(4, 4)
    rng = np.random.default_rng(0)
    relu = lambda v: np.maximum(v, 0)
    value = lambda p, h: relu(p["W3"] @ relu(p["W2"] @ h + p["b2"]) + p["b3"])
    worst = 0.0
    for _ in range(2000):
        r = 10.0 ** rng.uniform(-4, 0)
        step = {k: rng.normal(size=v.shape) for k, v in w.items()}
        norm = np.sqrt(sum((v**2).sum() for v in step.values()))
        h = rng.normal(size=4) * rng.choice([0.1, 1, 10])
        moved = value({k: w[k] + r * step[k] / norm for k in w}, h)
        bound = zeta.parameter_lipschitz(r) * max(np.linalg.norm(h), 1) * r
        worst = max(worst, np.linalg.norm(moved - value(w, h)) / bound)
    assert 0.05 < worst <= 1
