"""The constructed RNN: exact pieces, Corollary 27's cases, error growth, where it fails."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbounds.qstr import data, relu_networks, rnn_construction
from jaxbounds.qstr.encodings import greedy_encodings
from jaxbounds.qstr.links import find_link
from jaxbounds.qstr.recurrent import exclusive_states

d, q, de = 3, 2, 16
RADIUS = 6.0


def prompt(key, N, *, simple=True, dim=de):
    omega = greedy_encodings(key, N, dim)

    @jax.jit
    def draw(key):
        key_x, key_t = jax.random.split(key)
        x = jnp.clip(jax.random.normal(key_x, (N, d)), -5.0, 5.0)
        t = data.sample_positions(key_t, (), N, q, simple=simple)
        return x, t, data.encode(x, t, omega, scale=False)

    return draw(key)


def wanted(x, t):
    """f(z_i)(l) = x_i if t_il = i, else 0, by a double loop."""
    out = np.zeros((len(x), q, d))
    for i in range(len(x)):
        for l in range(q):
            if t[i, l] == i:
                out[i, l] = x[i]
    return out.reshape(len(x), q * d)


def test_exact_transition_gates_exactly(key, x64):
    x, t, z = prompt(key, 12, simple=False)
    network = rnn_construction.exact_transition(q=q, d=d, de=de, radius=RADIUS)
    evaluate = jax.jit(lambda z: relu_networks.evaluate(network, z))
    np.testing.assert_allclose(evaluate(z), wanted(x, t), atol=1e-14)
    t = np.tile(np.arange(12, dtype=np.int32)[:, None], (1, q))  # every gate open
    omega = np.asarray(z)[:, d : d + de]
    z = jax.jit(functools.partial(data.encode, scale=False))(x, t, omega)
    np.testing.assert_allclose(evaluate(z), np.tile(x, (1, q)), atol=1e-14)


def test_interpolated_transition_works_for_any_unit_encodings(x64):
    omega, x = (np.random.default_rng(0).normal(size=(12, size)) for size in (24, d))
    omega /= np.linalg.norm(omega, axis=1, keepdims=True)
    mu = np.max(np.abs(omega @ omega.T - np.eye(12)))
    t = np.random.default_rng(1).integers(0, 12, (12, q), dtype=np.int32)
    z = np.asarray(jax.jit(functools.partial(data.encode, scale=False))(x, t, omega))
    errors = []
    for knots in (8, 32):
        network = rnn_construction.interpolated_transition(
            q=q, d=d, de=24, radius=RADIUS, knots=knots, coherence=(1 + mu) / 2
        )
        out = np.asarray(jax.jit(lambda z, net=network: relu_networks.evaluate(net, z))(z))
        errors.append(np.abs(out - wanted(x, t)).max())
        closed = wanted(np.ones_like(x), t) == 0
        assert np.abs(out[closed]).max() < 1e-15  # zero but for the order of the summation
    assert errors[1] < errors[0] / 8 and errors[1] < 0.2
    # B de (2/8)^2 / 16 / (1 - mu) + (4/8)^2 / 16.
    sizes = {"q": 1, "d": 1, "de": 8, "radius": 2.5, "knots": 8}
    bound = rnn_construction.interpolated_error(**sizes, coherence=0.5)
    assert bound == pytest.approx(2.5 * 8 / 16 / 16 / 0.5 + 0.25 / 16)


def test_square_interpolation_error(x64):
    kappa, beta = relu_networks.square_hinges(3.0, 6)
    v = np.linspace(-3, 3, 2001)
    value = np.maximum(np.abs(v)[:, None] - kappa, 0) @ beta
    assert np.all(value - v**2 >= -1e-12)
    assert (value - v**2).max() == pytest.approx(0.5**2 / 4, rel=1e-3)
    assert relu_networks.product_error(3.0, 6) == 1 / 64
    with pytest.raises(ValueError, match="at least one knot"):
        relu_networks.square_hinges(1.0, 0)


def test_the_three_cases_of_corollary_27(key, x64):
    N = 10
    x, t, z = prompt(key, N)
    network = rnn_construction.exact_transition(q=q, d=d, de=de, radius=RADIUS)
    run = lambda reverse: np.asarray(
        exclusive_states(
            lambda h, token: relu_networks.evaluate(network, token),
            z,
            q * d,
            radius=20.0,
            reverse=reverse,
        )
    ).reshape(N, q, d)
    forward, backward = run(False), run(True)
    for i in range(N):
        for l in range(q):
            j = int(t[i, l])
            zero, token = np.zeros(d), np.asarray(x[j])
            np.testing.assert_allclose(forward[i, l], token if j < i else zero, atol=1e-13)
            np.testing.assert_allclose(backward[i, l], token if j > i else zero, atol=1e-13)


def predicted(link, key, x, t, z):
    """The predictions of the constructed network, and the labels."""
    network = rnn_construction.exact_transition(q=q, d=d, de=24, radius=RADIUS)

    @jax.jit
    def both(key):
        parameters = link.init(key, q, d)
        got = rnn_construction.constructed_rnn(network, link.two_layer(parameters), z)
        return got, link.apply(parameters, data.relevant_tokens(x, t))

    return map(np.asarray, both(key))


def test_constructed_rnn_is_exact_on_a_long_prompt(key, x64):
    got, want = predicted(find_link("two_layer"), key, *prompt(key, 64, dim=24))
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_biased_increments_accumulate_and_rectified_ones_do_not(key, x64):
    eps, errors = 0.01, {}
    noise = jnp.asarray(eps * np.random.default_rng(0).uniform(0.5, 1.0, q * d))
    prompts = {N: prompt(key, N, dim=32) for N in (10, 100)}
    for rectified in (False, True):
        network = rnn_construction.biased_transition(
            noise, rectified=rectified, eps=eps, q=q, d=d, de=32, radius=RADIUS
        )
        for N, (x, t, z) in prompts.items():
            step = np.asarray(jax.jit(lambda z, net=network: relu_networks.evaluate(net, z))(z))
            sums = step.sum(axis=0).reshape(q, d)
            errors[rectified, N] = np.abs(sums - np.asarray(x)[np.asarray(t)[0]]).max()
    assert 5 < errors[False, 100] / errors[False, 10] < 20
    assert max(errors[True, 10], errors[True, 100]) <= 2 * eps  # noise, and the shrinkage
    with pytest.raises(ValueError, match="noise of shape="):
        rnn_construction.biased_transition(jnp.zeros(2), rectified=True, eps=eps)


def test_it_fails_on_general_qstr(key, x64):
    """Position-blind sums mix up the tokens of different positions: risk of order one."""
    got, want = predicted(find_link("linear"), key, *prompt(key, 24, simple=False, dim=24))
    assert np.mean((got - want) ** 2) > 0.5 * np.var(want)


def test_bad_options_are_refused():
    options = {"q": 1, "d": 1, "de": 2}
    with pytest.raises(ValueError, match="equal encodings"):
        rnn_construction.exact_transition(**options, radius=1.0, coherence=1.0)
    with pytest.raises(ValueError, match="radius"):
        rnn_construction.interpolated_transition(**options, radius=0.0)
