"""Soft tables inside the compiled wiring, against a probabilistic automaton in plain NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.smapprox import learned_table as learned
from jaxbounds.smapprox.compile_machine import compile_machine
from jaxbounds.smapprox.machine_library import LIBRARY
from jaxbounds.smapprox.machines import words

MACHINE = LIBRARY["parity"]().machine


@pytest.fixture(scope="module")
def setting():
    compiled = compile_machine(MACHINE, 4, tape="one_way", correction=None)
    problem = learned.task(compiled, words(MACHINE, 3))
    where = learned.places(compiled)
    network = jax.jit(
        lambda logits: learned.outputs(
            problem,
            learned.soft_table(problem.params, where, logits, straight_through=False),
            compiled.used,
        )
    )
    return compiled, problem, where, network


def automaton(rows, word, steps):
    """P(accept) - P(reject) after some steps, by products of stochastic matrices."""
    states = list(MACHINE.states)
    weight = np.eye(len(states))[states.index(MACHINE.start)]
    pairs = list(MACHINE.transitions)
    for i in range(steps):
        symbol = word[i] if i < len(word) else MACHINE.blank
        step = np.eye(len(states))
        for z in states:
            if z not in MACHINE.terminal:
                step[states.index(z)] = rows[pairs.index((z, symbol))]
        weight = weight @ step
    return weight[states.index("accept")] - weight[states.index("reject")]


def test_the_network_is_a_probabilistic_automaton(key, setting):
    # The oracle multiplies matrices and knows nothing of layers or attention.
    compiled, _, where, network = setting
    logits = jax.random.normal(key, (len(where.pairs), len(where.states)))
    rows = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    want = [automaton(rows, word, compiled.T) for word in words(MACHINE, 3)]
    np.testing.assert_allclose(network(logits), want, atol=1e-5)
    assert np.ptp(want) > 0.05


def test_the_machines_own_table_gives_its_labels(setting):
    _, problem, where, network = setting
    following = [MACHINE.states.index(after) for after, _, _ in MACHINE.transitions.values()]
    own = 50 * np.eye(len(where.states))[following]
    np.testing.assert_allclose(network(jnp.asarray(own, jnp.float32)), problem.labels, atol=1e-6)
    assert learned.read_table(MACHINE, own).transitions == MACHINE.transitions
    wrong = learned.read_table(MACHINE, np.roll(own, 1, axis=1)).transitions
    assert wrong != MACHINE.transitions and wrong.keys() == MACHINE.transitions.keys()


def test_straight_through_rows_are_hard_with_a_soft_derivative(setting):
    _, problem, where, _ = setting
    logits = np.random.default_rng(0).normal(size=(len(where.pairs), len(where.states)))
    places = np.array(where.states)[:, None], np.array(where.pairs)[None, :]

    def rows(logits, straight_through):
        params = learned.soft_table(
            problem.params, where, logits, straight_through=straight_through
        )
        return params["layers"]["W1"][learned.ACT][places].T

    @jax.jit
    def asked(logits):
        slope = lambda s: jax.grad(lambda x: (rows(x, s) ** 3)[0, 1])(logits)
        return [(rows(logits, s), slope(s)) for s in (True, False)]

    (hard, of_hard), (soft, of_soft) = asked(np.float32(logits))
    np.testing.assert_allclose(hard, np.eye(len(where.states))[np.argmax(logits, 1)], atol=1e-6)
    # d(r^3) = 3 r^2 dr with the same dr
    hard, soft = np.asarray(hard)[0, 1] ** 2, np.asarray(soft)[0, 1] ** 2
    np.testing.assert_allclose(of_hard * soft, of_soft * hard, rtol=1e-4, atol=1e-7)


def test_words_without_a_verdict_are_refused():
    compiled = compile_machine(MACHINE, 3, tape="one_way", correction=None)
    with pytest.raises(ValueError, match="larger T"):
        learned.task(compiled, ["0", "101"])
