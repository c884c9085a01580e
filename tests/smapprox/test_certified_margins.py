"""Certified lower bounds, tested by perturbing networks at the certified radius."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.smapprox import circuits, execute
from jaxbounds.smapprox.attack import blocks_by_layer, margin_upper
from jaxbounds.smapprox.certified import (
    NiceConstants,
    best_over_trust,
    circuit_constants,
    circuit_margin_lower,
    joint_budget,
    layer_norm,
    theorem_d6,
    theorem_d6_terms,
    without_halvings,
)
from jaxbounds.smapprox.certified_machine import (
    LayerNorms,
    layer_norms,
    machine_margin_by_counts,
    machine_margin_lower,
    norms_by_counts,
    slack,
    state_error,
    state_norm,
)
from jaxbounds.smapprox.compile_machine import compile_machine
from jaxbounds.smapprox.correction import DYADIC, THIRDS
from jaxbounds.smapprox.feedforward import (
    compile_circuit,
    feedforward,
    straight_through_feedforward,
)
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.machines import TuringMachine
from jaxbounds.smapprox.softmax import (
    attention_error,
    inverse_temperature,
    least_inverse_temperature,
    off_mass,
    off_mass_bound,
)


def moved_by(r, rng, params):
    """The parameters moved by r in a random direction."""
    step = jax.tree.map(lambda leaf: rng.normal(size=np.shape(leaf)), params)
    norm = np.sqrt(sum((d**2).sum() for d in jax.tree.leaves(step)))
    return jax.tree.map(lambda p, d: np.asarray(p) + r * d / norm, params, step)


@pytest.fixture(scope="module")
def circuit():
    return circuits.random_circuit(jax.random.key(3), 4, 5, 4)


def network(circuit, correction):
    params = jax.tree.map(jnp.asarray, compile_circuit(circuit, correction=correction))
    x = jnp.asarray(circuits.all_inputs(circuit.inputs), float)
    output, states = jax.jit(jax.vmap(feedforward, in_axes=(None, 0)))(params, x)
    return params, x, np.asarray(output), np.asarray(states)


@pytest.mark.parametrize("correction", [THIRDS, DYADIC])
def test_lower_bounds_are_ordered_and_below_an_attack(x64, circuit, correction):
    params, x, output, states = network(circuit, correction)
    forms = (theorem_d6, without_halvings, joint_budget)
    lower = [circuit_margin_lower(params, states, correction, form=f) for f in forms]
    assert 1e-4 < lower[0] < lower[1] <= lower[2] < 0.1
    sign = float(np.sign(output[0]))
    upper = margin_upper(
        lambda p: sign * feedforward(p, x[0])[0],
        lambda p: sign * straight_through_feedforward(p, x[0], corrected=True),
        params,
        blocks_by_layer(params, lambda path: path[0].key == "hidden"),
        refinements=4,
    )
    assert lower[2] <= upper.radius <= 1.0


def test_states_are_restored_at_the_certified_radius(x64, circuit):
    # What the proof of D.6 says, and more than that no decision flips: every corrected state of
    # the perturbed network is within sigma_zeta of its own gate values.
    params, x, output, states = network(circuit, THIRDS)
    r = circuit_margin_lower(params, states, THIRDS)
    run = jax.jit(jax.vmap(lambda p, x: feedforward(p, x), in_axes=(None, 0)))
    far, rng = 0.0, np.random.default_rng(0)
    for _ in range(40):
        perturbed, hidden = map(np.asarray, run(moved_by(r, rng, params), x))
        assert (np.sign(perturbed) == np.sign(output)).all()
        far = max(far, np.abs(hidden[:, 3::4] - states[:, 3::4]).max())
    assert far <= THIRDS.radius
    # An uncorrected network has no such radius: the same bound is refused for it.
    bare, _, _, bare_states = network(circuit, None)
    with pytest.raises(ValueError, match="4 times the layers"):
        circuit_constants(
            {"first": bare["first"], "hidden": jax.tree.map(lambda a: a[:-1], bare["hidden"])},
            bare_states,
            THIRDS,
        )


def test_terms_of_theorem_d6(x64, circuit):
    params, _, _, states = network(circuit, THIRDS)
    constants = circuit_constants(params, states, THIRDS)(0.01)
    terms = theorem_d6_terms(constants)
    assert len(terms) == 9 and min(terms.values()) == theorem_d6(constants)
    never = ("lambda/mu_0", "1/(2 kappa_theta)", "1/(4 mu kappa_xi)")
    assert all(terms[name] > theorem_d6(constants) for name in never)
    # By finite changes of the weights of one layer: never above kappa_theta.
    rng = np.random.default_rng(0)
    W1, b1, W2, b2 = (np.asarray(params["hidden"][n][i]) for i in (3, 4) for n in ("W", "b"))
    relu = lambda v: np.maximum(v, 0)
    layer = lambda W1, b1, W2, b2, h: relu(W2 @ relu(W1 @ h + b1) + b2)
    for _ in range(200):
        h = states[rng.integers(len(states)), 3]
        step = [rng.normal(size=v.shape) for v in (W1, b1, W2, b2)]
        norm = np.sqrt(sum((s**2).sum() for s in step))
        moved = [v + 0.01 * s / norm for v, s in zip((W1, b1, W2, b2), step)]
        change = np.linalg.norm(layer(*moved, h) - layer(W1, b1, W2, b2, h))
        assert change <= constants.kappa_theta * max(np.linalg.norm(h), 1) * 0.01


def test_values_of_theorem_d6_by_hand():
    # lambda = 2, kappa_theta = 3, kappa_xi = 5, mu = 7, mu_0 = 11, sigma_h = 13, sigma_zeta = 1/4.
    c = NiceConstants(3.0, 5.0, 7.0, 11.0, 13.0, 0.25, 2.0, 0.5)
    want = {
        "lambda/mu_0": 2 / 11,
        "sigma_zeta/mu_0": 1 / 44,
        "sigma_theta": 1 / 2,
        "sigma_xi": 1 / 2,
        "1/(2 kappa_theta)": 1 / 6,
        "sigma_zeta/(2 kappa_theta lambda)": 1 / 48,
        "sigma_h/(2 kappa_xi lambda)": 13 / 20,
        "sigma_zeta/(4 lambda mu kappa_xi)": 1 / 1120,
        "1/(4 mu kappa_xi)": 1 / 140,
    }
    assert theorem_d6_terms(c) == pytest.approx(want, rel=1e-12)
    # kappa_theta lambda = 6 and mu kappa_xi (lambda + sigma_zeta) = 78.75.
    assert without_halvings(c) == pytest.approx(0.25 / 84.75, rel=1e-12)
    assert joint_budget(c) == pytest.approx(0.25 / 6237.5625**0.5, rel=1e-12)
    assert joint_budget(c._replace(sigma_h=0.01)) == pytest.approx(0.01 / 11.25, rel=1e-12)
    assert joint_budget(c._replace(mu_0=1e3)) == without_halvings(c._replace(mu_0=1e3)) == 2.5e-4


def test_norms_of_shared_parameters(x64):
    delta = jnp.array([3.0, -4.0, 12.0])
    assert layer_norm(delta, (0, 1)) == pytest.approx(5.0)
    assert layer_norm(delta, (2, 1, 0)) == pytest.approx(13.0)
    with pytest.raises(ValueError, match="expected each once"):
        layer_norm(delta, (0, 0))


def test_slack_of_one_layer_of_a_machine():
    # By hand from the docstrings at w_pos = 4 (lambda = sqrt 21), slope 2, radius 1/4, r = 1/1000:
    # eta = .0155758, K = 12.5527, mu = 2.001 * 2.001, radius - (K r + mu eta) = .175082.
    assert state_norm(4) == pytest.approx(4.58257569495584)
    assert state_error(4, 2.0, 0.25, 1e-3) == pytest.approx(0.015575793935007836, rel=1e-12)
    layer = LayerNorms(2.0, 1.0, 1.0, 2.0, 2.0, 1.0, attends=False)
    at = lambda layer: slack(layer, 4, 2.0, 0.25, 1e-3)
    assert at(layer) == pytest.approx(0.1750817723613069, rel=1e-12)
    assert at(layer._replace(attends=True)) == pytest.approx(0.1750817723613069, rel=1e-12)
    # Large null keys make the order of the scores bind: the decoder's, then the encoder's.
    decoder, encoder = layer._replace(decoder_null=30.0), layer._replace(encoder_null=20.0)
    assert at(decoder._replace(attends=True)) == pytest.approx(-0.34505487150932335, rel=1e-9)
    assert at(encoder._replace(attends=True)) == pytest.approx(-0.8006761262099384, rel=1e-9)
    assert at(decoder) == at(encoder) == at(layer)


def test_best_over_trust_beats_any_fixed_radius(x64, circuit):
    params, _, _, states = network(circuit, THIRDS)
    constants = circuit_constants(params, states, THIRDS)
    best = best_over_trust(joint_budget, constants)
    assert all(joint_budget(constants(r)) <= best * 1.05 for r in (1e-4, 1e-3, 1e-2, 0.1))


def test_machine_bound_is_polylogarithmic_and_restores_states():
    machine = LIBRARY["equal_blocks"]().machine
    parity = LIBRARY["parity"]().machine
    lower = [machine_margin_lower(compile_machine(parity, T, correction=THIRDS)) for T in (7, 127)]
    assert lower[0] > lower[1] > 0.3 * lower[0]
    compiled = compile_machine(machine, 5, correction=THIRDS)
    r, rng = machine_margin_lower(compiled), np.random.default_rng(0)
    for _ in range(2):
        moved = moved_by(r, rng, compiled.params)
        decoded = execute.decode(
            compiled, execute.execute(compiled, ["ab", "b"], params=moved, precision="float64")
        )
        want = execute.simulated(compiled, ["ab", "b"])
        np.testing.assert_array_equal(decoded.symbols, want.symbols)
        np.testing.assert_array_equal(decoded.heads, want.heads)
        assert decoded.error.max() <= THIRDS.radius
    with pytest.raises(ValueError, match="no certified margin"):
        machine_margin_lower(dataclasses.replace(compiled, correction=None))


def test_state_norm_bounds_all_states():
    example = LIBRARY["equal_blocks"]()
    compiled = compile_machine(example.machine, 13)
    run = execute.execute(compiled, ["aabb", "abab", ""], record=True)
    norms = np.linalg.norm(run.record.hidden, axis=-1)
    assert norms.max() <= state_norm(compiled.layout.bits)
    assert norms.max() >= 2.5


def test_softmax_temperature_is_tight(x64):
    # No match, T keys one below the null key: the worst memory, computed here with NumPy alone.
    T, error = 20, jax.jit(attention_error)
    scores = np.array([4.0] + [3.0] * T)
    values = np.array([[0.0]] + [[1.0]] * T)
    for correction, factor in ((THIRDS, 2.0), (DYADIC, 3.0)):
        assert inverse_temperature(T, correction) == pytest.approx(np.log(factor * (T + 1)))
        critical = least_inverse_temperature(T, correction)
        for shift, safe in ((1e-3, True), (-1e-3, False)):
            weights = np.exp((critical + shift) * (scores - 4))
            off = weights[1:].sum() / weights.sum()
            assert (off < correction.radius) == safe
            assert float(error(scores, values, critical + shift)) == pytest.approx(off)
    mass, gaps = jax.jit(off_mass), np.array([1.0, 2.0, 2.5, 3.0])
    assert mass(gaps, 2.0) <= off_mass_bound(4, 2.0, match=True)
    assert mass(gaps, 2.0) <= off_mass_bound(4, 2.0, match=False)
    bound = float(off_mass_bound(4, 2.0, match=False))
    assert float(mass(np.ones(4), 2.0)) == pytest.approx(bound)


def _agreeing():
    """Every transition is one and the same, which makes the largest norm."""
    table = {(z, a): ("z0", "0", 1) for z in ("z0", "z1", "z2", "z3") for a in "01_"}
    return TuringMachine(
        states=("z0", "z1", "z2", "z3", "accept"), alphabet="01_", blank="_", transitions=table,
        start="z0", reject=(),
    )  # fmt: skip


@pytest.mark.parametrize("T", [3, 400])
def test_norms_by_counts_against_singular_values(T):
    """All layers of two machines, by NumPy's decomposition, which knows no counts."""
    for machine in (_agreeing(), LIBRARY["two_way_walker"]().machine):
        compiled = compile_machine(machine, T, correction=THIRDS)
        layout = compiled.layout
        counts = len(layout.states), len(layout.symbols), layout.bits
        computes, attends = norms_by_counts(*counts)
        for layer in layer_norms(compiled):
            most = attends if layer.attends else computes
            assert all(a <= b + 1e-12 for a, b in zip(layer[:-1], most[:-1]))
        least = machine_margin_by_counts(*counts, THIRDS)  # equal where the counts are exact
        assert least <= machine_margin_lower(compiled) * (1 + 1e-12)
    agreeing = compile_machine(_agreeing(), 3, correction=THIRDS)
    assert max(layer.content for layer in layer_norms(agreeing)) ** 2 > 0.7 * 3 * 18
